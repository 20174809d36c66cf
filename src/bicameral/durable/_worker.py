"""A worker: claims runs from the queue and executes them, several at a time, with one agent for all or one per user.

It renews its leases by heartbeat and takes part in the maintenance that workers do for each other.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from bicameral.agent import Agent
from bicameral.durable._attempt import Attempt, AttemptBroken, AttemptResult, AttemptWaits
from bicameral.durable._leases import (
    Heartbeat,
    HeartbeatReply,
    Lease,
    claim_run,
    finish_run,
    release_run,
    remove_worker,
    requeue_runs,
    retry_delay,
)
from bicameral.durable._maintenance import Maintenance
from bicameral.durable._queries import outcome_json_text, put_question, record_cancellation
from bicameral.durable._queue import Dispatcher, QueueConsumer, SharedQuotas, Transaction, workflow_id
from bicameral.durable._runs import Runs
from bicameral.durable._views import RunEnd
from bicameral.errors import BicameralError, DurableError, describe_error
from bicameral.limits import use_quotas

MAX_IDLE_AGENTS = 16
"""How many unused agents are kept for the next run of their user."""


class AgentPool:
    """Lends an agent to a run. An agent that was given is closed by its owner; those made here are closed here."""

    def __init__(self, agent: Agent | Callable[[str], Agent]) -> None:
        self._one = agent if isinstance(agent, Agent) else None
        self._make = None if isinstance(agent, Agent) else agent
        self._made: OrderedDict[str, Agent] = OrderedDict()
        self._lent: dict[str, int] = {}
        self._making = asyncio.Lock()

    @asynccontextmanager
    async def lend(self, user: str) -> AsyncGenerator[Agent]:
        """The agent of a user, not closed for as long as the context is open."""
        if self._one is not None:
            yield self._one
            return
        agent = await self._agent_for(user)
        self._lent[user] = self._lent.get(user, 0) + 1
        try:
            yield agent
        finally:
            self._lent[user] -= 1
            if not self._lent[user]:
                del self._lent[user]
            await self._close_idle(MAX_IDLE_AGENTS)

    async def _agent_for(self, user: str) -> Agent:
        # Two runs of one user must not make two agents: one of them would never be closed.
        async with self._making:
            if user not in self._made and self._make is not None:
                self._made[user] = await asyncio.to_thread(self._make, user)
            self._made.move_to_end(user)
            return self._made[user]

    async def _close_idle(self, kept: int) -> None:
        """Close the least recently used idle agents, until only so many are left."""
        for user in [user for user in self._made if user not in self._lent]:
            if len(self._made) <= kept:
                return
            await self._made.pop(user).aclose()

    async def aclose(self) -> None:
        await self._close_idle(0)


StopReason = Literal["", "cancelled", "lost", "leaving", "over"]
WorkerObserver = Callable[[str, str, str | None], None]
"""Called with a run, its new state (or `lost`, if another worker has it), and the reason."""
OTHER_CODE_DELAY = 30.0
"""Seconds until a run is queued again that needs other tools than this worker has."""


@dataclass(slots=True, eq=False)
class HeldRun:
    """A run that this worker holds, and why its task is ended; `over` once only the result is left to be stored."""

    lease: Lease
    ending: StopReason = ""
    task: asyncio.Task[None] | None = None

    @property
    def is_leaving(self) -> bool:
        return self.ending in ("lost", "leaving")

    def end(self, why: StopReason) -> None:
        """Cancel the task of a run; the first reason counts."""
        if not self.ending and self.task is not None:
            self.ending = why
            self.task.cancel()


class Worker:
    """Claims and executes runs until it is stopped. One per process; any number of processes on any machines.

    Args:
        runs: The runs to work on.
        agent: The agent for all runs, or a function that makes the agent of a user, with that user's folders, tools and
            models.
        concurrency: How many runs at a time, by default as configured.
        name: The beginning of the worker's name, by default the host's name.
        observer: Called whenever the state of a run changes here.

    Example:
        >>> async with await Runs.open() as runs:
        ...     await Worker(runs, Agent.from_config()).run(stop)
    """

    def __init__(
        self,
        runs: Runs,
        agent: Agent | Callable[[str], Agent],
        *,
        concurrency: int | None = None,
        name: str | None = None,
        observer: WorkerObserver | None = None,
    ) -> None:
        self.runs = runs
        self.concurrency = concurrency or runs.config.durable.concurrency
        self.name = f"{name or socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._agents = AgentPool(agent)
        self._observer = observer
        self._lease = runs.config.durable.lease
        self._dispatch = runs.dispatch
        self._held: dict[str, HeldRun] = {}
        self._received: set[str] = set()
        """The workflow ids of the attempts that DBOS has delivered and that have not ended."""
        self._draining = False
        self._slots = asyncio.Semaphore(self.concurrency)
        self._turns: Any = None

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Work until `stop` is set; then effects that have begun are completed, and all runs go back to the queue."""
        settings, database = self.runs.config.durable, self.runs.database
        self._turns = SharedQuotas(database, settings.limits, self.name, self._lease)
        loop = asyncio.get_running_loop()
        consumer = QueueConsumer(database, self._dispatch, self.name)
        maintenance = Maintenance(self.runs, self._lease, self.name, lambda: list(self._received))
        await consumer.start(self._receive_attempt, self.concurrency, settings.limits.user)
        # A pool of its own: attempts that use up all connections must not make this worker look dead.
        heartbeat = Heartbeat(Dispatcher(database.with_own_pool()), self, self._lease, loop.call_soon_threadsafe)
        heartbeat.start()
        sweeping = asyncio.create_task(maintenance.run_forever())
        try:
            await (stop or asyncio.Event()).wait()
        finally:
            sweeping.cancel()
            # First no new attempts, then the held runs are given back. The heartbeat goes on until that is stored:
            # without it another worker could claim a run whose last effect is still being completed.
            self._draining = True
            stopping = asyncio.create_task(consumer.stop())
            await self._drain()
            await stopping
            await asyncio.to_thread(heartbeat.stop)
            await self._sign_off()
            await self._agents.aclose()

    async def _drain(self) -> None:
        """Give all held runs back; attempts that are delivered meanwhile requeue themselves."""
        all_held = list(self._held.values())
        for held in all_held:
            held.end("leaving")
        if tasks := [held.task for held in all_held if held.task is not None]:
            await asyncio.wait(tasks)

    async def _sign_off(self) -> None:
        # Best effort: without it the worker is forgotten after some leases.
        with suppress(DurableError):
            await self.runs.database.run_transaction(
                lambda db: remove_worker(Transaction(self._dispatch, db), self.name), 5.0
            )

    async def _receive_attempt(self, run: str, attempt: int) -> None:
        """Handle an attempt that DBOS delivers."""
        self._received.add(workflow_id(run, attempt))
        try:
            await self._claim_and_run(run, attempt)
        finally:
            self._received.discard(workflow_id(run, attempt))

    async def _claim_and_run(self, run: str, attempt: int) -> None:
        """Claim the run, if it is still queued in this attempt, and execute it."""
        lease, runs = Lease(run, attempt, self.name), self.runs.database.tables.runs
        async with self._slots:
            if self._draining:
                await self._dispatch.run(requeue_runs, (runs.c.run == run) & (runs.c.attempt == attempt), "queued")
                return
            row = await self._dispatch.run_until_done(claim_run, lease, self._lease)
            if row is None:
                return
            held = self._held[run] = HeldRun(lease)
            self._notify(run, "running")
            # An empty context: DBOS's context variables must not reach tools.
            task = held.task = asyncio.create_task(self._run_held(held, row), context=Context())
            # Draining may have begun during the claim, after `_drain` had listed the held runs.
            if self._draining:
                held.end("leaving")
            try:
                await asyncio.wait({task})
            finally:
                if self._held.get(run) is held:
                    del self._held[run]
            if not task.cancelled():
                # Read, so that asyncio does not log it: a result that could not be stored is found by the sweep
                # when the lease is over.
                task.exception()

    async def _run_held(self, held: HeldRun, row: sa.RowMapping) -> None:
        within = 0.0
        try:
            result, within = await self._make_attempt(held, row)
        except asyncio.CancelledError:
            # Cancelled while it was planned or looked up, before there was a run to stop.
            result = await self._cancelled_result(held)
        except BicameralError as error:
            result = AttemptBroken(error)
        except Exception as error:
            result = AttemptBroken(DurableError("durable.attempt-failed", describe_error(error)))
        if held.ending != "lost":
            # From here on a cancellation comes too late: it would only lose the result.
            held.ending = "over"
            await self._write_result(held.lease, row, result, within)
            self._notify(held.lease.run, *_observed_state(held.lease, result))
        else:
            self._notify(held.lease.run, "lost")

    async def _make_attempt(self, held: HeldRun, row: sa.RowMapping) -> tuple[AttemptResult, float]:
        """The result of the attempt, and the seconds that a question of it waits."""
        with use_quotas(self._turns.turn):
            async with self._agents.lend(row["user"]) as agent:
                attempt = Attempt(self.runs, held.lease, row, agent, lambda: held.is_leaving)
                return await attempt.run(), attempt.answer_seconds

    async def _cancelled_result(self, held: HeldRun) -> AttemptResult:
        if held.ending != "cancelled":
            return AttemptBroken(DurableError("durable.left", "the worker was stopped"))
        await asyncio.to_thread(record_cancellation, self.runs.run_journal, held.lease.run)
        return RunEnd("stopped", "it was cancelled", {"effects": []})

    async def _write_result(self, lease: Lease, row: sa.RowMapping, result: AttemptResult, within: float) -> None:
        """Store the result of an attempt; nothing changes if the run is another worker's by now."""
        store = self._dispatch.run_until_done
        match result:
            case RunEnd(state=state, why=why, outcome=outcome):
                why = "it was cancelled" if state == "stopped" else why
                await store(finish_run, lease, state, outcome_json_text(outcome), why)
            case AttemptWaits(kind=kind, question=question, number=number):
                if await store(put_question, lease, kind, question, number, within) == "stopped":
                    await asyncio.to_thread(record_cancellation, self.runs.run_journal, lease.run)
            case AttemptBroken(error=error):
                if error.code in ("run.left", "durable.left"):
                    why, delay, died = None, 0.0, False
                elif error.code == "run.other-code":
                    why, delay, died = str(error), OTHER_CODE_DELAY, False
                else:
                    why, delay, died = str(error), retry_delay(row["deaths"] + 1), True
                await store(release_run, lease, why, delay, died=died)

    def _notify(self, run: str, state: str, why: str | None = None) -> None:
        if self._observer is not None:
            self._observer(run, state, why)

    def heartbeat_facts(self) -> tuple[Mapping[str, Any], list[str], list[str]]:
        """The row of this worker, its runs and its quotas. Called from the heartbeat's thread: hence the copies."""
        held = [run for run, each in list(self._held.items()) if each.ending != "lost"]
        row = {
            "worker": self.name,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "runs": len(held),
            "concurrency": self.concurrency,
        }
        return row, held, list(self._turns.held)

    def on_heartbeat(self, reply: HeartbeatReply, sent: list[str]) -> None:
        """End the runs that were cancelled, and those that another worker has by now."""
        for run in sent:
            held = self._held.get(run)
            if held is None:
                continue
            if reply.leases.get(run) != held.lease.attempt:
                held.end("lost")
            elif run in reply.cancelled:
                held.end("cancelled")

    def on_lease_lost(self) -> None:
        """End all runs: other workers may have them by now."""
        for held in list(self._held.values()):
            held.end("lost")


def _observed_state(lease: Lease, result: AttemptResult) -> tuple[str, str | None]:
    """The state for the observer, with the id of the question of a waiting run, or the reason of a requeued one."""
    match result:
        case RunEnd(state=state, why=why):
            return state, why
        case AttemptWaits():
            return "waiting", lease.question_id
        case AttemptBroken(error=error):
            return "queued", None if error.code in ("run.left", "durable.left") else str(error)

"""A worker: claims runs from the queue and does them, several at a time, with one agent for all or one per user.

It renews its leases by heartbeat and takes part in maintenance for all workers. This module imports neither SQLAlchemy
nor DBOS before a worker runs.
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
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from bicameral.agent import Agent
from bicameral.durable._runs import Runs
from bicameral.errors import BicameralError, DurableError, describe_error
from bicameral.limits import use_quotas

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bicameral.durable._attempt import AttemptResult
    from bicameral.durable._leases import HeartbeatReply, Lease


MAX_IDLE_AGENTS = 16
"""How many agents that nobody uses are kept for their next run."""


class AgentPool:
    """Lends an agent to a run. One that was given is its owner's to close; those made here are closed here."""

    def __init__(self, agent: Agent | Callable[[str], Agent]) -> None:
        self._one = agent if isinstance(agent, Agent) else None
        self._make = None if isinstance(agent, Agent) else agent
        self._made: OrderedDict[str, Agent] = OrderedDict()
        self._lent: dict[str, int] = {}
        self._making = asyncio.Lock()

    @asynccontextmanager
    async def lend(self, user: str) -> AsyncGenerator[Agent]:
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
        async with self._making:
            if user not in self._made and self._make is not None:
                self._made[user] = await asyncio.to_thread(self._make, user)
            self._made.move_to_end(user)
            return self._made[user]

    async def _close_idle(self, kept: int) -> None:
        """Close the agents that were not used for the longest time."""
        for user in [user for user in self._made if user not in self._lent]:
            if len(self._made) <= kept:
                return
            await self._made.pop(user).aclose()

    async def aclose(self) -> None:
        await self._close_idle(0)


StopReason = Literal["", "cancelled", "lost", "leaving", "over"]
WorkerObserver = Callable[[str, str, str | None], None]
"""Told of a run, what became of it here (a state, or `lost` to another worker), and why."""
OTHER_CODE_DELAY = 30.0
"""Seconds until a run is offered again that this worker has not the right code for."""


@dataclass(slots=True, eq=False)
class HeldRun:
    """A run that this worker has, and why it is being ended, if it is; `over` is it when only that is to be written."""

    lease: Lease
    ending: StopReason = ""
    task: asyncio.Task[None] | None = None

    @property
    def is_leaving(self) -> bool:
        return self.ending in ("lost", "leaving")

    def end(self, why: StopReason) -> None:
        """End the task of a run; the first reason is the one that counts."""
        if not self.ending and self.task is not None:
            self.ending = why
            self.task.cancel()


class Worker:
    """Takes runs and does them, up to `concurrency` at a time, until it is told to stop.

    `agent` does them all; or a function gives the agent of each user, whose folders, tools and models it then uses.
    There is one worker in a process, and any number of processes, on any machine that reaches the database.

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
        self._held: dict[str, HeldRun] = {}
        self._received: set[str] = set()
        """The attempts that DBOS has handed over and that are not over yet."""
        self._draining = False
        self._slots = asyncio.Semaphore(self.concurrency)
        self._turns: Any = None

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Work until `stop` is set; then effects that have begun come to their end, and runs go to others at once."""
        from bicameral.durable._leases import Heartbeat
        from bicameral.durable._maintenance import Maintenance
        from bicameral.durable._queue import QueueConsumer, SharedQuotas

        settings, database = self.runs.config.durable, self.runs.database
        self._turns = SharedQuotas(database, settings.limits, self.name, self._lease)
        loop = asyncio.get_running_loop()
        conveyor = QueueConsumer(database, self.runs.dispatch, self.name)
        chores = Maintenance(self.runs, self._lease, self.name, lambda: list(self._received))
        await conveyor.start(self._receive_attempt, self.concurrency, settings.limits.user)
        heart = Heartbeat(database.with_own_pool(), self, self._lease, loop.call_soon_threadsafe)
        heart.start()
        looking = asyncio.create_task(chores.run_forever())
        try:
            await (stop or asyncio.Event()).wait()
        finally:
            looking.cancel()
            # First nothing more comes in, then what is here goes.
            self._draining = True
            stopping = asyncio.create_task(conveyor.stop())
            await self._drain()
            await stopping
            await asyncio.to_thread(heart.stop)
            await self._sign_off()
            await self._agents.aclose()

    async def _drain(self) -> None:
        """Give every run back that is under way; those that are handed over meanwhile give themselves back."""
        under_way = list(self._held.values())
        for held in under_way:
            held.end("leaving")
        if tasks := [held.task for held in under_way if held.task is not None]:
            await asyncio.wait(tasks)

    async def _sign_off(self) -> None:
        from bicameral.durable._leases import remove_worker

        with suppress(DurableError):
            await self.runs.database.run_transaction(lambda db: remove_worker(self.runs.database, db, self.name), 5.0)

    async def _receive_attempt(self, run: str, attempt: int) -> None:
        """DBOS hands over an attempt."""
        from bicameral.durable._queue import workflow_id

        self._received.add(workflow_id(run, attempt))
        try:
            await self._claim_and_run(run, attempt)
        finally:
            self._received.discard(workflow_id(run, attempt))

    async def _claim_and_run(self, run: str, attempt: int) -> None:
        """Take the run, if it is to be had, and see it through."""
        from bicameral.durable._leases import Lease, claim_run, requeue_runs

        lease, database = Lease(run, attempt, self.name), self.runs.database
        async with self._slots:
            if self._draining:
                here = (database.tables.runs.c.run == run) & (database.tables.runs.c.attempt == attempt)
                await database.run_transaction(
                    lambda db: requeue_runs(database, self.runs.dispatch, db, here, "queued")
                )
                return
            row = await database.run_transaction(lambda db: claim_run(database, db, lease, self._lease), float("inf"))
            if row is None:
                return
            held = self._held[run] = HeldRun(lease)
            self._notify(run, "running")
            # A context of its own: what DBOS keeps for its workflows is no business of tools.
            task = held.task = asyncio.create_task(self._run_held(held, row), context=Context())
            if self._draining:
                held.end("leaving")
            try:
                await asyncio.wait({task})
            finally:
                if self._held.get(run) is held:
                    del self._held[run]
            if not task.cancelled():
                # What could not be written down is taken up by whoever finds that its lease is over.
                task.exception()

    async def _run_held(self, held: HeldRun, row: sa.RowMapping) -> None:
        from bicameral.durable._attempt import AttemptBroken

        try:
            came, within = await self._make_attempt(held, row)
        except asyncio.CancelledError:
            # Before there was a run to stop: while it was planned, or looked up.
            came, within = await self._cancelled_result(held), 0.0
        except BicameralError as error:
            came, within = AttemptBroken(error), 0.0
        except Exception as error:
            came, within = AttemptBroken(DurableError("durable.attempt-failed", describe_error(error))), 0.0
        if held.ending != "lost":
            held.ending = "over"
            await self._write_result(held.lease, row, came, within)
            self._notify(held.lease.run, *_observed_state(held.lease, came))
        else:
            self._notify(held.lease.run, "lost")

    async def _make_attempt(self, held: HeldRun, row: sa.RowMapping) -> tuple[AttemptResult, float]:
        from bicameral.durable._attempt import Attempt

        with use_quotas(self._turns.turn):
            async with self._agents.lend(row["user"]) as agent:
                attempt = Attempt(self.runs, held.lease, row, agent, lambda: held.is_leaving)
                return await attempt.run(), attempt.answer_seconds

    async def _cancelled_result(self, held: HeldRun) -> AttemptResult:
        from bicameral.durable._attempt import AttemptBroken
        from bicameral.durable._queries import record_cancellation
        from bicameral.durable._views import RunEnd

        if held.ending != "cancelled":
            return AttemptBroken(DurableError("durable.left", "the worker was stopped"))
        await asyncio.to_thread(record_cancellation, self.runs.run_journal, held.lease.run)
        return RunEnd("stopped", "it was cancelled", {"effects": []})

    async def _write_result(self, lease: Lease, row: sa.RowMapping, came: AttemptResult, within: float) -> None:
        """How it ended is written down only if the run is still this worker's."""
        from bicameral.durable._attempt import AttemptWaits
        from bicameral.durable._leases import finish_run, release_run, retry_delay
        from bicameral.durable._queries import outcome_json_text, put_question, record_cancellation
        from bicameral.durable._views import RunEnd

        database, dispatch = self.runs.database, self.runs.dispatch
        match came:
            case RunEnd(state=state, why=why, outcome=outcome):
                text = outcome_json_text(outcome)
                why = "it was cancelled" if state == "stopped" else why
                await database.run_transaction(
                    lambda db: finish_run(database, db, lease, state, text, why), float("inf")
                )
            case AttemptWaits(kind=kind, question=question, number=number):
                waits = partial(
                    put_question, database, lease=lease, kind=kind, question=question, number=number, within=within
                )
                if await database.run_transaction(waits, float("inf")) == "stopped":
                    await asyncio.to_thread(record_cancellation, self.runs.run_journal, lease.run)
            case _:
                error = came.error
                if error.code in ("run.left", "durable.left"):
                    why, delay, died = None, 0.0, False
                elif error.code == "run.other-code":
                    why, delay, died = str(error), OTHER_CODE_DELAY, False
                else:
                    why, delay, died = str(error), retry_delay(row["deaths"] + 1), True
                await database.run_transaction(
                    lambda db: release_run(database, dispatch, db, lease, why, delay, died=died), float("inf")
                )

    def _notify(self, run: str, state: str, why: str | None = None) -> None:
        if self._observer is not None:
            self._observer(run, state, why)

    def heartbeat_facts(self) -> tuple[Mapping[str, Any], list[str], list[str]]:
        """What the heart says of this worker."""
        held = [run for run, each in list(self._held.items()) if each.ending != "lost"]
        me = {
            "worker": self.name,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "runs": len(held),
            "concurrency": self.concurrency,
        }
        return me, held, list(self._turns.held)

    def on_heartbeat(self, said: HeartbeatReply, asked: list[str]) -> None:
        """Stop what is to be stopped, and what is somebody else's by now."""
        for run in asked:
            held = self._held.get(run)
            if held is None:
                continue
            if said.leases.get(run) != held.lease.attempt:
                held.end("lost")
            elif run in said.cancelled:
                held.end("cancelled")

    def on_lease_lost(self) -> None:
        """All runs are others' now."""
        for held in list(self._held.values()):
            held.end("lost")


def _observed_state(lease: Lease, came: AttemptResult) -> tuple[str, str | None]:
    """What an observer is told: of a run that waits, the question; of one that is given back, why."""
    from bicameral.durable._attempt import AttemptWaits
    from bicameral.durable._views import RunEnd

    match came:
        case RunEnd(state=state, why=why):
            return state, why
        case AttemptWaits():
            return "waiting", lease.question_id
        case _:
            return "queued", None if came.error.code in ("run.left", "durable.left") else str(came.error)

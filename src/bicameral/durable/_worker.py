"""A worker: takes runs from the queue and does them, several at a time, and looks after those of dead workers."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from bicameral.agent import Agent
from bicameral.errors import BicameralError, DurableError, words_of
from bicameral.turns import taking_turns

from ._agents import Agents
from ._runs import Runs

if TYPE_CHECKING:
    import sqlalchemy as sa

    from ._attempt import Came
    from ._beating import Beat
    from ._leases import Lease

Ending = Literal["", "cancelled", "lost", "leaving", "over"]
Observer = Callable[[str, str, str | None], None]
"""Told of a run, what became of it here (a state, or `lost` to another worker), and why."""
ELSEWHERE = 30.0
"""Seconds until a run is offered again that this worker has not the right code for."""


@dataclass(slots=True, eq=False)
class Held:
    """A run that this worker has, and why it is being ended, if it is; `over` is it when only that is to be written."""

    lease: Lease
    ending: Ending = ""
    task: asyncio.Task[None] | None = None

    @property
    def leaving(self) -> bool:
        return self.ending in ("lost", "leaving")

    def end(self, why: Ending) -> None:
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
        observer: Observer | None = None,
    ) -> None:
        self.runs = runs
        self.concurrency = concurrency or runs.config.durable.concurrency
        self.name = f"{name or socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._agents = Agents(agent)
        self._observer = observer
        self._lease = runs.config.durable.lease
        self._held: dict[str, Held] = {}
        self._given: set[str] = set()
        """The attempts that DBOS has handed over and that are not over yet."""
        self._draining = False
        self._room = asyncio.Semaphore(self.concurrency)
        self._turns: Any = None

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Work until `stop` is set; then effects that have begun come to their end, and runs go to others at once."""
        from ._chores import Chores
        from ._conveyor import Conveyor
        from ._heart import Heart
        from ._limits import SharedTurns

        settings, database = self.runs.config.durable, self.runs.database
        self._turns = SharedTurns(database, settings.limits, self.name, self._lease)
        loop = asyncio.get_running_loop()
        conveyor = Conveyor(database, self.runs.dispatch, self.name)
        chores = Chores(self.runs, self._lease, self.name, lambda: list(self._given))
        await conveyor.start(self._handed, self.concurrency, settings.limits.user)
        heart = Heart(database.beside(), self, self._lease, loop.call_soon_threadsafe)
        heart.start()
        looking = asyncio.create_task(chores.forever())
        try:
            await (stop or asyncio.Event()).wait()
        finally:
            looking.cancel()
            # First nothing more comes in, then what is here goes.
            self._draining = True
            stopping = asyncio.create_task(conveyor.stop())
            await self._drained()
            await stopping
            await asyncio.to_thread(heart.stop)
            await self._left()
            await self._agents.aclose()

    async def _drained(self) -> None:
        """Give every run back that is under way; those that are handed over meanwhile give themselves back."""
        under_way = list(self._held.values())
        for held in under_way:
            held.end("leaving")
        if tasks := [held.task for held in under_way if held.task is not None]:
            await asyncio.wait(tasks)

    async def _left(self) -> None:
        from ._beating import leave

        with suppress(DurableError):
            await self.runs.database.do(lambda db: leave(self.runs.database, db, self.name), 5.0)

    async def _handed(self, run: str, attempt: int) -> None:
        """DBOS hands over an attempt."""
        from ._dispatch import workflow_id

        self._given.add(workflow_id(run, attempt))
        try:
            await self._taken(run, attempt)
        finally:
            self._given.discard(workflow_id(run, attempt))

    async def _taken(self, run: str, attempt: int) -> None:
        """Take the run, if it is to be had, and see it through."""
        from ._leases import Lease, claim, queue_again

        lease, database = Lease(run, attempt, self.name), self.runs.database
        async with self._room:
            if self._draining:
                here = (database.t.runs.c.run == run) & (database.t.runs.c.attempt == attempt)
                await database.do(lambda db: queue_again(database, self.runs.dispatch, db, here, "queued"))
                return
            row = await database.do(lambda db: claim(database, db, lease, self._lease), float("inf"))
            if row is None:
                return
            held = self._held[run] = Held(lease)
            self._tell(run, "running")
            # A context of its own: what DBOS keeps for its workflows is no business of tools.
            task = held.task = asyncio.create_task(self._seen_through(held, row), context=Context())
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

    async def _seen_through(self, held: Held, row: sa.RowMapping) -> None:
        from ._attempt import Broken

        try:
            came, within = await self._came_to(held, row)
        except asyncio.CancelledError:
            # Before there was a run to stop: while it was planned, or looked up.
            came, within = await self._broken_off(held), 0.0
        except BicameralError as error:
            came, within = Broken(error), 0.0
        except Exception as error:
            came, within = Broken(DurableError("durable.attempt-failed", words_of(error))), 0.0
        if held.ending != "lost":
            held.ending = "over"
            await self._written(held.lease, row, came, within)
            self._tell(held.lease.run, *_became(held.lease, came))
        else:
            self._tell(held.lease.run, "lost")

    async def _came_to(self, held: Held, row: sa.RowMapping) -> tuple[Came, float]:
        from ._attempt import Attempt

        with taking_turns(self._turns.turn):
            async with self._agents.lent(row["user"]) as agent:
                attempt = Attempt(self.runs, held.lease, row, agent, lambda: held.leaving)
                return await attempt.came_to(), attempt.within

    async def _broken_off(self, held: Held) -> Came:
        from ._attempt import Broken
        from ._cancelling import closed
        from ._ended import Ended

        if held.ending != "cancelled":
            return Broken(DurableError("durable.left", "the worker was stopped"))
        await asyncio.to_thread(closed, self.runs.record, held.lease.run)
        return Ended("stopped", "it was cancelled", {"effects": []})

    async def _written(self, lease: Lease, row: sa.RowMapping, came: Came, within: float) -> None:
        """How it ended is written down only if the run is still this worker's."""
        from ._attempt import Asks
        from ._cancelling import closed
        from ._ended import Ended
        from ._leases import finish, give_back, slow
        from ._questions import put
        from ._rows import outcome_text

        database, dispatch = self.runs.database, self.runs.dispatch
        match came:
            case Ended(state=state, why=why, outcome=outcome):
                text = outcome_text(outcome)
                why = "it was cancelled" if state == "stopped" else why
                await database.do(lambda db: finish(database, db, lease, state, text, why), float("inf"))
            case Asks(kind=kind, question=question, number=number):
                waits = partial(put, database, lease=lease, kind=kind, question=question, number=number, within=within)
                if await database.do(waits, float("inf")) == "stopped":
                    await asyncio.to_thread(closed, self.runs.record, lease.run)
            case _:
                error = came.error
                if error.code in ("run.left", "durable.left"):
                    why, delay, died = None, 0.0, False
                elif error.code == "run.other-code":
                    why, delay, died = str(error), ELSEWHERE, False
                else:
                    why, delay, died = str(error), slow(row["deaths"] + 1), True
                await database.do(
                    lambda db: give_back(database, dispatch, db, lease, why, delay, died=died), float("inf")
                )

    def _tell(self, run: str, state: str, why: str | None = None) -> None:
        if self._observer is not None:
            self._observer(run, state, why)

    def about(self) -> tuple[Mapping[str, Any], list[str], list[str]]:
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

    def heard(self, said: Beat, asked: list[str]) -> None:
        """Stop what is to be stopped, and what is somebody else's by now."""
        for run in asked:
            held = self._held.get(run)
            if held is None:
                continue
            if said.held.get(run) != held.lease.attempt:
                held.end("lost")
            elif run in said.cancelled:
                held.end("cancelled")

    def lost(self) -> None:
        """All runs are others' now."""
        for held in list(self._held.values()):
            held.end("lost")


def _became(lease: Lease, came: Came) -> tuple[str, str | None]:
    """What an observer is told: of a run that waits, the question; of one that is given back, why."""
    from ._attempt import Asks
    from ._ended import Ended

    match came:
        case Ended(state=state, why=why):
            return state, why
        case Asks():
            return "waiting", lease.question
        case _:
            return "queued", None if came.error.code in ("run.left", "durable.left") else str(came.error)

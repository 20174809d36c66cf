"""A world in which the process dies: at any append to the journal, and before or after any effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bicameral.errors import JournalError, ToolError
from bicameral.journal import NewEvent
from bicameral.plans import Plan
from bicameral.policy import Policy
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Event,
    Interrupted,
    Journal,
    RunOutcome,
    Suspend,
    Waiting,
    check_plan,
    resume_plan,
    run_plan,
)
from bicameral.tools import Origin, Registry, Tool, call_key, tool

RUN = "r1"


class MortalJournal(Journal):
    """A journal that takes only so many appends: what is not in it then has not happened, for whoever comes after."""

    lives: int | None = None
    refused: int = 0
    """How often a dead process wanted to write."""

    @property
    def dead(self) -> bool:
        return self.lives is not None and self.lives <= 0

    def die(self) -> None:
        self.lives = 0

    def append_all(
        self, run: str, entries: Sequence[NewEvent], *, first: int | None = None, sync: bool = False
    ) -> list[Event]:
        if self.dead:
            self.refused += 1
            raise JournalError("journal.failed", "the process is dead")
        if self.lives is not None:
            self.lives -= 1
        return super().append_all(run, entries, first=first, sync=sync)


@dataclass
class MortalWorld:
    """Cells that are written once for each key. `dies_at` are effects, counted from 1, at which the process dies.

    A negative number means before the effect, a positive one after it.
    """

    journal: MortalJournal
    dies_at: set[int] = field(default_factory=set[int])
    cells: dict[str, int] = field(default_factory=dict[str, int])
    happened: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    keys: set[str] = field(default_factory=set[str])
    begun: int = 0

    @property
    def registry(self) -> Registry:
        return Registry(self._tools())

    def _dies(self, when: int) -> None:
        if when in self.dies_at:
            self.dies_at.discard(when)
            self.journal.die()
            if when < 0:
                raise ToolError("tools.failed", "the process died before it was done")

    def _alive(self) -> None:
        if self.journal.dead:
            raise ToolError("tools.failed", "a dead process does nothing")

    def _tools(self) -> Iterable[Tool]:
        @tool(effect="read", outbound=False, origins=Origin("third_party", "public"), purpose={"cell": "selects"})
        async def peek(cell: str) -> int:
            """What a cell holds."""
            self._alive()
            return self.cells.get(cell, 0)

        @tool(effect="write", keyed=True, origins=Origin("system"), purpose={"cell": "directs", "value": "carries"})
        async def poke(cell: str, value: int) -> None:
            """Put a number into a cell, once for each key."""
            self._alive()
            self.begun += 1
            number = self.begun
            self._dies(-number)
            key = call_key()
            assert key is not None
            if key not in self.keys:
                self.keys.add(key)
                self.cells[cell] = value
                self.happened.append(("poke", (cell, value)))
            self._dies(number)

        @tool(effect="pure")
        async def double(number: int) -> int:
            """Twice the number."""
            return number * 2

        @tool(effect="pure")
        async def picky(number: int) -> int:
            """The same number, unless it can be divided by five."""
            if number % 5 == 0:
                raise ToolError("world.refused", f"{number} is refused")
            return number

        return [peek, poke, double, picky]


class Yes:
    """Somebody who says yes, and remembers how often to what."""

    def __init__(self) -> None:
        self.asked: list[ApprovalQuestion] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.asked.append(question)
        return Answers.yes(question.calls)


class Hesitant(Yes):
    """Lets the run wait the first time he sees a call, and says yes the next time."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    async def approve(self, question: ApprovalQuestion) -> Answers:
        new = {call.hash for call in question.calls} - self.seen
        self.seen |= new
        if new:
            raise Suspend
        return await super().approve(question)


MOST_WAITS = 200


async def lived_through(
    plan: Plan, world: MortalWorld, lives: Sequence[int], policy: Policy | None, approver: Yes
) -> RunOutcome:
    """Run a plan in a process that dies again and again, until one lives long enough."""
    journal, registry = world.journal, world.registry
    options: dict[str, Any] = {"policy": policy, "approver": approver}
    # The last attempt may still die at an effect, so there are as many more as effects to die at.
    outcome: RunOutcome | None = None
    checked = None if policy is None else check_plan(plan, registry, policy)
    what = checked if checked is not None and checked.ok else plan
    for each in (*lives, *(None for _ in range(MOST_WAITS))):
        journal.lives = each
        if any(event.run == RUN for event in journal.events_after(RUN, -1)):
            outcome = await resume_plan(journal, RUN, registry, policy=policy, approver=approver)
        else:
            outcome = await run_plan(what, registry, journal=journal, run=RUN, **options)
        if not isinstance(outcome, Interrupted | Waiting):
            return outcome
    raise AssertionError(outcome)

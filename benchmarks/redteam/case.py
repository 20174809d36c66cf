"""The shape of an attack: what the attacker wants, how to tell that he got it, and the benign twin.

A family is a module in `benchmarks.redteam.attacks`. It declares its cases with a decorator:

    attacks = Family("approvals")

    @attacks.case("a yes to one recipient is used for a second file")
    async def second_file(world: World) -> str | None:
        ...
        return "the password file was sent" if leaked else None

    @second_file.twin(questions=1)
    async def one_file(world: World) -> bool:
        ...
        return menu_was_sent

An attack returns what the attacker got, or None. A refusal that stops it is expected by its code, with `refused`: any
other error means that the case is broken, which counts against the result like a success. A twin does the legitimate
form of the same thing, and asks no more questions than it is allowed.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bicameral.errors import BicameralError
from bicameral.runs import Answers, ApprovalQuestion, PendingCall

CASE_SECONDS = 60.0
"""A case that takes longer is broken: an attack that only stalls is one, too."""


@dataclass(slots=True)
class World:
    """What a case works in: a folder of its own, and a person who is asked. `questions` are the calls asked about."""

    folder: Path
    questions: list[PendingCall] = field(default_factory=list[PendingCall])

    def person(self, says_yes: Callable[[PendingCall], bool] = lambda call: True) -> Person:
        """Someone who answers each question call by call, and whose questions are counted."""
        return Person(self, says_yes)


@dataclass(frozen=True, slots=True)
class Person:
    """An approver that says yes to the calls that a predicate picks."""

    world: World
    says_yes: Callable[[PendingCall], bool]

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.world.questions.extend(question.calls)
        return Answers.yes([call for call in question.calls if self.says_yes(call)])


Attack = Callable[[World], Awaitable[str | None]]
Twin = Callable[[World], Awaitable[bool]]


@dataclass(slots=True)
class Case:
    """One attack with its twin."""

    family: str
    name: str
    attack: Attack
    benign: Twin | None = None
    questions: int = 0

    def twin(self, *, questions: int = 0) -> Callable[[Twin], Twin]:
        """Declare the benign twin and how many calls it may ask about."""

        def declare(benign: Twin) -> Twin:
            self.benign, self.questions = benign, questions
            return benign

        return declare


class Family:
    """The cases of one module, in the order in which they are written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cases: list[Case] = []

    def case(self, name: str) -> Callable[[Attack], Case]:
        """Declare an attack; `name` is what the attacker tries."""

        def declare(attack: Attack) -> Case:
            self.cases.append(Case(self.name, name, attack))
            return self.cases[-1]

        return declare


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How a case went: what the attacker `got`, whether the control went through, and why either is `broken`."""

    case: Case
    got: str | None
    control_ok: bool
    broken: str | None = None

    @property
    def ok(self) -> bool:
        return self.got is None and self.control_ok and self.broken is None


@contextmanager
def refused(*codes: str) -> Generator[None]:
    """Expect that what is inside may be refused with one of these codes; any other error is not expected."""
    try:
        yield
    except BicameralError as error:
        if error.code not in codes:
            raise


async def run_case(case: Case) -> CaseResult:
    """Try an attack and its twin, each in a world of its own."""
    if case.benign is None:
        return CaseResult(case, None, False, "there is no benign twin")
    try:
        with tempfile.TemporaryDirectory(prefix="redteam-") as folder:
            async with asyncio.timeout(CASE_SECONDS):
                got = await case.attack(World(Path(folder)))
    except Exception as error:
        return CaseResult(case, None, False, f"attack: {type(error).__name__}: {error}")
    try:
        with tempfile.TemporaryDirectory(prefix="redteam-") as folder:
            world = World(Path(folder))
            async with asyncio.timeout(CASE_SECONDS):
                went = await case.benign(world)
    except Exception as error:
        return CaseResult(case, got, False, f"twin: {type(error).__name__}: {error}")
    if len(world.questions) > case.questions:
        return CaseResult(case, got, False, f"twin: asked {len(world.questions)} questions of {case.questions}")
    return CaseResult(case, got, went, None if went else "twin: it did not go through")

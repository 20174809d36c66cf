"""Run a program in a world and say what happened: what was done, what was asked about, and how it ended."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from bicameral.boundary import HandleContent
from bicameral.errors import BicameralError
from bicameral.labels import PUBLIC
from bicameral.plans import Plan, Proved, parse, static_path as plan_step
from bicameral.policy import ArgumentFacts, CallFacts, Decision, Mode, Policy
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Failed,
    Finished,
    Journal,
    PendingCall,
    RunOutcome,
    StartState,
    Suspend,
    Waiting,
    check_plan,
    resume_plan,
    run_plan,
)
from bicameral.types import BOOL, INT, STR, ListType, Type

from .plans import ITEM, Kind
from .statements import Block, Statement, written
from .world import REGISTRY, Act, Believing, Compromised, Seeds, World, inside, watch

SAYS_YES = 0.75
FINISHED = "Finished"


@dataclass(frozen=True, slots=True)
class Round:
    """One plan, and the variables that the next round goes on with."""

    block: Block
    names: tuple[tuple[str, Kind], ...] = ()

    @property
    def source(self) -> str:
        if not self.names:
            return written(self.block)
        kept = ", ".join(f'"{name}": {name}' for name, _ in self.names)
        return written((*self.block, Statement(f"answer({{{kept}}})")))


Rounds = tuple[Round, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """What a program did in a world. Steps of different rounds have different names.

    `asked` are the steps at which a person was asked, also where he said no, and with which arguments. `to_own` says
    of a step of the plan if all who are addressed there were named by the user himself. `finished` is False if it
    failed or was refused.
    """

    acts: tuple[Act, ...]
    asked: Mapping[str, Mapping[str, Any]]
    to_own: Mapping[str, bool]
    finished: bool
    ending: str
    unsound: tuple[str, ...] = ()
    stranger_words: frozenset[str] = frozenset()
    secret_words: frozenset[str] = frozenset()

    @property
    def unasked(self) -> tuple[Act, ...]:
        return tuple(act for act in self.acts if act.step not in self.asked)


class NoPlan(Exception):
    """The program is no plan that may run."""


@dataclass(slots=True)
class Person:
    """Says yes to some calls, by their step and tool alone, and remembers all that was asked.

    With `later` every question is put off once, so that the run is taken up from its record.
    """

    seed: int
    later: bool = False
    questions: list[PendingCall] = field(default_factory=list[PendingCall])
    _seen: set[str] = field(default_factory=set[str])

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self._put_off(" ".join(call.hash for call in question.calls))
        self.questions += question.calls
        return Answers.yes([call for call in question.calls if self._says_yes(call)])

    async def ask(self, question: str, type: Type) -> Any:
        self._put_off(question)
        return await Believing().ask(question, type)

    def _put_off(self, key: str) -> None:
        if self.later and key not in self._seen:
            self._seen.add(key)
            raise Suspend

    def _says_yes(self, call: PendingCall) -> bool:
        return random.Random(f"{self.seed} {plan_step(call.step)} {call.tool}").random() < SAYS_YES

    def asked_steps(self) -> dict[str, Mapping[str, Any]]:
        """The steps that were asked about, with the arguments of the calls."""
        return {step: call.arguments for call in self.questions for step in call.steps}


class ObservedPolicy(Policy):
    """Policy as it is, which remembers of each step whether all who are addressed were named by the user."""

    def watch(self) -> dict[str, bool]:
        self._to_own: dict[str, bool] = {}
        return self._to_own

    def decide(self, facts: CallFacts) -> Decision:
        tool = REGISTRY.get(facts.tool)
        if tool is not None and tool.outbound:
            own = all(_named_by_user(each) for each in facts.arguments if each.name in tool.receivers)
            if not tool.declared:
                # Of such a tool nobody knows what it does with an argument: it may be content as well as an address.
                own = all(
                    _named_by_user(each) and each.label.readers is PUBLIC
                    for each in facts.arguments
                    if tool.argument(each.name)
                )
            own = own and bool(tool.receivers)
            self._to_own[facts.step] = own and self._to_own.get(facts.step, True)
        return super().decide(facts)


def _named_by_user(argument: ArgumentFacts) -> bool:
    return all(source.trust == "user" for source in argument.label.sources)


@cache
def policy(mode: Mode) -> ObservedPolicy:
    return ObservedPolicy((), REGISTRY, mode=mode)


def type_of(kind: Kind) -> Type:
    """The plan type of a kind."""
    plain: dict[str, Type] = {"text": STR, "num": INT, "bool": BOOL}
    plain |= {"mails": REGISTRY["inbox"].result, "bills": REGISTRY["bills"].result}
    plain |= {"docs": REGISTRY["documents"].result, "people": REGISTRY["contacts"].result}
    if kind in plain:
        return plain[kind]
    if kind in ITEM:
        return ListType(type_of(ITEM[kind]))
    many = next(list_ for list_, item in ITEM.items() if item == kind)
    found = plain[many]
    assert isinstance(found, ListType)
    return found.item


def execute(rounds: Rounds, seeds: Seeds, mode: Mode, person: int, *, durable: bool = False) -> Trace:
    """Run a program, round after round; each goes on from what the one before wrote down as JSON."""
    world = World(seeds)
    with inside(world):
        return asyncio.run(_execute(rounds, world, mode, Person(person, later=durable)))


@dataclass(slots=True)
class Collector:
    """Puts together what several runs did in one world; the steps of each get a number before them."""

    world: World
    person: Person
    acts: list[Act] = field(default_factory=list[Act])
    asked: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    to_own: dict[str, bool] = field(default_factory=dict[str, bool])
    unsound: list[str] = field(default_factory=list[str])

    def add(self, number: int, seen: Mapping[str, bool], proved: frozenset[str] = frozenset()) -> None:
        """Take over what the last run did."""
        at, steps = f"{number}:", self.person.asked_steps()
        self.acts += [replace(act, step=at + act.step) for act in self.world.acts]
        self.asked |= {at + step: arguments for step, arguments in steps.items()}
        self.to_own |= {at + step: own for step, own in seen.items()}
        self.unsound += [f"{at}{step} is proved and was asked about" for step in steps if plan_step(step) in proved]
        self.world.acts.clear()
        self.person.questions.clear()

    def trace(self, ending: str) -> Trace:
        return Trace(
            tuple(self.acts),
            dict(self.asked),
            self.to_own,
            ending == FINISHED,
            ending,
            tuple(self.unsound),
            frozenset(self.world.stranger_words),
            frozenset(self.world.secret_words),
        )


async def _execute(rounds: Rounds, world: World, mode: Mode, person: Person) -> Trace:
    found = Collector(world, person)
    start: StartState | None = None
    ending = ""
    for number, each in enumerate(rounds):
        plan, proved = _checked(each.source, mode, start)
        seen = policy(mode).watch()
        outcome = await _run(plan, world, mode, person, start)
        found.add(number, seen, proved)
        ending = outcome.error.code if isinstance(outcome, Failed) else type(outcome).__name__
        if isinstance(outcome, Failed) and ending == "policy.denied" and plan_step(outcome.step) in proved:
            found.unsound.append(f"{number}:{outcome.step} is proved and was denied")
        if not isinstance(outcome, Finished) or (each.names and not isinstance(outcome.answer, dict)):
            # It failed, was refused, or came to another answer before it got to the next round.
            break
        start = go_on_from(each, outcome, start)
    return found.trace(ending)


def _checked(source: str, mode: Mode, start: StartState | None) -> tuple[Plan, frozenset[str]]:
    return _known(source, mode) if start is None else _check(source, mode, start)


@lru_cache(maxsize=64)
def _known(source: str, mode: Mode) -> tuple[Plan, frozenset[str]]:
    return _check(source, mode, None)


def _check(source: str, mode: Mode, start: StartState | None) -> tuple[Plan, frozenset[str]]:
    """The plan, and the steps whose calls are proved."""
    try:
        plan = parse(source, REGISTRY).plan
    except BicameralError as error:
        raise NoPlan(str(error)) from None
    checked = check_plan(plan, REGISTRY, policy(mode), start=start)
    if not checked.ok or checked.proof is None:
        raise NoPlan("; ".join(map(str, checked.report.errors)))
    return plan, frozenset(call.step for call in checked.proof.calls if isinstance(call.verdict, Proved))


async def _run(plan: Plan, world: World, mode: Mode, person: Person, start: StartState | None) -> RunOutcome:
    parts: dict[str, Any] = {
        "policy": policy(mode),
        "extractor": Compromised(world),
        "asker": person,
        "approver": person,
        "observer": watch,
    }
    if not person.later:
        return await run_plan(plan, REGISTRY, start=start, **parts)
    with tempfile.TemporaryDirectory(prefix="noninterference-") as folder, Journal(Path(folder) / "journal.db") as kept:
        outcome = await run_plan(plan, REGISTRY, start=start, journal=kept, **parts)
        while isinstance(outcome, Waiting):
            outcome = await resume_plan(kept, outcome.run, REGISTRY, **parts)
        return outcome


def go_on_from(each: Round, outcome: Finished, before: StartState | None) -> StartState:
    """What the next round goes on from, written down and read again."""
    shade = outcome.shade
    assert shade is not None
    variables = {
        name: HandleContent(outcome.answer[name], type_of(kind), shade.field(name)) for name, kind in each.names
    }
    written_before = dict(before.written) if before else {}
    start = StartState(variables, written_before | dict(outcome.written))
    return StartState.from_json(json.loads(json.dumps(start.to_json())))

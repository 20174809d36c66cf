"""One plan: written, run in pairs of worlds, compared, and made as small as it can be where something is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from bicameral.policy import Mode

from .comparison import Compared, confidentiality, data_flow, integrity
from .compositions import Composition, execute_composition
from .execution import NoPlan, Round, Rounds, Trace, execute
from .plans import Writer
from .statements import Block, Statement, smaller
from .world import EVERYONE, PEOPLE, Seeds

Kind = Literal["integrity", "confidentiality", "data flow", "unsound", "durable"]
Program = Rounds | Composition
TRIES = 40
"""So many plans are written at most until one passes the check."""
COMPOSITIONS = 0.1
"""The share of programs that are patterns one after another instead of a plan."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be, with the least plan that shows it."""

    number: int
    kind: Kind
    what: str
    program: Program

    def __str__(self) -> str:
        return f"plan {self.number}: {self.kind}: {self.what}\n{shown(self.program)}"


def shown(program: Program) -> str:
    """A program as a person reads it."""
    if isinstance(program, Composition):
        return str(program)
    return "--- and then ---\n".join(each.source for each in program)


@dataclass(frozen=True, slots=True)
class Tried:
    """What one plan showed."""

    number: int
    effective: bool
    asked: bool
    violations: tuple[Violation, ...]
    integrity_pairs: int
    confidentiality_pairs: int
    directed: int
    resumed: bool
    composed: bool


@dataclass(slots=True)
class Trial:
    """The runs of one plan, by world and mode; each is made once."""

    number: int
    seed: int
    pairs: int = 2
    whole: bool = False
    """Whether a program that shows something wrong is left as it is."""
    chance: random.Random = field(init=False)
    observer: str = field(init=False)
    durable: bool = field(init=False)
    _traces: dict[tuple[object, ...], Trace] = field(default_factory=dict[tuple[object, ...], Trace])

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed} {self.number}")
        self.observer = self.chance.choice((*PEOPLE, *PEOPLE, *PEOPLE, EVERYONE))
        self.durable = self.chance.random() < 0.15

    def run(self) -> Tried:
        if self.chance.random() < COMPOSITIONS:
            self.durable = False
            composition = Composition.drawn(self.chance)
            return self._judged(composition, self._trace(composition, 0, 0))
        for _ in range(TRIES):
            rounds = self._written()
            try:
                return self._judged(rounds, self._trace(rounds, 0, 0))
            except NoPlan:
                # The second round is come to, and checked, only where the first one ends well.
                continue
        raise RuntimeError(f"no plan passed the check in {TRIES} tries")

    def _written(self) -> Rounds:
        writer = Writer(random.Random(self.chance.random()))
        begun: Block = writer.prologue()
        before, kept, after = writer.chain()
        middle = (*writer.steps(writer.chance.randint(0, 2)), *before)
        last = after
        if writer.chance.random() < 0.33:
            more, _, end = writer.chain()
            last = (*last, *more, *end)
        last = (*last, *writer.steps(writer.chance.randint(0, 2)))
        if writer.chance.random() < 0.4:
            last = (*last, writer.plain_effect())
        if self.durable:
            # Whoever is asked answers later, so that what comes after is done by a run that was taken up again.
            middle = (*middle, Statement('go = ask("alpha")'))
        if writer.chance.random() < 0.25:
            return Round((*begun, *middle), (*writer.all_names(), kept)), Round((*last, writer.answer()))
        return (Round((*begun, *middle, *last, writer.answer())),)

    def _trace(
        self, program: Program, stranger: int, secret: int, mode: Mode = "strict", *, durable: bool = False
    ) -> Trace:
        key = (program, stranger, secret, mode, durable)
        if key not in self._traces:
            seeds = Seeds(self.number, stranger, secret, self.observer)
            if isinstance(program, Composition):
                # Patterns are judged strictly, whatever the mode.
                self._traces[key] = execute_composition(program, seeds, self.number)
            else:
                self._traces[key] = execute(program, seeds, mode, self.number, durable=durable)
        return self._traces[key]

    def _judged(self, program: Program, base: Trace) -> Tried:
        violations: list[Violation] = []
        directed = 0
        checks: list[tuple[Kind, Callable[[Program], Compared]]] = [
            ("unsound", lambda found: Compared(next(iter(self._unsound(found)), None))),
            ("data flow", self._data_flow),
        ]
        if self.durable:
            checks.append(("durable", self._durable))
        for pair in range(1, self.pairs + 1):
            checks.append(("integrity", lambda found, pair=pair: self._integrity(found, pair)))
            checks.append(("confidentiality", lambda found, pair=pair: self._confidentiality(found, pair)))
        for kind, check in checks:
            compared = check(program)
            directed += compared.directed
            if compared.leak is not None and kind not in {each.kind for each in violations}:
                least = (
                    program if self.whole else shrunk(program, lambda found, check=check: check(found).leak is not None)
                )
                violations.append(Violation(self.number, kind, check(least).leak or "", least))
        return Tried(
            self.number,
            any(act.effect != "read" for act in base.unasked),
            bool(base.asked),
            tuple(violations),
            self.pairs,
            self.pairs,
            directed,
            self.durable,
            isinstance(program, Composition) or len(program) > 1,
        )

    def _integrity(self, program: Program, pair: int) -> Compared:
        return integrity(self._trace(program, 0, 0), self._trace(program, pair, 0))

    def _confidentiality(self, program: Program, pair: int) -> Compared:
        return confidentiality(self._trace(program, 0, 0), self._trace(program, 0, pair), self.observer)

    def _durable(self, program: Program) -> Compared:
        """A run that is put aside and taken up from its record does what it would have done."""
        plain, taken_up = self._trace(program, 0, 0), self._trace(program, 0, 0, durable=True)
        same = (plain.acts, plain.asked, plain.ending) == (taken_up.acts, taken_up.asked, taken_up.ending)
        found = f"{plain.ending} after {_steps(plain)}; taken up {taken_up.ending} after {_steps(taken_up)}"
        return Compared(None if same else found)

    def _data_flow(self, program: Program) -> Compared:
        return Compared(data_flow(self._trace(program, 0, 0, "normal"), self.observer))

    def _unsound(self, program: Program) -> tuple[str, ...]:
        worlds = [(0, 0), *((pair, 0) for pair in range(1, self.pairs + 1))]
        worlds += [(0, pair) for pair in range(1, self.pairs + 1)]
        traces = [self._trace(program, *world) for world in worlds]
        traces.append(self._trace(program, 0, 0, "normal"))
        return tuple(each for trace in traces for each in trace.unsound)


def try_plan(number: int, seed: int, *, whole: bool = False) -> Tried:
    """Write the plan of a number, and run it in pairs of worlds of each kind."""
    return Trial(number, seed, whole=whole).run()


def _steps(trace: Trace) -> str:
    return ", ".join(f"{act.step} {act.tool}{'?' if act.step in trace.asked else ''}" for act in trace.acts)


def shrunk(program: Program, still: Callable[[Program], bool]) -> Program:
    """The least program of which something still holds."""
    smallest, again = program, True
    while again and not isinstance(smallest, Composition):
        again = False
        for found in _smaller(smallest):
            try:
                again = still(found)
            except NoPlan:
                continue
            if again:
                smallest = found
                break
    return smallest


def _smaller(rounds: Rounds) -> list[Rounds]:
    found: list[Rounds] = []
    for at, each in enumerate(rounds):
        for block in smaller(each.block):
            if block:
                found.append((*rounds[:at], Round(block, each.names), *rounds[at + 1 :]))
        for name in each.names:
            fewer = tuple(other for other in each.names if other != name)
            if fewer:
                found.append((*rounds[:at], Round(each.block, fewer), *rounds[at + 1 :]))
    return found

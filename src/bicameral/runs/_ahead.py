"""Looks ahead in a run: which calls are still to come of which everything is known already.

Nothing is done here and nothing is bound: steps are gone through with copies of the variables. What a step will give
that has not ended is not known, nor is what is computed from it, and a branch or loop that hangs on it is passed by.
What is found may turn out otherwise, so whoever uses it must look again when the call is really made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from bicameral.decisions import Mode
from bicameral.errors import BicameralError, RunError
from bicameral.labels import Label, Shade
from bicameral.plans import (
    RUN_WORK,
    Answer,
    Ask,
    Call,
    Compute,
    Each,
    Expr,
    Extract,
    RunWork,
    Step,
    Update,
    When,
    branch_names,
    items_to_go_over,
    may_answer,
    static_path,
    under,
)
from bicameral.tools import Registry, Tool

from ._dependencies import Footprints
from ._frame import Frame
from ._pure import Flow, Pure
from ._whereabouts import Block, Turning, Whereabouts

MOST_STEPS = 2_000
"""So many steps are looked at, turn by turn, and no more: a look must not take longer than what it looks at."""


MOST_WORK = 5_000_000
"""What a look may compute."""


def _too_much() -> RunError:
    return RunError("run.too-large", "this is too much to compute for a look ahead")


class Foresee(Protocol):
    """Told of a call that is to come; `places` are the labels of what was written, brought up to date.

    False: the run would end there.
    """

    def __call__(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        shades: Mapping[str, Shade],
        pc: Label,
        places: dict[str, Shade],
    ) -> bool: ...


class Look:
    """One look at what is to come, from where the run is."""

    def __init__(
        self,
        registry: Registry,
        footprints: Footprints,
        pure: Pure,
        mode: Mode,
        given: Label,
        where: Whereabouts,
        foresee: Foresee,
    ) -> None:
        self._registry = registry
        self._footprints = footprints
        self._pure = pure
        self._mode: Mode = mode
        self._given = given
        self._where = where
        self._foresee = foresee
        self._left = MOST_STEPS
        self.work = RunWork(MOST_WORK, _too_much)
        """A look's own: when somebody looks must not decide how far the run gets."""
        self.known: set[str] = set()
        self.unknown: set[str] = set()
        """The steps, as the plan counts them, whose calls are known already, and those of which some are not."""

    def block(self, steps: Sequence[Step], frame: Frame, at: str, flow: Flow) -> bool:
        """Go through steps that are still to be done; False where it is not known whether anything comes after.

        The frame is the look's own. A block that has begun goes on from where it is.
        """
        begun = self._where.blocks.get(at)
        if begun is not None:
            flow = Flow(begun.flow.pc)
        for number, step in enumerate(steps):
            if begun is not None and number in begun.ended:
                continue
            self._left -= 1
            try:
                if self._left < 0 or not self._step(step, frame, f"{at}{number}", flow):
                    return False
            except BicameralError:
                # The run will fail there.
                return False
        return True

    def _step(self, step: Step, frame: Frame, at: str, flow: Flow) -> bool:
        match step:
            case Call():
                return self._call(step, frame, at, flow.pc)
            case Compute() | Update():
                if self._footprints.of(step).reads <= frame.values.keys():
                    self._pure.step(step, frame, at, flow)
                else:
                    _forget(frame, (step.name,))
                return True
            case Extract() | Ask():
                _forget(frame, (step.name,))
                return True
            case When():
                return self._when(step, frame, at, flow)
            case Each():
                return self._each(step, frame, at, flow)
            case Answer():
                return False

    def _call(self, step: Call, frame: Frame, at: str, pc: Label) -> bool:
        goes_on = True
        if self._knows(step.args.values(), frame):
            arguments = {name: self._pure.value(argument, frame, at) for name, argument in step.args.items()}
            shades = {name: self._pure.shade(argument, frame, self._given) for name, argument in step.args.items()}
            goes_on = self._foresee(at, self._registry[step.tool], arguments, shades, pc, frame.shades)
            self.known.add(static_path(at))
        else:
            self.unknown.add(static_path(at))
        if step.name is not None:
            _forget(frame, (step.name,))
        return goes_on

    def _when(self, when: When, frame: Frame, at: str, flow: Flow) -> bool:
        sides = {side: self._where.blocks.get(f"{at}/{side}/") for side in ("then", "else")}
        begun = next(((side, block) for side, block in sides.items() if block is not None), None)
        if begun is not None:
            (side, block), inside = begun, Flow(begun[1].flow.pc)
            branch: Sequence[Step] = block.steps
        elif self._knows((when.condition,), frame):
            inside = self._pure.inside(when.condition, frame, flow)
            branch, side = self._pure.branch(when, frame, at)
        else:
            return self._passed_by(when, frame)
        if not self.block(branch, frame, f"{at}/{side}/", inside):
            return False
        self._pure.leave(when, frame, flow, inside)
        return True

    def _each(self, each: Each, frame: Frame, at: str, flow: Flow) -> bool:
        turning = self._where.loops.get(at)
        if turning is None:
            if not self._knows((each.over,), frame):
                return self._passed_by(each, frame)
            over = self._pure.shade(each.over, frame, flow.pc)
            items = items_to_go_over(self._pure.value(each.over, frame, at))
            turning = Turning(list(items), over, Flow(under(flow.pc, over, self._mode)), apart=False)
        goes_on = self._apart(each, turning, frame, at) if turning.apart else self._turns(each, turning, frame, at)
        self._pure.leave(each, frame, flow, turning.inside)
        return goes_on

    def _turns(self, each: Each, turning: Turning, frame: Frame, at: str) -> bool:
        inside = Flow(turning.inside.pc)
        for turn in range(max(turning.begun - 1, 0), len(turning.items)):
            if f"{at}[{turn}]/" not in self._where.blocks:
                self._pure.bind_item(each, turning.items[turn], frame, at)
                frame.shades.update(self._pure.turn_names(each, turning.over, inside))
            if not self.block(each.steps, frame, f"{at}[{turn}]/", inside):
                return False
        return True

    def _apart(self, each: Each, turning: Turning, frame: Frame, at: str) -> bool:
        """Turns side by side: each has variables of its own, and what they come to together is not known before."""
        for turn, item in enumerate(turning.items):
            begun: Block | None = self._where.blocks.get(f"{at}[{turn}]/")
            if begun is None and turn < turning.begun:
                continue
            own = copied(frame if begun is None else begun.frame, self.work)
            if begun is None:
                self._pure.bind_item(each, item, own, at)
                own.shades.update(self._pure.turn_names(each, turning.over, turning.inside))
            if not self.block(each.steps, own, f"{at}[{turn}]/", Flow(turning.inside.pc)):
                return False
        return self._passed_by(each, frame)

    def _passed_by(self, step: When | Each, frame: Frame) -> bool:
        """Nobody knows what will be done here; what comes after is come to unless the run may end here."""
        _forget(frame, branch_names(step))
        return not may_answer(step)

    def _knows(self, exprs: Iterable[Expr], frame: Frame) -> bool:
        return all(self._footprints.names(expr) <= frame.values.keys() for expr in exprs)


def copied(frame: Frame, work: RunWork) -> Frame:
    """The same variables, to be changed without changing anything; what is computed of them is charged to the look."""
    return Frame(frame.values | {RUN_WORK: work}, dict(frame.shades))


def _forget(frame: Frame, names: Iterable[str]) -> None:
    for name in names:
        frame.values.pop(name, None)
        frame.shades.pop(name, None)

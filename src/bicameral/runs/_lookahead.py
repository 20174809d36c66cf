"""The position of a run, and lookahead: calls that are still to come and of which everything is known already.

The position says which steps of which blocks have ended and which turns are still to come.

Lookahead does nothing and binds nothing: it walks the remaining steps with copies of the variables. The result of a
step that has not ended is unknown, and so is what is computed from it; a branch or loop that depends on it is skipped.
What it finds may turn out otherwise, so the caller must decide again when the call is really made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bicameral.errors import BicameralError, RunError
from bicameral.labels import Label, LabelTree
from bicameral.plans import (
    RUN_WORK_KEY,
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
    can_answer,
    iterable_items,
    pc_inside,
    static_path,
)
from bicameral.policy import Mode
from bicameral.runs._local_steps import ControlFlow, LocalSteps
from bicameral.runs._scheduler import Footprints
from bicameral.runs._variables import VariableFrame
from bicameral.tools import Registry, Tool


@dataclass(slots=True, eq=False)
class RunningBlock:
    """A block of steps that is running, and the numbers of the steps that have ended."""

    steps: Sequence[Step]
    frame: VariableFrame
    flow: ControlFlow
    ended: set[int] = field(default_factory=set[int])


@dataclass(slots=True, eq=False)
class RunningLoop:
    """A loop that is running: `turns_begun` turns have begun, and those that have not ended have a block."""

    items: list[Any]
    item_labels: LabelTree
    flow: ControlFlow
    concurrent: bool
    turns_begun: int = 0


@dataclass(slots=True, eq=False)
class RunPosition:
    """The blocks and loops of a run that have begun and not ended, by their path. What fails is not removed."""

    blocks: dict[str, RunningBlock] = field(default_factory=dict[str, RunningBlock])
    loops: dict[str, RunningLoop] = field(default_factory=dict[str, RunningLoop])


MAX_LOOKAHEAD_STEPS = 2_000
"""The most steps of one lookahead, turn by turn: it must not take longer than the steps themselves."""
MAX_LOOKAHEAD_WORK = 5_000_000
"""The most work that one lookahead may compute."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call that a step wants to make: its arguments with their labels, and the label of the control flow."""

    step: str
    tool: Tool
    arguments: dict[str, Any]
    labels: Mapping[str, LabelTree]
    pc: Label


FutureCallVisitor = Callable[[CallRequest, dict[str, LabelTree]], bool]
"""Called for each future call; it updates the labels of written places. False: the run ends there."""


class Lookahead:
    """One walk over the steps that are still to come, from the position of the run."""

    def __init__(
        self,
        registry: Registry,
        footprints: Footprints,
        pure: LocalSteps,
        mode: Mode,
        given: Label,
        where: RunPosition,
        visit: FutureCallVisitor,
    ) -> None:
        self._registry = registry
        self._footprints = footprints
        self._local = pure
        self._mode: Mode = mode
        self._given = given
        self._position = where
        self._visit = visit
        self._left = MAX_LOOKAHEAD_STEPS
        # Its own counter: when a lookahead happens depends on timing, and must not decide how far the run gets.
        self.work = RunWork(
            MAX_LOOKAHEAD_WORK,
            lambda: RunError("run.too-large", "this is too much to compute for a look ahead"),
            counts_selections=False,
        )
        self.known: set[str] = set()
        """The static paths of steps whose calls are known already."""
        self.unknown: set[str] = set()
        """The static paths of steps of which some call is not known."""

    def visit_block(self, steps: Sequence[Step], frame: VariableFrame, at: str, flow: ControlFlow) -> bool:
        """Walk the remaining steps of a block; False if it is not known whether anything comes after them.

        The frame is a copy that belongs to this lookahead.
        """
        begun = self._position.blocks.get(at)
        if begun is not None:
            flow = ControlFlow(begun.flow.pc)
        for number, step in enumerate(steps):
            if begun is not None and number in begun.ended:
                continue
            self._left -= 1
            try:
                if self._left < 0 or not self._step(step, frame, f"{at}{number}", flow):
                    return False
            except BicameralError:
                # The run will fail at this step.
                return False
        return True

    def _step(self, step: Step, frame: VariableFrame, at: str, flow: ControlFlow) -> bool:
        match step:
            case Call():
                return self._call(step, frame, at, flow.pc)
            case Compute() | Update():
                if self._footprints.of(step).reads <= frame.values.keys():
                    self._local.run_step(step, frame, at, flow)
                else:
                    _forget_names(frame, (step.name,))
                return True
            case Extract() | Ask():
                _forget_names(frame, (step.name,))
                return True
            case When():
                return self._when(step, frame, at, flow)
            case Each():
                return self._each(step, frame, at, flow)
            case Answer():
                return False

    def _call(self, step: Call, frame: VariableFrame, at: str, pc: Label) -> bool:
        goes_on = True
        if self._is_known(step.args.values(), frame):
            arguments = {name: self._local.evaluate(argument, frame, at) for name, argument in step.args.items()}
            labels = {name: self._local.label(argument, frame, self._given) for name, argument in step.args.items()}
            goes_on = self._visit(CallRequest(at, self._registry[step.tool], arguments, labels, pc), frame.labels)
            self.known.add(static_path(at))
        else:
            self.unknown.add(static_path(at))
        if step.name is not None:
            _forget_names(frame, (step.name,))
        return goes_on

    def _when(self, when: When, frame: VariableFrame, at: str, flow: ControlFlow) -> bool:
        sides = {side: self._position.blocks.get(f"{at}/{side}/") for side in ("then", "else")}
        begun = next(((side, block) for side, block in sides.items() if block is not None), None)
        if begun is not None:
            (side, block), inside = begun, ControlFlow(begun[1].flow.pc)
            branch: Sequence[Step] = block.steps
        elif self._is_known((when.condition,), frame):
            inside = self._local.branch_flow(when.condition, frame, flow)
            branch, side = self._local.choose_branch(when, frame, at)
        else:
            return self._skip(when, frame)
        if not self.visit_block(branch, frame, f"{at}/{side}/", inside):
            return False
        self._local.leave_branch(when, frame, flow, inside)
        return True

    def _each(self, each: Each, frame: VariableFrame, at: str, flow: ControlFlow) -> bool:
        loop = self._position.loops.get(at)
        if loop is None:
            if not self._is_known((each.over,), frame):
                return self._skip(each, frame)
            over = self._local.label(each.over, frame, flow.pc)
            items = iterable_items(self._local.evaluate(each.over, frame, at))
            loop = RunningLoop(list(items), over, ControlFlow(pc_inside(flow.pc, over, self._mode)), concurrent=False)
        goes_on = (
            self._concurrent_turns(each, loop, frame, at) if loop.concurrent else self._turns(each, loop, frame, at)
        )
        self._local.leave_branch(each, frame, flow, loop.flow)
        return goes_on

    def _turns(self, each: Each, loop: RunningLoop, frame: VariableFrame, at: str) -> bool:
        inside = ControlFlow(loop.flow.pc)
        for turn in range(max(loop.turns_begun - 1, 0), len(loop.items)):
            if f"{at}[{turn}]/" not in self._position.blocks:
                self._local.bind_item(each, loop.items[turn], frame, at)
                frame.labels.update(self._local.turn_names(each, loop.item_labels, inside))
            if not self.visit_block(each.steps, frame, f"{at}[{turn}]/", inside):
                return False
        return True

    def _concurrent_turns(self, each: Each, loop: RunningLoop, frame: VariableFrame, at: str) -> bool:
        """Visit concurrent turns: each has its own variables, and their merged result is not known before the end."""
        for turn, item in enumerate(loop.items):
            begun: RunningBlock | None = self._position.blocks.get(f"{at}[{turn}]/")
            if begun is None and turn < loop.turns_begun:
                continue
            own = copy_frame(frame if begun is None else begun.frame, self.work)
            if begun is None:
                self._local.bind_item(each, item, own, at)
                own.labels.update(self._local.turn_names(each, loop.item_labels, loop.flow))
            if not self.visit_block(each.steps, own, f"{at}[{turn}]/", ControlFlow(loop.flow.pc)):
                return False
        return self._skip(each, frame)

    def _skip(self, step: When | Each, frame: VariableFrame) -> bool:
        """Forget what an unknown branch or loop may change; False if the run may end inside of it."""
        _forget_names(frame, branch_names(step))
        return not can_answer(step)

    def _is_known(self, exprs: Iterable[Expr], frame: VariableFrame) -> bool:
        return all(self._footprints.names(expr) <= frame.values.keys() for expr in exprs)


def copy_frame(frame: VariableFrame, work: RunWork) -> VariableFrame:
    """A copy of the variables for a lookahead, which is charged for what it computes."""
    return VariableFrame(frame.values | {RUN_WORK_KEY: work}, dict(frame.labels))


def _forget_names(frame: VariableFrame, names: Iterable[str]) -> None:
    for name in names:
        frame.values.pop(name, None)
        frame.labels.pop(name, None)

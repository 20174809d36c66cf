"""Local steps: expressions, steps that need nothing from outside, the answer, and the labels of all of them.

Local steps are done at once, without scheduling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bicameral.errors import BicameralError, Place, RunError
from bicameral.labels import NOTHING, Label, LabelTree, join_all
from bicameral.plans import (
    RUN_WORK_KEY,
    Answer,
    Comprehension,
    Compute,
    Each,
    Expr,
    RunWork,
    SelectionCount,
    Step,
    Update,
    When,
    branch_names,
    children,
    compile_by_columns,
    iterable_items,
    labels_after_local_step,
    labels_after_update,
    labels_of,
    pc_after,
    pc_inside,
    places_after_branch,
    render_expr,
    static_path,
    turn_labels,
    unbind_cells,
    walk,
)
from bicameral.policy import Mode
from bicameral.runs._doubts import NO_LABEL, SelectionLog
from bicameral.runs._scheduler import Footprints
from bicameral.runs._variables import CompiledSteps, VariableFrame, add_step_to_error
from bicameral.tools import Selection
from bicameral.types import Table

MAX_TURNS = 1_000_000
TURNS_PER_YIELD = 500


_NO_ANSWER = object()
"""The value of a run that has no answer yet."""


@dataclass(slots=True, eq=False)
class ControlFlow:
    """The label of the control flow at a place in a block; it grows where a branch may end the run."""

    pc: Label = NOTHING


class LocalSteps:
    """The part of an engine that computes: expressions, local steps, the answer, and the labels of all of them.

    If a run is not `labelled`, there are no labels: that is for measuring.
    """

    def __init__(
        self, footprints: Footprints, mode: Mode, *, labelled: bool, selections: SelectionLog, given: Label
    ) -> None:
        self._footprints = footprints
        self._selections = selections
        self._given = given
        self._mode: Mode = mode
        self._labelled = labelled
        self._conditions: dict[int, str] = {}
        self._codes: dict[int, Callable[[dict[str, Any]], Any]] = {}
        self._without_labels = CompiledSteps(footprints.names, self.loop_items, self._end)
        self._turns_left = MAX_TURNS
        self.answer: Any = _NO_ANSWER
        self.answered_at = ""
        """The path of the step that gave the answer."""
        self.answer_labels: LabelTree | None = None

    @property
    def has_answer(self) -> bool:
        return self.answer is not _NO_ANSWER

    def _end(self, answer: Any, at: str) -> None:
        self.answer, self.answered_at = answer, at

    def evaluate(self, expr: Expr, frame: VariableFrame, at: str, pc: Label = NOTHING) -> Any:
        """The value of an expression; `pc` is the control flow, for the label of what is noted about it."""
        value = self.evaluate_by_columns(expr, frame, at, pc)
        if type(value) is not Table:
            return value
        try:
            return value.rows()
        except BicameralError as error:
            raise add_step_to_error(error, at) from None

    def evaluate_by_columns(self, expr: Expr, frame: VariableFrame, at: str, pc: Label = NOTHING) -> Any:
        """The same, but a large table stays a `Table`: for a variable, or for a tool that takes one."""
        code = self._codes.get(id(expr))
        if code is None:
            code = self._codes[id(expr)] = compile_by_columns(expr)
        if frame.has_owned:
            frame.mark_read(self._footprints.names(expr))
        try:
            value = code(frame.values)
        except BicameralError as error:
            raise add_step_to_error(error, at) from None
        work = frame.values.get(RUN_WORK_KEY)
        if work is not None and (work.selections or work.cells):
            self._note_selections(work, at, self._inputs_label(self._footprints.names(expr), frame, pc))
        return value

    def _note_selections(
        self, work: RunWork, at: str, label: Label, places: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        """Note what the comprehensions of a step kept, and forget their counts.

        `places` are the steps of the comprehensions inside a loop, whose own path is `at`.
        """
        counts = tuple(work.selections.values())
        work.selections.clear()
        here = static_path(at)
        for count in counts:
            identity = id(count.expr)
            self._selections.add_up(
                (places.get(identity, here), identity), self._selection_of(count), label, count.times
            )
        cells = dict(work.cells)
        work.cells.clear()
        for number, (column, found) in enumerate(cells.items()):
            # Told only where something was left out or guessed: that a column was read is no selection.
            if found.unread or found.guess:
                read = found.given - found.unread
                guess = f"in {column}, {found.guess}" if found.guess else ""
                told = Selection(found.given, read, "cells", f"{column} is {found.kind}", found.unread, guess=guess)
                self._selections.add_up((here, -1 - number), told, label)

    def _selection_of(self, count: SelectionCount) -> Selection:
        """What a comprehension kept. Its condition is told as the plan has it, which holds no value of the world."""
        words = self._conditions.get(id(count.expr))
        if words is None:
            conditions = [condition for clause in count.expr.clauses for condition in clause.conditions]
            words = self._conditions[id(count.expr)] = " and ".join(
                render_expr(unbind_cells(condition)) for condition in conditions
            )
        return Selection(count.given, count.kept, "items", words)

    def _note_local(self, step: Step, frame: VariableFrame, at: str, label: Label) -> None:
        """Note what the comprehensions of a local step kept, with those of the steps inside it."""
        work = frame.values.get(RUN_WORK_KEY)
        if work is not None and (work.selections or work.cells):
            self._note_selections(work, at, label, _comprehension_places(step, static_path(at)))

    def _inputs_label(self, names: Iterable[str], frame: VariableFrame, pc: Label) -> Label:
        """The label of everything that can be told from some variables, at some place in the control flow."""
        if not self._labelled:
            return NO_LABEL
        known = (frame.labels[name].flat for name in names if name in frame.labels)
        return join_all((self._given, pc, *known))

    def label(self, expr: Expr, frame: VariableFrame, pc: Label) -> LabelTree:
        return labels_of(expr, frame.labels, pc, self._mode) if self._labelled else NOTHING

    def branch_flow(self, condition: Expr, frame: VariableFrame, flow: ControlFlow) -> ControlFlow:
        """The control flow at the beginning of a branch."""
        return ControlFlow(pc_inside(flow.pc, self.label(condition, frame, flow.pc), self._mode))

    def leave_branch(
        self, step: When | Each, frame: VariableFrame, flow: ControlFlow, inside: ControlFlow
    ) -> dict[str, LabelTree]:
        """Taint what a branch or loop may have changed with its condition, and all that follows if it may end the run.

        Returns the labels of places that it may have written to and that have changed.
        """
        if not self._labelled:
            return {}
        frame.taint(branch_names(step), inside.pc)
        flow.pc = pc_after(step, flow.pc, inside.pc)
        places = places_after_branch(step, self._footprints.registry, frame.labels, inside.pc)
        frame.labels.update(places)
        return places

    def turn_names(self, each: Each, over: LabelTree, inside: ControlFlow) -> dict[str, LabelTree]:
        return turn_labels(each, over, inside.pc, self._mode) if self._labelled else {}

    def after_local_loop(self, each: Each, frame: VariableFrame, flow: ControlFlow, at: str) -> Callable[[], None]:
        """A function to call after a local loop. Its labels are computed once, independent of the number of turns."""
        # Before the loop, which may change what the labels of its inputs were.
        read = self._inputs_label(self._footprints.of(each).reads, frame, flow.pc)
        if not self._labelled:
            return lambda: self._note_local(each, frame, at, read)
        after = labels_after_local_step(each, frame.labels, flow.pc, self._mode)

        def leave() -> None:
            self._note_local(each, frame, at, read)
            frame.labels.update(after.changed)
            flow.pc = after.pc
            if self.has_answer:
                self.answer_labels = after.answer

        return leave

    def run_step(self, step: Step, frame: VariableFrame, at: str, flow: ControlFlow) -> None:
        """Do a local step, with its labels."""
        if not self._labelled:
            self._without_labels.step(step)(frame, at)
            self._note_local(step, frame, at, NO_LABEL)
            return
        match step:
            case Compute():
                value = self.evaluate_by_columns(step.value, frame, at, flow.pc)
                frame.bind(step.name, value, self.label(step.value, frame, flow.pc))
            case Update():
                after = labels_after_update(step, frame.labels, flow.pc, self._mode)
                read = self._inputs_label(self._footprints.of(step).reads, frame, flow.pc)
                self._without_labels.step(step)(frame, at)
                self._note_local(step, frame, at, read)
                frame.labels[step.name] = after
            case Each():
                leave = self.after_local_loop(step, frame, flow, at)
                self._without_labels.step(step)(frame, at)
                leave()
            case When():
                inside = self.branch_flow(step.condition, frame, flow)
                branch, side = self.choose_branch(step, frame, at, flow.pc)
                for number, inner in enumerate(branch):
                    self.run_step(inner, frame, f"{at}/{side}/{number}", inside)
                    if self.has_answer:
                        return
                self.leave_branch(step, frame, flow, inside)
            case Answer():
                answer = self.evaluate(step.value, frame, at, flow.pc)
                self.answer_labels = self.label(step.value, frame, flow.pc)
                self._end(answer, at)
            case _:
                raise TypeError(f"{step.do!r} is not a pure step")

    async def run_turns(self, each: Each, items: list[Any], frame: VariableFrame, at: str) -> None:
        """Do the turns of a local loop; its labels are computed by `after_local_loop`."""
        once = self._without_labels.turn(each)
        yielded = -self._turns_left
        for turn, item in enumerate(items):
            if once(frame, (at, "", turn), item):
                return
            # The turns of loops inside count too: they are taken from `_turns_left`.
            if (done := turn - self._turns_left) - yielded >= TURNS_PER_YIELD:
                # A long computation must not block other steps, other runs of the same process, nor Ctrl-C.
                yielded = done
                await asyncio.sleep(0)

    def choose_branch(
        self, when: When, frame: VariableFrame, at: str, pc: Label = NOTHING
    ) -> tuple[Sequence[Step], str]:
        return (
            (when.steps, "then")
            if self.evaluate_by_columns(when.condition, frame, at, pc)
            else (when.otherwise, "else")
        )

    def loop_items(self, each: Each, frame: VariableFrame, at: str, pc: Label = NOTHING) -> list[Any]:
        """The items of a loop; raises if all loops of the run together have too many turns."""
        value = self.evaluate(each.over, frame, at, pc)
        try:
            items = list(iterable_items(value))
            frame.charge(len(items))
        except BicameralError as error:
            raise add_step_to_error(error, at) from None
        self._turns_left -= len(items)
        if self._turns_left < 0:
            raise RunError(
                "run.too-many-turns",
                f"with these {len(items):,} items the run goes through more than {MAX_TURNS:,} in all",
                place=Place(step=at),
                fix="Work on a part of the list, such as `xs[:1000]`.",
            )
        return items

    def bind_item(self, each: Each, item: Any, frame: VariableFrame, at: str) -> None:
        try:
            frame.bind_item(each.names, item)
        except BicameralError as error:
            raise add_step_to_error(error, at) from None


def _comprehension_places(step: Step, at: str) -> dict[int, str]:
    """The paths of the steps in which comprehensions stand, by the identity of the comprehension."""
    inside = walk(step.steps, f"{at}/") if isinstance(step, Each) else ()
    if isinstance(step, When):
        inside = (*walk(step.steps, f"{at}/then/"), *walk(step.otherwise, f"{at}/else/"))
    places: dict[int, str] = {}
    # The innermost steps last, so that a comprehension has the path of its own step and not of a loop around it.
    for path, each in ((at, step), *inside):
        nodes: list[Any] = [each]
        while nodes:
            node = nodes.pop()
            if isinstance(node, Comprehension):
                places[id(node)] = path
            nodes += children(node)
    return places

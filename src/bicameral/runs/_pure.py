"""Steps that need nothing from outside, with their labels: they are done at once, without any scheduling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from bicameral.decisions import Mode
from bicameral.errors import BicameralError, Place, RunError
from bicameral.labels import NOTHING, Label, Shade
from bicameral.plans import (
    Answer,
    Compute,
    Each,
    Expr,
    Step,
    Update,
    When,
    after_pure,
    after_update,
    branch_names,
    compile_expr,
    items_to_go_over,
    pc_after,
    shade_of,
    turn_names,
    under,
    unpacked,
    written_or_not,
)

from ._dependencies import Footprints
from ._frame import Frame
from ._pure_code import PureCode, placed

MAX_TURNS = 1_000_000
TURNS_BETWEEN_BREATHS = 500


class NotAnswered:
    """The value of a run that has not come to an answer yet."""


NOT_ANSWERED = NotAnswered()


class Flow:
    """The control flow that leads to a place in a block: its label, which grows where a branch may end the run."""

    __slots__ = ("pc",)

    def __init__(self, pc: Label = NOTHING) -> None:
        self.pc = pc


class Pure:
    """The part of an engine that computes: expressions, steps that touch nothing, the answer, and the labels of all.

    Where a run is not `labelled` there are no labels: that is for measuring.
    """

    def __init__(self, footprints: Footprints, mode: Mode, *, labelled: bool) -> None:
        self._footprints = footprints
        self._mode: Mode = mode
        self._labelled = labelled
        self._codes: dict[int, Callable[[dict[str, Any]], Any]] = {}
        self._without_labels = PureCode(footprints.names, self.items, self._end)
        self._turns_left = MAX_TURNS
        self.answer: Any = NOT_ANSWERED
        self.answer_shade: Shade | None = None

    @property
    def answered(self) -> bool:
        return self.answer is not NOT_ANSWERED

    def _end(self, answer: Any) -> None:
        self.answer = answer

    def value(self, expr: Expr, frame: Frame, at: str) -> Any:
        code = self._codes.get(id(expr))
        if code is None:
            code = self._codes[id(expr)] = compile_expr(expr)
        if frame.extends_in_place:
            frame.seen(self._footprints.names(expr))
        try:
            return code(frame.values)
        except BicameralError as error:
            raise placed(error, at) from None

    # Labels ---------------------------------------------------------------------------------------------------------

    def shade(self, expr: Expr, frame: Frame, pc: Label) -> Shade:
        return shade_of(expr, frame.shades, pc, self._mode) if self._labelled else NOTHING

    def inside(self, condition: Expr, frame: Frame, flow: Flow) -> Flow:
        """The control flow at the beginning of a branch."""
        return Flow(under(flow.pc, self.shade(condition, frame, flow.pc), self._mode))

    def leave(self, step: When | Each, frame: Frame, flow: Flow, inside: Flow) -> dict[str, Shade]:
        """After a branch or loop what it may change carries what decided it, and all that follows if it may end.

        Gives the labels of places that it may have written to and that carry more now.
        """
        if not self._labelled:
            return {}
        frame.taint(branch_names(step), inside.pc)
        flow.pc = pc_after(step, flow.pc, inside.pc)
        places = written_or_not(step, self._footprints.registry, frame.shades, inside.pc)
        frame.shades.update(places)
        return places

    def turn_names(self, each: Each, over: Shade, inside: Flow) -> dict[str, Shade]:
        return turn_names(each, over, inside.pc, self._mode) if self._labelled else {}

    def without_turns(self, each: Each, frame: Frame, flow: Flow) -> Callable[[], None]:
        """What is to be done after a loop that touches nothing: its labels cost the same however many turns it has."""
        if not self._labelled:
            return lambda: None
        after = after_pure(each, frame.shades, flow.pc, self._mode)

        def leave() -> None:
            frame.shades.update(after.changed)
            flow.pc = after.pc
            if self.answered:
                self.answer_shade = after.answer

        return leave

    # Steps ----------------------------------------------------------------------------------------------------------

    def step(self, step: Step, frame: Frame, at: str, flow: Flow) -> None:
        """A step that needs nothing from outside, with its labels."""
        if not self._labelled:
            self._without_labels.step(step)(frame, at)
            return
        match step:
            case Compute():
                frame.bind(step.name, self.value(step.value, frame, at), self.shade(step.value, frame, flow.pc))
            case Update():
                after = after_update(step, frame.shades, flow.pc, self._mode)
                self._without_labels.step(step)(frame, at)
                frame.shades[step.name] = after
            case Each():
                leave = self.without_turns(step, frame, flow)
                self._without_labels.step(step)(frame, at)
                leave()
            case When():
                inside = self.inside(step.condition, frame, flow)
                branch, side = self.branch(step, frame, at)
                for number, inner in enumerate(branch):
                    self.step(inner, frame, f"{at}/{side}/{number}", inside)
                    if self.answered:
                        return
                self.leave(step, frame, flow, inside)
            case Answer():
                self.answer, self.answer_shade = (
                    self.value(step.value, frame, at),
                    self.shade(step.value, frame, flow.pc),
                )
            case _:
                raise TypeError(f"{step.do!r} is not a pure step")

    async def turns(self, each: Each, items: list[Any], frame: Frame, at: str) -> None:
        """The turns of a loop that touches nothing; its labels are computed apart."""
        once = self._without_labels.turn(each)
        for turn, item in enumerate(items):
            if once(frame, (at, "", turn), item):
                return
            if turn % TURNS_BETWEEN_BREATHS == TURNS_BETWEEN_BREATHS - 1:
                # A long computation must not keep other steps from going on, nor Ctrl-C from being heard.
                await asyncio.sleep(0)

    def branch(self, when: When, frame: Frame, at: str) -> tuple[Sequence[Step], str]:
        return (when.steps, "then") if self.value(when.condition, frame, at) else (when.otherwise, "else")

    def items(self, each: Each, frame: Frame, at: str) -> list[Any]:
        """What a loop goes over; all loops of a run together have only so many turns."""
        value = self.value(each.over, frame, at)
        try:
            items = list(items_to_go_over(value))
            frame.charge(len(items))
        except BicameralError as error:
            raise placed(error, at) from None
        self._turns_left -= len(items)
        if self._turns_left < 0:
            raise RunError(
                "run.too-many-turns",
                f"with these {len(items):,} items the run goes through more than {MAX_TURNS:,} in all",
                place=Place(step=at),
                fix="Work on a part of the list, such as `xs[:1000]`.",
            )
        return items

    def bind_item(self, each: Each, item: Any, frame: Frame, at: str) -> None:
        if len(each.names) == 1:
            frame.bind(each.names[0], item)
            return
        try:
            parts = unpacked(item, len(each.names))
        except BicameralError as error:
            raise placed(error, at) from None
        for name, part in zip(each.names, parts, strict=True):
            frame.bind(name, part)

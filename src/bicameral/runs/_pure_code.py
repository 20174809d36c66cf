"""Steps that need nothing from outside, as code: a turn of a loop then costs little more than its expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bicameral.errors import BicameralError, Place
from bicameral.plans import Answer, Compute, Each, Expr, Step, Update, When, compile_expr, unpacked

from ._frame import Frame

Where = str | tuple["Where", str, int]
"""The place of a block: its text, or that of a loop (block and step) and the turn. Only a failure asks for the text."""

Run = Callable[[Frame, Where], bool]
"""A step: does it in a frame, and says whether the run has its answer."""

Turn = Callable[[Frame, Where, Any], bool]
"""A turn of a loop, for one item."""


class PureCode:
    """The code of the steps of one run, made when a step is first done.

    `names` are the variables of an expression, `items` what a loop goes over, and `answer` takes the plan's answer.
    """

    def __init__(
        self,
        names: Callable[[Expr], frozenset[str]],
        items: Callable[[Each, Frame, str], list[Any]],
        answer: Callable[[Any], None],
    ) -> None:
        self._names = names
        self._items = items
        self._answer = answer
        self._steps: dict[int, Run] = {}
        self._turns: dict[int, Turn] = {}

    def step(self, step: Step) -> Run:
        """A step; it is done with its own place as the block's."""
        found = self._steps.get(id(step))
        if found is None:
            found = self._steps[id(step)] = self._code(step, "")
        return found

    def turn(self, each: Each) -> Turn:
        """A turn of a loop."""
        found = self._turns.get(id(each))
        if found is None:
            found = self._turns[id(each)] = self._one_turn(each)
        return found

    def _code(self, step: Step, at: str) -> Run:
        match step:
            case Compute():
                return self._compute(step, at)
            case Update():
                return self._update(step, at)
            case Each():
                return self._each(step, at)
            case When():
                return self._when(step, at)
            case Answer():
                return self._end(step, at)
            case _:
                raise TypeError(f"{step.do!r} is not a pure step")

    def _block(self, steps: Sequence[Step], at: str) -> Run:
        codes = [self._code(step, f"{at}{number}") for number, step in enumerate(steps)]
        if len(codes) == 1:
            return codes[0]

        def run(frame: Frame, where: Where) -> bool:
            for code in codes:  # noqa: SIM110 (a generator would take twice as long)
                if code(frame, where):
                    return True
            return False

        return run

    def _value(self, expr: Expr, at: str) -> Callable[[Frame, Where], Any]:
        code, names = compile_expr(expr), self._names(expr)

        def run(frame: Frame, where: Where) -> Any:
            if frame.extends_in_place:
                frame.seen(names)
            try:
                return code(frame.values)
            except BicameralError as error:
                raise placed(error, _text(where) + at) from None

        return run

    def _compute(self, step: Compute, at: str) -> Run:
        name, value = step.name, self._value(step.value, at)

        def run(frame: Frame, where: Where) -> bool:
            frame.bind(name, value(frame, where))
            return False

        return run

    def _update(self, step: Update, at: str) -> Run:
        name, op, value = step.name, step.op, self._value(step.value, at)
        key = None if step.key is None else self._value(step.key, at)

        def run(frame: Frame, where: Where) -> bool:
            under = None if key is None else key(frame, where)
            added = value(frame, where)
            try:
                frame.update(name, op, under, added)
            except BicameralError as error:
                raise placed(error, _text(where) + at) from None
            return False

        return run

    def _when(self, step: When, at: str) -> Run:
        condition = self._value(step.condition, at)
        then, otherwise = self._block(step.steps, f"{at}/then/"), self._block(step.otherwise, f"{at}/else/")
        return lambda frame, where: (then if condition(frame, where) else otherwise)(frame, where)

    def _end(self, step: Answer, at: str) -> Run:
        value = self._value(step.value, at)

        def run(frame: Frame, where: Where) -> bool:
            self._answer(value(frame, where))
            return True

        return run

    def _each(self, step: Each, at: str) -> Run:
        once = self._one_turn(step)

        def run(frame: Frame, where: Where) -> bool:
            for turn, item in enumerate(self._items(step, frame, _text(where) + at)):
                if once(frame, (where, at, turn), item):
                    return True
            return False

        return run

    def _one_turn(self, each: Each) -> Turn:
        body, names = self._block(each.steps, ""), each.names
        if len(names) == 1:
            (name,) = names

            def with_item(frame: Frame, where: Where, item: Any) -> bool:
                frame.bind(name, item)
                return body(frame, where)

            return with_item

        def with_parts(frame: Frame, where: Where, item: Any) -> bool:
            try:
                parts = unpacked(item, len(names))
            except BicameralError as error:
                # It is the loop that fails, not a step of this turn.
                raise placed(error, _of_loop(where)) from None
            for name, part in zip(names, parts, strict=True):
                frame.bind(name, part)
            return body(frame, where)

        return with_parts


def _text(where: Where) -> str:
    return where if isinstance(where, str) else f"{_of_loop(where)}[{where[2]}]/"


def _of_loop(where: Where) -> str:
    return where if isinstance(where, str) else _text(where[0]) + where[1]


def placed(error: BicameralError, at: str) -> BicameralError:
    """The same error with the step where it happened."""
    if error.place is None or error.place.step is None:
        error.place = replace(error.place or Place(), step=at)
    return error

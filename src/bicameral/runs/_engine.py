"""The inline engine: runs a checked plan in memory, what is independent side by side, effects in program order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bicameral.errors import BicameralError, Place, RunError
from bicameral.plans import (
    Answer,
    Ask,
    Call,
    Compute,
    Each,
    Expr,
    Extract,
    Plan,
    Step,
    Update,
    When,
    compile_expr,
    items_to_go_over,
    unpacked,
)
from bicameral.tools import Registry

from ._dependencies import Footprints
from ._frame import Frame
from ._hands import Hands
from ._overlap import Job, Order, side_by_side

TURNS_AT_ONCE = 16
STEPS_AT_ONCE = 64
MAX_TURNS = 1_000_000
TURNS_BETWEEN_BREATHS = 500


class NotAnswered:
    """The value of a run that has not come to an answer yet."""


NOT_ANSWERED = NotAnswered()


class Engine:
    """Runs one plan once. What touches the world is done by its `hands`.

    The answer, the failure and the effects are those of the plan's steps run one after another; only the time that it
    takes is not.
    """

    def __init__(self, plan: Plan, registry: Registry, hands: Hands) -> None:
        self._plan = plan
        self._registry = registry
        self._hands = hands
        self._footprints = Footprints(registry)
        self._codes: dict[int, Callable[[dict[str, Any]], Any]] = {}
        self._answer: Any = NOT_ANSWERED
        self._turns_left = MAX_TURNS
        # Only steps at the leaves hold a slot, never a loop: nested loops cannot wait for each other.
        self._slots = asyncio.Semaphore(STEPS_AT_ONCE)

    async def run(self) -> Any:
        """The plan's answer; a BicameralError says which step failed and why."""
        await self._block(self._plan.steps, Frame(), "")
        if not self._answered:
            raise RunError("run.no-answer", "the plan ended without an answer")
        return self._answer

    @property
    def _answered(self) -> bool:
        return self._answer is not NOT_ANSWERED

    async def _block(self, steps: Sequence[Step], frame: Frame, at: str) -> None:
        if len(steps) > 1 and self._footprints.waits(steps):
            await side_by_side(self._footprints.order(steps), lambda number: self._begin(steps, number, frame, at))
            return
        for number in range(len(steps)):
            if (job := self._begin(steps, number, frame, at)) is not None:
                await job

    def _begin(self, steps: Sequence[Step], number: int, frame: Frame, at: str) -> Job | None:
        """Do a step that needs nothing from outside at once; for any other give the job to wait for."""
        step = steps[number]
        if self._answered:
            return None
        if isinstance(step, Each) or self._footprints.of(step).waits:
            return self._step(step, frame, f"{at}{number}")
        self._pure_step(step, frame, f"{at}{number}")
        return None

    async def _step(self, step: Step, frame: Frame, at: str) -> None:
        match step:
            case Each():
                await self._each(step, frame, at)
            case When():
                branch, side = self._branch(step, frame, at)
                await self._block(branch, frame, f"{at}/{side}/")
            case Call() | Extract() | Ask():
                async with self._slots:
                    try:
                        result = await self._touch(step, frame, at)
                    except BicameralError as error:
                        raise _placed(error, at) from error.__cause__
                if step.name is not None:
                    frame.bind(step.name, result)
            case _:
                self._pure_step(step, frame, at)

    async def _touch(self, step: Call | Extract | Ask, frame: Frame, at: str) -> Any:
        match step:
            case Call():
                arguments = {name: self._value(argument, frame, at) for name, argument in step.args.items()}
                return await self._hands.call(at, self._registry[step.tool], arguments)
            case Extract():
                source, instruction = self._value(step.source, frame, at), self._value(step.instruction, frame, at)
                return await self._hands.extract(at, source, str(instruction), step.wanted)
            case Ask():
                return await self._hands.ask(at, str(self._value(step.question, frame, at)), step.wanted)

    async def _each(self, each: Each, frame: Frame, at: str) -> None:
        items = self._items(each, frame, at)
        turns = self._footprints.turns(each)
        if not self._footprints.waits(each.steps):
            await self._pure_turns(each, items, frame, at)
        elif turns.may_overlap and frame.takes(turns.added):
            await self._overlapping_turns(each, items, frame, at)
        else:
            for turn, item in enumerate(items):
                self._bind_item(each, item, frame, at)
                await self._block(each.steps, frame, f"{at}[{turn}]/")
                if self._answered:
                    return

    async def _overlapping_turns(self, each: Each, items: list[Any], frame: Frame, at: str) -> None:
        found = frame.snapshot()
        ended: dict[int, Frame] = {}
        merged = 0

        async def one(turn: int) -> None:
            nonlocal merged
            own = Frame(dict(found), logged=True)
            self._bind_item(each, items[turn], own, at)
            await self._block(each.steps, own, f"{at}[{turn}]/")
            ended[turn] = own
            while merged in ended:
                done = ended.pop(merged)
                merged += 1
                self._merge(done, frame, at)

        await side_by_side(Order.free(len(items)), one, width=TURNS_AT_ONCE)

    def _merge(self, turn: Frame, frame: Frame, at: str) -> None:
        try:
            frame.merge(turn)
        except BicameralError as error:
            raise _placed(error, at) from None

    # What needs nothing from outside runs at once, without the loop's scheduling ------------------------------------

    async def _pure_turns(self, each: Each, items: list[Any], frame: Frame, at: str) -> None:
        for turn, item in enumerate(items):
            self._pure_turn(each, turn, item, frame, at)
            if self._answered:
                return
            if turn % TURNS_BETWEEN_BREATHS == TURNS_BETWEEN_BREATHS - 1:
                # A long computation must not keep other steps from going on, nor Ctrl-C from being heard.
                await asyncio.sleep(0)

    def _pure_turn(self, each: Each, turn: int, item: Any, frame: Frame, at: str) -> None:
        self._bind_item(each, item, frame, at)
        self._pure_block(each.steps, frame, f"{at}[{turn}]/")

    def _pure_block(self, steps: Sequence[Step], frame: Frame, at: str) -> None:
        for number, step in enumerate(steps):
            self._pure_step(step, frame, f"{at}{number}")
            if self._answered:
                return

    def _pure_step(self, step: Step, frame: Frame, at: str) -> None:
        match step:
            case Compute():
                frame.bind(step.name, self._value(step.value, frame, at))
            case Update():
                self._update(step, frame, at)
            case Each():
                for turn, item in enumerate(self._items(step, frame, at)):
                    self._pure_turn(step, turn, item, frame, at)
                    if self._answered:
                        return
            case When():
                branch, side = self._branch(step, frame, at)
                self._pure_block(branch, frame, f"{at}/{side}/")
            case Answer():
                self._answer = self._value(step.value, frame, at)
            case _:
                raise TypeError(f"{step.do!r} is not a pure step")

    def _update(self, step: Update, frame: Frame, at: str) -> None:
        key = self._value(step.key, frame, at) if step.key is not None else None
        value = self._value(step.value, frame, at)
        try:
            frame.update(step.name, step.op, key, value)
        except BicameralError as error:
            raise _placed(error, at) from None

    def _branch(self, when: When, frame: Frame, at: str) -> tuple[Sequence[Step], str]:
        return (when.steps, "then") if self._value(when.condition, frame, at) else (when.otherwise, "else")

    def _items(self, each: Each, frame: Frame, at: str) -> list[Any]:
        value = self._value(each.over, frame, at)
        try:
            items = list(items_to_go_over(value))
        except BicameralError as error:
            raise _placed(error, at) from None
        self._turns_left -= len(items)
        if self._turns_left < 0:
            raise RunError(
                "run.too-many-turns",
                f"with these {len(items):,} items the run goes through more than {MAX_TURNS:,} in all",
                place=Place(step=at),
                fix="Work on a part of the list, such as `xs[:1000]`.",
            )
        return items

    def _bind_item(self, each: Each, item: Any, frame: Frame, at: str) -> None:
        if len(each.names) == 1:
            frame.bind(each.names[0], item)
            return
        try:
            parts = unpacked(item, len(each.names))
        except BicameralError as error:
            raise _placed(error, at) from None
        for name, part in zip(each.names, parts, strict=True):
            frame.bind(name, part)

    def _value(self, expr: Expr, frame: Frame, at: str) -> Any:
        code = self._codes.get(id(expr))
        if code is None:
            code = self._codes[id(expr)] = compile_expr(expr)
        if frame.extends_in_place:
            frame.seen(self._footprints.names(expr))
        try:
            return code(frame.values)
        except BicameralError as error:
            raise _placed(error, at) from None


def _placed(error: BicameralError, at: str) -> BicameralError:
    """The same error with the step where it happened."""
    if error.place is None or error.place.step is None:
        error.place = replace(error.place or Place(), step=at)
    return error

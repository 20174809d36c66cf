"""The inline engine: runs a checked plan in memory, what is independent side by side, effects in program order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from bicameral.decisions import Mode
from bicameral.errors import BicameralError, Place, RunError
from bicameral.labels import NOTHING, Label, Shade, tainted
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
    after_ask,
    after_extract,
    after_pure,
    after_update,
    branch_names,
    compile_expr,
    found_again,
    items_to_go_over,
    pc_after,
    shade_of,
    turn_names,
    under,
    unpacked,
    written,
)
from bicameral.tools import Registry

from ._dependencies import Footprints
from ._door import Door
from ._frame import Frame
from ._hands import Hands
from ._judge import Judge
from ._note import Note
from ._overlap import Job, Order, side_by_side

TURNS_AT_ONCE = 16
STEPS_AT_ONCE = 64
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


Found = tuple[Any, Shade | None]
"""What a step gave, with its labels unless those are off."""


class Engine:
    """Runs one plan once. What touches the world is done by its `hands`.

    The answer, the failure and the effects are those of the plan's steps run one after another; only the time that it
    takes is not. With a `judge` every value has labels beside it, by the functions that the proof uses too, and every
    call goes through the door. Without one labels are off: that is for measuring.
    """

    def __init__(self, plan: Plan, registry: Registry, hands: Hands, judge: Judge | None = None) -> None:
        self._plan = plan
        self._registry = registry
        self._hands = hands
        self._door = None if judge is None else Door(judge, hands)
        self._mode: Mode = "strict" if judge is None else judge.mode
        self._footprints = Footprints(registry)
        self._codes: dict[int, Callable[[dict[str, Any]], Any]] = {}
        self._answer: Any = NOT_ANSWERED
        self.answer_shade: Shade | None = None
        self._turns_left = MAX_TURNS
        # Only steps at the leaves hold a slot, never a loop: nested loops cannot wait for each other.
        self._slots = asyncio.Semaphore(STEPS_AT_ONCE)

    async def run(self) -> Any:
        """The plan's answer; a BicameralError says which step failed and why."""
        await self._block(self._plan.steps, Frame(), "", Flow())
        if not self._answered:
            raise RunError("run.no-answer", "the plan ended without an answer")
        if self._door is not None:
            await self._door.flush()
        return self._answer

    @property
    def _answered(self) -> bool:
        return self._answer is not NOT_ANSWERED

    async def _block(self, steps: Sequence[Step], frame: Frame, at: str, flow: Flow) -> None:
        if len(steps) > 1 and self._footprints.waits(steps):
            order = self._footprints.order(steps)
            await side_by_side(order, lambda number: self._begin(steps, number, frame, at, flow))
            return
        for number in range(len(steps)):
            if (job := self._begin(steps, number, frame, at, flow)) is not None:
                await job

    def _begin(self, steps: Sequence[Step], number: int, frame: Frame, at: str, flow: Flow) -> Job | None:
        """Do a step that needs nothing from outside at once; for any other give the job to wait for."""
        step = steps[number]
        if self._answered:
            return None
        if isinstance(step, Each) or self._footprints.of(step).waits:
            return self._step(step, frame, f"{at}{number}", flow)
        self._pure(step, frame, f"{at}{number}", flow)
        return None

    async def _step(self, step: Step, frame: Frame, at: str, flow: Flow) -> None:
        match step:
            case Each():
                await self._each(step, frame, at, flow)
            case When():
                inside = self._inside(step.condition, frame, flow)
                branch, side = self._branch(step, frame, at)
                await self._block(branch, frame, f"{at}/{side}/", inside)
                self._leave(step, frame, flow, inside)
            case Call() | Extract() | Ask():
                async with self._slots:
                    try:
                        found = await self._touch(step, frame, at, flow.pc)
                    except BicameralError as error:
                        raise _placed(error, at) from error.__cause__
                # A call that still waits for a yes is one whose result nobody uses.
                if step.name is not None and found is not None:
                    frame.bind(step.name, *found)
            case _:
                self._pure(step, frame, at, flow)

    async def _touch(
        self, step: Call | Extract | Ask, frame: Frame, at: str, pc: Label
    ) -> tuple[Any, Shade | None] | None:
        match step:
            case Call():
                return await self._call(step, frame, at, pc)
            case Extract():
                source, instruction = self._value(step.source, frame, at), self._value(step.instruction, frame, at)
                note = self._extract_note(step, frame, at, pc)
                value = await self._hands.extract(at, source, str(instruction), step.wanted, note)
            case Ask():
                question, note = str(self._value(step.question, frame, at)), None
                if self._door is not None:
                    await self._door.flush()
                    shades = {"question": self._shade(step.question, frame, pc)}
                    note = Note(shades, pc, lambda _: after_ask(at, pc))
                value = await self._hands.ask(at, question, step.wanted, note)
        return value, None if note is None else note.shade(value)

    async def _call(self, step: Call, frame: Frame, at: str, pc: Label) -> Found | None:
        arguments = {name: self._value(argument, frame, at) for name, argument in step.args.items()}
        tool = self._registry[step.tool]
        if self._door is None:
            return await self._hands.call(at, tool, tool.bind(arguments)), None
        # The control flow is a fact of its own: in the arguments it would hide what a value itself is made of.
        shades = {name: self._shade(argument, frame, NOTHING) for name, argument in step.args.items()}
        judged, found = found_again(tool, shades, arguments, frame.shades)
        given = await self._door.call(at, tool, arguments, judged, pc, needed=step.name in self._read)
        frame.shades |= written(tool, shades, arguments, found, pc, frame.shades)
        return given if given is None or found is NOTHING else (given[0], tainted(given[1], found))

    @cached_property
    def _read(self) -> frozenset[str | None]:
        """The variables that anything in the plan reads."""
        return frozenset(self._footprints.read_in(self._plan.steps))

    def _extract_note(self, step: Extract, frame: Frame, at: str, pc: Label) -> Note | None:
        if self._door is None:
            return None
        source, instruction = self._shade(step.source, frame, pc), self._shade(step.instruction, frame, pc)
        shades = {"source": source, "instruction": instruction}
        return Note(shades, pc, lambda _: after_extract(source, instruction, at, pc))

    async def _each(self, each: Each, frame: Frame, at: str, flow: Flow) -> None:
        if not self._footprints.waits(each.steps):
            items = self._items(each, frame, at)
            leave = self._without_turns(each, frame, flow)
            await self._pure_turns(each, items, frame, at)
            leave()
            return
        over = self._shade(each.over, frame, flow.pc)
        inside = Flow(under(flow.pc, over, self._mode))
        items, turns = self._items(each, frame, at), self._footprints.turns(each)
        if turns.may_overlap and frame.takes(turns.added):
            await self._overlapping_turns(each, items, frame, at, over, inside)
        else:
            for turn, item in enumerate(items):
                self._bind_item(each, item, frame, at)
                frame.shades.update(self._turn_names(each, over, inside))
                await self._block(each.steps, frame, f"{at}[{turn}]/", inside)
                if self._answered:
                    return
        self._leave(each, frame, flow, inside)

    async def _overlapping_turns(
        self, each: Each, items: list[Any], frame: Frame, at: str, over: Shade, inside: Flow
    ) -> None:
        found, shades = frame.snapshot()
        shades |= self._turn_names(each, over, inside)
        ended: dict[int, Frame] = {}
        merged = 0

        async def one(turn: int) -> None:
            nonlocal merged
            own = Frame(dict(found), dict(shades), logged=True)
            self._bind_item(each, items[turn], own, at)
            # Turns that may overlap cannot end the run, so that the control flow is the same in all of them.
            await self._block(each.steps, own, f"{at}[{turn}]/", Flow(inside.pc))
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

    # Labels ---------------------------------------------------------------------------------------------------------

    def _shade(self, expr: Expr, frame: Frame, pc: Label) -> Shade:
        return NOTHING if self._door is None else shade_of(expr, frame.shades, pc, self._mode)

    def _inside(self, condition: Expr, frame: Frame, flow: Flow) -> Flow:
        """The control flow at the beginning of a branch."""
        return Flow(under(flow.pc, self._shade(condition, frame, flow.pc), self._mode))

    def _leave(self, step: When | Each, frame: Frame, flow: Flow, inside: Flow) -> None:
        """After a branch or loop what it may change carries what decided it, and all that follows if it may end."""
        if self._door is not None:
            frame.taint(branch_names(step), inside.pc)
            flow.pc = pc_after(step, flow.pc, inside.pc)

    def _turn_names(self, each: Each, over: Shade, inside: Flow) -> dict[str, Shade]:
        return {} if self._door is None else turn_names(each, over, inside.pc, self._mode)

    def _without_turns(self, each: Each, frame: Frame, flow: Flow) -> Callable[[], None]:
        """What is to be done after a loop that touches nothing: its labels cost the same however many turns it has."""
        if self._door is None:
            return lambda: None
        after = after_pure(each, frame.shades, flow.pc, self._mode)

        def leave() -> None:
            frame.shades.update(after.changed)
            flow.pc = after.pc
            if self._answered:
                self.answer_shade = after.answer

        return leave

    def _pure(self, step: Step, frame: Frame, at: str, flow: Flow) -> None:
        """A step that needs nothing from outside, with its labels."""
        if self._door is None:
            self._pure_step(step, frame, at)
            return
        match step:
            case Compute():
                frame.bind(step.name, self._value(step.value, frame, at), self._shade(step.value, frame, flow.pc))
            case Update():
                after = after_update(step, frame.shades, flow.pc, self._mode)
                self._update(step, frame, at)
                frame.shades[step.name] = after
            case Each():
                leave = self._without_turns(step, frame, flow)
                self._pure_step(step, frame, at)
                leave()
            case When():
                inside = self._inside(step.condition, frame, flow)
                branch, side = self._branch(step, frame, at)
                for number, inner in enumerate(branch):
                    self._pure(inner, frame, f"{at}/{side}/{number}", inside)
                    if self._answered:
                        return
                self._leave(step, frame, flow, inside)
            case Answer():
                self._answer, self.answer_shade = (
                    self._value(step.value, frame, at),
                    self._shade(step.value, frame, flow.pc),
                )
            case _:
                raise TypeError(f"{step.do!r} is not a pure step")

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

"""The inline engine: runs a checked plan in memory, what is independent side by side, effects in program order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from bicameral.decisions import Mode
from bicameral.errors import BicameralError, RunError
from bicameral.labels import NOTHING, Label, Shade, join_shades
from bicameral.plans import (
    RUN_WORK,
    Ask,
    Call,
    Each,
    Extract,
    Plan,
    Step,
    When,
    after_ask,
    after_extract,
    given_label,
    under,
)
from bicameral.tools import Registry

from ._ahead import Foresee, Look, copied
from ._caps import Caps
from ._dependencies import Footprints
from ._door import Door
from ._frame import Frame
from ._grants import Grant
from ._hands import Hands
from ._judge import Judge
from ._lures import NOBODY_KNOWS, Lures
from ._note import Note
from ._overlap import Job, Order, side_by_side
from ._pure import Flow, Pure
from ._pure_code import placed
from ._start import Start
from ._telling import stepped, stepping
from ._whereabouts import Block, Turning, Whereabouts

TURNS_AT_ONCE = 16
STEPS_AT_ONCE = 64

Found = tuple[Any, Shade | None]
"""What a step gave, with its labels unless those are off."""


class Engine:
    """Runs one plan once. What touches the world is done by its `hands`.

    The answer, the failure and the effects are those of the plan's steps run one after another; only the time that it
    takes is not. With a `judge` every value has labels beside it, by the functions that the proof uses too, and every
    call goes through the door. Without one labels are off: that is for measuring.

    With `ahead` a question to a person is also about calls that are still to come and known already, and `may_ask` are
    the steps that the proof could not prove: where all of them are known before the first step, it is put then.
    `before` is what else is to be done before the first step, and `grants` what a person has granted for the whole run.
    `assembled` are the arguments of each call that a plan of a model puts together, as the proof knows them.
    Of the `caps` the engine keeps the one on work.
    """

    def __init__(
        self,
        plan: Plan,
        registry: Registry,
        hands: Hands,
        judge: Judge | None = None,
        start: Start | None = None,
        *,
        caps: Caps | None = None,
        ahead: bool = False,
        may_ask: frozenset[str] = frozenset(),
        before: Callable[[], Awaitable[None]] | None = None,
        grants: Sequence[Grant] = (),
        assembled: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._plan = plan
        self._start = start or Start()
        self._registry = registry
        self._hands = hands
        look = self._look if ahead else None
        self._door = (
            None
            if judge is None
            else Door(judge, hands, self._lures(plan), ahead=look, grants=grants, assembled=assembled)
        )
        self._mode: Mode = "strict" if judge is None else judge.mode
        self._given = given_label(self._start.read, self._mode)
        self.written: dict[str, Shade] = dict(self._start.written)
        """The labels of the places that were, or may have been, written to."""
        self._footprints = Footprints(registry)
        self._pure = Pure(self._footprints, self._mode, labelled=judge is not None)
        self._where = Whereabouts()
        self._may_ask = may_ask
        self._before = before
        self._caps = caps or Caps()
        # Only steps at the leaves hold a slot, never a loop: nested loops cannot wait for each other.
        self._slots = asyncio.Semaphore(STEPS_AT_ONCE)

    async def run(self) -> Any:
        """The plan's answer; a BicameralError says which step failed and why."""
        start = self._start
        shades = {} if self._door is None else start.shades
        frame, flow = Frame(start.values | {RUN_WORK: self._caps.run_work()}, shades), Flow(start.read)
        if self._before is not None:
            await self._before()
        if self._door is not None and self._may_ask:
            self._where.blocks[""] = Block(self._plan.steps, frame, flow)
            await self._door.ask_before(self._may_ask)
        await self._block(self._plan.steps, frame, "", flow)
        if not self._pure.answered:
            raise RunError("run.no-answer", "the plan ended without an answer")
        if self._door is not None:
            await self._door.flush()
        return self._pure.answer

    @property
    def answer_shade(self) -> Shade | None:
        """The labels of the answer; none where labels are off."""
        return self._pure.answer_shade

    def _look(self, foresee: Foresee) -> tuple[set[str], set[str]]:
        """Tell of the calls that are still to come and known already; at which steps they are, and at which not."""
        look = Look(self._registry, self._footprints, self._pure, self._mode, self._given, self._where, foresee)
        whole = self._where.blocks.get("")
        if whole is not None and not self._pure.answered:
            look.block(whole.steps, copied(whole.frame, look.work), "", whole.flow)
        return look.known, look.unknown

    async def _block(self, steps: Sequence[Step], frame: Frame, at: str, flow: Flow) -> None:
        block = self._where.blocks[at] = Block(steps, frame, flow)
        if len(steps) > 1 and self._footprints.waits(steps):
            order = self._footprints.order(steps)
            await side_by_side(order, lambda number: self._begin(block, number, at))
        else:
            for number in range(len(steps)):
                if (job := self._begin(block, number, at)) is not None:
                    await job
        del self._where.blocks[at]

    def _begin(self, block: Block, number: int, at: str) -> Job | None:
        """Do a step that needs nothing from outside at once; for any other give the job to wait for."""
        step = block.steps[number]
        if self._pure.answered:
            return None
        if isinstance(step, Each) or self._footprints.of(step).waits:
            return self._job(block, number, at)
        self._pure.step(step, block.frame, f"{at}{number}", block.flow)
        block.ended.add(number)
        return None

    async def _job(self, block: Block, number: int, at: str) -> None:
        await self._step(block.steps[number], block.frame, f"{at}{number}", block.flow)
        block.ended.add(number)

    async def _step(self, step: Step, frame: Frame, at: str, flow: Flow) -> None:
        match step:
            case Each():
                await self._each(step, frame, at, flow)
            case When():
                inside = self._pure.inside(step.condition, frame, flow)
                branch, side = self._pure.branch(step, frame, at)
                await self._block(branch, frame, f"{at}/{side}/", inside)
                self._note_written(self._pure.leave(step, frame, flow, inside))
            case Call() | Extract() | Ask():
                async with self._slots:
                    with stepping(step, at) as told:
                        try:
                            found = await self._touch(step, frame, at, flow.pc)
                        except BicameralError as error:
                            raise placed(error, at) from error.__cause__
                        stepped(told, found)
                # A call that still waits for a yes is one whose result nobody uses.
                if step.name is not None and found is not None:
                    frame.bind(step.name, *found)
            case _:
                self._pure.step(step, frame, at, flow)

    async def _touch(
        self, step: Call | Extract | Ask, frame: Frame, at: str, pc: Label
    ) -> tuple[Any, Shade | None] | None:
        match step:
            case Call():
                return await self._call(step, frame, at, pc)
            case Extract():
                source = self._pure.value(step.source, frame, at)
                instruction = self._pure.value(step.instruction, frame, at)
                note = self._extract_note(step, frame, at, pc)
                value = await self._hands.extract(at, source, str(instruction), step.wanted, note)
            case Ask():
                question, note = str(self._pure.value(step.question, frame, at)), None
                if self._door is not None:
                    await self._door.flush()
                    asked = self._pure.shade(step.question, frame, pc)
                    note = Note({"question": asked}, pc, lambda _: after_ask(asked, at, pc))
                value = await self._hands.ask(at, question, step.wanted, note)
        return value, None if note is None else note.shade(value)

    async def _call(self, step: Call, frame: Frame, at: str, pc: Label) -> Found | None:
        arguments = {name: self._pure.value(argument, frame, at) for name, argument in step.args.items()}
        tool = self._registry[step.tool]
        if self._door is None:
            return await self._hands.call(at, tool, tool.bind(arguments)), None
        # The control flow is a fact of its own: in the arguments it would hide what a value itself is made of.
        shades = {name: self._pure.shade(argument, frame, self._given) for name, argument in step.args.items()}
        return await self._door.pass_on(
            at, tool, arguments, shades, pc, frame.shades, self._note_written, needed=step.name in self._read
        )

    def _note_written(self, places: dict[str, Shade]) -> None:
        """For whoever comes after the run."""
        for place, shade in places.items():
            self.written[place] = join_shades(self.written[place], shade) if place in self.written else shade

    def _lures(self, plan: Plan) -> Lures:
        start = self._start
        return Lures(plan if start.read.trusted else None, NOBODY_KNOWS if start.written else frozenset())

    @cached_property
    def _read(self) -> frozenset[str | None]:
        """The variables that anything in the plan reads."""
        return frozenset(self._footprints.read_in(self._plan.steps))

    def _extract_note(self, step: Extract, frame: Frame, at: str, pc: Label) -> Note | None:
        if self._door is None:
            return None
        source, instruction = self._pure.shade(step.source, frame, pc), self._pure.shade(step.instruction, frame, pc)
        shades = {"source": source, "instruction": instruction}
        return Note(shades, pc, lambda _: after_extract(source, instruction, at, pc))

    async def _each(self, each: Each, frame: Frame, at: str, flow: Flow) -> None:
        if not self._footprints.waits(each.steps):
            items = self._pure.items(each, frame, at)
            leave = self._pure.without_turns(each, frame, flow)
            # Others may look at the variables meanwhile: nobody knows what will have become of them.
            self._where.loops[at] = Turning([], NOTHING, flow, apart=True)
            await self._pure.turns(each, items, frame, at)
            del self._where.loops[at]
            leave()
            return
        over = self._pure.shade(each.over, frame, flow.pc)
        inside = Flow(under(flow.pc, over, self._mode))
        items, turns = self._pure.items(each, frame, at), self._footprints.turns(each)
        apart = turns.may_overlap and frame.takes(turns.added)
        turning = self._where.loops[at] = Turning(items, over, inside, apart)
        if apart:
            await self._overlapping_turns(each, turning, frame, at)
        else:
            for turn, item in enumerate(items):
                turning.begun = turn + 1
                self._pure.bind_item(each, item, frame, at)
                frame.shades.update(self._pure.turn_names(each, over, inside))
                await self._block(each.steps, frame, f"{at}[{turn}]/", inside)
                if self._pure.answered:
                    return
        del self._where.loops[at]
        self._note_written(self._pure.leave(each, frame, flow, inside))

    async def _overlapping_turns(self, each: Each, turning: Turning, frame: Frame, at: str) -> None:
        items, over, inside = turning.items, turning.over, turning.inside
        found, shades = frame.snapshot()
        shades |= self._pure.turn_names(each, over, inside)
        ended: dict[int, Frame] = {}
        merged = 0

        async def one(turn: int) -> None:
            nonlocal merged
            own = Frame(found | {RUN_WORK: found[RUN_WORK].branch()}, dict(shades), logged=True)
            turning.begun = max(turning.begun, turn + 1)
            self._pure.bind_item(each, items[turn], own, at)
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
            raise placed(error, at) from None

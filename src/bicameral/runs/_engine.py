"""The inline engine: runs a checked plan in memory, independent steps concurrently, effects in program order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from bicameral.errors import BicameralError, RunError
from bicameral.labels import NOTHING, Label, LabelTree, join_trees
from bicameral.limits import RUN, RUN_LIMITS, LimitReached, Limits
from bicameral.plans import (
    RUN_WORK_KEY,
    Ask,
    Call,
    Each,
    Extract,
    Plan,
    RunWork,
    Step,
    When,
    author_label,
    labels_after_ask,
    labels_after_extract,
    pc_inside,
)
from bicameral.policy import Mode
from bicameral.runs._call_gate import CallGate
from bicameral.runs._call_policy import ASSUMED_ACTIONABLE, ActionableText, Decider, Grant, StepLabels
from bicameral.runs._effects import EffectHandler
from bicameral.runs._inputs import StartState
from bicameral.runs._observability import record_step_result, step_span
from bicameral.runs._scheduler import Footprints, Job, JobOrder, run_concurrently
from bicameral.runs._step_evaluation import (
    ControlFlow,
    FutureCallVisitor,
    LocalSteps,
    Lookahead,
    RunningBlock,
    RunningLoop,
    RunPosition,
    copy_frame,
)
from bicameral.runs._variables import VariableFrame, add_step_to_error
from bicameral.tools import Registry

MAX_CONCURRENT_TURNS = 16
MAX_CONCURRENT_STEPS = 64

StepResult = tuple[Any, LabelTree | None]
"""What a step gave, with its labels unless those are off."""


class PlanEngine:
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
        hands: EffectHandler,
        judge: Decider | None = None,
        start: StartState | None = None,
        *,
        caps: Limits | None = None,
        ahead: bool = False,
        may_ask: frozenset[str] = frozenset(),
        before: Callable[[], Awaitable[None]] | None = None,
        grants: Sequence[Grant] = (),
        assembled: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._plan = plan
        self._start = start or StartState()
        self._registry = registry
        self._hands = hands
        look = self._visit_future_calls if ahead else None
        self._door = (
            None
            if judge is None
            else CallGate(judge, hands, self._actionable_text(plan), ahead=look, grants=grants, assembled=assembled)
        )
        self._mode: Mode = "strict" if judge is None else judge.mode
        self._given = author_label(self._start.read, self._mode)
        self.written: dict[str, LabelTree] = dict(self._start.written)
        """The labels of the places that were, or may have been, written to."""
        self._footprints = Footprints(registry)
        self._pure = LocalSteps(self._footprints, self._mode, labelled=judge is not None)
        self._where = RunPosition()
        self._may_ask = may_ask
        self._before = before
        self._caps = caps or RUN_LIMITS
        # Only steps at the leaves hold a slot, never a loop: nested loops cannot wait for each other.
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_STEPS)

    async def run(self) -> Any:
        """The plan's answer; a BicameralError says which step failed and why."""
        start = self._start
        shades = {} if self._door is None else start.labels
        frame, flow = (
            VariableFrame(start.values | {RUN_WORK_KEY: _work_counter(self._caps)}, shades),
            ControlFlow(start.read),
        )
        if self._before is not None:
            await self._before()
        if self._door is not None and self._may_ask:
            self._where.blocks[""] = RunningBlock(self._plan.steps, frame, flow)
            await self._door.ask_before_start(self._may_ask)
        await self._block(self._plan.steps, frame, "", flow)
        if not self._pure.has_answer:
            raise RunError("run.no-answer", "the plan ended without an answer")
        if self._door is not None:
            await self._door.flush()
        return self._pure.answer

    @property
    def answer_labels(self) -> LabelTree | None:
        """The labels of the answer; none where labels are off."""
        return self._pure.answer_labels

    def _visit_future_calls(self, foresee: FutureCallVisitor) -> tuple[set[str], set[str]]:
        """Tell of the calls that are still to come and known already; at which steps they are, and at which not."""
        look = Lookahead(self._registry, self._footprints, self._pure, self._mode, self._given, self._where, foresee)
        whole = self._where.blocks.get("")
        if whole is not None and not self._pure.has_answer:
            look.visit_block(whole.steps, copy_frame(whole.frame, look.work), "", whole.flow)
        return look.known, look.unknown

    async def _block(self, steps: Sequence[Step], frame: VariableFrame, at: str, flow: ControlFlow) -> None:
        block = self._where.blocks[at] = RunningBlock(steps, frame, flow)
        if len(steps) > 1 and self._footprints.waits(steps):
            order = self._footprints.order(steps)
            await run_concurrently(order, lambda number: self._start_step(block, number, at))
        else:
            for number in range(len(steps)):
                if (job := self._start_step(block, number, at)) is not None:
                    await job
        del self._where.blocks[at]

    def _start_step(self, block: RunningBlock, number: int, at: str) -> Job | None:
        """Do a step that needs nothing from outside at once; for any other give the job to wait for."""
        step = block.steps[number]
        if self._pure.has_answer:
            return None
        if isinstance(step, Each) or self._footprints.of(step).waits:
            return self._run_job(block, number, at)
        self._pure.run_step(step, block.frame, f"{at}{number}", block.flow)
        block.ended.add(number)
        return None

    async def _run_job(self, block: RunningBlock, number: int, at: str) -> None:
        await self._step(block.steps[number], block.frame, f"{at}{number}", block.flow)
        block.ended.add(number)

    async def _step(self, step: Step, frame: VariableFrame, at: str, flow: ControlFlow) -> None:
        match step:
            case Each():
                await self._each(step, frame, at, flow)
            case When():
                inside = self._pure.branch_flow(step.condition, frame, flow)
                branch, side = self._pure.choose_branch(step, frame, at)
                await self._block(branch, frame, f"{at}/{side}/", inside)
                self._note_written(self._pure.leave_branch(step, frame, flow, inside))
            case Call() | Extract() | Ask():
                async with self._slots:
                    with step_span(step, at) as told:
                        try:
                            found = await self._run_effect(step, frame, at, flow.pc)
                        except BicameralError as error:
                            raise add_step_to_error(error, at) from error.__cause__
                        record_step_result(told, found)
                # A call that still waits for a yes is one whose result nobody uses.
                if step.name is not None and found is not None:
                    frame.bind(step.name, *found)
            case _:
                self._pure.run_step(step, frame, at, flow)

    async def _run_effect(
        self, step: Call | Extract | Ask, frame: VariableFrame, at: str, pc: Label
    ) -> tuple[Any, LabelTree | None] | None:
        match step:
            case Call():
                return await self._call(step, frame, at, pc)
            case Extract():
                source = self._pure.evaluate(step.source, frame, at)
                instruction = self._pure.evaluate(step.instruction, frame, at)
                note = self._extract_labels(step, frame, at, pc)
                value = await self._hands.extract(at, source, str(instruction), step.result_type, note)
            case Ask():
                question, note = str(self._pure.evaluate(step.question, frame, at)), None
                if self._door is not None:
                    await self._door.flush()
                    asked = self._pure.label(step.question, frame, pc)
                    note = StepLabels({"question": asked}, pc, lambda _: labels_after_ask(asked, at, pc))
                value = await self._hands.ask(at, question, step.result_type, note)
        return value, None if note is None else note.result_labels(value)

    async def _call(self, step: Call, frame: VariableFrame, at: str, pc: Label) -> StepResult | None:
        arguments = {name: self._pure.evaluate(argument, frame, at) for name, argument in step.args.items()}
        tool = self._registry[step.tool]
        if self._door is None:
            return await self._hands.call(at, tool, tool.bind(arguments)), None
        # The control flow is a fact of its own: in the arguments it would hide what a value itself is made of.
        shades = {name: self._pure.label(argument, frame, self._given) for name, argument in step.args.items()}
        return await self._door.make_call(
            at, tool, arguments, shades, pc, frame.labels, self._note_written, needed=step.name in self._names_read
        )

    def _note_written(self, places: dict[str, LabelTree]) -> None:
        """For whoever comes after the run."""
        for place, shade in places.items():
            self.written[place] = join_trees(self.written[place], shade) if place in self.written else shade

    def _actionable_text(self, plan: Plan) -> ActionableText:
        start = self._start
        return ActionableText(
            plan if start.read.trusted else None, ASSUMED_ACTIONABLE if start.written else frozenset()
        )

    @cached_property
    def _names_read(self) -> frozenset[str | None]:
        """The variables that anything in the plan reads."""
        return frozenset(self._footprints.names_read(self._plan.steps))

    def _extract_labels(self, step: Extract, frame: VariableFrame, at: str, pc: Label) -> StepLabels | None:
        if self._door is None:
            return None
        source, instruction = self._pure.label(step.source, frame, pc), self._pure.label(step.instruction, frame, pc)
        shades = {"source": source, "instruction": instruction}
        return StepLabels(shades, pc, lambda _: labels_after_extract(source, instruction, at, pc))

    async def _each(self, each: Each, frame: VariableFrame, at: str, flow: ControlFlow) -> None:
        if not self._footprints.waits(each.steps):
            items = self._pure.loop_items(each, frame, at)
            leave = self._pure.after_local_loop(each, frame, flow)
            # Others may look at the variables meanwhile: nobody knows what will have become of them.
            self._where.loops[at] = RunningLoop([], NOTHING, flow, concurrent=True)
            await self._pure.run_turns(each, items, frame, at)
            del self._where.loops[at]
            leave()
            return
        over = self._pure.label(each.over, frame, flow.pc)
        inside = ControlFlow(pc_inside(flow.pc, over, self._mode))
        items, turns = self._pure.loop_items(each, frame, at), self._footprints.turns(each)
        apart = turns.may_overlap and frame.can_merge(turns.added)
        turning = self._where.loops[at] = RunningLoop(items, over, inside, apart)
        if apart:
            await self._overlapping_turns(each, turning, frame, at)
        else:
            for turn, item in enumerate(items):
                turning.turns_begun = turn + 1
                self._pure.bind_item(each, item, frame, at)
                frame.labels.update(self._pure.turn_names(each, over, inside))
                await self._block(each.steps, frame, f"{at}[{turn}]/", inside)
                if self._pure.has_answer:
                    return
        del self._where.loops[at]
        self._note_written(self._pure.leave_branch(each, frame, flow, inside))

    async def _overlapping_turns(self, each: Each, turning: RunningLoop, frame: VariableFrame, at: str) -> None:
        items, over, inside = turning.items, turning.item_labels, turning.flow
        found, shades = frame.snapshot()
        shades |= self._pure.turn_names(each, over, inside)
        ended: dict[int, VariableFrame] = {}
        merged = 0

        async def one(turn: int) -> None:
            nonlocal merged
            own = VariableFrame(found | {RUN_WORK_KEY: found[RUN_WORK_KEY].fork()}, dict(shades), logged=True)
            turning.turns_begun = max(turning.turns_begun, turn + 1)
            self._pure.bind_item(each, items[turn], own, at)
            # Turns that may overlap cannot end the run, so that the control flow is the same in all of them.
            await self._block(each.steps, own, f"{at}[{turn}]/", ControlFlow(inside.pc))
            ended[turn] = own
            while merged in ended:
                done = ended.pop(merged)
                merged += 1
                self._merge(done, frame, at)

        await run_concurrently(JobOrder.unordered(len(items)), one, width=MAX_CONCURRENT_TURNS)

    def _merge(self, turn: VariableFrame, frame: VariableFrame, at: str) -> None:
        try:
            frame.merge(turn)
        except BicameralError as error:
            raise add_step_to_error(error, at) from None


def _work_counter(caps: Limits) -> RunWork:
    """What counts the work of one attempt."""
    limit = caps.work or RUN_LIMITS.work or 0
    return RunWork(limit, lambda: LimitReached(RUN, "work", limit, limit))

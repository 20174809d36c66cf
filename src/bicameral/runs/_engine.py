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
    static_path,
)
from bicameral.policy import Mode
from bicameral.runs._call_gate import CallGate, CallPath
from bicameral.runs._call_policy import ASSUMED_ACTIONABLE, ActionableText, Decider, Grant, StepLabels
from bicameral.runs._citations import Citation
from bicameral.runs._doubts import Doubt, find_resting_steps, merge_doubts
from bicameral.runs._effects import EffectHandler
from bicameral.runs._inputs import StartState
from bicameral.runs._local_steps import ControlFlow, LocalSteps
from bicameral.runs._lookahead import FutureCallVisitor, Lookahead, RunningBlock, RunningLoop, RunPosition, copy_frame
from bicameral.runs._lookups import Lookups
from bicameral.runs._observability import record_step_result, step_span
from bicameral.runs._replacing import ReplaceRule
from bicameral.runs._scheduler import Footprints, Job, JobOrder, run_concurrently
from bicameral.runs._variables import VariableFrame, add_step_to_error
from bicameral.tools import Registry

MAX_CONCURRENT_TURNS = 16
MAX_CONCURRENT_STEPS = 64

StepResult = tuple[Any, LabelTree | None]
"""The result of a step, with its labels; None if labels are off."""


class PlanEngine:
    """Runs one plan once. All effects go through its `handler`.

    The answer, the failure and the effects are those of a sequential run of the plan's steps; only the time differs.

    Args:
        plan: The plan, checked.
        registry: Its tools.
        handler: Performs the effects.
        decider: Decides about every call. Values then have labels, computed by the functions that the proof uses too.
            Without one labels are off and every call is made: that is for measuring.
        start: The variables and labels that the run starts with.
        caps: The engine enforces the one on work.
        ahead: Whether a question also covers future calls that are known already.
        may_ask: The steps that the proof could not prove. If all their calls are known before the first step, the
            question is asked then.
        before: Called before the first step.
        after: Called when the plan has its answer; what it raises fails the run.
        grants: What a person granted for the whole run.
        assembled: By step, the arguments that a model's plan assembles, as the proof knows them.
        doubts: What planning was not sure of.
        replacing: Asks before files are replaced; None if that needs no question.
        root: What the names of its steps begin with, where the plan is a part of another run.
        through: Makes the way of its calls to the gate, such as one with further checks.
    """

    def __init__(
        self,
        plan: Plan,
        registry: Registry,
        handler: EffectHandler,
        decider: Decider | None = None,
        start: StartState | None = None,
        *,
        caps: Limits | None = None,
        ahead: bool = False,
        may_ask: frozenset[str] = frozenset(),
        before: Callable[[], Awaitable[None]] | None = None,
        after: Callable[[], None] | None = None,
        grants: Sequence[Grant] = (),
        assembled: Mapping[str, frozenset[str]] | None = None,
        doubts: Sequence[Doubt] = (),
        replacing: ReplaceRule | None = None,
        root: str = "",
        through: Callable[[CallGate], CallPath] | None = None,
    ) -> None:
        self._plan = plan
        self._root = root
        self._given_doubts = tuple(doubts)
        self._start = start or StartState()
        self._registry = registry
        self._handler = handler
        self._decider = decider
        look = self._visit_future_calls if ahead else None
        # As the gate looks them up: by the names of steps in the run, without the turns of loops.
        named = {static_path(f"{root}{step}"): names for step, names in (assembled or {}).items()}
        options: dict[str, Any] = {"grants": grants, "assembled": named, "replacing": replacing}
        self._gate = (
            None if decider is None else CallGate(decider, handler, self._actionable_text(plan), ahead=look, **options)
        )
        self._calls: CallPath | None = self._gate if self._gate is None or through is None else through(self._gate)
        self._mode: Mode = "strict" if decider is None else decider.mode
        self._given = author_label(self._start.read, self._mode)
        self.written_labels: dict[str, LabelTree] = dict(self._start.written)
        """The labels of the places that were, or may have been, written to."""
        self._footprints = Footprints(registry)
        self._local = LocalSteps(
            self._footprints, self._mode, labelled=decider is not None, selections=handler.selections, given=self._given
        )
        self._position = RunPosition()
        self._may_ask = may_ask
        self._before = before
        self._after = after
        self._caps = caps or RUN_LIMITS
        # Only leaf steps take a slot, never a loop: nested loops could otherwise wait for each other forever.
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_STEPS)

    async def run(self) -> Any:
        """The plan's answer; a BicameralError says which step failed and why."""
        start = self._start
        values = start.values | {RUN_WORK_KEY: _work_counter(self._caps)}
        frame = VariableFrame(values, {} if self._gate is None else start.labels)
        flow = ControlFlow(start.read)
        if self._before is not None:
            await self._before()
        if self._gate is not None and self._may_ask:
            self._position.blocks[self._root] = RunningBlock(self._plan.steps, frame, flow)
            await self._gate.ask_before_start(self._may_ask)
        await self._block(self._plan.steps, frame, self._root, flow)
        if not self._local.has_answer:
            raise RunError("run.no-answer", "the plan ended without an answer")
        if self._gate is not None:
            await self._gate.flush()
        if self._after is not None:
            self._after()
        return self._local.answer

    @property
    def answer_labels(self) -> LabelTree | None:
        """The labels of the answer; None if labels are off."""
        return self._local.answer_labels

    @property
    def answered_at(self) -> str:
        """The path of the step that gave the answer; empty as long as there is none."""
        return self._local.answered_at

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """The doubts so far, about that on which the answer or an effect rests."""
        log, cited = self._handler.selections, self._handler.citations
        if not self._given_doubts and not log.has_doubts and cited.is_empty:
            # The data flow of a plan without doubts need not be known.
            return ()
        resting = find_resting_steps(self._plan, self._registry)
        return merge_doubts(self._given_doubts, (*log.find_doubts(resting), *cited.find_doubts(resting)), resting)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Where that on which the answer or an effect rests was found."""
        cited = self._handler.citations
        if cited.is_empty:
            return ()
        answer = self._local.answer if self._local.has_answer else None
        return cited.citations(find_resting_steps(self._plan, self._registry), answer)

    def _visit_future_calls(self, visit: FutureCallVisitor) -> tuple[set[str], set[str]]:
        """Visit the future calls that are known; returns the steps whose calls are known, and the others."""
        look = Lookahead(self._registry, self._footprints, self._local, self._mode, self._given, self._position, visit)
        whole = self._position.blocks.get(self._root)
        if whole is not None and not self._local.has_answer:
            look.visit_block(whole.steps, copy_frame(whole.frame, look.work), self._root, whole.flow)
        return look.known, look.unknown

    async def _block(self, steps: Sequence[Step], frame: VariableFrame, at: str, flow: ControlFlow) -> None:
        block = self._position.blocks[at] = RunningBlock(steps, frame, flow)
        if len(steps) > 1 and self._footprints.waits(steps):
            order = self._footprints.order(steps)
            activity = self._handler.activity
            await run_concurrently(order, lambda number: self._start_step(block, number, at), activity)
        else:
            for number in range(len(steps)):
                if (job := self._start_step(block, number, at)) is not None:
                    await job
        del self._position.blocks[at]

    def _start_step(self, block: RunningBlock, number: int, at: str) -> Job | None:
        """Do a local step at once; for any other step return the job to wait for."""
        step = block.steps[number]
        if self._local.has_answer:
            return None
        if isinstance(step, Each) or self._footprints.of(step).waits:
            return self._run_job(block, number, at)
        self._local.run_step(step, block.frame, f"{at}{number}", block.flow)
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
                inside = self._local.branch_flow(step.condition, frame, flow)
                branch, side = self._local.choose_branch(step, frame, at, flow.pc)
                await self._block(branch, frame, f"{at}/{side}/", inside)
                self._note_written(self._local.leave_branch(step, frame, flow, inside))
            case Call() | Extract() | Ask():
                async with self._slots:
                    with step_span(step, at) as trace:
                        try:
                            result = await self._run_effect(step, frame, at, flow.pc)
                        except BicameralError as error:
                            raise add_step_to_error(error, at) from error.__cause__
                        record_step_result(trace, result)
                # A call that is held for approval has no result, and nothing in the plan reads it.
                if step.name is not None and result is not None:
                    frame.bind(step.name, *result)
            case _:
                self._local.run_step(step, frame, at, flow)

    async def _run_effect(
        self, step: Call | Extract | Ask, frame: VariableFrame, at: str, pc: Label
    ) -> StepResult | None:
        match step:
            case Call():
                return await self._call(step, frame, at, pc)
            case Extract():
                source = self._local.evaluate(step.source, frame, at, pc)
                instruction = self._local.evaluate(step.instruction, frame, at, pc)
                labels = self._extract_labels(step, frame, at, pc)
                lookups = await self._lookups(frame, at, pc, labels)
                value = await self._handler.extract(at, source, str(instruction), step.result_type, labels, lookups)
            case Ask():
                question, labels = str(self._local.evaluate(step.question, frame, at, pc)), None
                if self._gate is not None:
                    # A person is asked after all changes that come before, as in a sequential run.
                    await self._gate.flush()
                    asked = self._local.label(step.question, frame, pc)
                    labels = StepLabels({"question": asked}, pc, lambda _: labels_after_ask(asked, at, pc))
                value = await self._handler.ask(at, question, step.result_type, labels)
        return value, None if labels is None else labels.result_labels(value)

    async def _call(self, step: Call, frame: VariableFrame, at: str, pc: Label) -> StepResult | None:
        tool = self._registry[step.tool]
        evaluate = self._local.evaluate_by_columns if tool.columnar else self._local.evaluate
        arguments = {name: evaluate(argument, frame, at, pc) for name, argument in step.args.items()}
        if self._calls is None:
            return await self._handler.call(at, tool, tool.bind(arguments)), None
        # Without the control flow, which policy gets as a fact of its own: joined into the arguments it would hide
        # where a value itself comes from.
        labels = {name: self._local.label(argument, frame, self._given) for name, argument in step.args.items()}
        return await self._calls.make_call(
            at, tool, arguments, labels, pc, frame.labels, self._note_written, needed=step.name in self._names_read
        )

    def _note_written(self, places: dict[str, LabelTree]) -> None:
        """Keep the labels of written places for a run that continues from this one."""
        known = self.written_labels
        for place, tree in places.items():
            known[place] = join_trees(known[place], tree) if place in known else tree

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
        if self._gate is None:
            return None
        source, instruction = self._local.label(step.source, frame, pc), self._local.label(step.instruction, frame, pc)
        labels = {"source": source, "instruction": instruction}
        return StepLabels(labels, pc, lambda _: labels_after_extract(source, instruction, at, pc))

    async def _lookups(self, frame: VariableFrame, at: str, pc: Label, labels: StepLabels | None) -> Lookups | None:
        """What the executor may look up at a step; None if nothing. Without labels it looks nothing up."""
        tools, gate, decider = self._registry.executor_tools, self._gate, self._decider
        if not tools or gate is None or decider is None or labels is None:
            return None
        await gate.flush_changes()
        return Lookups(at, tools, labels.result_labels(None).flat, frame.labels, pc, decider, labels)

    async def _each(self, each: Each, frame: VariableFrame, at: str, flow: ControlFlow) -> None:
        if not self._footprints.waits(each.steps):
            items = self._local.loop_items(each, frame, at, flow.pc)
            leave = self._local.after_local_loop(each, frame, flow, at)
            # A lookahead of a concurrent step must not read the variables that this loop is changing.
            self._position.loops[at] = RunningLoop([], NOTHING, flow, concurrent=True)
            with self._handler.activity.running():
                await self._local.run_turns(each, items, frame, at)
            del self._position.loops[at]
            leave()
            return
        over = self._local.label(each.over, frame, flow.pc)
        inside = ControlFlow(pc_inside(flow.pc, over, self._mode))
        items, turns = self._local.loop_items(each, frame, at, flow.pc), self._footprints.turns(each)
        concurrent = turns.may_overlap and frame.can_merge(turns.added)
        loop = self._position.loops[at] = RunningLoop(items, over, inside, concurrent)
        if concurrent:
            await self._overlapping_turns(each, loop, frame, at)
        else:
            for turn, item in enumerate(items):
                loop.turns_begun = turn + 1
                self._local.bind_item(each, item, frame, at)
                frame.labels.update(self._local.turn_names(each, over, inside))
                await self._block(each.steps, frame, f"{at}[{turn}]/", inside)
                if self._local.has_answer:
                    return
        del self._position.loops[at]
        self._note_written(self._local.leave_branch(each, frame, flow, inside))

    async def _overlapping_turns(self, each: Each, loop: RunningLoop, frame: VariableFrame, at: str) -> None:
        items, over, inside = loop.items, loop.item_labels, loop.flow
        values, labels = frame.snapshot()
        labels |= self._local.turn_names(each, over, inside)
        ended: dict[int, VariableFrame] = {}
        merged = 0

        async def run_turn(turn: int) -> None:
            nonlocal merged
            own = VariableFrame(values | {RUN_WORK_KEY: values[RUN_WORK_KEY].fork()}, dict(labels), logged=True)
            loop.turns_begun = max(loop.turns_begun, turn + 1)
            self._local.bind_item(each, items[turn], own, at)
            # Turns that may overlap cannot end the run, so the control flow is the same in all of them.
            await self._block(each.steps, own, f"{at}[{turn}]/", ControlFlow(inside.pc))
            ended[turn] = own
            # In the order of the turns, as a sequential run would have changed the variables.
            while merged in ended:
                done = ended.pop(merged)
                merged += 1
                self._merge(done, frame, at)

        order = JobOrder.unordered(len(items))
        await run_concurrently(order, run_turn, self._handler.activity, width=MAX_CONCURRENT_TURNS)

    def _merge(self, turn: VariableFrame, frame: VariableFrame, at: str) -> None:
        try:
            frame.merge(turn)
        except BicameralError as error:
            raise add_step_to_error(error, at) from None


def _work_counter(caps: Limits) -> RunWork:
    """What counts the work of one attempt."""
    limit = caps.work or RUN_LIMITS.work or 0
    return RunWork(limit, lambda: LimitReached(RUN, "work", limit, limit))

"""Plans inside of a pattern: a request of trusted text is compiled, checked and run as a part of the pattern's run.

The plan that was written is recorded like the reply of a model, and its steps are steps of the run, at the place that
asked for it: a replay and a resumed run have both from the record.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bicameral.boundary import HandleContent
from bicameral.errors import BicameralError, BindError, LabelError, PlanError, RunError
from bicameral.journal import dumps
from bicameral.labels import (
    NOTHING,
    TRUSTED_USER,
    UNKNOWN,
    Label,
    Labelled,
    LabelTree,
    join,
    join_all,
    make_labelled,
    open_labelled,
    vouched_value,
)
from bicameral.limits import QUARANTINED_ROLES, collect_charges
from bicameral.models import ModelReply, Usage
from bicameral.patterns._conversation import FINAL_CODES, join_written_labels
from bicameral.patterns._outcome import ModelCallEvent, ToolCallEvent
from bicameral.patterns.kernel._guards import GuardedCallGate
from bicameral.patterns.kernel._state import ContextState, PlanServices
from bicameral.plans import Plan, labels_after_call, step_time_limits
from bicameral.runs import (
    CallGate,
    CallPath,
    Doubt,
    ModelAnswer,
    PlanEngine,
    RecordedEffectHandler,
    ReplaceRule,
    StartState,
    label_tree_json,
    recheck,
)
from bicameral.telemetry import span
from bicameral.tools import Tool
from bicameral.types import Type, mismatch, to_plain, type_to_json

if TYPE_CHECKING:
    from bicameral.planning import Intent

PLANNER = "planner"
"""Who writes plans, in the trace and in the record."""


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Values that a plan may use and its planner does not read: they are read once the plan is written.

    So nothing that was read decides whether a planner is asked, or what.

    Args:
        types: Their types, by the names of variables. The planner reads both, so they are the program's own.
        label: The label of the texts that they are read from; the plan is checked with it.
        read: Returns the values.
    """

    types: Mapping[str, Type]
    label: Label
    read: Callable[[], Awaitable[Mapping[str, Labelled[Any]]]]

    def __post_init__(self) -> None:
        for name, type_ in self.types.items():
            # Untrusted text must not come to the planner as the name of a variable or of a field.
            vouched_value([name, type_to_json(type_)])
            if not name.isidentifier():
                raise RunError("pattern.bad-input", "a variable of a plan has no name", expected="an identifier")

    def announced(self) -> dict[str, HandleContent]:
        """The variables before there are values: what the plan is written and checked with."""
        label = join(self.label, UNKNOWN)
        return {name: HandleContent(None, type_, label) for name, type_ in self.types.items()}

    async def variables(self) -> dict[str, HandleContent]:
        """The variables with their values."""
        values = await self.read()
        found: dict[str, HandleContent] = {}
        for name, type_ in self.types.items():
            if name not in values or mismatch(open_labelled(values[name]), type_) is not None:
                raise RunError("pattern.bad-input", f"{name} is not of its type", expected=str(type_))
            found[name] = HandleContent(to_plain(open_labelled(values[name])), type_, values[name].label_tree)
        return found


class Plans(ContextState):
    """What a context does with checked plans."""

    __slots__ = ()

    async def plan(self, request: Labelled[str], inputs: PlanInputs | None = None) -> Labelled[Any]:
        """The answer of a checked plan for a request, planned and run with the tools that can be called here.

        The request must be trusted, and so must be everything that was opened here: a plan comes from trusted text
        alone. Policy checks the plan before it runs, and every call while it runs, with the guards of this context.
        What a request leaves open is an error: nobody is asked before there is a plan.

        Args:
            request: What is wanted.
            inputs: Values that the plan may use, whose names and types alone the planner reads.

        Example:
            >>> lines = await context.plan(program_text("Count the lines of notes.txt"))
        """
        self.life.require()
        label = join_all((TRUSTED_USER, self.read_label, request.label))
        if not label.trusted:
            raise LabelError(
                "labels.untrusted-plan",
                "untrusted text would decide which plan is written",
                expected="a request of trusted text, in a context that has opened none but trusted values",
                fix="Ask for the plan before anything untrusted is read, and give it what was read as the result.",
            )
        step = self.step_name("plan")
        start = StartState({} if inputs is None else inputs.announced(), dict(self.shared.places), label)
        with span("part", step, {"bicameral.step": step}):
            written = await self._write_plan(request, label, step, start)
            for doubt in written.doubts:
                self.note("plan-doubt", code=doubt.code)
            if inputs is not None:
                start = replace(start, variables=await inputs.variables())
            return await self._run_plan(written, step, start)

    async def _write_plan(self, request: Labelled[str], label: Label, step: str, start: StartState) -> _WrittenPlan:
        """The plan for a request, from the planner or from the record."""
        services, registry = self._plan_services, self.registry
        text = open_labelled(request)
        told: list[Any] = [text, {tool.name: tool.fingerprint for tool in registry}]
        if start.variables:
            told.append({name: type_to_json(each) for name, each in start.types.items()})
        facts: dict[str, Any] = {
            "asked": PLANNER,
            "at": self.path,
            "role": "planning",
            "chamber": "privileged",
            "trusted": True,
            "shade": label_tree_json(label),
            "prompt": hashlib.sha256(dumps(told).encode()).hexdigest(),
        }

        async def write() -> ModelAnswer:
            if services.planner is None:
                raise _no_planner_error()
            started = time.perf_counter()
            with collect_charges() as charges:
                planned = await services.planner.plan_request(make_labelled(text, label), registry, start)
            basis = replace(planned.checked.basis, registry=registry, policy=services.policy, start=start)
            checked = recheck(planned.checked, basis)
            checked.require()
            if checked.basis.intent is None:
                raise _no_planner_error()
            found = _WrittenPlan(checked.plan, checked.basis.intent, planned.doubts)
            spent = Usage(sum(each.usage.prompt for each in charges), 0, sum(each.usage.output for each in charges))
            reply = ModelReply(
                json.dumps(found.to_json()), usage=spent, seconds=time.perf_counter() - started, model=PLANNER
            )
            return ModelAnswer(reply, PLANNER, tuple(charges))

        try:
            answer = await self.shared.handler.ask_model(step, facts, write)
        except BindError:
            # What the words were to be bound to is text of the world, and the error may name it.
            self.read_label = join_all((self.read_label, label, UNKNOWN))
            raise
        except BicameralError:
            self.read_label = join(self.read_label, label)
            raise
        for charge in answer.charges:
            chamber = "quarantined" if charge.role in QUARANTINED_ROLES else "privileged"
            self.shared.trace.append(
                ModelCallEvent(self.path, PLANNER, chamber, charge.model, label, charge.usage, charge.seconds)
            )
        return _WrittenPlan.from_json(json.loads(answer.reply.text))

    async def _run_plan(self, written: _WrittenPlan, step: str, start: StartState) -> Labelled[Any]:
        services, shared, root = self._plan_services, self.shared, f"{step}/"
        plan, request = written.plan, written.intent.request
        shared.handler.limit_steps({f"{root}{path}": most for path, most in step_time_limits(plan).items()})
        assembled = start.assembled_values(plan, self.registry, request, services.policy.me)
        # A replay decides as recorded.
        asks = not isinstance(shared.handler, RecordedEffectHandler)
        touched = shared.handler.changes.touched
        calls: list[_PlanCalls] = []

        def through(gate: CallGate) -> _PlanCalls:
            calls.append(_PlanCalls(self, GuardedCallGate(self, gate)))
            return calls[0]

        engine = PlanEngine(
            plan,
            self.registry,
            shared.handler,
            services.decider,
            start,
            caps=services.caps,
            assembled=assembled.calls,
            replacing=ReplaceRule.for_request(request, plan, self.registry, touched) if asks else None,
            root=root,
            through=through,
        )
        try:
            answer = await engine.run()
        except BicameralError:
            # What the plan had read may have decided how it failed.
            self.read_label = join_all((self.read_label, *(each.seen for each in calls)))
            raise
        finally:
            join_written_labels(shared.places, engine.written_labels)
            join_written_labels(shared.written_labels, engine.written_labels)
        # Without labels nobody trusts it.
        return make_labelled(answer, engine.answer_labels or UNKNOWN).with_label(start.read)

    @property
    def _plan_services(self) -> PlanServices:
        if self.shared.plans is None:
            raise _no_planner_error()
        return self.shared.plans


@dataclass(frozen=True, slots=True)
class _WrittenPlan:
    """A plan, what it was written for, and what is not sure about it."""

    plan: Plan
    intent: Intent
    doubts: tuple[Doubt, ...]

    def to_json(self) -> dict[str, Any]:
        doubts = [doubt.to_json() for doubt in self.doubts]
        return {"plan": self.plan.to_json(), "intent": self.intent.to_json(), "doubts": doubts}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> _WrittenPlan:
        # Here, since most patterns plan nothing, and planning takes long to load.
        from bicameral.planning import Intent

        doubts = tuple(map(Doubt.from_json, facts["doubts"]))
        return cls(Plan.model_validate_json(facts["plan"]), Intent.model_validate_json(facts["intent"]), doubts)


class _PlanCalls:
    """The way of a plan's calls to its gate: counted for the limits of the context, and noted in the trace."""

    def __init__(self, context: ContextState, calls: CallPath) -> None:
        self._context = context
        self._calls = calls
        self.seen: Label = NOTHING
        """The join of the labels of everything that was given to calls, or came from them."""

    @property
    def failure(self) -> BaseException | None:
        return self._calls.failure

    async def make_call(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        trees: Mapping[str, LabelTree],
        pc: Label,
        places: dict[str, LabelTree],
        note: Callable[[dict[str, LabelTree]], None],
        *,
        needed: bool,
    ) -> tuple[Any, LabelTree] | None:
        context, begun = self._context, time.perf_counter()
        context.meter.count_tool_call()
        label = join_all((pc, *(tree.flat for tree in trees.values())))
        self.seen = join(self.seen, label)
        try:
            given = await self._calls.make_call(step, tool, arguments, trees, pc, places, note, needed=needed)
        except BicameralError as error:
            if error.code not in ("policy.denied", *FINAL_CODES):
                # The source of a result may decide whether the tool returns anything at all.
                label = join(label, labels_after_call(tool, trees, None, step, pc).flat)
            self._note(tool, label, begun, error.code)
            raise
        self._note(tool, label if given is None else given[1].flat, begun)
        return given

    def _note(self, tool: Tool, label: Label, begun: float, failed: str | None = None) -> None:
        self.seen = join(self.seen, label)
        event = ToolCallEvent(self._context.path, tool.name, label, time.perf_counter() - begun, failed)
        self._context.shared.trace.append(event)


def _no_planner_error() -> PlanError:
    return PlanError("pattern.no-planner", "there is no planner in this runtime", fix="Use that of `Agent.runtime()`.")

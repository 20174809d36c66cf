"""Strategies: native ReAct, plan-and-execute and SPAR, each phase with its own model, with a label on every message.

A request comes in; a conversation with models that may ask for tools goes on until there is an answer; out comes
`Answered`, `Exhausted` or `GaveUp`. The conversation has the join of the labels of all that is in it. After untrusted
text the privileged model goes on with typed views of the results, and the quarantined model fills typed blanks; where
that model chooses calls itself, each of them is judged as untrusted. It is a run like any other, with its record, its
approvals and its end, and can be replayed from the record without asking anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bicameral.boundary import Executor, Extractor
from bicameral.errors import BicameralError, JournalError
from bicameral.labels import (
    TRUSTED_USER,
    Labelled,
    LabelTree,
    label_tree_from_json,
    make_labelled,
    open_labelled,
    vouched_value,
)
from bicameral.limits import RUN_LIMITS, STRATEGY, STRATEGY_LIMITS, Limits, LimitUsage, Meter
from bicameral.models import Chamber, ModelReply, ModelRequest
from bicameral.patterns._conversation import (
    ConversationObserver as ConversationObserver,
    LabelledMessage as LabelledMessage,
    ModelCalls as ModelCalls,
    ModelPair as ModelPair,
    RepeatCounter as RepeatCounter,
    ToolConversation as ToolConversation,
    prompt_fingerprint as prompt_fingerprint,
)
from bicameral.patterns._outcome import (
    Answered as Answered,
    Exhausted as Exhausted,
    GaveUp as GaveUp,
    Outcome as Outcome,
    outcome_of as outcome_of,
)
from bicameral.patterns._strategy_choice import (
    DEFAULT_STRATEGY as DEFAULT_STRATEGY,
    StrategyChoice as StrategyChoice,
    StrategyClassifier as StrategyClassifier,
    StrategyRule as StrategyRule,
    choose_by_words as choose_by_words,
)
from bicameral.patterns._strategy_loops import (
    SYSTEM_PROMPT,
    native_react as native_react,
    plan_and_execute as plan_and_execute,
    react_loop as react_loop,
    spar as spar,
)
from bicameral.patterns._strategy_types import (
    AUTO as AUTO,
    PHASE_ROLES as PHASE_ROLES,
    PHASES as PHASES,
    STRATEGIES as STRATEGIES,
    ModelTurn as ModelTurn,
    PhaseName as PhaseName,
    Reading as Reading,
    StrategyName as StrategyName,
    StrategyParams as StrategyParams,
    phase_role as phase_role,
    strategy_by_name as strategy_by_name,
)
from bicameral.patterns._tool_messages import (
    list_tools as list_tools,
    parse_arguments as parse_arguments,
    render_result as render_result,
    tool_schemas as tool_schemas,
)
from bicameral.patterns._typed_conversation import TypedConversation as TypedConversation, require_free_names
from bicameral.policy import Allowed, Ask, CallFacts
from bicameral.routing import call_context
from bicameral.runs import (
    ENGINE_VERSION,
    Approver,
    Asker,
    CallDecision,
    CallGate,
    Checked,
    Decider,
    Doubt,
    Finished,
    Grants,
    Journal,
    LiveEffectHandler,
    Observer,
    PolicyDecider,
    RecordedEffectHandler,
    ReplaceRule,
    Replayed,
    RunOutcome,
    ShouldLeave,
    StartState,
    Workload,
    label_tree_json,
    replay_workload,
    run_workload,
)
from bicameral.sessions import Chambers, Quarantined
from bicameral.telemetry import Fact
from bicameral.tools import CHANGING, Effect, Registry

if TYPE_CHECKING:
    from bicameral.policy import Policy


OPEN_READING = "the strategy is set to read openly: the reader sees the request and all tools"
UNTRUSTED_REQUEST = "the request itself carries untrusted text, so the privileged model may not read it"

StrategyFunction = Callable[[ToolConversation, StrategyParams], Awaitable[str]]
_STRATEGY_FUNCTIONS: Mapping[str, StrategyFunction] = {
    "native_react": native_react,
    "plan_and_execute": plan_and_execute,
    "spar": spar,
}


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """The result of a plan's check, with what is not sure about the plan."""

    checked: Checked
    doubts: tuple[Doubt, ...] = ()


class RequestPlanner(Protocol):
    """Writes plans for patterns: for a trusted request, over these tools, for a run that starts so."""

    async def plan_request(self, request: Labelled[str], registry: Registry, start: StartState) -> PlannedRequest: ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything that a strategy or a pattern needs besides the request.

    Args:
        bounds: What the strategy or pattern may take.
        audience: Observes the conversation; `observer` observes the steps of the run.
        careful: Whether a person is asked before every call that cannot be undone, also where policy allows it.
        caps: What the run may take, tools and models together.
        executor: Fills typed blanks in a strategy; by default with the quarantined model.
        asker: Answers questions.
        planner: Writes the plans of patterns that plan.
    """

    models: ModelPair
    registry: Registry
    policy: Policy
    bounds: Limits = STRATEGY_LIMITS
    journal: Journal | None = None
    approver: Approver | None = None
    observer: Observer | None = None
    audience: ConversationObserver = field(default_factory=ConversationObserver)
    careful: bool = False
    caps: Limits = RUN_LIMITS
    executor: Executor | None = None
    asker: Asker | None = None
    planner: RequestPlanner | None = None

    @property
    def extractor(self) -> Executor:
        """What fills typed blanks: the executor, or the quarantined model."""
        models = self.models
        plain = Extractor(models.chambers.quarantined, timeout=models.timeout, listener=models.listener)
        return self.executor or plain


async def run_strategy(
    request: str | Labelled[str], strategy: StrategyName, runtime: Runtime, *, choice: StrategyChoice | None = None
) -> Outcome[Any]:
    """Do what a request asks for. Stopping the task that awaits this gives a `GaveUp`; nothing that was done is lost.

    A request without a label is the user's own text. One with a label, such as the answer of an earlier outcome
    (`outcome.labelled`), keeps it: if untrusted text influenced it, the quarantined model works on it from the start.

    Calls are always judged strictly, whatever the mode: the model also chooses which tool is called, and there is no
    trusted plan whose control flow could be separated from its data.

    `choice` is recorded: why this strategy was chosen.
    """
    asked = vouched_value(request) if isinstance(request, str) else request
    outcome, work = await run_recorded(
        lambda decider, handler: StrategyRun(asked, strategy, runtime, decider, handler),
        lambda: (
            _run_facts(asked, strategy, runtime.models.params)
            | ({"strategy_choice": choice.to_json()} if choice is not None and choice.is_automatic else {})
        ),
        runtime,
        {"bicameral.strategy": strategy},
    )
    talk = None if work is None else work.conversation
    return outcome_of(
        outcome,
        limits=STRATEGY,
        subject="the work",
        way=strategy,
        taken=LimitUsage(scope=STRATEGY) if talk is None else talk.meter.usage,
        choice=choice,
        turns=() if talk is None else tuple(talk.turns),
        left_open=() if talk is None or not isinstance(outcome, Finished) else tuple(talk.left_open),
    )


W = TypeVar("W", bound=Workload)


async def run_recorded(
    make: Callable[[Decider, LiveEffectHandler], W],
    facts: Callable[[], dict[str, Any]],
    runtime: Runtime,
    told: Mapping[str, Fact],
    *,
    run: str | None = None,
    may_wait: bool = False,
    leaving: ShouldLeave | None = None,
) -> tuple[RunOutcome, W | None]:
    """Do work with models as a run with its record, whose first event has `facts`; None if no work was made.

    Calls of tools are judged strictly, whatever the mode.
    """
    decider = run_decider(runtime.policy, careful=runtime.careful)
    made: list[W] = []

    def make_work(handler: LiveEffectHandler) -> W:
        made.append(make(decider, handler))
        return made[0]

    outcome = await run_workload(
        make_work,
        lambda: (
            facts()
            | {
                "intent": None,
                "bounds": runtime.bounds.to_json(),
                "tools": {tool.name: tool.fingerprint for tool in runtime.registry},
                "policy": decider.fingerprint,
                "mode": decider.mode,
                "careful": runtime.careful,
                "caps": runtime.caps.to_json(),
                "engine": ENGINE_VERSION,
            }
        ),
        journal=runtime.journal,
        observer=runtime.observer,
        approver=runtime.approver,
        told=told,
        meter=Meter(runtime.caps),
        run=run,
        may_wait=may_wait,
        leaving=leaving,
        extractor=runtime.extractor,
        asker=runtime.asker,
    )
    return outcome, made[0] if made else None


def run_decider(policy: Policy, *, careful: bool, restored: bool = False) -> Decider:
    """The decider of a run without a plan; one that is `restored` may have made its next calls already."""
    if restored:
        return CarefulDecider(policy, CHANGING, "it may have been done already, and the record of that is damaged")
    return CarefulDecider(policy) if careful else PolicyDecider(policy, "strict")


class CarefulDecider(PolicyDecider):
    """Policy decides, and a person is also asked about what it allows if that cannot be undone.

    There is no plan that a person could have read and approved before.
    """

    def __init__(
        self,
        policy: Policy,
        effects: frozenset[Effect] = frozenset({"send", "irreversible"}),
        why: str = "it cannot be taken back",
    ) -> None:
        super().__init__(policy, "strict")
        self._effects = effects
        self._why = why

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        judged = super().decide(step, facts, values, grants)
        if isinstance(judged.decision, Allowed) and facts.effect in self._effects:
            return CallDecision(Ask(f"{facts.tool}: {self._why}. Shall it be done?"))
        return judged

    def allows(self, facts: CallFacts) -> bool:
        return super().allows(facts) and facts.effect not in self._effects


@dataclass(slots=True)
class StrategyRun:
    """The workload of one request."""

    request: Labelled[str]
    strategy: StrategyName
    runtime: Runtime
    decider: Decider
    handler: LiveEffectHandler | RecordedEffectHandler
    conversation: ToolConversation | None = None

    async def run(self) -> Any:
        runtime = self.runtime
        meter = Meter(runtime.bounds)
        gate = CallGate(self.decider, self.handler, replacing=self._replace_rule())
        self.conversation = self._start_conversation(gate, meter)
        self.conversation.system(SYSTEM_PROMPT)
        self.conversation.tell(open_labelled(self.request), self.request.label)
        # The routers of both chambers have a phase map for each strategy.
        with call_context(strategy=self.strategy):
            async with meter.running():
                return await _STRATEGY_FUNCTIONS[self.strategy](self.conversation, runtime.models.params)

    def _start_conversation(self, gate: CallGate, meter: Meter) -> ToolConversation:
        runtime, params = self.runtime, self.runtime.models.params
        parts = (runtime.models, gate, self.handler, runtime.registry, meter, runtime.audience)
        reason = OPEN_READING if self.request.label.trusted else UNTRUSTED_REQUEST
        if params.reading == "open" or not self.request.label.trusted:
            return ToolConversation(*parts, history=params.max_history, open_reason=reason)
        require_free_names(runtime.registry)
        return TypedConversation(
            *parts, history=params.max_history, reader=self.handler, may_open=params.reading == "as_needed"
        )

    def _replace_rule(self) -> ReplaceRule | None:
        if not isinstance(self.handler, LiveEffectHandler):
            # A replay decides as recorded.
            return None
        # Words that somebody else may have chosen do not say for the user that a file may be replaced.
        request = open_labelled(self.request) if self.request.label.trusted else ""
        return ReplaceRule.for_request(request, None, self.runtime.registry, self.handler.changes.touched)

    @property
    def answer_labels(self) -> LabelTree | None:
        return None if self.conversation is None else self.conversation.label

    @property
    def written_labels(self) -> Mapping[str, LabelTree]:
        return {} if self.conversation is None else self.conversation.written_labels


def _run_facts(request: Labelled[str], strategy: StrategyName, params: StrategyParams) -> dict[str, Any]:
    label = {} if request.label_tree is TRUSTED_USER else {"request_shade": label_tree_json(request.label_tree)}
    return label | {
        "request": open_labelled(request),
        "strategy": strategy,
        "params": {
            "max_step_iterations": params.max_step_iterations,
            "max_steps": params.max_steps,
            "reflect_every_step": params.reflect_every_step,
            "phase_models": dict(params.phase_models),
            **({"hints": list(params.hints)} if params.hints else {}),
            "reading": params.reading,
            "max_history": params.max_history,
            "reflect_looks": params.reflect_looks,
        },
    }


async def replay_conversation(
    journal: Journal, run: str, registry: Registry, policy: Policy, *, decide: bool = False
) -> Replayed:
    """Run a conversation again from the recorded replies of models, tools and people.

    Everything is decided as it was, unless the policy is to `decide` again.
    """
    events = journal.events(run)
    body = events[0].body
    try:
        strategy = strategy_by_name(str(body["strategy"]))
        # Time is not replayed: where it ran out, the record ends.
        # Conversations of earlier versions were continued by the quarantined model, and reflected without tools.
        params = StrategyParams(**({"reading": "open", "reflect_looks": 0} | body["params"]))
        bounds = replace(Limits.from_json(body["bounds"], STRATEGY), seconds=3600.0)
        tree = label_tree_from_json(body["request_shade"]) if "request_shade" in body else TRUSTED_USER
        request = make_labelled(str(body["request"]), tree)
    except (BicameralError, KeyError, TypeError) as error:
        raise JournalError("journal.damaged", f"{journal.path}: run {run} cannot be read: {error}") from None
    runtime = Runtime(unasked_models(params), registry, policy, bounds)

    def make(handler: RecordedEffectHandler, decider: Decider) -> StrategyRun:
        return StrategyRun(request, strategy, runtime, decider, handler)

    return await replay_workload(events, journal, registry, make, policy if decide else None)


def is_conversation(journal: Journal, run: str) -> bool:
    """Whether a recorded run is a conversation."""
    first = journal.events(run)[0]
    return first.kind == "run-started" and "strategy" in first.body


def unasked_models(params: StrategyParams | None = None) -> ModelPair:
    """Models for a replay, whose replies come from the record: nobody is asked."""
    sides = Chambers(_UnaskedModel("privileged"), Quarantined(_UnaskedModel("quarantined")))
    return ModelPair(sides, params or StrategyParams())


class _UnaskedModel:
    """A model of a replay."""

    grammars = True
    adapters: Mapping[str, str] = MappingProxyType({})

    def __init__(self, chamber: Chamber) -> None:
        self.name = f"recorded:{chamber}"
        self.chamber: Chamber | None = chamber

    async def generate(self, request: ModelRequest) -> ModelReply:
        raise JournalError("journal.not-recorded", "the record holds no further reply of a model")

    async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        raise JournalError("journal.not-recorded", "the record holds no further reply of a model")
        yield ""

    async def aclose(self) -> None: ...

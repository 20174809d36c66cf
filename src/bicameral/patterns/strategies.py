"""Strategies: native ReAct, plan-and-execute and SPAR, each phase with its own model, with a label on every message.

A request comes in; a conversation with models that may ask for tools goes on until there is an answer; out comes
`Answered`, `Exhausted` or `GaveUp`. The conversation has the join of the labels of all that is in it: once it has read
untrusted text, the quarantined model continues it, and every call it asks for is judged as untrusted. It is a run like
any other, with its record, its approvals and its end, and can be replayed from the record without asking anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

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
from bicameral.models import Chamber, ModelReply, ModelRequest, Route, ToolCall, Usage
from bicameral.patterns._conversation import (
    CallPath as CallPath,
    ConversationObserver as ConversationObserver,
    LabelledMessage as LabelledMessage,
    ModelCallRecorder as ModelCallRecorder,
    ModelPair as ModelPair,
    RepeatCounter as RepeatCounter,
    ToolConversation as ToolConversation,
    list_tools as list_tools,
    parse_arguments as parse_arguments,
    render_result as render_result,
    tool_schemas as tool_schemas,
)
from bicameral.patterns._outcome import (
    Answered as Answered,
    Exhausted as Exhausted,
    GaveUp as GaveUp,
    Outcome as Outcome,
    outcome_of as outcome_of,
)
from bicameral.patterns._strategy_loops import (
    SYSTEM_PROMPT,
    native_react as native_react,
    plan_and_execute as plan_and_execute,
    react_loop as react_loop,
    spar as spar,
)
from bicameral.patterns._strategy_types import (
    PHASE_ROLES as PHASE_ROLES,
    PHASES as PHASES,
    STRATEGIES as STRATEGIES,
    ModelTurn as ModelTurn,
    PhaseName as PhaseName,
    StrategyName as StrategyName,
    StrategyParams as StrategyParams,
    strategy_by_name as strategy_by_name,
)
from bicameral.policy import Allowed, Ask, CallFacts
from bicameral.runs import (
    Approver,
    CallDecision,
    CallGate,
    Decider,
    Event,
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
    Workload,
    label_tree_json,
    recorded_error,
    replay_workload,
    run_workload,
)
from bicameral.sessions import Chambers, Quarantined
from bicameral.telemetry import Fact
from bicameral.tools import Registry
from bicameral.types import value_from_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


StrategyFunction = Callable[[ToolConversation, StrategyParams], Awaitable[str]]
_STRATEGY_FUNCTIONS: Mapping[str, StrategyFunction] = {
    "native_react": native_react,
    "plan_and_execute": plan_and_execute,
    "spar": spar,
}


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything that a strategy or a pattern needs besides the request.

    Args:
        bounds: What the strategy or pattern may take.
        audience: Observes the conversation; `observer` observes the steps of the run.
        careful: Whether a person is asked before every call that cannot be undone, also where policy allows it.
        caps: What the run may take, tools and models together.
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


async def run_strategy(request: str | Labelled[str], strategy: StrategyName, runtime: Runtime) -> Outcome[Any]:
    """Do what a request asks for. Stopping the task that awaits this gives a `GaveUp`; nothing that was done is lost.

    A request without a label is the user's own text. One with a label, such as the answer of an earlier outcome
    (`outcome.labelled`), keeps it: if untrusted text influenced it, the quarantined model works on it from the start.

    Calls are always judged strictly, whatever the mode: the model also chooses which tool is called, and there is no
    trusted plan whose control flow could be separated from its data.
    """
    asked = vouched_value(request) if isinstance(request, str) else request
    outcome, work = await run_recorded(
        lambda decider, handler: StrategyRun(asked, strategy, runtime, decider, handler),
        lambda: _run_facts(asked, strategy, runtime.models.params),
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
        turns=() if talk is None else tuple(talk.turns),
        left_open=() if talk is None or not isinstance(outcome, Finished) else tuple(talk.left_open),
    )


W = TypeVar("W", bound=Workload)


async def run_recorded(
    make: Callable[[Decider, LiveEffectHandler], W],
    facts: Callable[[], dict[str, Any]],
    runtime: Runtime,
    told: Mapping[str, Fact],
) -> tuple[RunOutcome, W | None]:
    """Do work with models as a run with its record, whose first event has `facts`; None if no work was made.

    Calls of tools are judged strictly, whatever the mode.
    """
    decider = CarefulDecider(runtime.policy) if runtime.careful else PolicyDecider(runtime.policy, "strict")
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
            }
        ),
        journal=runtime.journal,
        observer=runtime.observer,
        approver=runtime.approver,
        told=told,
        meter=Meter(runtime.caps),
    )
    return outcome, made[0] if made else None


class CarefulDecider(PolicyDecider):
    """Policy decides, and a person is also asked about what it allows if that cannot be undone.

    There is no plan that a person could have read and approved before.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, "strict")

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        judged = super().decide(step, facts, values, grants)
        if isinstance(judged.decision, Allowed) and facts.effect in ("send", "irreversible"):
            return CallDecision(Ask(f"{facts.tool}: it cannot be taken back. Shall it be done?"))
        return judged

    def allows(self, facts: CallFacts) -> bool:
        return super().allows(facts) and facts.effect not in ("send", "irreversible")


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
        self.conversation = ToolConversation(
            runtime.models, gate, self.handler, runtime.registry, meter, runtime.audience
        )
        self.conversation.system(SYSTEM_PROMPT)
        self.conversation.tell(open_labelled(self.request), self.request.label)
        async with meter.running():
            return await _STRATEGY_FUNCTIONS[self.strategy](self.conversation, runtime.models.params)

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
        params = StrategyParams(**body["params"])
        bounds = replace(Limits.from_json(body["bounds"], STRATEGY), seconds=3600.0)
        tree = label_tree_from_json(body["request_shade"]) if "request_shade" in body else TRUSTED_USER
        request = make_labelled(str(body["request"]), tree)
    except (BicameralError, KeyError, TypeError) as error:
        raise JournalError("journal.damaged", f"{journal.path}: run {run} cannot be read: {error}") from None
    replies = _recorded_replies(events)
    models = ModelPair(
        Chambers(RecordedModel(replies, "privileged"), Quarantined(RecordedModel(replies, "quarantined"))), params
    )
    runtime = Runtime(models, registry, policy, bounds)

    def make(handler: RecordedEffectHandler, decider: Decider) -> StrategyRun:
        return StrategyRun(request, strategy, runtime, decider, handler)

    return await replay_workload(events, journal, registry, make, policy if decide else None)


def is_conversation(journal: Journal, run: str) -> bool:
    """Whether a recorded run is a conversation."""
    first = journal.events(run)[0]
    return first.kind == "run-started" and "strategy" in first.body


class RecordedModel:
    """A model that replays the replies of a record, for both chambers; after the last one it fails as the run did."""

    grammars = True
    adapters: Mapping[str, str] = MappingProxyType({})

    def __init__(self, replies: Iterator[ModelReply], chamber: Chamber) -> None:
        self.name = f"recorded:{chamber}"
        self.chamber: Chamber | None = chamber
        self._replies = replies

    async def generate(self, request: ModelRequest) -> ModelReply:
        return next(self._replies)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        yield next(self._replies).text

    async def aclose(self) -> None: ...


def _recorded_replies(events: list[Event]) -> Iterator[ModelReply]:
    for event in events:
        if event.kind == "model-called":
            yield _read_reply(event.body)
    last = events[-1]
    if last.kind == "run-failed":
        # A failure of a model, or a time-out while it is asked, has no event of its own.
        raise recorded_error(last.body["error"])
    raise JournalError("journal.not-recorded", "the record holds no further reply of a model")


def _read_reply(body: Mapping[str, Any]) -> ModelReply:
    route = body.get("route")
    calls = tuple(ToolCall(each["id"], each["name"], value_from_json(each["arguments"])) for each in body["calls"])
    return ModelReply(
        body["text"],
        "calls" if calls else "stop",
        Usage(body["prompt_tokens"], 0, body["output_tokens"]),
        body["seconds"],
        calls,
        body["model"],
        None if route is None else _read_route(route),
        body.get("degraded"),
    )


def _read_route(facts: Mapping[str, Any]) -> Route:
    attempts = tuple((str(alias), str(why)) for alias, why in facts.get("attempts", ()))
    return Route(facts["alias"], facts["by"], facts["why"], facts.get("rule"), attempts)

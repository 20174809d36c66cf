"""Where a value came from: its sources, the steps it went through, who may see it, and which policy judged its uses.

Everything here is from the journal: the labels that the run itself computed and the decisions that were made on them.
Nothing is asked of a policy that may have changed since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bicameral.console._plan_graph import PlanStep, StepGraph
from bicameral.console._run_progress import TURN, RunProgress
from bicameral.console._values import (
    ShownPart,
    TrustClass,
    part_at,
    read_labels,
    read_value,
    readers_text,
    shown_value,
    trust_of,
)
from bicameral.errors import ServerError
from bicameral.labels import Label, LabelTree, Source
from bicameral.policy import Policy
from bicameral.runs import Event
from bicameral.server.surface import HttpError

Side = Literal["input", "output", "answer"]
MAX_USES = 100

_RUNTIME_SOURCES = {
    "request": "the request",
    "ask": "a reply of the user",
    "extract": "the quarantined model, which read a text",
    "lookup": "something that the quarantined model looked up",
    "endorsed": "a value that a person endorsed",
}


@dataclass(frozen=True, slots=True)
class ShownSource:
    """One source of a value."""

    trust: TrustClass
    words: str
    part: str
    step: str
    """The path of the step that read it; empty if no step of this plan did."""


@dataclass(frozen=True, slots=True)
class PolicyUse:
    """A call that used a value, and what policy said of it."""

    step: str
    tool: str
    said: str
    why: str
    rules: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a value came from and what became of it.

    Args:
        value: The value.
        title: What it is, in words.
        trust: Whose it is.
        readers: Who may see it, in words.
        sources: What it was made of.
        through: The steps on the way from the sources to it, in the order of the plan.
        uses: The calls that rest on it, with what policy said of each.
        judged: What policy said of the call that it is an input or the output of.
        flow: The paths of all steps that are highlighted.
        known: Whether its label was recorded; one that was not counts as untrusted.
        uses_known: Whether no use means that nothing rests on it. A run without a plan records only where the inputs of
            calls came from.
        place_known: Whether the step that it belongs to is known; of a plan with several answers older records do not
            say which was reached.
    """

    value: ShownPart
    title: str
    trust: TrustClass
    readers: str
    sources: Sequence[ShownSource]
    through: Sequence[PlanStep]
    uses: Sequence[PolicyUse]
    judged: PolicyUse | None
    flow: Sequence[str]
    known: bool
    uses_known: bool
    place_known: bool


@dataclass(frozen=True, slots=True)
class RecordedValue:
    """A value of the journal with its labels, and the event of its step."""

    value: Any
    labels: LabelTree
    event: Event
    known: bool


def recorded_value(events: Sequence[Event], step: str, side: Side, name: str = "") -> RecordedValue:
    """An input, the output, or the answer; `console.unknown-value` if the journal has none."""
    for event in reversed(events):
        body = event.body
        shades: Mapping[str, Any] = body.get("shades") or {}
        if side == "answer" and event.kind == "run-finished":
            return _recorded(event, body.get("answer"), body.get("shade"))
        if event.step != step:
            continue
        if side == "output" and event.kind == "step-finished":
            return _recorded(event, body.get("result"), body.get("shade"))
        if side == "input" and event.kind in ("step-started", "call-waits", "call-denied"):
            inputs = step_inputs(body)
            if name in inputs:
                return _recorded(event, inputs[name], shades.get(name))
    raise unknown_value_error("the record of this run has no such value")


def unknown_value_error(message: str) -> HttpError:
    return HttpError(404, ServerError("console.unknown-value", message))


def _recorded(event: Event, value: object, labels: object) -> RecordedValue:
    return RecordedValue(read_value(value), read_labels(labels), event, labels is not None)


def step_inputs(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a step was given, by name: the arguments of a call, or the text and the words of a reading."""
    given: Mapping[str, Any] | None = body.get("arguments")
    if given is not None:
        return given
    return {name: body[name] for name in ("source", "instruction", "question") if name in body}


def find_provenance(
    progress: RunProgress,
    events: Sequence[Event],
    policy: Policy,
    step: str,
    side: Side,
    name: str = "",
    at: str = "",
) -> Provenance:
    """Where a value, or a part of it, came from.

    Args:
        progress: The run.
        events: Its journal.
        policy: The policies of now, for the words of a rule that the journal names.
        step: The path of the step with the turns of its loops; empty for the answer.
        side: Whether it is an input or the output of the step, or the answer of the run.
        name: The name of the input.
        at: The part of the value.
    """
    found = recorded_value(events, step, side, name)
    try:
        _, labels = part_at(found.value, found.labels, at)
    except (LookupError, TypeError):
        raise unknown_value_error("the value has no such part") from None
    label, path = labels.flat, TURN.sub("", step) if side != "answer" else _answer_path(progress, found.event)
    plan = _linked_steps(progress, events)
    graph, sources = StepGraph(plan), shown_sources(label, progress)
    origins = {source.step for source in sources if source.step}
    after = graph.after(path)
    on_the_way = (graph.before(path) & graph.after(*origins)) - {path}
    through = [each for each in plan if each.path in on_the_way - origins]
    # An input belongs to the call of its step, and an output to those that come after it.
    used_by = {path, *after} if side == "input" else after
    uses = _policy_uses(events, policy, used_by)
    place_known = bool(path) or progress.plan is None
    flow = {*origins, *on_the_way, path, *(use.step for use in uses)} if place_known else set[str]()
    return Provenance(
        shown_value(found.value, found.labels, at=at),
        _title(step, side, name, at),
        trust_of(label),
        readers_text(label),
        sources,
        through,
        [use for use in uses if use.step != path],
        next((use for use in _policy_uses(events, policy, {path})), None),
        [each.path for each in plan if each.path in flow],
        found.known,
        progress.plan is not None or side == "answer",
        place_known,
    )


def _linked_steps(progress: RunProgress, events: Sequence[Event]) -> list[PlanStep]:
    """The steps of a run with what each uses; in a run without a plan the labels of its inputs tell."""
    steps = [each.step for each in progress.steps.values()]
    if progress.plan is not None:
        return steps
    used: dict[str, set[str]] = {}
    for event in events:
        if event.kind in ("step-started", "call-waits", "call-denied"):
            used.setdefault(TURN.sub("", event.step), set()).update(_input_steps(event.body))
    return [replace(each, uses=tuple(sorted(used.get(each.path, set()) & progress.steps.keys()))) for each in steps]


def _input_steps(body: Mapping[str, Any]) -> set[str]:
    """The steps that what a call was given came from, and what decided that it is done at all."""
    shades: Mapping[str, Any] = body.get("shades") or {}
    written = [*shades.values(), body.get("control")]
    return {source.step for each in written if each is not None for source in read_labels(each).flat.sources}


def _title(step: str, side: Side, name: str, at: str) -> str:
    words = {"answer": "the answer", "output": f"the result of step {step}", "input": f"{name} of step {step}"}
    return f"{words[side]}, part {at.removeprefix('/')}" if at else words[side]


def _answer_path(progress: RunProgress, end: Event) -> str:
    """The step that answered; empty if that cannot be told.

    Of several answers in branches the record has said since `answered_at` which one was reached; before, none did.
    """
    at = TURN.sub("", str(end.body.get("answered_at") or ""))
    if at in progress.steps:
        return at
    answers = [path for path, each in progress.steps.items() if each.step.kind == "answer"]
    return answers[0] if len(answers) == 1 else ""


def shown_sources(label: Label, progress: RunProgress) -> list[ShownSource]:
    """The sources of a label, untrusted ones first."""
    found = [_shown_source(source, progress) for source in sorted(label.sources)]
    order: Mapping[TrustClass, int] = {"untrusted": 0, "user": 1, "system": 2, "plan": 3}
    return sorted(found, key=lambda each: (order[each.trust], each.step))


def _shown_source(source: Source, progress: RunProgress) -> ShownSource:
    words = _RUNTIME_SOURCES.get(source.tool, source.tool)
    step = source.step if source.step in progress.steps else ""
    return ShownSource(trust_of(Label((source,))), words, source.part, step)


def _policy_uses(events: Sequence[Event], policy: Policy, paths: set[str]) -> list[PolicyUse]:
    """What policy said of the calls at these steps; of the turns of a loop the strictest."""
    rules = {rule.id: rule for rule in policy.rules}
    weight = {"allowed": 0, "asked": 1, "denied": 2}
    found: dict[str, PolicyUse] = {}
    for event in events:
        path = TURN.sub("", event.step)
        if event.kind not in ("step-started", "call-waits", "call-denied") or path not in paths:
            continue
        decision: Mapping[str, Any] = event.body.get("decision") or {}
        if "said" not in decision:
            continue
        use = PolicyUse(
            path,
            str(event.body.get("tool", "")),
            str(decision["said"]),
            str(decision.get("why", "")),
            [{"id": str(id), "text": rules[id].text if id in rules else ""} for id in decision.get("rules", ())],
        )
        known = found.get(path)
        if known is None or weight.get(use.said, 2) > weight.get(known.said, 2):
            found[path] = use
    return list(found.values())[:MAX_USES]

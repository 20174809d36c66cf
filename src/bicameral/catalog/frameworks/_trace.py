"""The architecture behind a trace: which agents, tools, loops, branches and handoffs were seen in it.

A trace shows what happened and not what is possible. What spans say by themselves is seen; what rests on the name of a
tool or on the shape of the calls is inferred.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from bicameral.catalog.frameworks._recovery import (
    AgentDraft,
    ArchitectureDraft,
    Counts,
    RecoveredStack,
    is_judge_name,
    key_name,
    safe_name,
)
from bicameral.catalog.frameworks._spans import Span, TraceFile, read_trace_file
from bicameral.catalog.frameworks._tool_effects import effects_of_name

MAX_TOOLS = 200
_HANDOFF = re.compile(r"^(?:transfer_to_|handoff|hand_off|delegate_to_)", re.IGNORECASE)


@dataclass(slots=True)
class Invocation:
    """One run of an agent: its own calls in the order of their start, and the agents below it."""

    name: str
    span: Span
    named: bool
    calls: list[Span] = field(default_factory=list[Span])
    inner: list[Invocation] = field(default_factory=list["Invocation"])
    untrusted: Span | None = None
    """The call, its own or of an agent below it, that was the first to return untrusted text."""
    handoff: Span | None = None
    """The call with which an agent below it handed the conversation on."""

    def of_kind(self, *kinds: str) -> list[Span]:
        return [span for span in self.calls if span.kind in kinds]


def read_trace(path: Path | str) -> RecoveredStack:
    """The architecture that a trace file shows.

    Example:
        >>> recovered = read_trace("run.jsonl")
        >>> recovered.counts.model_calls
        7
    """
    file = Path(path)
    return recover_trace(read_trace_file(file), str(file))


def recover_trace(trace: TraceFile, file: str) -> RecoveredStack:
    """The architecture that these spans show."""
    draft = ArchitectureDraft(Path(file).stem, file, "trace")
    every, parents = _list_invocations(trace.spans)
    by_name: dict[str, list[Invocation]] = {}
    for each in every:
        if each.named or len(each.inner) > 1 or each.of_kind("model", "tool", "retrieval"):
            by_name.setdefault(each.name, []).append(each)
    for name, runs in by_name.items():
        agent = draft.agent(name, runs[0].span.place, f"{_times(len(runs), 'run')} in the trace", certain=runs[0].named)
        for run in runs:
            _describe_run(agent, run, parents.get(id(run)))
        _describe_tools(draft, agent, runs)
        # The trace itself is the record.
        agent.use("V14", runs[0].span.place, "the run was traced")
        agent.visible.add("V14")
    for place in trace.unreadable:
        draft.miss(place, "this is no JSON, and is left out")
    spans = [span for root in trace.spans for span in root.walk()]
    draft.counts = _add_up(spans)
    if not any(span.kind in ("model", "tool", "agent") for span in spans):
        draft.agents.clear()
    return draft.build()


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _add_up(spans: Sequence[Span]) -> Counts:
    calls = [span for span in spans if span.kind == "model"]
    return Counts(
        spans=len(spans),
        model_calls=len(calls),
        tool_calls=sum(span.kind == "tool" for span in spans),
        failed_calls=sum(span.failed for span in spans if span.kind in ("model", "tool")),
        input_tokens=sum(span.input_tokens for span in calls),
        output_tokens=sum(span.output_tokens for span in calls),
    )


def _list_invocations(roots: Sequence[Span]) -> tuple[list[Invocation], dict[int, Invocation]]:
    """Every run of an agent, and for each one below another that other one."""
    every: list[Invocation] = []
    parents: dict[int, Invocation] = {}
    waiting = [_find_invocations(root) for root in reversed(roots)]
    while waiting:
        each = waiting.pop()
        every.append(each)
        waiting.extend(reversed(each.inner))
        parents.update((id(inner), each) for inner in each.inner)
    # From the innermost outwards: what an agent below has read reaches the one above in its result.
    for each in reversed(every):
        own = [span for span in each.of_kind("tool") if effects_of_name(span.subject).reads_untrusted]
        reads = [*own, *(inner.untrusted for inner in each.inner if inner.untrusted is not None)]
        each.untrusted = min(reads, key=lambda span: span.end, default=None)
        tools = (span for inner in each.inner for span in inner.of_kind("tool"))
        each.handoff = next((span for span in tools if _HANDOFF.search(span.subject)), None)
    return every, parents


def _find_invocations(root: Span) -> Invocation:
    """The runs of agents in a tree of spans; calls outside of every agent belong to a run of the root."""
    whole = Invocation(_root_name(root), root, root.kind == "agent")
    waiting: list[tuple[Span, Invocation, Span | None]] = [(root, whole, None)]
    while waiting:
        span, run, tool = waiting.pop()
        if span.kind == "agent" and span is not run.span:
            inner = Invocation(span.subject, span, True)
            run.inner.append(inner)
            run = inner
            if tool is not None:
                tool.delegates = True
        elif span.kind != "agent":
            run.calls.append(span)
        tool = span if span.kind == "tool" else None if span.kind == "agent" else tool
        waiting.extend((child, run, tool) for child in reversed(span.children))
    return whole


def _root_name(root: Span) -> str:
    return root.subject if root.kind in ("agent", "workflow") else root.name or "root"


def _describe_run(agent: AgentDraft, run: Invocation, above: Invocation | None) -> None:
    models, tools = run.of_kind("model"), run.of_kind("tool")
    if models and agent.model is None and models[0].model:
        agent.model = safe_name(models[0].model)
    if tools:
        agent.use("I2", tools[0].place, "a tool was called")
    if loop := _tool_loop(models, tools):
        agent.use(
            "R4", loop.place, f"the model was called again after a tool, {_times(len(models), 'call')} in one run"
        )
    for span in run.of_kind("retrieval"):
        agent.use("K1", span.place, "passages were retrieved")
    for span in tools:
        if span.is_mcp:
            agent.use("I3", span.place, "a tool of an MCP server was called")
    _describe_guards(agent, run)
    _describe_inner(agent, run)
    _describe_retries(agent, tools + models)
    _describe_flow(agent, run, above)


def _tool_loop(models: Sequence[Span], tools: Sequence[Span]) -> Span | None:
    """The first model call that came after a tool, which itself came after a model call."""
    if not models:
        return None
    after = [tool for tool in tools if tool.start >= models[0].end]
    return next((span for span in models if after and span.start >= after[0].end), None)


def _describe_guards(agent: AgentDraft, run: Invocation) -> None:
    models = run.of_kind("model")
    for span in run.of_kind("guard"):
        before = not models or span.start <= models[0].start
        after = bool(models) and span.start >= models[-1].end
        point = "input" if before else "output" if after else "call"
        agent.add_guard(point, span.place, f"a guard ran at the {point}")
    for span in run.of_kind("judge"):
        agent.use("V15", span.place, "an evaluator ran")
    for span in run.of_kind("approval"):
        agent.use("V1", span.place, "a span is named like an approval", certain=False)


def _describe_inner(agent: AgentDraft, run: Invocation) -> None:
    """Agents below an agent: sub-agents, side by side, one after another, or a writer and a judge."""
    inner = run.inner
    if not inner:
        return
    if run.of_kind("model"):
        agent.use("O6", inner[0].span.place, f"it ran {_times(len(inner), 'other agent')} below it")
        agent.use("O17", inner[0].span.place, "each ran in a span of its own", certain=False)
    if (pair := _overlap([each.span for each in inner])) is not None:
        agent.use("O4", pair.place, "agents ran at the same time")
    if run.handoff is not None:
        agent.use("O15", run.handoff.place, "a tool handed the conversation to another agent", certain=False)
    elif len(inner) > 1 and not run.of_kind("model") and _overlap([each.span for each in inner]) is None:
        agent.use("O2", inner[0].span.place, "agents ran one after another", certain=False)
    judges = [each for each in inner if is_judge_name(each.name)]
    writers = [each for each in inner if not is_judge_name(each.name)]
    if judges and writers:
        agent.use("V15", judges[0].span.place, "an agent is named like a judge", certain=False)
        _add_judging(agent, writers[0], judges[0])
        if len(judges) > 1 and len(writers) > 1:
            agent.use("O5", judges[0].span.place, f"writer and judge took {len(judges)} turns", certain=False)


def _add_judging(agent: AgentDraft, writer: Invocation, judge: Invocation) -> None:
    for run, facts in ((writer, {"writes": ["draft"]}), (judge, {"judges": ["draft"]})):
        models = [span.model for span in run.of_kind("model") if span.model]
        model = safe_name(models[0]) if models else None
        agent.add_session(key_name(run.name), run.span.place, "an agent below it", certain=False, model=model, **facts)


def _overlap(spans: Sequence[Span]) -> Span | None:
    """The first span that began before the one before it ended."""
    ordered = sorted((span for span in spans if span.end > span.start), key=lambda each: each.start)
    latest = 0
    for span in ordered:
        if span.start < latest:
            return span
        latest = max(latest, span.end)
    return None


def _describe_retries(agent: AgentDraft, calls: Sequence[Span]) -> None:
    failed: dict[tuple[str, str], Span] = {}
    for span in sorted(calls, key=lambda each: each.start):
        key = (span.kind, span.subject)
        if key in failed:
            agent.add_fact("step_retries", True, span.place, "a call was repeated after it had failed")
        if span.failed:
            failed.setdefault(key, span)


def _describe_flow(agent: AgentDraft, run: Invocation, above: Invocation | None) -> None:
    """Untrusted text that a model has read: a result of an earlier call of this run, or before a handoff to it."""
    reads = [run.untrusted]
    if above is not None and above.untrusted is not run.untrusted and above.handoff is not None:
        reads.append(above.untrusted)
    read = min((each for each in reads if each is not None), key=lambda each: each.end, default=None)
    if read is not None and any(model.start >= read.end for model in run.of_kind("model")):
        what = f"a model was called after tool {safe_name(read.subject)!r}, which by its name reads text from outside"
        agent.add_leg("untrusted_content", read.place, what)


def _describe_tools(draft: ArchitectureDraft, agent: AgentDraft, runs: Sequence[Invocation]) -> None:
    calls: dict[str, list[tuple[Invocation, Span]]] = {}
    for run in runs:
        for span in run.of_kind("tool"):
            calls.setdefault(span.subject, []).append((run, span))
    offered = max((_offered_tools(span) for run in runs for span in (run.span, *run.of_kind("model"))), default=0)
    if calls or offered:
        place = next(iter(calls.values()))[0][1].place if calls else runs[0].span.place
        if offered >= len(calls):
            agent.count_tools(offered, place, "the tools that the model was offered")
        else:
            agent.count_tools(len(calls), place, "the tools that were called; more may be offered", certain=False)
    if len(calls) > MAX_TOOLS:
        draft.miss(agent.place, f"an agent called more than {MAX_TOOLS} tools; the others are left out")
    for name in list(calls)[:MAX_TOOLS]:
        if not any(span.delegates for _, span in calls[name]) and not _HANDOFF.search(name):
            _describe_tool(agent, name, calls[name])


def _describe_tool(agent: AgentDraft, name: str, calls: Sequence[tuple[Invocation, Span]]) -> None:
    run, span = next((each for each in calls if _read_before(*each) is not None), calls[0])
    gate = "V1" if _was_approved(run, span) else "none"
    # Untrusted text counts as read only where a model was called after it: see `_describe_flow`.
    effects = replace(effects_of_name(name), reads_untrusted=False)
    agent.add_tool_effects(name, effects, span.place, gate=gate, why=_describe_order(run, span))
    if effects.runs_code:
        agent.use("R13", span.place, "a tool is named like an interpreter", certain=False)


def _read_before(run: Invocation, span: Span) -> Span | None:
    """A call that gave untrusted text before this one was made."""
    read = run.untrusted
    return read if read is not None and read is not span and read.end <= span.start else None


def _describe_order(run: Invocation, span: Span) -> str:
    read = _read_before(run, span)
    if read is None:
        return "judged by its name"
    return f"called after {safe_name(read.subject)!r} (span {read.id}) had returned; both are judged by their names"


def _was_approved(run: Invocation, span: Span) -> bool:
    """Whether an approval stands between the model call that decided and this call, or inside it."""
    decided = max((model.end for model in run.of_kind("model") if model.end <= span.start), default=0)
    inside = any(each.kind == "approval" for each in span.walk())
    return inside or any(decided <= each.start <= span.start for each in run.of_kind("approval"))


def _offered_tools(span: Span) -> int:
    """How many tools the model was offered, as the attributes of a call say."""
    given = span.attributes.get("gen_ai.tool.definitions")
    if isinstance(given, str) and len(given) < 1_000_000:
        try:
            read: Any = json.loads(given)
        except (ValueError, RecursionError):
            return 0
        return len(cast("list[Any]", read)) if isinstance(read, list) else 0
    return sum(1 for key in span.attributes if re.fullmatch(r"llm\.tools\.\d+\.tool\.json_schema", key))

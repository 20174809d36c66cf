"""What is told of a run to who watches over many: names, numbers and labels in short. Never a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bicameral.decisions import Allowed, Ask, CallFacts, Decision
from bicameral.labels import Shade, join_all
from bicameral.plans import Ask as AskStep
from bicameral.plans import Call, Extract
from bicameral.telemetry import Fact, Span, count, span, summary
from bicameral.tools import Tool

from ._approvals import Answers, Question
from ._outcome import Failed, Finished, Interrupted, RunOutcome


def running(run: str, facts: Mapping[str, Fact], *, replayed: bool = False) -> Span:
    """The span of a run; `facts` say what it runs."""
    known: dict[str, Fact] = {"gen_ai.operation.name": "invoke_workflow", "bicameral.run": run}
    return span("replay" if replayed else "run", "", known | dict(facts))


def ran(told: Span, outcome: RunOutcome) -> None:
    """How a run ended, and what it cost."""
    how = type(outcome).__name__.lower()
    count("bicameral.runs", 1, {"bicameral.run.outcome": how})
    if not told.on:
        return
    usage = outcome.usage
    facts: dict[str, Fact] = {
        "bicameral.run.outcome": how,
        "bicameral.run.effects": len(outcome.effects),
        "bicameral.run.alerts": usage.alerts,
        "bicameral.run.rejected": sum(usage.rejected.values()),
        "bicameral.run.not_found": usage.not_found,
        **{f"bicameral.{name}": number for name, number in usage.spent.to_json().items()},
    }
    told.tell(facts)
    if isinstance(outcome, Finished) and outcome.shade is not None:
        told.tell(summary("bicameral.answer", outcome.shade.flat))
    if isinstance(outcome, Failed | Interrupted):
        told.fail(outcome.error.code)


def stepping(step: Call | Extract | AskStep, at: str) -> Span:
    """The span of a step that touches the world; what only computes has none."""
    facts: dict[str, Fact] = {"bicameral.step": at, "bicameral.step.do": step.do}
    if isinstance(step, Call):
        facts["gen_ai.tool.name"] = step.tool
    return span("step", step.tool if isinstance(step, Call) else step.do, facts)


def stepped(told: Span, found: tuple[Any, Shade | None] | None) -> None:
    """What a step gave, by its labels; nothing yet if it waits for a person."""
    if not told.on:
        return
    if found is None:
        told.tell({"bicameral.step.waits": True})
    elif found[1] is not None:
        told.tell(summary("bicameral.result", found[1].flat))


def calling(step: str, tool: Tool) -> Span:
    """The span of a tool's own work, by the conventions for tools."""
    facts: dict[str, Fact] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.type": "function",
        "bicameral.step": step,
        "bicameral.tool.effect": tool.effect,
    }
    return span("execute_tool", tool.name, facts)


def extracting(step: str) -> Span:
    """The span of a blank that the quarantined model fills."""
    return span("extract", "", {"bicameral.step": step})


def extracted(told: Span, found: Mapping[str, Any]) -> None:
    """What came of it: how it ended, and the kinds of what was noticed."""
    if told.on:
        alerts: list[dict[str, Any]] = found.get("alerts", [])
        kinds = tuple(dict.fromkeys(str(alert["kind"]) for alert in alerts))
        told.tell({"bicameral.extraction.outcome": str(found["outcome"])})
        told.tell({"bicameral.alerts": len(alerts), "bicameral.alert.kinds": kinds})
        if "rejected" in found:
            told.tell({"bicameral.rejected": str(found["rejected"])})


def asking(step: str) -> Span:
    """The span of a question of the plan's to a person."""
    return span("ask", "", {"bicameral.step": step})


def deciding(step: str, tool: Tool) -> Span:
    """The span of a decision about a call."""
    return span("decide", tool.name, {"bicameral.step": step, "gen_ai.tool.name": tool.name})


def decided(told: Span, facts: CallFacts, decision: Decision) -> None:
    """What was decided, by which rules, and what the arguments were made of."""
    said = "allowed" if isinstance(decision, Allowed) else "ask" if isinstance(decision, Ask) else "denied"
    count("bicameral.policy.decisions", 1, {"bicameral.policy.decision": said, "gen_ai.tool.name": facts.tool})
    if told.on:
        told.tell({"bicameral.policy.decision": said, "bicameral.policy.mode": facts.mode})
        rules = () if isinstance(decision, Allowed) else decision.rules
        told.tell({"bicameral.policy.rules": rules, "bicameral.control.trusted": facts.pc.trusted})
        told.tell(summary("bicameral.arguments", join_all(each.label for each in facts.arguments)))


def approving(question: Question) -> Span:
    """The span of a question to a person."""
    tools = tuple(dict.fromkeys(call.tool for call in question.calls))
    return span("approve", "", {"bicameral.approval.calls": len(question.calls), "bicameral.approval.tools": tools})


def approved(told: Span, question: Question, answers: Answers) -> None:
    """How many calls somebody said yes to."""
    yes = sum(1 for call in question.calls if call.hash in answers.approved)
    count("bicameral.approvals", len(question.calls), {})
    told.tell({"bicameral.approval.approved": yes})

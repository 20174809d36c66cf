"""Intents, plans, findings, verdicts, outcomes, answers, usage and budgets, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bicameral.cli._output import Output
from bicameral.cli._plain_values import answer_text
from bicameral.display import line_spans, make_visible, terminal_width, to_plain_json

if TYPE_CHECKING:
    from bicameral.agent import Agent, Checked, Planned, WorstCase
    from bicameral.binding import Binding
    from bicameral.limits import Budgets, ChamberUsage
    from bicameral.planning import Intent
    from bicameral.plans import CallProof, Finding, Proof, Report, Verdict
    from bicameral.runs import Citation, Doubt, EffectDone, Event, RunOutcome


def money_text(money: float | None, currency: str) -> str:
    """`0.0123 USD`; an unknown price is not shown as 0."""
    if money is None:
        return "price not known"
    return f"{money:,.2f} {currency}" if money >= 100 or money == 0 else f"{money:,.4f} {currency}"


def say_budget(out: Output, agent: Agent, report: Report) -> None:
    """Say the worst case of a run of the plan; nothing if it is free and there is no budget."""
    if not report.ok or not report.cost.model_calls.most:
        return
    worst, budgets = agent.worst_case(report), agent.budgets
    if worst.money == 0 and not budgets.is_bounded:
        return
    calls = f"{worst.calls:,} model call{'' if worst.calls == 1 else 's'}"
    unknown = f"price of {', '.join(worst.unpriced)} not known" if worst.unpriced else ""
    cost = unknown or money_text(worst.money, agent.prices.currency)
    out.say(f"  budget: at most {calls}, {worst.tokens:,} tokens, {cost}{_budget_text(worst, budgets)}")


def say_quarantine(out: Output, agent: Agent, report: Report) -> None:
    """Say which variant of the quarantine reads the texts of a plan, unless it is the usual one or there are none."""
    from bicameral.boundary import executor_facts

    facts = executor_facts(agent.executor)
    if facts.variant in ("read-only", "triple") and report.ok and report.cost.model_calls.most:
        out.say(f"  quarantine: {facts}", style="dim")


def executor_json(agent: Agent) -> dict[str, Any]:
    """The variant of the quarantine as JSON."""
    from bicameral.boundary import executor_facts

    return {"executor": executor_facts(agent.executor).to_json()}


def say_doubts(out: Output, doubts: Iterable[Doubt]) -> None:
    """Say what the answer and the effects rest on and may be wrong; before anything else that is said of them."""
    for doubt in doubts:
        out.say(f"doubt: {doubt.text}", style="yellow")


def say_citations(out: Output, citations: Iterable[Citation]) -> None:
    """Say where each fact of the answer stands; after the answer, since it is read first."""
    for citation in citations:
        out.say(f"source: {citation}", style="dim")


def say_degraded(out: Output, degraded: Iterable[str]) -> None:
    """Say every way in which the answer is degraded."""
    for said in degraded:
        out.say(f"degraded: {said}", style="yellow")


_DECIDED_BY = {
    "only": "they are all the same",
    "fit": "the one that fits the request best was taken",
    "votes": "the one that was written most often was taken",
    "world": "the one that finds something was taken",
    "person": "you chose",
    "order": "the first was taken",
}


def say_choice(out: Output, choice: Mapping[str, Any]) -> None:
    """Say that several plans were drawn, and how one of them was taken."""
    if choice.get("drawn"):
        count, how = choice["drawn"], _DECIDED_BY[choice["by"]]
        out.say(f"{count} more plan{'' if count == 1 else 's'} drawn, since the first was doubtful: {how}", style="dim")


def _budget_text(worst: WorstCase, budgets: Budgets) -> str:
    bounds = ("calls", "tokens", "money", "seconds")
    limits = {bound: limit for bound in bounds if (limit := getattr(budgets.run, bound)) is not None}
    if not limits:
        return ""
    allowed = [f"{limit:g} in money" if bound == "money" else f"{limit:,} {bound}" for bound, limit in limits.items()]
    # The seconds of a run are not known beforehand, and its money only if all prices are.
    less = any((getattr(worst, bound, None) or 0) > limit for bound, limit in limits.items())
    return f"; allowed: {', '.join(allowed)}" + (", so it may end early" if less else "")


_MAX_ALERTS = 5
_MIN_ALERT_WEIGHT = 0.2
"""Alerts of less weight are only in the journal and in JSON."""


def say_usage(out: Output, outcome: RunOutcome, planning: ChamberUsage | None = None) -> None:
    """Say the alerts, then what extraction did not fill, then the tokens."""
    weighty = [alert for alert in outcome.alerts if alert.weight >= _MIN_ALERT_WEIGHT]
    if weighty:
        notes = [str(alert) for alert in sorted(weighty, key=lambda alert: -alert.weight)]
        out.say(_alerts_text(notes), style="yellow")
    say_degraded(out, outcome.usage.degraded)
    if outcome.usage.rejected or outcome.usage.not_found:
        out.say(_unfilled_text(outcome.usage.rejected, outcome.usage.not_found), style="dim")
    spent = outcome.usage.spent if planning is None else planning + outcome.usage.spent
    if text := tokens_text(spent.to_json()):
        out.say(text, style="dim")


def tokens_text(spent: Mapping[str, Any]) -> str:
    """`tokens: reasoner 1,204 in 3 calls, executor 310 in 1 call`; empty if no model was called."""
    parts: list[str] = []
    for chamber in ("reasoner", "executor"):
        tokens, calls = int(spent.get(f"{chamber}_tokens", 0)), int(spent.get(f"{chamber}_calls", 0))
        if calls:
            parts.append(f"{chamber} {tokens:,} in {_count_text(calls, 'call')}")
    return f"tokens: {', '.join(parts)}" if parts else ""


def usage_json(outcome: RunOutcome) -> dict[str, Any]:
    """The usage and all alerts of an outcome as JSON."""
    return {"usage": outcome.usage.to_json(), "alerts": [alert.to_json() for alert in outcome.alerts]}


def recorded_usage_json(events: Iterable[Event]) -> dict[str, Any]:
    """The usage and the alerts that the journal has; journals of earlier versions have no usage."""
    usage: dict[str, Any] | None = None
    alerts: list[Any] = []
    for event in events:
        alerts += event.body.get("alerts", []) if event.kind.startswith("step-") else []
        usage = event.body.get("usage", usage) if event.kind.startswith("run-") else usage
    return {"usage": usage, "alerts": alerts}


def recorded_usage_text(facts: Mapping[str, Any]) -> str:
    """The usage and the alerts of a recorded run, in a few lines."""
    usage: Mapping[str, Any] = facts["usage"] or {}
    alerts: list[dict[str, Any]] = facts["alerts"]
    notes = [f"{alert.get('note', '')} (step {alert.get('step', '')})" for alert in alerts]
    lines = [_alerts_text(notes)] if alerts else []
    lines += [f"degraded: {said}" for said in usage.get("degraded", [])]
    if usage.get("rejected") or usage.get("not_found"):
        lines.append(_unfilled_text(usage.get("rejected", {}), usage.get("not_found", 0)))
    if text := tokens_text(usage):
        lines.append(text)
    return "\n".join(lines)


def _alerts_text(notes: list[str]) -> str:
    """The number of alerts, and the first distinct ones."""
    texts = list(dict.fromkeys(notes))
    more = f"; and {len(texts) - _MAX_ALERTS} more" if len(texts) > _MAX_ALERTS else ""
    return f"{_count_text(len(notes), 'alert')}: {'; '.join(texts[:_MAX_ALERTS])}{more}"


def _unfilled_text(rejected: Mapping[Any, int], not_found: int) -> str:
    kinds = ", ".join(f"{kind} × {times}" if times > 1 else str(kind) for kind, times in rejected.items())
    told = [f"{_count_text(sum(rejected.values()), 'reply', 'replies')} rejected ({kinds})"] if rejected else []
    return "; ".join([*told, *([f"{_count_text(not_found, 'blank')} not in the text"] if not_found else [])])


def _count_text(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


_VERDICT_STYLES = {"proved": "", "conditional": "yellow", "refused": "red"}


def verdict_name(verdict: Verdict) -> str:
    """`proved`, `conditional` or `refused`."""
    return type(verdict).__name__.lower()


def verdict_lines(proof: Proof) -> list[str]:
    """Every call of a plan with its verdict, in columns: with the question that may be asked, or why it is refused."""
    steps = max((len(call.step) for call in proof.calls), default=0)
    tools = max((len(call.tool) for call in proof.calls), default=0)
    verdicts = [
        (call, ": ".join(filter(None, (verdict_name(call.verdict), verdict_why(call))))) for call in proof.calls
    ]
    return [f"{call.step:<{steps}}  {call.tool:<{tools}}  {verdict}" for call, verdict in verdicts]


def show_verdicts(out: Output, proof: Proof | None) -> None:
    """Every call with its verdict, on standard output."""
    for line in verdict_lines(proof) if proof is not None else ():
        out.show(f"  {line}")


def say_verdicts(out: Output, proof: Proof | None, *, briefly: bool = False) -> None:
    """Every call with its verdict, on standard error; briefly, only those that are refused or may be asked about."""
    if proof is None:
        return
    for call, line in zip(proof.calls, verdict_lines(proof), strict=True):
        name = verdict_name(call.verdict)
        if name == "refused" or not briefly:
            out.say(f"  {line}", style=_VERDICT_STYLES[name])
    if briefly and not proof.refused:
        _say_conditional(out, proof)


def _say_conditional(out: Output, proof: Proof) -> None:
    """Say before the run begins what it may ask about, or where it may stop."""
    lines = [
        f"    step {call.step}  {call.tool}: {verdict_why(call)}"
        for call in proof.calls
        if verdict_name(call.verdict) == "conditional"
    ]
    if lines:
        who = "may ask you about" if out.is_interactive else "may stop, since nobody can be asked, at"
        out.say("\n".join((f"  This run {who}:", *lines)), style=_VERDICT_STYLES["conditional"])


def checked_json(checked: Checked | Planned) -> dict[str, Any]:
    """The report of a plan and its proof, None for a plan with errors, as JSON."""
    return {"report": checked.report.to_json(), "proof": None if checked.proof is None else checked.proof.to_json()}


def verdict_why(call: CallProof) -> str:
    """The question of a conditional call, or the reason of a refused one; empty if it is proved."""
    from bicameral.plans import Conditional, Refused

    match call.verdict:
        case Conditional(questions=questions, why=why):
            text = " ".join(questions) or why
        case Refused(reason=reason):
            text = reason
        case _:
            text = ""
    return text.removeprefix(f"{call.tool}: ")


_SEVERITY_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}


def show_intent(out: Output, intent: Intent) -> None:
    """Show the intent that Echo understood, and what was assumed of days; else it would only repeat the request."""
    for named in intent.dates:
        if named.assumed:
            out.say(f"  *{named.phrase}*: {named.assumed}")
    if intent.by != "echo":
        return
    out.heading("Intent")
    out.say(f"  {intent.task}")
    for number, step in enumerate(intent.steps, 1):
        out.say(f"  {number}. {step.text}")
    for constraint in intent.constraints:
        out.say(f"  • {constraint}")


def show_bindings(out: Output, bindings: Iterable[Binding]) -> None:
    """What the words of a plan were bound to, under the plan."""
    for binding in bindings:
        out.say(f"  {binding}{_HOW_BOUND.get(binding.how, '')}")


_HOW_BOUND = {
    "model": " (chosen by the quarantined model)",
    "newest": " (the newest)",
    "contents": " (by what it contains)",
    "cells": " (by what it contains)",
    "columns": " (by its columns)",
    "kind": " (the only one of its kind)",
    "measure": " (the only one that can be added up)",
    "value": " (the only one with such a cell)",
    "naming": " (names the rows)",
    "new": " (a new folder)",
}


def intent_text(intent: Intent) -> str:
    """An intent for a person to read, one fact a line."""
    lines = [intent.request, ""]
    if intent.task:
        lines.append(f"task         {intent.task}")
    if [step.text for step in intent.steps] != [intent.request]:
        lines += [f"step {number:<8}{step.text}" for number, step in enumerate(intent.steps, 1)]
    lines += [f"constraint   {constraint}" for constraint in intent.constraints]
    lines.append(f"output       {intent.output.text}")
    if intent.effects:
        lines.append(f"effects      {', '.join(intent.effects)}")
    for named in intent.dates:
        days = f"{named.start}" if named.start == named.end else f"{named.start} to {named.end}"
        lines.append(f"{named.phrase:<12} {days}{f' ({named.assumed})' if named.assumed else ''}")
    lines += [f"{mention.kind:<12} {mention.words}" for mention in intent.mentions]
    lines += [f"answered     {given.question} {given.answer}" for given in intent.answers]
    lines += [f"open         {question.question}" for question in intent.questions]
    return make_visible("\n".join(lines)) + "\n"


def show_plan(out: Output, source: str) -> None:
    """Show the plan, with colours on a terminal."""
    out.heading("Plan")
    indented = "".join(f"  {line}\n" for line in make_visible(source).splitlines())
    if not out.is_live_terminal:
        out.say(indented)
        return
    from rich.syntax import Syntax
    from rich.text import Text

    coloured = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(indented.rstrip("\n"))
    for line in coloured.split("\n", allow_blank=True):
        # Broken after the colours are known: half a string would be coloured as something else.
        code = line.plain
        indent = len(code) - len(code.lstrip(" "))
        width = terminal_width()
        spans = line_spans(code[indent:], max(width - indent, 8), max(width - indent - 4, 8))
        for number, (start, end) in enumerate(spans):
            piece = line[indent + start : indent + end]
            out.console.print(Text(" " * (indent + (4 if number else 0))).append_text(piece))


def show_report(out: Output, report: Report, proof: Proof | None, *, briefly: bool = False) -> None:
    """Show the findings, the effects and the worst case of a plan, and the verdict on each call.

    Briefly, only the verdicts on refused calls: conditional ones are asked about when the call is made.
    """
    out.heading("Check")
    for finding in report.findings:
        show_finding(out, finding)
    if report.ok:
        tools, models = report.cost.tool_calls, report.cost.model_calls
        calls = f"{tools} tool call{'' if tools.most == 1 else 's'}"
        calls += f", {models} model call{'' if models.most == 1 else 's'}" if models.most else ""
        out.say(f"  ok · {effects_text(report)} · {calls}{_proved_text(proof)}")
    say_verdicts(out, proof, briefly=briefly)


def show_finding(out: Output, finding: Finding) -> None:
    out.say(f"  {finding.severity}: {finding}", style=_SEVERITY_STYLES[finding.severity])


def effects_text(report: Report) -> str:
    """The changes that a plan makes: `sends with send_mail; writes with write_csv`."""
    verbs = {"write": "writes", "send": "sends", "irreversible": "changes for good"}
    used: dict[str, list[str]] = {}
    for use in report.effects:
        if use.effect in verbs and use.tool not in used.setdefault(use.effect, []):
            used[use.effect].append(use.tool)
    told = [f"{verbs[effect]} with {', '.join(tools)}" for effect, tools in used.items() if tools]
    return "; ".join(told) or "changes nothing"


def _proved_text(proof: Proof | None) -> str:
    from bicameral.plans import Proved

    if proof is None or not proof.calls:
        return ""
    if proof.proved:
        return " · proved"
    open_ = dict.fromkeys(call.tool for call in proof.calls if not isinstance(call.verdict, Proved))
    return f" · {'you may be asked about' if proof.questions else 'not proved:'} {', '.join(open_)}"


def show_outcome(out: Output, outcome: RunOutcome, planning: ChamberUsage | None = None) -> None:
    """Show the answer, or how the run ended without one. `planning` is the usage of the planner."""
    from bicameral.runs import Failed, Finished, Interrupted, Stopped, Waiting

    match outcome:
        case Finished():
            done = effects_done_text(outcome.effects)
            say_doubts(out, outcome.doubts)
            out.say(f"done in {outcome.seconds:.1f} s{f': {done}' if done else ''} (run {outcome.run})", style="dim")
            say_usage(out, outcome, planning)
            if outcome.answer is not None or not done:
                out.show(answer_text(outcome.answer, out.width))
            say_citations(out, outcome.citations)
        case Failed() | Interrupted():
            say_doubts(out, outcome.doubts)
            out.say(f"error: {outcome.error}", style="red")
            out.say(f"  {effects_before_text(outcome.effects)} (run {outcome.run})")
            say_usage(out, outcome, planning)
        case Waiting():
            out.say(f"waits for you (run {outcome.run})", style="yellow")
            out.say(f"  {effects_before_text(outcome.effects)}")
        case Stopped():
            say_doubts(out, outcome.doubts)
            out.say(f"stopped after {outcome.seconds:.1f} s (run {outcome.run})", style="yellow")
            out.say(f"  {effects_before_text(outcome.effects)}")
            if outcome.in_flight:
                out.say(f"  in flight, so their effect is not known: step {', '.join(outcome.in_flight)}")
            say_usage(out, outcome, planning)


def effects_done_text(effects: Sequence[EffectDone | str]) -> str:
    """The tools that had effects, with how often; the effects, or the names of their tools."""
    counted = Counter(done if isinstance(done, str) else done.tool for done in effects)
    return ", ".join(f"{tool}" + (f" × {times}" if times > 1 else "") for tool, times in counted.items())


def effects_before_text(effects: Sequence[EffectDone | str]) -> str:
    """What was done before a run ended without an answer."""
    return f"done before that: {effects_done_text(effects)}" if effects else "nothing had been changed"


def planned_json(planned: Planned) -> dict[str, Any]:
    """A plan, its check and its cost as JSON."""
    return {
        "intent": planned.intent.model_dump(mode="json"),
        "plan": planned.plan.model_dump(mode="json"),
        "source": planned.source,
        **({"bindings": [each.to_json() for each in planned.bindings]} if planned.bindings else {}),
        "doubts": [doubt.to_json() for doubt in planned.doubts],
        **checked_json(planned),
        "repairs": planned.repairs,
        **({"choice": dict(planned.choice)} if planned.choice else {}),
        **({"strategy_choice": dict(planned.strategy_choice)} if planned.strategy_choice else {}),
        "cached": planned.cached,
        "seconds": round(planned.seconds, 3),
        "tokens": {
            role: {"prompt": used.prompt, "cached": used.cached, "output": used.output}
            for role, used in planned.usage.items()
        },
        "planning": planned.spent.to_json(),
        **({"money": round(planned.money, 9)} if planned.money else {}),
        **({"degraded": list(planned.degraded)} if planned.degraded else {}),
    }


def outcome_json(outcome: RunOutcome) -> dict[str, Any]:
    """An outcome as JSON, with the labels of the answer, and the question that nobody could be asked."""
    from bicameral.labels import label_tree_to_json
    from bicameral.runs import ApprovalQuestion, Failed, Finished, Interrupted, Waiting, ending_of

    facts: dict[str, Any] = {
        "ok": outcome.ok,
        "ending": ending_of(outcome),
        "run": outcome.run,
        "seconds": round(outcome.seconds, 3),
        "doubts": [doubt.to_json() for doubt in outcome.doubts],
        **({"citations": [citation.to_json() for citation in outcome.citations]} if outcome.citations else {}),
        "effects": [done.to_json() for done in outcome.effects],
        **usage_json(outcome),
    }
    match outcome:
        case Finished():
            labels = {} if outcome.shade is None else {"shade": label_tree_to_json(outcome.shade)}
            return facts | {"answer": to_plain_json(outcome.answer)} | labels
        case Failed():
            question: object = getattr(outcome.error, "question", None)
            asked = {"question": question.to_json()} if isinstance(question, ApprovalQuestion) else {}
            return facts | {"error": outcome.error.to_json(), "step": outcome.step} | asked
        case Interrupted():
            return facts | {"error": outcome.error.to_json(), "interrupted": True}
        case Waiting(question=waits_for, ask=ask):
            what = {"question": waits_for.to_json()} if waits_for else {"ask": ask.to_json()} if ask else {}
            return facts | {"waiting": True} | what
        case _:
            return facts | {"stopped": True, "in_flight": list(outcome.in_flight)}

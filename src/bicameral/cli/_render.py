"""Intents, plans, findings, verdicts, outcomes, usage and budgets, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bicameral.cli._output import Output
from bicameral.cli._values import answer_text, to_plain_json
from bicameral.display import make_visible

if TYPE_CHECKING:
    from bicameral.agent import Agent, Planned, WorstCase
    from bicameral.planning import Intent
    from bicameral.plans import CallProof, Finding, Proof, Report, Verdict
    from bicameral.routing import Budgets
    from bicameral.runs import EffectDone, Event, RunAlert, RunOutcome
    from bicameral.sessions import ChamberUsage


def money_text(money: float | None, currency: str) -> str:
    """`0.0123 USD`; what nobody knows is not called 0."""
    if money is None:
        return "price not known"
    return f"{money:,.2f} {currency}" if money >= 100 or money == 0 else f"{money:,.4f} {currency}"


def say_budget(out: Output, agent: Agent, report: Report) -> None:
    """What a run of the plan may take at worst; nothing where it costs nothing and nothing is bounded."""
    if not report.ok or not report.cost.model_calls.most:
        return
    worst, budgets = agent.worst_case(report), agent.budgets
    if worst.money == 0 and not budgets.is_bounded:
        return
    calls = f"{worst.calls:,} model call{'' if worst.calls == 1 else 's'}"
    cost = _worst_cost_text(worst, agent.prices.currency)
    out.say(f"  budget: at most {calls}, {worst.tokens:,} tokens, {cost}{_budget_text(worst, budgets)}")


def say_degraded(out: Output, degraded: Iterable[str]) -> None:
    """Every way in which an answer is less than what was wanted."""
    for said in degraded:
        out.say(f"degraded: {said}", style="yellow")


def _worst_cost_text(worst: WorstCase, currency: str) -> str:
    if worst.unpriced:
        return f"price of {', '.join(worst.unpriced)} not known"
    return money_text(worst.money, currency)


def _budget_text(worst: WorstCase, budgets: Budgets) -> str:
    run = budgets.run
    allowed = [
        f"{limit:,} {bound}" if bound != "money" else f"{limit:g} in money"
        for bound in ("calls", "tokens", "money", "seconds")
        if (limit := getattr(run, bound)) is not None
    ]
    if not allowed:
        return ""
    less = (
        (run.calls is not None and worst.calls > run.calls)
        or (run.tokens is not None and worst.tokens > run.tokens)
        or (run.money is not None and worst.money is not None and worst.money > run.money)
    )
    return f"; allowed: {', '.join(allowed)}" + (", so it may end early" if less else "")


_MAX_ALERTS = 5
_MIN_ALERT_WEIGHT = 0.2
"""What weighs less is in the record, and told to programs only."""


def say_usage(out: Output, outcome: RunOutcome, planning: ChamberUsage | None = None) -> None:
    """Alerts first, then what was not filled, then what the models read and wrote."""
    _say_alerts(out, outcome.alerts)
    say_degraded(out, outcome.usage.degraded)
    if outcome.usage.rejected or outcome.usage.not_found:
        out.say(_unfilled_text(outcome.usage.rejected, outcome.usage.not_found), style="dim")
    spent = outcome.usage.spent if planning is None else planning + outcome.usage.spent
    if text := tokens_text(spent.to_json()):
        out.say(text, style="dim")


def tokens_text(spent: Mapping[str, Any]) -> str:
    """`tokens: reasoner 1,204 in 3 calls, executor 310 in 1 call`; nothing where no model was asked."""
    told: list[str] = []
    for whose in ("reasoner", "executor"):
        tokens, calls = int(spent.get(f"{whose}_tokens", 0)), int(spent.get(f"{whose}_calls", 0))
        if calls:
            told.append(f"{whose} {tokens:,} in {calls:,} call{'' if calls == 1 else 's'}")
    return f"tokens: {', '.join(told)}" if told else ""


def usage_json(outcome: RunOutcome) -> dict[str, Any]:
    """The same for a program, and every alert."""
    return {"usage": outcome.usage.to_json(), "alerts": [alert.to_json() for alert in outcome.alerts]}


def recorded_usage_json(events: Iterable[Event]) -> dict[str, Any]:
    """What the journal holds of that; a run from before it was counted has no usage."""
    usage: dict[str, Any] | None = None
    alerts: list[Any] = []
    for event in events:
        alerts += event.body.get("alerts", []) if event.kind.startswith("step-") else []
        usage = event.body.get("usage", usage) if event.kind.startswith("run-") else usage
    return {"usage": usage, "alerts": alerts}


def recorded_usage_text(facts: Mapping[str, Any]) -> str:
    """Two lines at most on a recorded run."""
    usage: Mapping[str, Any] = facts["usage"] or {}
    alerts: list[dict[str, Any]] = facts["alerts"]
    lines = [f"{_count_text(len(alerts), 'alert')}: {_recorded_alerts_text(alerts)}"] if alerts else []
    lines += [f"degraded: {said}" for said in usage.get("degraded", [])]
    if usage.get("rejected") or usage.get("not_found"):
        lines.append(_unfilled_text(usage.get("rejected", {}), usage.get("not_found", 0)))
    if text := tokens_text(usage):
        lines.append(text)
    return "\n".join(lines)


def _say_alerts(out: Output, alerts: tuple[RunAlert, ...]) -> None:
    telling = [alert for alert in alerts if alert.weight >= _MIN_ALERT_WEIGHT]
    if not telling:
        return
    texts = list(dict.fromkeys(str(alert) for alert in sorted(telling, key=lambda alert: -alert.weight)))
    more = f"; and {len(texts) - _MAX_ALERTS} more" if len(texts) > _MAX_ALERTS else ""
    out.say(f"{_count_text(len(telling), 'alert')}: {'; '.join(texts[:_MAX_ALERTS])}{more}", style="yellow")


def _recorded_alerts_text(alerts: list[dict[str, Any]]) -> str:
    texts = list(dict.fromkeys(f"{alert.get('note', '')} (step {alert.get('step', '')})" for alert in alerts))
    return "; ".join(texts[:_MAX_ALERTS]) + (
        f"; and {len(texts) - _MAX_ALERTS} more" if len(texts) > _MAX_ALERTS else ""
    )


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


def verdict_text(call: CallProof) -> str:
    """A verdict with what could stop the call: the question that may be asked, or the reason."""
    why = verdict_why(call)
    return verdict_name(call.verdict) + (f": {why}" if why else "")


def verdict_lines(proof: Proof) -> list[str]:
    """Every call of a plan with its verdict, in columns."""
    steps = max((len(call.step) for call in proof.calls), default=0)
    tools = max((len(call.tool) for call in proof.calls), default=0)
    return [f"{call.step:<{steps}}  {call.tool:<{tools}}  {verdict_text(call)}" for call in proof.calls]


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
    """What a run may ask about, or stop at, in one place before it begins."""
    lines = [
        f"    step {call.step}  {call.tool}: {verdict_why(call)}"
        for call in proof.calls
        if verdict_name(call.verdict) == "conditional"
    ]
    if lines:
        who = "may ask you about" if out.is_interactive else "may stop, since nobody can be asked, at"
        out.say("\n".join((f"  This run {who}:", *lines)), style=_VERDICT_STYLES["conditional"])


def call_json(call: CallProof) -> dict[str, Any]:
    """The verdict on one call for a program."""
    return call.to_json()


def proof_json(proof: Proof | None) -> dict[str, Any] | None:
    """The proof for a program; none of a plan with errors."""
    return None if proof is None else proof.to_json()


def verdict_why(call: CallProof) -> str:
    """What may stop a call: the question, or the reason; nothing if it is proved."""
    from bicameral.plans import Conditional, Refused

    match call.verdict:
        case Conditional(questions=questions, why=why):
            told = " ".join(questions) or why
        case Refused(reason=reason):
            told = reason
        case _:
            told = ""
    return told.removeprefix(f"{call.tool}: ")


_SEVERITY_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}


def show_intent(out: Output, intent: Intent) -> None:
    """What was understood; a request that was taken as it stands needs no repeating."""
    if intent.by != "echo":
        return
    out.heading("Intent")
    out.say(f"  {intent.task}")
    for number, step in enumerate(intent.steps, 1):
        out.say(f"  {number}. {step.action}" + (f" ({step.about})" if step.about else ""))
    for constraint in intent.constraints:
        out.say(f"  • {constraint}")


def show_plan(out: Output, source: str) -> None:
    """The plan as people read it, with colours where there are some."""
    out.heading("Plan")
    indented = "".join(f"  {line}\n" for line in make_visible(source).splitlines())
    if not out.is_live_terminal:
        out.say(indented)
        return
    from rich.syntax import Syntax

    syntax = Syntax(indented.rstrip("\n"), "python", theme="ansi_dark", background_color="default")
    out.console.print(syntax, soft_wrap=True)


def show_report(out: Output, report: Report, proof: Proof | None, *, briefly: bool = False) -> None:
    """What the check found, what the plan changes, what it can cost, and the verdict on each call.

    Briefly, only the verdicts on calls that are refused: what may be asked will be, when the call is made.
    """
    out.heading("Check")
    for finding in report.findings:
        show_finding(out, finding)
    if report.ok:
        out.say(f"  ok · {effects_text(report)} · {_calls_text(report)}{_proved_text(proof)}")
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


def _calls_text(report: Report) -> str:
    tools, models = report.cost.tool_calls, report.cost.model_calls
    text = f"{tools} tool call{'' if tools.most == 1 else 's'}"
    return text + (f", {models} model call{'' if models.most == 1 else 's'}" if models.most else "")


def _proved_text(proof: Proof | None) -> str:
    from bicameral.plans import Proved

    if proof is None or not proof.calls:
        return ""
    if proof.proved:
        return " · proved"
    open_ = dict.fromkeys(call.tool for call in proof.calls if not isinstance(call.verdict, Proved))
    return f" · {'you may be asked about' if proof.questions else 'not proved:'} {', '.join(open_)}"


def show_outcome(out: Output, outcome: RunOutcome, planning: ChamberUsage | None = None) -> None:
    """The answer on standard output; how the run ended if it did not come to one. `planning` is what the plan cost."""
    from bicameral.runs import Failed, Finished, Interrupted, Stopped, Waiting

    match outcome:
        case Finished():
            done = effects_done_text(outcome.effects)
            out.say(
                f"done in {outcome.seconds:.1f} s" + (f": {done}" if done else "") + f" (run {outcome.run})",
                style="dim",
            )
            say_usage(out, outcome, planning)
            if outcome.answer is not None or not done:
                out.show(answer_text(outcome.answer, out.width))
        case Failed() | Interrupted():
            out.say(f"error: {outcome.error}", style="red")
            out.say(f"  {_before_text(outcome.effects)} (run {outcome.run})")
            say_usage(out, outcome, planning)
        case Waiting():
            out.say(f"waits for you (run {outcome.run})", style="yellow")
            out.say(f"  {_before_text(outcome.effects)}")
        case Stopped():
            out.say(f"stopped after {outcome.seconds:.1f} s (run {outcome.run})", style="yellow")
            out.say(f"  {_before_text(outcome.effects)}")
            if outcome.in_flight:
                out.say(f"  in flight, so their effect is not known: step {', '.join(outcome.in_flight)}")
            say_usage(out, outcome, planning)


def effects_done_text(effects: tuple[EffectDone, ...]) -> str:
    """What was changed, tool by tool."""
    counted = Counter(done.tool for done in effects)
    return ", ".join(f"{tool}" + (f" × {times}" if times > 1 else "") for tool, times in counted.items())


def _before_text(effects: tuple[EffectDone, ...]) -> str:
    return f"done before that: {effects_done_text(effects)}" if effects else "nothing had been changed"


def planned_json(planned: Planned) -> dict[str, Any]:
    """A plan and how it came about, for a program."""
    return {
        "intent": planned.intent.model_dump(mode="json"),
        "plan": planned.plan.model_dump(mode="json"),
        "source": planned.source,
        "report": planned.report.to_json(),
        "proof": proof_json(planned.proof),
        "repairs": planned.repairs,
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
    """How a run ended, for a program: also the labels of the answer, and what nobody was there to be asked."""
    from bicameral.labels import label_tree_to_json
    from bicameral.runs import ApprovalQuestion, Failed, Finished, Interrupted, Waiting

    facts: dict[str, Any] = {
        "ok": outcome.ok,
        "run": outcome.run,
        "seconds": round(outcome.seconds, 3),
        "effects": [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in outcome.effects],
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

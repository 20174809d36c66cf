"""Intents, plans, findings and outcomes, shown to a person."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bicameral.display import visible

from ._output import Output
from ._proof import proof_json, say_verdicts
from ._usage import say_usage, usage_json
from ._values import answer_text, readable

if TYPE_CHECKING:
    from bicameral.agent import Planned
    from bicameral.intent import Intent
    from bicameral.plans import Finding, Proof, Report
    from bicameral.runs import EffectDone, RunOutcome
    from bicameral.sessions import Spent

_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}


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
    indented = "".join(f"  {line}\n" for line in visible(source).splitlines())
    if not out.lively:
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
        out.say(f"  ok · {effects_text(report)} · {_cost_text(report)}{_proved_text(proof)}")
    say_verdicts(out, proof, briefly=briefly)


def show_finding(out: Output, finding: Finding) -> None:
    out.say(f"  {finding.severity}: {finding}", style=_STYLES[finding.severity])


def effects_text(report: Report) -> str:
    """The changes that a plan makes: `sends with send_mail; writes with write_csv`."""
    verbs = {"write": "writes", "send": "sends", "irreversible": "changes for good"}
    used: dict[str, list[str]] = {}
    for use in report.effects:
        if use.effect in verbs and use.tool not in used.setdefault(use.effect, []):
            used[use.effect].append(use.tool)
    told = [f"{verbs[effect]} with {', '.join(tools)}" for effect, tools in used.items() if tools]
    return "; ".join(told) or "changes nothing"


def _cost_text(report: Report) -> str:
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


def show_outcome(out: Output, outcome: RunOutcome, planning: Spent | None = None) -> None:
    """The answer on standard output; how the run ended if it did not come to one. `planning` is what the plan cost."""
    from bicameral.runs import Failed, Finished, Interrupted, Stopped, Waiting

    match outcome:
        case Finished():
            done = done_text(outcome.effects)
            out.say(
                f"done in {outcome.seconds:.1f} s" + (f": {done}" if done else "") + f" (run {outcome.run})",
                style="dim",
            )
            say_usage(out, outcome, planning)
            if outcome.answer is not None or not done:
                out.show(answer_text(outcome.answer, out.width))
        case Failed() | Interrupted():
            out.say(f"error: {outcome.error}", style="red")
            out.say(f"  {_before(outcome.effects)} (run {outcome.run})")
            say_usage(out, outcome, planning)
        case Waiting():
            out.say(f"waits for you (run {outcome.run})", style="yellow")
            out.say(f"  {_before(outcome.effects)}")
        case Stopped():
            out.say(f"stopped after {outcome.seconds:.1f} s (run {outcome.run})", style="yellow")
            out.say(f"  {_before(outcome.effects)}")
            if outcome.in_flight:
                out.say(f"  in flight, so their effect is not known: step {', '.join(outcome.in_flight)}")
            say_usage(out, outcome, planning)


def done_text(effects: tuple[EffectDone, ...]) -> str:
    """What was changed, tool by tool."""
    counted = Counter(done.tool for done in effects)
    return ", ".join(f"{tool}" + (f" × {times}" if times > 1 else "") for tool, times in counted.items())


def _before(effects: tuple[EffectDone, ...]) -> str:
    return f"done before that: {done_text(effects)}" if effects else "nothing had been changed"


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
    from bicameral.labels import shade_to_json
    from bicameral.runs import Failed, Finished, Interrupted, Question, Waiting

    facts: dict[str, Any] = {
        "ok": outcome.ok,
        "run": outcome.run,
        "seconds": round(outcome.seconds, 3),
        "effects": [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in outcome.effects],
        **usage_json(outcome),
    }
    match outcome:
        case Finished():
            labels = {} if outcome.shade is None else {"shade": shade_to_json(outcome.shade)}
            return facts | {"answer": readable(outcome.answer)} | labels
        case Failed():
            question: object = getattr(outcome.error, "question", None)
            asked = {"question": question.to_json()} if isinstance(question, Question) else {}
            return facts | {"error": outcome.error.to_json(), "step": outcome.step} | asked
        case Interrupted():
            return facts | {"error": outcome.error.to_json(), "interrupted": True}
        case Waiting(question=waits_for, ask=ask):
            what = {"question": waits_for.to_json()} if waits_for else {"ask": ask.to_json()} if ask else {}
            return facts | {"waiting": True} | what
        case _:
            return facts | {"stopped": True, "in_flight": list(outcome.in_flight)}

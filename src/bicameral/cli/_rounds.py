"""A request worked on in rounds, at the command line: every plan, its verdicts and steps, and what was told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bicameral.labels import received

from ._approving import TerminalApprover
from ._asking import TerminalAsker
from ._exits import FAILED, INTERRUPTED, NEEDS_A_PERSON, NO_PLAN, OK, QUESTIONS
from ._live import Display, display
from ._output import Output
from ._proof import proof_json
from ._render import done_text, show_intent, show_plan, show_report
from ._usage import say_usage, usage_json
from ._values import answer_text, readable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bicameral.agent import Agent
    from bicameral.plans import Plan
    from bicameral.reasoner import Reasoned, Round, Written
    from bicameral.runs import Checked

    May = Callable[[Plan, Checked], Awaitable[bool]]


class Rounds:
    """Shows one reasoning while it goes on, and how it ended. `may` says whether a plan that was shown may run."""

    def __init__(self, out: Output, may: May) -> None:
        self._out = out
        self._may = may
        self._facts: dict[int, dict[str, Any]] = {}

    async def reason(self, agent: Agent, request: str, rounds: int, *, deterministic: bool, fresh: bool) -> int:
        """Do what a request asks for; the exit code."""
        with display(self._out) as shown:
            asker, approver = None, None
            if self._out.interactive:
                asker = TerminalAsker(self._out, shown.quiet)
                approver = TerminalApprover(self._out, agent.registry, shown.quiet)
            shown.phase("planning")
            intent = await agent.intent(received(request), deterministic=deterministic, asker=asker)
            shown.close()
            show_intent(self._out, intent)
            shown.phase("planning")
            company = self._company(shown)
            reasoned = await agent.reason(
                intent, rounds=rounds, company=company, asker=asker, approver=approver, fresh=fresh
            )
        self._show(reasoned)
        self._out.object(self._json(reasoned))
        return code_of(reasoned)

    def _company(self, shown: Display) -> Any:
        from bicameral.reasoner import Company

        async def written(this: Written) -> bool:
            shown.close()
            self._out.heading(f"Round {this.number}")
            show_plan(self._out, this.source)
            show_report(self._out, this.checked.report, this.checked.proof, briefly=True)
            self._facts[this.number] = {
                "proof": proof_json(this.checked.proof),
                "report": this.checked.report.to_json(),
            }
            may = not this.checked.ok or await self._may(this.compiled.plan, this.checked)
            shown.phase("running")
            return may

        def done(this: Round) -> None:
            shown.close()
            self._say(this)
            shown.phase("planning")

        return Company(observer=shown.step, watch=shown.statement, written=written, done=done)

    def _say(self, this: Round) -> None:
        """What the planner is told of a round: nothing else of it crosses."""
        for line in this.told:
            self._out.say(f"  told: {line}")
        if this.failure is not None:
            self._out.say(f"  round {this.number} {this.failure}", style="yellow")
            error = getattr(this.outcome, "error", None)
            if error is not None:
                self._out.say(f"  {error}", style="dim")
        if this.outcome is not None:
            say_usage(self._out, this.outcome)

    def _show(self, reasoned: Reasoned) -> None:
        from bicameral.reasoner import Answered, Exhausted

        done = done_text(tuple(effect for each in reasoned.rounds for effect in each.effects))
        count = len(reasoned.rounds)
        spent = f"{reasoned.taken.seconds:.1f} s, {count} round{'' if count == 1 else 's'}"
        match reasoned:
            case Answered(answer=answer):
                self._out.say(f"done in {spent}" + (f": {done}" if done else "") + f" ({reasoned.id})", style="dim")
                if answer is not None or not done:
                    self._out.show(answer_text(answer, self._out.width))
                return
            case Exhausted(bound=bound, spent=used, limit=limit):
                self._out.say(f"error: no answer within {limit:g} {bound} (spent: {used:g})", style="red")
            case _:
                self._out.say(f"error: {reasoned.error}", style="red")
        self._out.say(f"  {f'done before that: {done}' if done else 'nothing had been changed'} ({reasoned.id})")

    def _json(self, reasoned: Reasoned) -> dict[str, Any]:
        from bicameral.labels import shade_to_json
        from bicameral.reasoner import Answered, Exhausted

        rounds = [_round_json(each) | self._facts.get(each.number, {}) for each in reasoned.rounds]
        facts = {"ok": reasoned.ok, "reason": reasoned.id, "rounds": rounds, "taken": reasoned.taken.to_json()}
        match reasoned:
            case Answered(answer=answer, shade=shade):
                labels = {} if shade is None else {"shade": shade_to_json(shade)}
                return facts | {"answer": readable(answer)} | labels
            case Exhausted(bound=bound, spent=spent, limit=limit):
                return facts | {"bound": bound, "spent": spent, "limit": limit}
            case _:
                return facts | {"error": reasoned.error.to_json()}


def _round_json(this: Round) -> dict[str, Any]:
    return {
        "round": this.number,
        "run": this.run,
        "source": this.source,
        "told": list(this.told),
        "left": list(this.left),
        "failed": str(this.failure) if this.failure is not None else None,
        "effects": [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in this.effects],
        **({} if this.outcome is None else usage_json(this.outcome)),
    }


def code_of(reasoned: Reasoned) -> int:
    """The exit code for how a reasoning ended."""
    from bicameral.reasoner import Answered, GaveUp

    match reasoned:
        case Answered():
            return OK
        case GaveUp(error=error) if error.code == "reason.interrupted":
            return INTERRUPTED
        case GaveUp(error=error) if error.code in NEEDS_A_PERSON:
            return QUESTIONS
        case GaveUp(error=error) if error.code == "plan.none":
            return NO_PLAN
        case _:
            return FAILED

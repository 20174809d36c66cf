"""A request worked on with a strategy, at the command line: each phase with its model, each call, and the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError
from bicameral.labels import received

from ._approving import TerminalApprover
from ._exits import FAILED, INTERRUPTED, NEEDS_A_PERSON, OK, QUESTIONS
from ._live import Display, display
from ._output import Output
from ._render import done_text
from ._usage import tokens_text
from ._values import answer_text, readable

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.patterns import Outcome
    from bicameral.strategies import Audience, Turn, Worked


class Working:
    """Shows one conversation while it goes on, and how it ended."""

    def __init__(self, out: Output, *, careful: bool) -> None:
        self._out, self._careful = out, careful

    async def work(self, agent: Agent, request: str, strategy: str) -> int:
        """Do what a request asks for; the exit code."""
        with display(self._out) as shown:
            approver = None
            if self._out.interactive:
                approver = TerminalApprover(self._out, agent.registry, shown.quiet)
            worked = await agent.work(
                received(request),
                strategy=strategy,
                approver=approver,
                observer=shown.step,
                audience=self._audience(shown),
                careful=self._careful and approver is not None,
            )
        self._show(worked)
        self._out.object(worked_json(worked))
        return code_of(worked)

    def _audience(self, shown: Display) -> Audience:
        from bicameral.strategies import Audience

        def turn(this: Turn) -> None:
            shown.close()
            self._out.say(turn_text(this), style="dim")

        return Audience(lambda phase, _: shown.phase(phase), shown.text, turn)

    def _show(self, worked: Worked) -> None:
        from bicameral.strategies import Answered

        done, spent = done_text(worked.effects), f"{worked.taken.seconds:.1f} s"
        for step in worked.left_open if isinstance(worked, Answered) else ():
            self._out.say(f"  left open: {step}", style="yellow")
        if text := tokens_text(worked.taken.models.to_json()):
            self._out.say(text, style="dim")
        if isinstance(worked, Answered):
            self._out.say(f"done in {spent}" + (f": {done}" if done else "") + f" ({worked.run})", style="dim")
            self._out.show(answer_text(worked.answer, self._out.width))
            return
        self._out.say(f"error: {_why(worked)}", style="red")
        self._out.say(f"  {f'done before that: {done}' if done else 'nothing had been changed'} ({worked.run})")


def turn_text(turn: Turn) -> str:
    """`  act: main (gpt-4.1, privileged), by phase: balance, send`."""
    alias = f"{turn.route.alias} ({turn.model}, {turn.chamber})" if turn.route else f"{turn.model} ({turn.chamber})"
    by = f", by {turn.route.by}" if turn.route else ""
    asks = f", asks for {', '.join(turn.calls)}" if turn.calls else ""
    less = f", degraded: {turn.degraded}" if turn.degraded else ""
    return f"  {turn.phase}: {alias}{by}{asks}{less}"


def worked_json(worked: Worked) -> dict[str, Any]:
    """Everything, for a program."""
    from bicameral.labels import shade_to_json
    from bicameral.strategies import Answered, Exhausted

    facts: dict[str, Any] = {
        "ok": worked.ok,
        "run": worked.run,
        "strategy": worked.strategy,
        "turns": [turn.to_json() for turn in worked.turns],
        "taken": worked.taken.to_json(),
        "effects": [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in worked.effects],
    }
    match worked:
        case Answered(answer=answer, shade=shade, left_open=left_open):
            labels = {} if shade is None else {"shade": shade_to_json(shade)}
            return facts | {"answer": readable(answer), "left_open": list(left_open)} | labels
        case Exhausted(bound=bound, spent=spent, limit=limit):
            return facts | {"bound": bound, "spent": spent, "limit": limit}
        case _:
            return facts | {"error": worked.error.to_json(), "in_flight": list(worked.in_flight)}


def _why(worked: Worked) -> str:
    from bicameral.strategies import Exhausted, Exhaustion, GaveUp

    match worked:
        case Exhausted(bound=bound, spent=spent, limit=limit):
            return str(Exhaustion(bound, spent, limit))
        case GaveUp(error=error):
            return str(error)
        case _:
            return ""


def code_of(worked: Worked | Outcome[Any]) -> int:
    """The exit code for how it ended."""
    if worked.ok:
        return OK
    error: BicameralError | None = getattr(worked, "error", None)
    code = error.code if error is not None else ""
    return INTERRUPTED if code == "run.stopped" else QUESTIONS if code in NEEDS_A_PERSON else FAILED

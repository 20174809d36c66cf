"""Runners for requests in rounds, by a strategy or by a pattern: they show progress and the outcome."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from bicameral.cli._displays import ProgressDisplay, open_display
from bicameral.cli._output import EXIT_CODES, FAILED, Output, terminal_people
from bicameral.cli._plain_values import answer_text
from bicameral.cli._render import (
    checked_json,
    effects_before_text,
    effects_done_text,
    say_doubts,
    say_usage,
    show_intent,
    show_plan,
    show_report,
    tokens_text,
    usage_json,
)
from bicameral.display import to_plain_json
from bicameral.labels import user_input

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bicameral.agent import Agent
    from bicameral.patterns import Exhausted, Outcome, Pattern
    from bicameral.patterns.reasoner import Round, WrittenRound
    from bicameral.patterns.strategies import ConversationObserver, ModelTurn, StrategyChoice
    from bicameral.planning import Intent
    from bicameral.plans import Plan
    from bicameral.runs import Checked

    May = Callable[[Plan, Checked], Awaitable[bool]]


class RoundsRunner:
    """Runs a request in rounds, and shows it. `may` says whether a plan that was shown may run."""

    def __init__(self, out: Output, may: May) -> None:
        self._out = out
        self._may = may
        self._facts: dict[int, dict[str, Any]] = {}

    async def reason(
        self, agent: Agent, request: str | Intent, rounds: int, *, deterministic: bool, fresh: bool, why: str = ""
    ) -> Outcome[Any]:
        """Run a request, and show the rounds; `why` is recorded where nobody asked for them."""
        with open_display(self._out) as shown:
            said = request if isinstance(request, str) else request.request
            asker, approver = terminal_people(self._out, agent.registry, shown.quiet, said)
            shown.phase("planning")
            if isinstance(request, str):
                intent = await agent.intent(user_input(request), deterministic=deterministic, asker=asker)
            else:
                intent = request
            shown.close()
            show_intent(self._out, intent)
            shown.phase("planning")
            company = self._callbacks(shown)
            return await agent.reason(
                intent, rounds=rounds, company=company, asker=asker, approver=approver, fresh=fresh, why=why
            )

    def report(self, reasoned: Outcome[Any]) -> int:
        """Show the outcome, and return the exit code."""
        history = [_round_json(each) | self._facts.get(each.number, {}) for each in reasoned.rounds]
        show_outcome(self._out, reasoned, "reason")
        self._out.write_json(outcome_json(reasoned, "reason", history))
        return outcome_exit_code(reasoned)

    def _callbacks(self, shown: ProgressDisplay) -> Any:
        from bicameral.patterns.reasoner import ReasoningCallbacks

        async def show_and_confirm(this: WrittenRound) -> bool:
            shown.close()
            self._out.heading(f"Round {this.number}")
            show_plan(self._out, this.source)
            show_report(self._out, this.checked.report, this.checked.proof, briefly=True)
            self._facts[this.number] = checked_json(this.checked)
            may = not this.checked.ok or await self._may(this.compiled.plan, this.checked)
            shown.phase("running")
            return may

        def say_round(this: Round) -> None:
            shown.close()
            self._say_round(this)
            shown.phase("planning")

        return ReasoningCallbacks(observer=shown.step, watch=shown.statement, written=show_and_confirm, done=say_round)

    def _say_round(self, this: Round) -> None:
        """Say what the planner learns of a round; nothing else of it crosses to the privileged side."""
        for line in this.told:
            self._out.say(f"  told: {line}")
        if this.failure is not None:
            self._out.say(f"  round {this.number} {this.failure}", style="yellow")
            error = getattr(this.outcome, "error", None)
            if error is not None:
                self._out.say(f"  {error}", style="dim")
        if this.outcome is not None:
            say_usage(self._out, this.outcome)


def _round_json(this: Round) -> dict[str, Any]:
    return {
        "round": this.number,
        "run": this.run,
        "source": this.source,
        "told": list(this.told),
        "left": list(this.left),
        "failed": str(this.failure) if this.failure is not None else None,
        "effects": [done.to_json() for done in this.effects],
        **({} if this.outcome is None else usage_json(this.outcome)),
    }


class StrategyRunner:
    """Runs a request with a strategy, and shows the conversation and the outcome."""

    def __init__(self, out: Output, *, careful: bool) -> None:
        self._out, self._careful = out, careful

    async def run_request(self, agent: Agent, request: str, strategy: StrategyChoice) -> int:
        """Run a request, and return the exit code."""
        with open_display(self._out) as shown:
            _, approver = terminal_people(self._out, agent.registry, shown.quiet, request)
            worked = await agent.work(
                user_input(request),
                strategy=strategy,
                approver=approver,
                observer=shown.step,
                audience=self._observer(shown),
                careful=self._careful and approver is not None,
            )
        show_outcome(self._out, worked, "strategy")
        self._out.write_json(outcome_json(worked, "strategy", [turn.to_json() for turn in worked.turns]))
        return outcome_exit_code(worked)

    def _observer(self, shown: ProgressDisplay) -> ConversationObserver:
        from bicameral.patterns.strategies import ConversationObserver

        def turn(this: ModelTurn) -> None:
            shown.close()
            self._out.say(turn_text(this), style="dim")

        return ConversationObserver(lambda phase, _: shown.phase(phase), shown.text, turn)


def turn_text(turn: ModelTurn) -> str:
    """`  act: main (gpt-4.1, privileged), by phase: balance, send`."""
    alias = f"{turn.route.alias} ({turn.model}, {turn.chamber})" if turn.route else f"{turn.model} ({turn.chamber})"
    by = f", by {turn.route.by}" if turn.route else ""
    asks = f", asks for {', '.join(turn.calls)}" if turn.calls else ""
    less = f", degraded: {turn.degraded}" if turn.degraded else ""
    opened = f"\n    sees more than one typed sub-task: {turn.open_reason}" if turn.open_reason else ""
    return f"  {turn.phase}: {alias}{by}{asks}{less}{opened}"


class PatternRunner:
    """Runs a pattern, and shows its trace and outcome."""

    def __init__(self, out: Output) -> None:
        self._out = out

    async def run_request(self, agent: Agent, id: str, request: str, knobs: Mapping[str, Any]) -> int:
        """Run the pattern with the tools of the agent, and return the exit code."""
        from bicameral.patterns import text_pattern

        pattern = text_pattern(id, knobs)
        outcome = await self._run(agent, pattern, (user_input(request),), agent.registry, agent.policy)
        show_outcome(self._out, outcome, "pattern")
        self._out.write_json(_pattern_json(outcome))
        return outcome_exit_code(outcome)

    async def run_example(self, agent: Agent, id: str, knobs: Mapping[str, Any]) -> int:
        """Run the example of the pattern with its own tools, in a temporary folder, and return the exit code."""
        from bicameral.patterns import Answered, example_of
        from bicameral.policy import Policy
        from bicameral.tools import Registry

        example = example_of(id)
        self._out.say(example.about, style="dim")
        with tempfile.TemporaryDirectory(prefix="bicameral-pattern-") as name:
            folder = Path(name)
            registry = Registry(example.tools(folder))
            pattern: Pattern[..., Any] = replace(cast("Any", example.make(folder)), **knobs)
            outcome = await self._run(agent, pattern, example.arguments(folder), registry, Policy((), registry))
            good = isinstance(outcome, Answered) and example.is_correct(outcome)
        show_outcome(self._out, outcome, "pattern")
        if outcome.ok:
            self._out.say("as it should be" if good else "not what it should be", style="green" if good else "yellow")
        self._out.write_json(_pattern_json(outcome) | {"good": good})
        return outcome_exit_code(outcome) if not outcome.ok or good else FAILED

    async def _run(
        self, agent: Agent, pattern: Pattern[..., Any], given: tuple[Any, ...], registry: Any, policy: Any
    ) -> Outcome[Any]:
        with open_display(self._out) as shown:
            _, approver = terminal_people(self._out, registry, shown.quiet)
            desk = agent.runtime(approver=approver, observer=shown.step)
            return await pattern.run(replace(desk, registry=registry, policy=policy), *given)


def trace_text(moment: Mapping[str, Any]) -> str:
    """`worker 1/ asked Worker (local:0.5b, quarantined): 120 + 14 tokens, 1.2 s`."""
    at = f"{moment['at']} " if moment["at"] else ""
    if "asked" in moment:
        spent = f"{moment['prompt_tokens']:,} + {moment['output_tokens']:,} tokens, {moment['seconds']:.1f} s"
        return f"{at}asked {moment['asked']} ({moment['model']}, {moment['chamber']}): {spent}"
    if "called" in moment:
        failed = f", failed: {moment['error']}" if "error" in moment else ""
        return f"{at}called {moment['called']}{failed}"
    facts = ", ".join(f"{name} {value}" for name, value in moment.items() if name not in ("noted", "at"))
    return f"{at}{moment['noted']}" + (f": {facts}" if facts else "")


def _pattern_json(outcome: Outcome[Any]) -> dict[str, Any]:
    return outcome_json(outcome, "pattern", [moment.to_json() for moment in outcome.trace])


OutcomeKind = Literal["reason", "strategy", "pattern"]
_HISTORY_KEYS = {"reason": "rounds", "strategy": "turns", "pattern": "trace"}


def show_outcome(out: Output, outcome: Outcome[Any], kind: OutcomeKind) -> None:
    """Show how a reasoning, a strategy or a pattern ended."""
    from bicameral.patterns.strategies import Answered, GaveUp

    say_doubts(out, outcome.doubts)
    for step in outcome.left_open:
        out.say(f"  left open: {step}", style="yellow")
    for moment in outcome.trace:
        out.say(f"  {trace_text(moment.to_json())}", style="dim")
    # Of a reasoning the tokens are shown round by round.
    if kind != "reason" and (text := tokens_text(outcome.taken.models.to_json())):
        out.say(text, style="dim")
    done, count = effects_done_text(outcome.effects), len(outcome.rounds)
    match outcome:
        case Answered(value=value):
            spent = f"{outcome.taken.seconds:.1f} s"
            spent += f", {count} round{'' if count == 1 else 's'}" if kind == "reason" else ""
            out.say(f"done in {spent}" + (f": {done}" if done else "") + f" ({outcome.run})", style="dim")
            if kind != "reason" or value is not None or not done:
                out.show(answer_text(value, out.width))
            return
        case GaveUp(error=error):
            out.say(f"error: {error}", style="red")
        case _:
            out.say(f"error: {_limit_text(outcome, kind)}", style="red")
            if kind == "pattern":
                return
    out.say(f"  {effects_before_text(outcome.effects)} ({outcome.run})")


def _limit_text(outcome: Exhausted, kind: OutcomeKind) -> str:
    from bicameral.limits import STRATEGY, LimitReached

    match kind:
        case "reason":
            return f"no answer within {outcome.limit:g} {outcome.bound} (spent: {outcome.spent:g})"
        case "strategy":
            return str(LimitReached(STRATEGY, outcome.bound, outcome.spent, outcome.limit))
        case "pattern":
            return f"{outcome.limit:g} {outcome.bound} were not enough ({outcome.run})"


def outcome_json(outcome: Outcome[Any], kind: OutcomeKind, history: list[dict[str, Any]]) -> dict[str, Any]:
    """The outcome of a reasoning, a strategy or a pattern as JSON; `history` are its rounds, turns or trace."""
    from bicameral.labels import label_tree_to_json
    from bicameral.patterns.strategies import Answered, GaveUp

    is_run = kind != "reason"
    facts: dict[str, Any] = {"ok": outcome.ok, "ending": outcome.ending} | (
        {"run": outcome.run, kind: outcome.way} if is_run else {}
    )
    facts |= {} if is_run else {"reason": outcome.run}
    facts |= {"doubts": [doubt.to_json() for doubt in outcome.doubts]}
    facts |= {_HISTORY_KEYS[kind]: history, "taken": outcome.taken.to_json()}
    facts |= {"effects": [done.to_json() for done in outcome.effects]} if is_run else {}
    facts |= {} if outcome.choice is None else {"strategy_choice": outcome.choice.to_json()}
    match outcome:
        case Answered(value=value, shade=shade):
            facts["value" if kind == "pattern" else "answer"] = to_plain_json(value)
            facts |= {"left_open": list(outcome.left_open)} if kind == "strategy" else {}
            return facts | {"shade": label_tree_to_json(shade)}
        case GaveUp(error=error, in_flight=in_flight):
            return facts | {"error": error.to_json()} | ({"in_flight": list(in_flight)} if is_run else {})
        case _:
            return facts | {"bound": outcome.bound, "spent": outcome.spent, "limit": outcome.limit}


def outcome_exit_code(outcome: Outcome[Any]) -> int:
    """The exit code of a reasoning, a strategy or a pattern."""
    return EXIT_CODES[outcome.ending]

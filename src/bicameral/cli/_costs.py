"""Money and budgets in a line: what a run may cost before it begins, and what it did cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._output import Output

if TYPE_CHECKING:
    from bicameral.agent import Agent, Worst
    from bicameral.plans import Report
    from bicameral.routing import Budgets


def money_text(money: float | None, currency: str) -> str:
    """`0.0123 USD`; what nobody knows is not called 0."""
    if money is None:
        return "price not known"
    return f"{money:,.2f} {currency}" if money >= 100 or money == 0 else f"{money:,.4f} {currency}"


def say_budget(out: Output, agent: Agent, report: Report) -> None:
    """What a run of the plan may take at worst; nothing where it costs nothing and nothing is bounded."""
    if not report.ok or not report.cost.model_calls.most:
        return
    worst, budgets = agent.worst(report), agent.budgets
    if worst.money == 0 and not budgets.bounded:
        return
    calls = f"{worst.calls:,} model call{'' if worst.calls == 1 else 's'}"
    cost = _cost_text(worst, agent.prices.currency)
    out.say(f"  budget: at most {calls}, {worst.tokens:,} tokens, {cost}{_allowed_text(worst, budgets)}")


def say_degraded(out: Output, degraded: Iterable[str]) -> None:
    """Every way in which an answer is less than what was wanted."""
    for said in degraded:
        out.say(f"degraded: {said}", style="yellow")


def _cost_text(worst: Worst, currency: str) -> str:
    if worst.unpriced:
        return f"price of {', '.join(worst.unpriced)} not known"
    return money_text(worst.money, currency)


def _allowed_text(worst: Worst, budgets: Budgets) -> str:
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

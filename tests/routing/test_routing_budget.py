"""Budgets: no call begins once one is spent, whoever makes it, side by side or one after the other."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest
from adaptive_world import ASK, READS, Model, Turn, caught, fails, model, virtually
from hypothesis import given, strategies as st

from bicameral.errors import ModelError
from bicameral.limits import Budgets, BudgetSpent, Limits, Price, Prices, budget_scope, remaining_for_role, use_prices
from bicameral.models import Message, ModelReply, ModelRequest, Provider
from bicameral.routing import (
    BudgetedProvider,
    Cascade,
    Fallback,
    Hedged,
    Retry,
    RetrySettings,
    call_context,
    current_context,
    meter_provider,
)
from bicameral.sessions import Quarantined, Session

DEAR = Prices({"dear": Price(read=1_000_000, written=1_000_000)})
EACH = READS + 5
"""Tokens of one call, which with these prices is also its cost."""


def test_a_spent_budget_says_what_is_spent() -> None:
    it = meter_provider(model("a"))

    async def work() -> ModelError:
        with budget_scope(Budgets(Limits(calls=2))):
            await it.generate(ASK)
            await it.generate(ASK)
            return await caught(it.generate(ASK))

    error = virtually(work)
    assert isinstance(error, BudgetSpent)
    assert (error.code, error.bound, error.spent, error.limit, error.scope) == (
        "models.budget-spent",
        "calls",
        2,
        2,
        "run",
    )
    assert error.to_json()["bound"] == "calls"


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=12),
    st.none() | st.integers(0, 12),
    st.none() | st.integers(0, 200),
    st.none() | st.floats(0, 200),
)
def test_no_call_begins_when_something_is_spent(
    outputs: list[int], calls: int | None, tokens: int | None, money: float | None
) -> None:
    it = model("dear", *(Turn(output=output) for output in outputs))

    async def work() -> int:
        with use_prices(DEAR), budget_scope(Budgets(Limits(calls=calls, tokens=tokens, money=money))) as meter:
            for _ in outputs:
                with suppress(BudgetSpent):
                    await meter_provider(it).generate(ASK)
            return meter.usage.tokens

    spent = virtually(work)
    made = len(it.asked)
    costs = [READS + output for output in outputs]
    limits = [limit for limit in (tokens, money) if limit is not None]
    # A call is made exactly if nothing was spent before it.
    expected = 0
    for before in range(len(costs)):
        open_ = (calls is None or before < calls) and all(sum(costs[:before]) < limit for limit in limits)
        if not open_:
            break
        expected += 1
    assert made == expected
    assert spent == sum(costs[:made])


@given(st.integers(1, 20), st.integers(0, 25), st.integers(1, 300))
def test_side_by_side_calls_do_not_slip_through(together: int, calls: int, tokens: int) -> None:
    it = model("a", Turn(after=1, output=0))

    async def work() -> list[object]:
        with budget_scope(Budgets(Limits(calls=calls, tokens=tokens))):
            return await asyncio.gather(
                *(meter_provider(it).generate(ASK) for _ in range(together)), return_exceptions=True
            )

    results = virtually(work)
    assert len(it.asked) == min(together, calls, -(-tokens // READS))
    assert sum(isinstance(each, BudgetSpent) for each in results) == together - len(it.asked)


def test_a_role_has_a_budget_of_its_own() -> None:
    it = meter_provider(model("a"))

    async def work() -> list[str]:
        ended: list[str] = []
        with budget_scope(Budgets(roles={"echo": Limits(calls=1)})):
            for role in ("echo", "delta", "echo", "delta"):
                with call_context(role=role):
                    try:
                        await it.generate(ASK)
                        ended.append("made")
                    except BudgetSpent as error:
                        ended.append(f"{error.scope} {error.whom}")
        return ended

    assert virtually(work) == ["made", "made", "role echo", "made"]


@pytest.mark.parametrize("shape", ["retry", "fallback", "hedge", "cascade"])
def test_every_model_that_is_really_asked_counts(shape: str) -> None:
    """Retries, fallbacks, stages and second requests are calls like any other, and a run's budget ends them."""
    down, slow = fails("models.unavailable"), Turn(after=50)
    parts: dict[str, tuple[Provider, list[Model]]] = {}
    one = model("a", down)
    parts["retry"] = Retry(one, RetrySettings(attempts=9)), [one]
    two = [model("a", down), model("b", down), model("c")]
    parts["fallback"] = Fallback(list(two)), two
    three = [model("a", slow), model("b", slow)]
    parts["hedge"] = Hedged(three[0], after=1, second=three[1]), three
    four = [model("a"), model("b"), model("c")]
    parts["cascade"] = Cascade(*four, accept=lambda request, reply: "no", settle=True), four
    provider, models = parts[shape]
    limit = 1 if shape == "hedge" else 2

    async def work() -> ModelError:
        with budget_scope(Budgets(Limits(calls=limit))):
            return await caught(provider.generate(ASK))

    error = virtually(work)
    assert isinstance(error, BudgetSpent)
    assert error.scope == "run"
    assert sum(len(each.asked) for each in models) == limit


def test_a_run_that_is_out_of_budget_falls_back_on_nobody() -> None:
    first, second = model("a"), model("b")

    async def work() -> ModelError:
        with budget_scope(Budgets(Limits(calls=0))):
            return await caught(Fallback([first, second]).generate(ASK))

    assert isinstance(virtually(work), BudgetSpent)
    assert not second.asked


def test_a_price_that_nobody_knows_is_not_nothing() -> None:
    it = model("unknown:model")

    async def work() -> str:
        with budget_scope(Budgets(Limits(money=1.0))):
            return (await caught(meter_provider(it).generate(ASK))).code

    assert virtually(work) == "models.price-unknown"
    assert not it.asked


def test_a_call_that_came_to_nothing_was_paid_for_all_the_same() -> None:
    it = model("dear", Turn(after=50))

    async def work() -> tuple[int, float]:
        with use_prices(DEAR), budget_scope(Budgets(Limits(money=100))) as meter:
            await caught(Retry(it).generate(replace(ASK, timeout=1)))
            return meter.usage.tokens, meter.usage.money

    assert virtually(work) == (READS, READS)


def test_a_call_that_one_account_refuses_is_not_left_open_in_another() -> None:
    it = BudgetedProvider(model("a"), Limits(calls=1))

    async def work() -> int:
        with budget_scope(Budgets(Limits(tokens=10_000))) as meter:
            await it.generate(ASK)
            assert isinstance(await caught(it.generate(ASK)), BudgetSpent)
            return meter.usage.pending_tokens

    assert virtually(work) == 0


def test_time_runs_out_too_and_bounds_the_last_call() -> None:
    it = model("a", Turn(after=50))

    async def work() -> str:
        with call_context(seconds_left=2.0):
            return (await caught(Retry(it).generate(ASK))).code

    assert virtually(work) == "models.timeout"
    error = virtually(lambda: _with(Budgets(Limits(seconds=0)), model("a")))
    assert isinstance(error, BudgetSpent)
    assert error.bound == "seconds"


async def _with(budgets: Budgets, it: Model) -> ModelError:
    with budget_scope(budgets):
        return await caught(meter_provider(it).generate(ASK))


def test_a_run_and_its_planning_share_a_purse_and_two_runs_do_not() -> None:
    budgets = Budgets(Limits(calls=2))

    async def work() -> list[int]:
        counts: list[int] = []
        with budget_scope(budgets) as outer:
            with budget_scope(budgets):
                await meter_provider(model("a")).generate(ASK)
            counts.append(outer.usage.calls)
        with budget_scope(budgets) as another:
            counts.append(another.usage.calls)
        return counts

    assert virtually(work) == [1, 0]


def test_runs_at_the_same_time_do_not_pay_for_each_other() -> None:
    budgets = Budgets(Limits(calls=3))
    it = model("a", Turn(after=1))

    async def run() -> int:
        with budget_scope(budgets) as meter:
            for _ in range(3):
                await meter_provider(it).generate(ASK)
            return meter.usage.calls

    async def work() -> list[int]:
        return await asyncio.gather(*(run() for _ in range(5)))

    assert virtually(work) == [3] * 5


def test_a_session_is_held_to_it_and_tells_a_router_what_is_left() -> None:
    seen: list[object] = []

    class Watching(Model):
        async def generate(self, request: ModelRequest) -> ModelReply:
            here = current_context()
            seen.append((here.role, here.tokens_left, here.money_left))
            return await super().generate(request)

    session = Session("echo", Watching("dear"), (Message("system", "x" * 40),))

    async def work() -> ModelError:
        with use_prices(DEAR), budget_scope(Budgets(Limits(money=100.0), {"echo": Limits(tokens=15)})):
            assert remaining_for_role("delta") == {"money_left": 100.0}
            await session.ask("hello")
            return await caught(session.ask("hello"))

    error = virtually(work)
    assert isinstance(error, BudgetSpent)
    assert seen == [("echo", 15.0, 100.0)]
    assert remaining_for_role("echo") == {}


def test_the_quarantined_model_is_held_to_it() -> None:
    inside = model("a", Turn(text="yes"))
    session = Session("quarantined", Quarantined(inside), ())

    async def work() -> ModelError:
        with budget_scope(Budgets(roles={"quarantined": Limits(calls=1)})):
            await session.ask("hello")
            return await caught(session.ask("hello"))

    assert isinstance(virtually(work), BudgetSpent)
    assert len(inside.asked) == 1


def test_nothing_counts_twice_however_deep_it_lies() -> None:
    leaf = model("a")
    deep = Quarantined(Fallback([Retry(Quarantined(Fallback([leaf])))]))

    async def work() -> int:
        with budget_scope(Budgets(Limits(calls=9))) as meter:
            await Session("quarantined", deep, ()).ask("hello")
            return meter.usage.calls

    assert virtually(work) == 1


@pytest.mark.parametrize("wrong", [{"calls": -1}, {"money": float("nan")}, {"tokens": True}, {"seconds": float("inf")}])
def test_a_budget_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ModelError) as raised:
        Limits(**wrong)  # pyright: ignore[reportArgumentType]
    assert raised.value.code == "models.bad-setting"

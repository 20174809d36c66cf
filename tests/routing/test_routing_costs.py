"""Costs: every call once, under its role, phase, step, model and run, from the journal to the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from adaptive_world import fails, model
from click.testing import CliRunner
from hypothesis import given, strategies as st

from bicameral.agent import Agent
from bicameral.cli import main
from bicameral.config import Config, budgets_of, load_config, open_prices
from bicameral.errors import ModelError
from bicameral.limits import (
    Budgets,
    BudgetSpent,
    Charge,
    CostEntry,
    CostGrouping,
    CostReport,
    CostTotals,
    Limits,
    Price,
    Prices,
    TimeUnit,
    cost_entries,
    unit_start,
)
from bicameral.models import ModelFailure, ModelRequest, Provider, ScriptedProvider
from bicameral.patterns.reasoner import Exhausted
from bicameral.routing import Fallback
from bicameral.runs import Failed, Finished, Journal

PRICES = Prices({"dear:planner": Price(2, 8), "dear:reader": Price(1, 4)})
PLAN = 'text = read_text("mail.txt")\ncount = extract(text, "How many apples?", int)\nanswer(count)\n'
REQUEST = "How many apples does mail.txt speak of?"

# Sums ----------------------------------------------------------------------------------------------------------------

words = st.sampled_from(["", "a", "b", "c"])
costs_ = st.builds(
    CostTotals,
    calls=st.integers(0, 5),
    prompt=st.integers(0, 99),
    output=st.integers(0, 99),
    money=st.integers(0, 99).map(float),
    unpriced=st.integers(0, 1),
)
spendings = st.lists(st.builds(CostEntry, words, st.floats(0, 1e9), words, words, words, words, costs_), max_size=12)


@given(spendings, st.sampled_from(get_args(CostGrouping)))
def test_however_they_are_told_apart_they_add_up_to_the_same(found: list[CostEntry], by: CostGrouping) -> None:
    costs = CostReport.of(found)
    assert sum(costs.by(by).values(), CostTotals()) == costs.total
    money = [cost.money for cost in costs.by(by).values()]
    assert money == sorted(money, reverse=True)


@given(spendings, st.sampled_from(get_args(TimeUnit)))
def test_however_time_is_cut_the_pieces_add_up_to_the_same_and_follow_each_other(
    found: list[CostEntry], unit: TimeUnit
) -> None:
    pieces = CostReport.of(found).over_time(unit)
    assert CostTotals.sum(pieces.values()) == CostReport.of(found).total
    assert list(pieces) == sorted(pieces)
    for entry in found:
        start = unit_start(entry.at, unit)
        assert start in pieces
        assert start.timestamp() <= entry.at or unit == "hour"
        assert unit_start(start.timestamp(), unit) == start


def test_a_week_begins_on_monday_and_a_month_with_its_first_day() -> None:
    at = datetime(2026, 4, 1, 13, 30, 5).timestamp()
    starts = [unit_start(at, unit) for unit in get_args(TimeUnit)]
    assert starts == [datetime(2026, 4, 1, 13), datetime(2026, 4, 1), datetime(2026, 3, 30), datetime(2026, 4, 1)]


@given(
    st.dictionaries(
        st.sampled_from(["charges", "planning_calls", "lost_calls", "role", "degraded"]),
        st.recursive(
            st.none() | st.integers() | st.text() | st.floats(),
            lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["charges", "money", "prompt"]), inner),
        ),
    ),
    st.sampled_from(["model-called", "run-started", "run-finished", "step-started"]),
)
def test_whatever_a_journal_holds_is_read_without_a_fault(body: dict[str, Any], kind: str) -> None:
    total = CostReport.of(cost_entries("run", 0.0, kind, "", body)).total
    assert total.money >= 0
    assert total.tokens >= 0


@given(st.none() | st.floats(0, 10), st.sampled_from(["answered", "failed", "cancelled", "remembered"]))
def test_a_charge_survives_the_journal(money: float | None, ending: Any) -> None:
    from bicameral.models import Usage

    charge = Charge("m", Usage(10, 3, 5), 0.25, money, ending, "echo", "plan", estimated=True)
    (found,) = cost_entries("r", 1.0, "model-called", "s", {"charges": [json.loads(json.dumps(charge.to_json()))]})
    assert (found.role, found.phase, found.model, found.step) == ("echo", "plan", "m", "s")
    assert (found.cost.prompt, found.cost.cached, found.cost.output) == (10, 3, 5)
    assert found.cost.unpriced == (money is None)
    assert found.cost.money == (money or 0.0)


# A run ---------------------------------------------------------------------------------------------------------------


def planner(*plans: str, name: str = "dear:planner") -> ScriptedProvider:
    return ScriptedProvider(list(plans or [PLAN]), name=name, grammars=False)


def reader(name: str = "dear:reader", reply: str | Callable[[ModelRequest], str] = '{"value": 12}') -> ScriptedProvider:
    return ScriptedProvider([("", reply)], name=name, grammars=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    for variable in ("BICAMERAL_CONFIG", "BICAMERAL_DEBUG", "BICAMERAL_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.txt").write_text("There are 12 apples.\n")
    return tmp_path


def agent(journal: Journal | None = None, **options: Any) -> Agent:
    given: dict[str, Any] = {"privileged": planner(), "quarantined": reader(), "prices": PRICES, "cache": {}}
    return Agent(journal=journal, config=Config.defaults(), **given | options)


def costs_of(journal: Journal) -> CostReport:
    return CostReport.of(each for event in journal.cost_events() for each in cost_entries(*event))


async def test_planning_and_running_are_both_there_under_their_names(folder: Path) -> None:
    journal = Journal(folder / "journal.db")
    async with agent(journal) as it:
        outcome = await it.run(await it.plan(REQUEST, deterministic=True))
        assert isinstance(outcome, Finished)
        costs = costs_of(journal)
    assert set(costs.by("role")) == {"delta", "quarantined"}
    assert set(costs.by("model")) == {"dear:planner", "dear:reader"}
    assert list(costs.by("run")) == [outcome.run]
    by = costs.by("model")
    planned, read = by["dear:planner"], by["dear:reader"]
    assert planned.money == pytest.approx((2 * planned.prompt + 8 * planned.output) / 1e6)
    assert read.money == pytest.approx((read.prompt + 4 * read.output) / 1e6)
    assert outcome.usage.money == pytest.approx(read.money)
    steps = [each.step for each in costs.entries if each.role == "quarantined"]
    assert steps
    assert all(steps)


async def test_a_degraded_answer_reaches_the_outcome_and_the_record(folder: Path) -> None:
    journal = Journal(folder / "journal.db")
    down = model("dear:reader", fails("models.unavailable"))
    async with agent(journal, quarantined=Fallback([down, reader("local:small")])) as it:
        outcome = await it.run(await it.plan(REQUEST, deterministic=True))
        costs = costs_of(journal)
    assert isinstance(outcome, Finished)
    assert outcome.usage.degraded == ("local:small answered instead of dear:reader (unavailable)",)
    assert outcome.usage.to_json()["degraded"]
    assert costs.degraded == outcome.usage.degraded
    assert costs.by("model")["dear:reader"].failed == 1


async def test_a_degraded_plan_says_so_and_is_not_kept(folder: Path) -> None:
    down, cache = model("dear:planner", fails("models.unavailable"), grammars=False), dict[str, str]()
    async with agent(privileged=Fallback([down, planner(PLAN, PLAN, name="local:other")]), cache=cache) as it:
        for _ in range(2):
            planned = await it.plan(REQUEST, deterministic=True)
            assert not planned.cached
            assert planned.degraded == ("local:other answered instead of dear:planner (unavailable)",)
    assert not cache


async def test_a_spent_budget_is_the_outcome_of_the_run(folder: Path) -> None:
    budgets = Budgets(roles={"quarantined": Limits(calls=0)})
    async with agent(budgets=budgets) as it:
        outcome = await it.run(await it.plan(REQUEST, deterministic=True))
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, BudgetSpent)
    assert (outcome.error.bound, outcome.error.scope, outcome.error.whom) == ("calls", "role", "quarantined")


async def test_a_spent_budget_ends_rounds_as_their_own_bounds_do(folder: Path) -> None:
    async with agent(budgets=Budgets(roles={"quarantined": Limits(calls=0)})) as it:
        reasoned = await it.reason(REQUEST, rounds=1, deterministic=True)
    assert isinstance(reasoned, Exhausted)
    assert (reasoned.bound, reasoned.spent, reasoned.limit) == ("calls", 0, 0)
    async with agent(budgets=Budgets(Limits(tokens=0))) as it:
        reasoned = await it.reason(REQUEST, rounds=1, deterministic=True)
    assert isinstance(reasoned, Exhausted)
    assert reasoned.bound == "tokens"


async def test_planning_and_running_share_the_budget_of_a_request(folder: Path) -> None:
    async with agent(budgets=Budgets(Limits(calls=1))) as it:
        with it.spending() as meter:
            outcome = await it.run(await it.plan(REQUEST, deterministic=True))
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, BudgetSpent)
        assert meter.usage.calls == 1
    async with agent(budgets=Budgets(Limits(calls=1))) as it:
        planned = await it.plan(REQUEST, deterministic=True)
        assert isinstance(await it.run(planned), Finished)


async def test_planning_beyond_the_budget_is_an_error(folder: Path) -> None:
    async with agent(budgets=Budgets(Limits(money=0.0))) as it:
        with pytest.raises(BudgetSpent):
            await it.plan(REQUEST, deterministic=True)


async def test_what_a_failed_call_cost_is_in_the_record(folder: Path) -> None:
    def broken(request: ModelRequest) -> str:
        raise ModelFailure("models.bad-reply", "it")

    journal = Journal(folder / "journal.db")
    async with agent(journal, quarantined=reader(reply=broken)) as it:
        outcome = await it.run(await it.plan(REQUEST, deterministic=True))
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, ModelError)
        cost = costs_of(journal).by("role")["quarantined"]
    assert (cost.calls, cost.failed, cost.estimated) == (1, 1, 1)
    assert cost.money > 0


async def test_a_replay_is_identical_and_costs_nothing(folder: Path) -> None:
    journal = Journal(folder / "journal.db")
    async with agent(journal) as it:
        outcome = await it.run(await it.plan(REQUEST, deterministic=True))
        before = costs_of(journal).total
        replayed = await it.replay(outcome.run)
        assert replayed.identical, replayed.differences
        assert costs_of(journal).total == before


async def test_rounds_are_counted_with_their_planning(folder: Path) -> None:
    journal = Journal(folder / "journal.db")
    async with agent(journal) as it:
        reasoned = await it.reason(REQUEST, rounds=2, deterministic=True)
        assert reasoned.ok
        costs = costs_of(journal)
    assert set(costs.by("role")) == {"delta", "quarantined"}
    assert reasoned.taken.money == pytest.approx(costs.total.money)


async def test_the_worst_case_is_no_less_than_what_a_run_costs(folder: Path) -> None:
    async with agent() as it:
        planned = await it.plan(REQUEST, deterministic=True)
        outcome = await it.run(planned)
        worst = it.worst_case(planned.report)
    assert worst.models == ("dear:reader",)
    assert worst.money is not None
    assert worst.money >= outcome.usage.money > 0
    assert worst.calls >= outcome.usage.spent.executor_calls
    async with agent(quarantined=reader("unknown:model")) as it:
        assert it.worst_case(planned.report).money is None
        assert it.worst_case(planned.report).unpriced == ("unknown:model",)


# Configuration and command line --------------------------------------------------------------------------------------

TOML = """
[llm]
prices = "prices.toml"
[llm.budget]
money = 0.5
calls = 40
[llm.role_budgets.quarantined]
tokens = 30000
"""
TABLE = """
[dear]
planner = { read = 2, written = 8 }
reader = { read = 1, written = 4 }
"""


def test_budgets_and_prices_are_configured(folder: Path) -> None:
    (folder / "bicameral.toml").write_text(TOML)
    (folder / "prices.toml").write_text(TABLE)
    config = load_config()
    assert budgets_of(config) == Budgets(Limits(calls=40, money=0.5), {"quarantined": Limits(tokens=30_000)})
    assert open_prices(config).of("dear:reader") == Price(1, 4)


def call(*words: str, quarantined: Provider | None = None, privileged: Provider | None = None, code: int = 0) -> Any:
    def make(config: Config) -> Agent:
        return Agent.from_config(
            config, privileged=privileged or planner(), quarantined=quarantined or reader(), cache={}
        )

    result = CliRunner().invoke(main, list(words), obj=make)
    assert result.exit_code == code, result.output
    return result


def test_the_command_line_tells_the_worst_case_before_and_the_costs_after(folder: Path) -> None:
    (folder / "bicameral.toml").write_text(TOML)
    (folder / "prices.toml").write_text(TABLE)
    ran = call("run", REQUEST, "--deterministic")
    assert "budget: at most 2 model calls" in ran.stderr
    assert "0.5 in money" in ran.stderr
    told = call("usage").stdout
    assert "delta" in told
    assert "total" in told
    facts = json.loads(call("usage", "last", "--by", "model", "--json").stdout)
    assert set(facts["costs"]) == {"dear:planner", "dear:reader"}
    assert facts["total"]["money"] == pytest.approx(sum(each["money"] for each in facts["costs"].values()))
    assert json.loads(call("usage", "--since", "2999-01-01", "--json").stdout)["total"]["calls"] == 0
    for by in get_args(CostGrouping):
        assert call("usage", "--by", by).stdout


def test_the_command_line_says_that_an_answer_is_degraded(folder: Path) -> None:
    down = model("dear:reader", fails("models.unavailable"))
    spare = Fallback([down, reader("local:small")])
    said = "degraded: local:small answered instead of dear:reader (unavailable)"
    assert said in call("run", REQUEST, "--deterministic", quarantined=spare).stderr
    assert said in call("runs", "show", "last").stdout
    assert said in call("usage", "last").stderr


def test_a_price_that_nobody_knows_is_said_and_not_summed(folder: Path) -> None:
    result = call("run", REQUEST, "--deterministic", quarantined=reader("unknown:model"))
    assert "price of unknown:model not known" in result.stderr
    told = call("usage", "last", "--by", "model")
    assert "price not known" in told.stdout
    assert "unknown:model" in told.stderr
    facts = json.loads(call("usage", "last", "--json").stdout)
    assert facts["unpriced"] == ["dear:planner", "unknown:model"]


def test_a_spent_budget_ends_the_command_with_an_error_that_says_which(folder: Path) -> None:
    (folder / "bicameral.toml").write_text("[llm.budget]\ncalls = 1\n")
    result = call("run", REQUEST, "--deterministic", code=1)
    assert "the budget of the run has no calls left: 1 of 1 are spent" in result.stderr
    assert "[models.budget-spent]" in result.stderr


def test_without_runs_there_are_no_costs(folder: Path) -> None:
    assert "no model was asked" in call("usage").stdout

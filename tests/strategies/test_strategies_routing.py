"""Phases and roles reach the routers of both chambers, and what they chose is on every turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from strategies_world import Office, Speaker, call, reading_config

from bicameral import Agent
from bicameral.limits import Budgets, Limits
from bicameral.models import Chamber
from bicameral.patterns.strategies import Answered, Exhausted
from bicameral.policy import Policy
from bicameral.routing import Alias, Aliases, Router, RoutingRule, Selection, current_context
from bicameral.runs import Journal

PHASES = {"sense": "fast", "plan": "powerful", "act": "main", "reflect": "powerful", "final_answer": "fast"}
READ = [call("read_page", name="news")]


def by_phase(untrusted: bool = True) -> Any:
    """One script for all models: what is said depends on the phase alone."""
    acted: list[int] = []

    def say(_: Any) -> Any:
        match current_context().phase:
            case "plan":
                return json.dumps({"steps": ["read the news"]})
            case "act":
                acted.append(1)
                return READ if len(acted) == 1 and untrusted else "read"
            case "reflect":
                return json.dumps({"verdict": "done", "note": ""})
            case phase:
                return f"{phase}."

    return say


def router(chamber: Chamber, say: Any, selection: Selection) -> Router:
    names = ("fast", "main", "powerful")
    aliases = [Alias.of(name, Speaker(say, name=f"{chamber[:4]}-{name}", chamber=chamber)) for name in names]
    return Router(Aliases(chamber, aliases), selection)


def routed(selection: Selection, say: Any, **options: Any) -> Agent:
    registry = Office().registry
    return Agent(
        registry,
        privileged=router("privileged", say, selection),
        quarantined=router("quarantined", say, selection),
        policy=Policy.load((), registry),
        cache={},
        config=reading_config("open"),
        **options,
    )


async def test_the_phase_map_holds_in_both_chambers() -> None:
    agent = routed(Selection("main", phases=PHASES), by_phase())
    worked = await agent.work("What is new?", strategy="spar")
    assert isinstance(worked, Answered), worked
    assert [(turn.phase, turn.model) for turn in worked.turns] == [
        ("sense", "priv-fast"),
        ("plan", "priv-powerful"),
        ("act", "priv-main"),
        ("act", "quar-main"),
        ("reflect", "quar-powerful"),
        ("final_answer", "quar-fast"),
    ]
    for turn in worked.turns:
        assert turn.route is not None
        assert (turn.route.alias, turn.route.by) == (PHASES[turn.phase], "phase")


async def test_without_a_phase_map_the_roles_count_also_in_quarantine() -> None:
    roles = {"planning": "powerful", "acting": "fast", "summarizing": "fast"}
    agent = routed(Selection("main", roles=roles), by_phase())
    worked = await agent.work("What is new?", strategy="plan_and_execute")
    assert [turn.model for turn in worked.turns] == ["priv-powerful", "priv-fast", "quar-fast", "quar-fast"]
    assert {turn.route.by for turn in worked.turns if turn.route} == {"role"}


async def test_rules_come_before_the_phase_map_and_see_the_label() -> None:
    rules = (RoutingRule.of("label:untrusted", "powerful"), RoutingRule.of("has_tools", "fast"))
    agent = routed(Selection("main", rules, PHASES), by_phase())
    worked = await agent.work("What is new?", strategy="plan_and_execute")
    assert [turn.model for turn in worked.turns] == ["priv-powerful", "priv-fast", "quar-powerful", "quar-powerful"]
    assert [turn.route.by for turn in worked.turns if turn.route] == ["phase", "rule", "rule", "rule"]


async def test_what_each_phase_cost_is_in_the_journal(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.db") as journal:
        agent = routed(Selection("main", phases=PHASES), by_phase(), journal=journal)
        worked = await agent.work("What is new?", strategy="plan_and_execute")
        asked = [event.body for event in journal.events(worked.run) if event.kind == "model-called"]
        assert (await agent.replay(worked.run)).identical
    charges = [charge for body in asked for charge in body["charges"]]
    assert [(each["phase"], each["role"]) for each in charges] == [
        ("plan", "planning"),
        ("act", "acting"),
        ("act", "acting"),
        ("final_answer", "summarizing"),
    ]
    assert [body["route"]["alias"] for body in asked] == ["powerful", "main", "main", "fast"]


async def test_a_spent_budget_is_an_outcome() -> None:
    agent = routed(Selection("main"), by_phase(), budgets=Budgets(run=Limits(calls=2)))
    worked = await agent.work("What is new?", strategy="plan_and_execute")
    assert isinstance(worked, Exhausted), worked
    assert (worked.bound, worked.limit, len(worked.turns)) == ("calls", 2, 2)

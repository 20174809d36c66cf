"""Roles of the user's own, hints, phase maps per strategy, and the two small names over the router."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from routing_world import request, says

import bicameral
from bicameral.models import Client, Message
from bicameral.routing import (
    PHASES,
    ROLES,
    STRATEGY_PHASES,
    Alias,
    Aliases,
    CallContext,
    ModelSelector,
    Router,
    RoutingRule,
    Selection,
    call_context,
    find_mistakes,
    resolve_model,
)

NAMES = ("main", "fast", "powerful")
CODING = Selection("main", roles={"planning": "powerful", "coding": "powerful", "summarizing": "fast"})


def router(selection: Selection = CODING, names: tuple[str, ...] = NAMES, *, elsewhere: tuple[str, ...] = ()) -> Router:
    chamber = "quarantined" if elsewhere else "privileged"
    aliases = [Alias.of(name, says(name)) for name in names]
    return Router(Aliases(chamber, aliases, elsewhere=elsewhere), selection)


def codes(selection: Selection) -> list[tuple[str, str | None]]:
    return [(each.error.code, each.error.nearest) for each in find_mistakes(selection, NAMES)]


# Roles of one's own


async def test_a_role_of_ones_own_is_reached_by_a_hint() -> None:
    reply = await Client(router()).complete([Message("user", "Write it.")], model="coding")
    assert reply.route is not None
    assert (reply.route.alias, reply.route.by, reply.route.note) == ("powerful", "role", None)


def test_a_role_of_ones_own_is_reached_by_the_hint_of_a_step_and_rules_may_test_it() -> None:
    assert router().choose(request(), CallContext(role="acting", hint="coding")).alias == "powerful"
    assert router().choose(request(), CallContext(role="acting")).alias == "main"
    ruled = Selection("main", (RoutingRule.of("hint:coding and message_count > 3", "fast"),), roles=CODING.roles)
    assert codes(ruled) == []
    assert router(ruled).choose(request(messages=9), CallContext(hint="coding")).by == "rule"
    assert codes(Selection("main", (RoutingRule.of("role:coding", "fast"),), roles=CODING.roles)) == []
    assert codes(Selection("main", (RoutingRule.of("role:coding", "fast"),))) == [("routing.unknown-role", "acting")]


def test_what_the_call_itself_names_comes_before_the_hint_of_its_step() -> None:
    here = CallContext(hint="coding")
    assert router().choose(request(model="fast"), here).by == "call"
    assert router().choose(request(model="summarizing"), here).alias == "fast"


@pytest.mark.parametrize(
    ("role", "meant"),
    [
        ("planing", "planning"),
        ("quarantine", "quarantined"),
        ("Quarantined", "quarantined"),
        ("quar-antined", "quarantined"),
        ("summarising", "summarizing"),
        ("detla", "delta"),
        ("ecno", "echo"),
    ],
)
def test_a_role_that_is_nearly_one_of_ours_is_a_slip(role: str, meant: str) -> None:
    assert codes(Selection("main", roles={role: "fast"})) == [("routing.unknown-role", meant)]


@pytest.mark.parametrize("role", ["plan", "final_answer", "fast", "two words", "", "9th", "ключ", "x" * 41])
def test_a_role_cannot_have_the_name_of_a_phase_or_an_alias_or_none(role: str) -> None:
    assert [code for code, _ in codes(Selection("main", roles={role: "fast"}))] == ["routing.bad-role"]


@pytest.mark.parametrize("role", ["coding", "testing", "code-review", "sql", "vision", "translation_2"])
def test_other_names_are_roles(role: str) -> None:
    assert codes(Selection("main", roles={role: "fast"})) == []


def test_a_role_of_ones_own_cannot_take_the_place_of_one_of_ours() -> None:
    """A custom role is for hints alone: no call has it, so that no call of ours gets its model."""
    one = router(Selection("main", roles={"coding": "fast"}))
    for role in ROLES:
        assert one.choose(request(), CallContext(role=role)).alias == "main"


# Hints that nothing knows


def test_an_unknown_hint_is_a_note_with_the_nearest_name_and_changes_nothing() -> None:
    here = CallContext(role="planning")
    plain, hinted = router().choose(request(), here), router().choose(request(model="codng"), here)
    assert (hinted.alias, hinted.by, hinted.why) == (plain.alias, plain.by, plain.why)
    assert hinted.note == "no rule, phase or role has the hint 'codng' (nearest: 'coding')"
    assert plain.note is None
    assert hinted.to_json()["note"] == hinted.note
    assert "note" not in plain.to_json()


def test_a_rule_that_applies_anyway_keeps_the_note() -> None:
    one = router(Selection("main", (RoutingRule.of("no_tools", "fast"),)))
    found = one.choose(request(model="codng"))
    assert (found.by, found.note) == ("rule", "no rule, phase or role has the hint 'codng'")


def test_the_hint_of_a_step_never_names_an_alias() -> None:
    """An alias is named by the person's program. A hint of a plan that is one is a hint that nothing knows."""
    found = router().choose(request(), CallContext(role="acting", hint="fast"))
    assert (found.alias, found.by) == ("main", "default")
    assert found.note is not None
    other = router(names=("main", "fast"), elsewhere=("powerful",))
    assert other.choose(request(), CallContext(hint="powerful")).alias == "main"


@given(st.text(max_size=80))
def test_no_hint_breaks_a_call_or_leads_out_of_the_maps(hint: str) -> None:
    here = CallContext(role="acting", hint=hint)
    assert router().choose(request(), here).alias in ("main", "powerful", "fast")


def test_an_alias_of_the_other_chamber_is_noted_where_it_is_skipped() -> None:
    one = router(names=("main", "fast"), elsewhere=("powerful",))
    found = one.choose(request(), CallContext(role="planning"))
    assert (found.alias, found.by) == ("main", "default")
    assert found.note == "the role 'planning' has 'powerful', which the quarantined chamber may not use"
    assert one.choose(request(), CallContext(role="summarizing")).note is None


# Phase maps per strategy

PER_STRATEGY = Selection(
    "main",
    phases={"act": "fast", "plan": "fast"},
    strategy_phases={"spar": {"act": "powerful"}, "native_react": {"act": "main"}},
)


def test_the_phase_map_of_a_strategy_comes_before_that_of_all() -> None:
    one = router(PER_STRATEGY)

    def alias(phase: str, strategy: str | None) -> str:
        return one.choose(request(), CallContext(phase=phase, strategy=strategy)).alias

    assert [alias("act", strategy) for strategy in ("spar", "native_react", "plan_and_execute", None)] == [
        "powerful",
        "main",
        "fast",
        "fast",
    ]
    assert alias("plan", "spar") == "fast"
    assert one.choose(request(model="act"), CallContext(strategy="spar")).alias == "powerful"
    assert {alias.name for alias in one.reachable} == {"main", "fast", "powerful"}
    assert one.name != router(Selection("main", phases=PER_STRATEGY.phases)).name


def test_a_strategy_has_only_the_phases_that_it_has() -> None:
    def mistaken(maps: dict[str, dict[str, str]]) -> list[tuple[str, str | None]]:
        return codes(Selection("main", strategy_phases=maps))

    assert mistaken({"native_react": {"reflect": "fast"}}) == [("routing.unknown-phase", None)]
    assert mistaken({"spar": {"reflet": "fast"}}) == [("routing.unknown-phase", "reflect")]
    assert mistaken({"spat": {"act": "fast"}}) == [("strategy.unknown", "spar")]
    assert mistaken({"spar": {"act": "fats"}}) == [("routing.unknown-alias", "fast")]
    for strategy, phases in STRATEGY_PHASES.items():
        assert mistaken({strategy: dict.fromkeys(phases, "fast")}) == []


# `ModelSelector` and `resolve_model`, with the calls of the document that asked for them


def test_a_model_selector_is_the_phase_map_with_a_default() -> None:
    phase_models = {"sense": "fast", "plan": "powerful", "act": "main", "reflect": "powerful", "final_answer": "fast"}
    selector = ModelSelector(default="main", phase_models=phase_models)
    assert {phase: selector.for_phase(phase) for phase in PHASES} == phase_models
    assert ModelSelector().for_phase("plan") == "main"
    assert ModelSelector(phase_models={"act": "fast"}).for_phase("unheard") == "main"
    assert bicameral.ModelSelector is ModelSelector


def test_a_model_selector_says_what_a_router_over_it_chooses() -> None:
    selector = ModelSelector("main", {"plan": "powerful", "act": "fast"})
    one = router(selector.selection)
    for phase in PHASES:
        assert one.choose(request(), CallContext(phase=phase)).alias == selector.for_phase(phase)


def test_resolve_model_is_the_alias_for_a_role() -> None:
    roles = {"planning": "powerful", "reasoning": "powerful", "acting": "fast", "summarizing": "fast"}
    one = router(Selection("main", roles=roles))
    assert [one.resolve_model(role) for role in ("planning", "acting", "reflecting")] == ["powerful", "fast", "main"]
    assert one.resolve_model() == "powerful"
    assert router(Selection("main")).resolve_model("planning") == "main"
    assert router().resolve_model("coding") == "powerful"
    with call_context(phase="plan"):
        assert router(PER_STRATEGY).resolve_model("planning") == "fast"


def test_resolve_model_of_a_single_model_is_its_name() -> None:
    assert resolve_model(says("alone"), "planning") == says("alone").name
    assert resolve_model(router(), "planning") == "powerful"

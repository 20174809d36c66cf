"""The router: who gets a call, in which order that is decided, and that no chamber reaches the other's models."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from routing_world import TOOL, Keyed, request, says

from bicameral.errors import ConfigError, ModelError
from bicameral.models import ModelReply, ModelRequest, Provider, Route, ScriptedProvider
from bicameral.routing import (
    Alias,
    Aliases,
    AliasParameters,
    CallContext,
    Router,
    RoutingRule,
    Selection,
    SelectionMistake,
    call_context,
    current_context,
    find_mistakes,
)
from bicameral.sessions import Chambers, Quarantined, Session

NAMES = ("main", "fast", "powerful", "local")
EVERYTHING = Selection(
    "main",
    rules=(RoutingRule.of("has_tools", "powerful"),),
    phases={"plan": "fast"},
    roles={"delta": "local", "planning": "local"},
)


def router(selection: Selection = EVERYTHING) -> Router:
    return Router(Aliases("privileged", [Alias.of(name, says(name)) for name in NAMES]), selection)


def test_precedence_is_call_then_rule_then_phase_then_role_then_default() -> None:
    everything = CallContext(role="delta", phase="plan")
    one = router()
    called = one.choose(request(model="main", tools=(TOOL,)), everything)
    assert (called.alias, called.by) == ("main", "call")
    ruled = one.choose(request(tools=(TOOL,)), everything)
    assert (ruled.alias, ruled.by, ruled.rule) == ("powerful", "rule", 0)
    phased = one.choose(request(), everything)
    assert (phased.alias, phased.by) == ("fast", "phase")
    roled = one.choose(request(), CallContext(role="delta"))
    assert (roled.alias, roled.by) == ("local", "role")
    default = one.choose(request(), CallContext())
    assert (default.alias, default.by) == ("main", "default")


def test_the_first_rule_that_matches_counts() -> None:
    rules = (RoutingRule.of("message_count > 10", "powerful"), RoutingRule.of("message_count > 2", "fast"))
    one = router(Selection("main", rules))
    assert one.choose(request(messages=20)).rule == 0
    assert one.choose(request(messages=5)).rule == 1
    assert one.choose(request(messages=1)).by == "default"


@pytest.mark.parametrize(
    ("hint", "here", "alias", "by"),
    [
        ("planning", CallContext(), "powerful", "rule"),
        ("sense", CallContext(), "fast", "phase"),
        ("summarizing", CallContext(phase="sense"), "local", "role"),
        ("nobody-knows", CallContext(phase="sense"), "fast", "phase"),
        ("nobody-knows", CallContext(), "main", "default"),
        (None, CallContext(role="planning"), "powerful", "rule"),
    ],
)
def test_a_hint_is_for_rules_and_may_be_a_phase_or_a_role(
    hint: str | None, here: CallContext, alias: str, by: str
) -> None:
    rules = (RoutingRule.of("hint:planning", "powerful"),)
    one = router(Selection("main", rules, phases={"sense": "fast"}, roles={"summarizing": "local"}))
    route = one.choose(request(model=hint), here)
    assert (route.alias, route.by) == (alias, by)


def test_delta_takes_the_model_for_planning_unless_it_has_its_own() -> None:
    assert (
        router(Selection("main", roles={"planning": "powerful"})).choose(request(), CallContext(role="delta")).alias
        == "powerful"
    )
    own = router(Selection("main", roles={"planning": "powerful", "delta": "fast"}))
    assert own.choose(request(), CallContext(role="delta")).alias == "fast"


async def test_every_reply_says_who_answered_and_why() -> None:
    reply = await router().generate(request(tools=(TOOL,)))
    assert reply.text == "powerful"
    assert reply.model == "powerful"
    assert reply.route == Route("powerful", "rule", "rule 0: has_tools", 0)
    assert "".join([text async for text in router().stream(request(model="fast"))]) == "fast"


async def test_a_model_never_sees_the_alias_and_only_its_own_adapters() -> None:
    model = says("one")
    one = Router(Aliases("privileged", [Alias.of("main", model)]), Selection("main"))
    await one.generate(request(model="main", adapter="delta"))
    assert model.requests[0].model is None
    assert model.requests[0].adapter is None


async def test_parameters_of_an_alias_bound_and_replace_what_a_call_says() -> None:
    model = says("one")
    tuned = Alias.of("main", model, AliasParameters(temperature=0.5, max_tokens=100, timeout=10, seed=7))
    one = Router(Aliases("privileged", [tuned]), Selection("main"))
    await one.generate(request(max_tokens=512, timeout=None))
    await one.generate(request(max_tokens=50, timeout=3))
    first, second = model.requests
    assert (first.temperature, first.max_tokens, first.timeout, first.seed) == (0.5, 100, 10, 7)
    assert (second.max_tokens, second.timeout) == (50, 3)


async def test_what_an_inner_provider_tried_stays_on_the_route() -> None:
    class Tried(ScriptedProvider):
        async def generate(self, request: ModelRequest) -> ModelReply:
            reply = await super().generate(request)
            return replace(reply, route=Route("x", "fallback", "y", attempts=(("a", "timeout"),)), model="b")

    one = Router(Aliases("privileged", [Alias.of("main", Tried(lambda _: "ok", name="t"))]), Selection("main"))
    reply = await one.generate(request())
    assert reply.route == Route("main", "default", "nothing else applies", attempts=(("a", "timeout"),))
    assert reply.model == "b"


async def test_calls_at_the_same_time_do_not_see_each_others_situation() -> None:
    async def ask(role: str) -> str:
        with call_context(role=role):
            await asyncio.sleep(0)
            return (await one.generate(request())).text

    one = router(Selection("main", roles={"echo": "fast", "delta": "powerful"}))
    assert (
        await asyncio.gather(*(ask(role) for role in ("echo", "delta", "acting") * 20))
        == [
            "fast",
            "powerful",
            "main",
        ]
        * 20
    )
    assert current_context() == CallContext()


async def test_a_session_tells_the_router_its_role() -> None:
    one = router(Selection("main", roles={"echo": "fast"}))
    heard: list[Route | None] = []
    session = Session("echo", one, (), listener=lambda call: heard.append(call.reply.route))
    assert (await session.ask("hello")).text == "fast"
    assert [route.by for route in heard if route] == ["role"]


def test_one_model_alone_is_that_model() -> None:
    alone = Router(Aliases("privileged", [Alias.of("main", says("one"))]), Selection("main"))
    assert isinstance(alone, Provider)
    assert (alone.name, alone.grammars, alone.adapters) == ("one", True, {})


def test_the_name_changes_with_everything_that_decides() -> None:
    changed = (
        EVERYTHING,
        replace(EVERYTHING, default="fast"),
        replace(EVERYTHING, roles={}),
        replace(EVERYTHING, phases={}),
        replace(EVERYTHING, rules=(RoutingRule.of("no_tools", "powerful"),)),
        replace(EVERYTHING, rules=()),
    )
    names = [router(selection).name for selection in changed]
    assert len(set(names)) == len(names)
    assert router().name == router().name
    other = [Alias.of(name, says(name + "2")) for name in NAMES]
    assert Router(Aliases("privileged", other), EVERYTHING).name not in names


def test_a_router_for_a_role_is_named_after_what_that_role_can_reach() -> None:
    selection = Selection("main", (RoutingRule.of("role:acting and has_tools", "powerful"),), roles={"echo": "fast"})
    assert router(selection).for_role("echo").name == "fast"
    assert router(selection).for_role("reflecting").name == "main"
    assert router(selection).for_role("acting").name.startswith("router:")


def test_nothing_is_made_before_it_is_asked() -> None:
    def made() -> Provider:
        raise AssertionError("made")

    aliases = Aliases("privileged", [Alias("main", "openai:x", made), Alias.of("fast", says("fast"))])
    one = Router(aliases, Selection("main", roles={"echo": "fast"}))
    assert one.choose(request()).alias == "main"
    assert one.name.startswith("router:")
    assert aliases.provider("fast").name == "fast"


# The chambers


async def test_a_quarantined_call_cannot_name_its_way_to_a_privileged_model() -> None:
    aliases = Aliases("quarantined", [Alias.of("small", says("small"))], elsewhere=NAMES)
    one = Router(aliases, Selection("small", (RoutingRule.of("has_tools", "powerful"),), roles={"quarantined": "main"}))
    for call in (request(), request(tools=(TOOL,)), request(model="planning")):
        with call_context(role="quarantined"):
            assert (await one.generate(call)).text == "small"
    for name in NAMES:
        with pytest.raises(ModelError) as caught:
            await one.generate(request(model=name))
        assert caught.value.code == "models.wrong-chamber"


@pytest.mark.parametrize(
    "provider",
    [says("p", "privileged"), Keyed("p", "key", "privileged"), Keyed("p", "key", None)],
    ids=["privileged", "privileged key", "a key that says nothing"],
)
def test_a_quarantined_alias_never_leads_to_a_privileged_model(provider: Provider) -> None:
    aliases = Aliases("quarantined", [Alias("small", "small", lambda: provider)])
    with pytest.raises(ModelError) as caught:
        aliases.provider("small")
    assert caught.value.code == "models.wrong-chamber"


def test_a_privileged_alias_never_leads_to_a_quarantined_model() -> None:
    with pytest.raises(ModelError) as caught:
        Aliases("privileged", [Alias("main", "m", lambda: says("q", "quarantined"))]).provider("main")
    assert caught.value.code == "models.wrong-chamber"


def test_a_model_with_another_key_than_was_said_is_refused() -> None:
    aliases = Aliases("quarantined", [Alias("q", "q", lambda: Keyed("q", "other", "quarantined"))])
    with pytest.raises(ModelError) as caught:
        aliases.provider("q")
    assert caught.value.code == "models.wrong-chamber"


def test_two_routers_that_share_a_key_are_no_two_chambers() -> None:
    def one(key: str, chamber: str) -> Router:
        side = "privileged" if chamber == "privileged" else "quarantined"
        return Router(Aliases(side, [Alias.of("main", Keyed("m", key, side))]), Selection("main"))

    Chambers(one("a", "privileged"), Quarantined(one("b", "quarantined")))
    with pytest.raises(ModelError) as caught:
        Chambers(one("a", "privileged"), Quarantined(one("a", "quarantined")))
    assert caught.value.code == "models.shared-chamber"
    with pytest.raises(ModelError):
        Quarantined(one("a", "privileged"))


# What is wrong with a selection


def found(selection: Selection, *, severe: bool = True) -> list[tuple[str, tuple[str | int, ...]]]:
    every: list[SelectionMistake] = list(find_mistakes(selection, NAMES))
    return [(each.error.code, each.path) for each in every if each.is_severe is severe]


def ruled(*conditions: str) -> Selection:
    return Selection("main", tuple(RoutingRule.of(condition, "fast") for condition in conditions))


def test_unknown_names_are_found_where_they_stand() -> None:
    assert found(Selection("mian")) == [("routing.unknown-alias", ("default_model",))]
    assert found(Selection("main", roles={"planing": "fast", "acting": "fats"})) == [
        ("routing.unknown-alias", ("model_roles", "acting")),
        ("routing.unknown-role", ("model_roles", "planing")),
    ]
    assert found(Selection("main", phases={"sens": "fast"})) == [("routing.unknown-phase", ("phase_models", "sens"))]
    assert found(Selection("main", (RoutingRule.of("has_tools", "nope"),))) == [
        ("routing.unknown-alias", ("routing", "rules", 0, "model"))
    ]
    assert found(ruled("role:planing")) == [("routing.unknown-role", ("routing", "rules", 0, "condition"))]
    near = next(iter(find_mistakes(Selection("mian"), NAMES))).error
    assert near.nearest == "main"


@pytest.mark.parametrize(
    ("conditions", "code", "at"),
    [
        (("has_tools and no_tools",), "routing.never-matches", 0),
        (("has_schema", "message_count > 5 and message_count < 3"), "routing.never-matches", 1),
        (("hint:fast",), "routing.never-matches", 0),
        (("always", "has_tools"), "routing.shadowed", 1),
        (("message_count > 5", "message_count > 10"), "routing.shadowed", 1),
        (("has_tools", "has_tools and has_schema"), "routing.shadowed", 1),
        (("has_tools or has_schema", "has_schema"), "routing.shadowed", 1),
        (("not has_tools", "no_tools and failures > 2"), "routing.shadowed", 1),
        (("message_count >= 6", "message_count > 5"), "routing.shadowed", 1),
        (("deadline", "time_left < 5"), "routing.shadowed", 1),
    ],
)
def test_a_rule_that_can_do_nothing_is_a_mistake(conditions: tuple[str, ...], code: str, at: int) -> None:
    assert found(ruled(*conditions)) == [(code, ("routing", "rules", at, "condition"))]


@pytest.mark.parametrize(
    "conditions",
    [
        ("message_count > 10", "message_count > 5"),
        ("has_tools and has_schema", "has_tools"),
        ("time_left < 5", "deadline"),
        ("hint:planning", "role:planning"),
        ("has_tools", "no_tools"),
    ],
)
def test_rules_that_each_have_their_calls_are_fine(conditions: tuple[str, ...]) -> None:
    assert found(ruled(*conditions)) == []
    assert found(ruled(*conditions), severe=False) == []


def test_a_rule_that_several_cover_together_is_told_and_accepted() -> None:
    seed = ruled("has_tools", "no_tools", "message_count > 10", "hint:planning")
    assert found(seed) == []
    assert found(seed, severe=False) == [
        ("routing.covered", ("routing", "rules", 2, "condition")),
        ("routing.covered", ("routing", "rules", 3, "condition")),
    ]


def test_a_router_needs_a_default_that_there_is() -> None:
    with pytest.raises(ConfigError) as caught:
        router(Selection("mian"))
    assert caught.value.code == "routing.unknown-alias"

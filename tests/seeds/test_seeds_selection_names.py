"""The names of the document about choosing models: its methods, roles of one's own, hints, and untrusted text."""

from __future__ import annotations

import pytest
from seed_examples import PHASE_MAP, ROLE_MAP, RULES
from seed_world import World

from bicameral import Agent, ScriptedProvider
from bicameral.config import Config, open_router
from bicameral.errors import ConfigError
from bicameral.models import ModelRequest
from bicameral.routing import Alias, Aliases, CallContext, ModelSelector, Router, Selection

PHASE_MODELS = {"sense": "fast", "plan": "powerful", "act": "main", "reflect": "powerful", "final_answer": "fast"}


def router(selection: Selection) -> Router:
    names = ("main", "fast", "powerful")
    return Router(Aliases("privileged", [Alias.of(name, ScriptedProvider([], name=name)) for name in names]), selection)


def test_resolve_model_answers_as_the_document_defines_it() -> None:
    roles = {"planning": "powerful", "summarizing": "fast"}
    with_roles = router(Selection("main", roles=roles))
    assert [with_roles.resolve_model(role) for role in ("planning", "summarizing", "acting")] == [
        "powerful",
        "fast",
        "main",
    ]
    assert with_roles.resolve_model() == "main"
    assert router(Selection("main")).resolve_model("planning") == "main"


def test_an_agent_resolves_the_roles_of_its_configuration(world: World) -> None:
    agent = Agent(config=world.profile(ROLE_MAP), cache={})
    assert agent.resolve_model("planning") == "powerful"
    assert agent.resolve_model("acting") == "fast"
    assert agent.resolve_model("echo") == "main"


def test_the_selector_answers_as_the_document_defines_it() -> None:
    selector = ModelSelector(default="main", phase_models={"plan": "powerful"})
    assert (selector.for_phase("plan"), selector.for_phase("act")) == ("powerful", "main")
    assert ModelSelector().for_phase("plan") == "main"
    assert [ModelSelector("main", PHASE_MODELS).for_phase(phase) for phase in PHASE_MODELS] == [*PHASE_MODELS.values()]


def test_a_role_of_ones_own_is_reached_by_a_hint(world: World) -> None:
    config = world.profile(ROLE_MAP.replace("    planning:", "    coding: local\n    planning:"))
    chosen = open_router(config, "privileged").choose(ModelRequest((), model="coding"), CallContext(role="reasoning"))
    assert (chosen.alias, chosen.by) == ("local", "role")
    told = world.json("models", "explain", "coding")
    assert told["route"]["alias"] == "local"


def test_a_slip_in_the_name_of_a_role_is_none_of_ones_own(world: World) -> None:
    with pytest.raises(ConfigError) as caught:
        world.profile(ROLE_MAP.replace("    planning:", "    planing:"))
    assert (caught.value.code, caught.value.nearest) == ("routing.unknown-role", "planning")


def test_a_strategy_may_have_a_phase_map_of_its_own(world: World) -> None:
    own = "    strategy_phase_models:\n      native_react:\n        act: fast\n"
    config = world.profile(ROLE_MAP + PHASE_MAP + own)
    routes = open_router(config, "privileged")

    def alias(strategy: str) -> str:
        return routes.choose(ModelRequest(()), CallContext(role="acting", phase="act", strategy=strategy)).alias

    assert (alias("native_react"), alias("spar")) == ("fast", "main")


def test_an_unknown_hint_changes_nothing_and_is_noted_with_the_nearest_name(world: World) -> None:
    config = world.profile(ROLE_MAP)
    route = open_router(config, "privileged").choose(ModelRequest((), model="sumarizing"), CallContext())
    assert route.alias == "main"
    assert route.note is not None
    assert "'summarizing'" in route.note
    known = open_router(config, "privileged").choose(ModelRequest((), model="summarizing"), CallContext())
    assert known.note is None


# After untrusted text


def test_aliases_that_the_quarantine_may_not_use_are_warned_about(world: World) -> None:
    """Every alias of the document but `local` needs a key, and no key of the quarantined chamber is named."""
    world.profile(ROLE_MAP + PHASE_MAP)
    told = world.call("models", "aliases").output
    assert "quarantine" in told
    assert "powerful" in told
    assert "quarantined_api_key_env" in world.call("doctor").output


@pytest.mark.parametrize("profile", [ROLE_MAP, ROLE_MAP + PHASE_MAP, RULES])
def test_the_explanation_of_a_call_after_untrusted_text_tells_the_truth(world: World, profile: str) -> None:
    config = world.profile(profile)
    told = world.json("models", "explain", "acting", "--untrusted")
    here = CallContext(role="acting", chamber="quarantined", trusted=False)
    really = open_router(config, "quarantined").choose(ModelRequest(()), here)
    assert told["chamber"] == "quarantined"
    assert told["route"]["alias"] == really.alias
    assert told["route"]["alias"] not in ("main", "fast", "powerful")


# Echo's temperature


@pytest.mark.parametrize(("setting", "temperature"), [("", 0.0), ("[planning]\necho_temperature = 0.6\n", 0.6)])
async def test_echo_is_deterministic_unless_the_configuration_says_otherwise(
    world: World, setting: str, temperature: float
) -> None:
    world.write("bicameral.toml", setting)
    model = ScriptedProvider(
        lambda _: '{"task": "lookup", "steps": [{"action": "find"}], "constraints": [], "output": "answer"}'
    )
    agent = Agent(config=Config.load(), privileged=model, quarantined=ScriptedProvider([]), cache={})
    await agent.intent("When is the thing that my neighbour kind of wanted us to come to?", partial=True)
    assert [request.temperature for request in model.requests] == [temperature]
    await agent.aclose()

"""The document about choosing models: the YAML of its three approaches, and the calls that its strategies make."""

from __future__ import annotations

import json
from typing import Any

import pytest
from seed_examples import PHASE_MAP, ROLE_MAP, RULES
from seed_world import World

from bicameral import Agent, ScriptedProvider, tool
from bicameral.config import Config, open_router
from bicameral.models import Client, EndChunk, Message, ModelRequest, Route, ToolCall, ToolSchema
from bicameral.patterns.strategies import Answered, StrategyParams
from bicameral.routing import Alias, Aliases, CallContext, Router, RoutingRule, Selection, call_context

TOOLS = (ToolSchema("weather", "The weather.", {"type": "object", "properties": {}}),)


def route(
    config: Config, *, model: str | None = None, tools: tuple[ToolSchema, ...] = (), messages: int = 1, **here: Any
) -> Route:
    """Which model a call of this kind would get."""
    conversation = (Message("user", "x"),) * messages
    router = open_router(config, "privileged")
    return router.choose(ModelRequest(conversation, model=model, tools=tools), CallContext(**here))


def test_the_aliases_of_the_document_are_known_by_their_names(world: World) -> None:
    world.profile(ROLE_MAP)
    told = world.json("models", "aliases")
    assert {"main", "fast", "powerful", "local"} <= {each["alias"] for each in told["aliases"]}


# Approach 1: roles


@pytest.mark.parametrize(
    ("role", "alias"),
    [
        ("planning", "powerful"),
        ("reasoning", "powerful"),
        ("acting", "fast"),
        ("reflecting", "powerful"),
        ("summarizing", "fast"),
    ],
)
def test_the_role_map_of_the_document_gives_each_role_its_alias(world: World, role: str, alias: str) -> None:
    config = world.profile(ROLE_MAP)
    assert route(config, role=role).alias == alias
    assert route(config, role="echo").alias == "main"


def test_without_a_role_map_every_role_has_the_default(world: World) -> None:
    config = world.profile(ROLE_MAP.partition("  model_roles:")[0])
    assert {route(config, role=role).alias for role in ("planning", "reasoning", "acting", "summarizing")} == {"main"}


# Approach 2: phases


@pytest.mark.parametrize(
    ("phase", "alias"),
    [("sense", "fast"), ("plan", "powerful"), ("act", "main"), ("reflect", "powerful"), ("final_answer", "fast")],
)
def test_the_phase_map_of_the_document_gives_each_phase_its_alias(world: World, phase: str, alias: str) -> None:
    config = world.profile(ROLE_MAP + PHASE_MAP)
    assert route(config, phase=phase).alias == alias


def test_the_strategy_and_its_parameters_of_the_document_are_taken(world: World) -> None:
    config = world.profile(ROLE_MAP + PHASE_MAP)
    assert config.agent.planning_strategy == "spar"
    params = config.agent.planning_strategy_params
    assert (params.max_step_iterations, params.reflect_every_step) == (3, True)


async def test_spar_passes_another_model_in_each_phase() -> None:
    @tool(effect="pure")
    def add(a: int, b: int) -> int:
        """The sum."""
        return a + b

    replies: list[Any] = [
        "A sum is wanted.",
        json.dumps({"steps": ["add"]}),
        ToolCall("1", "add", {"a": 1, "b": 2}),
        "3",
        json.dumps({"verdict": "done", "note": ""}),
        "It is 3.",
    ]
    model = ScriptedProvider(replies)
    phases = {"sense": "fast", "plan": "powerful", "act": "main", "reflect": "powerful", "final_answer": "fast"}
    agent = Agent([add], privileged=model, quarantined=ScriptedProvider([]), cache={})
    worked = await agent.work("Add 1 and 2", strategy="spar", params=StrategyParams(phase_models=phases))
    assert isinstance(worked, Answered)
    asked = [(turn.phase, request.model) for turn, request in zip(worked.turns, model.requests, strict=True)]
    assert asked == [(phase, phases[phase]) for phase in ("sense", "plan", "act", "act", "reflect", "final_answer")]


# Approach 3: rules


def test_the_rules_of_the_document_load_as_they_stand_and_the_first_that_holds_decides(world: World) -> None:
    config = world.profile(RULES)
    assert route(config, tools=TOOLS).alias == "powerful"
    assert route(config).alias == "fast"
    assert (route(config, messages=11).alias, route(config, messages=11).rule) == ("fast", 1)
    assert world.call("models", "aliases").exit_code == 0


def test_each_condition_of_the_document_decides_where_no_other_comes_first(world: World) -> None:
    head, _, rules = RULES.partition("    rules:\n")
    tail = "".join(rules.splitlines(keepends=True)[4:])
    config = world.profile(f"{head}    rules:\n{tail}")
    assert route(config, messages=11).alias == "powerful"
    assert route(config, messages=10).alias == "main"
    assert route(config, model="planning").alias == "powerful"
    assert route(config, model="summarizing").alias == "fast"
    assert route(config, model="local").alias == "local", "an alias that the call names is no hint"


def test_rules_that_are_switched_off_decide_nothing(world: World) -> None:
    config = world.profile(RULES.replace("enabled: true", "enabled: false"))
    assert route(config, tools=TOOLS).alias == "main"


def test_rules_go_over_phases_and_phases_over_roles(world: World) -> None:
    rules = RULES.partition("llm:\n")[2].partition("  routing:")[2]
    config = world.profile(f"{ROLE_MAP}  routing:{rules}{PHASE_MAP}")
    assert route(config, role="acting", phase="act").by == "rule"
    off = world.profile(f"{ROLE_MAP}  routing:{rules.replace('true', 'false')}{PHASE_MAP}")
    assert (route(off, role="acting", phase="act").alias, route(off, role="acting").alias) == ("main", "fast")


async def test_the_router_is_a_provider_like_the_one_it_wraps() -> None:
    """`complete`, `generate` and `complete_stream`, each with the model's name, an alias or a hint."""
    models = {name: ScriptedProvider(lambda _, name=name: name, name=name) for name in ("main", "fast", "powerful")}
    rules = (RoutingRule.of("has_tools", "powerful"), RoutingRule.of("hint:summarizing", "fast"))
    router = Router(
        Aliases("privileged", [Alias.of(name, model) for name, model in models.items()]), Selection("main", rules)
    )
    client = Client(router)
    messages = [Message("user", "x")]
    assert (await client.complete(messages, tools=TOOLS)).text == "powerful"
    assert (await client.complete(messages, model="summarizing")).text == "fast"
    assert (await client.generate("x", model="fast")).text == "fast"
    ends = [chunk async for chunk in client.complete_stream(messages) if isinstance(chunk, EndChunk)]
    assert [end.reply.text for end in ends] == ["main"]
    with call_context(role="summarizing"):
        reply = await client.complete(messages)
    assert (reply.text, reply.route is not None and reply.route.by) == ("fast", "rule")

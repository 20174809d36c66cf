"""The configured way of working: a strategy or a compiled plan, and the architecture that the linter reads.

The architecture tells what the agent's parts do. What only a caller decides (an approver, other bounds) is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from bicameral.errors import BicameralError, RunError
from bicameral.labels import NOTHING, TRUSTED_USER
from bicameral.limits import STRATEGY, LimitUsage, open_ledger
from bicameral.patterns.strategies import GaveUp, StrategyName, StrategyParams, outcome_of
from bicameral.policy import Allowed, ArgumentFacts, CallFacts, audit_registry
from bicameral.tools import ATTACHED_SUFFIX, CHANGING, Tool, find_command

if TYPE_CHECKING:
    from bicameral.agent._agent import Agent
    from bicameral.agent._wiring import AgentWiring
    from bicameral.config import Config
    from bicameral.labels import Labelled
    from bicameral.limits import Limits
    from bicameral.patterns import Outcome
    from bicameral.policy import Policy
    from bicameral.runs import Approver, Asker, Observer


_COMPILED: StrategyName = "compiled"


def configured_strategy(config: Config) -> tuple[StrategyName, StrategyParams]:
    """The strategy of a configuration and its parameters; the compiled plan, where it says nothing.

    The phase map is not among them: the routers of both chambers have it, and know what comes before it.
    """
    params = config.agent.planning_strategy_params
    return config.agent.planning_strategy or _COMPILED, StrategyParams(
        params.max_step_iterations, params.max_steps, params.reflect_every_step
    )


async def run_compiled(
    agent: Agent,
    request: str | Labelled[str],
    *,
    asker: Asker | None,
    approver: Approver | None,
    observer: Observer | None,
    deterministic: bool,
) -> Outcome[Any]:
    """Plan the request, check the plan, run it. Without a plan there is no run."""
    started = time.perf_counter()
    with open_ledger() as ledger:
        try:
            planned = await agent.plan(request, asker=asker, deterministic=deterministic)
            outcome = await agent.run(planned, asker=asker, approver=approver, observer=observer)
        except BicameralError as error:
            taken = LimitUsage.of_models(ledger.spent, STRATEGY, seconds=time.perf_counter() - started)
            return GaveUp(run="", way=_COMPILED, taken=taken, error=error)
    spent = planned.spent + outcome.usage.spent
    taken = LimitUsage.of_models(spent, STRATEGY, seconds=planned.seconds + outcome.seconds)
    fix = f"Resume run {outcome.run} with the answer."
    waits = RunError("run.waits", "the run waits for a person", fix=fix)
    return outcome_of(outcome, limits=None, subject="the work", waits=waits, way=_COMPILED, taken=taken)


PatternUses: TypeAlias = list[str | dict[str, dict[str, Any]]]

_LEGS = {"private": "private_data", "untrusted": "untrusted_content", "outbound": "external_comms"}
_SOMEBODY = frozenset({"somebody@example.com"})


def describe_architecture(agent: AgentWiring, *, journal: bool, models: Mapping[str, str], name: str) -> dict[str, Any]:
    """The stack of an agent. `journal`: whether it keeps a record; `models` are those of its two sides."""

    strategy, params = configured_strategy(agent.config)
    compiled = strategy == "compiled"
    tools = list(agent.registry)
    patterns: PatternUses = [*_strategy_patterns(strategy, params.max_steps), *_tool_patterns(tools)]
    # The policy is asked about every call; what it does not allow by itself waits for a person, and nobody is a no.
    patterns += ["V7", "V1", _limit_pattern(agent.config.caps)]
    if compiled:
        # Every plan and every filled blank is held to its form, and asked for again where it does not fit.
        patterns += ["V4", {"V20": {"max_retries": agent.config.limits.repairs}}]
    if journal:
        # Only a plan can be gone on with from its record; a conversation can be replayed, and no more.
        patterns += ["V14", "V10", "V12"] if compiled else ["V14"]
    told: dict[str, Any] = {
        "patterns": patterns,
        "tools": {"count": len(tools)},
        "legs": [_LEGS[leg] for leg, found in audit_registry(agent.registry, None).legs.items() if found],
        "actions": {tool.name: _action_facts(tool, agent.policy) for tool in tools if tool.effect in CHANGING},
        "loops": {"run": _loop_facts(agent.config.caps)},
        # However a run ends is a value with a reason.
        "facts": {"swallows_errors": False},
    }
    if compiled:
        told["sessions"] = _session_facts(models)
    if compiled and journal:
        told["facts"]["hidden_state"] = False
    if journal:
        told["stores"] = {"journal": {"pattern": ["V14"], "writers": ["runtime"], "eraser": True}}
    return {"name": name, "agents": {name: told}}


def _strategy_patterns(strategy: str, steps: int) -> PatternUses:
    """The pattern that a strategy is."""
    match strategy:
        case "native_react":
            return [{"R4": {"max_steps": steps}}]
        case "plan_and_execute":
            return [{"R3": {"max_steps": steps}}]
        case _:
            return []


def _tool_patterns(tools: list[Tool]) -> PatternUses:
    """How tools are called: functions in this process, and commands, which run confined and without a shell."""
    commands = [tool for tool in tools if find_command(tool) is not None]
    found: PatternUses = ["I2"] if len(commands) < len(tools) else []
    if commands:
        found.append({"I4": {"shell_strings": False}})
    if commands and all(tool in commands or tool.effect == "pure" for tool in tools):
        found.append({"V8": {"isolation": "landlock"}})
    return found


def _limit_pattern(caps: Limits) -> dict[str, dict[str, Any]]:
    return {
        "V9": {
            "max_steps": caps.calls,
            "max_tool_calls": caps.calls,
            "max_tokens": caps.tokens,
            "max_money": caps.money,
            "max_seconds": caps.seconds,
        }
    }


def _loop_facts(caps: Limits) -> dict[str, Any]:
    amounts = {"steps": caps.calls, "tokens": caps.tokens, "money": caps.money, "seconds": caps.seconds}
    return {**amounts, "exit": "an answer, or what stopped it"}


def _session_facts(models: Mapping[str, str]) -> dict[str, Any]:
    """The two sides: one plans and never reads what strangers wrote, the other reads it and holds nothing."""
    return {
        "privileged": {"model": models["privileged"], "reads": ["request"], "writes": ["plan"], "policy": "policy"},
        "quarantined": {
            "model": models["quarantined"],
            "reads": ["text"],
            "writes": ["values"],
            "tools": [],
            "quarantined": True,
        },
    }


def _action_facts(tool: Tool, policy: Policy) -> dict[str, Any]:
    """What a tool does to the world. Its gate is what the policy says of the most harmless call that there can be."""
    allowed = isinstance(policy.decide(_harmless_call(tool, policy)), Allowed)
    return {"reversible": tool.effect == "write", "gate": "none" if allowed else "V1"}


def _harmless_call(tool: Tool, policy: Policy) -> CallFacts:
    """A call in which all is the user's own word, and nothing goes along."""
    given = (
        ArgumentFacts(
            each.name,
            each.purpose,
            TRUSTED_USER,
            principals=_SOMEBODY if each.name in tool.receivers else frozenset(),
        )
        for each in tool.arguments
    )
    along = (ArgumentFacts(each + ATTACHED_SUFFIX, "attaches", NOTHING) for each in tool.attaches)
    return CallFacts(
        tool=tool.name,
        toolbox=tool.toolbox,
        effect=tool.effect,
        outbound=tool.outbound,
        declared=tool.declared,
        arguments=(*given, *along),
        pc=TRUSTED_USER,
        mode=policy.mode,
        lures=frozenset(),
    )

"""The configured strategy or compiled plan, and the architecture that the linter reads.

The architecture describes the agent's parts. What only a caller decides (an approver, other limits) is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from bicameral.errors import BicameralError, RunError
from bicameral.limits import STRATEGY, LimitUsage, open_ledger
from bicameral.patterns.strategies import (
    GaveUp,
    StrategyChoice,
    StrategyClassifier,
    StrategyName,
    StrategyParams,
    StrategyRule,
    outcome_of,
)
from bicameral.policy import Allowed, audit_registry, sample_call
from bicameral.tools import CHANGING, Tool, find_command

if TYPE_CHECKING:
    from bicameral.agent._agent import Agent
    from bicameral.agent._wiring import AgentWiring
    from bicameral.config import Config
    from bicameral.labels import Labelled
    from bicameral.patterns import Outcome
    from bicameral.policy import Policy
    from bicameral.runs import Approver, Asker, Observer


_COMPILED: StrategyName = "compiled"


def configured_classifier(config: Config) -> StrategyClassifier:
    """How `auto` chooses a strategy, as configured."""
    rules = (StrategyRule(rule.contains, rule.strategy) for rule in config.agent.strategy_rules)
    return StrategyClassifier(tuple(rules), config.agent.classifier_model)


def configured_params(config: Config) -> StrategyParams:
    """The configured parameters of strategies.

    The phase maps are not among them: the routers of both chambers have them.
    """
    from bicameral.config import step_hints

    params = config.agent.planning_strategy_params
    return StrategyParams(
        params.max_step_iterations,
        params.max_steps,
        params.reflect_every_step,
        reading=params.reading,
        max_history=params.max_history,
        reflect_looks=params.reflect_looks,
        hints=step_hints(config),
    )


async def run_compiled(
    agent: Agent,
    request: str | Labelled[str],
    *,
    asker: Asker | None,
    approver: Approver | None,
    observer: Observer | None,
    deterministic: bool,
    choice: StrategyChoice,
) -> Outcome[Any]:
    """Plan the request, check the plan, run it. Without a plan there is no run."""
    started = time.perf_counter()
    with open_ledger() as ledger:
        try:
            planned = await agent.plan(request, asker=asker, deterministic=deterministic)
            planned = replace(planned, strategy_choice=choice.to_json() if choice.is_automatic else {})
            outcome = await agent.run(planned, asker=asker, approver=approver, observer=observer)
        except BicameralError as error:
            taken = LimitUsage.of_models(ledger.spent, STRATEGY, seconds=time.perf_counter() - started)
            return GaveUp(run="", way=_COMPILED, taken=taken, error=error, choice=choice)
    spent = planned.spent + outcome.usage.spent
    taken = LimitUsage.of_models(spent, STRATEGY, seconds=planned.seconds + outcome.seconds)
    fix = f"Resume run {outcome.run} with the answer."
    waits = RunError("run.waits", "the run waits for a person", fix=fix)
    return outcome_of(outcome, limits=None, subject="the work", waits=waits, way=_COMPILED, taken=taken, choice=choice)


PatternUses: TypeAlias = list[str | dict[str, dict[str, Any]]]

_LEGS = {"private": "private_data", "untrusted": "untrusted_content", "outbound": "external_comms"}


def describe_architecture(agent: AgentWiring, *, journal: bool, models: Mapping[str, str], name: str) -> dict[str, Any]:
    """The stack of an agent for the linter. `journal`: whether it has one; `models` are those of its chambers."""
    strategy, params = agent.config.agent.planning_strategy or _COMPILED, configured_params(agent.config)
    compiled = strategy == "compiled"
    tools = list(agent.registry)
    patterns: PatternUses = [*_strategy_patterns(strategy, params.max_steps), *_tool_patterns(tools)]
    caps = agent.config.caps
    amounts = {"tokens": caps.tokens, "money": caps.money, "seconds": caps.seconds}
    limits = {"max_steps": caps.calls, "max_tool_calls": caps.calls} | {
        f"max_{name}": most for name, most in amounts.items()
    }
    # Policy decides about every call; what it does not allow needs approval, and without an approver the answer is no.
    patterns += ["V7", "V1", {"V9": limits}]
    if compiled:
        # Every plan and every extraction is checked against its form, and asked for again if it does not fit.
        patterns += ["V4", {"V20": {"max_retries": agent.config.limits.repairs}}]
    if journal:
        # Only a plan can be resumed from its record; a conversation can only be replayed.
        patterns += ["V14", "V10", "V12"] if compiled else ["V14"]
    facts: dict[str, Any] = {
        "patterns": patterns,
        "tools": {"count": len(tools)},
        "legs": [_LEGS[leg] for leg, found in audit_registry(agent.registry, None).legs.items() if found],
        "actions": {tool.name: _action_facts(tool, agent.policy) for tool in tools if tool.effect in CHANGING},
        "loops": {"run": {"steps": caps.calls, **amounts, "exit": "an answer, or what stopped it"}},
        # Every outcome of a run is a value with a reason.
        "facts": {"swallows_errors": False},
    }
    if compiled:
        facts["sessions"] = _session_facts(models)
    if compiled and journal:
        facts["facts"]["hidden_state"] = False
    if journal:
        facts["stores"] = {"journal": {"pattern": ["V14"], "writers": ["runtime"], "eraser": True}}
    return {"name": name, "agents": {name: facts}}


def _strategy_patterns(strategy: str, steps: int) -> PatternUses:
    """The pattern of a strategy."""
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


def _session_facts(models: Mapping[str, str]) -> dict[str, Any]:
    """The two chambers: one plans and never reads untrusted text, the other reads it and has no tools."""
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
    """What a tool does to the world. Its gate is the policy's decision about the most harmless possible call."""
    allowed = isinstance(policy.decide(sample_call(tool, policy.mode)), Allowed)
    return {"reversible": tool.effect == "write", "gate": "none" if allowed else "V1"}

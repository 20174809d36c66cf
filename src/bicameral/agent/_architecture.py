"""What an agent is made of, as a stack for the linter and the cost model: what its parts do, and nothing it might do.

It tells of the way of working that is configured: a compiled plan, or a strategy in which models ask for tools as they
go. What only a caller decides (an approver, other bounds) is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from bicameral.audit import audit
from bicameral.decisions import Allowed, ArgumentFacts, CallFacts
from bicameral.labels import NOTHING, TRUSTED_USER
from bicameral.tools import ATTACHED, CHANGING, Tool, command_of

if TYPE_CHECKING:
    from bicameral.policy import Policy
    from bicameral.runs import Caps

    from ._assembled import Assembled

Uses: TypeAlias = list[str | dict[str, dict[str, Any]]]

_LEGS = {"private": "private_data", "untrusted": "untrusted_content", "outbound": "external_comms"}
_SOMEBODY = frozenset({"somebody@example.com"})


def architecture_of(agent: Assembled, *, journal: bool, models: Mapping[str, str], name: str) -> dict[str, Any]:
    """The stack of an agent. `journal`: whether it keeps a record; `models` are those of its two sides."""
    from ._working import configured

    strategy, params = configured(agent.config)
    compiled = strategy == "compiled"
    tools = list(agent.registry)
    patterns: Uses = [*_reasons(strategy, params.max_steps), *_calls(tools)]
    # The policy is asked about every call; what it does not allow by itself waits for a person, and nobody is a no.
    patterns += ["V7", "V1", _bounds(agent.config.caps)]
    if compiled:
        # Every plan and every filled blank is held to its form, and asked for again where it does not fit.
        patterns += ["V4", {"V20": {"max_retries": agent.config.limits.repairs}}]
    if journal:
        # Only a plan can be gone on with from its record; a conversation can be replayed, and no more.
        patterns += ["V14", "V10", "V12"] if compiled else ["V14"]
    told: dict[str, Any] = {
        "patterns": patterns,
        "tools": {"count": len(tools)},
        "legs": [_LEGS[leg] for leg, found in audit(agent.registry, None).legs.items() if found],
        "actions": {tool.name: _action(tool, agent.policy) for tool in tools if tool.effect in CHANGING},
        "loops": {"run": _loop(agent.config.caps)},
        # However a run ends is a value with a reason.
        "facts": {"swallows_errors": False},
    }
    if compiled:
        told["sessions"] = _sessions(models)
    if compiled and journal:
        told["facts"]["hidden_state"] = False
    if journal:
        told["stores"] = {"journal": {"pattern": ["V14"], "writers": ["runtime"], "eraser": True}}
    return {"name": name, "agents": {name: told}}


def _reasons(strategy: str, steps: int) -> Uses:
    """The pattern that a strategy is."""
    match strategy:
        case "native_react":
            return [{"R4": {"max_steps": steps}}]
        case "plan_and_execute":
            return [{"R3": {"max_steps": steps}}]
        case _:
            return []


def _calls(tools: list[Tool]) -> Uses:
    """How tools are called: functions in this process, and commands, which run confined and without a shell."""
    commands = [tool for tool in tools if command_of(tool) is not None]
    found: Uses = ["I2"] if len(commands) < len(tools) else []
    if commands:
        found.append({"I4": {"shell_strings": False}})
    if commands and all(tool in commands or tool.effect == "pure" for tool in tools):
        found.append({"V8": {"isolation": "landlock"}})
    return found


def _bounds(caps: Caps) -> dict[str, dict[str, Any]]:
    return {
        "V9": {
            "max_steps": caps.calls,
            "max_tool_calls": caps.calls,
            "max_tokens": caps.tokens,
            "max_money": caps.money,
            "max_seconds": caps.seconds,
        }
    }


def _loop(caps: Caps) -> dict[str, Any]:
    amounts = {"steps": caps.calls, "tokens": caps.tokens, "money": caps.money, "seconds": caps.seconds}
    return {**amounts, "exit": "an answer, or what stopped it"}


def _sessions(models: Mapping[str, str]) -> dict[str, Any]:
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


def _action(tool: Tool, policy: Policy) -> dict[str, Any]:
    """What a tool does to the world. Its gate is what the policy says of the most harmless call that there can be."""
    allowed = isinstance(policy.decide(_harmless(tool, policy)), Allowed)
    return {"reversible": tool.effect == "write", "gate": "none" if allowed else "V1"}


def _harmless(tool: Tool, policy: Policy) -> CallFacts:
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
    along = (ArgumentFacts(each + ATTACHED, "attaches", NOTHING) for each in tool.attaches)
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

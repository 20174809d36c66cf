"""The stack that an advice describes: its patterns, and of the facts those that a stack can say of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..facts import catalog
from ._choosing import Choice
from ._facts import Facts

_FAN_OUTS = frozenset({"O4", "O6", "O7"})
_WORKERS = ("S", "K", "R", "I")
"""Under a fan-out, what patterns of these categories do is done by the workers."""

_SAME = (
    "production",
    "safety_critical",
    "external_input",
    "stakes",
    "steps_known",
    "checks_between_steps",
    "calls_independent",
    "action_known",
    "external_success_signal",
    "cli_exists",
    "credential_isolation",
    "typed_output",
    "shared_prefix_tokens",
)
"""Facts that have the same name in a stack."""


def description(name: str, choices: Mapping[str, Choice], facts: Facts) -> dict[str, Any]:
    """The stack as a mapping in the shape of its YAML."""
    chosen = frozenset(choices)
    found: dict[str, Any] = {"name": name}
    inner = [id for id in choices if id[0] in _WORKERS] if chosen & _FAN_OUTS else []
    found["patterns"] = [id for id in choices if id not in inner]
    found |= {key: value for key, value in _sections(chosen, facts).items() if value}
    if inner:
        tools = found.pop("tools", None)
        # Each worker has bounds of its own, so that one without an end cannot starve the others.
        found["agents"] = {"worker": {"patterns": [*inner, "V9"]} | ({"tools": tools} if tools else {})}
    return found


def _sections(chosen: frozenset[str], facts: Facts) -> dict[str, Any]:
    return {
        "facts": _stack_facts(chosen, facts),
        "declares": _declares(chosen, facts),
        "tools": _tools(chosen, facts),
        "legs": _legs(facts),
        "guards": _guards(chosen),
        "loops": _loops(chosen, facts),
        "actions": _actions(chosen, facts),
    }


def _stack_facts(chosen: frozenset[str], facts: Facts) -> dict[str, Any]:
    found = {name: value for name in _SAME if (value := getattr(facts, name)) is not None}
    derived: dict[str, Any] = {
        "format_varies": _about(facts.format_consistency, lambda share: share < 0.9),
        "multi_hop": _about(facts.multi_hop_share, lambda share: share >= 0.2),
        "query_diversity": _about(facts.question_levels, lambda levels: "high" if levels >= 2 else "low"),
        "tools_shared": _about(facts.shared_tools, lambda tools: tools > 0),
        "tasks_recur": _about(facts.recurring_shapes, lambda share: share >= 0.5),
        "same_system": _about(facts.other_vendors, lambda others: not others),
        "workers": facts.subtasks if chosen & {"O6", "O7"} else None,
        "structured_output": _structured(chosen, facts),
    }
    return found | {name: value for name, value in derived.items() if value is not None}


def _about(value: Any, say: Callable[[Any], Any]) -> Any:
    return None if value is None else say(value)


def _structured(chosen: frozenset[str], facts: Facts) -> str | None:
    if facts.structured_output is None:
        return None
    return ("used" if "S6" in chosen else "available") if facts.structured_output else "unavailable"


def _declares(chosen: frozenset[str], facts: Facts) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    if {"H1", "H7"} <= chosen and facts.core_written:
        found["identity_style_partition"] = facts.core_written
    if facts.known:
        found["measured_gaps"] = "the facts that this advice was given"
    return found


def _tools(chosen: frozenset[str], facts: Facts) -> dict[str, int]:
    """The tools that are before the model at a time: with V13 never more than it allows."""
    found = {name: value for name, value in (("count", facts.tools), ("schema_tokens", facts.schema_tokens)) if value}
    if "V13" in chosen and "count" in found:
        shown = min(found["count"], int(catalog().pattern("V13").defaults["max_tools"]))
        found = {name: value * shown // found["count"] for name, value in found.items()}
    return found


def _legs(facts: Facts) -> list[str] | None:
    """The legs, where all three are known: a leg that nobody spoke of is not known to be missing."""
    legs = ("private_data", "untrusted_content", "external_comms")
    if any(getattr(facts, leg) is None for leg in legs):
        return None
    return [leg for leg in legs if getattr(facts, leg)]


def _guards(chosen: frozenset[str]) -> list[str]:
    if "V5" not in chosen:
        return []
    return ["input", "call", "result", "output", *(["write", "read"] if "H10" in chosen else [])]


def _loops(chosen: frozenset[str], facts: Facts) -> dict[str, Any]:
    """Every loop with the bound that the catalogue has for it, where budgets of money and time were named too."""
    found: dict[str, Any] = {}
    if not facts.money_budget or not facts.latency_budget_s:
        return found
    for id in sorted(chosen):
        pattern = catalog().pattern(id)
        bounds = [pattern.knobs[name].default for name in pattern.bounded_by if pattern.knobs[name].numeric]
        if pattern.loops and bounds:
            caps = {"steps": bounds[0], "money": facts.money_budget, "seconds": facts.latency_budget_s}
            found[id] = {**caps, "exit": "an answer"}
    return found


def _actions(chosen: frozenset[str], facts: Facts) -> dict[str, Any]:
    """Each action with its gate: a person before what cannot be undone, a watcher beside the rest."""
    found: dict[str, Any] = {}
    far = facts.blast_radius is not None and facts.blast_radius >= 4
    for action in facts.irreversible_actions or ():
        found[action] = {"reversible": False, "gate": "V1"}
    for action in facts.reversible_actions or ():
        gate = "V1" if far else "V2" if "V2" in chosen else "none"
        found.setdefault(action, {"reversible": True, "gate": gate} | _reach(facts))
    return found


def _reach(facts: Facts) -> dict[str, str]:
    if facts.blast_radius is None:
        return {}
    return {"blast_radius": "low" if facts.blast_radius <= 3 else "high"}


def stack_text(described: Mapping[str, Any], choices: Mapping[str, Choice]) -> str:
    """The stack as YAML, with the rule that chose each pattern beside it."""
    import yaml

    rest = {key: value for key, value in described.items() if key not in ("name", "patterns", "agents")}
    lines = [
        f"name: {_scalar(str(described['name']))}",
        "patterns:",
        *_pattern_lines(described["patterns"], choices, 2),
    ]
    if rest:
        lines.append(yaml.safe_dump(rest, sort_keys=False, allow_unicode=True, default_flow_style=None).rstrip())
    for name, agent in described.get("agents", {}).items():
        lines += ["agents:", f"  {name}:", "    patterns:", *_pattern_lines(agent["patterns"], choices, 6)]
        more = {key: value for key, value in agent.items() if key != "patterns"}
        if more:
            dumped = yaml.safe_dump(more, sort_keys=False, default_flow_style=None).rstrip()
            lines += [f"    {line}" for line in dumped.splitlines()]
    return "\n".join(lines) + "\n"


def _pattern_lines(patterns: Sequence[str], choices: Mapping[str, Choice], indent: int) -> list[str]:
    return [f"{' ' * indent}- {id:<4} # {choices[id].rule}: {choices[id].why}" for id in patterns]


def _scalar(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)

"""Advice: the smallest stack that is sufficient for the known facts, the reasons, and the stack as YAML."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from bicameral.catalog.advice._facts import TaskFacts, facts_from_mapping
from bicameral.catalog.advice._selection import (
    Choice,
    OpenQuestion,
    PatternSelection,
    RejectedPattern,
    Rulebook,
    adoption_order,
    broken_rule_ids,
    choose_patterns,
    is_met,
    open_questions,
    rulebook,
)
from bicameral.catalog.costs import Estimate, Rates, estimate
from bicameral.catalog.facts import IDS, Requirement, catalog
from bicameral.catalog.facts._records import json_fields
from bicameral.catalog.stacks import Leg, RuntimeName, Stack, runtime_guarantees, stack_of

_FAN_OUTS = frozenset({"O4", "O6", "O7"})
_WORKER_CATEGORIES = ("S", "K", "R", "I")
"""Under a fan-out, patterns of these categories belong to the workers."""

_SHARED_FACTS = (
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
"""Facts of the task that a stack declares under the same name."""


def describe_stack(
    name: str,
    choices: Mapping[str, Choice],
    facts: TaskFacts,
    runtime: RuntimeName = "other",
    brought: Collection[str] = (),
) -> dict[str, Any]:
    """The stack as a mapping in the shape of its YAML, without what the runtime brings."""
    chosen = frozenset(choices)
    found: dict[str, Any] = {"name": name} | ({} if runtime == "other" else {"runtime": runtime})
    inner = [id for id in choices if id[0] in _WORKER_CATEGORIES] if chosen & _FAN_OUTS else []
    outer = [id for id in choices if id not in inner]
    # A stack lists something: where the runtime brings everything, that.
    found["patterns"] = [id for id in outer if id not in brought] or outer
    sections: dict[str, Any] = {
        "facts": _stack_facts(chosen, facts),
        "declares": _statements(chosen, facts),
        "tools": _tools(chosen, facts),
        "legs": _legs(facts),
        "guards": _guards(chosen),
        "loops": _loops(chosen, facts),
        "actions": _actions(chosen, facts),
    }
    found |= {key: value for key, value in sections.items() if value}
    if inner:
        tools = found.pop("tools", None)
        # Each worker has bounds of its own, so that an endless one cannot use up those of the others.
        bounds = [] if "V9" in brought else ["V9"]
        found["agents"] = {"worker": {"patterns": [*inner, *bounds]} | ({"tools": tools} if tools else {})}
    return found


def _stack_facts(chosen: frozenset[str], facts: TaskFacts) -> dict[str, Any]:
    found = {name: value for name in _SHARED_FACTS if (value := getattr(facts, name)) is not None}
    derived: dict[str, Any] = {
        "format_varies": _map_known(facts.format_consistency, lambda share: share < 0.9),
        "multi_hop": _map_known(facts.multi_hop_share, lambda share: share >= 0.2),
        "query_diversity": _map_known(facts.question_levels, lambda levels: "high" if levels >= 2 else "low"),
        "tools_shared": _map_known(facts.shared_tools, lambda tools: tools > 0),
        "tasks_recur": _map_known(facts.recurring_shapes, lambda share: share >= 0.5),
        "same_system": _map_known(facts.other_vendors, lambda others: not others),
        "workers": facts.subtasks if chosen & {"O6", "O7"} else None,
        "structured_output": _map_known(
            facts.structured_output, lambda held: ("used" if "S6" in chosen else "available") if held else "unavailable"
        ),
    }
    return found | {name: value for name, value in derived.items() if value is not None}


def _map_known(value: Any, function: Callable[[Any], Any]) -> Any:
    return None if value is None else function(value)


def _statements(chosen: frozenset[str], facts: TaskFacts) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    if {"H1", "H7"} <= chosen and facts.core_written:
        found["identity_style_partition"] = facts.core_written
    if facts.known:
        found["measured_gaps"] = "the facts that this advice was given"
    return found


def _tools(chosen: frozenset[str], facts: TaskFacts) -> dict[str, int]:
    """The tools that a model sees at a time: with V13 not more than it allows."""
    found = {name: value for name, value in (("count", facts.tools), ("schema_tokens", facts.schema_tokens)) if value}
    if "V13" in chosen and "count" in found:
        shown = min(found["count"], int(catalog().pattern("V13").defaults["max_tools"]))
        found = {name: value * shown // found["count"] for name, value in found.items()}
    return found


def _legs(facts: TaskFacts) -> list[str] | None:
    """The legs, if all three are known: an unknown leg may be there."""
    legs = {leg: facts.value(leg) for leg in get_args(Leg)}
    return None if None in legs.values() else [leg for leg, is_there in legs.items() if is_there]


def _guards(chosen: frozenset[str]) -> list[str]:
    if "V5" not in chosen:
        return []
    return ["input", "call", "result", "output", *(["write", "read"] if "H10" in chosen else [])]


def _loops(chosen: frozenset[str], facts: TaskFacts) -> dict[str, Any]:
    """Every loop with its bound in the catalogue, if the budgets of money and time are known, too."""
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


def _actions(chosen: frozenset[str], facts: TaskFacts) -> dict[str, Any]:
    """Each action with its gate: V1 (approval) if it is irreversible or reaches far, else V2 (supervision) or none."""
    found: dict[str, Any] = {}
    reach = facts.blast_radius
    far = reach is not None and reach >= 4
    known = {} if reach is None else {"blast_radius": "low" if reach <= 3 else "high"}
    for action in facts.irreversible_actions or ():
        found[action] = {"reversible": False, "gate": "V1"}
    for action in facts.reversible_actions or ():
        gate = "V1" if far else "V2" if "V2" in chosen else "none"
        found.setdefault(action, {"reversible": True, "gate": gate} | known)
    return found


def render_stack(described: Mapping[str, Any], choices: Mapping[str, Choice]) -> str:
    """The stack as YAML, with the rule that chose each pattern beside it."""
    import yaml

    rest = {key: value for key, value in described.items() if key not in ("name", "runtime", "patterns", "agents")}
    lines = [
        f"name: {json.dumps(str(described['name']), ensure_ascii=False)}",
        *([f"runtime: {described['runtime']}"] if "runtime" in described else []),
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


@dataclass(frozen=True)
class Advice:
    """What to build: each pattern with the rule that chose it, what was ruled out, open questions, and the order.

    `settled` is false while a question of safety is open: the stack may then lack a protection that it needs.
    """

    facts: TaskFacts
    choices: Mapping[str, Choice]
    ruled_out: Mapping[str, RejectedPattern]
    open: tuple[OpenQuestion, ...]
    order: tuple[tuple[str, ...], ...]
    wanted: tuple[Requirement, ...]
    """Strong requirements of the chosen patterns that are not met; the linter warns about them."""
    described: Mapping[str, Any] = field(repr=False)
    brought: Mapping[str, str] = field(default_factory=dict[str, str])
    """The chosen patterns that the runtime brings, so that nobody has to build them, with how it does that."""
    rates: Mapping[str, Rates] | None = field(default=None, repr=False)
    sizes: Mapping[str, float] | None = field(default=None, repr=False)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The ids of the patterns to build, in order; what the runtime brings is not among them."""
        return tuple(id for stage in self.order for id in stage)

    @property
    def settled(self) -> bool:
        return not any(each.safety for each in self.open)

    @property
    def next_question(self) -> OpenQuestion | None:
        """The most useful question to ask next."""
        return self.open[0] if self.open else None

    @cached_property
    def stack(self) -> Stack:
        """The stack, in which the linter finds no error."""
        return stack_of(self.described)

    @cached_property
    def estimate(self) -> Estimate:
        """The cost of a run."""
        return estimate(self.stack, self.sizes, self.rates)

    @cached_property
    def over_budget(self) -> tuple[str, ...]:
        """The budgets that the expected cost exceeds, and what could be smaller."""
        usual = self.estimate.expected
        lines: list[str] = []
        for name, value, budget in (
            ("seconds", usual.seconds, self.facts.latency_budget_s),
            ("money", usual.money, self.facts.money_budget),
        ):
            if value is not None and budget is not None and value > budget:
                lines.append(f"{name}: {value:,.4g} expected, {budget:g} allowed{self._smaller(name)}")
        return tuple(lines)

    def _smaller(self, name: str) -> str:
        """The most expensive pattern, and its smaller alternatives in the catalogue."""
        by_pattern = {id: getattr(usual, name) or 0.0 for id, (usual, _) in self.estimate.by_pattern().items()}
        dearest = max(by_pattern, key=lambda id: by_pattern[id])
        smaller = [id for id in catalog().pattern(dearest).shrinks_to if id not in self.choices and id[0] == dearest[0]]
        return f"; {dearest} takes most" + (f", and {' or '.join(smaller)} would be smaller" if smaller else "")

    def yaml(self) -> str:
        """The stack as YAML, with the rule beside each pattern."""
        return render_stack(self.described, self.choices)

    def to_json(self) -> dict[str, Any]:
        return {
            "facts": self.facts.to_json(),
            "patterns": list(self.patterns),
            "brought": dict(self.brought),
            "choices": [json_fields(each, "one_of") | {"facts": dict(each.facts)} for each in self.choices.values()],
            "ruled_out": [json_fields(each) | {"facts": dict(each.facts)} for each in self.ruled_out.values()],
            "open": [each.to_json() for each in self.open],
            "settled": self.settled,
            "order": [list(stage) for stage in self.order],
            "wanted": [{"rule": need.id, "pattern": need.pattern, "why": need.why} for need in self.wanted],
            "stack": dict(self.described),
            "estimate": {"expected": self.estimate.expected.to_json(), "worst": self.estimate.worst.to_json()},
            "over_budget": list(self.over_budget),
        }


def advise(
    facts: TaskFacts | Mapping[str, Any],
    *,
    name: str = "Advised stack",
    rates: Mapping[str, Rates] | None = None,
    sizes: Mapping[str, float] | None = None,
    runtime: RuntimeName = "other",
) -> Advice:
    """The smallest stack that is sufficient for the known facts.

    Args:
        facts: Facts by their names; those that are left out are unknown.
        runtime: With "bicameral", the stack lists nothing that this runtime brings.
        rates: The prices and speeds of models, for the estimate.
        sizes: Measured sizes, for the estimate.

    Example:
        >>> advise({"tools": 4, "calls_independent": True}).patterns
        ('V9', 'V14', 'R5', 'I2')
    """
    known = facts if isinstance(facts, TaskFacts) else facts_from_mapping(facts)
    book = rulebook()
    draft = choose_patterns(known, book)
    brought = _brought_patterns(runtime, draft.patterns)
    return Advice(
        known,
        draft.choices,
        draft.ruled_out,
        open_questions(draft.undecided, known, draft.patterns),
        _order_without(adoption_order(draft.choices, book), brought),
        _unmet_strong_needs(draft, book, frozenset(brought)),
        describe_stack(name, draft.choices, known, runtime, brought),
        {id: why for id, why in brought.items() if id in draft.choices},
        rates,
        sizes,
    )


def _brought_patterns(runtime: RuntimeName, chosen: frozenset[str]) -> dict[str, str]:
    """What the runtime brings to a stack with these patterns."""
    if runtime == "other":
        return {}
    patterns = [each for id, each in runtime_guarantees().items() if id in IDS]
    return {each.id: each.why for each in patterns if each.holds_for(chosen - {each.id})}


def _order_without(order: tuple[tuple[str, ...], ...], brought: Collection[str]) -> tuple[tuple[str, ...], ...]:
    stages = (tuple(id for id in stage if id not in brought) for stage in order)
    return tuple(stage for stage in stages if stage)


def broken_rules(patterns: Mapping[str, Any] | list[str] | frozenset[str], facts: TaskFacts) -> list[str]:
    """The ids of the rules that a set of patterns breaks for these facts; none for what `advise` chose."""
    return broken_rule_ids(patterns, facts, rulebook())


def _unmet_strong_needs(draft: PatternSelection, book: Rulebook, brought: frozenset[str]) -> tuple[Requirement, ...]:
    strong = (need for need in book.needs if need.strength == "strong" and need.when is None)
    used, there = [id for id in draft.choices if id not in brought], draft.patterns | brought
    return tuple(need for need in strong if any(need.binds(id) for id in used) and not is_met(need, there))

"""The scope of one agent, and the conditions that rules evaluate on it in three-valued logic.

A condition has names, `V9` (is it used), `V20.retries` (a knob), `tools.count`, numbers and texts, comparisons, `in`,
`and`, `or`, `not` and arithmetic. A value that is not declared is unknown. Some facts are derived from other sections;
None means that they do not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice, product, takewhile
from typing import Any, TypeVar

from bicameral.catalog.facts import IDS, catalog
from bicameral.catalog.stacks import (
    FACTS,
    Action,
    GuardPoint,
    PatternUse,
    RuntimeGuarantee,
    Stack,
    StackMember,
    StackPath,
    runtime_guarantees,
)
from bicameral.errors import CatalogError
from bicameral.expressions import Language, Lookup, Node, Unknown, Verdict, evaluate, judge, names, parse, verdict_of


def _bad_condition(text: str, what: str) -> CatalogError:
    return CatalogError(
        "catalog.bad-data", f"{text!r} is no condition: {what}", expected="names, numbers, and, or, not, ==, <"
    )


_CONDITIONS = Language(_bad_condition, dotted=True)


@dataclass(frozen=True, slots=True)
class StackCondition:
    """A condition of a rule.

    Example:
        >>> parse_stack_condition("production and not safety_critical").evaluate({"production": False}.get)
        False
    """

    text: str
    names: frozenset[str]
    tree: Node

    def evaluate(self, lookup: Lookup) -> bool | Unknown:
        """Whether it holds for these values, or the missing values on which that depends."""
        verdict = judge(self.tree, lambda atom: _judge_atom(atom, lookup))
        return Unknown(frozenset(verdict.missing)) if verdict.holds is None else verdict.holds


@cache
def parse_stack_condition(text: str) -> StackCondition:
    """A condition of a rule; `catalog.bad-data` if it is none."""
    tree = parse(text, _CONDITIONS)
    return StackCondition(text, names(tree), tree)


def _judge_atom(atom: Node, lookup: Lookup) -> Verdict:
    try:
        return verdict_of(evaluate(atom, lookup))
    except (TypeError, ZeroDivisionError, OverflowError):
        # A knob of the wrong kind. That it is out of its bounds is a finding of its own (L4).
        return Verdict(False)


def is_irreversible(action: Action) -> bool | None:
    """Whether an action is irreversible or reaches far; None if too little is declared."""
    if action.reversible is False or action.blast_radius == "high":
        return True
    return None if action.reversible is None or action.blast_radius is None else False


def _irreversible_actions(scope: AgentScope) -> bool | None:
    if scope.actions is None:
        return None
    answers = [is_irreversible(action) for action in scope.actions]
    return True if True in answers else None if None in answers else False


def _stable_tokens(scope: AgentScope) -> int | None:
    """The tokens of the leading parts that never change."""
    if scope.prompt is None:
        return None
    return _sum_known([part.tokens for part in takewhile(lambda part: part.stable == "global", scope.prompt)])


def _sum_known(tokens: list[int | None]) -> int | None:
    known = [each for each in tokens if each is not None]
    return sum(known) if len(known) == len(tokens) else None


def _judge_reads_quarantined(scope: AgentScope) -> bool | None:
    if scope.sessions is None:
        return None
    tainted = {text for session in scope.sessions if session.quarantined for text in session.writes}
    return any(tainted & {*session.reads, *session.judges} for session in scope.sessions if session.judges)


def _cap_derivation(loops: str, knob: str) -> Callable[[AgentScope], float | None]:
    """The largest declared cap: of a loop, or else of V9."""

    def find(scope: AgentScope) -> float | None:
        caps = [cap for loop in scope.loops or () if (cap := getattr(loop, loops)) is not None]
        if caps:
            return max(caps)
        value = scope.knob("V9", knob) if "V9" in scope.present else None
        return value if isinstance(value, int | float) else None

    return find


def _replanning(scope: AgentScope) -> bool | None:
    knobs = [use.knobs["max_replans"] for use in scope.uses.get("R3", ()) if "max_replans" in use.knobs]
    return any(isinstance(each, int) and each > 0 for each in knobs) if knobs else None


_DERIVATIONS: Mapping[str, Callable[[AgentScope], Any]] = {
    "irreversible_actions": _irreversible_actions,
    "external_input": lambda scope: True if "untrusted_content" in (scope.legs or ()) else None,
    "adversarial_input": lambda scope: None if scope.legs is None else "untrusted_content" in scope.legs,
    "prompt_tokens": lambda scope: None if scope.prompt is None else _sum_known([p.tokens for p in scope.prompt]),
    "stable_tokens": _stable_tokens,
    "shared_prefix_tokens": _stable_tokens,
    # Whoever describes which parts of a prompt are stable means to have them cached.
    "prompt_caching": lambda scope: True if scope.prompt is not None or "O18" in scope.present else None,
    "judge_reads_quarantined": _judge_reads_quarantined,
    "token_cap": _cap_derivation("tokens", "max_tokens"),
    "money_cap": _cap_derivation("money", "max_money"),
    "replanning": _replanning,
    "workers": lambda scope: scope.knob("O6", "max_workers") if "O6" in scope.present else None,
}
SECTION_OF_FACT: Mapping[str, str] = {
    "irreversible_actions": "actions",
    "adversarial_input": "legs",
    "prompt_tokens": "prompt",
    "stable_tokens": "prompt",
    "judge_reads_quarantined": "sessions",
    "token_cap": "loops",
    "money_cap": "loops",
}
"""The section to declare instead of a fact that follows from it."""


T = TypeVar("T")

MAX_VARIANTS = 32
"""The most combinations of uses with different facts that are checked."""


class AgentScope:
    """An agent of a stack together with the whole; or the whole alone, if there are no agents."""

    def __init__(self, stack: Stack, member: StackMember) -> None:
        whole = stack.whole
        self.stack = stack
        self.member = member
        self.path: StackPath = member.path
        both = (whole,) if member is whole else (member, whole)
        self.uses: dict[str, list[PatternUse]] = {}
        self._around: dict[StackPath, frozenset[str]] = {}
        own = frozenset(use.id for part in both for use in part.uses)
        for part in both:
            for use in part.uses:
                self._add_use(use, own)
        self.present = frozenset(self.uses)
        brought = _brought(stack, self.present)
        self.brought = frozenset(id for id in brought if id in IDS)
        """The patterns that the runtime brings: they meet requirements, and no rule applies because of them."""
        self.outermost = own
        brought_facts = {id: each.value for id, each in brought.items() if id not in IDS}
        self.facts: Mapping[str, Any] = {**brought_facts, **whole.facts, **member.facts}
        self.declares: Mapping[str, str | bool] = {**whole.declares, **member.declares}
        # What the agent says of these replaces what the whole says; of the others both hold.
        self.tools = _first(part.tools for part in both)
        self.prompt = _first(part.prompt for part in both)
        self.pipeline = _first(part.pipeline for part in both)
        self.legs = _join(part.legs for part in both)
        self.loops = _join(part.loops for part in both)
        self.sessions = _join(part.sessions for part in both)
        self.actions = _join(part.actions for part in both)
        self.stores = _join(part.stores for part in both)
        self._guards = [part.guards for part in both if part.guards is not None]
        self._uses_with_facts = frozenset(id for id, uses in self.uses.items() if any(map(_facts_of_use, uses)))
        self._looked_up: dict[str, Any] = {}

    def _add_use(self, use: PatternUse, above: frozenset[str]) -> None:
        self.uses.setdefault(use.id, []).append(use)
        self._around[use.path] = above | {each.id for each in use.walk()}
        for each in use.inner:
            self._add_use(each, above | {use.id})

    def around(self, use: PatternUse) -> frozenset[str]:
        """The patterns that apply to a use: those around it, those inside of it, and those of the whole agent.

        What is inside of another part does not: guards of the first step of a chain do not guard the second one.
        """
        return self._around[use.path] | self.brought

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """Every pattern that any agent of the stack uses, and what the runtime brings."""
        return frozenset(id for member in self.stack.members for id in member.patterns) | self.brought

    @property
    def available(self) -> frozenset[str]:
        """Every pattern that the agent has, of its own or from the runtime."""
        return self.present | self.brought

    @cached_property
    def guards(self) -> tuple[GuardPoint, ...] | None:
        """The points with guards, as declared for the agent or as a knob of V5."""
        knobs = [use.knobs["at"] for use in self.uses.get("V5", ()) if isinstance(use.knobs.get("at"), list)]
        lists = [*self._guards, *knobs]
        return tuple(dict.fromkeys(point for points in lists for point in points)) if lists else None

    def path_of(self, id: str) -> StackPath:
        """The path of the first use of a pattern, or of the patterns of this agent."""
        return self.uses[id][0].path if id in self.uses else (*self.path, "patterns")

    def variants(self, triggers: frozenset[str]) -> Iterator[Lookup]:
        """Lookups of this agent, one for each combination of facts that the uses of these patterns declare.

        Facts of a use come before those of the agent, and these before those of the whole.
        """
        ids = triggers & self._uses_with_facts
        if not ids:
            yield self.lookup
            return
        choices = ([facts for use in self.uses[id] if (facts := _facts_of_use(use))] for id in sorted(ids))
        for combination in islice(product(*choices), MAX_VARIANTS):
            yield partial(self._lookup_over, {name: value for facts in combination for name, value in facts.items()})

    def _lookup_over(self, facts: Mapping[str, Any], name: str) -> Any:
        return facts[name] if name in facts else self.lookup(name)

    def lookup(self, name: str) -> Any:
        """The value of a name: whether a pattern is used, a knob, the number of tools, or a fact."""
        if name not in self._looked_up:
            self._looked_up[name] = self._value(name)
        return self._looked_up[name]

    def _value(self, name: str) -> Any:
        if name in self.facts:
            return self.facts[name]
        if name in IDS or name in self.stack.defined:
            return name in self.available
        head, _, tail = name.partition(".")
        if tail and head != "tools":
            return self.knob(head, tail)
        derive = _DERIVATIONS.get(name)
        value = getattr(self.tools, tail, None) if tail else derive(self) if derive is not None else None
        if value is None and name in FACTS:
            value = FACTS[name].default
        return Unknown(frozenset({name})) if value is None else value

    def knob(self, id: str, name: str) -> Any:
        """The value of a knob, or its default."""
        for use in self.uses.get(id, ()):
            if name in use.knobs:
                return use.knobs[name]
        knob = catalog().pattern(id).knobs.get(name) if id in IDS else None
        return Unknown(frozenset({f"{id}.{name}"})) if knob is None or knob.default is None else knob.default


def _brought(stack: Stack, present: frozenset[str]) -> Mapping[str, RuntimeGuarantee]:
    """What the runtime of a stack brings to an agent with these patterns."""
    if stack.runtime == "other":
        return {}
    return {id: each for id, each in runtime_guarantees().items() if each.holds_for(present)}


def _first(values: Iterable[T | None]) -> T | None:
    return next((each for each in values if each is not None), None)


def _join(lists: Iterable[tuple[T, ...] | None]) -> tuple[T, ...] | None:
    """All of them as one; None if there is none."""
    known = [each for each in lists if each is not None]
    return tuple(item for each in known for item in each) if known else None


def _facts_of_use(use: PatternUse) -> dict[str, Any]:
    return {name: value for name, value in use.knobs.items() if name in FACTS}


def agent_scopes(stack: Stack) -> list[AgentScope]:
    """The scope of every agent of a stack."""
    return [AgentScope(stack, member) for member in stack.agents or (stack.whole,)]

"""Model selection: rules, the phase maps, the role map and a default, and the mistakes that can be found in them.

`Selection.map_entries` is the one place that knows the order of the maps: the router and `ModelSelector` both read it.

`can_hold` finds the contradictions by which a rule never matches, or only where an earlier rule does. It is sound: a
condition that it rules out holds for no call. It takes alternatives one by one and not in combination, so its time
grows with the length of a condition, and a contradiction between two alternatives is not found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal, NamedTuple

from bicameral.errors import ConfigError, nearest_name
from bicameral.expressions import AllOf, AnyOf, Node, Not, walk
from bicameral.routing._conditions import (
    FIELD_WORDS,
    WHOLE_QUANTITIES,
    ComparisonOperator,
    ConditionField,
    ConditionQuantity,
    FieldTest,
    QuantityComparison,
    RoutingCondition,
    parse_condition,
)

_OPPOSITE: dict[ComparisonOperator, ComparisonOperator] = {
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "==": "!=",
    "!=": "==",
}


class _Constraints:
    """What must hold for a call: the values that fields have or do not have, and the closed interval of each number."""

    def __init__(self, base: _Constraints | None = None) -> None:
        self._words: dict[ConditionField, str] = dict(base._words) if base else {}
        self._excluded: set[FieldTest] = set(base._excluded) if base else set()
        self._intervals: dict[ConditionQuantity, tuple[float, float]] = dict(base._intervals) if base else {}

    def add_word(self, test: FieldTest, is_so: bool) -> bool:
        """Add a test of a field; whether the constraints can still hold."""
        if not is_so and (pair := FIELD_WORDS.get(test.field)) is not None:
            return self.add_word(FieldTest(test.field, pair[test.word == pair[0]]), True)
        if not is_so:
            self._excluded.add(test)
            return self._words.get(test.field) != test.word
        return self._words.setdefault(test.field, test.word) == test.word and test not in self._excluded

    def add_comparison(self, test: QuantityComparison) -> bool:
        """Add a comparison other than `!=`, which is two alternatives; whether the constraints can still hold."""
        whole = test.quantity in WHOLE_QUANTITIES
        low, high = self._intervals.get(test.quantity, (0, math.inf) if whole else (-math.inf, math.inf))
        least = most = test.bound
        if whole and math.isfinite(test.bound):
            least, most = math.ceil(test.bound), math.floor(test.bound)
        if test.operator in (">", ">=", "=="):
            low = max(low, _next_number(most, math.inf, whole) if test.operator == ">" else least)
        if test.operator in ("<", "<=", "=="):
            high = min(high, _next_number(least, -math.inf, whole) if test.operator == "<" else most)
        self._intervals[test.quantity] = (low, high)
        return low <= high


def _next_number(bound: float, towards: float, whole: bool) -> float:
    return bound + math.copysign(1, towards) if whole else math.nextafter(bound, towards)


def can_hold(conditions: Iterable[RoutingCondition], base: _Constraints | None = None) -> bool:
    """Whether these conditions may hold for the same call; False if they contradict each other."""
    # A copy, so that the constraints of one alternative do not hold for the next.
    known = _Constraints(base)
    alternatives: list[tuple[Node, ...]] = []
    pending = list(conditions)
    while pending:
        match pending.pop():
            case AllOf(parts=parts):
                pending.extend(parts)
            case AnyOf(parts=parts):
                alternatives.append(parts)
            case Not(part=Not(part=part)):
                pending.append(part)
            case Not(part=AllOf(parts=parts)):
                alternatives.append(tuple(map(Not, parts)))
            case Not(part=AnyOf(parts=parts)):
                pending.extend(map(Not, parts))
            case Not(part=QuantityComparison(quantity=quantity, operator=sign, bound=bound)):
                pending.append(QuantityComparison(quantity, _OPPOSITE[sign], bound))
            case QuantityComparison(quantity=quantity, operator="!=", bound=bound):
                sides: tuple[ComparisonOperator, ...] = ("<", ">")
                alternatives.append(tuple(QuantityComparison(quantity, side, bound) for side in sides))
            case QuantityComparison() as test:
                if not known.add_comparison(test):
                    return False
            case FieldTest() as test:
                if not known.add_word(test, True):
                    return False
            case Not(part=FieldTest() as test):
                if not known.add_word(test, False):
                    return False
            case _:
                continue
    return all(any(can_hold([part], known) for part in parts) for parts in alternatives)


ROLES = ("echo", "delta", "quarantined", "validator", "planning", "reasoning", "acting", "reflecting", "summarizing")
"""The purposes of calls. `delta` writes plans: without an entry of its own it uses that of `planning`. `validator`
checks what was read: without one it uses that of `quarantined`."""
PHASES = ("sense", "plan", "act", "reflect", "final_answer")
"""The steps of strategies."""
STRATEGY_PHASES: Mapping[str, tuple[str, ...]] = {
    "native_react": ("act", "final_answer"),
    "plan_and_execute": ("plan", "act", "final_answer"),
    "spar": PHASES,
}
"""The steps that each strategy has."""
ROLE_FALLBACKS = {"delta": "planning", "validator": "quarantined"}
_CUSTOM_ROLE = re.compile(r"[a-z][a-z0-9_-]{0,39}")

SettingPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """Calls for which the condition holds go to the model with this alias.

    Example:
        >>> RoutingRule.of("has_tools and message_count > 10", "powerful")
    """

    condition: str
    model: str
    tree: RoutingCondition

    @classmethod
    def of(cls, condition: str, model: str) -> RoutingRule:
        """A rule from its text; a bad condition is a `ConfigError` with its column."""
        return cls(condition, model, parse_condition(condition))


class MapEntry(NamedTuple):
    """An alias that a map has for a call: which entry of which map, and why it applies."""

    by: Literal["phase", "role", "default"]
    alias: str
    subject: str
    why: str


@dataclass(frozen=True, slots=True)
class Selection:
    """How an alias is chosen: by the first rule that matches, else the phase map, else the role map, else the default.

    A call that names an alias gets that one.

    Args:
        phases: An alias for each phase, whatever the strategy.
        roles: An alias for each role. Names that are not in `ROLES` are roles of the user's own, which hints reach.
        strategy_phases: An alias for each phase of one strategy; it comes before that of `phases`.
    """

    default: str
    rules: tuple[RoutingRule, ...] = ()
    phases: Mapping[str, str] = field(default_factory=dict[str, str])
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    strategy_phases: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def of_role(self, role: str) -> str | None:
        """The alias that the role map has for a role."""
        return self.roles.get(role) or self.roles.get(ROLE_FALLBACKS.get(role, ""))

    @property
    def role_names(self) -> tuple[str, ...]:
        """The roles of every configuration, and those of this one."""
        return (*ROLES, *self.custom_roles)

    @property
    def custom_roles(self) -> tuple[str, ...]:
        """The roles of the user's own."""
        return tuple(role for role in self.roles if role not in ROLES)

    @property
    def hints(self) -> frozenset[str]:
        """The hints that have a meaning: roles, phases, and the words that rules test."""
        tested = (atom for rule in self.rules for atom in walk(rule.tree))
        words = {atom.word for atom in tested if isinstance(atom, FieldTest) and atom.field == "hint"}
        return frozenset(words.union(PHASES, self.role_names))

    def map_entries(
        self,
        *,
        hint: str | None = None,
        phase: str | None = None,
        role: str | None = None,
        strategy: str | None = None,
    ) -> Iterator[MapEntry]:
        """What the maps have for a call, the first choice first; the default is the last."""
        # A hint may be the name of a phase or of a role.
        yield from self._phase_entries(hint, strategy)
        yield from self._role_entries(hint)
        yield from self._phase_entries(phase, strategy)
        yield from self._role_entries(role)
        yield MapEntry("default", self.default, "the default", "nothing else applies")

    def _phase_entries(self, phase: str | None, strategy: str | None) -> Iterator[MapEntry]:
        if phase is None:
            return
        if (alias := self.strategy_phases.get(strategy or "", {}).get(phase)) is not None:
            subject = f"the phase {phase!r} of {strategy}"
            yield MapEntry("phase", alias, subject, f"{subject} has it")
        if (alias := self.phases.get(phase)) is not None:
            yield MapEntry("phase", alias, f"the phase {phase!r}", f"the phase {phase!r} has it")

    def _role_entries(self, role: str | None) -> Iterator[MapEntry]:
        if role is None:
            return
        if (alias := self.roles.get(role)) is not None:
            yield MapEntry("role", alias, f"the role {role!r}", f"the role {role!r} has it")
        general = ROLE_FALLBACKS.get(role)
        if general is not None and (alias := self.roles.get(general)) is not None:
            why = f"the role {general!r} has it, which counts for {role!r}"
            yield MapEntry("role", alias, f"the role {general!r}", why)

    @property
    def named_aliases(self) -> Iterator[tuple[SettingPath, str]]:
        """Every alias that the selection names, with its key."""
        yield ("default_model",), self.default
        for role, alias in self.roles.items():
            yield ("model_roles", role), alias
        for phase, alias in self.phases.items():
            yield ("phase_models", phase), alias
        for strategy, phases in self.strategy_phases.items():
            for phase, alias in phases.items():
                yield ("strategy_phase_models", strategy, phase), alias
        for index, rule in enumerate(self.rules):
            yield ("routing", "rules", index, "model"), rule.model


@dataclass(frozen=True, slots=True)
class ModelSelector:
    """The alias for each phase, with a default: the selection of a strategy in two lines, without models.

    It is a view of `Selection`: `selection` goes into a `Router`, and `phase_models` into `StrategyParams`.

    Example:
        >>> ModelSelector(default="main", phase_models={"plan": "powerful"}).for_phase("plan")
        'powerful'
    """

    default: str = "main"
    phase_models: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def selection(self) -> Selection:
        """The same as a selection, for a router."""
        return Selection(self.default, phases=dict(self.phase_models))

    def for_phase(self, phase: str) -> str:
        """The alias for a phase, or the default."""
        return next(self.selection.map_entries(phase=phase)).alias


@dataclass(frozen=True, slots=True)
class SelectionMistake:
    """A mistake in a selection and its key. One that is not severe is only a warning."""

    path: SettingPath
    error: ConfigError
    is_severe: bool = True


def find_mistakes(selection: Selection, aliases: Collection[str]) -> Iterator[SelectionMistake]:
    """All mistakes: unknown names, rules that can never match, and rules that are never reached."""
    for path, alias in selection.named_aliases:
        if alias not in aliases:
            yield SelectionMistake(path, unknown_alias_error(alias, aliases))
    for role in selection.custom_roles:
        if (error := _custom_role_error(role, aliases)) is not None:
            yield SelectionMistake(("model_roles", role), error)
    for phase in selection.phases:
        if phase not in PHASES:
            yield SelectionMistake(("phase_models", phase), _unknown_name_error("phase", phase, PHASES))
    yield from _strategy_mistakes(selection)
    for index, rule in enumerate(selection.rules):
        path: SettingPath = ("routing", "rules", index, "condition")
        yield from (SelectionMistake(path, error) for error in _word_errors(rule, selection, aliases))
    yield from _unreachable_rules(selection.rules)


def _strategy_mistakes(selection: Selection) -> Iterator[SelectionMistake]:
    for strategy, phases in selection.strategy_phases.items():
        known = STRATEGY_PHASES.get(strategy)
        if known is None:
            names = tuple(STRATEGY_PHASES)
            error = ConfigError(
                "strategy.unknown",
                f"there is no strategy {strategy!r} with phases",
                expected=f"one of {', '.join(names)}",
                nearest=nearest_name(strategy, names),
            )
            yield SelectionMistake(("strategy_phase_models", strategy), error)
        for phase in phases if known is not None else ():
            if phase not in (known or ()):
                error = _unknown_name_error("phase", phase, known or (), f" in {strategy}")
                yield SelectionMistake(("strategy_phase_models", strategy, phase), error)


def _custom_role_error(role: str, aliases: Collection[str]) -> ConfigError | None:
    """Why a name cannot be that of a role of the user's own; None if it can."""
    # A name that is nearly `quarantined` or `planning` is a slip: taken as a role of its own, the call that it was
    # meant for would silently get another model.
    if (meant := next((known for known in ROLES if _is_slip(role, known)), None)) is not None:
        return ConfigError(
            "routing.unknown-role",
            f"there is no role {role!r}",
            expected=f"one of {', '.join(ROLES)}, or a name of your own that is not so near to one of them",
            nearest=meant,
        )
    expected = "a name of small letters, digits, '_' and '-', at most 40 of them, that no phase and no alias has"
    if not _CUSTOM_ROLE.fullmatch(role):
        why = "is no name"
    elif role in PHASES:
        why = "is the name of a phase: give it an alias under phase_models"
    elif role in aliases:
        why = "is an alias, and a call that names it gets that model"
    else:
        return None
    return ConfigError("routing.bad-role", f"a role cannot be called {role[:60]!r}: it {why}", expected=expected)


def _is_slip(name: str, known: str) -> bool:
    """Whether two names differ in no more than case, marks, and one letter that is missing, added, other or swapped."""
    one, other = ("".join(filter(str.isalnum, each.casefold())) for each in (name, known))
    one, other = _without_common_start(one, other)
    one, other = _without_common_start(one[::-1], other[::-1])
    return max(len(one), len(other)) <= 1 or (len(one) == 2 and one == other[::-1])


def _without_common_start(one: str, other: str) -> tuple[str, str]:
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))])
    return one[same:], other[same:]


def unknown_alias_error(alias: str, aliases: Collection[str]) -> ConfigError:
    names = sorted(aliases)
    return ConfigError(
        "routing.unknown-alias",
        f"there is no model alias {alias!r}",
        expected=f"one of {', '.join(names)}" if names else None,
        nearest=nearest_name(alias, names),
        fix="Give it a model under `models`." if not names else None,
    )


def _unknown_name_error(kind: str, name: str, known: tuple[str, ...], where: str = "") -> ConfigError:
    return ConfigError(
        f"routing.unknown-{kind}",
        f"there is no {kind} {name!r}{where}",
        expected=f"one of {', '.join(known)}",
        nearest=nearest_name(name, known),
    )


def _word_errors(rule: RoutingRule, selection: Selection, aliases: Collection[str]) -> Iterator[ConfigError]:
    roles = selection.role_names
    for atom in walk(rule.tree):
        match atom:
            case FieldTest(field="role", word=word) if word not in roles:
                yield _unknown_name_error("role", word, roles)
            case FieldTest(field="phase", word=word) if word not in PHASES:
                yield _unknown_name_error("phase", word, PHASES)
            case FieldTest(field="hint", word=word) if word in aliases:
                yield ConfigError(
                    "routing.never-matches",
                    f"'hint:{word}' can never match: {word!r} is an alias, and a call that names it gets that model",
                    fix="Use another word for the hint.",
                )
            case _:
                continue


def _unreachable_rules(rules: tuple[RoutingRule, ...]) -> Iterator[SelectionMistake]:
    """Rules that no call can ever reach, each with the reason."""
    live: list[tuple[int, RoutingRule]] = []
    for index, rule in enumerate(rules):
        path: SettingPath = ("routing", "rules", index, "condition")
        subject = f"the rule {rule.condition!r}"
        if not can_hold([rule.tree]):
            why, fix = "can never match: its parts contradict each other", "Mend the condition, or remove the rule."
            yield SelectionMistake(path, ConfigError("routing.never-matches", f"{subject} {why}", fix=fix))
            continue
        over = next((at for at, before in live if not can_hold([rule.tree, Not(before.tree)])), None)
        if over is not None:
            why = f"is never reached: rule {over} ({rules[over].condition!r}) matches all that it would"
            fix = "Put it before that rule, or remove it."
            yield SelectionMistake(path, ConfigError("routing.shadowed", f"{subject} {why}", fix=fix))
        elif live and not can_hold([rule.tree, *(Not(before.tree) for _, before in live)]):
            why, fix = "the rules before it together match all that it would", "Put it before them, or remove it."
            error = ConfigError("routing.covered", f"{subject} is never reached: {why}", fix=fix)
            yield SelectionMistake(path, error, is_severe=False)
        live.append((index, rule))


def is_quarantined_only(rule: RoutingRule) -> bool:
    """Whether a rule is for calls of the quarantined chamber and no others."""
    return any(
        not can_hold([rule.tree, Not(atom)])
        for atom in (
            FieldTest("chamber", "quarantined"),
            FieldTest("role", "quarantined"),
            FieldTest("role", "validator"),
        )
    )

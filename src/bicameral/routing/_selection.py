"""Model selection: rules, the phase map, the role map and a default, and the mistakes that can be found in them.

Whether a rule can match at all, or only where an earlier one does, is decided exactly: a condition becomes a list of
cases (an `or` of `and`s), a case is what each field may say and the interval of each number, and it is possible if
none of them is empty. The fields and numbers of a call do not depend on each other. Only where there are too many
cases is the answer "cannot tell", and then no mistake is reported.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from bicameral.errors import ConfigError, nearest_name
from bicameral.routing._conditions import (
    FIELD_WORDS,
    WHOLE_QUANTITIES,
    ComparisonOperator,
    ConditionField,
    ConditionQuantity,
    Conjunction,
    Disjunction,
    FieldTest,
    Negation,
    QuantityComparison,
    RoutingCondition,
    condition_atoms,
    parse_condition,
)

MAX_CASES = 2_000


class TooManyCases(Exception):
    """There are more cases than anybody wants to look at."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers from `low` to `high`; an open end does not belong to it."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def intersect(self, other: Interval) -> Interval:
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, high_closed = min((self.high, not self.high_open), (other.high, not other.high_open))
        return Interval(low, high, low_open, not high_closed)

    def is_empty(self, *, whole: bool) -> bool:
        if whole and not math.isinf(self.low):
            least = math.floor(self.low) + 1 if self.low_open else math.ceil(self.low)
            return least > self.high or (least == self.high and self.high_open)
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


_ANY_NUMBER = Interval(-math.inf, math.inf)
_ANY_COUNT = Interval(0, math.inf, high_open=True)


@dataclass(frozen=True, slots=True)
class ConditionCase:
    """One way in which a condition can hold: words that fields are, words that they are not, ranges of numbers."""

    words: Mapping[ConditionField, str] = field(default_factory=dict[ConditionField, str])
    excluded_words: Mapping[ConditionField, frozenset[str]] = field(
        default_factory=dict[ConditionField, frozenset[str]]
    )
    intervals: Mapping[ConditionQuantity, Interval] = field(default_factory=dict[ConditionQuantity, Interval])

    def intersect(self, other: ConditionCase) -> ConditionCase | None:
        """Both at once, or None if that cannot be."""
        merged = self
        for name, word in other.words.items():
            if (next_ := merged.with_word(name, word)) is None:
                return None
            merged = next_
        for name, words in other.excluded_words.items():
            for word in words:
                if (next_ := merged.without_word(name, word)) is None:
                    return None
                merged = next_
        for quantity, span in other.intervals.items():
            if (next_ := merged.with_interval(quantity, span)) is None:
                return None
            merged = next_
        return merged

    def with_word(self, name: ConditionField, word: str) -> ConditionCase | None:
        if self.words.get(name, word) != word or word in self.excluded_words.get(name, ()):
            return None
        return replace(self, words={**self.words, name: word})

    def without_word(self, name: ConditionField, word: str) -> ConditionCase | None:
        if words := FIELD_WORDS.get(name):
            return self.with_word(name, words[1] if word == words[0] else words[0])
        if self.words.get(name) == word:
            return None
        return replace(
            self, excluded_words={**self.excluded_words, name: self.excluded_words.get(name, frozenset()) | {word}}
        )

    def with_interval(self, quantity: ConditionQuantity, span: Interval) -> ConditionCase | None:
        before = self.intervals.get(quantity, _ANY_COUNT if quantity in WHOLE_QUANTITIES else _ANY_NUMBER)
        both = before.intersect(span)
        if both.is_empty(whole=quantity in WHOLE_QUANTITIES):
            return None
        return replace(self, intervals={**self.intervals, quantity: both})


UNCONSTRAINED = ConditionCase()


def condition_cases(tree: RoutingCondition) -> list[ConditionCase]:
    """Every way in which a condition can hold; none if it cannot."""
    return _expand_cases(tree, True)


def is_possible(conditions: Iterable[RoutingCondition], without: Iterable[RoutingCondition] = ()) -> bool | None:
    """Whether there is a call for which all these conditions hold and none of the others; None if nobody can tell."""
    try:
        ways = [*(_expand_cases(tree, True) for tree in conditions), *(_expand_cases(tree, False) for tree in without)]
        # The fewest first, so that what cannot be is noticed early.
        return bool(reduce(_combine_cases, sorted(ways, key=len), [UNCONSTRAINED]))
    except TooManyCases:
        return None


def _expand_cases(tree: RoutingCondition, wanted: bool) -> list[ConditionCase]:
    match tree:
        case Negation(part=part):
            return _expand_cases(part, not wanted)
        case Conjunction(parts=parts) if wanted:
            return reduce(_combine_cases, (_expand_cases(part, True) for part in parts), [UNCONSTRAINED])
        case Disjunction(parts=parts) if not wanted:
            return reduce(_combine_cases, (_expand_cases(part, False) for part in parts), [UNCONSTRAINED])
        case Conjunction(parts=parts) | Disjunction(parts=parts):
            return _check_case_count([one for part in parts for one in _expand_cases(part, wanted)])
        case FieldTest(field=name, word=word):
            case = UNCONSTRAINED.with_word(name, word) if wanted else UNCONSTRAINED.without_word(name, word)
            return [] if case is None else [case]
        case QuantityComparison(quantity=quantity, operator=sign, bound=bound):
            spans = _intervals(sign if wanted else _OPPOSITE[sign], bound)
            found = (UNCONSTRAINED.with_interval(quantity, span) for span in spans)
            return [case for case in found if case is not None]


def _combine_cases(left: list[ConditionCase], right: list[ConditionCase]) -> list[ConditionCase]:
    if len(left) * len(right) > MAX_CASES * 10:
        raise TooManyCases
    found = (one.intersect(other) for one in left for other in right)
    return _check_case_count([case for case in found if case is not None])


def _check_case_count(found: list[ConditionCase]) -> list[ConditionCase]:
    if len(found) > MAX_CASES:
        raise TooManyCases
    return found


_OPPOSITE: dict[ComparisonOperator, ComparisonOperator] = {
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "==": "!=",
    "!=": "==",
}


def _intervals(sign: ComparisonOperator, bound: float) -> list[Interval]:
    match sign:
        case "<":
            return [Interval(-math.inf, bound, high_open=True)]
        case "<=":
            return [Interval(-math.inf, bound)]
        case ">":
            return [Interval(bound, math.inf, low_open=True)]
        case ">=":
            return [Interval(bound, math.inf)]
        case "==":
            return [Interval(bound, bound)]
        case "!=":
            return [Interval(-math.inf, bound, high_open=True), Interval(bound, math.inf, low_open=True)]


ROLES = ("echo", "delta", "quarantined", "planning", "reasoning", "acting", "reflecting", "summarizing")
"""What calls are for. `delta` writes whole plans: without an entry of its own it takes that of `planning`."""
PHASES = ("sense", "plan", "act", "reflect", "final_answer")
"""The steps of strategies."""
ROLE_FALLBACKS = {"delta": "planning"}

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
        """A rule as it is written; a condition that is none is a `ConfigError` with its column."""
        return cls(condition, model, parse_condition(condition))


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that chooses among aliases. The first of these that has an answer gives it:

    the alias that a call names, the first rule that matches, the phase map, the role map, the default.
    """

    default: str
    rules: tuple[RoutingRule, ...] = ()
    phases: Mapping[str, str] = field(default_factory=dict[str, str])
    roles: Mapping[str, str] = field(default_factory=dict[str, str])

    def of_role(self, role: str) -> str | None:
        """The alias that the role map has for a role."""
        return self.roles.get(role) or self.roles.get(ROLE_FALLBACKS.get(role, ""))

    @property
    def named_aliases(self) -> Iterator[tuple[SettingPath, str]]:
        """Every alias that is named somewhere, with where."""
        yield ("default_model",), self.default
        for role, alias in self.roles.items():
            yield ("model_roles", role), alias
        for phase, alias in self.phases.items():
            yield ("phase_models", phase), alias
        for index, rule in enumerate(self.rules):
            yield ("routing", "rules", index, "model"), rule.model


@dataclass(frozen=True, slots=True)
class SelectionMistake:
    """Something wrong with a selection, and the key where it stands. What is not severe is told and changes nothing."""

    path: SettingPath
    error: ConfigError
    is_severe: bool = True


def find_mistakes(selection: Selection, aliases: Collection[str]) -> Iterator[SelectionMistake]:
    """Everything that is wrong: unknown names, rules that can never match, and rules that are never reached."""
    for path, alias in selection.named_aliases:
        if alias not in aliases:
            yield SelectionMistake(path, unknown_alias_error(alias, aliases))
    for role in selection.roles:
        if role not in ROLES:
            yield SelectionMistake(("model_roles", role), _unknown_name_error("role", role, ROLES))
    for phase in selection.phases:
        if phase not in PHASES:
            yield SelectionMistake(("phase_models", phase), _unknown_name_error("phase", phase, PHASES))
    for index, rule in enumerate(selection.rules):
        path: SettingPath = ("routing", "rules", index, "condition")
        yield from (SelectionMistake(path, error) for error in _word_errors(rule, aliases))
    yield from _unreachable_rules(selection.rules)


def unknown_alias_error(alias: str, aliases: Collection[str]) -> ConfigError:
    names = sorted(aliases)
    return ConfigError(
        "routing.unknown-alias",
        f"there is no model alias {alias!r}",
        expected=f"one of {', '.join(names)}" if names else None,
        nearest=nearest_name(alias, names),
        fix="Give it a model under `models`." if not names else None,
    )


def _unknown_name_error(kind: str, name: str, known: tuple[str, ...]) -> ConfigError:
    return ConfigError(
        f"routing.unknown-{kind}",
        f"there is no {kind} {name!r}",
        expected=f"one of {', '.join(known)}",
        nearest=nearest_name(name, known),
    )


def _word_errors(rule: RoutingRule, aliases: Collection[str]) -> Iterator[ConfigError]:
    for atom in condition_atoms(rule.tree):
        match atom:
            case FieldTest(field="role", word=word) if word not in ROLES:
                yield _unknown_name_error("role", word, ROLES)
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
        if is_possible([rule.tree]) is False:
            yield SelectionMistake(path, _contradiction_error(rule))
            continue
        over = next((at for at, before in live if is_possible([rule.tree], [before.tree]) is False), None)
        if over is not None:
            yield SelectionMistake(path, _shadowed_error(rule, over, rules[over]))
        elif live and is_possible([rule.tree], [before.tree for _, before in live]) is False:
            yield SelectionMistake(path, _covered_error(rule), is_severe=False)
        live.append((index, rule))


def _contradiction_error(rule: RoutingRule) -> ConfigError:
    return ConfigError(
        "routing.never-matches",
        f"the rule {rule.condition!r} can never match: its parts contradict each other",
        fix="Mend the condition, or remove the rule.",
    )


def _shadowed_error(rule: RoutingRule, over: int, before: RoutingRule) -> ConfigError:
    return ConfigError(
        "routing.shadowed",
        f"the rule {rule.condition!r} is never reached: rule {over} ({before.condition!r}) matches all that it would",
        fix="Put it before that rule, or remove it.",
    )


def _covered_error(rule: RoutingRule) -> ConfigError:
    return ConfigError(
        "routing.covered",
        f"the rule {rule.condition!r} is never reached: the rules before it together match all that it would",
        fix="Put it before them, or remove it.",
    )


def is_quarantined_only(rule: RoutingRule) -> bool:
    """Whether a rule is for calls of the quarantined chamber and no others."""
    return any(
        is_possible([rule.tree], [atom]) is False
        for atom in (FieldTest("chamber", "quarantined"), FieldTest("role", "quarantined"))
    )

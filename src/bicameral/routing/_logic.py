"""Whether a condition can hold at all, and whether it can where others do not.

A condition becomes a list of cases (an `or` of `and`s). A case is what each field may say and the range of each number,
and it is possible if none of them is empty. The fields and numbers of a call do not depend on each other, so this is
exact; only where there are too many cases the answer is "cannot tell", and nobody is told of a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from ._conditions import COUNTED, WORDS_OF, And, Compared, Field, Is, Not, Operator, Or, Quantity, Tree

MAX_CASES = 2_000


class TooManyCases(Exception):
    """There are more cases than anybody wants to look at."""


@dataclass(frozen=True, slots=True)
class Span:
    """The numbers from `low` to `high`; an open end does not belong to it."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def within(self, other: Span) -> Span:
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, high_closed = min((self.high, not self.high_open), (other.high, not other.high_open))
        return Span(low, high, low_open, not high_closed)

    def empty(self, *, whole: bool) -> bool:
        if whole and not math.isinf(self.low):
            least = math.floor(self.low) + 1 if self.low_open else math.ceil(self.low)
            return least > self.high or (least == self.high and self.high_open)
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


_ANY = Span(-math.inf, math.inf)
_COUNT = Span(0, math.inf, high_open=True)


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which a condition can hold: words that fields are, words that they are not, ranges of numbers."""

    are: Mapping[Field, str] = field(default_factory=dict[Field, str])
    are_not: Mapping[Field, frozenset[str]] = field(default_factory=dict[Field, frozenset[str]])
    spans: Mapping[Quantity, Span] = field(default_factory=dict[Quantity, Span])

    def both(self, other: Case) -> Case | None:
        """Both at once, or None if that cannot be."""
        merged = self
        for name, word in other.are.items():
            if (next_ := merged.being(name, word)) is None:
                return None
            merged = next_
        for name, words in other.are_not.items():
            for word in words:
                if (next_ := merged.not_being(name, word)) is None:
                    return None
                merged = next_
        for quantity, span in other.spans.items():
            if (next_ := merged.inside(quantity, span)) is None:
                return None
            merged = next_
        return merged

    def being(self, name: Field, word: str) -> Case | None:
        if self.are.get(name, word) != word or word in self.are_not.get(name, ()):
            return None
        return replace(self, are={**self.are, name: word})

    def not_being(self, name: Field, word: str) -> Case | None:
        if words := WORDS_OF.get(name):
            return self.being(name, words[1] if word == words[0] else words[0])
        if self.are.get(name) == word:
            return None
        return replace(self, are_not={**self.are_not, name: self.are_not.get(name, frozenset()) | {word}})

    def inside(self, quantity: Quantity, span: Span) -> Case | None:
        before = self.spans.get(quantity, _COUNT if quantity in COUNTED else _ANY)
        both = before.within(span)
        if both.empty(whole=quantity in COUNTED):
            return None
        return replace(self, spans={**self.spans, quantity: both})


NO_LIMITS = Case()


def cases(tree: Tree) -> list[Case]:
    """Every way in which a condition can hold; none if it cannot."""
    return _cases(tree, True)


def possible(conditions: Iterable[Tree], without: Iterable[Tree] = ()) -> bool | None:
    """Whether there is a call for which all these conditions hold and none of the others; None if nobody can tell."""
    try:
        ways = [*(_cases(tree, True) for tree in conditions), *(_cases(tree, False) for tree in without)]
        # The fewest first, so that what cannot be is noticed early.
        return bool(reduce(_product, sorted(ways, key=len), [NO_LIMITS]))
    except TooManyCases:
        return None


def _cases(tree: Tree, wanted: bool) -> list[Case]:
    match tree:
        case Not(part=part):
            return _cases(part, not wanted)
        case And(parts=parts) if wanted:
            return reduce(_product, (_cases(part, True) for part in parts), [NO_LIMITS])
        case Or(parts=parts) if not wanted:
            return reduce(_product, (_cases(part, False) for part in parts), [NO_LIMITS])
        case And(parts=parts) | Or(parts=parts):
            return _bounded([one for part in parts for one in _cases(part, wanted)])
        case Is(field=name, word=word):
            case = NO_LIMITS.being(name, word) if wanted else NO_LIMITS.not_being(name, word)
            return [] if case is None else [case]
        case Compared(quantity=quantity, operator=sign, bound=bound):
            spans = _spans(sign if wanted else _OPPOSITE[sign], bound)
            found = (NO_LIMITS.inside(quantity, span) for span in spans)
            return [case for case in found if case is not None]


def _product(left: list[Case], right: list[Case]) -> list[Case]:
    if len(left) * len(right) > MAX_CASES * 10:
        raise TooManyCases
    found = (one.both(other) for one in left for other in right)
    return _bounded([case for case in found if case is not None])


def _bounded(found: list[Case]) -> list[Case]:
    if len(found) > MAX_CASES:
        raise TooManyCases
    return found


_OPPOSITE: dict[Operator, Operator] = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def _spans(sign: Operator, bound: float) -> list[Span]:
    match sign:
        case "<":
            return [Span(-math.inf, bound, high_open=True)]
        case "<=":
            return [Span(-math.inf, bound)]
        case ">":
            return [Span(bound, math.inf, low_open=True)]
        case ">=":
            return [Span(bound, math.inf)]
        case "==":
            return [Span(bound, bound)]
        case "!=":
            return [Span(-math.inf, bound, high_open=True), Span(bound, math.inf, low_open=True)]

"""What a judge judges by and is measured with: a rubric with a version, labelled cases, and how well they agree."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.errors import CatalogError
from bicameral.types import STR, Field, LiteralType, RecordType

LONGEST_REASON = 100
_YES = LiteralType(("yes", "no"))
_MARKS = re.compile(r"<(?=\s*/?\s*(task|answer|answer_a|answer_b)\b)", re.IGNORECASE)

Winner = Literal["first", "second", "tie"]
Ruling = Winner | Literal["pass", "fail"]


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing that is asked of an output, to be answered with yes or no. A no to a `blocking` one fails the whole."""

    name: str
    asks: str
    blocking: bool = False


@dataclass(frozen=True)
class Rubric:
    """Two to six dimensions, and the share of them that an output must meet to pass."""

    name: str
    dimensions: tuple[Dimension, ...]
    pass_at: float = 0.5

    def __post_init__(self) -> None:
        names = [each.name for each in self.dimensions]
        if not 2 <= len(names) <= 6:
            raise _bad(f"the rubric {self.name!r} has {len(names)} dimensions", "2 to 6")
        for each in self.dimensions:
            if not each.name.isidentifier() or each.name == "reason" or names.count(each.name) > 1:
                raise _bad(f"no dimension can be called {each.name!r}", "names of their own, and none 'reason'")
            if not each.asks.strip():
                raise _bad(f"nobody could say what {each.name!r} asks")
        if not 0 < self.pass_at <= 1:
            raise _bad(f"pass_at is {self.pass_at!r}", "more than 0, and 1 at most")

    @property
    def text(self) -> str:
        return "Points:\n" + "\n".join(f"- {each.name}: {each.asks}" for each in self.dimensions)

    @property
    def hash(self) -> str:
        """The same as long as nothing in it changes; verdicts with different ones are not compared."""
        parts = [[each.name, each.asks, each.blocking] for each in self.dimensions]
        return fingerprint(self.name, parts, self.pass_at)

    @property
    def form(self) -> RecordType:
        """What is filled in for one output: the reason first, since what is written later follows from it."""
        fields = (Field(each.name, _YES) for each in self.dimensions)
        return RecordType((Field("reason", STR), *fields), "Judged")

    def share(self, judged: Mapping[str, Any]) -> float:
        """How much of it an output meets; nothing, if it fails what is blocking."""
        if any(each.blocking and judged[each.name] != "yes" for each in self.dimensions):
            return 0.0
        return sum(judged[each.name] == "yes" for each in self.dimensions) / len(self.dimensions)

    def passes(self, judged: Mapping[str, Any]) -> bool:
        return self.share(judged) >= self.pass_at


@dataclass(frozen=True, slots=True)
class Case:
    """A case that a person has judged: two outputs and which is better, or one and whether it passes."""

    id: str
    task: str
    outputs: tuple[str, ...]
    label: Ruling


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well a judge agrees with people, and which judge that was."""

    cases: int
    agreement: float
    kappa: float
    """Agreement beyond chance (Cohen): 0 is chance, 1 is always."""
    position_bias: float
    """Of two outputs, how much oftener the one that is shown first is taken: 0 is never because of that, 1 always."""
    order_disagreement: float
    """The share of cases in which the two orders came to different verdicts."""
    failed: int
    judge: str
    models: frozenset[str]


def calibration(
    labels: Sequence[Ruling],
    rulings: Sequence[Ruling | None],
    orders: Sequence[tuple[Winner, Winner]],
    judge: str,
    models: frozenset[str],
) -> Calibration:
    """Rulings against the labels of people; None is a ruling that did not come, which agrees with nobody."""
    agreed = sum(label == ruling for label, ruling in zip(labels, rulings, strict=True)) / len(labels)
    at_first = sum((one == "first") + (other == "second") for one, other in orders)
    at_second = sum((one == "second") + (other == "first") for one, other in orders)
    return Calibration(
        len(labels),
        agreed,
        kappa(labels, rulings),
        (at_first - at_second) / (at_first + at_second) if at_first + at_second else 0.0,
        sum(one != other for one, other in orders) / len(orders) if orders else 0.0,
        sum(ruling is None for ruling in rulings),
        judge,
        models,
    )


def kappa(labels: Sequence[Ruling], rulings: Sequence[Ruling | None]) -> float:
    """Cohen's kappa: how much of the agreement that chance leaves open there is."""
    count = len(labels)
    observed = sum(label == ruling for label, ruling in zip(labels, rulings, strict=True)) / count
    left, right = Counter(labels), Counter(rulings)
    by_chance = sum(left[each] * right[each] for each in left) / count**2
    return 1.0 if by_chance == observed == 1 else 0.0 if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def inert(text: str) -> str:
    """A text in which nothing looks like the marks that stand around it."""
    return _MARKS.sub("‹", text)


def fingerprint(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def _bad(message: str, expected: str | None = None) -> CatalogError:
    return CatalogError("pattern.bad-rubric", message, expected=expected)

"""What a screen finds: a kind, a place, a weight, and fixed words. Never a piece of the text itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

MarkKind = Literal[
    "invisible",
    "direction",
    "control",
    "mixed-script",
    "styled",
    "spaced",
    "encoded",
    "hidden-html",
    "markup",
    "instruction",
]

ALERT = 0.5
"""From this score on a text is worth an alert."""
MAX_MARKS = 200
MARKED = "what the shield marks"
"""Stands for what the shield sees in a text besides words: nobody's own, since it does not say what it is."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that was noticed, from `start` to before `end`; `weight` is between 0 and 1."""

    kind: MarkKind
    start: int
    end: int
    weight: float
    note: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "start": self.start, "end": self.end, "weight": self.weight, "note": self.note}


@dataclass(frozen=True, slots=True)
class Screening:
    """All marks of a text in order, and how suspicious it is as a whole."""

    marks: tuple[Mark, ...] = ()
    score: float = 0.0

    @property
    def alert(self) -> bool:
        return self.score >= ALERT

    @property
    def kinds(self) -> tuple[MarkKind, ...]:
        """The kinds that were found, the weightiest first."""
        return tuple(sorted(_heaviest(self.marks), key=lambda kind: -_heaviest(self.marks)[kind]))


def screening(marks: Iterable[Mark]) -> Screening:
    """Marks put in order and weighed: each kind counts once, by its weightiest mark."""
    found = sorted(marks, key=lambda mark: (mark.start, mark.end))
    clear = 1.0
    for weight in _heaviest(found).values():
        clear *= 1 - weight
    kept = sorted(sorted(found, key=lambda mark: -mark.weight)[:MAX_MARKS], key=lambda mark: (mark.start, mark.end))
    return Screening(tuple(kept), round(1 - clear, 3))


def _heaviest(marks: Iterable[Mark]) -> dict[MarkKind, float]:
    found: dict[MarkKind, float] = {}
    for mark in marks:
        found[mark.kind] = max(mark.weight, found.get(mark.kind, 0.0))
    return found

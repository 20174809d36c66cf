"""What comes of an extraction. No outcome but a filled blank holds a word that the model wrote."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .shield import MarkKind, Screening

RejectionKind = Literal[
    "unreadable", "not-the-form", "wrong-type", "wrong-shape", "characters", "too-large", "not-in-text", "suspicious"
]
"""What was wrong: no JSON, other fields than the form has, another type, not the shape of its type, characters that
nobody sees, too much of it, not in the text, or a validator's no."""

Absence = Literal["absent", "unclear", "contradictory"]
"""Why a value is not in a text: it does not say it, does not say it clearly, or says several things."""
ABSENCES: tuple[Absence, ...] = get_args(Absence)

AlertKind = MarkKind | Literal["reckoned", "free-text"]
_WORDS: dict[Absence, str] = {
    "absent": "the text does not say it",
    "unclear": "the text does not say it clearly",
    "contradictory": "the text says several things",
}
_NOTEWORTHY = 0.2


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that a person may want to know of: a kind, where (`text` or a field), how grave, how often."""

    kind: AlertKind
    where: str
    weight: float
    note: str
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "where": self.where,
            "weight": self.weight,
            "note": self.note,
            "count": self.count,
        }


Alerts = tuple[Alert, ...]


def alerts_of(found: Screening, where: str) -> Alerts:
    """The marks of a screening, summed up by kind; trifles are left out."""
    alerts: list[Alert] = []
    for kind in found.kinds:
        marks = [mark for mark in found.marks if mark.kind == kind]
        gravest = max(marks, key=lambda mark: mark.weight)
        if gravest.weight >= _NOTEWORTHY:
            alerts.append(Alert(kind, where, gravest.weight, gravest.note, len(marks)))
    return tuple(alerts)


@dataclass(frozen=True, slots=True)
class Filled:
    """The blank was filled with a value of its type."""

    value: Any
    alerts: Alerts = dataclasses.field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Rejected:
    """What the model wrote is not what the blank wants; nothing was coerced. The reason is in fixed words."""

    reason: str
    kind: RejectionKind = "not-the-form"
    field: str = ""
    alerts: Alerts = dataclasses.field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class NotFound:
    """The text does not hold what a field asks for."""

    field: str = "value"
    why: Absence = "absent"
    alerts: Alerts = dataclasses.field(default=(), compare=False)

    @property
    def reason(self) -> str:
        what = "" if self.field == "value" else f"{self.field!r}: "
        return f"{what}{_WORDS[self.why]}"


Outcome = Filled | Rejected | NotFound

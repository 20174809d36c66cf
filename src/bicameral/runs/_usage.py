"""What a run cost and what was noticed in it: tokens by chamber, blanks that were not filled, alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bicameral.boundary import Alert, AlertKind, NotFound, Outcome, Rejected, RejectionKind
from bicameral.labels import Source
from bicameral.sessions import Ledger, Spent
from bicameral.telemetry import count, safe

MAX_ALERTS = 200
"""So many are kept of a run; all are counted."""
_MAX_SOURCES = 3
_SHORT = 80


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What the models cost in a run, how many blanks they left unfilled and why, and how many alerts there were.

    The cost of planning is not in it: the same plan may run many times.
    """

    spent: Spent = field(default_factory=Spent)
    rejected: Mapping[RejectionKind, int] = field(default_factory=dict[RejectionKind, int])
    not_found: int = 0
    alerts: int = 0
    money: float = 0.0
    """What is known of the models' cost, in the currency of the price table."""
    degraded: tuple[str, ...] = ()
    """The ways in which replies were less than what was wanted, such as those of another model."""

    def __add__(self, other: RunUsage) -> RunUsage:
        rejected = Counter(self.rejected)
        rejected.update(other.rejected)
        return RunUsage(
            self.spent + other.spent,
            dict(rejected),
            self.not_found + other.not_found,
            self.alerts + other.alerts,
            self.money + other.money,
            tuple(dict.fromkeys((*self.degraded, *other.degraded))),
        )

    @property
    def reasoner_tokens(self) -> int:
        return self.spent.reasoner_tokens

    @property
    def executor_tokens(self) -> int:
        return self.spent.executor_tokens

    def to_json(self) -> dict[str, Any]:
        more: dict[str, Any] = {
            "rejected": dict(self.rejected),
            "not_found": self.not_found,
            "alerts": self.alerts,
            **({"money": round(self.money, 9)} if self.money else {}),
            **({"degraded": list(self.degraded)} if self.degraded else {}),
        }
        return {**self.spent.to_json(), **more}


@dataclass(frozen=True, slots=True)
class RunAlert:
    """Something noticed in what the quarantined model read or wrote; no word of that text is in it.

    `where` is `text`, `reply` or a field of the blank; `sources` are the strangers' places that the text came from.
    """

    step: str
    kind: AlertKind
    where: str
    weight: float
    note: str
    count: int = 1
    sources: tuple[Source, ...] = ()

    @classmethod
    def of(cls, alert: Alert, step: str, sources: Iterable[Source] = ()) -> RunAlert:
        """An alert with its place. Names that others gave are made safe and short: executors may be anybody's."""
        return cls(
            step,
            alert.kind,
            safe(alert.where, _SHORT),
            round(float(alert.weight), 3),
            safe(alert.note, _SHORT),
            int(alert.count),
            tuple(sorted(sources)[:_MAX_SOURCES]),
        )

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> RunAlert:
        """What `to_json` wrote."""
        sources = (
            Source("third_party", str(each["tool"]), str(each["part"]), str(each["step"])) for each in facts["sources"]
        )
        words = (str(facts["step"]), facts["kind"], str(facts["where"]), float(facts["weight"]), str(facts["note"]))
        return cls(*words, int(facts["count"]), tuple(sources))

    def __str__(self) -> str:
        what = self.note if self.where == "text" else f"{self.note} ({self.where})"
        place = ", ".join(safe(f"{source.tool} {source.part}".strip(), _SHORT) for source in self.sources)
        return f"{what}{f' in {place}' if place else ''} (step {self.step})"

    def to_json(self) -> dict[str, Any]:
        sources = [
            {name: safe(getattr(each, name), _SHORT) for name in ("tool", "part", "step")} for each in self.sources
        ]
        return {
            "step": self.step,
            "kind": self.kind,
            "where": self.where,
            "weight": self.weight,
            "note": self.note,
            "count": self.count,
            "sources": sources,
        }


class Noticed:
    """What a run notices while it goes on."""

    def __init__(self) -> None:
        self.alerts: list[RunAlert] = []
        self._rejected: Counter[RejectionKind] = Counter()
        self._not_found = 0
        self._alerts = 0

    def rejected(self, kind: RejectionKind) -> None:
        """A blank was filled with something that does not fit."""
        self._rejected[kind] += 1
        count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "rejected", "bicameral.rejected": kind})

    def extraction(self, outcome: Outcome, step: str, sources: Iterable[Source]) -> dict[str, Any]:
        """What came of a blank, for the record of its step."""
        facts: dict[str, Any] = {"outcome": outcome_name(outcome)}
        match outcome:
            case Rejected(kind=kind):
                self.rejected(kind)
                facts["rejected"] = kind
            case NotFound(why=why):
                self._not_found += 1
                facts["why"] = why
                count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "not-found"})
            case _:
                count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "filled"})
        if alerts := self._noted(outcome.alerts, step, tuple(sources)):
            facts["alerts"] = [alert.to_json() for alert in alerts]
        return facts

    def usage(self, ledger: Ledger) -> RunUsage:
        money, degraded = sum(ledger.money.values()), tuple(ledger.degraded)
        return RunUsage(ledger.spent, dict(self._rejected), self._not_found, self._alerts, money, degraded)

    def _noted(self, alerts: Iterable[Alert], step: str, sources: tuple[Source, ...]) -> list[RunAlert]:
        found = [RunAlert.of(alert, step, sources) for alert in alerts]
        self._alerts += len(found)
        kept = found[: max(0, MAX_ALERTS - len(self.alerts))]
        self.alerts += kept
        for alert in found:
            count("bicameral.alerts", 1, {"bicameral.alert.kind": alert.kind})
        return kept


def outcome_name(outcome: Outcome) -> str:
    return "rejected" if isinstance(outcome, Rejected) else "not-found" if isinstance(outcome, NotFound) else "filled"

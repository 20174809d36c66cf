"""Cost reports: the charges that a journal records, summed by role, phase, step, model, run or day."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, TypeVar, cast

CostGrouping = Literal["role", "phase", "step", "model", "run", "day"]
"""What costs can be grouped by."""
TimeUnit = Literal["hour", "day", "week", "month"]

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class CostTotals:
    """Calls, tokens and money. `unpriced` calls have no known price and are missing from `money`.

    `kept` calls were answered from the cache, `failed` ones gave no reply, and the tokens of `estimated` ones are a
    guess.
    """

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    money: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0
    kept: int = 0
    failed: int = 0
    estimated: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt + self.output

    def __add__(self, other: CostTotals) -> CostTotals:
        return CostTotals.sum((self, other))

    @classmethod
    def sum(cls, costs: Iterable[CostTotals]) -> CostTotals:
        """The sum of many; much faster than adding them one after the other."""
        columns = list(zip(*map(_FIELDS, costs), strict=True))
        return cls(*map(sum, columns)) if columns else cls()

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {
            "tokens": self.tokens,
            "money": round(self.money, 9),
            "seconds": round(self.seconds, 6),
        }


_FIELDS = attrgetter(*CostTotals.__slots__)


@dataclass(frozen=True, slots=True)
class CostEntry:
    """One call of one model, with its run, step, role and phase."""

    run: str
    at: float
    step: str
    role: str
    phase: str
    model: str
    cost: CostTotals
    degraded: str | None = None

    def key(self, by: CostGrouping) -> str:
        """The group that this call belongs to."""
        if by == "day":
            return datetime.datetime.fromtimestamp(self.at).date().isoformat()
        return str(getattr(self, by)) or "(none)"


@dataclass(frozen=True, slots=True)
class CostReport:
    """The costs of several calls, with their sum.

    Example:
        >>> report = CostReport.of(cost_entries(run, at, kind, step, body))
        >>> report.by("role")["delta"].tokens
    """

    entries: tuple[CostEntry, ...] = ()
    total: CostTotals = field(default_factory=CostTotals)

    @classmethod
    def of(cls, entries: Iterable[CostEntry]) -> CostReport:
        listed = tuple(entries)
        return cls(listed, CostTotals.sum(entry.cost for entry in listed))

    def by(self, by: CostGrouping) -> dict[str, CostTotals]:
        """The sum of each group, the most expensive first; together they are the total."""
        sums = _group_sums((entry.key(by), entry.cost) for entry in self.entries)
        return dict(sorted(sums.items(), key=lambda pair: (-pair[1].money, -pair[1].tokens, pair[0])))

    def over_time(self, unit: TimeUnit) -> dict[datetime.datetime, CostTotals]:
        """The sum of each hour, day, week or month in which there was a call, by its beginning, the earliest first."""
        sums = _group_sums((unit_start(entry.at, unit), entry.cost) for entry in self.entries)
        return dict(sorted(sums.items()))

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models without a known price."""
        return tuple(sorted({entry.model for entry in self.entries if entry.cost.unpriced}))

    @property
    def degraded(self) -> tuple[str, ...]:
        """The ways in which replies were less than requested, each once."""
        return tuple(dict.fromkeys(entry.degraded for entry in self.entries if entry.degraded is not None))


def _group_sums(pairs: Iterable[tuple[K, CostTotals]]) -> dict[K, CostTotals]:
    groups: dict[K, list[CostTotals]] = {}
    for key, cost in pairs:
        groups.setdefault(key, []).append(cost)
    return {key: CostTotals.sum(costs) for key, costs in groups.items()}


def unit_start(at: float, unit: TimeUnit) -> datetime.datetime:
    """When the hour, day, week (from Monday on) or month began that a time is in, by the clock of this machine."""
    moment = datetime.datetime.fromtimestamp(at).replace(minute=0, second=0, microsecond=0)
    match unit:
        case "hour":
            return moment
        case "day":
            return moment.replace(hour=0)
        case "week":
            return moment.replace(hour=0) - datetime.timedelta(days=moment.weekday())
        case "month":
            return moment.replace(hour=0, day=1)


def cost_entries(run: str, at: float, kind: str, step: str, body: Mapping[str, Any]) -> Iterator[CostEntry]:
    """The model calls that a journal event reports: one call, or those for a plan and those that failed."""
    if kind == "model-called":
        yield from _entries_of_call(run, at, step, body)
        return
    for name in ("planning_calls", "lost_calls"):
        calls: object = body.get(name)
        for call in cast("list[object]", calls) if isinstance(calls, list) else []:
            if isinstance(call, Mapping):
                yield from _entries_of_call(run, at, step, cast("Mapping[str, Any]", call))


def _entries_of_call(run: str, at: float, step: str, call: Mapping[str, Any]) -> Iterator[CostEntry]:
    """The charges of one recorded call; malformed ones are skipped, since a journal file may have been edited."""
    charges: object = call.get("charges")
    call_degraded: object = call.get("degraded")
    for charge in cast("list[object]", charges) if isinstance(charges, list) else []:
        if isinstance(charge, Mapping):
            facts = cast("Mapping[str, Any]", charge)
            role = str(facts.get("role") or call.get("role") or "")
            phase, model = str(facts.get("phase") or ""), str(facts.get("model") or "")
            degraded = call_degraded if isinstance(call_degraded, str) and facts.get("ending") == "answered" else None
            yield CostEntry(run, at, step, role, phase, model, _totals_of_charge(facts), degraded)


def _totals_of_charge(charge: Mapping[str, Any]) -> CostTotals:
    money, ending = charge.get("money"), charge.get("ending")
    return CostTotals(
        calls=1,
        prompt=_count_or_zero(charge.get("prompt")),
        cached=_count_or_zero(charge.get("cached")),
        output=_count_or_zero(charge.get("output")),
        money=_amount_or_zero(money),
        seconds=_amount_or_zero(charge.get("seconds")),
        unpriced=int(money is None),
        kept=int(ending == "remembered"),
        failed=int(ending in ("failed", "cancelled")),
        estimated=int(charge.get("estimated") is True),
    )


def _count_or_zero(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


def _amount_or_zero(value: object) -> float:
    # The upper bound also refuses `inf`, and the comparison `nan`, which would spoil every sum.
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e18 else 0.0

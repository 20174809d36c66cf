"""How a run ends, what it used, and what observers hear while it goes on.

Outcomes are types: `Finished`, `Failed`, `Stopped`, `Waiting`, `Interrupted`. Each carries the effects, the tokens by
chamber, the extractions that were not filled, and the alerts. No alert contains any of the text it is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bicameral.boundary import Alert, AlertKind, ExtractionOutcome, NotFound, Rejected, RejectionKind
from bicameral.errors import BicameralError
from bicameral.labels import UNKNOWN, Labelled, LabelTree, Source, make_labelled, remember_released
from bicameral.limits import ChamberUsage, Ledger
from bicameral.runs._approvals import ApprovalQuestion, PendingAsk
from bicameral.telemetry import count, safe_text
from bicameral.tools import Effect

MAX_ALERTS = 200
"""So many are kept of a run; all are counted."""
_MAX_SOURCES = 3
_MAX_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What the models cost in a run, how many blanks they left unfilled and why, and how many alerts there were.

    The cost of planning is not in it: the same plan may run many times.
    """

    spent: ChamberUsage = field(default_factory=ChamberUsage)
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
            safe_text(alert.where, _MAX_NAME_CHARS),
            round(float(alert.weight), 3),
            safe_text(alert.note, _MAX_NAME_CHARS),
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
        place = ", ".join(safe_text(f"{source.tool} {source.part}".strip(), _MAX_NAME_CHARS) for source in self.sources)
        return f"{what}{f' in {place}' if place else ''} (step {self.step})"

    def to_json(self) -> dict[str, Any]:
        sources = [
            {name: safe_text(getattr(each, name), _MAX_NAME_CHARS) for name in ("tool", "part", "step")}
            for each in self.sources
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


class RunMonitor:
    """What a run notices while it goes on."""

    def __init__(self) -> None:
        self.alerts: list[RunAlert] = []
        self._rejected: Counter[RejectionKind] = Counter()
        self._not_found = 0
        self._alerts = 0

    def count_rejection(self, kind: RejectionKind) -> None:
        """A blank was filled with something that does not fit."""
        self._rejected[kind] += 1
        count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "rejected", "bicameral.rejected": kind})

    def record_extraction(self, outcome: ExtractionOutcome, step: str, sources: Iterable[Source]) -> dict[str, Any]:
        """What came of a blank, for the record of its step."""
        facts: dict[str, Any] = {"outcome": extraction_outcome_name(outcome)}
        match outcome:
            case Rejected(kind=kind):
                self.count_rejection(kind)
                facts["rejected"] = kind
            case NotFound(why=why):
                self._not_found += 1
                facts["why"] = why
                count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "not-found"})
            case _:
                count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "filled"})
        if alerts := self._record_alerts(outcome.alerts, step, tuple(sources)):
            facts["alerts"] = [alert.to_json() for alert in alerts]
        return facts

    def usage(self, ledger: Ledger) -> RunUsage:
        money, degraded = sum(ledger.money.values()), tuple(ledger.degraded)
        return RunUsage(ledger.spent, dict(self._rejected), self._not_found, self._alerts, money, degraded)

    def _record_alerts(self, alerts: Iterable[Alert], step: str, sources: tuple[Source, ...]) -> list[RunAlert]:
        found = [RunAlert.of(alert, step, sources) for alert in alerts]
        self._alerts += len(found)
        kept = found[: max(0, MAX_ALERTS - len(self.alerts))]
        self.alerts += kept
        for alert in found:
            count("bicameral.alerts", 1, {"bicameral.alert.kind": alert.kind})
        return kept


def extraction_outcome_name(outcome: ExtractionOutcome) -> str:
    return "rejected" if isinstance(outcome, Rejected) else "not-found" if isinstance(outcome, NotFound) else "filled"


@dataclass(frozen=True, slots=True)
class EffectDone:
    """A change to the world that a run made."""

    step: str
    tool: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class _OutcomeBase:
    """What is known of every run that is over, or at rest: what it changed, what it took, what was noticed."""

    run: str
    effects: tuple[EffectDone, ...] = field(default=(), kw_only=True)
    written: Mapping[str, LabelTree] = field(
        default_factory=dict[str, LabelTree], repr=False, compare=False, kw_only=True
    )
    """The labels of the places that it wrote to, for a run that goes on from it."""
    usage: RunUsage = field(default_factory=RunUsage, kw_only=True)
    alerts: tuple[RunAlert, ...] = field(default=(), kw_only=True)

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Finished(_OutcomeBase):
    """The run came to its answer; `shade` are the labels of the answer, unless labels were off.

    `answer` is naked, to be shown to the person; `make_labelled` is the way into another run, strategy or pattern.
    """

    answer: Any
    seconds: float
    shade: LabelTree | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        # Every outcome of a plan, a strategy, a reasoning or a pattern begins as one of these.
        remember_released(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def labelled(self) -> Labelled[Any]:
        """The answer with its labels, closed; the worst is assumed where there are none."""
        return make_labelled(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Failed(_OutcomeBase):
    """A step failed; what had been done before it is in `effects`, and nothing after it was begun."""

    error: BicameralError
    step: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stopped(_OutcomeBase):
    """The run was stopped from outside; `in_flight` are the steps that had begun and not ended.

    Of an effect among them nobody knows whether it happened.
    """

    in_flight: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Waiting(_OutcomeBase):
    """The run waits for a person, without a process: for a yes to the calls of a `question`, or a reply to an `ask`.

    Nothing is under way. `resume_plan` takes it up, in any process, with an approver or asker that has the answer.
    """

    question: ApprovalQuestion | None
    ask: PendingAsk | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Interrupted(_OutcomeBase):
    """This attempt at the run ended, and the run did not: its record could not be written, or somebody else has it.

    Nothing was done that is not in the record. `effects` are those this process knows of, and `resume_plan` takes the
    run up.
    """

    error: BicameralError
    seconds: float = 0.0


ProgressKind = Literal["started", "finished", "failed", "retrying"]

RunOutcome = Finished | Failed | Stopped | Waiting | Interrupted


@dataclass(frozen=True, slots=True)
class StepProgress:
    """What an observer is told: a step began, ended, failed, or is tried again."""

    kind: ProgressKind
    step: str
    what: str
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


Observer = Callable[[StepProgress], None]

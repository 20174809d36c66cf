"""The outcomes of a run, what it used, and what observers get while it runs.

Outcomes are types: `Finished`, `Failed`, `Stopped`, `Waiting`, `Interrupted`. Each carries the effects, the tokens by
chamber, the extractions that were not filled, and the alerts. No alert contains any of the text it is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, TypeVar

from bicameral.boundary import Alert, AlertKind, ExtractionOutcome, Filled, NotFound, Rejected, RejectionKind
from bicameral.errors import BicameralError
from bicameral.labels import UNKNOWN, Labelled, LabelTree, Source, make_labelled, open_labelled, remember_released
from bicameral.limits import ChamberUsage, Ledger
from bicameral.runs._approvals import ApprovalQuestion, PendingAsk
from bicameral.runs._citations import Citation
from bicameral.runs._doubts import Doubt
from bicameral.telemetry import count, safe_text
from bicameral.tools import Effect

T = TypeVar("T")

MAX_ALERTS = 200
"""The most alerts that are kept of a run; all are counted."""
_MAX_SOURCES = 3
_MAX_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What the models cost in a run, how many extractions failed and why, and how many alerts there were.

    The cost of planning is not included: the same plan may run many times.
    """

    spent: ChamberUsage = field(default_factory=ChamberUsage)
    rejected: Mapping[RejectionKind, int] = field(default_factory=dict[RejectionKind, int])
    not_found: int = 0
    alerts: int = 0
    money: float = 0.0
    """The known cost of the models, in the currency of the price table."""
    degraded: tuple[str, ...] = ()
    """How replies were degraded, such as by another model than the configured one."""

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
    """Something noticed in what the quarantined model read or wrote; it contains nothing of that text.

    `where` is `text`, `reply` or a field of the extraction; `sources` are where the untrusted text came from.
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
        """An alert with its place. Names are made safe and short: an executor may be anybody's code."""
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
        """The alert that `to_json` wrote."""
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
        return asdict(self) | {"sources": sources}


class RunMonitor:
    """Collects the alerts and failed extractions of a run."""

    def __init__(self) -> None:
        self.alerts: list[RunAlert] = []
        self._rejected: Counter[RejectionKind] = Counter()
        self._not_found = 0
        self._alerts = 0

    def count_rejection(self, kind: RejectionKind) -> None:
        """Count an extraction whose value was rejected."""
        self._rejected[kind] += 1
        count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "rejected", "bicameral.rejected": kind})

    def record_extraction(self, outcome: ExtractionOutcome, step: str, sources: Iterable[Source]) -> dict[str, Any]:
        """Count an extraction and its alerts; returns the facts for the record of its step."""
        match outcome:
            case Rejected(kind=kind):
                self.count_rejection(kind)
                facts: dict[str, Any] = {"outcome": "rejected", "rejected": kind}
            case NotFound(why=why):
                self._not_found += 1
                facts = {"outcome": "not-found", "why": why}
                count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "not-found"})
            case _:
                facts = {"outcome": "filled"}
                count("bicameral.extractions", 1, {"bicameral.extraction.outcome": "filled"})
        if isinstance(outcome, Filled | Rejected) and outcome.verdicts:
            facts["verdicts"] = [verdict.to_json() for verdict in outcome.verdicts]
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


@dataclass(frozen=True, slots=True)
class EffectDone:
    """A change to the world that a run made."""

    step: str
    tool: str
    effect: Effect

    def to_json(self) -> dict[str, str]:
        return {"step": self.step, "tool": self.tool, "effect": self.effect}


@dataclass(frozen=True, slots=True)
class _OutcomeBase:
    """The fields of every outcome: what the run changed, what it used, and its alerts."""

    run: str
    effects: tuple[EffectDone, ...] = field(default=(), kw_only=True)
    written: Mapping[str, LabelTree] = field(
        default_factory=dict[str, LabelTree], repr=False, compare=False, kw_only=True
    )
    """The labels of the places that it wrote to, for a run that continues from it."""
    usage: RunUsage = field(default_factory=RunUsage, kw_only=True)
    alerts: tuple[RunAlert, ...] = field(default=(), kw_only=True)
    doubts: tuple[Doubt, ...] = field(default=(), kw_only=True)
    """What the answer and the effects rest on and may be wrong; to be shown before them."""
    citations: tuple[Citation, ...] = field(default=(), kw_only=True)
    """Where what the answer and the effects rest on was found; to be shown after them."""

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Finished(_OutcomeBase):
    """The run has its answer; `shade` are the labels of the answer, None if labels were off.

    `answer` has no labels and is meant to be shown to the user; `labelled` is for another run, strategy or pattern.
    """

    answer: Any
    seconds: float
    shade: LabelTree | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        # Every outcome of a plan, a strategy, a reasoning or a pattern starts as one of these, so that an answer which
        # comes back as a request is recognised as untrusted text.
        remember_released(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def labelled(self) -> Labelled[Any]:
        """The answer with its labels; without labels the worst is assumed."""
        return make_labelled(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class TypedFinished(Finished, Generic[T]):
    """The run has an answer of the type that was asked for; `value` is that answer as an object of the type.

    Whoever wrote the text that `value` was read from has written its fields: `labelled` has their labels.
    """

    value: T = field(kw_only=True)

    def __post_init__(self) -> None:
        # Not `super()`: a dataclass with slots is another class than the one that this function closes over.
        Finished.__post_init__(self)


@dataclass(frozen=True, slots=True)
class Failed(_OutcomeBase):
    """A step failed; `effects` are what had been done before it, and nothing after it was begun."""

    error: BicameralError
    step: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stopped(_OutcomeBase):
    """The run was stopped from outside; `in_flight` are the steps that had begun and not ended.

    It is unknown whether an effect among them happened.
    """

    in_flight: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Waiting(_OutcomeBase):
    """The run waits for a person, without a process: for approval of the calls of a `question`, or a reply to an `ask`.

    Nothing is running. `resume_plan` continues it, in any process, with an approver or asker that has the answer.
    """

    question: ApprovalQuestion | None
    ask: PendingAsk | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Interrupted(_OutcomeBase):
    """This attempt ended, and the run did not: its record could not be written, or another process has it.

    Nothing was done that is not recorded. `effects` are those this process knows of. `resume_plan` continues the run.
    """

    error: BicameralError
    seconds: float = 0.0


ProgressKind = Literal["started", "finished", "failed", "retrying"]

RunOutcome = Finished | Failed | Stopped | Waiting | Interrupted


@dataclass(frozen=True, slots=True)
class StepProgress:
    """What an observer gets: a step began, ended, failed, or is retried.

    `result` is what a finished step gave, with its labels, to be passed on; without labels the worst is assumed.
    `value` is the same for a display.
    """

    kind: ProgressKind
    step: str
    what: str
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    result: Labelled[Any] | None = None

    @property
    def value(self) -> Any:
        """The result of a finished step without its labels, to be shown to the user; None before it ends."""
        if self.result is None:
            return None
        value = open_labelled(self.result)
        # If it comes back as a request it must be recognised as untrusted text, as an answer is.
        remember_released(value, self.result.label_tree)
        return value


Observer = Callable[[StepProgress], None]

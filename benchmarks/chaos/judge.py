"""What happened, held against what was to happen."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from benchmarks.chaos.expected import Expected, labels_in
from benchmarks.chaos.world import Entry
from bicameral.runs import Event

IN_DOUBT = "run.in-doubt"
"""How a run fails that must not repeat an effect which has happened: the person who was asked said no, rightly."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run at the end of the storm: how it stands, since when, why, its answer, and its record."""

    ticket: str
    run: str
    state: str
    code: str
    why: str
    answer: Any
    events: Sequence[Event]
    updated: float = 0.0


@dataclass(slots=True)
class Verdict:
    """What went wrong, and in which run: all of it is to be nothing."""

    lost: list[str] = field(default_factory=list[str])
    duplicated: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    answers: list[str] = field(default_factory=list[str])
    labels: list[str] = field(default_factory=list[str])
    in_doubt: int = 0
    retried: int = 0

    def told(self) -> list[str]:
        """Each fault in a line."""
        named = (
            ("lost", self.lost),
            ("effect duplicated", self.duplicated),
            ("effect missing", self.missing),
            ("wrong answer", self.answers),
            ("wrong labels", self.labels),
        )
        return [f"{name}: {each}" for name, found in named for each in found]


def judge(ended: Iterable[Ended], wanted: Mapping[str, Expected], ledger: Sequence[Entry]) -> Verdict:
    """Every run against what the inline engine said of it, and the ledger against all of them."""
    entries: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in ledger:
        entries[entry.what.partition("/")[0]].append(entry)
    verdict = Verdict()
    for run in ended:
        _judge_run(run, wanted[run.ticket], entries[run.ticket], verdict)
    return verdict


def _judge_run(run: Ended, wanted: Expected, entries: Sequence[Entry], verdict: Verdict) -> None:
    where = f"{run.ticket} ({run.run})"
    verdict.retried += len(entries) - len({entry.what for entry in entries})
    verdict.duplicated += [f"{where} {what}" for what in _twice(entries)]
    verdict.duplicated += [f"{where} {what}, after its end was recorded" for what in _repeated(run.events, entries)]
    done = {entry.what for entry in entries if entry.accepted}
    verdict.duplicated += [f"{where} {what}, which was not to be done" for what in sorted(done - set(wanted.effects))]
    if run.state == "finished":
        due = wanted.effects
        if run.answer != wanted.answer:
            verdict.answers.append(f"{where}: {run.answer!r} for {wanted.answer!r}")
    elif run.state == "failed" and run.code == IN_DOUBT:
        verdict.in_doubt += 1
        # Effects keep their order: whatever comes before one that happened has happened.
        last = max((place for place, what in enumerate(wanted.effects) if what in done), default=-1)
        due = wanted.effects[: last + 1]
    else:
        verdict.lost.append(f"{where}: {run.state} {run.code} {run.why}")
        due = ()
    verdict.missing += [f"{where} {what}" for what in due if what not in done]
    verdict.labels += [f"{where} {place}" for place in _unlike(run, wanted)]


def _twice(entries: Iterable[Entry]) -> list[str]:
    """What was accepted more than once, once for each time too often."""
    accepted = Counter(entry.what for entry in entries if entry.accepted)
    return [what for what, times in accepted.items() for _ in range(times - 1)]


def _repeated(events: Iterable[Event], entries: Iterable[Entry]) -> list[str]:
    """What was asked for again, key or not, although the record already said that it had been done."""
    named: dict[str, str] = {}
    ends: dict[str, float] = {}
    for event in events:
        arguments = cast("dict[str, Any]", event.body.get("arguments") or {})
        if event.kind == "step-started" and "what" in arguments:
            named[event.step] = str(arguments["what"])
        elif event.kind == "step-finished" and event.step in named:
            ends.setdefault(named[event.step], event.at)
    return [entry.what for entry in entries if entry.at > ends.get(entry.what, math.inf)]


def _unlike(run: Ended, wanted: Expected) -> list[str]:
    """The places whose labels are not those that the inline engine gave, or that have none."""
    found = labels_in(run.events)
    unlike = [place for place, labels in found.items() if wanted.labels.get(place) != labels]
    # A run that stopped at an effect in doubt has no labels for what it did not do.
    absent = [place for place in wanted.labels if place not in found] if run.state == "finished" else []
    return unlike + absent


def takeovers(
    losses: Iterable[tuple[str, float]], ended: Iterable[Ended], deserted: Sequence[float] = ()
) -> list[float]:
    """How long each run that lost its worker waited until somebody went on with it; never is infinite.

    `deserted` are the moments in which the last worker of all died: nobody can go on before there is one again, and so
    the clock begins anew.
    """
    runs = {each.run: each for each in ended}
    found: list[float] = []
    for run, at in losses:
        resumed = _went_on(runs[run], at)
        since = max((moment for moment in deserted if at < moment < resumed), default=at)
        found.append(resumed - since)
    return found


def _went_on(run: Ended, at: float) -> float:
    """When somebody went on with a run after this moment; with one whose end was recorded, when that was seen.

    A run that lost its worker before it began is begun by the next, not resumed.
    """
    events = [event for event in run.events if event.at > at]
    taken = [event.at for event in events if event.kind in ("run-started", "run-resumed")]
    resumed = taken or [event.at for event in events]
    return resumed[0] if resumed else run.updated if run.updated > at else math.inf


def p95(values: Sequence[float]) -> float | None:
    """The value that 95 of 100 do not exceed."""
    return sorted(values)[math.ceil(len(values) * 0.95) - 1] if values else None

"""What the journal holds: events of runs, and runs in a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

EventKind = Literal[
    "run-started",
    "run-resumed",
    "run-waits",
    "step-started",
    "step-retried",
    "step-finished",
    "step-failed",
    "call-waits",
    "call-denied",
    "approval",
    "model-called",
    "run-finished",
    "run-failed",
    "run-stopped",
    "run-erased",
    "reason-started",
    "reason-round",
    "reason-ended",
]
ENDS: frozenset[EventKind] = frozenset({"run-finished", "run-failed", "run-stopped", "reason-ended"})
ERASED: EventKind = "run-erased"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, at a step (its path with the turns of its loops), with the facts.

    The body of an event that was erased is empty.
    """

    run: str
    number: int
    at: float
    kind: EventKind
    step: str
    body: dict[str, Any]


class Entry(NamedTuple):
    """An event that is to be appended."""

    at: float
    kind: EventKind
    step: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last event of a run and its seal, to be kept where whoever can write to the journal cannot.

    The seal vouches for all events of the run up to this one.
    """

    run: str
    number: int
    seal: str


Status = Literal["finished", "failed", "stopped", "unfinished", "erased"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a line: `unfinished` means that it is still going on, waits for a person, or that its process died."""

    run: str
    started: float
    request: str
    status: Status
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure took away.

    `scrubbed` says whether the file holds no trace of it any more; it may while another process has it open.
    """

    runs: tuple[str, ...]
    events: int
    values: int
    scrubbed: bool

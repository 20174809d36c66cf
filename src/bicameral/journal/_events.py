"""Events of runs, the hash chain over them, and the protocol of a store.

The seal of an event is a hash over its facts, the digest of its body and the seal before it. It covers the digest and
not the body, so that the body can be erased and the chain still be verified. The digest is salted, and the salt is
erased with the body: otherwise a body that can be guessed could be confirmed by its digest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

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
END_KINDS: frozenset[EventKind] = frozenset({"run-finished", "run-failed", "run-stopped", "reason-ended"})
ERASED_KIND: EventKind = "run-erased"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, at a step (its path with the iterations of its loops), with its facts.

    The body of an erased event is empty.
    """

    run: str
    number: int
    at: float
    kind: EventKind
    step: str
    body: dict[str, Any]


class NewEvent(NamedTuple):
    """An event to append."""

    at: float
    kind: EventKind
    step: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last event of a run with its seal, to be stored where nobody who can write to the journal can change it.

    The seal covers all events of the run up to this one.
    """

    run: str
    number: int
    seal: str


RunStatus = Literal["finished", "failed", "stopped", "unfinished", "erased"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run of a list. `unfinished` means that it is in progress, waits for a person, or that its process died."""

    run: str
    started: float
    request: str
    status: RunStatus
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Erasure:
    """What an erasure removed.

    `scrubbed` says whether the files are free of traces; traces can remain while another process has them open.
    """

    runs: tuple[str, ...]
    events: int
    values: int
    scrubbed: bool


SALT_BYTES = 16


class EventRow(NamedTuple):
    """An event as it is stored. One without a digest was sealed by version 1, over its body."""

    run: str
    number: int
    at: float
    kind: str
    step: str
    body: str
    salt: bytes
    digest: bytes
    seal: str

    @property
    def is_erased(self) -> bool:
        return not self.body


COLUMNS = ", ".join(EventRow._fields)


def row_from_values(values: tuple[Any, ...]) -> EventRow:
    """A row of a database as an `EventRow`."""
    run, number, at, kind, step, body, salt, digest, seal = values
    return EventRow(run, number, at, kind, step, body, bytes(salt), bytes(digest), seal)


def seal_event(before: str, run: str, number: int, at: float, kind: str, step: str, body: str) -> EventRow:
    """The row of an event that follows the one with the seal `before`."""
    salt = os.urandom(SALT_BYTES)
    digest = _digest(salt, body)
    return EventRow(run, number, at, kind, step, body, salt, digest, _seal(before, run, number, at, kind, step, digest))


def _digest(salt: bytes, body: str) -> bytes:
    return hashlib.sha256(salt + body.encode("utf-8", "surrogatepass")).digest()


def _seal(before: str, run: str, number: int, at: float, kind: str, step: str, digest: bytes) -> str:
    # The leading 2 is the version of the seal. `repr` keeps every digit of the time, so that it can be computed again.
    text = f"2\n{before}\n{run}\n{number}\n{at!r}\n{kind}\n{step}\n{digest.hex()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _seal_v1(before: str, row: EventRow) -> str:
    """The seal as version 1 computed it, over the body itself."""
    text = "\n".join((before, row.run, str(row.number), repr(row.at), row.kind, row.step, row.body))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def erased_facts_hash(rows: Iterable[EventRow]) -> str:
    """A hash over what remains of erased events that version 1 sealed; the erasure mark records it.

    Their seals cover the body, so they cannot be verified any more once it is gone.
    """
    hash_ = hashlib.sha256()
    for row in rows:
        if not row.digest:
            hash_.update(repr((row.run, row.number, row.at, row.kind, row.step, row.seal)).encode())
    return hash_.hexdigest()


def check_chain(rows: Iterable[EventRow], before: str = "", number: int = 0) -> Iterator[tuple[EventRow, str | None]]:
    """Each row with its fault or None, given the seal and number that the first has to follow."""
    for row in rows:
        fault = _chain_fault(row, before, number)
        yield row, fault
        # Continue from the row as it is, so that one break is reported once.
        before, number = row.seal, row.number + 1


def _chain_fault(row: EventRow, before: str, number: int) -> str | None:
    if row.number != number:
        return f"event {number} of run {row.run} is missing"
    if not row.digest:
        fits = row.is_erased or _seal_v1(before, row) == row.seal
    else:
        fits = row.is_erased or _digest(row.salt, row.body) == row.digest
        fits = fits and _seal(before, row.run, row.number, row.at, row.kind, row.step, row.digest) == row.seal
    return None if fits else f"event {number} of run {row.run} is not what was written"


def erasure_fault(rows: list[EventRow]) -> str | None:
    """What is wrong with the erasures among the rows of a run, or None: every empty body needs a mark after it."""
    marks = [row.number for row in rows if row.kind == ERASED_KIND and not row.is_erased]
    last = marks[-1] if marks else -1
    for row in rows:
        if row.is_erased and row.number > last:
            return f"event {row.number} of run {row.run} was emptied, and nothing says that it was erased"
        if not row.is_erased and row.number < last and row.kind != ERASED_KIND:
            return f"event {row.number} of run {row.run} is said to be erased and is not"
    return None


class NumberTaken(Exception):
    """An event with this number, or another start of this run, is stored already."""


class JournalStore(Protocol):
    """Stores rows and blobs. Queries use `?` for values and are the same for every store.

    Failures are `JournalError`s with a fix. Every method may be called from several threads.
    """

    @property
    def name(self) -> str:
        """The store's name for messages, without a password."""
        ...

    def append(self, rows: Sequence[EventRow], blobs: Mapping[str, bytes], *, sync: bool) -> None:
        """Store the rows of one run and their blobs, all or none; `NumberTaken` if one of the numbers is in use.

        With `sync` they, and everything appended before, are on the disk when this returns.
        """
        ...

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """The rows of a query."""
        ...

    def blob(self, hash_: str) -> bytes | None:
        """The stored form of a blob, or None."""
        ...

    def erase(self, mark: EventRow) -> tuple[int, int]:
        """Append the mark, empty all earlier events of its run, and delete the blobs that no run uses any more.

        Returns the number of events and blobs. `NumberTaken` if the run went on meanwhile.
        """
        ...

    def scrub(self) -> bool:
        """Remove erased content from the files as well; False if other processes prevent it at the moment."""
        ...

    def close(self) -> None: ...

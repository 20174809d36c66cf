"""Events of runs, the chain of seals over them, and the protocol of a store.

Each event of a run is sealed over itself and the one before. A seal is made over the digest of an event's body and not
over the body, so that the body can be erased and the chain still be followed. The digest is salted, and the salt goes
with the body: what is left says nothing about a body that could be guessed.
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
    """Something that happened in a run, at a step (its path with the turns of its loops), with the facts.

    The body of an event that was erased is empty.
    """

    run: str
    number: int
    at: float
    kind: EventKind
    step: str
    body: dict[str, Any]


class NewEvent(NamedTuple):
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


RunStatus = Literal["finished", "failed", "stopped", "unfinished", "erased"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a line: `unfinished` means that it is still going on, waits for a person, or that its process died."""

    run: str
    started: float
    request: str
    status: RunStatus
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Erasure:
    """What an erasure took away.

    `scrubbed` says whether the file holds no trace of it any more; it may while another process has it open.
    """

    runs: tuple[str, ...]
    events: int
    values: int
    scrubbed: bool


SALT_BYTES = 16


class EventRow(NamedTuple):
    """An event as it is stored. Without a digest it was sealed by version 1, over its body."""

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
    """A row as a database gives it."""
    run, number, at, kind, step, body, salt, digest, seal = values
    return EventRow(run, number, at, kind, step, body, bytes(salt), bytes(digest), seal)


def seal_event(before: str, run: str, number: int, at: float, kind: str, step: str, body: str) -> EventRow:
    """An event as it is stored after the one with the seal `before`."""
    salt = os.urandom(SALT_BYTES)
    digest = _digest(salt, body)
    return EventRow(run, number, at, kind, step, body, salt, digest, _seal(before, run, number, at, kind, step, digest))


def _digest(salt: bytes, body: str) -> bytes:
    return hashlib.sha256(salt + body.encode("utf-8", "surrogatepass")).digest()


def _seal(before: str, run: str, number: int, at: float, kind: str, step: str, digest: bytes) -> str:
    text = f"2\n{before}\n{run}\n{number}\n{at!r}\n{kind}\n{step}\n{digest.hex()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _seal_v1(before: str, row: EventRow) -> str:
    """The seal of version 1."""
    text = "\n".join((before, row.run, str(row.number), repr(row.at), row.kind, row.step, row.body))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def erased_facts_hash(rows: Iterable[EventRow]) -> str:
    """A hash over what is left of events that version 1 sealed, once they are erased: the mark of erasure holds it."""
    hash_ = hashlib.sha256()
    for row in rows:
        if not row.digest:
            hash_.update(repr((row.run, row.number, row.at, row.kind, row.step, row.seal)).encode())
    return hash_.hexdigest()


def check_chain(rows: Iterable[EventRow], before: str = "", number: int = 0) -> Iterator[tuple[EventRow, str | None]]:
    """Each row with what is wrong with it, given the seal and the number that it has to follow."""
    for row in rows:
        wrong = _chain_fault(row, before, number)
        yield row, wrong
        # The rest is judged by itself: one break is told once.
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
    """What is wrong with the erasures of a run, whose rows these are: each needs a mark after it."""
    marks = [row.number for row in rows if row.kind == ERASED_KIND and not row.is_erased]
    last = marks[-1] if marks else -1
    for row in rows:
        if row.is_erased and row.number > last:
            return f"event {row.number} of run {row.run} was emptied, and nothing says that it was erased"
        if not row.is_erased and row.number < last and row.kind != ERASED_KIND:
            return f"event {row.number} of run {row.run} is said to be erased and is not"
    return None


class NumberTaken(Exception):
    """An event with this number, or another beginning of this run, is there already."""


class JournalStore(Protocol):
    """Keeps rows and blobs. Queries are written with `?` for values, and understood by every store.

    What goes wrong is a JournalError in words that help. All of it may be used from several threads.
    """

    @property
    def name(self) -> str:
        """What to call it in a message; no password is in it."""
        ...

    def append(self, rows: Sequence[EventRow], blobs: Mapping[str, bytes], *, sync: bool) -> None:
        """Store the rows of one run and the blobs that they need: all of them or none. `NumberTaken` if one is there.

        With `sync` they, and all that was appended before, are on the disk when this returns.
        """
        ...

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """The rows of a query."""
        ...

    def blob(self, hash_: str) -> bytes | None:
        """The stored form of a blob."""
        ...

    def erase(self, mark: EventRow) -> tuple[int, int]:
        """Append the mark, empty all events of its run before it and drop the blobs that nobody needs any more.

        Says how many events and blobs went. `NumberTaken` if the run went on meanwhile.
        """
        ...

    def scrub(self) -> bool:
        """Make sure that what was erased is in the files no more; False if others are using them just now."""
        ...

    def close(self) -> None: ...

"""The chain: each event of a run is sealed over itself and the one before.

A seal is made over the digest of an event's body and not over the body, so that the body can be erased and the chain
still be followed. The digest is made with a salt that goes with the body: what is left says nothing about a body that
one could guess.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ._events import ERASED

SALT = 16


class Row(NamedTuple):
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
    def erased(self) -> bool:
        return not self.body


COLUMNS = ", ".join(Row._fields)


def row_of(values: tuple[Any, ...]) -> Row:
    """A row as a database gives it."""
    run, number, at, kind, step, body, salt, digest, seal = values
    return Row(run, number, at, kind, step, body, bytes(salt), bytes(digest), seal)


def sealed(before: str, run: str, number: int, at: float, kind: str, step: str, body: str) -> Row:
    """An event as it is stored after the one with the seal `before`."""
    salt = os.urandom(SALT)
    digest = _digest(salt, body)
    return Row(run, number, at, kind, step, body, salt, digest, _seal(before, run, number, at, kind, step, digest))


def _digest(salt: bytes, body: str) -> bytes:
    return hashlib.sha256(salt + body.encode("utf-8", "surrogatepass")).digest()


def _seal(before: str, run: str, number: int, at: float, kind: str, step: str, digest: bytes) -> str:
    text = f"2\n{before}\n{run}\n{number}\n{at!r}\n{kind}\n{step}\n{digest.hex()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _first_seal(before: str, row: Row) -> str:
    """The seal of version 1."""
    text = "\n".join((before, row.run, str(row.number), repr(row.at), row.kind, row.step, row.body))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def facts_of(rows: Iterable[Row]) -> str:
    """A hash over what is left of events that version 1 sealed, once they are erased: the mark of erasure holds it."""
    hash_ = hashlib.sha256()
    for row in rows:
        if not row.digest:
            hash_.update(repr((row.run, row.number, row.at, row.kind, row.step, row.seal)).encode())
    return hash_.hexdigest()


def followed(rows: Iterable[Row], before: str = "", number: int = 0) -> Iterator[tuple[Row, str | None]]:
    """Each row with what is wrong with it, given the seal and the number that it has to follow."""
    for row in rows:
        wrong = _wrong(row, before, number)
        yield row, wrong
        # The rest is judged by itself: one break is told once.
        before, number = row.seal, row.number + 1


def _wrong(row: Row, before: str, number: int) -> str | None:
    if row.number != number:
        return f"event {number} of run {row.run} is missing"
    if not row.digest:
        fits = row.erased or _first_seal(before, row) == row.seal
    else:
        fits = row.erased or _digest(row.salt, row.body) == row.digest
        fits = fits and _seal(before, row.run, row.number, row.at, row.kind, row.step, row.digest) == row.seal
    return None if fits else f"event {number} of run {row.run} is not what was written"


def unmarked(rows: list[Row]) -> str | None:
    """What is wrong with the erasures of a run, whose rows these are: each needs a mark after it."""
    marks = [row.number for row in rows if row.kind == ERASED and not row.erased]
    last = marks[-1] if marks else -1
    for row in rows:
        if row.erased and row.number > last:
            return f"event {row.number} of run {row.run} was emptied, and nothing says that it was erased"
        if not row.erased and row.number < last and row.kind != ERASED:
            return f"event {row.number} of run {row.run} is said to be erased and is not"
    return None

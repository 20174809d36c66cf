"""A sealed log: one JSON object a line, each with a hash of itself and of the seal before it; and endorsed labels.

    {"at": 1794700800.0, "before": "…", "body": {…}, "kind": "bicameral skills 1", "number": 3, "seal": "…"}

An entry that was changed, moved, removed or inserted breaks the chain, and nothing of such a file is used. The chain
cannot show that its last entries are missing, or that the whole file was written anew: a caller that needs this stores
the last seal elsewhere and passes it as `known`. A last line without its newline was cut off by a crash while it was
written, and is ignored.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bicameral.errors import Place, RunError
from bicameral.labels import Label, Source, join_all

MAX_FILE = 64_000_000
_ENTRY_KEYS = {"at", "before", "body", "kind", "number", "seal"}
_POLL_SECONDS = 0.02
_LOCK_RANGE = 1 << 20


@dataclass(frozen=True, slots=True)
class SealedEntry:
    """One entry of the file."""

    number: int
    at: float
    body: Mapping[str, Any]
    seal: str


@dataclass(frozen=True, slots=True)
class SealedLog:
    """Entries of one `kind`, appended and never changed.

    Args:
        known: The seal of an entry that must be in the file.
        lock_seconds: How long to wait for a lock before `pattern.store-in-use`.
    """

    path: Path
    kind: str
    known: str | None = None
    lock_seconds: float = 0.0

    def entries(self) -> tuple[SealedEntry, ...]:
        """All entries in order; an error if the chain is broken. Without a file there are none."""
        return self._verified_entries(self._read())

    def append(self, body: Mapping[str, Any], *, after: str | None = None) -> SealedEntry:
        """Append an entry; with `after` only if the last one has this seal ("" if there is none)."""
        # Locked from reading to writing: two writers must not append to the same entry.
        with self._locked(shared=False):
            raw = self._read()
            before = self._verified_entries(raw)
            seal = before[-1].seal if before else ""
            if after is not None and after != seal:
                raise RunError("pattern.store-changed", "somebody else has written in between", place=self._place())
            line = _encode_line(self.kind, len(before), time.time(), seal, body)
            self._write(line, _complete_length(raw))
        return self._entry(line[:-1], len(before), seal)

    @contextmanager
    def lock_for_reading(self) -> Generator[None]:
        """A shared lock: several processes may hold it, and none can write meanwhile."""
        with self._locked(shared=True):
            yield

    def _read(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                raw = file.read(MAX_FILE + 1)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise self._failed(error) from error
        if len(raw) > MAX_FILE:
            raise self.damaged_error(f"it has more than {MAX_FILE:,} bytes")
        return raw

    def _write(self, line: bytes, end: int) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                # Anything after the last whole line was cut off by a crash.
                os.ftruncate(handle, end)
                os.lseek(handle, end, os.SEEK_SET)
                if os.write(handle, line) != len(line):
                    os.ftruncate(handle, end)
                    raise OSError("the disk is full")
                # An entry may be an approval: it must survive a power cut.
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise self._failed(error) from error

    def _verified_entries(self, raw: bytes) -> tuple[SealedEntry, ...]:
        found: list[SealedEntry] = []
        seal = ""
        for number, line in enumerate(raw[: _complete_length(raw)].split(b"\n")[:-1]):
            entry = self._entry(line, number, seal)
            found.append(entry)
            seal = entry.seal
        if self.known is not None and all(entry.seal != self.known for entry in found):
            raise self.damaged_error("the record that is known to be there is not")
        return tuple(found)

    def _entry(self, line: bytes, number: int, before: str) -> SealedEntry:
        try:
            parsed = cast("object", json.loads(line))
        except (ValueError, RecursionError):
            raise self.damaged_error("it is not JSON", number) from None
        match parsed:
            case {"at": float(at), "number": int(given), "seal": str(seal), "body": dict()} if math.isfinite(at):
                whole = cast("dict[str, Any]", parsed)
                facts = cast("dict[str, Any]", whole["body"])
            case _:
                raise self.damaged_error("it is not a record", number)
        # Encoded again it must be the same bytes: there is one encoding of an entry, and the seal covers all of it.
        if (
            whole.keys() != _ENTRY_KEYS
            or given != number
            or _encode_line(self.kind, number, at, before, facts) != line + b"\n"
        ):
            raise self.damaged_error("it does not follow the one before it", number)
        return SealedEntry(number, at, facts, seal)

    @contextmanager
    def _locked(self, *, shared: bool) -> Generator[None]:
        # A separate file: on Windows a lock keeps others from reading the locked bytes.
        lock = self.path.with_name(f"{self.path.name}.lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._failed(error) from error
        try:
            until = time.monotonic() + self.lock_seconds
            while not _try_lock(handle, shared=shared):
                if time.monotonic() >= until:
                    raise RunError(
                        "pattern.store-in-use",
                        "somebody has this file open, and it must not change meanwhile",
                        place=self._place(),
                        fix="Wait until no session is open any more.",
                    )
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            # Closing the file releases the lock, as the end of the process does.
            os.close(handle)

    def _place(self, number: int | None = None) -> Place:
        return Place(file=str(self.path), line=None if number is None else number + 1)

    def damaged_error(self, why: str, number: int | None = None) -> RunError:
        """The error for a file, or the entry with this number, that was tampered with or is damaged."""
        return RunError(
            "pattern.store-damaged",
            f"this file is not as it was written: {why}",
            place=self._place(number),
            fix="Nothing in it is used. Put a copy in its place that nobody has changed.",
        )

    def _failed(self, error: OSError) -> RunError:
        return RunError(
            "pattern.store-failed",
            f"the file cannot be read or written: {error.strerror or error}",
            place=self._place(),
            fix="Check the folder and its permissions.",
        )


def _complete_length(raw: bytes) -> int:
    """The length up to the end of the last whole line."""
    return raw.rfind(b"\n") + 1


def _encode_line(kind: str, number: int, at: float, before: str, body: Mapping[str, Any]) -> bytes:
    facts: dict[str, Any] = {"kind": kind, "number": number, "at": at, "before": before, "body": dict(body)}
    seal = hashlib.sha256(_encode_facts(facts)).hexdigest()
    return _encode_facts(facts | {"seal": seal}) + b"\n"


def _encode_facts(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int, *, shared: bool) -> bool:
        # `msvcrt` has no shared locks: a reader locks one random byte of a range, and a writer the whole range.
        os.lseek(handle, int.from_bytes(os.urandom(4)) % _LOCK_RANGE if shared else 0, os.SEEK_SET)
        with suppress(OSError):
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1 if shared else _LOCK_RANGE)
            return True
        return False

else:
    import fcntl

    def _try_lock(handle: int, *, shared: bool) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return True
        return False


def endorsed_label(*labels: Label) -> Label:
    """The label after a person has approved a value: the source is the user, and the readers stay as they were."""
    return Label({Source("user", "endorsed")}, join_all(labels).readers)


def third_party_sources(label: Label) -> tuple[str, ...]:
    """The untrusted sources in a label, as a person reads them."""
    return tuple(str(source) for source in sorted(label.sources) if source.trust == "third_party")

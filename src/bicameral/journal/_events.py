"""Events of runs, the hash chain over them, the large values in them, and the protocol of a store.

The seal of an event is a hash over its facts, the digest of its body and the seal before it. It covers the digest and
not the body, so that the body can be erased and the chain still be verified. The digest is salted, and the salt is
erased with the body: otherwise a body that can be guessed could be confirmed by its digest. Large values are stored
once, each under its hash.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, cast

from bicameral.errors import JournalError
from bicameral.secrets import mask_json

EventKind = Literal[
    "run-started",
    "run-resumed",
    "run-waits",
    "step-started",
    "step-retried",
    "step-finished",
    "step-failed",
    "file-change",
    "call-waits",
    "call-denied",
    "approval",
    "model-called",
    "note",
    "lookup-started",
    "lookup-ended",
    "run-finished",
    "run-failed",
    "run-stopped",
    "run-erased",
    "reason-started",
    "reason-planned",
    "reason-round",
    "reason-ended",
    "undo-started",
    "undo-finished",
    "undo-failed",
    "chat-started",
    "chat-turn",
]
# A conversation may go on after any turn, and none of them is unfinished work: retention counts it as ended.
END_KINDS: frozenset[EventKind] = frozenset(
    {"run-finished", "run-failed", "run-stopped", "reason-ended", "undo-finished", "undo-failed", "chat-turn"}
)
ERASED_KIND: EventKind = "run-erased"
UNDO_SUFFIX = ".undo"
"""What follows the id of a run in the id under which taking it back is recorded."""


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


RunStatus = Literal["finished", "failed", "stopped", "unfinished", "erased", "damaged"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run of a list. `unfinished` means that it is in progress, waits for a person, or that its process died.

    Of one that is `damaged` the beginning cannot be read, and with that its request.
    """

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


MAX_VALUE = 64 * 2**20
"""Bytes of JSON that one value of an event may have."""
BLOB_FROM = 4_096
"""Characters of JSON from which a value is stored as a blob."""
MANY_ENTRIES = 16

_RAW, _PACKED, _PLAIN = "$blob", "$packed", "$plain"
_MARKS = frozenset({_RAW, _PACKED, _PLAIN})
_MARK_PREFIX = '"$'

LoadBlob = Callable[[str], bytes | None]
"""Returns the stored form of the blob with a hash, or None."""

_FEW, _NARROW = 64, 1 << 63
_LONG = 256
_SHORT = frozenset({bool, float, type(None)})

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dumps(value: Any) -> str:
    """JSON as the journal writes it."""
    return _ENCODER.encode(value)


class BlobPacker:
    """Replaces the large parts of JSON values by references, and collects them as blobs by hash.

    A text or list becomes one blob (`$blob`). The entries of a dict are packed first, so that a part that is already
    stored is not stored again; a dict that is still large becomes a blob itself (`$packed`). A dict that looks like one
    of these references is escaped as `$plain`.
    """

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def pack_body(self, body: dict[str, Any]) -> str:
        """The body of an event as JSON, without its large parts and with secrets masked."""
        # Most bodies are small. Encoding one as a whole is faster than inspecting its parts.
        if not _is_likely_large(body) and len(text := dumps(body)) < BLOB_FROM and _MARK_PREFIX not in text:
            return _as_utf8(mask_json(text))
        text = _as_utf8(mask_json(dumps({key: self.pack(value) for key, value in body.items()})))
        if len(text) > MAX_VALUE:
            raise too_large_error(len(text))
        return text

    def pack(self, value: Any) -> Any:
        """A value with its large parts replaced by references."""
        match value:
            case dict():
                return self._pack_dict(cast("dict[str, Any]", value))
            case str() if len(value) >= BLOB_FROM:
                return {_RAW: self._keep(dumps(value))}
            case list():
                items = cast("list[Any]", value)
                if _room_left(items, BLOB_FROM) > 0:
                    return items
                text = dumps(items)
                return {_RAW: self._keep(text)} if len(text) >= BLOB_FROM else items
            case _:
                return value

    def _pack_dict(self, entries: dict[str, Any]) -> Any:
        packed = {key: self.pack(part) for key, part in entries.items()}
        if len(packed) > MANY_ENTRIES and len(text := dumps(packed)) >= BLOB_FROM:
            return {_PACKED: self._keep(text)}
        return {_PLAIN: packed} if len(packed) == 1 and packed.keys() <= _MARKS else packed

    def _keep(self, text: str) -> str:
        # A file name or a mail may contain a lone surrogate, which strict UTF-8 cannot encode.
        raw = mask_json(text).encode("utf-8", "surrogatepass")
        if len(raw) > MAX_VALUE:
            raise too_large_error(len(raw))
        hash_ = hashlib.sha256(raw).hexdigest()
        self.blobs[hash_] = raw
        return hash_


def _is_likely_large(body: dict[str, Any], depth: int = 2) -> bool:
    """A quick guess whether a body is large; a wrong "no" only costs time."""
    for part in body.values():
        if isinstance(part, str):
            if len(part) >= BLOB_FROM:
                return True
        elif isinstance(part, list):
            if len(cast("list[Any]", part)) >= _LONG:
                return True
        elif isinstance(part, dict):
            entries = cast("dict[str, Any]", part)
            if len(entries) >= _LONG or (depth and _is_likely_large(entries, depth - 1)):
                return True
    return False


def _as_utf8(text: str) -> str:
    """A JSON text that can be encoded as UTF-8: lone surrogates are escaped."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), separators=(",", ":"), allow_nan=False)
    return text


def too_large_error(size: int) -> JournalError:
    """The error for a value beyond `MAX_VALUE`."""
    return JournalError(
        "journal.too-large",
        f"a value of {size:,} bytes cannot be recorded; the most is {MAX_VALUE:,}",
        fix="Let the tool give less at a time, or a file instead of its content.",
    )


def unpack_value(value: Any, load: LoadBlob) -> Any:
    """The value that was packed; ValueError if a part is missing or changed."""
    if not isinstance(value, dict):
        return value
    entries = cast("dict[str, Any]", value)
    reference = next(iter(entries)) if len(entries) == 1 else None
    if reference == _RAW:
        return _load_blob(entries[_RAW], load)
    inner: dict[str, Any] = entries
    if reference == _PACKED:
        inner = _load_blob(entries[_PACKED], load)
    elif reference == _PLAIN:
        inner = entries[_PLAIN]
    return {key: unpack_value(part, load) for key, part in inner.items()}


def blob_hashes(value: Any, load: LoadBlob) -> Iterator[str]:
    """The hashes of all blobs that a packed value needs."""
    if not isinstance(value, dict):
        return
    entries = cast("dict[str, Any]", value)
    reference = next(iter(entries)) if len(entries) == 1 else None
    inner: dict[str, Any] = entries
    if reference in (_RAW, _PACKED):
        yield entries[reference]
        if reference == _RAW:
            return
        inner = _load_blob(entries[reference], load)
    elif reference == _PLAIN:
        inner = entries[_PLAIN]
    for part in inner.values():
        yield from blob_hashes(part, load)


def compress_blob(raw: bytes) -> bytes:
    """A blob in its stored form."""
    return zlib.compress(raw, 1)


def _load_blob(hash_: str, load: LoadBlob) -> Any:
    """The content of a blob, checked against its hash."""
    content = load(hash_)
    try:
        raw = zlib.decompress(content) if content else b""
    except zlib.error:
        raw = b""
    if hashlib.sha256(raw).hexdigest() != hash_:
        raise ValueError(f"the value {hash_[:12]} is missing or changed")
    return json.loads(raw.decode("utf-8", "surrogatepass"))


def _room_left(value: Any, budget: int) -> int:
    """A lower bound of what remains of `budget` after a value is written as JSON; 0 if a quick look cannot tell.

    Most lists are short, and this is much faster than encoding them to measure their length.
    """
    if type(value) is str:
        # An escaped character has at most six.
        return budget - 6 * len(value) - 3
    if type(value) in _SHORT:
        return budget - 30
    if type(value) is int:
        return budget - 30 if -_NARROW < value < _NARROW else 0
    if isinstance(value, list):
        parts = cast("list[Any]", value)
    elif isinstance(value, dict):
        parts = [part for entry in cast("dict[str, Any]", value).items() for part in entry]
    else:
        return 0
    if len(parts) > _FEW:
        return 0
    for part in parts:
        budget = _room_left(part, budget - 1)
        if budget <= 0:
            return 0
    return budget - 2

"""Large values of the journal, each stored once under its hash."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any, cast

from bicameral.errors import JournalError
from bicameral.secrets import mask_json

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

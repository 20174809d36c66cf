"""Large values of the journal, each stored once under its hash."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from typing import Any, cast

BLOB_FROM = 4_096
MANY_ENTRIES = 16

_RAW, _PACKED, _PLAIN = "$blob", "$packed", "$plain"
_MARKS = frozenset({_RAW, _PACKED, _PLAIN})


_FEW, _NARROW = 64, 1 << 63
_SHORT = frozenset({bool, float, type(None)})

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dumps(value: Any) -> str:
    """JSON as the journal writes it."""
    return _ENCODER.encode(value)


class Blobs:
    """Takes the large parts out of a JSON value and puts them back.

    A text or list is a blob as a whole (`$blob`); a dict is looked into first, so that a part that was stored before is
    not stored again, and is a blob of its own if much is left (`$packed`). A dict that looks like one of these marks
    is written as `$plain`.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def pack(self, value: Any) -> Any:
        match value:
            case dict():
                return self._pack_dict(cast("dict[str, Any]", value))
            case str() if len(value) >= BLOB_FROM:
                return {_RAW: self._store(dumps(value))}
            case list():
                items = cast("list[Any]", value)
                if _left_after(items, BLOB_FROM) > 0:
                    return items
                text = dumps(items)
                return {_RAW: self._store(text)} if len(text) >= BLOB_FROM else items
            case _:
                return value

    def _pack_dict(self, entries: dict[str, Any]) -> Any:
        packed = {key: self.pack(part) for key, part in entries.items()}
        if len(packed) > MANY_ENTRIES and len(text := dumps(packed)) >= BLOB_FROM:
            return {_PACKED: self._store(text)}
        return {_PLAIN: packed} if len(packed) == 1 and packed.keys() <= _MARKS else packed

    def unpack(self, value: Any) -> Any:
        """The value that was packed; a ValueError says that it is missing or changed."""
        if not isinstance(value, dict):
            return value
        entries = cast("dict[str, Any]", value)
        mark = next(iter(entries)) if len(entries) == 1 else None
        if mark == _RAW:
            return self._load(entries[_RAW])
        inner: dict[str, Any] = entries
        if mark == _PACKED:
            inner = self._load(entries[_PACKED])
        elif mark == _PLAIN:
            inner = entries[_PLAIN]
        return {key: self.unpack(part) for key, part in inner.items()}

    def _store(self, text: str) -> str:
        # Half a character has no bytes in UTF-8 proper, and a file name or a mail may well hold one.
        raw = text.encode("utf-8", "surrogatepass")
        hash_ = hashlib.sha256(raw).hexdigest()
        if not self._db.execute("SELECT 1 FROM blobs WHERE hash = ?", (hash_,)).fetchone():
            self._db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (hash_, zlib.compress(raw, 1)))
        return hash_

    def _load(self, hash_: str) -> Any:
        row = self._db.execute("SELECT content FROM blobs WHERE hash = ?", (hash_,)).fetchone()
        try:
            raw = zlib.decompress(row[0]) if row else b""
        except zlib.error:
            raw = b""
        if hashlib.sha256(raw).hexdigest() != hash_:
            raise ValueError(f"the value {hash_[:12]} is missing or changed")
        return json.loads(raw.decode("utf-8", "surrogatepass"))


def _left_after(value: Any, room: int) -> int:
    """What a value surely leaves of some room when it is written as JSON; nothing if that cannot be told at a glance.

    Most lists are short, and this is much quicker than writing them to see how long they get.
    """
    if type(value) is str:
        # Each character takes six at the most.
        return room - 6 * len(value) - 3
    if type(value) in _SHORT:
        return room - 30
    if type(value) is int:
        return room - 30 if -_NARROW < value < _NARROW else 0
    if isinstance(value, list):
        inside = cast("list[Any]", value)
    elif isinstance(value, dict):
        inside = [part for entry in cast("dict[str, Any]", value).items() for part in entry]
    else:
        return 0
    if len(inside) > _FEW:
        return 0
    for item in inside:
        room = _left_after(item, room - 1)
        if room <= 0:
            return 0
    return room - 2

"""Arrays in one file, in the safetensors format: a length, a JSON header, then the bytes of each array.

Nothing in such a file is code, and every length in its header is held against the file before anything is read. The
weights of the embedding model come in this format, and an index is saved in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_KINDS = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_NAMES = {np.dtype(kind): name for name, kind in _KINDS.items()}
_LONGEST_HEADER = 1 << 22
_MOST_DIMENSIONS = 4
_ALIGNED = 8


class NotTensors(ValueError):
    """The file is not of this format, or says of itself what is not so."""


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays of a file by name, and its notes. The arrays are read-only views of one buffer."""
    buffer = np.fromfile(path, dtype=np.uint8)
    if buffer.size < 8:
        raise NotTensors("it is shorter than the shortest such file")
    length = int.from_bytes(buffer[:8].tobytes(), "little")
    if length > min(_LONGEST_HEADER, buffer.size - 8):
        raise NotTensors(f"its header is said to have {length:,} bytes")
    buffer.flags.writeable = False
    header = _header(buffer[8 : 8 + length].tobytes())
    notes = _notes(header.pop("__metadata__", {}))
    return _arrays(header, buffer[8 + length :]), notes


def _header(raw: bytes) -> dict[str, Any]:
    try:
        header: Any = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise NotTensors("its header is not JSON") from None
    if not isinstance(header, dict):
        raise NotTensors("its header is not an object")
    return cast("dict[str, Any]", header)


def _notes(written: object) -> dict[str, str]:
    if not isinstance(written, dict):
        raise NotTensors("its notes are not an object")
    notes = cast("dict[str, object]", written)
    if not all(isinstance(value, str) for value in notes.values()):
        raise NotTensors("its notes are not texts")
    return cast("dict[str, str]", notes)


def _arrays(header: Mapping[str, Any], body: NDArray[np.uint8]) -> dict[str, Array]:
    """Each array in turn; together they fill the file, without gaps and without sharing a byte."""
    arrays: dict[str, Array] = {}
    reached = 0
    for name, (kind, shape, start, end) in sorted(
        ((name, _entry(name, facts)) for name, facts in header.items()), key=lambda each: each[1][2:]
    ):
        dtype = np.dtype(_KINDS[kind])
        if start != reached or end > body.size or end - start != math.prod(shape) * dtype.itemsize:
            raise NotTensors(f"the bytes of {name!r} are not where its header says")
        arrays[name] = body[start:end].view(dtype).reshape(shape)
        reached = end
    if reached != body.size:
        raise NotTensors(f"{body.size - reached:,} bytes at its end belong to nothing")
    return arrays


def _entry(name: str, written: object) -> tuple[str, tuple[int, ...], int, int]:
    facts = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    kind, shape, place = facts.get("dtype"), facts.get("shape"), facts.get("data_offsets")
    if kind not in _KINDS or not _sizes(shape, _MOST_DIMENSIONS) or not _sizes(place, 2) or len(place) != 2:
        raise NotTensors(f"what its header says about {name[:60]!r} cannot be read")
    return kind, tuple(shape), place[0], place[1]


def _sizes(written: Any, most: int) -> TypeGuard[list[int]]:
    if not isinstance(written, list):
        return False
    sizes = cast("list[object]", written)
    return len(sizes) <= most and all(type(size) is int and 0 <= size < 1 << 48 for size in sizes)


def to_bytes(arrays: Mapping[str, Array], notes: Mapping[str, str]) -> list[bytes]:
    """A file of these arrays, in pieces to be written one after another; the same arrays give the same bytes."""
    header: dict[str, object] = {"__metadata__": dict(notes)}
    pieces: list[bytes] = []
    reached = 0
    for name, array in sorted(arrays.items()):
        raw = np.ascontiguousarray(array).tobytes()
        place = [reached, reached + len(raw)]
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": place}
        pieces.append(raw)
        reached += len(raw)
    words = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    words += b" " * (-len(words) % _ALIGNED)
    return [len(words).to_bytes(8, "little"), words, *pieces]

"""Where a key stands in a TOML text."""

from __future__ import annotations

import tomllib
from typing import Any, cast

_MAX_LINES = 2_000


def line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line on which a key (or the nearest table around it) is first written; None if it is not.

    Python's TOML reader keeps no positions. But a document cut off after a whole statement is a document too, so the
    key belongs to the statement with which it first appears. Slow, and only used to tell a person where to look.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) > _MAX_LINES:
        return None
    found: dict[int, int] = {}
    statement, depth = 1, 0
    for number in range(1, len(lines) + 1):
        try:
            parsed = tomllib.loads("".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        if (reached := _depth(parsed, path)) > depth:
            depth = reached
            found[reached] = statement
        statement = number + 1
    return found.get(depth)


def _depth(parsed: dict[str, Any], path: tuple[str | int, ...]) -> int:
    """How far along a path a document goes."""
    inner: Any = parsed
    for depth, key in enumerate(path):
        if isinstance(inner, dict) and key in inner:
            inner = cast("dict[str | int, Any]", inner)[key]
        elif isinstance(inner, list) and isinstance(key, int) and key < len(cast("list[Any]", inner)):
            inner = cast("list[Any]", inner)[key]
        else:
            return depth
    return len(path)

"""Values as people and programs read them."""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Sequence
from typing import Any, cast

_MAX_CELL = 60


def readable(value: object) -> Any:
    """A value as plain JSON: dates as ISO text, durations as seconds."""
    match value:
        case dt.timedelta():
            return value.total_seconds()
        case dt.date() | dt.time():
            return value.isoformat()
        case list() | tuple():
            return [readable(item) for item in cast("list[object]", value)]
        case dict():
            return {key: readable(item) for key, item in cast("dict[str, object]", value).items()}
        case _:
            return value


def answer_text(value: object, width: int = 10_000) -> str:
    """An answer to read: text as it is, a list as lines, rows as a table."""
    match value:
        case list() | tuple() if not value:
            return "(nothing)"
        case list() | tuple():
            items = cast("list[object]", value)
            if all(isinstance(item, dict) for item in items):
                return table(cast("list[dict[str, object]]", items), width)
            return "\n".join(cell(item) for item in items)
        case dict() if not value:
            return "(nothing)"
        case dict():
            return "\n".join(_entry(key, item) for key, item in cast("dict[str, object]", value).items())
        case None:
            return "(no answer)"
        case _:
            return cell(value)


def cell(value: object) -> str:
    """One value in a line or a cell."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.15g}"
        case dt.datetime():
            return value.isoformat(" ", "minutes" if not value.second else "seconds")
        case dt.time():
            return value.isoformat("minutes" if not value.second else "seconds")
        case None:
            return ""
        case list() | tuple():
            return ", ".join(cell(item) for item in cast("list[object]", value))
        case dict():
            return ", ".join(f"{key}: {cell(item)}" for key, item in cast("dict[str, object]", value).items())
        case _:
            return str(value)


def table(rows: Sequence[dict[str, object]], width: int = 10_000) -> str:
    """Rows as aligned columns; long cells are cut where there is a terminal to overflow."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    limit = max(8, min(_MAX_CELL, width)) if width < 10_000 else 10_000
    lines = [names, *([_short(cell(row.get(name)), limit) for name in names] for row in rows)]
    widths = [max(columns(line[column]) for line in lines) for column in range(len(names))]
    numeric = [all(isinstance(row.get(name), int | float) for row in rows) for name in names]
    drawn = [_row(line, widths, numeric) for line in lines]
    return "\n".join([drawn[0], "  ".join("─" * wide for wide in widths), *drawn[1:]])


def _row(texts: list[str], widths: list[int], numeric: list[bool]) -> str:
    padded = (
        " " * (wide - columns(text)) + text if right else text + " " * (wide - columns(text))
        for text, wide, right in zip(texts, widths, numeric, strict=True)
    )
    return "  ".join(padded).rstrip()


def _entry(key: str, value: object) -> str:
    match value:
        case list() if value and all(isinstance(item, dict) for item in cast("list[object]", value)):
            return f"{key}:\n" + _indented(answer_text(cast("object", value)))
        case str() if "\n" in value:
            return f"{key}:\n" + _indented(value)
        case _:
            return f"{key}: {cell(value)}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _short(text: str, limit: int) -> str:
    one_line = " ".join(text.split()) if "\n" in text else text
    return one_line if len(one_line) <= limit else one_line[: limit - 1] + "…"


def columns(text: str) -> int:
    """How many columns a terminal gives to a text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )

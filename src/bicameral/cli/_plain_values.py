"""Values without any protection against imitation: as plain JSON, as text, as tables, and how wide a text is.

Answers are shown so, and facts of our own. A value that a person decides on is shown by `_values`.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Sequence
from typing import Any, cast

_MAX_CELL = 60


def to_plain_json(value: object) -> Any:
    """A value as plain JSON: dates as ISO text, durations as seconds."""
    match value:
        case dt.timedelta():
            return value.total_seconds()
        case dt.date() | dt.time():
            return value.isoformat()
        case list() | tuple():
            return [to_plain_json(item) for item in cast("list[object]", value)]
        case dict():
            return {key: to_plain_json(item) for key, item in cast("dict[str, object]", value).items()}
        case _:
            return value


def answer_text(value: object, width: int = 10_000) -> str:
    """An answer as text: a text as it is, a list as lines, rows as a table."""
    match value:
        case list() | tuple() if not value:
            return "(nothing)"
        case list() | tuple():
            items = cast("list[object]", value)
            if all(isinstance(item, dict) for item in items):
                return render_table(cast("list[dict[str, object]]", items), width)
            return "\n".join(cell_text(item) for item in items)
        case dict() if not value:
            return "(nothing)"
        case dict():
            return "\n".join(_entry_text(key, item) for key, item in cast("dict[str, object]", value).items())
        case None:
            return "(no answer)"
        case _:
            return cell_text(value)


def cell_text(value: object) -> str:
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
        case dt.timedelta():
            # Between two days there are no hours: `37 days`, not `37 days, 0:00:00`.
            return str(value).removesuffix(", 0:00:00")
        case None:
            return ""
        case list() | tuple():
            return ", ".join(cell_text(item) for item in cast("list[object]", value))
        case dict():
            return ", ".join(f"{key}: {cell_text(item)}" for key, item in cast("dict[str, object]", value).items())
        case _:
            return str(value)


def render_table(rows: Sequence[dict[str, object]], width: int = 10_000) -> str:
    """Rows as aligned columns; long cells are cut where there is a terminal to overflow."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    limit = max(8, min(_MAX_CELL, width)) if width < 10_000 else 10_000
    lines = [names, *([_shorten(cell_text(row.get(name)), limit) for name in names] for row in rows)]
    widths = [max(column_width(line[column]) for line in lines) for column in range(len(names))]
    numeric = [all(isinstance(row.get(name), int | float) for row in rows) for name in names]

    def draw(line: list[str]) -> str:
        cells = zip(line, widths, numeric, strict=True)
        padded = ((text, " " * (wide - column_width(text)), right) for text, wide, right in cells)
        return "  ".join(blank + text if right else text + blank for text, blank, right in padded).rstrip()

    drawn = [draw(line) for line in lines]
    return "\n".join([drawn[0], "  ".join("─" * wide for wide in widths), *drawn[1:]])


def _entry_text(key: str, value: object) -> str:
    match value:
        case list() if value and all(isinstance(item, dict) for item in cast("list[object]", value)):
            return f"{key}:\n" + _indent(answer_text(cast("object", value)))
        case str() if "\n" in value:
            return f"{key}:\n" + _indent(value)
        case _:
            return f"{key}: {cell_text(value)}"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _shorten(text: str, limit: int) -> str:
    one_line = " ".join(text.split()) if "\n" in text else text
    return one_line if len(one_line) <= limit else one_line[: limit - 1] + "…"


def column_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def local_time_text(moment: dt.datetime) -> str:
    """A moment in local time: the time of day if it is today, else with its date."""
    here = moment.astimezone()
    return here.strftime("%H:%M:%S" if here.date() == dt.datetime.now().date() else "%Y-%m-%d %H:%M")

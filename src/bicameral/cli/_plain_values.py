"""Values without any protection against imitation: as text, and as tables.

Answers are shown so, and facts of our own. A value that a person decides on is shown by `bicameral.display`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import cast

from bicameral.display import break_line, cell_text, column_width, make_visible, shorten, wrap_line

UNLIMITED = 10_000
"""The width of an output that is no terminal."""
_MAX_CELL = 60
_MIN_COLUMN = 8
_MAX_WORD = 16


def answer_text(value: object, width: int = UNLIMITED) -> str:
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


def render_table(rows: Sequence[dict[str, object]], width: int = UNLIMITED) -> str:
    """Rows as aligned columns that fit the width.

    On a terminal a long cell is cut after a word, and the texts of a table that is still too wide are wrapped in their
    columns. Where not even that fits, each row is written as lines of its own.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([_cell(row.get(name), width) for name in names] for row in rows)]
    numeric = [all(isinstance(row.get(name), int | float) for row in rows) for name in names]
    widths = _column_widths(lines, numeric, width)
    if widths is None:
        return "\n\n".join(_record_text(names, line, width) for line in lines[1:])

    def draw(line: list[str]) -> Iterator[str]:
        parts = [break_line(text, wide) for text, wide in zip(line, widths, strict=True)]
        for cells in zip_longest(*parts, fillvalue=""):
            padded = (
                (text, " " * (wide - column_width(text)), right)
                for text, wide, right in zip(cells, widths, numeric, strict=True)
            )
            yield "  ".join(blank + text if right else text + blank for text, blank, right in padded).rstrip()

    rule = "  ".join("─" * wide for wide in widths)
    return "\n".join([*draw(names), rule, *(drawn for line in lines[1:] for drawn in draw(line))])


def _cell(value: object, width: int) -> str:
    text = cell_text(value)
    if width >= UNLIMITED:
        return " ".join(text.split()) if "\n" in text else text
    # Here and not when it is written: a character that is written as its number takes more columns.
    return shorten(make_visible(text), _MAX_CELL)


def _column_widths(lines: list[list[str]], numeric: list[bool], width: int) -> list[int] | None:
    """The widths of the columns, with the widest texts made narrower until all fit; None if they cannot."""
    columns = range(len(lines[0]))
    widths = [max(column_width(line[column]) for line in lines) for column in columns]
    # No narrower than the longest word, so that none is broken, unless it alone is longer than a column should be.
    words = [
        max((column_width(word) for line in lines for word in line[column].split()), default=1) for column in columns
    ]
    least = [
        widths[column] if numeric[column] else min(widths[column], max(words[column], _MIN_COLUMN), _MAX_WORD)
        for column in columns
    ]
    while (over := sum(widths) + 2 * (len(widths) - 1) - width) > 0:
        room = [wide - small for wide, small in zip(widths, least, strict=True)]
        if not any(room):
            return None
        widest = max((column for column in columns if room[column]), key=lambda column: widths[column])
        widths[widest] -= min(over, room[widest], max(1, room[widest] // 2))
    return widths


def _record_text(names: list[str], line: list[str], width: int) -> str:
    """One row of a table that is too wide, a line for each of its cells that is not empty."""
    pieces = (wrap_line(f"{name}: {text}", width, "  ") for name, text in zip(names, line, strict=True) if text)
    return "\n".join(piece for wrapped in pieces for piece in wrapped)


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


_AGES = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (14 * 86_400, 86_400, "d"))


def age_text(seconds: float) -> str:
    """How long ago something was, in one unit.

    Example:
        >>> age_text(150)
        '2 min'
    """
    for below, unit, name in _AGES:
        if seconds < below:
            return f"{max(seconds, 0) // unit:.0f} {name}"
    return f"{seconds // (7 * 86_400):.0f} w"


def local_time_text(moment: dt.datetime) -> str:
    """A moment in local time: the time of day if it is today, else with its date."""
    here = moment.astimezone()
    return here.strftime("%H:%M:%S" if here.date() == dt.datetime.now().date() else "%Y-%m-%d %H:%M")

"""Values as a person sees them for a decision.

Any value that a person decides on may hold untrusted text, which could imitate our own output. So every line of a long
value has a bar before it, lines are broken here and not by the terminal, invisible and control characters are written
as their numbers, and long values are folded with their size. All places that show a value for a decision use
`value_lines`; `calls_text` of `bicameral.runs` shows the calls that a person is asked about.
"""

from __future__ import annotations

import datetime as dt
import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, cast

from bicameral.display._hidden import fold_lines, make_visible
from bicameral.display._lines import break_line, column_width

MAX_VALUE_LINES = 10_000
"""The most lines of a value, even if all of it is asked for."""
_MIN_FOLDED_BLANK = 3
"""From so many empty lines in a row on, only their number is shown: they would push the rest off the screen."""
_MIN_VALUE_WIDTH = 8
_MAX_QUESTION_LINES = 40


def value_lines(value: Any, width: int, most: int = MAX_VALUE_LINES, *, how: str = "") -> list[str]:
    """The lines of a value: a short text as it is, several or long lines behind a bar.

    At most about `most` lines are shown, from the beginning and the end; `how` says how to see the others.
    """
    lines, pieces = _value_pieces(value, width)
    if pieces is None:
        return [visible_line(lines[0])]
    whole = value if isinstance(value, str) else "\n".join(lines)
    return fold_lines(list(_fold_blank_runs(pieces)), most, whole, how)


def value_preview(value: Any, width: int, most: int, how: str) -> list[str]:
    """The first lines of a value and its last one, and between them how many there are more and how to see them.

    The last line is shown since the end of a text is where a sentence can be added; size and hash, since two texts that
    differ only in between would look the same.
    """
    shown = value_lines(value, width, most, how=how)
    # Only what is left out is told without a bar, so that no text in the value can pass for it.
    cut = [line for line in shown if line.startswith("… ") and line.endswith(how)]
    return [piece for line in shown for piece in (break_line(f"… ({line[2:]})", width) if line in cut else [line])]


def _value_pieces(value: Any, width: int) -> tuple[list[str], list[str] | None]:
    """The lines of a value, and their pieces for this width; None if the value fits on one line as it is."""
    match value:
        case str():
            lines = value.replace("\r\n", "\n").split("\n")
        case list() | tuple() if all(isinstance(item, str) for item in cast("list[Any]", value)):
            lines = cast("list[str]", value)
        case _:
            lines = [json.dumps(to_plain_json(value), ensure_ascii=False, default=str)]
    plain = [visible_line(line) for line in lines]
    # One that begins as the line about what is left out does gets a bar, too.
    if len(plain) == 1 and column_width(plain[0]) <= width and not plain[0].lstrip().startswith("…"):
        return lines, None
    return lines, [part for line in plain for part in break_line(line, max(width - 2, _MIN_VALUE_WIDTH))]


def question_text(question: str, width: int) -> str:
    """A question of a plan, which may hold untrusted text: on one line, or each of its lines behind a bar."""
    lines = value_lines(question, max(width - 4, _MIN_VALUE_WIDTH), _MAX_QUESTION_LINES)
    return f"? {lines[0]}" if len(lines) == 1 else "\n".join(["?", *(f"  {line}" for line in lines)])


def visible_line(text: str) -> str:
    """A text on one line, with invisible characters made visible. In names, letters of other alphabets are named."""
    seen, odd = visible_name(text)
    return f"{seen}  ({odd})" if odd else seen


def visible_name(text: str) -> tuple[str, str]:
    """A text on one line, with invisible characters made visible, and which letters of other alphabets it has."""
    # It may be an address, a link or a path, where a letter of another alphabet can deceive.
    name = " " not in text.strip() and any(mark in text for mark in "@/.")
    seen = make_visible(text, strict=name).replace("\n", "<000a>").replace("\t", "    ")
    return seen, letters_in_words(seen) if name else ""


def letters_in_words(name: str) -> str:
    """Which letters of other alphabets a name has; empty if it has none.

    Example:
        >>> letters_in_words("p\u0430y.txt")
        'with cyrillic small letter a'
    """
    odd = sorted({char for char in name if not char.isascii() and char.isalpha()})
    return f"with {', '.join(unicodedata.name(char, '?').lower() for char in odd[:3])}" if odd else ""


def _fold_blank_runs(pieces: Sequence[str]) -> Iterator[str]:
    """The lines behind bars. A run of empty lines becomes one line with their number, without a bar."""
    blank = 0
    for piece in [*pieces, None]:
        if piece is not None and not piece.strip():
            blank += 1
            continue
        if blank >= _MIN_FOLDED_BLANK:
            yield f"… {blank:,} empty lines"
        else:
            yield from ["│ "] * blank
        blank = 0
        if piece is not None:
            yield f"│ {piece}"


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

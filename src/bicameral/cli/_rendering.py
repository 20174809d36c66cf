"""Values as lines of a screen on which a person decides: nothing in them can hide, or pass for something else.

Every line of a value stands behind a bar, lines are broken here and not by the terminal, what cannot be seen or would
be obeyed is written as its number, and what is long is folded with its size. All places that show a value for a
decision use `value_lines`.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, cast

from bicameral.display import folded, visible

from ._values import columns, readable

MOST_LINES = 10_000
"""No value has more lines than this on a screen, also where all of it is asked for."""
_FEWEST_BLANK = 3
"""So many empty lines in a row are counted instead of shown: they only push the rest away."""
_NARROWEST = 8
_MOST_OF_A_QUESTION = 40


def value_lines(value: Any, width: int, most: int = MOST_LINES, *, how: str = "") -> list[str]:
    """The lines of a value: a short text as it is, several lines or what is long behind a bar.

    At most about `most` lines are shown, from its beginning and its end, and `how` says how the others can be seen.
    """
    match value:
        case str():
            lines = value.replace("\r\n", "\n").split("\n")
        case list() | tuple() if all(isinstance(item, str) for item in cast("list[Any]", value)):
            lines = cast("list[str]", value)
        case _:
            lines = [json.dumps(readable(value), ensure_ascii=False, default=str)]
    plain = [plain_line(line) for line in lines]
    if len(plain) == 1 and columns(plain[0]) <= width:
        return plain
    pieces = [part for line in plain for part in broken_line(line, max(width - 2, _NARROWEST))]
    whole = value if isinstance(value, str) else "\n".join(lines)
    return folded(list(_without_blank_runs(pieces)), most, whole, how)


def question_text(question: str, width: int) -> str:
    """A question of a plan, whose words may be untrusted: on one line, or each of its lines behind a bar."""
    lines = value_lines(question, max(width - 4, _NARROWEST), _MOST_OF_A_QUESTION)
    return f"? {lines[0]}" if len(lines) == 1 else "\n".join(["?", *(f"  {line}" for line in lines)])


def plain_line(text: str) -> str:
    """The text on one line with what cannot be seen made visible, and letters that only look like ours named."""
    name = _is_name(text)
    seen = visible(text, strict=name).replace("\n", "<000a>").replace("\t", "    ")
    odd = sorted({char for char in seen if not char.isascii() and char.isalpha()}) if name else []
    return seen + (f"  (with {', '.join(unicodedata.name(char, '?').lower() for char in odd[:3])})" if odd else "")


def broken_line(line: str, width: int) -> list[str]:
    """Pieces that a terminal does not break again."""
    pieces: list[str] = []
    start = used = 0
    for at, char in enumerate(line):
        wide = columns(char)
        if used + wide > width:
            pieces.append(line[start:at])
            start, used = at, 0
        used += wide
    return [*pieces, line[start:]]


def _without_blank_runs(pieces: Sequence[str]) -> Iterator[str]:
    """The lines behind their bars; many empty ones in a row are one that says how many, and has no bar."""
    blank = 0
    for piece in [*pieces, None]:
        if piece is not None and not piece.strip():
            blank += 1
            continue
        if blank >= _FEWEST_BLANK:
            yield f"… {blank:,} empty lines"
        else:
            yield from ["│ "] * blank
        blank = 0
        if piece is not None:
            yield f"│ {piece}"


def _is_name(text: str) -> bool:
    """Whether this may be an address, a link or a path, in which a letter from another alphabet deceives."""
    return " " not in text.strip() and any(mark in text for mark in "@/.")

"""Lines of a terminal: how wide a text is, and where a line may be broken.

A line is broken at a space, so that no word is broken in the middle. A word that is longer than the line (a path, a
link, an address) is broken after a mark such as `/`, `@` or `.`, and only without any such mark in the middle. Nothing
is left out: what directs an effect must be readable in full at any width.
"""

from __future__ import annotations

import os
import sys
import unicodedata

_AFTER = frozenset("/\\@.,;:=&?!-_|+>)]}")
"""A long word may be broken after these."""
_MIN_WIDTH = 8
_USUAL_WIDTH = 80


def terminal_width() -> int:
    """The columns of the terminal: as COLUMNS says, else of the first stream that is a terminal, else 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    # Standard error comes first: questions and messages go there, and standard output may be a pipe.
    for stream in (sys.stderr, sys.stdout, sys.stdin):
        try:
            if columns := os.get_terminal_size(stream.fileno()).columns:
                return columns
        except (AttributeError, OSError, ValueError):
            continue
    return _USUAL_WIDTH


def column_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def line_spans(line: str, width: int, rest: int | None = None) -> list[tuple[int, int]]:
    """Where the pieces of a line begin and end; the one space at which it is broken belongs to none of them.

    Args:
        line: A text without line feeds.
        width: The columns of the first piece.
        rest: The columns of the others; None: as many.
    """
    spans: list[tuple[int, int]] = []
    start, limit = 0, max(width, 1)
    others = max(width if rest is None else rest, 1)
    while True:
        end = _fitting_end(line, start, limit)
        if end >= len(line):
            spans.append((start, len(line)))
            return spans
        if line[end] == " ":
            spans.append((start, end))
            start = end + 1
        else:
            space = line.rfind(" ", start + 1, end)
            # A word that has to be broken anyway begins beside a few letters, such as the number of a list.
            beside = space > start and space - start <= limit // 2 and _word_end(line, space + 1) - space - 1 > others
            if space > start and not beside:
                spans.append((start, space))
                start = space + 1
            else:
                at = _word_break(line, space + 1 if beside else start, end)
                spans.append((start, at))
                start = at
        limit = others


def break_line(line: str, width: int) -> list[str]:
    """The line in pieces of this width, so that the terminal does not break it.

    Example:
        >>> break_line("Send it to kim@example.org", 12)
        ['Send it to', 'kim@example.', 'org']
    """
    return [line[start:end] for start, end in line_spans(line, width)]


def wrap_line(line: str, width: int, hanging: str = "") -> list[str]:
    """The line in pieces of this width, each after the first behind `hanging`; its own indent is kept."""
    head = line[: len(line) - len(line.lstrip(" "))]
    body = line[len(head) :]
    first, rest = max(width - len(head), _MIN_WIDTH), max(width - column_width(hanging), _MIN_WIDTH)
    spans = line_spans(body, first, rest)
    return [f"{hanging if number else head}{body[start:end]}" for number, (start, end) in enumerate(spans)]


def wrap_text(text: str, width: int, deeper: int = 2) -> str:
    """Every line of a text in pieces of this width; the pieces after the first are indented so much deeper."""
    return "\n".join(piece for line in text.split("\n") for piece in _wrap_indented(line, width, deeper))


def shorten(text: str, width: int) -> str:
    """A text on one line of this width; one that is longer ends with `…` after a whole word."""
    line = " ".join(text.split())
    if column_width(line) <= width:
        return line
    start, end = line_spans(line, max(width - 2, 1))[0]
    if column_width(line[:end]) < width // 2:
        # The next word is so long that little would be left.
        fitting = _fitting_end(line, 0, max(width - 1, 1))
        return f"{line[: _word_break(line, end + 1, fitting)].rstrip()}…"
    return f"{line[start:end].rstrip()} …"


def _wrap_indented(line: str, width: int, deeper: int) -> list[str]:
    if column_width(line) <= width:
        return [line]
    text = line.lstrip(" ")
    indent = min(len(line) - len(text), width // 2)
    return wrap_line(" " * indent + text, width, " " * min(indent + deeper, width // 2))


def _fitting_end(line: str, start: int, width: int) -> int:
    """The end of the longest piece from `start` that takes at most `width` columns; at least one character."""
    if line[start : start + width + 1].isascii():
        return min(start + width, len(line))
    used = 0
    for at in range(start, len(line)):
        used += column_width(line[at])
        if used > width and at > start:
            return at
    return len(line)


def _word_end(line: str, start: int) -> int:
    end = line.find(" ", start)
    return end if end >= 0 else len(line)


def _word_break(line: str, start: int, end: int) -> int:
    """Where to break a word that is longer than a line."""
    for at in range(end, start, -1):
        # Chinese and Japanese words have no spaces between them: between wide letters a line may always be broken.
        if line[at - 1] in _AFTER or (column_width(line[at - 1]) == 2 and column_width(line[at]) != 0):
            return at
    return end

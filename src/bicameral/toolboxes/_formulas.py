"""Cells that spreadsheets take for formulas: made harmless when a table is written, and given back when it is read.

A cell that begins with `=`, `+`, `-` or `@` is computed by the program that opens the table, and can fetch addresses
and start programs. Such a text is written with an apostrophe before it, as OWASP advises, and read without it; so a
table that we write reads back as it was. Numbers stay numbers, and so do telephone numbers, in which nothing can be
computed. Programs that split at `;`, at tabs or at every line end see other cells than we do, so each part of a text
between these is looked at by itself.
"""

from __future__ import annotations

import re

from bicameral.tools import TABLES

# Also in full width, and behind blanks and quotes, which some programs drop. A sign before digits and what stands
# between digits computes nothing that could do harm: -5, +49 30 1234, -12.5 %.
_FORMULA = re.compile(
    r"""[\s"'`\u200b-\u200f\ufeff]*(?:[=@\uff1d\uff20]|[-+\u2212\uff0b\uff0d](?!["'\s\d.,:()/%-]*\Z))""",
)
_PARTS = re.compile(r"([;\t\r\n\x0b\x0c\x85\u2028\u2029]+)")


def is_table(path: object) -> bool:
    """Whether a path names a table of text, which spreadsheets open."""
    return isinstance(path, str) and path.strip().rstrip(". ").lower().endswith(TABLES)


def escaped(text: str) -> str:
    """A text as a cell that no spreadsheet computes.

    Example:
        >>> escaped("=cmd|' /C calc'!A0"), escaped("-5"), escaped("a;=b")
        ("'=cmd|' /C calc'!A0", '-5', "a;'=b")
    """
    first, *rest = _PARTS.split(text)
    inner = "".join((first, *map(_escape, rest)))
    # The beginning is judged by all of the text: `+1;x` is no number to a program that does not split at `;`.
    return f"'{inner}" if _FORMULA.match(text) else inner


def unescaped(text: str) -> str:
    """The text that a cell was written for: the opposite of `escaped`."""
    if "'" not in text:
        return text
    first, *rest = _PARTS.split(text)
    return _unescape("".join((first, *map(_unescape, rest))))


def has_formulas(text: str) -> bool:
    """Whether a text that is written into a table has cells which a spreadsheet computes."""
    return any(_FORMULA.match(cell) for part in _PARTS.split(text) for cell in re.split(r"[,|]", part))


def _escape(part: str) -> str:
    return f"'{part}" if _FORMULA.match(part) else part


def _unescape(part: str) -> str:
    return part[1:] if part.startswith("'") and _FORMULA.match(part[1:]) else part

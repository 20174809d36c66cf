"""Contents by which files are known where no name fits: headings of texts, and words in the cells of tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bicameral.binding._words import words_of

_HEADING = re.compile(r"(?:#{1,6}|=+|\*+)\s+\S")
_COUNTED_ROWS = 2_000
_MOST_CELL_WORDS = 2_000
_LONGEST_CELL = 80
_COMMON_ROWS = 2
_COMMON_SHARE = 20
"""A word is common in a table if it stands in two rows at least, and in one of so many."""


def cell_words(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words in the cells of a table: those that many rows have, and those that few have."""
    counted: Counter[str] = Counter()
    rows = rows[:_COUNTED_ROWS]
    for row in rows:
        texts = (cell for cell in row.values() if isinstance(cell, str) and len(cell) <= _LONGEST_CELL)
        # A number says nothing of what a table is about, and a word of one or two letters little.
        counted.update({word for text in texts for word in words_of(text) if len(word) > 2 and not word.isdecimal()})
    enough = max(_COMMON_ROWS, len(rows) // _COMMON_SHARE)
    words = counted.most_common(_MOST_CELL_WORDS)
    return tuple(word for word, rows in words if rows >= enough), tuple(word for word, rows in words if rows < enough)


def headings(text: str) -> tuple[str, ...]:
    """The first line of a text, and its headings."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line.lstrip("#=* ").strip() for line in lines if _HEADING.match(line)]
    return tuple(each[:120] for each in (*lines[:1], *marked))[:20]

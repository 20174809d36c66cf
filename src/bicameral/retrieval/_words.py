"""The words of a text, as exact search compares them.

A word is a run of letters, digits and the marks that belong to them, without regard to case, width or accents. Words
that are joined (`ERR-7741`, `v1.2.3`, `don't`, `lexical_weight`) count as one and as their parts. Scripts that put no
spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are cut into pairs of characters.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

_LONGEST = 64
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_RUNS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_MARKS_END = 0x20000


def words(text: str) -> list[str]:
    """The words in order.

    Example:
        >>> words("Café ERR-7741")
        ['cafe', 'err', '7741', 'err-7741']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", folded)))
    return list(_words(plain))


def _words(text: str) -> Iterator[str]:
    part, joined = _patterns()
    for found in joined.finditer(text):
        whole = found[0]
        parts = part.findall(whole)
        for each in parts:
            yield from _pieces(each)
        if len(parts) > 1 and len(whole) <= _LONGEST:
            yield whole.replace("’", "'")


def _pieces(part: str) -> Iterator[str]:
    for run in _RUNS.findall(part):
        if len(run) == 1 or not re.match(f"[{_UNSPACED}]", run):
            yield run[:_LONGEST]
        else:
            yield from (first + second for first, second in pairwise(run))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A word, and words that are joined. `re` knows letters and digits, but not the marks that go with them."""
    part = f"(?:[^\\W_]|[{_marks()}])++"
    return re.compile(part), re.compile(f"{part}(?:[-_.'’/:@+]{part})*+")


def _marks() -> str:
    """The combining marks, as ranges of a character class."""
    last = min(_MARKS_END, sys.maxunicode)
    marks = [point for point in range(0x0300, last) if unicodedata.category(chr(point)) in ("Mn", "Mc")]
    ranges: list[list[int]] = []
    for point in marks:
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(end)}" for first, end in ranges)

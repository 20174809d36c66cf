"""Tokens of a text, with what must not be read left out: quoted text, links, addresses, paths and file names.

Every pass is linear in the length of the text: each character is looked at a fixed number of times, and the closing
quote that belongs to an opening one is looked up from where the last search ended.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from bicameral.days._vocabulary import MONTHS, fold

Kind = Literal["number", "word", "mark", "opaque"]


class Token(NamedTuple):
    """A run of digits or letters, one punctuation mark, or a part of the text that is not read (`opaque`)."""

    kind: Kind
    text: str
    word: str
    start: int
    end: int


# A blank line is a mark of its own and ends a sentence; other white space only separates.
_TOKEN = re.compile(r"[0-9]+|[^\W\d_]+(?:[\u0300-\u036f]+[^\W\d_]*)*|\n[^\S\n]*\n|[^\s\w]|\w")
_CHUNK = re.compile(r"[^\s,;|<>()\[\]{}\"„“”«»`]+")
_QUOTES = {'"': '"', "“": "”", "„": '“”"', "«": "»", "»": "«", "`": "`", "‘": "’", "'": "'"}
_MAX_EXTENSION = 5
_HALF_OF_DAY = re.compile(r"[0-9]*[ap]\.m", re.IGNORECASE)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text in order."""
    tokens: list[Token] = []
    at = 0
    for start, end in [*_opaque_spans(text), (len(text), len(text))]:
        for match in _TOKEN.finditer(text, at, start):
            found = match.group(0)
            kind: Kind = "number" if found[0] in "0123456789" else "word" if found[0].isalpha() else "mark"
            tokens.append(Token(kind, found, fold(found) if kind == "word" else found, match.start(), match.end()))
        if end > start:
            tokens.append(Token("opaque", "", "", start, end))
        at = end
    return tokens


def _opaque_spans(text: str) -> list[tuple[int, int]]:
    """The places of quoted text and of names that may hold the digits of a date, sorted and merged."""
    spans = [*_quoted_spans(text)]
    spans += [match.span() for match in _CHUNK.finditer(text) if _is_name(match.group(0))]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _quoted_spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    ends: dict[str, int] = {}

    def find_end(mark: str, at: int) -> int:
        # The last result is kept: without that, many opening quotes and one closing one would cost a square.
        if ends.get(mark, -1) < at:
            found = text.find(mark, at)
            while found >= 0 and mark in "'’" and not _closes(text, found):
                found = text.find(mark, found + 1)
            ends[mark] = len(text) if found < 0 else found
        return ends[mark]

    at = 0
    while at < len(text):
        closing = _QUOTES.get(text[at])
        # An inch sign or an apostrophe follows a letter or a digit; an opening quote does not.
        if closing is None or (text[at] in "\"'" and at > 0 and text[at - 1].isalnum()):
            at += 1
            continue
        end = min(find_end(mark, at + 1) for mark in closing)
        if end == len(text):
            at += 1
            continue
        spans.append((at, end + 1))
        at = end + 1
    return spans


def _closes(text: str, end: int) -> bool:
    """Whether a single quote at this place ends quoted text, and is not an apostrophe."""
    return end + 1 == len(text) or not text[end + 1].isalnum()


def _is_name(chunk: str) -> bool:
    """Whether text without blanks is a link, an address, a path or a file name."""
    name = chunk.strip(".:!?'’*")
    for possessive in ("'s", "’s"):
        name = name.removesuffix(possessive)
    if "@" in name or "://" in name or "_" in name or "\\" in name or name.lower().startswith("www."):
        return True
    if "/" in name and _is_path(name, chunk):
        return True
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem or not stem[-1].isalnum() or len(extension) > _MAX_EXTENSION:
        return False
    if not (extension.isascii() and extension.isalnum() and extension[0].isalpha()):
        return False
    if _HALF_OF_DAY.fullmatch(name) or (stem.isdigit() and fold(extension) in MONTHS):
        return False
    # A sentence that begins without a blank (`today.Then`) is no file name.
    return extension.islower() or extension.isupper()


def _is_path(name: str, chunk: str) -> bool:
    if name[0] in "/~" or chunk.startswith(("./", "../")) or chunk.endswith("/"):
        return True
    parts = name.split("/")
    letters = [part for part in parts if any(char.isalpha() for char in part)]
    if not letters:
        return False
    # `15/mar/2026` is a date, `notes/2026` and `a/b/c` are paths.
    return not (len(parts) == 3 and len(letters) == 1 and fold(parts[1]) in MONTHS) and (
        len(parts) > 2 or any(char.isdigit() for char in name)
    )

"""The structure of a text: its headings, its paragraphs and its sentences, as places in it.

Headings are those of Markdown; in a text that has none, there is one section. Everything here takes time in proportion
to the text, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LONGEST_HEADING = 120
_LINE = re.compile(r"[^\n]*+\n?")
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)")
_ITEM = re.compile(r"[ \t]*+(?:[-*+•|]|\d{1,9}[.)])[ \t]")
_UNDERLINES = {"=": 1, "-": 2}
# A full stop, and what closes after it, before a space or the end; in Chinese and Japanese without a space.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s|$)|[。！？]++[」』”’)\]）】]*+")
_NOT_THE_END = frozenset(
    "mr mrs ms dr prof st no nr art abs vs etc e.g i.e cf fig vol inc ltd co jr sr ca approx bzw z.b d.h u.a".split()
)
_LAST_WORD = re.compile(r"[\w.]{1,12}\Z")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or a line where lines are what counts: the smallest part that a chunk is made of."""

    start: int
    end: int
    ends_paragraph: bool = False
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading, up to the next; the units touch each other and leave nothing out."""

    headings: tuple[str, ...]
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    end: int
    kind: str
    """heading, prose or lines"""
    level: int = 0
    heading: str = ""


def sections(text: str) -> list[Section]:
    """A text as sections. A heading that has nothing below it stands at the head of the next section."""
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    units: list[Unit] = []
    has_body = False
    for block in _blocks(text):
        if block.kind == "heading":
            if has_body:
                found.append(Section(_names(path), tuple(units)))
                units, has_body = [], False
            path = [each for each in path if each[0] < block.level] + [(block.level, block.heading)]
            units.append(Unit(block.start, block.end, heading=True))
            continue
        has_body = has_body or not text[block.start : block.end].isspace()
        units.extend(_units(text, block))
    if units:
        found.append(Section(_names(path), tuple(units)))
    return found


def _names(path: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(name for _, name in path if name)


def _blocks(text: str) -> Iterator[_Block]:
    """Paragraphs, lists, fenced code and headings; each goes on to where the next begins."""
    reading = _Reading(text)
    for line in _LINE.finditer(text):
        if line[0]:
            yield from reading.line(line.start(), line.end(), line[0])
    yield from reading.rest(len(text))


class _Reading:
    """Where the block that is being read began, and what it is so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start: int = 0
        self._kind: str = ""
        self._lines: int = 0
        self._fence: str = ""

    def line(self, at: int, end: int, words: str) -> Iterator[_Block]:
        if self._fence:
            if _closes(words, self._fence):
                yield self._done(end, "lines")
        elif opened := _FENCE.match(words):
            yield from self.rest(at)
            self._fence = opened[1]
        elif heading := _heading(words):
            yield from self.rest(at)
            yield self._done(end, "heading", *heading)
        elif self._lines == 1 and self._kind == "prose" and (level := _underline(words)):
            yield self._done(end, "heading", level, _clean(self._text[self._start : at]))
        elif words.isspace():
            if self._lines:
                yield self._done(end, self._kind)
        else:
            self._kind = "lines" if _ITEM.match(words) else self._kind or "prose"
            self._lines += 1

    def rest(self, end: int) -> Iterator[_Block]:
        """What is read and not yet a block."""
        if self._start < end:
            yield self._done(end, "lines" if self._fence else self._kind or "prose")

    def _done(self, end: int, kind: str, level: int = 0, heading: str = "") -> _Block:
        block = _Block(self._start, end, kind, level, heading)
        self._start, self._kind, self._lines, self._fence = end, "", 0, ""
        return block


def _closes(line: str, fence: str) -> bool:
    words = line.strip()
    return words.startswith(fence) and not words.strip(fence[0])


def _heading(line: str) -> tuple[int, str] | None:
    words = line.strip()
    level = len(words) - len(words.lstrip("#"))
    if not 1 <= level <= 6 or len(line) - len(line.lstrip(" ")) > 3 or words[level : level + 1] not in ("", " ", "\t"):
        return None
    return level, _clean(words[level:].rstrip("#"))


def _underline(line: str) -> int:
    """The level of the heading that a line of = or - makes of the line before it."""
    words = line.strip()
    return _UNDERLINES[words[0]] if len(words) >= 3 and words[0] in _UNDERLINES and not words.strip(words[0]) else 0


def _clean(words: str) -> str:
    return " ".join(words[: 4 * _LONGEST_HEADING].split())[:_LONGEST_HEADING]


def _units(text: str, block: _Block) -> Iterator[Unit]:
    cuts = list(_line_ends(text, block) if block.kind == "lines" else _sentence_ends(text, block))
    start = seen = block.start
    blank = True
    for cut in cuts:
        blank = blank and text[seen:cut].isspace()
        seen = cut
        if not blank and cut < block.end:
            yield Unit(start, cut)
            start, blank = cut, True
    yield Unit(start, block.end, ends_paragraph=True)


def _line_ends(text: str, block: _Block) -> Iterator[int]:
    at = text.find("\n", block.start, block.end)
    while at != -1:
        yield at + 1
        at = text.find("\n", at + 1, block.end)


def _sentence_ends(text: str, block: _Block) -> Iterator[int]:
    """Where sentences end, their space included."""
    for found in _END.finditer(text, block.start, block.end):
        if found[0][0] == "." and _goes_on(text, found, block.end):
            continue
        end = found.end()
        while end < block.end and text[end].isspace():
            end += 1
        yield end


def _goes_on(text: str, found: re.Match[str], limit: int) -> bool:
    """Whether a full stop only shortens a word: a small letter follows, or the word is known for it."""
    after = found.end()
    while after < limit and text[after].isspace():
        after += 1
    if after < limit and text[after].islower():
        return True
    word = _LAST_WORD.search(text, max(0, found.start() - 12), found.start())
    return word is not None and (word[0].lower() in _NOT_THE_END or (len(word[0]) == 1 and word[0].isupper()))

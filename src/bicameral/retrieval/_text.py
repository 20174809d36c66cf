"""Structure of a text: headings, paragraphs and sentences.

Headings are those of Markdown; a text without any is one section. Everything here takes time linear in the text,
whatever it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_HEADING = 120
_NEW_LINE = re.compile("\n")
_LINE_PATTERN = re.compile(r"[^\n]*+\n?")
_FENCE_PATTERN = re.compile(r" {0,3}(`{3,}+|~{3,}+)")
_ITEM_PATTERN = re.compile(r"[ \t]*+(?:[-*+•|]|\d{1,9}[.)])[ \t]")
_UNDERLINES = {"=": 1, "-": 2}
# A full stop with closing quotes and brackets, before a space or the end; in Chinese and Japanese without a space.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s|$)|[。！？]++[」』”’)\]）】]*+")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st no nr art abs vs etc e.g i.e cf fig vol inc ltd co jr sr ca approx bzw z.b d.h u.a".split()
)
_LAST_WORD = re.compile(r"[\w.]{1,12}\Z")


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A sentence, or a line in lists and code: the smallest part of a chunk."""

    start: int
    end: int
    ends_paragraph: bool = False
    is_heading: bool = False


@dataclass(frozen=True, slots=True)
class TextSection:
    """The text below one heading, up to the next; its units are adjacent and cover it completely."""

    headings: tuple[str, ...]
    units: tuple[TextUnit, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    end: int
    kind: str
    """heading, prose or lines"""
    level: int = 0
    heading: str = ""


def split_sections(text: str) -> list[TextSection]:
    """The sections of a text. A heading without text below it becomes part of the next section."""
    sections: list[TextSection] = []
    path: list[tuple[int, str]] = []
    units: list[TextUnit] = []
    has_body = False
    for block in _split_blocks(text):
        if block.kind == "heading":
            if has_body:
                sections.append(TextSection(_heading_names(path), tuple(units)))
                units, has_body = [], False
            path = [above for above in path if above[0] < block.level] + [(block.level, block.heading)]
            units.append(TextUnit(block.start, block.end, is_heading=True))
            continue
        has_body = has_body or not text[block.start : block.end].isspace()
        units.extend(_split_units(text, block))
    if units:
        sections.append(TextSection(_heading_names(path), tuple(units)))
    return sections


def _heading_names(path: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(name for _, name in path if name)


def _split_blocks(text: str) -> Iterator[_Block]:
    """Paragraphs, lists, fenced code and headings; each extends to the beginning of the next."""
    reader = _BlockReader(text)
    for line in _LINE_PATTERN.finditer(text):
        if line[0]:
            yield from reader.feed_line(line.start(), line.end(), line[0])
    yield from reader.flush(len(text))


class _BlockReader:
    """Reads blocks line by line: the start of the current block, and its kind so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start: int = 0
        self._kind: str = ""
        self._lines: int = 0
        self._fence: str = ""

    def feed_line(self, at: int, end: int, words: str) -> Iterator[_Block]:
        """Read one line; yields the blocks that it completes."""
        if self._fence:
            if _closes_fence(words, self._fence):
                yield self._finish_block(end, "lines")
        elif opened := _FENCE_PATTERN.match(words):
            yield from self.flush(at)
            self._fence = opened[1]
        elif heading := _parse_heading(words):
            yield from self.flush(at)
            yield self._finish_block(end, "heading", *heading)
        elif self._lines == 1 and self._kind == "prose" and (level := _underline_level(words)):
            yield self._finish_block(end, "heading", level, _clean_heading(self._text[self._start : at]))
        elif words.isspace():
            if self._lines:
                yield self._finish_block(end, self._kind)
        else:
            self._kind = "lines" if _ITEM_PATTERN.match(words) else self._kind or "prose"
            self._lines += 1

    def flush(self, end: int) -> Iterator[_Block]:
        """The block that is not complete yet, if any."""
        if self._start < end:
            yield self._finish_block(end, "lines" if self._fence else self._kind or "prose")

    def _finish_block(self, end: int, kind: str, level: int = 0, heading: str = "") -> _Block:
        block = _Block(self._start, end, kind, level, heading)
        self._start, self._kind, self._lines, self._fence = end, "", 0, ""
        return block


def _closes_fence(line: str, fence: str) -> bool:
    words = line.strip()
    return words.startswith(fence) and not words.strip(fence[0])


def _parse_heading(line: str) -> tuple[int, str] | None:
    words = line.strip()
    level = len(words) - len(words.lstrip("#"))
    if not 1 <= level <= 6 or len(line) - len(line.lstrip(" ")) > 3 or words[level : level + 1] not in ("", " ", "\t"):
        return None
    return level, _clean_heading(words[level:].rstrip("#"))


def _underline_level(line: str) -> int:
    """The level of the heading that a line of = or - makes of the line before it; 0 if it is no underline."""
    words = line.strip()
    return _UNDERLINES[words[0]] if len(words) >= 3 and words[0] in _UNDERLINES and not words.strip(words[0]) else 0


def _clean_heading(words: str) -> str:
    return " ".join(words[: 4 * _MAX_HEADING].split())[:_MAX_HEADING]


def _split_units(text: str, block: _Block) -> Iterator[TextUnit]:
    cuts = _sentence_ends(text, block)
    if block.kind == "lines":
        cuts = (match.end() for match in _NEW_LINE.finditer(text, block.start, block.end))
    start = seen = block.start
    blank = True
    for cut in cuts:
        blank = blank and text[seen:cut].isspace()
        seen = cut
        if not blank and cut < block.end:
            yield TextUnit(start, cut)
            start, blank = cut, True
    yield TextUnit(start, block.end, ends_paragraph=True)


def _sentence_ends(text: str, block: _Block) -> Iterator[int]:
    """The positions at which sentences end, after their white space."""
    for match in _SENTENCE_END.finditer(text, block.start, block.end):
        if match[0][0] == "." and _is_abbreviation(text, match, block.end):
            continue
        end = match.end()
        while end < block.end and text[end].isspace():
            end += 1
        yield end


def _is_abbreviation(text: str, match: re.Match[str], limit: int) -> bool:
    """Whether a full stop belongs to an abbreviation: a small letter follows, or the word is a known one."""
    after = match.end()
    while after < limit and text[after].isspace():
        after += 1
    if after < limit and text[after].islower():
        return True
    word = _LAST_WORD.search(text, max(0, match.start() - 12), match.start())
    return word is not None and (word[0].lower() in _ABBREVIATIONS or (len(word[0]) == 1 and word[0].isupper()))

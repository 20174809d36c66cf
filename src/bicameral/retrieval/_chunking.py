"""Splitting documents into chunks along their structure.

A chunk never reaches over a heading. Within a section it is as many whole sentences as fit, it ends with a paragraph
where that does not leave it half empty, and it begins with the last sentences of the one before: a fact that stands
across the cut is then whole in one of them. It can be longer than asked for by its headings, never by more than a
quarter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bicameral.errors import RetrievalError
from bicameral.retrieval._documents import Chunk, TextDocument, cut_chunk
from bicameral.retrieval._text import TextSection, TextUnit, split_sections

TokenCounter = Callable[[Sequence[str]], list[int]]
"""How many tokens each of some texts has."""

MIN_CHUNK_TOKENS = 16
_MAX_CHARACTERS_PER_TOKEN = 8


@dataclass(frozen=True, slots=True)
class Chunking:
    """About how long chunks are, and how much of its end a chunk shares with the next; both in tokens."""

    tokens: int = 200
    overlap: int = 40

    def __post_init__(self) -> None:
        if type(self.tokens) is not int or self.tokens < MIN_CHUNK_TOKENS:
            raise _bad_setting(f"chunks of {self.tokens} tokens", f"{MIN_CHUNK_TOKENS} tokens or more")
        if type(self.overlap) is not int or not 0 <= self.overlap <= self.tokens // 2:
            raise _bad_setting(f"an overlap of {self.overlap} tokens", f"0 to {self.tokens // 2}, half of a chunk")


def split_document(document: TextDocument, lengths: TokenCounter, chunking: Chunking | None = None) -> list[Chunk]:
    """The chunks of a document, in order; every character that is no space is in at least one of them."""
    wanted = chunking or Chunking()
    found: list[Chunk] = []
    for section in split_sections(document.text):
        units, sizes = _units_that_fit(document.text, section, lengths, wanted.tokens)
        for first, last in _pack_units(units, sizes, wanted):
            start, end = _trim_spaces(document.text, units[first].start, units[last - 1].end)
            if start < end:
                found.append(cut_chunk(document, start, end, section.headings))
    return found


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """A length for those who have no tokenizer at hand: words, with a third on top."""
    return [-(-4 * len(text.split()) // 3) for text in texts]


def _units_that_fit(
    text: str, section: TextSection, lengths: TokenCounter, limit: int
) -> tuple[list[TextUnit], list[int]]:
    """The units of a section and their sizes; those that are larger than a chunk are halved until they are not."""
    units = list(section.units)
    sizes = _unit_sizes(text, units, lengths)
    while any(size > limit for size in sizes):
        halves: list[list[TextUnit]] = [
            _halve_unit(text, unit) if size > limit else [unit] for unit, size in zip(units, sizes, strict=True)
        ]
        units = [half for parts in halves for half in parts]
        sizes = _unit_sizes(text, units, lengths)
    return units, sizes


def _unit_sizes(text: str, units: Sequence[TextUnit], lengths: TokenCounter) -> list[int]:
    # By characters too: a tokenizer may take a thousand of them for one unknown token.
    counted = lengths([text[unit.start : unit.end] for unit in units])
    by_characters = (-(-(unit.end - unit.start) // _MAX_CHARACTERS_PER_TOKEN) for unit in units)
    return [max(pair) for pair in zip(counted, by_characters, strict=True)]


def _halve_unit(text: str, unit: TextUnit) -> list[TextUnit]:
    """Two units in place of one, cut at the space next to the middle if there is one near it."""
    middle, reach = (unit.start + unit.end) // 2, max(1, (unit.end - unit.start) // 4)
    if unit.end - unit.start < 2:
        raise RetrievalError("retrieval.bad-setting", "one character has more tokens than a chunk may have")
    cut = next(
        (at for at in _positions_around(middle, reach) if unit.start < at < unit.end and text[at - 1].isspace()), middle
    )
    return [TextUnit(unit.start, cut), TextUnit(cut, unit.end, unit.ends_paragraph)]


def _positions_around(middle: int, reach: int) -> Iterator[int]:
    for away in range(reach):
        yield middle + away
        yield middle - away


def _pack_units(units: Sequence[TextUnit], sizes: Sequence[int], chunking: Chunking) -> Iterator[tuple[int, int]]:
    """From which unit to which each chunk goes."""
    start = 0
    while True:
        end, total = start, 0
        while end < len(units) and (
            total + sizes[end] <= chunking.tokens or _has_only_headings(units[start : end + 1], total, chunking)
        ):
            total += sizes[end]
            end += 1
        if end == len(units):
            yield start, end
            return
        end = _paragraph_end(units, sizes, start, end, total, chunking.tokens // 2)
        yield start, end
        start = _overlap_start(sizes, start, end, chunking)


def _has_only_headings(units: Sequence[TextUnit], total: int, chunking: Chunking) -> bool:
    """Whether there are only headings so far: short ones are not left alone, even if what follows is then too long."""
    return total <= chunking.tokens // 4 and not units[-1].is_heading and all(unit.is_heading for unit in units[:-1])


def _paragraph_end(
    units: Sequence[TextUnit], sizes: Sequence[int], start: int, end: int, total: int, least: int
) -> int:
    """The last end of a paragraph that leaves the chunk with at least so many tokens, else where it is full."""
    for at in range(end, start, -1):
        if total < least:
            break
        if units[at - 1].ends_paragraph:
            return at
        total -= sizes[at - 1]
    return end


def _overlap_start(sizes: Sequence[int], start: int, end: int, chunking: Chunking) -> int:
    """Where the next chunk begins: a little before the end of this one, with room for what is new."""
    room = min(chunking.overlap, chunking.tokens - sizes[end])
    at, shared = end, 0
    while at - 1 > start and shared + sizes[at - 1] <= room:
        at -= 1
        shared += sizes[at]
    return at


def _trim_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    words = text[start:end]
    return start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())


def _bad_setting(message: str, expected: str) -> RetrievalError:
    return RetrievalError("retrieval.bad-setting", message, expected=expected)

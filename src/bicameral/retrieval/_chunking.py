"""Splitting documents into chunks along their structure.

A chunk never crosses a heading. Within a section it has as many whole sentences as fit, ends with a paragraph unless
that leaves it half empty, and begins with the last sentences of the chunk before: a fact that is stated across the cut
is then whole in one of them. Headings can make a chunk longer than requested, by at most a quarter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bicameral.errors import RetrievalError
from bicameral.retrieval._documents import Chunk, TextDocument, cut_chunk
from bicameral.retrieval._text import TextSection, TextUnit, split_sections

TokenCounter = Callable[[Sequence[str]], list[int]]
"""The number of tokens of each text."""

MIN_CHUNK_TOKENS = 16
_MAX_CHARACTERS_PER_TOKEN = 8
"""A text counts as at least one token per this many characters."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """The length of chunks and the overlap of two neighbours, in tokens.

    Args:
        tokens: About how long a chunk is.
        overlap: How much of its end a chunk shares with the next; at most half of `tokens`.
    """

    tokens: int = 200
    overlap: int = 40

    def __post_init__(self) -> None:
        if type(self.tokens) is not int or self.tokens < MIN_CHUNK_TOKENS:
            raise _bad_setting(f"chunks of {self.tokens} tokens", f"{MIN_CHUNK_TOKENS} tokens or more")
        if type(self.overlap) is not int or not 0 <= self.overlap <= self.tokens // 2:
            raise _bad_setting(f"an overlap of {self.overlap} tokens", f"0 to {self.tokens // 2}, half of a chunk")


def split_document(document: TextDocument, lengths: TokenCounter, chunking: Chunking | None = None) -> list[Chunk]:
    """The chunks of a document, in order; every character except white space is in at least one of them.

    `lengths` counts tokens, as `Embedder.lengths` does.
    """
    settings = chunking or Chunking()
    chunks: list[Chunk] = []
    for section in split_sections(document.text):
        units, sizes = _units_that_fit(document.text, section, lengths, settings.tokens)
        for first, last in _pack_units(units, sizes, settings):
            start, end = _trim_spaces(document.text, units[first].start, units[last - 1].end)
            if start < end:
                chunks.append(cut_chunk(document, start, end, section.headings))
    return chunks


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """A token count without a tokenizer: the words, plus a third."""
    return [-(-4 * len(text.split()) // 3) for text in texts]


def _units_that_fit(
    text: str, section: TextSection, lengths: TokenCounter, limit: int
) -> tuple[list[TextUnit], list[int]]:
    """The units of a section and their sizes; units larger than a chunk are halved until they fit."""
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
    # By characters too: a tokenizer may map a thousand characters to one unknown token.
    counted = lengths([text[unit.start : unit.end] for unit in units])
    by_characters = (-(-(unit.end - unit.start) // _MAX_CHARACTERS_PER_TOKEN) for unit in units)
    return [max(pair) for pair in zip(counted, by_characters, strict=True)]


def _halve_unit(text: str, unit: TextUnit) -> list[TextUnit]:
    """Two units in place of one, cut at the space nearest to the middle if one is near."""
    middle, reach = (unit.start + unit.end) // 2, max(1, (unit.end - unit.start) // 4)
    if unit.end - unit.start < 2:
        raise RetrievalError("retrieval.bad-setting", "one character has more tokens than a chunk may have")
    nearest = (at for away in range(reach) for at in (middle + away, middle - away))
    cut = next((at for at in nearest if unit.start < at < unit.end and text[at - 1].isspace()), middle)
    return [TextUnit(unit.start, cut), TextUnit(cut, unit.end, unit.ends_paragraph)]


def _pack_units(units: Sequence[TextUnit], sizes: Sequence[int], chunking: Chunking) -> Iterator[tuple[int, int]]:
    """The first unit of each chunk, and the unit after its last."""
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
    """Whether the last unit follows short headings only: those are not left alone, even if the chunk gets too long."""
    return total <= chunking.tokens // 4 and not units[-1].is_heading and all(unit.is_heading for unit in units[:-1])


def _paragraph_end(
    units: Sequence[TextUnit], sizes: Sequence[int], start: int, end: int, total: int, least: int
) -> int:
    """The last end of a paragraph that leaves at least `least` tokens in the chunk, else where the chunk is full."""
    for position in range(end, start, -1):
        if total < least:
            break
        if units[position - 1].ends_paragraph:
            return position
        total -= sizes[position - 1]
    return end


def _overlap_start(sizes: Sequence[int], start: int, end: int, chunking: Chunking) -> int:
    """The first unit of the next chunk: before the end of this one, with room for at least one new unit."""
    budget = min(chunking.overlap, chunking.tokens - sizes[end])
    position, shared = end, 0
    while position - 1 > start and shared + sizes[position - 1] <= budget:
        position -= 1
        shared += sizes[position]
    return position


def _trim_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    words = text[start:end]
    return start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())


def _bad_setting(message: str, expected: str) -> RetrievalError:
    return RetrievalError("retrieval.bad-setting", message, expected=expected)

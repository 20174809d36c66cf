"""Whether the citations in an answer are true: each must name a chunk that its writer was shown."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ._citations import FORM, Resolution, cite
from ._documents import Chunk
from ._structure import Unit, sections

Fault = Literal["not-shown", "malformed"]

_BRACKETS = re.compile(r"\[([^\[\]\n]{1,400}+)\]")
_PIECE = re.compile(r"[^\s,;]+")
_MEANT = re.compile(r"[^#]+#+[^#]+")
_EMPTY = re.compile(r"[\[(][\s,;]*+[\])]")
_BEFORE_A_STOP = re.compile(r" ([.,;:!?])")
_WORD = re.compile(r"\w")
_LOOK_BACK = 4
_LONGEST_CLAIM = 600


class Resolver(Protocol):
    """Who knows what citations point to: an `Index`."""

    def resolve(self, citation: str) -> Resolution: ...


@dataclass(frozen=True, slots=True)
class Cited:
    """One citation of an answer."""

    citation: str
    span: tuple[int, int]
    """Where it stands in the answer."""
    claim: str
    """The sentence that it is given for; whether the chunk says so too is for a judge."""
    chunk: Chunk | None
    """What it points to among the chunks that were shown."""
    fault: Fault | None
    resolution: Resolution | None
    """For one that was not shown, what the index knows about it, if it was asked."""


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """What was found in an answer, in order."""

    cited: tuple[Cited, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no fault. An answer without citations has none; see `chunks` for what it rests on."""
        return not self.faults

    @property
    def faults(self) -> tuple[Cited, ...]:
        return tuple(each for each in self.cited if each.fault)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The shown chunks that are cited, each once."""
        return tuple({cite(each.chunk): each.chunk for each in self.cited if each.chunk}.values())


def check_citations(answer: str, shown: Sequence[Chunk], index: Resolver | None = None) -> CitationCheck:
    """Find the citations of an answer and hold them against the chunks that its writer was shown.

    Example:
        >>> checked = check_citations(reply.text, found.chunks, index)
        >>> [each.citation for each in checked.faults]
        ['travel.md#000000000000']
    """
    known = {cite(chunk): chunk for chunk in reversed(shown)}
    units = [unit for section in sections(answer) for unit in section.units]
    return CitationCheck(
        tuple(_judged(answer, start, end, known, units, index) for start, end in sorted(_places(answer)))
    )


def _judged(
    answer: str, start: int, end: int, known: dict[str, Chunk], units: Sequence[Unit], index: Resolver | None
) -> Cited:
    citation = answer[start:end]
    chunk = known.get(citation)
    fault: Fault | None = None
    if chunk is None:
        fault = "not-shown" if FORM.fullmatch(citation) else "malformed"
    resolution = index.resolve(citation) if fault and index is not None else None
    return Cited(citation, (start, end), _claim(answer, start, units), chunk, fault, resolution)


def _places(answer: str) -> Iterator[tuple[int, int]]:
    """Every citation of the right form, wherever it stands, and what is meant as one in square brackets."""
    yield from (found.span() for found in FORM.finditer(answer))
    for brackets in _BRACKETS.finditer(answer):
        for piece in _PIECE.finditer(answer, *brackets.span(1)):
            if _MEANT.fullmatch(piece[0]) and not FORM.search(piece[0]):
                yield piece.span()


def _claim(answer: str, at: int, units: Sequence[Unit]) -> str:
    """The sentence around a citation; of one that stands behind the full stop, the sentence before it."""
    number = bisect_right(units, at, key=lambda unit: unit.start)
    around = [
        (max(unit.start, at - _LONGEST_CLAIM), min(unit.end, at + _LONGEST_CLAIM))
        for unit in reversed(units[max(0, number - _LOOK_BACK) : number])
    ]
    for start, end in around:
        # In the sentence itself words must stand before the citation.
        if _WORD.search(_bare(answer[start : min(end, at)])):
            return _bare(answer[start:end])
    return _bare(answer[slice(*around[0])]) if around else ""


def _bare(words: str) -> str:
    """A sentence without its citations."""
    left = _EMPTY.sub("", FORM.sub("", words))
    return _BEFORE_A_STOP.sub(r"\1", " ".join(left.split()))

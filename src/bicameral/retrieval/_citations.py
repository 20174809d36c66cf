"""Citations: the name of a chunk in a text, what it refers to, and whether the citations of an answer are valid.

A citation is the id of a document, `#`, and the first twelve digits of the chunk's fingerprint:
`handbook/travel.md#3f2a91c07b64`. It names the content: when the document changes there, the citation does not refer to
something else, it resolves to `ChangedCitation`. In an answer every citation must name a chunk that its writer was
shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import quote, unquote

from bicameral.retrieval._documents import Chunk, StoredDocument, TextDocument
from bicameral.retrieval._text import TextUnit, split_sections

DIGITS = 12
"""Digits of the fingerprint in a citation."""
_MAX_REMEMBERED = 4_096
"""Past chunks of one document that are remembered."""
_PLAIN_CHARACTERS = frozenset("-._~/:@+")
_NAME_CHARACTERS = r"\w\-.~/:@+%"
CITATION_PATTERN = re.compile(rf"(?<![{_NAME_CHARACTERS}])[{_NAME_CHARACTERS}]++#[0-9a-f]{{{DIGITS}}}(?![\w#])")
"""A citation in a text."""
_CITATION_PARTS = re.compile(rf"([{_NAME_CHARACTERS}]++)#([0-9a-f]{{{DIGITS}}})")
_HASH_MARK = re.compile(r"\S#\S")
_MARK_BEFORE_DIGITS = re.compile(f"#(?=[0-9a-f]{{{DIGITS}}})")
_ROUND_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True)
class ResolvedCitation:
    """The cited text is in its document now, word for word."""

    citation: str
    chunk: Chunk
    document: TextDocument


@dataclass(frozen=True, slots=True)
class ChangedCitation:
    """The document is in the index and no longer contains the cited text."""

    citation: str
    document: str


@dataclass(frozen=True, slots=True)
class GoneCitation:
    """The document was removed from the index."""

    citation: str
    document: str


@dataclass(frozen=True, slots=True)
class InventedCitation:
    """The citation names nothing that was ever in the index, as far as it remembers."""

    citation: str
    why: str


Resolution = ResolvedCitation | ChangedCitation | GoneCitation | InventedCitation


def cite(chunk: Chunk) -> str:
    """The citation of a chunk; the same text in the same document always has the same one.

    Example:
        >>> cite(chunk)
        'travel.md#3f2a91c07b64'
    """
    return f"{_escape_name(chunk.document)}#{chunk.fingerprint[:DIGITS]}"


def render_passage(chunk: Chunk) -> str:
    """A chunk as a model is shown it: its citation in brackets, then its text.

    Citations in the text itself are defused, so that a document cannot imitate the beginning of another passage, or
    attribute its own words to another document.
    """
    return f"[{cite(chunk)}]\n{defuse_citations(chunk.text)}"


def defuse_citations(text: str) -> str:
    """A text in which nothing parses as a citation any more, valid or malformed."""
    return "\n".join(_defuse_line(line) if _HASH_MARK.search(line) else line for line in text.split("\n"))


def _defuse_line(line: str) -> str:
    # Every mark before such digits, not every citation: what follows a broken citation may begin another one.
    return _MARK_BEFORE_DIGITS.sub("# ", line).translate(_ROUND_BRACKETS)


@dataclass
class PastChunks:
    """The fingerprints of chunks that were in the index, by document; only the latest few thousand of each."""

    known: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def remember(self, document: str, fingerprints: Iterable[str]) -> None:
        """Add fingerprints of a document, and drop its oldest ones beyond the limit."""
        kept = self.known.setdefault(document, {})
        for fingerprint in fingerprints:
            kept.pop(fingerprint[:DIGITS], None)
            kept[fingerprint[:DIGITS]] = None
        # A dict keeps its order of insertion, so these are the oldest.
        for fingerprint in list(kept)[:-_MAX_REMEMBERED]:
            del kept[fingerprint]


def resolve_citation(citation: str, stored: Mapping[str, StoredDocument], past: PastChunks) -> Resolution:
    """What a citation refers to among these documents."""
    match = _CITATION_PARTS.fullmatch(citation)
    if match is None:
        return InventedCitation(citation, f"it does not read DOCUMENT#{DIGITS} digits")
    name, digits = unquote(match[1]), match[2]
    # One spelling per document: otherwise `%61` and `a` would be two citations of one chunk.
    if _escape_name(name) != match[1]:
        return InventedCitation(citation, "its document is not written the way citations are")
    if name in stored:
        for chunk in stored[name].chunks:
            if chunk.fingerprint.startswith(digits):
                return ResolvedCitation(citation, chunk, stored[name].document)
        if digits in past.known.get(name, ()):
            return ChangedCitation(citation, name)
        return InventedCitation(citation, f"{name!r} never had such a part")
    if digits in past.known.get(name, ()):
        return GoneCitation(citation, name)
    return InventedCitation(citation, f"there is no document {name!r}")


def _escape_name(name: str) -> str:
    """The id of a document as it is written in a citation, without characters that could end the citation."""
    return "".join(
        character
        if character.isalnum() or character in _PLAIN_CHARACTERS
        else quote(character, safe="", errors="surrogatepass")
        for character in name
    )


CitationFault = Literal["not-shown", "malformed"]

_BRACKETS = re.compile(r"\[([^\[\]\n]{1,400}+)\]")
_PIECE = re.compile(r"[^\s,;]+")
_CITATION_ATTEMPT = re.compile(r"[^#]+#+[^#]+")
_EMPTY_BRACKETS = re.compile(r"[\[(][\s,;]*+[\])]")
_BEFORE_A_STOP = re.compile(r" ([.,;:!?])")
_WORD = re.compile(r"\w")
_CLAIM_UNITS = 4
_MAX_CLAIM = 600


class CitationResolver(Protocol):
    """Resolves citations: a `DocumentIndex`."""

    def resolve(self, citation: str) -> Resolution: ...


@dataclass(frozen=True, slots=True)
class AnswerCitation:
    """One citation of an answer."""

    citation: str
    span: tuple[int, int]
    """Its position in the answer."""
    claim: str
    """The sentence that it supports; whether the chunk states the same is for a judge."""
    chunk: Chunk | None
    """The chunk it names, if that was shown."""
    fault: CitationFault | None
    resolution: Resolution | None
    """For a citation that was not shown, what the index knows about it, if an index was given."""


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """The citations of an answer, in order."""

    cited: tuple[AnswerCitation, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no fault. An answer without citations has none; `chunks` says what it is based on."""
        return not self.faults

    @property
    def faults(self) -> tuple[AnswerCitation, ...]:
        return tuple(citation for citation in self.cited if citation.fault)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The shown chunks that are cited, each once."""
        return tuple({cite(citation.chunk): citation.chunk for citation in self.cited if citation.chunk}.values())


def check_citations(answer: str, shown: Sequence[Chunk], index: CitationResolver | None = None) -> CitationCheck:
    """Find the citations of an answer and check them against the chunks that its writer was shown.

    With an `index`, faults say what the citation refers to there.

    Example:
        >>> checked = check_citations(reply.text, results.chunks, index)
        >>> [fault.citation for fault in checked.faults]
        ['travel.md#000000000000']
    """
    # Reversed, so that of equal chunks the first one shown counts.
    known = {cite(chunk): chunk for chunk in reversed(shown)}
    units = [unit for section in split_sections(answer) for unit in section.units]
    return CitationCheck(
        tuple(
            _check_citation(answer, start, end, known, units, index) for start, end in sorted(_citation_spans(answer))
        )
    )


def _check_citation(
    answer: str,
    start: int,
    end: int,
    known: dict[str, Chunk],
    units: Sequence[TextUnit],
    index: CitationResolver | None,
) -> AnswerCitation:
    citation = answer[start:end]
    chunk = known.get(citation)
    fault: CitationFault | None = None
    if chunk is None:
        fault = "not-shown" if CITATION_PATTERN.fullmatch(citation) else "malformed"
    resolution = index.resolve(citation) if fault and index is not None else None
    return AnswerCitation(citation, (start, end), _claim_around(answer, start, units), chunk, fault, resolution)


def _citation_spans(answer: str) -> Iterator[tuple[int, int]]:
    """The positions of every well-formed citation, and of malformed ones in square brackets."""
    yield from (match.span() for match in CITATION_PATTERN.finditer(answer))
    for brackets in _BRACKETS.finditer(answer):
        for piece in _PIECE.finditer(answer, *brackets.span(1)):
            if _CITATION_ATTEMPT.fullmatch(piece[0]) and not CITATION_PATTERN.search(piece[0]):
                yield piece.span()


def _claim_around(answer: str, position: int, units: Sequence[TextUnit]) -> str:
    """The sentence around a citation; for one after the full stop, the sentence before it."""
    number = bisect_right(units, position, key=lambda unit: unit.start)
    around = [
        (max(unit.start, position - _MAX_CLAIM), min(unit.end, position + _MAX_CLAIM))
        for unit in reversed(units[max(0, number - _CLAIM_UNITS) : number])
    ]
    for start, end in around:
        # A citation belongs to this sentence only if words precede it there.
        if _WORD.search(_strip_citations(answer[start : min(end, position)])):
            return _strip_citations(answer[start:end])
    return _strip_citations(answer[slice(*around[0])]) if around else ""


def _strip_citations(words: str) -> str:
    """A sentence without its citations."""
    text = _EMPTY_BRACKETS.sub("", CITATION_PATTERN.sub("", words))
    return _BEFORE_A_STOP.sub(r"\1", " ".join(text.split()))

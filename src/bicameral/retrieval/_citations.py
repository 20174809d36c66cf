"""Citations: how a chunk is named in a text, what such a name points to, and whether an answer's citations are true.

A citation is the id of a document, `#`, and the first twelve digits of the chunk's fingerprint:
`handbook/travel.md#3f2a91c07b64`. It names what the text said: when the document changes there, the citation does not
point to something else, it says that the document has changed. In an answer every citation must name a chunk that its
writer was shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import unquote

from bicameral.retrieval._documents import Chunk, StoredDocument, TextDocument
from bicameral.retrieval._text import TextUnit, split_sections

DIGITS = 12
_MAX_REMEMBERED = 4_096
_PLAIN_CHARACTERS = frozenset("-._~/:@+")
_NAME_CHARACTERS = r"\w\-.~/:@+%"
CITATION_PATTERN = re.compile(rf"(?<![{_NAME_CHARACTERS}])[{_NAME_CHARACTERS}]++#[0-9a-f]{{{DIGITS}}}(?![\w#])")
"""A citation in a text."""
_CITATION_PARTS = re.compile(rf"([{_NAME_CHARACTERS}]++)#([0-9a-f]{{{DIGITS}}})")
_HASH_MARK = re.compile(r"\S#\S")
_ROUND_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True)
class ResolvedCitation:
    """The citation points to this text, which stands in its document now, word for word."""

    citation: str
    chunk: Chunk
    document: TextDocument


@dataclass(frozen=True, slots=True)
class ChangedCitation:
    """The document is here, and no longer says what was cited."""

    citation: str
    document: str


@dataclass(frozen=True, slots=True)
class GoneCitation:
    """The document was taken out of the index."""

    citation: str
    document: str


@dataclass(frozen=True, slots=True)
class InventedCitation:
    """This names nothing that was ever here, as far as the index remembers."""

    citation: str
    why: str


Resolution = ResolvedCitation | ChangedCitation | GoneCitation | InventedCitation


def cite(chunk: Chunk) -> str:
    """The citation of a chunk; the same text in the same document always has the same.

    Example:
        >>> cite(chunk)
        'travel.md#3f2a91c07b64'
    """
    return f"{_escape_name(chunk.document)}#{chunk.fingerprint[:DIGITS]}"


def render_passage(chunk: Chunk) -> str:
    """A chunk as a model is shown it: its citation in brackets, then its text.

    What looks like a citation in the text itself is spelt apart, so that nothing in a document can pass for the
    beginning of another, or lend its words another's name.
    """
    return f"[{cite(chunk)}]\n{defuse_citations(chunk.text)}"


def defuse_citations(text: str) -> str:
    """A text in which nothing is read as a citation any more, nor as a failed one."""
    return "\n".join(_defuse_line(line) if _HASH_MARK.search(line) else line for line in text.split("\n"))


def _defuse_line(line: str) -> str:
    return CITATION_PATTERN.sub(lambda found: found[0].replace("#", "# "), line).translate(_ROUND_BRACKETS)


@dataclass
class PastChunks:
    """The chunks that were here once, by document; of each only the latest few thousand are remembered."""

    known: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def remember(self, document: str, fingerprints: Iterable[str]) -> None:
        kept = self.known.setdefault(document, {})
        for each in fingerprints:
            kept.pop(each[:DIGITS], None)
            kept[each[:DIGITS]] = None
        for each in list(kept)[:-_MAX_REMEMBERED]:
            del kept[each]


def resolve_citation(citation: str, held: Mapping[str, StoredDocument], past: PastChunks) -> Resolution:
    """What a citation points to among these documents."""
    found = _CITATION_PARTS.fullmatch(citation)
    if found is None:
        return InventedCitation(citation, f"it does not read DOCUMENT#{DIGITS} digits")
    name, digits = unquote(found[1]), found[2]
    if _escape_name(name) != found[1]:
        return InventedCitation(citation, "its document is not written the way citations are")
    if name in held:
        for chunk in held[name].chunks:
            if chunk.fingerprint.startswith(digits):
                return ResolvedCitation(citation, chunk, held[name].document)
        if digits in past.known.get(name, ()):
            return ChangedCitation(citation, name)
        return InventedCitation(citation, f"{name!r} never had such a part")
    if digits in past.known.get(name, ()):
        return GoneCitation(citation, name)
    return InventedCitation(citation, f"there is no document {name!r}")


def _escape_name(name: str) -> str:
    """The id of a document as it stands in a citation: nothing in it that could end the citation."""
    return "".join(
        character if character.isalnum() or character in _PLAIN_CHARACTERS else _percent_encode(character)
        for character in name
    )


def _percent_encode(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


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
    """Who knows what citations point to: an `Index`."""

    def resolve(self, citation: str) -> Resolution: ...


@dataclass(frozen=True, slots=True)
class AnswerCitation:
    """One citation of an answer."""

    citation: str
    span: tuple[int, int]
    """Where it stands in the answer."""
    claim: str
    """The sentence that it is given for; whether the chunk says so too is for a judge."""
    chunk: Chunk | None
    """What it points to among the chunks that were shown."""
    fault: CitationFault | None
    resolution: Resolution | None
    """For one that was not shown, what the index knows about it, if it was asked."""


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """What was found in an answer, in order."""

    cited: tuple[AnswerCitation, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no fault. An answer without citations has none; see `chunks` for what it rests on."""
        return not self.faults

    @property
    def faults(self) -> tuple[AnswerCitation, ...]:
        return tuple(each for each in self.cited if each.fault)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The shown chunks that are cited, each once."""
        return tuple({cite(each.chunk): each.chunk for each in self.cited if each.chunk}.values())


def check_citations(answer: str, shown: Sequence[Chunk], index: CitationResolver | None = None) -> CitationCheck:
    """Find the citations of an answer and hold them against the chunks that its writer was shown.

    Example:
        >>> checked = check_citations(reply.text, found.chunks, index)
        >>> [each.citation for each in checked.faults]
        ['travel.md#000000000000']
    """
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
    """Every citation of the right form, wherever it stands, and what is meant as one in square brackets."""
    yield from (found.span() for found in CITATION_PATTERN.finditer(answer))
    for brackets in _BRACKETS.finditer(answer):
        for piece in _PIECE.finditer(answer, *brackets.span(1)):
            if _CITATION_ATTEMPT.fullmatch(piece[0]) and not CITATION_PATTERN.search(piece[0]):
                yield piece.span()


def _claim_around(answer: str, at: int, units: Sequence[TextUnit]) -> str:
    """The sentence around a citation; of one that stands behind the full stop, the sentence before it."""
    number = bisect_right(units, at, key=lambda unit: unit.start)
    around = [
        (max(unit.start, at - _MAX_CLAIM), min(unit.end, at + _MAX_CLAIM))
        for unit in reversed(units[max(0, number - _CLAIM_UNITS) : number])
    ]
    for start, end in around:
        # In the sentence itself words must stand before the citation.
        if _WORD.search(_strip_citations(answer[start : min(end, at)])):
            return _strip_citations(answer[start:end])
    return _strip_citations(answer[slice(*around[0])]) if around else ""


def _strip_citations(words: str) -> str:
    """A sentence without its citations."""
    left = _EMPTY_BRACKETS.sub("", CITATION_PATTERN.sub("", words))
    return _BEFORE_A_STOP.sub(r"\1", " ".join(left.split()))

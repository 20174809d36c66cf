"""Citations: how a chunk is named in a text, what such a name points to, and whether an answer's names are true.

A citation is the id of a document, `#`, and the first twelve digits of the chunk's fingerprint:
`handbook/travel.md#3f2a91c07b64`. It names what the text said: when the document changes there, the citation does not
point to something else, it says that the document has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from ._documents import Chunk, Document
from ._held import Held

DIGITS = 12
_MOST_REMEMBERED = 4_096
_PLAIN = frozenset("-._~/:@+")
_NAME = r"\w\-.~/:@+%"
FORM = re.compile(rf"(?<![{_NAME}])[{_NAME}]++#[0-9a-f]{{{DIGITS}}}(?![\w#])")
"""A citation in a text."""
_PARTS = re.compile(rf"([{_NAME}]++)#([0-9a-f]{{{DIGITS}}})")
_MARK = re.compile(r"\S#\S")
_ROUND = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True)
class Resolved:
    """The citation points to this text, which stands in its document now, word for word."""

    citation: str
    chunk: Chunk
    document: Document


@dataclass(frozen=True, slots=True)
class Changed:
    """The document is here, and no longer says what was cited."""

    citation: str
    document: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The document was taken out of the index."""

    citation: str
    document: str


@dataclass(frozen=True, slots=True)
class Invented:
    """This names nothing that was ever here, as far as the index remembers."""

    citation: str
    why: str


Resolution = Resolved | Changed | Gone | Invented


def cite(chunk: Chunk) -> str:
    """The citation of a chunk; the same text in the same document always has the same.

    Example:
        >>> cite(chunk)
        'travel.md#3f2a91c07b64'
    """
    return f"{_written(chunk.document)}#{chunk.fingerprint[:DIGITS]}"


def passage(chunk: Chunk) -> str:
    """A chunk as a model is shown it: its citation in brackets, then its text.

    What looks like a citation in the text itself is spelt apart, so that nothing in a document can pass for the
    beginning of another, or lend its words another's name.
    """
    return f"[{cite(chunk)}]\n{defused(chunk.text)}"


def defused(text: str) -> str:
    """A text in which nothing is read as a citation any more, nor as a failed one."""
    return "\n".join(_defused(line) if _MARK.search(line) else line for line in text.split("\n"))


def _defused(line: str) -> str:
    return FORM.sub(lambda found: found[0].replace("#", "# "), line).translate(_ROUND)


@dataclass
class Past:
    """The chunks that were here once, by document; of each only the latest few thousand are remembered."""

    known: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def remember(self, document: str, fingerprints: Iterable[str]) -> None:
        kept = self.known.setdefault(document, {})
        for each in fingerprints:
            kept.pop(each[:DIGITS], None)
            kept[each[:DIGITS]] = None
        for each in list(kept)[:-_MOST_REMEMBERED]:
            del kept[each]


def resolve(citation: str, held: Mapping[str, Held], past: Past) -> Resolution:
    """What a citation points to among these documents."""
    found = _PARTS.fullmatch(citation)
    if found is None:
        return Invented(citation, f"it does not read DOCUMENT#{DIGITS} digits")
    name, digits = unquote(found[1]), found[2]
    if _written(name) != found[1]:
        return Invented(citation, "its document is not written the way citations are")
    if name in held:
        for chunk in held[name].chunks:
            if chunk.fingerprint.startswith(digits):
                return Resolved(citation, chunk, held[name].document)
        if digits in past.known.get(name, ()):
            return Changed(citation, name)
        return Invented(citation, f"{name!r} never had such a part")
    if digits in past.known.get(name, ()):
        return Gone(citation, name)
    return Invented(citation, f"there is no document {name!r}")


def _written(name: str) -> str:
    """The id of a document as it stands in a citation: nothing in it that could end the citation."""
    return "".join(
        character if character.isalnum() or character in _PLAIN else _escaped(character) for character in name
    )


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))

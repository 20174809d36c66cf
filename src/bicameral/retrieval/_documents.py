"""Documents, and the chunks of them that are found and cited."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from bicameral.errors import RetrievalError
from bicameral.labels import UNKNOWN, Label

MAX_ID = 200
MAX_TEXT = 20_000_000
_LONGEST_CONTEXT = 160


def fingerprint(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def corpus_fingerprint(documents: Iterable[Document]) -> str:
    """One hash of documents, in whatever order: of their ids and their texts."""
    lines = sorted(f"{document.fingerprint} {document.id}\n" for document in documents)
    return fingerprint("".join(lines))


@dataclass(frozen=True, slots=True)
class Document:
    """A text under a name of its owner's choosing, and the label that everything read out of it carries.

    Example:
        >>> Document("handbook/travel.md", text, Label({Source("user", "request")}))
    """

    id: str
    text: str = field(repr=False)
    label: Label = UNKNOWN
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "fingerprint", fingerprint(self.text))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document: `text` is exactly `document.text[start:end]`."""

    document: str
    document_fingerprint: str
    start: int
    end: int
    text: str = field(repr=False)
    headings: tuple[str, ...]
    """Under which headings of its own document it stands, the outermost first."""
    label: Label
    """The document's."""
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", fingerprint(self.text))

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def context(self) -> str:
        """What is searched: the text, below those of its headings that do not stand in it."""
        above = " > ".join(heading for heading in self.headings if heading not in self.text)
        return f"{above[-_LONGEST_CONTEXT:]}\n{self.text}" if above else self.text


def chunk_of(document: Document, start: int, end: int, headings: tuple[str, ...]) -> Chunk:
    """The chunk of a document at a place; its label and fingerprint are not for anybody to choose."""
    text = document.text[start:end]
    return Chunk(document.id, document.fingerprint, start, end, text, headings, document.label)


def _check(document: Document) -> None:
    name, text, label = document.id, document.text, document.label
    # By their exact types: what only behaves like a text or a label could behave otherwise later.
    if type(name) is not str or not name.strip() or len(name) > MAX_ID or not name.isprintable():
        raise _bad(f"{str(name)[:MAX_ID]!r} cannot be the id of a document", f"1 to {MAX_ID} printable characters")
    if type(text) is not str or not writable(text):
        raise _bad(f"what is given as the text of {name!r} is none", "text that can be written as UTF-8")
    if len(text) > MAX_TEXT:
        raise _bad(f"{name!r} has {len(text):,} characters", f"at most {MAX_TEXT:,}; split it into several documents")
    if type(label) is not Label:
        raise _bad(f"the label of {name!r} is a {type(label).__name__}", "a Label")


def writable(text: str) -> bool:
    """Whether a text has no halves of characters in it, which broken bytes leave behind."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _bad(message: str, expected: str) -> RetrievalError:
    return RetrievalError("retrieval.bad-document", message, expected=expected)

"""What a store of records gives back: records with their origin, their review and their label; tombstones; limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from bicameral.errors import Place, RecordError
from bicameral.labels import (
    Label,
    Labelled,
    LabelTree,
    Source,
    label_tree_to_json,
    open_labelled,
)
from bicameral.types import to_plain, value_to_json

T = TypeVar("T")
RecordState = Literal["proposed", "accepted", "refused", "withdrawn"]

MAX_NAME = 200
MAX_REASON = 1_000


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a version comes from.

    Args:
        author: Who or what wrote it: a person, a role of a model, a pattern.
        run: The run in which it was written.
        place: The place in that run.
        source: What it was made from, in the program's words.
        at: When it was written.
    """

    author: str
    run: str = ""
    place: str = ""
    source: str = ""
    at: float = 0.0

    def __post_init__(self) -> None:
        check_name(self.author, "the author")
        for what, text in (("the run", self.run), ("the place", self.place), ("the source", self.source)):
            check_text(text, what, MAX_NAME)


@dataclass(frozen=True, slots=True)
class Review:
    """What a person decided about a proposal."""

    by: str
    at: float
    accepted: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Record(Generic[T]):
    """One version of a record. Only the current one of an accepted record is served by `get`, `all` and `find`."""

    id: str
    owner: str
    collection: str
    version: int
    value: Labelled[T]
    state: RecordState
    provenance: Provenance
    base: int
    """The version that was current when this one was written; 0 if there was none."""
    review: Review | None
    superseded_by: int | None
    """The later version that took its place."""
    written_label: Label
    """The label with which it was written, before anybody accepted it."""
    seal: str
    """The hash of its entry and of everything in the collection before it."""

    @property
    def label(self) -> Label:
        return self.value.label

    @property
    def sources(self) -> tuple[str, ...]:
        """The untrusted sources that it was made from, as a person reads them."""
        return tuple(str(source) for source in self.written_label.third_parties)

    @property
    def is_current(self) -> bool:
        """Whether it is served: accepted, and neither superseded nor withdrawn."""
        return self.state == "accepted" and self.superseded_by is None

    def to_json(self) -> dict[str, Any]:
        """Everything about this version as JSON, for a person or a file. Its value leaves the label behind."""
        origin = self.provenance
        return {
            "id": self.id,
            "owner": self.owner,
            "collection": self.collection,
            "version": self.version,
            "state": self.state,
            "superseded_by": self.superseded_by,
            "value": value_to_json(to_plain(open_labelled(self.value))),
            "label": label_tree_to_json(self.value.label_tree),
            "sources": list(self.sources),
            "author": origin.author,
            "run": origin.run,
            "place": origin.place,
            "source": origin.source,
            "at": origin.at,
            "base": self.base,
            "review": None if self.review is None else _review_json(self.review),
            "seal": self.seal,
        }


def _review_json(review: Review) -> dict[str, Any]:
    return {"by": review.by, "at": review.at, "accepted": review.accepted, "reason": review.reason}


@dataclass(frozen=True, slots=True)
class Proposal(Generic[T]):
    """What a reviewer is shown: the record, its value, and the untrusted sources that it was made from."""

    record: Record[T]
    value: T
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of an erased record."""

    id: str
    owner: str
    collection: str
    at: float
    by: str

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "owner": self.owner, "collection": self.collection, "at": self.at, "by": self.by}


@dataclass(frozen=True, slots=True)
class RecordErasure:
    """What an erasure removed.

    `scrubbed` says whether the files are free of traces; traces can remain while another process has them open.
    """

    records: tuple[str, ...]
    versions: int
    scrubbed: bool


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """How much one owner may keep in one collection.

    Proposals have a limit of their own: untrusted text that proposes again and again takes no room from anything else.
    """

    records: int = 10_000
    proposals: int = 1_000
    value_bytes: int = 262_144
    entries: int = 200_000


def endorsed_label(tree: LabelTree) -> Label:
    """The label after a person has accepted a value: its source is the user, and its readers stay as they were."""
    return Label({Source("user", "endorsed")}, tree.flat.readers)


def check_name(text: object, what: str) -> str:
    """A name that is shown and stored without a label; an error for anything that is no short line of text."""
    if text == "":
        raise RecordError("records.bad-name", f"{what} must not be empty")
    return check_text(text, what, MAX_NAME)


def check_text(text: object, what: str, most: int) -> str:
    if type(text) is not str or len(text) > most or not text.isprintable():
        raise RecordError("records.bad-name", f"{what} must be one line of at most {most} printable characters")
    return text


def not_found_error(place: str, nearest: str | None = None) -> RecordError:
    # The id is not quoted: a model may have made it up of untrusted text.
    return RecordError(
        "records.not-found", "there is no accepted record with this id", place=Place(file=place), nearest=nearest
    )

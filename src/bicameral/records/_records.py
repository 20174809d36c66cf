"""A store of records: what patterns and programs keep between runs, of one owner and one type.

A value is written with its label and comes back with it. What is trusted is accepted by being written; what untrusted
text had a hand in waits until a named person accepts it, and nothing else makes it current.
"""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Generic, Literal, TypeVar, cast

from bicameral.errors import Place, RecordError, nearest_name
from bicameral.journal import NumberTaken
from bicameral.labels import (
    Label,
    Labelled,
    join_all,
    make_labelled,
    note_own_words,
    open_labelled,
    remember_released,
    taint,
    vouched_value,
)
from bicameral.records._ledger import (
    EntryStore,
    Ledger,
    LedgerDamage,
    LedgerState,
    NewEntry,
    StoredVersion,
    erasure_entry,
    review_entry,
    value_size,
    withdrawal_entry,
    written_entry,
)
from bicameral.records._record import (
    MAX_REASON,
    Proposal,
    Provenance,
    Record,
    RecordErasure,
    RecordLimits,
    RecordState,
    Tombstone,
    check_name,
    check_text,
    not_found_error,
)
from bicameral.records._values import RecordKind, text_of
from bicameral.text import index_words
from bicameral.types import RecordType, Type

T = TypeVar("T")
Reviewer = Callable[[Proposal[T]], Awaitable[bool]]
"""Asks a person about a proposal. Only True accepts it."""
_ATTEMPTS = 50


def open_entries(place: str | Path) -> EntryStore:
    """The store of entries in a file or at an address; it is created if it does not exist."""
    address = str(place)
    kind, separator, rest = address.partition("://")
    if isinstance(place, Path) or not separator:
        from bicameral.records._sqlite import SqliteEntries

        return SqliteEntries(Path(place))
    if kind.partition("+")[0] in ("postgresql", "postgres"):
        from bicameral.records._postgres import PostgresEntries

        return PostgresEntries(f"postgresql://{rest}")
    if kind == "sqlite" and rest.startswith("/"):
        from bicameral.records._sqlite import SqliteEntries

        return SqliteEntries(Path(rest[1:]))
    raise RecordError(
        "records.unknown-address",
        f"there are no records at {kind}://",
        expected="a file, sqlite:///FILE or postgresql://USER@HOST/DATABASE",
    )


def record_collections(place: str | Path) -> tuple[tuple[str, str], ...]:
    """The owners and collections in a store, for the person whose store it is."""
    store = open_entries(place)
    try:
        return tuple(store.ledgers())
    finally:
        store.close()


class Records(Generic[T]):
    """The records of one owner in one collection, in a SQLite file or a PostgreSQL database.

    Nothing of another owner can be read or written with it. Other processes may use the same store.

    Args:
        place: A path, `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`.
        kind: The type of the values: a dataclass, a `TypedDict`, or a type of plans.
        owner: Whose records these are.
        collection: What they are, such as `skills`.
        limits: How much may be kept.
        review: `"untrusted"` if only what is untrusted waits for a person, `"all"` if everything does.
        known: The seal of an entry that must be there. A chain cannot show that its end was cut off, or that all of it
            was written anew; whoever needs this stores the last `seal` elsewhere.
        wait: Seconds to wait for somebody who holds the collection, before `records.in-use`.
        clock: The time of new entries.

    Example:
        >>> facts = Records(folder / "records.db", Fact, owner="ada", collection="facts")
        >>> fact = facts.add(from_user(Fact("Ghent", 270473)), author="Ada")
        >>> facts.get(fact.id).state
        'accepted'
    """

    def __init__(
        self,
        place: str | Path,
        kind: type[T] | Type,
        *,
        owner: str,
        collection: str,
        limits: RecordLimits | None = None,
        review: Literal["untrusted", "all"] = "untrusted",
        known: str | None = None,
        wait: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = Ledger(check_name(owner, "the owner"), check_name(collection, "the collection"))
        self._kind: RecordKind[T] = RecordKind(kind)
        self._limits = limits or RecordLimits()
        # Anything but the exact word that lets trusted values pass makes all of them wait.
        self._review_all = review != "untrusted"
        self._known = known
        self._wait = wait
        self._clock = clock
        self._store = open_entries(place)
        self._cached: tuple[object, LedgerState] | None = None
        # Reading the state, deciding and appending must not interleave with another thread of this object.
        self._lock = RLock()
        # Whoever keeps records for the life of a program need not close them.
        self._close = weakref.finalize(self, self._store.close)

    @property
    def owner(self) -> str:
        return self._ledger.owner

    @property
    def collection(self) -> str:
        return self._ledger.collection

    @property
    def name(self) -> str:
        """The file, or the address of the database without its password."""
        return self._store.name

    def __enter__(self) -> Records[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._close()

    # Reading --------------------------------------------------------------------------------------------------------

    def get(self, id: str) -> Record[T]:
        """The current version of a record; `records.not-found` if it has none."""
        state = self._state()
        found = state.current(id)
        if found is None:
            raise not_found_error(self.name, nearest_name(id, [each.id for each in state.served()]))
        return self._record(found)

    def all(self) -> tuple[Record[T], ...]:
        """The current version of every record, in the order in which the records were begun."""
        return tuple(self._record(each) for each in self._state().served())

    def find(self, words: str = "", *, most: int | None = None, **fields: object) -> tuple[Record[T], ...]:
        """The current records with these values of fields; with `words` those that have some of them, the best first.

        Which records are found depends on all of them, so each value carries the labels of all.
        """
        served = self._state().served()
        wanted = {name: self._field_json(name, value) for name, value in fields.items()}
        found = [each for each in served if _has_fields(each.value, wanted)]
        if words:
            asked = frozenset(index_words(words))
            scores = [(_shared_words(asked, each), each) for each in found]
            found = [each for score, each in sorted(scores, key=lambda pair: -pair[0]) if score > 0]
        choice = join_all(each.tree.flat for each in served)
        return tuple(self._record(each, choice) for each in found[:most])

    def pending(self) -> tuple[Record[T], ...]:
        """The proposals that wait for a person, with the labels of what wrote them."""
        return tuple(self._record(each) for each in self._state().pending())

    def history(self, id: str) -> tuple[Record[T], ...]:
        """Every version of a record in the order of writing: superseded, refused and withdrawn ones as well."""
        return tuple(self._record(each) for each in self._state().versions.get(id, ()))

    def versions(self) -> tuple[Record[T], ...]:
        """Every version of every record, in the order in which the records were begun."""
        return tuple(self._record(each) for versions in self._state().versions.values() for each in versions)

    def ids(self) -> tuple[str, ...]:
        """The ids of all records that were not erased, whatever their state."""
        return tuple(self._state().versions)

    def tombstones(self) -> tuple[Tombstone, ...]:
        """What is left of erased records."""
        return tuple(self._state().tombstones)

    @property
    def label(self) -> Label:
        """The label of how many records there are and which: the join of all current ones."""
        return join_all(each.tree.flat for each in self._state().served())

    @property
    def seal(self) -> str:
        """The seal of the last entry; empty if there is none. It can be given as `known` later."""
        seals = self._state().seals
        return seals[-1] if seals else ""

    @contextmanager
    def hold(self) -> Generator[None]:
        """Keep every process from writing to this collection meanwhile; several may hold it at the same time."""
        with self._store.hold(self._ledger, wait=self._wait):
            yield

    # Writing --------------------------------------------------------------------------------------------------------

    def add(
        self,
        value: Labelled[T],
        *,
        author: str,
        id: str | None = None,
        run: str = "",
        place: str = "",
        source: str = "",
    ) -> Record[T]:
        """Write a new record. One that untrusted text had a hand in is only proposed.

        Args:
            author: Who or what wrote it.
            id: A name for it, which stays after an erasure; a random one if it is not given.
            run: The run that writes it, `place` in it, and `source`: what it was made from.
        """
        origin = self._origin(author, run, place, source)
        return self._write(id, 0, value, origin, wait_for_person=False)

    def revise(
        self, record: Record[T], value: Labelled[T], *, author: str, run: str = "", place: str = "", source: str = ""
    ) -> Record[T]:
        """Write a new version of a record; `records.conflict` if `record` is not the current version any more."""
        origin = self._origin(author, run, place, source)
        return self._write(record.id, record.version, value, origin, wait_for_person=False)

    def propose(
        self,
        value: Labelled[T],
        *,
        author: str,
        of: Record[T] | None = None,
        id: str | None = None,
        run: str = "",
        place: str = "",
        source: str = "",
    ) -> Record[T]:
        """Write a proposal for a new record, or for a new version `of` one, which waits for a person in any case."""
        origin = self._origin(author, run, place, source)
        base, id = (0, id) if of is None else (of.version, of.id)
        return self._write(id, base, value, origin, wait_for_person=True)

    async def review(self, record: Record[T], reviewer: Reviewer[T], *, by: str) -> Record[T]:
        """Ask a person about a proposal, and accept or refuse it. Nobody else writes what they said."""
        value = open_labelled(record.value)
        # The program gets the text without its label: it is recognised if it comes back as somebody else's words.
        remember_released(value, record.value.label_tree)
        said = await reviewer(Proposal(record, value, record.sources))
        return self.accept(record, by=by) if said is True else self.refuse(record, by=by)

    def accept(self, record: Record[T], *, by: str, reason: str = "") -> Record[T]:
        """Make a proposal the current version: a person vouches for exactly this content, whose source they now are.

        `records.conflict` if it is not a proposal any more, or was made for a version that is not current any more.
        """
        return self._decide(record, by, reason, accepted=True)

    def refuse(self, record: Record[T], *, by: str, reason: str = "") -> Record[T]:
        """Refuse a proposal; it stays in the history and is never served."""
        return self._decide(record, by, reason, accepted=False)

    def withdraw(self, id: str, *, by: str, reason: str = "") -> None:
        """Serve a record no more, without erasing it; a later version may take its place."""
        by, reason = _check_decision(by, reason)

        def entries(state: LedgerState) -> list[NewEntry]:
            if id not in state.versions:
                raise not_found_error(self.name, nearest_name(id, list(state.versions)))
            return [withdrawal_entry(id, by, reason)]

        self._append(entries)

    def erase(self, *ids: str, by: str) -> RecordErasure:
        """Erase records: no version of them is left in the files, only that they were there, whose, and when erased."""
        return self._erase(ids, by)

    def erase_all(self, *, by: str) -> RecordErasure:
        """Erase every record of this owner in this collection."""
        return self._erase(None, by)

    # How it is done -------------------------------------------------------------------------------------------------

    def _origin(self, author: str, run: str, place: str, source: str) -> Provenance:
        # They are stored and shown without a label, so they must be the program's own words.
        vouched_value((author, run, place, source))
        return Provenance(author, run, place, source)

    def _write(
        self, id: str | None, base: int, value: Labelled[T], origin: Provenance, *, wait_for_person: bool
    ) -> Record[T]:
        data, tree = self._kind.to_json(open_labelled(value)), value.label_tree
        if value_size(data) > self._limits.value_bytes:
            raise self._full_error(f"a value may have {self._limits.value_bytes:,} bytes")
        name = uuid.uuid4().hex if id is None else check_name(_vouched_id(id), "the id")
        trusted = tree.flat.trusted and not self._review_all and not wait_for_person
        status: RecordState = "accepted" if trusted else "proposed"

        def entries(state: LedgerState) -> list[NewEntry]:
            if state.current_version(name) != base:
                raise self._conflict_error("this record was written in between" if base else "this record exists")
            self._check_room(state, status, is_new=not base)
            return [written_entry(name, state.counts.get(name, 0) + 1, base, status, data, tree, origin)]

        state = self._append(entries)
        return self._record(state.versions[name][-1])

    def _decide(self, record: Record[T], by: str, reason: str, *, accepted: bool) -> Record[T]:
        by, reason = _check_decision(by, reason)

        def entries(state: LedgerState) -> list[NewEntry]:
            found = state.version(record.id, record.version)
            # The seal says that it is this proposal, and not another that came to have its number.
            if found is None or found.seal != record.seal or found.state != "proposed":
                raise self._conflict_error("this is not a proposal that waits for a person")
            if accepted and found.base != state.current_version(record.id):
                raise self._conflict_error("this was proposed for a version that is not the current one any more")
            if accepted:
                self._check_room(state, "accepted", is_new=not found.base)
            return [review_entry(found, by, reason, accepted=accepted)]

        versions = self._append(entries).versions[record.id]
        return self._record(next(each for each in versions if each.version == record.version))

    def _erase(self, ids: Sequence[str] | None, by: str) -> RecordErasure:
        by, _ = _check_decision(by, "")
        erased: tuple[list[str], int] = ([], 0)

        def entries(state: LedgerState) -> list[NewEntry]:
            nonlocal erased
            chosen = list(state.versions) if ids is None else list(dict.fromkeys(ids))
            for id in chosen:
                if id not in state.versions:
                    raise not_found_error(self.name, nearest_name(id, list(state.versions)))
            erased = chosen, sum(len(state.versions[id]) for id in chosen)
            return [erasure_entry(id, by) for id in chosen]

        self._append(entries, erase=True)
        # Also when there was nothing to erase: an earlier erasure may have left traces.
        return RecordErasure(tuple(erased[0]), erased[1], self._store.scrub())

    def _append(self, entries: Callable[[LedgerState], list[NewEntry]], *, erase: bool = False) -> LedgerState:
        """Append what `entries` makes of the state, and return the state with it.

        Another process may append between reading and writing. The number is then taken, and it is decided anew.
        """
        with self._lock:
            for _ in range(_ATTEMPTS):
                state = self._state()
                rows = state.seal_entries(entries(state), self._clock())
                if not rows:
                    return state
                try:
                    (self._store.erase if erase else self._store.append)(self._ledger, rows, wait=self._wait)
                except NumberTaken:
                    self._cached = None
                    continue
                # Nobody has written in between, or the number had been taken.
                after = state.extended(rows)
                self._cached = (self._store.mark_after(self._cached[0] if self._cached else None, rows), after)
                return after
            raise self._conflict_error("others write to these records all the time")

    def _state(self) -> LedgerState:
        """The state of the ledger, read and verified anew if anybody has written."""
        with self._lock:
            # Before the rows: what is written between the two is read again the next time.
            mark = self._store.change_mark(self._ledger)
            if self._cached is not None and self._cached[0] == mark:
                return self._cached[1]
            try:
                state = LedgerState(self._ledger).extended(self._store.rows(self._ledger))
            except LedgerDamage as damage:
                raise self._damaged_error(str(damage)) from None
            if self._known is not None and self._known not in state.seals:
                raise self._damaged_error("the entry that is known to be there is not")
            self._cached = (mark, state)
            return state

    def _record(self, found: StoredVersion, choice: Label | None = None) -> Record[T]:
        try:
            value = self._kind.from_json(found.value)
        except (ValueError, TypeError):
            raise RecordError(
                "records.other-type",
                f"version {found.version} of record {found.id[:60]!r} is not of the type of the collection",
                place=Place(file=self.name),
                expected=str(self._kind.type),
                fix="Open the collection with the type that wrote it.",
            ) from None
        tree = found.tree if choice is None else taint(found.tree, choice)
        return Record(
            found.id,
            *self._ledger,
            found.version,
            make_labelled(value, tree),
            found.state,
            found.provenance,
            found.base,
            found.review,
            found.superseded_by,
            found.written_tree.flat,
            found.seal,
        )

    def _field_json(self, name: str, value: object) -> Any:
        type_ = self._kind.type
        field = type_.get(name) if isinstance(type_, RecordType) else None
        if field is None:
            raise RecordError("records.no-field", f"the records have no field {name!r}", expected=str(type_))
        return RecordKind[Any](field).to_json(value)

    def _check_room(self, state: LedgerState, status: RecordState, *, is_new: bool) -> None:
        limits = self._limits
        if len(state.seals) >= limits.entries:
            raise self._full_error(f"it may have {limits.entries:,} entries")
        if status == "proposed" and len(state.pending()) >= limits.proposals:
            raise self._full_error(f"{limits.proposals:,} proposals may wait")
        if status == "accepted" and is_new and len(state.served()) >= limits.records:
            raise self._full_error(f"it may have {limits.records:,} records")

    def _full_error(self, why: str) -> RecordError:
        return RecordError(
            "records.full",
            f"the collection {self.collection!r} takes no more: {why}",
            place=Place(file=self.name),
            fix="Erase or withdraw what is not needed, review what waits, or open it with other `limits`.",
        )

    def _conflict_error(self, why: str) -> RecordError:
        return RecordError(
            "records.conflict", why, place=Place(file=self.name), fix="Read the current version, and decide again."
        )

    def _damaged_error(self, why: str) -> RecordError:
        return RecordError(
            "records.damaged",
            f"the collection {self.collection!r} is not as it was written: {why}",
            place=Place(file=self.name),
            fix="Nothing in it is used or changed. Put a copy in its place that nobody has changed.",
        )


def _vouched_id(id: str) -> str:
    """An id, which is stored and shown without a label, so that it must be the program's own."""
    vouched_value(id)
    return id


def _check_decision(by: str, reason: str) -> tuple[str, str]:
    check_name(by, "the name of the person")
    check_text(reason, "the reason", MAX_REASON)
    note_own_words(reason)
    return by, reason


def _has_fields(value: Any, wanted: Mapping[str, Any]) -> bool:
    if not wanted:
        return True
    known = cast("dict[str, Any]", value if isinstance(value, dict) else {})
    return all(name in known and known[name] == each for name, each in wanted.items())


def _shared_words(asked: frozenset[str], found: StoredVersion) -> float:
    """The share of the words that a record has. It depends on that record alone."""
    return len(asked & frozenset(index_words(text_of(found.value)))) / len(asked) if asked else 0.0

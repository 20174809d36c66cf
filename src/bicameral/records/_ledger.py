"""The ledger of one owner's collection: a chain of sealed entries, and the state of the records that they add up to.

Entries are appended and never changed. An erasure empties the bodies of a record's entries and leaves their seals, so
that the rest of the chain stays verifiable. Everything that a writer must obey is checked again when a ledger is read:
the seals show only that nothing was changed afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, cast

from bicameral.errors import BicameralError
from bicameral.journal import EventRow, check_chain, dumps, seal_event
from bicameral.labels import LabelTree, label_tree_from_json, label_tree_to_json
from bicameral.records._record import Provenance, RecordState, Review, Tombstone, endorsed_label

EntryAction = Literal["written", "accepted", "refused", "withdrawn", "erased"]
_WRITTEN_KEYS = {"value", "label", "author", "run", "place", "source", "base", "version", "state"}
_REVIEW_KEYS = {"version", "seal", "by", "reason"}
_WITHDRAWAL_KEYS = {"by", "reason"}
_ERASURE_KEYS = {"by"}
_DIGEST_BYTES = 32


class Ledger(NamedTuple):
    """One owner's collection. No query of a store concerns more than one of them."""

    owner: str
    collection: str

    @property
    def key(self) -> str:
        """Both names in one text, which every seal covers: an entry of another owner breaks the chain."""
        return json.dumps(self, separators=(",", ":"))


class EntryStore(Protocol):
    """Stores the entries of ledgers. Failures are `RecordError`s with a fix; several threads may use it."""

    @property
    def name(self) -> str:
        """The store's name for messages, without a password."""
        ...

    def rows(self, ledger: Ledger) -> list[EventRow]:
        """The entries of a ledger in order."""
        ...

    def append(self, ledger: Ledger, rows: Sequence[EventRow], *, wait: float) -> None:
        """Store entries durably, all or none; `NumberTaken` if one of the numbers is in use.

        `records.in-use` if somebody holds the ledger for longer than `wait` seconds.
        """
        ...

    def erase(self, ledger: Ledger, marks: Sequence[EventRow], *, wait: float) -> None:
        """Append the marks and empty all earlier entries of their records, all or nothing; else as `append`."""
        ...

    def scrub(self) -> bool:
        """Remove erased content from the files as well; False if other processes prevent it at the moment."""
        ...

    def ledgers(self) -> list[Ledger]:
        """Every ledger in the store, for the person whose store it is."""
        ...

    def change_mark(self, ledger: Ledger) -> object:
        """A value that differs once another connection has written to a ledger."""
        ...

    def mark_after(self, mark: object, rows: Sequence[EventRow]) -> object:
        """The mark after rows that this connection has appended, given the one before them."""
        ...

    def hold(self, ledger: Ledger, *, wait: float) -> AbstractContextManager[None]:
        """Keep everybody from writing to a ledger; several may do so at the same time."""
        ...

    def close(self) -> None: ...


class LedgerDamage(Exception):
    """Why a ledger is not as it was written. The words never quote what is in it."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version as it is stored; its value is JSON."""

    id: str
    version: int
    value: Any
    tree: LabelTree
    written_tree: LabelTree
    state: RecordState
    provenance: Provenance
    base: int
    seal: str
    review: Review | None = None
    superseded_by: int | None = None

    @property
    def is_current(self) -> bool:
        return self.state == "accepted" and self.superseded_by is None


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry before it is sealed."""

    action: EntryAction
    record: str
    body: Mapping[str, Any]


@dataclass
class LedgerState:
    """The records of a ledger after some entries."""

    ledger: Ledger
    versions: dict[str, list[StoredVersion]] = field(default_factory=dict[str, list[StoredVersion]])
    """The versions of each record that was not erased."""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """How many versions of each record were written, erased ones included."""
    tombstones: list[Tombstone] = field(default_factory=list[Tombstone])
    seals: list[str] = field(default_factory=list[str])

    def current(self, id: str) -> StoredVersion | None:
        """The version that is served, if there is one."""
        return next((each for each in reversed(self.versions.get(id, ())) if each.is_current), None)

    def current_version(self, id: str) -> int:
        found = self.current(id)
        return 0 if found is None else found.version

    def served(self) -> list[StoredVersion]:
        """The current version of every record, in the order in which the records were begun."""
        return [found for id in self.versions if (found := self.current(id)) is not None]

    def pending(self) -> list[StoredVersion]:
        return [each for versions in self.versions.values() for each in versions if each.state == "proposed"]

    def version(self, id: str, number: int) -> StoredVersion | None:
        return next((each for each in self.versions.get(id, ()) if each.version == number), None)

    def seal_entries(self, entries: Iterable[NewEntry], at: float) -> list[EventRow]:
        """The entries as rows that follow the last one."""
        rows: list[EventRow] = []
        before, number = self.seals[-1] if self.seals else "", len(self.seals)
        for entry in entries:
            body = json.dumps(entry.body, sort_keys=True, separators=(",", ":"), allow_nan=False)
            rows.append(seal_event(before, self.ledger.key, number, at, entry.action, entry.record, body))
            before, number = rows[-1].seal, number + 1
        return rows

    def extended(self, rows: Sequence[EventRow]) -> LedgerState:
        """The state after more entries. This one stays as it is: other threads may be reading it."""
        after = LedgerState(
            self.ledger, dict(self.versions), dict(self.counts), list(self.tombstones), list(self.seals)
        )
        for id in {row.step for row in rows} & after.versions.keys():
            after.versions[id] = list(after.versions[id])
        after._apply(rows)
        return after

    # Reading --------------------------------------------------------------------------------------------------------

    def _apply(self, rows: Sequence[EventRow]) -> None:
        """Add what entries say; `LedgerDamage` if they are not as a store writes them."""
        marked = {row.step: row.number for row in rows if row.kind == "erased"}
        before = self.seals[-1] if self.seals else ""
        for row, fault in check_chain(rows, before, len(self.seals)):
            if fault is not None or len(row.digest) != _DIGEST_BYTES or row.run != self.ledger.key:
                raise LedgerDamage(f"entry {row.number} is not what was written, or the one before it is missing")
            if row.is_erased:
                if row.kind == "erased" or row.number >= marked.get(row.step, -1):
                    raise LedgerDamage(f"entry {row.number} was emptied, and nothing says that it was erased")
                self.counts[row.step] = self.counts.get(row.step, 0) + (row.kind == "written")
            else:
                if row.kind != "erased" and row.number < marked.get(row.step, -1):
                    raise LedgerDamage(f"entry {row.number} is said to be erased and is not")
                self._apply_entry(row)
            self.seals.append(row.seal)

    def _apply_entry(self, row: EventRow) -> None:
        try:
            body = cast("dict[str, Any]", json.loads(row.body))
            match row.kind:
                case "written":
                    self._apply_written(row, body)
                case "accepted" | "refused":
                    self._apply_review(row, body)
                case "withdrawn":
                    _check_keys(body, _WITHDRAWAL_KEYS)
                    known = self.versions[row.step]
                    known[:] = [
                        replace(each, state="withdrawn") if each.state in ("accepted", "proposed") else each
                        for each in known
                    ]
                case "erased":
                    _check_keys(body, _ERASURE_KEYS)
                    self.versions.pop(row.step, None)
                    self.tombstones.append(Tombstone(row.step, *self.ledger, row.at, body["by"]))
                case _:
                    raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BicameralError):
            raise LedgerDamage(f"entry {row.number} says nothing that an entry can say") from None

    def _apply_written(self, row: EventRow, body: dict[str, Any]) -> None:
        _check_keys(body, _WRITTEN_KEYS)
        tree = label_tree_from_json(body["label"])
        version, base, state = body["version"], body["base"], body["state"]
        current = self.current(row.step)
        if version != self.counts.get(row.step, 0) + 1 or base != self.current_version(row.step):
            raise ValueError("it does not follow the version that was current")
        # What untrusted text had a hand in is never accepted by being written.
        if state != "proposed" and not (state == "accepted" and tree.flat.trusted):
            raise ValueError("nobody has accepted it")
        origin = Provenance(body["author"], body["run"], body["place"], body["source"], row.at)
        self.counts[row.step] = version
        versions = self.versions.setdefault(row.step, [])
        if state == "accepted" and current is not None:
            self._supersede(current, version)
        versions.append(StoredVersion(row.step, version, body["value"], tree, tree, state, origin, base, row.seal))

    def _apply_review(self, row: EventRow, body: dict[str, Any]) -> None:
        _check_keys(body, _REVIEW_KEYS)
        versions = self.versions[row.step]
        found = self.version(row.step, body["version"])
        # The seal of the proposal: a person's yes is for exactly what was shown.
        if found is None or found.state != "proposed" or found.seal != body["seal"] or not body["by"]:
            raise ValueError("there is no such proposal")
        accepted = row.kind == "accepted"
        review = Review(body["by"], row.at, accepted, body["reason"])
        tree, state = found.tree, "refused"
        if accepted:
            if found.base != self.current_version(row.step):
                raise ValueError("it was proposed for another version")
            tree, state = endorsed_label(found.tree), "accepted"
            if (current := self.current(row.step)) is not None:
                self._supersede(current, found.version)
        versions[versions.index(found)] = replace(found, tree=tree, state=state, review=review)

    def _supersede(self, old: StoredVersion, by: int) -> None:
        versions = self.versions[old.id]
        versions[versions.index(old)] = replace(old, superseded_by=by)


def _check_keys(body: Mapping[str, Any], keys: set[str]) -> None:
    if set(body) != keys or any(type(body[name]) is not str for name in ("by", "reason", "author") if name in keys):
        raise ValueError("it has other facts than such an entry")


def written_entry(
    id: str, version: int, base: int, state: RecordState, value: Any, tree: LabelTree, origin: Provenance
) -> NewEntry:
    body = {"value": value, "label": label_tree_to_json(tree), "base": base, "version": version, "state": state}
    body |= {"author": origin.author, "run": origin.run, "place": origin.place, "source": origin.source}
    return NewEntry("written", id, body)


def review_entry(found: StoredVersion, by: str, reason: str, *, accepted: bool) -> NewEntry:
    body = {"version": found.version, "seal": found.seal, "by": by, "reason": reason}
    return NewEntry("accepted" if accepted else "refused", found.id, body)


def withdrawal_entry(id: str, by: str, reason: str) -> NewEntry:
    return NewEntry("withdrawn", id, {"by": by, "reason": reason})


def erasure_entry(id: str, by: str) -> NewEntry:
    # Without a reason: it could quote what is erased.
    return NewEntry("erased", id, {"by": by})


def value_size(value: Any) -> int:
    """The bytes of a value as they are stored."""
    return len(dumps(value).encode("utf-8", "surrogatepass"))

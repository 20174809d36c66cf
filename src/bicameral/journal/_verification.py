"""Verification: every break in the record of runs, found from the seals, the values and the marks of erasures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from bicameral.journal._events import (
    COLUMNS,
    ERASED_KIND,
    Anchor,
    EventRow,
    JournalStore,
    blob_hashes,
    check_chain,
    erased_facts_hash,
    erasure_fault,
    row_from_values,
    unpack_value,
)

VerifyProgress = Callable[[int, int], None]
"""Gets how many runs were verified, and of how many; an error that it raises ends the verification."""


def find_breaks(store: JournalStore, run: str | None, progress: VerifyProgress | None = None) -> Iterator[str]:
    """Every break in the record of one run, or of all runs, as one line each."""
    runs = (
        [run] if run is not None else [row[0] for row in store.select("SELECT DISTINCT run FROM events ORDER BY run")]
    )
    for number, run_id in enumerate(runs):
        if progress is not None:
            progress(number, len(runs))
        # No value is interpolated, only constant names.
        query = f"SELECT {COLUMNS} FROM events WHERE run = ? ORDER BY number"  # noqa: S608
        yield from _run_breaks(store, [row_from_values(row) for row in store.select(query, (run_id,))])
    if progress is not None:
        progress(len(runs), len(runs))
    if run is None:
        yield from _blob_breaks(store)


def missing_anchors(store: JournalStore, known: Iterable[Anchor]) -> Iterator[str]:
    """Every known anchor that the record no longer contains: events up to it were cut off or rewritten."""
    for anchor in known:
        rows = store.select("SELECT seal FROM events WHERE run = ? AND number = ?", (anchor.run, anchor.number))
        if not rows:
            yield f"event {anchor.number} of run {anchor.run} is known to have been there, and is missing"
        elif rows[0][0] != anchor.seal:
            yield f"event {anchor.number} of run {anchor.run} has another seal than it is known to have had"


def _run_breaks(store: JournalStore, rows: list[EventRow]) -> Iterator[str]:
    for row, fault in check_chain(rows):
        if fault:
            yield fault
        elif not row.is_erased:
            yield from _body_breaks(store, row)
    if fault := erasure_fault(rows):
        yield fault
    marks = [row for row in rows if row.kind == ERASED_KIND and not row.is_erased]
    if marks and any(not row.digest for row in rows):
        body = _parse_body(marks[-1])
        if body is None or body.get("facts") != erased_facts_hash(row for row in rows if row.number < marks[-1].number):
            yield f"what is left of run {marks[-1].run} is not what was left when it was erased"


def _body_breaks(store: JournalStore, row: EventRow) -> Iterator[str]:
    body = _parse_body(row)
    if body is None:
        yield f"event {row.number} of run {row.run} cannot be read"
        return
    try:
        unpack_value(body, store.blob)
        needed = {hash_ for part in body.values() for hash_ in blob_hashes(part, store.blob)}
    except (ValueError, TypeError, AttributeError) as error:
        yield f"event {row.number} of run {row.run}: {error}"
        return
    if needed:
        kept = {hash_ for (hash_,) in store.select("SELECT hash FROM uses WHERE run = ?", (row.run,))}
        for hash_ in sorted(needed - kept):
            yield f"event {row.number} of run {row.run}: nothing keeps the value {hash_[:12]}"


def _blob_breaks(store: JournalStore) -> Iterator[str]:
    """Blobs that no run uses: an erasure would have deleted them."""
    query = "SELECT hash FROM blobs WHERE NOT EXISTS (SELECT 1 FROM uses WHERE uses.hash = blobs.hash)"
    for (hash_,) in store.select(query):
        yield f"the value {hash_[:12]} belongs to no run"


def _parse_body(row: EventRow) -> dict[str, Any] | None:
    try:
        body: object = json.loads(row.body)
    except ValueError:
        return None
    return cast("dict[str, Any]", body) if isinstance(body, dict) else None

"""Looking through the record for anything that is not as it was written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from ._blobs import hashes_in, unpack
from ._chain import COLUMNS, Row, facts_of, followed, row_of, unmarked
from ._events import ERASED, Anchor
from ._store import Store


def breaks_of(store: Store, run: str | None) -> Iterator[str]:
    """Every break in the record of one run, or of all, in a line each."""
    runs = (
        [run] if run is not None else [row[0] for row in store.select("SELECT DISTINCT run FROM events ORDER BY run")]
    )
    for each in runs:
        # Every name is one of ours.
        query = f"SELECT {COLUMNS} FROM events WHERE run = ? ORDER BY number"  # noqa: S608
        yield from _of_run(store, [row_of(row) for row in store.select(query, (each,))])
    if run is None:
        yield from _of_values(store)


def unanchored(store: Store, known: Iterable[Anchor]) -> Iterator[str]:
    """Every anchor that the record does not have any more: what came up to it was cut off or written anew."""
    for anchor in known:
        found = store.select("SELECT seal FROM events WHERE run = ? AND number = ?", (anchor.run, anchor.number))
        if not found:
            yield f"event {anchor.number} of run {anchor.run} is known to have been there, and is missing"
        elif found[0][0] != anchor.seal:
            yield f"event {anchor.number} of run {anchor.run} has another seal than it is known to have had"


def _of_run(store: Store, rows: list[Row]) -> Iterator[str]:
    for row, wrong in followed(rows):
        if wrong:
            yield wrong
        elif not row.erased:
            yield from _of_body(store, row)
    if wrong := unmarked(rows):
        yield wrong
    marks = [row for row in rows if row.kind == ERASED and not row.erased]
    if marks and any(not row.digest for row in rows):
        body = _body(marks[-1])
        if body is None or body.get("facts") != facts_of(row for row in rows if row.number < marks[-1].number):
            yield f"what is left of run {marks[-1].run} is not what was left when it was erased"


def _of_body(store: Store, row: Row) -> Iterator[str]:
    body = _body(row)
    if body is None:
        yield f"event {row.number} of run {row.run} cannot be read"
        return
    try:
        unpack(body, store.blob)
        needed = {hash_ for part in body.values() for hash_ in hashes_in(part, store.blob)}
    except (ValueError, TypeError, AttributeError) as error:
        yield f"event {row.number} of run {row.run}: {error}"
        return
    if needed:
        kept = {hash_ for (hash_,) in store.select("SELECT hash FROM uses WHERE run = ?", (row.run,))}
        for hash_ in sorted(needed - kept):
            yield f"event {row.number} of run {row.run}: nothing keeps the value {hash_[:12]}"


def _of_values(store: Store) -> Iterator[str]:
    query = "SELECT hash FROM blobs WHERE NOT EXISTS (SELECT 1 FROM uses WHERE uses.hash = blobs.hash)"
    for (hash_,) in store.select(query):
        yield f"the value {hash_[:12]} belongs to no run"


def _body(row: Row) -> dict[str, Any] | None:
    try:
        body: object = json.loads(row.body)
    except ValueError:
        return None
    return cast("dict[str, Any]", body) if isinstance(body, dict) else None

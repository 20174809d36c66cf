"""What the journal needs of a database, whichever it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ._chain import Row


class Taken(Exception):
    """An event with this number, or another beginning of this run, is there already."""


class Store(Protocol):
    """Keeps rows and blobs. Queries are written with `?` for values, and understood by every store.

    What goes wrong is a JournalError in words that help. All of it may be used from several threads.
    """

    @property
    def name(self) -> str:
        """What to call it in a message; no password is in it."""
        ...

    def append(self, rows: Sequence[Row], blobs: Mapping[str, bytes], *, sync: bool) -> None:
        """Store the rows of one run and the blobs that they need: all of them or none. `Taken` if one is there.

        With `sync` they, and all that was appended before, are on the disk when this returns.
        """
        ...

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """The rows of a query."""
        ...

    def blob(self, hash_: str) -> bytes | None:
        """The stored form of a blob."""
        ...

    def erase(self, mark: Row) -> tuple[int, int]:
        """Append the mark, empty all events of its run before it and drop the blobs that nobody needs any more.

        Says how many events and blobs went. `Taken` if the run went on meanwhile.
        """
        ...

    def scrub(self) -> bool:
        """Make sure that what was erased is in the files no more; False if others are using them just now."""
        ...

    def close(self) -> None: ...

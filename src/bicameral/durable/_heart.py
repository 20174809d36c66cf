"""The heart of a worker: a thread that says again and again that the worker is there, and hears what it must stop.

It is a thread with a connection of its own, so that neither a busy loop nor a crowd at the database keeps it from
beating. If it cannot be heard for as long as a lease holds, the worker's runs are no longer its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ._beating import Beat, beat

if TYPE_CHECKING:
    from ._database import Database


class Body(Protocol):
    """Whose heart it is."""

    def about(self) -> tuple[Mapping[str, Any], list[str], list[str]]:
        """Its row, the runs that it has, and the turns that it holds. Called from the heart's thread."""
        ...

    def heard(self, said: Beat, asked: list[str]) -> None:
        """What the database says of these runs."""
        ...

    def lost(self) -> None:
        """Nobody has heard of the worker for so long that its runs are no longer its own."""
        ...


class Heart:
    """Beats four times in a lease, until it is stopped."""

    def __init__(self, database: Database, body: Body, lease: float, post: Callable[..., object]) -> None:
        self._database = database
        self._body = body
        self._lease = lease
        self._post = post
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="bicameral-heart", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=self._lease + 5)
        self._database.close()

    def _beat(self) -> None:
        heard = time.monotonic()
        while not self._stop.wait(self._lease / 4):
            begun = time.monotonic()
            me, runs, turns = self._body.about()
            try:
                said = self._said(me, runs, turns)
            except Exception:
                # Whatever it is, nobody heard this beat.
                if time.monotonic() - heard > self._lease:
                    self._tell(self._body.lost)
            else:
                heard = begun
                self._tell(self._body.heard, said, runs)

    def _said(self, me: Mapping[str, Any], runs: list[str], turns: list[str]) -> Beat:
        database, lease = self._database, self._lease
        return database.transact(lambda db: beat(database, db, me, runs, turns, lease), patience=lease / 4)

    def _tell(self, what: Callable[..., None], *facts: object) -> None:
        try:
            self._post(what, *facts)
        except RuntimeError:
            # The loop is closed: there is nobody left to tell.
            self._stop.set()

"""HTTP with a limit on how slowly the head of a request may arrive."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""How long a client may take to send the head of a request."""


class HeadTimeoutProtocol(H11Protocol):
    """Closes a connection on which no complete request head arrives in time.

    Uvicorn's keep-alive timeout covers only the time between two requests. It ends with the first byte of the next
    one, and without this limit a client could hold a connection open with a head that never ends.
    """

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        elif self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        # Counted from the first byte, not from the last: a client that sends a byte now and then gains nothing.
        if self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._patience = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()

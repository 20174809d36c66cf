"""HTTP as uvicorn speaks it, with a limit on how long the head of a request may take to arrive."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0


class Impatient(H11Protocol):
    """Closes a connection over which no whole head of a request comes in time.

    Between two requests uvicorn's own timeout holds; it ends with the first byte of the next request, and from there on
    this one does.
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
        # Not from the last byte but from the first: a byte now and then is no reason to be patient.
        if self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._patience = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()

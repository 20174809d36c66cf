"""How much a server may send: limits by the minute, for programs and over HTTP, and a pace for reconnections.

A server decides when it writes, and each of its messages costs work here: it is parsed, handed on, perhaps answered.
What counts is what was asked: while a request of ours waits, a server may send much; while none does, next to nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable

from bicameral.tools import MIB

MAX_MESSAGES, MAX_BYTES = 10_000, 256 * MIB
"""Within a minute in which something is asked: progress of a long call, and results of many."""
MAX_IDLE_MESSAGES, MAX_IDLE_BYTES = 600, 16 * MIB
"""Within a minute in which nothing is: a legitimate server sends a few notifications and pings."""
WINDOW_SECONDS = 60.0

_FAST_RECONNECTIONS, _FAST_SECONDS, _SLOW_SECONDS = 10, 1.0, 30.0
"""So many connections after a request of ours may follow each other at the first distance, the others at the second."""
_LINE_END_TWICE = re.compile(rb"\n(?=\n)")


class InflowLimit:
    """Counts what one server sends. Used on one loop.

    Args:
        clock: Seconds since any moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: set[Hashable] = set()
        self._since = clock()
        self._messages = self._bytes = 0

    def note_request(self, identifier: Hashable) -> None:
        """A request of ours, which may be answered at length.

        Only a request: our answers to requests of the server are written because it asked, so that they must not give
        it another minute.
        """
        self._open.add(identifier)
        self._restart()

    def note_end(self, identifier: Hashable) -> None:
        """A request of ours is answered or given up."""
        self._open.discard(identifier)

    def problem(self, messages: int, size: int) -> str | None:
        """Count what came; returns why it is too much, or None."""
        if self._clock() - self._since >= WINDOW_SECONDS:
            self._restart()
        self._messages += messages
        self._bytes += size
        most, largest = (MAX_MESSAGES, MAX_BYTES) if self._open else (MAX_IDLE_MESSAGES, MAX_IDLE_BYTES)
        if self._messages > most:
            return f"it sent more than {most:,} messages that nobody had asked for"
        if self._bytes > largest:
            return f"it sent more than {largest:,} bytes that nobody had asked for"
        return None

    def _restart(self) -> None:
        self._since = self._clock()
        self._messages = self._bytes = 0


class EventCounter:
    """Counts the events in a stream of server-sent events as it arrives. A line may end with CR, LF or both."""

    def __init__(self) -> None:
        self._end = b""
        self._after_return = False

    def count(self, chunk: bytes) -> int:
        """How many events end in this part of the stream."""
        if self._after_return and chunk.startswith(b"\n"):
            # The second half of a line end that was cut in two.
            chunk = chunk[1:]
        if not chunk:
            return 0
        self._after_return = chunk.endswith(b"\r")
        text = self._end + chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._end = text[-1:]
        return len(_LINE_END_TWICE.findall(text))


class ReconnectPace:
    """How long to wait before the stream of a server is opened again: not as long as the server says, which may be 0.

    Args:
        clock: Seconds since any moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = 0.0
        self._count = 0

    def note_request(self) -> None:
        """A request of ours: what it is answered may come over streams that end early."""
        self._count = 0

    def delay(self) -> float:
        """The seconds to wait before the next connection, which is counted."""
        now = self._clock()
        begin = max(now, self._next)
        self._count += 1
        self._next = begin + (_FAST_SECONDS if self._count <= _FAST_RECONNECTIONS else _SLOW_SECONDS)
        return begin - now

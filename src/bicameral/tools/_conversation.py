"""Talk with one confined command: feed it, listen to it, and end it when it goes over a limit."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from ._starting import NeverBegan, has_begun, is_copy

if TYPE_CHECKING:
    from sandlock import Process, Result

_CHUNK = 64 * 1024
_COMPLAINTS = 16 * 1024
_LOOK_SECONDS = 0.5
"""How often a command that says nothing is looked at, until it is known to have begun."""
_REAP_SECONDS = 30.0
"""What is over is known at once, but on a busy machine its supervisor may come late: no reason to call it killed."""

Ended = Literal["exited", "not-started", "killed", "timeout", "output", "stopped"]


class Conversation:
    """One exchange: all of stdin goes in, stdout up to a limit and the end of stderr come out."""

    def __init__(self, process: Process, stdin: bytes, *, output: int, stop: int) -> None:
        self._process = process
        self._stdin = memoryview(stdin)
        self._limit = output
        self._stop = stop
        self._out = bytearray()
        self._err = bytearray()
        self._result: Result | None = None
        self._selector = selectors.DefaultSelector()
        self._begun = False

    @property
    def stdout(self) -> bytes:
        return bytes(self._out)

    @property
    def stderr(self) -> bytes:
        return bytes(self._err)

    def hold(self, deadline: float) -> tuple[Ended, int]:
        """See the command to its end, or end it; says how it ended and its exit code.

        Raises `NeverBegan` for one that hangs or is killed before that, and leaves it to the caller to end it.
        """
        with self._selector:
            alive = self._watch_exit()
            try:
                self._watch_streams()
                cut = self._exchange(deadline)
            finally:
                if alive is not None:
                    os.close(alive)
        if cut is not None:
            # Leaving its `with` block would kill it too, but the exit must be known before that.
            self._process.kill()
            self._process.wait(_REAP_SECONDS)
            return cut, -9
        return self._how_it_ended()

    def _watch_exit(self) -> int | None:
        pid = self._process.pid
        try:
            alive = os.pidfd_open(pid) if pid is not None else None
        except ProcessLookupError:
            alive = None
        if alive is None:
            self._exited()
        else:
            self._selector.register(alive, selectors.EVENT_READ, self._exited)
        return alive

    def _watch_streams(self) -> None:
        if self._stop >= 0:
            self._selector.register(self._stop, selectors.EVENT_READ, lambda: "stopped")
        self._selector.register(self._process.stdout, selectors.EVENT_READ, self._hear)
        self._selector.register(self._process.stderr, selectors.EVENT_READ, self._hear_complaint)
        if self._result is None and self._stdin:
            os.set_blocking(self._process.stdin.fileno(), False)
            self._selector.register(self._process.stdin, selectors.EVENT_WRITE, self._feed)
        elif self._result is None:
            self._process.stdin.close()

    def _exchange(self, deadline: float) -> Ended | None:
        while self._result is None or self._listening():
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            ready = self._selector.select(left if self._begun else min(left, _LOOK_SECONDS))
            if not ready and not self._begun:
                self._begun = self._process.pid is None or has_begun(self._process.pid)
            for key, _ in ready:
                act: Callable[[], Ended | None] = key.data
                if cut := act():
                    return cut
        return None

    def _listening(self) -> bool:
        known = self._selector.get_map()
        return self._process.stdout in known or self._process.stderr in known

    def _feed(self) -> None:
        try:
            written = os.write(self._process.stdin.fileno(), self._stdin[:_CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            written = len(self._stdin)  # it has read all that it wanted
        self._stdin = self._stdin[written:]
        if not self._stdin:
            self._selector.unregister(self._process.stdin)
            self._process.stdin.close()

    def _hear(self) -> Ended | None:
        if chunk := os.read(self._process.stdout.fileno(), _CHUNK):
            self._out += chunk[: self._limit - len(self._out) + 1]
            return "output" if len(self._out) > self._limit else None
        self._selector.unregister(self._process.stdout)
        return None

    def _hear_complaint(self) -> None:
        if chunk := os.read(self._process.stderr.fileno(), _CHUNK):
            self._err += chunk
            del self._err[:-_COMPLAINTS]
        else:
            self._selector.unregister(self._process.stderr)

    def _exited(self) -> None:
        """The command is over: what it left running is killed, and what it said is still heard to the end."""
        known = self._selector.get_map()
        for key in list(known.values()):
            if key.data == self._exited or key.data == self._feed:
                self._selector.unregister(key.fileobj)
        # Known only until it is buried.
        never_began = self._process.pid is not None and is_copy(self._process.pid)
        self._result = self._process.wait(_REAP_SECONDS)
        if never_began and self._how_it_ended()[0] == "killed":
            raise NeverBegan

    def _how_it_ended(self) -> tuple[Ended, int]:
        result = self._result
        if result is None or result.reason.name in ("KILLED", "TIMEOUT"):
            return "killed", -9
        if result.reason.name == "SIGNALED":
            return "exited", -result.signal
        if result.exit_code == 127 and self._err.startswith(b"sandlock child: exec"):
            return "not-started", 127
        return "exited", result.exit_code

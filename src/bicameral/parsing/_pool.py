"""The parent's side: a pool of parser processes, and the frames exchanged with them.

Each process answers one request at a time within its limits. A frame is a kind, JSON text and bytes, preceded by
their lengths.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bicameral.errors import ToolError

FRAME_PREFIX = struct.Struct(">cQQ")
"""The kind, and the lengths of the JSON text and of the body."""

REQUEST, HELLO, VALUE, ERROR, LIMIT, FAILED = b"r", b"h", b"v", b"e", b"l", b"f"
"""What a frame is: a request; the first words of a process; a value, a typed error, a limit or a failure."""


@dataclass(frozen=True, slots=True)
class ParserFrame:
    """One message: JSON text, and bytes that are not JSON (a mail, an attachment)."""

    kind: bytes
    text: bytes
    body: bytes = b""

    @classmethod
    def from_value(cls, kind: bytes, value: object, body: bytes = b"") -> ParserFrame:
        """A frame with this value as its text; what JSON does not have does not get across."""
        # ASCII, so that half a character (a lone surrogate) is an escape and not broken UTF-8.
        return cls(kind, json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii"), body)

    @property
    def value(self) -> Any:
        return json.loads(self.text)

    def to_bytes(self) -> bytes:
        return b"".join((FRAME_PREFIX.pack(self.kind, len(self.text), len(self.body)), self.text, self.body))


MIB = 1 << 20
MOST_PROCESSES = 4
"""So many inputs are read at once. A hostile one keeps one process busy for as long as its limit allows."""
_CHUNK = 1 << 20
_START_SECONDS = 30.0

# Where this package lies comes last: the isolated interpreter finds its own modules first.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from bicameral.parsing._child import serve; serve()"

LimitKind = Literal["cpu", "time", "memory", "output", "depth"]


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """What reading one input may take: seconds of CPU, seconds on the clock, bytes of memory and of the result."""

    cpu: float = 10.0
    wall: float = 20.0
    memory: int = 1024 * MIB
    output: int = 64 * MIB


class LimitExceeded(Exception):
    """A process went over a limit, or ended; it is of no more use."""

    def __init__(self, limit: LimitKind) -> None:
        super().__init__(limit)
        self.limit: LimitKind = limit


class _ParserProcess:
    """One parser process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOT, str(Path(__file__).resolve().parents[2])],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # No variable of ours is any business of what is read there.
            env={},
            cwd="/",
            # Ctrl-C at the terminal is for us: we end it, by closing its input.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)
        os.set_blocking(self._out.fileno(), False)
        try:
            hello = self._receive(time.monotonic() + _START_SECONDS, MIB)
            if hello.kind != HELLO:
                raise ValueError("not the first words of a parser")
            self.confinement: tuple[str, ...] = tuple(map(str, hello.value))
        except (LimitExceeded, ValueError, TypeError):
            self.kill()
            raise ToolError(
                "tools.cannot-start",
                "the process that reads mails, calendars, pages and tables could not be started",
                fix="`bicameral doctor` tests it.",
            ) from None

    def exchange(self, request: ParserFrame, limits: ParseLimits) -> ParserFrame:
        """The reply to a request; after `LimitExceeded` the process must be killed."""
        # One deadline for sending and receiving: a process that does not even read is over it like any other.
        deadline = time.monotonic() + limits.wall
        view = memoryview(request.to_bytes())
        while view:
            self._wait_ready(self._in.fileno(), select.POLLOUT, deadline)
            try:
                view = view[os.write(self._in.fileno(), view) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._end_reason() from None
        return self._receive(deadline, limits.output)

    def _receive(self, deadline: float, most: int) -> ParserFrame:
        kind, text, body = FRAME_PREFIX.unpack(self._exactly(FRAME_PREFIX.size, deadline))
        if text + body > most:
            raise LimitExceeded("output")
        return ParserFrame(kind, self._exactly(text, deadline), self._exactly(body, deadline))

    def _exactly(self, size: int, deadline: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait_ready(self._out.fileno(), select.POLLIN, deadline)
            part = os.read(self._out.fileno(), min(size - len(found), _CHUNK))
            if not part:
                raise self._end_reason()
            found += part
        return bytes(found)

    def _wait_ready(self, fd: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(fd, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(max(1, int(left * 1000))):
            raise LimitExceeded("time")

    def _end_reason(self) -> LimitExceeded:
        """Why it is gone: the kernel ends one that is over its CPU time; one without memory ends in any way."""
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return LimitExceeded("time")
        return LimitExceeded("cpu" if code == -signal.SIGXCPU else "memory")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()

    def close_inherited(self) -> None:
        """Close our ends of its pipes, and nothing else: it belongs to the process that we are a copy of."""
        self._in.close()
        self._out.close()
        self._process.returncode = 0


class ParserPool:
    """Parser processes, started when they are first needed and kept for the next input."""

    def __init__(self, most: int = MOST_PROCESSES) -> None:
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(most)
        self._idle: list[_ParserProcess] = []

    def exchange(self, request: ParserFrame, limits: ParseLimits) -> ParserFrame:
        """The reply to a request; `LimitExceeded` if its process had to be killed. Blocks the calling thread."""
        # Whoever waits here waits for inputs that are each within their limits.
        with self._free:
            process = self._take_process()
            try:
                reply = process.exchange(request, limits)
            except BaseException:
                # Also when we are interrupted: its reply would otherwise be taken for the next one's.
                process.kill()
                raise
            # The lock is for the list alone; nothing is parsed, started or awaited under it.
            with self._lock:
                self._idle.append(process)
            return reply

    def _take_process(self) -> _ParserProcess:
        with self._lock:
            # The one used last: it is warm, and has what it keeps of the last input.
            if self._idle:
                return self._idle.pop()
        return _ParserProcess()

    def discard_idle(self) -> None:
        """End the processes that wait for work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()

    @property
    def confinement(self) -> tuple[str, ...]:
        """What its processes are cut off from."""
        process = self._take_process()
        with self._lock:
            self._idle.append(process)
        return process.confinement

    def after_fork(self) -> None:
        """In a copy of this process: the parsers are those of the original."""
        for process in self._idle:
            process.close_inherited()
        self.__init__()


POOL = ParserPool()
os.register_at_fork(after_in_child=POOL.after_fork)
atexit.register(POOL.discard_idle)


def request_header(limits: ParseLimits, function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a request says besides the bytes to read."""
    zone = os.environ.get("TZ")
    return {"function": function, "arguments": arguments, "cpu": limits.cpu, "memory": limits.memory, "zone": zone}


def parser_confinement() -> tuple[str, ...]:
    """What the parser process is cut off from: `files`, `network`."""
    return POOL.confinement

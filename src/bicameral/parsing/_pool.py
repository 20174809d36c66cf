"""The parent's side of parsing: a pool of parser processes, and the frames exchanged with them.

Each process answers one request at a time within its limits. A frame is a kind, the lengths of a JSON text and of a
body, and then both.
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
"""Kinds of frames: a request; the greeting of a new process; a value, a typed error, a limit or a failure."""

MIB = 1 << 20
MOST_PROCESSES = 4
"""How many inputs are parsed at once. A hostile input can occupy one process until its time limit."""
_CHUNK = 1 << 20
# A new interpreter imports its modules from disk, which is slow on a cold or busy machine.
_START_SECONDS = 30.0

# This package's folder is appended, so that the isolated interpreter finds its own modules first.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from bicameral.parsing._child import serve; serve()"

LimitKind = Literal["cpu", "time", "memory", "output", "depth"]


@dataclass(frozen=True, slots=True)
class ParserFrame:
    """One message: a JSON text, and bytes that are not JSON (a mail, an attachment)."""

    kind: bytes
    text: bytes
    body: bytes = b""

    @classmethod
    def from_value(cls, kind: bytes, value: object, body: bytes = b"") -> ParserFrame:
        """A frame with this JSON value as its text."""
        # ASCII, so that a lone surrogate becomes an escape and not invalid UTF-8.
        return cls(kind, json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii"), body)

    @property
    def value(self) -> Any:
        return json.loads(self.text)

    def to_bytes(self) -> bytes:
        return b"".join((FRAME_PREFIX.pack(self.kind, len(self.text), len(self.body)), self.text, self.body))


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Limits for parsing one input.

    Args:
        cpu: Seconds of CPU time; the kernel ends the process after them.
        wall: Seconds on the clock, for sending the request and receiving the reply together.
        memory: Bytes of address space of the process.
        output: Bytes of the reply.
    """

    cpu: float = 10.0
    wall: float = 20.0
    memory: int = 1024 * MIB
    output: int = 64 * MIB


class LimitExceeded(Exception):
    """A parser process exceeded a limit or ended; it must not be used again."""

    def __init__(self, limit: LimitKind) -> None:
        super().__init__(limit)
        self.limit: LimitKind = limit


class _ParserProcess:
    """One parser process, and the parent's ends of its two pipes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOT, str(Path(__file__).resolve().parents[2])],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Environment variables may hold secrets, and hostile input may take the process over.
            env={},
            cwd="/",
            # Ctrl-C at the terminal goes to the parent only, which ends the process by closing its input.
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
        # One deadline covers sending and receiving, so a process that does not read its input exceeds it, too.
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
        kind, text, body = FRAME_PREFIX.unpack(self._read_exactly(FRAME_PREFIX.size, deadline))
        # The lengths are untrusted: checked before anything of the frame is read into memory.
        if text + body > most:
            raise LimitExceeded("output")
        return ParserFrame(kind, self._read_exactly(text, deadline), self._read_exactly(body, deadline))

    def _read_exactly(self, size: int, deadline: float) -> bytes:
        received = bytearray()
        while len(received) < size:
            self._wait_ready(self._out.fileno(), select.POLLIN, deadline)
            part = os.read(self._out.fileno(), min(size - len(received), _CHUNK))
            if not part:
                raise self._end_reason()
            received += part
        return bytes(received)

    def _wait_ready(self, fd: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(fd, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(max(1, int(left * 1000))):
            raise LimitExceeded("time")

    def _end_reason(self) -> LimitExceeded:
        """The limit to report for a process that ended: SIGXCPU means CPU time, any other end is taken for memory."""
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
        """After a fork: close this copy's ends of the pipes. The process itself belongs to the original."""
        self._in.close()
        self._out.close()
        # A known return code keeps `Popen` from waiting for a process that is not this one's child.
        self._process.returncode = 0


class ParserPool:
    """Parser processes, started when first needed and kept for later inputs.

    Args:
        most: How many inputs are parsed at once; further callers wait.
        isolated: Each input gets a process of its own, and nothing is parsed where the kernel cannot confine it. For
            native parsers: an input that takes its process over would otherwise reach files, or answer for the next.
    """

    def __init__(self, most: int = MOST_PROCESSES, *, isolated: bool = False) -> None:
        self._most, self._isolated = most, isolated
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(most)
        self._idle: list[_ParserProcess] = []

    def exchange(self, request: ParserFrame, limits: ParseLimits) -> ParserFrame:
        """The reply to a request; `LimitExceeded` if its process had to be killed. Blocks the calling thread."""
        # The wait is bounded: every input that holds a place ends within its own time limit.
        with self._free:
            process = self._take_process()
            try:
                self._require_confinement(process)
                reply = process.exchange(request, limits)
            except BaseException:
                # Also after an interrupt: a late reply would be taken for the reply to the next request.
                process.kill()
                raise
            if self._isolated:
                process.kill()
                return reply
            # The lock protects the list only; no process is started, used or awaited while it is held.
            with self._lock:
                self._idle.append(process)
            return reply

    def _require_confinement(self, process: _ParserProcess) -> None:
        missing = {"files", "network"}.difference(process.confinement) if self._isolated else set[str]()
        if missing:
            raise ToolError(
                "tools.cannot-confine",
                f"documents are not read here: their parser cannot be kept from {' and '.join(sorted(missing))}",
                fix="Use Linux 6.12 or later with Landlock enabled (`cat /sys/kernel/security/lsm` lists it), "
                "or save the document as text or CSV.",
            )

    def _take_process(self) -> _ParserProcess:
        with self._lock:
            # The process used last has its modules loaded and its caches warm.
            if self._idle:
                return self._idle.pop()
        return _ParserProcess()

    def discard_idle(self) -> None:
        """Kill the processes that have no request."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()

    @property
    def confinement(self) -> tuple[str, ...]:
        """The confinements that are in force in its processes."""
        # With a place like every other use: otherwise a busy pool would start, and then keep, one process too many.
        with self._free:
            process = self._take_process()
            with self._lock:
                self._idle.append(process)
        return process.confinement

    def after_fork(self) -> None:
        """In a forked child: drop the parent's processes, and make new locks, since a copied one may be held."""
        for process in self._idle:
            process.close_inherited()
        self.__init__(self._most, isolated=self._isolated)


POOL = ParserPool()
ISOLATED_POOL = ParserPool(2, isolated=True)
"""For native parsers of documents."""
os.register_at_fork(after_in_child=POOL.after_fork)
os.register_at_fork(after_in_child=ISOLATED_POOL.after_fork)
atexit.register(POOL.discard_idle)


def request_header(limits: ParseLimits, function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The JSON text of a request: the function, its arguments, and the limits that the process sets itself."""
    zone = os.environ.get("TZ")
    return {"function": function, "arguments": arguments, "cpu": limits.cpu, "memory": limits.memory, "zone": zone}


def parser_confinement() -> tuple[str, ...]:
    """The confinements in force in the parser process; the kernel may lack one of them.

    Example:
        >>> parser_confinement()
        ('files', 'network')
    """
    return POOL.confinement

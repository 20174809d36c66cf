"""Programs that run for a while and are talked to over pipes: confined like commands, and ended as a whole.

A command runs to its end; a server waits for requests. Both get only the files, the network and the memory that they
were given. Where the kernel cannot confine, nothing runs, unless the user's settings take the program out of the
sandbox by name: then it is a plain process of a session of its own.

Stopping a program ends everything that it started. If this process itself is killed, nobody can do that: a confined
program dies with it, since the sandbox asks the kernel for it, but not what the program had started, which stays
confined; and one without a sandbox only sees the end of its standard input.
"""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from bicameral.errors import ToolError
from bicameral.tools._sandbox import (
    PATH,
    Confinement,
    ConfinementProbe,
    NeverBegan,
    confinement_problem,
    has_executed,
    never_began_error,
    require_confinement,
    start_process,
)

if TYPE_CHECKING:
    from sandlock import Process

_MAX_STARTS = 5
_BEGIN_SECONDS = 5.0
_POLL_SECONDS = 0.01
_REAP_SECONDS = 10.0
_MARK = "BICAMERAL_PROGRAM"
"""The variable by which what a program started is known as its own, wherever it went: to another session, or to `init`
as its parent. Only a program that hides from its user takes it out of its environment."""
_MOST_LOOKS = 10


class RunningProgram(Protocol):
    """A program with pipes to its standard streams."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def stop(self) -> None:
        """Kill it and everything that it started, and wait for its end. May be called again."""
        ...


_running: set[RunningProgram] = set()
"""Programs that were started and not stopped. Adding and removing one are atomic, so that no lock is needed."""


@atexit.register
def _stop_running() -> None:
    """No server outlives the end of the process that started it, also where nobody closed its connection."""
    for program in tuple(_running):
        program.stop()


@dataclass(slots=True, eq=False)
class _ConfinedProgram:
    process: Process
    stdin: IO[bytes] = field(init=False)
    stdout: IO[bytes] = field(init=False)
    stderr: IO[bytes] = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        _running.add(self)

    def stop(self) -> None:
        # One at a time: `wait` frees what `kill` and a second `wait` would look at.
        with self._lock:
            self.process.kill()
            self.process.wait(_REAP_SECONDS)
        _running.discard(self)


@dataclass(slots=True, eq=False)
class _PlainProgram:
    process: subprocess.Popen[bytes]
    mark: str
    stdin: IO[bytes] = field(init=False)
    stdout: IO[bytes] = field(init=False)
    stderr: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        pipes = self.process.stdin, self.process.stdout, self.process.stderr
        if None in pipes:
            raise AssertionError("it was started with pipes")
        self.stdin, self.stdout, self.stderr = pipes  # pyright: ignore[reportAttributeAccessIssue]
        _running.add(self)

    def stop(self) -> None:
        if self not in _running:
            # The numbers of processes that ended may be those of others by now.
            return
        # Looked for while its parents are there, and held meanwhile, so that none starts another.
        started = _hold_started(self.process.pid if self.process.poll() is None else None, self.mark)
        # The group and not the process alone: a launcher such as npx starts the server as its child.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pid in started:
            _signal(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_REAP_SECONDS)
        _running.discard(self)


def _hold_started(root: int | None, mark: str) -> set[int]:
    """The processes that a program has started, stopped where they are. Where there is no `/proc`, none are found."""
    held: set[int] = set()
    for _ in range(_MOST_LOOKS):
        found = set(_find_started(root, mark)) - held
        if not found:
            break
        for pid in found:
            _signal(pid, signal.SIGSTOP)
        held |= found
    return held


def _find_started(root: int | None, mark: str) -> Iterator[int]:
    """The processes below another one, and those that have its mark."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with suppress(OSError, ValueError, IndexError):
            parent = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
            if f"{_MARK}={mark}".encode() in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                yield int(name)
    waiting = [] if root is None else [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        yield from below
        waiting += below


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def start_confined(
    argv: Sequence[str], confinement: Confinement, *, probe: ConfinementProbe = confinement_problem
) -> RunningProgram:
    """Start a program in its sandbox. `timeout` and `output` of the confinement do not count: it runs until stopped."""
    require_confinement(probe)
    for _ in range(_MAX_STARTS):
        with suppress(NeverBegan):
            process = start_process(argv, confinement)
            try:
                _await_begin(process)
            except BaseException:
                process.kill()
                process.wait(_REAP_SECONDS)
                raise
            return _ConfinedProgram(process)
    raise never_began_error(argv, confinement, "Check that every file it was given is still there")


def _await_begin(process: Process) -> None:
    """Wait until the copy of this process has become the program; raises `NeverBegan` if it hangs before that."""
    deadline = time.monotonic() + _BEGIN_SECONDS
    while process.pid is not None and not has_executed(process.pid):
        if time.monotonic() > deadline:
            raise NeverBegan
        time.sleep(_POLL_SECONDS)


def start_unconfined(argv: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> RunningProgram:
    """Start a program that the user took out of the sandbox: it may do whatever the user may.

    It gets the search path and the home folder of this process, and of the rest of the environment only what it is
    given: keys of other services are none of its business.
    """
    inherited = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "TMPDIR", "USER") if name in os.environ}
    mark = secrets.token_hex(16)
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": PATH, **inherited, **environment, _MARK: mark},
            cwd=folder,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ToolError("tools.cannot-start", f"{argv[0]!r} could not be started: {reason}") from None
    return _PlainProgram(process, mark)

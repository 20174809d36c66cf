"""Sandbox for commands: they get only the files, network, time, memory and output that they were given, or do not run.

Landlock and seccomp (through `sandlock`) confine the command. Where the kernel cannot confine, nothing runs.

A command begins as a forked copy of this process with one thread, which confines itself and then executes the program.
If another thread held a lock at the moment of the fork (the C library's lock around the environment, for example), the
copy waits for it forever; and occasionally the copy of a large process is killed by its own supervisor. In both cases
nothing has been done yet, so the start is repeated (`NeverBegan`).
"""

from __future__ import annotations

import asyncio
import os
import platform
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bicameral.errors import ToolError

if TYPE_CHECKING:
    from sandlock import Process, Result


_PIPE_CHUNK = 64 * 1024
_STDERR_TAIL = 16 * 1024
_START_POLL_SECONDS = 0.5
"""How often a silent command is checked, until it is known to have begun."""
_WATCH_SECONDS = 0.1
"""How often what a command has written is looked at, where that is limited."""
_MAX_ENTRIES = 1_000
_MAX_OPEN_FILES = 64
"""Files that were removed while they are open are in no folder, so that there may only be a few of them."""
_REAP_SECONDS = 30.0
"""The exit itself is known at once, but on a busy machine the supervisor may report it late."""

EndReason = Literal["exited", "not-started", "killed", "timeout", "output", "stopped", "cpu", "disk"]


Watch = Callable[[], EndReason | None]
"""Looks at something outside of the command again and again; a reason ends it."""

_PF_FORKNOEXEC = 0x40
"""The kernel's flag of a process that was forked and has not executed a program."""

_FUTEX_CALLS = {"x86_64": "202", "aarch64": "98", "riscv64": "98"}


class NeverBegan(Exception):
    """The command hung or was killed before it executed the program, so it can safely be started again."""


def has_executed(pid: int) -> bool:
    """Whether the command runs or has ended; raises `NeverBegan` if it waits for a lock that nobody holds."""
    try:
        # Read the system call before the flag: if the flag is still set after, the copy itself made the call.
        call = Path("/proc", str(pid), "syscall").read_text().partition(" ")[0]
    except OSError:
        return True
    if not is_forked_copy(pid):
        return True
    if call == _FUTEX_CALLS.get(platform.machine()):
        raise NeverBegan
    return False


def is_forked_copy(pid: int) -> bool:
    """Whether the process has not executed the program; for a zombie, whether it never did."""
    try:
        status = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return bool(int(status[6]) & _PF_FORKNOEXEC)


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used; 0 if it is gone."""
    try:
        status = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(status[11]) + int(status[12])) / os.sysconf("SC_CLK_TCK")


def uses_more_disk(folder: Path, limit: int) -> bool:
    """Whether what is below a folder takes more than `limit` bytes, or has too many entries to say so quickly.

    What cannot be looked into counts as too much: whoever fills the folder could have closed it on purpose.
    """
    pending, entries, size = [str(folder)], 0, 0
    while pending:
        try:
            with os.scandir(pending.pop()) as found:
                for entry in found:
                    entries += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entries > _MAX_ENTRIES or size > limit:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


class CommandExchange:
    """The pipes of one command: all of stdin goes in, stdout up to a limit and the end of stderr come out."""

    def __init__(self, process: Process, stdin: bytes, confinement: Confinement, *, stop: int) -> None:
        self._process = process
        self._stdin = memoryview(stdin)
        self._limit = confinement.output
        self._stop = stop
        self._cpu = confinement.cpu
        self._watch = _disk_watch(confinement)
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._result: Result | None = None
        self._selector = selectors.DefaultSelector()
        self._has_begun = False

    def run_to_end(self, deadline: float) -> tuple[EndReason, int]:
        """Run the command to its end, or kill it; returns why it ended and its exit code.

        Raises `NeverBegan` if it hangs or is killed before it executes the program; the caller must then kill it.
        """
        with self._selector:
            pidfd = self._watch_exit()
            try:
                self._watch_streams()
                reason = self._exchange(deadline)
            finally:
                if pidfd is not None:
                    os.close(pidfd)
        if reason is not None:
            # Leaving its `with` block would kill it, too, but it must have exited before that.
            self._process.kill()
            self._process.wait(_REAP_SECONDS)
            return reason, -9
        return self._end_reason()

    def _watch_exit(self) -> int | None:
        pid = self._process.pid
        try:
            # A pidfd becomes readable at the exit, even if children of the command keep its pipes open.
            pidfd = os.pidfd_open(pid) if pid is not None else None
        except ProcessLookupError:
            pidfd = None
        if pidfd is None:
            self._on_exit()
        else:
            self._selector.register(pidfd, selectors.EVENT_READ, self._on_exit)
        return pidfd

    def _watch_streams(self) -> None:
        if self._stop >= 0:
            self._selector.register(self._stop, selectors.EVENT_READ, lambda: "stopped")
        self._selector.register(self._process.stdout, selectors.EVENT_READ, self._read_stdout)
        self._selector.register(self._process.stderr, selectors.EVENT_READ, self._read_stderr)
        if self._result is None and self._stdin:
            # A command that does not read its stdin must not block the reading of its output.
            os.set_blocking(self._process.stdin.fileno(), False)
            self._selector.register(self._process.stdin, selectors.EVENT_WRITE, self._write_stdin)
        elif self._result is None:
            self._process.stdin.close()

    def _exchange(self, deadline: float) -> EndReason | None:
        while self._result is None or self._has_open_streams():
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            # Until the command has begun it is polled: a copy that hangs on a lock sends no event.
            pause = left if self._has_begun else min(left, _START_POLL_SECONDS)
            ready = self._selector.select(min(pause, _WATCH_SECONDS) if self._is_watched else pause)
            if self._is_watched and (breach := self._find_breach()):
                return breach
            if not ready and not self._has_begun:
                self._has_begun = self._process.pid is None or has_executed(self._process.pid)
            for key, _ in ready:
                # The exit, handled before it in the same batch, has closed what was still to be written.
                if key.fd not in self._selector.get_map():
                    continue
                handle: Callable[[], EndReason | None] = key.data
                if reason := handle():
                    return reason
        return None

    @property
    def _is_watched(self) -> bool:
        return self._watch is not None or self._cpu is not None

    def _find_breach(self) -> EndReason | None:
        pid = self._process.pid
        if self._cpu is not None and pid is not None and cpu_seconds(pid) >= self._cpu:
            return "cpu"
        return None if self._watch is None else self._watch()

    def _has_open_streams(self) -> bool:
        registered = self._selector.get_map()
        return self._process.stdout in registered or self._process.stderr in registered

    def _write_stdin(self) -> None:
        try:
            written = os.write(self._process.stdin.fileno(), self._stdin[:_PIPE_CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            written = len(self._stdin)  # the command closed its stdin
        self._stdin = self._stdin[written:]
        if not self._stdin:
            self._selector.unregister(self._process.stdin)
            self._process.stdin.close()

    def _read_stdout(self) -> EndReason | None:
        if chunk := os.read(self._process.stdout.fileno(), _PIPE_CHUNK):
            # One byte beyond the limit is kept, to see that the limit was exceeded.
            self.stdout += chunk[: self._limit - len(self.stdout) + 1]
            return "output" if len(self.stdout) > self._limit else None
        self._selector.unregister(self._process.stdout)
        return None

    def _read_stderr(self) -> None:
        if chunk := os.read(self._process.stderr.fileno(), _PIPE_CHUNK):
            self.stderr += chunk
            del self.stderr[:-_STDERR_TAIL]
        else:
            self._selector.unregister(self._process.stderr)

    def _on_exit(self) -> None:
        """The command has exited: kill what it left running, and read its output to the end."""
        registered = self._selector.get_map()
        for key in list(registered.values()):
            if key.data == self._on_exit or key.data == self._write_stdin:
                self._selector.unregister(key.fileobj)
        # /proc has this only until the process is reaped.
        pid = self._process.pid
        never_began = pid is not None and is_forked_copy(pid)
        self._result = self._process.wait(_REAP_SECONDS)
        if never_began and self._end_reason()[0] == "killed":
            raise NeverBegan

    def _end_reason(self) -> tuple[EndReason, int]:
        result = self._result
        if result is None or result.reason.name in ("KILLED", "TIMEOUT"):
            return "killed", -9
        if result.reason.name == "SIGNALED":
            return "exited", -result.signal
        if result.exit_code == 127 and self.stderr.startswith(b"sandlock child: exec"):
            return "not-started", 127
        return "exited", result.exit_code


MIB = 1024 * 1024
PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where the programs of command-line tools are looked up; the user's own PATH is not used."""

# What programs need to start: libraries and a few devices, never a home folder or all of /etc.
_SYSTEM_PATHS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"),
    *("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/dev/random", "/dev/urandom", "/dev/zero"),
)
_NETWORK_PATHS = (
    *("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs"),
)
_WRITABLE_DEVICES = ("/dev/null",)

# Landlock does not cover modes, owners, times and attributes, so a confined command could change those of any file of
# the user. No command needs these calls.
_METADATA_CALLS = (
    *("fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "utimensat", "file_setattr"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
_METADATA_CALLS_X86 = ("chmod", "chown", "lchown", "utime", "utimes", "futimesat")
_LIMIT_CALLS = ("prlimit64", "setrlimit")
"""A command with limits of its own must not raise them, which root could."""

_MAX_STARTS = 5
"""How often the start of a command is tried; each failure is rare by itself."""

_FORK_FAILED = "sandlock_popen failed"
"""The error of `sandlock` if the copy died before it was released: as rare, and nothing has been done."""

ConfinementProbe = Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a command may use. Nothing is granted that is not named here. Sizes are in bytes, times in seconds.

    Args:
        read: Files or folders that exist.
        write: Files or folders that exist.
        denied: Paths inside these that can be neither read nor written, even if they do not exist yet.
        network: `host:port` rules; `*:*` is everything.
        memory: The limit for all processes of the command together, counted as reserved.
        output: The most that it may print to stdout.
        folder: The working folder.
        cpu: Seconds of processor time of each process, after which it is killed.
        disk: What may be written below `folder`, in all and in each file.

    Example:
        >>> result = await run_confined(["/usr/bin/wc", "-l", "/data/a.txt"], Confinement(read=(Path("/data/a.txt"),)))
        >>> result.ended, result.exit_code
        ('exited', 0)
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    denied: tuple[Path, ...] = ()
    network: tuple[str, ...] = ()
    timeout: float = 30.0
    memory: int = 1024 * MIB
    output: int = 8 * MIB
    processes: int = 32
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: Path | None = None
    cpu: int | None = None
    disk: int | None = None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended. `exit_code` is negative for a signal; `stderr` is its last part."""

    ended: EndReason
    exit_code: int
    stdout: bytes
    stderr: bytes
    seconds: float


def confinement_problem() -> str | None:
    """Why this machine cannot confine commands, or None if it can."""
    if platform.system() != "Linux":
        return f"this is {platform.system()}, and Landlock, which confines them, is a part of Linux"
    try:
        from sandlock import landlock_abi_version, min_landlock_abi
    except (ImportError, OSError) as error:
        return f"the package 'sandlock' does not load: {error}"
    version, needed = landlock_abi_version(), min_landlock_abi()
    if version < needed:
        return f"the kernel has Landlock ABI {max(version, 0)}, and {needed} is needed"
    return None


def require_confinement(probe: ConfinementProbe = confinement_problem) -> None:
    """Raise `tools.cannot-confine` where commands cannot be confined."""
    if reason := probe():
        raise ToolError(
            "tools.cannot-confine",
            f"commands do not run here, because they cannot be confined: {reason}",
            fix="Use Linux 6.12 or later with Landlock enabled (`cat /sys/kernel/security/lsm` lists it), "
            "or leave the command-line tools out and use the standard toolboxes.",
        )


async def run_confined(
    argv: Sequence[str], confinement: Confinement, *, stdin: bytes = b"", probe: ConfinementProbe = confinement_problem
) -> CommandResult:
    """Run a command confined; cancelling the task kills the command and everything that it started."""
    require_confinement(probe)
    stop = os.eventfd(0, os.EFD_CLOEXEC)
    outcome: Future[CommandResult] = Future()

    def work() -> None:
        try:
            outcome.set_result(run_confined_sync(argv, confinement, stdin=stdin, probe=probe, stop=stop))
        except BaseException as error:
            outcome.set_exception(error)

    # A separate thread: long commands must not exhaust the pool that file tools share.
    threading.Thread(target=work, name="bicameral-command", daemon=True).start()
    done = asyncio.wrap_future(outcome)
    # `stop` is closed on the loop's thread once the work is done, so never while the worker reads it.
    done.add_done_callback(lambda _: os.close(stop))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if not done.done():
            os.eventfd_write(stop, 1)
        # The worker must have killed the command before the cancellation goes on.
        await asyncio.wait([done])
        raise


def run_confined_sync(
    argv: Sequence[str],
    confinement: Confinement,
    *,
    stdin: bytes = b"",
    probe: ConfinementProbe = confinement_problem,
    stop: int = -1,
) -> CommandResult:
    """Run a command confined and wait for it; `stop` is an eventfd that ends it early."""
    require_confinement(probe)
    started = time.monotonic()
    deadline = started + confinement.timeout
    for _ in range(_MAX_STARTS):
        with suppress(NeverBegan), start_process(argv, confinement) as process:
            _limit_process(process, confinement)
            exchange = CommandExchange(process, stdin, confinement, stop=stop)
            ended, exit_code = exchange.run_to_end(deadline)
            stdout, stderr = bytes(exchange.stdout), bytes(exchange.stderr)
            return CommandResult(ended, exit_code, stdout, stderr, time.monotonic() - started)
        if time.monotonic() > deadline or (stop >= 0 and select.select([stop], [], [], 0)[0]):
            break
    raise never_began_error(
        argv, confinement, "Check that every file it was given is still there, and allow it more memory or time"
    )


def never_began_error(argv: Sequence[str], confinement: Confinement, fix: str) -> ToolError:
    """The error for a program that never began, although its start was repeated."""
    what = f"{argv[0]!r} could not be started in its sandbox"
    # The sandbox looks names up before the program begins, and does not say which one it could not find.
    hosts = (rule.rpartition(":")[0] for rule in confinement.network)
    if unknown := next((host for host in hosts if host not in ("", "*") and not _has_address(host)), None):
        return ToolError(
            "tools.cannot-start",
            f"{what}: the host {unknown!r}, which it may reach, has no address",
            fix="Check the name, and whether this machine has a network.",
        )
    return ToolError(
        "tools.cannot-start",
        f"{what}: it hung or was ended before it began",
        fix=f"{fix}; `bicameral doctor` tests the sandbox itself.",
    )


def _has_address(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host.strip("[]"), None))
    except (OSError, UnicodeError):
        return False


def _limit_process(process: Process, confinement: Confinement) -> None:
    """Set the limits of the kernel from outside; the command itself cannot change them (`_LIMIT_CALLS`)."""
    import resource

    limits: dict[int, tuple[int, int]] = {}
    if confinement.cpu is not None:
        # A backstop for the watch outside, which says why it kills.
        limits[resource.RLIMIT_CPU] = (confinement.cpu + 1, confinement.cpu + 1)
    if confinement.disk is not None:
        limits[resource.RLIMIT_FSIZE] = (confinement.disk, confinement.disk)
        limits[resource.RLIMIT_NOFILE] = (_MAX_OPEN_FILES, _MAX_OPEN_FILES)
    if process.pid is not None:
        with suppress(ProcessLookupError):
            for kind, limit in limits.items():
                resource.prlimit(process.pid, kind, limit)


def _disk_watch(confinement: Confinement) -> Watch | None:
    folder, limit = confinement.folder, confinement.disk
    if folder is None or limit is None:
        return None
    return lambda: "disk" if uses_more_disk(folder, limit) else None


def start_process(argv: Sequence[str], confinement: Confinement) -> Process:
    """Start a program confined, with pipes; `NeverBegan` if its start failed in a way that may be tried again."""
    from sandlock import Sandbox, SandlockError, StdioMode

    limited = confinement.cpu is not None or confinement.disk is not None
    denied_calls = (
        *_METADATA_CALLS,
        *(_METADATA_CALLS_X86 if platform.machine() == "x86_64" else ()),
        *(_LIMIT_CALLS if limited else ()),
    )
    system = _SYSTEM_PATHS + (_NETWORK_PATHS if confinement.network else ())
    if confinement.folder is not None and not confinement.folder.is_dir():
        raise ToolError("tools.cannot-start", f"the folder {str(confinement.folder)!r} to start in is not there")
    try:
        sandbox = Sandbox(
            fs_readable=[*filter(os.path.exists, system), *map(str, confinement.read)],
            fs_writable=[*_WRITABLE_DEVICES, *map(str, confinement.write)],
            fs_denied=list(map(str, confinement.denied)),
            extra_deny_syscalls=denied_calls,
            net_allow=confinement.network,
            max_memory=confinement.memory,
            max_processes=confinement.processes,
            clean_env=True,
            env={"PATH": PATH, "LANG": "C.UTF-8", **confinement.environment},
            cwd=str(confinement.folder) if confinement.folder else "/",
            no_coredump=True,
        )
        return sandbox.popen(list(argv), StdioMode.PIPED, StdioMode.PIPED, StdioMode.PIPED)
    except (SandlockError, RuntimeError, ValueError, OSError) as error:
        if str(error) == _FORK_FAILED:
            raise NeverBegan from None
        raise ToolError(
            "tools.cannot-start",
            f"{argv[0]!r} could not be started in its sandbox: {error}",
            fix="Check that every file it was given is still there; `bicameral doctor` tests the sandbox itself.",
        ) from None

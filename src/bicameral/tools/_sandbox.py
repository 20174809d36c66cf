"""Commands run confined: only the files, network, time, memory and output that they were given, or not at all.

Landlock and seccomp (through `sandlock`) hold the command. What the kernel cannot confine does not run.
"""

from __future__ import annotations

import asyncio
import os
import platform
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bicameral.errors import ToolError

from ._conversation import Conversation, Ended
from ._starting import NeverBegan

if TYPE_CHECKING:
    from sandlock import Process

MIB = 1024 * 1024
PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where the programs of command-line tools are looked for; the user's own PATH plays no part."""

# What programs need to start: their libraries and a few devices, never a home folder or a whole /etc.
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
)
_NETWORK = (
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
)
_SINKS = ("/dev/null",)

# Landlock does not watch over modes, owners, times and attributes of files, so a confined command could still change
# those of any file of the user. Nothing that a command is for needs it.
_METADATA = (
    *("fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "utimensat", "file_setattr"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
_METADATA_X86 = ("chmod", "chown", "lchown", "utime", "utimes", "futimesat")

_STARTS = 5
"""How often a command is started that does not begin: each time by an accident that is rare by itself."""

_NO_CHILD = "sandlock_popen failed"
"""What `sandlock` says of a copy that died before it was let go: as rare an accident, and nothing has been done."""

Probe = Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a command may touch and use up. Nothing is granted that is not named here.

    `read` and `write` are files or folders that exist, `denied` are paths in them that are neither read nor written
    (also such as are not there yet); `network` holds `host:port` rules (`*:*` is everything).
    Memory counts what the command's programs reserve together. Sizes are in bytes, times in seconds.
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


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended. `exit_code` is negative for a signal; `stderr` is the end of what it complained."""

    ended: Ended
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
    found, needed = landlock_abi_version(), min_landlock_abi()
    if found < needed:
        return f"the kernel has Landlock ABI {max(found, 0)}, and {needed} is needed"
    return None


def require_confinement(probe: Probe = confinement_problem) -> None:
    """Raise `tools.cannot-confine` where commands cannot be confined."""
    if reason := probe():
        raise ToolError(
            "tools.cannot-confine",
            f"commands do not run here, because they cannot be confined: {reason}",
            fix="Use Linux 6.12 or later with Landlock enabled (`cat /sys/kernel/security/lsm` lists it), "
            "or leave the command-line tools out and use the standard toolboxes.",
        )


async def run_confined(
    argv: Sequence[str], confinement: Confinement, *, stdin: bytes = b"", probe: Probe = confinement_problem
) -> Completed:
    """Run a command confined; cancelling the task kills the command and everything that it started."""
    require_confinement(probe)
    stop = os.eventfd(0, os.EFD_CLOEXEC)
    outcome: Future[Completed] = Future()

    def work() -> None:
        try:
            outcome.set_result(run_confined_sync(argv, confinement, stdin=stdin, probe=probe, stop=stop))
        except BaseException as error:
            outcome.set_exception(error)

    # A thread of its own: commands that take their time must not use up the pool that file tools share.
    threading.Thread(target=work, name="bicameral-command", daemon=True).start()
    waiting = asyncio.wrap_future(outcome)
    # `stop` is only touched on the loop's thread once the work is over, so it is never closed under its reader.
    waiting.add_done_callback(lambda _: os.close(stop))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not waiting.done():
            os.eventfd_write(stop, 1)
        await asyncio.wait([waiting])
        raise


def run_confined_sync(
    argv: Sequence[str],
    confinement: Confinement,
    *,
    stdin: bytes = b"",
    probe: Probe = confinement_problem,
    stop: int = -1,
) -> Completed:
    """Run a command confined and wait for it; `stop` is an eventfd that ends it early."""
    require_confinement(probe)
    started = time.monotonic()
    deadline = started + confinement.timeout
    for _ in range(_STARTS):
        with suppress(NeverBegan), _start(argv, confinement) as process:
            conversation = Conversation(process, stdin, output=confinement.output, stop=stop)
            ended, exit_code = conversation.hold(deadline)
            return Completed(ended, exit_code, conversation.stdout, conversation.stderr, time.monotonic() - started)
        if time.monotonic() > deadline or (stop >= 0 and select.select([stop], [], [], 0)[0]):
            break
    raise ToolError(
        "tools.cannot-start",
        f"{argv[0]!r} could not be started in its sandbox: it hung or was ended before it began",
        fix="Check that every file it was given is still there, and allow it more memory or time; "
        "`bicameral doctor` tests the sandbox itself.",
    )


def _start(argv: Sequence[str], confinement: Confinement) -> Process:
    from sandlock import Sandbox, SandlockError, StdioMode

    system = _SYSTEM + (_NETWORK if confinement.network else ())
    if confinement.folder is not None and not confinement.folder.is_dir():
        raise ToolError("tools.cannot-start", f"the folder {str(confinement.folder)!r} to start in is not there")
    try:
        sandbox = Sandbox(
            fs_readable=[*filter(os.path.exists, system), *map(str, confinement.read)],
            fs_writable=[*_SINKS, *map(str, confinement.write)],
            fs_denied=list(map(str, confinement.denied)),
            extra_deny_syscalls=_METADATA + (_METADATA_X86 if platform.machine() == "x86_64" else ()),
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
        if str(error) == _NO_CHILD:
            raise NeverBegan from None
        raise ToolError(
            "tools.cannot-start",
            f"{argv[0]!r} could not be started in its sandbox: {error}",
            fix="Check that every file it was given is still there; `bicameral doctor` tests the sandbox itself.",
        ) from None

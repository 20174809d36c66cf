"""Tell a command that has begun from one that never will, and from one that was ended before it could.

A command begins as a copy of this process, with one thread, which confines itself and then becomes the command. If
another thread held a lock at the moment of copying (the C library's, around the environment, for one), the copy
finds it taken, and nobody is left there to give it back. And now and then the copy of a large process is killed by
its own supervisor. In both cases nothing has been done yet.
"""

from __future__ import annotations

import platform
from pathlib import Path

_NOT_EXECUTED = 0x40
"""The kernel's PF_FORKNOEXEC: a copy that has not become a program yet."""

_FUTEX = {"x86_64": "202", "aarch64": "98", "riscv64": "98"}


class NeverBegan(Exception):
    """The command hung or was killed while it was still a copy. It has done nothing, so it may be started again."""


def has_begun(pid: int) -> bool:
    """Whether the command runs already, or is over. Raises `NeverBegan` where it waits for a lock that nobody has."""
    try:
        # In this order: what waited for a lock and is still a copy afterwards, waited as a copy.
        call = Path("/proc", str(pid), "syscall").read_text().partition(" ")[0]
    except OSError:
        return True
    if not is_copy(pid):
        return True
    if call == _FUTEX.get(platform.machine()):
        raise NeverBegan
    return False


def is_copy(pid: int) -> bool:
    """Whether it has not become the command yet; of one that is over and not yet buried, whether it never did."""
    try:
        status = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return bool(int(status[6]) & _NOT_EXECUTED)

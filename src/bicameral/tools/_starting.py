"""Tell a command that is still about to start from one that never will.

A command begins as a copy of this process, with one thread, which confines itself and then becomes the command. If
another thread held a lock at the moment of copying (the C library's, around the environment, for one), the copy
finds it taken, and nobody is left there to give it back.
"""

from __future__ import annotations

import platform
from pathlib import Path

_NOT_EXECUTED = 0x40
"""The kernel's PF_FORKNOEXEC: a copy that has not become a program yet."""

_FUTEX = {"x86_64": "202", "aarch64": "98", "riscv64": "98"}


class StuckStart(Exception):
    """The command waits for a lock that nobody will release. It has done nothing yet, so it may be started again."""


def has_begun(pid: int) -> bool:
    """Whether the command runs already, or is over. Raises `StuckStart` where it never will."""
    process = Path("/proc", str(pid))
    try:
        # In this order: what waited for a lock and is still a copy afterwards, waited as a copy.
        call = (process / "syscall").read_text().partition(" ")[0]
        status = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    if not int(status[6]) & _NOT_EXECUTED:
        return True
    if call == _FUTEX.get(platform.machine()):
        raise StuckStart
    return False

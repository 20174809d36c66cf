"""A lock between processes: one file, held until it is closed or its holder dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

_POLL_SECONDS = 0.1


@contextmanager
def locked(path: Path, *, on_wait: Callable[[], None]) -> Generator[None]:
    """Hold the lock file at `path`; `on_wait` is called once if somebody else has it.

    The file stays behind on purpose: deleting it would let two waiters hold locks on two different files. The
    operating system frees the lock of a killed process.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _try_lock(handle):
            on_wait()
            # Polling, since a blocking call cannot be interrupted with Ctrl-C on every platform.
            while not _try_lock(handle):
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

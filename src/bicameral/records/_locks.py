"""Locks on files, between processes: shared ones for those who read and exclusive ones for those who write."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_POLL_SECONDS = 0.02
_LOCK_RANGE = 1 << 20


@contextmanager
def file_lock(path: Path, *, shared: bool, seconds: float) -> Generator[None]:
    """Hold a lock on a file of its own; a TimeoutError if it cannot be had within these seconds."""
    # A separate file: on Windows a lock keeps others from reading the locked bytes.
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        until = time.monotonic() + seconds
        while not _try_lock(handle, shared=shared):
            if time.monotonic() >= until:
                raise TimeoutError
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        # Closing the file releases the lock, as the end of the process does.
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int, *, shared: bool) -> bool:
        # `msvcrt` has no shared locks: a reader locks one random byte of a range, and a writer the whole range.
        os.lseek(handle, int.from_bytes(os.urandom(4)) % _LOCK_RANGE if shared else 0, os.SEEK_SET)
        with suppress(OSError):
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1 if shared else _LOCK_RANGE)
            return True
        return False

else:
    import fcntl

    def _try_lock(handle: int, *, shared: bool) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return True
        return False

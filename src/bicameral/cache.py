"""The user's folders for configuration, caches and state (XDG), private files and locks, and a cache of small texts."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, get_args

FolderKind = Literal["config", "cache", "state"]
FOLDER_KINDS: tuple[FolderKind, ...] = get_args(FolderKind)

_HOMES = {
    "config": ("XDG_CONFIG_HOME", ".config"),
    "cache": ("XDG_CACHE_HOME", ".cache"),
    "state": ("XDG_STATE_HOME", ".local/state"),
}


def user_folder(kind: FolderKind) -> Path:
    """The user's folder for configuration, caches or state."""
    variable, default = _HOMES[kind]
    chosen = Path(os.environ.get(variable, ""))
    # The XDG specification says to ignore a relative path.
    return (chosen if chosen.is_absolute() else Path(os.path.expanduser("~")) / default) / "bicameral"


def write_private_file(path: Path, pieces: Iterable[bytes], *, sync: bool = False) -> None:
    """Write a file that only its owner can read; readers see the old content or the new one.

    Args:
        pieces: The content, in pieces to write one after another.
        sync: Whether the new content must survive a power cut.
    """
    # In the same folder, so that `replace` stays within one file system; `mkstemp` makes it readable by its owner only.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.writelines(pieces)
            if sync:
                out.flush()
                os.fsync(out.fileno())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    if sync:
        sync_folder(path.parent)


def read_private_file(path: Path, limit: int) -> bytes:
    """The first bytes of a file that nobody but this user, or root, can have written; a PermissionError otherwise.

    For records of what the user agreed to: one that somebody else can write says nothing about the user.
    """
    # No link and no pipe, which another user could have put there; `O_NONBLOCK` so that a pipe does not hold it up.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise PermissionError(f"{path} is not a plain file")
        if hasattr(os, "geteuid"):
            _require_own(path, found, group=False)
            # Whoever can write the folder can put another file in its place. Where every user has a group of their
            # own, folders are often writable by it.
            _require_own(path.parent, os.stat(path.parent), group=True)
        return stream.read(limit)


def _require_own(path: Path, found: os.stat_result, *, group: bool) -> None:
    if found.st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"{path} belongs to another user")
    own_group = group and found.st_gid == os.getegid()
    others = stat.S_IWOTH | (0 if own_group else stat.S_IWGRP)
    # In a sticky folder others cannot replace what is not theirs.
    if found.st_mode & others and not (group and found.st_mode & stat.S_ISVTX):
        raise PermissionError(f"{path} can be written by others")


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut, where the platform can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_POLL_SECONDS = 0.02
_LOCK_RANGE = 1 << 20


@contextmanager
def file_lock(path: Path, *, shared: bool = False, seconds: float | None = None) -> Generator[None]:
    """Hold a lock on a file of its own, between processes; the operating system frees that of a killed process.

    Args:
        path: The file. It is made if need be, and stays: otherwise two waiters could hold locks on two files.
        shared: Whether others may hold it too, as readers.
        seconds: After these a TimeoutError is raised; by default the wait has no end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        until = None if seconds is None else time.monotonic() + seconds
        # Polled, so that Ctrl-C ends the wait.
        while not _try_lock(handle, shared=shared):
            if until is not None and time.monotonic() >= until:
                raise TimeoutError
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        # Closing the file releases the lock.
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


class FolderCache(MutableMapping[str, str]):
    """A mapping from hex keys to texts, one file each, written atomically.

    A cache is optional: a folder that cannot be read or written acts as an empty cache and raises nothing.

    Example:
        >>> cache = FolderCache(user_folder("cache") / "plans")
        >>> cache["3f2a"] = "text"
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, key: str) -> str:
        try:
            return self._file(key).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise KeyError(key) from None

    def __setitem__(self, key: str, value: str) -> None:
        file = self._file(key)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_private_file(file, [value.encode("utf-8")])

    def __delitem__(self, key: str) -> None:
        try:
            self._file(key).unlink()
        except OSError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return (file.name for file in self._folder.glob("??/*") if not file.name.startswith("."))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _file(self, key: str) -> Path:
        # A key becomes a file name: without this check it could contain a path.
        if not key.isalnum():
            raise KeyError(key)
        return self._folder / key[:2] / key

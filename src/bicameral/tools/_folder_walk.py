"""Reach one entry of one folder without ever following a link, so that no swap after a check can lead elsewhere."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ._folder_errors import is_folder, not_a_file
from ._protected import Guard, refusal

WALKS = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether this system can open a path one name at a time; where it cannot, the path is checked again at its use."""

NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FOLDER: int = getattr(os, "O_DIRECTORY", 0) | NO_FOLLOW
_PASS: int = _FOLDER | getattr(os, "O_PATH", os.O_RDONLY)


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in an opened folder; `at` and `fd` go together into every call to the system."""

    path: Path
    at: str
    fd: int | None

    def sibling(self, name: str) -> str:
        """Another name in the same folder, as calls with this `fd` want it."""
        return name if self.fd is not None else os.path.join(self.path.parent, name)


@contextmanager
def entry(path: Path, *, create_from: Path | None = None, guard: Guard | None = None) -> Generator[Entry]:
    """The entry at exactly this path; missing folders from `create_from` downwards are made on the way.

    With a `guard` the entry is about to be changed. Each folder is held against it as it is opened, and the entry by
    the opened folder that holds it: what is looked at is what is used, whatever is renamed meanwhile.
    """
    if not WALKS:
        if guard is not None:
            _unless_protected(guard.reason(path), path)
        _check_again(path, create_from)
        yield Entry(path, str(path), None)
        return
    fd = _walk(path.parent, create_from, guard)
    try:
        if guard is not None:
            _unless_protected(guard.entry(path, fd), path)
        yield Entry(path, path.name or ".", fd)
    finally:
        os.close(fd)


@contextmanager
def listing(path: Path) -> Generator[Iterator[os.DirEntry[str]]]:
    """The entries of exactly this folder."""
    if not WALKS:
        _check_again(path / "*", None)
        with os.scandir(path) as found:
            yield found
        return
    fd = _walk(path, None)
    try:
        # A descriptor that only marks a place cannot be listed: open the same folder once more, for reading.
        readable = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=fd)
    finally:
        os.close(fd)
    try:
        with os.scandir(readable) as found:
            yield found
    finally:
        os.close(readable)


def _unless_protected(reason: str | None, path: Path) -> None:
    if reason is not None:
        raise refusal(str(path), reason)


def _walk(folder: Path, create_from: Path | None, guard: Guard | None = None) -> int:
    fd = os.open(folder.anchor, _PASS)
    here = Path(folder.anchor)
    try:
        for name in folder.parts[1:]:
            here = here / name
            below = _step(fd, name, create=create_from is not None and here.is_relative_to(create_from))
            os.close(fd)
            fd = below
            if guard is not None:
                _unless_protected(guard.folder(fd, name), here)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _step(fd: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _PASS, dir_fd=fd)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(fd, name):
            raise _link_in_the_way(name) from None
        raise
    # If somebody else makes it meanwhile: whatever it is then, it is opened without following it.
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=fd)
    return os.open(name, _PASS, dir_fd=fd)


def _is_link(fd: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _link_in_the_way(name: str) -> OSError:
    return OSError(errno.ELOOP, "a link stands where there was none", name)


def _check_again(path: Path, create_from: Path | None) -> None:
    if create_from is not None and not path.parent.exists() and path.parent.is_relative_to(create_from):
        path.parent.mkdir(parents=True)
    if Path(os.path.realpath(path.parent)) != path.parent:
        raise _link_in_the_way(str(path))


def info(at: Entry) -> os.stat_result | None:
    """What stands at the entry (a link is a link), or None."""
    try:
        return os.stat(at.at, dir_fd=at.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def file_info(at: Entry, shown: str) -> os.stat_result | None:
    """What is known of the ordinary file at the entry, or None; anything that is no such file is refused."""
    found = info(at)
    if found is not None:
        _ordinary(found, shown)
    return found


def _ordinary(found: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise is_folder(shown)
    if stat.S_ISLNK(found.st_mode):
        raise _link_in_the_way(shown)
    if not stat.S_ISREG(found.st_mode):
        raise not_a_file(shown)


def open_file(at: Entry, shown: str) -> int:
    """A descriptor to read the ordinary file at the entry."""
    # Looked at before it is opened (opening a device can do things) and after (it may have been swapped); without
    # waiting, because opening a pipe waits for somebody to write into it.
    if file_info(at, shown) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown)
    fd = os.open(at.at, os.O_RDONLY | NO_FOLLOW | _NO_WAIT | _BINARY, dir_fd=at.fd)
    try:
        _ordinary(os.fstat(fd), shown)
    except BaseException:
        os.close(fd)
        raise
    return fd

"""Write whole files or nothing: beside the target first, to the disk, then in one step into place."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from os import fsync
from typing import BinaryIO

from ._folder_errors import is_folder
from ._folder_walk import NO_FOLLOW, Entry, file_info, info, open_file

_CHUNK = 1 << 20
_NEW: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | getattr(os, "O_BINARY", 0)


def put(target: Entry, chunks: Iterable[bytes], shown: str, *, replace: bool, mode: int = 0o666) -> None:
    """Make the entry hold exactly these bytes; a failure at any moment leaves what was there before."""
    old = file_info(target, shown)
    if old is not None and not replace:
        raise _exists(shown)
    part = target.sibling(f".{os.urandom(8).hex()}.part")
    # A private file must not be readable by others for the moment before its old mode is back.
    fd = os.open(part, _NEW, mode if old is None else 0o600, dir_fd=target.fd)
    try:
        with os.fdopen(fd, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            if old is not None and hasattr(os, "fchmod"):
                os.fchmod(fd, stat.S_IMODE(old.st_mode) & 0o777)
            fsync(fd)
        _into_place(part, target, shown, replace=replace)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=target.fd)
        raise
    _sync_folder(target)


def _into_place(part: str, target: Entry, shown: str, *, replace: bool) -> None:
    if not replace:
        # A hard link is the one way to create a name that fails if the name is taken.
        try:
            os.link(part, target.at, src_dir_fd=target.fd, dst_dir_fd=target.fd)
        except FileExistsError:
            raise _exists(shown) from None
        except OSError:
            if info(target) is not None:
                raise _exists(shown) from None
        else:
            os.unlink(part, dir_fd=target.fd)
            return
    os.replace(part, target.at, src_dir_fd=target.fd, dst_dir_fd=target.fd)


def _sync_folder(target: Entry) -> None:
    """Make the new name last through a power cut, where the system can promise that."""
    with suppress(OSError):
        fd = os.open(target.sibling("."), os.O_RDONLY, dir_fd=target.fd)
        try:
            fsync(fd)
        finally:
            os.close(fd)


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def append(target: Entry, addition: bytes, shown: str, *, new_line: bool) -> None:
    """Add bytes at the end, in one step: readers see the old file or the new one."""
    if file_info(target, shown) is None:
        put(target, [addition], shown, replace=True)
        return
    with os.fdopen(open_file(target, shown), "rb") as old:

        def both() -> Iterator[bytes]:
            last = b"\n"
            for last in chunks_of(old):
                yield last
            yield addition if last.endswith(b"\n") or not new_line else b"\n" + addition

        put(target, both(), shown, replace=True)


def move(source: Entry, target: Entry, shown: str, shown_target: str) -> None:
    """Give a file another name, never taking one that is in use."""
    found = info(source)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown)
    if stat.S_ISDIR(found.st_mode):
        raise is_folder(shown)
    if info(target) is not None:
        raise _exists(shown_target)
    try:
        os.link(source.at, target.at, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
    except FileExistsError:
        raise _exists(shown_target) from None
    except OSError:
        # Another file system, or one without hard links.
        with os.fdopen(open_file(source, shown), "rb") as file:
            mode = stat.S_IMODE(found.st_mode) & 0o777
            put(target, chunks_of(file), shown_target, replace=False, mode=mode)
    os.unlink(source.at, dir_fd=source.fd)


def delete(target: Entry, shown: str) -> None:
    """Remove a file; a link is removed itself, not what it points to."""
    found = info(target)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise is_folder(shown)
    os.unlink(target.at, dir_fd=target.fd)


def make_folder(target: Entry, shown: str) -> None:
    """Make a folder; one that is there already will do."""
    try:
        os.mkdir(target.at, dir_fd=target.fd)
    except FileExistsError:
        found = info(target)
        if found is None or not stat.S_ISDIR(found.st_mode):
            raise _exists(shown) from None


def _exists(shown: str) -> OSError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), shown)

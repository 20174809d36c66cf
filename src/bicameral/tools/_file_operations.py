"""File operations on single entries: path walking without links, atomic writes, and UTF-8 text.

A path is opened one name at a time and no link is followed, so no change after a check can lead elsewhere. A write goes
to a temporary file beside the target, is synced, and is then renamed into place: a failure at any moment leaves the old
file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import fsync
from pathlib import Path
from typing import BinaryIO

from bicameral.errors import ToolError
from bicameral.tools._path_rules import (
    ProtectionGuard,
    is_folder_error,
    not_a_file_error,
    protected_path_error,
    quote_path,
)

_OPEN_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW
# macOS has no O_PATH.
_OPEN_PLACE: int = _OPEN_FOLDER | getattr(os, "O_PATH", os.O_RDONLY)


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A name in an opened folder; `at` and `fd` are passed together to every system call."""

    at: str
    fd: int


@contextmanager
def open_entry(
    path: Path, *, create_from: Path | None = None, guard: ProtectionGuard | None = None
) -> Generator[FolderEntry]:
    """The entry at exactly this path; missing folders from `create_from` downwards are created on the way.

    With a `guard` the entry is about to be changed. Each folder is checked as it is opened, and the entry through its
    opened folder: what is checked is what is used, whatever is renamed meanwhile.
    """
    fd = _walk_to(path.parent, create_from, guard)
    try:
        if guard is not None:
            _refuse_protected(guard.entry_reason(path, fd), path)
        yield FolderEntry(path.name or ".", fd)
    finally:
        os.close(fd)


@contextmanager
def open_listing(path: Path) -> Generator[Iterator[os.DirEntry[str]]]:
    """The entries of exactly this folder."""
    fd = _walk_to(path, None)
    try:
        # An O_PATH descriptor cannot be listed, so the same folder is opened again for reading.
        readable = os.open(".", os.O_RDONLY | _OPEN_FOLDER, dir_fd=fd)
    finally:
        os.close(fd)
    try:
        with os.scandir(readable) as entries:
            yield entries
    finally:
        os.close(readable)


def _refuse_protected(reason: str | None, path: Path) -> None:
    if reason is not None:
        raise protected_path_error(str(path), reason)


def _walk_to(folder: Path, create_from: Path | None, guard: ProtectionGuard | None = None) -> int:
    fd = os.open(folder.anchor, _OPEN_PLACE)
    current = Path(folder.anchor)
    try:
        for name in folder.parts[1:]:
            current = current / name
            below = _open_step(fd, name, create=create_from is not None and current.is_relative_to(create_from))
            # Only the innermost folder stays open: the walk continues from it, whatever happens to the path.
            os.close(fd)
            fd = below
            if guard is not None:
                _refuse_protected(guard.folder_reason(fd, name), current)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open_step(fd: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _OPEN_PLACE, dir_fd=fd)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(fd, name):
            raise _link_error(name) from None
        raise
    # If another process creates the name meanwhile, it is still opened without following a link.
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=fd)
    return os.open(name, _OPEN_PLACE, dir_fd=fd)


def _is_link(fd: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _link_error(name: str) -> OSError:
    return OSError(errno.ELOOP, "a link stands where there was none", name)


def entry_stat(at: FolderEntry) -> os.stat_result | None:
    """The stat of the entry (of a link itself), or None."""
    try:
        return os.stat(at.at, dir_fd=at.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def file_stat(at: FolderEntry, display: str) -> os.stat_result | None:
    """The stat of the regular file at the entry, or None; anything else is refused."""
    info = entry_stat(at)
    if info is not None:
        _require_regular_file(info, display)
    return info


def _require_regular_file(info: os.stat_result, display: str) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise is_folder_error(display)
    if stat.S_ISLNK(info.st_mode):
        raise _link_error(display)
    if not stat.S_ISREG(info.st_mode):
        raise not_a_file_error(display)


def open_file(at: FolderEntry, display: str) -> int:
    """A descriptor for reading the regular file at the entry."""
    # Checked before it is opened (opening a device can have effects) and after (it may have been swapped). With
    # O_NONBLOCK, since opening a pipe waits for a writer.
    if file_stat(at, display) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), display)
    fd = os.open(at.at, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=at.fd)
    try:
        _require_regular_file(os.fstat(fd), display)
    except BaseException:
        os.close(fd)
        raise
    return fd


_CHUNK = 1 << 20
_CREATE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def write_file(target: FolderEntry, chunks: Iterable[bytes], display: str, *, replace: bool, mode: int = 0o666) -> None:
    """Replace the content of the entry; a failure at any moment leaves the old content."""
    old = file_stat(target, display)
    if old is not None and not replace:
        raise _exists_error(display)
    part = f".{os.urandom(8).hex()}.part"
    # 0600 first: a private file must not be readable by others before its old mode is restored.
    fd = os.open(part, _CREATE_NEW, mode if old is None else 0o600, dir_fd=target.fd)
    try:
        with os.fdopen(fd, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            if old is not None:
                os.fchmod(fd, stat.S_IMODE(old.st_mode) & 0o777)
            # The content must be on disk before the name is, or a crash could leave an empty file.
            fsync(fd)
        _rename_into_place(part, target, display, replace=replace)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=target.fd)
        raise
    _sync_folder(target)


def _rename_into_place(part: str, target: FolderEntry, display: str, *, replace: bool) -> None:
    if not replace:
        # `link` fails if the name is taken, unlike `rename`, which would replace the file.
        try:
            os.link(part, target.at, src_dir_fd=target.fd, dst_dir_fd=target.fd)
        except FileExistsError:
            raise _exists_error(display) from None
        except OSError:
            # A file system without hard links. An empty file takes the name first: looking whether the name is free
            # would not keep another program from taking it before the rename.
            try:
                os.close(os.open(target.at, _CREATE_NEW, 0o600, dir_fd=target.fd))
            except FileExistsError:
                raise _exists_error(display) from None
        else:
            os.unlink(part, dir_fd=target.fd)
            return
    os.replace(part, target.at, src_dir_fd=target.fd, dst_dir_fd=target.fd)


def _sync_folder(target: FolderEntry) -> None:
    """Sync the new name to disk, where the system supports it."""
    with suppress(OSError):
        fd = os.open(".", os.O_RDONLY, dir_fd=target.fd)
        try:
            fsync(fd)
        finally:
            os.close(fd)


def iter_chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def append_to_file(target: FolderEntry, addition: bytes, display: str, *, new_line: bool) -> None:
    """Add bytes at the end, atomically: readers see the old file or the new one."""
    if file_stat(target, display) is None:
        write_file(target, [addition], display, replace=True)
        return
    with os.fdopen(open_file(target, display), "rb") as old:

        def both() -> Iterator[bytes]:
            last = b"\n"
            for last in iter_chunks(old):
                yield last
            yield addition if last.endswith(b"\n") or not new_line else b"\n" + addition

        write_file(target, both(), display, replace=True)


def move_file(source: FolderEntry, target: FolderEntry, display: str, target_display: str) -> None:
    """Rename a file, never onto a name that is in use."""
    info = entry_stat(source)
    if info is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), display)
    if stat.S_ISDIR(info.st_mode):
        raise is_folder_error(display)
    if entry_stat(target) is not None:
        raise _exists_error(target_display)
    try:
        os.link(source.at, target.at, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
    except FileExistsError:
        raise _exists_error(target_display) from None
    except OSError:
        # Another file system, or one without hard links.
        with os.fdopen(open_file(source, display), "rb") as file:
            mode = stat.S_IMODE(info.st_mode) & 0o777
            write_file(target, iter_chunks(file), target_display, replace=False, mode=mode)
    os.unlink(source.at, dir_fd=source.fd)


def delete_file(target: FolderEntry, display: str) -> None:
    """Delete a file; of a link, the link itself."""
    info = entry_stat(target)
    if info is not None and stat.S_ISDIR(info.st_mode):
        raise is_folder_error(display)
    os.unlink(target.at, dir_fd=target.fd)


def make_folder(target: FolderEntry, display: str) -> None:
    """Create a folder; an existing one is accepted."""
    try:
        os.mkdir(target.at, dir_fd=target.fd)
    except FileExistsError:
        info = entry_stat(target)
        if info is None or not stat.S_ISDIR(info.st_mode):
            raise _exists_error(display) from None


def _exists_error(display: str) -> OSError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), display)


_CONTROL = bytes(range(7)) + bytes(range(14, 27)) + bytes(range(28, 32)) + b"\x7f"
_MARKS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ENCODING_FIX = "Save it as UTF-8 and try again."


def decode_file(raw: bytes, path: str) -> str:
    """The text in these bytes, without a byte order mark."""
    if raw.startswith(_MARKS_OF_UTF16) and _is_utf16(raw):
        raise ToolError("files.encoding", f"{quote_path(path)} is UTF-16 text", expected="UTF-8", fix=_ENCODING_FIX)
    if b"\0" in raw:
        raise _binary_error(path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from after a byte order mark; a person's editor does not.
        start = error.start + (3 if raw.startswith(b"\xef\xbb\xbf") else 0)
    if len(raw) - len(raw.translate(None, _CONTROL)) > len(raw) // 50:
        raise _binary_error(path)
    raise ToolError(
        "files.encoding",
        f"{quote_path(path)} is not UTF-8 text: byte {start} is 0x{raw[start]:02x}",
        expected="UTF-8",
        fix=_ENCODING_FIX,
    )


def _is_utf16(raw: bytes) -> bool:
    try:
        raw.decode("utf-16")
    except UnicodeDecodeError:
        return False
    return True


def _binary_error(path: str) -> ToolError:
    return ToolError("files.binary", f"{quote_path(path)} is a binary file", expected="text")


def encode_text(text: str, path: str) -> bytes:
    """The text as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            "files.encoding",
            f"the text for {quote_path(path)} has half a character (U+{ord(text[error.start]):04X}) at {error.start}",
            expected="text that can be written as UTF-8",
        ) from None

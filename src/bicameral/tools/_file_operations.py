"""File operations on single entries: path walking without links, atomic writes, and UTF-8 text.

A path is opened one name at a time and no link is followed, so no change after a check can lead elsewhere. A write goes
to a temporary file beside the target, is synced, and is then renamed into place: a failure at any moment leaves the old
file. Each change is reported to the call's `ChangeLog` right before it is made.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import fsync
from pathlib import Path
from typing import BinaryIO

from bicameral.errors import ToolError
from bicameral.tools._changes import (
    MAX_KEPT_FILE,
    ChangeLog,
    FileChange,
    FileState,
    content_state,
    current_change_log,
    report_changes,
)
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
    """A name in an opened folder; `at` and `fd` are passed together to every system call.

    `path` is where the entry was found. In a rehearsal its folder may be missing; then there is no `fd`.
    """

    at: str
    fd: int
    path: Path

    @property
    def is_missing(self) -> bool:
        """Whether not even its folder exists."""
        return self.fd < 0


@contextmanager
def open_entry(
    path: Path, *, create_from: Path | None = None, guard: ProtectionGuard | None = None
) -> Generator[FolderEntry]:
    """The entry at exactly this path; missing folders from `create_from` downwards are created on the way.

    With a `guard` the entry is about to be changed. Each folder is checked as it is opened, and the entry through its
    opened folder: what is checked is what is used, whatever is renamed meanwhile.
    """
    log = current_change_log()
    try:
        fd = _walk_to(path.parent, create_from, guard, log)
    except _FolderNotMade:
        yield FolderEntry(path.name or ".", -1, path)
        return
    try:
        if guard is not None:
            _refuse_protected(guard.entry_reason(path, fd), path)
        yield FolderEntry(path.name or ".", fd, path)
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


class _FolderNotMade(Exception):
    """In a rehearsal a folder is missing, and would be made."""


def _walk_to(
    folder: Path, create_from: Path | None, guard: ProtectionGuard | None = None, log: ChangeLog | None = None
) -> int:
    fd = os.open(folder.anchor, _OPEN_PLACE)
    current = Path(folder.anchor)
    try:
        for name in folder.parts[1:]:
            current = current / name
            create = create_from is not None and current.is_relative_to(create_from)
            below = _open_step(FolderEntry(name, fd, current), create=create, log=log)
            # Only the innermost folder stays open: the walk continues from it, whatever happens to the path.
            os.close(fd)
            fd = below
            if guard is not None:
                _refuse_protected(guard.folder_reason(fd, name), current)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open_step(entry: FolderEntry, *, create: bool, log: ChangeLog | None) -> int:
    fd, name = entry.fd, entry.at
    try:
        return os.open(name, _OPEN_PLACE, dir_fd=fd)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(fd, name):
            raise _link_error(name) from None
        raise
    if log is not None:
        log.begin(FileChange(entry.path, None, FileState("folder")))
        if log.rehearses:
            raise _FolderNotMade
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
    if at.is_missing:
        return None
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


def write_file(
    target: FolderEntry,
    chunks: Iterable[bytes],
    display: str,
    *,
    replace: bool,
    mode: int = 0o666,
    exact_mode: int | None = None,
    appended: bool = False,
) -> None:
    """Replace the content of the entry; a failure at any moment leaves the old content.

    Args:
        target: The entry.
        chunks: The new content.
        display: The path for messages.
        replace: Whether an existing file may be replaced.
        mode: The mode of a new file, before the mask of the process; an existing one keeps its own.
        exact_mode: The mode that the file gets in any case, before it gets its name.
        appended: Whether the new content begins with the old one.
    """
    old = file_stat(target, display)
    if old is not None and not replace:
        raise _exists_error(display)
    log = current_change_log()
    if log is not None and log.rehearses:
        _rehearse_write(log, target, b"".join(chunks), old, display)
        return
    part = f".{os.urandom(8).hex()}.part"
    # 0600 first: a private file must not be readable by others before its old mode is restored.
    fd = os.open(part, _CREATE_NEW, mode if old is None and exact_mode is None else 0o600, dir_fd=target.fd)
    digest, size = hashlib.sha256(), 0
    try:
        with os.fdopen(fd, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
            file.flush()
            kept = exact_mode if old is None or exact_mode is not None else stat.S_IMODE(old.st_mode)
            if kept is not None:
                os.fchmod(fd, kept & 0o777)
            # The content must be on disk before the name is, or a crash could leave an empty file.
            fsync(fd)
            new_mode = stat.S_IMODE(os.fstat(fd).st_mode) & 0o777
        if log is not None:
            # Right before the rename: the content before is what this call replaces, and both hashes are known, so that
            # after a crash the content of the file tells whether the rename happened.
            before, content = _read_state(target, display, keep=log.wants_content(target.path, appended=appended))
            after = FileState("file", digest.hexdigest(), size, new_mode)
            log.begin(FileChange(target.path, before, after, content, appended=appended))
        _rename_into_place(part, target, display, replace=replace)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=target.fd)
        raise
    _sync_folder(target)


def _rehearse_write(
    log: ChangeLog, target: FolderEntry, content: bytes, old: os.stat_result | None, display: str
) -> None:
    before, replaced = (None, None) if old is None else _read_state(target, display, keep=True)
    after = content_state(content, 0 if before is None else before.mode)
    log.begin(FileChange(target.path, before, after, replaced, content))


def _read_state(target: FolderEntry, display: str, *, keep: bool) -> tuple[FileState | None, bytes | None]:
    """The state of an entry and, to be kept, its content; without a hash if it cannot be read."""
    info = entry_stat(target)
    if info is None:
        return None, None
    mode = stat.S_IMODE(info.st_mode) & 0o777
    if stat.S_ISDIR(info.st_mode):
        return FileState("folder", mode=mode), None
    if stat.S_ISLNK(info.st_mode):
        link = os.fsencode(os.readlink(target.at, dir_fd=target.fd))
        return FileState("link", hashlib.sha256(link).hexdigest(), len(link)), link
    if not stat.S_ISREG(info.st_mode):
        return FileState("file", mode=mode), None
    digest, size = hashlib.sha256(), 0
    kept: list[bytes] | None = [] if keep else None
    try:
        with os.fdopen(open_file(target, display), "rb") as file:
            for chunk in iter_chunks(file):
                digest.update(chunk)
                size += len(chunk)
                if kept is not None:
                    kept = None if size > MAX_KEPT_FILE else [*kept, chunk]
    except PermissionError:
        # A file that may be replaced and not read: it is replaced, and that cannot be taken back.
        return FileState("file", size=info.st_size, mode=mode), None
    return FileState("file", digest.hexdigest(), size, mode), None if kept is None else b"".join(kept)


def read_entry(target: FolderEntry, display: str) -> tuple[FileState | None, bytes | None]:
    """The state of an entry as it is now, and its content unless it is larger than `MAX_KEPT_FILE`."""
    return _read_state(target, display, keep=True)


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

        write_file(target, both(), display, replace=True, appended=True)


def move_file(source: FolderEntry, target: FolderEntry, display: str, target_display: str) -> None:
    """Rename a file, never onto a name that is in use."""
    info = entry_stat(source)
    if info is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), display)
    if stat.S_ISDIR(info.st_mode):
        raise is_folder_error(display)
    if entry_stat(target) is not None:
        raise _exists_error(target_display)
    if (log := current_change_log()) is not None:
        # The content is not kept: it stays on the disk, under the other name.
        state, content = _read_state(source, display, keep=log.rehearses)
        there = FileChange(target.path, None, state, None, content)
        log.begin(FileChange(source.path, state, None, content), there)
        if log.rehearses:
            return
    try:
        os.link(source.at, target.at, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
    except FileExistsError:
        raise _exists_error(target_display) from None
    except OSError:
        # Another file system, or one without hard links.
        with os.fdopen(open_file(source, display), "rb") as file:
            mode = stat.S_IMODE(info.st_mode) & 0o777
            # The move is reported already.
            with report_changes(None):
                write_file(target, iter_chunks(file), target_display, replace=False, mode=mode)
    os.unlink(source.at, dir_fd=source.fd)


def delete_file(target: FolderEntry, display: str) -> None:
    """Delete a file; of a link, the link itself."""
    info = entry_stat(target)
    if info is not None and stat.S_ISDIR(info.st_mode):
        raise is_folder_error(display)
    log = current_change_log()
    if log is not None and info is not None:
        before, content = _read_state(target, display, keep=log.wants_content(target.path, appended=False))
        log.begin(FileChange(target.path, before, None, content))
        if log.rehearses:
            return
    os.unlink(target.at, dir_fd=target.fd)


def make_folder(target: FolderEntry, display: str) -> None:
    """Create a folder; an existing one is accepted."""
    log = current_change_log()
    if log is not None and entry_stat(target) is None:
        log.begin(FileChange(target.path, None, FileState("folder")))
        if log.rehearses:
            return
    try:
        os.mkdir(target.at, dir_fd=target.fd)
    except FileExistsError:
        info = entry_stat(target)
        if info is None or not stat.S_ISDIR(info.st_mode):
            raise _exists_error(display) from None


def remove_folder(target: FolderEntry) -> bool:
    """Remove a folder if it is empty; whether it is gone."""
    try:
        os.rmdir(target.at, dir_fd=target.fd)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def make_link(target: FolderEntry, leads_to: bytes) -> None:
    """Create a symbolic link under a name that is not in use."""
    os.symlink(leads_to, os.fsencode(target.at), dir_fd=target.fd)


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

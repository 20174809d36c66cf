"""Mail on disk: Maildir folders and mbox files, listed and read without following links.

They are opened for reading only: what changes them is in `_mail_folders`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from bicameral.errors import ToolError

INBOX = "INBOX"
MAX_MAIL = 32 * 1024 * 1024
"""Only this many bytes of a larger mail are read."""
_MAX_HEAD = 64 * 1024
_MAX_DEPTH = 8
_HEADER_LINE = re.compile(rb"[!-9;-~]+:")
_QUOTED_FROM = re.compile(rb"(?m)^>(>*From )")
_MBOX_NAMES = (".mbox", ".mbx")
_LONGEST_LINE = 64 * 1024
MAX_MAILS = 200_000
"""The most mails of one folder: a mail that is only a line `From x` takes a hundred times its size in memory."""


@dataclass(frozen=True, slots=True)
class StoredMail:
    """One mail on disk: where its bytes are, and what the mailbox records about it."""

    key: str
    folder: str
    path: Path
    modified: int
    """In nanoseconds."""
    size: int
    start: int = 0
    unread: bool | None = None
    """None if only the mail itself records it (mbox)."""
    envelope: bytes = b""
    """The `From ` line of an mbox."""

    @property
    def stamp(self) -> tuple[int, int]:
        """Changes if the mail with this key does, so that a cached value of it is out of date."""
        return self.modified, self.size

    def read_head(self) -> bytes:
        """The first bytes of the mail, with its headers."""
        return self._read_bytes(min(self.size, _MAX_HEAD))

    def read_all(self) -> bytes:
        """The whole mail, up to `MAX_MAIL` bytes."""
        return self._read_bytes(min(self.size, MAX_MAIL))

    def _read_bytes(self, size: int) -> bytes:
        with open_nofollow(self.path) as stream:
            if self.envelope and os.fstat(stream.fileno()).st_mtime_ns != self.modified:
                raise FileNotFoundError("the mbox has changed, so the mail may be elsewhere in it now")
            stream.seek(self.start)
            raw = stream.read(size)
        return _QUOTED_FROM.sub(rb"\1", raw) if self.envelope else raw


def open_nofollow(path: Path) -> BinaryIO:
    """Open a file for reading; fails if it has become a symbolic link, which could lead out of the mailbox."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def is_mailbox(path: Path) -> bool:
    """Whether this is an mbox file, a Maildir, or a folder that contains one of them."""
    if path.is_file():
        return _looks_like_mbox(path)
    return path.is_dir() and next(_walk_mailboxes(path, "", 0), None) is not None


def list_mailboxes(root: Path) -> list[tuple[str, Path]]:
    """The folders of a mailbox by name: `INBOX`, `Archive`, `Archive/2026`."""
    if root.is_file():
        return [(INBOX, root)]
    return list(_walk_mailboxes(root, "", 0))


def list_stored_mails(folder: str, path: Path) -> list[StoredMail]:
    """The mails of one folder, in no particular order."""
    mails = list(islice(_iter_mbox(folder, path) if path.is_file() else _iter_maildir(folder, path), MAX_MAILS + 1))
    if len(mails) > MAX_MAILS:
        raise ToolError(
            "mail.folder-too-large",
            f"there are more than {MAX_MAILS:,} mails in the folder {folder!r}",
            fix="Move old mails to another place, or set `folder` under [toolbox.mail] in bicameral.toml.",
        )
    return mails


def _walk_mailboxes(path: Path, name: str, depth: int) -> Iterator[tuple[str, Path]]:
    if _is_maildir(path):
        yield name or INBOX, path
    if depth >= _MAX_DEPTH:
        return
    for entry in sorted(_scan_folder(path), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False) and entry.name not in ("cur", "new", "tmp"):
            yield from _walk_mailboxes(Path(entry.path), _folder_name(name, entry.name), depth + 1)
        elif entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(_MBOX_NAMES):
            yield _folder_name(name, Path(entry.name).stem), Path(entry.path)


def _folder_name(parent: str, name: str) -> str:
    # Maildir++ writes the folder Archive/2026 as `.Archive.2026`.
    own = name[1:].replace(".", "/") if name.startswith(".") else name
    return f"{parent}/{own}" if parent else own


def _scan_folder(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def _is_maildir(path: Path) -> bool:
    return any(entry.name in ("cur", "new") and entry.is_dir(follow_symlinks=False) for entry in _scan_folder(path))


def _iter_maildir(folder: str, path: Path) -> Iterator[StoredMail]:
    for part in ("cur", "new"):
        # Links are not followed: they could lead out of the folders that may be read.
        if (path / part).is_symlink():
            continue
        for entry in _scan_folder(path / part):
            if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            try:
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            key, _, flags = entry.name.partition(":2,")
            unread = part == "new" or "S" not in flags
            yield StoredMail(
                f"{folder}/{key}", folder, Path(entry.path), facts.st_mtime_ns, facts.st_size, unread=unread
            )


def _looks_like_mbox(path: Path) -> bool:
    try:
        with open_nofollow(path) as stream:
            start = stream.read(5)
    except OSError:
        return False
    return start in (b"From ", b"")


def _iter_mbox(folder: str, path: Path) -> Iterator[StoredMail]:
    with open_nofollow(path) as stream:
        modified = os.fstat(stream.fileno()).st_mtime_ns
        number, start, envelope, offset = 0, -1, b"", 0
        after_blank, candidate = True, b""
        at_line_start = True
        # Read in pieces, since a line may have a gigabyte. A later piece of a line is not the start of one.
        for line in iter(lambda: stream.readline(_LONGEST_LINE), b""):
            if not at_line_start:
                at_line_start = line.endswith(b"\n")
                candidate, after_blank = b"", False
                offset += len(line)
                continue
            at_line_start = line.endswith(b"\n")
            if candidate and _HEADER_LINE.match(line):
                if start >= 0:
                    size = offset - len(candidate) - start
                    yield StoredMail(f"{folder}/{number}", folder, path, modified, size, start, None, envelope)
                number, start, envelope = number + 1, offset, candidate
            # A separator stands after an empty line and before a header; any other "From " belongs to a text.
            candidate = line if after_blank and line.startswith(b"From ") else b""
            after_blank = line in (b"\n", b"\r\n")
            offset += len(line)
        if start >= 0:
            yield StoredMail(f"{folder}/{number}", folder, path, modified, offset - start, start, None, envelope)

"""Changes of files by a call: whoever records or previews them is told before each of them is made.

All file operations of `Folders` report here. A `ChangeLog` gets every change with the state before and after it while
the file still has the state before: what it refuses is not done. With a `Rehearsal` nothing is done at all, and what
would have been done is kept for a preview.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

MAX_KEPT_FILE = 32 * 1024 * 1024
"""The largest content, in bytes, that is kept of a file before it is changed."""

FileKind = Literal["file", "link", "folder"]


@dataclass(frozen=True, slots=True)
class FileState:
    """What stands at a path. `sha256` is that of the content, of a link that of its target; empty if not known."""

    kind: FileKind
    sha256: str = ""
    size: int = 0
    mode: int = 0

    def is_same(self, other: FileState | None) -> bool:
        """Whether both are the same kind of entry with the same content; a changed mode is no changed content."""
        if other is None or self.kind != other.kind:
            return False
        return self.kind == "folder" or (bool(self.sha256) and self.sha256 == other.sha256)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "sha256": self.sha256, "size": self.size, "mode": self.mode}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> FileState:
        """The state that `to_json` wrote."""
        kind: FileKind = facts["kind"] if facts["kind"] in ("link", "folder") else "file"
        return cls(kind, str(facts["sha256"]), int(facts["size"]), int(facts["mode"]))


@dataclass(frozen=True, slots=True)
class FileChange:
    """One change of the entry at a path; a state of None means that nothing is there.

    Args:
        path: The real path, free of links.
        before: The state before the change.
        after: The state after it.
        content: The content before, if the log wanted it and it is not larger than `MAX_KEPT_FILE`.
        new_content: The content after it; only in a rehearsal.
        appended: Whether the content after begins with the content before.
        unrecorded: Whether a program may change anything in the folder at this path, which nobody records.
    """

    path: Path
    before: FileState | None
    after: FileState | None
    content: bytes | None = None
    new_content: bytes | None = None
    appended: bool = False
    unrecorded: bool = False


class ChangeLog(Protocol):
    """Gets the changes of a call, each before it is made."""

    @property
    def rehearses(self) -> bool:
        """Whether changes are only noted and not made."""
        ...

    def wants_content(self, path: Path, *, appended: bool) -> bool:
        """Whether the content before the change must come with it."""
        ...

    def begin(self, *changes: FileChange) -> None:
        """The changes are about to be made, all of them or none; whatever this raises prevents them."""
        ...


@dataclass(slots=True)
class Rehearsal:
    """A log under which no file is changed: it keeps what would have been changed, in order."""

    changes: list[FileChange] = field(default_factory=list[FileChange])
    rehearses: bool = True

    def wants_content(self, path: Path, *, appended: bool) -> bool:
        return True

    def begin(self, *changes: FileChange) -> None:
        self.changes += changes


_LOG: ContextVar[ChangeLog | None] = ContextVar("bicameral-changes", default=None)


def current_change_log() -> ChangeLog | None:
    """The log of the call that is being made; None outside of a run."""
    return _LOG.get()


@contextmanager
def report_changes(log: ChangeLog | None) -> Generator[None]:
    """Report the changes that are made within this context, in threads that it starts included; None: to nobody."""
    token = _LOG.set(log)
    try:
        yield
    finally:
        _LOG.reset(token)


def content_state(content: bytes, mode: int = 0) -> FileState:
    """The state of a file with this content."""
    return FileState("file", hashlib.sha256(content).hexdigest(), len(content), mode)


def report_unrecorded(folder: Path) -> None:
    """Report that a program gets a folder in which it may change anything."""
    log = current_change_log()
    if log is not None:
        log.begin(FileChange(folder, FileState("folder"), FileState("folder"), unrecorded=True))

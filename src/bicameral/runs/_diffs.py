"""Differences between two contents of a file, as a person reads them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bicameral.display import make_visible
from bicameral.tools import FileState

MAX_DIFF_LINES = 10_000
"""Texts with more lines are not compared line by line: that takes time that grows with the square of the lines."""
MAX_SHOWN_LINES = 400
_MAX_LINE = 500

DiffKind = Literal["created", "deleted", "changed", "moved", "folder"]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What becomes of one file.

    Args:
        path: Where it is, for a person.
        kind: What happens to it.
        lines: The unified diff without its header; hidden characters are made visible.
        summary: The same in a few words: `12 lines become 3`.
        moved_to: Where it goes, if it is moved.
    """

    path: str
    kind: DiffKind
    lines: tuple[str, ...] = ()
    summary: str = ""
    moved_to: str | None = None

    @property
    def title(self) -> str:
        """One line for the file."""
        match self.kind:
            case "moved":
                return f"{self.path} → {self.moved_to}"
            case "folder":
                return f"{self.path}/: {self.summary}"
            case _:
                return f"{self.path}: {self.kind}" + (f", {self.summary}" if self.summary else "")

    def text(self, most: int = MAX_SHOWN_LINES) -> str:
        """The title and the lines of the diff, as many as a person reads."""
        shown = list(self.lines[:most])
        if (more := len(self.lines) - most) > 0:
            shown.append(f"… {more:,} more lines")
        return "\n".join([self.title, *shown])

    def to_json(self) -> dict[str, Any]:
        moved = {} if self.moved_to is None else {"moved_to": self.moved_to}
        return {"path": self.path, "kind": self.kind, "summary": self.summary, "diff": list(self.lines)} | moved


def make_diff(
    path: str,
    before: tuple[FileState | None, bytes | None],
    after: tuple[FileState | None, bytes | None],
) -> FileDiff:
    """The difference between two states of a file; of a content that is None only the size is told."""
    old, new = before[0], after[0]
    name = make_visible(path, strict=True)
    if "folder" in (old and old.kind, new and new.kind):
        return FileDiff(name, "folder", summary="made" if old is None else "removed if it is empty")
    kind: DiffKind = "created" if old is None else "deleted" if new is None else "changed"
    texts = [_as_lines(state, content) for state, content in (before, after)]
    if texts[0] is None or texts[1] is None:
        return FileDiff(name, kind, summary=_sizes(old, new))
    lines = tuple(_diff_lines(texts[0], texts[1]))
    return FileDiff(name, kind, lines, _counts(len(texts[0]), len(texts[1]), kind))


def moved_diff(path: str, moved_to: str) -> FileDiff:
    """The difference for a file that goes elsewhere unchanged."""
    return FileDiff(make_visible(path, strict=True), "moved", moved_to=make_visible(moved_to, strict=True))


def short_path(path: Path) -> str:
    """A path for a person: from the working folder, if it lies there."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _as_lines(state: FileState | None, content: bytes | None) -> list[str] | None:
    """The lines of a text; None if it is none, or not known."""
    if state is None:
        return []
    if content is None or b"\0" in content:
        return None
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return None


def _diff_lines(old: list[str], new: list[str]) -> Iterable[str]:
    if len(old) + len(new) > MAX_DIFF_LINES:
        return
    # The first two lines name the files, which the title does.
    for number, line in enumerate(difflib.unified_diff(old, new, lineterm="", n=2)):
        if number > 1:
            yield make_visible(line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…", strict=True)


def _counts(old: int, new: int, kind: DiffKind) -> str:
    match kind:
        case "created":
            return _lines_text(new)
        case "deleted":
            return _lines_text(old)
        case _:
            return f"{_lines_text(old)} become{'s' if old == 1 else ''} {new:,}"


def _lines_text(number: int) -> str:
    return f"{number:,} line{'' if number == 1 else 's'}"


def _sizes(old: FileState | None, new: FileState | None) -> str:
    if old is None or new is None:
        size = (new or old or FileState("file")).size
        return f"{size:,} bytes"
    return f"{old.size:,} bytes become {new.size:,}"

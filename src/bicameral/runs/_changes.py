"""The changes of files by a run: each is in the journal before it is made, with what is needed to take it back.

A record of a change has the hash before and the hash after, and the content before where it could not be found again
otherwise. So after a crash the content of a file tells whether its last change was made. The content is kept once for
each file and run, up to `MAX_KEPT_FILE` bytes of one file and `MAX_KEPT_RUN` bytes of one run.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from bicameral.errors import ToolError
from bicameral.journal import Event
from bicameral.secrets import mask
from bicameral.tools import MAX_KEPT_FILE, FileChange, FileState

if TYPE_CHECKING:
    from bicameral.runs._observability import EventWriter

MAX_KEPT_RUN = 256 * 1024 * 1024
"""The most bytes of former contents that are kept of one run."""
CHANGE_KIND = "file-change"


@dataclass(slots=True)
class ChangeHistory:
    """What a run has changed so far.

    Args:
        touched: The paths that it has changed.
        unsaved: Those of them whose former content is nowhere but in the file itself: it was appended to, or moved.
        kept: How many bytes of former contents are kept.
    """

    touched: set[Path] = field(default_factory=set[Path])
    unsaved: set[Path] = field(default_factory=set[Path])
    kept: int = 0

    def wants_content(self, path: Path, *, appended: bool) -> bool:
        """Whether the content of a file would be lost with the change that is about to be made."""
        return not appended and (path not in self.touched or path in self.unsaved)

    def add(self, changes: Sequence[FileChange]) -> None:
        """Note changes that are about to be made together."""
        movable = any(self._is_original(each.path) for each in changes if each.after is None and each.content is None)
        for each in changes:
            original = self._is_original(each.path) and each.before is not None
            moved_here = movable and each.before is None and len(changes) > 1
            if (each.appended and original) or moved_here:
                self.unsaved.add(each.path)
            else:
                self.unsaved.discard(each.path)
            self.touched.add(each.path)

    def _is_original(self, path: Path) -> bool:
        return path not in self.touched or path in self.unsaved

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> ChangeHistory:
        """What the earlier attempts at a run have changed.

        Of a change that another process recorded it is not known whether it was made: its content counts as unsaved.
        """
        paths = {each.path for each, _ in recorded_changes(events)}
        return cls(set(paths), set(paths))


class CallChanges:
    """The log of one call: writes each change to the journal before it is made.

    Args:
        record: Where changes are recorded.
        step: The step of the call.
        history: What the run has changed so far.
    """

    rehearses = False

    def __init__(self, record: EventWriter, step: str, history: ChangeHistory) -> None:
        self._record, self._step, self._history = record, step, history
        self._closed = False
        # A tool may change files from several threads.
        self._lock = Lock()

    def wants_content(self, path: Path, *, appended: bool) -> bool:
        return self._record.is_enabled and self._history.wants_content(path, appended=appended)

    def begin(self, *changes: FileChange) -> None:
        with self._lock:
            if self._closed:
                # A thread that goes on after its call was given up: what it changes now could not be recorded as part
                # of the call, and nobody would know of it.
                raise ToolError("tools.given-up", "the call was given up before it made this change")
            facts = [self._facts(each) for each in changes]
            self._record.write(CHANGE_KIND, self._step, {"changes": facts}, sync=True)
            self._history.add(changes)

    def close(self) -> None:
        """From now on nothing more is changed: the call has ended, or was given up."""
        with self._lock:
            self._closed = True

    def _facts(self, change: FileChange) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "path": str(change.path),
            "before": None if change.before is None else change.before.to_json(),
            "after": None if change.after is None else change.after.to_json(),
        }
        if change.unrecorded:
            return facts | {"unrecorded": True}
        wanted = self._history.wants_content(change.path, appended=change.appended) and change.before is not None
        if not self._record.is_enabled or not wanted or (change.before and change.before.kind == "folder"):
            return facts
        if change.content is None:
            # Moved and not copied, or too large, or unreadable. Of the first the content is found under the new name.
            return facts
        if self._history.kept + len(change.content) > MAX_KEPT_RUN:
            return facts | {"not_kept": f"the run has changed more than {MAX_KEPT_RUN:,} bytes"}
        encoded = base64.b64encode(change.content).decode()
        # The journal never holds a secret; it would be masked, and the file that came of it would be a broken one.
        if mask(encoded) != encoded:
            return facts | {"not_kept": "the file held a secret, and the journal keeps none"}
        self._history.kept += len(change.content)
        return facts | {"content": encoded}


def recorded_changes(events: Iterable[Event]) -> Iterator[tuple[FileChange, Mapping[str, Any]]]:
    """The changes that a run has recorded, in order, each with the facts of its record."""
    for event in events:
        if event.kind == CHANGE_KIND:
            for facts in event.body.get("changes", ()):
                yield change_from_json(facts), facts


def change_from_json(facts: Mapping[str, Any]) -> FileChange:
    """The change that was recorded with these facts."""
    before, after = (None if facts[name] is None else FileState.from_json(facts[name]) for name in ("before", "after"))
    content = base64.b64decode(facts["content"]) if "content" in facts else None
    return FileChange(Path(facts["path"]), before, after, content, unrecorded=bool(facts.get("unrecorded")))


def missing_content_reason(change: FileChange, facts: Mapping[str, Any]) -> str:
    """Why the content of a file before a change was not kept."""
    if "not_kept" in facts:
        return str(facts["not_kept"])
    if change.before is not None and change.before.size > MAX_KEPT_FILE:
        return f"it was larger than {MAX_KEPT_FILE:,} bytes"
    return "its former content could not be read"


def public_event(event: Event) -> Event:
    """An event for whoever watches a run: without the former contents of files."""
    if event.kind != CHANGE_KIND:
        return event
    changes = [
        {name: fact for name, fact in each.items() if name != "content"} for each in event.body.get("changes", ())
    ]
    return replace(event, body={"changes": changes})

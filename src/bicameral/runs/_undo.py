"""Taking back what a run changed, while nothing else has changed it since.

The record of a run has the state of each file before and after every change. Undo compares the files with it first: if
one of them is not as the run left it, nothing is taken back. Paths of the record are not believed: each is checked
against the folders that may be written now, and no link on the way to it is followed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bicameral.errors import BicameralError, RunError, ToolError
from bicameral.journal import END_KINDS, UNDO_SUFFIX, Event, Journal
from bicameral.runs._changes import missing_content_reason, recorded_changes
from bicameral.runs._diffs import FileDiff, make_diff, moved_diff
from bicameral.tools import (
    CHANGING,
    FileChange,
    FileState,
    Folders,
    Registry,
    find_command,
    move_back,
    read_exact,
    remove_exact,
    restore_exact,
)

Action = Literal["move", "restore", "delete", "remove-folder"]
_ORDER: tuple[Action, ...] = ("move", "restore", "delete", "remove-folder")


@dataclass(frozen=True, slots=True)
class Restoration:
    """One file that is put back.

    Args:
        action: What is done.
        path: The file.
        now: Its state now; None if there is none.
        then: Its state before the run; None if there was none.
        content: Its content before the run, if it is written.
        source: Where it is now, if it is moved back.
        diff: The difference that taking it back makes.
        keep_mode: Whether it keeps its mode of now: somebody has changed it since.
    """

    action: Action
    path: Path
    now: FileState | None
    then: FileState | None
    diff: FileDiff
    content: bytes | None = field(default=None, repr=False)
    source: Path | None = None
    keep_mode: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file that cannot be put back, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class LastingEffect:
    """An effect of a run that cannot be taken back."""

    step: str
    tool: str
    reason: str

    def __str__(self) -> str:
        return f"step {self.step} ({self.tool}): {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, "tool": self.tool, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Undo:
    """What taking back a run would do; nothing of it is done yet.

    Args:
        run: The run.
        restorations: What is put back, in order.
        conflicts: What cannot be put back: then nothing is.
        lasting: The effects that cannot be taken back at all, such as a mail that was sent.
        changes: How many changes the run has recorded.
    """

    run: str
    restorations: tuple[Restoration, ...]
    conflicts: tuple[Conflict, ...] = ()
    lasting: tuple[LastingEffect, ...] = ()
    changes: int = 0

    @property
    def diffs(self) -> tuple[FileDiff, ...]:
        return tuple(each.diff for each in self.restorations)

    def require(self) -> None:
        """Raise if it cannot be taken back, or if there is nothing to take back."""
        first = next(iter(self.conflicts), None)
        if first is not None:
            more = f" (and {len(self.conflicts) - 1} more)" if len(self.conflicts) > 1 else ""
            raise RunError(
                "run.undo-conflict",
                f"run {self.run} cannot be taken back: {first}{more}",
                fix="Nothing was changed. Put the file back yourself; `bicameral undo --dry-run` shows all of them.",
            )
        if not self.restorations:
            lasting = "".join(f"; cannot be taken back: {each}" for each in self.lasting[:1])
            raise RunError("run.nothing-to-undo", f"run {self.run} changed no file that is not as before{lasting}")

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "files": [{"action": each.action, **each.diff.to_json()} for each in self.restorations],
            "conflicts": [{"path": each.path, "reason": each.reason} for each in self.conflicts],
            "lasting": [each.to_json() for each in self.lasting],
        }


def undo_record(run: str) -> str:
    """The id under which the journal records that a run was taken back."""
    return f"{run}{UNDO_SUFFIX}"


def plan_undo(journal: Journal, run: str, folders: Folders, registry: Registry) -> Undo:
    """What taking back a run would do. Changes nothing.

    Args:
        journal: The journal with its record.
        run: Its id, the unique beginning of it, or `last`; also that of a reasoning over several runs.
        folders: The folders that may be written now.
        registry: The tools, to know which effects were more than changes of files.
    """
    run = journal.find(run)
    _refuse_undone(journal, run)
    events = [event for part in _parts(journal, run) for event in part]
    tracked = _Tracked.from_events(events)
    restorations, conflicts = _compare(tracked, folders)
    lasting = tuple(_lasting_effects(events, registry))
    return Undo(run, tuple(restorations), tuple(conflicts), lasting, _count_changes(events))


def apply_undo(journal: Journal, undo: Undo, folders: Folders) -> tuple[str, ...]:
    """Put everything back, and record that; returns the folders that were left, because they are not empty.

    The run is ended first if it has no end: a process that still works on it can change nothing more. If putting back
    fails in the middle, it can be tried again: what is back already is left alone.
    """
    undo.require()
    _refuse_undone(journal, undo.run)
    for part in _parts(journal, undo.run):
        _end_run(journal, part)
    # A process that was still at work may have changed more after the files were compared.
    if _count_changes(event for part in _parts(journal, undo.run) for event in part) != undo.changes:
        raise RunError("run.undo-conflict", f"run {undo.run} went on meanwhile", fix="It has ended now: try again.")
    record = undo_record(undo.run)
    number = len(journal.events_after(record, -1))
    paths = [str(each.path) for each in undo.restorations]
    # With the number that it must have: of two processes that take back the same run only one goes on.
    journal.append(record, "undo-started", "", {"run": undo.run, "paths": paths}, first=number, sync=True)
    done: list[str] = []
    left: list[str] = []
    try:
        for each in undo.restorations:
            if not _restore(each, folders):
                left.append(each.diff.path)
            done.append(str(each.path))
    except BicameralError as error:
        facts = {"run": undo.run, "done": done, "error": error.to_json()}
        journal.append(record, "undo-failed", "", facts, sync=True)
        raise
    facts = {"run": undo.run, "done": done, "left": left, "lasting": [each.to_json() for each in undo.lasting]}
    journal.append(record, "undo-finished", "", facts, sync=True)
    return tuple(left)


def _count_changes(events: Iterable[Event]) -> int:
    return sum(event.kind == "file-change" for event in events)


def _refuse_undone(journal: Journal, run: str) -> None:
    if any(event.kind == "undo-finished" for event in journal.events_after(undo_record(run), -1)):
        raise RunError("run.undone", f"run {run} was taken back already", fix="Run the request again to do it again.")


def _parts(journal: Journal, run: str) -> list[list[Event]]:
    """The records of a run, or of all runs of a reasoning, in order."""
    events = journal.events(run)
    if events[0].kind != "reason-started":
        return [events]
    if events[-1].kind not in END_KINDS:
        raise _not_ended_error(run)
    named = [str(event.body["run"]) for event in events if event.body.get("run") and event.kind.startswith("reason-")]
    # The plan that there was before the rounds runs under this id, if they led to nothing.
    names = dict.fromkeys([*named, f"{run}-plan"])
    return [journal.events(name) for name in names if name != run and journal.events_after(name, -1)]


def _end_run(journal: Journal, events: Sequence[Event]) -> None:
    """End a run whose process died, so that nobody goes on with it."""
    last = events[-1]
    if last.kind in END_KINDS:
        return
    if last.kind == "run-waits":
        raise _not_ended_error(last.run)
    ended = {event.step for event in events if event.kind == "step-finished"}
    begun = {event.step: event.body for event in events if event.kind == "step-started"}
    changing = {step: body for step, body in begun.items() if body.get("effect") in CHANGING}
    effects = [
        {"step": step, "tool": body["tool"], "effect": body["effect"]}
        for step, body in changing.items()
        if step in ended
    ]
    facts = {"in_flight": sorted(changing.keys() - ended), "effects": effects, "why": "it was taken back"}
    journal.append(last.run, "run-stopped", "", facts, first=last.number + 1, sync=True)


def _not_ended_error(run: str) -> RunError:
    return RunError("run.not-ended", f"run {run} has not ended", fix="Let it end, or cancel it with `bicameral runs`.")


@dataclass(slots=True)
class _TrackedFile:
    """What a run made of one path: the state before the first change, and before and after the last one."""

    initial: FileState | None
    previous: FileState | None
    last: FileState | None
    first_change: FileChange
    facts: Mapping[str, Any]
    interrupted: bool = False
    """Whether something else changed it between two changes of the run."""


@dataclass(slots=True)
class _Tracked:
    """The files that a run changed, in the order of their first change, and the contents that its record keeps."""

    files: dict[Path, _TrackedFile] = field(default_factory=dict[Path, _TrackedFile])
    contents: list[bytes] = field(default_factory=list[bytes])

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> _Tracked:
        tracked = cls()
        for change, facts in recorded_changes(events):
            if change.unrecorded:
                continue
            if change.content is not None:
                tracked.contents.append(change.content)
            file = tracked.files.get(change.path)
            if file is None:
                tracked.files[change.path] = _TrackedFile(change.before, change.before, change.after, change, facts)
                continue
            # A change is recorded before it is made, so that one that was cut off may not have been made.
            file.interrupted |= not (_is_same(change.before, file.last) or _is_same(change.before, file.previous))
            file.previous, file.last = change.before, change.after
        return tracked


def _is_same(one: FileState | None, other: FileState | None) -> bool:
    return one is other if one is None or other is None else one.is_same(other)


def _compare(tracked: _Tracked, folders: Folders) -> tuple[list[Restoration], list[Conflict]]:
    conflicts: list[Conflict] = []
    current: dict[Path, tuple[FileState | None, bytes | None]] = {}
    for path, file in tracked.files.items():
        shown = folders.display_path(path)
        try:
            found = read_exact(folders, path)
        except ToolError as error:
            conflicts.append(Conflict(shown, error.message))
            continue
        if _is_same(found[0], file.initial):
            continue
        if file.interrupted or not (_is_same(found[0], file.last) or _is_same(found[0], file.previous)):
            conflicts.append(Conflict(shown, _changed_reason(found[0], file)))
            continue
        current[path] = found
    if conflicts:
        return [], conflicts
    return _plan_restorations(tracked, current, folders)


def _changed_reason(now: FileState | None, file: _TrackedFile) -> str:
    if now is None:
        return "it is not there any more"
    if file.last is None:
        return "the run removed it, and now there is another one"
    return "something else changed it while the run went on" if file.interrupted else "it was changed after the run"


def _plan_restorations(
    tracked: _Tracked, current: Mapping[Path, tuple[FileState | None, bytes | None]], folders: Folders
) -> tuple[list[Restoration], list[Conflict]]:
    found: list[Restoration] = []
    conflicts: list[Conflict] = []
    contents = [*tracked.contents, *(content for _, content in current.values() if content is not None)]
    moved: set[Path] = set()
    for path, (now, content) in current.items():
        file = tracked.files[path]
        then, shown = file.initial, folders.display_path(path)
        source = _moved_from(then, now, tracked, current, moved)
        if source is not None:
            moved.add(source)
            diff = moved_diff(folders.display_path(source), shown)
            found.append(Restoration("move", path, now, then, diff, source=source))
        elif then is None:
            kind: Action = "remove-folder" if now is not None and now.kind == "folder" else "delete"
            found.append(Restoration(kind, path, now, None, make_diff(shown, (now, content), (None, None))))
        else:
            former = _find_content(then, contents)
            if former is None:
                conflicts.append(Conflict(shown, missing_content_reason(file.first_change, file.facts)))
                continue
            diff = make_diff(shown, (now, content), (then, former))
            keep_mode = now is not None and file.last is not None and now.mode != file.last.mode
            found.append(Restoration("restore", path, now, then, diff, former, keep_mode=keep_mode))
    # What was moved away is moved back, and so needs no other treatment; folders are removed from the inside out.
    found = [each for each in found if each.path not in moved]
    found.sort(key=lambda each: (_ORDER.index(each.action), -len(each.path.parts) if each.then is None else 0))
    return ([], conflicts) if conflicts else (found, [])


def _moved_from(
    then: FileState | None,
    now: FileState | None,
    tracked: _Tracked,
    current: Mapping[Path, tuple[FileState | None, bytes | None]],
    taken: set[Path],
) -> Path | None:
    """The path under which a file that is gone is found now, and was not before the run."""
    if then is None or now is not None:
        return None
    for path, (state, _) in current.items():
        if path not in taken and tracked.files[path].initial is None and then.is_same(state):
            return path
    return None


def _find_content(wanted: FileState, contents: Iterable[bytes]) -> bytes | None:
    """A content with this hash: one of these, or the beginning of one that was appended to."""
    for each in contents:
        if len(each) >= wanted.size:
            beginning = each[: wanted.size]
            if hashlib.sha256(beginning).hexdigest() == wanted.sha256:
                return beginning
    return None


def _restore(step: Restoration, folders: Folders) -> bool:
    """Put one file back; False for a folder that is not empty. It must still be as it was when it was compared."""
    where = step.path if step.source is None else step.source
    expected = step.now if step.source is None else step.then
    if not _is_same(read_exact(folders, where)[0], expected):
        raise RunError(
            "run.undo-conflict",
            f"{step.diff.path!r} was changed while the run was taken back",
            fix="What is back already stays so. Put this file back yourself, or try again.",
        )
    match step.action:
        case "move":
            move_back(folders, where, step.path)
        case "restore" if step.then is not None:
            restore_exact(folders, step.path, step.then, step.content or b"", keep_mode=step.keep_mode)
        case "remove-folder":
            return remove_exact(folders, step.path, folder=True)
        case _:
            return remove_exact(folders, step.path, folder=False)
    return True


def _lasting_effects(events: Iterable[Event], registry: Registry) -> Iterator[LastingEffect]:
    """The effects that were, or may have been, more than recorded changes of files."""
    named: dict[str, str] = {}
    for event in events:
        body = event.body
        if event.kind == "step-started" and body.get("effect") in CHANGING:
            named[event.step] = str(body.get("tool", ""))
            if reason := _lasting_reason(str(body.get("tool", "")), str(body["effect"]), registry):
                yield LastingEffect(event.step, named[event.step], reason)
        elif event.kind == "file-change" and any(each.get("unrecorded") for each in body.get("changes", ())):
            folders = ", ".join(str(each["path"]) for each in body["changes"] if each.get("unrecorded"))
            tool = named.get(event.step, "")
            yield LastingEffect(event.step, tool, f"what the program changed in {folders} is not recorded")


def _lasting_reason(name: str, effect: str, registry: Registry) -> str | None:
    tool = registry.get(name)
    if effect == "send" or (tool is not None and tool.outbound):
        return "what was sent is sent"
    if tool is None:
        return "the tool is not there any more, so that nobody knows what else it did"
    if tool.files_only or find_command(tool) is not None:
        return None
    return "it may have changed more than files"

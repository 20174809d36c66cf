"""Previews of calls that change files: the call is rehearsed, which changes nothing, and the difference is shown.

Only tools that change nothing but files, through the folders of their toolbox, are rehearsed, and commands whose
sandbox leaves them nothing else: they run without a network, and what they write stays in a temporary folder. A preview
is for a person alone: it has text from the world in it, and no model reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError
from bicameral.runs._diffs import FileDiff, make_diff, moved_diff, short_path
from bicameral.runs._effect_execution import call_with_timeout
from bicameral.tools import FileChange, Rehearsal, Tool, find_command, report_changes

if TYPE_CHECKING:
    from bicameral.runs._approvals import PendingCall
    from bicameral.tools import Registry

REHEARSAL_SECONDS = 10.0
"""How long a rehearsal may take: a person waits for it."""


@dataclass(frozen=True, slots=True)
class ChangePreview:
    """What a call would change.

    Args:
        files: Each file that it would change, as it is now and would be then.
        problem: Why that is not known: the call would fail as things stand.
    """

    files: tuple[FileDiff, ...] = ()
    problem: str = ""

    @property
    def text(self) -> str:
        """All differences, for a person."""
        if self.problem:
            return f"not known before the call: {self.problem}"
        return "\n".join(each.text() for each in self.files) or "it changes nothing"

    @property
    def replaced(self) -> tuple[str, ...]:
        """One line for each file whose content would be replaced: `notes.txt: changed, 12 lines become 3`."""
        return tuple(each.title for each in self.files if each.kind == "changed")

    def to_json(self) -> dict[str, Any]:
        return {"files": [each.to_json() for each in self.files]} | ({"problem": self.problem} if self.problem else {})


async def change_preview(call: PendingCall, registry: Registry) -> ChangePreview | None:
    """What a call that waits for approval would change; None if it does not change files, or not only files.

    Example:
        >>> preview = await change_preview(question.calls[0], agent.registry)
        >>> print(preview.text if preview else "no files")
    """
    tool = registry.get(call.tool)
    return None if tool is None else await preview_call(tool, call.arguments)


def read_preview(call: PendingCall, registry: Registry) -> ChangePreview | None:
    """The same as `change_preview` for code that does not await; the call is rehearsed in a thread of its own."""
    with ThreadPoolExecutor(1, "bicameral-preview") as threads:
        return threads.submit(asyncio.run, change_preview(call, registry)).result()


def can_preview(tool: Tool) -> bool:
    """Whether calls of a tool can be rehearsed: all that they change are files."""
    if not tool.changes or tool.outbound:
        return False
    command = find_command(tool)
    # By its effect a command that is irreversible does more than its sandbox is known to allow.
    return tool.files_only or (command is not None and tool.effect == "write" and command.writes_files_only)


async def preview_call(tool: Tool, arguments: Mapping[str, Any]) -> ChangePreview | None:
    """What a call of a tool with these arguments would change; None if it does not change files, or not only files."""
    if not can_preview(tool):
        return None
    rehearsal = Rehearsal()
    try:
        with report_changes(rehearsal):
            await call_with_timeout(tool, dict(arguments), REHEARSAL_SECONDS)
    except BicameralError as error:
        if error.code == "tools.timeout":
            # A call that takes too long may have had its effect; a rehearsal has none.
            return ChangePreview(problem=f"to find it out takes longer than {REHEARSAL_SECONDS:g} s")
        return ChangePreview(problem=str(error))
    except Exception as error:  # A preview must not end the run that it is for.
        return ChangePreview(problem=type(error).__name__)
    return ChangePreview(tuple(_diffs(rehearsal.changes)))


def _diffs(changes: Sequence[FileChange]) -> list[FileDiff]:
    found: list[FileDiff] = []
    sources: dict[str, Path] = {}
    for each in changes:
        if each.after is None and each.before is not None and _moves(each, changes):
            sources[each.before.sha256] = each.path
            continue
        source = sources.pop(each.after.sha256, None) if each.after is not None and each.before is None else None
        if source is not None:
            found.append(moved_diff(short_path(source), short_path(each.path)))
            continue
        found.append(make_diff(short_path(each.path), (each.before, each.content), (each.after, each.new_content)))
    return found


def _moves(source: FileChange, changes: Sequence[FileChange]) -> bool:
    return any(each.before is None and source.before and source.before.is_same(each.after) for each in changes)

"""The content of the files that go along with a call: what a person approved is what is sent.

A path says nothing of what the file holds when the mail goes out. A tool that sends files along by their paths says in
which folders they lie (`attached_in`). The runtime then hashes each file for the question, hashes it again before the
call is made, and binds the call to these hashes while it runs. The tool reads its files with `read_attached`, which
gives exactly the bytes that were hashed or fails: there is no gap between the check and the use.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import ToolError

from ._attached import argument_of
from ._folder_errors import quoted
from ._origins import path_of
from ._shades import inside

if TYPE_CHECKING:
    from ._folders import Folders
    from ._tool import Tool

MAX_HASHED = 256 * 1024 * 1024
"""Bytes of one file; a larger one is not attached to a call that a person must approve."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file that goes along with a call: its path as the call names it, and its content by size and hash."""

    name: str
    size: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.name}: {_bytes(self.size)}, sha256 {self.sha256[:12]}"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "bytes": self.size, "sha256": self.sha256}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> AttachedFile:
        return cls(str(facts["name"]), int(facts["bytes"]), str(facts["sha256"]))


_BOUND: ContextVar[Mapping[str, AttachedFile] | None] = ContextVar("bicameral-attached-files", default=None)


@contextmanager
def bound_to(files: Iterable[AttachedFile]) -> Generator[None]:
    """Make a call that may send exactly these contents: `read_attached` refuses every other."""
    before = _BOUND.set({file.name: file for file in files})
    try:
        yield
    finally:
        _BOUND.reset(before)


def attached_files(tool: Tool, arguments: Mapping[str, Any]) -> tuple[AttachedFile, ...]:
    """The files that a call would send along, as they are now. A ToolError if one of them cannot be attached."""
    if tool.attached_in is None:
        return ()
    names = [
        name
        for part in tool.attaches
        if argument_of(part) in arguments
        for name in _paths(inside(arguments[argument_of(part)], path_of(part)[1:]))
    ]
    return tuple(_hashed(tool.attached_in, name) for name in dict.fromkeys(names))


def read_attached(folders: Folders, path: str, *, max_bytes: int) -> bytes:
    """The content of a file that a tool sends along: in a call that a person approved, what he approved."""
    bound = _BOUND.get()
    if bound is not None:
        _refuse_link(folders, path)
    content = folders.read_bytes(path, max_bytes=max_bytes)
    if bound is None:
        return content
    approved, found = bound.get(path), AttachedFile(path, len(content), hashlib.sha256(content).hexdigest())
    if found != approved:
        raise ToolError(
            "files.changed",
            f"{quoted(path)} is not the file that was approved"
            + ("" if approved is None else f": {', '.join(changes((approved,), (found,)))}"),
            fix="Nothing was sent. Run it again to be asked about the file as it is now.",
        )
    return content


def changes(before: Iterable[AttachedFile], now: Iterable[AttachedFile]) -> tuple[str, ...]:
    """What is different about attached files, a sentence for each."""
    known = {file.name: file for file in before}
    return tuple(_change(known.get(file.name), file) for file in now if known.get(file.name) != file)


def _change(before: AttachedFile | None, now: AttachedFile) -> str:
    if before is None:
        return f"{now.name} is attached now, and was not when you were asked"
    if before.size == now.size:
        return f"{now.name} has {_bytes(now.size)} as before; its content changed since you were asked"
    return f"{now.name} was {_bytes(before.size)}, is now {_bytes(now.size)}; its content changed since you were asked"


def _paths(values: Iterable[object]) -> Iterator[str]:
    """Every path in a value, to the letter: names as policies compare them have lost their case."""
    for value in values:
        match value:
            case str():
                yield value
            case list() | tuple():
                yield from _paths(cast("list[object]", value))
            case dict():
                yield from _paths(cast("dict[str, object]", value).values())
            case _:
                pass


def _hashed(folders: Folders, path: str) -> AttachedFile:
    _refuse_link(folders, path)
    digest, size = hashlib.sha256(), 0
    with folders.open_read(path) as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            if size > MAX_HASHED:
                raise ToolError("files.too-large", f"{quoted(path)} is larger than {MAX_HASHED:,} bytes")
            digest.update(chunk)
    return AttachedFile(path, size, digest.hexdigest())


def _refuse_link(folders: Folders, path: str) -> None:
    """Refuse a link: whoever approves `menu.txt` must not send what another name leads to."""
    real = folders.reading(path)
    spelled = Path(os.path.normpath(os.path.join(folders.base, os.path.expanduser(path))))
    if spelled != real:
        raise ToolError(
            "files.link",
            f"{quoted(path)} is a link, or lies behind one, and a link cannot be attached",
            fix=f"Name the file itself: {quoted(folders.shown(real))}.",
        )


def _bytes(size: int) -> str:
    return f"{size:,} byte" if size == 1 else f"{size:,} bytes"

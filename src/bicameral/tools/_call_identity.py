"""Identity of a call: its idempotency key, the hash of its code, and the hashes of the files it sends.

The key is the same for every attempt of a call, so that a service can tell a repetition from a new call. The code
hash ensures that a resumed run finds the code it began with.

The file hashes ensure that what a person approved is what is sent: a path does not say what the file holds when the
mail goes out. A tool that sends files by their paths declares the folders they lie in (`attached_in`). The runtime
hashes each file for the question, hashes it again before the call, and binds the call to these hashes. The tool reads
its files with `read_attached`, which returns exactly the bytes that were hashed or fails, so there is no gap between
the check and the use.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import ToolError
from bicameral.tools._call_labels import part_argument, values_at
from bicameral.tools._origins import parse_part
from bicameral.tools._path_rules import quote_path

if TYPE_CHECKING:
    from bicameral.tools._folders import Folders
    from bicameral.tools._tool import Tool


KEY_VARIABLE = "BICAMERAL_CALL_KEY"
"""The environment variable in which a command finds its key."""

_KEY: ContextVar[str | None] = ContextVar("bicameral-call-key", default=None)


def call_key() -> str | None:
    """The key of the call that is being made; None outside of a run.

    A tool that hands it to its service as an idempotency key, or looks whether it has done this one already, may call
    itself `keyed`: the call is then repeated where nobody knows whether it happened.

    Example:
        >>> @tool(effect="send", keyed=True)
        ... def book(room: str) -> str:
        ...     "Book a room."
        ...     return service.book(room, idempotency_key=call_key())
    """
    return _KEY.get()


def derive_call_key(run: str, step: str, what: str) -> str:
    """The key of what a run does at a step: 32 letters and digits that tell nothing about either."""
    text = json.dumps(["bicameral call", run, step, what], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@contextmanager
def use_call_key(key: str) -> Generator[None]:
    """Make a call under a key."""
    before = _KEY.set(key)
    try:
        yield
    finally:
        _KEY.reset(before)


CodeHash = Callable[[], str]
"""A hash of what runs when a tool is called; the same as long as that does the same."""


def function_code_hash(function: Callable[..., Any]) -> CodeHash:
    """The code of a function, with the functions of its own module that it refers to, however far.

    Comments, layout and places in the file do not count. Other modules have versions of their own.
    """

    @cache
    def code() -> str:
        hashed = hashlib.sha256()
        for each in _reachable_functions(inspect.unwrap(function)):
            for text in (each.__qualname__, *_default_texts(each), *_code_texts(each.__code__)):
                hashed.update(text.encode("utf-8", "backslashreplace") + b"\0")
        return hashed.hexdigest()

    return code


def program_code_hash(argv: Sequence[str]) -> CodeHash:
    """The file of a program and every file that is named with it, such as a script after its interpreter."""

    def code() -> str:
        return hashlib.sha256("\0".join(map(_argv_part_hash, argv)).encode()).hexdigest()

    return code


def _argv_part_hash(part: str) -> str:
    path = Path(part)
    try:
        found = path.stat() if path.is_absolute() and path.is_file() else None
        return part if found is None else _file_hash(part, found.st_ino, found.st_size, found.st_mtime_ns)
    except OSError:
        return part


@lru_cache(maxsize=256)
def _file_hash(path: str, *_: int) -> str:
    """The hash of a file, read again only where something about it is new."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _default_texts(function: FunctionType) -> Iterator[str]:
    """Defaults that read the same in every process; an object's address does not."""
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield repr(value) if isinstance(value, str | int | float | bytes | None) else type(value).__qualname__


def _reachable_functions(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """The function and what it refers to in its module, each once, in the order of their names."""
    start = getattr(function, "__func__", function)
    if not isinstance(start, FunctionType):
        return
    found: dict[str, FunctionType] = {}
    todo = [start]
    while todo:
        each = todo.pop()
        if each.__qualname__ in found:
            continue
        found[each.__qualname__] = each
        known = (each.__globals__.get(name) for name in _code_names(each.__code__))
        todo += [one for one in known if isinstance(one, FunctionType) and one.__module__ == start.__module__]
    yield from (found[name] for name in sorted(found))


def _code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _code_names(each)


def _code_texts(code: CodeType) -> Iterator[str]:
    """Everything in a code object but where it stands."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _code_texts(each)
        elif isinstance(each, frozenset):
            # Sets have no order of their own.
            yield repr(sorted(map(repr, each)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        else:
            yield repr(each)


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
        return f"{self.name}: {_byte_count(self.size)}, sha256 {self.sha256[:12]}"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "bytes": self.size, "sha256": self.sha256}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> AttachedFile:
        return cls(str(facts["name"]), int(facts["bytes"]), str(facts["sha256"]))


_BOUND: ContextVar[Mapping[str, AttachedFile] | None] = ContextVar("bicameral-attached-files", default=None)


@contextmanager
def bind_attached_files(files: Iterable[AttachedFile]) -> Generator[None]:
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
        if part_argument(part) in arguments
        for name in _iter_paths(values_at(arguments[part_argument(part)], parse_part(part)[1:]))
    ]
    return tuple(_hash_file(tool.attached_in, name) for name in dict.fromkeys(names))


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
            f"{quote_path(path)} is not the file that was approved"
            + ("" if approved is None else f": {', '.join(describe_changes((approved,), (found,)))}"),
            fix="Nothing was sent. Run it again to be asked about the file as it is now.",
        )
    return content


def describe_changes(before: Iterable[AttachedFile], now: Iterable[AttachedFile]) -> tuple[str, ...]:
    """What is different about attached files, a sentence for each."""
    known = {file.name: file for file in before}
    return tuple(_describe_change(known.get(file.name), file) for file in now if known.get(file.name) != file)


def _describe_change(before: AttachedFile | None, now: AttachedFile) -> str:
    if before is None:
        return f"{now.name} is attached now, and was not when you were asked"
    if before.size == now.size:
        return f"{now.name} has {_byte_count(now.size)} as before; its content changed since you were asked"
    return f"{now.name} was {_byte_count(before.size)}, is now {_byte_count(now.size)}; its content changed since you were asked"


def _iter_paths(values: Iterable[object]) -> Iterator[str]:
    """Every path in a value, to the letter: names as policies compare them have lost their case."""
    for value in values:
        match value:
            case str():
                yield value
            case list() | tuple():
                yield from _iter_paths(cast("list[object]", value))
            case dict():
                yield from _iter_paths(cast("dict[str, object]", value).values())
            case _:
                pass


def _hash_file(folders: Folders, path: str) -> AttachedFile:
    _refuse_link(folders, path)
    digest, size = hashlib.sha256(), 0
    with folders.open_read(path) as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            if size > MAX_HASHED:
                raise ToolError("files.too-large", f"{quote_path(path)} is larger than {MAX_HASHED:,} bytes")
            digest.update(chunk)
    return AttachedFile(path, size, digest.hexdigest())


def _refuse_link(folders: Folders, path: str) -> None:
    """Refuse a link: whoever approves `menu.txt` must not send what another name leads to."""
    real = folders.resolve_readable(path)
    spelled = Path(os.path.normpath(os.path.join(folders.base, os.path.expanduser(path))))
    if spelled != real:
        raise ToolError(
            "files.link",
            f"{quote_path(path)} is a link, or lies behind one, and a link cannot be attached",
            fix=f"Name the file itself: {quote_path(folders.display_path(real))}.",
        )


def _byte_count(size: int) -> str:
    return f"{size:,} byte" if size == 1 else f"{size:,} bytes"

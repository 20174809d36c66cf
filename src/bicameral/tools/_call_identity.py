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
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bicameral.errors import ToolError
from bicameral.tools._call_labels import part_argument, values_at
from bicameral.tools._origins import parse_part
from bicameral.tools._path_rules import quote_path

if TYPE_CHECKING:
    from bicameral.tools._folders import Folders
    from bicameral.tools._tool import Tool


T = TypeVar("T")

KEY_VARIABLE = "BICAMERAL_CALL_KEY"
"""The environment variable in which a command finds its key."""

_KEY: ContextVar[str | None] = ContextVar("bicameral-call-key", default=None)


def call_key() -> str | None:
    """The key of the call that is being made; None outside a run.

    A tool that passes it to its service as an idempotency key, or checks whether it has already done this call, may be
    declared `keyed`: a call with unknown outcome is then repeated.

    Example:
        >>> @tool(effect="send", keyed=True)
        ... def book(room: str) -> str:
        ...     "Book a room."
        ...     return service.book(room, idempotency_key=call_key())
    """
    return _KEY.get()


def derive_call_key(run: str, step: str, effect: str) -> str:
    """The key of one effect of a run at a step: 32 hexadecimal digits that reveal neither."""
    text = json.dumps(["bicameral call", run, step, effect], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@contextmanager
def _set_within(variable: ContextVar[T], value: T) -> Generator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def use_call_key(key: str) -> AbstractContextManager[None]:
    """Set the call key within this context."""
    return _set_within(_KEY, key)


CodeHash = Callable[[], str]
"""Returns a hash of the code that runs when a tool is called."""


def function_code_hash(function: Callable[..., Any]) -> CodeHash:
    """The hash of a function's code and of all functions of its module that it refers to, directly or not.

    Comments, layout and line numbers do not count. Other modules are covered by their versions.
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
    """The hash of a program and of every file named with it, such as a script after its interpreter."""

    def code() -> str:
        return hashlib.sha256("\0".join(map(_argv_part_hash, argv)).encode()).hexdigest()

    return code


def _argv_part_hash(part: str) -> str:
    path = Path(part)
    try:
        info = path.stat() if path.is_absolute() and path.is_file() else None
        return part if info is None else _file_hash(part, info.st_ino, info.st_size, info.st_mtime_ns)
    except OSError:
        return part


@lru_cache(maxsize=256)
def _file_hash(path: str, *_: int) -> str:
    """The hash of a file; cached by its inode, size and time of change."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _default_texts(function: FunctionType) -> Iterator[str]:
    """Defaults as texts that are equal in every process, unlike the address in an object's repr."""
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield repr(value) if isinstance(value, str | int | float | bytes | None) else type(value).__qualname__


def _reachable_functions(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """The function and all that it refers to in its module, each once, sorted by name."""
    start = getattr(function, "__func__", function)
    if not isinstance(start, FunctionType):
        return
    functions: dict[str, FunctionType] = {}
    pending = [start]
    while pending:
        current = pending.pop()
        if current.__qualname__ in functions:
            continue
        functions[current.__qualname__] = current
        referenced = (current.__globals__.get(name) for name in _code_names(current.__code__))
        pending += [
            other for other in referenced if isinstance(other, FunctionType) and other.__module__ == start.__module__
        ]
    yield from (functions[name] for name in sorted(functions))


def _code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _code_names(each)


def _code_texts(code: CodeType) -> Iterator[str]:
    """Everything in a code object except its file and lines."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _code_texts(each)
        elif isinstance(each, frozenset):
            # The order of a set differs between processes.
            yield repr(sorted(map(repr, each)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        else:
            yield repr(each)


MAX_HASHED = 256 * 1024 * 1024
"""Bytes of one file; a larger one is refused where a call must be approved."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file that is sent with a call: its path as the call names it, and its content by size and hash."""

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


def bind_attached_files(files: Iterable[AttachedFile]) -> AbstractContextManager[None]:
    """Within this context `read_attached` returns exactly these contents and refuses every other."""
    return _set_within(_BOUND, {file.name: file for file in files})


def attached_files(tool: Tool, arguments: Mapping[str, Any]) -> tuple[AttachedFile, ...]:
    """The files that a call would send, as they are now; a ToolError if one cannot be attached."""
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
    """The content of a file that a tool sends along; in an approved call exactly the content that was approved.

    Args:
        folders: The folders in which the file may lie.
        path: The path as the call names it.
        max_bytes: A larger file is refused.
    """
    bound = _BOUND.get()
    if bound is not None:
        _refuse_link(folders, path)
    # The bytes that are hashed are the bytes that are returned, so the file cannot change in between.
    content = folders.read_bytes(path, max_bytes=max_bytes)
    if bound is None:
        return content
    approved, current = bound.get(path), AttachedFile(path, len(content), hashlib.sha256(content).hexdigest())
    if current != approved:
        raise ToolError(
            "files.changed",
            f"{quote_path(path)} is not the file that was approved"
            + ("" if approved is None else f": {', '.join(describe_changes((approved,), (current,)))}"),
            fix="Nothing was sent. Run it again to be asked about the file as it is now.",
        )
    return content


def describe_changes(before: Iterable[AttachedFile], now: Iterable[AttachedFile]) -> tuple[str, ...]:
    """What changed about attached files, one sentence for each."""
    known = {file.name: file for file in before}
    return tuple(_describe_change(known.get(file.name), file) for file in now if known.get(file.name) != file)


def _describe_change(before: AttachedFile | None, now: AttachedFile) -> str:
    if before is None:
        return f"{now.name} is attached now, and was not when you were asked"
    if before.size == now.size:
        return f"{now.name} has {_byte_count(now.size)} as before; its content changed since you were asked"
    sizes = f"{_byte_count(before.size)}, is now {_byte_count(now.size)}"
    return f"{now.name} was {sizes}; its content changed since you were asked"


def _iter_paths(values: Iterable[object]) -> Iterator[str]:
    """Every path in a value, with its case: `principals` would lower it."""
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
    """Refuse a link: an approval of `menu.txt` must not send the file that a link leads to."""
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

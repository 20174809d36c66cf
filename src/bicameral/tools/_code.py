"""The code of a tool by its hash: a run that is taken up again must find the code that it was begun with."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

Code = Callable[[], str]
"""A hash of what runs when a tool is called; the same as long as that does the same."""


def code_of_function(function: Callable[..., Any]) -> Code:
    """The code of a function, with the functions of its own module that it refers to, however far.

    Comments, layout and places in the file do not count. Other modules have versions of their own.
    """

    @cache
    def code() -> str:
        hashed = hashlib.sha256()
        for each in _reached(inspect.unwrap(function)):
            for text in (each.__qualname__, *_defaults(each), *_texts(each.__code__)):
                hashed.update(text.encode("utf-8", "backslashreplace") + b"\0")
        return hashed.hexdigest()

    return code


def code_of_program(argv: Sequence[str]) -> Code:
    """The file of a program and every file that is named with it, such as a script after its interpreter."""

    def code() -> str:
        return hashlib.sha256("\0".join(map(_part, argv)).encode()).hexdigest()

    return code


def _part(part: str) -> str:
    path = Path(part)
    try:
        found = path.stat() if path.is_absolute() and path.is_file() else None
        return part if found is None else _file(part, found.st_ino, found.st_size, found.st_mtime_ns)
    except OSError:
        return part


@lru_cache(maxsize=256)
def _file(path: str, *_: int) -> str:
    """The hash of a file, read again only where something about it is new."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _defaults(function: FunctionType) -> Iterator[str]:
    """Defaults that read the same in every process; an object's address does not."""
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield repr(value) if isinstance(value, str | int | float | bytes | None) else type(value).__qualname__


def _reached(function: Callable[..., Any]) -> Iterator[FunctionType]:
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
        known = (each.__globals__.get(name) for name in _names(each.__code__))
        todo += [one for one in known if isinstance(one, FunctionType) and one.__module__ == start.__module__]
    yield from (found[name] for name in sorted(found))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _texts(code: CodeType) -> Iterator[str]:
    """Everything in a code object but where it stands."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _texts(each)
        elif isinstance(each, frozenset):
            # Sets have no order of their own.
            yield repr(sorted(map(repr, each)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        else:
            yield repr(each)

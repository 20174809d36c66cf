"""A mutant, and its application to the text of a module."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong change of one function, and the tests of which at least one must fail with it.

    `module` is a file below `src/bicameral`. `function` is a function or `Class.method` in it; empty, for a file that
    is not Python or for what stands outside of functions, the whole file is meant. `old` must occur in its source
    exactly once, and `new` takes its place. `why` says what would be lost. `tests` are files or node ids.
    """

    id: str
    module: str
    function: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]

    @property
    def room(self) -> str:
        """The part of the program that it is about: what its id begins with."""
        return self.id.partition(".")[0]


class StaleMutant(ValueError):
    """The code that a mutant changes is not there any more, or not only once."""


def apply_mutant(mutant: Mutant, source: Path) -> tuple[Path, str]:
    """The file that a mutant changes, in the package at `source`, and its text with the change."""
    path = source / mutant.module
    where = f"{mutant.id}: {mutant.module}" + (f", {mutant.function}()" if mutant.function else "")
    if not path.is_file():
        raise StaleMutant(f"{where}: there is no such file")
    text = path.read_text(encoding="utf-8")
    if mutant.function:
        first, last = _function_lines(mutant, text, where)
    else:
        first, last = 0, text.count("\n") + 1
    lines = text.splitlines(keepends=True)
    body = "".join(lines[first:last])
    found = body.count(mutant.old)
    if found != 1:
        raise StaleMutant(f"{where}: the snippet occurs {found} times, and must occur once: {mutant.old!r}")
    return path, "".join((*lines[:first], body.replace(mutant.old, mutant.new), *lines[last:]))


def _function_lines(mutant: Mutant, text: str, where: str) -> tuple[int, int]:
    """The lines of the function, from the first and up to the last, which is not in it any more."""
    nodes = _parse(text).body
    found: ast.stmt | None = None
    for name in mutant.function.split("."):
        found = next(
            (
                node
                for node in nodes
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name
            ),
            None,
        )
        if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            raise StaleMutant(f"{where}: there is no {name!r}")
        nodes = found.body
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) or found.end_lineno is None:
        raise StaleMutant(f"{where}: this is not a function")
    return found.lineno - 1, found.end_lineno


@lru_cache(maxsize=64)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)

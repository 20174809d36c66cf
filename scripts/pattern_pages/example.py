"""The code of a pattern's example, cut out of its module so that it runs alone."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FOR_TOOLS = re.compile(r"  # (?:fmt|noqa|pyright|type):? .*$", re.MULTILINE)
_PUBLIC_ROOMS = ("bicameral.patterns", "bicameral.patterns.kernel")


@dataclass(frozen=True, slots=True, order=True)
class Import:
    """One name that is imported from a module."""

    module: str
    name: str
    alias: str

    def __str__(self) -> str:
        return self.name if self.alias == self.name else f"{self.name} as {self.alias}"


def example_code(module: str) -> str:
    """The definition of `EXAMPLE` in a module, with the private ones that it uses, and imports for the rest."""
    source = inspect.getsource(importlib.import_module(module))
    tree = ast.parse(source)
    defined = dict(_definitions(tree))
    imported = dict(_imports(tree))
    kept: set[str] = set()
    wanted: set[Import] = set()
    left = ["EXAMPLE"]
    while left:
        name = left.pop()
        if name in kept:
            continue
        if name in defined and (name == "EXAMPLE" or name.startswith("_")):
            kept.add(name)
            left.extend(each.id for each in ast.walk(defined[name]) if isinstance(each, ast.Name))
        elif name in defined:
            wanted.add(Import(module, name, name))
        elif name in imported:
            wanted.add(_from_public_module(imported[name], module))
    nodes = sorted({id(defined[name]): defined[name] for name in kept}.values(), key=lambda node: node.lineno)
    return "\n".join((_render_imports(wanted), *_render_definitions(nodes, source.splitlines())))


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Functions, classes and assignments of a module, by name."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.Assign(targets=targets):
                for each in targets:
                    for part in ast.walk(each):
                        if isinstance(part, ast.Name):
                            yield part.id, node
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case _:
                continue


def _imports(tree: ast.Module) -> Iterator[tuple[str, Import]]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    yield each.asname or each.name, Import(module, each.name, each.asname or each.name)
            case ast.Import(names=names):
                for each in names:
                    yield each.asname or each.name, Import("", each.name, each.asname or each.name)
            case _:
                continue


def _from_public_module(found: Import, user: str) -> Import:
    """The import from a package that has the name in `__all__`, or from its user, where its module is private."""
    if not any(part.startswith("_") for part in found.module.split(".")):
        return found
    for room in (*_PUBLIC_ROOMS, found.module.partition("._")[0]):
        if found.name in getattr(importlib.import_module(room), "__all__", ()):
            return Import(room, found.name, found.alias)
    return Import(user, found.alias, found.alias)


def _render_imports(wanted: set[Import]) -> str:
    by_module: dict[str, list[Import]] = {}
    for each in sorted(wanted):
        by_module.setdefault(each.module, []).append(each)
    ours = [module for module in by_module if module.startswith("bicameral")]
    others = [module for module in by_module if module and module not in ours]
    lines = ["from __future__ import annotations", "", *(f"import {each}" for each in by_module.get("", ()))]
    lines.extend(_render_import(module, by_module[module]) for module in others)
    if len(lines) > 2:
        lines.append("")
    lines.extend(_render_import(module, by_module[module]) for module in ours)
    return "\n".join(lines)


def _render_import(module: str, names: Sequence[Import]) -> str:
    line = f"from {module} import {', '.join(map(str, names))}"
    if len(line) <= 100:
        return line
    return "\n".join((f"from {module} import (", *(f"    {each}," for each in names), ")"))


def _render_definitions(nodes: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[str]:
    was_block = False
    for node in nodes:
        begin, is_block = node.lineno, isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            begin = min((begin, *(each.lineno for each in node.decorator_list)))
        yield "\n" if is_block or was_block else ""
        assert node.end_lineno is not None
        yield _FOR_TOOLS.sub("", "\n".join(lines[begin - 1 : node.end_lineno]))
        was_block = is_block

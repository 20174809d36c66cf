"""The state of reading a plan: steps written so far, and fresh names for calls lifted out of expressions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from bicameral.errors import Place, PlanError
from bicameral.tools import Registry

from ._depth import too_deep
from ._expressions import Const, Expr, Index, Ref
from ._plan import Compute, Step
from ._source import Source
from ._survey import Survey

Reader = Callable[["Reading", Any], Expr]

MAX_DEPTH_READ = 80
"""Some forms take two levels of Python for one of a plan's; deeper than this no plan within bounds can be."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Reading:
    """Reads expressions with the given readers and collects the steps that they need before them."""

    def __init__(
        self, source: Source, survey: Survey, registry: Registry | None, readers: Mapping[type[ast.expr], Reader]
    ) -> None:
        self.source = source
        self.survey = survey
        self.registry = registry
        self.steps: list[Step] = []
        self.places: dict[int, Place] = {}
        self.renamed: dict[str, Expr] = {}
        self._readers = readers
        self._refs: dict[str, Ref] = {}
        self._fresh = 0
        self.depth = 0
        self.deepest = 0

    def expression(self, node: ast.expr) -> Expr:
        """The expression that a node stands for; calls of tools in it are written as steps first."""
        reader = self._readers.get(type(node))
        if reader is None:
            raise self.not_in_language(node, f"{type(node).__name__!r}")
        self.enter(node)
        found = reader(self, node)
        self.depth -= 1
        return found

    def enter(self, node: ast.AST) -> None:
        """One level deeper; the caller takes it back. Reading ends with the first error, so no error needs to."""
        self.depth += 1
        if self.depth > self.deepest:
            self.deepest = self.depth
            if self.depth > MAX_DEPTH_READ:
                raise too_deep(self.source.place(node))

    def variable(self, node: ast.Name) -> Expr:
        """What a name stands for here. Expressions are frozen, so equal references are one object."""
        if found := self.renamed.get(node.id) or self._refs.get(node.id):
            return found
        self._refs[node.id] = reference = Ref(name=self.name(node, node.id))
        return reference

    def write(self, step: Step, node: ast.AST) -> None:
        self.steps.append(step)
        self.places[id(step)] = self.source.place(node)

    def fresh(self) -> str:
        """A name `_1`, `_2`, … that the plan does not use."""
        while True:
            self._fresh += 1
            if (name := f"_{self._fresh}") not in self.survey.numbered:
                return name

    def needs_steps(self, *nodes: ast.AST | None) -> bool:
        return any(self.survey.holds_step(node) for node in nodes if node is not None)

    @contextmanager
    def block(self) -> Generator[list[Step]]:
        """Collect the steps written inside the `with` apart from those around it."""
        outer, self.steps = self.steps, []
        try:
            yield self.steps
        finally:
            self.steps = outer

    @contextmanager
    def scope(self, renamed: Mapping[str, Expr], *, hidden: tuple[str, ...] = ()) -> Generator[None]:
        """Read names as other expressions inside the `with`; `hidden` names mean themselves again."""
        outer = self.renamed
        self.renamed = {name: expr for name, expr in outer.items() if name not in hidden} | dict(renamed)
        try:
            yield
        finally:
            self.renamed = outer

    def name(self, node: ast.AST, name: str) -> str:
        """The name itself, if a plan may use it."""
        if not _NAME.fullmatch(name):
            raise self.error(
                node, "plan.bad-name", f"{name!r} cannot be a name", expected="up to 64 of A-Z, a-z, 0-9 and _"
            )
        return name

    def text(self, node: ast.AST, text: str) -> str:
        """The text itself, unless it has a lone surrogate, which has no bytes."""
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise self.error(node, "plan.bad-text", "the text has half a character (a lone surrogate)")
        return text

    def error(
        self,
        node: ast.AST,
        code: str,
        message: str,
        *,
        expected: str | None = None,
        nearest: str | None = None,
        fix: str | None = None,
    ) -> PlanError:
        return self.source.error(node, code, message, expected=expected, nearest=nearest, fix=fix)

    def not_in_language(self, node: ast.AST, what: str, fix: str | None = None) -> PlanError:
        return self.error(node, "plan.not-in-language", f"a plan cannot use {what}", fix=fix)


class Target:
    """What a loop or an assignment binds: plain names, and the parts of them that nested names stand for."""

    def __init__(self, names: tuple[str, ...], parts: dict[str, Expr]) -> None:
        self.names = names
        self.parts = parts

    def unpack(self, reading: Reading, node: ast.AST) -> None:
        """Write the steps that give the nested names their values."""
        for name, value in self.parts.items():
            reading.write(Compute(name=name, value=value), node)


def loop_target(reading: Reading, node: ast.expr) -> Target:
    """The names of `for a, (b, c) in …`: `b` and `c` are parts of a fresh name."""
    if isinstance(node, ast.Name):
        return Target((reading.name(node, node.id),), {})
    if not isinstance(node, ast.Tuple | ast.List) or len(node.elts) < 2:
        raise reading.not_in_language(node, "this as the name of a loop", "Write `for name in list:`.")
    names: list[str] = []
    parts: dict[str, Expr] = {}
    for item in node.elts:
        if isinstance(item, ast.Name):
            names.append(reading.name(item, item.id))
        else:
            names.append(reading.fresh())
            parts |= target_parts(reading, item, Ref(name=names[-1]))
    return Target(tuple(names), parts)


def target_parts(reading: Reading, node: ast.expr, whole: Expr) -> dict[str, Expr]:
    """Each name in a nested target, with the part of `whole` that it stands for."""
    match node:
        case ast.Name(id=name):
            return {reading.name(node, name): whole}
        case ast.Tuple(elts=items) | ast.List(elts=items):
            parts: dict[str, Expr] = {}
            for number, item in enumerate(items):
                parts |= target_parts(reading, item, Index(value=whole, at=Const(value=number)))
            return parts
        case ast.Starred():
            raise reading.not_in_language(node, "`*` in a target", "Use a slice: `rest = xs[1:]`.")
        case _:
            raise reading.not_in_language(node, "this as a target", "Assign to a name.")

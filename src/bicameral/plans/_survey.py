"""What a syntax tree says before it is read: which names it uses, and what in it becomes a step."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cached_property
from typing import cast

from ._expressions import SURFACE_WORDS
from ._library import FUNCTIONS

STEP_WORDS = frozenset({"extract", "ask"})
_NUMBERED = re.compile(r"\b_[0-9]+\b")


def is_step(node: ast.AST) -> bool:
    """Whether a node is a call that the plan makes as a step of its own."""
    if type(node) is not ast.Call or type(node.func) is not ast.Name:
        return False
    name = node.func.id
    return name in STEP_WORDS or (name not in FUNCTIONS and name not in SURFACE_WORDS)


class Survey:
    """Answers about a whole plan; each is found when it is first asked for, since most plans need few of them."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._tree = tree
        self._holds_step: dict[ast.AST, bool] = {}
        self.numbered = frozenset(_NUMBERED.findall(text))
        """Everything that looks like a fresh name and so cannot be one."""

    @cached_property
    def names(self) -> Counter[str]:
        """How often the plan uses each name."""
        return Counter(node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))

    def holds_step(self, node: ast.AST) -> bool:
        """Whether a tool, `extract` or `ask` is called anywhere in a node."""
        known = self._holds_step.get(node)
        if known is None:
            known = is_step(node) or any(map(self.holds_step, _children(node)))
            self._holds_step[node] = known
        return known


def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    return tuple(field for field in kind._fields if field not in ("ctx", "op", "ops"))


# ast.iter_child_nodes does this at three times the price, and also gives operators.
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: _fields_of(kind) for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def _children(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for field in _FIELDS[type(node)]:
        value = getattr(node, field, None)
        if type(value) is list:
            found += [item for item in cast("list[object]", value) if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found

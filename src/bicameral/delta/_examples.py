"""Worked examples for the planner, read from `examples.txt` beside this file."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

_BUILT_IN = frozenset(
    "answer extract combine date datetime time timedelta len sum min max sorted mean str int float round unique".split()
)


@dataclass(frozen=True)
class Example:
    """A request with the plan that serves it."""

    request: str
    plan: str

    @cached_property
    def tools(self) -> frozenset[str]:
        """The tools that the plan calls."""
        calls = (node.func for node in ast.walk(ast.parse(self.plan)) if isinstance(node, ast.Call))
        return frozenset(call.id for call in calls if isinstance(call, ast.Name)) - _BUILT_IN


@dataclass(frozen=True, slots=True)
class Examples:
    """Those that stand in every prompt, and those of which the nearest to a request are added."""

    always: tuple[Example, ...]
    bank: tuple[Example, ...]


@cache
def examples() -> Examples:
    """The examples that come with the package."""
    text = files("bicameral.delta").joinpath("examples.txt").read_text("utf-8")
    _, always, bank = text.split("\n## ")
    return Examples(_read(always), _read(bank))


def _read(part: str) -> tuple[Example, ...]:
    blocks = part.split("\n#: ")[1:]
    return tuple(Example(request, f"{plan.rstrip()}\n") for request, plan in (block.split("\n", 1) for block in blocks))

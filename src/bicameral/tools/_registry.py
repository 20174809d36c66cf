"""The tools a plan may use, by name."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from keyword import iskeyword

from bicameral.errors import ToolError, nearest

from ._tool import Tool

_RUNTIME = frozenset({"request", "ask", "extract", "endorsed", "unknown"})
"""What the runtime itself brings in is labelled with these names: a tool of such a name could pass for the user."""


class Registry:
    """An immutable set of tools with unique names.

    Example:
        >>> registry = Registry([grep, sort])
        >>> registry["grep"].signature
        'grep(lines: list[str], pattern: str) -> list[str]'
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if not _can_be_called(tool.name):
                raise ToolError(
                    "tools.bad-name",
                    f"{tool.name!r} cannot be the name of a tool",
                    expected="a Python identifier that is no keyword and does not begin with '_'",
                )
            if tool.name in _RUNTIME:
                raise ToolError(
                    "tools.bad-name",
                    f"{tool.name!r} is what the runtime calls its own values, so no tool can be named so",
                )
            if other := self._tools.get(tool.name):
                raise ToolError(
                    "tools.duplicate",
                    f"two tools are named {tool.name!r}: one of {other.toolbox!r}, one of {tool.toolbox!r}",
                    fix="Rename one or leave one toolbox out.",
                )
            self._tools[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        try:
            return self._tools[name]
        except KeyError:
            raise ToolError("tools.unknown", f"there is no tool {name!r}", nearest=nearest(name, self._tools)) from None

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def subset(self, names: Iterable[str]) -> Registry:
        """Only these tools, in the registry's own order."""
        wanted = set(names)
        return Registry(tool for tool in self if tool.name in wanted)

    def without(self, names: Iterable[str]) -> Registry:
        """All tools but these."""
        left_out = set(names)
        return Registry(tool for tool in self if tool.name not in left_out) if left_out else self

    def __add__(self, other: Registry) -> Registry:
        return Registry([*self, *other])

    @cached_property
    def fingerprint(self) -> str:
        """A hash over every tool's description."""
        return hashlib.sha256("".join(tool.fingerprint for tool in self).encode()).hexdigest()


def _can_be_called(name: str) -> bool:
    # Python reads every name in its normal form: a tool with any other spelling could never be named by a plan.
    normal = unicodedata.normalize("NFKC", name) == name
    return normal and name.isidentifier() and not iskeyword(name) and not name.startswith("_")

"""The sizes that cost expressions speak of: how long the parts of a prompt are, and how often something happens.

The defaults are those of a small task; whoever measured their own gives them instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True, slots=True)
class Size:
    """A name that any cost expression may use."""

    unit: Literal["tokens", "count"]
    default: int
    what: str


SIZES: Mapping[str, Size] = MappingProxyType(
    {
        "setup": Size("tokens", 400, "the fixed words of a session"),
        "input": Size("tokens", 200, "the task"),
        "output": Size("tokens", 300, "a normal reply"),
        "observation": Size("tokens", 300, "one result of a tool"),
        "tools": Size("tokens", 600, "the schemas of all tools"),
        "context": Size("tokens", 2_000, "background text that is read"),
        "brief": Size("tokens", 250, "a part of the task as it is handed on"),
        "example": Size("tokens", 120, "one example"),
        "document": Size("tokens", 800, "one document"),
        "item_output": Size("tokens", 60, "a short reply"),
        "steps": Size("count", 4, "steps of a loop that are expected"),
        "items": Size("count", 3, "parts of the work"),
        "tries": Size("count", 2, "tries that are expected"),
    }
)
"""Every size by its name."""


def default_sizes() -> dict[str, float]:
    """The sizes of a small task, to evaluate an expression with."""
    return {name: size.default for name, size in SIZES.items()}

"""A pattern at work: an example that can be run with any models, and that says whether it came out right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bicameral.tools import Tool

from ._outcome import Answered
from ._pattern import Pattern


def no_tools(folder: Path) -> Sequence[Tool]:
    return ()


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a pattern, run in a folder of its own.

    `sizes` are what the cost model needs to know beforehand, by the names that the pattern's cost is told in: numbers,
    or texts that are counted with the model's own tokenizer.
    """

    about: str
    make: Callable[[Path], Pattern[..., Any]]
    give: Callable[[Path], tuple[Any, ...]]
    good: Callable[[Answered[Any]], bool]
    sizes: Callable[[Path], Mapping[str, int | float | str]]
    tools: Callable[[Path], Sequence[Tool]] = no_tools
    model: str = "0.5b"
    """The smallest of the local models that it comes out right with."""

"""Texts that may be shown and sent: short, on one line, without secrets, and with nothing that a terminal obeys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bicameral.display import visible
from bicameral.secrets import masked

MAX_TEXT = 120
MAX_LIST = 16

Fact = str | bool | int | float | tuple[str, ...]
"""What may be told of something: names and numbers."""
Facts = Mapping[str, Fact | Iterable[str]]


def safe(text: str, most: int = MAX_TEXT) -> str:
    """The text with everything that is not simply seen made visible, cut to at most so many characters.

    Example:
        >>> safe("a\x1b[31mb")
        'a<001b>[31mb'
    """
    # Secrets before the cut: half of one is not known any more. Then the cut: what is looked through is bounded.
    shown = visible(masked(text)[: most + 1]).replace("\n", "<000a>").replace("\t", "<0009>")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def told(facts: Facts) -> dict[str, Fact]:
    """Facts as they may leave the process."""
    return {name: _fact(value) for name, value in facts.items()}


def _fact(value: Fact | Iterable[str]) -> Fact:
    match value:
        case str():
            return safe(value)
        case bool() | int() | float():
            return value
        case _:
            return tuple(safe(str(each)) for _, each in zip(range(MAX_LIST), value, strict=False))

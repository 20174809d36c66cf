"""Texts that may be shown and sent: short, on one line, without secrets, and with nothing that a terminal obeys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bicameral.secrets import masked

MAX_TEXT = 120
MAX_LIST = 16

Fact = str | bool | int | float | tuple[str, ...]
"""What may be told of something: names and numbers."""
Facts = Mapping[str, Fact | Iterable[str]]

# Controls, what turns the writing direction, what nobody sees, half characters, and what is no character at all.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff9-\uffff\U000e0000-\U000e0fff]"
)


def safe(text: str, most: int = MAX_TEXT) -> str:
    """The text with everything that is not simply seen made visible, cut to at most so many characters.

    Example:
        >>> safe("a\x1b[31mb")
        'a<001b>[31mb'
    """
    # Secrets before the cut: half of one is not known any more. Then the cut: what is looked through is bounded.
    shown = _UNSEEN.sub(lambda found: f"<{ord(found[0]):04x}>", masked(text)[: most + 1])
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

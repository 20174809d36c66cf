"""Hints in the steps of a plan: `[coding] write the function` asks for the model of the hint `coding`.

A hint chooses a model, so it has to come from somebody who may choose: the configuration names the hints that there
are, and the plan uses them. A plan that was written under untrusted text has no hints: they are taken off its steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_HINT = re.compile(r"\s*\[([a-z][a-z0-9_-]{0,39})\]\s+(?=\S)")


def hint_instruction(hints: Sequence[str]) -> str:
    """What the model that plans is told about hints; nothing where there are none."""
    if not hints:
        return ""
    named = ", ".join(f"[{hint}]" for hint in hints)
    return f" A step may begin with one of these, if it is work of that kind: {named}."


def step_hint(step: str, hints: Sequence[str]) -> str | None:
    """The hint that a step begins with, also one that is not among `hints`: the router notes the nearest name.

    Example:
        >>> step_hint("[coding] write the function", ("coding",)), step_hint("write it", ("coding",))
        ('coding', None)
    """
    found = _HINT.match(step) if hints else None
    return None if found is None else found[1]


def remove_hints(steps: Iterable[str], hints: Sequence[str]) -> tuple[str, ...]:
    """The steps without the hints that they begin with."""
    return tuple(_HINT.sub("", step, count=1) if step_hint(step, hints) is not None else step for step in steps)

"""How the costs of patterns go together: which go round others, which change the calls of others, which come on top.

| as | what it does in a stack |
|---|---|
| `wraps` | goes round what is deeper: its session `at` is where that runs, as often as the session is called |
| `hosts` | is the call itself where nothing wraps; where something does, its session `at` counts nothing |
| `shapes` | makes the innermost call longer, by what its session `at` has more than a plain call |
| `adds` | its sessions come on top, once a run |
| `apart` | happens beside runs (before a release, between sessions): told, and not in the sum of a run |

What a pattern has beside its session `at` always comes on top. A pattern that is `part_of` another in the same agent
counts nothing: the other's sessions are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from ._data import records

Manner = Literal["wraps", "hosts", "shapes", "adds", "apart"]


@dataclass(frozen=True, slots=True)
class Nesting:
    """How one pattern goes together with others."""

    id: str
    manner: Manner = field(metadata={"key": "as"})
    at: str = ""
    depth: int = 0
    """Of those that wrap, the smallest is outermost; of those that host, the largest is the call itself."""
    hands_on: bool = False
    """Whether what runs inside gets a brief in place of the task, and without O17 also what the outer one has read."""
    part_of: tuple[str, ...] = ()


@cache
def nestings() -> Mapping[str, Nesting]:
    """Every pattern's entry in `nesting.yaml`."""
    return records("nesting.yaml", Nesting)

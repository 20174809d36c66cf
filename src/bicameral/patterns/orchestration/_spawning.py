"""How many may be started below one orchestrator, and how deep: one count for the whole tree."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from bicameral.errors import RunError


@dataclass(slots=True)
class _Count:
    left: int


@dataclass(frozen=True, slots=True)
class Spawning:
    """What whoever delegates may still do. Counts of those around it hold as well, whatever is set further in."""

    counts: tuple[_Count, ...]
    levels: int

    def take(self, wanted: int) -> int:
        """So many of those that are wanted may be started."""
        given = min(wanted, *(count.left for count in self.counts))
        for count in self.counts:
            count.left -= given
        return given


_AROUND: ContextVar[Spawning | None] = ContextVar("bicameral-spawning", default=None)


@contextmanager
def spawning(most: int, depth: int) -> Generator[Spawning]:
    """Delegate inside this: whoever does so further in, however far, is a level deeper and takes of the same count."""
    around = _AROUND.get()
    levels = depth if around is None else min(depth, around.levels - 1)
    if levels < 1:
        raise RunError(
            "pattern.too-deep",
            "a worker wants workers of its own, deeper than is allowed",
            fix="Raise `max_depth` of the outermost one, or give this worker something that delegates nothing.",
        )
    here = Spawning(((around.counts if around else ()) + (_Count(most),)), levels)
    before = _AROUND.set(here)
    try:
        yield here
    finally:
        _AROUND.reset(before)

"""How many examples a property is tried on: few and the same each time, or thousands that are new each time."""

from __future__ import annotations

from hypothesis import settings

EXPLORE = "explore"
QUICK = 50
THOUSAND = 1000


def examples(number: int, *, quick: int = QUICK) -> int:
    """At most `quick` in an ordinary test run, and ten times `number` with `--hypothesis-profile explore`.

    A property whose single example is expensive (a whole plan, a process, a file) says a smaller `quick`.
    """
    if settings.get_current_profile_name() == EXPLORE:
        return 10 * number
    return min(number, quick)

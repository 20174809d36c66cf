"""How many examples a property is tried on.

Few in an ordinary test run, many in `make check`, both the same each time; and more that are new each time, with
`--hypothesis-profile explore`.
"""

from __future__ import annotations

from hypothesis import settings

CHECK = "check"
EXPLORE = "explore"
QUICK = 50
MANY = 400
THOUSAND = 1000
_FACTORS = {CHECK: 4, EXPLORE: 10}


def examples(number: int, *, quick: int = QUICK) -> int:
    """At most `quick` in an ordinary test run, four times `number` in `make check`, and ten times where it explores.

    A property whose single example is expensive (a whole plan, a process, a file) says a smaller `quick`.
    """
    factor = _FACTORS.get(settings.get_current_profile_name())
    return min(number, quick) if factor is None else factor * number

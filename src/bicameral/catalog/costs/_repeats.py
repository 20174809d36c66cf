"""A session that is held again and again by what goes round it: workers, tries, samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ._amounts import NOTHING, Amounts, rounds
from ._rates import Rates
from ._sessions import Session, expected, worst


@dataclass(frozen=True, slots=True)
class Level:
    """Something that is done again and again: so often as a rule, so often at most, so many side by side."""

    often: float = 1.0
    most: float = 1.0
    at_once: float = 1.0


def repeated(session: Session, rates: Rates, levels: Sequence[Level], *, warmed: bool = False) -> Amounts:
    """What it takes as a rule. Its head is in the cache from the second time on, or from the second round."""
    levels, session = _in_lanes(levels, session, rates.lanes)
    often = math.prod(level.often for level in levels)
    if often <= 0 or session.calls <= 0:
        return NOTHING
    at_once = math.prod(max(1.0, min(level.often, math.floor(level.at_once))) for level in levels)
    turns = math.prod(rounds(level.often, level.at_once) for level in levels)
    cold = min(often, 1.0 if warmed else at_once)
    first = expected(replace(session, later=session.later or often > cold), rates, warmed=warmed)
    later = expected(replace(session, known=True), rates, warmed=warmed)
    found = first.times(cold).plus(later.times(often - cold))
    seconds = None
    if first.seconds is not None and later.seconds is not None:
        seconds = first.seconds * min(1.0, turns) + later.seconds * max(0.0, turns - 1.0)
    return replace(found, seconds=seconds, memory=first.memory * at_once)


def repeated_at_worst(session: Session, rates: Rates, levels: Sequence[Level], *, warmed: bool = False) -> Amounts:
    """What it takes at most: as often as it can be held, and the cache forgets everything."""
    levels, session = _in_lanes(levels, session, rates.lanes)
    again = math.prod(level.most for level in levels) > 1
    found = worst(replace(session, later=session.later or again), rates, warmed=warmed)
    for level in levels:
        found = found.times(math.ceil(level.most), level.at_once)
    return found


def _in_lanes(levels: Sequence[Level], session: Session, lanes: float) -> tuple[list[Level], Session]:
    """As many side by side as the model can do: the outermost are served first."""
    found: list[Level] = []
    for level in levels:
        at_once = max(1.0, min(level.at_once, lanes))
        lanes = max(1.0, lanes / at_once)
        found.append(replace(level, at_once=at_once))
    return found, replace(session, parallel=min(session.parallel, lanes))

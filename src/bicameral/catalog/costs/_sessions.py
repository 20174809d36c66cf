"""One session of a model in numbers: what its calls read, find in the cache, write, and how long they take.

A session that is called n times and grows by g tokens with each call reads the sum over k of stable + prompt + k*g.
The stable head is found in the cache from the second call on, if it is long enough and the cache has not forgotten it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ._amounts import NOTHING, Amounts, between
from ._rates import Rates


@dataclass(frozen=True, slots=True)
class Session:
    """The calls of one role: how many, what each reads and writes, and how many go side by side."""

    calls: float
    stable: float = 0.0
    prompt: float = 0.0
    grows: float = 0.0
    output: float = 0.0
    parallel: float = 1.0
    known: bool = False
    """Whether the head is in the cache already, left there by the same session a moment ago."""
    later: bool = False
    """Whether the same session is held again in a moment, so that its head is stored for that even by a single call."""
    cap: float = math.inf
    """Tokens of prompt at which older ones are summed up, so that it grows no further."""
    resets: float = 0.0
    """In what part of the calls at the cap something was summed up: there the cache holds no more than the head."""

    @property
    def first(self) -> float:
        """Tokens that the first call reads."""
        return self.stable + self.prompt

    def at_once(self, calls: int) -> int:
        """How many of the calls go side by side."""
        return max(1, min(calls, math.floor(self.parallel)))

    def more(self, other: Session) -> Session:
        """The same calls with what another adds to each of them, or takes away."""
        return replace(
            self,
            stable=max(0.0, self.stable + other.stable),
            prompt=max(0.0, self.prompt + other.prompt),
            # The record of a session is one, whoever keeps it.
            grows=max(self.grows, other.grows),
            output=max(0.0, self.output + other.output),
        )


def expected(session: Session, rates: Rates, *, warmed: bool = False) -> Amounts:
    """What the session takes as a rule. `warmed`: one call goes ahead, so that those side by side find the cache.

    Example:
        >>> twenty = Session(calls=20, stable=2000, parallel=20)
        >>> expected(twenty, Rates("m"), warmed=True).charged
        6300.0
    """
    whole = math.floor(session.calls)
    low = _amounts(session, rates, whole, warmed=warmed, forgets=False)
    if session.calls == whole:
        return low
    high = _amounts(session, rates, whole + 1, warmed=warmed, forgets=False)
    return between(low, high, session.calls - whole)


def worst(session: Session, rates: Rates, *, warmed: bool = False) -> Amounts:
    """What it takes at most: every call, and nothing found in the cache, however often it was paid to be stored."""
    return _amounts(session, rates, math.ceil(session.calls), warmed=warmed, forgets=True)


def _amounts(session: Session, rates: Rates, calls: int, *, warmed: bool, forgets: bool) -> Amounts:
    if calls <= 0:
        return NOTHING
    growing = _calls_before_the_cap(session, calls)
    if growing < calls:
        low = _amounts(replace(session, cap=math.inf), rates, growing, warmed=warmed, forgets=forgets)
        full = _at_the_cap(session, rates)
        return low.plus(_amounts(full, rates, calls - growing, warmed=warmed, forgets=forgets))
    prompt = calls * session.first + session.grows * _triangle(calls)
    kept = _kept(session, rates, calls, warmed=warmed, forgets=forgets)
    output = calls * session.output
    charged = rates.charged(prompt - kept.stored - kept.cached, kept.stored, kept.cached)
    longest = session.first + session.grows * (calls - 1) + session.output
    return Amounts(
        calls=calls,
        prompt=prompt,
        cached=kept.cached,
        stored=kept.stored,
        charged=charged,
        output=output,
        money=rates.money(charged, output),
        seconds=_seconds(session, rates, calls, kept),
        longest=longest,
        memory=rates.kv_bytes * longest * session.at_once(calls),
    )


def _calls_before_the_cap(session: Session, calls: int) -> int:
    # Calls that go side by side are no one conversation that could be summed up.
    if session.grows <= 0 or session.parallel >= 2 or math.isinf(session.cap):
        return calls
    return max(1, min(calls, 1 + math.floor((session.cap - session.first) / session.grows)))


def _at_the_cap(session: Session, rates: Rates) -> Session:
    """Calls as long as they may be. What is summed up is rewritten, and behind that the cache knows nothing."""
    length = max(session.cap, session.first)
    head = min(session.stable, length)
    if rates.caching is not None and rates.caching.history:
        found = max(head, length - session.grows)
        head = found - session.resets * (found - head)
    return replace(session, stable=head, prompt=length - head, grows=0.0, cap=math.inf, known=True)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a cache does for a session: tokens stored and found, and what that takes from the calls one waits for."""

    stored: float = 0.0
    cached: float = 0.0
    skipped: float = 0.0
    """Tokens that need not be read in the calls one waits for, one after the other."""
    skipped_squares: float = 0.0


def _kept(session: Session, rates: Rates, calls: int, *, warmed: bool, forgets: bool) -> _Kept:
    """A head is stored where a later call will find it. What is forgotten was stored all the same, and paid for."""
    caching = rates.caching
    if caching is None or rates.again >= 1 or _gap(session, rates) > caching.ttl:
        return _Kept()
    if caching.history and session.grows > 0 and session.parallel < 2 and session.first >= caching.minimum:
        return _history(session, calls, caching.minimum, forgets=forgets)
    if session.stable >= caching.minimum:
        return _head(session, calls, warmed=warmed, forgets=forgets)
    return _Kept()


def _head(session: Session, calls: int, *, warmed: bool, forgets: bool) -> _Kept:
    """The first call writes the head, the others read it. Calls that start at once each write it for themselves."""
    together = session.at_once(calls)
    misses = 0 if session.known else 1 if warmed else together
    if calls <= misses and not session.later:
        return _Kept()
    if forgets:
        return _Kept(stored=calls * session.stable)
    hits = max(0, calls - misses)
    # One call ahead takes the time to read the head once, and so does the first round without it.
    turns = math.ceil(calls / together) - (misses > 0)
    return _Kept(
        min(calls, misses) * session.stable, hits * session.stable, turns * session.stable, turns * session.stable**2
    )


def _history(session: Session, calls: int, least: float, *, forgets: bool) -> _Kept:
    """A conversation that only grows: each call finds everything that the one before it has read."""
    before, first, grows = calls - 1, session.first, session.grows
    head = session.stable if session.known and session.stable >= least else 0.0
    if before == 0 and head == 0 and not session.later:
        return _Kept()
    cached = before * first + grows * _triangle(before) + head
    stored = first + before * grows - head
    if forgets:
        return _Kept(stored=cached + stored)
    squares = before * first**2 + 2 * first * grows * _triangle(before) + grows**2 * _squares(before) + head**2
    return _Kept(stored, cached, cached, squares)


def _gap(session: Session, rates: Rates) -> float:
    """Seconds between two uses of the head: about what one call takes. What is not known counts as none."""
    reading, writing = rates.reading(session.first, session.first**2), rates.writing(session.output)
    return (reading or 0.0) + (writing or 0.0) + rates.wait


def _seconds(session: Session, rates: Rates, calls: int, kept: _Kept) -> float | None:
    """One waits for the longest call of each round of those that go side by side."""
    together = session.at_once(calls)
    turns = math.ceil(calls / together)
    grown, squares = _last_of_rounds(calls, together, turns)
    first, grows = session.first, session.grows
    tokens = turns * first + grows * grown - kept.skipped
    pairs = turns * first**2 + 2 * first * grows * grown + grows**2 * squares - kept.skipped_squares
    reading, writing = rates.reading(tokens, pairs), rates.writing(turns * session.output)
    return None if reading is None or writing is None else reading + writing + turns * rates.wait


def _last_of_rounds(calls: int, together: int, turns: int) -> tuple[float, float]:
    """The sum of the numbers of the last calls of all rounds, counted from 0, and the sum of their squares."""
    full = turns - 1
    numbers = together * full * turns / 2 - full
    squares = together**2 * full * turns * (2 * full + 1) / 6 - together * full * turns + full
    return numbers + (calls - 1), squares + (calls - 1) ** 2


def _triangle(calls: int) -> float:
    """0 + 1 + … + (calls - 1)."""
    return calls * (calls - 1) / 2


def _squares(calls: int) -> float:
    """0 + 1 + 4 + … + (calls - 1)²."""
    return (calls - 1) * calls * (2 * calls - 1) / 6

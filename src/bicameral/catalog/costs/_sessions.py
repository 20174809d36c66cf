"""Amounts, rates, and what one session of a model takes: tokens read, cached and written, money, seconds and memory.

A session that is called n times and grows by g tokens with each call reads the sum over k of stable + prompt + k*g.
The stable head is found in the cache from the second call on, if it is long enough and the cache still holds it.
Rates are plain numbers that the caller provides; money and seconds are None where a price or a speed is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from bicameral.catalog.facts._records import json_fields
from bicameral.errors import CatalogError


@dataclass(frozen=True, slots=True)
class Amounts:
    """What something takes. Expected amounts are averages, so they need not be whole numbers.

    `prompt` counts every token that is read, `cached` those of them that were read from a cache, `stored` those that
    were written into one. `charged` is the prompt as it is billed: so many tokens at the full price would cost as much.
    `longest` is the longest single call, prompt and reply; `memory` the bytes of the KV cache at the fullest moment.
    Money and seconds are None where a price or a speed is not known, never 0.
    """

    calls: float = 0.0
    prompt: float = 0.0
    cached: float = 0.0
    stored: float = 0.0
    charged: float = 0.0
    output: float = 0.0
    tools: float = 0.0
    money: float | None = 0.0
    seconds: float | None = 0.0
    longest: float = 0.0
    memory: float = 0.0

    def plus(self, other: Amounts) -> Amounts:
        """This and then the other: the longest call and the memory are those of the larger."""
        sums = {name: _add_known(getattr(self, name), getattr(other, name)) for name in (*_ADDITIVE, "seconds")}
        return Amounts(**sums, longest=max(self.longest, other.longest), memory=max(self.memory, other.memory))

    def times(self, often: float, at_once: float = 1.0) -> Amounts:
        """The same so often, so many of them side by side."""
        if often <= 0:
            return NO_AMOUNTS
        turns, together = round_count(often, at_once), max(1.0, min(often, at_once))
        changed = {name: _scale_known(getattr(self, name), often) for name in _ADDITIVE}
        return Amounts(
            **changed, seconds=_scale_known(self.seconds, turns), longest=self.longest, memory=self.memory * together
        )

    def to_json(self) -> dict[str, Any]:
        """The same for a program, without the noise of floating point."""
        return {
            each.name: None if (value := getattr(self, each.name)) is None else round_number(value)
            for each in fields(self)
        }


_ADDITIVE = ("calls", "prompt", "cached", "stored", "charged", "output", "tools", "money")

NO_AMOUNTS = Amounts()


def round_count(often: float, at_once: float) -> float:
    """How many turns it takes to do something so often, so many at once; between whole numbers a straight line."""
    at_once = max(1.0, math.floor(at_once))
    low = math.floor(often)
    below, above = math.ceil(low / at_once), math.ceil((low + 1) / at_once)
    return below + (often - low) * (above - below)


def interpolate(low: Amounts, high: Amounts, part: float) -> Amounts:
    """The mean of two cases, the second of which happens in this part of all: 0 is the first alone."""
    if part <= 0:
        return low
    names = (each.name for each in fields(low))
    values: dict[str, Any] = {name: _interpolate_value(getattr(low, name), getattr(high, name), part) for name in names}
    return Amounts(**values)


def round_number(value: float) -> float | int:
    """A number to print: whole where it is whole, and not more than nine digits after the point."""
    rounded = round(value, 9)
    return int(rounded) if rounded == int(rounded) else rounded


def _interpolate_value(low: float | None, high: float | None, part: float) -> float | None:
    return None if low is None or high is None else low + (high - low) * part


def _add_known(one: float | None, other: float | None) -> Any:
    return None if one is None or other is None else one + other


def _scale_known(value: float | None, often: float) -> Any:
    return None if value is None else value * often


@dataclass(frozen=True, slots=True)
class CostPart:
    """What one session of one pattern takes. `inside` are the patterns that go round it, outermost first.

    What is `apart` happens beside runs and is in no sum of a run.
    """

    agent: str
    pattern: str
    role: str
    model: str
    expected: Amounts
    worst: Amounts
    inside: tuple[str, ...] = ()
    apart: bool = False

    def to_json(self) -> dict[str, Any]:
        return json_fields(self)


ModelTier = Literal["small", "mid", "large"]
TIERS: tuple[ModelTier, ...] = get_args(ModelTier)
"""Classes of models: the catalogue says which class a session wants, a table of rates which model that is."""

_MILLION = 1_000_000


def _check_rate(name: str, value: float, *, least: float = 0.0, above_zero: bool = False) -> None:
    if math.isnan(value) or value < least or (above_zero and value == 0):
        expected = f"a number {'above' if above_zero else 'from'} {least:g}{'' if above_zero else ' on'}"
        raise CatalogError("catalog.bad-rate", f"{name} is {value!r}", expected=expected)


@dataclass(frozen=True, slots=True)
class Caching:
    """How the head of a prompt is kept from one call to the next.

    A head of at least `minimum` tokens costs `write` of its price when it is stored and `read` of it when it is found
    again within `ttl` seconds. `history` says that a conversation which only grows is found again whole, and not only
    the head that is the same for all.
    """

    minimum: float = 1024
    write: float = 1.25
    read: float = 0.10
    ttl: float = 300.0
    history: bool = False

    def __post_init__(self) -> None:
        _check_rate("minimum", self.minimum, least=1)
        _check_rate("write", self.write, least=1)
        _check_rate("read", self.read)
        _check_rate("ttl", self.ttl)


LOCAL_CACHING = Caching(minimum=1, write=1.0, read=0.0, ttl=math.inf, history=True)
"""An engine on one's own machine: what it has read before it does not read again, and nothing is charged."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What a model takes. Money is for a million tokens, speeds are tokens a second; None is not known.

    `square_at` is the length at which comparing all tokens with all others takes as long as everything else in
    reading a prompt; shorter prompts take hardly more than their share, longer ones grow with the square. `kv_bytes`
    is what the model keeps of a token: 2 x layers x key-value heads x width of a head x bytes of a number. `wait` is
    the time a call takes before the model begins, `window` the most tokens it can have before it, `lanes` how many
    calls it can do side by side without being slower.

    Example:
        >>> Rates("openai:gpt-5", read=1.25, written=10, cached=0.125, prompt_speed=5000, output_speed=80)
    """

    model: str
    read: float | None = None
    written: float | None = None
    cached: float | None = None
    prompt_speed: float | None = None
    output_speed: float | None = None
    caching: Caching | None = Caching()
    wait: float = 0.0
    square_at: float = math.inf
    kv_bytes: float = 0.0
    window: int | None = None
    lanes: float = math.inf

    def __post_init__(self) -> None:
        for name in ("read", "written", "cached", "prompt_speed", "output_speed", "window"):
            value: float | None = getattr(self, name)
            if value is not None:
                _check_rate(name, value, above_zero=name.endswith("speed"))
        for name in ("wait", "square_at", "kv_bytes"):
            _check_rate(name, getattr(self, name), above_zero=name == "square_at")
        _check_rate("lanes", self.lanes, least=1)

    @property
    def cached_share(self) -> float:
        """What part of the price a token costs that is found in the cache."""
        if self.cached is not None and self.read:
            return self.cached / self.read
        return self.caching.read if self.caching is not None else 1.0

    def charged_tokens(self, fresh: float, stored: float, cached: float) -> float:
        """So many tokens at the full price would cost as much."""
        write = self.caching.write if self.caching is not None else 1.0
        return fresh + write * stored + self.cached_share * cached

    def money(self, charged: float, output: float) -> float | None:
        """What tokens cost, if the prices are known."""
        if self.read is None or self.written is None:
            return None
        return (charged * self.read + output * self.written) / _MILLION

    def reading_seconds(self, until: float, squares: float) -> float | None:
        """Seconds to read so many tokens; `squares` are the pairs they are compared in, beyond what was cached."""
        if self.prompt_speed is None:
            return None
        return (until + squares / self.square_at) / self.prompt_speed

    def writing_seconds(self, output: float) -> float | None:
        return None if self.output_speed is None else output / self.output_speed


# Measured on two cores of a small machine. The square's share and the bytes of a token follow from the shapes of the
# models: 24 layers of 896 with 2 key-value heads of 64, and 28 layers of 1536 with 2 of 128, numbers of two bytes.
SMALL_LOCAL_RATES = Rates(
    "local:0.5b",
    read=0.0,
    written=0.0,
    prompt_speed=100,
    output_speed=25,
    caching=LOCAL_CACHING,
    square_at=16_700,
    kv_bytes=2 * 24 * 2 * 64 * 2,
    window=32_768,
    lanes=1,
)
LARGE_LOCAL_RATES = Rates(
    "local:1.5b",
    read=0.0,
    written=0.0,
    prompt_speed=57,
    output_speed=11.5,
    caching=LOCAL_CACHING,
    square_at=30_500,
    kv_bytes=2 * 28 * 2 * 128 * 2,
    window=32_768,
    lanes=1,
)
LOCAL_RATES: Mapping[str, Rates] = {"small": SMALL_LOCAL_RATES, "mid": LARGE_LOCAL_RATES, "large": LARGE_LOCAL_RATES}
"""The weights that come with Bicameral, by class: they cost nothing but time."""


@dataclass(frozen=True, slots=True)
class SessionLoad:
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

    def parallel_calls(self, calls: int) -> int:
        """How many of the calls go side by side."""
        return max(1, min(calls, math.floor(self.parallel)))

    def plus(self, other: SessionLoad, *, least: float = 0.0) -> SessionLoad:
        """The same calls with what another adds to each of them, or takes away.

        Args:
            least: What each size is at least; `-inf` where two changes are added, before a call has them.
        """
        return replace(
            self,
            stable=max(least, self.stable + other.stable),
            prompt=max(least, self.prompt + other.prompt),
            # The record of a session is one, whoever keeps it.
            grows=max(self.grows, other.grows),
            output=max(least, self.output + other.output),
        )


def expected_amounts(session: SessionLoad, rates: Rates, *, warmed: bool = False) -> Amounts:
    """What the session takes as a rule. `warmed`: one call goes ahead, so that those side by side find the cache.

    Example:
        >>> twenty = SessionLoad(calls=20, stable=2000, parallel=20)
        >>> expected_amounts(twenty, Rates("m"), warmed=True).charged
        6300.0
    """
    whole = math.floor(session.calls)
    low = _session_amounts(session, rates, whole, warmed=warmed, forgets=False)
    if session.calls == whole:
        return low
    high = _session_amounts(session, rates, whole + 1, warmed=warmed, forgets=False)
    return interpolate(low, high, session.calls - whole)


def worst_amounts(session: SessionLoad, rates: Rates, *, warmed: bool = False) -> Amounts:
    """What it takes at most: every call, and nothing found in the cache, however often it was paid to be stored."""
    return _session_amounts(session, rates, math.ceil(session.calls), warmed=warmed, forgets=True)


def _session_amounts(session: SessionLoad, rates: Rates, calls: int, *, warmed: bool, forgets: bool) -> Amounts:
    if calls <= 0:
        return NO_AMOUNTS
    growing = _calls_before_cap(session, calls)
    if growing < calls:
        low = _session_amounts(replace(session, cap=math.inf), rates, growing, warmed=warmed, forgets=forgets)
        full = _capped_session(session, rates)
        return low.plus(_session_amounts(full, rates, calls - growing, warmed=warmed, forgets=forgets))
    prompt = calls * session.first + session.grows * _triangular_sum(calls)
    kept = _cache_use(session, rates, calls, warmed=warmed, forgets=forgets)
    output = calls * session.output
    charged = rates.charged_tokens(prompt - kept.stored - kept.cached, kept.stored, kept.cached)
    longest = session.first + session.grows * (calls - 1) + session.output
    return Amounts(
        calls=calls,
        prompt=prompt,
        cached=kept.cached,
        stored=kept.stored,
        charged=charged,
        output=output,
        money=rates.money(charged, output),
        seconds=_session_seconds(session, rates, calls, kept),
        longest=longest,
        memory=rates.kv_bytes * longest * session.parallel_calls(calls),
    )


def _calls_before_cap(session: SessionLoad, calls: int) -> int:
    # Calls that go side by side are no one conversation that could be summed up.
    if session.grows <= 0 or session.parallel >= 2 or math.isinf(session.cap):
        return calls
    return max(1, min(calls, 1 + math.floor((session.cap - session.first) / session.grows)))


def _capped_session(session: SessionLoad, rates: Rates) -> SessionLoad:
    """Calls as long as they may be. What is summed up is rewritten, and behind that the cache knows nothing."""
    length = max(session.cap, session.first)
    head = min(session.stable, length)
    if rates.caching is not None and rates.caching.history:
        found = max(head, length - session.grows)
        head = found - session.resets * (found - head)
    return replace(session, stable=head, prompt=length - head, grows=0.0, cap=math.inf, known=True)


@dataclass(frozen=True, slots=True)
class _CacheUse:
    """What a cache does for a session: tokens stored and found, and what that takes from the calls one waits for."""

    stored: float = 0.0
    cached: float = 0.0
    skipped: float = 0.0
    """Tokens that need not be read in the calls one waits for, one after the other."""
    skipped_squares: float = 0.0


def _cache_use(session: SessionLoad, rates: Rates, calls: int, *, warmed: bool, forgets: bool) -> _CacheUse:
    """A head is stored where a later call will find it. What is forgotten was stored all the same, and paid for."""
    caching = rates.caching
    if caching is None or rates.cached_share >= 1 or _seconds_between_calls(session, rates) > caching.ttl:
        return _CacheUse()
    if caching.history and session.grows > 0 and session.parallel < 2 and session.first >= caching.minimum:
        return _history_cache_use(session, calls, caching.minimum, forgets=forgets)
    if session.stable >= caching.minimum:
        return _head_cache_use(session, calls, warmed=warmed, forgets=forgets)
    return _CacheUse()


def _head_cache_use(session: SessionLoad, calls: int, *, warmed: bool, forgets: bool) -> _CacheUse:
    """The first call writes the head, the others read it. Calls that start at once each write it for themselves."""
    together = session.parallel_calls(calls)
    misses = 0 if session.known else 1 if warmed else together
    if calls <= misses and not session.later:
        return _CacheUse()
    if forgets:
        return _CacheUse(stored=calls * session.stable)
    hits = max(0, calls - misses)
    # One call ahead takes the time to read the head once, and so does the first round without it.
    turns = math.ceil(calls / together) - (misses > 0)
    return _CacheUse(
        min(calls, misses) * session.stable, hits * session.stable, turns * session.stable, turns * session.stable**2
    )


def _history_cache_use(session: SessionLoad, calls: int, least: float, *, forgets: bool) -> _CacheUse:
    """A conversation that only grows: each call finds everything that the one before it has read."""
    before, first, grows = calls - 1, session.first, session.grows
    head = session.stable if session.known and session.stable >= least else 0.0
    if before == 0 and head == 0 and not session.later:
        return _CacheUse()
    cached = before * first + grows * _triangular_sum(before) + head
    stored = first + before * grows - head
    if forgets:
        return _CacheUse(stored=cached + stored)
    squares = before * first**2 + 2 * first * grows * _triangular_sum(before) + grows**2 * _square_sum(before) + head**2
    return _CacheUse(stored, cached, cached, squares)


def _seconds_between_calls(session: SessionLoad, rates: Rates) -> float:
    """Seconds between two uses of the head: about what one call takes. What is not known counts as none."""
    reading, writing = rates.reading_seconds(session.first, session.first**2), rates.writing_seconds(session.output)
    return (reading or 0.0) + (writing or 0.0) + rates.wait


def _session_seconds(session: SessionLoad, rates: Rates, calls: int, kept: _CacheUse) -> float | None:
    """One waits for the longest call of each round of those that go side by side."""
    together = session.parallel_calls(calls)
    turns = math.ceil(calls / together)
    grown, squares = _round_end_sums(calls, together, turns)
    first, grows = session.first, session.grows
    tokens = turns * first + grows * grown - kept.skipped
    pairs = turns * first**2 + 2 * first * grows * grown + grows**2 * squares - kept.skipped_squares
    reading, writing = rates.reading_seconds(tokens, pairs), rates.writing_seconds(turns * session.output)
    return None if reading is None or writing is None else reading + writing + turns * rates.wait


def _round_end_sums(calls: int, together: int, turns: int) -> tuple[float, float]:
    """The sum of the numbers of the last calls of all rounds, counted from 0, and the sum of their squares."""
    full = turns - 1
    numbers = together * full * turns / 2 - full
    squares = together**2 * full * turns * (2 * full + 1) / 6 - together * full * turns + full
    return numbers + (calls - 1), squares + (calls - 1) ** 2


def _triangular_sum(calls: int) -> float:
    """0 + 1 + … + (calls - 1)."""
    return calls * (calls - 1) / 2


def _square_sum(calls: int) -> float:
    """0 + 1 + 4 + … + (calls - 1)²."""
    return (calls - 1) * calls * (2 * calls - 1) / 6

"""Amounts, rates, and the cost of one session of a model: tokens read, cached and written, money, seconds and memory.

A session that is called n times and grows by g tokens with each call reads the sum over k of stable + prompt + k*g.
The stable prefix is cached from the second call on, if it is long enough and has not expired. Rates are numbers that
the caller provides; money and seconds are None if a price or a speed is not known.
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
    """A cost. Expected amounts are averages, so they need not be whole numbers.

    Args:
        prompt: All tokens that are read; `cached` of them from a cache, and `stored` of them are written into one.
        charged: The tokens at the full price that would cost as much as the prompt.
        tools: Tool calls.
        money: None if a price is not known, never 0.
        seconds: None if a speed is not known, never 0.
        longest: The tokens of the longest call, prompt and reply.
        memory: The largest size of the KV cache in bytes.
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
        """Both, one after the other: the longest call and the memory are those of the larger."""
        sums = {name: _add_known(getattr(self, name), getattr(other, name)) for name in (*_ADDITIVE, "seconds")}
        return Amounts(**sums, longest=max(self.longest, other.longest), memory=max(self.memory, other.memory))

    def times(self, often: float, at_once: float = 1.0) -> Amounts:
        """The same repeated `often` times, `at_once` of them in parallel."""
        if often <= 0:
            return NO_AMOUNTS
        turns, together = round_count(often, at_once), max(1.0, min(often, at_once))
        changed = {name: _scale_known(getattr(self, name), often) for name in _ADDITIVE}
        return Amounts(
            **changed, seconds=_scale_known(self.seconds, turns), longest=self.longest, memory=self.memory * together
        )

    @property
    def is_finite(self) -> bool:
        """Whether every known amount is a number that has an end."""
        values: list[float | None] = [getattr(self, each.name) for each in fields(self)]
        return all(value is None or math.isfinite(value) for value in values)

    def to_json(self) -> dict[str, Any]:
        """The amounts as JSON, rounded."""
        return {
            each.name: None if (value := getattr(self, each.name)) is None else round_number(value)
            for each in fields(self)
        }


_ADDITIVE = ("calls", "prompt", "cached", "stored", "charged", "output", "tools", "money")

NO_AMOUNTS = Amounts()


MAX_COUNT = 1e100
"""No count of calls is larger, so that sums over their squares stay numbers."""


def round_down(count: float) -> int:
    """The whole number below a count; `catalog.no-value` for a count that has no end."""
    return math.floor(_check_count(count))


def round_up(count: float) -> int:
    """The whole number above a count; `catalog.no-value` for a count that has no end."""
    return math.ceil(_check_count(count))


def _check_count(count: float) -> float:
    # Sizes and knobs are bounded each; those of patterns inside of each other multiply.
    if not abs(count) <= MAX_COUNT:
        raise no_amount_error()
    return count


def no_amount_error() -> CatalogError:
    """The error for a cost that no number can say."""
    message = "the cost has no value: with these sizes and knobs, the numbers have no end"
    return CatalogError("catalog.no-value", message, expected="sizes, knobs and rates of a task that somebody can have")


def round_count(often: float, at_once: float) -> float:
    """The rounds of `often` calls with `at_once` in parallel; linear between whole numbers."""
    at_once = max(1.0, round_down(at_once))
    low = round_down(often)
    below, above = round_up(low / at_once), round_up((low + 1) / at_once)
    return below + (often - low) * (above - below)


def interpolate(low: Amounts, high: Amounts, part: float) -> Amounts:
    """The mean of two cases; the second has this weight, from 0 to 1."""
    if part <= 0:
        return low
    names = (each.name for each in fields(low))
    values: dict[str, Any] = {name: _interpolate_value(getattr(low, name), getattr(high, name), part) for name in names}
    return Amounts(**values)


def round_number(value: float) -> float | int:
    """The number with at most nine decimals, and as an integer if it is whole."""
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
    """The cost of one session of one pattern.

    Args:
        inside: The patterns that wrap it, the outermost first.
        apart: Whether it happens outside of runs, and so is in no sum of a run.
        place: Where its pattern is in the outermost one around it: `steps[0].parts.law`.
    """

    agent: str
    pattern: str
    role: str
    model: str
    expected: Amounts
    worst: Amounts
    inside: tuple[str, ...] = ()
    apart: bool = False
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        return json_fields(self)


ModelTier = Literal["small", "mid", "large"]
TIERS: tuple[ModelTier, ...] = get_args(ModelTier)
"""Classes of models: the catalogue names the class of a session, and a table of rates the model."""

_MILLION = 1_000_000


def _check_rate(name: str, value: float, *, least: float = 0.0, above_zero: bool = False) -> None:
    if math.isnan(value) or value < least or (above_zero and value == 0):
        expected = f"a number {'above' if above_zero else 'from'} {least:g}{'' if above_zero else ' on'}"
        raise CatalogError("catalog.bad-rate", f"{name} is {value!r}", expected=expected)


@dataclass(frozen=True, slots=True)
class Caching:
    """How a model caches the prefix of a prompt.

    Args:
        minimum: The fewest tokens that are cached.
        write: The factor on the price of tokens that are stored.
        read: The factor on the price of tokens that are found within `ttl` seconds.
        history: Whether a conversation that only grows is found whole, and not only the stable prefix.
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
"""A local engine: it never reads the same prefix twice, and nothing is charged."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices and speeds of a model; None means not known.

    Args:
        read: The price of a million prompt tokens; `cached` that of cached ones, `written` that of reply tokens.
        prompt_speed: Prompt tokens a second; `output_speed` reply tokens a second.
        wait: Seconds before the model begins.
        square_at: The length of a prompt at which attention takes as long as everything else in reading it. The time
            of shorter prompts is nearly linear, that of longer ones grows with the square.
        kv_bytes: Memory of a token: 2 x layers x key-value heads x width of a head x bytes of a number.
        window: The most tokens of a call.
        lanes: How many calls run in parallel without being slower.

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
        """The price of a cached token as a share of the full price."""
        if self.cached is not None and self.read:
            return self.cached / self.read
        return self.caching.read if self.caching is not None else 1.0

    def charged_tokens(self, fresh: float, stored: float, cached: float) -> float:
        """The number of tokens at the full price that would cost as much."""
        write = self.caching.write if self.caching is not None else 1.0
        return fresh + write * stored + self.cached_share * cached

    def money(self, charged: float, output: float) -> float | None:
        """The price of these tokens, if prices are known."""
        if self.read is None or self.written is None:
            return None
        return (charged * self.read + output * self.written) / _MILLION

    def reading_seconds(self, until: float, squares: float) -> float | None:
        """Seconds to read these tokens; `squares` are the pairs of tokens in attention, without cached ones."""
        if self.prompt_speed is None:
            return None
        return (until + squares / self.square_at) / self.prompt_speed

    def writing_seconds(self, output: float) -> float | None:
        return None if self.output_speed is None else output / self.output_speed


# Measured on two cores of a small machine. `square_at` and the bytes of a token follow from the shapes of the
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
"""The local weights, by class: they cost only time."""


@dataclass(frozen=True, slots=True)
class SessionLoad:
    """The calls of one role: how many, the tokens of each, and how many run in parallel."""

    calls: float
    stable: float = 0.0
    prompt: float = 0.0
    grows: float = 0.0
    output: float = 0.0
    parallel: float = 1.0
    known: bool = False
    """Whether an earlier session of the same kind left the prefix in the cache."""
    later: bool = False
    """Whether the session is repeated soon, so that even a single call stores its prefix."""
    cap: float = math.inf
    """The length of the prompt at which older tokens are summarised, so that it grows no further."""
    resets: float = 0.0
    """The share of calls at the cap that follow a summary: for them only the prefix is cached."""

    @property
    def first(self) -> float:
        """The prompt tokens of the first call."""
        return self.stable + self.prompt

    def parallel_calls(self, calls: int) -> int:
        """How many of the calls run in parallel."""
        return max(1, min(calls, round_down(self.parallel)))

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
    """The expected cost of a session. `warmed`: one call goes first, so that parallel ones find the cache.

    Example:
        >>> twenty = SessionLoad(calls=20, stable=2000, parallel=20)
        >>> expected_amounts(twenty, Rates("m"), warmed=True).charged
        6300.0
    """
    whole = round_down(session.calls)
    low = _session_amounts(session, rates, whole, warmed=warmed, forgets=False)
    if session.calls == whole:
        return low
    high = _session_amounts(session, rates, whole + 1, warmed=warmed, forgets=False)
    return interpolate(low, high, session.calls - whole)


def worst_amounts(session: SessionLoad, rates: Rates, *, warmed: bool = False) -> Amounts:
    """The worst cost: every call, and nothing is found in the cache although storing it was paid for."""
    return _session_amounts(session, rates, round_up(session.calls), warmed=warmed, forgets=True)


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
    # Parallel calls are no single conversation that could be summarised.
    if session.grows <= 0 or session.parallel >= 2 or math.isinf(session.cap):
        return calls
    return max(1, min(calls, 1 + round_down((session.cap - session.first) / session.grows)))


def _capped_session(session: SessionLoad, rates: Rates) -> SessionLoad:
    """The calls at the cap. A summary changes the prompt, and nothing behind it is cached."""
    length = max(session.cap, session.first)
    head = min(session.stable, length)
    if rates.caching is not None and rates.caching.history:
        found = max(head, length - session.grows)
        head = found - session.resets * (found - head)
    return replace(session, stable=head, prompt=length - head, grows=0.0, cap=math.inf, known=True)


@dataclass(frozen=True, slots=True)
class _CacheUse:
    """The effect of a cache on a session: tokens stored and found, and what it saves on the critical path."""

    stored: float = 0.0
    cached: float = 0.0
    skipped: float = 0.0
    """Tokens on the critical path that need not be read."""
    skipped_squares: float = 0.0


def _cache_use(session: SessionLoad, rates: Rates, calls: int, *, warmed: bool, forgets: bool) -> _CacheUse:
    """The cache use of a session. A prefix that expires was stored, and paid for, all the same."""
    caching = rates.caching
    if caching is None or rates.cached_share >= 1 or _seconds_between_calls(session, rates) > caching.ttl:
        return _CacheUse()
    if caching.history and session.grows > 0 and session.parallel < 2 and session.first >= caching.minimum:
        return _history_cache_use(session, calls, caching.minimum, forgets=forgets)
    if session.stable >= caching.minimum:
        return _head_cache_use(session, calls, warmed=warmed, forgets=forgets)
    return _CacheUse()


def _head_cache_use(session: SessionLoad, calls: int, *, warmed: bool, forgets: bool) -> _CacheUse:
    """The first call stores the prefix, the others find it. Calls that start together each store it."""
    together = session.parallel_calls(calls)
    misses = 0 if session.known else 1 if warmed else together
    if calls <= misses and not session.later:
        return _CacheUse()
    if forgets:
        return _CacheUse(stored=calls * session.stable)
    hits = max(0, calls - misses)
    # A warm-up call takes the time to read the prefix once, and so does the first round without one.
    turns = round_up(calls / together) - (misses > 0)
    return _CacheUse(
        min(calls, misses) * session.stable,
        hits * session.stable,
        turns * session.stable,
        turns * (session.stable * session.stable),
    )


def _history_cache_use(session: SessionLoad, calls: int, least: float, *, forgets: bool) -> _CacheUse:
    """A conversation that only grows: each call finds everything that the previous one has read."""
    before, first, grows = calls - 1, session.first, session.grows
    head = session.stable if session.known and session.stable >= least else 0.0
    if before == 0 and head == 0 and not session.later:
        return _CacheUse()
    cached = before * first + grows * _triangular_sum(before) + head
    stored = first + before * grows - head
    if forgets:
        return _CacheUse(stored=cached + stored)
    squares = before * (first * first) + 2 * first * grows * _triangular_sum(before)
    squares += (grows * grows) * _square_sum(before) + head * head
    return _CacheUse(stored, cached, cached, squares)


def _seconds_between_calls(session: SessionLoad, rates: Rates) -> float:
    """Seconds between two uses of the prefix: about one call. Unknown speeds count as 0."""
    reading, writing = (
        rates.reading_seconds(session.first, session.first * session.first),
        rates.writing_seconds(session.output),
    )
    return (reading or 0.0) + (writing or 0.0) + rates.wait


def _session_seconds(session: SessionLoad, rates: Rates, calls: int, kept: _CacheUse) -> float | None:
    """The seconds of a session: the longest call of each parallel round."""
    together = session.parallel_calls(calls)
    turns = round_up(calls / together)
    grown, squares = _round_end_sums(calls, together, turns)
    first, grows = session.first, session.grows
    tokens = turns * first + grows * grown - kept.skipped
    pairs = turns * (first * first) + 2 * first * grows * grown + (grows * grows) * squares - kept.skipped_squares
    reading, writing = rates.reading_seconds(tokens, pairs), rates.writing_seconds(turns * session.output)
    return None if reading is None or writing is None else reading + writing + turns * rates.wait


def _round_end_sums(calls: int, together: int, turns: int) -> tuple[float, float]:
    """The sum of the indices of the last call of each round, and the sum of their squares."""
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

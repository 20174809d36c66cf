"""One session in numbers: every case is worked out by hand beside it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from bicameral.catalog.costs import (
    LOCAL_CACHING,
    LOCAL_RATES,
    Amounts,
    Caching,
    Rates,
    SessionLoad,
    expected_amounts,
    worst_amounts,
)
from bicameral.errors import CatalogError

PLAIN = Rates("m", read=1.0, written=10.0, caching=None)
CACHED = Rates("m", read=1.0, written=10.0)


def test_a_session_that_grows_reads_the_sum_of_all_its_prompts() -> None:
    # 1000 + 1300 + 1600 + 1900: stable 800, prompt 200, and 300 more with each call.
    found = expected_amounts(SessionLoad(4, 800, 200, 300, 100), PLAIN)
    assert (found.calls, found.prompt, found.output, found.longest) == (4, 5800, 400, 2000)
    assert found.money == pytest.approx((5800 * 1 + 400 * 10) / 1e6)


def test_twenty_workers_over_one_warmed_head_cost_6300_of_40000_tokens() -> None:
    # One writes 2000 at 1.25, nineteen read 2000 at 0.10: 2500 + 3800.
    twenty = SessionLoad(20, 2000, parallel=20)
    found = expected_amounts(twenty, CACHED, warmed=True)
    assert (found.prompt, found.stored, found.cached, found.charged) == (40_000, 2000, 38_000, 6300)
    # Without one that goes ahead they all start cold, and nobody finds anything.
    cold = expected_amounts(twenty, CACHED)
    assert (cold.stored, cold.cached, cold.charged) == (0, 0, 40_000)
    # One after the other they find it from the second call on.
    assert expected_amounts(replace(twenty, parallel=1), CACHED).charged == 6300


def test_a_head_is_stored_only_where_somebody_will_find_it() -> None:
    # Break-even is at two calls: 1.25 + 0.10 < 2.
    assert expected_amounts(SessionLoad(1, 2000), CACHED).charged == 2000
    assert expected_amounts(SessionLoad(2, 2000), CACHED).charged == 2700
    assert expected_amounts(SessionLoad(1, 2000, later=True), CACHED).charged == 2500
    assert expected_amounts(SessionLoad(1, 2000, known=True), CACHED).charged == 200


def test_a_head_below_the_minimum_is_not_cached() -> None:
    assert expected_amounts(SessionLoad(5, 1023), CACHED).cached == 0
    assert expected_amounts(SessionLoad(5, 1024), CACHED).cached == 4 * 1024
    small = replace(CACHED, caching=Caching(minimum=100))
    assert expected_amounts(SessionLoad(5, 1023), small).cached == 4 * 1023


def test_a_call_that_outlives_the_cache_finds_nothing() -> None:
    # 3000 tokens read at 100 a second and 3000 written at 10: 330 seconds a call, and the cache lives 300.
    slow = replace(CACHED, prompt_speed=100, output_speed=10)
    assert expected_amounts(SessionLoad(3, 3000, output=3000), slow).cached == 0
    assert expected_amounts(SessionLoad(3, 3000, output=2000), slow).cached == 6000


def test_a_local_engine_does_not_read_again_what_it_has_read() -> None:
    # Prompts of 600, 900, 1200, 1500: the second finds 600, the third 900, the fourth 1200.
    local = Rates("m", 0, 0, prompt_speed=100, output_speed=10, caching=LOCAL_CACHING)
    found = expected_amounts(SessionLoad(4, 400, 200, 300, 50), local)
    assert (found.prompt, found.cached) == (4200, 2700)
    assert found.seconds == pytest.approx((4200 - 2700) / 100 + 200 / 10)
    assert worst_amounts(SessionLoad(4, 400, 200, 300, 50), local).seconds == pytest.approx(4200 / 100 + 200 / 10)


def test_long_prompts_take_longer_than_their_share() -> None:
    # At `square_at` comparing all pairs takes as long as the rest; at double the length, twice as long.
    rates = replace(PLAIN, prompt_speed=100, output_speed=1, square_at=1000)
    assert expected_amounts(SessionLoad(1, 1000), rates).seconds == pytest.approx(20)
    assert expected_amounts(SessionLoad(1, 2000), rates).seconds == pytest.approx(60)
    # The head that is cached was compared before: 2000² - 1000² pairs are left.
    again = replace(rates, caching=LOCAL_CACHING)
    assert expected_amounts(SessionLoad(1, 1000, 1000, known=True), again).seconds == pytest.approx(10 + 30)


def test_calls_side_by_side_take_the_time_of_the_longest_of_each_round() -> None:
    rates = replace(PLAIN, prompt_speed=100, output_speed=10, wait=1)
    one = expected_amounts(SessionLoad(1, 0, 500, output=20), rates).seconds
    assert one == pytest.approx(5 + 2 + 1)
    assert expected_amounts(SessionLoad(6, 0, 500, output=20, parallel=3), rates).seconds == pytest.approx(2 * 8)
    assert expected_amounts(SessionLoad(7, 0, 500, output=20, parallel=3), rates).seconds == pytest.approx(3 * 8)
    # Growing by 100: the rounds end with calls 2, 5 and 6, which read 700, 1000 and 1100.
    grown = expected_amounts(SessionLoad(7, 0, 500, 100, 20, 3), rates).seconds
    assert grown == pytest.approx((700 + 1000 + 1100) / 100 + 3 * 2 + 3)


def test_what_a_model_keeps_of_a_context_takes_memory() -> None:
    # 2 x 80 layers x 8 heads x 128 x 2 bytes: 327,680 bytes a token, for two conversations of 1,100 tokens at once.
    large = replace(PLAIN, kv_bytes=2 * 80 * 8 * 128 * 2)
    assert large.kv_bytes == 327_680
    assert expected_amounts(SessionLoad(4, 0, 1000, output=100, parallel=2), large).memory == 2 * 1100 * 327_680


def test_a_context_that_is_summed_up_grows_no_further() -> None:
    # 1000, 1400, 1800 and then 2000 for the other three.
    assert expected_amounts(SessionLoad(6, 500, 500, 400, cap=2000), PLAIN).prompt == 1000 + 1400 + 1800 + 3 * 2000
    # At the cap half of the calls find all but the newest 400, the others only the head of 500.
    local = Rates("m", caching=LOCAL_CACHING)
    held = expected_amounts(SessionLoad(6, 500, 500, 400, cap=2000, resets=0.5), local)
    assert held.cached == 1000 + 1400 + 3 * (1600 + 500) / 2


def test_the_worst_case_pays_for_every_head_and_finds_none() -> None:
    found = worst_amounts(SessionLoad(3, 2000, 100, output=10), CACHED)
    assert (found.cached, found.stored) == (0, 6000)
    assert found.charged == 300 + 1.25 * 6000


def test_half_a_call_is_the_mean_of_none_and_one() -> None:
    session = SessionLoad(1.5, 2000, 100, 50, 10)
    one, two = (expected_amounts(replace(session, calls=calls), CACHED) for calls in (1, 2))
    found = expected_amounts(session, CACHED)
    assert found.prompt == (one.prompt + two.prompt) / 2
    assert found.money == pytest.approx(((one.money or 0) + (two.money or 0)) / 2)


def test_what_is_not_known_is_none_and_not_nothing() -> None:
    assert expected_amounts(SessionLoad(1, 10), Rates("m")).money is None
    assert expected_amounts(SessionLoad(1, 10), Rates("m", 1, 1)).seconds is None
    assert Amounts(money=None).plus(Amounts(money=1.0)).money is None
    assert Amounts(seconds=None).times(3).seconds is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"read": -1.0},
        {"prompt_speed": 0.0},
        {"written": math.nan},
        {"lanes": 0},
        {"square_at": 0},
    ],
)
def test_a_rate_that_cannot_be_is_an_error(wrong: dict[str, float]) -> None:
    with pytest.raises(CatalogError) as raised:
        Rates("m", **wrong)  # pyright: ignore[reportArgumentType]
    assert raised.value.code == "catalog.bad-rate"


def test_a_cache_that_cannot_be_is_an_error() -> None:
    with pytest.raises(CatalogError, match=r"write is 0\.5"):
        Caching(write=0.5)


RATES = st.builds(
    Rates,
    st.just("m"),
    read=st.floats(0, 100),
    written=st.floats(0, 100),
    prompt_speed=st.floats(1, 1e5),
    output_speed=st.floats(1, 1e4),
    caching=st.none()
    | st.builds(
        Caching,
        minimum=st.integers(1, 4096),
        write=st.floats(1, 2),
        read=st.floats(0, 1),
        ttl=st.sampled_from([1.0, 300.0, math.inf]),
        history=st.booleans(),
    ),
    wait=st.floats(0, 2),
    square_at=st.floats(100, 1e6),
    kv_bytes=st.floats(0, 1e6),
)
SESSIONS = st.builds(
    SessionLoad,
    calls=st.floats(0, 40),
    stable=st.integers(0, 5000),
    prompt=st.integers(0, 5000),
    grows=st.integers(0, 1000),
    output=st.integers(0, 1000),
    parallel=st.integers(1, 10),
    cap=st.sampled_from([500.0, 6000.0, math.inf]),
    resets=st.floats(0, 1),
)
GROW = ("calls", "prompt", "charged", "output", "money", "seconds", "longest", "memory")


def _least(one: Amounts, other: Amounts, names: tuple[str, ...] = GROW) -> None:
    for name in names:
        low, high = getattr(one, name), getattr(other, name)
        assert low <= high + 1e-6 + 1e-9 * abs(high), (name, low, high)


@given(SESSIONS, RATES, st.booleans())
def test_the_worst_case_is_never_better_than_the_expected_one(session: SessionLoad, rates: Rates, warmed: bool) -> None:
    _least(expected_amounts(session, rates, warmed=warmed), worst_amounts(session, rates, warmed=warmed))


@given(SESSIONS, RATES, st.floats(0, 5), st.booleans())
def test_more_calls_are_never_cheaper(session: SessionLoad, rates: Rates, more: float, warmed: bool) -> None:
    longer = replace(session, calls=session.calls + more)
    _least(expected_amounts(session, rates, warmed=warmed), expected_amounts(longer, rates, warmed=warmed))


@given(SESSIONS, RATES, st.integers(0, 500))
def test_longer_replies_and_faster_growth_are_never_cheaper(session: SessionLoad, rates: Rates, more: int) -> None:
    no_cache = replace(rates, caching=None)
    _least(
        expected_amounts(session, no_cache), expected_amounts(replace(session, output=session.output + more), no_cache)
    )
    _least(
        expected_amounts(session, no_cache), expected_amounts(replace(session, grows=session.grows + more), no_cache)
    )


@given(SESSIONS, RATES, st.booleans())
def test_a_cache_is_never_dearer_beyond_what_storing_costs(session: SessionLoad, rates: Rates, warmed: bool) -> None:
    write = rates.caching.write if rates.caching is not None else 1.0
    without = expected_amounts(session, replace(rates, caching=None), warmed=warmed)
    found = expected_amounts(session, rates, warmed=warmed)
    assert found.prompt == pytest.approx(without.prompt)
    assert found.charged <= without.prompt * write * (1 + 1e-9) + 1e-6
    assert worst_amounts(session, rates).charged <= worst_amounts(
        session, replace(rates, caching=None)
    ).prompt * write * (1 + 1e-9)
    # One after the other, what is stored is found again, and that pays.
    if session.parallel == 1 and rates.caching is not None and rates.caching.write + rates.caching.read <= 2:
        assert found.charged <= without.charged * (1 + 1e-9) + 1e-6


@given(SESSIONS, RATES)
def test_cached_and_stored_tokens_are_part_of_what_was_read(session: SessionLoad, rates: Rates) -> None:
    found = expected_amounts(session, rates)
    assert found.cached >= -1e-6
    assert found.cached + found.stored <= found.prompt * (1 + 1e-9) + 1e-6


def test_the_local_weights_cost_time_and_no_money() -> None:
    found = expected_amounts(SessionLoad(3, 500, 100, 50, 40), LOCAL_RATES["large"])
    assert found.money == 0
    assert found.seconds is not None
    assert found.seconds > 0
    assert found.memory > 0

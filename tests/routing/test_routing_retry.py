"""Trying again: not too soon, not too often, not too late, and never after a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace

import pytest
from adaptive_world import ASK, Model, Turn, caught, fails, model, now, virtually
from hypothesis import given, strategies as st

from bicameral.errors import ModelError
from bicameral.limits import collect_charges
from bicameral.models import EndChunk, ModelFailure, ModelRequest
from bicameral.routing import Retry, RetrySettings, call_context

PASSING = ("models.rate-limited", "models.unavailable", "models.timeout", "models.bad-reply")
FINAL = ("models.refused", "models.auth", "models.bad-request", "models.cancelled", "models.prompt-too-long")

settings_ = st.builds(
    RetrySettings,
    attempts=st.integers(1, 6),
    first=st.floats(0, 5),
    most=st.floats(5, 60),
    jitter=st.floats(0, 1),
    patience=st.floats(0, 100),
)
turns = st.builds(
    fails, st.sampled_from(PASSING), after=st.floats(0, 20), retry_after=st.none() | st.floats(0, 40)
) | st.builds(Turn, after=st.floats(0, 20))


@pytest.mark.parametrize("code", FINAL)
def test_what_is_final_is_never_tried_again(code: str) -> None:
    it = model("a", fails(code), Turn())
    error = virtually(lambda: caught(Retry(it).generate(ASK)))
    assert error.code == code
    assert len(it.asked) == 1


@pytest.mark.parametrize("code", PASSING)
def test_what_may_pass_is_tried_again_and_the_reply_says_so(code: str) -> None:
    it = model("a", fails(code), fails(code), Turn(text="at last"))
    reply = virtually(lambda: Retry(it).generate(ASK))
    assert reply.text == "at last"
    assert reply.degraded is None
    assert reply.route is not None
    assert [name for name, _ in reply.route.attempts] == ["a", "a"]


def test_the_last_failure_is_what_is_told() -> None:
    it = model("a", fails("models.unavailable"), fails("models.bad-reply"))
    assert virtually(lambda: caught(Retry(it, RetrySettings(attempts=2)).generate(ASK))).code == "models.bad-reply"
    assert len(it.asked) == 2


def test_a_fault_of_ones_own_code_is_not_a_reason_to_try_again() -> None:
    it = model("a", Turn(error=lambda: ValueError("a bug")))
    with pytest.raises(ValueError, match="a bug"):
        virtually(lambda: Retry(it).generate(ASK))
    assert len(it.asked) == 1


@given(settings_, st.lists(turns, min_size=1, max_size=8), st.none() | st.floats(0.1, 60), st.floats(0, 1))
def test_no_attempt_is_begun_or_lasts_past_the_deadline_and_none_too_soon(
    settings: RetrySettings, script: list[Turn], timeout: float | None, chance: float
) -> None:
    it = model("a", *script)

    async def work() -> tuple[float, float]:
        began = now()
        with suppress(ModelError):
            await Retry(it, settings, chance=lambda: chance).generate(replace(ASK, timeout=timeout))
        return began, now()

    began, ended = virtually(work)
    assert 1 <= len(it.asked) <= settings.attempts
    if timeout is not None:
        assert ended <= began + timeout + 1e-6
        assert all(each.timeout is not None and 0 < each.timeout <= timeout + 1e-6 for each in it.given)
    for number, (before, after) in enumerate(zip(it.asked, it.asked[1:], strict=False)):
        turn = script[min(number, len(script) - 1)]
        waited = after - before - turn.after
        least = min(settings.most, settings.first * 2**number) * (1 - settings.jitter)
        error = turn.error() if turn.error else None
        wanted = getattr(error, "retry_after", None) or 0.0
        assert wanted <= settings.patience
        assert waited >= max(least, wanted) - 1e-6
        assert waited <= max(settings.most, wanted) + 1e-6


def test_nobody_waits_for_a_time_that_does_not_come_in_time() -> None:
    it = model("a", fails("models.rate-limited", retry_after=50))

    async def work() -> float:
        began = now()
        error = await caught(Retry(it).generate(replace(ASK, timeout=10)))
        assert error.code == "models.rate-limited"
        return now() - began

    assert virtually(work) == 0


def test_what_is_left_to_the_run_bounds_it_too() -> None:
    it = model("a", Turn(after=100))

    async def work() -> float:
        began = now()
        with call_context(seconds_left=3.0):
            assert (await caught(Retry(it).generate(ASK))).code == "models.timeout"
        return now() - began

    assert virtually(work) == pytest.approx(3.0)


def test_a_single_attempt_can_be_bounded() -> None:
    it = model("a", Turn(after=100), Turn(after=1))
    assert virtually(lambda: Retry(it, RetrySettings(each=2.0)).generate(replace(ASK, timeout=60))).text == "yes"
    assert it.cancelled == 1


def test_being_called_off_ends_it_also_while_it_waits() -> None:
    it = model("a", fails("models.unavailable"))

    async def work() -> bool:
        task = asyncio.create_task(Retry(it, RetrySettings(first=30, most=30)).generate(ASK))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert virtually(work)
    assert len(it.asked) == 1


def test_every_attempt_is_charged() -> None:
    it = model("local:a", fails("models.bad-reply"), Turn())

    async def work() -> list[str]:
        with collect_charges() as charges:
            await Retry(it).generate(ASK)
        return [charge.ending for charge in charges]

    assert virtually(work) == ["failed", "answered"]


class Breaking(Model):
    """Fails before its first stream, and in the middle of the second."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        self.asked.append(now())
        if len(self.asked) == 1:
            raise ModelFailure("models.unavailable", "it")
        yield "one "
        raise ModelFailure("models.bad-reply", "it")


def test_a_stream_is_begun_again_only_before_its_first_piece() -> None:
    it, seen = Breaking("a"), list[str]()

    async def work() -> None:
        async for piece in Retry(it).stream(ASK):
            seen.append(piece)

    with pytest.raises(ModelError) as raised:
        virtually(work)
    assert raised.value.code == "models.bad-reply"
    assert seen == ["one "]
    assert len(it.asked) == 2


def test_the_end_of_a_stream_says_what_went_before() -> None:
    it = model("a", fails("models.unavailable"), Turn(text="well"))

    async def work() -> EndChunk:
        chunks = [chunk async for chunk in Retry(it).chunks(ASK)]
        end = chunks[-1]
        assert isinstance(end, EndChunk)
        return end

    route = virtually(work).reply.route
    assert route is not None
    assert route.attempts == (("a", "unavailable"),)


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"first": -1.0}, {"jitter": 2.0}, {"first": 9.0, "most": 1.0}, {"each": 0.0}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ModelError) as raised:
        RetrySettings(**wrong)  # pyright: ignore[reportArgumentType]
    assert raised.value.code == "models.bad-setting"

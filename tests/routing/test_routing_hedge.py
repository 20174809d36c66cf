"""A second request beside a slow one: one reply, the loser called off and paid for, and no way around a refusal."""

from __future__ import annotations

import asyncio

import pytest
from adaptive_world import ASK, READS, Model, Turn, caught, fails, model, now, virtually
from hypothesis import given, strategies as st

from bicameral.errors import ModelError
from bicameral.limits import Charge, collect_charges
from bicameral.models import EndChunk, ModelReply, ModelRequest
from bicameral.routing import Hedged

turns = st.builds(Turn, after=st.floats(0, 10)) | st.builds(
    fails, st.sampled_from(["models.unavailable", "models.timeout", "models.refused"]), after=st.floats(0, 10)
)


def test_a_quick_reply_asks_nobody_else() -> None:
    first, second = model("a", Turn(text="a", after=1)), model("b")
    reply = virtually(lambda: Hedged(first, after=2, second=second).generate(ASK))
    assert (reply.text, reply.degraded, reply.route) == ("a", None, None)
    assert not second.asked


def test_after_a_while_a_second_is_asked_and_the_slower_one_is_called_off() -> None:
    first, second = model("a", Turn(after=50)), model("b", Turn(text="b", after=1))

    async def work() -> tuple[ModelReply, float]:
        began = now()
        reply = await Hedged(first, after=2, second=second).generate(ASK)
        return reply, now() - began

    reply, took = virtually(work)
    assert (reply.text, took) == ("b", pytest.approx(3))
    assert first.cancelled == 1
    assert reply.degraded is not None
    assert "b answered instead of a" in reply.degraded


def test_the_first_may_still_win_and_then_nothing_is_degraded() -> None:
    first, second = model("a", Turn(text="a", after=3)), model("b", Turn(after=50))
    reply = virtually(lambda: Hedged(first, after=2, second=second).generate(ASK))
    assert (reply.text, reply.degraded) == ("a", None)
    assert second.cancelled == 1


def test_the_same_model_twice_is_no_less_than_once() -> None:
    one = model("a", Turn(after=50), Turn(text="again", after=1))
    reply = virtually(lambda: Hedged(one, after=2).generate(ASK))
    assert (reply.text, reply.degraded) == ("again", None)
    assert reply.route is not None
    assert reply.route.attempts == (("a", "no reply within 2 s"),)


def test_the_loser_is_paid_for() -> None:
    first, second = model("local:a", Turn(after=50)), model("local:b", Turn(after=1))

    async def work() -> list[Charge]:
        with collect_charges() as charges:
            await Hedged(first, after=2, second=second).generate(ASK)
        return sorted(charges, key=lambda charge: charge.model)

    lost, won = virtually(work)
    assert (lost.ending, lost.tokens, lost.estimated) == ("cancelled", READS, True)
    assert (won.ending, won.tokens, won.estimated) == ("answered", READS + 5, False)


def test_a_refusal_before_the_delay_asks_nobody() -> None:
    second = model("b")
    it = Hedged(model("a", fails("models.refused", after=1)), after=2, second=second)
    assert virtually(lambda: caught(it.generate(ASK))).code == "models.refused"
    assert not second.asked


@pytest.mark.parametrize("who", ["first", "second"])
def test_a_refusal_of_either_ends_the_race(who: str) -> None:
    refuses, dawdles = fails("models.refused", after=2), Turn(after=50)
    first, second = (refuses, dawdles) if who == "first" else (dawdles, refuses)
    two = model("a", first), model("b", second)
    error = virtually(lambda: caught(Hedged(two[0], after=1, second=two[1]).generate(ASK)))
    assert error.code == "models.refused"
    assert sum(each.cancelled for each in two) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_a_refusal_at_the_same_moment_as_a_reply_counts(turned: bool) -> None:
    turns = [fails("models.refused", after=3), Turn(after=2)]
    if turned:
        turns = [Turn(after=3), fails("models.refused", after=2)]
    it = Hedged(model("a", turns[0]), after=1, second=model("b", turns[1]))
    assert virtually(lambda: caught(it.generate(ASK))).code == "models.refused"


def test_a_refusal_that_comes_while_the_loser_is_called_off_counts() -> None:
    class Late(Model):
        async def generate(self, request: ModelRequest) -> ModelReply:
            try:
                return await super().generate(request)
            except asyncio.CancelledError:
                await asyncio.sleep(0.1)
                raise fails("models.refused").error() from None  # pyright: ignore[reportOptionalCall]

    it = Hedged(Late("a", [Turn(after=50)]), after=1, second=model("b", Turn(after=1)))
    assert virtually(lambda: caught(it.generate(ASK))).code == "models.refused"


def test_a_failure_of_one_is_none_as_long_as_the_other_is_asked() -> None:
    it = Hedged(model("a", fails("models.unavailable", after=2)), after=1, second=model("b", Turn(text="b", after=5)))
    reply = virtually(lambda: it.generate(ASK))
    assert reply.text == "b"
    assert reply.degraded is not None
    assert "it failed" in reply.degraded


def test_both_failing_is_the_failure_of_the_first() -> None:
    it = Hedged(model("a", fails("models.unavailable", after=2)), after=1, second=model("b", fails("models.timeout")))
    assert virtually(lambda: caught(it.generate(ASK))).code == "models.unavailable"


def test_a_loser_that_does_not_heed_being_called_off_holds_nobody_up() -> None:
    class Stubborn(Model):
        async def generate(self, request: ModelRequest) -> ModelReply:
            ends = now() + 100
            while now() < ends:
                try:
                    await asyncio.sleep(ends - now())
                except asyncio.CancelledError:
                    self.cancelled += 1
            return ModelReply("too late")

    async def work() -> tuple[str, float]:
        began = now()
        reply = await Hedged(Stubborn("a"), after=1, second=model("b", Turn(text="b", after=1))).generate(ASK)
        return reply.text, now() - began

    text, took = virtually(work)
    assert text == "b"
    assert took <= 3 + 1e-6


def test_being_called_off_calls_both_off() -> None:
    two = model("a", Turn(after=50)), model("b", Turn(after=50))

    async def work() -> bool:
        task = asyncio.create_task(Hedged(two[0], after=1, second=two[1]).generate(ASK))
        await asyncio.sleep(2)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert virtually(work)
    assert [each.cancelled for each in two] == [1, 1]


@given(turns, turns, st.floats(0, 10), st.none() | st.floats(0.1, 15))
def test_there_is_one_outcome_in_time_and_nothing_goes_on_afterwards(
    one: Turn, two: Turn, after: float, timeout: float | None
) -> None:
    first, second = model("a", one), model("b", two)

    async def work() -> tuple[ModelReply | ModelError, float, list[Charge]]:
        began = now()
        with collect_charges() as charges:
            try:
                outcome: ModelReply | ModelError = await Hedged(first, after=after, second=second).generate(
                    ModelRequest(ASK.messages, timeout=timeout)
                )
            except ModelError as error:
                outcome = error
        took = now() - began
        before = len(asyncio.all_tasks())
        await asyncio.sleep(100)
        assert before == 1
        return outcome, took, charges

    outcome, took, charges = virtually(work)
    assert len(first.asked) == 1
    assert len(second.asked) <= 1
    assert len(charges) == len(first.asked) + len(second.asked)
    assert first.ended + first.cancelled == 1
    assert second.ended + second.cancelled == len(second.asked)
    if timeout is not None:
        assert took <= timeout + 1e-6
    refused = [each for each in (first, second) if each.ended and each.turns[0].error is not None]
    if any(each.turns[0].error().code == "models.refused" for each in refused):  # pyright: ignore
        assert isinstance(outcome, ModelError)
    if isinstance(outcome, ModelReply):
        assert (outcome.degraded is not None) == (outcome.model == "b")


def test_a_stream_is_that_of_whoever_begins_first() -> None:
    first, second = model("a", Turn(after=50)), model("b", Turn(text="one two", after=1))

    async def work() -> tuple[list[str], ModelReply]:
        texts = [text async for text in Hedged(first, after=2, second=second).stream(ASK)]
        end = [chunk async for chunk in Hedged(first, after=2, second=second).chunks(ASK)][-1]
        assert isinstance(end, EndChunk)
        return texts, end.reply

    texts, reply = virtually(work)
    assert texts == ["one ", "two "]
    assert reply.degraded is not None
    assert first.cancelled == 2


def test_a_delay_that_makes_no_sense_is_refused() -> None:
    for after in (-1.0, float("nan")):
        with pytest.raises(ModelError):
            Hedged(model("a"), after=after)

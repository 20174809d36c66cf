"""A cascade: cheap first, further only with a reason, and what was not accepted never passes for what was."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from adaptive_world import ASK, READS, Turn, caught, fails, model, now, virtually
from hypothesis import given, strategies as st

from bicameral.errors import ModelError
from bicameral.limits import collect_charges
from bicameral.models import EndChunk, ModelReply, ModelRequest
from bicameral.routing import Cascade, Fallback, check_finished

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def good(request: ModelRequest, reply: ModelReply) -> str | None:
    return None if reply.text.startswith("good") else "it is not good"


async def slowly(request: ModelRequest, reply: ModelReply) -> str | None:
    await asyncio.sleep(1)
    return good(request, reply)


def test_a_small_model_that_is_good_enough_is_all_that_is_asked() -> None:
    small, large = model("small", Turn(text="good")), model("large")
    reply = virtually(lambda: Cascade(small, large, accept=good).generate(ASK))
    assert (reply.text, reply.model, reply.degraded, reply.route) == ("good", "small", None, None)
    assert not large.asked


@pytest.mark.parametrize("accept", [good, slowly])
def test_what_is_not_accepted_goes_on_to_the_larger_one_with_the_reason(accept: object) -> None:
    small, large = model("small", Turn(text="bad")), model("large", Turn(text="good one"))
    reply = virtually(lambda: Cascade(small, large, accept=accept).generate(ASK))  # pyright: ignore[reportArgumentType]
    assert (reply.text, reply.degraded) == ("good one", None)
    assert reply.route is not None
    assert reply.route.attempts == (("small", "it is not good"),)


def test_the_last_word_counts_and_says_that_it_was_not_accepted() -> None:
    both = Cascade(model("small", Turn(text="bad")), model("large", Turn(text="bad too")), accept=good)
    reply = virtually(lambda: both.generate(ASK))
    assert reply.text == "bad too"
    assert reply.degraded == "large was not accepted (it is not good)"


def test_a_small_model_that_is_out_of_order_is_passed_over() -> None:
    small, large = model("small", fails("models.unavailable")), model("large", Turn(text="good"))
    reply = virtually(lambda: Cascade(small, large, accept=good).generate(ASK))
    assert (reply.text, reply.degraded) == ("good", None)


@pytest.mark.parametrize("settle", [False, True])
def test_a_refusal_of_the_larger_one_is_not_gone_around_with_what_the_smaller_said(settle: bool) -> None:
    small, large = model("small", Turn(text="bad")), model("large", fails("models.refused"))
    error = virtually(lambda: caught(Cascade(small, large, accept=good, settle=settle).generate(ASK)))
    assert error.code == "models.refused"


@pytest.mark.parametrize("settle", [False, True])
def test_a_refusal_of_the_smaller_one_is_not_taken_to_the_larger(settle: bool) -> None:
    small, large = model("small", fails("models.refused")), model("large")
    error = virtually(lambda: caught(Cascade(small, large, accept=good, settle=settle).generate(ASK)))
    assert error.code == "models.refused"
    assert not large.asked


def test_a_refusal_of_whoever_judges_is_final_too() -> None:
    async def verified(request: ModelRequest, reply: ModelReply) -> str | None:
        raise fails("models.refused").error()  # pyright: ignore[reportOptionalCall]

    large = model("large")
    error = virtually(lambda: caught(Cascade(model("small"), large, accept=verified).generate(ASK)))
    assert error.code == "models.refused"
    assert not large.asked


def test_without_the_larger_one_the_smaller_may_do_if_that_is_wanted_and_says_so() -> None:
    small, large = model("small", Turn(text="bad")), model("large", fails("models.unavailable"))
    assert virtually(lambda: caught(Cascade(small, large, accept=good).generate(ASK))).code == "models.unavailable"
    reply = virtually(lambda: Cascade(small, large, accept=good, settle=True).generate(ASK))
    assert reply.text == "bad"
    assert reply.degraded is not None
    assert "small was not accepted (it is not good)" in reply.degraded
    assert "no larger model answered (unavailable)" in reply.degraded


def test_a_judge_with_a_fault_lets_nothing_through() -> None:
    def broken(request: ModelRequest, reply: ModelReply) -> str | None:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        virtually(lambda: Cascade(model("small"), model("large"), accept=broken).generate(ASK))


def test_every_stage_is_paid_for_under_its_own_name() -> None:
    both = Cascade(model("local:s", Turn(text="bad", output=3)), model("local:l", Turn(output=7)), accept=good)

    async def work() -> list[tuple[str, int]]:
        with collect_charges() as charges:
            await both.generate(ASK)
        return [(charge.model, charge.tokens) for charge in charges]

    assert virtually(work) == [("local:s", READS + 3), ("local:l", READS + 7)]


def test_the_time_is_that_of_the_whole_judging_included() -> None:
    async def forever(request: ModelRequest, reply: ModelReply) -> str | None:
        await asyncio.sleep(1000)

    async def work() -> float:
        began = now()
        both = Cascade(model("small"), model("large"), accept=forever)
        assert (await caught(both.generate(replace(ASK, timeout=7)))).code == "models.timeout"
        return now() - began

    assert virtually(work) == pytest.approx(7)


def test_what_is_degraded_inside_stays_so() -> None:
    inner = Fallback([model("a", fails("models.auth")), model("b", Turn(text="good"))])
    reply = virtually(lambda: Cascade(inner, model("large"), accept=good).generate(ASK))
    assert reply.degraded is not None
    assert "instead of a" in reply.degraded


@given(st.lists(st.sampled_from(["good", "bad", "down", "refuses"]), min_size=1, max_size=5), st.booleans())
def test_the_first_that_is_accepted_answers_and_none_after_it_is_asked(said: list[str], settle: bool) -> None:
    turn = {"down": fails("models.unavailable"), "refuses": fails("models.refused")}
    models = [model(str(number), turn.get(each, Turn(text=each))) for number, each in enumerate(said)]

    async def work() -> ModelReply | str:
        try:
            return await Cascade(*models, accept=good, settle=settle).generate(ASK)
        except ModelError as error:
            return error.code

    outcome = virtually(work)
    stops = next((at for at, each in enumerate(said) if each in ("good", "refuses")), len(said) - 1)
    assert [len(each.asked) for each in models] == [1] * (stops + 1) + [0] * (len(said) - stops - 1)
    match said[stops]:
        case "good":
            assert isinstance(outcome, ModelReply)
            assert outcome.degraded is None
        case "refuses":
            assert outcome == "models.refused"
        case "bad":
            assert isinstance(outcome, ModelReply)
            assert outcome.degraded is not None
        case _:
            assert isinstance(outcome, ModelReply) == (settle and "bad" in said)
            assert outcome == "models.unavailable" or (isinstance(outcome, ModelReply) and outcome.degraded)


def test_a_stream_comes_when_it_is_accepted_and_not_before() -> None:
    both = Cascade(model("small", Turn(text="bad")), model("large", Turn(text="good one")), accept=good)

    async def work() -> tuple[list[str], ModelReply]:
        texts = [text async for text in both.stream(ASK)]
        end = [chunk async for chunk in both.chunks(ASK)][-1]
        assert isinstance(end, EndChunk)
        return texts, end.reply

    texts, reply = virtually(work)
    assert texts == ["good one"]
    assert reply.route is not None


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ('{"n": 1}', "stop", None),
        ('{"n": "1"}', "stop", "it does not fit the schema"),
        ("{", "stop", "it is no JSON"),
        ('{"n": 1}', "length", "it was cut off"),
    ],
)
def test_what_ended_by_itself_and_fits_its_schema_is_finished(text: str, finish: str, reason: str | None) -> None:
    reply = ModelReply(text, finish=finish)  # pyright: ignore[reportArgumentType]
    assert check_finished(replace(ASK, json_schema=SCHEMA), reply) == reason
    assert check_finished(replace(ASK, json_schema=SCHEMA, prefill=text[:1]), replace(reply, text=text[1:])) == reason
    assert (check_finished(ASK, reply) is None) == (finish == "stop")


def test_a_cascade_of_nothing_is_refused() -> None:
    with pytest.raises(ModelError):
        Cascade(accept=good)

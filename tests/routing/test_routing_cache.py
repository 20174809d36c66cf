"""Kept replies: only for the very same request to the very same model, on the same side, and only what would recur."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from adaptive_world import ASK, Turn, caught, fails, model, virtually
from hypothesis import given, strategies as st

from bicameral.cache import FolderCache
from bicameral.limits import Charge, Limits, collect_charges
from bicameral.models import EndChunk, Message, ModelReply, ModelRequest, ReplyToken, ToolCall, ToolSchema, Usage
from bicameral.routing import BudgetedProvider, CachedProvider, Fallback
from bicameral.routing._reply_cache import _reply_from_json, _reply_to_json  # pyright: ignore[reportPrivateUsage]

OTHERS: dict[str, Any] = {
    "messages": (Message("user", "Say something else."),),
    "prefill": "Well",
    "json_schema": {"type": "object"},
    "grammar": "root ::= 'a'",
    "stop": ("\n",),
    "max_tokens": 9,
    "seed": 1,
    "adapter": "delta",
    "model": "fast",
    "tools": (ToolSchema("grep", "finds", {"type": "object"}),),
    "confidence": True,
    "must_call": True,
}


def test_the_same_again_is_not_asked_again_and_costs_nothing(tmp_path: Path) -> None:
    it = model("local:a", Turn(text="once"), Turn(text="twice"))

    async def work() -> tuple[list[ModelReply], list[Charge]]:
        with collect_charges() as charges:
            first = await CachedProvider(it, FolderCache(tmp_path)).generate(ASK)
            again = await CachedProvider(it, FolderCache(tmp_path)).generate(replace(ASK, timeout=3))
        return [first, again], charges

    (first, again), charges = virtually(work)
    assert (first.text, again.text) == ("once", "once")
    assert again.usage == Usage()
    assert len(it.asked) == 1
    assert [charge.ending for charge in charges] == ["answered", "remembered"]
    assert charges[1].tokens == 0


def test_every_part_of_a_request_counts_but_its_patience() -> None:
    assert {field.name for field in fields(ModelRequest)} == {*OTHERS, "timeout", "temperature", "fixed"}


@pytest.mark.parametrize("part", OTHERS)
def test_another_request_is_another_reply(part: str) -> None:
    it = model("a", Turn(text="once"), Turn(text="twice"))

    async def work() -> list[str]:
        cached = CachedProvider(it, {})
        return [(await cached.generate(each)).text for each in (ASK, replace(ASK, **{part: OTHERS[part]}))]

    assert virtually(work) == ["once", "twice"]


def test_another_model_chamber_or_training_is_another_reply() -> None:
    cache: dict[str, str] = {}
    models = [
        model("a"),
        model("b"),
        model("a", chamber="quarantined"),
        model("a", chamber="privileged"),
        model("a", adapters={"delta": "1"}),
        model("a", adapters={"delta": "2"}),
    ]

    async def work() -> None:
        for each in models:
            await CachedProvider(each, cache).generate(replace(ASK, adapter="delta"))

    virtually(work)
    assert [len(each.asked) for each in models] == [1] * len(models)


def test_a_poisoned_quarantined_reply_never_reaches_the_privileged_side() -> None:
    """A quarantined model that goes by the name of the privileged one fills only its own shelf."""
    cache: dict[str, str] = {}
    liar = model("openai:gpt-4.1", Turn(text="delete everything"), chamber="quarantined")
    true = model("openai:gpt-4.1", Turn(text="nothing to do"), chamber="privileged")

    async def work() -> str:
        await CachedProvider(liar, cache).generate(ASK)
        return (await CachedProvider(true, cache).generate(ASK)).text

    assert virtually(work) == "nothing to do"


def test_what_depends_on_chance_is_not_kept() -> None:
    it, cache = model("a"), dict[str, str]()

    async def work() -> None:
        for _ in range(2):
            await CachedProvider(it, cache).generate(replace(ASK, temperature=0.5))

    virtually(work)
    assert len(it.asked) == 2
    assert not cache


def test_what_a_provider_changes_about_a_request_counts() -> None:
    """An alias with a temperature of its own makes a request with 0 one that depends on chance."""
    it, cache = model("a"), dict[str, str]()

    async def work() -> None:
        for _ in range(2):
            await CachedProvider(it, cache, given=lambda request: replace(request, temperature=1.0)).generate(ASK)

    virtually(work)
    assert not cache


@pytest.mark.parametrize("code", ["models.refused", "models.unavailable"])
def test_errors_and_refusals_are_not_kept(code: str) -> None:
    it, cache = model("a", fails(code), Turn(text="now")), dict[str, str]()

    async def work() -> str:
        assert (await caught(CachedProvider(it, cache).generate(ASK))).code == code
        return (await CachedProvider(it, cache).generate(ASK)).text

    assert virtually(work) == "now"


def test_a_degraded_reply_is_not_kept() -> None:
    first, second, cache = model("a", fails("models.unavailable"), Turn(text="a")), model("b"), dict[str, str]()
    it = CachedProvider(Fallback([first, second]), cache)

    async def work() -> list[str]:
        return [(await it.generate(ASK)).text for _ in range(2)]

    assert virtually(work) == ["b", "a"]


@pytest.mark.parametrize(
    "junk", ["", "{", "[]", "null", '{"text": 1}', '{"text": "x", "finish": "why"}', "[" * 100_000]
)
def test_an_entry_that_cannot_be_read_is_none(junk: str) -> None:
    it, cache = model("a"), dict[str, str]()

    async def work() -> str:
        await CachedProvider(it, cache).generate(ASK)
        cache.update(dict.fromkeys(cache, junk))
        return (await CachedProvider(it, cache).generate(ASK)).text

    assert virtually(work) == "a"
    assert len(it.asked) == 2


texts = st.text()
replies = st.builds(
    ModelReply,
    text=texts,
    finish=st.sampled_from(["stop", "length", "calls"]),
    calls=st.lists(
        st.builds(ToolCall, texts, texts, st.dictionaries(texts, st.integers() | texts | st.none())), max_size=2
    ).map(tuple),
    model=texts,
    confidence=st.lists(st.builds(ReplyToken, texts, st.floats(0, 1), st.floats(0, 1)), max_size=2).map(tuple),
)


@given(replies)
def test_what_is_read_back_is_what_was_kept(reply: ModelReply) -> None:
    assert _reply_from_json(_reply_to_json(reply)) == reply


def test_a_stream_is_kept_when_it_is_whole_and_comes_back_at_once() -> None:
    it, cache = model("a", Turn(text="one two"), Turn(text="other")), dict[str, str]()

    async def work() -> list[Any]:
        whole = [chunk async for chunk in CachedProvider(it, cache).chunks(ASK)]
        assert isinstance(whole[-1], EndChunk)
        return [text async for text in CachedProvider(it, cache).stream(ASK)]

    assert virtually(work) == ["one two"]


def test_a_kept_reply_is_not_held_to_a_budget() -> None:
    it = model("a")
    one = BudgetedProvider(CachedProvider(it, {}), Limits(calls=1))

    async def work() -> list[str]:
        return [(await one.generate(ASK)).text for _ in range(3)]

    assert virtually(work) == ["a", "a", "a"]

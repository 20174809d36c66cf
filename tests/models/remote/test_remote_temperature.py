"""Models that take no temperature: they are asked without one, and the reply says so where one was set."""

from __future__ import annotations

import warnings

import pytest
from remote_world import DONE, USAGE, Loopback, as_json, ask, completion, error, piece, remote, streamed

from bicameral.models import EndChunk, Key, ModelFailure, RemoteProvider

REFUSAL = "Unsupported value: 'temperature' does not support 0.6 with this model. Only the default (1) is supported."
REFUSED = as_json({"error": {"message": REFUSAL, "param": "temperature", "code": "unsupported_value"}}, 400)
STREAM = streamed(piece({"role": "assistant", "content": "Hello."}), piece({}, "stop"), USAGE, DONE)


async def test_a_server_that_takes_no_temperature_is_asked_again_without_and_the_reply_says_so() -> None:
    async with Loopback(REFUSED, completion()) as server:
        model = remote(server)
        reply = await model.generate(ask(temperature=0.6))
        later = await model.generate(ask(temperature=0.6))
        await model.aclose()
    assert reply.text == "Hello."
    assert reply.degraded == f"{model.name} takes no temperature, so it was asked without the 0.6 that is set"
    assert later.degraded == reply.degraded
    # The second request knows it already.
    assert ["temperature" in seen.body for seen in server.seen] == [True, False, False]


async def test_the_same_for_a_stream() -> None:
    async with Loopback(REFUSED, STREAM) as server:
        model = remote(server)
        chunks = [chunk async for chunk in model.chunks(ask(temperature=0.6))]
        await model.aclose()
    end = chunks[-1]
    assert isinstance(end, EndChunk)
    assert end.reply.text == "Hello."
    assert "takes no temperature" in (end.reply.degraded or "")


async def test_at_0_it_is_asked_without_and_nothing_is_noted() -> None:
    async with Loopback(REFUSED, completion()) as server:
        model = remote(server)
        assert (await model.generate(ask())).degraded is None
        await model.aclose()


@pytest.mark.parametrize("wrong", ["temperature must be lower", "no such field: top_z", REFUSAL])
async def test_a_server_that_refuses_anyway_is_told_in_its_words_and_not_asked_for_ever(wrong: str) -> None:
    async with Loopback(error(400, wrong)) as server:
        model = remote(server)
        with pytest.raises(ModelFailure) as raised:
            await model.generate(ask(temperature=0.6))
        await model.aclose()
    assert raised.value.code == "models.bad-request"
    assert wrong[:20] in str(raised.value)
    assert len(server.seen) == (2 if wrong is REFUSAL else 1)
    assert raised.value.__context__ is None, "an error of the client library holds the key"


@pytest.mark.parametrize(("model", "takes"), [("o3", False), ("gpt-5", False), ("gpt-4.1", True), ("m", True)])
async def test_a_model_that_is_known_to_take_none_is_never_asked_with_one(model: str, takes: bool) -> None:
    async with Loopback(completion()) as server:
        provider = RemoteProvider("openai", model, key=Key("sk-test-0123456789abcdefghij"), base_url=server.url)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            reply = await provider.generate(ask(temperature=0.6))
        await provider.aclose()
    assert ("temperature" in server.seen[0].body) is takes
    assert (reply.degraded is None) is takes

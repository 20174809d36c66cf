"""What goes wrong with a server, as the few failures that one can do something about."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from remote_world import (
    DONE,
    USAGE,
    Answer,
    Loopback,
    Said,
    as_json,
    ask,
    completion,
    error,
    piece,
    remote,
    streamed,
)

from benchmarks.faulty import KINDS, Fault, Server, in_order
from bicameral.models import ModelFailure, ModelRequest, RemoteProvider, ScriptedProvider

_LONG = "This model's maximum context length is 8 tokens."


async def failure(*answers: Answer, stream: bool = False, request: ModelRequest | None = None) -> ModelFailure:
    async with Loopback(*answers) as server:
        model = remote(server)
        try:
            with pytest.raises(ModelFailure) as raised:
                await _asked(model, request or ask(timeout=20), stream=stream)
        finally:
            await model.aclose()
        # The client libraries retry by themselves unless they are told not to.
        assert len(server.seen) == 1
    assert raised.value.fix
    return raised.value


async def _asked(model: RemoteProvider, request: ModelRequest, *, stream: bool) -> None:
    if stream:
        async for _ in model.stream(request):
            pass
    else:
        await model.generate(request)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(429), "models.rate-limited"),
        (error(429, code="insufficient_quota"), "models.rate-limited"),
        (error(500), "models.unavailable"),
        (error(502), "models.unavailable"),
        (error(503), "models.unavailable"),
        (error(401), "models.auth"),
        (error(403), "models.auth"),
        (error(404, code="model_not_found"), "models.bad-request"),
        (error(400, "temperature must be lower"), "models.bad-request"),
        (error(422), "models.bad-request"),
        (error(400, code="content_policy_violation"), "models.refused"),
        (error(400, code="content_filter"), "models.refused"),
        (error(400, _LONG, code="context_length_exceeded"), "models.prompt-too-long"),
        (error(408), "models.timeout"),
        (error(409), "models.unavailable"),
        (as_json({}, 302, location="http://127.0.0.1:1/elsewhere"), "models.bad-reply"),
    ],
)
async def test_each_status_is_the_failure_that_one_can_do_something_about(
    answer: Said, code: str, stream: bool
) -> None:
    assert (await failure(answer, stream=stream)).code == code


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry_after": "7"}, 7.0), ({"retry_after_ms": "250"}, 0.25), ({}, None), ({"retry_after": "soon"}, None)],
)
async def test_how_long_to_wait_is_told_where_the_server_says_it(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert (await failure(error(429, **headers))).retry_after == seconds
    assert (await failure(error(503, **headers))).retry_after == seconds


async def test_what_is_wrong_with_a_request_is_told_in_the_servers_words() -> None:
    assert "temperature must be lower" in str(await failure(error(400, "temperature must be lower")))


@pytest.mark.parametrize(
    "answer",
    [
        Said(b'{"id": "c1", "choices": [', headers=(("content-type", "application/json"),)),
        Said(b"<html>busy</html>", headers=(("content-type", "text/html"),)),
        as_json({"id": "c1", "choices": []}),
        as_json({"hello": "world"}),
        as_json([]),
        Said(b""),
    ],
)
async def test_a_body_that_is_no_reply_is_a_bad_reply(answer: Said) -> None:
    assert (await failure(answer)).code == "models.bad-reply"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_told_as_one(stream: bool) -> None:
    whole: list[Answer] = [completion(None, refusal="I will not."), completion("", finish="content_filter")]
    pieces: list[Answer] = [
        streamed(piece({"refusal": "I will not."}), piece({}, "stop"), USAGE, DONE),
        streamed(piece({"content": "a"}), piece({}, "content_filter"), USAGE, DONE),
    ]
    for answer in pieces if stream else whole:
        assert (await failure(answer, stream=stream)).code == "models.refused"


@pytest.mark.parametrize(
    "answer",
    [
        streamed(piece({"content": "a"}), end=False),
        streamed(piece({"content": "a"})),
        streamed(piece({"content": "a"}), DONE),
        streamed(piece({"content": "a"}), b"data: {broken\n\n"),
        streamed(),
    ],
)
async def test_a_stream_that_was_cut_off_is_no_reply(answer: Answer) -> None:
    assert (await failure(answer, stream=True)).code == "models.bad-reply"


async def test_an_error_inside_of_a_stream_is_the_same_failure() -> None:
    broken = b'data: {"error": {"message": "slow down", "code": "rate_limit_exceeded", "type": "e"}}\n\n'
    assert (await failure(streamed(piece({"content": "a"}), broken), stream=True)).code == "models.rate-limited"


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with Loopback(completion()) as server:
        model = remote(server)
    with pytest.raises(ModelFailure) as raised:
        await model.generate(ask(timeout=20))
    assert raised.value.code == "models.unavailable"
    await model.aclose()


async def test_a_connection_that_is_closed_instead_of_an_answer_is_unavailable() -> None:
    async def hang_up(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()
        raise ConnectionError

    assert (await failure(hang_up)).code == "models.unavailable"


_CODES: dict[str, tuple[str, ...]] = {
    "rate-limited": ("models.rate-limited",),
    "error": ("models.unavailable",),
    "unavailable": ("models.unavailable",),
    "unauthorized": ("models.auth",),
    "policy": ("models.refused",),
    "filtered": ("models.refused",),
    "silent": ("models.timeout",),
    "truncated": ("models.bad-reply", "models.unavailable"),
    "unfinished": ("models.bad-reply",),
    "malformed": ("models.bad-reply",),
    "wrong-shape": ("models.bad-reply",),
    "wrong-schema": ("models.bad-reply",),
    "reset": ("models.unavailable", "models.bad-reply"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_fault_of_a_server_is_a_failure_and_the_next_call_is_answered(kind: Any, stream: bool) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    request = ask(timeout=2, json_schema=schema if kind == "wrong-schema" else None)
    answering = ScriptedProvider(lambda _: '{"x": 1}\n')
    async with Server(answering, in_order(Fault(kind, seconds=0.05))) as server:
        model = RemoteProvider("openai", "m", base_url=server.url)
        if kind == "slow" or (kind == "unfinished" and not stream):
            await _asked(model, request, stream=stream)
        else:
            with pytest.raises(ModelFailure) as raised:
                await _asked(model, request, stream=stream)
            assert raised.value.code in _CODES[kind]
        await _asked(model, request, stream=stream)
        await model.aclose()

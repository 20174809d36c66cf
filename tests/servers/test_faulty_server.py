"""The server that fails on purpose: that it speaks the protocol, fails as it was told, and counts right."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from benchmarks.faulty import KINDS, Asked, Fault, Kind, Server, by_model, in_order, seeded, serving
from bicameral.models import Message, ModelReply, ModelRequest, ScriptedProvider, ToolCall, ToolSchema, Usage

BODY: dict[str, Any] = {"model": "main", "messages": [{"role": "user", "content": "Hello"}]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}}}
TEXT = "one line of text\nand another\n"


class Calling(ScriptedProvider):
    """Asks for a tool where it has one."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        reply = await super().generate(request)
        if not request.tools:
            return reply
        call = ToolCall("c1", request.tools[0].name, {"city": "Tromsø"})
        return ModelReply("", "calls", Usage(5, 2, 7), calls=(call,))


@pytest.fixture
def provider() -> Calling:
    return Calling(lambda request: TEXT)


@pytest.fixture
async def server(provider: Calling) -> AsyncGenerator[Server]:
    async with Server(provider) as running:
        yield running


async def post(server: Server, body: dict[str, Any] | bytes = BODY, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(verify=False) as client:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.post(f"{server.url}/chat/completions", content=content, headers=sent)


def events(response: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


async def test_a_whole_answer_has_text_usage_and_the_reason_it_ended(server: Server) -> None:
    said = (await post(server)).json()
    assert said["object"] == "chat.completion"
    assert said["choices"][0]["message"]["content"] == TEXT
    assert said["choices"][0]["finish_reason"] == "stop"
    assert said["usage"]["total_tokens"] == said["usage"]["prompt_tokens"] + said["usage"]["completion_tokens"] > 0


async def test_a_stream_says_the_same_in_pieces_and_then_what_it_cost(server: Server) -> None:
    asked = {**BODY, "stream": True, "stream_options": {"include_usage": True}}
    *pieces, last = events(await post(server, asked))
    assert "".join(each["choices"][0]["delta"].get("content") or "" for each in pieces) == TEXT
    assert pieces[-1]["choices"][0]["finish_reason"] == "stop"
    assert last["choices"] == []
    assert last["usage"] == (await post(server)).json()["usage"]


async def test_tools_and_their_calls_pass_in_both_directions(server: Server, provider: Calling) -> None:
    said = (await post(server, {**BODY, "tools": [TOOL]})).json()["choices"][0]
    assert said["finish_reason"] == "tool_calls"
    assert json.loads(said["message"]["tool_calls"][0]["function"]["arguments"]) == {"city": "Tromsø"}
    assert provider.requests[-1].tools == (ToolSchema("weather", "d", {"type": "object"}),)
    answered = [*BODY["messages"], said["message"], {"role": "tool", "tool_call_id": "c1", "content": "Rain"}]
    await post(server, {**BODY, "messages": answered})
    _, asking, answer = provider.requests[-1].messages
    assert asking.calls == (ToolCall("c1", "weather", {"city": "Tromsø"}),)
    assert answer == Message("tool", "Rain", (), "c1")


async def test_streamed_calls_come_together_again(server: Server) -> None:
    pieces = events(await post(server, {**BODY, "tools": [TOOL], "stream": True}))
    deltas = [call for each in pieces for call in each["choices"][0]["delta"].get("tool_calls", [])]
    assert (deltas[0]["id"], deltas[0]["function"]["name"]) == ("c1", "weather")
    assert json.loads("".join(each["function"]["arguments"] for each in deltas)) == {"city": "Tromsø"}


async def test_everything_that_bounds_a_reply_reaches_the_model(server: Server, provider: Calling) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "title": "T"}}}
    rest = {"stop": ["END"], "max_tokens": 9, "temperature": 0.5, "seed": 3, "response_format": form}
    await post(server, {**BODY, **rest})
    asked = provider.requests[-1]
    assert (asked.stop, asked.max_tokens, asked.temperature, asked.seed) == (("END",), 9, 0.5, 3)
    assert asked.json_schema == {"type": "object", "title": "T"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"[]", None),
        ({"messages": BODY["messages"]}, "model"),
        ({**BODY, "messages": []}, "messages"),
        ({**BODY, "messages": [{"role": "stranger", "content": ""}]}, "messages"),
        ({**BODY, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ({**BODY, "tools": [{"type": "retrieval"}]}, "tools"),
        ({**BODY, "response_format": {"type": "yaml"}}, "response_format"),
        ({**BODY, "max_tokens": "many"}, "max_tokens"),
        ({**BODY, "n": 2}, "n"),
    ],
)
async def test_a_bad_request_is_told_in_the_form_of_the_protocol(
    server: Server, body: dict[str, Any] | bytes, param: str | None
) -> None:
    said = await post(server, body)
    assert said.status_code == 400
    assert said.json()["error"]["type"] == "invalid_request_error"
    assert said.json()["error"]["param"] == param
    assert server.exchanges == []


async def test_models_are_listed_unknown_ones_and_wrong_keys_rejected(provider: Calling) -> None:
    async with Server({"main": provider}, api_key="right") as server, httpx.AsyncClient() as client:
        right = {"Authorization": "Bearer right"}
        listed = (await client.get(f"{server.url}/models", headers=right)).json()
        assert [each["id"] for each in listed["data"]] == ["main"]
        unknown = await client.post(f"{server.url}/chat/completions", json={**BODY, "model": "x"}, headers=right)
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
        wrong = await client.get(f"{server.url}/models")
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "invalid_api_key")


async def test_what_is_not_http_is_answered_and_dropped(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))
    writer.write(b"HELO\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()
    await writer.wait_closed()


STATUS: dict[Kind, int] = {"rate-limited": 429, "error": 500, "unavailable": 503, "unauthorized": 401, "policy": 400}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
async def test_each_fault_happens_on_the_wire_and_is_no_answer(provider: Calling, kind: Kind, stream: bool) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "required": ["a"]}}}
    body = {**BODY, "stream": stream, "response_format": form}
    async with Server(provider, in_order(Fault(kind, 0.01)), hold=0.05) as server:
        try:
            said = await post(server, body)
        except httpx.HTTPError as error:
            broken = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
            assert broken
            assert kind in ("silent", "truncated", "reset")
        else:
            assert said.status_code == STATUS.get(kind, 200)
            if kind == "rate-limited":
                assert (said.headers["Retry-After"], said.headers["retry-after-ms"]) == ("1", "10")
        await server.settled()
        answered = kind == "slow" or (kind == "unfinished" and not stream)
        assert [each.outcome for each in server.exchanges] == ["answered" if answered else "faulted"]
        assert server.unanswered == (0 if answered else 1)
        assert (await post(server, body)).status_code == 200


async def test_an_answer_that_is_given_twice_is_counted(server: Server) -> None:
    for _ in range(3):
        await post(server)
    await post(server, {**BODY, "messages": [{"role": "user", "content": "Something else"}]})
    await server.settled()
    assert (server.duplicated, server.unanswered) == (2, 0)


async def test_with_a_key_of_its_own_a_call_is_asked_of_the_model_once(server: Server, provider: Calling) -> None:
    first, second = [(await post(server, idempotency_key="k")).json() for _ in range(2)]
    assert first["choices"] == second["choices"]
    assert len(provider.requests) == 1
    await server.settled()
    assert [each.outcome for each in server.exchanges] == ["answered", "replayed"]


def test_seeded_faults_depend_on_the_call_and_its_attempt_and_not_on_the_order() -> None:
    faults = [Fault("error"), Fault("reset")]
    keys = [f"call {number}" for number in range(200)]

    def chosen(seed: int, order: list[str]) -> dict[str, Fault | None]:
        choose = seeded(seed, 0.5, faults, most=2)
        return {key: choose(Asked(key, 0, number, "m")) for number, key in enumerate(order)}

    assert chosen(1, keys) == chosen(1, keys[::-1])
    assert chosen(1, keys) != chosen(2, keys)
    assert 60 < sum(1 for fault in chosen(1, keys).values() if fault) < 140
    assert all(seeded(1, 1.0, faults, most=2)(Asked(key, 2, 0, "m")) is None for key in keys)


async def test_a_fault_can_follow_the_model(provider: Calling) -> None:
    async with Server(provider, by_model({"main": Fault("error")})) as server:
        assert [(await post(server, {**BODY, "model": name})).status_code for name in ("main", "spare")] == [500, 200]


def test_it_runs_in_a_thread_for_those_without_an_event_loop(provider: Calling) -> None:
    with serving(Server(provider)) as server:
        assert (
            httpx.post(f"{server.url}/chat/completions", json=BODY).json()["choices"][0]["message"]["content"] == TEXT
        )

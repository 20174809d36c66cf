"""The same claims through LiteLLM, where it is installed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from remote_world import KEY, OTHER_KEY, WEATHER, Loopback, Said, ask, called, completion, error, silent

from benchmarks.faulty import Server
from bicameral.errors import ModelError
from bicameral.models import (
    Client,
    EndChunk,
    Key,
    LiteLLMProvider,
    Message,
    ModelFailure,
    Provider,
    ScriptedProvider,
    ToolCall,
    Usage,
)

pytestmark = [
    pytest.mark.skipif(find_spec("litellm") is None, reason="the extra 'litellm' is not installed"),
    # It is not written for warnings that are errors.
    pytest.mark.filterwarnings("ignore"),
]
SHAPE: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def provider(server: Loopback | Server, **more: Any) -> LiteLLMProvider:
    return LiteLLMProvider("openai/m", key=Key(KEY), base_url=server.url, **more)


async def test_a_request_is_sent_and_its_reply_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OTHER_KEY)
    async with Loopback(completion(None, calls=[called()], finish="tool_calls")) as server:
        model = provider(server)
        assert isinstance(model, Provider)
        reply = await model.generate(ask("Hi.", max_tokens=9, seed=4, tools=(WEATHER,)))
    assert reply.calls == (ToolCall("c-1", "weather", {"city": "Oslo"}),)
    assert reply.usage == Usage(11, 4, 7)
    (seen,) = server.seen
    assert (seen.body["max_tokens"], seen.body["seed"]) == (9, 4)
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert OTHER_KEY.encode() not in seen.raw
    assert KEY not in f"{model!r} {model.name} {vars(model)}"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(429, retry_after="7"), "models.rate-limited"),
        (error(500), "models.unavailable"),
        (error(401, f"bad key {KEY}"), "models.auth"),
        (error(400), "models.bad-request"),
        (error(400, "content_policy_violation", code="content_policy_violation"), "models.refused"),
        (completion("not json"), "models.bad-reply"),
        (completion('{"x": "1"}'), "models.bad-reply"),
    ],
)
async def test_what_goes_wrong_is_the_same_failure(answer: Said, code: str) -> None:
    async with Loopback(answer) as server:
        with pytest.raises(ModelFailure) as raised:
            await provider(server).generate(ask(json_schema=SHAPE, timeout=20))
        assert len(server.seen) == 1
    assert raised.value.code == code
    assert KEY not in f"{raised.value} {raised.value.__cause__} {raised.value.__context__}"


async def test_a_stream_ends_with_the_whole_reply() -> None:
    async with Server(ScriptedProvider(["a\nb"])) as server:
        chunks = [chunk async for chunk in Client(provider(server)).complete_stream([Message("user", "?")])]
    assert isinstance(chunks[-1], EndChunk)
    assert chunks[-1].reply.text == "a\nb"


async def test_a_timeout_closes_the_connection() -> None:
    async with Loopback(silent) as server:
        model = provider(server)
        with pytest.raises(ModelFailure) as raised:
            await model.generate(ask(timeout=1))
        assert raised.value.code == "models.timeout"
        async with asyncio.timeout(5):
            await server.left.wait()


async def test_closing_the_provider_tells_whoever_waits_and_it_may_be_used_again() -> None:
    async with Loopback(silent, completion()) as server:
        model = provider(server)
        asking = asyncio.ensure_future(model.generate(ask(timeout=60)))
        async with asyncio.timeout(60):
            await server.asked.wait()
            await model.aclose()
            with pytest.raises(ModelFailure) as raised:
                await asking
            assert raised.value.code == "models.cancelled"
            assert (await model.generate(ask())).text == "Hello."


def test_its_name_says_all_that_a_reply_depends_on() -> None:
    names = [
        LiteLLMProvider("openai/m").name,
        LiteLLMProvider("openai/m", base_url="http://localhost:8000/v1").name,
        LiteLLMProvider("openai/m", settings={"top_p": 0.1}).name,
        LiteLLMProvider("openai/m", settings={"top_p": 0.9}).name,
    ]
    assert names[:2] == ["litellm:openai/m", "litellm:openai/m@localhost:8000/v1"]
    assert len(set(names)) == 4


async def test_what_it_cannot_be_asked_is_refused_before_it_is_asked() -> None:
    async with Loopback(completion()) as server:
        for request in (ask(grammar='root ::= "x"'), ask(adapter="a")):
            with pytest.raises(ModelFailure) as raised:
                await provider(server).generate(request)
            assert raised.value.code == "models.bad-request"
        assert not server.seen


@pytest.mark.parametrize("model", ["bedrock/x", "vertex_ai/x"])
def test_a_model_whose_credentials_are_ambient_is_refused(model: str) -> None:
    with pytest.raises(ModelError) as raised:
        LiteLLMProvider(model)
    assert raised.value.code == "models.bad-setting"


_DIALS = """
import socket, sys
def refuse(*_, **__): raise SystemExit("it dials out")
socket.getaddrinfo = refuse
from bicameral.models.remote._litellm import _import_litellm
_import_litellm()
print("quiet")
"""


def test_importing_it_dials_nowhere() -> None:
    done = subprocess.run([sys.executable, "-c", _DIALS], capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.strip() == "quiet", done.stderr[-2000:]

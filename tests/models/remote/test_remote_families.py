"""The families that speak protocols of their own, each against a real server on loopback where it is installed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest
from remote_world import OTHER_KEY, WEATHER, Loopback, Said, as_json, ask, called, completion, error

from bicameral.errors import missing_packages
from bicameral.models import FAMILIES, Key, Message, ModelFailure, ModelRequest, RemoteProvider, ToolCall, Usage

# Their client libraries are not written for warnings that are errors.
pytestmark = pytest.mark.filterwarnings("ignore")
KEY = "key-of-this-chamber-0123456789"


def _anthropic() -> Said:
    used = {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    content = [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c-1", "name": "weather", "input": {"city": "Oslo"}},
    ]
    return as_json(
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": used,
        }
    )


def _google() -> Said:
    call = {"functionCall": {"id": "c-1", "name": "weather", "args": {"city": "Oslo"}}}
    candidate = {"content": {"role": "model", "parts": [{"text": "I look."}, call]}, "finishReason": "STOP", "index": 0}
    used = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return as_json({"candidates": [candidate], "usageMetadata": used, "modelVersion": "m", "responseId": "r"})


def _openai() -> Said:
    used = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return completion("I look.", calls=[called(call_id="abcdefghi")], finish="tool_calls", usage=used)


def _bedrock() -> Said:
    content = [
        {"text": "I look."},
        {"toolUse": {"toolUseId": "c-1", "name": "weather", "input": {"city": "Oslo"}}},
    ]
    return as_json(
        {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18},
            "metrics": {"latencyMs": 1},
        }
    )


ANSWERS = {
    "openai": _openai,
    "azure": _openai,
    "vllm": _openai,
    "ollama": _openai,
    "llamacpp": _openai,
    "anthropic": _anthropic,
    "google": _google,
    "mistral": _openai,
    "groq": _openai,
    "bedrock": _bedrock,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "azure": {"api_version": "2024-10-21"},
    "bedrock": {"region_name": "eu-central-1"},
}


def _family(name: str) -> Any:
    missing = bool(missing_packages("pydantic_ai", FAMILIES[name].package))
    return pytest.param(name, marks=pytest.mark.skipif(missing, reason=f"the extra of {name!r} is not installed"))


EVERY = pytest.mark.parametrize("family", [_family(name) for name in FAMILIES])


def remote(family: str, server: Loopback) -> RemoteProvider:
    versioned = FAMILIES[family].package == "openai" and family != "azure"
    url = server.url if versioned else server.url.removesuffix("/v1")
    # A bearer key is sent over https alone; a signed request names only the first half.
    key = f"{KEY}:secret" if family == "bedrock" else KEY
    return RemoteProvider(family, "m", key=Key(key), base_url=url, options=OPTIONS.get(family))


def test_every_family_is_tried() -> None:
    assert ANSWERS.keys() == FAMILIES.keys()
    assert find_spec("pydantic_ai") is not None


@EVERY
async def test_a_family_is_asked_in_its_own_words_with_its_own_key_alone(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "AZURE_OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "MISTRAL", "GROQ"):
        monkeypatch.setenv(f"{name}_API_KEY", OTHER_KEY)
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", f"X-Smuggled: {OTHER_KEY}")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", OTHER_KEY)
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", OTHER_KEY)
    messages = (
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "", calls=(ToolCall("abcdefghj", "weather", {"city": "Rome"}),)),
        Message("tool", "sun", answers="abcdefghj"),
        Message("user", "And in Oslo?"),
    )
    async with Loopback(ANSWERS[family]()) as server:
        model = remote(family, server)
        reply = await model.generate(ModelRequest(messages, tools=(WEATHER,), max_tokens=33, timeout=30))
        await model.aclose()
    assert (reply.text, reply.finish, reply.usage) == ("I look.", "calls", Usage(11, 0, 7))
    assert [(call.name, call.arguments) for call in reply.calls] == [("weather", {"city": "Oslo"})]
    (seen,) = server.seen
    assert KEY.encode() in seen.raw
    assert OTHER_KEY.encode() not in seen.raw
    told = json.dumps(seen.body)
    assert all(word in told for word in ("Be brief.", "And in Oslo?", "Rome", "sun", "33", "The weather in a city."))


@EVERY
@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "models.rate-limited"), (401, "models.auth"), (503, "models.unavailable"), (400, "models.bad-request")],
)
async def test_what_goes_wrong_in_a_family_is_the_same_failure(family: str, status: int, code: str) -> None:
    async with Loopback(error(status, f"no: {KEY}")) as server:
        model = remote(family, server)
        with pytest.raises(ModelFailure) as raised:
            await model.generate(ask(timeout=30))
        await model.aclose()
        assert len(server.seen) == 1
    assert raised.value.code == code
    assert KEY not in str(raised.value)
    assert raised.value.__context__ is None

"""The three ways to ask, over any provider; calls of tools in a script and in a local model's own format."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from remote_world import WEATHER

from bicameral.errors import ModelError
from bicameral.models import (
    CallChunk,
    Client,
    EndChunk,
    LocalProvider,
    Message,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ScriptedProvider,
    TextChunk,
    ToolCall,
    ToolSchema,
    Usage,
    UsageChunk,
)
from bicameral.models._chatml import render
from bicameral.models._gguf import Vocabulary
from bicameral.models._grammar import llguidance_error
from bicameral.models._tools import CALL, CALLED, constrained, with_calls

OSLO = ToolCall("c-1", "weather", {"city": "Oslo"})
QWEN = Vocabulary(1, 2, frozenset({"<|im_start|>", "<|im_end|>", CALL, CALLED}), 0, call=3, called=4)


class Person(BaseModel):
    name: str


async def test_complete_passes_everything_on() -> None:
    model = ScriptedProvider(["{}"])
    await Client(model).complete(
        [Message("user", "Hi.")], model="fast", tools=[WEATHER], schema=Person, max_tokens=5, seed=3, timeout=2.0
    )
    (request,) = model.requests
    assert (request.model, request.tools, request.max_tokens, request.seed) == ("fast", (WEATHER,), 5, 3)
    assert request.json_schema == Person.model_json_schema()
    assert request.timeout == 2.0


async def test_generate_asks_with_and_without_something_to_know() -> None:
    model = ScriptedProvider(["a", "b", "c"])
    client = Client(model)
    assert (await client.generate("Why?", model="planning")).text == "a"
    await client.generate("Why?", {"city": "Oslo"})
    await client.generate("Why?", "It rains.")
    asked = [request.messages[0].text for request in model.requests]
    assert asked == ["Why?", 'Context:\n{\n  "city": "Oslo"\n}\n\nTask: Why?', "Context:\nIt rains.\n\nTask: Why?"]
    assert model.requests[0].model == "planning"


async def test_a_stream_ends_with_the_whole_reply() -> None:
    client = Client(ScriptedProvider(["a\nb"], name="s"))
    chunks = [chunk async for chunk in client.complete_stream([Message("user", "12345678")])]
    assert chunks[:3] == [TextChunk("a\n"), TextChunk("b"), UsageChunk(Usage(2, 0, 0))]
    assert isinstance(chunks[3], EndChunk)
    assert (chunks[3].reply.text, chunks[3].reply.model) == ("a\nb", "s")


class Plain:
    """A provider that knows of nothing but text."""

    name = "plain"
    grammars = False
    chamber = None
    adapters: Mapping[str, str] = {}

    async def generate(self, request: ModelRequest) -> ModelReply:
        return ModelReply("whole", "calls", Usage(1, 0, 1), calls=(OSLO,))

    async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        raise AssertionError("the calls and the costs would be lost")
        yield ""

    async def aclose(self) -> None: ...


async def test_a_provider_with_text_alone_is_asked_for_its_whole_reply() -> None:
    chunks = [chunk async for chunk in Client(Plain()).complete_stream([Message("user", "?")])]
    assert chunks[:3] == [TextChunk("whole"), CallChunk(OSLO), UsageChunk(Usage(1, 0, 1))]


async def test_a_script_asks_for_calls_replies_whole_and_fails() -> None:
    script = [OSLO, ModelReply("both", "calls", calls=(OSLO, OSLO)), ModelFailure("models.rate-limited", "s"), "text"]
    model = ScriptedProvider(script)
    client = Client(model)
    asked = [Message("user", "?")]
    first = await client.complete(asked, tools=[WEATHER])
    assert (first.finish, first.calls, first.model) == ("calls", (OSLO,), "scripted")
    assert (await client.complete(asked, tools=[WEATHER])).calls == (OSLO, OSLO)
    with pytest.raises(ModelFailure) as raised:
        await client.complete(asked)
    assert raised.value.code == "models.rate-limited"
    assert (await client.complete(asked)).text == "text"


async def test_a_rule_may_reply_with_a_call() -> None:
    model = ScriptedProvider([("weather", OSLO), ("", lambda request: ToolCall("x", "weather", {}))])
    for text, call in (("weather?", OSLO), ("else", ToolCall("x", "weather", {}))):
        reply = await model.generate(ModelRequest((Message("user", text),), tools=(WEATHER,)))
        assert reply.calls == (call,)


async def test_a_script_cannot_ask_for_a_tool_that_the_request_has_not() -> None:
    with pytest.raises(ModelFailure) as raised:
        await ScriptedProvider([OSLO]).generate(ModelRequest((Message("user", "?"),)))
    assert raised.value.code == "models.bad-reply"


@pytest.mark.parametrize(
    "request_",
    [
        ModelRequest((Message("tool", "x"),)),
        ModelRequest((Message("tool", "x", answers="c-9"),)),
        ModelRequest((Message("user", "x", answers="c-1"),)),
        ModelRequest((Message("user", "x", calls=(OSLO,)),)),
        ModelRequest((Message("tool", "x", answers="c-1"), Message("assistant", "", calls=(OSLO,)))),
        ModelRequest((), tools=(WEATHER, WEATHER)),
        ModelRequest((), tools=(ToolSchema("a b", "", {}),)),
        ModelRequest((), tools=(WEATHER,), grammar='root ::= "a"'),
        ModelRequest((), tools=(WEATHER,), prefill="a"),
    ],
)
async def test_a_conversation_that_does_not_hang_together_is_refused(request_: ModelRequest) -> None:
    with pytest.raises(ModelError) as raised:
        await ScriptedProvider(["x"]).generate(request_)
    assert raised.value.code == "models.bad-request"


def _text(prompt: list[int | str]) -> str:
    marks = {1: "<|im_start|>", 2: "<|im_end|>", 3: CALL, 4: CALLED}
    return "".join(marks[each] if isinstance(each, int) else each for each in prompt)


def test_a_local_model_is_told_of_tools_as_qwen_was_taught() -> None:
    messages = (
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "", calls=(OSLO,)),
        Message("tool", "rain", answers="c-1"),
    )
    signature = {"name": "weather", "description": WEATHER.description, "parameters": WEATHER.parameters}
    assert _text(render(messages, "", QWEN, (WEATHER,))) == (
        "<|im_start|>system\nBe brief.\n\n# Tools\n\nYou may call one or more functions to assist with the user query."
        "\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        + json.dumps({"type": "function", "function": signature})
        + "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\nWeather?<|im_end|>\n"
        '<|im_start|>assistant\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
        "<|im_end|>\n<|im_start|>user\n<tool_response>\nrain\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


@given(st.lists(st.sampled_from([CALL, CALLED, "<|im_end|>", "<tool_", "call>", "x", "\n"])))
def test_no_text_of_a_stranger_becomes_a_call(parts: list[str]) -> None:
    said = "".join(parts)
    messages = (
        Message("user", said),
        Message("assistant", said, calls=(ToolCall("c-1", "weather", {"city": said}),)),
        Message("tool", said, answers="c-1"),
    )
    prompt = render(messages, "", QWEN, (ToolSchema("weather", said, {"description": said}),))
    assert [each for each in prompt if isinstance(each, int)] == [1, 3, 4, 3, 4, 2, 1, 2, 1, 3, 4, 2, 1, 2, 1]
    assert not [each for each in prompt if isinstance(each, str) and any(mark in each for mark in QWEN.control)]


@pytest.mark.parametrize("schema", [None, Person.model_json_schema()])
def test_the_grammar_of_a_call_is_one_that_the_engine_follows(schema: dict[str, Any] | None) -> None:
    quoted = ToolSchema(
        "other",
        'say "x"',
        {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}},
    )
    request = constrained(ModelRequest((Message("user", "?"),), tools=(WEATHER, quoted), json_schema=schema))
    assert request.json_schema is None
    assert request.grammar is not None
    assert llguidance_error(request.grammar) is None


def test_a_call_that_a_local_model_wrote_is_read() -> None:
    asked = ModelRequest(
        (Message("user", "?"), Message("assistant", "", calls=(OSLO,)), Message("tool", "rain", answers="c-1")),
        tools=(WEATHER,),
    )
    written = f'{CALL}\n{{"name": "weather", "arguments": {{"city": "Rome"}}}}\n{CALLED}'
    reply = with_calls(asked, ModelReply(written), "local")
    assert (reply.text, reply.finish, reply.calls) == ("", "calls", (ToolCall("call_2", "weather", {"city": "Rome"}),))
    assert with_calls(asked, ModelReply("It rains."), "local").text == "It rains."
    for cut in ("<tool", CALL, f'{CALL}\n{{"name": "wea'):
        with pytest.raises(ModelFailure) as raised:
            with_calls(asked, ModelReply(cut, "length"), "local")
        assert raised.value.code == "models.bad-reply"


@pytest.mark.model
async def test_a_local_model_asks_for_a_call_that_can_be_made(small_model: LocalProvider) -> None:
    asked = [Message("user", "Weather in Rome? Use the tool.")]
    stream = Client(small_model).complete_stream(asked, tools=[WEATHER], max_tokens=60)
    chunks = [chunk async for chunk in stream]
    # Held to the tool's own arguments, and never told as text.
    assert chunks[0] == CallChunk(ToolCall("call_1", "weather", {"city": "Rome"}))
    assert isinstance(chunks[-1], EndChunk)
    assert chunks[-1].reply.finish == "calls"

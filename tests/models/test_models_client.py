"""The three ways to ask, over any provider; calls of tools in a script and in a local model's own format."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
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
from bicameral.models._completion import llguidance_error
from bicameral.models._prompts import Vocabulary, render_prefix, render_prompt
from bicameral.models._tool_calls import answer_filter, constrain_to_step, parse_step

OSLO = ToolCall("c-1", "weather", {"city": "Oslo"})
QWEN = Vocabulary(1, 2, frozenset({"<|im_start|>", "<|im_end|>"}), 0)


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


def _text(prompt: Sequence[object]) -> str:
    marks = {1: "<|im_start|>", 2: "<|im_end|>"}
    return "".join(marks[each] if isinstance(each, int) else str(each) for each in prompt)


def test_a_local_model_is_told_of_tools_by_steps() -> None:
    messages = (
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "I look.", calls=(OSLO,)),
        Message("tool", "rain", answers="c-1"),
        Message("assistant", "It rains."),
        Message("user", "And now?"),
    )
    told = _text(render_prompt(messages, "", QWEN, (WEATHER,)))
    assert told.startswith("<|im_start|>system\nBe brief.\n\nYou work in steps. ")
    assert told.endswith(
        "\n- weather(city: string): The weather in a city.<|im_end|>\n<|im_start|>user\nWeather?<|im_end|>\n"
        '<|im_start|>assistant\n{"thought": "I look.", "tool": "weather", "arguments": {"city": "Oslo"}}<|im_end|>\n'
        "<|im_start|>user\nResult: rain<|im_end|>\n"
        '<|im_start|>assistant\n{"thought": "Nothing is missing.", "answer": "It rains."}<|im_end|>\n'
        "<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n"
    )
    # Without tools it sees no step that it could write once more: what was called stands with what came of it.
    plain = _text(render_prompt(messages, "", QWEN))
    assert plain == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        '<|im_start|>user\nWeather?\n\nResult of weather({"city": "Oslo"}): rain<|im_end|>\n'
        "<|im_start|>assistant\nIt rains.<|im_end|>\n"
        "<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert _text(render_prompt(messages[:4], "", QWEN)).endswith("rain<|im_end|>\n<|im_start|>assistant\n")


def test_messages_that_are_told_as_one_turn_are_not_taken_for_fixed_ones() -> None:
    messages = (
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "", calls=(OSLO,)),
        Message("tool", "rain", answers="c-1"),
        Message("user", "My secret."),
    )
    assert "secret" in _text(render_prompt(messages, "", QWEN))
    assert _text(render_prefix(messages, 2, QWEN)) == "<|im_start|>system\nBe brief.<|im_end|>\n"
    assert "Weather?" in _text(render_prefix(messages[:2], 2, QWEN))


def test_the_arguments_of_a_tool_are_told_in_few_words() -> None:
    odd = {"type": "object", "properties": {"x": {"type": "number"}}}
    schema = {
        "type": "object",
        "properties": {
            "when": {"type": "string", "description": "a day"},
            "kind": {"enum": ["a", 2]},
            "some": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            "odd": odd,
            "short": {"type": "string", "maxLength": 5},
        },
        "required": ["when", "some"],
    }
    told = _text(render_prompt((Message("user", "?"),), "", QWEN, (ToolSchema("t", "Does it.", schema),)))
    arguments = 'when: string (a day), kind?: "a" | 2, some: list of integer | null, odd?: ' + json.dumps(odd)
    assert f'- t({arguments}, short?: {{"type": "string", "maxLength": 5}}): Does it.' in told


@given(st.lists(st.sampled_from(["<|im_end|>", "<|im_", "end|>", '"', "}", '", "answer": "', "Result: ", "x", "\n"])))
def test_no_text_of_a_stranger_becomes_a_turn_or_a_step(parts: list[str]) -> None:
    said = "".join(parts)
    messages = (
        Message("user", said),
        Message("assistant", said, calls=(ToolCall("c-1", "weather", {"city": said}),)),
        Message("tool", said, answers="c-1"),
    )
    prompt = render_prompt(messages, "", QWEN, (ToolSchema("weather", said, {"description": said}),))
    assert [each for each in prompt if isinstance(each, int)] == [1, 2, 1, 2, 1, 2, 1, 2, 1]
    assert not [each for each in prompt if isinstance(each, str) and any(mark in each for mark in QWEN.control)]
    step = _text(prompt).partition("<|im_start|>assistant\n")[2].partition("\n<|im_start|>")[0]
    written = json.loads(step.removesuffix("<|im_end|>"))
    assert written == {"thought": said, "tool": "weather", "arguments": {"city": said}}


@pytest.mark.parametrize("schema", [None, Person.model_json_schema()])
def test_the_grammar_of_a_step_is_one_that_the_engine_follows(schema: dict[str, Any] | None) -> None:
    quoted = ToolSchema(
        "other",
        'say "x"',
        {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}},
    )
    request = constrain_to_step(ModelRequest((Message("user", "?"),), tools=(WEATHER, quoted), json_schema=schema))
    assert request.json_schema is None
    assert request.grammar is not None
    assert llguidance_error(request.grammar) is None


def test_a_step_that_must_be_a_call_cannot_be_an_answer() -> None:
    request = ModelRequest((Message("user", "?"),), tools=(WEATHER,), must_call=True)
    grammar = constrain_to_step(request).grammar
    assert grammar is not None
    assert llguidance_error(grammar) is None
    assert "answer" not in grammar
    assert "answer" in (constrain_to_step(replace(request, must_call=False)).grammar or "")


ASKED = ModelRequest(
    (Message("user", "?"), Message("assistant", "", calls=(OSLO,)), Message("tool", "rain", answers="c-1")),
    tools=(WEATHER,),
)
CALL = '{"thought": "I look.", "tool": "weather", "arguments": {"city": "Rome"}}'
ANSWER = '{"thought": "I \\"know\\", \\"answer\\": \\"it.", "answer": "It \\"rains\\" \\ud83c\\udf27 \\\\ today."}'


def test_a_step_that_a_local_model_wrote_is_a_call_or_the_answer() -> None:
    reply = parse_step(ASKED, ModelReply(CALL), "local")
    called = (ToolCall("call_2", "weather", {"city": "Rome"}),)
    assert (reply.text, reply.finish, reply.calls) == ("I look.", "calls", called)
    reply = parse_step(ASKED, ModelReply(ANSWER), "local")
    assert (reply.text, reply.finish, reply.calls) == ('It "rains" \U0001f327 \\ today.', "stop", ())
    shaped = replace(ASKED, json_schema=Person.model_json_schema())
    reply = parse_step(shaped, ModelReply('{"thought": "x", "answer": {"name": "Ada"}}'), "local")
    assert json.loads(reply.text) == {"name": "Ada"}
    assert parse_step(replace(ASKED, tools=()), ModelReply(CALL), "local").text == CALL


@pytest.mark.parametrize("length", range(len(CALL)))
def test_half_a_call_is_no_reply(length: int) -> None:
    with pytest.raises(ModelFailure) as raised:
        parse_step(ASKED, ModelReply(CALL[:length], "length"), "local")
    assert raised.value.code == "models.bad-reply"


def test_half_an_answer_is_what_there_is_of_it() -> None:
    reply = parse_step(ASKED, ModelReply(ANSWER[:-8], "length"), "local")
    assert (reply.text, reply.finish) == ('It "rains" \U0001f327 \\ ', "length")


@given(st.text(), st.text(), st.data())
def test_an_answer_is_told_while_it_is_written_and_nothing_else(thought: str, answer: str, data: st.DataObject) -> None:
    ascii_only = data.draw(st.booleans())
    step = json.dumps({"thought": thought, "answer": answer}, ensure_ascii=ascii_only)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(step)), max_size=20)))
    more = answer_filter(ASKED)
    told = [more(step[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(step)], strict=True)]
    assert "".join(told) == answer
    call = json.dumps({"thought": thought, "tool": "weather", "arguments": {"answer": answer}})
    more = answer_filter(ASKED)
    assert not [text for each in call if (text := more(each))]


@pytest.mark.model
async def test_a_local_model_asks_for_a_call_that_can_be_made(small_model: LocalProvider) -> None:
    asked = [Message("user", "Weather in Rome? Use the tool.")]
    stream = Client(small_model).complete_stream(asked, tools=[WEATHER], max_tokens=80)
    thought, call, *_, end = [chunk async for chunk in stream]
    # Held to the tool's own arguments, and never told as text.
    assert isinstance(thought, TextChunk)
    assert call == CallChunk(ToolCall("call_1", "weather", {"city": "Rome"}))
    assert isinstance(end, EndChunk)
    assert (end.reply.finish, end.reply.text) == ("calls", thought.text)

"""Tool calls of a local model: each reply is one step, a thought and then a call or the answer, enforced by a grammar.

Without a constraint a small model describes a call instead of making it, and one that must always call something does
not stop. With an example it can write a thought and then choose between a call and the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from bicameral.models._protocol import Message, ModelFailure, ModelReply, ModelRequest, ToolCall, ToolSchema

_MAX_THOUGHT = 160
_SYSTEM = "You are a helpful assistant."
_STEPS = """\
You work in steps. Each step is JSON: a thought, and then either a tool with its arguments or the answer. For example:
How old is the owner of the shop 'Rosa'?
{"thought": "I need the owner of Rosa.", "tool": "shop", "arguments": {"name": "Rosa"}}
Result: {"owner": "Li Wen"}
{"thought": "The owner is Li Wen. I need the age.", "tool": "person", "arguments": {"name": "Li Wen"}}
Result: {"age": 44}
{"thought": "The age is 44. Nothing is missing.", "answer": "The owner of Rosa, Li Wen, is 44 years old."}

The tools that you have:
"""
_FINAL_THOUGHT = "Nothing is missing."


def constrain_to_step(request: ModelRequest) -> ModelRequest:
    """The request with a grammar that allows exactly one step; unchanged if it has no tools."""
    if not request.tools:
        return request
    grammar = _step_grammar(request.tools, request.json_schema, must_call=request.must_call)
    return replace(request, grammar=grammar, json_schema=None)


def _step_grammar(tools: tuple[ToolSchema, ...], schema: dict[str, Any] | None, *, must_call: bool) -> str:
    from bicameral.models._completion import LLGUIDANCE  # imports ctypes, which only the engine needs

    ends = [*([] if must_call else ["answer"]), *(f"call_{number}" for number in range(len(tools)))]
    lines = [
        f"{LLGUIDANCE} {{}}",
        f'start: "{{\\"thought\\": " thought ", " ({" | ".join(ends)}) "}}"',
        f"thought: {_json_rule({'type': 'string', 'minLength': 1, 'maxLength': _MAX_THOUGHT})}",
    ]
    if not must_call:
        lines.append(f'answer: "\\"answer\\": " {_json_rule(schema or {"type": "string"})}')
    for number, tool in enumerate(tools):
        beginning = json.dumps(f'"tool": {json.dumps(tool.name)}, "arguments": ')
        lines.append(f"call_{number}: {beginning} {_json_rule(tool.parameters)}")
    return "\n".join(lines) + "\n"


def _json_rule(schema: dict[str, Any]) -> str:
    return f"%json {json.dumps(compact_schema(schema))}"


def compact_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without optional white space, which a small model may write until its tokens are used up."""
    return schema | {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}


def render_turns(messages: tuple[Message, ...], tools: tuple[ToolSchema, ...]) -> Iterator[tuple[str, str]]:
    """Each turn as the model reads it: its speaker and its text."""
    if tools:
        return _step_turns(messages, tools)
    if any(message.calls for message in messages):
        return _prose_turns(messages)
    return ((message.speaker, message.text) for message in messages)


def _step_turns(messages: tuple[Message, ...], tools: tuple[ToolSchema, ...]) -> Iterator[tuple[str, str]]:
    if not messages or messages[0].speaker != "system":
        yield "system", _system_with_tools(_SYSTEM, tools)
    for number, message in enumerate(messages):
        match message.speaker:
            case "tool":
                yield "user", f"Result: {message.text}"
            case "system" if number == 0:
                yield "system", _system_with_tools(message.text, tools)
            case "assistant" if message.calls:
                calls = ({"tool": call.name, "arguments": call.arguments} for call in message.calls)
                yield "assistant", "\n".join(_to_json_text({"thought": message.text} | call) for call in calls)
            case "assistant":
                yield "assistant", _to_json_text({"thought": _FINAL_THOUGHT, "answer": message.text})
            case _:
                yield message.speaker, message.text


def _prose_turns(messages: tuple[Message, ...]) -> Iterator[tuple[str, str]]:
    """The turns for a model that has no tools any more: its calls are told with their results, as one text.

    A small model that sees its own calls as steps writes another one, and that would be its answer.
    """
    named = {call.id: f" of {call.name}({_to_json_text(call.arguments)})" for each in messages for call in each.calls}
    told: list[str] = []
    for message in messages:
        match message.speaker:
            case "assistant" if message.calls:
                continue
            case "tool":
                told.append(f"Result{named.get(message.answers or '', '')}: {message.text}")
            case "user":
                told.append(message.text)
            case _:
                if told:
                    yield "user", "\n\n".join(told)
                    told.clear()
                yield message.speaker, message.text
    if told:
        yield "user", "\n\n".join(told)


def _system_with_tools(system: str, tools: Iterable[ToolSchema]) -> str:
    listed = "\n".join(
        f"- {tool.name}({', '.join(_describe_arguments(tool.parameters))}): {tool.description}" for tool in tools
    )
    return f"{system}\n\n{_STEPS}{listed}"


def _describe_arguments(parameters: dict[str, Any]) -> Iterator[str]:
    required: list[str] = parameters.get("required", [])
    for name, schema in cast("dict[str, dict[str, Any]]", parameters.get("properties", {})).items():
        description = f" ({schema['description']})" if schema.get("description") else ""
        yield f"{name}{'' if name in required else '?'}: {_describe_type(schema)}{description}"


def _describe_type(schema: dict[str, Any]) -> str:
    """A type in a few words, or its JSON Schema where there are none."""
    match schema:
        case {"enum": [*values]}:
            return " | ".join(_to_json_text(value) for value in values)
        case {"anyOf": [*kinds]}:
            return " | ".join(_describe_type(kind) for kind in kinds)
        case {"type": "array", "items": {**items}}:
            return f"list of {_describe_type(cast('dict[str, Any]', items))}"
        case {"type": str(kind)} if not schema.keys() - {"type", "description", "default", "title"}:
            return kind
        case _:
            return _to_json_text({name: value for name, value in schema.items() if name != "description"})


def _to_json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def parse_step(request: ModelRequest, reply: ModelReply, name: str) -> ModelReply:
    """The reply in a step that a model wrote: a call with the thought as its text, or the answer."""
    if not request.tools:
        return reply
    try:
        step: dict[str, Any] = json.loads(reply.text)
    except ValueError:
        # The grammar allows only steps, so a stop string or `max_tokens` cut this one.
        if request.json_schema is None and (answer := AnswerStream().feed(reply.text)):
            return replace(reply, text=answer)
        raise ModelFailure("models.bad-reply", name, "a step was cut off before its end", usage=reply.usage) from None
    if "tool" in step:
        number = 1 + sum(len(message.calls) for message in request.messages)
        call = ToolCall(f"call_{number}", step["tool"], step["arguments"])
        return replace(reply, text=step["thought"], finish="calls", calls=(call,))
    return replace(reply, text=step["answer"] if request.json_schema is None else _to_json_text(step["answer"]))


_ANSWER_START = re.compile(r'\{"thought": "(?:[^"\\]|\\.)*+", "answer": "')
_COMPLETE_CHARACTERS = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_HALF_SURROGATE_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


def answer_filter(request: ModelRequest) -> Callable[[str], str]:
    """A function that returns the text of the answer in each piece; an answer with a schema is not streamed."""
    if not request.tools:
        return lambda piece: piece
    return AnswerStream().feed if request.json_schema is None else lambda piece: ""


class AnswerStream:
    """Extracts the text of an answer while its step is still being written."""

    def __init__(self) -> None:
        self._unread = ""
        self._begun = self._ended = False

    def feed(self, piece: str) -> str:
        """The part of the answer that this piece completes."""
        self._unread += piece
        if not self._begun:
            start = _ANSWER_START.match(self._unread)
            if not start:
                return ""
            self._begun, self._unread = True, self._unread[start.end() :]
        if self._ended:
            return ""
        known = cast("re.Match[str]", _COMPLETE_CHARACTERS.match(self._unread))[0]
        rest = self._unread[len(known) :]
        # Half of an escaped surrogate pair would be decoded to a lone surrogate; it waits for the other half.
        if half := _HALF_SURROGATE_PAIR.search(known):
            known, rest = known[: half.start()], known[half.start() :] + rest
        self._ended, self._unread = rest.startswith('"'), rest
        return json.loads(f'"{known}"', strict=False)

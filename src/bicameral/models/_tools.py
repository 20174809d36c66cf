"""Tools for a model in this process: every reply is a step, a thought and then a call or the answer, held by a grammar.

A small model that may write what it likes tells of a call instead of making it, and one that must call something does
not know when to stop. A thought first and then the choice of a key is what it can do, once it has seen how.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from bicameral.models._failures import ModelFailure
from bicameral.models._protocol import Message, ModelReply, ModelRequest, ToolCall, ToolSchema

_LONGEST_THOUGHT = 160
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
_DONE = "Nothing is missing."


def constrained(request: ModelRequest) -> ModelRequest:
    """The same request as a grammar: one step. As it is where there are no tools."""
    if not request.tools:
        return request
    return replace(request, grammar=_grammar(request.tools, request.json_schema), json_schema=None)


def _grammar(tools: tuple[ToolSchema, ...], schema: dict[str, Any] | None) -> str:
    from bicameral.models._grammar import LLGUIDANCE  # it brings ctypes, which the engine alone needs

    calls = "".join(f" | call_{number}" for number in range(len(tools)))
    lines = [
        f"{LLGUIDANCE} {{}}",
        f'start: "{{\\"thought\\": " thought ", " (answer{calls}) "}}"',
        f"thought: {_json({'type': 'string', 'minLength': 1, 'maxLength': _LONGEST_THOUGHT})}",
        f'answer: "\\"answer\\": " {_json(schema or {"type": "string"})}',
    ]
    for number, tool in enumerate(tools):
        begun = json.dumps(f'"tool": {json.dumps(tool.name)}, "arguments": ')
        lines.append(f"call_{number}: {begun} {_json(tool.parameters)}")
    return "\n".join(lines) + "\n"


def _json(schema: dict[str, Any]) -> str:
    return f"%json {json.dumps(on_one_line(schema))}"


def on_one_line(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without white space, which a small model that is at a loss writes until its tokens are spent."""
    return schema | {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}


# What the model reads -----------------------------------------------------------------------------------------------


def told(messages: tuple[Message, ...], tools: tuple[ToolSchema, ...]) -> Iterator[tuple[str, str]]:
    """Each turn as its speaker and its text."""
    if tools and (not messages or messages[0].speaker != "system"):
        yield "system", _with_tools(_SYSTEM, tools)
    for number, message in enumerate(messages):
        match message.speaker:
            case "tool":
                yield "user", f"Result: {message.text}"
            case "system" if tools and number == 0:
                yield "system", _with_tools(message.text, tools)
            case "assistant" if message.calls:
                yield "assistant", "\n".join(_called(message))
            case "assistant" if tools:
                yield "assistant", _written({"thought": _DONE, "answer": message.text})
            case _:
                yield message.speaker, message.text


def _with_tools(system: str, tools: Iterable[ToolSchema]) -> str:
    listed = "\n".join(f"- {tool.name}({', '.join(_arguments(tool.parameters))}): {tool.description}" for tool in tools)
    return f"{system}\n\n{_STEPS}{listed}"


def _arguments(parameters: dict[str, Any]) -> Iterator[str]:
    required: list[str] = parameters.get("required", [])
    for name, schema in cast("dict[str, dict[str, Any]]", parameters.get("properties", {})).items():
        said = f" ({schema['description']})" if schema.get("description") else ""
        yield f"{name}{'' if name in required else '?'}: {_kind(schema)}{said}"


def _kind(schema: dict[str, Any]) -> str:
    """A type in a few words; what has no such words is shown as it is."""
    match schema:
        case {"enum": [*values]}:
            return " | ".join(_written(value) for value in values)
        case {"anyOf": [*kinds]}:
            return " | ".join(_kind(kind) for kind in kinds)
        case {"type": "array", "items": {**items}}:
            return f"list of {_kind(cast('dict[str, Any]', items))}"
        case {"type": str(kind)} if not schema.keys() - {"type", "description", "default", "title"}:
            return kind
        case _:
            return _written({name: value for name, value in schema.items() if name != "description"})


def _called(message: Message) -> Iterator[str]:
    for call in message.calls:
        yield _written({"thought": message.text, "tool": call.name, "arguments": call.arguments})


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# What the model wrote -----------------------------------------------------------------------------------------------


def with_calls(request: ModelRequest, reply: ModelReply, name: str) -> ModelReply:
    """The reply that a step is: its call, with the thought as the text, or its answer."""
    if not request.tools:
        return reply
    try:
        step: dict[str, Any] = json.loads(reply.text)
    except ValueError:
        return _cut_off(request, reply, name)
    if "tool" in step:
        number = 1 + sum(len(message.calls) for message in request.messages)
        call = ToolCall(f"call_{number}", step["tool"], step["arguments"])
        return replace(reply, text=step["thought"], finish="calls", calls=(call,))
    return replace(reply, text=step["answer"] if request.json_schema is None else _written(step["answer"]))


def _cut_off(request: ModelRequest, reply: ModelReply, name: str) -> ModelReply:
    """The grammar allows nothing but a step, so a stop string or the bound of tokens has cut it."""
    if request.json_schema is None and (answer := Answering().more(reply.text)):
        return replace(reply, text=answer)
    raise ModelFailure("models.bad-reply", name, "a step was cut off before its end", usage=reply.usage)


_BEGUN = re.compile(r'\{"thought": "(?:[^"\\]|\\.)*+", "answer": "')
_WHOLE = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_HALF_A_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


def answering(request: ModelRequest) -> Callable[[str], str]:
    """What to tell of each piece that is written. An answer that must fit a schema is told when it is whole."""
    if not request.tools:
        return lambda piece: piece
    return Answering().more if request.json_schema is None else lambda piece: ""


class Answering:
    """The text of an answer, while the step that it is in is still being written."""

    def __init__(self) -> None:
        self._left = ""
        self._begun = self._ended = False

    def more(self, piece: str) -> str:
        """What has become known of the answer with this piece."""
        self._left += piece
        if not self._begun:
            found = _BEGUN.match(self._left)
            if not found:
                return ""
            self._begun, self._left = True, self._left[found.end() :]
        if self._ended:
            return ""
        known = cast("re.Match[str]", _WHOLE.match(self._left))[0]
        rest = self._left[len(known) :]
        if half := _HALF_A_PAIR.search(known):
            known, rest = known[: half.start()], known[half.start() :] + rest
        self._ended, self._left = rest.startswith('"'), rest
        return json.loads(f'"{known}"', strict=False)

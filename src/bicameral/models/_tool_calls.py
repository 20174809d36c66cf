"""Tool calls of a local model: every reply is one step, a thought and then a call or the answer, enforced by a grammar.

A small model that may write freely describes a call instead of making it, and one that must call something does not
know when to stop. A thought first and then the choice of a key is what it can do, once it has seen an example.
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
    """The same request as a grammar: one step. As it is where there are no tools."""
    if not request.tools:
        return request
    return replace(request, grammar=_step_grammar(request.tools, request.json_schema), json_schema=None)


def _step_grammar(tools: tuple[ToolSchema, ...], schema: dict[str, Any] | None) -> str:
    from bicameral.models._completion import LLGUIDANCE  # it brings ctypes, which the engine alone needs

    calls = "".join(f" | call_{number}" for number in range(len(tools)))
    lines = [
        f"{LLGUIDANCE} {{}}",
        f'start: "{{\\"thought\\": " thought ", " (answer{calls}) "}}"',
        f"thought: {_json_rule({'type': 'string', 'minLength': 1, 'maxLength': _MAX_THOUGHT})}",
        f'answer: "\\"answer\\": " {_json_rule(schema or {"type": "string"})}',
    ]
    for number, tool in enumerate(tools):
        begun = json.dumps(f'"tool": {json.dumps(tool.name)}, "arguments": ')
        lines.append(f"call_{number}: {begun} {_json_rule(tool.parameters)}")
    return "\n".join(lines) + "\n"


def _json_rule(schema: dict[str, Any]) -> str:
    return f"%json {json.dumps(compact_schema(schema))}"


def compact_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without white space, which a small model that is at a loss writes until its tokens are spent."""
    return schema | {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}


# What the model reads -----------------------------------------------------------------------------------------------


def render_turns(messages: tuple[Message, ...], tools: tuple[ToolSchema, ...]) -> Iterator[tuple[str, str]]:
    """Each turn as its speaker and its text."""
    if tools and (not messages or messages[0].speaker != "system"):
        yield "system", _system_with_tools(_SYSTEM, tools)
    for number, message in enumerate(messages):
        match message.speaker:
            case "tool":
                yield "user", f"Result: {message.text}"
            case "system" if tools and number == 0:
                yield "system", _system_with_tools(message.text, tools)
            case "assistant" if message.calls:
                yield "assistant", "\n".join(_render_calls(message))
            case "assistant" if tools:
                yield "assistant", _to_json_text({"thought": _FINAL_THOUGHT, "answer": message.text})
            case _:
                yield message.speaker, message.text


def _system_with_tools(system: str, tools: Iterable[ToolSchema]) -> str:
    listed = "\n".join(
        f"- {tool.name}({', '.join(_describe_arguments(tool.parameters))}): {tool.description}" for tool in tools
    )
    return f"{system}\n\n{_STEPS}{listed}"


def _describe_arguments(parameters: dict[str, Any]) -> Iterator[str]:
    required: list[str] = parameters.get("required", [])
    for name, schema in cast("dict[str, dict[str, Any]]", parameters.get("properties", {})).items():
        said = f" ({schema['description']})" if schema.get("description") else ""
        yield f"{name}{'' if name in required else '?'}: {_describe_type(schema)}{said}"


def _describe_type(schema: dict[str, Any]) -> str:
    """A type in a few words; what has no such words is shown as it is."""
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


def _render_calls(message: Message) -> Iterator[str]:
    for call in message.calls:
        yield _to_json_text({"thought": message.text, "tool": call.name, "arguments": call.arguments})


def _to_json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# What the model wrote -----------------------------------------------------------------------------------------------


def parse_step(request: ModelRequest, reply: ModelReply, name: str) -> ModelReply:
    """The reply that a step is: its call, with the thought as the text, or its answer."""
    if not request.tools:
        return reply
    try:
        step: dict[str, Any] = json.loads(reply.text)
    except ValueError:
        return _parse_cut_step(request, reply, name)
    if "tool" in step:
        number = 1 + sum(len(message.calls) for message in request.messages)
        call = ToolCall(f"call_{number}", step["tool"], step["arguments"])
        return replace(reply, text=step["thought"], finish="calls", calls=(call,))
    return replace(reply, text=step["answer"] if request.json_schema is None else _to_json_text(step["answer"]))


def _parse_cut_step(request: ModelRequest, reply: ModelReply, name: str) -> ModelReply:
    """The grammar allows nothing but a step, so a stop string or the bound of tokens has cut it."""
    if request.json_schema is None and (answer := AnswerStream().feed(reply.text)):
        return replace(reply, text=answer)
    raise ModelFailure("models.bad-reply", name, "a step was cut off before its end", usage=reply.usage)


_ANSWER_START = re.compile(r'\{"thought": "(?:[^"\\]|\\.)*+", "answer": "')
_COMPLETE_CHARACTERS = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_HALF_SURROGATE_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


def answer_filter(request: ModelRequest) -> Callable[[str], str]:
    """What to tell of each piece that is written. An answer that must fit a schema is told when it is whole."""
    if not request.tools:
        return lambda piece: piece
    return AnswerStream().feed if request.json_schema is None else lambda piece: ""


class AnswerStream:
    """The text of an answer, while the step that it is in is still being written."""

    def __init__(self) -> None:
        self._left = ""
        self._begun = self._ended = False

    def feed(self, piece: str) -> str:
        """What has become known of the answer with this piece."""
        self._left += piece
        if not self._begun:
            found = _ANSWER_START.match(self._left)
            if not found:
                return ""
            self._begun, self._left = True, self._left[found.end() :]
        if self._ended:
            return ""
        known = cast("re.Match[str]", _COMPLETE_CHARACTERS.match(self._left))[0]
        rest = self._left[len(known) :]
        if half := _HALF_SURROGATE_PAIR.search(known):
            known, rest = known[: half.start()], known[half.start() :] + rest
        self._ended, self._left = rest.startswith('"'), rest
        return json.loads(f'"{known}"', strict=False)

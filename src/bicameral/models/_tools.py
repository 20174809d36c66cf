"""Tools for a model in this process: told as Qwen2.5 was taught, and held by a grammar to a call that can be made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bicameral.models._failures import ModelFailure
from bicameral.models._protocol import Message, ModelReply, ModelRequest, ToolCall, ToolSchema

CALL, CALLED = "<tool_call>", "</tool_call>"
_ON_ONE_LINE = {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}
_SYSTEM = "You are a helpful assistant."
_BEFORE = """\


# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
_AFTER = """
</tools>

For each function call, return a json object with function name and arguments within """
_SHAPE = '{"name": <function-name>, "arguments": <args-json-object>}'


def constrained(request: ModelRequest) -> ModelRequest:
    """The same request as a grammar: one call of one of the tools, or an answer. As it is where there are no tools."""
    if not request.tools:
        return request
    return replace(request, grammar=_grammar(request.tools, request.json_schema), json_schema=None)


def _grammar(tools: tuple[ToolSchema, ...], schema: dict[str, Any] | None) -> str:
    from bicameral.models._grammar import LLGUIDANCE  # it brings ctypes, which the engine alone needs

    calls = " | ".join(f"call_{number}" for number in range(len(tools)))
    # An answer begins with a word: a model that is about to write a call in brackets of its own has to write it right.
    answer = r"/[\p{L}\p{N}\"'](.|\n)*/" if schema is None else f"%json {json.dumps(schema | _ON_ONE_LINE)}"
    lines = [
        f"{LLGUIDANCE} {{}}",
        "start: call | answer",
        f'call: "{CALL}\\n" ({calls}) "\\n{CALLED}"',
        f"answer: {answer}",
    ]
    for number, tool in enumerate(tools):
        begun = json.dumps(f'{{"name": {json.dumps(tool.name)}, "arguments": ')
        lines.append(f'call_{number}: {begun} %json {json.dumps(tool.parameters | _ON_ONE_LINE)} "}}"')
    return "\n".join(lines) + "\n"


def told(messages: tuple[Message, ...], tools: tuple[ToolSchema, ...]) -> Iterator[tuple[str, list[str]]]:
    """Each turn as its speaker and the texts of it; `CALL` and `CALLED` alone in a text are the runtime's own marks."""
    if tools and (not messages or messages[0].speaker != "system"):
        yield "system", [_SYSTEM, *_signatures(tools)]
    for number, message in enumerate(messages):
        if message.speaker == "tool":
            yield "user", [f"<tool_response>\n{message.text}\n</tool_response>"]
        elif message.speaker == "system" and tools and number == 0:
            yield "system", [message.text, *_signatures(tools)]
        else:
            yield message.speaker, [message.text, *_written(message)]


def _signatures(tools: tuple[ToolSchema, ...]) -> Iterator[str]:
    functions = ({"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools)
    lines = (json.dumps({"type": "function", "function": function}, ensure_ascii=False) for function in functions)
    yield from (_BEFORE + "\n".join(lines) + _AFTER, CALL, CALLED, " XML tags:\n", CALL, f"\n{_SHAPE}\n", CALLED)


def _written(message: Message) -> Iterator[str]:
    for number, call in enumerate(message.calls):
        said = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
        yield from ("\n" if number or message.text else "", CALL, f"\n{said}\n", CALLED)


def with_calls(request: ModelRequest, reply: ModelReply, name: str) -> ModelReply:
    """The reply with the call that its text is, if it is one."""
    if not request.tools or not reply.text or not may_be_call(reply.text):
        return reply
    text, ended, _ = reply.text.removeprefix(CALL).partition(CALLED)
    if not ended:
        # The grammar allows nothing else, so a stop string or the bound of tokens has cut it.
        raise ModelFailure("models.bad-reply", name, "a call was cut off before its end", usage=reply.usage)
    said: dict[str, Any] = json.loads(text)
    number = 1 + sum(len(message.calls) for message in request.messages)
    call = ToolCall(f"call_{number}", said["name"], said["arguments"])
    return replace(reply, text="", finish="calls", calls=(call,))


def may_be_call(text: str) -> bool:
    """Whether a text that is still being written is a call, or may become one."""
    return text.startswith(CALL) or CALL.startswith(text)

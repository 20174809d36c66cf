"""The chat-completions protocol: from its JSON to a `ModelRequest`, and from a `ModelReply` back to its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from bicameral.models import Message, ModelReply, ModelRequest, Speaker, ToolCall, ToolSchema, Usage

_SPEAKERS: Mapping[str, Speaker] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_FINISH = {"stop": "stop", "length": "length", "calls": "tool_calls"}
_PIECE = 12
_DEFAULT_TOKENS = 512


class BadRequest(Exception):
    """A body that the protocol does not allow; `param` is the offending key."""

    def __init__(self, why: str, param: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.param = param


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a body asks for: the model, the request for it, and how the answer is to be written."""

    model: str
    request: ModelRequest
    stream: bool
    usage: bool


def read_wanted(body: bytes) -> Wanted:
    """What this body asks for, or `BadRequest`."""
    try:
        asked = json.loads(body)
    except ValueError:
        raise BadRequest("We could not parse the JSON body of your request.") from None
    if not isinstance(asked, dict):
        raise BadRequest("The body must be a JSON object.")
    asked = cast("dict[str, Any]", asked)
    model = asked.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequest("you must provide a model parameter", "model")
    if asked.get("n") not in (None, 1):
        raise BadRequest("This server gives one choice.", "n")
    request = ModelRequest(
        messages=tuple(_message(each) for each in _objects(asked, "messages")),
        json_schema=_schema(asked.get("response_format")),
        stop=_stop(asked.get("stop")),
        max_tokens=_number(asked, "max_completion_tokens", _number(asked, "max_tokens", _DEFAULT_TOKENS)),
        temperature=_number(asked, "temperature", 1.0),
        seed=_number(asked, "seed", 0),
        model=model,
        tools=tuple(_tool(each) for each in _objects(asked, "tools")),
    )
    if not request.messages:
        raise BadRequest("[] is too short - 'messages'", "messages")
    options = cast("dict[str, Any]", asked.get("stream_options") or {})
    return Wanted(model, request, asked.get("stream") is True, options.get("include_usage") is True)


def _objects(asked: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found: Any = asked.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in cast("list[Any]", found)):
        raise BadRequest(f"{key} must be an array of objects", key)
    return cast("list[dict[str, Any]]", found)


def _number(asked: Mapping[str, Any], key: str, default: Any) -> Any:
    found = asked.get(key)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise BadRequest(f"{key} must be a number", key)
    return type(default)(found)


def _message(said: Mapping[str, Any]) -> Message:
    speaker = _SPEAKERS.get(str(said.get("role")))
    if speaker is None:
        raise BadRequest(
            f"Invalid value: {said.get('role')!r}. Supported values are: {', '.join(_SPEAKERS)}", "messages"
        )
    answers = said.get("tool_call_id")
    if speaker == "tool" and not isinstance(answers, str):
        raise BadRequest("Missing parameter 'tool_call_id'", "messages")
    calls = tuple(_call(each) for each in _objects(said, "tool_calls"))
    return Message(speaker, _text(said.get("content")), calls, answers if speaker == "tool" else None)


def _text(content: Any) -> str:
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            parts = cast("list[Any]", content)
            if all(isinstance(part, dict) and isinstance(cast("Any", part).get("text"), str) for part in parts):
                return "".join(part["text"] for part in parts)
        case _:
            pass
    raise BadRequest("content must be text or parts of text", "messages")


def _call(said: Mapping[str, Any]) -> ToolCall:
    try:
        function = said["function"]
        return ToolCall(str(said["id"]), str(function["name"]), json.loads(function["arguments"] or "{}"))
    except (KeyError, TypeError, ValueError):
        raise BadRequest("a tool call needs an id and a function with a name and JSON arguments", "messages") from None


def _tool(said: Mapping[str, Any]) -> ToolSchema:
    function = said.get("function")
    if said.get("type") != "function" or not isinstance(function, dict) or "name" not in function:
        raise BadRequest("a tool is a function with a name", "tools")
    function = cast("dict[str, Any]", function)
    return ToolSchema(function["name"], function.get("description") or "", function.get("parameters") or {})


def _schema(form: Any) -> dict[str, Any] | None:
    match form:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {"type": "object"}
        case {"type": "json_schema", "json_schema": {"schema": schema}} if isinstance(schema, dict):
            return cast("dict[str, Any]", schema)
        case _:
            raise BadRequest(
                "response_format must be text, json_object or json_schema with a schema", "response_format"
            )


def _stop(stop: Any) -> tuple[str, ...]:
    match stop:
        case None:
            return ()
        case str():
            return (stop,)
        case list() if all(isinstance(each, str) for each in cast("list[Any]", stop)):
            return tuple(cast("list[str]", stop))
        case _:
            raise BadRequest("stop must be a text or a list of texts", "stop")


def usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def completion(id: str, created: int, model: str, reply: ModelReply, *, finish: str | None = None) -> dict[str, Any]:
    """A whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [_call_json(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish or finish_of(reply)}
    return {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "usage": usage_json(reply.usage),
    }


def finish_of(reply: ModelReply) -> str:
    return "tool_calls" if reply.calls else _FINISH[reply.finish]


def _call_json(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
    }


def chunk(id: str, created: int, model: str, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One event of a streamed answer."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": [choice]}


def deltas(reply: ModelReply) -> Iterator[dict[str, Any]]:
    """A finished reply as the pieces that a stream would have brought."""
    for at in range(0, len(reply.text), _PIECE):
        yield {"content": reply.text[at : at + _PIECE]}
    for index, call in enumerate(reply.calls):
        written = _call_json(call)
        arguments: str = written["function"]["arguments"]
        yield {"tool_calls": [{"index": index, **written, "function": {"name": call.name, "arguments": ""}}]}
        for at in range(0, len(arguments), _PIECE):
            yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + _PIECE]}}]}


def error_json(message: str, kind: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def breaking(schema: Mapping[str, Any] | None) -> str:
    """JSON that this schema does not accept."""
    if schema and schema.get("type") == "object" and not schema.get("required"):
        return "[]"
    return '{"unexpected": true}'

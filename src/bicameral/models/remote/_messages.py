"""A request in pydantic-ai's words, and its response in ours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bicameral.models._failures import ModelFailure
from bicameral.models._protocol import Finish, Message, ModelReply, ModelRequest, ToolCall, Usage
from bicameral.models._schema import unfit

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters

_CHARACTERS_PER_TOKEN = 4
BEGUN = "Your reply has already begun with the text below. Write only what comes right after it, without repeating it."
_FENCES = ("```json", "```")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model class is called with."""

    messages: list[ModelMessage]
    settings: dict[str, Any]
    parameters: ModelRequestParameters


def asked(request: ModelRequest, model: Model[Any], settings: dict[str, Any], *, native: bool | None) -> Asked:
    """The request as this model class takes it."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
            for tool in request.tools
        ]
    )
    if request.json_schema is not None:
        if native is None:
            native = bool(model.profile.get("supports_json_schema_output", False))
        parameters.output_mode = "native" if native else "prompted"
        parameters.output_object = OutputObjectDefinition(json_schema=request.json_schema, name="reply")
        parameters.allow_text_output = bool(request.tools)
    return Asked(_messages(request), _settings(request, model, settings), parameters)


def _settings(request: ModelRequest, model: Model[Any], settings: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "max_retries": 0,
        **settings,
    }
    # A prefill may hold a stop string itself (the fence of a code block), and the model may repeat it.
    if request.stop and not request.prefill:
        said["stop_sequences"] = list(request.stop)
    return {name: value for name, value in said.items() if name not in model.unsupported_settings}


def _messages(request: ModelRequest) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest as Turn
    from pydantic_ai.messages import UserPromptPart

    turns: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    names = {call.id: call.name for message in request.messages for call in message.calls}
    for message in request.messages:
        if message.speaker == "assistant":
            if parts:
                turns.append(Turn(parts))
                parts = []
            turns.append(_said(message))
        else:
            parts.append(_told(message, names))
    if request.prefill:
        parts.append(UserPromptPart(f"{BEGUN}\n\n{request.prefill}"))
    return [*turns, Turn(parts)] if parts else turns


def _told(message: Message, names: dict[str, str]) -> ModelRequestPart:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    if message.speaker == "system":
        return SystemPromptPart(message.text)
    if message.speaker == "tool":
        answers = message.answers or ""
        return ToolReturnPart(tool_name=names.get(answers, ""), content=message.text, tool_call_id=answers)
    return UserPromptPart(message.text)


def _said(message: Message) -> ModelResponse:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    calls = [ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in message.calls]
    return ModelResponse(parts=[*([TextPart(message.text)] if message.text else []), *calls])


def reply_of(response: ModelResponse, request: ModelRequest, name: str, seconds: float) -> ModelReply:
    """The reply, held to what was asked for; one that does not fit is a failure and never mended."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    usage = _usage(response, request, text)
    if response.finish_reason == "content_filter":
        raise ModelFailure("models.refused", name, usage=usage)
    if response.finish_reason == "error":
        raise ModelFailure("models.bad-reply", name, "it broke off with an error", usage=usage)
    calls = tuple(
        call_of(part.tool_name, part.args, part.tool_call_id, request, name, usage)
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    finish: Finish = "length" if response.finish_reason == "length" else "calls" if calls else "stop"
    if not calls:
        text = shaped(text, request, finish, name, usage)
    return ModelReply(text, finish, usage, seconds, calls, name)


def shaped(text: str, request: ModelRequest, finish: Finish, name: str, usage: Usage) -> str:
    """The text without what the prefill said already, up to a stop string, and of the shape that was asked for."""
    if request.prefill:
        stripped = text.lstrip()
        begun = request.prefill.lstrip()
        text = stripped[len(begun) :] if stripped.startswith(begun) else text
    ends = [at for stop in request.stop if (at := text.find(stop)) >= 0]
    text = text[: min(ends, default=len(text))]
    if request.json_schema is None:
        return text
    if finish == "length":
        raise ModelFailure("models.bad-reply", name, f"it does not end within {request.max_tokens} tokens", usage=usage)
    text = _unfenced(text)
    try:
        value = json.loads(request.prefill + text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ModelFailure("models.bad-reply", name, "it is not JSON", usage=usage) from None
    if (fault := unfit(value, request.json_schema)) is not None:
        raise ModelFailure("models.bad-reply", name, f"it does not fit the schema: {fault}", usage=usage)
    return text


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def _unfenced(text: str) -> str:
    """A model that was only told of the schema likes to put its JSON into a code block; that is not part of it."""
    text = text.strip()
    fence = next((fence for fence in _FENCES if text.startswith(fence) and text.endswith("```")), None)
    return text if fence is None or len(text) < len(fence) + 3 else text[len(fence) : -3].strip()


def call_of(name: str, arguments: Any, identifier: str, request: ModelRequest, who: str, usage: Usage) -> ToolCall:
    """A call as the model asked for it; one of no tool, or with arguments that are no object, is a failure."""
    if name not in {tool.name for tool in request.tools}:
        raise ModelFailure("models.bad-reply", who, "it asks for a tool that there is not", usage=usage)
    given: Any = arguments if arguments is not None else {}
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}", parse_constant=_no_constant)
        except (ValueError, RecursionError):
            given = None
    if not isinstance(given, dict):
        raise ModelFailure("models.bad-reply", who, f"the arguments for {name!r} are not a JSON object", usage=usage)
    return ToolCall(identifier, name, cast("dict[str, Any]", given))


def _usage(response: ModelResponse, request: ModelRequest, text: str) -> Usage:
    told = response.usage
    if told.input_tokens or told.output_tokens:
        return Usage(told.input_tokens, told.cache_read_tokens, told.output_tokens)
    return guessed_usage(request, text)


def guessed_usage(request: ModelRequest, text: str) -> Usage:
    """A server that does not say what a reply cost must not make it free."""
    prompt = sum(len(message.text) for message in request.messages) + len(request.prefill)
    return Usage(prompt=prompt // _CHARACTERS_PER_TOKEN, output=len(text) // _CHARACTERS_PER_TOKEN)

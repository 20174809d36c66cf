"""Translation to and from pydantic-ai: requests, replies, and the errors that it and the client libraries raise.

A reply is validated against what was asked for; one that does not fit is a failure and is never repaired.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bicameral.models._protocol import (
    FailureCode,
    FinishReason,
    Message,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ToolCall,
    Usage,
)
from bicameral.models._schema import schema_violation
from bicameral.models.remote._servers import Key

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters


REFUSAL_WORDS = ("content_filter", "content_policy", "safety", "moderation", "cyber_policy", "refusal")
_MAX_QUOTE = 200


def translate_error(error: Exception, name: str, key: Key | None, *, begun: bool = False) -> ModelFailure:
    """The failure that this error is, of a reply that had `begun` or not.

    It quotes the server where that helps, and never the key or the reply.
    """
    from pydantic_ai import exceptions as raised

    match error:
        case raised.ModelRateLimitError():
            return ModelFailure("models.rate-limited", name, retry_after=error.retry_after)
        case raised.ModelQuotaExceededError():
            why = "the credit or quota of this key is spent"
            return ModelFailure("models.rate-limited", name, why, retry_after=error.retry_after)
        case raised.ModelAuthenticationError():
            # Servers quote a part of the key here.
            return ModelFailure("models.auth", name)
        case raised.ModelContextWindowExceededError():
            return ModelFailure("models.prompt-too-long", name)
        case raised.ModelNotFoundError():
            nearest = error.suggested_model_id if isinstance(error, raised.ModelHTTPError) else None
            return ModelFailure("models.bad-request", name, "the server has no such model", nearest=nearest)
        case raised.ModelRequestTimeout() | raised.ModelTimeoutError():
            return ModelFailure("models.timeout", name)
        case raised.ModelConnectionError():
            return connection_failure(name, begun=begun or error.in_stream)
        case raised.ContentFilterError():
            return ModelFailure("models.refused", name)
        case raised.ModelUnavailableError() | raised.ModelServerError():
            return ModelFailure("models.unavailable", name, _status_text(error), retry_after=error.retry_after)
        case raised.ModelRequestRejectedError():
            if _is_refusal(error):
                return ModelFailure("models.refused", name)
            return ModelFailure("models.bad-request", name, _quote_server(error, key))
        case raised.ModelHTTPError():
            return ModelFailure(
                _code_by_status(error.status_code), name, _status_text(error), retry_after=error.retry_after
            )
        case raised.ModelAPIError():
            if _is_refusal(error):
                return ModelFailure("models.refused", name)
            return ModelFailure("models.bad-reply", name, "it is malformed or was cut off")
        case raised.UnexpectedModelBehavior():
            return ModelFailure("models.bad-reply", name, "it is malformed or was cut off")
        case raised.UserError():
            return ModelFailure("models.bad-request", name, _mask_key(str(error), key))
        case _:
            return _failure_by_type(error, name)


def connection_failure(name: str, *, begun: bool) -> ModelFailure:
    """The connection was lost: before anything came, or in the middle of the reply."""
    if begun:
        return ModelFailure("models.bad-reply", name, "the connection broke before its end")
    return ModelFailure("models.unavailable", name, "the connection failed")


def _failure_by_type(error: Exception, name: str) -> ModelFailure:
    """Errors that no library has wrapped: a connection that broke, and what nobody foresaw."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, ImportError):
        return ModelFailure("models.bad-request", name, f"its client library cannot be imported ({error.name})")
    if "TimeoutException" in kinds or isinstance(error, TimeoutError):
        return ModelFailure("models.timeout", name)
    if kinds & {"ConnectError", "ConnectTimeout", "ConnectionError"} or isinstance(error, PermissionError):
        return ModelFailure("models.unavailable", name, "the connection failed")
    return ModelFailure("models.bad-reply", name, f"it is malformed or was cut off ({type(error).__name__})")


def _code_by_status(status: int) -> FailureCode:
    if status == 408:
        return "models.timeout"
    if status in (409, 425) or status >= 500:
        return "models.unavailable"
    return "models.bad-request" if status >= 400 else "models.bad-reply"


def _is_refusal(error: Any) -> bool:
    said = (error.provider_error_code, error.provider_error_type, getattr(error, "status_code", None) == 403)
    words = " ".join(str(each).lower() for each in said[:2] if each)
    return any(refusal in words for refusal in REFUSAL_WORDS) or said[2]


def _status_text(error: Any) -> str:
    status = getattr(error, "status_code", None)
    return f"status {status}" if status else ""


def _quote_server(error: Any, key: Key | None) -> str:
    said: Any = error.body
    for name in ("error", "message"):
        if isinstance(said, dict):
            said = cast("dict[str, Any]", said).get(name, cast(Any, said))
    return ", ".join(filter(None, (_status_text(error), _mask_key(said, key) if isinstance(said, str) else "")))


def _mask_key(text: str, key: Key | None) -> str:
    text = key.mask_in(text) if key is not None else text
    text = " ".join(text.split())
    return text if len(text) <= _MAX_QUOTE else f"{text[:_MAX_QUOTE]}…"


_CHARACTERS_PER_TOKEN = 4
PREFILL_INSTRUCTION = (
    "Your reply has already begun with the text below. Write only what comes right after it, without repeating it."
)
_FENCES = ("```json", "```")


@dataclass(frozen=True, slots=True)
class ModelClassCall:
    """What a model class is called with."""

    messages: list[ModelMessage]
    settings: dict[str, Any]
    parameters: ModelRequestParameters


def translate_request(
    request: ModelRequest, model: Model[Any], settings: dict[str, Any], *, native: bool | None
) -> ModelClassCall:
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
    return ModelClassCall(_translate_messages(request), _model_settings(request, model, settings), parameters)


def _model_settings(request: ModelRequest, model: Model[Any], settings: dict[str, Any]) -> dict[str, Any]:
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


def _translate_messages(request: ModelRequest) -> list[ModelMessage]:
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
            turns.append(_assistant_turn(message))
        else:
            parts.append(_request_part(message, names))
    if request.prefill:
        parts.append(UserPromptPart(f"{PREFILL_INSTRUCTION}\n\n{request.prefill}"))
    return [*turns, Turn(parts)] if parts else turns


def _request_part(message: Message, names: dict[str, str]) -> ModelRequestPart:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    if message.speaker == "system":
        return SystemPromptPart(message.text)
    if message.speaker == "tool":
        answers = message.answers or ""
        return ToolReturnPart(tool_name=names.get(answers, ""), content=message.text, tool_call_id=answers)
    return UserPromptPart(message.text)


def _assistant_turn(message: Message) -> ModelResponse:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    calls = [ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in message.calls]
    return ModelResponse(parts=[*([TextPart(message.text)] if message.text else []), *calls])


def translate_reply(response: ModelResponse, request: ModelRequest, name: str, seconds: float) -> ModelReply:
    """The reply, held to what was asked for; one that does not fit is a failure and never mended."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    usage = _read_usage(response, request, text)
    if response.finish_reason == "content_filter":
        raise ModelFailure("models.refused", name, usage=usage)
    if response.finish_reason == "error":
        raise ModelFailure("models.bad-reply", name, "it broke off with an error", usage=usage)
    calls = tuple(
        parse_tool_call(part.tool_name, part.args, part.tool_call_id, request, name, usage)
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    finish: FinishReason = "length" if response.finish_reason == "length" else "calls" if calls else "stop"
    if not calls:
        text = shape_text(text, request, finish, name, usage)
    return ModelReply(text, finish, usage, seconds, calls, name)


def shape_text(text: str, request: ModelRequest, finish: FinishReason, name: str, usage: Usage) -> str:
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
    text = _strip_fence(text)
    try:
        value = json.loads(request.prefill + text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ModelFailure("models.bad-reply", name, "it is not JSON", usage=usage) from None
    if (fault := schema_violation(value, request.json_schema)) is not None:
        raise ModelFailure("models.bad-reply", name, f"it does not fit the schema: {fault}", usage=usage)
    return text


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


def _strip_fence(text: str) -> str:
    """A model that was only told of the schema likes to put its JSON into a code block; that is not part of it."""
    text = text.strip()
    fence = next((fence for fence in _FENCES if text.startswith(fence) and text.endswith("```")), None)
    return text if fence is None or len(text) < len(fence) + 3 else text[len(fence) : -3].strip()


def parse_tool_call(
    name: str, arguments: Any, identifier: str, request: ModelRequest, who: str, usage: Usage
) -> ToolCall:
    """A call as the model asked for it; one of no tool, or with arguments that are no object, is a failure."""
    if name not in {tool.name for tool in request.tools}:
        raise ModelFailure("models.bad-reply", who, "it asks for a tool that there is not", usage=usage)
    given: Any = arguments if arguments is not None else {}
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}", parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            given = None
    if not isinstance(given, dict):
        raise ModelFailure("models.bad-reply", who, f"the arguments for {name!r} are not a JSON object", usage=usage)
    return ToolCall(identifier, name, cast("dict[str, Any]", given))


def _read_usage(response: ModelResponse, request: ModelRequest, text: str) -> Usage:
    told = response.usage
    if told.input_tokens or told.output_tokens:
        return Usage(told.input_tokens, told.cache_read_tokens, told.output_tokens)
    return estimate_usage(request, text)


def estimate_usage(request: ModelRequest, text: str) -> Usage:
    """A server that does not say what a reply cost must not make it free."""
    prompt = sum(len(message.text) for message in request.messages) + len(request.prefill)
    return Usage(prompt=prompt // _CHARACTERS_PER_TOKEN, output=len(text) // _CHARACTERS_PER_TOKEN)

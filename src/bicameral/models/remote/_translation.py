"""Translation to and from pydantic-ai: requests, replies, and the errors that it and the client libraries raise.

A reply is validated against its request; one that does not fit is a failure and is never repaired.
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
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse, ToolCallPart
    from pydantic_ai.models import Model, ModelRequestParameters


_REFUSAL_WORDS = ("content_filter", "content_policy", "safety", "moderation", "cyber_policy", "refusal")
_PREFILL_INSTRUCTION = (
    "Your reply has already begun with the text below. Write only what comes right after it, without repeating it."
)
_MAX_QUOTE = 200
CHARACTERS_PER_TOKEN = 4
"""An estimate, where a server does not count."""
_FENCES = ("```json", "```")


def translate_error(error: Exception, name: str, key: Key | None, *, begun: bool = False) -> ModelFailure:
    """The failure for an error; `begun` if a part of the reply had been received.

    It quotes the server's message where that helps, and never the key or the reply.
    """
    from pydantic_ai import exceptions as raised

    match error:
        case raised.ModelRateLimitError():
            return ModelFailure("models.rate-limited", name, retry_after=error.retry_after)
        case raised.ModelQuotaExceededError():
            why = "the credit or quota of this key is spent"
            return ModelFailure("models.rate-limited", name, why, retry_after=error.retry_after)
        case raised.ModelAuthenticationError():
            # Without the server's message, which quotes a part of the key.
            return ModelFailure("models.auth", name)
        case raised.ModelContextWindowExceededError():
            return ModelFailure("models.prompt-too-long", name)
        case raised.ModelNotFoundError():
            nearest = error.suggested_model_id if isinstance(error, raised.ModelHTTPError) else None
            return ModelFailure("models.bad-request", name, "the server has no such model", nearest=nearest)
        case raised.ModelRequestTimeout() | raised.ModelTimeoutError():
            return ModelFailure("models.timeout", name)
        case raised.ModelConnectionError():
            if begun or error.in_stream:
                return ModelFailure("models.bad-reply", name, "the connection broke before its end")
            return ModelFailure("models.unavailable", name, "the connection failed")
        case raised.ContentFilterError():
            return ModelFailure("models.refused", name)
        case raised.ModelUnavailableError() | raised.ModelServerError():
            return ModelFailure("models.unavailable", name, _status_text(error), retry_after=error.retry_after)
        case raised.ModelRequestRejectedError():
            if _is_refusal(error):
                return ModelFailure("models.refused", name)
            refused = "temperature" if _refuses_temperature(error) else None
            return ModelFailure("models.bad-request", name, _quote_server(error, key), refused_setting=refused)
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


def _failure_by_type(error: Exception, name: str) -> ModelFailure:
    """The failure for an error that no library has wrapped, by the names of its classes."""
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
    words = " ".join(str(word).lower() for word in (error.provider_error_code, error.provider_error_type) if word)
    return any(refusal in words for refusal in _REFUSAL_WORDS) or getattr(error, "status_code", None) == 403


def _refuses_temperature(error: Any) -> bool:
    """Whether a server takes no temperature at all. Only yes or no is taken from what it says."""
    found: Any = error.body
    if isinstance(found, dict):
        found = cast("dict[str, Any]", found).get("error", cast(Any, found))
    if not isinstance(found, dict):
        return False
    facts = cast("dict[str, Any]", found)
    words = f"{facts.get('code')} {facts.get('message')}"[:_MAX_QUOTE].lower()
    about = facts.get("param") == "temperature" or "temperature" in words
    return about and any(word in words for word in ("support", "deprecated", "not allowed", "not permitted"))


def _status_text(error: Any) -> str:
    status = getattr(error, "status_code", None)
    return f"status {status}" if status else ""


def _quote_server(error: Any, key: Key | None) -> str:
    message: Any = error.body
    for name in ("error", "message"):
        if isinstance(message, dict):
            message = cast("dict[str, Any]", message).get(name, cast(Any, message))
    return ", ".join(filter(None, (_status_text(error), _mask_key(message, key) if isinstance(message, str) else "")))


def _mask_key(text: str, key: Key | None) -> str:
    text = key.mask_in(text) if key is not None else text
    text = " ".join(text.split())
    return text if len(text) <= _MAX_QUOTE else f"{text[:_MAX_QUOTE]}…"


@dataclass(frozen=True, slots=True)
class ModelClassCall:
    """The arguments for a model class of pydantic-ai."""

    messages: list[ModelMessage]
    settings: dict[str, Any]
    parameters: ModelRequestParameters

    @property
    def has_temperature(self) -> bool:
        return "temperature" in self.settings


def translate_request(
    request: ModelRequest, model: Model[Any], settings: dict[str, Any], *, native: bool | None, temperature: bool = True
) -> ModelClassCall:
    """The request in the form that this model class takes; without a `temperature` if the model takes none."""
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
    if request.must_call:
        # The model classes turn this into their provider's way to require a call, where it has one.
        parameters.allow_text_output = False
    chosen = _model_settings(request, model, settings)
    if not (temperature and takes_temperature(model)):
        chosen.pop("temperature", None)
    return ModelClassCall(_translate_messages(request), chosen, parameters)


def takes_temperature(model: Model[Any]) -> bool:
    """Whether a model can be asked with a temperature; many reasoning models cannot."""
    profile = cast("dict[str, Any]", model.profile)
    if "temperature" in (*model.unsupported_settings, *profile.get("openai_unsupported_model_settings", ())):
        return False
    if profile.get("anthropic_disallows_sampling_settings") or profile.get("bedrock_disallows_sampling_settings"):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    # One that can answer without reasoning, and does so unless it is told otherwise, takes a temperature.
    efforts = profile.get("openai_reasoning_efforts")
    optional = profile.get("openai_supports_reasoning_effort_none") if efforts is None else "none" in efforts
    return bool(optional) and not profile.get("thinking_enabled_by_default")


def _model_settings(request: ModelRequest, model: Model[Any], settings: dict[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "max_retries": 0,
        **settings,
    }
    # A prefill may contain a stop string (the fence of a code block), and the model may repeat the prefill. Then the
    # server must not stop there; `shape_text` cuts the reply.
    if request.stop and not request.prefill:
        chosen["stop_sequences"] = list(request.stop)
    return {name: value for name, value in chosen.items() if name not in model.unsupported_settings}


def _translate_messages(request: ModelRequest) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest as Turn, UserPromptPart

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
        parts.append(UserPromptPart(f"{_PREFILL_INSTRUCTION}\n\n{request.prefill}"))
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
    """The reply, validated against its request; one that does not fit raises a failure and is never repaired."""
    from pydantic_ai.messages import TextPart, ToolCallPart as CallPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    usage = _read_usage(response, request, text)
    if response.finish_reason == "content_filter":
        raise ModelFailure("models.refused", name, usage=usage)
    if response.finish_reason == "error":
        raise ModelFailure("models.bad-reply", name, "it broke off with an error", usage=usage)
    calls = tuple(_parse_tool_call(part, request, name, usage) for part in response.parts if isinstance(part, CallPart))
    finish: FinishReason = "length" if response.finish_reason == "length" else "calls" if calls else "stop"
    if not calls:
        text = shape_text(text, request, finish, name, usage)
    return ModelReply(text, finish, usage, seconds, calls, name)


def shape_text(text: str, request: ModelRequest, finish: FinishReason, name: str, usage: Usage) -> str:
    """The text without a repeated prefill, cut at a stop string, and validated against the request's schema."""
    if request.prefill:
        stripped = text.lstrip()
        prefill = request.prefill.lstrip()
        text = stripped[len(prefill) :] if stripped.startswith(prefill) else text
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


class StreamShaper:
    """What `shape_text` will leave of a text that comes in pieces: a piece is sent on once that is certain.

    A reply with a schema is sent on only when it is complete, since it is checked first.
    """

    def __init__(self, request: ModelRequest) -> None:
        self._holds = request.json_schema is not None
        self._prefill = request.prefill.lstrip()
        self._stop = request.stop
        self._text = ""
        self.sent = ""

    def feed(self, piece: str) -> str:
        """The text that is certain now and was not sent before."""
        self._text += piece
        if self._holds or not piece:
            return ""
        text = self._without_prefill()
        ends = [at for stop in self._stop if (at := text.find(stop)) >= 0]
        # The beginning of a stop string may be at the end of what there is so far.
        open_ends = (
            len(text) - size for stop in self._stop for size in range(1, len(stop)) if text.endswith(stop[:size])
        )
        certain = text[: min(ends, default=min(open_ends, default=len(text)))]
        piece, self.sent = certain[len(self.sent) :], max(self.sent, certain, key=len)
        return piece

    def _without_prefill(self) -> str:
        """The text without a repeated prefill; empty as long as it may still become one."""
        if not self._prefill:
            return self._text
        begun = self._text.lstrip()
        if begun.startswith(self._prefill):
            return begun[len(self._prefill) :]
        return "" if self._prefill.startswith(begun) else self._text


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


def _strip_fence(text: str) -> str:
    """The text without the code block that models put around JSON if the server does not enforce the schema."""
    text = text.strip()
    fence = next((fence for fence in _FENCES if text.startswith(fence) and text.endswith("```")), None)
    return text if fence is None or len(text) < len(fence) + 3 else text[len(fence) : -3].strip()


def _parse_tool_call(part: ToolCallPart, request: ModelRequest, model: str, usage: Usage) -> ToolCall:
    """A call that the model asks for; raises if the tool is unknown or its arguments are not a JSON object."""
    name = part.tool_name
    if name not in {tool.name for tool in request.tools}:
        raise ModelFailure("models.bad-reply", model, "it asks for a tool that there is not", usage=usage)
    values: Any = part.args if part.args is not None else {}
    if isinstance(values, str):
        try:
            values = json.loads(values or "{}", parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            values = None
    if not isinstance(values, dict):
        raise ModelFailure("models.bad-reply", model, f"the arguments for {name!r} are not a JSON object", usage=usage)
    return ToolCall(part.tool_call_id, name, cast("dict[str, Any]", values))


def _read_usage(response: ModelResponse, request: ModelRequest, text: str) -> Usage:
    reported = response.usage
    if reported.input_tokens or reported.output_tokens:
        return Usage(reported.input_tokens, reported.cache_read_tokens, reported.output_tokens)
    # Estimated from the lengths of the texts: a reply without reported usage must not count as free.
    prompt = sum(len(message.text) for message in request.messages) + len(request.prefill)
    return Usage(prompt=prompt // CHARACTERS_PER_TOKEN, output=len(text) // CHARACTERS_PER_TOKEN)

"""A provider for every model that LiteLLM knows; an optional extra, since LiteLLM is large and slow to import."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import threading
from collections.abc import AsyncGenerator, Mapping
from functools import cache
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from bicameral.errors import ModelError
from bicameral.models._protocol import (
    Chamber,
    FailureCode,
    FinishReason,
    Message,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ReplyChunk,
    TextChunk,
    Usage,
    reply_chunks,
)
from bicameral.models.remote._provider import NetworkProvider, needs_whole_reply, remote_model_name
from bicameral.models.remote._servers import Key, check_address, missing_package
from bicameral.models.remote._translation import (
    PREFILL_INSTRUCTION,
    REFUSAL_WORDS,
    connection_failure,
    estimate_usage,
    parse_tool_call,
    shape_text,
)

_NO_KEY = "no-key"
# LiteLLM takes the credentials of these from the environment whatever it is given, so that one chamber could use the
# credentials of the other.
_AMBIENT_CREDENTIALS = ("bedrock/", "vertex_ai/", "sagemaker/", "watsonx/")
# The import sets an environment variable for its duration; two threads must not do that at once.
_IMPORT_LOCK = threading.Lock()

_FAILURE_CODES: dict[str, FailureCode] = {
    "ContentPolicyViolationError": "models.refused",
    "ContextWindowExceededError": "models.prompt-too-long",
    "RateLimitError": "models.rate-limited",
    "AuthenticationError": "models.auth",
    "PermissionDeniedError": "models.auth",
    "Timeout": "models.timeout",
    "APIResponseValidationError": "models.bad-reply",
    "JSONSchemaValidationError": "models.bad-reply",
    "ServiceUnavailableError": "models.unavailable",
    "InternalServerError": "models.unavailable",
    "BadGatewayError": "models.unavailable",
    "NotFoundError": "models.bad-request",
    "UnprocessableEntityError": "models.bad-request",
    "BadRequestError": "models.bad-request",
    "UnsupportedParamsError": "models.bad-request",
}


class LiteLLMProvider(NetworkProvider):
    """Asks a model by its LiteLLM name (`azure/gpt-4.1`) with one key.

    Failures, the validation of replies and the independence of the environment are those of `RemoteProvider`, and so
    are the arguments.

    Example:
        >>> model = LiteLLMProvider("openai/m", base_url="http://localhost:8000/v1")
    """

    def __init__(
        self,
        model: str,
        *,
        key: Key | None = None,
        base_url: str | None = None,
        chamber: Chamber | None = None,
        settings: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        if find_spec("litellm") is None:
            raise missing_package("models through LiteLLM", "litellm", "litellm")
        if model.startswith(_AMBIENT_CREDENTIALS):
            raise ModelError(
                "models.bad-setting",
                f"{model!r} takes its credentials from the environment, where both chambers could reach them",
                fix="Use the family 'bedrock' or 'google' of RemoteProvider with a key of its own.",
            )
        self._model = model
        self._base_url = check_address(base_url.strip()) if base_url else None
        name = name or remote_model_name("litellm", model, self._base_url, settings or {})
        super().__init__(name, key=key, chamber=chamber, settings=settings)

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The reply; a timeout or a cancellation closes the connection too."""
        began, deadline = perf_counter(), self._checked_deadline(request)
        response = await self._await_within(self._ask(request, stream=False), deadline, request)
        return self._reply(response, request, perf_counter() - began)

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """The reply as it is written; leaving the loop early closes the connection."""
        began, deadline = perf_counter(), self._checked_deadline(request)
        hold_text = needs_whole_reply(request)
        stream = await self._await_within(self._ask(request, stream=True), deadline, request)
        pieces: list[Any] = []
        try:
            events = aiter(stream)
            while (piece := await self._await_within(anext(events, None), deadline, request, begun=True)) is not None:
                pieces.append(piece)
                text = piece.choices[0].delta.content if piece.choices else None
                if text and not hold_text:
                    yield TextChunk(text)
        finally:
            await stream.aclose()
        response: Any = None
        # A stream without a finish reason was cut off, even if its text looks complete.
        if any(piece.choices and piece.choices[0].finish_reason for piece in pieces):
            response = _import_litellm().stream_chunk_builder(pieces, messages=_render_messages(request))
        if response is None:
            raise ModelFailure("models.bad-reply", self.name, "it was cut off")
        for chunk in reply_chunks(self._reply(response, request, perf_counter() - began), text_sent=not hold_text):
            yield chunk

    async def _ask(self, request: ModelRequest, *, stream: bool) -> Any:
        library = await asyncio.to_thread(_import_litellm)
        return await library.acompletion(**self._request_arguments(request, stream=stream), stream=stream)

    def _failure(self, error: Exception, *, begun: bool) -> ModelFailure:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        if "APIConnectionError" in kinds:
            return connection_failure(self.name, begun=begun)
        codes: list[FailureCode] = [_FAILURE_CODES[kind] for kind in kinds if kind in _FAILURE_CODES]
        code: FailureCode = codes[0] if codes else "models.bad-reply"
        if code == "models.bad-request" and any(word in str(error).lower() for word in REFUSAL_WORDS):
            # LiteLLM reports some refusals as bad requests. One refusal too many is better than asking again.
            code = "models.refused"
        headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
        after = str(headers.get("retry-after", ""))
        return ModelFailure(code, self.name, retry_after=float(after) if after.isdecimal() else None)

    def _request_arguments(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._model,
            "messages": _render_messages(request),
            "api_key": self._key.reveal() if self._key is not None else _NO_KEY,
            "base_url": self._base_url,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": True,
            "stream_options": {"include_usage": True} if stream else None,
        }
        if request.stop and not request.prefill:
            arguments["stop"] = list(request.stop)
        if request.tools:
            arguments["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
        if request.json_schema is not None:
            shape = {"name": "reply", "schema": request.json_schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": shape}
        return {name: value for name, value in (arguments | self._settings).items() if value is not None}

    def _reply(self, response: Any, request: ModelRequest, seconds: float) -> ModelReply:
        if not response.choices:
            raise ModelFailure("models.bad-reply", self.name, "it is empty")
        choice: Any = response.choices[0]
        text = choice.message.content or ""
        usage = _read_usage(response, request, text)
        if choice.finish_reason == "content_filter" or getattr(choice.message, "refusal", None):
            raise ModelFailure("models.refused", self.name, usage=usage)
        calls = tuple(
            parse_tool_call(call.function.name, call.function.arguments, call.id, request, self.name, usage)
            for call in choice.message.tool_calls or ()
        )
        finish: FinishReason = "length" if choice.finish_reason == "length" else "calls" if calls else "stop"
        if not calls:
            text = shape_text(text, request, finish, self.name, usage)
        return ModelReply(text, finish, usage, seconds, calls, self.name)


def _read_usage(response: Any, request: ModelRequest, text: str) -> Usage:
    reported: Any = getattr(response, "usage", None)
    if reported is None or not (reported.prompt_tokens or reported.completion_tokens):
        return estimate_usage(request, text)
    details: Any = getattr(reported, "prompt_tokens_details", None)
    return Usage(reported.prompt_tokens, getattr(details, "cached_tokens", None) or 0, reported.completion_tokens)


def _render_messages(request: ModelRequest) -> list[dict[str, Any]]:
    turns = [_render_message(message) for message in request.messages]
    if request.prefill:
        turns.append({"role": "user", "content": f"{PREFILL_INSTRUCTION}\n\n{request.prefill}"})
    return turns


def _render_message(message: Message) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.speaker, "content": message.text}
    if message.calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.calls
        ]
    if message.answers is not None:
        turn["tool_call_id"] = message.answers
    return turn


@cache
def _import_litellm() -> Any:
    """The LiteLLM module, imported without fetching its price list and with its telemetry off."""
    with _IMPORT_LOCK:
        before = os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP")
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        try:
            library: Any = importlib.import_module("litellm")
        finally:
            if before is None:
                del os.environ["LITELLM_LOCAL_MODEL_COST_MAP"]
            else:
                os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = before
        library.telemetry = False
        library.suppress_debug_info = True
        return library

"""`RemoteProvider`: models over a network, through the model classes of pydantic-ai."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from bicameral.errors import BicameralError, ModelError
from bicameral.models._progress import WRITING, ModelProgress, current_listener
from bicameral.models._protocol import (
    Chamber,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ReplyChunk,
    TextChunk,
    check_request,
    reply_chunks,
    stream_texts,
)
from bicameral.models._schema import check_schema
from bicameral.models.remote._servers import Key, build_model, find_family, open_client, server_address
from bicameral.models.remote._translation import (
    CHARACTERS_PER_TOKEN,
    ModelClassCall,
    StreamShaper,
    translate_error,
    translate_reply,
    translate_request,
)

if TYPE_CHECKING:
    from pydantic_ai.models import Model


_T = TypeVar("_T")


def remote_model_name(family: str, model: str, url: str | None, parameters: Mapping[str, Any]) -> str:
    """The name of a provider, by which prices are found and which contains all that a reply depends on (cache keys).

    Of the address it contains the server and the path only: the rest might be a secret.
    """
    name = f"{family}:{model}"
    if url is not None:
        parts = urlsplit(url)
        name += f"@{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"
    if parameters:
        canonical = json.dumps(parameters, sort_keys=True, default=str)
        name += f"#{hashlib.sha256(canonical.encode()).hexdigest()[:8]}"
    return name


class RemoteProvider:
    """Asks a model of one family with one key; nothing is imported or sent before the first request.

    Keys and addresses are never taken from the environment. A reply that does not fit its JSON Schema is refused,
    whether the server enforces schemas or not. It can be used on several event loops, each with its own connections.

    Args:
        family: One of `FAMILIES`.
        key: The key to send; not needed for a family without keys, or with a `base_url`.
        base_url: The address of the server; by default that of the family.
        chamber: The side that it serves.
        settings: Sent with every request (`top_p`, `extra_headers`, ...).
        options: Configures the family (`api_version` for azure, `region_name` for bedrock).
        native: Whether the server enforces JSON Schemas; by default pydantic-ai decides.
        name: Used in place of `remote_model_name`.

    Example:
        >>> model = RemoteProvider("openai", "qwen2.5-coder", base_url="http://localhost:8000/v1")
        >>> model.name
        'openai:qwen2.5-coder@localhost:8000/v1'
    """

    def __init__(
        self,
        family: str,
        model: str,
        *,
        key: Key | None = None,
        base_url: str | None = None,
        chamber: Chamber | None = None,
        settings: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        native: bool | None = None,
        name: str | None = None,
    ) -> None:
        self._family = find_family(family)
        self._url = server_address(self._family, base_url)
        if key is None and self._family.key and base_url is None:
            raise ModelFailure("models.auth", f"{family}:{model}", "it has no key")
        if self._url is None and self._family.package != "boto3":
            raise ModelError("models.bad-setting", f"the family {family!r} needs a base_url")
        self._model = model
        self._options = dict(options or {})
        self._native = native
        parameters = {**(settings or {}), **self._options}
        self.name: Final = name or remote_model_name(family, model, self._url if base_url else None, parameters)
        self.grammars: Final = False
        self.chamber: Final[Chamber | None] = chamber
        self.adapters: Final[Mapping[str, str]] = {}
        self._key = key
        self._settings = dict(settings or {})
        self._temperature_refused = False
        # The requests under way with their event loops, so that `aclose` can end those of its own loop.
        self._waiting: dict[asyncio.Timeout, asyncio.AbstractEventLoop] = {}
        # A connection belongs to the event loop that opened it; weak, so that a closed loop is not kept alive.
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Model[Any], Any]] = WeakKeyDictionary()

    @property
    def credential(self) -> str | None:
        """A fingerprint of its key, from which the key cannot be found."""
        return self._key.fingerprint if self._key is not None else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, chamber={self.chamber!r})"

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The reply; a timeout or a cancellation closes the connection too."""
        began, deadline = perf_counter(), self._checked_deadline(request)

        async def send(model: Model[Any], ask: ModelClassCall) -> Any:
            return await model.request(ask.messages, ask.settings, ask.parameters)  # pyright: ignore[reportArgumentType]

        response, ask = await self._send(request, send, deadline)
        reply = translate_reply(response, request, self.name, perf_counter() - began)
        return self._note_temperature(reply, request, ask)

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """The reply as it is written; leaving the loop early closes the connection."""
        began, deadline = perf_counter(), self._checked_deadline(request)
        shaper, written = StreamShaper(request), 0

        async def send(model: Model[Any], ask: ModelClassCall) -> Any:
            opening = model.request_stream(ask.messages, ask.settings, ask.parameters)  # pyright: ignore[reportArgumentType]
            return opening, await opening.__aenter__()

        (opening, response), ask = await self._send(request, send, deadline)
        try:
            events = aiter(response)
            while (event := await self._await_within(anext(events, None), deadline, request, begun=True)) is not None:
                piece = _event_text(event)
                written += len(piece)
                self._tell_progress(written, perf_counter() - began)
                if text := shaper.feed(piece):
                    yield TextChunk(text)
            reply = translate_reply(response.get(), request, self.name, perf_counter() - began)
            reply = self._note_temperature(reply, request, ask)
        finally:
            await opening.__aexit__(None, None, None)
        if rest := reply.text[len(shaper.sent) :]:
            yield TextChunk(rest)
        for chunk in reply_chunks(reply, text_sent=True):
            yield chunk

    def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """The text of the reply as it is written."""
        return stream_texts(self.chunks(request))

    async def aclose(self) -> None:
        """End the requests of this event loop with `models.cancelled`, and close its connections.

        The provider may be used again.
        """
        loop = asyncio.get_running_loop()
        for timeout in [timeout for timeout, owner in self._waiting.items() if owner is loop]:
            # Removing it first lets `_await_within` tell this from a deadline that has passed.
            del self._waiting[timeout]
            timeout.reschedule(loop.time())
        if (opened := self._opened.pop(loop, None)) is not None and opened[1] is not None:
            # Lets the requests end first: a connection closed under them would look like a broken one.
            await asyncio.sleep(0)
            await opened[1].aclose()

    def _tell_progress(self, written: int, seconds: float) -> None:
        """Tell about how many tokens of the reply have come. What a listener raises is dropped: it changes no reply."""
        if (listener := current_listener()) is not None:
            with suppress(Exception):
                tokens = written // CHARACTERS_PER_TOKEN
                listener(ModelProgress(WRITING, done=tokens, seconds=seconds, model=self.name))

    def _checked_deadline(self, request: ModelRequest) -> float | None:
        """Check a request and return the time by which its reply must be complete."""
        check_request(request)
        if request.grammar is not None:
            raise ModelFailure("models.bad-request", self.name, "it cannot be held to a grammar")
        if request.adapter is not None:
            raise ModelFailure("models.bad-request", self.name, "it has no adapters")
        if request.json_schema is not None:
            check_schema(request.json_schema)
        return None if request.timeout is None else asyncio.get_running_loop().time() + request.timeout

    async def _await_within(
        self, waiting: Awaitable[_T], deadline: float | None, request: ModelRequest, *, begun: bool = False
    ) -> _T:
        """Wait until the deadline at most, and turn an error into a `ModelFailure`.

        The failure is raised outside of the handler: errors of the client libraries hold the request with its key, and
        must not become the context of the failure.
        """
        timeout = asyncio.timeout_at(deadline)
        try:
            async with timeout:
                self._waiting[timeout] = asyncio.get_running_loop()
                return await waiting
        except BicameralError:
            raise
        except Exception as error:
            if timeout not in self._waiting:
                failure = ModelFailure("models.cancelled", self.name)
            elif timeout.expired():
                failure = ModelFailure("models.timeout", self.name, f"it had {request.timeout:g} s")
            else:
                failure = translate_error(error, self.name, self._key, begun=begun)
        finally:
            self._waiting.pop(timeout, None)
        raise failure

    async def _send(
        self, request: ModelRequest, send: Callable[[Model[Any], ModelClassCall], Awaitable[_T]], deadline: float | None
    ) -> tuple[_T, ModelClassCall]:
        """What `send` gives for the request in its form; a server that takes no temperature is asked without one."""
        model, ask = await self._await_within(self._prepare(request), deadline, request)
        try:
            return await self._await_within(send(model, ask), deadline, request), ask
        except ModelFailure as failure:
            if failure.refused_setting != "temperature" or not ask.has_temperature:
                raise
        model, ask = await self._await_within(self._prepare(request, temperature=False), deadline, request)
        response = await self._await_within(send(model, ask), deadline, request)
        # Only now: the word may have stood in a message about something else.
        self._temperature_refused = True
        return response, ask

    def _note_temperature(self, reply: ModelReply, request: ModelRequest, ask: ModelClassCall) -> ModelReply:
        """The reply; one that was asked for at a temperature and written without it says so."""
        # At 0 nothing is said: a model that takes no temperature has its own idea of the likeliest reply.
        if ask.has_temperature or request.temperature == 0:
            return reply
        note = f"{self.name} takes no temperature, so it was asked without the {request.temperature:g} that is set"
        return replace(reply, degraded=f"{note}; {reply.degraded}" if reply.degraded else note)

    async def _prepare(self, request: ModelRequest, *, temperature: bool = True) -> tuple[Model[Any], ModelClassCall]:
        """The model class with the connections of this event loop, and the request in its form."""
        loop = asyncio.get_running_loop()
        if loop not in self._opened:
            # The import takes seconds, and must not block the event loop.
            await asyncio.to_thread(importlib.import_module, "pydantic_ai.models")
        # Checked again: another task may have opened it during the import.
        if loop not in self._opened:
            self._opened[loop] = self._open()
        model = self._opened[loop][0]
        temperature = temperature and not self._temperature_refused
        return model, translate_request(request, model, self._settings, native=self._native, temperature=temperature)

    def _open(self) -> tuple[Model[Any], Any]:
        http: Any = None
        if self._family.package != "boto3" and self._url is not None:
            extra = self._settings.get("extra_headers", {})
            http = open_client(self._key, self._url, legacy=self._family.package == "groq", extra=extra)
        profile = {} if self._native is None else {"supports_json_schema_output": self._native}
        return build_model(self._family, self._model, self._key, self._url, http, self._options, profile), http


def _event_text(event: Any) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""

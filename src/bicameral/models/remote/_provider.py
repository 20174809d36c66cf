"""Providers over a network: name, key, chamber and deadline of each, and the one that speaks through pydantic-ai."""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from bicameral.errors import BicameralError, ModelError
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
from bicameral.models.remote._servers import Key, build_model, find_family, server_address

if TYPE_CHECKING:
    from pydantic_ai.models import Model


_T = TypeVar("_T")


class NetworkProvider(ABC):
    """Asks a model over a network. How it asks, and what goes wrong with that, is up to those who derive from it."""

    def __init__(
        self, name: str, *, key: Key | None, chamber: Chamber | None, settings: Mapping[str, Any] | None
    ) -> None:
        self._name = name
        self._key = key
        self._chamber: Chamber | None = chamber
        self._settings = dict(settings or {})
        self._waiting: dict[asyncio.Timeout, asyncio.AbstractEventLoop] = {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def grammars(self) -> bool:
        return False

    @property
    def chamber(self) -> Chamber | None:
        return self._chamber

    @property
    def credential(self) -> str | None:
        """What tells its key from others, and nothing about it."""
        return self._key.fingerprint if self._key is not None else None

    @property
    def adapters(self) -> Mapping[str, str]:
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, chamber={self._chamber!r})"

    @abstractmethod
    async def generate(self, request: ModelRequest) -> ModelReply:
        """The reply; a timeout or a cancellation closes the connection too."""

    @abstractmethod
    def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """The reply as it is written; leaving the loop early closes the connection."""

    @abstractmethod
    def _failure(self, error: Exception, *, begun: bool) -> ModelFailure:
        """What an error of the client library means; `begun` if a part of the reply had come already."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """Only the text of it."""
        return stream_texts(self.chunks(request))

    async def aclose(self) -> None:
        """Whoever waits for a reply on this event loop is told that there will be none. May be used again."""
        loop = asyncio.get_running_loop()
        for bound in [bound for bound, its in self._waiting.items() if its is loop]:
            del self._waiting[bound]
            bound.reschedule(loop.time())

    def _checked_deadline(self, request: ModelRequest) -> float | None:
        """When the reply has to be there; a request that no model over a network can serve is refused."""
        check_request(request)
        if request.grammar is not None:
            raise ModelFailure("models.bad-request", self._name, "it cannot be held to a grammar")
        if request.adapter is not None:
            raise ModelFailure("models.bad-request", self._name, "it has no adapters")
        if request.json_schema is not None:
            check_schema(request.json_schema)
        return None if request.timeout is None else asyncio.get_running_loop().time() + request.timeout

    async def _await_within(
        self, waiting: Awaitable[_T], deadline: float | None, request: ModelRequest, *, begun: bool = False
    ) -> _T:
        """Wait no longer than until the deadline, and turn what is raised into a failure.

        The failure is raised outside of the handler: what the client libraries raise holds the request with its key,
        and must not hang on to it.
        """
        bound = asyncio.timeout_at(deadline)
        try:
            async with bound:
                self._waiting[bound] = asyncio.get_running_loop()
                return await waiting
        except BicameralError:
            raise
        except Exception as error:
            if bound not in self._waiting:
                failure = ModelFailure("models.cancelled", self._name)
            elif bound.expired():
                failure = ModelFailure("models.timeout", self._name, f"it had {request.timeout:g} s")
            else:
                failure = self._failure(error, begun=begun)
        finally:
            self._waiting.pop(bound, None)
        raise failure


def needs_whole_reply(request: ModelRequest) -> bool:
    """Whether a text is told only once all of it is there: one that was asked for in a shape, or to continue a
    beginning. It is not known before its end whether it fits."""
    return request.json_schema is not None or bool(request.prefill or request.stop)


def remote_model_name(family: str, model: str, url: str | None, parameters: Mapping[str, Any]) -> str:
    """What a model is called: caches are keyed by it, so it says all that a reply depends on, and prices are found.

    Of the address it says the server and the path: whatever else is in one might be a secret.
    """
    name = f"{family}:{model}"
    if url is not None:
        parts = urlsplit(url)
        name += f"@{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"
    if parameters:
        said = json.dumps(parameters, sort_keys=True, default=str)
        name += f"#{hashlib.sha256(said.encode()).hexdigest()[:8]}"
    return name


class RemoteProvider(NetworkProvider):
    """Asks a model of one family with one key. Nothing is imported or sent before the first request.

    `key` and `base_url` are what is used, and nothing from the environment. `settings` go with every request (`top_p`,
    `extra_headers` and such); `options` set the family up (`api_version` for azure, `region_name` for bedrock).
    `native` says whether the server itself holds replies to a JSON Schema; by default pydantic-ai knows. Either way a
    reply that does not fit is refused. It answers on any event loop, each with connections of its own.

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
        said = {**(settings or {}), **self._options}
        name = name or remote_model_name(family, model, self._url if base_url else None, said)
        super().__init__(name, key=key, chamber=chamber, settings=settings)
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Model[Any], Any]] = WeakKeyDictionary()

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The reply; a timeout or a cancellation closes the connection too."""
        from bicameral.models.remote._translation import translate_reply, translate_request

        began, deadline = perf_counter(), self._checked_deadline(request)
        model = await self._await_within(self._model_of_loop(), deadline, request)
        ask = translate_request(request, model, self._settings, native=self._native)
        response = await self._await_within(
            model.request(ask.messages, ask.settings, ask.parameters),  # pyright: ignore[reportArgumentType]
            deadline,
            request,
        )
        return translate_reply(response, request, self._name, perf_counter() - began)

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """The reply as it is written; leaving the loop early closes the connection."""
        from bicameral.models.remote._translation import translate_reply, translate_request

        began, deadline = perf_counter(), self._checked_deadline(request)
        model = await self._await_within(self._model_of_loop(), deadline, request)
        ask = translate_request(request, model, self._settings, native=self._native)
        held = needs_whole_reply(request)
        opening = model.request_stream(ask.messages, ask.settings, ask.parameters)  # pyright: ignore[reportArgumentType]
        async with self._open_stream(opening, deadline, request) as response:
            events = aiter(response)
            while (event := await self._await_within(anext(events, None), deadline, request, begun=True)) is not None:
                if not held and (text := _event_text(event)):
                    yield TextChunk(text)
            reply = translate_reply(response.get(), request, self._name, perf_counter() - began)
        for chunk in reply_chunks(reply, told=not held):
            yield chunk

    async def aclose(self) -> None:
        """Close the connections of this event loop; whoever waits for a reply is told. May be used again."""
        await super().aclose()
        loop = asyncio.get_running_loop()
        if (opened := self._opened.pop(loop, None)) is not None and opened[1] is not None:
            # They give up one by one; a connection that is closed under them would look like a broken one.
            await asyncio.sleep(0)
            await opened[1].aclose()

    def _failure(self, error: Exception, *, begun: bool) -> ModelFailure:
        from bicameral.models.remote._translation import translate_error

        return translate_error(error, self._name, self._key, begun=begun)

    @asynccontextmanager
    async def _open_stream(
        self, opening: Any, deadline: float | None, request: ModelRequest
    ) -> AsyncGenerator[Any, None]:
        response = await self._await_within(opening.__aenter__(), deadline, request)
        try:
            yield response
        finally:
            await opening.__aexit__(None, None, None)

    async def _model_of_loop(self) -> Model[Any]:
        """The model class, on connections of this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._opened:
            # Importing it takes seconds, which other tasks may use.
            await asyncio.to_thread(_import_pydantic_ai)
        if loop not in self._opened:
            self._opened[loop] = self._open()
        return self._opened[loop][0]

    def _open(self) -> tuple[Model[Any], Any]:
        from bicameral.models.remote._servers import open_client

        http: Any = None
        if self._family.package != "boto3" and self._url is not None:
            extra = self._settings.get("extra_headers", {})
            http = open_client(self._key, self._url, legacy=self._family.package == "groq", extra=extra)
        profile = {} if self._native is None else {"supports_json_schema_output": self._native}
        return build_model(self._family, self._model, self._key, self._url, http, self._options, profile), http


def _import_pydantic_ai() -> None:
    import pydantic_ai.models  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _event_text(event: Any) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""

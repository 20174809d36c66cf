"""A model over the network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from bicameral.errors import ModelError
from bicameral.models._chunks import Chunk, TextChunk, whole
from bicameral.models._failures import ModelFailure
from bicameral.models._keys import Key
from bicameral.models._protocol import Chamber, ModelReply, ModelRequest
from bicameral.models.remote._families import address, build, find_family
from bicameral.models.remote._network import NetworkProvider, comes_whole, name_of

if TYPE_CHECKING:
    from pydantic_ai.models import Model


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
        self._url = address(self._family, base_url)
        if key is None and self._family.key and base_url is None:
            raise ModelFailure("models.auth", f"{family}:{model}", "it has no key")
        if self._url is None and self._family.package != "boto3":
            raise ModelError("models.bad-setting", f"the family {family!r} needs a base_url")
        self._model = model
        self._options = dict(options or {})
        self._native = native
        said = {**(settings or {}), **self._options}
        name = name or name_of(family, model, self._url if base_url else None, said)
        super().__init__(name, key=key, chamber=chamber, settings=settings)
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Model[Any], Any]] = WeakKeyDictionary()

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The reply; a timeout or a cancellation closes the connection too."""
        from bicameral.models.remote._messages import asked, reply_of

        began, deadline = perf_counter(), self._deadline(request)
        model = await self._bounded(self._ready(), deadline, request)
        ask = asked(request, model, self._settings, native=self._native)
        response = await self._bounded(
            model.request(ask.messages, ask.settings, ask.parameters),  # pyright: ignore[reportArgumentType]
            deadline,
            request,
        )
        return reply_of(response, request, self._name, perf_counter() - began)

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The reply as it is written; leaving the loop early closes the connection."""
        from bicameral.models.remote._messages import asked, reply_of

        began, deadline = perf_counter(), self._deadline(request)
        model = await self._bounded(self._ready(), deadline, request)
        ask = asked(request, model, self._settings, native=self._native)
        held = comes_whole(request)
        opening = model.request_stream(ask.messages, ask.settings, ask.parameters)  # pyright: ignore[reportArgumentType]
        async with self._entered(opening, deadline, request) as response:
            events = aiter(response)
            while (event := await self._bounded(anext(events, None), deadline, request, begun=True)) is not None:
                if not held and (text := _text_of(event)):
                    yield TextChunk(text)
            reply = reply_of(response.get(), request, self._name, perf_counter() - began)
        for chunk in whole(reply, told=not held):
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
        from bicameral.models.remote._errors import failure_of

        return failure_of(error, self._name, self._key, begun=begun)

    @asynccontextmanager
    async def _entered(self, opening: Any, deadline: float | None, request: ModelRequest) -> AsyncGenerator[Any, None]:
        response = await self._bounded(opening.__aenter__(), deadline, request)
        try:
            yield response
        finally:
            await opening.__aexit__(None, None, None)

    async def _ready(self) -> Model[Any]:
        """The model class, on connections of this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._opened:
            # Importing it takes seconds, which other tasks may use.
            await asyncio.to_thread(_import)
        if loop not in self._opened:
            self._opened[loop] = self._open()
        return self._opened[loop][0]

    def _open(self) -> tuple[Model[Any], Any]:
        from bicameral.models.remote._http import open_client

        http: Any = None
        if self._family.package != "boto3" and self._url is not None:
            extra = self._settings.get("extra_headers", {})
            http = open_client(self._key, self._url, legacy=self._family.package == "groq", extra=extra)
        profile = {} if self._native is None else {"supports_json_schema_output": self._native}
        return build(self._family, self._model, self._key, self._url, http, self._options, profile), http


def _import() -> None:
    import pydantic_ai.models  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _text_of(event: Any) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""

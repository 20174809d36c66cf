"""What every model over a network has, whoever speaks to its server: a name, a key, a chamber, and a deadline."""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bicameral.errors import BicameralError
from bicameral.models._chunks import Chunk, texts_of
from bicameral.models._failures import ModelFailure
from bicameral.models._keys import Key
from bicameral.models._protocol import Chamber, ModelReply, ModelRequest
from bicameral.models._request import check_request
from bicameral.models._schema import check_schema

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
    def chunks(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The reply as it is written; leaving the loop early closes the connection."""

    @abstractmethod
    def _failure(self, error: Exception, *, begun: bool) -> ModelFailure:
        """What an error of the client library means; `begun` if a part of the reply had come already."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """Only the text of it."""
        return texts_of(self.chunks(request))

    async def aclose(self) -> None:
        """Whoever waits for a reply on this event loop is told that there will be none. May be used again."""
        loop = asyncio.get_running_loop()
        for bound in [bound for bound, its in self._waiting.items() if its is loop]:
            del self._waiting[bound]
            bound.reschedule(loop.time())

    def _deadline(self, request: ModelRequest) -> float | None:
        """When the reply has to be there; a request that no model over a network can serve is refused."""
        check_request(request)
        if request.grammar is not None:
            raise ModelFailure("models.bad-request", self._name, "it cannot be held to a grammar")
        if request.adapter is not None:
            raise ModelFailure("models.bad-request", self._name, "it has no adapters")
        if request.json_schema is not None:
            check_schema(request.json_schema)
        return None if request.timeout is None else asyncio.get_running_loop().time() + request.timeout

    async def _bounded(
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


def comes_whole(request: ModelRequest) -> bool:
    """Whether a text is told only once all of it is there: one that was asked for in a shape, or to continue a
    beginning. It is not known before its end whether it fits."""
    return request.json_schema is not None or bool(request.prefill or request.stop)


def name_of(family: str, model: str, url: str | None, parameters: Mapping[str, Any]) -> str:
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

"""Reply cache: the same request to the same model is not paid for twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Callable, MutableMapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

from bicameral.limits import Charge, PendingCall, current_accounts
from bicameral.models import EndChunk, ModelReply, ModelRequest, Provider, ReplyToken, ToolCall, Usage
from bicameral.routing._context import current_context
from bicameral.routing._wrapper import ProviderWrapper, StreamStarter, closing_stream, reply_pieces

T = TypeVar("T")

_ENTRY_VERSION = 1
"""Part of the key: it is increased when the format changes, so that old entries are not found."""


def _unchanged_request(request: ModelRequest) -> ModelRequest:
    return request


class CachedProvider(ProviderWrapper):
    """A model whose replies are cached; the key is the whole request and the exact name of the model.

    Only reproducible replies are stored: at temperature 0 and not degraded; never an error, and so never a refusal. The
    two chambers do not share entries. A cached reply costs nothing.

    Args:
        cache: Any mapping of texts, such as a `FolderCache`; an entry that cannot be read counts as missing.
        given: How the provider changes a request before the model receives it, since the reply depends on that.

    Example:
        >>> CachedProvider(provider, FolderCache(folder))
    """

    def __init__(
        self,
        provider: Provider,
        cache: MutableMapping[str, str],
        *,
        given: Callable[[ModelRequest], ModelRequest] = _unchanged_request,
    ) -> None:
        super().__init__([provider])
        self._cache = cache
        self._given = given

    async def generate(self, request: ModelRequest) -> ModelReply:
        key, cached = self._find(request)
        if cached is not None:
            return cached
        reply = await self._providers[0].generate(request)
        self._store(key, reply)
        return reply

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        """A cached reply at once; another one as it is generated, and stored when it is complete."""
        key, cached = self._find(request)
        if cached is not None:
            for piece in reply_pieces(cached, start):
                yield piece
            return
        async with closing_stream(start(self._providers[0], request)) as live:
            async for piece in live:
                if isinstance(piece, EndChunk):
                    self._store(key, piece.reply)
                yield piece

    def _find(self, request: ModelRequest) -> tuple[str | None, ModelReply | None]:
        """The cache key of a request and its cached reply, which is reported to the accounts."""
        key = self._key(request)
        cached = None if key is None else _reply_from_json(self._cache.get(key))
        if cached is not None:
            _report_cache_hit(self.name)
        return key, cached

    def _store(self, key: str | None, reply: ModelReply) -> None:
        # A degraded reply is not stored: the next call may get what was requested.
        if key is not None and reply.degraded is None:
            self._cache[key] = _reply_to_json(reply)

    def _key(self, request: ModelRequest) -> str | None:
        """The cache key of a request; None if the reply is random."""
        request = self._given(request)
        if request.temperature > 0:
            return None
        content = asdict(request)
        # The timeout does not change the reply.
        del content["timeout"]
        trained = None if request.adapter is None else self.adapters.get(request.adapter)
        parts = ["reply", _ENTRY_VERSION, self.name, self.chamber, trained, content]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _report_cache_hit(model: str) -> None:
    """Report the reply to the accounts as a call that was not made and cost nothing."""
    here = current_context()
    asked = PendingCall(model, here.role, 0, has_price=True, is_real=False)
    charge = Charge(model, Usage(), 0.0, 0.0, "remembered", here.role, here.phase)
    for account in current_accounts():
        account.end(asked, charge)


def _reply_to_json(reply: ModelReply) -> str:
    kept = replace(reply, usage=Usage(), seconds=0.0, route=None)
    return json.dumps(asdict(kept), ensure_ascii=True)


def _reply_from_json(text: str | None) -> ModelReply | None:
    if text is None:
        return None
    try:
        facts: dict[str, Any] = json.loads(text)
        facts["usage"] = Usage()
        facts["calls"] = tuple(ToolCall(**call) for call in facts["calls"])
        facts["confidence"] = tuple(ReplyToken(**token) for token in facts["confidence"])
        reply = ModelReply(**facts)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return reply if type(reply.text) is str and reply.finish in ("stop", "length", "calls") else None

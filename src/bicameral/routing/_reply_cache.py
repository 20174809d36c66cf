"""Reply cache: the same request to the same model is not paid for twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Callable, MutableMapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

from bicameral.limits import Charge, PendingCall, current_accounts
from bicameral.models import (
    EndChunk,
    ModelReply,
    ModelRequest,
    Provider,
    ReplyToken,
    ToolCall,
    Usage,
    reply_chunks,
    stream_chunks,
)
from bicameral.routing._context import current_context
from bicameral.routing._wrapper import ProviderWrapper, StreamStarter, close_stream

T = TypeVar("T")

_ENTRY_VERSION = 1
"""Counts up whenever an entry would be read differently, so that old ones are not read at all."""


def _unchanged_request(request: ModelRequest) -> ModelRequest:
    return request


class CachedProvider(ProviderWrapper):
    """A model whose replies are kept, by everything in the request and the exact name of the model.

    Only what would be the same again is kept: replies at temperature 0 that are not degraded; never an error, and so
    never a refusal. The two chambers do not share entries. A kept reply costs nothing. `cache` is any mapping of texts,
    such as a `FolderCache`; an entry that cannot be read is none. `given` is how the provider changes a request before
    the model gets it, since that is what the reply depends on.

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
        key = self._key(request)
        kept = None if key is None else _reply_from_json(self._cache.get(key))
        if kept is not None:
            _report_cache_hit(self.name)
            return kept
        reply = await self._providers[0].generate(request)
        if key is not None and reply.degraded is None:
            self._cache[key] = _reply_to_json(reply)
        return reply

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        """What is kept comes at once; what is not is kept when it has come whole."""
        key = self._key(request)
        kept = None if key is None else _reply_from_json(self._cache.get(key))
        if kept is not None:
            _report_cache_hit(self.name)
            pieces: Any = reply_chunks(kept) if start is stream_chunks else [kept.text] if kept.text else []
            for piece in pieces:
                yield piece
            return
        live = start(self._providers[0], request)
        try:
            async for piece in live:
                if isinstance(piece, EndChunk) and key is not None and piece.reply.degraded is None:
                    self._cache[key] = _reply_to_json(piece.reply)
                yield piece
        finally:
            await close_stream(live)

    def _key(self, request: ModelRequest) -> str | None:
        """What a reply depends on; None if it also depends on chance."""
        request = self._given(request)
        if request.temperature > 0:
            return None
        content = asdict(request)
        # How long one is ready to wait changes nothing about a reply that came.
        del content["timeout"]
        trained = None if request.adapter is None else self.adapters.get(request.adapter)
        parts = ["reply", _ENTRY_VERSION, self.name, self.chamber, trained, content]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _report_cache_hit(model: str) -> None:
    """A call that was not made is told too: nothing was begun, and it cost nothing."""
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

"""How one request is answered: well, or with its fault."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from benchmarks.faulty._faults import Fault
from benchmarks.faulty._http import Answer
from benchmarks.faulty._openai import Wanted, breaking, chunk, completion, deltas, error_json, finish_of, usage_json
from bicameral.models import (
    CallChunk,
    EndChunk,
    ModelReply,
    Provider,
    StreamingProvider,
    TextChunk,
    ToolCall,
    Usage,
    UsageChunk,
)

_T = TypeVar("_T")
_PIECE = 12
_CHARACTERS_PER_TOKEN = 4

_REFUSED_BY_STATUS: dict[str, tuple[int, dict[str, Any]]] = {
    "rate-limited": (429, error_json("Rate limit reached", "requests", "rate_limit_exceeded")),
    "error": (500, error_json("The server had an error while processing your request", "server_error")),
    "unavailable": (503, error_json("The engine is currently overloaded", "server_error")),
    "unauthorized": (401, error_json("Incorrect API key provided", "invalid_request_error", "invalid_api_key")),
    "policy": (400, error_json("Your request was rejected", "invalid_request_error", "content_policy_violation")),
}


@dataclass(slots=True)
class Answering:
    """One request on its way to its answer; `pieces` counts what a stream has sent so far."""

    id: str
    wanted: Wanted
    provider: Provider
    answer: Answer
    fault: Fault | None
    hold: float
    reply: ModelReply | None = None
    pieces: int = 0

    async def run(self) -> bool:
        """Write the answer; True says that it arrived whole and right."""
        fault = self.fault
        if fault is not None and fault.kind in _REFUSED_BY_STATUS:
            status, body = _REFUSED_BY_STATUS[fault.kind]
            await self.answer.whole(status, body, _retry_after(fault))
            return False
        if fault is not None and fault.kind == "silent":
            await asyncio.sleep(self.hold)
            self.answer.cut()
            return False
        if self.wanted.stream:
            return await self._stream(fault)
        return await self._whole(fault)

    async def _whole(self, fault: Fault | None) -> bool:
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        reply = await self._replied()
        right = self._completion(reply)
        match fault.kind if fault else None:
            case None | "slow" | "unfinished":
                await self.answer.whole(200, right)
                return True
            case "truncated":
                body = json.dumps(right).encode()
                await self.answer.raw(200, body, cut=len(body) // 2)
            case "malformed":
                await self.answer.raw(200, json.dumps(right).encode()[:-20])
            case "wrong-shape":
                await self.answer.whole(200, {"object": "list", "data": []})
            case "wrong-schema":
                await self.answer.whole(200, self._completion(self._wrong(reply)))
            case "filtered":
                await self.answer.whole(200, self._completion(replace(reply, text=""), "content_filter"))
            case _:
                self.answer.reset()
        return False

    async def _replied(self) -> ModelReply:
        self.reply = self.reply or await self.provider.generate(self.wanted.request)
        return self.reply

    def _wrong(self, reply: ModelReply) -> ModelReply:
        return replace(reply, text=breaking(self.wanted.request.json_schema), calls=())

    def _completion(self, reply: ModelReply, finish: str | None = None) -> dict[str, Any]:
        return completion(self.id, int(time.time()), self.wanted.model, reply, finish=finish)

    async def _stream(self, fault: Fault | None) -> bool:
        await self.answer.begin()
        await self._say({"role": "assistant", "content": ""})
        kind = fault.kind if fault else None
        async for delta in self._deltas(kind):
            if fault is not None and await self._broken_at(fault):
                return False
            await self._say(delta)
            self.pieces += 1
        if fault is not None and kind in ("truncated", "unfinished", "malformed", "wrong-shape", "reset"):
            return not await self._broken_at(replace(fault, after=0))
        await self._finish("content_filter" if kind == "filtered" else finish_of(await self._replied()))
        return kind in (None, "slow")

    async def _broken_at(self, fault: Fault) -> bool:
        """Let the stream go wrong here if this is where it should; a slow one only waits."""
        if fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
            return False
        if self.pieces < fault.after:
            return False
        match fault.kind:
            case "truncated":
                self.answer.cut()
            case "reset":
                self.answer.reset()
            case "unfinished":
                await self.answer.end()
            case "malformed":
                await self.answer.piece('{"id": "' + self.id + '", "object": "chat.completion.chu')
                await self._done()
            case "wrong-shape":
                await self.answer.piece('{"object": "list", "data": [], "choices": 7}')
                await self._done()
            case "filtered":
                await self._finish("content_filter")
            case _:
                return False
        return True

    async def _deltas(self, kind: str | None) -> AsyncIterator[dict[str, Any]]:
        """The pieces as the model writes them; from the whole reply where it is known, or where only that has calls."""
        if kind == "wrong-schema":
            self.reply = self._wrong(await self._replied())
        if self.reply is None and isinstance(self.provider, StreamingProvider):
            async for delta in self._written(self.provider):
                yield delta
            return
        if self.reply is not None or self.wanted.request.tools:
            for delta in deltas(await self._replied()):
                yield delta
            return
        said: list[str] = []
        async with _closing(self.provider.stream(self.wanted.request)) as texts:
            async for text in texts:
                said.append(text)
                for at in range(0, len(text), _PIECE):
                    yield {"content": text[at : at + _PIECE]}
        self.reply = ModelReply("".join(said), usage=self._estimate("".join(said)))

    async def _written(self, provider: StreamingProvider) -> AsyncIterator[dict[str, Any]]:
        calls: list[ToolCall] = []
        async with _closing(provider.chunks(self.wanted.request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextChunk(text=text):
                        yield {"content": text}
                    case CallChunk(call=call):
                        calls.append(call)
                    case EndChunk(reply=reply):
                        self.reply = reply
                    case UsageChunk():
                        pass  # the end has it as well
        for delta in deltas(ModelReply("", calls=tuple(calls))):
            yield delta

    def _estimate(self, text: str) -> Usage:
        """A provider's stream does not say what it cost; a quarter of the characters comes near."""
        prompt = "\n".join([message.text for message in self.wanted.request.messages] + [""])
        return Usage(prompt=len(prompt) // _CHARACTERS_PER_TOKEN, output=len(text) // _CHARACTERS_PER_TOKEN)

    async def _say(self, delta: dict[str, Any], finish: str | None = None) -> None:
        await self.answer.piece(
            json.dumps(chunk(self.id, int(time.time()), self.wanted.model, delta, finish), ensure_ascii=False)
        )

    async def _finish(self, finish: str) -> None:
        await self._say({}, finish)
        if self.wanted.usage:
            reply = await self._replied() if finish != "content_filter" else ModelReply("")
            last = chunk(self.id, int(time.time()), self.wanted.model, {})
            await self.answer.piece(json.dumps({**last, "choices": [], "usage": usage_json(reply.usage)}))
        await self._done()

    async def _done(self) -> None:
        await self.answer.piece("[DONE]")
        await self.answer.end()


@asynccontextmanager
async def _closing(pieces: AsyncIterator[_T]) -> AsyncGenerator[AsyncIterator[_T]]:
    """What is being written, stopped when nobody reads on."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


def _retry_after(fault: Fault) -> dict[str, str]:
    """Whole seconds, as HTTP has it, and beside it the exact wait, as OpenAI sends it."""
    if fault.kind not in ("rate-limited", "unavailable"):
        return {}
    return {"Retry-After": str(math.ceil(fault.seconds)), "retry-after-ms": f"{fault.seconds * 1000:g}"}

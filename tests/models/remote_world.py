"""A real HTTP server on loopback that says exactly what a test wants said, and remembers what it was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from bicameral.models import Key, Message, ModelRequest, RemoteProvider, ToolSchema

KEY = "sk-test-0123456789abcdefghij"
OTHER_KEY = "sk-other-zyxwvutsrqponmlkjihg"
WEATHER = ToolSchema(
    "weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
)


@dataclass(frozen=True)
class Seen:
    """One request as it came over the wire."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes


@dataclass(frozen=True)
class Said:
    """One response."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)

    def wire(self) -> bytes:
        head = [f"HTTP/1.1 {self.status} X", *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join([*head, f"content-length: {len(self.body)}", "", ""]).encode() + self.body


Answer: TypeAlias = Said | Callable[[asyncio.StreamWriter], Awaitable[None]]


class Loopback:
    """Answers in order, the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.seen: list[Seen] = []
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:-2])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.seen.append(Seen(lines[0].split(" ")[1], headers, json.loads(body or b"{}"), head + body))
                self.asked.set()
                await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.left.set()
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Said):
            writer.write(answer.wire())
            await writer.drain()
            return
        # Whoever goes away in the middle is noticed, though nothing is written to him.
        telling = asyncio.ensure_future(answer(writer))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            done, _ = await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving in done:
                raise ConnectionError
            await telling
        finally:
            telling.cancel()
            leaving.cancel()
            await asyncio.gather(telling, leaving, return_exceptions=True)


def completion(
    text: str | None = "Hello.",
    *,
    calls: list[dict[str, Any]] | None = None,
    finish: str | None = "stop",
    refusal: str | None = None,
    usage: dict[str, Any] | None = None,
) -> Said:
    """A whole reply in OpenAI's words."""
    told = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return as_json(
        {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": told if usage is None else usage or None,
        }
    )


def called(name: str = "weather", arguments: str = '{"city": "Oslo"}', call_id: str = "c-1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def as_json(body: Any, status: int = 200, **headers: str) -> Said:
    named = (
        ("content-type", "application/json"),
        *((name.replace("_", "-"), value) for name, value in headers.items()),
    )
    return Said(json.dumps(body).encode(), status, named)


def error(status: int, message: str = "no", code: str | None = None, **headers: str) -> Said:
    return as_json({"error": {"message": message, "type": "e", "code": code}}, status, **headers)


def piece(delta: dict[str, Any], finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
    chunk: dict[str, Any] = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}] if usage is None else [],
        "usage": usage,
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


USAGE = piece({}, usage={"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
DONE = b"data: [DONE]\n\n"


def streamed(*pieces: bytes, end: bool = True, pause: float = 0.0) -> Answer:
    """A stream of events; without `end` the connection is closed in its midst."""

    async def tell(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for each in pieces:
            writer.write(f"{len(each):x}\r\n".encode() + each + b"\r\n")
            await writer.drain()
            await asyncio.sleep(pause)
        if end:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        else:
            writer.close()
            await writer.wait_closed()
            raise ConnectionError

    return tell


async def silent(_: asyncio.StreamWriter) -> None:
    """Takes the request and never says anything."""
    await asyncio.sleep(60)


def ask(text: str = "Hi.", **more: Any) -> ModelRequest:
    return ModelRequest((Message("user", text),), **more)


def remote(server: Loopback, *, key: str | None = KEY, **more: Any) -> RemoteProvider:
    return RemoteProvider("openai", "m", key=Key(key) if key else None, base_url=server.url, **more)

"""As much of HTTP/1.1 as a model server needs: requests with a body, answers whole or in chunks, ways to break off."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 16 * 1024 * 1024


class BadHttp(Exception):
    """What came in is not an HTTP request that this server reads; the connection is answered and closed."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, its header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """The next request of a connection, or None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise BadHttp(431, "the request's head is too long") from None
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        raise BadHttp(400, f"not a request line: {first[:80]!r}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    try:
        body = await _body(reader, headers)
    except asyncio.IncompleteReadError:
        return None
    return HttpRequest(words[0], words[1].partition("?")[0], headers, body)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunks(reader)
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        raise BadHttp(400, "Content-Length is not a number")
    if int(length) > MOST_BODY_BYTES:
        raise BadHttp(413, "the body is too large")
    return await reader.readexactly(int(length))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        size = (await reader.readuntil(b"\r\n")).partition(b";")[0].strip()
        try:
            length = int(size, 16)
        except ValueError:
            raise BadHttp(400, "a chunk's size is not a number") from None
        if length < 0 or len(body) + length > MOST_BODY_BYTES:
            raise BadHttp(413, "the body is too large")
        body += (await reader.readexactly(length + 2))[:-2]
        if length == 0:
            return bytes(body)


class Answer:
    """Where one answer is written: `whole` at once, or `begin`, `piece`… and `end`."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.status = 0
        self.broken = False
        """Whether the connection is of no more use after this answer."""

    async def whole(self, status: int, value: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        """A JSON body with its length."""
        await self.raw(status, json.dumps(value, ensure_ascii=False).encode(), headers)

    async def raw(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, cut: int | None = None
    ) -> None:
        """These bytes as a body; with `cut` only so many of them follow the head that promises them all."""
        self._head(status, {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})})
        self._writer.write(body if cut is None else body[:cut])
        await self._writer.drain()
        if cut is not None:
            self.broken = True

    async def begin(self) -> None:
        """The head of a stream of events."""
        self._head(
            200, {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Transfer-Encoding": "chunked"}
        )
        await self._writer.drain()

    async def piece(self, text: str) -> None:
        """One event, on the wire at once."""
        line = f"data: {text}\n\n".encode()
        self._writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        await self._writer.drain()

    async def end(self) -> None:
        """The stream's end in good order."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        """End the connection here, in the middle of the answer."""
        self.broken = True

    def reset(self) -> None:
        """Drop the connection with a TCP reset; what was written and not yet sent is lost."""
        self.broken = True
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

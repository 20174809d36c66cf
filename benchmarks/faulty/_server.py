"""The server: connections, whose turn it is, and the record of every exchange."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Literal, Self

from benchmarks.faulty._answering import Answering
from benchmarks.faulty._faults import Asked, Faults, Kind, no_faults
from benchmarks.faulty._http import MOST_HEAD_BYTES, Answer, BadHttp, HttpRequest, read_request
from benchmarks.faulty._openai import BadRequest, Wanted, error_json, read_wanted
from bicameral.errors import ModelError
from bicameral.models import ModelReply, Provider

Outcome = Literal["answered", "replayed", "faulted", "left", "rejected"]
"""Answered whole and right (`replayed`: from memory, for a call that was answered before), gone wrong on purpose, the
client went away before the end, or a request that no server would answer."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what became of it. `key` identifies the call; a repeated call has a higher `attempt`."""

    number: int
    key: str
    attempt: int
    model: str
    stream: bool
    fault: Kind | None
    outcome: Outcome
    status: int
    pieces: int
    seconds: float


class Server:
    """Serves one provider under any model name, or several by name, at `url`, from `async with` on until its end.

    A call is identified by the header `Idempotency-Key` or `X-Client-Request-Id`, else by what it asks. With an
    `Idempotency-Key`, a call that was answered is not asked of the provider again: it gets the same answer.
    """

    def __init__(
        self,
        provider: Provider | Mapping[str, Provider],
        faults: Faults = no_faults,
        *,
        api_key: str | None = None,
        hold: float = 30.0,
    ) -> None:
        self._providers = provider
        self._faults = faults
        self._api_key = api_key
        self._hold = hold
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._attempts: Counter[str] = Counter()
        self._remembered: dict[str, ModelReply] = {}
        self._asked = 0
        self.exchanges: list[Exchange] = []
        self.open_connections = 0
        self.most_in_flight = 0
        self._in_flight = 0

    @property
    def url(self) -> str:
        """The base address that an OpenAI client takes."""
        if self._server is None:
            raise RuntimeError("the server is not running: use it with `async with`")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    @property
    def answers(self) -> Counter[str]:
        """How often each call was answered whole and right."""
        return Counter(each.key for each in self.exchanges if each.outcome in ("answered", "replayed"))

    @property
    def duplicated(self) -> int:
        """How many answers were given beyond the first of their call."""
        return sum(count - 1 for count in self.answers.values())

    @property
    def unanswered(self) -> int:
        """How many calls came and never got their answer."""
        return len({each.key for each in self.exchanges if each.outcome != "rejected"} - self.answers.keys())

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None):
        await self.aclose()

    async def start(self, port: int = 0) -> None:
        """Listen on loopback, on a free port unless one is given."""
        self._server = await asyncio.get_running_loop().create_server(self._protocol, "127.0.0.1", port, backlog=1024)

    async def settled(self, seconds: float = 5.0) -> None:
        """Wait until every exchange is over and recorded: a client may have its answer a moment earlier."""
        async with asyncio.timeout(seconds):
            while self._in_flight:  # noqa: ASYNC110 (the requests end by themselves; an event per exchange buys nothing)
                await asyncio.sleep(0.002)

    async def aclose(self) -> None:
        """Stop listening and drop what is open; the record stays readable."""
        if self._server is not None:
            self._server.close()
            for task in list(self._connections):
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            self._server = None

    def _protocol(self) -> asyncio.BaseProtocol:
        left = asyncio.Event()
        reader = asyncio.StreamReader(limit=MOST_HEAD_BYTES)

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._connected(reader, writer, left))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        return _Connection(reader, connected, left)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: asyncio.Event) -> None:
        self.open_connections += 1
        try:
            while not left.is_set():
                answer = Answer(writer)
                try:
                    request = await read_request(reader)
                except BadHttp as bad:
                    await answer.whole(bad.status, error_json(bad.why, "invalid_request_error"))
                    return
                if request is None:
                    return
                await self._respond(request, answer, left)
                if answer.broken or request.headers.get("connection", "").lower() == "close":
                    return
        except ConnectionError:
            pass
        finally:
            self.open_connections -= 1
            writer.close()

    async def _respond(self, request: HttpRequest, answer: Answer, left: asyncio.Event) -> None:
        if self._api_key is not None and request.headers.get("authorization") != f"Bearer {self._api_key}":
            wrong = error_json("Incorrect API key provided", "invalid_request_error", "invalid_api_key")
            return await answer.whole(401, wrong)
        match request.method, request.path:
            case "GET", "/v1/models":
                listed = [
                    {"id": name, "object": "model", "created": 0, "owned_by": "bicameral"} for name in self._names()
                ]
                await answer.whole(200, {"object": "list", "data": listed})
            case "POST", "/v1/chat/completions":
                await self._completion(request, answer, left)
            case _, "/v1/models" | "/v1/chat/completions":
                await answer.whole(405, error_json(f"Not allowed: {request.method}", "invalid_request_error"))
            case _:
                await answer.whole(404, error_json(f"Unknown request URL: {request.path}", "invalid_request_error"))
        return None

    def _names(self) -> list[str]:
        return list(self._providers) if isinstance(self._providers, Mapping) else [self._providers.name]

    async def _completion(self, request: HttpRequest, answer: Answer, left: asyncio.Event) -> None:
        try:
            wanted = read_wanted(request.body)
            provider = self._provider(wanted.model)
        except BadRequest as bad:
            missing = bad.param == "model" and "does not exist" in bad.why
            kind, code = "invalid_request_error", "model_not_found" if missing else None
            return await answer.whole(404 if missing else 400, error_json(bad.why, kind, code, bad.param))
        key, known = _key(request, wanted)
        asked = Asked(key, self._attempts[key], self._asked, wanted.model)
        self._attempts[key] += 1
        self._asked += 1
        fault = self._faults(asked)
        if fault is not None and fault.kind == "wrong-schema" and wanted.request.json_schema is None:
            fault = None  # there is no schema to break
        answering = Answering(f"chatcmpl-{asked.number}", wanted, provider, answer, fault, self._hold)
        answering.reply = self._remembered.get(key) if known else None
        await self._watched(asked, answering, left)
        if known and self.answers[key] and answering.reply is not None:
            self._remembered[key] = answering.reply
        return None

    def _provider(self, model: str) -> Provider:
        if not isinstance(self._providers, Mapping):
            return self._providers
        if model not in self._providers:
            raise BadRequest(f"The model `{model}` does not exist", "model")
        return self._providers[model]

    async def _watched(self, asked: Asked, answering: Answering, left: asyncio.Event) -> None:
        """Answer, and stop answering as soon as the client has gone: the model is then cancelled too."""
        started = time.monotonic()
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        replayed = answering.reply is not None
        outcome: Outcome = "left"
        work = asyncio.ensure_future(self._outcome(answering))
        gone = asyncio.ensure_future(left.wait())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                outcome = work.result()
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)
            self._in_flight -= 1
            self.exchanges.append(
                Exchange(
                    number=asked.number,
                    key=asked.key,
                    attempt=asked.attempt,
                    model=asked.model,
                    stream=answering.wanted.stream,
                    fault=answering.fault.kind if answering.fault else None,
                    outcome="replayed" if replayed and outcome == "answered" else outcome,
                    status=answering.answer.status,
                    pieces=answering.pieces,
                    seconds=time.monotonic() - started,
                )
            )

    async def _outcome(self, answering: Answering) -> Outcome:
        try:
            return "answered" if await answering.run() else "faulted"
        except ConnectionError:
            return "left"
        except ModelError as error:
            if answering.answer.status:  # a stream has begun: there is no other way left to say it
                answering.answer.cut()
            else:
                await answering.answer.whole(500, error_json(str(error), "server_error", error.code))
            return "rejected"


class _Connection(asyncio.StreamReaderProtocol):
    """A connection that says when its client has gone, also while nobody reads."""

    def __init__(self, reader: asyncio.StreamReader, connected: object, left: asyncio.Event) -> None:
        super().__init__(reader, connected)  # pyright: ignore[reportArgumentType] (any callable of reader and writer)
        self._left = left

    def eof_received(self) -> bool | None:
        self._left.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._left.set()
        super().connection_lost(exc)


def _key(request: HttpRequest, wanted: Wanted) -> tuple[str, bool]:
    """What identifies a call, and whether its answer is to be remembered."""
    if sent := request.headers.get("idempotency-key"):
        return sent, True
    if sent := request.headers.get("x-client-request-id"):
        return sent, False
    asked = wanted.request
    content = [[asdict(each) for each in asked.messages], [asdict(each) for each in asked.tools], asked.json_schema]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16], False


@contextmanager
def serving(server: Server) -> Generator[Server]:
    """The same server in a thread of its own, for a caller that has no event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.aclose(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()

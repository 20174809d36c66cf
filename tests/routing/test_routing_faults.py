"""Real sockets, real failures: what each of them comes to with a retry, with a fallback and with a hedge."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from benchmarks.faulty import Fault, Faults, Kind, Server, by_model, in_order
from benchmarks.routing.faults import survive
from bicameral.errors import ModelError
from bicameral.models import (
    Client,
    EndChunk,
    LocalProvider,
    Message,
    ModelReply,
    ModelRequest,
    Provider,
    ScriptedProvider,
    TextChunk,
    UsageChunk,
)
from bicameral.models.remote import RemoteProvider
from bicameral.routing import Alias, Aliases, Fallback, Hedged, Retry, RetrySettings, Router, Selection

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ANSWER = '{"city": "Oslo"}'
ASKED = ModelRequest((Message("user", "Which city?"),), json_schema=SCHEMA, timeout=20.0)
STREAMED = ModelRequest((Message("user", "Which city?"),), timeout=20.0)
PATIENT = RetrySettings(attempts=3, first=0.01, most=0.02, each=20.0)
"""Asks again at once, but gives up on no server that is only slow."""

FAILURES: dict[Kind, set[str]] = {
    "rate-limited": {"models.rate-limited"},
    "error": {"models.unavailable"},
    "unavailable": {"models.unavailable"},
    "silent": {"models.timeout"},
    "truncated": {"models.bad-reply", "models.unavailable"},
    "malformed": {"models.bad-reply"},
    "wrong-shape": {"models.bad-reply"},
    "wrong-schema": {"models.bad-reply"},
    "reset": {"models.bad-reply", "models.unavailable"},
}
PASSING = sorted(FAILURES)
MIDWAY: list[Kind] = ["truncated", "unfinished", "malformed", "wrong-shape", "reset"]
REFUSALS: list[Kind] = ["policy", "filtered"]


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """The first request imports for seconds what the others only use."""
    importlib.import_module("pydantic_ai.models.openai")


@dataclass(frozen=True)
class World:
    """A server, and two models on it."""

    server: Server
    main: RemoteProvider
    spare: RemoteProvider

    async def asked(self, model: str) -> int:
        """How many requests came for a model, once all of them are over."""
        await self.server.settled()
        return sum(1 for each in self.server.exchanges if each.model == model)


@asynccontextmanager
async def world(faults: Faults, provider: Provider | None = None) -> AsyncGenerator[World]:
    async with Server(provider or ScriptedProvider(lambda request: ANSWER), faults) as server:
        main, spare = (RemoteProvider("openai", name, base_url=server.url) for name in ("main", "spare"))
        try:
            yield World(server, main, spare)
        finally:
            await main.aclose()
            await spare.aclose()


def given(kind: Kind, seconds: float = 1.0) -> float:
    """How long an attempt may take: who never answers is waited out quickly, whoever answers has all the time."""
    return seconds if kind == "silent" else 20.0


async def soon(holds: Callable[[], bool]) -> None:
    """Wait until it holds; the other end of a socket learns of things a moment later."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 (what is waited for happens in a socket)
            await asyncio.sleep(0.005)


async def gather(pieces: AsyncIterator[str], got: list[str]) -> None:
    """Read a stream; what came before it broke stays in `got`."""
    async for piece in pieces:
        got.append(piece)


@pytest.mark.parametrize("kind", PASSING)
async def test_a_fault_comes_out_as_the_failure_that_it_is(kind: Kind) -> None:
    async with world(in_order(Fault(kind, 7.0))) as at:
        with pytest.raises(ModelError) as raised:
            await Retry(at.main, RetrySettings(attempts=1, each=given(kind))).generate(ASKED)
        assert raised.value.code in FAILURES[kind]
        assert getattr(raised.value, "retry_after", None) == (7.0 if kind in ("rate-limited", "unavailable") else None)


@pytest.mark.parametrize("kind", PASSING)
async def test_a_retry_outlives_two_faults_and_is_answered_once(kind: Kind) -> None:
    async with world(in_order(Fault(kind), Fault(kind))) as at:
        # The third attempt is answered, and has to be in time for that.
        reply = await Retry(at.main, replace(PATIENT, each=given(kind, 3.0))).generate(ASKED)
        assert reply.text == ANSWER
        assert reply.degraded is None
        assert reply.route is not None
        assert len(reply.route.attempts) == 2
        assert await at.asked("main") == 3
        assert (at.server.unanswered, at.server.duplicated) == (0, 0)


@pytest.mark.parametrize("kind", PASSING)
async def test_a_fallback_answers_for_the_model_that_cannot_and_says_so(kind: Kind) -> None:
    async with world(by_model({"main": Fault(kind)})) as at:
        # Long enough to reach the server, whatever else the machine does.
        chain = Fallback([Retry(at.main, RetrySettings(attempts=1, each=given(kind, 4.0))), at.spare])
        reply = await chain.generate(ASKED)
        assert (reply.text, reply.model) == (ANSWER, at.spare.name)
        assert reply.degraded is not None
        assert at.main.name in reply.degraded
        assert (await at.asked("main"), await at.asked("spare")) == (1, 1)
        assert at.server.duplicated == 0


@pytest.mark.parametrize("kind", [*PASSING, "slow"])
async def test_a_hedge_takes_the_answer_of_the_model_that_is_well(kind: Kind) -> None:
    async with world(by_model({"main": Fault(kind, 30.0)})) as at:
        began = time.monotonic()
        reply = await Hedged(at.main, after=0.0, second=at.spare).generate(ASKED)
        assert (reply.text, reply.model) == (ANSWER, at.spare.name)
        assert time.monotonic() - began < 20
        await at.server.settled()
        assert at.server.duplicated == 0
        if kind in ("silent", "slow"):
            assert [each.outcome for each in at.server.exchanges if each.model == "main"] == ["left"]


async def test_a_hedge_that_is_not_needed_asks_nobody_else() -> None:
    async with world(in_order()) as at:
        assert (await Hedged(at.main, after=15.0, second=at.spare).generate(ASKED)).model == at.main.name
        assert await at.asked("spare") == 0


@pytest.mark.parametrize("kind", REFUSALS)
@pytest.mark.parametrize("part", ["retry", "fallback", "hedge"])
async def test_a_refusal_is_final_everywhere(kind: Kind, part: str) -> None:
    async with world(by_model({"main": Fault(kind)})) as at:
        parts: dict[str, Provider] = {
            "retry": Retry(at.main, PATIENT),
            "fallback": Fallback([at.main, at.spare]),
            "hedge": Hedged(at.main, after=15.0, second=at.spare),
        }
        with pytest.raises(ModelError) as raised:
            await parts[part].generate(ASKED)
        assert raised.value.code == "models.refused"
        assert (await at.asked("main"), await at.asked("spare")) == (1, 0)


async def test_a_wrong_key_is_not_tried_again_but_another_model_may_answer() -> None:
    async with world(by_model({"main": Fault("unauthorized")})) as at:
        with pytest.raises(ModelError) as raised:
            await Retry(at.main, PATIENT).generate(ASKED)
        assert raised.value.code == "models.auth"
        assert await at.asked("main") == 1
        assert (await Fallback([at.main, at.spare]).generate(ASKED)).model == at.spare.name


async def test_retry_after_is_waited_for() -> None:
    async with world(in_order(Fault("rate-limited", 0.4))) as at:
        began = time.monotonic()
        assert (await Retry(at.main, PATIENT).generate(ASKED)).text == ANSWER
        assert time.monotonic() - began >= 0.4


async def test_nobody_waits_for_a_retry_after_that_is_past_the_deadline() -> None:
    async with world(in_order(Fault("rate-limited", 600.0))) as at:
        began = time.monotonic()
        with pytest.raises(ModelError) as raised:
            await Retry(at.main, PATIENT).generate(ModelRequest(ASKED.messages, timeout=60.0))
        assert raised.value.code == "models.rate-limited"
        assert time.monotonic() - began < 30


async def test_a_server_that_never_answers_does_not_hold_a_call_past_its_deadline() -> None:
    async with world(lambda asked: Fault("silent")) as at:
        chain = Fallback([Retry(at.main, RetrySettings(attempts=9, each=0.3)), at.spare])
        began = time.monotonic()
        with pytest.raises(ModelError) as raised:
            await chain.generate(ModelRequest(ASKED.messages, timeout=1.0))
        assert raised.value.code == "models.timeout"
        assert 0.9 < time.monotonic() - began < 15


class Held:
    """A model that writes one line, and the next only when it is let."""

    name, grammars, chamber, adapters = "held", False, None, dict[str, str]()

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.ended = False

    async def generate(self, request: ModelRequest) -> ModelReply:
        raise NotImplementedError

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        try:
            yield "first "
            await self.go.wait()
            yield "second"
        finally:
            self.ended = True

    async def aclose(self) -> None: ...


def everything(at: World) -> Router:
    chain = Fallback([Retry(at.main, PATIENT), Retry(at.spare, PATIENT)])
    return Router(Aliases("privileged", [Alias.of("main", chain)]), Selection("main"))


async def test_a_stream_reaches_the_caller_piece_by_piece_through_everything() -> None:
    held = Held()
    async with world(in_order(), held) as at:
        async with aclosing(Client(everything(at)).complete_stream(STREAMED.messages)) as chunks:
            async with asyncio.timeout(30):
                assert await anext(chunks) == TextChunk("first ")
            assert not held.go.is_set()  # the model has not written the rest, and the caller has the beginning
            held.go.set()
            second, usage, end = [chunk async for chunk in chunks]
        assert second == TextChunk("second")
        assert isinstance(usage, UsageChunk)
        assert isinstance(end, EndChunk)
        assert (end.reply.text, end.reply.model) == ("first second", at.main.name)
        assert end.reply.route is not None
        assert end.reply.route.alias == "main"
        await at.server.settled()
        assert [each.outcome for each in at.server.exchanges] == ["answered"]


async def test_whoever_leaves_a_stream_closes_the_socket_and_stops_the_model() -> None:
    held = Held()
    async with world(in_order(), held) as at:
        async with aclosing(Client(everything(at)).complete_stream(STREAMED.messages)) as chunks:
            assert await anext(chunks) == TextChunk("first ")
        await soon(lambda: held.ended)
        await at.server.settled()
        assert [each.outcome for each in at.server.exchanges] == ["left"]
        await soon(lambda: at.server.open_connections == 0)


@pytest.mark.parametrize("part", ["plain", "retry", "fallback", "hedge"])
async def test_a_cancelled_call_closes_its_sockets(part: str) -> None:
    async with world(lambda asked: Fault("silent")) as at:
        parts: dict[str, Provider] = {
            "plain": at.main,
            "retry": Retry(at.main, RetrySettings()),
            "fallback": Fallback([at.main, at.spare]),
            "hedge": Hedged(at.main, after=0.0, second=at.spare),
        }
        wanted = 2 if part == "hedge" else 1
        call = asyncio.ensure_future(parts[part].generate(ASKED))
        await soon(lambda: at.server.most_in_flight == wanted)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await at.server.settled()
        assert [each.outcome for each in at.server.exchanges] == ["left"] * wanted
        await soon(lambda: at.server.open_connections == 0)


LINES = "the first line\nthe second line\nthe third line\n"


@pytest.mark.parametrize("kind", MIDWAY)
async def test_a_stream_that_breaks_in_the_middle_ends_in_an_error_and_is_not_continued_by_another(kind: Kind) -> None:
    faults = by_model({"main": Fault(kind, after=2)})
    async with world(faults, ScriptedProvider(lambda request: LINES)) as at:
        got: list[str] = []
        with pytest.raises(ModelError) as raised:
            await gather(everything(at).stream(STREAMED), got)
        assert raised.value.code in ("models.bad-reply", "models.unavailable")
        assert LINES.startswith("".join(got))
        assert "".join(got) not in ("", LINES)
        assert (await at.asked("main"), await at.asked("spare")) == (1, 0)


@pytest.mark.parametrize("kind", ["rate-limited", "error", "unavailable", "silent", "truncated", "malformed", "reset"])
async def test_a_stream_that_fails_before_it_begins_is_begun_elsewhere(kind: Kind) -> None:
    faults = by_model({"main": Fault(kind, after=0)})
    async with world(faults, ScriptedProvider(lambda request: LINES)) as at:
        chain = Fallback([Retry(at.main, replace(PATIENT, each=given(kind))), at.spare])
        got = [piece async for piece in chain.stream(STREAMED)]
        assert "".join(got) == LINES
        assert await at.asked("spare") == 1


async def test_fifty_calls_at_once_through_every_fault_none_lost_and_none_twice() -> None:
    survived = await survive(50, seed=11, attempt_seconds=8.0)
    assert survived.why_lost == ()
    assert (survived.lost, survived.duplicated) == (0, 0)
    assert survived.requests > 60
    assert len(survived.faults) >= 8


@pytest.mark.model
async def test_the_local_model_behind_the_protocol_answers_as_it_does_in_this_process(
    small_model: LocalProvider,
) -> None:
    request = ModelRequest(
        (Message("user", "Which city is the capital of Norway?"),), json_schema=SCHEMA, max_tokens=32
    )
    plain = ModelRequest((Message("user", "Count from one to five in words."),), max_tokens=24)
    async with world(in_order(Fault("unavailable")), small_model) as at:
        through = Retry(at.main, RetrySettings(first=0.01))
        reply = await through.generate(request)
        assert reply.text == (await small_model.generate(request)).text
        assert reply.usage.output > 0
        streamed = [piece async for piece in through.stream(plain)]
        assert "".join(streamed) == (await small_model.generate(plain)).text
        assert len(streamed) > 3

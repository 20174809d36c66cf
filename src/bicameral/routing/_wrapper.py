"""Provider wrappers: a provider around providers of one chamber, which counts every call of a model.

A combination that held a model of each chamber could hand untrusted text to the privileged key, or the planner's
prompt to whoever serves the quarantine. So none is ever built, and what a model says of itself is read again before
each call. A streamed reply can still be had from another model as long as nothing of it was shown. A reply says how
it came about: which models were asked before, and in what way it is less than what was wanted.
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar, cast

from bicameral.errors import BicameralError, ModelError
from bicameral.limits import CallEnding, Charge, PendingCall, Price, Prices, current_accounts, current_prices
from bicameral.models import (
    Chamber,
    EndChunk,
    ModelReply,
    ModelRequest,
    Provider,
    ReplyChunk,
    Route,
    StreamingProvider,
    Usage,
    stream_chunks,
    stream_texts,
)
from bicameral.routing._conditions import estimate_prompt_tokens
from bicameral.routing._context import Deadline, current_context, loop_time


@dataclass(frozen=True, slots=True)
class ProviderSide:
    """What a provider says of itself: its chamber, and the fingerprints of the keys behind it."""

    chamber: Chamber | None
    credentials: frozenset[str] = frozenset()


def provider_side(provider: Provider) -> ProviderSide:
    """The side of one provider. One that does not say it, or says what cannot be, is refused."""
    unsaid = object()
    chamber: object = getattr(provider, "chamber", unsaid)
    # By the very type: a class of somebody's own may equal every chamber there is.
    if chamber is not None and (type(chamber) is not str or chamber not in ("privileged", "quarantined")):
        raise _wrong_chamber(f"{type(provider).__name__!r} does not say of which chamber it is")
    credentials = credentials_of(provider)
    if chamber is None and credentials:
        raise _wrong_chamber(f"{type(provider).__name__!r} holds a key and does not say of which chamber it is")
    if chamber != "privileged" and getattr(provider, "tools", None):
        raise _wrong_chamber(f"{type(provider).__name__!r} holds tools and is not of the privileged side")
    return ProviderSide(chamber, credentials)


def declared_side(provider: object) -> tuple[object, ...]:
    """What a provider says of itself, to be compared with what it said before; `provider_side` judges it.

    The types are part of it: something of another type may equal whatever it likes.
    """
    chamber: object = getattr(provider, "chamber", None)
    one: object = getattr(provider, "credential", None)
    several: object = getattr(provider, "credentials", None)
    tools = bool(getattr(provider, "tools", None))
    return type(chamber), chamber, type(one), one, type(several), several, tools


def credentials_of(provider: object) -> frozenset[str]:
    """The fingerprints of all keys behind a provider, however deep they are."""
    several: Any = getattr(provider, "credentials", None)
    if several is not None:
        if type(several) is not frozenset:
            raise _wrong_chamber(f"{type(provider).__name__!r} does not say which keys it holds")
        return cast("frozenset[str]", several)
    one: Any = getattr(provider, "credential", None)
    return frozenset() if one is None else frozenset({str(one)})


def common_side(providers: Sequence[Provider]) -> ProviderSide:
    """The side of several models that are to stand in for each other; refused unless they are on the same one.

    A model that holds nothing may stand on either side.
    """
    sides = [provider_side(provider) for provider in providers]
    chambers: set[Chamber] = {side.chamber for side in sides if side.chamber is not None}
    if len(chambers) > 1:
        names = ", ".join(f"{_short_name(each)} ({side.chamber})" for each, side in zip(providers, sides, strict=True))
        raise _wrong_chamber(f"models of both chambers cannot stand in for each other: {names}")
    return ProviderSide(next(iter(chambers), None), frozenset(key for side in sides for key in side.credentials))


def _short_name(provider: Provider) -> str:
    return str(provider.name)[:100]


def _wrong_chamber(message: str) -> ModelError:
    return ModelError(
        "models.wrong-chamber",
        message,
        expected="models of one chamber, each with the key of that chamber or none",
        fix="Make one combination for each chamber.",
    )


_SET_ATTRIBUTE = object.__setattr__


def replace_reply_fields(reply: ModelReply, **changes: Any) -> ModelReply:
    """The same reply with these fields changed."""
    if type(reply) is not ModelReply:
        return replace(reply, **changes)
    copy = object.__new__(ModelReply)
    for name in ModelReply.__slots__:
        _SET_ATTRIBUTE(copy, name, getattr(reply, name))
    for name, value in changes.items():
        _SET_ATTRIBUTE(copy, name, value)
    return copy


FailedAttempts: TypeAlias = list[tuple[str, str]]
"""Those that were asked and did not serve, each with the reason."""


def add_attempts(reply: ModelReply, alias: str, by: str, failed: FailedAttempts) -> ModelReply:
    """The reply with those on its route that did not serve before it, first things first."""
    if not failed:
        return reply
    inner = reply.route.attempts if reply.route is not None else ()
    why = f"after {', '.join(f'{name}: {reason}' for name, reason in failed)}"
    route = reply.route or Route(alias, by, why)
    return replace(reply, route=replace(route, attempts=(*failed, *inner)))


def mark_degraded(reply: ModelReply, why: str) -> ModelReply:
    """The reply, which says that it is less than what was wanted; what it said of that before stays."""
    return replace(reply, degraded=f"{why}; {reply.degraded}" if reply.degraded else why)


T = TypeVar("T")

StreamStarter: TypeAlias = Callable[[Provider, ModelRequest], AsyncIterator[T]]
"""How a reply is read from a model piece by piece: as text, or as chunks."""


def stream_text(provider: Provider, request: ModelRequest) -> AsyncIterator[str]:
    return provider.stream(request)


class OpenedStream(Generic[T]):
    """A reply of which the first piece has come; None if it had none."""

    def __init__(self, first: T | None, rest: AsyncIterator[T], deadline: Deadline) -> None:
        self._first, self._rest, self._deadline = first, rest, deadline

    async def pieces(self) -> AsyncGenerator[T, None]:
        """All of it."""
        try:
            piece = self._first
            while piece is not None:
                yield piece
                async with self._deadline.scope():
                    piece = await anext(self._rest, None)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        await close_stream(self._rest)


async def open_stream(
    start: StreamStarter[T],
    provider: Provider,
    request: ModelRequest,
    deadline: Deadline,
    first_by: Deadline | None = None,
) -> OpenedStream[T]:
    """Wait for the first piece; whatever goes wrong until then went wrong before anything was shown."""
    pieces = aiter(start(provider, deadline.limit_request(request)))
    try:
        async with (first_by or deadline).scope():
            first = await anext(pieces, None)
    except BaseException:
        await close_stream(pieces)
        raise
    return OpenedStream(first, pieces, deadline)


def amend_end(piece: T, change: Callable[[ModelReply], ModelReply]) -> T:
    """The piece; where it is the end, with the reply changed."""
    return EndChunk(change(piece.reply)) if isinstance(piece, EndChunk) else piece  # pyright: ignore[reportReturnType]


async def close_stream(pieces: AsyncIterator[T]) -> None:
    """A generator that nobody closes keeps its connection until it is collected."""
    if isinstance(pieces, AsyncGenerator):
        await pieces.aclose()


class ProviderWrapper(ABC):
    """A provider around others. They are of one chamber, which is checked when it is made and before each call."""

    counts = True
    """Its models' calls are counted each for itself; those of the whole would count twice."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        if not providers:
            raise ModelError("models.bad-setting", f"a {type(self).__name__} needs a model to ask")
        self._side = common_side(providers)
        self._providers: tuple[Provider, ...] = tuple(meter_provider(each) for each in providers)

    @property
    def name(self) -> str:
        """Of one model its name, since that identifies it exactly; of several, all of them."""
        names = tuple(dict.fromkeys(each.name for each in self._providers))
        return names[0] if len(names) == 1 else f"{type(self).__name__.lower()}({', '.join(names)})"

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all models behind it."""
        return tuple(dict.fromkeys(name for each in self._providers for name in model_names(each)))

    @property
    def grammars(self) -> bool:
        return all(each.grammars for each in self._providers)

    @property
    def chamber(self) -> Chamber | None:
        return self._side.chamber

    @property
    def credentials(self) -> frozenset[str]:
        """The fingerprints of all keys behind it."""
        return self._side.credentials

    @property
    def tools(self) -> tuple[Any, ...]:
        """What the models behind it hold, so that nobody takes it for one that holds nothing."""
        return tuple(tool for each in self._providers for tool in getattr(each, "tools", None) or ())

    @property
    def adapters(self) -> Mapping[str, str]:
        """The jobs that all of them were trained for."""
        first, *others = (each.adapters for each in self._providers)
        return {
            job: _combined_training([training, *(other[job] for other in others)])
            for job, training in first.items()
            if all(job in other for other in others)
        }

    @abstractmethod
    async def generate(self, request: ModelRequest) -> ModelReply: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """The reply's text as it is written."""
        return self._stream_pieces(request, stream_text)

    def chunks(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """The reply as it is written, with its calls, its cost and its end."""
        return self._stream_pieces(request, stream_chunks)

    @abstractmethod
    def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        """The reply piece by piece, read from a model with `start`."""
        ...

    async def aclose(self) -> None:
        each_once = {id(each): each for each in self._providers}
        await asyncio.gather(*(each.aclose() for each in each_once.values()))


class MeteredProvider(ProviderWrapper):
    """A model whose every call is counted: refused where an account has nothing left, told what it cost at the end.

    Every model that is put into a part becomes one, so nobody needs to make them.
    """

    def __init__(self, provider: Provider) -> None:
        # Not through Part: this is where models become parts.
        self._provider = provider
        self._own = provider_side(provider)
        self._said = declared_side(provider)
        self._priced: tuple[Prices | None, Price | None] = (None, None)
        self._providers = (provider,)
        self._side = self._own

    async def generate(self, request: ModelRequest) -> ModelReply:
        provider = self._checked_provider()
        if not current_accounts():
            return self._with_model_name(await provider.generate(request))
        with _CountedCall(provider, self._price(), request) as call:
            reply = await provider.generate(request)
            call.usage = reply.usage
        return self._with_model_name(reply)

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        # A model that tells its cost only with chunks is read in chunks, also where the text alone is wanted.
        if start is stream_text and isinstance(self._provider, StreamingProvider):
            texts: Any = stream_texts(self._stream_pieces(request, stream_chunks))
            async with aclosing(texts):
                async for text in texts:
                    yield text
            return
        with _CountedCall(self._checked_provider(), self._price(), request) as call:
            characters = 0
            pieces = start(self._provider, request)
            try:
                async for piece in pieces:
                    if isinstance(piece, EndChunk):
                        call.usage = piece.reply.usage
                    characters += len(piece) if isinstance(piece, str) else 0
                    yield amend_end(piece, self._with_model_name)
            finally:
                await close_stream(pieces)
                if call.usage is None:
                    call.usage, call.estimated = Usage(prompt=call.asked.prompt_tokens, output=characters // 4), True

    def _with_model_name(self, reply: ModelReply) -> ModelReply:
        return reply if reply.model else replace_reply_fields(reply, model=self._provider.name)

    def _price(self) -> Price | None:
        """What it costs by the prices in force; they seldom change from one call to the next."""
        table, price = self._priced
        if table is not (now_ := current_prices()):
            table, price = self._priced = now_, now_.of(self._provider.name)
        return price

    def _checked_provider(self) -> Provider:
        """The model, if it is still what it said it was."""
        here, own = current_context().chamber, self._own.chamber
        if declared_side(self._provider) != self._said or (here is not None and own is not None and own != here):
            raise ModelError(
                "models.wrong-chamber",
                f"{self._provider.name!r} is not of the side for which it is asked",
                fix="Make one combination for each chamber.",
            )
        return self._provider


class _CountedCall:
    """One call of one model, counted by every account around it."""

    def __init__(self, provider: Provider, price: Price | None, request: ModelRequest) -> None:
        here = current_context()
        self._price = price
        self.asked = PendingCall(provider.name, here.role, estimate_prompt_tokens(request), price is not None)
        self.usage: Usage | None = None
        self.estimated = False
        self._phase = here.phase
        self._accounts = current_accounts()

    def __enter__(self) -> _CountedCall:
        begun = 0
        try:
            for account in self._accounts:
                account.begin(self.asked)
                begun += 1
        except BaseException:
            # Whoever counted it already must know that it was not made.
            nothing = Charge(self.asked.model, Usage(), 0.0, 0.0, "failed", self.asked.role, self._phase)
            for account in self._accounts[:begun]:
                account.end(self.asked, nothing)
            raise
        self._started = loop_time()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        charge = self._charge(error)
        for account in self._accounts:
            account.end(self.asked, charge)

    def _charge(self, error: BaseException | None) -> Charge:
        usage, estimated, ending = self.usage, self.estimated, _call_ending(error)
        if usage is None:
            usage, estimated = self._estimated_usage(error)
        money = None if self._price is None else self._price.of(usage)
        seconds, asked = loop_time() - self._started, self.asked
        return Charge(asked.model, usage, seconds, money, ending, asked.role, self._phase, estimated)

    def _estimated_usage(self, error: BaseException | None) -> tuple[Usage, bool]:
        """What a call without a reply cost: an error may say it; what was called off or cut off was at least read."""
        told: object = getattr(error, "usage", None)
        if isinstance(told, Usage) and told != Usage():
            return told, False
        turned_away = isinstance(error, BicameralError) and error.code not in ("models.timeout", "models.bad-reply")
        return (Usage(), False) if turned_away else (Usage(prompt=self.asked.prompt_tokens), True)


def _call_ending(error: BaseException | None) -> CallEnding:
    if error is None:
        return "answered"
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "failed"


def meter_provider(provider: Provider) -> Provider:
    """The provider with its calls counted; a part counts those of its own models already."""
    return provider if getattr(provider, "counts", False) is True else MeteredProvider(provider)


def model_names(provider: object) -> tuple[str, ...]:
    """The names of the models behind a provider: of a part those of its models, of a model its own."""
    several: object = getattr(provider, "models", None)
    if isinstance(several, tuple):
        return cast("tuple[str, ...]", several)
    return (str(getattr(provider, "name", "")),)


def _combined_training(trainings: list[str]) -> str:
    """What identifies the training of several models."""
    return trainings[0] if len(set(trainings)) == 1 else hashlib.sha256("\n".join(trainings).encode()).hexdigest()

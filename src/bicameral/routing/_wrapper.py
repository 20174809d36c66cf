"""Provider wrappers: a provider around providers of one chamber, which counts every call of a model.

A wrapper around models of both chambers could send untrusted text with the privileged key, or the planner's prompt to
the quarantined model's server. So none is ever built, and what a model declares about itself is read again before each
call. A stream can fall back to another model as long as nothing of it was yielded. A reply records how it came about:
which models were called before, and in what way it is degraded.
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
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
    reply_chunks,
    stream_chunks,
    stream_texts,
)
from bicameral.routing._context import Deadline, current_context, estimate_prompt_tokens, loop_time


@dataclass(frozen=True, slots=True)
class ProviderSide:
    """What a provider declares about itself: its chamber, and the fingerprints of its keys."""

    chamber: Chamber | None
    credentials: frozenset[str] = frozenset()


def provider_side(provider: Provider) -> ProviderSide:
    """The side of a provider; refused if it is not declared, or contradicts itself."""
    undeclared = object()
    chamber: object = getattr(provider, "chamber", undeclared)
    # The exact type: an instance of another class may claim to equal every chamber.
    if chamber is not None and (type(chamber) is not str or chamber not in ("privileged", "quarantined")):
        raise _wrong_chamber(f"{type(provider).__name__!r} does not say of which chamber it is")
    credentials = credentials_of(provider)
    if chamber is None and credentials:
        raise _wrong_chamber(f"{type(provider).__name__!r} holds a key and does not say of which chamber it is")
    if chamber != "privileged" and getattr(provider, "tools", None):
        raise _wrong_chamber(f"{type(provider).__name__!r} holds tools and is not of the privileged side")
    return ProviderSide(chamber, credentials)


def declared_side(provider: object) -> tuple[object, ...]:
    """What a provider declares about itself, to compare with what it declared before; `provider_side` judges it.

    The types are compared, too: an instance of another class may claim to equal anything.
    """
    chamber: object = getattr(provider, "chamber", None)
    one: object = getattr(provider, "credential", None)
    several: object = getattr(provider, "credentials", None)
    tools = bool(getattr(provider, "tools", None))
    return type(chamber), chamber, type(one), one, type(several), several, tools


def credentials_of(provider: object) -> frozenset[str]:
    """The fingerprints of all keys of a provider and of those that it wraps."""
    several: Any = getattr(provider, "credentials", None)
    if several is not None:
        if type(several) is not frozenset:
            raise _wrong_chamber(f"{type(provider).__name__!r} does not say which keys it holds")
        return cast("frozenset[str]", several)
    one: Any = getattr(provider, "credential", None)
    return frozenset() if one is None else frozenset({str(one)})


def common_side(providers: Sequence[Provider]) -> ProviderSide:
    """The common side of several models; refused if they are of different chambers.

    A model without tools and keys may be on either side.
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
"""The models that failed or were not accepted, each with the reason."""


def add_attempts(reply: ModelReply, alias: str, by: str, failed: FailedAttempts) -> ModelReply:
    """The reply with the failed attempts before it on its route, in order."""
    if not failed:
        return reply
    inner = reply.route.attempts if reply.route is not None else ()
    why = f"after {', '.join(f'{name}: {reason}' for name, reason in failed)}"
    route = reply.route or Route(alias, by, why)
    return replace(reply, route=replace(route, attempts=(*failed, *inner)))


def mark_degraded(reply: ModelReply, why: str) -> ModelReply:
    """The reply marked as degraded; an earlier mark stays."""
    return replace(reply, degraded=f"{why}; {reply.degraded}" if reply.degraded else why)


T = TypeVar("T")
R = TypeVar("R")

StreamStarter: TypeAlias = Callable[[Provider, ModelRequest], AsyncIterator[T]]
"""Starts the stream of a reply: as texts, or as chunks."""


def stream_text(provider: Provider, request: ModelRequest) -> AsyncIterator[str]:
    return provider.stream(request)


def reply_pieces(reply: ModelReply, start: StreamStarter[T]) -> Iterable[T]:
    """The pieces of a reply that is complete, as `start` would give them."""
    return cast("Iterable[T]", reply_chunks(reply) if start is stream_chunks else filter(None, (reply.text,)))


class OpenedStream(Generic[T]):
    """A stream whose first piece has arrived; None if it is empty."""

    def __init__(self, first: T | None, rest: AsyncIterator[T], deadline: Deadline) -> None:
        self._first, self._rest, self._deadline = first, rest, deadline

    async def pieces(self) -> AsyncGenerator[T, None]:
        """Every piece."""
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
    start: StreamStarter[T], provider: Provider, request: ModelRequest, deadline: Deadline, first_by: Deadline
) -> OpenedStream[T]:
    """Wait for the first piece. An error until then leaves nothing yielded, so another model can be called."""
    pieces = aiter(start(provider, deadline.limit_request(request)))
    try:
        async with first_by.scope():
            first = await anext(pieces, None)
    except BaseException:
        await close_stream(pieces)
        raise
    return OpenedStream(first, pieces, deadline)


def amend_end(piece: T, change: Callable[[ModelReply], ModelReply]) -> T:
    """The piece; at the end of the stream with its reply changed."""
    return EndChunk(change(piece.reply)) if isinstance(piece, EndChunk) else piece  # pyright: ignore[reportReturnType]


async def close_stream(pieces: AsyncIterator[T]) -> None:
    """Close a generator at once: otherwise it keeps its connection until it is collected."""
    if isinstance(pieces, AsyncGenerator):
        await pieces.aclose()


@asynccontextmanager
async def closing_stream(pieces: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """The pieces, which are closed at the end of the block."""
    try:
        yield pieces
    finally:
        await close_stream(pieces)


class ProviderWrapper(ABC):
    """A provider around others of one chamber, which is checked when it is made and before each call."""

    counts = True
    """Its models are metered, so it is not: every call would count twice."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        if not providers:
            raise ModelError("models.bad-setting", f"a {type(self).__name__} needs a model to ask")
        self._side = common_side(providers)
        self._providers: tuple[Provider, ...] = tuple(meter_provider(each) for each in providers)

    @property
    def name(self) -> str:
        """The name of its one model, or the names of all, since names are part of cache keys."""
        names = tuple(dict.fromkeys(each.name for each in self._providers))
        return names[0] if len(names) == 1 else f"{type(self).__name__.lower()}({', '.join(names)})"

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all models that it wraps."""
        return tuple(dict.fromkeys(name for each in self._providers for name in model_names(each)))

    @property
    def grammars(self) -> bool:
        return all(each.grammars for each in self._providers)

    @property
    def chamber(self) -> Chamber | None:
        return self._side.chamber

    @property
    def credentials(self) -> frozenset[str]:
        """The fingerprints of all keys of its models."""
        return self._side.credentials

    @property
    def tools(self) -> tuple[Any, ...]:
        """The tools of its models, so that it does not pass for a provider without tools."""
        return tuple(tool for each in self._providers for tool in getattr(each, "tools", None) or ())

    @property
    def adapters(self) -> Mapping[str, str]:
        """The jobs that all its models were trained for."""
        first, *others = (each.adapters for each in self._providers)
        return {
            job: _combined_training([training, *(other[job] for other in others)])
            for job, training in first.items()
            if all(job in other for other in others)
        }

    @abstractmethod
    async def generate(self, request: ModelRequest) -> ModelReply: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """The text of the reply as it is generated."""
        return self._stream_pieces(request, stream_text)

    def chunks(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """The chunks of the reply, with its calls, its usage and its end."""
        return self._stream_pieces(request, stream_chunks)

    @abstractmethod
    def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        """The pieces of the reply, read from a model with `start`."""
        ...

    async def aclose(self) -> None:
        each_once = {id(each): each for each in self._providers}
        await asyncio.gather(*(each.aclose() for each in each_once.values()))


@dataclass(frozen=True, slots=True)
class Served(Generic[R]):
    """What a model gave, a reply or an opened stream, and what has to be done to the reply and after a failure.

    Args:
        amend: Adds to the reply how it came about.
        on_failure: Called when a stream fails after its first piece.
    """

    result: R
    amend: Callable[[ModelReply], ModelReply]
    on_failure: Callable[[ModelError], None] = lambda _: None


AskModel: TypeAlias = Callable[[Provider, Deadline], Coroutine[Any, Any, R]]
"""Asks a model, which must begin to answer by a deadline."""


class AttemptingWrapper(ProviderWrapper):
    """A wrapper that asks its models until one serves, in the same way for a whole reply and for a stream."""

    @abstractmethod
    async def _serve(self, deadline: Deadline, ask: AskModel[R]) -> Served[R]:
        """What the models give in the end; an error if none serves."""
        ...

    async def generate(self, request: ModelRequest) -> ModelReply:
        async def ask(model: Provider, by: Deadline) -> ModelReply:
            async with by.scope():
                return await model.generate(by.limit_request(request))

        served = await self._serve(Deadline.of(request), ask)
        return served.amend(served.result)

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        deadline = Deadline.of(request)
        served = await self._serve(deadline, lambda model, by: open_stream(start, model, request, deadline, by))
        try:
            async with aclosing(served.result.pieces()) as pieces:
                async for piece in pieces:
                    yield amend_end(piece, served.amend)
        except ModelError as error:
            # Something was shown, so no other model can be asked for the rest.
            served.on_failure(error)
            raise


class MeteredProvider(ProviderWrapper):
    """A model whose calls are charged to the current accounts: refused if one has nothing left, charged at the end.

    Wrappers make one for every model that they get.
    """

    def __init__(self, provider: Provider) -> None:
        # Not by `super`, which would wrap the provider in another meter.
        self._provider = provider
        self._own = provider_side(provider)
        self._said = declared_side(provider)
        self._priced: tuple[Prices | None, Price | None] = (None, None)
        self._providers = (provider,)
        self._side = self._own

    async def generate(self, request: ModelRequest) -> ModelReply:
        provider = self._checked_provider()
        # Without accounts there is nothing to count.
        if not current_accounts():
            return self._with_model_name(await provider.generate(request))
        with _CountedCall(provider, self._price(), request) as call:
            reply = await provider.generate(request)
            call.usage = reply.usage
        return self._with_model_name(reply)

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        # The usage is in the chunks, so they are read even if only the text is wanted.
        if start is stream_text and isinstance(self._provider, StreamingProvider):
            texts: Any = stream_texts(self._stream_pieces(request, stream_chunks))
            async with aclosing(texts):
                async for text in texts:
                    yield text
            return
        with _CountedCall(self._checked_provider(), self._price(), request) as call:
            characters = 0
            try:
                async with closing_stream(start(self._provider, request)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, EndChunk):
                            call.usage = piece.reply.usage
                        characters += len(piece) if isinstance(piece, str) else 0
                        yield amend_end(piece, self._with_model_name)
            finally:
                if call.usage is None:
                    call.usage, call.estimated = Usage(prompt=call.asked.prompt_tokens, output=characters // 4), True

    def _with_model_name(self, reply: ModelReply) -> ModelReply:
        return reply if reply.model else replace_reply_fields(reply, model=self._provider.name)

    def _price(self) -> Price | None:
        """Its price in the current table, which seldom changes from one call to the next."""
        table, price = self._priced
        if table is not (now_ := current_prices()):
            table, price = self._priced = now_, now_.of(self._provider.name)
        return price

    def _checked_provider(self) -> Provider:
        """The model; refused if it declares another side than before, or is not of the caller's chamber."""
        here, own = current_context().chamber, self._own.chamber
        if declared_side(self._provider) != self._said or (here is not None and own is not None and own != here):
            raise ModelError(
                "models.wrong-chamber",
                f"{self._provider.name!r} is not of the side for which it is asked",
                fix="Make one combination for each chamber.",
            )
        return self._provider


class _CountedCall:
    """One call of one model, charged to every current account."""

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
            # The accounts that have counted it must know that it was not made.
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
        """The usage of a call without a reply: as the error says, or the prompt if the model was reading it already."""
        usage: object = getattr(error, "usage", None)
        if isinstance(usage, Usage) and usage != Usage():
            return usage, False
        is_rejected = isinstance(error, BicameralError) and error.code not in ("models.timeout", "models.bad-reply")
        return (Usage(), False) if is_rejected else (Usage(prompt=self.asked.prompt_tokens), True)


def _call_ending(error: BaseException | None) -> CallEnding:
    if error is None:
        return "answered"
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "failed"


def meter_provider(provider: Provider) -> Provider:
    """The provider with its calls metered; wrappers meter their models already."""
    return provider if getattr(provider, "counts", False) is True else MeteredProvider(provider)


def resolve_model(provider: Provider, role: str = "reasoning") -> str:
    """The alias that calls of a role get from a router; of any other provider there is one model, and its name."""
    resolve: object = getattr(provider, "resolve_model", None)
    return str(resolve(role)) if callable(resolve) else provider.name


def model_names(provider: object) -> tuple[str, ...]:
    """The names of the models behind a provider; a plain model has its own."""
    several: object = getattr(provider, "models", None)
    if isinstance(several, tuple):
        return cast("tuple[str, ...]", several)
    return (str(getattr(provider, "name", "")),)


def _combined_training(trainings: list[str]) -> str:
    """One name for the training of several models."""
    return trainings[0] if len(set(trainings)) == 1 else hashlib.sha256("\n".join(trainings).encode()).hexdigest()

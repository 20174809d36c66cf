"""What all parts have in common: each is a provider around providers, of one side, that asks none it did not check."""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar, cast

from bicameral.errors import BicameralError, ModelError
from bicameral.models import (
    Chamber,
    Chunk,
    ChunkedProvider,
    EndChunk,
    ModelReply,
    ModelRequest,
    Provider,
    Usage,
    chunks_of,
    texts_of,
)

from ._charges import Asked, Charge, Ending, accounts
from ._clock import now
from ._compiled import prompt_tokens
from ._context import situation
from ._prices import Price, Prices, prices
from ._replies import changed
from ._sides import one_side, said_of, side_of
from ._streams import Start, amended, as_text, closed

T = TypeVar("T")


class Part(ABC):
    """A provider around others. They are of one chamber, which is checked when it is made and before each call."""

    counts = True
    """Its models' calls are counted each for itself; those of the whole would count twice."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        if not providers:
            raise ModelError("models.bad-setting", f"a {type(self).__name__} needs a model to ask")
        self._side = one_side(providers)
        self._asked: tuple[Provider, ...] = tuple(metered(each) for each in providers)

    @property
    def name(self) -> str:
        """Of one model its name, since that identifies it exactly; of several, all of them."""
        names = tuple(dict.fromkeys(each.name for each in self._asked))
        return names[0] if len(names) == 1 else f"{type(self).__name__.lower()}({', '.join(names)})"

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all models behind it."""
        return tuple(dict.fromkeys(name for each in self._asked for name in models_of(each)))

    @property
    def grammars(self) -> bool:
        return all(each.grammars for each in self._asked)

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
        return tuple(tool for each in self._asked for tool in getattr(each, "tools", None) or ())

    @property
    def adapters(self) -> Mapping[str, str]:
        """The jobs that all of them were trained for."""
        first, *others = (each.adapters for each in self._asked)
        return {
            job: _together([training, *(other[job] for other in others)])
            for job, training in first.items()
            if all(job in other for other in others)
        }

    @abstractmethod
    async def generate(self, request: ModelRequest) -> ModelReply: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """The reply's text as it is written."""
        return self._flow(request, as_text)

    def chunks(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """The reply as it is written, with its calls, its cost and its end."""
        return self._flow(request, chunks_of)

    @abstractmethod
    def _flow(self, request: ModelRequest, start: Start[T]) -> AsyncGenerator[T, None]:
        """The reply piece by piece, read from a model with `start`."""
        ...

    async def aclose(self) -> None:
        each_once = {id(each): each for each in self._asked}
        await asyncio.gather(*(each.aclose() for each in each_once.values()))


class Metered(Part):
    """A model whose every call is counted: refused where an account has nothing left, told what it cost at the end.

    Every model that is put into a part becomes one, so nobody needs to make them.
    """

    def __init__(self, provider: Provider) -> None:
        # Not through Part: this is where models become parts.
        self._provider = provider
        self._own = side_of(provider)
        self._said = said_of(provider)
        self._priced: tuple[Prices | None, Price | None] = (None, None)
        self._asked = (provider,)
        self._side = self._own

    async def generate(self, request: ModelRequest) -> ModelReply:
        provider = self._checked()
        if not accounts():
            return self._signed(await provider.generate(request))
        with _Call(provider, self._price(), request) as call:
            reply = await provider.generate(request)
            call.usage = reply.usage
        return self._signed(reply)

    async def _flow(self, request: ModelRequest, start: Start[T]) -> AsyncGenerator[T, None]:
        # A model that tells its cost only with chunks is read in chunks, also where the text alone is wanted.
        if start is as_text and isinstance(self._provider, ChunkedProvider):
            texts: Any = texts_of(self._flow(request, chunks_of))
            async with aclosing(texts):
                async for text in texts:
                    yield text
            return
        with _Call(self._checked(), self._price(), request) as call:
            characters = 0
            pieces = start(self._provider, request)
            try:
                async for piece in pieces:
                    if isinstance(piece, EndChunk):
                        call.usage = piece.reply.usage
                    characters += len(piece) if isinstance(piece, str) else 0
                    yield amended(piece, self._signed)
            finally:
                await closed(pieces)
                if call.usage is None:
                    call.usage, call.estimated = Usage(prompt=call.asked.reads, output=characters // 4), True

    def _signed(self, reply: ModelReply) -> ModelReply:
        return reply if reply.model else changed(reply, model=self._provider.name)

    def _price(self) -> Price | None:
        """What it costs by the prices in force; they seldom change from one call to the next."""
        table, price = self._priced
        if table is not (now_ := prices()):
            table, price = self._priced = now_, now_.of(self._provider.name)
        return price

    def _checked(self) -> Provider:
        """The model, if it is still what it said it was."""
        here, own = situation().chamber, self._own.chamber
        if said_of(self._provider) != self._said or (here is not None and own is not None and own != here):
            raise ModelError(
                "models.wrong-chamber",
                f"{self._provider.name!r} is not of the side for which it is asked",
                fix="Make one combination for each chamber.",
            )
        return self._provider


class _Call:
    """One call of one model, counted by every account around it."""

    def __init__(self, provider: Provider, price: Price | None, request: ModelRequest) -> None:
        here = situation()
        self._price = price
        self.asked = Asked(provider.name, request, here.role, prompt_tokens(request), self._price is not None)
        self.usage: Usage | None = None
        self.estimated = False
        self._phase = here.phase
        self._told = accounts()

    def __enter__(self) -> _Call:
        begun = 0
        try:
            for account in self._told:
                account.begin(self.asked)
                begun += 1
        except BaseException:
            # Whoever counted it already must know that it was not made.
            nothing = Charge(self.asked.model, Usage(), 0.0, 0.0, "failed", self.asked.role, self._phase)
            for account in self._told[:begun]:
                account.end(self.asked, nothing)
            raise
        self._started = now()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        charge = self._charge(error)
        for account in self._told:
            account.end(self.asked, charge)

    def _charge(self, error: BaseException | None) -> Charge:
        usage, estimated, ending = self.usage, self.estimated, _ending(error)
        if usage is None:
            usage, estimated = self._guessed(error)
        money = None if self._price is None else self._price.of(usage)
        seconds, asked = now() - self._started, self.asked
        return Charge(asked.model, usage, seconds, money, ending, asked.role, self._phase, estimated)

    def _guessed(self, error: BaseException | None) -> tuple[Usage, bool]:
        """What a call without a reply cost: an error may say it; what was called off or cut off was at least read."""
        told: object = getattr(error, "usage", None)
        if isinstance(told, Usage) and told != Usage():
            return told, False
        turned_away = isinstance(error, BicameralError) and error.code not in ("models.timeout", "models.bad-reply")
        return (Usage(), False) if turned_away else (Usage(prompt=self.asked.reads), True)


def _ending(error: BaseException | None) -> Ending:
    if error is None:
        return "answered"
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "failed"


def metered(provider: Provider) -> Provider:
    """The provider with its calls counted; a part counts those of its own models already."""
    return provider if getattr(provider, "counts", False) is True else Metered(provider)


def models_of(provider: object) -> tuple[str, ...]:
    """The names of the models behind a provider: of a part those of its models, of a model its own."""
    several: object = getattr(provider, "models", None)
    if isinstance(several, tuple):
        return cast("tuple[str, ...]", several)
    return (str(getattr(provider, "name", "")),)


def _together(trainings: list[str]) -> str:
    """What identifies the training of several models."""
    return trainings[0] if len(set(trainings)) == 1 else hashlib.sha256("\n".join(trainings).encode()).hexdigest()

"""Combinations of models for one call: a cascade, a hedged second request, a route tag, and a budget."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar, cast

from bicameral.errors import ModelError
from bicameral.limits import Limits, Meter, charge_to
from bicameral.models import ModelReply, ModelRequest, Provider, Route, reply_chunks, schema_violation, stream_chunks
from bicameral.routing._context import Deadline, cancel_tasks
from bicameral.routing._recovery import can_fall_back, failure_reason, is_refusal
from bicameral.routing._wrapper import (
    FailedAttempts,
    OpenedStream,
    ProviderWrapper,
    StreamStarter,
    add_attempts,
    amend_end,
    close_stream,
    mark_degraded,
    open_stream,
)

T = TypeVar("T")

Accept: TypeAlias = Callable[[ModelRequest, ModelReply], "Awaitable[str | None] | str | None"]
"""Sees a request and a reply to it: None if the reply will do, or else why it will not."""


class Cascade(ProviderWrapper):
    """Models from the cheapest on; each further one is asked only if the reply before it was not accepted.

    `accept` looks at request and reply (is the schema met, does the checker pass, what does a verifier say) and gives
    the reason to go on, or None. The reasons are on the reply's route. What the last model says is the reply even if it
    is not accepted, and is then degraded. With `settle`, a reply that was not accepted is also taken, and degraded,
    when no larger model can be asked. A refusal is final at every stage.

    Example:
        >>> Cascade(small, large, accept=check_finished)
    """

    def __init__(self, *models: Provider, accept: Accept, settle: bool = False) -> None:
        super().__init__(models)
        self._accept = accept
        self._settle = settle

    async def generate(self, request: ModelRequest) -> ModelReply:
        deadline, failed = Deadline.of(request), FailedAttempts()
        best: tuple[ModelReply, str] | None = None
        for number, model in enumerate(self._providers, 1):
            last = number == len(self._providers)
            try:
                async with deadline.scope():
                    reply = await model.generate(deadline.limit_request(request))
                    reason = await _call_accept(self._accept, request, reply)
            except ModelError as error:
                if last or not can_fall_back(error):
                    return self._settled_reply(error, best, failed)
                failed.append((model.name, failure_reason(error)))
                continue
            if reason is None or last:
                reply = add_attempts(reply, model.name, "cascade", failed)
                return reply if reason is None else mark_degraded(reply, f"{model.name} was not accepted ({reason})")
            failed.append((model.name, reason))
            best = reply, f"{model.name} was not accepted ({reason})"
        raise AssertionError("a cascade without an end")

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        """The accepted reply, all at once: before it is whole nobody can accept it."""
        reply = await self.generate(request)
        pieces: Any = reply_chunks(reply) if start is stream_chunks else [reply.text] if reply.text else []
        for piece in pieces:
            yield piece

    def _settled_reply(
        self, error: ModelError, best: tuple[ModelReply, str] | None, failed: FailedAttempts
    ) -> ModelReply:
        """The best reply so far where that is wanted, and where the error is no answer of its own."""
        if best is None or not self._settle or not can_fall_back(error):
            raise error
        reply, why = best
        said = f"{why}, and no larger model answered ({failure_reason(error)})"
        return mark_degraded(add_attempts(reply, reply.model, "cascade", failed), said)


def check_finished(request: ModelRequest, reply: ModelReply) -> str | None:
    """Accepts what ended by itself and, where a JSON Schema was given, fits it."""
    if reply.finish == "length":
        return "it was cut off"
    if request.json_schema is None:
        return None
    try:
        value = json.loads(request.prefill + reply.text)
    except ValueError:
        return "it is no JSON"
    return "it does not fit the schema" if schema_violation(value, request.json_schema) else None


async def _call_accept(accept: Accept, request: ModelRequest, reply: ModelReply) -> str | None:
    verdict = accept(request, reply)
    return await verdict if inspect.isawaitable(verdict) else verdict


R = TypeVar("R")


class Hedged(ProviderWrapper):
    """A model, and after `after` seconds without a reply the same or another beside it. The loser is called off.

    There is exactly one reply; what the loser had cost until then is counted. A refusal of either is final, also when
    the other has something to say. A failure of one is no failure as long as the other is asked.

    Example:
        >>> Hedged(main, after=4.0, second=fast)
    """

    def __init__(self, first: Provider, *, after: float, second: Provider | None = None) -> None:
        if not after >= 0:
            raise ModelError("models.bad-setting", f"a second request after {after!r} s makes no sense")
        super().__init__([first] if second is None else [first, second])
        self._after = after

    async def generate(self, request: ModelRequest) -> ModelReply:
        deadline = Deadline.of(request)

        async def ask(model: Provider) -> ModelReply:
            async with deadline.scope():
                return await model.generate(deadline.limit_request(request))

        ran = await self._race(ask)
        return self._with_provenance(ran.result(), ran)

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        """The reply whose first piece came first."""
        deadline = Deadline.of(request)
        ran = await self._race(lambda model: open_stream(start, model, request, deadline))
        async with aclosing(ran.result().pieces()) as pieces:
            async for piece in pieces:
                yield amend_end(piece, lambda reply: self._with_provenance(reply, ran))

    def _with_provenance(self, reply: ModelReply, ran: _Race[Any]) -> ModelReply:
        """The reply; one of the second model says so."""
        first, second = self._providers[0].name, self._providers[-1].name
        if ran.winner is ran.tasks[0]:
            return reply
        why = "it failed" if ran.has_first_failed else f"no reply within {self._after:g} s"
        reply = add_attempts(reply, second, "hedge", [(first, why)])
        return reply if first == second else mark_degraded(reply, f"{second} answered instead of {first} ({why})")

    async def _race(self, ask: Callable[[Provider], Coroutine[Any, Any, R]]) -> _Race[R]:
        tasks = [asyncio.create_task(ask(self._providers[0]))]
        try:
            await asyncio.wait(tasks, timeout=self._after)
            if not tasks[0].done():
                tasks.append(asyncio.create_task(ask(self._providers[-1])))
            winner = await _first_success(tasks)
            await _cancel_calls([task for task in tasks if task is not winner])
            # A refusal that came while the loser was called off counts as well.
            for task in tasks:
                if _has_failed(task, is_refusal):
                    task.result()
        except BaseException:
            await _cancel_calls(tasks)
            raise
        return _Race(tasks, winner)


@dataclass(frozen=True, slots=True)
class _Race(Generic[R]):
    """One or two calls that have ended or were called off, and the one that won."""

    tasks: list[asyncio.Task[R]]
    winner: asyncio.Task[R]

    def result(self) -> R:
        return self.winner.result()

    @property
    def has_first_failed(self) -> bool:
        """Whether the first call ended by itself, with an error."""
        first = self.tasks[0]
        return first.done() and not first.cancelled() and first.exception() is not None


async def _first_success(tasks: list[asyncio.Task[R]]) -> asyncio.Task[R]:
    """The first of these that has a result. A failure that another model cannot mend ends the race."""
    pending: set[asyncio.Task[R]] = set(tasks)
    while pending:
        _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        done = [task for task in tasks if task.done()]
        for task in done:
            if _has_failed(task, _is_final):
                task.result()
        for task in done:
            if not _has_failed(task, _is_any_error):
                return task
    tasks[0].result()
    raise AssertionError("a race without an end")


def _is_final(error: BaseException) -> bool:
    return not can_fall_back(error)


def _is_any_error(error: BaseException) -> bool:
    return True


def _has_failed(task: asyncio.Task[Any], how: Callable[[BaseException], bool]) -> bool:
    """Whether it has ended with such an error."""
    if not task.done():
        return False
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    return error is not None and how(error)


async def _cancel_calls(tasks: list[asyncio.Task[Any]]) -> None:
    """Call these off; a reply that began to come meanwhile is closed."""
    await cancel_tasks(*tasks)
    for task in tasks:
        if task.done() and not _has_failed(task, _is_any_error):
            result: object = task.result()
            if isinstance(result, OpenedStream):
                await cast("OpenedStream[Any]", result).aclose()


class RouteTag(ProviderWrapper):
    """One model, asked on a route that somebody else chose: a cascade of planners judges whole plans, not replies.

    Example:
        >>> RouteTag(large, Route("main", "cascade", "escalated", attempts=(("fast", "the plan had to be mended"),)))
    """

    def __init__(self, provider: Provider, route: Route) -> None:
        super().__init__([provider])
        self._route = route

    async def generate(self, request: ModelRequest) -> ModelReply:
        return self._with_route(await self._providers[0].generate(request))

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        pieces = start(self._providers[0], request)
        try:
            async for piece in pieces:
                yield amend_end(piece, self._with_route)
        finally:
            await close_stream(pieces)

    def _with_route(self, reply: ModelReply) -> ModelReply:
        """A model that is itself asked through others has a way of its own behind it, which comes last."""
        inner = () if reply.route is None else reply.route.attempts
        return replace(reply, route=replace(self._route, attempts=(*self._route.attempts, *inner)))


class BudgetedProvider(ProviderWrapper):
    """A model with a budget of its own, for as long as it is there. When it is spent, a fallback may go elsewhere.

    Example:
        >>> Fallback([BudgetedProvider(powerful, Limits(money=5.0)), fast])
    """

    def __init__(self, provider: Provider, budget: Limits, *, name: str | None = None) -> None:
        super().__init__([provider])
        self.meter = Meter(budget, owner="model", whom=name or self.name)

    async def generate(self, request: ModelRequest) -> ModelReply:
        with charge_to(self.meter):
            return await self._providers[0].generate(request)

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        pieces = start(self._providers[0], request)
        try:
            while True:
                # Around each piece: between two of them the caller's own accounts hold.
                with charge_to(self.meter):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece
        finally:
            await close_stream(pieces)

"""Combinations of models for one call: a cascade, a hedged second request, a route tag, and a budget."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from bicameral.errors import ModelError
from bicameral.limits import Limits, Meter, charge_to
from bicameral.models import ModelReply, ModelRequest, Provider, Route, schema_violation
from bicameral.routing._context import Deadline, cancel_tasks
from bicameral.routing._recovery import can_fall_back, failure_reason, is_refusal
from bicameral.routing._wrapper import (
    AskModel,
    AttemptingWrapper,
    FailedAttempts,
    OpenedStream,
    ProviderWrapper,
    Served,
    StreamStarter,
    add_attempts,
    amend_end,
    closing_stream,
    mark_degraded,
    reply_pieces,
)

T = TypeVar("T")

Accept: TypeAlias = Callable[[ModelRequest, ModelReply], "Awaitable[str | None] | str | None"]
"""Judges the reply to a request: None if it is accepted, or else the reason."""


class Cascade(ProviderWrapper):
    """Models, the cheapest first; the next one is called only if the reply of the one before was not accepted.

    The reasons are on the reply's route. The reply of the last model is returned even if it is not accepted, and is
    then degraded. A refusal is final at every stage.

    Args:
        accept: Looks at request and reply (schema, checker, verifier) and returns the reason to go on, or None.
        settle: Whether a reply that was not accepted is returned, degraded, when no larger model answers.

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
                # `accept` may ask a model itself, so it is under the deadline, too.
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
        """The accepted reply at once: only a complete reply can be judged."""
        for piece in reply_pieces(await self.generate(request), start):
            yield piece

    def _settled_reply(
        self, error: ModelError, best: tuple[ModelReply, str] | None, failed: FailedAttempts
    ) -> ModelReply:
        """The last reply that was not accepted, if `settle` allows it; a refusal and unknown errors are raised."""
        if best is None or not self._settle or not can_fall_back(error):
            raise error
        reply, why = best
        why = f"{why}, and no larger model answered ({failure_reason(error)})"
        return mark_degraded(add_attempts(reply, reply.model, "cascade", failed), why)


def check_finished(request: ModelRequest, reply: ModelReply) -> str | None:
    """Accepts a reply that is not cut off and fits the JSON Schema of the request, if there is one."""
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


class Hedged(AttemptingWrapper):
    """A model with a second request after a delay, to the same or another model. The slower call is cancelled.

    There is exactly one reply; the cost of the cancelled call is counted. A refusal of either model is final, even if
    the other one answers. A failure of one does not matter as long as the other is running.

    Args:
        after: Seconds without a reply before the second request.
        second: The other model; without it the first is called again.

    Example:
        >>> Hedged(main, after=4.0, second=fast)
    """

    def __init__(self, first: Provider, *, after: float, second: Provider | None = None) -> None:
        if not after >= 0:
            raise ModelError("models.bad-setting", f"a second request after {after!r} s makes no sense")
        super().__init__([first] if second is None else [first, second])
        self._after = after

    def _mark_second(self, first_failed: bool, reply: ModelReply) -> ModelReply:
        """The reply of the second request, with the reason on its route."""
        first, second = self._providers[0].name, self._providers[-1].name
        why = "it failed" if first_failed else f"no reply within {self._after:g} s"
        reply = add_attempts(reply, second, "hedge", [(first, why)])
        return reply if first == second else mark_degraded(reply, f"{second} answered instead of {first} ({why})")

    async def _serve(self, deadline: Deadline, ask: AskModel[R]) -> Served[R]:
        """The reply that came first, or the stream whose first piece did."""
        tasks = [asyncio.create_task(ask(self._providers[0], deadline))]
        try:
            await asyncio.wait(tasks, timeout=self._after)
            if not tasks[0].done():
                tasks.append(asyncio.create_task(ask(self._providers[-1], deadline)))
            winner = await _first_success(tasks)
            await _cancel_calls([task for task in tasks if task is not winner])
            # A refusal that arrived while the other call was being cancelled counts as well.
            for task in tasks:
                if _has_failed(task, is_refusal):
                    task.result()
        except BaseException:
            await _cancel_calls(tasks)
            raise
        if winner is tasks[0]:
            return Served(winner.result(), lambda reply: reply)
        # A call that was cancelled did not fail.
        first_failed = tasks[0].done() and not tasks[0].cancelled() and tasks[0].exception() is not None
        return Served(winner.result(), partial(self._mark_second, first_failed))


async def _first_success(tasks: list[asyncio.Task[R]]) -> asyncio.Task[R]:
    """The first task that has a result. An error that allows no fallback is raised at once."""
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


def _has_failed(task: asyncio.Task[Any], is_kind: Callable[[BaseException], bool]) -> bool:
    """Whether the task has ended with an error of this kind."""
    if not task.done():
        return False
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    return error is not None and is_kind(error)


async def _cancel_calls(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel these; a stream that was opened meanwhile is closed."""
    await cancel_tasks(*tasks)
    for task in tasks:
        if task.done() and not _has_failed(task, _is_any_error):
            result: object = task.result()
            if isinstance(result, OpenedStream):
                await cast("OpenedStream[Any]", result).aclose()


class RouteTag(ProviderWrapper):
    """A model on a route that the caller chose, such as a cascade of planners, which judges plans and not replies.

    Example:
        >>> RouteTag(large, Route("main", "cascade", "escalated", attempts=(("fast", "the plan had to be mended"),)))
    """

    def __init__(self, provider: Provider, route: Route) -> None:
        super().__init__([provider])
        self._route = route

    async def generate(self, request: ModelRequest) -> ModelReply:
        return self._with_route(await self._providers[0].generate(request))

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        async with closing_stream(start(self._providers[0], request)) as pieces:
            async for piece in pieces:
                yield amend_end(piece, self._with_route)

    def _with_route(self, reply: ModelReply) -> ModelReply:
        """The reply on this route; attempts that the model itself records come last."""
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
        async with closing_stream(start(self._providers[0], request)) as pieces:
            while True:
                # Around each piece: between two of them the caller's own accounts hold.
                with charge_to(self.meter):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece

"""Ask another model of the same side when the one that was wanted cannot answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

from bicameral.errors import ModelError
from bicameral.models import ModelReply, ModelRequest, Provider

from ._breaker import Breaker, BreakerSettings
from ._clock import Deadline, now
from ._failures import elsewhere, reason_of, retry_after
from ._part import Part
from ._streams import Start, amended, opened
from ._told import Failed, less, told

T = TypeVar("T")
R = TypeVar("R")


class Fallback(Part):
    """The first of these models that answers. An answer of any but the first says so: it is degraded.

    A model that keeps failing is left alone for a while (see `Breaker`). A refusal is an answer: it goes up, and no
    other model is asked. `breakers`, by the name of the model, are shared between those who fall back on the same one.

    Example:
        >>> Fallback([main, fast, local])
    """

    def __init__(
        self,
        models: list[Provider] | tuple[Provider, ...],
        *,
        breaker: BreakerSettings | None = None,
        breakers: Mapping[str, Breaker] | None = None,
        clock: Callable[[], float] = now,
    ) -> None:
        super().__init__(models)
        known = breakers or {}
        self._breakers = tuple(known.get(each.name) or Breaker(breaker, clock) for each in self._asked)

    async def generate(self, request: ModelRequest) -> ModelReply:
        deadline = Deadline.of(request)

        async def ask(model: Provider) -> ModelReply:
            async with deadline.kept():
                return await model.generate(deadline.given(request))

        served = await self._served(ask)
        return served.told(served.result)

    async def _flow(self, request: ModelRequest, start: Start[T]) -> AsyncGenerator[T, None]:
        deadline = Deadline.of(request)
        served = await self._served(lambda model: opened(start, model, request, deadline))
        try:
            async with aclosing(served.result.pieces()) as pieces:
                async for piece in pieces:
                    yield amended(piece, served.told)
        except ModelError as error:
            # It cannot be had from elsewhere any more, but the next call can.
            _note(served.breaker, error)
            raise

    async def _served(self, ask: Callable[[Provider], Awaitable[R]]) -> _Served[R]:
        """What the first model that serves gave, after those that did not."""
        failed: Failed = []
        errors: list[ModelError] = []
        for model, breaker in zip(self._asked, self._breakers, strict=True):
            if not breaker.allows():
                failed.append((model.name, "circuit open"))
                continue
            try:
                result = await ask(model)
            except ModelError as error:
                _note(breaker, error)
                if not elsewhere(error):
                    raise
                failed.append((model.name, reason_of(error)))
                errors.append(error)
            except BaseException:
                # Called off, or a fault of somebody's code: nothing is known of the model.
                breaker.released()
                raise
            else:
                breaker.succeeded()
                return _Served(result, model.name, failed, breaker)
        raise self._nobody(failed, errors)

    def _nobody(self, failed: Failed, errors: list[ModelError]) -> ModelError:
        """One failure is told as it is, several by one error with all of them."""
        if len(failed) == 1 and errors:
            return errors[0]
        if not errors:
            code, fix = "models.circuit-open", "They failed too often just now; try again in a while."
        else:
            codes = {error.code for error in errors}
            code, fix = (codes.pop() if len(codes) == 1 else "models.unavailable"), None
        error = ModelError(code, f"no model answered: {'; '.join(f'{name}: {why}' for name, why in failed)}", fix=fix)
        waits = [wait for each in errors if (wait := retry_after(each)) is not None]
        if waits and len(waits) == len(failed):
            error.retry_after = min(waits)  # pyright: ignore[reportAttributeAccessIssue]
        return error


@dataclass(frozen=True, slots=True)
class _Served(Generic[R]):
    """What a model gave, and who was asked before it."""

    result: R
    name: str
    failed: Failed
    breaker: Breaker

    def told(self, reply: ModelReply) -> ModelReply:
        """The reply; any but the first model's says that it is less than what was wanted."""
        if not self.failed:
            return reply
        first, why = self.failed[0]
        return less(told(reply, self.name, "fallback", self.failed), f"{self.name} answered instead of {first} ({why})")


def _note(breaker: Breaker, error: ModelError) -> None:
    """What a failure says about the model: one that refuses or finds fault with the request is there and well."""
    if elsewhere(error) and error.code not in ("models.prompt-too-long", "models.budget-spent"):
        breaker.failed(retry_after(error))
    else:
        breaker.succeeded()

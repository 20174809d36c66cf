"""Ask a small model first, and a larger one only where the reply is not accepted."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from bicameral.errors import ModelError
from bicameral.models import ModelReply, ModelRequest, Provider, chunks_of, unfit, whole

from ._clock import Deadline
from ._failures import elsewhere, reason_of
from ._part import Part
from ._streams import Start
from ._told import Failed, less, told

T = TypeVar("T")

Accept: TypeAlias = Callable[[ModelRequest, ModelReply], "Awaitable[str | None] | str | None"]
"""Sees a request and a reply to it: None if the reply will do, or else why it will not."""


class Cascade(Part):
    """Models from the cheapest on; each further one is asked only if the reply before it was not accepted.

    `accept` looks at request and reply (is the schema met, does the checker pass, what does a verifier say) and gives
    the reason to go on, or None. The reasons are on the reply's route. What the last model says is the reply even if it
    is not accepted, and is then degraded. With `settle`, a reply that was not accepted is also taken, and degraded,
    when no larger model can be asked. A refusal is final at every stage.

    Example:
        >>> Cascade(small, large, accept=unfinished)
    """

    def __init__(self, *models: Provider, accept: Accept, settle: bool = False) -> None:
        super().__init__(models)
        self._accept = accept
        self._settle = settle

    async def generate(self, request: ModelRequest) -> ModelReply:
        deadline, failed = Deadline.of(request), Failed()
        best: tuple[ModelReply, str] | None = None
        for number, model in enumerate(self._asked, 1):
            last = number == len(self._asked)
            try:
                async with deadline.kept():
                    reply = await model.generate(deadline.given(request))
                    reason = await _judged(self._accept, request, reply)
            except ModelError as error:
                if last or not elsewhere(error):
                    return self._settled(error, best, failed)
                failed.append((model.name, reason_of(error)))
                continue
            if reason is None or last:
                reply = told(reply, model.name, "cascade", failed)
                return reply if reason is None else less(reply, f"{model.name} was not accepted ({reason})")
            failed.append((model.name, reason))
            best = reply, f"{model.name} was not accepted ({reason})"
        raise AssertionError("a cascade without an end")

    async def _flow(self, request: ModelRequest, start: Start[T]) -> AsyncGenerator[T, None]:
        """The accepted reply, all at once: before it is whole nobody can accept it."""
        reply = await self.generate(request)
        pieces: Any = whole(reply) if start is chunks_of else [reply.text] if reply.text else []
        for piece in pieces:
            yield piece

    def _settled(self, error: ModelError, best: tuple[ModelReply, str] | None, failed: Failed) -> ModelReply:
        """The best reply so far where that is wanted, and where the error is no answer of its own."""
        if best is None or not self._settle or not elsewhere(error):
            raise error
        reply, why = best
        said = f"{why}, and no larger model answered ({reason_of(error)})"
        return less(told(reply, reply.model, "cascade", failed), said)


def unfinished(request: ModelRequest, reply: ModelReply) -> str | None:
    """Accepts what ended by itself and, where a JSON Schema was given, fits it."""
    if reply.finish == "length":
        return "it was cut off"
    if request.json_schema is None:
        return None
    try:
        value = json.loads(request.prefill + reply.text)
    except ValueError:
        return "it is no JSON"
    return "it does not fit the schema" if unfit(value, request.json_schema) else None


async def _judged(accept: Accept, request: ModelRequest, reply: ModelReply) -> str | None:
    verdict = accept(request, reply)
    return await verdict if inspect.isawaitable(verdict) else verdict

"""One configured conversation with a model: who asks, with what setup, within which bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from bicameral.errors import ModelError
from bicameral.models import Message, ModelReply, ModelRequest, Provider, Usage

from ._chambers import Quarantined, privileged_side

Planning = Literal["echo", "delta"]
"""The roles of the privileged side."""
Role = Planning | Literal["quarantined"]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model as it happened: who asked whom, what was asked, what came back."""

    role: Role
    model: str
    request: ModelRequest
    reply: ModelReply
    seconds: float


Listener = Callable[[ModelCall], None]


@dataclass(slots=True)
class Ledger:
    """What the models were asked, counted by role."""

    calls: dict[Role, int] = field(default_factory=dict[Role, int])
    usage: dict[Role, Usage] = field(default_factory=dict[Role, Usage])

    def __call__(self, call: ModelCall) -> None:
        self.calls[call.role] = self.calls.get(call.role, 0) + 1
        self.usage[call.role] = self.usage.get(call.role, Usage()) + call.reply.usage

    @property
    def tokens(self) -> int:
        return sum(usage.prompt + usage.output for usage in self.usage.values())


class Session:
    """A role, a model and a fixed setup. Each `ask` is a conversation of its own: nothing is remembered.

    The setup comes first and never changes, so that a provider can reuse its prefix from one call to the next. The role
    `quarantined` takes a `Quarantined` provider and no other, and no other role takes one.
    """

    @overload
    def __init__(
        self,
        role: Planning,
        provider: Provider,
        setup: tuple[Message, ...],
        *,
        max_tokens: int = 512,
        timeout: float | None = None,
        listener: Listener | None = None,
        adapter: str | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        role: Literal["quarantined"],
        provider: Quarantined,
        setup: tuple[Message, ...],
        *,
        max_tokens: int = 512,
        timeout: float | None = None,
        listener: Listener | None = None,
        adapter: str | None = None,
    ) -> None: ...

    def __init__(
        self,
        role: Role,
        provider: Provider,
        setup: tuple[Message, ...],
        *,
        max_tokens: int = 512,
        timeout: float | None = None,
        listener: Listener | None = None,
        adapter: str | None = None,
    ) -> None:
        self.role: Role = role
        self.provider = _of_its_chamber(role, provider)
        self.setup = setup
        self._max_tokens = max_tokens
        self._timeout = timeout
        self._listener = listener
        self._adapter = adapter

    async def ask(
        self,
        text: str,
        *,
        prefill: str = "",
        json_schema: dict[str, Any] | None = None,
        grammar: str | None = None,
        stop: tuple[str, ...] = (),
        max_tokens: int | None = None,
    ) -> ModelReply:
        """Ask once and wait for the whole reply."""
        request = ModelRequest(
            messages=(*self.setup, Message("user", text)),
            prefill=prefill,
            json_schema=json_schema,
            grammar=grammar,
            stop=stop,
            max_tokens=self._max_tokens if max_tokens is None else max_tokens,
            timeout=self._timeout,
            adapter=self._adapter,
        )
        started = time.perf_counter()
        reply = await self.provider.generate(request)
        seconds = time.perf_counter() - started
        if self._listener is not None:
            self._listener(ModelCall(self.role, self.provider.name, request, reply, seconds))
        return reply


def _of_its_chamber(role: Role, provider: Provider) -> Provider:
    if role != "quarantined":
        return privileged_side(provider)
    if type(provider) is not Quarantined:
        raise ModelError(
            "models.wrong-chamber",
            f"a quarantined session was given a {type(provider).__name__!r}",
            expected="a Quarantined provider",
            fix="Make one with Quarantined(provider).",
        )
    return provider

"""One configured conversation with a model: who asks, with what setup, within which bounds."""

from __future__ import annotations

import time
from typing import Any, Literal, overload

from bicameral.errors import ModelError
from bicameral.models import Message, ModelReply, ModelRequest, Provider

from ._allowance import allowed
from ._chambers import Quarantined, privileged_side
from ._ledger import Listener, ModelCall, Planning, Role, enter
from ._telling import asking, heard


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
        allowed(self.role)
        started = time.perf_counter()
        with asking(self.role, self.provider.name, request) as told:
            reply = await self.provider.generate(request)
            call = ModelCall(self.role, self.provider.name, request, reply, time.perf_counter() - started)
            heard(told, call)
        enter(call)
        if self._listener is not None:
            self._listener(call)
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

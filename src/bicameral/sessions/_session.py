"""One configured model conversation, and the two chambers, separated by type; and the telemetry of model calls.

A model that may read untrusted text never plans or acts. Telemetry reports which model was asked and how many tokens
were read and written, and no part of the texts.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TypedDict, Unpack, final, overload

from bicameral.errors import ModelError
from bicameral.limits import (
    QUARANTINED_ROLES,
    ModelCall,
    PlanningRole,
    QuarantinedRole,
    Role,
    collect_charges,
    current_accounts,
    quota_slot,
    remaining_for_role,
)
from bicameral.models import (
    Chamber,
    EndChunk,
    Message,
    ModelReply,
    ModelRequest,
    Provider,
    ReplyChunk,
    TextChunk,
    ToolSchema,
    stream_chunks,
)
from bicameral.routing import call_context, credentials_of, meter_provider, model_names, resolve_model
from bicameral.telemetry import Fact, Span, count, measure, span

Listener = Callable[[ModelCall], None]


@final
class Quarantined:
    """A model that may read untrusted text. It has no tools and no key of the privileged chamber.

    Only a provider that declares it is accepted: its `chamber` is `quarantined`, or None for one that holds nothing at
    all, such as local weights. The wrapper exposes nothing of the provider except asking. The same weights may serve
    both chambers through two providers.

    Args:
        provider: The provider to wrap; one that is wrapped already is taken as it is.

    Example:
        >>> Session("quarantined", Quarantined(LocalProvider(path, name="local:0.5b")), setup)
    """

    __slots__ = ("_metered", "_provider")

    counts = True
    """Its calls are metered one by one, whatever provider is behind it."""

    def __init__(self, provider: Provider | Quarantined) -> None:
        self._provider: Provider = (
            provider._provider if isinstance(provider, Quarantined) else _require_harmless(provider)
        )
        self._metered = meter_provider(self._provider)

    def __init_subclass__(cls) -> NoReturn:
        # A subclass could override any check or hold a key, and would still pass `isinstance`.
        raise TypeError("a class of somebody's own could hold anything; Quarantined has no subclasses")

    @property
    def chamber(self) -> Chamber:
        return "quarantined"

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def grammars(self) -> bool:
        return self._provider.grammars

    @property
    def adapters(self) -> Mapping[str, str]:
        return self._provider.adapters

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models behind it, for estimates of the cost."""
        return model_names(self._provider)

    def resolve_model(self, role: str = "quarantined") -> str:
        """The alias that calls of a role get."""
        return resolve_model(self._provider, role)

    @property
    def credentials(self) -> frozenset[str]:
        """The fingerprints of the keys behind it, so that a key of the privileged chamber cannot be hidden here."""
        return credentials_of(self._provider)

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._metered.generate(request)

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        return self._metered.stream(request)

    def chunks(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        return stream_chunks(self._metered, request)

    async def aclose(self) -> None:
        await self._provider.aclose()


@dataclass(frozen=True, slots=True)
class Chambers:
    """The models of both chambers. They must be two provider objects, with different keys if they have keys."""

    privileged: Provider
    quarantined: Quarantined

    def __post_init__(self) -> None:
        quarantined = self.quarantined._provider  # pyright: ignore[reportPrivateUsage] the other half of this file
        privileged: Any = self.privileged
        if privileged is quarantined or privileged is self.quarantined:
            raise _shared_chamber("one provider serves both chambers", "Make two; the same weights may be behind both.")
        require_privileged(self.privileged)
        if credentials_of(self.privileged) & credentials_of(quarantined):
            raise _shared_chamber("both chambers use the same key", "Give each chamber a key of its own.")


def require_privileged(provider: Provider) -> Provider:
    """The provider itself, if it may plan; a quarantined one is refused."""
    if type(provider) is Quarantined or _declared_chamber(provider) == "quarantined":
        raise _wrong_chamber(
            f"{provider.name!r} is a quarantined model and cannot plan", "a provider of the privileged side"
        )
    return provider


def _require_harmless(provider: Provider) -> Provider:
    """The provider itself, if it may read untrusted text: no tools, and no key but one of the quarantine."""
    chamber = _declared_chamber(provider)
    if chamber == "privileged":
        raise _wrong_chamber(f"{provider.name!r} is of the privileged side and cannot read untrusted text")
    if getattr(provider, "tools", None):
        raise _wrong_chamber(f"{provider.name!r} holds tools and cannot read untrusted text")
    # Without a declared chamber the key could be the privileged one.
    if chamber is None and credentials_of(provider):
        raise _wrong_chamber(f"{provider.name!r} holds a key and does not say of which chamber it is")
    return provider


def _declared_chamber(provider: Provider) -> Chamber | None:
    undeclared = object()
    chamber: object = getattr(provider, "chamber", undeclared)
    # Exact type only: a subclass of `str` could define `__eq__` and equal both chambers.
    if chamber is not None and (type(chamber) is not str or chamber not in ("privileged", "quarantined")):
        raise _wrong_chamber(f"{type(provider).__name__!r} does not say of which chamber it is")
    return chamber


def _wrong_chamber(
    message: str, expected: str = "a provider that holds no tools and no key but the quarantine's"
) -> ModelError:
    return ModelError(
        "models.wrong-chamber",
        message,
        expected=expected,
        fix="Use one provider object for each chamber, and set its `chamber`.",
    )


def _shared_chamber(message: str, fix: str) -> ModelError:
    return ModelError("models.shared-chamber", message, fix=fix)


class _SessionOptions(TypedDict, total=False):
    max_tokens: int
    timeout: float | None
    listener: Listener | None
    adapter: str | None
    fixed: int


class Session:
    """A role, a model and a fixed setup. Each `ask` is a conversation of its own without memory.

    The setup comes first and never changes, so that a provider can reuse its prefix between calls. The role
    `quarantined` accepts only a `Quarantined` provider, and no other role accepts one.

    Args:
        role: Names the caller in ledgers, budgets and telemetry.
        setup: Messages before every request.
        timeout: Seconds for one call.
        listener: Is called with every successful `ModelCall`.
        adapter: The adapter to use with the model's weights.
        fixed: How many messages of the setup are the same in every process and hold no text of a user.

    Example:
        >>> reply = await Session("delta", provider, (Message("system", "Answer in one word."),)).ask("Is 7 prime?")
    """

    # The static half of the quarantine: a type checker refuses a quarantined role with any other provider.
    @overload
    def __init__(
        self, role: PlanningRole, provider: Provider, setup: tuple[Message, ...], **options: Unpack[_SessionOptions]
    ) -> None: ...

    @overload
    def __init__(
        self,
        role: QuarantinedRole,
        provider: Quarantined,
        setup: tuple[Message, ...],
        **options: Unpack[_SessionOptions],
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
        fixed: int = 0,
    ) -> None:
        self.role: Role = role
        self.provider = _check_chamber(role, provider)
        # `Quarantined` meters its own calls, since nobody else can reach the provider behind it.
        self._metered = provider if type(provider) is Quarantined else meter_provider(provider)
        self.setup = setup
        self._max_tokens = max_tokens
        self._timeout = timeout
        self._listener = listener
        self._adapter = adapter
        self._fixed = fixed

    async def ask(
        self,
        text: str,
        *,
        prefill: str = "",
        json_schema: dict[str, Any] | None = None,
        grammar: str | None = None,
        stop: tuple[str, ...] = (),
        max_tokens: int | None = None,
        confidence: bool = False,
        temperature: float = 0.0,
        seed: int = 0,
        hear: Callable[[str], None] | None = None,
    ) -> ModelReply:
        """Ask once and wait for the whole reply.

        `prefill` is the beginning of the reply, which the model continues; with `confidence` the reply reports how sure
        the model was. With a `temperature` above 0 another `seed` gives another reply. `hear` gets the text while it is
        written, if the provider can stream it.
        """
        request = ModelRequest(
            messages=(*self.setup, Message("user", text)),
            prefill=prefill,
            json_schema=json_schema,
            grammar=grammar,
            stop=stop,
            max_tokens=self._max_tokens if max_tokens is None else max_tokens,
            timeout=self._timeout,
            adapter=self._adapter,
            confidence=confidence,
            temperature=temperature,
            seed=seed,
            fixed=self._fixed,
        )
        return await self._send(request, None, hear)

    async def prepare(self) -> None:
        """Let the model read the fixed messages of the setup, so that a provider can keep what it has read.

        Nobody asked for it, so no account pays and no listener hears of it: only for a model on this machine.
        """
        messages = (*self.setup[: self._fixed], Message("user", "-"))
        with call_context(
            role=self.role, chamber=_chamber_of_role(self.role), trusted=self.role not in QUARANTINED_ROLES
        ):
            await self.provider.generate(
                ModelRequest(messages, max_tokens=1, timeout=self._timeout, adapter=self._adapter, fixed=self._fixed)
            )

    async def converse(
        self,
        messages: tuple[Message, ...],
        *,
        job: str | None = None,
        tools: tuple[ToolSchema, ...] = (),
        json_schema: dict[str, Any] | None = None,
        model: str | None = None,
        hear: Callable[[str], None] | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        must_call: bool = False,
    ) -> ModelReply:
        """Ask with a whole conversation after the setup; the reply may request tool calls.

        A reply causes no call by itself: the caller has to let policy decide first.

        Args:
            job: The purpose of the call, where the model is routed by it.
            model: An alias or a hint for the router.
            hear: Gets the text while it is written, if the provider can stream it.
            temperature: Above 0, another `seed` gives another reply.
            must_call: Whether the reply must ask for a tool, where the provider can enforce it.
        """
        request = ModelRequest(
            messages=(*self.setup, *messages),
            json_schema=json_schema,
            max_tokens=self._max_tokens,
            temperature=temperature,
            seed=seed,
            timeout=self._timeout,
            model=model,
            tools=tools,
            must_call=must_call,
        )
        return await self._send(request, job, hear)

    async def _send(
        self, request: ModelRequest, job: str | None = None, hear: Callable[[str], None] | None = None
    ) -> ModelReply:
        # The accounts first: a call that is refused should not wait for a slot.
        for account in current_accounts():
            account.start_reply(self.role)
        chamber = _chamber_of_role(self.role)
        async with quota_slot("model", chamber):
            return await self._generate(request, chamber, job, hear)

    async def _generate(
        self, request: ModelRequest, chamber: Chamber, job: str | None, hear: Callable[[str], None] | None
    ) -> ModelReply:
        started = time.perf_counter()
        with (
            call_context(
                role=job or self.role,
                chamber=chamber,
                trusted=chamber == "privileged",
                **remaining_for_role(job or self.role),
            ),
            _model_span(self.role, self.provider.name, request) as call_span,
            collect_charges() as charges,
        ):
            try:
                if hear is None:
                    reply = await self._metered.generate(request)
                else:
                    reply = await _stream_reply(self._metered, request, hear)
            except BaseException:
                # A failed or cancelled call costs money too.
                for account in current_accounts() if charges else ():
                    account.add_lost(self.role, charges)
                raise
            seconds = time.perf_counter() - started
            call = ModelCall(self.role, reply.model or self.provider.name, request, reply, seconds, tuple(charges))
            _record_reply(call_span, call)
        # Accounts before the listener, so that a listener that raises cannot hide a cost.
        for account in current_accounts():
            account.add_reply(call)
        if self._listener is not None:
            self._listener(call)
        return reply


async def _stream_reply(provider: Provider, request: ModelRequest, hear: Callable[[str], None]) -> ModelReply:
    """The whole reply; `hear` gets its text as it arrives."""
    reply: ModelReply | None = None
    async with aclosing(stream_chunks(provider, request)) as chunks:
        async for chunk in chunks:
            match chunk:
                case TextChunk(text=text):
                    # A listener must not be able to change the outcome of a call.
                    with suppress(Exception):
                        hear(text)
                case EndChunk(reply=reply):
                    pass
                case _:
                    pass
    if reply is None:
        raise ModelError("models.bad-reply", f"{provider.name!r} broke off in the middle of its reply")
    return reply


def _check_chamber(role: Role, provider: Provider) -> Provider:
    """The provider itself, if the role may use it."""
    if role not in QUARANTINED_ROLES:
        return require_privileged(provider)
    if type(provider) is not Quarantined:
        raise ModelError(
            "models.wrong-chamber",
            f"a quarantined session was given a {type(provider).__name__!r}",
            expected="a Quarantined provider",
            fix="Make one with Quarantined(provider).",
        )
    return provider


def _model_span(role: Role, name: str, request: ModelRequest) -> Span:
    """The span of a model call, by the OpenTelemetry conventions for generative models."""
    facts: dict[str, Fact] = {
        "gen_ai.operation.name": "chat",
        **_model_facts(name),
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.request.seed": request.seed,
        "gen_ai.output.type": "json" if request.json_schema is not None else "text",
        "bicameral.role": role,
        "bicameral.chamber": _chamber_of_role(role),
    }
    return span("chat", str(facts["gen_ai.request.model"]), facts, kind="client")


def _record_reply(call_span: Span, call: ModelCall) -> None:
    """Add the facts of a reply to its span, and count its tokens."""
    usage = call.reply.usage
    if call_span.is_recording:
        call_span.set_facts(
            {
                "gen_ai.response.finish_reasons": (call.reply.finish,),
                "gen_ai.usage.input_tokens": usage.prompt,
                "gen_ai.usage.output_tokens": usage.output,
                "gen_ai.usage.cache_read.input_tokens": usage.cached,
            }
        )
    facts: dict[str, Fact] = {"gen_ai.operation.name": "chat", **_model_facts(call.model)}
    facts["bicameral.chamber"] = _chamber_of_role(call.role)
    measure("gen_ai.client.token.usage", usage.prompt, facts | {"gen_ai.token.type": "input"})
    measure("gen_ai.client.token.usage", usage.output, facts | {"gen_ai.token.type": "output"})
    measure("gen_ai.client.operation.duration", call.seconds, facts)
    side = "executor" if call.role in QUARANTINED_ROLES else "reasoner"
    count(f"bicameral.{side}_tokens", usage.prompt + usage.output, facts)


def _chamber_of_role(role: Role) -> Chamber:
    return "quarantined" if role in QUARANTINED_ROLES else "privileged"


def _model_facts(name: str) -> dict[str, Fact]:
    """Provider and model of a name such as `local:0.5b@f7e2a9c1`."""
    provider, colon, model = name.partition(":")
    return {"gen_ai.provider.name": provider or "unknown", "gen_ai.request.model": model if colon else name}

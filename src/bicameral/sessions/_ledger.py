"""Accounting of model calls: ledgers by role and chamber, allowances that may refuse a call, and telemetry.

Telemetry reports which model was asked and how many tokens were read and written, and no part of the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, astuple, dataclass, field
from operator import add
from typing import Any, Literal

from bicameral.limits import Charge
from bicameral.models import ModelReply, ModelRequest, Usage
from bicameral.telemetry import Fact, Span, count, measure, span

PlanningRole = Literal["echo", "delta", "planning", "reasoning", "acting", "reflecting", "summarizing"]
"""The roles of the privileged chamber: those of a compiled plan, and those of the phases of a strategy."""
Role = PlanningRole | Literal["quarantined"]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One model call: its role, the model, the request and the reply.

    `charges` has one entry for each model that was asked for this reply: retries, fallbacks and hedged requests
    included.
    """

    role: Role
    model: str
    request: ModelRequest
    reply: ModelReply
    seconds: float
    charges: tuple[Charge, ...] = ()

    @property
    def usage(self) -> Usage:
        """The tokens of all requests that were made for this reply."""
        return sum((charge.usage for charge in self.charges), Usage()) if self.charges else self.reply.usage

    def to_json(self) -> dict[str, Any]:
        """For the journal: the model, the route and the cost; no part of the texts."""
        route, degraded = self.reply.route, self.reply.degraded
        return {
            "role": self.role,
            "model": self.model,
            "seconds": round(self.seconds, 6),
            "charges": [charge.to_json() for charge in self.charges],
            **({} if route is None else {"route": route.to_json()}),
            **({} if degraded is None else {"degraded": degraded}),
        }


Listener = Callable[[ModelCall], None]


@dataclass(frozen=True, slots=True)
class ChamberUsage:
    """Model usage by chamber: the reasoner is the privileged one, the executor the quarantined one.

    Tokens are those read and those written, together.
    """

    reasoner_tokens: int = 0
    executor_tokens: int = 0
    reasoner_calls: int = 0
    executor_calls: int = 0

    @property
    def calls(self) -> int:
        """Of both chambers."""
        return self.reasoner_calls + self.executor_calls

    @property
    def tokens(self) -> int:
        """Of both chambers."""
        return self.reasoner_tokens + self.executor_tokens

    def __add__(self, other: ChamberUsage) -> ChamberUsage:
        return ChamberUsage(*map(add, astuple(self), astuple(other)))

    def to_json(self) -> dict[str, int]:
        return asdict(self)


_MAX_DEGRADED = 50


@dataclass(slots=True)
class Ledger:
    """Model calls, counted by role; `money` is the part of the cost that is known.

    `degraded` lists the ways in which replies were less than requested, each once. For the journal, `records` has the
    successful calls one by one and `lost` the failed ones that cost something; both stay empty if `records` is None.
    """

    calls: dict[Role, int] = field(default_factory=dict[Role, int])
    usage: dict[Role, Usage] = field(default_factory=dict[Role, Usage])
    money: dict[Role, float] = field(default_factory=dict[Role, float])
    degraded: list[str] = field(default_factory=list[str])
    records: list[dict[str, Any]] | None = None
    lost: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __call__(self, call: ModelCall) -> None:
        self.calls[call.role] = self.calls.get(call.role, 0) + 1
        self._add(call.role, call.usage, call.charges)
        degraded = call.reply.degraded
        if degraded is not None and degraded not in self.degraded and len(self.degraded) < _MAX_DEGRADED:
            self.degraded.append(degraded)
        if self.records is not None:
            self.records.append(call.to_json())

    def add_lost(self, role: Role, charges: Sequence[Charge]) -> None:
        """Add a call that failed, with its charges."""
        self._add(role, sum((charge.usage for charge in charges), Usage()), charges)
        if self.records is not None:
            self.lost.append({"role": role, "charges": [charge.to_json() for charge in charges], "failed": True})

    def _add(self, role: Role, usage: Usage, charges: Sequence[Charge]) -> None:
        self.usage[role] = self.usage.get(role, Usage()) + usage
        self.money[role] = self.money.get(role, 0.0) + sum(charge.money or 0.0 for charge in charges)

    @property
    def tokens(self) -> int:
        return sum(usage.prompt + usage.output for usage in self.usage.values())

    @property
    def spent(self) -> ChamberUsage:
        """The usage by chamber: every role except `quarantined` is the reasoner's."""
        executor, calls = self.usage.get("quarantined", Usage()), self.calls.get("quarantined", 0)
        tokens = executor.prompt + executor.output
        return ChamberUsage(self.tokens - tokens, tokens, sum(self.calls.values()) - calls, calls)


_LEDGERS: ContextVar[tuple[Ledger, ...]] = ContextVar("bicameral-counting", default=())


@contextmanager
def open_ledger() -> Generator[Ledger]:
    """A ledger of every model call made inside, also by tasks started there; concurrent calls elsewhere do not count.

    Example:
        >>> with open_ledger() as ledger:
        ...     planned = await agent.plan(request)
        >>> ledger.spent.reasoner_tokens
    """
    # A context variable: tasks inherit it, and concurrent runs in one process do not see each other's ledgers.
    ledger = Ledger(records=[])
    token = _LEDGERS.set((*_LEDGERS.get(), ledger))
    try:
        yield ledger
    finally:
        _LEDGERS.reset(token)


def record_lost_call(role: Role, charges: Sequence[Charge]) -> None:
    """Add the charges of a failed call to every open ledger."""
    if charges:
        for ledger in _LEDGERS.get():
            ledger.add_lost(role, charges)


def record_call(call: ModelCall) -> None:
    """Add a call to every open ledger."""
    for ledger in _LEDGERS.get():
        ledger(call)


Allowance = Callable[[Role], None]
"""Is called before every model call, and raises if no further call may be made."""

_ALLOWANCES: ContextVar[tuple[Allowance, ...]] = ContextVar("bicameral-allowance", default=())


@contextmanager
def enforce_allowance(allowance: Allowance) -> Generator[None]:
    """Check every model call made inside against this allowance, also those of tasks started there."""
    token = _ALLOWANCES.set((*_ALLOWANCES.get(), allowance))
    try:
        yield
    finally:
        _ALLOWANCES.reset(token)


def check_allowance(role: Role) -> None:
    """Ask every active allowance whether one more call may be made."""
    for allowance in _ALLOWANCES.get():
        allowance(role)


def model_span(role: Role, name: str, request: ModelRequest) -> Span:
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


def record_reply(call_span: Span, call: ModelCall) -> None:
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
    side = "executor" if call.role == "quarantined" else "reasoner"
    count(f"bicameral.{side}_tokens", usage.prompt + usage.output, facts)


def _chamber_of_role(role: Role) -> str:
    return "quarantined" if role == "quarantined" else "privileged"


def _model_facts(name: str) -> dict[str, Fact]:
    """Provider and model of a name such as `local:0.5b@f7e2a9c1`."""
    provider, colon, model = name.partition(":")
    return {"gen_ai.provider.name": provider or "unknown", "gen_ai.request.model": model if colon else name}

"""What model calls use: the charge of each request, the reply it was made for, and sums of them.

A reply that came after a retry, from the second model of a cascade or from a hedged request costs more than its own
tokens. Every model that is really asked reports its own charge, so no cost is missed.
"""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, field
from operator import add
from typing import Any, Literal

from bicameral.limits._limits import BUDGET, Scope
from bicameral.models import ModelReply, ModelRequest, Usage

PlanningRole = Literal["echo", "delta", "planning", "reasoning", "acting", "reflecting", "summarizing"]
"""The roles of the privileged chamber: those of a compiled plan, and those of the phases of a strategy."""
Role = PlanningRole | Literal["quarantined"]

CallEnding = Literal["answered", "failed", "cancelled", "remembered"]
"""How a call ended: with a reply, with an error, cancelled, or with a reply from the cache."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One call of one model: its tokens, their cost, and how it ended. `money` is None where no price is known.

    `estimated` says that the tokens are a guess from the length of the texts. No provider reports how much a cancelled
    call had written, so only its prompt is counted.
    """

    model: str
    usage: Usage
    seconds: float
    money: float | None = 0.0
    ending: CallEnding = "answered"
    role: str | None = None
    phase: str | None = None
    estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.usage.prompt + self.usage.output

    def to_json(self) -> dict[str, Any]:
        """For the journal; facts that are unknown or have their default are left out."""
        pairs = (("role", self.role), ("phase", self.phase), ("estimated", self.estimated or None))
        return {
            "model": self.model,
            "prompt": self.usage.prompt,
            "cached": self.usage.cached,
            "output": self.usage.output,
            "money": self.money,
            "seconds": round(self.seconds, 6),
            "ending": self.ending,
            **{name: value for name, value in pairs if value is not None},
        }


@dataclass(frozen=True, slots=True, eq=False)
class PendingCall:
    """A call that is about to be made: the model, the role, and an estimate of its prompt tokens."""

    model: str
    role: str | None
    prompt_tokens: int
    has_price: bool
    is_real: bool = True
    """False for a reply from the cache, for which no model is asked."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One reply to a session: its role, the model, the request and the reply.

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


@dataclass(slots=True, kw_only=True)
class LimitUsage:
    """How much was taken of each bound of a scope.

    `pending_tokens` are those of calls under way, which are as good as spent. `models` is the usage by chamber, where
    replies are counted.
    """

    rounds: int = 0
    calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    pending_tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0
    models: ChamberUsage = field(default_factory=ChamberUsage)
    scope: Scope = BUDGET

    @classmethod
    def of_models(cls, models: ChamberUsage, scope: Scope, **taken: Any) -> LimitUsage:
        """The usage of models by chamber, and what else was `taken`."""
        return cls(calls=models.calls, tokens=models.tokens, models=models, scope=scope, **taken)

    def to_json(self) -> dict[str, Any]:
        """What was taken of each bound, and the usage by chamber."""
        digits = {"money": 9, "seconds": 3}
        taken = {bound: getattr(self, bound) for bound in self.scope.bounds if bound != "work"}
        taken |= {bound: round(taken[bound], digits[bound]) for bound in taken.keys() & digits.keys()}
        return {**taken, **self.models.to_json()}

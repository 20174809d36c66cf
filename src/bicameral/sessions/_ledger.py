"""What the models were asked and what that cost, by role and by chamber."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from bicameral.models import ModelReply, ModelRequest, Usage

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


@dataclass(frozen=True, slots=True)
class Spent:
    """What models cost, by chamber: the reasoner is the privileged one, the executor the quarantined one.

    Tokens are those read and those written, together.
    """

    reasoner_tokens: int = 0
    executor_tokens: int = 0
    reasoner_calls: int = 0
    executor_calls: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.reasoner_tokens + other.reasoner_tokens,
            self.executor_tokens + other.executor_tokens,
            self.reasoner_calls + other.reasoner_calls,
            self.executor_calls + other.executor_calls,
        )

    def to_json(self) -> dict[str, int]:
        return {
            "reasoner_tokens": self.reasoner_tokens,
            "executor_tokens": self.executor_tokens,
            "reasoner_calls": self.reasoner_calls,
            "executor_calls": self.executor_calls,
        }


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

    @property
    def spent(self) -> Spent:
        """The same by chamber: whatever is not quarantined is the reasoner's."""
        executor, calls = self.usage.get("quarantined", Usage()), self.calls.get("quarantined", 0)
        tokens = executor.prompt + executor.output
        return Spent(self.tokens - tokens, tokens, sum(self.calls.values()) - calls, calls)


_COUNTING: ContextVar[tuple[Ledger, ...]] = ContextVar("bicameral-counting", default=())


@contextmanager
def counted() -> Generator[Ledger]:
    """A ledger of every model call made inside, also by tasks begun there; others at the same time do not count.

    Example:
        >>> with counted() as ledger:
        ...     planned = await agent.plan(request)
        >>> ledger.spent.reasoner_tokens
    """
    ledger = Ledger()
    before = _COUNTING.set((*_COUNTING.get(), ledger))
    try:
        yield ledger
    finally:
        _COUNTING.reset(before)


def enter(call: ModelCall) -> None:
    """Write a call into every ledger that is open around it."""
    for ledger in _COUNTING.get():
        ledger(call)

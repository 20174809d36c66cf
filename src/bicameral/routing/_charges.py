"""What each call of a model cost, told to everyone who keeps accounts around it.

A reply that came after a retry, from the second model of a cascade or beside a hedge has cost more than itself. Every
model that is really asked tells its own charge, so that nothing is paid unseen.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from bicameral.models import ModelRequest, Usage

Ending = Literal["answered", "failed", "cancelled", "remembered"]
"""How a call ended: with a reply, with an error, called off, or with a reply that was kept from before."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One call of one model: its tokens, what they cost, and how it ended. `money` is None where no price is known.

    `estimated` says that the tokens are a guess from the length of the texts: of a call that was called off nobody
    tells how much it had written, so that only what it read is counted.
    """

    model: str
    usage: Usage
    seconds: float
    money: float | None = 0.0
    ending: Ending = "answered"
    role: str | None = None
    phase: str | None = None
    estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.usage.prompt + self.usage.output

    def to_json(self) -> dict[str, Any]:
        """For the journal: what is not known or not worth telling is left out."""
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


class Account(Protocol):
    """Whoever counts calls: asked before each one, and told what it cost."""

    def begin(self, call: Asked) -> None:
        """Before a model is asked; raises if it must not be."""
        ...

    def end(self, call: Asked, charge: Charge) -> None:
        """When it has ended, however it did; once for each `begin` that did not raise."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A call that is about to be made: of which model, for which role, about how many tokens it reads."""

    model: str
    request: ModelRequest
    role: str | None
    reads: int
    price_known: bool
    real: bool = True
    """False for a reply that was kept from before: nothing was begun."""


_AROUND: ContextVar[tuple[Account, ...]] = ContextVar("bicameral-accounts", default=())


@contextmanager
def accounted(account: Account) -> Generator[None]:
    """Have every model call made inside counted here too, also those of tasks begun there."""
    before = _AROUND.set((*_AROUND.get(), account))
    try:
        yield
    finally:
        _AROUND.reset(before)


def accounts() -> tuple[Account, ...]:
    """Those who count what is asked now, outermost first."""
    return _AROUND.get()


class Charges(list[Charge]):
    """An account that only keeps what it is told."""

    def begin(self, call: Asked) -> None: ...

    def end(self, call: Asked, charge: Charge) -> None:
        self.append(charge)


@contextmanager
def charged() -> Generator[Charges]:
    """The charges of every model call made inside.

    Example:
        >>> with charged() as charges:
        ...     reply = await cascade.generate(request)
        >>> sum(charge.tokens for charge in charges)
    """
    charges = Charges()
    with accounted(charges):
        yield charges

"""Whoever bounds what models may cost is asked before each call of one, and can refuse it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from ._ledger import Role

Allowance = Callable[[Role], None]
"""Asked before every call; it raises what is to be raised where no call may be made any more."""

_AROUND: ContextVar[tuple[Allowance, ...]] = ContextVar("bicameral-allowance", default=())


@contextmanager
def within(allowance: Allowance) -> Generator[None]:
    """Hold every model call made inside to this allowance, also those of tasks begun there."""
    before = _AROUND.set((*_AROUND.get(), allowance))
    try:
        yield
    finally:
        _AROUND.reset(before)


def allowed(role: Role) -> None:
    """Ask everyone around whether one more call may be made."""
    for allowance in _AROUND.get():
        allowance(role)

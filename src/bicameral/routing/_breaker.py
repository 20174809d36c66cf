"""A circuit breaker: a model that keeps failing is left alone for a while, and then tried with one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bicameral.errors import ModelError

from ._clock import now

State = Literal["closed", "open", "half-open"]
_LONGEST = 300.0
"""A service that wants to be left alone for longer is tried again after this."""


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """After so many failures in a row a model is not asked for so many seconds."""

    failures: int = 5
    rest: float = 30.0

    def __post_init__(self) -> None:
        if self.failures < 1 or not self.rest > 0:
            raise ModelError("models.bad-setting", "a circuit breaker needs 1 or more failures and more than 0 seconds")


class Breaker:
    """Closed: every call passes. Open: none does. Half-open: one passes, and how that ends decides.

    Every call that `allows` let through ends in exactly one of `succeeded`, `failed` and `released`.
    """

    def __init__(self, settings: BreakerSettings | None = None, clock: Callable[[], float] = now) -> None:
        self._settings = settings or BreakerSettings()
        self._clock = clock
        self._failures = 0
        self._until: float | None = None
        self._trying = False

    @property
    def state(self) -> State:
        if self._until is None:
            return "closed"
        return "open" if self._clock() < self._until else "half-open"

    def allows(self) -> bool:
        """Whether a call may be made now. In the half-open state the first who asks may, and the others wait."""
        state = self.state
        if state == "half-open" and not self._trying:
            self._trying = True
            return True
        return state == "closed"

    def succeeded(self) -> None:
        """The model answered, if only with a no."""
        self._failures, self._until, self._trying = 0, None, False

    def failed(self, retry_after: float | None = None) -> None:
        """The model did not answer; `retry_after` is for how long it asked to be left alone."""
        self._failures += 1
        self._trying = False
        rest = self._settings.rest if self._until is not None or self._failures >= self._settings.failures else 0.0
        rest = max(rest, min(retry_after or 0.0, _LONGEST))
        if rest > 0:
            # Calls that were begun before it opened do not open it for longer than the last of them says.
            self._until = max(self._until or 0.0, self._clock() + rest)

    def released(self) -> None:
        """The call was called off: nothing is known of the model."""
        self._trying = False

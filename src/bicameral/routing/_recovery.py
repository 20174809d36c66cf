"""Recovery from failures: retries of one model, a circuit breaker, and fallback to another model of the same side.

A refusal is an answer: it is never retried, and no other model is asked for a better one. Unknown errors are raised.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from bicameral.errors import BicameralError, ModelError
from bicameral.limits import BudgetSpent
from bicameral.models import ModelReply, Provider
from bicameral.routing._context import Deadline, loop_time
from bicameral.routing._wrapper import AskModel, AttemptingWrapper, FailedAttempts, Served, add_attempts, mark_degraded

REFUSAL_CODE = "models.refused"
"""The model refuses by its own policy. That is an answer: no other model is asked for a better one."""

RETRYABLE_CODES = frozenset({"models.rate-limited", "models.unavailable", "models.timeout", "models.bad-reply"})
"""Errors after which the same model may be called again."""

FALLBACK_CODES = RETRYABLE_CODES | {
    "models.auth",
    "models.circuit-open",
    "models.prompt-too-long",
    "models.load-failed",
    "models.engine-failed",
    "models.missing-package",
    "models.missing-key",
}
"""Errors after which another model of the same side may be called."""


def is_retryable(error: BaseException) -> bool:
    """Whether the same model may be called again."""
    return isinstance(error, ModelError) and error.code in RETRYABLE_CODES


def can_fall_back(error: BaseException) -> bool:
    """Whether another model may be called instead. Unknown errors are raised."""
    if isinstance(error, BudgetSpent):
        # Only the budget of this model is spent, and not that of the run: another model can go on.
        return error.scope == "model"
    return isinstance(error, ModelError) and error.code in FALLBACK_CODES


def is_refusal(error: BaseException) -> bool:
    return isinstance(error, BicameralError) and error.code == REFUSAL_CODE


def requested_delay(error: BaseException) -> float | None:
    """The seconds that the server asks to wait, if it does."""
    wanted: object = getattr(error, "retry_after", None)
    # Not a bool, and neither `nan` nor infinite.
    return float(wanted) if type(wanted) in (int, float) and 0 <= float(wanted) < 1e9 else None  # pyright: ignore[reportArgumentType]


def failure_reason(error: BaseException) -> str:
    """An error in a few words, for the route of the reply."""
    if not isinstance(error, BicameralError):
        return type(error).__name__
    return error.code.partition(".")[2].replace("-", " ")


BreakerState = Literal["closed", "open", "half-open"]
_MAX_REST_SECONDS = 300.0
"""A server that asks for a longer rest is tried again after this."""


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """After `failures` failures in a row a model is not called for `rest` seconds."""

    failures: int = 5
    rest: float = 30.0

    def __post_init__(self) -> None:
        if self.failures < 1 or not self.rest > 0:
            raise ModelError("models.bad-setting", "a circuit breaker needs 1 or more failures and more than 0 seconds")


class CircuitBreaker:
    """Closed: every call passes. Open: none does. Half-open: one passes, and its outcome decides.

    Every call that `allows` let through ends in exactly one of `record_success`, `record_failure` and `release`.
    """

    def __init__(self, settings: BreakerSettings | None = None, clock: Callable[[], float] = loop_time) -> None:
        self._settings = settings or BreakerSettings()
        self._clock = clock
        self._failures = 0
        self._until: float | None = None
        self._trying = False

    @property
    def state(self) -> BreakerState:
        if self._until is None:
            return "closed"
        return "open" if self._clock() < self._until else "half-open"

    def allows(self) -> bool:
        """Whether a call may be made now. In the half-open state only the first caller may."""
        state = self.state
        if state == "half-open" and not self._trying:
            self._trying = True
            return True
        return state == "closed"

    def record_success(self) -> None:
        """The model answered; a refusal is an answer, too."""
        self._failures, self._until, self._trying = 0, None, False

    def record_failure(self, retry_after: float | None = None) -> None:
        """The model did not answer; `retry_after` are the seconds that it asks to wait."""
        self._failures += 1
        self._trying = False
        rest = self._settings.rest if self._until is not None or self._failures >= self._settings.failures else 0.0
        rest = max(rest, min(retry_after or 0.0, _MAX_REST_SECONDS))
        if rest > 0:
            # Calls that began before it opened extend the rest only as far as the last of them asks.
            self._until = max(self._until or 0.0, self._clock() + rest)

    def release(self) -> None:
        """The call was cancelled, which says nothing about the model."""
        self._trying = False


R = TypeVar("R")

_RANDOM_SHARE: Callable[[], float] = secrets.SystemRandom().random


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often a model is called at most, and the delay before each retry.

    Args:
        attempts: Calls in all.
        first: The first delay in seconds; it doubles up to `most`.
        jitter: The share of a delay, from 0 to 1, of which a random part is left off, so that callers that failed
            together do not return together.
        patience: The longest delay that a server may ask for; if it asks for more, the error is raised.
        each: The most seconds for one attempt.
    """

    attempts: int = 3
    first: float = 0.5
    most: float = 30.0
    jitter: float = 0.5
    patience: float = 60.0
    each: float | None = None

    def __post_init__(self) -> None:
        valid = self.attempts >= 1 and 0 <= self.first <= self.most and 0 <= self.jitter <= 1 and self.patience >= 0
        if not valid or (self.each is not None and not self.each > 0):
            raise ModelError("models.bad-setting", f"these settings for trying again make no sense: {self}")

    def wait(self, attempt: int, wanted: float | None, chance: float) -> float:
        """The delay after this many attempts; never less than the server wants."""
        # The exponent is bounded: a large power of 2.0 overflows.
        delay = min(self.most, self.first * 2.0 ** min(attempt - 1, 60))
        return max(delay * (1 - self.jitter * chance), wanted or 0.0)


class Retry(AttemptingWrapper):
    """A model that is called again after a rate limit, an outage, a timeout or a malformed reply.

    Never after a refusal, never past the deadline of the call, and never once a part of the reply was yielded.

    Example:
        >>> Retry(provider, RetrySettings(attempts=5))
    """

    def __init__(
        self, provider: Provider, settings: RetrySettings | None = None, *, chance: Callable[[], float] = _RANDOM_SHARE
    ) -> None:
        super().__init__([provider])
        self._settings = settings or RetrySettings()
        self._chance = chance

    async def _serve(self, deadline: Deadline, ask: AskModel[R]) -> Served[R]:
        """The first success, with the failures before it."""
        failed: FailedAttempts = []
        while True:
            try:
                result = await ask(self._providers[0], self._attempt_deadline(deadline))
                return Served(result, lambda reply: add_attempts(reply, self.name, "retry", failed))
            except ModelError as error:
                await self._wait_or_raise(error, len(failed) + 1, deadline)
                failed.append((self.name, failure_reason(error)))

    def _attempt_deadline(self, deadline: Deadline) -> Deadline:
        each = self._settings.each
        if each is None or not deadline.is_after(loop_time() + each):
            return deadline
        return Deadline(loop_time() + each)

    async def _wait_or_raise(self, error: ModelError, attempt: int, deadline: Deadline) -> None:
        """Wait for the next attempt; raise the error if there is none, or not before the deadline."""
        wanted = requested_delay(error)
        if not is_retryable(error) or attempt >= self._settings.attempts or (wanted or 0.0) > self._settings.patience:
            raise error
        delay = self._settings.wait(attempt, wanted, self._chance())
        if not deadline.is_after(loop_time() + delay):
            raise error
        await asyncio.sleep(delay)


class Fallback(AttemptingWrapper):
    """The first of these models that answers. A reply of any but the first is degraded, and says why.

    A model that keeps failing is not called for a while (see `CircuitBreaker`). A refusal is an answer: it is raised,
    and no other model is called.

    Args:
        breaker: The settings of the circuit breakers.
        breakers: Circuit breakers by the name of the model, to share them between several fallbacks.

    Example:
        >>> Fallback([main, fast, local])
    """

    def __init__(
        self,
        models: list[Provider] | tuple[Provider, ...],
        *,
        breaker: BreakerSettings | None = None,
        breakers: Mapping[str, CircuitBreaker] | None = None,
        clock: Callable[[], float] = loop_time,
    ) -> None:
        super().__init__(models)
        known = breakers or {}
        self._breakers = tuple(known.get(each.name) or CircuitBreaker(breaker, clock) for each in self._providers)

    async def _serve(self, deadline: Deadline, ask: AskModel[R]) -> Served[R]:
        """The result of the first model that answers."""
        failed: FailedAttempts = []
        errors: list[ModelError] = []
        for model, breaker in zip(self._providers, self._breakers, strict=True):
            if not breaker.allows():
                failed.append((model.name, "circuit open"))
                continue
            try:
                result = await ask(model, deadline)
            except ModelError as error:
                _record_outcome(breaker, error)
                if not can_fall_back(error):
                    raise
                failed.append((model.name, failure_reason(error)))
                errors.append(error)
            except BaseException:
                # Cancelled, or a bug: it says nothing about the model.
                breaker.release()
                raise
            else:
                breaker.record_success()
                # A stream that fails later cannot fall back any more, but the breaker must know it for the next call.
                return Served(result, partial(_mark_fallback, model.name, failed), partial(_record_outcome, breaker))
        raise self._all_failed_error(failed, errors)

    def _all_failed_error(self, failed: FailedAttempts, errors: list[ModelError]) -> ModelError:
        """The one failure as it is, or one error that names them all."""
        if len(failed) == 1 and errors:
            return errors[0]
        if not errors:
            code, fix = "models.circuit-open", "They failed too often just now; try again in a while."
        else:
            codes = {error.code for error in errors}
            code, fix = (codes.pop() if len(codes) == 1 else "models.unavailable"), None
        error = ModelError(code, f"no model answered: {'; '.join(f'{name}: {why}' for name, why in failed)}", fix=fix)
        waits = [wait for each in errors if (wait := requested_delay(each)) is not None]
        if waits and len(waits) == len(failed):
            error.retry_after = min(waits)  # pyright: ignore[reportAttributeAccessIssue]
        return error


def _mark_fallback(name: str, failed: FailedAttempts, reply: ModelReply) -> ModelReply:
    """The reply; one of any but the first model is degraded."""
    if not failed:
        return reply
    first, why = failed[0]
    reply = add_attempts(reply, name, "fallback", failed)
    return mark_degraded(reply, f"{name} answered instead of {first} ({why})")


def _record_outcome(breaker: CircuitBreaker, error: ModelError) -> None:
    """Tell the breaker of an error. A model that refuses, or rejects the request, is available."""
    if can_fall_back(error) and error.code not in ("models.prompt-too-long", "models.budget-spent"):
        breaker.record_failure(requested_delay(error))
    else:
        breaker.record_success()

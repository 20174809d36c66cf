"""What a failure calls for: another try, another model, or nothing at all."""

from __future__ import annotations

from bicameral.errors import BicameralError, ModelError

from ._spent import BudgetSpent

REFUSED = "models.refused"
"""The model's own policy says no. That is an answer, and no other model is asked for a better one."""

AGAIN = frozenset({"models.rate-limited", "models.unavailable", "models.timeout", "models.bad-reply"})
"""What may go well the next time with the same model."""

ELSEWHERE = AGAIN | {
    "models.auth",
    "models.circuit-open",
    "models.prompt-too-long",
    "models.load-failed",
    "models.engine-failed",
    "models.missing-package",
    "models.missing-key",
}
"""What may go well with another model of the same side."""


def again(error: BaseException) -> bool:
    """Whether the same model may be asked once more."""
    return isinstance(error, ModelError) and error.code in AGAIN


def elsewhere(error: BaseException) -> bool:
    """Whether another model may be asked instead. Unknown errors are nobody's business here and go up."""
    if isinstance(error, BudgetSpent):
        # What one model may cost is spent, and not what the run may: another can go on.
        return error.scope == "model"
    return isinstance(error, ModelError) and error.code in ELSEWHERE


def refused(error: BaseException) -> bool:
    return isinstance(error, BicameralError) and error.code == REFUSED


def retry_after(error: BaseException) -> float | None:
    """For how many seconds the service asks to be left alone, if it says so."""
    wanted: object = getattr(error, "retry_after", None)
    # Not a bool, and neither `nan` nor endless.
    return float(wanted) if type(wanted) in (int, float) and 0 <= float(wanted) < 1e9 else None  # pyright: ignore[reportArgumentType]


def reason_of(error: BaseException) -> str:
    """A failure in a few words, for the reply that came from elsewhere."""
    if not isinstance(error, BicameralError):
        return type(error).__name__
    return error.code.partition(".")[2].replace("-", " ")

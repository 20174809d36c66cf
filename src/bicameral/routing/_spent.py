"""The outcome of a call that was not made, since what it may cost is spent."""

from __future__ import annotations

from typing import Any, Literal

from bicameral.errors import ModelError

Bound = Literal["calls", "tokens", "money", "seconds"]
"""What a budget can run out of."""
Scope = Literal["run", "role", "model"]
"""Whose budget it is: that of a whole run, of one role in it, or of one model."""


class BudgetSpent(ModelError):
    """A model was not asked: `bound` is what has run out, `spent` of `limit`, for `whom` of this `scope`."""

    def __init__(self, bound: Bound, spent: float, limit: float, scope: Scope, whom: str = "") -> None:
        of = f"{scope} {whom!r}" if whom else scope
        super().__init__(
            "models.budget-spent",
            f"the budget of the {of} has no {bound} left: {spent:g} of {limit:g} are spent",
            fix="Allow more of it, or ask for less.",
        )
        self.bound: Bound = bound
        self.spent = spent
        self.limit = limit
        self.scope: Scope = scope
        self.whom = whom

    def to_json(self) -> dict[str, Any]:
        facts = {"bound": self.bound, "spent": self.spent, "limit": self.limit, "scope": self.scope, "whom": self.whom}
        return super().to_json() | facts

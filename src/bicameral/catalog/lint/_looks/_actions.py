"""Actions and the gates before them."""

from __future__ import annotations

from collections.abc import Iterator

from ...stacks import Action, dotted
from .._derived import irreversible
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, undeclared


def gates(scope: Scope, check: Check) -> Iterator[Trouble]:
    """An action that cannot be taken back or reaches far has V1 as its gate."""
    if scope.actions is None:
        yield undeclared("actions", (*scope.path, "patterns"))
    for action in scope.actions or ():
        if not irreversible(action):
            continue
        if action.gate is None:
            yield undeclared("actions", action.path)
        elif action.gate != "V1":
            yield _ungated(action, "cannot be taken back or reaches far")


def watched_actions(scope: Scope, check: Check) -> Iterator[Trouble]:
    """What is only watched (V2) can be taken back, reaches not far and is nothing new."""
    if scope.actions is None:
        yield undeclared("actions", scope.where("V2"))
    for action in scope.actions or ():
        if action.gate is None:
            yield undeclared("actions", action.path)
        if action.gate != "V2":
            continue
        if action.reversible is False or action.blast_radius in ("medium", "high") or action.novel:
            yield _ungated(action, "is irreversible, reaches far or is new")
        elif None in (action.reversible, action.blast_radius, action.novel):
            yield undeclared("actions", action.path)


def _ungated(action: Action, why: str) -> Trouble:
    watched = "is only watched" if action.gate == "V2" else "has no gate"
    message = f"the action {action.name!r} {why}, and {watched}"
    return Trouble(("gate", dotted(action.path)), message, action.path, patterns=("V1", "V2"))


def lowered_gates(scope: Scope, check: Check) -> Iterator[Trouble]:
    """A gate goes from V1 to less only by a review that is on record."""
    if scope.actions is None:
        yield undeclared("actions", (*scope.path, "patterns"))
    for action in scope.actions or ():
        if action.was == "V1" and action.gate != "V1" and not action.review:
            message = f"the gate of the action {action.name!r} was V1 and was lowered without a review"
            wants = (f"{dotted(action.path)}.review",)
            yield Trouble(("lowered", dotted(action.path)), message, action.path, wants=wants, patterns=("V1",))

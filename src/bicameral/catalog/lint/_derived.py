"""Facts that nobody needs to say, because they follow from what was said: None where they do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..stacks import Action
    from ._scope import Scope


def derived(scope: Scope, name: str) -> Any:
    """What follows about this fact, or None."""
    find = _DERIVED.get(name)
    return find(scope) if find is not None else None


def irreversible(action: Action) -> bool | None:
    """Whether an action cannot be taken back or reaches far; None if too little is said of it."""
    if action.reversible is False or action.blast_radius == "high":
        return True
    return None if action.reversible is None or action.blast_radius is None else False


def _irreversible_actions(scope: Scope) -> bool | None:
    actions = scope.actions
    if actions is None:
        return None
    said = [irreversible(action) for action in actions]
    return True if True in said else None if None in said else False


def _external_input(scope: Scope) -> bool | None:
    return True if "untrusted_content" in (scope.legs or ()) else None


def _adversarial_input(scope: Scope) -> bool | None:
    return None if scope.legs is None else "untrusted_content" in scope.legs


def _prompt_tokens(scope: Scope) -> int | None:
    return _sum([part.tokens for part in scope.prompt]) if scope.prompt is not None else None


def _stable_tokens(scope: Scope) -> int | None:
    """The tokens of the parts at the head that never change."""
    if scope.prompt is None:
        return None
    head: list[int | None] = []
    for part in scope.prompt:
        if part.stable != "global":
            break
        head.append(part.tokens)
    return _sum(head)


def _sum(tokens: list[int | None]) -> int | None:
    known = [each for each in tokens if each is not None]
    return sum(known) if len(known) == len(tokens) else None


def _prompt_caching(scope: Scope) -> bool | None:
    """Whoever describes which parts of a prompt are stable means to have them cached."""
    return True if scope.prompt is not None or "O18" in scope.present else None


def _judge_reads_quarantined(scope: Scope) -> bool | None:
    if scope.sessions is None:
        return None
    tainted = {text for session in scope.sessions if session.quarantined for text in session.writes}
    return any(tainted & {*session.reads, *session.judges} for session in scope.sessions if session.judges)


def _cap(loops: str, knob: str) -> Callable[[Scope], float | None]:
    """The widest cap that is said: of a loop, or else of V9."""

    def find(scope: Scope) -> float | None:
        said = [cap for loop in scope.loops or () if (cap := getattr(loop, loops)) is not None]
        if said:
            return max(said)
        value = scope.knob("V9", knob) if "V9" in scope.present else None
        return value if isinstance(value, int | float) else None

    return find


def _replanning(scope: Scope) -> bool | None:
    said = [use.knobs["max_replans"] for use in scope.uses.get("R3", ()) if "max_replans" in use.knobs]
    return any(isinstance(each, int) and each > 0 for each in said) if said else None


def _workers(scope: Scope) -> Any:
    return scope.knob("O6", "max_workers") if "O6" in scope.present else None


_DERIVED: Mapping[str, Callable[[Scope], Any]] = {
    "irreversible_actions": _irreversible_actions,
    "external_input": _external_input,
    "adversarial_input": _adversarial_input,
    "prompt_tokens": _prompt_tokens,
    "stable_tokens": _stable_tokens,
    "shared_prefix_tokens": _stable_tokens,
    "prompt_caching": _prompt_caching,
    "judge_reads_quarantined": _judge_reads_quarantined,
    "token_cap": _cap("tokens", "max_tokens"),
    "money_cap": _cap("money", "max_money"),
    "replanning": _replanning,
    "workers": _workers,
}
SAID_BY: Mapping[str, str] = {
    "irreversible_actions": "actions",
    "adversarial_input": "legs",
    "prompt_tokens": "prompt",
    "stable_tokens": "prompt",
    "judge_reads_quarantined": "sessions",
    "token_cap": "loops",
    "money_cap": "loops",
}
"""The section that says a fact better than the fact itself would."""

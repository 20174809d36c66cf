"""How each kind of check is held against an agent of a stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from ..stacks import STATEMENTS, Keys, Use
from ._expressions import Condition, Unknown
from ._looks import LOOKS
from ._rules import Check, CheckKind
from ._scope import Scope
from ._trouble import Trouble, missing, undeclared


def run_check(check: Check, scope: Scope) -> Iterator[Trouble]:
    """What a check finds in an agent to which it applies."""
    return _KINDS[check.kind](check, scope)


def applies(check: Check, present: frozenset[str]) -> bool:
    """Whether a check is about an agent that uses these patterns."""
    if not check.if_all <= present or not check.unless.isdisjoint(present):
        return False
    return not check.if_any or not check.if_any.isdisjoint(present)


def _decided(condition: Condition | None, check: Check, scope: Scope) -> tuple[bool, list[Trouble]]:
    """Whether a condition is so for one use at least, and what is not known where that cannot be said."""
    if condition is None:
        return True, []
    unknown: set[str] = set()
    for lookup in scope.variants(check.triggers):
        value = condition.ask(lookup)
        if isinstance(value, Unknown):
            unknown |= value.names
        elif value:
            return True, []
    return False, [undeclared(name, _at(check, scope)) for name in sorted(unknown)]


def _at(check: Check, scope: Scope) -> Keys:
    """Where a check applies: at the first of the patterns that it is about."""
    used = next((id for id in scope.uses if id in check.triggers), "") if check.triggers else ""
    return scope.where(used)


def _users(check: Check, scope: Scope) -> tuple[str, ...]:
    return tuple(id for id in scope.uses if id in check.triggers)


def _require(check: Check, scope: Scope) -> Iterator[Trouble]:
    there = scope.everywhere if check.anywhere else scope.present
    wanted: list[tuple[str, ...]] = [(id,) for id in check.all_of if id not in there]
    if check.any_of and not there & set(check.any_of):
        wanted.append(check.any_of)
    if not wanted:
        return
    so, unknown = _decided(check.when, check, scope)
    yield from unknown
    if so:
        for each in wanted:
            yield missing(each, _at(check, scope), _users(check, scope), check.says)


def _together(check: Check, scope: Scope) -> Iterator[Trouble]:
    uses = [[use for use in scope.uses.get(id, ()) if not _exempt(check, use)] for id in check.all]
    for several in product(*uses):
        if not _apart(check, several):
            path = several[-1].path
            what = f" {check.apart_by}" if check.apart_by else " agent"
            message = f"{' and '.join(check.all)} are used for the same{what}"
            yield Trouble(("together", *sorted(check.all)), message, path, patterns=check.all)
            return


def _exempt(check: Check, use: Use) -> bool:
    return check.exempt.get(use.id, "") in use.knobs


def _apart(check: Check, uses: tuple[Use, ...]) -> bool:
    """Whether each says what it is used for, and they differ. A use that does not say is used for everything."""
    said: list[Any] = [use.knobs.get(check.apart_by) for use in uses]
    return None not in said and len(set(map(str, said))) == len(said)


def _declare(check: Check, scope: Scope) -> Iterator[Trouble]:
    said = scope.declares.get(check.name)
    if said or (said is None and check.name == "action_gate_map" and _gated(scope)):
        return
    so, unknown = _decided(check.when, check, scope)
    yield from unknown
    if so:
        what = STATEMENTS[check.name].what
        message = f"it is nowhere written down {what}" if said is False else f"declare `{check.name}`: {what}"
        yield Trouble(
            ("statement", check.name),
            message,
            _at(check, scope),
            None if said is False else "warning",
            wants=(f"declares.{check.name}",),
            patterns=_users(check, scope),
        )


def _gated(scope: Scope) -> bool:
    return bool(scope.actions) and all(action.gate is not None for action in scope.actions or ())


def _hold(check: Check, scope: Scope) -> Iterator[Trouble]:
    assert check.must is not None
    so, unknown = _decided(check.when, check, scope)
    yield from unknown
    if not so:
        return
    for lookup in scope.variants(check.triggers):
        value = check.must.ask(lookup)
        if isinstance(value, Unknown):
            yield from (undeclared(name, _at(check, scope)) for name in sorted(value.names))
        elif not value:
            key = ("not so", check.topic or check.must.text)
            yield Trouble(key, check.says, _at(check, scope), patterns=_users(check, scope))


def _prefer(check: Check, scope: Scope) -> Iterator[Trouble]:
    so, unknown = _decided(check.when, check, scope)
    yield from unknown
    if so:
        users = _users(check, scope)
        message = f"{check.choose} instead of {' and '.join(users)} would do: {check.says}"
        key = ("prefer", check.topic or f"{check.choose} {' '.join(sorted(check.triggers))}")
        yield Trouble(key, message, _at(check, scope), patterns=(check.choose, *users))


def _look(check: Check, scope: Scope) -> Iterator[Trouble]:
    so, unknown = _decided(check.when, check, scope)
    yield from unknown
    if so:
        yield from LOOKS[check.at](scope, check)


_KINDS: Mapping[CheckKind, Callable[[Check, Scope], Iterator[Trouble]]] = {
    "require": _require,
    "together": _together,
    "declare": _declare,
    "hold": _hold,
    "prefer": _prefer,
    "look": _look,
}

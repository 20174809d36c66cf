"""What patterns are set to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from bicameral.errors import nearest

from ...facts import IDS, Knob, catalog
from ...stacks import FACTS, WHERE, Use, dotted
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, undeclared


def _set(scope: Scope) -> Iterator[tuple[Use, str, Any, Mapping[str, Knob]]]:
    """Every knob that is set, of patterns that the catalogue has."""
    for uses in scope.uses.values():
        for use in uses:
            if use.knobs and use.id in IDS:
                known = catalog().pattern(use.id).knobs
                for name, value in use.knobs.items():
                    yield use, name, value, known


def known_knobs(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Every knob is one of the pattern's, a fact, or says where the pattern is used."""
    for use, name, _, known in _set(scope):
        if name not in known and name not in FACTS and name not in WHERE:
            meant = nearest(name, [*known, *FACTS, *WHERE])
            hint = f"; did you mean {meant!r}?" if meant else ""
            key = ("no knob", dotted(use.path), name)
            yield Trouble(key, f"{use.id} has no knob {name!r}{hint}", (*use.path, use.id, name), patterns=(use.id,))


def knobs_in_bounds(scope: Scope, check: Check) -> Iterator[Trouble]:
    """A knob lies between the least and the most that its pattern gives, and is of its kind."""
    for use, name, value, known in _set(scope):
        knob = known.get(name)
        wrong = _wrong(knob, value) if knob is not None else None
        if wrong:
            key = ("bounds", dotted(use.path), name)
            message = f"{name} of {use.id} is {value!r}; {wrong}"
            yield Trouble(key, message, (*use.path, use.id, name), patterns=(use.id,))


def _wrong(knob: Knob, value: Any) -> str | None:
    if knob.choices and value not in knob.choices:
        return f"it can be {', '.join(knob.choices)}"
    if not knob.numeric:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "it is a number"
    if knob.least is not None and value < knob.least:
        return f"it is {knob.least:g} at least"
    if knob.most is not None and value > knob.most:
        return f"it is {knob.most:g} at most"
    return None


def separate_surfaces(scope: Scope, check: Check) -> Iterator[Trouble]:
    """What these patterns may change has no path in common: neither the same, nor one inside the other."""
    said = {id: [path for use in scope.uses[id] for path in _paths(use)] for id in check.of}
    if not all(said.values()):
        for id in (id for id in check.of if not said[id]):
            yield undeclared(f"{id}.surface", scope.where(id))
        return
    one, other = (said[id] for id in check.of)
    for first in one:
        for second in other:
            if _inside(first, second) or _inside(second, first):
                message = f"{' and '.join(check.of)} may both change {max(first, second, key=len)!r}"
                yield Trouble(("shared surface", *check.of), message, scope.where(check.of[0]), patterns=check.of)
                return


def _paths(use: Use) -> list[str]:
    surface: Any = use.knobs.get("surface") or []
    return [str(each) for each in cast("list[Any]", surface)] if isinstance(surface, list) else [str(surface)]


def _inside(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}/"))

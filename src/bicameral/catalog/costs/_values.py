"""Numbers for the names in cost expressions: sizes that were measured, or those of a small task, and knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bicameral.errors import CatalogError, nearest

from ..facts import SIZES, Expression, Pattern, SessionCost, default_sizes
from ._sessions import Session

Values = Mapping[str, float]

MOST = 1e12
"""No size is larger; what is was mistyped."""


def sizes_of(given: Mapping[str, Any] | None) -> dict[str, float]:
    """All sizes: those given over those of a small task; `catalog.unknown-size` for one that does not exist."""
    found = default_sizes()
    for name, value in (given or {}).items():
        if name not in SIZES:
            raise CatalogError(
                "catalog.unknown-size",
                f"there is no size {name!r}",
                nearest=nearest(name, SIZES),
                fix=f"There are {', '.join(SIZES)}.",
            )
        found[name] = _number(f"the size {name}", value, 0, MOST)
    return found


def with_knobs(pattern: Pattern, sizes: Values, knobs: Mapping[str, Any]) -> dict[str, float]:
    """The values that the expressions of a pattern can name."""
    values = {**sizes, **pattern.defaults}
    for name, value in knobs.items():
        knob = pattern.knobs.get(name)
        if knob is None:
            raise CatalogError(
                "catalog.unknown-knob",
                f"{pattern.id} has no knob {name!r}",
                nearest=nearest(name, pattern.knobs),
                fix=f"It has {', '.join(pattern.knobs)}." if pattern.knobs else "It has none.",
            )
        if knob.numeric:
            values[name] = _number(f"the knob {name} of {pattern.id}", value, knob.least, knob.most)
    return values


def evaluated(cost: SessionCost, values: Values) -> tuple[Session, Session]:
    """A session as expected and at worst. What is expected never exceeds the bound that the worst case has.

    At worst there is as much to do as the knobs allow; what no knob bounds is as large as the sizes say.
    """
    most = _most(cost.most, values)
    usual = Session(
        calls=min(_value(cost.calls, values), most),
        stable=_value(cost.stable, values),
        prompt=_value(cost.prompt, values),
        grows=_value(cost.grows, values),
        output=_value(cost.output, values),
        parallel=max(1.0, _value(cost.parallel, values)),
    )
    worst = Session(
        calls=most,
        stable=_most(cost.stable, values),
        prompt=_most(cost.prompt, values),
        grows=_most(cost.grows, values),
        output=_most(cost.output, values),
        parallel=usual.parallel,
    )
    return usual, worst


def tool_calls(pattern: Pattern, values: Values, role: str = "") -> tuple[float, float]:
    """Calls of tools as expected and at worst.

    At worst there are as many as the knobs allow, however much there is to do, and they grow as the calls of the main
    session do: that of this role, or the first.
    """
    counted, bound = _value(pattern.cost.tools, values), _most(pattern.cost.tools, values)
    main = next((each for each in pattern.cost.sessions if each.role == role), next(iter(pattern.cost.sessions), None))
    if main is None:
        return counted, bound
    calls, most = _value(main.calls, values), _most(main.most, values)
    grown = most / calls if calls > 0 else 1.0
    usual = counted * min(1.0, grown)
    return usual, max(counted * grown, bound)


_COUNTS = tuple(name for name, size in SIZES.items() if size.unit == "count")


def _most(expression: Expression, values: Values) -> float:
    """The most that an expression can be while knobs hold it; what grows with the work is what the sizes say."""
    given = _value(expression, values)
    if not expression.names.intersection(_COUNTS):
        return given
    far, farther = (_value(expression, {**values, **dict.fromkeys(_COUNTS, count)}) for count in (1e6, 1e7))
    return max(given, far) if far == farther else given


def _value(expression: Expression, values: Values) -> float:
    return max(0.0, expression.value(values))


def _number(what: str, value: Any, least: float | None, most: float | None) -> float:
    low, high = (-math.inf if least is None else least), (math.inf if most is None else most)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high or math.isnan(value):
        bounds = (
            f"from {low:g} on" if high >= MOST else f"up to {high:g}" if low == -math.inf else f"{low:g} to {high:g}"
        )
        raise CatalogError("catalog.bad-number", f"{what} is {value!r}", expected=f"a number {bounds}")
    return float(value)

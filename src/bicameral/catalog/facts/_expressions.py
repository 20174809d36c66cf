"""Cost expressions and the sizes they may name: `+ - * /`, `min`, `max`, `ceil`, numbers and names.

The language is one of `bicameral.expressions`: a data file can compute numbers and nothing else. The default sizes are
those of a small task; callers who have measured their own pass them instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

from bicameral.errors import CatalogError, Place, nearest_name
from bicameral.expressions import Constant, Language, Node, evaluate, names, parse

_FUNCTIONS: Mapping[str, Callable[..., float]] = {"min": min, "max": max, "ceil": math.ceil}


def _bad_expression(text: str, what: str) -> CatalogError:
    return CatalogError(
        "catalog.bad-expression",
        f"{text!r} is no cost expression: {what}",
        expected="numbers, names, + - * / and min, max, ceil",
    )


_COSTS = Language(
    _bad_expression,
    arity={"min": (2, None), "max": (2, None), "ceil": (1, 1)},
    logic=False,
    # No text, attribute or comparison. The `++` and `*+` keep it linear.
    allowed=re.compile(r"(?:\s*+(?:\d++(?:\.\d++)?(?![\w.])|[^\W\d]\w*+|[-+*/(),]))+\s*+", re.ASCII),
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A cost expression that has been checked.

    Example:
        >>> parse_expression("1 + max_replans").value({"max_replans": 2})
        3
    """

    text: str
    tree: Node
    names: frozenset[str]
    """The names that must have a value."""

    @classmethod
    def number(cls, value: float) -> Expression:
        """The expression that is this number."""
        return cls(f"{value:g}", Constant(value), frozenset())

    def value(self, sizes: Mapping[str, float]) -> float:
        """The value with these sizes; `catalog.no-value` if it cannot be computed."""
        try:
            value = evaluate(self.tree, lambda name: _size_value(name, sizes), _FUNCTIONS)
            finite = math.isfinite(value)
        except ZeroDivisionError:
            raise _no_value_error(self.text, "it divides by zero") from None
        except (OverflowError, ValueError):
            finite, value = False, 0.0
        if not finite:
            raise _no_value_error(self.text, "the number has no end")
        return value

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """How pydantic reads a field of a record: a number, or the text of an expression."""
        from pydantic_core import PydanticCustomError, core_schema

        def read(value: Any) -> Expression:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise PydanticCustomError("cost_type", "a cost expression")
            try:
                return parse_expression(str(value))
            except CatalogError as error:
                # An error of ours would pass through pydantic without the path.
                raise PydanticCustomError("catalog.bad-expression", "{what}", {"what": error.message}) from None

        return core_schema.no_info_plain_validator_function(read)


def parse_expression(text: str, known: Collection[str] | None = None, *, place: Place | None = None) -> Expression:
    """A cost expression; `catalog.bad-expression` if it is none, `catalog.unknown-name` for a name not in `known`.

    Example:
        >>> parse_expression("min(steps, max_steps) * observation").names
        frozenset({'steps', 'max_steps', 'observation'})
    """
    try:
        expression = _parse_cached(text)
    except CatalogError as error:
        raise CatalogError(error.code, error.message, place=place, expected=error.expected) from None
    for name in sorted(expression.names.difference(known)) if known is not None else ():
        raise CatalogError(
            "catalog.unknown-name",
            f"there is no size and no knob {name!r} in {text!r}",
            place=place,
            nearest=nearest_name(name, known or ()),
            fix=f"These are known: {', '.join(sorted(known or ()))}.",
        )
    return expression


@lru_cache(maxsize=4096)
def _parse_cached(text: str) -> Expression:
    tree = parse(text, _COSTS)
    return Expression(text, tree, names(tree))


def _size_value(name: str, sizes: Mapping[str, object]) -> float:
    value = sizes.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    what = f"{name!r} is not given" if value is None else f"{name!r} is {value!r}, which is no number"
    raise CatalogError("catalog.no-value", what, nearest=nearest_name(name, sizes))


def _no_value_error(text: str, what: str) -> CatalogError:
    return CatalogError("catalog.no-value", f"{text!r} has no value: {what}")


@dataclass(frozen=True, slots=True)
class Size:
    """A name that any cost expression may use."""

    unit: Literal["tokens", "count"]
    default: int
    what: str


SIZES: Mapping[str, Size] = MappingProxyType(
    {
        "setup": Size("tokens", 400, "the fixed words of a session"),
        "input": Size("tokens", 200, "the task"),
        "output": Size("tokens", 300, "a normal reply"),
        "observation": Size("tokens", 300, "one result of a tool"),
        "tools": Size("tokens", 600, "the schemas of all tools"),
        "context": Size("tokens", 2_000, "background text that is read"),
        "brief": Size("tokens", 250, "a part of the task as it is handed on"),
        "example": Size("tokens", 120, "one example"),
        "document": Size("tokens", 800, "one document"),
        "item_output": Size("tokens", 60, "a short reply"),
        "steps": Size("count", 4, "steps of a loop that are expected"),
        "items": Size("count", 3, "parts of the work"),
        "tries": Size("count", 2, "tries that are expected"),
    }
)
"""Every size by name."""


def default_sizes() -> dict[str, float]:
    """The sizes of a small task, to evaluate an expression with."""
    return {name: size.default for name, size in SIZES.items()}

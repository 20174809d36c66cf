"""What a function that becomes a tool must have, and what its docstring says of its arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, cast

from bicameral.errors import ToolError


def require_function(function: object) -> None:
    """Refuse what has no name or no signature of its own: a class, a `partial`, some functions written in C."""
    if not inspect.isroutine(function):
        raise ToolError(
            "tools.bad-signature",
            f"{type(function).__name__} {getattr(function, '__name__', '')!r} is no function",
            expected="a typed function",
            fix="Write a function that calls it.",
        )
    try:
        inspect.signature(cast("Callable[..., Any]", function))
    except (TypeError, ValueError):
        raise ToolError(
            "tools.bad-signature",
            f"the signature of {getattr(function, '__name__', '')!r} cannot be read",
            fix="Write a typed function that calls it.",
        ) from None


_SECTION = re.compile(r"^(\s*)(?:Args|Arguments|Parameters):\s*$")
_DOCUMENTED = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?:\s+(.*)$")


def docstring_arguments(function: Callable[..., Any]) -> dict[str, str]:
    """What the section `Args:` of a docstring says of each argument.

    Example:
        >>> docstring_arguments(book)
        {'room': 'Its number.'}
    """
    lines = iter((inspect.getdoc(function) or "").splitlines())
    section = next((found for line in lines if (found := _SECTION.match(line))), None)
    if section is None:
        return {}
    outer, inner, name, said = len(section[1]), None, "", dict[str, str]()
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if depth <= outer:
            break
        inner = depth if inner is None else inner
        if depth <= inner and (entry := _DOCUMENTED.match(line.strip())):
            name, said[entry[1]] = entry[1], entry[2].strip()
        elif name:
            said[name] = f"{said[name]} {line.strip()}"
    return said

"""JSON from strangers: no deeper, longer or larger than a plan can use.

The parser of the standard library takes linear time. What it does not bound is memory (a text of empty lists becomes
fifty times its size), depth, and how large a number may be. So what a text holds is counted, and a long one is tried in
the parser process first, where too much of it ends that process and not this one.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any, NoReturn

from ._parser import Parser
from ._pool import MIB, Limits

SHORT = 256 * 1024
"""Texts up to so many characters are read here at once: that is a few milliseconds, and some twenty megabytes."""
MAX_VALUES = 5_000_000
MAX_DEPTH = 100

_INFINITE = (math.inf, -math.inf)


class NotJson(ValueError):
    """A text is not JSON, or not JSON that can be used: why, and where if that is known."""

    def __init__(self, why: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(why)
        self.why, self.line, self.column = why, line, column


def read_json(text: str, *, what: str) -> Any:
    """The value in a text; `NotJson` where there is none, `ParseLimit` where reading it takes too much."""
    if len(text) <= SHORT:
        value = parse_json(text)
        check_values(value)
        return value
    # What is found there would be read from JSON here again, so only whether it can be read comes back.
    found = _CHECK(text.encode("utf-8", "surrogatepass"), what=what)
    if found is not None:
        why, line, column = found
        raise NotJson(why[:200], line, column)
    return parse_json(text)


def check_json(raw: bytes) -> tuple[object, bytes]:
    """In the parser process: None if the text can be read, else why not and where."""
    try:
        check_values(parse_json(raw.decode("utf-8", "surrogatepass")))
    except NotJson as error:
        return [error.why, error.line, error.column], b""
    return None, b""


_CHECK: Parser[tuple[str, int | None, int | None] | None] = Parser(
    "bicameral.parsing._json:check_json",
    tuple[str, int | None, int | None] | None,
    Limits(cpu=15.0, wall=20.0, memory=2048 * MIB, output=MIB),
)


def parse_json(text: str) -> Any:
    """The value in a text."""
    # Python itself refuses numbers of very many digits, whose reading takes quadratic time, unless it was told not to.
    as_int = None if sys.get_int_max_str_digits() else _short
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=as_int)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, error.lineno, error.colno) from None
    except NotJson:
        raise
    except ValueError:
        raise NotJson("a number has too many digits") from None
    except RecursionError:
        raise NotJson("nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not a JSON value")


def _short(digits: str) -> int:
    if len(digits) > sys.int_info.default_max_str_digits:
        raise NotJson("a number has too many digits")
    return int(digits)


def check_values(value: object) -> None:
    """Refuse what holds too many values, holds them too deep, or has a number that no float can hold (`1e999`)."""
    count = 0
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        if any(number in level for number in _INFINITE):
            raise NotJson("a number is larger than a float can hold")
        # Only what holds something is looked into, level by level: no recursion, and quick for flat tables.
        inner: list[list[Any] | dict[str, Any]] = [each for each in level if isinstance(each, list | dict)]
        if not inner:
            return
        level = []
        for each in inner:
            level.extend(each.values() if isinstance(each, dict) else each)
        count += len(level)
        if count > MAX_VALUES:
            raise NotJson(f"it holds more than {MAX_VALUES:,} values")
    raise NotJson(f"nested more than {MAX_DEPTH} levels deep")

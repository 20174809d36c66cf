"""`Parser`: a function that reads hostile bytes in the parser process and returns a validated value; JSON reading.

The JSON parser of the standard library takes linear time. What it does not bound is memory (a text of empty lists
becomes fifty times its size), depth, and how large a number may be. So the values in a text are counted, and a long
text is first tried in the parser process, where too much of it ends that process and not this one.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from bicameral.errors import Place, ToolError
from bicameral.parsing._pool import (
    ERROR,
    LIMIT,
    MIB,
    POOL,
    REQUEST,
    VALUE,
    LimitExceeded,
    LimitKind,
    ParseLimits,
    ParserFrame,
    ParserPool,
    request_header,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter


T = TypeVar("T")

_LONGEST = 500
_LONGEST_CODE = 80


class ParseLimitError(ToolError):
    """An input was not read, since that takes more than it may; nothing is known of it."""

    def __init__(self, what: str, limit: LimitKind, limits: ParseLimits) -> None:
        most = {
            "cpu": f"{limits.cpu:g} seconds of computing",
            "time": f"{limits.wall:g} seconds",
            "memory": f"{limits.memory // MIB:,} MiB of memory",
            "output": f"{limits.output // MIB:,} MiB for what is in it",
            "depth": "a few hundred levels of nesting",
        }[limit]
        super().__init__(
            "tools.parse-limit",
            f"{what} was not read: it takes more than {most}",
            fix="Leave it out or make it smaller; whoever wrote it may have meant to stop its reader.",
        )
        self.limit: LimitKind = limit


@dataclass(frozen=True)
class Parser(Generic[T]):
    """A function of the parser process: `function` is `module:name`, `result` the type that its reply must have.

    The function takes the bytes and keyword arguments that JSON can hold, and gives such a value, or one with bytes. It
    raises `ToolError` for an input that is wrong. The reply is untrusted: a process that reads hostile input may be in
    the hands of whoever wrote it. So it is read as JSON and validated strictly, and never unpickled or evaluated.

    Example:
        >>> read_page = Parser("bicameral.toolboxes._text:read_page", Page)
        >>> read_page(content, what="https://example.com", charset="utf-8")
    """

    function: str
    result: Any
    limits: ParseLimits = field(default_factory=ParseLimits)
    pool: ParserPool = field(default=POOL, repr=False)

    def __call__(self, raw: bytes, *, what: str, **arguments: Any) -> T:
        """What the function gives for these bytes; `what` names them in errors."""
        return self.with_body(raw, what=what, **arguments)[0]

    def with_body(self, raw: bytes, *, what: str, **arguments: Any) -> tuple[T, bytes]:
        """The same, with the bytes that the function gives beside its value."""
        request = ParserFrame.from_value(REQUEST, request_header(self.limits, self.function, arguments), raw)
        try:
            reply = self.pool.exchange(request, self.limits)
        except LimitExceeded as over:
            raise ParseLimitError(what, over.limit, self.limits) from None
        if reply.kind == VALUE:
            return self._validated(reply, what), reply.body
        if reply.kind == ERROR:
            raise _parser_error(reply, what)
        if reply.kind == LIMIT:
            raise ParseLimitError(what, "depth" if reply.text == b'"depth"' else "memory", self.limits)
        raise _unreadable_error(what, _failure_text(reply))

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        from pydantic import TypeAdapter

        return TypeAdapter(self.result)

    def _validated(self, reply: ParserFrame, what: str) -> T:
        try:
            return self._adapter.validate_json(reply.text, strict=True)
        except ValueError:
            raise _unreadable_error(what, "its parser replied with something else than it should") from None


def _parser_error(reply: ParserFrame, what: str) -> ToolError:
    """The typed error of a parser; it is untrusted, too, so only its texts and numbers are taken."""
    try:
        found = _error_adapter().validate_json(reply.text)
    except ValueError:
        return _unreadable_error(what, "its parser failed")
    place = found.place
    return ToolError(
        found.code[:_LONGEST_CODE],
        found.message[:_LONGEST],
        place=None if place is None else Place(place.file, place.line, place.column),
        expected=found.expected and found.expected[:_LONGEST],
        nearest=found.nearest and found.nearest[:_LONGEST],
        fix=found.fix and found.fix[:_LONGEST],
    )


@dataclass(frozen=True, slots=True)
class _PlaceFacts:
    file: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class _ErrorFacts:
    code: str
    message: str
    place: _PlaceFacts | None = None
    expected: str | None = None
    nearest: str | None = None
    fix: str | None = None


@cache
def _error_adapter() -> TypeAdapter[_ErrorFacts]:
    from pydantic import TypeAdapter

    return TypeAdapter(_ErrorFacts)


def _failure_text(reply: ParserFrame) -> str:
    text = reply.text[:_LONGEST].decode("ascii", "replace").strip('"')
    return text if text.isprintable() else "its parser failed"


def _unreadable_error(what: str, why: str) -> ToolError:
    return ToolError("tools.unreadable", f"{what} cannot be read: {why}")


SHORT_TEXT = 256 * 1024
"""Texts up to so many characters are read here at once: that is a few milliseconds, and some twenty megabytes."""
MAX_JSON_VALUES = 5_000_000
MAX_JSON_DEPTH = 100

_INFINITE = (math.inf, -math.inf)


class InvalidJson(ValueError):
    """A text is not JSON, or not JSON that can be used: why, and where if that is known."""

    def __init__(self, why: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(why)
        self.why, self.line, self.column = why, line, column


def read_json(text: str, *, what: str) -> Any:
    """The value in a text; `InvalidJson` where there is none, `ParseLimit` where reading it takes too much."""
    if len(text) <= SHORT_TEXT:
        value = parse_json(text)
        check_json_values(value)
        return value
    # What is found there would be read from JSON here again, so only whether it can be read comes back.
    found = _JSON_CHECKER(text.encode("utf-8", "surrogatepass"), what=what)
    if found is not None:
        why, line, column = found
        raise InvalidJson(why[:200], line, column)
    return parse_json(text)


def check_json(raw: bytes) -> tuple[object, bytes]:
    """In the parser process: None if the text can be read, else why not and where."""
    try:
        check_json_values(parse_json(raw.decode("utf-8", "surrogatepass")))
    except InvalidJson as error:
        return [error.why, error.line, error.column], b""
    return None, b""


_JSON_CHECKER: Parser[tuple[str, int | None, int | None] | None] = Parser(
    "bicameral.parsing._parser:check_json",
    tuple[str, int | None, int | None] | None,
    ParseLimits(cpu=15.0, wall=20.0, memory=2048 * MIB, output=MIB),
)


def parse_json(text: str) -> Any:
    """The value in a text."""
    # Python itself refuses numbers of very many digits, whose reading takes quadratic time, unless it was told not to.
    as_int = None if sys.get_int_max_str_digits() else _parse_short_int
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=as_int)
    except json.JSONDecodeError as error:
        raise InvalidJson(error.msg, error.lineno, error.colno) from None
    except InvalidJson:
        raise
    except ValueError:
        raise InvalidJson("a number has too many digits") from None
    except RecursionError:
        raise InvalidJson("nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not a JSON value")


def _parse_short_int(digits: str) -> int:
    if len(digits) > sys.int_info.default_max_str_digits:
        raise InvalidJson("a number has too many digits")
    return int(digits)


def check_json_values(value: object) -> None:
    """Refuse what holds too many values, holds them too deep, or has a number that no float can hold (`1e999`)."""
    count = 0
    level: list[Any] = [value]
    for _ in range(MAX_JSON_DEPTH):
        if any(number in level for number in _INFINITE):
            raise InvalidJson("a number is larger than a float can hold")
        # Only what holds something is looked into, level by level: no recursion, and quick for flat tables.
        inner: list[list[Any] | dict[str, Any]] = [each for each in level if isinstance(each, list | dict)]
        if not inner:
            return
        level = []
        for each in inner:
            level.extend(each.values() if isinstance(each, dict) else each)
        count += len(level)
        if count > MAX_JSON_VALUES:
            raise InvalidJson(f"it holds more than {MAX_JSON_VALUES:,} values")
    raise InvalidJson(f"nested more than {MAX_JSON_DEPTH} levels deep")

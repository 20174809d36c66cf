"""`Parser`, which calls a function in the parser process and validates its result, and bounded reading of JSON.

The standard library's JSON parser takes linear time. It does not bound memory (a text of empty lists grows to fifty
times its size), depth, or the size of numbers. So the values of a text are counted, and a long text is first parsed
in the parser process: if it exceeds a limit, that process is killed and not this one.
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

# An error of the parser process is untrusted, so its texts are cut before they are shown.
_MAX_ERROR_TEXT = 500
_MAX_ERROR_CODE = 80

SHORT_TEXT = 256 * 1024
"""JSON up to this many characters is parsed in this process: it takes milliseconds and at most about 20 MB."""
MAX_JSON_VALUES = 5_000_000
MAX_JSON_DEPTH = 100

_INFINITE = (math.inf, -math.inf)


class ParseLimitError(ToolError):
    """An input was not parsed because it exceeded a limit (`limit`); no part of it is returned.

    Args:
        what: The name of the input in the message, such as a path or an address.
    """

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
    """Calls a function in the parser process and validates what it returns.

    The function takes the bytes and keyword arguments of JSON types. It returns a JSON value, or a tuple of a JSON
    value and bytes, and raises `ToolError` for malformed input. Its reply is untrusted, because hostile input may have
    taken over the process. So the reply is read as JSON and validated strictly, never unpickled or evaluated.

    Args:
        function: The function to call, as `module:name`.
        result: The type that its result is validated against.
        limits: Time, memory and output allowed for one call.
        pool: The processes to run in; by default one pool for the whole program.

    Example:
        >>> read_page = Parser("bicameral.toolboxes._text:read_page", Page)
        >>> read_page(content, what="https://example.com", charset="utf-8")
    """

    function: str
    result: Any
    limits: ParseLimits = field(default_factory=ParseLimits)
    pool: ParserPool = field(default=POOL, repr=False)

    def __call__(self, raw: bytes, *, what: str, **arguments: Any) -> T:
        """Return the function's result for these bytes; `what` names the input in errors."""
        return self.with_body(raw, what=what, **arguments)[0]

    def with_body(self, raw: bytes, *, what: str, **arguments: Any) -> tuple[T, bytes]:
        """Like calling the parser, but return the bytes beside the result as well."""
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
    """The `ToolError` that a parser raised; it is untrusted, so only its texts and numbers are taken over."""
    try:
        facts = _error_adapter().validate_json(reply.text)
    except ValueError:
        return _unreadable_error(what, "its parser failed")
    place = facts.place
    # A parser knows no steps and arguments: of a place only the position in the input is taken.
    return ToolError(
        facts.code[:_MAX_ERROR_CODE],
        facts.message[:_MAX_ERROR_TEXT],
        place=None if place is None else Place(place.file, place.line, place.column),
        expected=facts.expected and facts.expected[:_MAX_ERROR_TEXT],
        nearest=facts.nearest and facts.nearest[:_MAX_ERROR_TEXT],
        fix=facts.fix and facts.fix[:_MAX_ERROR_TEXT],
    )


@dataclass(frozen=True, slots=True)
class _ErrorFacts:
    code: str
    message: str
    place: Place | None = None
    expected: str | None = None
    nearest: str | None = None
    fix: str | None = None


@cache
def _error_adapter() -> TypeAdapter[_ErrorFacts]:
    from pydantic import TypeAdapter

    return TypeAdapter(_ErrorFacts)


def _failure_text(reply: ParserFrame) -> str:
    text = reply.text[:_MAX_ERROR_TEXT].decode("ascii", "replace").strip('"')
    return text if text.isprintable() else "its parser failed"


def _unreadable_error(what: str, why: str) -> ToolError:
    return ToolError("tools.unreadable", f"{what} cannot be read: {why}")


class InvalidJson(ValueError):
    """A text is not JSON, or exceeds what is accepted; has the reason and, where known, the position."""

    def __init__(self, why: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(why)
        self.why, self.line, self.column = why, line, column


def read_json(text: str, *, what: str) -> Any:
    """Parse a JSON text, of any length, from an untrusted source.

    Args:
        what: The name of the input in errors.

    Raises:
        InvalidJson: It is not JSON, or nested too deeply, or has too many values or a number too large.
        ParseLimitError: Parsing it exceeds a limit on time or memory.

    Example:
        >>> read_json('{"a": [1, 2]}', what="settings.json")
        {'a': [1, 2]}
    """
    if len(text) <= SHORT_TEXT:
        value = parse_json(text)
        check_json_values(value)
        return value
    # The reply of the parser process is JSON as well and would have to be parsed here, so it sends only a verdict.
    fault = _JSON_CHECKER(text.encode("utf-8", "surrogatepass"), what=what)
    if fault is not None:
        why, line, column = fault
        raise InvalidJson(why[:200], line, column)
    return parse_json(text)


def check_json(raw: bytes) -> tuple[object, bytes]:
    """Check a text in the parser process: None if it is accepted, else the reason, line and column."""
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
    """The value in a text; depth and count of values are not checked here (see `check_json_values`)."""
    # Converting a number takes quadratic time. Python refuses numbers of very many digits unless that limit is off.
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
    """Raise `InvalidJson` for too many values, too deep nesting, or a number that no float can hold (`1e999`)."""
    count = 0
    level: list[Any] = [value]
    for _ in range(MAX_JSON_DEPTH):
        if any(number in level for number in _INFINITE):
            raise InvalidJson("a number is larger than a float can hold")
        # Level by level and not recursively: hostile depth cannot overflow the stack, and flat tables are fast.
        containers: list[list[Any] | dict[str, Any]] = [item for item in level if isinstance(item, list | dict)]
        if not containers:
            return
        level = []
        for container in containers:
            level.extend(container.values() if isinstance(container, dict) else container)
        count += len(level)
        if count > MAX_JSON_VALUES:
            raise InvalidJson(f"it holds more than {MAX_JSON_VALUES:,} values")
    raise InvalidJson(f"nested more than {MAX_JSON_DEPTH} levels deep")

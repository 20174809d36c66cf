"""A function that reads hostile bytes in the parser process, and the type of what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bicameral.errors import Place, ToolError

from ._frames import ERROR, LIMIT, REQUEST, VALUE, Frame
from ._pool import MIB, POOL, Exceeded, Limit, Limits, ParserPool, request_facts

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

_LONGEST = 500
_LONGEST_CODE = 80


class ParseLimit(ToolError):
    """An input was not read, since that takes more than it may; nothing is known of it."""

    def __init__(self, what: str, limit: Limit, limits: Limits) -> None:
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
        self.limit: Limit = limit


@dataclass(frozen=True)
class Parser(Generic[T]):
    """A function of the parser process: `function` is `module:name`, `result` the type that its reply must have.

    The function takes the bytes and keyword arguments that JSON can hold, and gives such a value, or one with bytes. It
    raises `ToolError` for an input that is wrong. The reply is untrusted: a process that reads hostile input may be in
    the hands of whoever wrote it. So it is read as JSON and validated strictly, and never unpickled or evaluated.

    Example:
        >>> read_page = Parser("bicameral.toolboxes.web._reading:read_page", Page)
        >>> read_page(content, what="https://example.com", charset="utf-8")
    """

    function: str
    result: Any
    limits: Limits = field(default_factory=Limits)
    pool: ParserPool = field(default=POOL, repr=False)

    def __call__(self, raw: bytes, *, what: str, **arguments: Any) -> T:
        """What the function gives for these bytes; `what` names them in errors."""
        return self.with_body(raw, what=what, **arguments)[0]

    def with_body(self, raw: bytes, *, what: str, **arguments: Any) -> tuple[T, bytes]:
        """The same, with the bytes that the function gives beside its value."""
        request = Frame.of(REQUEST, request_facts(self.limits, self.function, arguments), raw)
        try:
            reply = self.pool.exchange(request, self.limits)
        except Exceeded as over:
            raise ParseLimit(what, over.limit, self.limits) from None
        if reply.kind == VALUE:
            return self._validated(reply, what), reply.body
        if reply.kind == ERROR:
            raise _error(reply, what)
        if reply.kind == LIMIT:
            raise ParseLimit(what, "depth" if reply.text == b'"depth"' else "memory", self.limits)
        raise _unreadable(what, _said(reply))

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        from pydantic import TypeAdapter

        return TypeAdapter(self.result)

    def _validated(self, reply: Frame, what: str) -> T:
        try:
            return self._adapter.validate_json(reply.text, strict=True)
        except ValueError:
            raise _unreadable(what, "its parser replied with something else than it should") from None


def _error(reply: Frame, what: str) -> ToolError:
    """The typed error of a parser; it is untrusted, too, so only its texts and numbers are taken."""
    try:
        found = _error_adapter().validate_json(reply.text)
    except ValueError:
        return _unreadable(what, "its parser failed")
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


def _said(reply: Frame) -> str:
    text = reply.text[:_LONGEST].decode("ascii", "replace").strip('"')
    return text if text.isprintable() else "its parser failed"


def _unreadable(what: str, why: str) -> ToolError:
    return ToolError("tools.unreadable", f"{what} cannot be read: {why}")

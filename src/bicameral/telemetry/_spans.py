"""Spans: what was done when, inside what. Without OpenTelemetry in the process a span is one shared object."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bicameral.errors import BicameralError

from ._safe import Facts, safe, told

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

SpanKind = Literal["internal", "client"]
SCOPE = "bicameral"
"""The name under which everything is told."""
VERSION = "1"
"""The version of what is told: it changes when the name or the meaning of an attribute does."""


class Span(Protocol):
    """Something that goes on. `on` says whether anybody listens: where facts cost something, ask first."""

    @property
    def on(self) -> bool: ...

    def tell(self, facts: Facts) -> None:
        """Add facts; they are made safe and short."""
        ...

    def fail(self, code: str) -> None:
        """It failed; an exception that leaves the `with` says so by itself."""
        ...

    def __enter__(self) -> Span: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None: ...


def span(name: str, about: str = "", facts: Facts | None = None, *, kind: SpanKind = "internal") -> Span:
    """What begins now and ends with the `with`; spans inside it, also of tasks begun there, are its children.

    A failure is told by its code alone: messages quote what was read.

    Example:
        >>> with span("execute_tool", tool.name, {"gen_ai.tool.name": tool.name}) as told:
        ...     if told.on:
        ...         told.tell(summary("bicameral.result", label))
    """
    tracer = current_tracer()
    if tracer is None:
        return SILENT
    return _Live(tracer, safe(f"{name} {about}" if about else name), kind, facts or {})


class _Silent:
    """Nobody listens."""

    __slots__ = ()

    on = False

    def tell(self, facts: Facts) -> None: ...

    def fail(self, code: str) -> None: ...

    def __enter__(self) -> Span:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None: ...


SILENT: Span = _Silent()


class _Live:
    """A span of OpenTelemetry. Whatever goes wrong in there stays there: telling must not change what is told of."""

    __slots__ = ("_entered", "_facts", "_kind", "_name", "_span", "_tracer")

    on = True

    def __init__(self, tracer: Tracer, name: str, kind: SpanKind, facts: Facts) -> None:
        self._tracer, self._name, self._kind, self._facts = tracer, name, kind, facts
        self._span: Any = None
        self._entered: Any = None

    def tell(self, facts: Facts) -> None:
        if self._span is not None:
            with suppress(Exception):
                self._span.set_attributes(told(facts))

    def __enter__(self) -> Span:
        with suppress(Exception):
            from opentelemetry import trace

            kind = trace.SpanKind.CLIENT if self._kind == "client" else trace.SpanKind.INTERNAL
            self._span = self._tracer.start_span(self._name, kind=kind, attributes=told(self._facts))
            # Neither may write an exception down: its message and its stack hold what must not leave the process.
            self._entered = trace.use_span(
                self._span, end_on_exit=True, record_exception=False, set_status_on_exception=False
            )
            self._entered.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | object
    ) -> None:
        if self._entered is None:
            return
        if error is not None:
            self.fail(_error_type(error))
        with suppress(Exception):
            self._entered.__exit__(None, None, None)

    def fail(self, code: str) -> None:
        self.tell({"error.type": code})
        with suppress(Exception):
            from opentelemetry.trace import StatusCode

            self._span.set_status(StatusCode.ERROR)


def _error_type(error: BaseException) -> str:
    if isinstance(error, BicameralError):
        return error.code
    return "stopped" if isinstance(error, asyncio.CancelledError) else type(error).__name__


_own: TracerProvider | None = None
_known: tuple[Any, Tracer | None] = (None, None)


def use_provider(provider: TracerProvider | None) -> None:
    """Tell it to this provider instead of the process's own; None ends that."""
    global _own
    _own = provider


def current_tracer() -> Tracer | None:
    """Whom spans are told to; None where nobody set anything up, which is certain where nobody imported anything."""
    global _known
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    try:
        provider = _own or trace.get_tracer_provider()
        if provider is not _known[0]:
            unset = isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
            _known = (provider, None if unset else provider.get_tracer(SCOPE, VERSION))
        return _known[1]
    except Exception:  # another thread is importing it just now, or the provider is broken
        return None

"""Spans, counters and histograms, and the facts that may be attached to them.

Without OpenTelemetry in the process a span is one shared object and a counter costs one lookup. A fact is short, on
one line, without secrets and without anything that a terminal obeys; of a label only a summary leaves the process.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bicameral.display import make_visible
from bicameral.errors import BicameralError
from bicameral.labels import PUBLIC, USER, Label, Readers
from bicameral.secrets import mask

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider


MAX_FACT_TEXT = 120
MAX_FACT_LIST = 16

Fact = str | bool | int | float | tuple[str, ...]
"""What may be told of something: names and numbers."""
Facts = Mapping[str, Fact | Iterable[str]]


def safe_text(text: str, most: int = MAX_FACT_TEXT) -> str:
    """The text with everything that is not simply seen made visible, cut to at most so many characters.

    Example:
        >>> safe_text("a\x1b[31mb")
        'a<001b>[31mb'
    """
    # Secrets before the cut: half of one is not known any more. Then the cut: what is looked through is bounded.
    shown = make_visible(mask(text)[: most + 1]).replace("\n", "<000a>").replace("\t", "<0009>")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def safe_facts(facts: Facts) -> dict[str, Fact]:
    """Facts as they may leave the process."""
    return {name: _safe_fact(value) for name, value in facts.items()}


def _safe_fact(value: Fact | Iterable[str]) -> Fact:
    match value:
        case str():
            return safe_text(value)
        case bool() | int() | float():
            return value
        case _:
            return tuple(safe_text(str(each)) for _, each in zip(range(MAX_FACT_LIST), value, strict=False))


def label_summary(prefix: str, label: Label) -> dict[str, Fact]:
    """What is told of a label. The names of readers, parts and steps are not.

    Example:
        >>> label_summary("bicameral.result", Label({Source("third_party", "read_mail", "body")}))
        {'bicameral.result.trusted': False, 'bicameral.result.sources': 1, …}
    """
    return {
        f"{prefix}.trusted": label.trusted,
        f"{prefix}.sources": len(label.sources),
        f"{prefix}.source_tools": tuple(sorted({source.tool for source in label.sources})),
        f"{prefix}.readers": _readers_summary(label.readers),
    }


def _readers_summary(readers: Readers) -> str:
    if readers is PUBLIC:
        return "public"
    others = len(readers - {USER})
    return str(others + 1) if others else "user"


SpanKind = Literal["internal", "client"]
INSTRUMENTATION_SCOPE = "bicameral"
"""The name under which everything is told."""
SCHEMA_VERSION = "1"
"""The version of what is told: it changes when the name or the meaning of an attribute does."""


class Span(Protocol):
    """Something that goes on. `on` says whether anybody listens: where facts cost something, ask first."""

    @property
    def is_recording(self) -> bool: ...

    def set_facts(self, facts: Facts) -> None:
        """Add facts; they are made safe and short."""
        ...

    def set_error(self, code: str) -> None:
        """It failed; an exception that leaves the `with` says so by itself."""
        ...

    def __enter__(self) -> Span: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None: ...


def span(name: str, about: str = "", facts: Facts | None = None, *, kind: SpanKind = "internal") -> Span:
    """What begins now and ends with the `with`; spans inside it, also of tasks begun there, are its children.

    A failure is told by its code alone: messages quote what was read.

    Example:
        >>> with span("execute_tool", tool.name, {"gen_ai.tool.name": tool.name}) as safe_facts:
        ...     if safe_facts.on:
        ...         safe_facts.tell(summary("bicameral.result", label))
    """
    tracer = current_tracer()
    if tracer is None:
        return NO_SPAN
    return _RecordingSpan(tracer, safe_text(f"{name} {about}" if about else name), kind, facts or {})


class _NoSpan:
    """Nobody listens."""

    __slots__ = ()

    is_recording = False

    def set_facts(self, facts: Facts) -> None: ...

    def set_error(self, code: str) -> None: ...

    def __enter__(self) -> Span:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None: ...


NO_SPAN: Span = _NoSpan()


class _RecordingSpan:
    """A span of OpenTelemetry. Whatever goes wrong in there stays there: telling must not change what is told of."""

    __slots__ = ("_entered", "_facts", "_kind", "_name", "_span", "_tracer")

    is_recording = True

    def __init__(self, tracer: Tracer, name: str, kind: SpanKind, facts: Facts) -> None:
        self._tracer, self._name, self._kind, self._facts = tracer, name, kind, facts
        self._span: Any = None
        self._entered: Any = None

    def set_facts(self, facts: Facts) -> None:
        if self._span is not None:
            with suppress(Exception):
                self._span.set_attributes(safe_facts(facts))

    def __enter__(self) -> Span:
        with suppress(Exception):
            from opentelemetry import trace

            kind = trace.SpanKind.CLIENT if self._kind == "client" else trace.SpanKind.INTERNAL
            self._span = self._tracer.start_span(self._name, kind=kind, attributes=safe_facts(self._facts))
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
            self.set_error(_error_type(error))
        with suppress(Exception):
            self._entered.__exit__(None, None, None)

    def set_error(self, code: str) -> None:
        self.set_facts({"error.type": code})
        with suppress(Exception):
            from opentelemetry.trace import StatusCode

            self._span.set_status(StatusCode.ERROR)


def _error_type(error: BaseException) -> str:
    if isinstance(error, BicameralError):
        return error.code
    return "stopped" if isinstance(error, asyncio.CancelledError) else type(error).__name__


_tracer_provider: TracerProvider | None = None
_tracer_cache: tuple[Any, Tracer | None] = (None, None)


def use_tracer_provider(provider: TracerProvider | None) -> None:
    """Tell it to this provider instead of the process's own; None ends that."""
    global _tracer_provider
    _tracer_provider = provider


def current_tracer() -> Tracer | None:
    """Whom spans are told to; None where nobody set anything up, which is certain where nobody imported anything."""
    global _tracer_cache
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    try:
        provider = _tracer_provider or trace.get_tracer_provider()
        if provider is not _tracer_cache[0]:
            unset = isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
            _tracer_cache = (provider, None if unset else provider.get_tracer(INSTRUMENTATION_SCOPE, SCHEMA_VERSION))
        return _tracer_cache[1]
    except Exception:  # another thread is importing it just now, or the provider is broken
        return None


_TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_SECOND_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_HISTOGRAMS = {
    "gen_ai.client.token.usage": ("{token}", _TOKEN_BUCKETS),
    "gen_ai.client.operation.duration": ("s", _SECOND_BUCKETS),
}
"""The bounds that the conventions name."""

_meter_provider: MeterProvider | None = None
_meter_cache: tuple[Any, dict[str, Any]] = (None, {})


def use_meter_provider(provider: MeterProvider | None) -> None:
    """Count there instead of at the process's own; None ends that."""
    global _meter_provider
    _meter_provider = provider


def count(name: str, amount: int = 1, facts: Facts | None = None) -> None:
    """Add to a counter."""
    with suppress(Exception):
        if (known := _instruments()) is not None:
            meter, made = known
            counter = made.get(name)
            if counter is None:
                counter = made[name] = meter.create_counter(name)
            counter.add(amount, safe_facts(facts or {}))


def measure(name: str, value: float, facts: Facts | None = None) -> None:
    """Note a measured value: a duration, a number of tokens."""
    with suppress(Exception):
        if (known := _instruments()) is not None:
            meter, made = known
            histogram = made.get(name)
            if histogram is None:
                unit, bounds = _HISTOGRAMS.get(name, ("", None))
                histogram = made[name] = meter.create_histogram(
                    name, unit=unit, explicit_bucket_boundaries_advisory=bounds
                )
            histogram.record(value, safe_facts(facts or {}))


def _instruments() -> tuple[Any, dict[str, Any]] | None:
    """The meter and what was made with it; None where nobody counts."""
    global _meter_cache
    metrics: Any = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return None
    provider = _meter_provider or metrics.get_meter_provider()
    if provider is not _meter_cache[0]:
        # Nobody set one up as long as it is the API's own, which only stands in for one.
        silent = type(provider).__module__.startswith("opentelemetry.metrics.")
        _meter_cache = (provider, {} if silent else {"": provider.get_meter(INSTRUMENTATION_SCOPE, SCHEMA_VERSION)})
    made = _meter_cache[1]
    return (made[""], made) if made else None

"""Spans, counters and histograms, and the facts that may be attached to them.

Without OpenTelemetry in the process a span is one shared object and a counter costs one lookup. A fact is short, on one
line, without secrets and without control characters; of a label only a summary leaves the process.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from bicameral.display import make_visible
from bicameral.errors import BicameralError
from bicameral.labels import PUBLIC, USER, Label, Readers
from bicameral.secrets import mask, redact_secrets

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider


MAX_FACT_TEXT = 120
MAX_FACT_LIST = 16

Fact = str | bool | int | float | tuple[str, ...]
"""What may be attached to a span or counter: names and numbers."""
Facts = Mapping[str, Fact | Iterable[str]]

_SCHEMA_NAME = re.compile(r"(?:bicameral|gen_ai)(?:\.[a-z0-9_-]+)+|error\.type")
"""The names that attributes have: those of the GenAI conventions, and our own."""
_MODEL_FACTS = frozenset({"gen_ai.request.model", "gen_ai.response.model"})
_PERSONAL_MARK, _SECRET_MARK = "[personal]", "[secret]"
_PERSONAL = re.compile(
    r"[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"  # an address of mail
    r"|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"  # an account (IBAN)
    r"|(?<![\w+])\+\d(?:[ ()/.-]{0,2}\d){7,14}(?!\d)"  # a phone
)


def safe_text(text: str, most: int = MAX_FACT_TEXT) -> str:
    """The text with secrets masked and hidden characters made visible, on one line, cut to `most` characters.

    Example:
        >>> safe_text("a\x1b[31mb")
        'a<001b>[31mb'
    """
    # Masking comes before the cut, since half a secret is not recognised. The cut comes before the rest, so that the
    # work is bounded.
    shown = make_visible(mask(text)[: most + 1]).replace("\n", "<000a>").replace("\t", "<0009>")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def scrubbed_text(text: str) -> str:
    """As `safe_text`, also without personal data and what has the form of a secret.

    Example:
        >>> scrubbed_text("mail to ada@example.com")
        'mail to [personal]'
    """
    return safe_text(_PERSONAL.sub(_PERSONAL_MARK, redact_secrets(text, _SECRET_MARK)))


def safe_facts(facts: Facts) -> dict[str, Fact]:
    """Facts in the form in which they may leave the process; without those that have no name of the schema."""
    return {name: _safe_fact(name, value) for name, value in facts.items() if _SCHEMA_NAME.fullmatch(name)}


def _safe_fact(name: str, value: Fact | Iterable[str]) -> Fact:
    # The name of a model may have a host, as in `ollama:x@gpu.example.com`, and comes from the configuration.
    clean = safe_text if name in _MODEL_FACTS else scrubbed_text
    match value:
        case str():
            return clean(value)
        case bool() | int() | float():
            return value
        case _:
            return tuple(clean(str(item)) for item in islice(value, MAX_FACT_LIST))


def label_summary(prefix: str, label: Label) -> dict[str, Fact]:
    """The facts about a label. The names of readers, parts and steps are not among them.

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
"""The instrumentation scope of all spans and counters."""
SCHEMA_VERSION = "1"
"""Changes when the name or meaning of an attribute does."""


class Span:
    """An operation in progress. This class records nothing; it is used where no telemetry is set up.

    `is_recording` is True where facts are recorded: check it before computing expensive ones.
    """

    __slots__ = ()

    is_recording: bool = False

    def set_facts(self, facts: Facts) -> None:
        """Add facts; they are made safe and short."""

    def set_error(self, code: str) -> None:
        """Mark the operation as failed; an exception that leaves the `with` does so by itself."""

    @property
    def trace_share(self) -> float:
        """A number from 0 to 1 that is the same in all spans of a trace, and evenly spread over traces."""
        return 0.0

    def __enter__(self) -> Span:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None: ...


_NO_SPAN = Span()


def span(name: str, about: str = "", facts: Facts | None = None, *, kind: SpanKind = "internal") -> Span:
    """An operation from here to the end of the `with`; spans inside it, also of tasks started there, are its children.

    A failure is reported by its error code alone, since messages quote untrusted text.

    Args:
        name: The name of the operation.
        about: Its object, which follows the name.
        facts: Facts that are known at the start.
        kind: `client` for a call of another service.

    Example:
        >>> with span("execute_tool", tool.name, {"gen_ai.tool.name": tool.name}) as tool_span:
        ...     if tool_span.is_recording:
        ...         tool_span.set_facts(label_summary("bicameral.result", label))
    """
    tracer = current_tracer()
    if tracer is None:
        return _NO_SPAN
    # What a client calls is a model of the configuration.
    clean = safe_text if kind == "client" else scrubbed_text
    return _RecordingSpan(tracer, clean(f"{name} {about}" if about else name), kind, facts or {})


def add_event(name: str, facts: Facts | None = None) -> None:
    """Add an event to the operation in progress."""
    if current_tracer() is None:
        return
    with suppress(Exception):
        from opentelemetry import trace

        trace.get_current_span().add_event(scrubbed_text(name), safe_facts(facts or {}))


class _RecordingSpan(Span):
    """A span of OpenTelemetry. Its errors are suppressed: telemetry must not change the operation it observes."""

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

    @property
    def trace_share(self) -> float:
        with suppress(Exception):
            # The last 56 bits of the id of a trace are random, by the W3C's Trace Context.
            return (self._span.get_span_context().trace_id % 2**56) / 2**56
        return 0.0

    def __enter__(self) -> Span:
        with suppress(Exception):
            from opentelemetry import trace

            kind = trace.SpanKind.CLIENT if self._kind == "client" else trace.SpanKind.INTERNAL
            self._span = self._tracer.start_span(self._name, kind=kind, attributes=safe_facts(self._facts))
            # OpenTelemetry must not record exceptions: message and traceback contain what must not leave the process.
            self._entered = trace.use_span(
                self._span, end_on_exit=True, record_exception=False, set_status_on_exception=False
            )
            self._entered.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
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
    """Report spans to this provider instead of the one of the process; None ends that."""
    global _tracer_provider
    _tracer_provider = provider


def current_tracer() -> Tracer | None:
    """The tracer that spans are reported to; None if no provider is set up."""
    global _tracer_cache
    # A provider can only be set up by a process that has imported OpenTelemetry, so it is never imported here.
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
"""Units, and the bucket boundaries that the conventions recommend."""

_meter_provider: MeterProvider | None = None
_meter_cache: tuple[Any, Any, dict[str, Any]] = (None, None, {})
"""The provider, its meter (None if no provider is set up), and the instruments that were created with it."""


def use_meter_provider(provider: MeterProvider | None) -> None:
    """Report counters to this provider instead of the one of the process; None ends that."""
    global _meter_provider
    _meter_provider = provider


def count(name: str, amount: int = 1, facts: Facts | None = None) -> None:
    """Add to a counter."""
    with suppress(Exception):
        counter = _instrument(name, lambda meter: meter.create_counter(name))
        if counter is not None:
            counter.add(amount, safe_facts(facts or {}))


def measure(name: str, value: float, facts: Facts | None = None) -> None:
    """Record a measured value, such as a duration or a number of tokens."""
    unit, bounds = _HISTOGRAMS.get(name, ("", None))
    with suppress(Exception):
        histogram = _instrument(
            name, lambda meter: meter.create_histogram(name, unit=unit, explicit_bucket_boundaries_advisory=bounds)
        )
        if histogram is not None:
            histogram.record(value, safe_facts(facts or {}))


def _instrument(name: str, create: Callable[[Any], Any]) -> Any:
    """The instrument with this name, created on first use; None if no provider is set up."""
    global _meter_cache
    metrics: Any = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return None
    provider = _meter_provider or metrics.get_meter_provider()
    if provider is not _meter_cache[0]:
        # A provider of the API's own package is only a placeholder.
        unset = type(provider).__module__.startswith("opentelemetry.metrics.")
        meter = None if unset else provider.get_meter(INSTRUMENTATION_SCOPE, SCHEMA_VERSION)
        _meter_cache = (provider, meter, {})
    _, meter, instruments = _meter_cache
    if meter is not None and name not in instruments:
        instruments[name] = create(meter)
    return instruments.get(name)

"""Export of spans and counters from the command line, configured by the standard OTEL_* variables."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bicameral.errors import missing_packages
from bicameral.telemetry._signals import current_tracer, safe_text, use_meter_provider, use_tracer_provider

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
    from opentelemetry.sdk.trace import TracerProvider

FLUSH_SECONDS = 3.0
"""Seconds that a command waits at its end for a collector, for spans and for counters each. The variable
OTEL_EXPORTER_OTLP_TIMEOUT overrides it."""
_NOT_SENT = "not everything could be sent"
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOL = "http/protobuf"


@dataclass(slots=True)
class ExportStatus:
    """The exporters in use; `problems` has one line for a person about each failure."""

    traces: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list[str])


@contextmanager
def export_from_environment(environ: Mapping[str, str] | None = None) -> Generator[ExportStatus]:
    """Export spans and counters inside the `with`, if OTEL_* variables configure it; otherwise do nothing.

    `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` are `otlp`, `console` (standard error) or `none`; with
    `OTEL_EXPORTER_OTLP_ENDPOINT` alone both are `otlp`. A provider that the process has already set up stays in charge.
    A failure to export is reported as a problem and never raised.

    Args:
        environ: The variables; by default those of the process.
    """
    variables = os.environ if environ is None else environ
    status = ExportStatus()
    status.traces = _chosen_exporters("TRACES", variables, status.problems)
    status.metrics = _chosen_exporters("METRICS", variables, status.problems)
    if not (status.traces or status.metrics) or current_tracer() is not None:
        yield status
        return
    otlp = ["opentelemetry.exporter.otlp.proto.http"] if "otlp" in (*status.traces, *status.metrics) else []
    if missing := missing_packages("opentelemetry.sdk", *otlp):
        status.problems.append(f"{missing[0]} is not installed: pip install 'bicameral[telemetry]'")
        yield status
        return
    with _collect_problems(status.problems):
        tracer_provider, meter_provider = _build_tracer_provider(status.traces), _build_meter_provider(status.metrics)
        use_tracer_provider(tracer_provider)
        use_meter_provider(meter_provider)
        try:
            yield status
        finally:
            use_tracer_provider(None)
            use_meter_provider(None)
            _shut_down(tracer_provider, meter_provider)


def _chosen_exporters(signal: str, environ: Mapping[str, str], problems: list[str]) -> tuple[str, ...]:
    """The exporters for spans (`TRACES`) or counters (`METRICS`); unknown ones are reported as problems."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ()
    given = environ.get(f"OTEL_{signal}_EXPORTER", "").strip()
    endpoint = environ.get(_ENDPOINT) or environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    names = [name.strip().lower() for name in given.split(",")] if given else ["otlp"] if endpoint else []
    known = tuple(dict.fromkeys(name for name in names if name in ("otlp", "console")))
    for name in names:
        if name not in ("otlp", "console", "none", ""):
            problems.append(f"OTEL_{signal}_EXPORTER={safe_text(name, 40)!r} is not known here: otlp, console or none")
    protocol = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if "otlp" in known and protocol and protocol != _PROTOCOL:
        problems.append(f"OTLP is sent by {_PROTOCOL} only, and not by {safe_text(protocol, 40)!r}")
        known = tuple(name for name in known if name != "otlp")
    return known


def _build_tracer_provider(names: tuple[str, ...]) -> TracerProvider | None:
    if not names:
        return None
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    if "console" in names:
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
    if "otlp" in names:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_flush_timeout())))
    return provider


def _build_meter_provider(names: tuple[str, ...]) -> SdkMeterProvider | None:
    if not names:
        return None
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader

    readers: list[Any] = []
    if "console" in names:
        readers.append(PeriodicExportingMetricReader(ConsoleMetricExporter(out=sys.stderr)))
    if "otlp" in names:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_flush_timeout())))
    return MeterProvider(readers, resource=_resource(), shutdown_on_exit=False)


def _flush_timeout() -> float:
    with suppress(KeyError, ValueError):
        return float(os.environ["OTEL_EXPORTER_OTLP_TIMEOUT"])
    return FLUSH_SECONDS


def _resource() -> Any:
    from opentelemetry.sdk.resources import Resource

    own = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "bicameral"}
    return Resource.create(own)


def _shut_down(*providers: TracerProvider | SdkMeterProvider | None) -> None:
    """Flush and close both providers."""
    # Errors are ignored: the command has done its work, and a collector that is gone must not fail it.
    for provider in filter(None, providers):
        with suppress(Exception):
            provider.force_flush(int(_flush_timeout() * 1_000))
        with suppress(Exception):
            provider.shutdown()


class _ProblemHandler(logging.Handler):
    """Reports what OpenTelemetry logs about itself once, instead of at every attempt."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._problems = problems

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            if not any(problem.startswith(_NOT_SENT) for problem in self._problems):
                self._problems.append(safe_text(f"{_NOT_SENT}: {record.getMessage()}", 200))


@contextmanager
def _collect_problems(problems: list[str]) -> Generator[None]:
    logger, handler = logging.getLogger("opentelemetry"), _ProblemHandler(problems)
    propagated = logger.propagate
    logger.addHandler(handler)
    # OpenTelemetry would write to standard error, between the lines of the command.
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated

"""Somebody who listens: a real provider of OpenTelemetry that keeps every span in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from telemetry_world import Heard

from bicameral.telemetry._signals import use_meter_provider, use_tracer_provider


@pytest.fixture
def heard() -> Iterator[Heard]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    use_tracer_provider(provider)
    yield Heard(exporter)
    use_tracer_provider(None)
    provider.shutdown()


@pytest.fixture
def counters() -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    use_meter_provider(provider)
    yield reader
    use_meter_provider(None)
    provider.shutdown()

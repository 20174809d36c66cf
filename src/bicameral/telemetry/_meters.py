"""Counters and measures, for figures over many runs. Without OpenTelemetry in the process they cost a look."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ._safe import Facts, told
from ._spans import SCOPE, VERSION

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_MEASURES = {
    "gen_ai.client.token.usage": ("{token}", _TOKENS),
    "gen_ai.client.operation.duration": ("s", _SECONDS),
}
"""The bounds that the conventions name."""

_own: MeterProvider | None = None
_known: tuple[Any, dict[str, Any]] = (None, {})


def use_meter_provider(provider: MeterProvider | None) -> None:
    """Count there instead of at the process's own; None ends that."""
    global _own
    _own = provider


def count(name: str, amount: int = 1, facts: Facts | None = None) -> None:
    """Add to a counter."""
    with suppress(Exception):
        if (known := _instruments()) is not None:
            meter, made = known
            counter = made.get(name)
            if counter is None:
                counter = made[name] = meter.create_counter(name)
            counter.add(amount, told(facts or {}))


def measure(name: str, value: float, facts: Facts | None = None) -> None:
    """Note a measured value: a duration, a number of tokens."""
    with suppress(Exception):
        if (known := _instruments()) is not None:
            meter, made = known
            histogram = made.get(name)
            if histogram is None:
                unit, bounds = _MEASURES.get(name, ("", None))
                histogram = made[name] = meter.create_histogram(
                    name, unit=unit, explicit_bucket_boundaries_advisory=bounds
                )
            histogram.record(value, told(facts or {}))


def _instruments() -> tuple[Any, dict[str, Any]] | None:
    """The meter and what was made with it; None where nobody counts."""
    global _known
    metrics: Any = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return None
    provider = _own or metrics.get_meter_provider()
    if provider is not _known[0]:
        # Nobody set one up as long as it is the API's own, which only stands in for one.
        silent = type(provider).__module__.startswith("opentelemetry.metrics.")
        _known = (provider, {} if silent else {"": provider.get_meter(SCOPE, VERSION)})
    made = _known[1]
    return (made[""], made) if made else None

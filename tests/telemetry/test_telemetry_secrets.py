"""No known secret is told to whoever listens."""

from __future__ import annotations

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from telemetry_world import Heard, run_mail

from bicameral.secrets import register_secret
from bicameral.telemetry import count, span

PLANTED = "planted-4711-abcdefghij"


def test_neither_names_nor_facts_hold_one(heard: Heard, counters: InMemoryMetricReader) -> None:
    register_secret("PLANTED", PLANTED)
    with span("chat", f"model-{PLANTED}", {"bicameral.a": PLANTED, "bicameral.b": (f"x{PLANTED}", "y")}) as told:
        told.set_facts({"bicameral.late": "x" * 110 + PLANTED})
        told.set_error(f"error {PLANTED}")
    count("calls", 1, {"bicameral.model": PLANTED})
    metrics = counters.get_metrics_data()
    assert metrics is not None
    for text in (heard.everything, metrics.to_json()):
        assert "[secret PLANTED]" in text
        assert PLANTED[:8] not in text


async def test_a_run_that_handles_one_tells_nothing_of_it(heard: Heard) -> None:
    register_secret("PLANTED", PLANTED)
    await run_mail(f"k = unlock('{PLANTED}')\nanswer(k)\n")
    assert heard.spans
    assert PLANTED[:8] not in heard.everything

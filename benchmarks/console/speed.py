"""What the first page weighs, and how soon something is seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, cast

from benchmarks.console.browser import Chromium, Visitor
from benchmarks.console.world import ConsoleServer

LOADS = 7
RUNS = 60
"""Runs on the list that is loaded: more than a page has."""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def measure_loads(chromium: Chromium, server: ConsoleServer) -> dict[str, float]:
    """Figures of the list of runs, loaded with an empty cache each time."""
    user = server.new_user("speed")
    server.add_finished_runs(user, RUNS)
    sizes: list[float] = []
    paints: list[float] = []
    for _ in range(LOADS):
        with chromium.visit(server, user) as visitor:
            sizes.append(_load(visitor))
            paints.append(visitor.page.evaluate(PAINT))
    return {"page_kb": round(max(sizes) / 1024, 1), "first_paint_ms": round(median(paints), 1)}


def _load(visitor: Visitor) -> float:
    """Open the list; returns the bytes on the wire, with heads, until the page is at rest."""
    session = visitor.context.new_cdp_session(visitor.page)
    received: dict[str, float] = {}

    def note(event: Mapping[str, Any]) -> None:
        received[event["requestId"]] = event["encodedDataLength"]

    session.on("Network.loadingFinished", note)
    cast("Any", session).send("Network.enable")
    visitor.open("/runs")
    visitor.page.wait_for_load_state("networkidle")
    assert visitor.page.locator("#runs tbody tr").count() == 50
    return sum(received.values())

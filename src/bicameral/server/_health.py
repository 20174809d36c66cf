"""Whether the server is there, whether it is ready, and what it counted."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from ._desk import Desk
from ._errors import Json
from ._routes import AtDesk, Caller, errors
from ._shapes import ErrorAnswer, HealthTold

health = APIRouter(tags=["health"])

READY_SECONDS = 3.0
_BROKEN = {500: {"model": ErrorAnswer, "description": "A mistake of ours."}}
_NOT_READY = {503: {"model": HealthTold, "description": "It is being stopped, or its database does not answer."}}
_TEXT = {
    "description": "Counters in Prometheus' text form.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@health.get("/healthz", response_model=HealthTold, responses={**_BROKEN}, operation_id="healthz")
async def healthz() -> Json:
    """The process is there and answers."""
    return Json({"ok": True})


@health.get("/readyz", response_model=HealthTold, responses={**_BROKEN, **_NOT_READY}, operation_id="readyz")
async def readyz(desk: AtDesk) -> Json:
    """Runs can be submitted: the database answers and the server is not being stopped."""
    ready = not desk.stopping.is_set() and await _database(desk)
    return Json({"ok": ready}, 200 if ready else 503)


async def _database(desk: Desk) -> bool:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await desk.runs.list(limit=1)
    except Exception:
        return False
    return True


@health.get("/metrics", response_class=Response, responses={**errors(), 200: _TEXT}, operation_id="metrics")
async def metrics(desk: AtDesk, _: Caller) -> PlainTextResponse:
    """Counters for Prometheus: names of routes, states and statuses, and nothing that anybody wrote."""
    alive = [worker for worker in await desk.runs.workers() if worker.alive]
    states = await desk.runs.counts()
    gauges = {
        "bicameral_runs": ("Runs by state.", [(f'{{state="{state}"}}', count) for state, count in states.items()]),
        "bicameral_watches": ("Runs that are being watched here.", [("", desk.watches.taken)]),
        "bicameral_workers": ("Workers that are alive.", [("", len(alive))]),
        "bicameral_worker_runs": ("Runs that workers have in hand.", [("", sum(worker.runs for worker in alive))]),
    }
    return PlainTextResponse(desk.metrics.text(gauges), media_type="text/plain; version=0.0.4")

"""The state of the whole: queue, questions, workers, costs of today, alerts, and what needs attention.

A token for one user sees the numbers of that user's own runs, and of the workers how many there are.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from starlette.responses import Response

from bicameral.config import HealthCheck
from bicameral.console._operations_alerts import alert_routes, alerts_figure
from bicameral.console._operations_costs import cost_figure, cost_routes
from bicameral.console._operations_journal import journal_routes
from bicameral.console._operations_models import model_routes
from bicameral.console._operations_servers import ServerState, ShownServer, server_routes, servers_figure
from bicameral.console._operations_state import operations_of
from bicameral.console._pages import PageCall, page_route
from bicameral.durable import Approval, QueueView, WorkerView, queue_problems
from bicameral.errors import BicameralError

if TYPE_CHECKING:
    from bicameral.config import Config

MAX_QUESTIONS = 200
SHOWN_ALERTS = 5
EXPIRES_SOON_SECONDS = 3_600.0
RECENT_SECONDS = 86_400.0
"""Alerts of this time are among what needs attention."""
STRONG_WEIGHT = 0.6


async def overview(call: PageCall) -> Response:
    """Everything at a glance; a part of it is loaded again and again."""
    runs, owner = call.context.runs, call.token.owner
    today = dt.datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    queue, workers, asked, costs, alerts = await asyncio.gather(
        runs.queue(owner),
        runs.workers(),
        runs.approvals(owner, True, MAX_QUESTIONS),
        cost_figure(call, today.timestamp()),
        alerts_figure(call),
    )
    since = dt.datetime.now().timestamp() - RECENT_SECONDS
    recent = [each for each in alerts.value if each.at >= since]
    questions = [each for each in asked if each.is_open]
    problems = [*queue_problems(queue, workers), *_question_problems(questions)]
    problems += await _machine_problems(call)
    if strong := sum(each.weight >= STRONG_WEIGHT for each in recent):
        words = f"{strong} strong alert{'' if strong == 1 else 's'} within a day about texts that were read"
        problems.append(HealthCheck("alerts", "warn", words, "Look at the runs under Alerts."))
    return call.page(
        "operations_part.html" if call.is_partial else "operations.html",
        queue=queue,
        workers=workers,
        capacity=_capacity(workers),
        questions=questions,
        most=MAX_QUESTIONS,
        costs=costs,
        currency=call.context.agent.prices.currency,
        alerts=alerts.value[:SHOWN_ALERTS],
        recent=len(recent),
        problems=sorted(problems, key=lambda each: each.status != "bad"),
    )


def _question_problems(questions: Sequence[Approval]) -> Iterator[HealthCheck]:
    """Questions whose time is nearly over: what nobody answers is refused."""
    now = dt.datetime.now(dt.UTC)
    soon = sum((each.expires - now).total_seconds() < EXPIRES_SOON_SECONDS for each in questions)
    if soon:
        words = f"{soon} question{' expires' if soon == 1 else 's expire'} within an hour; then the answer is no"
        yield HealthCheck("approvals", "warn", words, "Answer them under Approvals.")


async def _machine_problems(call: PageCall) -> list[HealthCheck]:
    """What is wrong with models, servers and the record. Of one user's business is only whether models are there."""
    config = call.context.config

    async def work() -> list[HealthCheck]:
        return await asyncio.to_thread(lambda: list(_model_problems(config)))

    found = list((await operations_of(call).figure("models", work)).value)
    if call.token.all_users:
        found += _record_problems(call)
        found += _server_problems((await servers_figure(call)).value.servers)
        if config.withheld:
            words = f"{len(config.withheld)} settings of the configuration are not used, since nobody has accepted them"
            found.append(
                HealthCheck("configuration", "warn", words, "`bicameral config accept` shows and accepts them.")
            )
    return found


def _model_problems(config: Config) -> Iterator[HealthCheck]:
    """Weights that the configuration uses and that are not on this machine. No path is in it."""
    from bicameral.config import missing_weights

    try:
        missing = missing_weights(config)
    except BicameralError as error:
        yield HealthCheck("models", "bad", f"the weights cannot be used ({error.code})", "`bicameral doctor` says why.")
        return
    if missing:
        names = ", ".join(weights.alias for weights in missing)
        pull = f"`bicameral models pull` fetches {'it' if len(missing) == 1 else 'them'}; else the first run does."
        yield HealthCheck("models", "warn", f"not on this machine yet: {names}", pull)


def _record_problems(call: PageCall) -> Iterator[HealthCheck]:
    check = operations_of(call).check
    if check is not None and check.state == "broken":
        words = f"the last verification found {len(check.breaks):,} breaks in the record"
        yield HealthCheck("record", "bad", words, "Look at them under Journal: what was changed cannot be trusted.")


_SERVER_PROBLEMS: Mapping[ServerState, str] = {
    "unusable": "its declarations cannot be used",
    "damaged": "its review is not stored as its declarations have it",
    "differs": "it is not as it was reviewed",
    "no answer": "it gave no answer when it was asked what it lists",
}


def _server_problems(servers: Sequence[ShownServer]) -> Iterator[HealthCheck]:
    for server in servers:
        if (words := _SERVER_PROBLEMS.get(server.state)) is not None:
            command = f"`bicameral {server.kind} review {server.name}` shows it and asks whether that is right."
            fix = "Look at it under Servers." if server.state == "no answer" else command
            yield HealthCheck(f"server {server.name}", "warn", words, fix)


def _capacity(workers: Sequence[WorkerView]) -> tuple[int, int, int]:
    """How many workers are alive, how many runs they have, and how many they take at most."""
    alive = [each for each in workers if each.alive]
    return len(alive), sum(each.runs for each in alive), sum(each.concurrency for each in alive)


async def workers_page(call: PageCall) -> Response:
    """The workers and the queue; names of machines only for a token of all users."""
    runs, owner = call.context.runs, call.token.owner
    queue: QueueView
    queue, workers = await asyncio.gather(runs.queue(owner), runs.workers())
    waiting = await runs.list(user=owner, state="queued", limit=20) if queue.counts["queued"] else []
    return call.page(
        "operations_workers_part.html" if call.is_partial else "operations_workers.html",
        queue=queue,
        workers=workers if call.token.all_users else [],
        silent=sum(not each.alive for each in workers),
        capacity=_capacity(workers),
        lease=call.context.config.durable.lease,
        waiting=waiting,
        problems=list(queue_problems(queue, workers)),
    )


operation_routes = [
    page_route("/operations", overview, "see"),
    page_route("/operations/workers", workers_page, "see"),
    *model_routes,
    *cost_routes,
    *journal_routes,
    *server_routes,
    *alert_routes,
]

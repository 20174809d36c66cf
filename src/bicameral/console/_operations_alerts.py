"""Alerts of recent runs: what was noticed in texts that the quarantined model read or wrote."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from starlette.responses import Response

from bicameral.console._operations_state import Figure, operations_of
from bicameral.console._pages import PageCall, page_route
from bicameral.console._records import run_address
from bicameral.console._run_progress import TURN
from bicameral.durable import Runs, rounds_of_runs
from bicameral.journal import Journal

RECENT_RUNS = 200
"""The newest runs, in which alerts are looked for."""
MAX_ALERTS = 200
MAX_SOURCES = 5

T = TypeVar("T")
RecentReader = Callable[[Journal, Sequence[str], Mapping[str, str]], T]
"""Reads something of runs: gets the journal, their ids with those of their rounds, and the request of each round."""


@dataclass(frozen=True, slots=True)
class ShownAlert:
    """One alert with its place."""

    at: float
    run: str
    part: str
    step: str
    kind: str
    where: str
    weight: float
    note: str
    count: int
    sources: Sequence[str]

    @property
    def address(self) -> str:
        """The page of its run, at the step."""
        step = TURN.sub("", self.step).replace("/", "-")
        return run_address(self.run, self.part) + (f"#step-{step}" if step else "")

    @property
    def strength(self) -> str:
        """Its weight in a word: a number alone says little."""
        return "strong" if self.weight >= 0.6 else "medium" if self.weight >= 0.4 else "weak"


async def alerts_page(call: PageCall) -> Response:
    """The alerts of recent runs, the newest first."""
    found = await alerts_figure(call)
    kind = call.query("kind")
    kinds = Counter(each.kind for each in found.value)
    kept = [each for each in found.value if kind in ("", each.kind)] if kind in kinds else found.value
    return call.page(
        "operations_alerts.html",
        found=found,
        alerts=kept[:MAX_ALERTS],
        number=len(kept),
        kinds=sorted(kinds.items()),
        kind=kind if kind in kinds else "",
        recent=RECENT_RUNS,
        most=MAX_ALERTS,
    )


async def alerts_figure(call: PageCall) -> Figure[list[ShownAlert]]:
    """The alerts of recent runs that a person may see."""
    return await recent_figure(call, "alerts", read_alerts)


async def recent_figure(call: PageCall, name: str, read: RecentReader[T]) -> Figure[T]:
    """Something read of the recent runs that a person may see, of all users or of the owner."""
    runs, owner = call.context.runs, call.token.owner

    async def work() -> T:
        ids = None if owner is None else await runs.ids(owner, RECENT_RUNS)
        return await asyncio.to_thread(_read_recent, runs, ids, read)

    return await operations_of(call).figure((name, owner), work)


def _read_recent(runs: Runs, ids: Sequence[str] | None, read: RecentReader[T]) -> T:
    with runs.open_journal() as journal:
        if ids is None:
            # Runs of the command line and rounds are among them, each under its own id.
            return read(journal, journal.newest_runs(RECENT_RUNS), {})
        rounds = rounds_of_runs(journal, ids)
        return read(journal, [*ids, *rounds], rounds)


def read_alerts(journal: Journal, runs: Sequence[str], rounds: Mapping[str, str]) -> list[ShownAlert]:
    """The alerts of these runs, the newest first, and those of one step by their weight."""
    found: list[ShownAlert] = []
    for event in journal.events_with("alerts", ("step-finished", "step-failed"), runs=runs):
        alerts: object = event.body["alerts"]
        for each in cast("list[object]", alerts) if isinstance(alerts, list) else []:
            if isinstance(each, dict):
                whole = rounds.get(event.run, event.run)
                found.append(_shown_alert(event.at, whole, event.run, event.step, cast("dict[str, Any]", each)))
    return sorted(found, key=lambda each: (-each.at, -each.weight))


def _shown_alert(at: float, run: str, part: str, step: str, facts: Mapping[str, Any]) -> ShownAlert:
    """An alert as it was recorded; what somebody has changed in the record is shown as it stands there."""
    weight, count = facts.get("weight"), facts.get("count")
    listed: object = facts.get("sources")
    sources = cast("list[object]", listed) if isinstance(listed, list) else []
    return ShownAlert(
        at,
        run,
        part,
        step,
        str(facts.get("kind", "")),
        str(facts.get("where", "")),
        float(weight) if isinstance(weight, int | float) else 0.0,
        str(facts.get("note", "")),
        count if isinstance(count, int) else 1,
        [_source_text(cast("dict[str, Any]", each)) for each in sources[:MAX_SOURCES] if isinstance(each, dict)],
    )


def _source_text(source: Mapping[str, Any]) -> str:
    return " ".join(str(source[name]) for name in ("tool", "part") if source.get(name))


alert_routes = [page_route("/operations/alerts", alerts_page, "see")]

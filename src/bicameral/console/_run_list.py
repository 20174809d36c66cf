"""The list of runs: search, filters, and pages."""

from __future__ import annotations

import asyncio
import re

from starlette.responses import Response

from bicameral.console._pages import PageCall, page_route
from bicameral.durable import RUN_STATES
from bicameral.journal import UNDO_SUFFIX
from bicameral.runs import RunSummary

PAGE_SIZE = 50
MAX_SEARCH = 200
MAX_RECORDED = 200
"""Runs of the command line that are listed: its journal has no pages."""
MAX_READ = 2_000
"""Runs of the journal that are looked at: those of the command line may be few among many."""
_PART = re.compile(r"-(?:[0-9]+|plan)$")
"""What follows the id of a request in rounds in the ids of its rounds."""


async def run_list(call: PageCall) -> Response:
    """The runs that fit the filters, the newest first."""
    state, search = call.query("state"), call.query("q")[:MAX_SEARCH].strip()
    chosen = state if state in RUN_STATES else None
    wanted_user = call.query("user") if call.token.all_users else ""
    owner = wanted_user or call.token.owner
    before = call.query("before") or None
    # One more than a page has says whether there is another one.
    found = await call.context.runs.list(user=owner, state=chosen, limit=PAGE_SIZE + 1, before=before, search=search)
    more = found[PAGE_SIZE - 1].run if len(found) > PAGE_SIZE else ""
    filters = {name: value for name, value in (("q", search), ("state", chosen or ""), ("user", wanted_user)) if value}
    return call.page(
        "run_list_part.html" if call.is_partial else "run_list.html",
        runs=found[:PAGE_SIZE],
        more=more,
        first=before is None,
        filters=filters,
        counts=await call.context.runs.counts(owner),
        states=RUN_STATES,
    )


async def recorded_list(call: PageCall) -> Response:
    """The runs of the command line on this machine, which belong to no user of the server."""
    found: list[RunSummary] = []
    if call.token.all_users:
        found = await asyncio.to_thread(lambda: list(call.context.runs.run_journal.runs(MAX_READ)))
    own = await _not_submitted(call, found)
    search = call.query("q")[:MAX_SEARCH].strip()
    words = search.casefold().split()
    kept = [each for each in own if all(word in each.request.casefold() for word in words)]
    more = len(found) == MAX_READ or len(kept) > MAX_RECORDED
    return call.page("recorded_list.html", runs=kept[:MAX_RECORDED], search=search, more=more)


async def _not_submitted(call: PageCall, found: list[RunSummary]) -> list[RunSummary]:
    """Without submitted runs and their rounds: they belong to somebody, and are in the other list."""
    whole = {each.run: _PART.sub("", each.run.removesuffix(UNDO_SUFFIX)) for each in found}
    submitted = await call.context.runs.known_ids({*whole, *whole.values()})
    return [each for each in found if not submitted.intersection((each.run, whole[each.run]))]


run_list_routes = [
    page_route("/runs", run_list, "see"),
    page_route("/runs/recorded", recorded_list, "see"),
]

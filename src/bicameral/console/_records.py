"""Runs as the person of a session may see them: their own, or those of everybody for a token for all users.

A run that was submitted has an owner. One that was made at the command line of the same machine has none: it is shown
to whoever may see the runs of all users.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from bicameral.console._pages import PageCall
from bicameral.console._run_progress import RunProgress
from bicameral.durable import RunView, runs_of_rounds
from bicameral.errors import DurableError, JournalError
from bicameral.journal import UNDO_SUFFIX, Event, Journal
from bicameral.server.surface import get_own_run

UNKNOWN_CODES = ("durable.unknown-run", "durable.ambiguous-run", "durable.no-runs")


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run with its journal.

    Args:
        run: Its id.
        view: Its state as a submitted run; None for one that was made at the command line.
        journal: Where its events are.
        part: The run whose events are shown: its own id, or that of one of its rounds.
    """

    run: str
    view: RunView | None
    journal: Journal
    part: str

    async def events(self, after: int = -1) -> list[Event]:
        """The events after that number."""
        return await asyncio.to_thread(self._events, after)

    def _events(self, after: int) -> list[Event]:
        try:
            return self.journal.events_after(self.part, after)
        except JournalError as error:
            # A run that nobody has begun has no journal.
            if error.code == "journal.unknown-run":
                return []
            raise

    @property
    def address(self) -> str:
        """The address of its page."""
        return run_address(self.run, self.part)


def run_address(run: str, part: str = "") -> str:
    """The address of the page of a run, or of a part of it; ids have no character that means anything there."""
    return f"/runs/{run}" + (f"?part={part}" if part and part != run else "")


def redirect_to_run(call: PageCall, view: RunView, sent: datetime, instead: str) -> Response:
    """Go on to a run that was just submitted, or to another address if this token may not see runs.

    Args:
        call: The request.
        view: The run.
        sent: When the form came. A run that is older was submitted by the same form before.
        instead: The other address.
    """
    said = "Submitted." if view.created >= sent else "This form was sent before: it is one run."
    if call.token.may("see"):
        return call.redirect(run_address(view.run), said)
    return call.redirect(instead, f"{said.removesuffix('.')}: {view.run}.")


async def find_run(call: PageCall) -> FoundRun:
    """The run of the address, or the part of it that is wanted."""
    return await find_run_of(call, call.path("run"), call.query("part") or call.field("part"))


async def find_run_of(call: PageCall, run: str, part: str = "") -> FoundRun:
    """A run, or a part of one; the same error whether it does not exist or belongs to somebody else."""
    found = await _find(call, run)
    return found if part in ("", run) else await _part_of(found, part)


async def _find(call: PageCall, run: str) -> FoundRun:
    context, journal = call.context, call.context.runs.run_journal
    try:
        view = await get_own_run(context, run, call.token.owner)
    except DurableError as error:
        if error.code not in UNKNOWN_CODES or not call.token.all_users:
            raise
        if not await asyncio.to_thread(_is_recorded, journal, run):
            raise
        return FoundRun(run, None, journal, run)
    return FoundRun(run, view, journal, run)


def _is_recorded(journal: Journal, run: str) -> bool:
    try:
        return journal.find(run) == run
    except JournalError:
        return False


async def _part_of(found: FoundRun, part: str) -> FoundRun:
    """A round of a run, or its taking back: an id that the run's own record names, and no other."""
    known = {*runs_of_rounds(found.run, await found.events()), f"{found.run}{UNDO_SUFFIX}"}
    if part not in known:
        raise DurableError("durable.unknown-run", f"the run {found.run} has no such part")
    return FoundRun(found.run, found.view, found.journal, part)


async def load_progress(call: PageCall, found: FoundRun) -> tuple[RunProgress, list[Event]]:
    """The run as it is now, with its events."""
    events = await found.events()
    progress = RunProgress(found.part, call.context.agent.registry)
    progress.apply(events)
    return progress, events

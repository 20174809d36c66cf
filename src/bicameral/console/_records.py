"""Runs as the person of a session may see them: their own, or those of everybody for a token for all users.

A run that was submitted has an owner. One that was made at the command line of the same machine has none: it is shown
to whoever may see the runs of all users.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from bicameral.console._pages import PageCall
from bicameral.console._run_progress import RunProgress
from bicameral.durable import RunView, runs_of_rounds
from bicameral.errors import DurableError, JournalError, ServerError
from bicameral.journal import UNDO_SUFFIX, Event, Journal
from bicameral.server.surface import HttpError, get_own_run

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
        """The events after that number; an error with words of its own if one of them is damaged."""
        events, damage = await self.intact_events(after)
        if damage:
            raise damaged_record_error()
        return events

    async def intact_events(self, after: int = -1, limit: int | None = None) -> tuple[list[Event], str]:
        """The events after that number up to the first that is damaged, and what is wrong with that, if any is.

        A run that nobody has begun has none.
        """
        return await asyncio.to_thread(self.journal.intact_events_after, self.part, after, limit)

    async def breaks(self) -> list[str]:
        """Every break in the record, one line each."""
        return await asyncio.to_thread(self.journal.breaks_of, self.part)

    @property
    def address(self) -> str:
        """The address of its page."""
        return run_address(self.run, self.part)


def damaged_record_error() -> HttpError:
    """The record is not what was written. Where the journal is stays here."""
    error = ServerError(
        "journal.damaged",
        "the record of this run was changed or is damaged",
        fix="The page of the run shows what is intact, and its journal says what is wrong.",
    )
    return HttpError(409, error)


@contextmanager
def own_words_for_damage() -> Generator[None]:
    """Say of a damaged record that it is, and not that the server cannot answer just now."""
    try:
        yield
    except JournalError as error:
        if error.code != "journal.damaged":
            raise
        raise damaged_record_error() from None


def number_in(text: str, otherwise: int) -> int:
    """A number of events or turns in an address; anything that is none, or is too large for one, is another."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else otherwise


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
    journal = call.context.runs.run_journal
    try:
        view = await own_view(call, run)
    except DurableError as error:
        if error.code not in UNKNOWN_CODES or not call.token.all_users:
            raise
        if not await asyncio.to_thread(_is_recorded, journal, run):
            raise
        return FoundRun(run, None, journal, run)
    return FoundRun(run, view, journal, run)


async def own_view(call: PageCall, run: str) -> RunView:
    """The state of a run; without its answer if only the journal has that and cannot give it any more."""
    try:
        return await get_own_run(call.context, run, call.token.owner)
    except JournalError as error:
        if error.code not in ("journal.damaged", "journal.erased", "journal.unknown-run"):
            raise
    view = await call.context.runs.get(run, call.token.owner, whole=False)
    if view.run != run:
        raise DurableError("durable.unknown-run", "there is no such run")
    return view


def _is_recorded(journal: Journal, run: str) -> bool:
    try:
        return journal.find(run) == run
    except JournalError:
        return False


async def _part_of(found: FoundRun, part: str) -> FoundRun:
    """A round of a run, or its taking back: an id that the run's own record names, and no other."""
    events, _ = await found.intact_events()
    known = {*runs_of_rounds(found.run, events), f"{found.run}{UNDO_SUFFIX}"}
    if part not in known:
        raise DurableError("durable.unknown-run", f"the run {found.run} has no such part")
    return FoundRun(found.run, found.view, found.journal, part)


async def load_progress(call: PageCall, found: FoundRun) -> tuple[RunProgress, list[Event]]:
    """The run as it is now, with its events; of a damaged record as far as it is intact."""
    events, damage = await found.intact_events()
    progress = RunProgress(found.part, call.context.agent.registry)
    # A plan is read, and a long run has many events: nobody else waits for that.
    await asyncio.to_thread(progress.apply, events)
    progress.damage = damage
    return progress, events

"""Follow a run while others work on it: each event as it is recorded, and how the run stands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ._durable import state_text
from ._events import event_json, event_line
from ._output import Output

if TYPE_CHECKING:
    from bicameral.durable import Runs, RunView
    from bicameral.runs import Event, Journal

SOON, SELDOM = 0.1, 0.5


class Watch:
    """Tells what happens on standard error, or as one JSON object a line. `quiet`: only how the run stands."""

    def __init__(self, out: Output, *, quiet: bool = False) -> None:
        self._out, self._quiet = out, quiet
        self._after = -1
        self._state = ""

    async def submitted(self, runs: Runs, run: str, user: str | None, *, until_asked: bool = False) -> RunView:
        """Until a submitted run has ended; or, with `until_asked`, waits for a person."""
        pause = SOON
        while True:
            # First how it stands, then what happened: an end is never told before what led to it.
            view = await runs.get(run, user)
            heard = self._told(await asyncio.to_thread(runs.record.after, view.run, self._after))
            self._stands(view)
            if view.ended or (until_asked and view.state == "waiting"):
                return view
            pause = SOON if heard else min(SELDOM, pause * 1.3)
            await asyncio.sleep(pause)

    async def recorded(self, journal: Journal, run: str) -> Event:
        """Until the record of a run that was not submitted has an end; the event that is it."""
        while True:
            events = await asyncio.to_thread(journal.after, run, self._after)
            self._told(events)
            if events and (last := events[-1]).kind in ("run-finished", "run-failed", "run-stopped", "run-erased"):
                return last
            await asyncio.sleep(SELDOM)

    def _told(self, events: list[Event]) -> bool:
        for event in events:
            self._after = event.number
            if self._out.as_json and not self._quiet:
                self._out.object({"event": event_json(event)})
            elif not self._out.as_json and not self._quiet:
                self._out.say(event_line(event))
        return bool(events)

    def _stands(self, view: RunView) -> None:
        if not view.ended and not self._out.as_json and (text := state_text(view)) != self._state:
            self._state = text
            self._out.say(text, style="yellow" if view.state == "waiting" else "dim")

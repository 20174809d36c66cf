"""The page of a run as it goes on: server-sent events with the parts of the page that have changed.

The journal is read from where the page stands, so that whoever was cut off comes again and misses nothing. A part is
sent only if something in it has changed. Every message passes the guard, which ends the stream with its token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, suppress
from html import escape
from typing import Any

from starlette.responses import Response

from bicameral.console._admission import SECURITY_HEADERS
from bicameral.console._pages import PageCall, render
from bicameral.console._records import FoundRun, find_run, number_in, own_view
from bicameral.console._run_facts import CallVerdict, PlanProof, plan_proof, result_facts
from bicameral.console._run_progress import RunProgress
from bicameral.durable import RunView
from bicameral.errors import ServerError
from bicameral.journal import Event
from bicameral.server.surface import HttpError, WatchResponse

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 0.5
KEEPALIVE_SECONDS = 10.0
SIGNED_OUT = b"event: signed-out\ndata: 1\n\n"
_PLAN_KINDS = ("run-started", "reason-started", "run-erased")


def stream_response(call: PageCall, parts: AsyncGenerator[bytes]) -> Response:
    """A stream of parts, which takes a slot of the person's watches."""
    if call.request.headers.get("sec-fetch-mode") == "navigate":
        # No page: a link to it would only hold a watch of the person.
        raise HttpError(400, ServerError("server.bad-request", "this is a stream of a page, and no page"))
    slots = ExitStack()
    slots.enter_context(call.context.watches.slot(call.token.user))
    return WatchResponse(parts, slots, SECURITY_HEADERS, SIGNED_OUT)


def stream_message(text: str = "", *, event: str = "", number: int | None = None) -> bytes:
    """One message. Every line of the text is a line of data, so that no text can end the message or begin a field."""
    head = (f"id: {number}\n" if number is not None else "") + (f"event: {event}\n" if event else "")
    # As `splitlines` of the protocol: a lone carriage return ends a line as well.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return (head + "".join(f"data: {line}\n" for line in lines) + "\n").encode()


def page_part(target: str, html: str) -> str:
    """A part of the page that takes the place of the one with this id.

    The id of a question has a dot, which begins a class behind `#`. Ids are names of ours, and escaped all the same:
    that of a step is in the record of its run.
    """
    return f'<hx-partial hx-target="[id=\'{escape(target)}\']" hx-swap="outerMorph">{html}</hx-partial>'


async def pause_until(call: PageCall, seconds: float) -> bool:
    """Wait; False if the stream should end: the server stops, or the session or its token has ended."""
    with suppress(TimeoutError):
        await asyncio.wait_for(call.context.stopping.wait(), seconds)
    return not call.context.stopping.is_set() and is_signed_in(call)


def is_signed_in(call: PageCall) -> bool:
    """Whether the session of a request has not ended since."""
    return call.request.app.state.sessions.is_open(call.session)


async def run_stream(call: PageCall) -> Response:
    """The changes of a run after the event that the page has seen."""
    found = await find_run(call)
    given = call.request.headers.get("last-event-id") or call.query("after")
    return stream_response(call, _changes(call, found, number_in(given, -1)))


async def _changes(call: PageCall, found: FoundRun, after: int) -> AsyncGenerator[bytes]:
    yield b"retry: 1000\n\n"
    loop = asyncio.get_running_loop()
    end, sent = loop.time() + call.context.config.server.watch_seconds, loop.time()
    progress = RunProgress(found.part, call.context.agent.registry)
    seen_events, _ = await found.intact_events(limit=after + 1)
    await asyncio.to_thread(progress.apply, seen_events)
    parts, pause, seen = _PageParts(call, progress), FIRST_PAUSE, ""
    while True:
        # The state is read before the events, so that the end is never shown before what led to it.
        view = await _current_view(call, found)
        events, progress.damage = await found.intact_events(progress.last)
        changed = progress.apply(events)
        state = "" if view is None else f"{view.state} {view.waits_for} {view.why}"
        if changed or state != seen or progress.damage:
            seen, sent, pause = state, loop.time(), FIRST_PAUSE
            html = await parts.render(_with_view(found, view), events, changed)
            yield stream_message(html, number=max(progress.last, 0))
        elif loop.time() - sent > KEEPALIVE_SECONDS:
            sent = loop.time()
            yield b": still here\n\n"
        is_over = view.has_ended if view is not None and found.part == found.run else progress.has_ended
        if progress.damage or (is_over and not events):
            yield stream_message("1", event="end")
            return
        pause = min(LONGEST_PAUSE, pause * 1.3)
        if loop.time() > end or not await pause_until(call, pause):
            if not is_signed_in(call):
                yield SIGNED_OUT
            return


async def _current_view(call: PageCall, found: FoundRun) -> RunView | None:
    return None if found.view is None else await own_view(call, found.run)


def _with_view(found: FoundRun, view: RunView | None) -> FoundRun:
    return FoundRun(found.run, view, found.journal, found.part)


class _PageParts:
    """The parts of the page of a run, drawn anew where something has changed."""

    def __init__(self, call: PageCall, progress: RunProgress) -> None:
        self._call, self._progress = call, progress
        self._proof: PlanProof | None = None
        self._listed = set(progress.steps)
        """The steps that the page has."""

    async def render(self, found: FoundRun, events: list[Event], changed: set[str]) -> str:
        """The result, and the steps that have changed; all of the plan if it has just come."""
        call, progress = self._call, self._progress
        shared: dict[str, Any] = {"found": found, "progress": progress, "token": call.token, "session": call.session}
        shared |= await result_facts(call, found, progress)
        names = {"run-result": "run_result.html", "run-actions": "run_actions.html"}
        if progress.damage:
            names = {"run-damage": "run_damage.html"} | names
        parts = [page_part(target, render(template, **shared)) for target, template in names.items()]
        is_new = any(event.kind in _PLAN_KINDS for event in events)
        if is_new or self._proof is None:
            self._proof = await plan_proof(call, progress)
        # Of a run without a plan the list of steps begins with the first of them.
        if is_new or (progress.steps and not self._listed):
            self._listed = set(progress.steps)
            return "".join(parts) + page_part("run-plan", render("run_plan.html", **shared, proof=self._proof))
        return "".join([*parts, *self._rows(changed & progress.steps.keys(), shared)])

    def _rows(self, changed: set[str], shared: Mapping[str, Any]) -> Iterator[str]:
        """The rows of these steps: in their places, and those of new ones at the end of the list, in their order."""
        progress, proof = self._progress, self._proof
        verdicts: Mapping[str, CallVerdict] = proof.verdicts if proof is not None else {}
        new = [path for path in progress.steps if path in changed - self._listed] if changed - self._listed else []
        for path in (*sorted(changed & self._listed), *new):
            step = progress.steps[path]
            html = render("run_step_row.html", **shared, step=step, verdict=verdicts.get(path))
            yield page_part(step.anchor, html) if path in self._listed else added_part("run-steps", html)
        self._listed.update(new)


def added_part(target: str, html: str) -> str:
    """A part of the page that is put at the end of the one with this id, which is a name of our own."""
    return f'<hx-partial hx-target="#{target}" hx-swap="beforeend">{html}</hx-partial>'

"""The page of a run: its plan as text and as a graph, its proof, its steps, values with where they came from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from starlette.responses import Response

from bicameral.console._pages import PageCall, attachment, page_route
from bicameral.console._provenance import Side, find_provenance, recorded_value, step_inputs, unknown_value_error
from bicameral.console._records import find_run, load_progress, number_in
from bicameral.console._run_facts import address_with, plan_proof, result_facts, shown_bindings
from bicameral.console._run_progress import TURN
from bicameral.console._run_stream import run_stream
from bicameral.console._values import ShownPart, part_at, read_labels, read_value, shown_value, trust_of
from bicameral.journal import Event
from bicameral.labels import Label
from bicameral.runs import public_event
from bicameral.server.surface import json_bytes

MAX_TURNS = 50
"""Turns of a loop on one page."""
EVENT_PAGE = 200
MAX_GIST = 300


async def run_page(call: PageCall) -> Response:
    """Everything about a run, as it is now; a stream keeps the page up to date."""
    found = await find_run(call)
    progress, _ = await load_progress(call, found)
    facts = await result_facts(call, found, progress)
    return call.page(
        "run.html",
        found=found,
        progress=progress,
        proof=await plan_proof(call, progress),
        bindings=shown_bindings(progress.plan),
        **facts,
    )


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One turn of a step: what it was given, what came of it, and what was decided."""

    path: str
    inputs: Sequence[ShownPart]
    output: ShownPart | None
    decision: Mapping[str, Any] | None
    control: str
    """Whose text decided that it is done at all."""
    error: Mapping[str, Any] | None
    seconds: float | None
    alerts: Sequence[Mapping[str, Any]]


async def step_page(call: PageCall) -> Response:
    """The inputs and outputs of one step, turn by turn."""
    found, path = await find_run(call), call.query("path")
    first = number_in(call.query("first"), 0)
    by_turn: dict[str, list[Event]] = {}
    events, _ = await found.intact_events()
    for event in events:
        if event.step and TURN.sub("", event.step) == path:
            by_turn.setdefault(event.step, []).append(event)
    if not by_turn:
        return call.page("run_step.html", turns=[], more=0, path=path, found=found, address_with=address_with, first=0)
    names = list(by_turn)[first : first + MAX_TURNS]
    turns = [shown_turn(name, by_turn[name]) for name in names]
    more = max(0, len(by_turn) - first - MAX_TURNS)
    shared: dict[str, Any] = {"turns": turns, "more": more, "path": path, "found": found, "first": first + MAX_TURNS}
    return call.page("run_step.html", address_with=address_with, **shared)


def shown_turn(path: str, events: Sequence[Event]) -> ShownTurn:
    """One turn of a step from its events; of several attempts the last."""
    given = _last_body(events, "step-started", "call-waits", "call-denied")
    came = _last_body(events, "step-finished", "step-failed")
    shades: Mapping[str, Any] = given.get("shades") or {}
    inputs = [
        shown_value(read_value(value), read_labels(shades.get(name)), name=name)
        for name, value in step_inputs(given).items()
    ]
    output = shown_value(read_value(came["result"]), read_labels(came.get("shade"))) if "result" in came else None
    control = read_labels(given["control"]) if given.get("control") is not None else None
    error: Mapping[str, Any] | None = came.get("error") or given.get("error")
    alerts: list[Mapping[str, Any]] = list(came.get("alerts", ()))
    return ShownTurn(
        path,
        inputs,
        output,
        cast("Mapping[str, Any] | None", given.get("decision")),
        trust_of(control) if isinstance(control, Label) else "",
        error,
        came.get("seconds"),
        alerts,
    )


def _last_body(events: Sequence[Event], *kinds: str) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = [each.body for each in events if each.kind in kinds]
    return found[-1] if found else {}


def _side(call: PageCall) -> Side:
    side = call.query("side")
    if side not in ("input", "output", "answer"):
        raise unknown_value_error("a value is an input, an output or the answer")
    return side


async def value_page(call: PageCall) -> Response:
    """Where a value came from and what became of it."""
    found, side = await find_run(call), _side(call)
    progress, events = await load_progress(call, found)
    place = call.query("step"), side, call.query("name"), call.query("at")
    shown = await asyncio.to_thread(find_provenance, progress, events, call.context.agent.policy, *place)
    template = "provenance_part.html" if call.is_partial else "provenance.html"
    return call.page(template, found=found, shown=shown, side=side, here=call.request.url.query, steps=progress.steps)


async def value_file(call: PageCall) -> Response:
    """A value as a file."""
    found, side = await find_run(call), _side(call)
    events, _ = await found.intact_events()
    value = recorded_value(events, call.query("step"), side, call.query("name"))
    try:
        part, _ = part_at(value.value, value.labels, call.query("at"))
    except (LookupError, TypeError):
        raise unknown_value_error("the value has no such part") from None
    if isinstance(part, str):
        return attachment(part.encode("utf-8", "replace"), f"{found.run}-{side}.txt", "text/plain; charset=utf-8")
    content = json.dumps(part, ensure_ascii=False, indent=2, default=str).encode("utf-8", "replace")
    return attachment(content, f"{found.run}-{side}.json", "application/json")


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """One entry of the journal with the gist of its facts."""

    event: Event
    gist: str


async def journal_page(call: PageCall) -> Response:
    """Everything that happened in a run, in order, and whether its seals hold."""
    found = await find_run(call)
    after = number_in(call.query("after"), -1)
    # First: what is shown below is what the seals say of it. The pages that follow hold their own entries against them.
    breaks = await found.breaks() if after < 0 else []
    # One more than a page has says whether there is another one.
    found_events, damage = await found.intact_events(after, EVENT_PAGE + 1)
    events = [public_event(event) for event in found_events]
    shown = [ShownEvent(event, _gist(event)) for event in events[:EVENT_PAGE]]
    more = events[EVENT_PAGE - 1].number if len(events) > EVENT_PAGE else None
    breaks = breaks or ([damage] if damage else [])
    return call.page("run_journal.html", found=found, events=shown, breaks=breaks, more=more, first=after < 0)


def _gist(event: Event) -> str:
    text = json.dumps(event.body, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_GIST else f"{text[: MAX_GIST - 1]}…"


async def journal_file(call: PageCall) -> Response:
    """The journal of a run as lines of JSON; of a damaged one what is intact, and what is wrong as the last line."""
    found = await find_run(call)
    events, damage = await found.intact_events()
    breaks = await found.breaks() or [damage] if damage else []
    name = f"{found.part}-damaged.jsonl" if damage else f"{found.part}.jsonl"
    return attachment(await asyncio.to_thread(_journal_lines, events, breaks), name, "application/jsonl")


def _journal_lines(events: Sequence[Event], breaks: Sequence[str]) -> bytes:
    lines = [
        json_bytes({"number": event.number, "at": event.at, "kind": event.kind, "step": event.step, "body": event.body})
        for event in map(public_event, events)
    ]
    if breaks:
        lines.append(json_bytes({"damaged": breaks}))
    return b"".join(line + b"\n" for line in lines)


run_routes = [
    page_route("/runs/{run}", run_page, "see"),
    page_route("/runs/{run}/live", run_stream, "see"),
    page_route("/runs/{run}/step", step_page, "see"),
    page_route("/runs/{run}/value", value_page, "see"),
    page_route("/runs/{run}/value/file", value_file, "see"),
    page_route("/runs/{run}/journal", journal_page, "see"),
    page_route("/runs/{run}/journal/file", journal_file, "see"),
]

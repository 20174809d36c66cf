"""What happened in a run, event by event: a line for a person, an object for a program."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bicameral.runs import Event

_MAX_GIST = 100


def event_json(event: Event) -> dict[str, Any]:
    return {"number": event.number, "at": event.at, "kind": event.kind, "step": event.step, "body": event.body}


def event_line(event: Event, *, full: bool = False) -> str:
    """When, what and where, with the gist of the facts; in full, with all of them."""
    clock = datetime.fromtimestamp(event.at).strftime("%H:%M:%S")
    what = f"{clock}  {event.kind:<13} {event.step:<8}"
    if full:
        return f"{what}\n{json.dumps(event.body, ensure_ascii=False, indent=2)}"
    return f"{what} {_gist(event)}".rstrip()


def _gist(event: Event) -> str:
    body: dict[str, Any] = event.body
    match event.kind:
        case "run-started" | "reason-started":
            text = str(body.get("request", ""))
        case "step-started" | "call-waits" | "call-denied":
            text = f"{body.get('what', '')} {json.dumps(body.get('arguments', {}), ensure_ascii=False)}"
        case "step-finished":
            text = _noticed(body) + json.dumps(body.get("result"), ensure_ascii=False)
        case "step-failed" | "run-failed":
            error: dict[str, Any] = body.get("error", {})
            text = f"{_noticed(body)}{error.get('message', '')} [{error.get('code', '')}]"
        case "run-finished":
            text = json.dumps(body.get("answer"), ensure_ascii=False)
        case "approval":
            text = f"asked about {len(body.get('calls', []))}, approved {len(body.get('approved', []))}"
        case "reason-round":
            told = body.get("failed") or "told: " + ("; ".join(body.get("told", [])) or "nothing")
            text = f"round {body.get('round')} (run {body.get('run')}) {told}"
        case "reason-ended":
            taken: dict[str, Any] = body.get("taken", {})
            text = f"{taken.get('rounds')} rounds, {taken.get('tokens')} tokens, {body.get('bound') or ''}"
        case "run-stopped":
            text = f"in flight: {', '.join(body.get('in_flight', [])) or 'nothing'}"
        case "run-resumed":
            text = f"attempt {body.get('attempt', '')}"
        case "run-waits":
            text = "for a person"
        case "run-erased":
            text = str(body.get("why", ""))
        case _:
            text = str(body.get("model", ""))
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= _MAX_GIST else one_line[: _MAX_GIST - 1] + "…"


def _noticed(body: dict[str, Any]) -> str:
    """How many alerts there were at a step, in front of what it gave."""
    alerts: list[Any] = body.get("alerts", [])
    return f"({len(alerts)} alert{'' if len(alerts) == 1 else 's'}) " if alerts else ""

"""What earlier attempts at a run came to, from its record: what they took, what they noticed, how the run ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bicameral.journal import Event
from bicameral.labels import Shade, shade_from_json
from bicameral.sessions import Spent
from bicameral.types import value_from_json

from ._attempt import Earlier
from ._caps import Taken
from ._outcome import EffectDone, Failed, Finished, RunOutcome, Stopped
from ._recorded import recorded_error
from ._run import round_of
from ._usage import MAX_ALERTS, RunAlert, RunUsage

_ENDED = ("step-finished", "step-failed")


def what_came_of(events: Sequence[Event]) -> Earlier:
    """What all attempts so far cost and noticed, and how long they worked."""
    ended = [event for event in events if event.kind in _ENDED]
    rejected = Counter(str(event.body["rejected"]) for event in ended if "rejected" in event.body)
    alerts = [RunAlert.from_json(alert) for event in ended for alert in event.body.get("alerts", ())]
    usage = RunUsage(
        _spent(events),
        dict(rejected),  # pyright: ignore[reportArgumentType]
        sum(event.body.get("outcome") == "not-found" for event in ended),
        len(alerts),
        sum(float(charge.get("money") or 0.0) for charge in _charges(events)),
        tuple(dict.fromkeys(str(event.body["degraded"]) for event in _asked(events) if "degraded" in event.body)),
    )
    return Earlier(usage, tuple(alerts[:MAX_ALERTS]), _worked(events))


def taken_in(events: Sequence[Event], earlier: Earlier) -> Taken:
    """What all attempts so far took of each cap."""
    tools = sum(event.kind == "step-started" and "tool" in event.body for event in events)
    spent = earlier.usage.spent
    # A blank that was begun counts, also if its process died before the model had replied.
    blanks = sum(event.kind == "step-started" and event.body.get("what") == "extract" for event in events)
    models = max(spent.reasoner_calls + spent.executor_calls, sum(1 for _ in _charges(events)), blanks)
    tokens = spent.reasoner_tokens + spent.executor_tokens
    return Taken(round_of(events[0].body.get("part_of")), tools + models, tokens, earlier.usage.money, earlier.seconds)


def ended_as(end: Event, events: Sequence[Event]) -> RunOutcome:
    """How a run ended, from its record."""
    body, earlier = end.body, what_came_of(events)
    written: Mapping[str, Shade] = {place: shade_from_json(each) for place, each in body.get("written", {}).items()}
    effects = tuple(EffectDone(each["step"], each["tool"], each["effect"]) for each in body.get("effects", ()))
    seconds = float(body.get("seconds", earlier.seconds))
    rest: dict[str, Any] = {"effects": effects, "written": written, "usage": earlier.usage, "alerts": earlier.alerts}
    match end.kind:
        case "run-finished":
            shade = shade_from_json(body["shade"]) if "shade" in body else None
            return Finished(end.run, value_from_json(body["answer"]), seconds, shade=shade, **rest)
        case "run-failed":
            return Failed(end.run, recorded_error(body["error"]), end.step, seconds, **rest)
        case _:
            return Stopped(end.run, tuple(body.get("in_flight", ())), seconds, **rest)


def _asked(events: Sequence[Event]) -> Iterable[Event]:
    return (event for event in events if event.kind == "model-called")


def _charges(events: Sequence[Event]) -> Iterable[dict[str, Any]]:
    """Every call of a model, also those that came to nothing."""
    for event in events:
        for call in (event.body, *event.body.get("lost_calls", ())):
            yield from call.get("charges", ())


def _spent(events: Sequence[Event]) -> Spent:
    """The tokens of all steps that ended, and of model calls in steps that did not."""
    ended = {event.step: event.body.get("spent", {}) for event in events if event.kind in _ENDED}
    spent = sum((Spent(**body) for body in ended.values() if body), Spent())
    for event in _asked(events):
        if event.step not in ended:
            tokens = sum(int(charge["prompt"]) + int(charge["output"]) for charge in event.body.get("charges", ()))
            executor = event.body.get("role") == "quarantined"
            spent += Spent(0, tokens, 0, 1) if executor else Spent(tokens, 0, 1, 0)
    return spent


def _worked(events: Sequence[Event]) -> float:
    """The seconds in which the attempts worked, without those in which they waited for a person."""
    total, began, asked = 0.0, events[0].at, 0.0
    last = began
    asks = {event.step for event in events if event.kind == "step-started" and event.body.get("what") == "ask"}
    for event in events:
        if event.kind == "run-resumed":
            total, began, asked = total + max(0.0, last - began - asked), event.at, 0.0
        elif event.kind == "run-waits":
            # It says itself how long all attempts worked until then.
            total, began, asked = float(event.body["seconds"]), event.at, 0.0
        elif event.kind == "approval" or (event.kind == "step-finished" and event.step in asks):
            asked += float(event.body.get("seconds", 0.0))
        last = event.at
    return total + max(0.0, last - began - asked)

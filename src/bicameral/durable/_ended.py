"""How a run ended, from its record: what an attempt finds whose worker died before it could say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from bicameral.errors import BicameralError, Place, RunError
from bicameral.runs import Event, Failed, Finished, Stopped, shade_json
from bicameral.types import value_to_json

from ._views import State

_ENDS: dict[str, State] = {"run-finished": "finished", "run-failed": "failed", "run-stopped": "stopped"}


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run as it is kept: a state, a reason if it did not finish, and the facts."""

    state: State
    why: str | None
    outcome: dict[str, Any]


def is_ended(events: Sequence[Event]) -> bool:
    return any(event.kind in _ENDS for event in events[-3:])


def outcome_of(events: Sequence[Event]) -> Ended | None:
    """The end that is in the record, if there is one."""
    for event in reversed(events[-3:]):
        if (state := _ENDS.get(event.kind)) is None:
            continue
        body = event.body
        error = cast("dict[str, Any] | None", body.get("error"))
        why = None if state == "finished" else str(body.get("why") or "") or "it was stopped"
        if error is not None:
            why = _words(error)
        kept = {name: body[name] for name in ("answer", "shade", "effects", "usage", "seconds") if name in body}
        return Ended(state, why, kept | ({"error": error} if error else {}))
    return None


def ended(outcome: Finished | Failed | Stopped) -> Ended:
    """The end of a run that came to it just now, in the same words."""
    effects = [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in outcome.effects]
    facts: dict[str, Any] = {
        "effects": effects,
        "usage": outcome.usage.to_json(),
        "seconds": round(outcome.seconds, 6),
    }
    match outcome:
        case Finished(answer=answer, shade=shade):
            labels = {} if shade is None else {"shade": shade_json(shade)}
            return Ended("finished", None, {"answer": value_to_json(answer)} | labels | facts)
        case Failed(error=error):
            return refused(error, facts)
        case Stopped():
            return Ended("stopped", "it was stopped", facts)


def refused(error: BicameralError, facts: dict[str, Any] | None = None) -> Ended:
    """A run that failed with an error, perhaps before anything of it was done."""
    told = error.to_json()
    return Ended("failed", _words(told), (facts or {"effects": []}) | {"error": told})


def _words(error: dict[str, Any]) -> str:
    place = cast("dict[str, Any]", error.get("place") or {})
    known = {name: error.get(name) for name in ("expected", "nearest", "fix")}
    where = Place(**place) if place else None
    return str(RunError(str(error.get("code", "")), str(error.get("message", "")), place=where, **known))

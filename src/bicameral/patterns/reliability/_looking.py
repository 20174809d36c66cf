"""Guards at work: each is asked, and what it says is noted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

from bicameral.errors import RunError

from ..kernel import guard_failed
from ._guards import Guard, Pass, Redact, Refuse, Seam, Seen, Verdict

Note = Callable[..., None]


def looked_at(guards: Sequence[Guard], seam: Seam, seen: Seen, note: Note) -> Any:
    """The value after all guards of a seam; the first that refuses ends it. Every verdict is in the trace."""
    for guard in guards:
        if guard.at != seam:
            continue
        verdict = _verdict(guard, seen, note)
        found = 0 if isinstance(verdict, Pass) else verdict.found
        note("guard", at=seam, rule=guard.rule, verdict=type(verdict).__name__.lower(), found=found, tool=seen.tool)
        if isinstance(verdict, Redact) and seam != "call":
            seen = replace(seen, value=verdict.value)
        elif not isinstance(verdict, Pass):
            raise RunError("pattern.guarded", f"the guard {guard.rule!r} at the {seam} says no: {verdict.reason}")
    return seen.value


def _verdict(guard: Guard, seen: Seen, note: Note) -> Verdict:
    try:
        # A guard looks at a copy: what it does to that changes nothing.
        said_so = cast("object", guard.check(replace(seen, value=deepcopy(seen.value))))
    except Exception as error:
        note("guard", at=guard.at, rule=guard.rule, verdict="failed", found=0, tool=seen.tool)
        raise guard_failed(error) from None
    if isinstance(said_so, Pass | Refuse | Redact):
        return said_so
    note("guard", at=guard.at, rule=guard.rule, verdict="failed", found=0, tool=seen.tool)
    raise guard_failed(TypeError("no verdict"))

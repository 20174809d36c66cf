"""Read a plan from a file, whichever of its forms it is in."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.errors import Place, PlanError

if TYPE_CHECKING:
    from bicameral.plans import Plan
    from bicameral.tools import Registry

_MAX_BYTES = 4_000_000


@dataclass(frozen=True)
class PlanFile:
    """A plan, where its steps stand in the file, and what was noted while it was read."""

    plan: Plan
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    notes: tuple[str, ...] = ()


def read_plan(name: str, registry: Registry) -> PlanFile:
    """A plan in the surface syntax, as JSON, or as a list of tasks; `-` is standard input."""
    from bicameral.plans import import_tasks, load_plan, parse

    text = _text(name)
    if not text.lstrip().startswith("{"):
        parsed = parse(text, registry, file=name)
        return PlanFile(parsed.plan, parsed.places)
    content = _json(text)
    if "tasks" in content:
        imported = import_tasks(content, registry)
        return PlanFile(imported.plan, notes=tuple(imported.notes))
    return PlanFile(load_plan(text, file=name))


def _json(text: str) -> dict[str, Any]:
    """The JSON object, or an empty one: what is wrong with it is for the reader of plans to say."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return {}


def _text(name: str) -> str:
    place = Place(file="standard input" if name == "-" else name)
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(f"the file cannot be read: {error.strerror or error}", place) from None
    if len(raw) > _MAX_BYTES:
        raise PlanError("plan.too-long", f"the file is larger than {_MAX_BYTES:,} bytes", place=place)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable("the file is not text", place) from None


def _unreadable(message: str, place: Place) -> PlanError:
    return PlanError(
        "plan.cannot-read", message, place=place, expected="a plan as JSON or in Python syntax", fix="Check the path."
    )

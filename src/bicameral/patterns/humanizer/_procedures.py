"""What was done in a run that succeeded, and the same without the values of that one task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bicameral.errors import LabelError, RunError
from bicameral.journal import Event, Journal
from bicameral.labels import TRUSTED_USER, UNKNOWN, Label, join, join_all, shade_from_json

from ..kernel import Labelled, labelled

_SHORTEST = 2
"""Values that are shorter stand for too many things to be recognised."""


@dataclass(frozen=True, slots=True)
class Did:
    """One call that was made. The label of its arguments is also that of whatever chose the call."""

    tool: str
    arguments: Labelled[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Procedure:
    """What was done for a task in one run, in order."""

    run: str
    task: Labelled[str]
    steps: tuple[Did, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """The shape of it: procedures that call the same tools in the same order are tries of one way."""
        return tuple(step.tool for step in self.steps)


def procedure_of(journal: Journal, run: str, task: Labelled[str]) -> Procedure:
    """The calls of a finished run that gave something, with their labels, from its record. What failed is left out."""
    if wrong := journal.verify(run):
        raise RunError("pattern.bad-record", f"the record of run {run} is not as it was written: {wrong[0]}")
    events = journal.events(run)
    if not events or events[-1].kind != "run-finished":
        raise RunError("pattern.bad-record", f"run {run} has not come to its end")
    ended = {event.step for event in events if event.kind == "step-finished"}
    calls = [event for event in events if event.kind == "step-started" and event.step in ended]
    return Procedure(run, task, tuple(_did(event) for event in calls if isinstance(event.body.get("tool"), str)))


def _did(event: Event) -> Did:
    arguments: Mapping[str, Any] = event.body.get("arguments") or {}
    shades: Mapping[str, Any] = event.body.get("shades") or {}
    label = join_all([_label(event.body.get("control")), *(_label(shades.get(name)) for name in arguments)])
    return Did(event.body["tool"], labelled(arguments, join(TRUSTED_USER, label)))


def _label(written: object) -> Label:
    try:
        return shade_from_json(written).flat
    except LabelError:
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class Nameless:
    """A procedure without the values of its task: each value that stood in the task has a name."""

    task: str
    steps: tuple[str, ...]
    parameters: tuple[str, ...]
    values: tuple[str, ...]
    """Every value that was in it, as text."""


def without_values(task: str, steps: Sequence[tuple[str, Mapping[str, Any]]]) -> Nameless:
    """The task and the steps with a name in braces for each value that the task gives, and dots for all others."""
    names: dict[str, str] = {}
    written: list[str] = []
    values: list[str] = []
    for tool, arguments in steps:
        shown: list[str] = []
        for name, value in arguments.items():
            words = str(value)
            values.append(words)
            if words not in names and len(words) >= _SHORTEST and _standing(words).search(task):
                names[words] = _fresh(name, names.values())
            shown.append(f"{name}={{{names[words]}}}" if words in names else f"{name}=…")
        written.append(f"{tool}({', '.join(shown)})")
    for words in sorted(names, key=len, reverse=True):
        task = _standing(words).sub(f"{{{names[words]}}}", task)
    return Nameless(task, tuple(written), tuple(names.values()), tuple(values))


def _standing(words: str) -> re.Pattern[str]:
    """These words where they stand alone, and not in a name that was put in their place."""
    return re.compile(rf"(?<![\w{{]){re.escape(words)}(?![\w}}])", re.IGNORECASE)


def _fresh(name: str, taken: Iterable[str]) -> str:
    used = set(taken)
    return next(each for each in (name, *(f"{name}_{number}" for number in range(2, 1000))) if each not in used)

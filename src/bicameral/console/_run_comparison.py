"""Two runs side by side: what differs in their plans, their steps, their decisions and their answers."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.console._run_progress import RunProgress
from bicameral.console._values import ShownPart, read_labels, read_value, shown_value
from bicameral.journal import Event
from bicameral.plans import Plan, drop_bindings, print_plan
from bicameral.tools import Registry

MAX_STEPS = 200
"""Steps that are compared on one page."""

LineKind = Literal["same", "left", "right"]


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line of both plans, or of one of them."""

    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A value of both runs."""

    same: bool
    left: ShownPart | None
    right: ShownPart | None


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """A step that either run has done, by its path with the turns of loops."""

    path: str
    what: str
    inputs_same: bool
    result: ComparedValue
    labels_same: bool
    decisions: tuple[str, str]
    seconds: tuple[float | None, float | None]

    @property
    def same(self) -> bool:
        """Whether nothing differs but the time."""
        return self.inputs_same and self.result.same and self.labels_same and self.decisions[0] == self.decisions[1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs have in common and where they differ; `left_out` steps are not compared."""

    plan: Sequence[ComparedLine]
    plan_same: bool
    steps: Sequence[ComparedStep]
    left_out: int
    answer: ComparedValue

    @property
    def same(self) -> bool:
        """Whether both did the same and came to the same."""
        return self.plan_same and self.answer.same and not self.left_out and all(step.same for step in self.steps)


def compare_runs(
    left: tuple[RunProgress, Sequence[Event]], right: tuple[RunProgress, Sequence[Event]], registry: Registry
) -> Comparison:
    """Compare two runs by their journals."""
    texts = [_plan_text(progress.plan, registry) for progress, _ in (left, right)]
    lines = _compared_lines(*texts)
    turns = [_turns(events) for _, events in (left, right)]
    paths = list(dict.fromkeys([*turns[0], *turns[1]]))
    steps = [_compared_step(path, turns[0].get(path, {}), turns[1].get(path, {})) for path in paths[:MAX_STEPS]]
    ends = [_answer(progress) for progress, _ in (left, right)]
    answer = _compared_value(ends[0], ends[1], "answer")
    return Comparison(lines, texts[0] == texts[1], steps, max(0, len(paths) - MAX_STEPS), answer)


def _plan_text(plan: Plan | None, registry: Registry) -> str:
    return "" if plan is None else print_plan(drop_bindings(plan), registry)


def _compared_lines(left: str, right: str) -> list[ComparedLine]:
    found: list[ComparedLine] = []
    kinds: Mapping[str, LineKind] = {" ": "same", "-": "left", "+": "right"}
    for line in difflib.ndiff(left.splitlines(), right.splitlines()):
        # Lines that begin with `?` only point into the line before.
        if (kind := kinds.get(line[:1])) is not None:
            found.append(ComparedLine(kind, line[2:]))
    return found


Turn = Mapping[str, Mapping[str, Any]]
"""The facts of the begin and of the end of a step."""


def _turns(events: Sequence[Event]) -> dict[str, dict[str, Mapping[str, Any]]]:
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for event in events:
        if event.kind in ("step-started", "call-waits", "call-denied"):
            found.setdefault(event.step, {})["begun"] = event.body
        elif event.kind in ("step-finished", "step-failed"):
            found.setdefault(event.step, {})["ended"] = event.body
    return found


def _compared_step(path: str, left: Turn, right: Turn) -> ComparedStep:
    begun = [turn.get("begun", {}) for turn in (left, right)]
    ended = [turn.get("ended", {}) for turn in (left, right)]
    what = next((str(each["what"]) for each in begun if "what" in each), "")
    inputs = [{name: each.get(name) for name in ("arguments", "source", "instruction", "question")} for each in begun]
    decisions: list[Mapping[str, Any]] = [each.get("decision") or {} for each in begun]
    said = [str(each.get("said", "")) for each in decisions]
    return ComparedStep(
        path,
        what,
        _is_same(*inputs),
        _compared_value(ended[0], ended[1], "result"),
        _is_same(ended[0].get("shade"), ended[1].get("shade")),
        (said[0], said[1]),
        (ended[0].get("seconds"), ended[1].get("seconds")),
    )


def _answer(progress: RunProgress) -> Mapping[str, Any]:
    return progress.end.body if progress.end is not None else {}


def _compared_value(left: Mapping[str, Any], right: Mapping[str, Any], name: str) -> ComparedValue:
    both = name in left and name in right
    same = _is_same(left.get(name), right.get(name)) and (both or (name in left) == (name in right))
    return ComparedValue(same, _shown(left, name), _shown(right, name))


def _shown(facts: Mapping[str, Any], name: str) -> ShownPart | None:
    return shown_value(read_value(facts[name]), read_labels(facts.get("shade"))) if name in facts else None


def _is_same(left: object, right: object) -> bool:
    return json.dumps(left, sort_keys=True, default=str) == json.dumps(right, sort_keys=True, default=str)

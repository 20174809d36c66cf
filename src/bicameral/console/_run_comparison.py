"""Two runs side by side: what differs in their plans, their steps, their decisions and their answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from bicameral.console._provenance import step_inputs
from bicameral.console._run_progress import RunProgress
from bicameral.console._values import ShownPart, read_labels, read_value, shown_value
from bicameral.journal import Event
from bicameral.plans import Plan, drop_bindings, print_plan
from bicameral.tools import Registry

MAX_STEPS = 200
"""Steps that are compared on one page."""
MAX_LINES = 2_000
"""Lines of each plan that are compared on one page."""
MAX_PAIRS = 20_000
"""Pairs of equal lines up to which plans are matched line by line. Plans that repeat few lines over and over have far
more, and the time grows with their square; such a part is shown as one change."""

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
    labels_same: bool = True
    """Whether both came from the same and may be seen by the same."""


@dataclass(frozen=True, slots=True)
class ComparedError:
    """With what a step, or a run, failed in both runs: its message, code and step; empty if it did not."""

    left: Mapping[str, str]
    right: Mapping[str, str]

    @property
    def same(self) -> bool:
        return self.left == self.right


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """A step that either run has done, by its path with the turns of loops."""

    path: str
    what: str
    inputs: Mapping[str, ComparedValue]
    result: ComparedValue
    error: ComparedError
    decisions: tuple[str, str]
    """What policy said, by which rules."""
    control_same: bool
    """Whether the same decided that it is done at all."""
    done_same: bool
    """Whether it came as far in both."""
    seconds: tuple[float | None, float | None]

    @property
    def inputs_same(self) -> bool:
        return all(each.same for each in self.inputs.values())

    @property
    def labels_same(self) -> bool:
        """Whether all that went in and came out has the same labels."""
        return all(each.labels_same for each in (self.result, *self.inputs.values()))

    @property
    def same(self) -> bool:
        """Whether nothing differs but the time."""
        values = self.inputs_same and self.result.same and self.labels_same
        decided = self.decisions[0] == self.decisions[1] and self.control_same
        return values and decided and self.error.same and self.done_same


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs have in common and where they differ; `left_out` steps and `lines_left_out` are not compared."""

    plan: Sequence[ComparedLine]
    plan_same: bool
    lines_left_out: int
    steps: Sequence[ComparedStep]
    left_out: int
    ends: tuple[str, str]
    """How each ended: the kind of its last event, or that it goes on."""
    error: ComparedError
    answer: ComparedValue
    in_rounds: bool
    """Whether either consists of rounds, which are runs of their own and are not compared here."""

    @property
    def end_same(self) -> bool:
        """Whether both ended in the same way."""
        return self.ends[0] == self.ends[1] and self.error.same

    @property
    def same(self) -> bool:
        """Whether both did the same and came to the same; not as long as something is not compared."""
        came_to = self.end_same and self.answer.same and self.answer.labels_same
        compared = not self.left_out and not self.in_rounds
        return self.plan_same and came_to and compared and all(step.same for step in self.steps)


def compare_runs(
    left: tuple[RunProgress, Sequence[Event]], right: tuple[RunProgress, Sequence[Event]], registry: Registry
) -> Comparison:
    """Compare two runs by their journals."""
    texts = [_plan_text(progress.plan, registry) for progress, _ in (left, right)]
    lines = [text.splitlines() for text in texts]
    turns = [_turns(events) for _, events in (left, right)]
    paths = list(dict.fromkeys([*turns[0], *turns[1]]))
    ends = [progress.end.body if progress.end is not None else {} for progress, _ in (left, right)]
    return Comparison(
        list(compare_lines(lines[0][:MAX_LINES], lines[1][:MAX_LINES])),
        texts[0] == texts[1] and _pattern(left[0]) == _pattern(right[0]),
        sum(max(0, len(each) - MAX_LINES) for each in lines),
        [_compared_step(path, turns[0].get(path, {}), turns[1].get(path, {})) for path in paths[:MAX_STEPS]],
        max(0, len(paths) - MAX_STEPS),
        (_end_words(left[0]), _end_words(right[0])),
        ComparedError(_error_facts(ends[0]), _error_facts(ends[1])),
        _compared_value(ends[0], ends[1], "answer", ends[0].get("shade"), ends[1].get("shade")),
        any(progress.rounds for progress, _ in (left, right)),
    )


def _plan_text(plan: Plan | None, registry: Registry) -> str:
    return "" if plan is None else print_plan(drop_bindings(plan), registry)


def _pattern(progress: RunProgress) -> tuple[Any, Any]:
    """The pattern that a run without a plan is of, with its knobs."""
    return progress.first.get("pattern"), progress.first.get("spec_hash")


def _end_words(progress: RunProgress) -> str:
    return progress.end.kind if progress.end is not None else "goes on"


def compare_lines(left: Sequence[str], right: Sequence[str]) -> Iterator[ComparedLine]:
    """The lines of both plans in order, each marked with the plan that has it."""
    first, last = _common_ends(left, right)
    middle = left[first : len(left) - last], right[first : len(right) - last]
    yield from (ComparedLine("same", line) for line in left[:first])
    if _equal_pairs(*middle) > MAX_PAIRS:
        yield from (ComparedLine("left", line) for line in middle[0])
        yield from (ComparedLine("right", line) for line in middle[1])
    else:
        for kind, a, b, c, d in SequenceMatcher(None, *middle, autojunk=False).get_opcodes():
            yield from (ComparedLine("same" if kind == "equal" else "left", line) for line in middle[0][a:b])
            yield from (ComparedLine("right", line) for line in middle[1][c:d] if kind != "equal")
    yield from (ComparedLine("same", line) for line in left[len(left) - last :])


def _common_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """How many lines both begin with, and how many of the others both end with."""
    most = min(len(left), len(right))
    first = next((number for number in range(most) if left[number] != right[number]), most)
    rest = range(most - first)
    last = next((number for number in rest if left[-1 - number] != right[-1 - number]), len(rest))
    return first, last


def _equal_pairs(left: Sequence[str], right: Sequence[str]) -> int:
    there = Counter(right)
    return sum(there[line] for line in left)


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
    # A call that was denied has no end: its error is where it was to begin.
    errors = [_error_facts(end or begin) for begin, end in zip(begun, ended, strict=True)]
    return ComparedStep(
        path,
        next((str(each["what"]) for each in begun if "what" in each), ""),
        _compared_inputs(begun[0], begun[1]),
        _compared_value(ended[0], ended[1], "result", ended[0].get("shade"), ended[1].get("shade")),
        ComparedError(errors[0], errors[1]),
        (_decision_words(begun[0]), _decision_words(begun[1])),
        _is_same(begun[0].get("control"), begun[1].get("control")),
        left.keys() == right.keys(),
        (ended[0].get("seconds"), ended[1].get("seconds")),
    )


def _compared_inputs(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, ComparedValue]:
    """What a step was given in both runs, by name."""
    given = step_inputs(left), step_inputs(right)
    shades: tuple[Mapping[str, Any], ...] = (left.get("shades") or {}, right.get("shades") or {})
    return {
        name: _compared_value(given[0], given[1], name, shades[0].get(name), shades[1].get(name))
        for name in dict.fromkeys((*given[0], *given[1]))
    }


def _decision_words(facts: Mapping[str, Any]) -> str:
    """What policy said of a call, with the rules that said it."""
    decision: Mapping[str, Any] = facts.get("decision") or {}
    rules = ", ".join(sorted(str(each) for each in decision.get("rules", ())))
    return str(decision.get("said", "")) + (f" by {rules}" if rules else "")


def _error_facts(facts: Mapping[str, Any]) -> Mapping[str, str]:
    """What is compared of an error: its code, its message, and where it happened."""
    error: Mapping[str, Any] = facts.get("error") or {}
    if not error:
        return {}
    place: Mapping[str, Any] = error.get("place") or {}
    found = {"code": error.get("code"), "message": error.get("message"), "step": place.get("step")}
    return {name: str(value or "") for name, value in found.items()}


def _compared_value(
    left: Mapping[str, Any], right: Mapping[str, Any], name: str, left_labels: object, right_labels: object
) -> ComparedValue:
    same = (name in left) == (name in right) and _is_same(left.get(name), right.get(name))
    shown = _shown_fact(left, name, left_labels), _shown_fact(right, name, right_labels)
    return ComparedValue(same, *shown, _is_same(left_labels, right_labels))


def _shown_fact(facts: Mapping[str, Any], name: str, labels: object) -> ShownPart | None:
    return shown_value(read_value(facts[name]), read_labels(labels)) if name in facts else None


def _is_same(left: object, right: object) -> bool:
    return json.dumps(left, sort_keys=True, default=str) == json.dumps(right, sort_keys=True, default=str)

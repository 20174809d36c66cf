"""Doubts: what an answer or an effect rests on that a person should know of before relying on it.

Selections of tools and of comprehensions are noted while a plan runs (`SelectionLog`). At its end those that came out
empty, dropped cells or skipped files become doubts, but only where the answer or an effect rests on them
(`find_resting_steps`, the data flow of the plan). Planning passes in doubts of its own: an invented constant, a word
that was bound to nothing.

A doubt tells something of the data that was selected, if only how much of it there was, so it has a label like any
other value: the join of what was selected from, of the condition, and of the control flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from bicameral.labels import NOTHING, PUBLIC, UNKNOWN, Label, join, label_tree_from_json, label_tree_to_json
from bicameral.plans import (
    Answer,
    Ask,
    Call,
    Compute,
    Each,
    Extract,
    Plan,
    Step,
    Update,
    When,
    free_names,
    static_path,
    walk,
)
from bicameral.tools import Registry, Selection, shown_text

DoubtCode = Literal[
    "empty-selection",
    "guessed-notation",
    "unread-cells",
    "skipped-file",
    "uncited-fact",
    "weak-evidence",
    "rival-evidence",
    "invented-constant",
    "unbound-word",
    "false-claim",
    "several-plans",
    "left-out",
    "refused-before",
    "misread-file",
    "looked-elsewhere",
    "absent-tool",
]
DOUBT_CODES: tuple[DoubtCode, ...] = get_args(DoubtCode)

MAX_DOUBTS = 20
"""How many doubts an outcome has; an answer with more of them is not read more carefully."""
MAX_NOTES = 1_000
"""How many different selections of a run are noted."""
_MAX_TEXT = 240

_WITHOUT_DETAILS: Mapping[DoubtCode, str] = {
    "empty-selection": "a selection came out empty",
    "guessed-notation": "numbers that can be read in two ways were read in one of them",
    "unread-cells": "some values could not be read and were left out",
    "skipped-file": "something could not be read and was skipped",
    "uncited-fact": "something that was read stands in none of the passages that were found",
    "weak-evidence": "something was read from a passage that does not mention what was asked for",
    "rival-evidence": "another passage says something else than the one that was read",
    "invented-constant": "a value of the plan stands neither in the request nor in the settings",
    "unbound-word": "a word of the request was matched with nothing",
    "false-claim": "the answer claims something that was not done",
    "several-plans": "another plan would have served the request as well",
    "left-out": "something that the request does not ask for was not done",
    "refused-before": "the planner first said that there is no tool for the request",
    "misread-file": "a table is read as text, or a text as a table",
    "absent-tool": "a tool that the request may ask for is not set up",
    "looked-elsewhere": "nothing is called what the request says, so that it was looked for elsewhere",
}

_ORDER: Mapping[DoubtCode, int] = {"uncited-fact": 0, "weak-evidence": 1, "rival-evidence": 2}


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something on which the answer or an effect rests, and that may be wrong.

    Args:
        code: What kind of doubt it is.
        text: The doubt in plain words. It may contain values from the world; hidden characters are made visible.
        label: Where what the text tells came from, and who may see it.
        step: The step of the plan; empty if it is about the whole plan.

    Example:
        >>> Doubt("empty-selection", "nothing was selected: 0 of 12 rows: paid is no", Label()).text
        'nothing was selected: 0 of 12 rows: paid is no'
    """

    code: DoubtCode
    text: str
    label: Label = UNKNOWN
    step: str = ""

    def __post_init__(self) -> None:
        if self.code not in DOUBT_CODES:
            raise ValueError(f"{self.code!r} is not a code of a doubt")
        # Here and not where it is shown: no place that shows a doubt can forget it.
        object.__setattr__(self, "text", shown_text(self.text, _MAX_TEXT))

    @property
    def summary(self) -> str:
        """The kind of doubt, without anything that depends on data."""
        return _WITHOUT_DETAILS[self.code]

    def text_for(self, reader: str) -> str:
        """The text for a principal; only the kind of doubt for one who may not see what it tells."""
        allowed = self.label.readers is PUBLIC or reader in self.label.readers
        return self.text if allowed else self.summary

    @property
    def privileged_text(self) -> str:
        """The text for a prompt of a privileged model, which must not read anything that somebody else can choose."""
        return self.text if self.label.trusted else self.summary

    def to_json(self) -> dict[str, Any]:
        place = {"step": self.step} if self.step else {}
        return {"code": self.code, "text": self.text, "label": label_tree_to_json(self.label)} | place

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Doubt:
        """The doubt that `to_json` wrote."""
        label = label_tree_from_json(facts["label"]).flat
        return cls(facts["code"], str(facts["text"]), label, str(facts.get("step", "")))


@dataclass(slots=True)
class _Note:
    selection: Selection
    label: Label
    times: int = 1


class SelectionLog:
    """The selections of one run, by the step that made them. The turns of a loop are added up."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, int], _Note] = {}

    def add(self, step: str, selections: Iterable[Selection], label: Label) -> None:
        """Note the selections of a step that has ended.

        Args:
            step: The path of the step in the run.
            selections: What it selected, in the order in which it did.
            label: The label of everything that they tell.
        """
        place = static_path(step)
        for number, selection in enumerate(selections):
            self.add_up((place, number), selection, label)

    def add_up(self, key: tuple[str, int], selection: Selection, label: Label, times: int = 1) -> None:
        """Add a selection to the others of its place in the plan."""
        note = self._notes.get(key)
        if note is None:
            if len(self._notes) < MAX_NOTES:
                self._notes[key] = _Note(selection, label, times)
            return
        before = note.selection
        note.selection = replace(
            before,
            given=before.given + selection.given,
            kept=before.kept + selection.kept,
            unread=before.unread + selection.unread,
            skipped=before.skipped + selection.skipped,
            names=tuple(dict.fromkeys((*before.names, *selection.names))),
            guess=before.guess or selection.guess,
        )
        note.label = join(note.label, label)
        note.times += times

    def selections(self) -> tuple[tuple[str, Selection], ...]:
        """All selections with their steps, in the order in which they were first made."""
        return tuple((step, note.selection) for (step, _), note in self._notes.items())

    @property
    def has_doubts(self) -> bool:
        """Whether any selection could be a doubt."""
        chosen = (note.selection for note in self._notes.values())
        return any(not each.kept or each.unread or each.skipped or each.guess for each in chosen)

    def find_doubts(self, resting: frozenset[str]) -> list[Doubt]:
        """The doubts about selections in steps on which the answer or an effect rests."""
        notes = [(step, note) for (step, _), note in self._notes.items() if step in resting]
        # One that chooses among nothing tells nothing beside the one that left nothing.
        some_emptied = any(note.selection.given and not note.selection.kept for _, note in notes)
        # First of all: if the guess is wrong, so is every number after it.
        guesses = {note.selection.guess: (note.label, step) for step, note in reversed(notes) if note.selection.guess}
        doubts = [Doubt("guessed-notation", guess, *place) for guess, place in reversed(guesses.items())]
        for step, note in notes:
            chosen, turns = note.selection, f" (in {note.times:,} turns)" if note.times > 1 else ""
            if not chosen.kept and (chosen.given or not some_emptied):
                doubts.append(Doubt("empty-selection", f"nothing was selected: {chosen}{turns}", note.label, step))
            if chosen.unread:
                doubts.append(Doubt("unread-cells", f"not everything could be read: {chosen}{turns}", note.label, step))
            if chosen.skipped:
                doubts.append(Doubt("skipped-file", f"something was skipped: {chosen}{turns}", note.label, step))
        return doubts[:MAX_DOUBTS]


def find_resting_steps(plan: Plan, registry: Registry) -> frozenset[str]:
    """The paths of the steps on which the answer or an effect of a plan rests.

    A step counts if it answers or changes something, if it decides whether such a step is done, or if its value is used
    by a step that counts.

    Args:
        plan: The plan.
        registry: Its tools, which say what changes something. An unknown one counts as changing.
    """
    steps = list(walk(plan.steps))
    resting: set[str] = set()
    needed: set[str] = set()
    while True:
        before = len(resting), len(needed)
        # Backwards, so that a plan without loops needs one pass and one to see that nothing is added.
        for path, step in reversed(steps):
            if path not in resting and not (_is_end(step, registry) or _writes(step) & needed):
                inside = f"{path}/"
                if not isinstance(step, When | Each) or not any(other.startswith(inside) for other in resting):
                    continue
            resting.add(path)
            needed |= _reads(step)
        if (len(resting), len(needed)) == before:
            return frozenset(resting)


def _is_end(step: Step, registry: Registry) -> bool:
    match step:
        case Answer():
            return True
        case Call(tool=name):
            tool = registry.get(name)
            return tool is None or tool.changes
        case _:
            return False


def _writes(step: Step) -> frozenset[str]:
    match step:
        case Each():
            return frozenset(step.names)
        case Call() | Extract() | Ask() | Compute() | Update():
            return frozenset() if step.name is None else frozenset({step.name})
        case _:
            return frozenset()


def _reads(step: Step) -> frozenset[str]:
    """The variables that a step reads itself, without the steps inside it."""
    match step:
        case When():
            return free_names(step.condition)
        case Each():
            return free_names(step.over)
        case Update():
            own = free_names(step.value) | (frozenset[str]() if step.key is None else free_names(step.key))
            return own | {step.name}
        case Call():
            return frozenset[str]().union(*(free_names(each) for each in step.args.values()))
        case Extract():
            return free_names(step.source) | free_names(step.instruction)
        case Ask():
            return free_names(step.question)
        case Compute() | Answer():
            return free_names(step.value)


def merge_doubts(given: Sequence[Doubt], found: Iterable[Doubt], resting: frozenset[str]) -> tuple[Doubt, ...]:
    """The doubts of planning and of the run, without those of steps on which nothing rests, each once.

    What stands in no passage, or in one about something else, comes first: it may be wrong altogether, and must not be
    cut off by what is only unsure.
    """
    about = (doubt for doubt in given if not doubt.step or doubt.step in resting)
    merged = sorted(dict.fromkeys((*about, *found)), key=lambda doubt: _ORDER.get(doubt.code, len(_ORDER)))
    return tuple(merged)[:MAX_DOUBTS]


NO_LABEL = NOTHING
"""The label of what is noted in a run with labels off, which is only for measuring."""

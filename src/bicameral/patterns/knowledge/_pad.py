"""The pad of a task: notes on pages, one page a step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from bicameral.errors import RunError

from ..kernel import Labelled, about_tokens, changed

_MARKS = re.compile(r"\[\s*(/?)\s*notes\s*\]", re.IGNORECASE)


class Note(TypedDict):
    """A note: its number, its words in one line, and the number of the note whose place it takes."""

    id: str
    text: str
    replaces: str | None


@dataclass(slots=True)
class Pad:
    """The notes of one task, page by page: a step writes one page, once, and nobody else does.

    Every page has the same share of the room, so what one step writes never decides what another may write.
    """

    steps: tuple[str, ...]
    max_notes: int
    max_tokens: int
    _pages: dict[str, Labelled[list[Note]]] = field(default_factory=dict[str, Labelled[list[Note]]])

    def write(self, step: str, page: Labelled[list[Note]]) -> None:
        if step in self._pages or step not in self.steps:
            raise RunError("pattern.pad-closed", f"the notes of {step!r} are not open", expected="one writer, once")
        self._pages[step] = changed(page, self._within)

    def pages(self, steps: Sequence[str]) -> Mapping[str, Labelled[list[Note]]]:
        return {step: self._pages[step] for step in steps}

    def drop(self) -> None:
        """At the end of the task: nothing can be read or written any more."""
        self._pages.clear()
        self.steps = ()

    @property
    def share(self) -> tuple[int, int]:
        """How many notes, and how many tokens, a step may write."""
        return self.max_notes // len(self.steps), self.max_tokens // len(self.steps)

    def _within(self, notes: list[Note]) -> list[Note]:
        if (why := too_much(notes, self.share)) is not None:
            raise RunError("pattern.bad-notes", f"these notes are too much for a step: {why}")
        return notes


def too_much(notes: Sequence[Note], share: tuple[int, int]) -> str | None:
    """Why these notes do not fit into a share of the pad."""
    most, tokens = share
    if len(notes) > most:
        return f"at most {most} notes"
    if sum(about_tokens(line(note)) for note in notes) > tokens:
        return f"at most {tokens} tokens"
    return None


def line(note: Note) -> str:
    """A note as it is shown: one line, behind a number that was given to it."""
    return f"{note['id']} {note['text']}"


def without_marks(words: str) -> str:
    """Without anything that passes for the marks of the notes: there is one pad in a prompt."""
    return _MARKS.sub(r"(\1notes)", words)

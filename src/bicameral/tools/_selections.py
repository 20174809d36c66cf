"""Selections: what went into a choice of rows, lines, mails or events, and what came out of it.

A tool that keeps some of its items and drops others says so with `note_selection`; the run collects the notes of each
call. A note has counts and a condition in plain words. The condition may contain a value from the world, so it is
short, on one line, and without hidden characters. It has the label of the call's result wherever it goes.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

from bicameral.display import make_visible

MAX_SELECTIONS = 20
"""How many selections of one call are kept."""
MAX_CONDITION = 120
_MAX_NOUN = 20
_MOST_NAMES = 5
_MAX_NAME = 60
_MAX_GUESS = 200


@dataclass(frozen=True, slots=True)
class Selection:
    """One choice among items.

    Args:
        given: How many items went in.
        kept: How many came out.
        noun: What they are, in the plural: `rows`, `lines`, `mails`.
        condition: Why an item was kept, in plain words: `paid is no`.
        unread: How many items could not be judged, because a cell could not be read.
        skipped: How many files, or other sources of items, could not be read at all.
        names: Names of some that were skipped.
        guess: How cells were read that can be read in two ways, where nothing decides which; empty if something does.

    Example:
        >>> str(Selection(12, 5, "rows", "paid is no", unread=1))
        '5 of 12 rows: paid is no (1 could not be read)'
    """

    given: int
    kept: int
    noun: str = "items"
    condition: str = ""
    unread: int = 0
    skipped: int = 0
    names: tuple[str, ...] = ()
    guess: str = ""

    def __post_init__(self) -> None:
        # Here and not where it is shown: a condition may be untrusted text, and no place that shows it may forget this.
        object.__setattr__(self, "noun", shown_text(self.noun, _MAX_NOUN))
        object.__setattr__(self, "condition", shown_text(self.condition, MAX_CONDITION))
        object.__setattr__(self, "names", tuple(shown_text(name, _MAX_NAME) for name in self.names[:_MOST_NAMES]))
        object.__setattr__(self, "guess", shown_text(self.guess, _MAX_GUESS))

    def __str__(self) -> str:
        told = f"{self.kept:,} of {self.given:,} {self.noun}" + (f": {self.condition}" if self.condition else "")
        notes = [
            *([f"{self.unread:,} could not be read"] if self.unread else ()),
            *([f"{self.skipped:,} skipped{self._skipped_names}"] if self.skipped else ()),
        ]
        return told + (f" ({', '.join(notes)})" if notes else "")

    @property
    def _skipped_names(self) -> str:
        more = self.skipped - len(self.names)
        return f": {', '.join(self.names)}{f' and {more:,} more' if more > 0 else ''}" if self.names else ""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value or name in ("given", "kept", "noun")}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Selection:
        """The selection that `to_json` wrote."""
        counts = (int(facts.get(name, 0)) for name in ("unread", "skipped"))
        noun, condition = str(facts.get("noun", "items")), str(facts.get("condition", ""))
        names = tuple(map(str, facts.get("names", ())))
        guess = str(facts.get("guess", ""))
        return cls(int(facts["given"]), int(facts["kept"]), noun, condition, *counts, names=names, guess=guess)


def shown_text(text: str, most: int) -> str:
    """Untrusted text for one line of a note: hidden characters made visible, cut to `most` characters."""
    # Cut first: making a megabyte visible for a line of 120 characters would be a way to slow a run down.
    line = make_visible(" ".join(text[: 4 * most].split()), strict=True)
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"


_NOTES: ContextVar[list[Selection] | None] = ContextVar("bicameral-selections", default=None)


def note_selection(selection: Selection) -> None:
    """Note a selection of the call that is being made; without a run nothing happens.

    Example:
        >>> note_selection(Selection(len(lines), len(kept), "lines", "contains 'error'"))
    """
    notes = _NOTES.get()
    if notes is not None and len(notes) < MAX_SELECTIONS:
        notes.append(selection)


@contextmanager
def collect_selections() -> Generator[list[Selection]]:
    """Collect the selections that are noted within this context, in threads that it starts included."""
    notes: list[Selection] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)

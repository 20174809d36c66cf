"""Notes on passages: where the texts in the result of a search stand, so that an answer can cite them.

A tool that finds passages says so with `note_passages`; the run collects the notes of each call, and looks in them for
whatever is read from the result. A note points into the result and repeats none of its text. It has the label of what
it points to.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, cast

from bicameral.tools._selections import shown_text

MAX_PASSAGE_NOTES = 200
"""How many passages of one call are noted."""
MAX_WHERE = 160
_MAX_SOURCE = 300


@dataclass(frozen=True, slots=True)
class PassageNote:
    """Where one passage of a result stands.

    Args:
        at: The way to its text in the result: `("passages", 0, "text")`.
        where: The place in plain words: a path, or the sender and day of a mail.
        kind: What the place is: `note`, `mail`, `event`.
        source: The path, or the id of the mail or event, as its own tools take it.
        line: The line of its first line in the file; None if it has no lines. It may be below 1 where the passage
            begins with a heading that is not in the file.
        sender: The name of whoever sent it, as the passage's own place has it; a reader sees it.
        shown: The fields of its record that a reader sees; empty for all. A path, an id or a score is nothing that a
            passage says, and a reader that sees one copies it.
        query: What was searched for.
        similarity: How similar in meaning it is to what was searched for, from 0 to 1; None if that is not known.

    Example:
        >>> PassageNote(("passages", 0, "text"), "notes/house.md", "note", "notes/house.md", 3)
    """

    at: tuple[str | int, ...]
    where: str
    kind: str
    source: str
    line: int | None = None
    sender: str = ""
    shown: tuple[str, ...] = ()
    query: str = ""
    similarity: float | None = None

    def __post_init__(self) -> None:
        # Here and not where it is shown: names of files and subjects of mails are chosen by others.
        object.__setattr__(self, "where", shown_text(self.where, MAX_WHERE))
        object.__setattr__(self, "source", shown_text(self.source, _MAX_SOURCE))
        object.__setattr__(self, "sender", shown_text(self.sender, MAX_WHERE))
        object.__setattr__(self, "query", shown_text(self.query, MAX_WHERE))

    def text_in(self, result: Any) -> str | None:
        """The text that the note points to; None if there is none."""
        found = self._follow(result, self.at)
        return found if isinstance(found, str) else None

    def record_in(self, result: Any) -> Any:
        """The record that has the text as a field; None if it is in no record."""
        ends_in_field = self.at and isinstance(self.at[-1], str)
        return self._follow(result, self.at[:-1]) if ends_in_field else None

    def reader_view(self, record: Any) -> Any:
        """A record as a reader sees it: what the passage says, and of its place only what belongs to the text."""
        if not self.shown or not isinstance(record, dict):
            return record
        fields = cast("dict[str, Any]", record)
        view = {name: fields[name] for name in self.shown if fields.get(name) not in (None, "")}
        return {"from": self.sender, **view} if self.sender else view

    def _follow(self, value: Any, path: tuple[str | int, ...]) -> Any:
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def to_json(self) -> dict[str, Any]:
        facts = asdict(self) | {"at": list(self.at), "shown": list(self.shown)}
        return {
            name: fact for name, fact in facts.items() if fact or name not in ("sender", "shown", "query", "similarity")
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> PassageNote:
        """The note that `to_json` wrote."""
        at = tuple(each if isinstance(each, int) else str(each) for each in cast("list[str | int]", facts["at"]))
        line = facts.get("line")
        words = (str(facts["where"]), str(facts["kind"]), str(facts["source"]))
        shown = tuple(str(each) for each in cast("list[str]", facts.get("shown", ())))
        near = facts.get("similarity")
        return cls(
            at,
            *words,
            None if line is None else int(line),
            str(facts.get("sender", "")),
            shown,
            str(facts.get("query", "")),
            None if near is None else float(near),
        )


_NOTES: ContextVar[list[PassageNote] | None] = ContextVar("bicameral-passages", default=None)


def note_passages(notes: Iterable[PassageNote]) -> None:
    """Note where the passages in the result of this call stand; without a run nothing happens.

    Example:
        >>> note_passages([PassageNote((0,), "menu.txt", "note", "menu.txt", 1)])
    """
    collected = _NOTES.get()
    if collected is not None:
        collected += list(notes)[: MAX_PASSAGE_NOTES - len(collected)]


@contextmanager
def collect_passages() -> Generator[list[PassageNote]]:
    """Collect the passages that are noted within this context, in threads that it starts included."""
    notes: list[PassageNote] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)

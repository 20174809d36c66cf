"""Questions about words that no rule binds, and what words are bound to.

A `Question` has its candidates as they may be shown, and the text with which a person is asked, who replies with a
number of the list, with a name, or with none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bicameral.binding._candidates import JSON_TABLES, Candidate, Kind, joined_label
from bicameral.binding._matching import Ambiguous, Bound, How, Match, Unbound
from bicameral.binding._row_selection import RowSelection
from bicameral.binding._screening import SUSPICIONS, Suspicion, candidate_suspicions, display_name, reads_like
from bicameral.errors import BindError
from bicameral.labels import TRUSTED_USER, Label, Source, join
from bicameral.tools import SHEET_SUFFIXES, TABLE_SUFFIXES

_SHOWN_COLUMNS = 5
_SHOWN_COLUMN = 20
_SHOWN_TITLE = 50
_SENTENCE = re.compile(r"[.!?;:@=]|\d")

NONE_FITS = 0
"""The number with which a chooser says that none of the candidates is meant."""

NONE_OF_THEM = "none"
"""The same as a model or a person says it."""

_LOOKED_THROUGH: dict[Kind, str] = {
    "file": "the names and headings of all files",
    "table": "the names, columns and common cells of all tables",
    "folder": "the names of all folders",
    "column": "the columns of the table",
    "value": "the cells of the column",
    "person": "the people in contacts, mail headers and the calendar",
    "event": "the events of the calendar",
    "mail": "the newest mails",
}

_MODEL_CHOICE = Label({Source("third_party", "extract", "choice", "bind")})


@dataclass(frozen=True, slots=True)
class ShownCandidate:
    """A candidate as it may be shown: on one line, with hidden characters written out, and with a warning."""

    number: int
    name: str
    detail: str
    suspicions: tuple[Suspicion, ...] = ()

    @property
    def line(self) -> str:
        """The candidate as a line of a question."""
        detail = f" ({self.detail})" if self.detail else ""
        warning = "; ".join(SUSPICIONS[each] for each in self.suspicions)
        return f"{self.number}. {self.name}{detail}" + (f"  [caution: the name {warning}]" if warning else "")


def confirming_question(kind: Kind, words: str, shown: Sequence[ShownCandidate]) -> str | None:
    """The question for a yes or a no where one candidate is shown; None where there is a list to choose from.

    A suspicious name stays in a list with its warning: a yes is said too easily.
    """
    if len(shown) != 1 or shown[0].suspicions:
        return None
    detail = f" ({shown[0].detail})" if shown[0].detail else ""
    return f"Is *{display_name(words)}* the {kind} {shown[0].name}{detail}?"


@dataclass(frozen=True, slots=True)
class SkippedFolders:
    """Folders that could not be listed when the world was looked at: what is in them was never a candidate.

    The names are the world's: `label` is that of everything that was listed, whatever the words were bound to.
    """

    count: int
    names: tuple[str, ...]
    label: Label

    def __str__(self) -> str:
        shown = ", ".join(map(display_name, self.names))
        more = self.count - len(self.names)
        return f"{shown} and {more:,} more" if more > 0 else shown


@dataclass(frozen=True, slots=True)
class Binding:
    """Words that were bound to a value.

    Args:
        kind: The kind of reference.
        words: The words of the request.
        value: What they mean: a path, a column, a cell, an address, an id.
        label: Where the candidates came from; the user's own where the value is the words themselves.
        how: Which rule or who decided.
        shown: The candidates that a chooser saw.
        name: The name of the value, for a person.
        rows: Which rows of a table are meant, where words are cells of it.
        skipped: The folders that could not be listed.
    """

    kind: Kind
    words: str
    value: str | int | float | bool
    label: Label
    how: How
    score: float = 1.0
    shown: tuple[ShownCandidate, ...] = ()
    name: str = ""
    rows: RowSelection | None = None
    skipped: SkippedFolders | None = None

    def __str__(self) -> str:
        """As it is shown under a plan: *bills* → bills_2026.csv."""
        value = display_name(str(self.value))
        # The id of a mail or an event says nothing to a person.
        text = display_name(self.name) if self.kind in ("mail", "event") else value
        rows = f", {self.rows}" if self.rows is not None else ""
        return f"*{display_name(self.words)}* → {text}{rows}"

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        facts = {"kind": self.kind, "words": self.words, "value": self.value, "how": self.how, "score": self.score}
        return facts | ({"rows": self.rows.to_json()} if self.rows is not None else {})


@dataclass(frozen=True, slots=True)
class Question:
    """Words that were not bound: what a person is asked.

    Args:
        kind: The kind of reference.
        words: The words of the request.
        reason: Whether several candidates fit, none does, or the only ones that fit are suspicious.
        shown: The candidates, safe to show. Where none fits, those that share something with the words; without any,
            there is nothing to choose from.
        searched: How many candidates there were.
    """

    kind: Kind
    words: str
    reason: Literal["several", "none", "suspicious"]
    shown: tuple[ShownCandidate, ...]
    _candidates: tuple[Candidate, ...] = field(default=(), repr=False)
    _label: Label = field(default=TRUSTED_USER, repr=False)
    searched: int = 0
    _whole: int = field(default=0, repr=False)
    """How many of the first candidates have all words, where none fits."""
    note: str = ""
    """What else a person should know, safe to show: a file that fits and cannot be used here."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates that are shown, as the world has them: not for showing."""
        return self._candidates

    @property
    def label(self) -> Label:
        """Of everything that the words may have meant."""
        return self._label

    @property
    def whole(self) -> int:
        """How many of the first candidates have all words, where none fits."""
        return self._whole

    @property
    def text(self) -> str:
        """The question with its numbered candidates."""
        words = display_name(self.words)
        first = {
            "several": f"Which {self.kind} is meant by *{words}*?",
            "none": f"No {self.kind} is called *{words}*. Which one is meant?",
            "suspicious": f"Which {self.kind} is meant by *{words}*? Look closely at the names.",
        }[self.reason]
        if not self.shown:
            looked = f"Looked through: {_LOOKED_THROUGH[self.kind]} ({self.searched:,})."
            nothing = f"No {self.kind} is called *{words}*"
            nothing += "." if self.note else ", and nothing is near."
            return " ".join(filter(None, (nothing, self.note, looked)))
        confirming = confirming_question(self.kind, self.words, self.shown)
        lines = (confirming,) if confirming else (first, *(each.line for each in self.shown))
        return "\n".join((*lines, *filter(None, (self.note,))))

    @property
    def confirming(self) -> str | None:
        """The question for a yes or a no, where nothing but the one candidate may be meant; None otherwise.

        Of one file among many, the name of another is as good a reply as a no. Somebody who is not meant says no, and
        is then asked for the address.
        """
        alone = self.searched <= 1 or self.kind == "person"
        return confirming_question(self.kind, self.words, self.shown) if alone else None

    @property
    def asked_text(self) -> str:
        """The question as it is put to a person who may reply with a number of the list, a name, or none."""
        words, more = display_name(self.words), self.searched - len(self.shown)
        first = f"Which {self.kind} is meant by *{words}*?"
        if self.reason == "suspicious":
            first += " Look closely at the names."
        elif self.reason == "none":
            unknown = "Nobody known is called that" if self.kind == "person" else "None is called that"
            first += f" {unknown}." if self.shown or not more else f" {unknown}, and nothing is near."
        typed = "the mail address" if self.kind == "person" else "a name" if self.shown else "its name"
        replies = (
            f"A number, {typed}, or {NONE_OF_THEM}:" if self.shown else f"{typed.capitalize()}, or {NONE_OF_THEM}:"
        )
        lines = [first, self.note, *(each.line for each in self.shown)]
        if more > 0 and self.shown and self.reason == "none" and self.kind != "person":
            lines.append(f"({more:,} more by name)")
        return "\n".join((*filter(None, lines), replies))

    def without_candidates(self) -> Question:
        """The same question where none of the candidates is meant: nothing was found."""
        return replace(self, reason="none", shown=(), _candidates=(), _whole=0)

    def only(self, shown: Sequence[ShownCandidate]) -> Question:
        """The same question with these candidates alone, which keep their numbers."""
        pairs = [each for each in zip(self.shown, self._candidates, strict=True) if each[0] in shown]
        return replace(self, shown=tuple(one for one, _ in pairs), _candidates=tuple(other for _, other in pairs))

    def only_whole(self) -> Question:
        """The same question with those candidates alone that have all words, where none fits."""
        return self.only(self.shown[: self._whole])

    def answer(self, number: int, *, by: Literal["model", "person"] = "person") -> Binding:
        """The binding to the candidate with this number; `bind.bad-choice` if there is none."""
        chosen = {each.number: candidate for each, candidate in zip(self.shown, self._candidates, strict=True)}
        # Exact type: True is 1 in Python.
        if type(number) is not int or number not in chosen:
            raise BindError(
                "bind.bad-choice",
                f"there is no candidate {number!r:.20}",
                expected=f"1 to {len(self.shown)}" if self.shown else "no choice: there are no candidates",
            )
        candidate = chosen[number]
        if by == "model" and candidate_suspicions(candidate):
            raise BindError("bind.bad-choice", "a model chose a suspicious name", fix="Ask a person.")
        # A model's choice is as untrusted as anything that it writes. A person's choice does not change who wrote the
        # name: whether it endorses the call is for the policy to say.
        label = join(self._label, _MODEL_CHOICE) if by == "model" else self._label
        return Binding(self.kind, self.words, candidate.value, label, by, 1.0, self.shown, candidate.name)

    def answer_with(self, candidate: Candidate, candidates: Sequence[Candidate]) -> Binding:
        """The binding to a candidate that a person named, with the label of all among which it was looked up."""
        label = join(self._label, joined_label(candidates))
        return Binding(self.kind, self.words, candidate.value, label, "person", 1.0, self.shown, candidate.name)


def make_question(kind: Kind, words: str, match: Match, candidates: Sequence[Candidate]) -> Question:
    """The question that is left after a match among candidates, with the label of all of them."""
    whole = 0
    match match:
        case Ambiguous(candidates=several, suspicious=suspicious):
            reason: Literal["several", "none", "suspicious"] = "suspicious" if suspicious else "several"
        case Unbound(near=several, whole=whole):
            reason = "none"
        case Bound(candidate=only):
            reason, several = "several", (only,)
    shown = tuple(show_candidate(number, each) for number, each in enumerate(several, 1))
    if kind == "person":
        shown = _warn_of_look_alikes(shown, several)
    return Question(kind, words, reason, shown, several, joined_label(candidates), len(candidates), whole)


def _warn_of_look_alikes(
    shown: Sequence[ShownCandidate], candidates: Sequence[Candidate]
) -> tuple[ShownCandidate, ...]:
    """A warning at addresses that read alike and differ (`examp1e.org`): which of them is real, only a person knows."""
    readings = Counter(reads_like(str(each.value)) for each in candidates)
    return tuple(
        replace(line, suspicions=tuple(dict.fromkeys((*line.suspicions, "look-alike"))))
        if readings[reads_like(str(each.value))] > 1
        else line
        for line, each in zip(shown, candidates, strict=True)
    )


def show_candidate(number: int, candidate: Candidate) -> ShownCandidate:
    """A candidate that is safe to show; of a file the whole path, of a mail the sender, of an event the day.

    Of a table that was looked into it has some columns, and of a text its title.
    """
    name, detail = candidate.name, ""
    match candidate.kind:
        case "file" | "table" | "folder" | "column" | "value":
            name = str(candidate.value)
        case "person":
            detail = "" if candidate.name == str(candidate.value) else str(candidate.value)
        case "mail":
            detail = candidate.context[1] if len(candidate.context) > 1 else ""
        case "event":
            detail = ""
    if candidate.modified is not None:
        detail = f"{detail}, {candidate.modified:%Y-%m-%d}" if detail else f"{candidate.modified:%Y-%m-%d}"
    parts = (display_name(detail), _inside(candidate))
    return ShownCandidate(number, display_name(name), "; ".join(filter(None, parts)), candidate_suspicions(candidate))


def _inside(candidate: Candidate) -> str:
    """What a file is about, as far as it was read, safe to show."""
    if candidate.kind not in ("file", "table") or not candidate.contents:
        return ""
    if not str(candidate.value).lower().endswith((*TABLE_SUFFIXES, *SHEET_SUFFIXES, *JSON_TABLES)):
        # A title, and not the first sentence of a text: that may be what nobody wants on a screen.
        title = display_name(candidate.contents[0])
        return title if len(title) <= _SHOWN_TITLE and not _SENTENCE.search(title) else ""
    shown = [_shorten(each, _SHOWN_COLUMN) for each in candidate.contents[:_SHOWN_COLUMNS]]
    return ", ".join((*shown, *(("…",) if len(candidate.contents) > len(shown) else ())))


def _shorten(text: str, length: int) -> str:
    visible = display_name(text)
    return visible if len(visible) <= length else f"{visible[: length - 1].rstrip()}…"

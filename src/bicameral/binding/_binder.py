"""The binder: words of a plan and a kind become a value of the world, or a question.

The ladder of `_matching` decides first. Only where it does not, choosers are asked in order: the quarantined model with
one untrusted list in sight, then the person. Where nothing fits, names of near meaning (`_meaning`) are in that list.
What no chooser decides is a `Question`, which can be answered later.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from bicameral.binding._candidates import KINDS, Candidate, CandidateSource, Kind, joined_label, unknown_kind
from bicameral.binding._matching import (
    MOST_SHOWN,
    Ambiguous,
    Bound,
    How,
    Match,
    Unbound,
    match_words,
)
from bicameral.binding._meaning import Encoder, suggest_candidates
from bicameral.binding._row_selection import RowSelection
from bicameral.binding._screening import SUSPICIONS, Suspicion, candidate_suspicions, display_name, reads_like
from bicameral.errors import BindError
from bicameral.labels import TRUSTED_USER, Label, Source, join

Within = str | Sequence[str] | None
"""Where to look: the folder of a file, the table of a column, the table and the column of a value."""

LONGEST_WORDS = 300
"""Characters of a mention; more is no name of anything."""

NONE_FITS = 0
"""The number with which a chooser says that none of the candidates is meant."""

MOST_COLUMNS = 24
"""Columns that a model chooses from where none fits."""

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
    """The question for a yes or a no where only one candidate may be meant; None where there is a list to choose from.

    A suspicious name stays in a list with its warning: a yes is said too easily.
    """
    if len(shown) != 1 or shown[0].suspicions:
        return None
    detail = f" ({shown[0].detail})" if shown[0].detail else ""
    return f"Is *{display_name(words)}* the {kind} {shown[0].name}{detail}?"


class Chooser(Protocol):
    """Chooses one of a few candidates, or none: the quarantined model, or the person."""

    @property
    def by(self) -> Literal["model", "person"]:
        """Who chooses. A model is not offered suspicious candidates, and its choice is untrusted."""
        ...

    async def choose(self, kind: Kind, words: str, shown: Sequence[ShownCandidate]) -> int | None:
        """The number of the candidate that is meant, `NONE_FITS` for none of them, or None if that is not decided."""
        ...


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
            return " ".join(
                filter(None, (f"No {self.kind} is called *{words}*, and nothing is near.", self.note, looked))
            )
        confirming = confirming_question(self.kind, self.words, self.shown)
        lines = (confirming,) if confirming else (first, *(each.line for each in self.shown))
        return "\n".join((*lines, *filter(None, (self.note,))))

    def without_candidates(self) -> Question:
        """The same question where none of the candidates is meant: nothing was found."""
        return replace(self, reason="none", shown=(), _candidates=(), _whole=0)

    def first(self, count: int) -> Question:
        """The same question with the first candidates alone."""
        return replace(self, shown=self.shown[:count], _candidates=self._candidates[:count])

    def only_whole(self) -> Question:
        """The same question with those candidates alone that have all words, where none fits."""
        return self.first(self._whole)

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


class Binder:
    """Binds the references of one plan. What was read of the world is kept, so that all of them see the same world.

    Args:
        candidates_source: What the world offers.
        encoder: The vectors of texts. Where no name has the words, names of near meaning are suggested to the choosers.
        choosers: Who is asked where the ladder does not decide, in order.

    Example:
        >>> binder = Binder(WorldSource(registry))
        >>> str(await binder.bind("file", "the bills of 2026"))
        '*the bills of 2026* → bills_2026.csv'
    """

    def __init__(
        self, candidates_source: CandidateSource, encoder: Encoder | None = None, choosers: Sequence[Chooser] = ()
    ) -> None:
        self._source = candidates_source
        self._encoder = encoder
        self._choosers = tuple(choosers)
        self._offered: dict[tuple[Kind, tuple[str, ...]], Sequence[Candidate]] = {}
        self._chosen: dict[tuple[Question, tuple[str, ...]], Binding | Question] = {}
        """What choosers said. Words that a plan has at several steps are asked about once."""

    async def bind(
        self,
        kind: Kind,
        words: str,
        *,
        within: Within = None,
        candidates: Sequence[Candidate] | None = None,
        endings: tuple[str, ...] = (),
    ) -> Binding | Question:
        """The value that words mean, or the question which one it is.

        Args:
            kind: The kind of reference.
            words: The words of the request.
            within: Where to look: the folder of a file, the table of a column, the table and column of a value.
            candidates: What the words may mean, where it is known already, as the columns of a table are.
            endings: Of a file or a table, the endings that can be used; all if there are none.
        """
        if kind not in KINDS:
            raise unknown_kind(kind)
        words = _check_words(words)
        place = () if within is None else (within,) if isinstance(within, str) else tuple(within)
        offered = await self.offer(kind, place) if candidates is None else candidates
        if endings:
            offered = [each for each in offered if str(each.value).lower().endswith(endings)]
        considered, match = await self._match(kind, words, offered)
        if isinstance(match, Bound):
            return _make_binding(kind, words, match, considered)
        if isinstance(match, Unbound):
            return await self._choose_unbound(kind, words, match, considered)
        return await self._ask_choosers(_make_question(kind, words, match, considered))

    async def bind_by_rules(self, kind: Kind, words: str) -> Binding | None:
        """The value that words mean by the rules alone; None where these do not decide."""
        words = _check_words(words)
        considered, match = await self._match(kind, words, await self.offer(kind, ()))
        return _make_binding(kind, words, match, considered) if isinstance(match, Bound) else None

    async def ask(self, kind: Kind, words: str, candidates: Sequence[Candidate]) -> Binding | Question:
        """What the choosers say which of a few candidates is meant, where another rule found that each may be.

        Args:
            kind: The kind of reference.
            words: The words of the request.
            candidates: What they may mean.
        """
        words = _check_words(words)
        return await self._ask_choosers(
            _make_question(kind, words, Ambiguous(tuple(candidates[:MOST_SHOWN])), candidates)
        )

    async def _choose_unbound(
        self, kind: Kind, words: str, match: Unbound, candidates: Sequence[Candidate]
    ) -> Binding | Question:
        """What a model says where nothing fits, and then a person about what is near to the mention.

        A model may know that `Kinostart` is the release. A person is not asked to choose among strangers: only what
        shares a word with the mention or is near in meaning is shown.
        """
        near = match.near[:MOST_SHOWN]
        suggested = await self._suggest(kind, words, candidates, near)
        possible = (*near, *suggested)[:MOST_SHOWN]
        offered = possible
        if len(candidates) <= (MOST_COLUMNS if kind == "column" else 0 if near else MOST_SHOWN):
            # A request about a table that was found is almost always about one of its columns. Of files and cells a
            # long list would rather tempt a model to choose what is not meant.
            offered = (*possible, *(each for each in candidates if each not in possible))
        question = _make_question(kind, words, Unbound(offered, match.whole), candidates)
        result = await self._ask_choosers(question, [each for each in self._choosers if each.by == "model"])
        if isinstance(result, Binding):
            return result
        result = result.first(len(possible))
        if not result.shown:
            return result.without_candidates()
        return await self._ask_choosers(result, [each for each in self._choosers if each.by == "person"])

    async def _suggest(
        self, kind: Kind, words: str, candidates: Sequence[Candidate], near: Sequence[Candidate]
    ) -> tuple[Candidate, ...]:
        """Names of near meaning that do not share a word with the mention."""
        if self._encoder is None:
            return ()
        others = [each for each in candidates if each not in near]
        # In a thread: the first call loads the weights, and other runs go on meanwhile.
        return await asyncio.to_thread(suggest_candidates, words, others, kind, self._encoder)

    async def offer(self, kind: Kind, place: tuple[str, ...] = ()) -> Sequence[Candidate]:
        """Everything of a kind that there is, as it was when it was first asked for."""
        key = (kind, place)
        if key not in self._offered:
            self._offered[key] = await self._source.candidates(kind, place)
        return self._offered[key]

    async def _match(self, kind: Kind, words: str, offered: Sequence[Candidate]) -> tuple[Sequence[Candidate], Match]:
        """The match and the candidates that it was made from, whose labels it has."""
        if kind == "person":
            # The user's own contacts are matched alone first: nobody who writes a mail can change that result, so it
            # has their label only.
            own = [each for each in offered if each.label.trusted]
            match = match_words(words, own, kind)
            if isinstance(match, Bound):
                return own, match
        match = match_words(words, offered, kind)
        if isinstance(match, Unbound):
            described = await self._source.describe(offered)
            match = match_words(words, described, kind)
            return described, match
        return offered, match

    async def _ask_choosers(self, question: Question, choosers: Sequence[Chooser] | None = None) -> Binding | Question:
        asked = self._choosers if choosers is None else choosers
        key = (question, tuple(each.by for each in asked))
        if key not in self._chosen:
            self._chosen[key] = await self._choose(question, asked)
        return self._chosen[key]

    async def _choose(self, question: Question, choosers: Sequence[Chooser]) -> Binding | Question:
        for chooser in choosers:
            if chooser.by == "model" and question.kind == "person":
                # Names have no meaning that a model could know. Which of two Annas is meant, or whether the address
                # that somebody planted is hers, would be a guess.
                continue
            visible = tuple(each for each in question.shown if chooser.by == "person" or not each.suspicions)
            if not visible:
                continue
            number = await chooser.choose(question.kind, question.words, visible)
            if number is None:
                continue
            if number == NONE_FITS and type(number) is int:
                if chooser.by == "person":
                    return question.without_candidates()
                # That several fit, or that one has all words and others beside them, was found by rules: a model cannot
                # take that back, and a person may know.
                question = question.only_whole() if question.reason == "none" else question
                continue
            if number not in [each.number for each in visible]:
                raise BindError(
                    "bind.bad-choice",
                    f"the chooser answered {number!r:.20}",
                    expected="the number of a candidate that it was shown, or None",
                )
            return question.answer(number, by=chooser.by)
        return question


def _check_words(words: str) -> str:
    text = words.strip()
    if not any(character.isalnum() for character in text):
        raise BindError("bind.no-words", "there are no words to look for", expected="the words of the request")
    if len(text) > LONGEST_WORDS:
        raise BindError(
            "bind.no-words", f"the mention has {len(text):,} characters", expected=f"at most {LONGEST_WORDS}"
        )
    return text


def _make_binding(kind: Kind, words: str, match: Bound, candidates: Sequence[Candidate]) -> Binding:
    chosen = match.candidate
    # A value that the user wrote out is a literal of the plan, whoever else may have a thing of that name.
    label = TRUSTED_USER if chosen.value == words else joined_label(candidates)
    return Binding(kind, words, chosen.value, label, match.how, match.score, (), chosen.name)


def _make_question(kind: Kind, words: str, match: Match, candidates: Sequence[Candidate]) -> Question:
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
    """A candidate that is safe to show; of a file the whole path, of a mail the sender, of an event the day."""
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
    return ShownCandidate(number, display_name(name), display_name(detail), candidate_suspicions(candidate))

"""The binder: words of a plan and a kind become a value of the world, or a question.

The ladder of `_matching` decides first. Only where it does not, choosers are asked in order: the quarantined model with
one untrusted list in sight, then the person. Where nothing fits, names of near meaning (`_meaning`) are in that list,
and what has all that the plan uses of it (`Use`). What no chooser decides is a `Question`, to be answered later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from bicameral.binding._candidates import KINDS, Candidate, CandidateSource, Kind, joined_label, unknown_kind
from bicameral.binding._matching import MOST_SHOWN, Ambiguous, Bound, Match, Unbound, match_words
from bicameral.binding._meaning import Encoder, suggest_candidates
from bicameral.binding._questions import NONE_FITS, Binding, Question, SkippedFolders, make_question
from bicameral.binding._replies import find_replied, nearest_to_reply, typed_address
from bicameral.binding._screening import display_name
from bicameral.errors import BindError
from bicameral.labels import TRUSTED_USER, UNKNOWN, join
from bicameral.tools import collect_selections

Within = str | Sequence[str] | None
"""Where to look: the folder of a file, the table of a column, the table and the column of a value."""

LONGEST_WORDS = 300
"""Characters of a mention; more is no name of anything."""

MOST_COLUMNS = 24
"""Columns that a model chooses from where none fits."""

MOST_FITTING = 3
"""Candidates that a model is offered for what they have; what more of them have tells them not apart."""

MOST_ASKED = 3
"""How often a person is asked what some words mean, where the replies name nothing."""


ChooserKind = Literal["model", "person"]


class Chooser(Protocol):
    """Chooses one of a few candidates, or none: the quarantined model, or the person."""

    @property
    def by(self) -> ChooserKind:
        """Who chooses. A model is not offered suspicious candidates, and its choice is untrusted."""
        ...

    async def choose(self, question: Question) -> int | str | None:
        """The number of the candidate that is meant, `NONE_FITS` for none of them, or None if that is not decided.

        A person may also reply with a name, which is looked up among all candidates.
        """
        ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates by what a plan uses of them: those that have all of it, and those that have some, the best first."""

    fitting: tuple[Candidate, ...] = ()
    partly: tuple[Candidate, ...] = ()


class Use:
    """How a plan uses what words name, as far as that helps where no name has the words.

    Attributes:
        directs: Whether an effect goes to what is named: a file that is written, an event that is deleted. Only what
            shares a word with the mention is offered for it then, and a reply has to be the whole name.
    """

    directs: bool = False

    async def rank(self, candidates: Sequence[Candidate]) -> Ranking:
        """The candidates that have what the plan uses of them."""
        return Ranking()

    async def take_instead(self) -> Binding | None:
        """What is taken where nothing is near, before a person is asked."""
        return None

    async def describe_other(self) -> str:
        """What else a person should know, safe to show."""
        return ""


NO_USE = Use()


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
        self._skipped: dict[tuple[Kind, tuple[str, ...]], SkippedFolders] = {}
        self._chosen: dict[tuple[Question, str], Binding | Question] = {}
        """What choosers said. Words that a plan has at several steps are asked about once."""

    async def bind(
        self,
        kind: Kind,
        words: str,
        *,
        within: Within = None,
        candidates: Sequence[Candidate] | None = None,
        endings: tuple[str, ...] = (),
        use: Use = NO_USE,
    ) -> Binding | Question:
        """The value that words mean, or the question which one it is.

        Args:
            kind: The kind of reference.
            words: The words of the request.
            within: Where to look: the folder of a file, the table of a column, the table and column of a value.
            candidates: What the words may mean, where it is known already, as the columns of a table are.
            endings: Of a file or a table, the endings that can be used; all if there are none.
            use: How the plan uses it.
        """
        if kind not in KINDS:
            raise unknown_kind(kind)
        place = () if within is None else (within,) if isinstance(within, str) else tuple(within)
        found = await self._bind(kind, _check_words(words), place, candidates, endings, use)
        skipped = self._skipped.get((kind, place)) if candidates is None else None
        return replace(found, skipped=skipped) if isinstance(found, Binding) and skipped is not None else found

    async def _bind(
        self,
        kind: Kind,
        words: str,
        place: tuple[str, ...],
        candidates: Sequence[Candidate] | None,
        endings: tuple[str, ...],
        use: Use,
    ) -> Binding | Question:
        offered = await self.offer(kind, place) if candidates is None else candidates
        if endings:
            offered = [each for each in offered if str(each.value).lower().endswith(endings)]
        considered, match = await self._match(kind, words, offered)
        if isinstance(match, Bound):
            return _make_binding(kind, words, match, considered)
        if isinstance(match, Unbound):
            return await self._choose_unbound(kind, words, match, considered, use)
        return await self._ask_choosers(make_question(kind, words, match, considered), considered, use)

    def without(self, *choosers: ChooserKind) -> Binder:
        """The same binder, which does not ask these. What was read of the world is shared, and what a model said."""
        other = Binder(
            self._source,
            None if "model" in choosers else self._encoder,
            [each for each in self._choosers if each.by not in choosers],
        )
        other._offered, other._skipped = self._offered, self._skipped
        if "model" not in choosers:
            other._chosen = self._chosen
        return other

    async def bind_by_rules(self, kind: Kind, words: str) -> Binding | None:
        """The value that words mean by the rules alone; None where these do not decide."""
        words = _check_words(words)
        considered, match = await self._match(kind, words, await self.offer(kind, ()))
        return _make_binding(kind, words, match, considered) if isinstance(match, Bound) else None

    async def ask(
        self, kind: Kind, words: str, candidates: Sequence[Candidate], among: Sequence[Candidate] = ()
    ) -> Binding | Question:
        """What the choosers say which of a few candidates is meant, where another rule found that each may be.

        Args:
            kind: The kind of reference.
            words: The words of the request.
            candidates: What they may mean.
            among: Everything that a person may name beside them.
        """
        words = _check_words(words)
        question = make_question(kind, words, Ambiguous(tuple(candidates[:MOST_SHOWN])), candidates)
        return await self._ask_choosers(question, among or candidates, NO_USE)

    async def confirm(self, question: Question) -> Binding | Question:
        """What the person says to a question that no model may answer."""
        return await self._ask_person(question, (), NO_USE)

    async def _choose_unbound(
        self, kind: Kind, words: str, match: Unbound, candidates: Sequence[Candidate], use: Use
    ) -> Binding | Question:
        """What a model says where nothing fits, and then a person.

        A model may know that `Kinostart` is the release. A person is shown what may be meant, or asked for the name.
        """
        near = match.near[:MOST_SHOWN]
        # Who gets a mail and what is written or deleted is not found by likeness.
        may_be_far = not use.directs and kind != "person"
        suggested = await self._suggest(kind, words, candidates, near) if may_be_far else ()
        ranking = await use.rank(candidates) if may_be_far else Ranking()
        possible = _unique((*near, *suggested))
        likely = _unique((*possible, *ranking.fitting))
        asked = make_question(kind, words, Unbound(likely, match.whole), candidates)
        result = await self._ask_models_unbound(asked, near, possible, ranking, candidates, may_be_far=may_be_far)
        if isinstance(result, Binding):
            return result
        # Where a model says that none is meant, only those that have all words are left.
        left = tuple(each for each in possible if each in result.candidates)
        if not left and (instead := await use.take_instead()) is not None:
            return instead
        if not self._has_person() or not (candidates or kind == "person"):
            return replace(result if result.shown else result.without_candidates(), note=await use.describe_other())
        shown = likely
        if may_be_far and (kind == "column" or len(candidates) <= MOST_SHOWN):
            # Few enough to show all of them; of columns, one is almost always meant.
            shown = _unique((*likely, *ranking.partly, *candidates))
        return await self._ask_person(
            make_question(kind, words, Unbound(shown, match.whole), candidates), candidates, use
        )

    async def _ask_models_unbound(
        self,
        asked: Question,
        near: Sequence[Candidate],
        possible: Sequence[Candidate],
        ranking: Ranking,
        candidates: Sequence[Candidate],
        *,
        may_be_far: bool,
    ) -> Binding | Question:
        """What a model says about what is likely; a longer list only keeps it from taking whatever is there."""
        kind, whole = asked.kind, asked.whole
        offered, likely = tuple(possible), asked.candidates
        if may_be_far and len(candidates) <= (MOST_COLUMNS if kind == "column" else 0 if near else MOST_SHOWN):
            # A request about a table that was found is almost always about one of its columns. Of files and cells a
            # long list would rather tempt a model to choose what is not meant.
            offered = (*likely, *(each for each in candidates if each not in likely))
            likely = offered
        elif 0 < len(ranking.fitting) <= MOST_FITTING and kind != "column":
            # The choice from a list of one says nothing: whether it depends on the order cannot be seen.
            offered = _unique((*likely, *ranking.partly))
        question = make_question(kind, asked.words, Unbound(offered, whole), candidates)
        result = await self._ask_models(question)
        if isinstance(result, Binding):
            return result if any(result.value == each.value for each in likely) else asked
        return asked if result.candidates == question.candidates else result

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
            with collect_selections() as noted:
                self._offered[key] = await self._source.candidates(kind, place)
            # Only of what lists folders: a mailbox or a table with something unreadable in it says so itself.
            if kind in ("file", "table", "folder") and any(each.skipped for each in noted):
                names = tuple(dict.fromkeys(name for each in noted for name in each.names))
                # The folder may be in any of the places that were listed, trusted or not.
                label = join(UNKNOWN, joined_label(self._offered[key]))
                self._skipped[key] = SkippedFolders(max(each.skipped for each in noted), names, label)
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

    def _has_person(self) -> bool:
        return any(each.by == "person" for each in self._choosers)

    async def _ask_choosers(self, question: Question, candidates: Sequence[Candidate], use: Use) -> Binding | Question:
        result = await self._ask_models(question)
        return result if isinstance(result, Binding) else await self._ask_person(result, candidates, use)

    async def _ask_models(self, question: Question) -> Binding | Question:
        """The binding that a model chose, or the question with what may still be meant."""
        if question.kind == "person":
            # Names have no meaning that a model could know. Which of two Annas is meant, or whether the address that
            # somebody planted is hers, would be a guess.
            return question
        key = (question, "model")
        if key not in self._chosen:
            self._chosen[key] = await self._choose_by_model(question)
        return self._chosen[key]

    async def _choose_by_model(self, question: Question) -> Binding | Question:
        for chooser in self._choosers:
            visible = question.only(tuple(each for each in question.shown if not each.suspicions))
            if chooser.by == "person" or not visible.shown:
                continue
            number = await chooser.choose(visible)
            if number is None:
                continue
            if number == NONE_FITS and type(number) is int:
                # That several fit, or that one has all words and others beside them, was found by rules: a model
                # cannot take that back.
                question = question.only_whole() if question.reason == "none" else question
                continue
            return visible.answer(_checked_number(number, visible), by="model")
        return question

    async def _ask_person(self, question: Question, candidates: Sequence[Candidate], use: Use) -> Binding | Question:
        """The binding that a person chose or named, or the question."""
        question = replace(question, note=question.note or await use.describe_other())
        if not self._has_person():
            # Not remembered: what is remembered is shared with a binder that has one.
            return question
        key = (question, "person")
        if key not in self._chosen:
            result: Binding | Question = question
            for chooser in self._choosers:
                if chooser.by == "person" and isinstance(result, Question):
                    result = await self._choose_by_person(chooser, question, candidates, use)
            self._chosen[key] = result
        return self._chosen[key]

    async def _choose_by_person(
        self, chooser: Chooser, question: Question, candidates: Sequence[Candidate], use: Use
    ) -> Binding | Question:
        kind, words = question.kind, question.words
        for _ in range(MOST_ASKED):
            reply = await chooser.choose(question)
            if reply is None:
                return question
            if isinstance(reply, str):
                address = typed_address(reply) if kind == "person" else None
                if (named := find_replied(reply, kind, candidates, exact=use.directs)) is not None:
                    return question.answer_with(named, candidates)
                if address is not None:
                    # Typed by the person. Whoever wrote the names in the list may have had a hand in it.
                    label = join(TRUSTED_USER, joined_label(question.candidates))
                    return Binding(kind, words, address, label, "person", 1.0, question.shown, address)
                near = nearest_to_reply(reply, kind, candidates)
                question = make_question(kind, words, Unbound(near or question.candidates), candidates)
                question = replace(question, note=f"No {kind} is called *{display_name(reply)}*.")
            elif reply == NONE_FITS and type(reply) is int:
                if kind != "person" or not question.shown:
                    break
                question = make_question(kind, words, Unbound(), candidates)
            else:
                return question.answer(_checked_number(reply, question))
        return question.without_candidates()


def _unique(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    return tuple({id(each): each for each in candidates}.values())[:MOST_SHOWN]


def _checked_number(number: object, question: Question) -> int:
    # Exact type: True is 1 in Python.
    if type(number) is not int or number not in [each.number for each in question.shown]:
        raise BindError(
            "bind.bad-choice",
            f"the chooser answered {number!r:.20}",
            expected="the number of a candidate that it was shown, or None",
        )
    return number


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

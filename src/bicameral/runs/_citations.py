"""Citations: where each fact of an answer stands, found by code in the passages that were read.

Tools that search note where their passages stand (`tools.note_passages`). When the quarantined model has read a value
from such passages, each fact of the value is looked for in them: the passage that has it is cited, with the line as a
quotation. A fact that stands in none of them is a doubt. An answer that repeats a passage cites it, too.

The model has no part in this: it cannot name a source, so no text can make it name a wrong one. A citation tells
something of what was read and has the label of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from bicameral.boundary import (
    MAX_FACTS,
    Fact,
    PlaceText,
    Question,
    SupportKind,
    find_facts,
    find_line,
    find_quote,
    find_rival,
    find_support,
    missing_words,
    parse_question,
)
from bicameral.labels import PUBLIC, UNKNOWN, Label, LabelTree, join, join_all, label_tree_from_json, label_tree_to_json
from bicameral.plans import static_path
from bicameral.runs._doubts import NO_LABEL, Doubt
from bicameral.text import is_english
from bicameral.tools import PassageNote, shown_text
from bicameral.types import Type

CitationCheck = Literal["verbatim", "words", "read"]
"""How it was checked: the fact stands there; all its numbers and most of its words do; or it was only read there, since
a yes or a choice cannot be searched for."""

MAX_CITATIONS = 50
MAX_PASSAGES = 1_000
"""How many passages of a run are kept to be cited."""
_PLACES_OF_A_FACT = 3
_DOUBTS_OF_A_READING = 3
_MAX_QUOTE = 160
_MAX_FACT = 80
_SHORTEST_REPEATED = 6
"""Characters of a passage that is recognised inside an answer: a shorter one is there by chance."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A place that an answer or an effect rests on.

    Args:
        fact: What was read, shortened.
        where: The place for a person: `notes/house.md, line 3`.
        quote: The words of the passage, shortened.
        kind: `note`, `page`, `table`, `contact`, `mail` or `event`; what else a tool calls its places.
        source: The path or id, as the tools of its place take it.
        line: The line of the quotation in the file, if it has lines.
        check: How it was checked.
        label: Where what the citation tells came from, and who may see it.
        step: The step that read it.
    """

    fact: str
    where: str
    quote: str
    kind: str
    source: str
    line: int | None = None
    check: CitationCheck = "verbatim"
    label: Label = UNKNOWN
    step: str = ""

    def __post_init__(self) -> None:
        # Here and not where it is shown: every one of these may be untrusted text.
        for name, most in (("fact", _MAX_FACT), ("where", 2 * _MAX_QUOTE), ("quote", _MAX_QUOTE), ("source", 300)):
            object.__setattr__(self, name, shown_text(getattr(self, name), most))

    def text_for(self, reader: str) -> str:
        """The citation for a principal; only that there is one for somebody who may not see what it tells."""
        allowed = self.label.readers is PUBLIC or reader in self.label.readers
        return str(self) if allowed else "a passage that is not for you"

    def __str__(self) -> str:
        told = {"verbatim": "", "words": ", in other words", "read": ", not checked"}[self.check]
        return f"{self.fact}: {self.where}{told}: “{self.quote}”"

    def to_json(self) -> dict[str, Any]:
        names = ("fact", "where", "quote", "kind", "source", "line", "check", "step")
        facts = {name: getattr(self, name) for name in names}
        return {name: fact for name, fact in facts.items() if fact not in (None, "")} | {
            "label": label_tree_to_json(self.label)
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Citation:
        """The citation that `to_json` wrote."""
        words = {name: str(facts.get(name, "")) for name in ("fact", "where", "quote", "kind", "source", "step")}
        line, label = facts.get("line"), label_tree_from_json(facts["label"]).flat
        return cls(**words, line=None if line is None else int(line), check=facts["check"], label=label)


@dataclass(frozen=True, slots=True)
class _Passage:
    note: PassageNote
    text: str
    record: Any
    label: Label
    plain: str
    head: str = ""
    """What a reader sees of it besides the text: title, sender and day, one a line."""

    @property
    def place_text(self) -> PlaceText:
        return PlaceText(self.text, self.head, self.note.similarity)


@dataclass(frozen=True, slots=True)
class _Reading:
    step: str
    citations: tuple[Citation, ...]
    uncited: tuple[Fact, ...]
    label: Label
    is_checked: bool = True
    """Whether each fact was looked for; of a long value only the first ones are."""
    doubts: tuple[Doubt, ...] = ()
    """What speaks against the passages that have the facts."""


class CitationLog:
    """The passages that a run has found, and what was read from them."""

    def __init__(self) -> None:
        self._passages: list[_Passage] = []
        self._empty: list[Any] = []
        self._results: list[tuple[Any, list[_Passage]]] = []
        self._readings: list[_Reading] = []
        self._dropped: list[Label] = []

    def add_passages(self, notes: Iterable[PassageNote], result: Any, labels: LabelTree | None) -> None:
        """Keep the passages in the result of a call, each with its own label.

        Args:
            notes: Where they stand.
            result: The result that the notes point into.
            labels: The labels of the result; None in a run without labels.
        """
        found = ((note, note.text_in(result), note.record_in(result)) for note in notes)
        passages = [
            _Passage(
                note,
                text,
                record,
                NO_LABEL if labels is None else _label_at(labels, note.at),
                _plain(text),
                _head_text(note, record),
            )
            for note, text, record in found
            if text is not None
        ]
        room = MAX_PASSAGES - len(self._passages)
        self._passages += passages[:room]
        self._dropped += [each.label for each in passages[room:]]
        if passages and all(each.note.shown for each in passages):
            self._results.append((result, passages))

    def reader_view(self, source: Any) -> Any:
        """A source as the quarantined model reads it: passages without the technical facts of their places.

        A value must be copied from what is shown, so that no id, path or score can be one.
        """
        if not self._passages or source is None or isinstance(source, str):
            return source
        for result, passages in self._results:
            # How many files were skipped is nothing that a passage says, either.
            if source == result:
                return [each.note.reader_view(each.record) for each in passages]
        return self._view_of(source)

    def _view_of(self, value: Any) -> Any:
        match value:
            case dict():
                for each in self._passages:
                    if each.record is not None and each.record == value:
                        return each.note.reader_view(value)
                return {name: self._view_of(part) for name, part in cast("dict[str, Any]", value).items()}
            case list() | tuple():
                return [self._view_of(part) for part in cast("Sequence[Any]", value)]
            case _:
                return value

    def add_empty(self, result: Any) -> None:
        """Keep the result of a search that found nothing."""
        # The list of its passages, too: that is what a plan reads.
        self._empty += [result, []]

    def found_nothing(self, source: Any) -> bool:
        """Whether a source is the result of a search that found nothing: there is nothing to read in it."""
        return any(source == each for each in self._empty)

    def add_reading(
        self, step: str, source: Any, value: Any, wanted: Type, label: Label, instruction: str = ""
    ) -> None:
        """Cite what the quarantined model read from a source, if passages are in it.

        Args:
            step: The path of the step in the run.
            source: What was read.
            value: What came of it.
            wanted: The type of the value.
            label: The label of the value.
            instruction: What was looked for.
        """
        passages = self._passages_in(source, parts=True)
        if not passages or value is None:
            return
        place, facts = static_path(step), find_facts(value, wanted, MAX_FACTS + 1)
        if not facts:
            read = tuple(_cite_unchecked(value, each, label, place) for each in passages[:_PLACES_OF_A_FACT])
            unrelated = _find_unrelated(None, _Asked(instruction, value, label, place), passages, ())
            self._readings.append(_Reading(place, read, (), label, doubts=tuple(unrelated)))
            return
        from bicameral.boundary._evidence import Evidence  # its patterns take time to compile

        texts = [(each, Evidence(each.text), Evidence(each.head)) for each in passages]
        cited: list[Citation] = []
        uncited: list[Fact] = []
        doubts: list[Doubt] = []
        for fact in facts[:MAX_FACTS]:
            supports: list[tuple[_Passage, SupportKind]] = [
                (each, kind)
                for each, text, head in texts
                if (kind := find_support(fact, text) or find_support(fact, head)) is not None
            ]
            # Where it stands word for word, places with the same words in another order add nothing.
            exact = [each for each in supports if each[1] == "verbatim"]
            chosen = (exact or supports)[:_PLACES_OF_A_FACT]
            cited += [_cite(fact, each, kind, label, place) for each, kind in chosen]
            if not chosen:
                uncited.append(fact)
            elif len(doubts) < _DOUBTS_OF_A_READING:
                holding = [each for each, _ in supports]
                others = [each for each in passages if all(each is not other for other in holding)]
                asked = _Asked(instruction, value, label, place)
                doubts += _find_unrelated(fact, asked, holding, others)
                # Of a list the other items stand elsewhere.
                doubts += [] if isinstance(value, list) else _find_rival_doubts(fact, asked, others)
        done = len(facts) <= MAX_FACTS
        self._readings.append(_Reading(place, tuple(cited), tuple(uncited), label, done, tuple(doubts)))

    def was_searched(self, source: Any) -> bool:
        """Whether a source is, or contains, what a search found."""
        return self.found_nothing(source) or bool(self._passages_in(source, parts=True))

    def count_passages(self, source: Any) -> tuple[int, int] | None:
        """How many passages of a search are in a source, and of how many places; None if it is not from a search."""
        if self.found_nothing(source):
            return 0, 0
        passages = self._passages_in(source, parts=True)
        return (len(passages), len({each.note.source for each in passages})) if passages else None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could be cited or doubted."""
        return not self._passages

    def citations(self, resting: frozenset[str], answer: Any = None) -> tuple[Citation, ...]:
        """What the answer and the effects rest on, each place once.

        Args:
            resting: The steps on which they rest.
            answer: The answer, for passages that it repeats.
        """
        read = [each for reading in self._readings if reading.step in resting for each in reading.citations]
        seen = {(each.source, each.line) for each in read}
        repeated = (_cite_repeated(each) for each in self._passages_in(answer))
        own = [each for each in repeated if (each.source, each.line) not in seen]
        return tuple(dict.fromkeys((*read, *own)))[:MAX_CITATIONS]

    def find_doubts(self, resting: frozenset[str]) -> list[Doubt]:
        """Doubts about facts that stand in no passage, were not looked for, or stand where something else is meant."""
        found: list[Doubt] = []
        for each in self._readings:
            if each.step not in resting:
                continue
            found += [
                Doubt(
                    "uncited-fact", f"no passage that was read says {_fact_text(fact.value)!r}", each.label, each.step
                )
                for fact in each.uncited
            ]
            if not each.is_checked:
                text = f"only the first {MAX_FACTS} facts that were read were looked for in the passages"
                found.append(Doubt("uncited-fact", text, each.label, each.step))
            found += each.doubts
        if self._dropped:
            text = (
                f"of the passages that were found only the first {MAX_PASSAGES:,} could be searched for what was read"
            )
            found.append(Doubt("uncited-fact", text, join_all(self._dropped)))
        return found

    def _passages_in(self, source: Any, *, parts: bool = False) -> list[_Passage]:
        """The passages that a value contains: as the records that were found, or else their text.

        Args:
            source: The value.
            parts: Whether a part of the text of a passage counts as well: a plan may read its first line.
        """
        if not self._passages or source is None:
            return []
        records: list[Any] = []
        texts: list[str] = []
        _collect(source, [each.record for each in self._passages if each.record is not None], records, texts)
        # By the whole record where it is there: a copy of a text in another place must not be cited for it.
        whole = [
            each
            for each in self._passages
            if any(each.record == record for record in records)
            or (len(each.text) >= _SHORTEST_REPEATED and any(each.text in text for text in texts))
        ]
        if whole or not parts:
            return whole
        pieces = [piece for text in texts if len(piece := _plain(text)) >= _SHORTEST_REPEATED]
        return [each for each in self._passages if any(piece in each.plain for piece in pieces)]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was read: the instruction, the whole value and its label, and the step."""

    instruction: str
    value: Any
    label: Label
    step: str

    def questions(self, holding: Sequence[_Passage]) -> list[Question]:
        """What was asked: the instruction, or else the search where the passages are in another language."""
        first, english = parse_question(self.instruction, self.value), is_english(self.instruction)
        written = is_english("\n".join(each.text for each in holding))
        if english is None or written is None or english == written:
            return [first]
        searches = (parse_question(each, self.value) for each in dict.fromkeys(each.note.query for each in holding))
        return [first, *(each for each in searches if not each.is_empty)]


def _find_unrelated(
    fact: Fact | None, asked: _Asked, holding: Sequence[_Passage], others: Sequence[_Passage]
) -> list[Doubt]:
    """A doubt if no passage that has a fact mentions what was asked for."""
    # A passage of another kind of search, such as an address, does not say what it is about.
    if not all(each.note.shown for each in holding):
        return []
    places, rest = [each.place_text for each in holding], [each.place_text for each in others]
    found = [missing_words(question, fact, places, rest) for question in asked.questions(holding)]
    if not all(found):
        return []
    said = f"{_fact_text(asked.value)!r} was read from" if fact is None else f"{_fact_text(fact.value)!r} stands in"
    where = "a passage" if len(holding) == 1 else "passages"
    verb = "does" if len(holding) == 1 else "do"
    text = f"{said} {where} that {verb} not mention {', '.join(map(repr, found[0]))}"
    return [Doubt("weak-evidence", text, join_all([asked.label, *(each.label for each in holding)]), asked.step)]


def _find_rival_doubts(fact: Fact, asked: _Asked, others: Sequence[_Passage]) -> list[Doubt]:
    """A doubt about the first other passage that has what was asked for, and another value."""
    question = parse_question(asked.instruction, asked.value)
    for each in others:
        if each.note.shown and (rival := find_rival(question, fact, each.place_text)):
            text = f"another passage says {rival!r} and not {_fact_text(fact.value)!r}: {each.note.where}"
            return [Doubt("rival-evidence", text, join(asked.label, each.label), asked.step)]
    return []


def _head_text(note: PassageNote, record: Any) -> str:
    """Title, sender and day of a passage, if a reader sees them."""
    view: Any = note.reader_view(record)
    if not note.shown or not isinstance(view, dict):
        return ""
    parts = cast("dict[str, Any]", view)
    return "\n".join(str(parts[name]) for name in ("title", "from", "day") if name in parts)


def _plain(text: str) -> str:
    """A text in small letters with single blanks, so that a plan's own changes of both do not hide it."""
    return " ".join(text.casefold().split())


def _label_at(labels: LabelTree, path: Sequence[str | int]) -> Label:
    """The label of a part of a result."""
    for step in path:
        labels = labels.place(step) if isinstance(step, int) else labels.field(step)
    return labels.flat


def _collect(value: Any, known: Sequence[Any], records: list[Any], texts: list[str]) -> None:
    """The known records in a value, and the texts outside of them."""
    match value:
        case str():
            texts.append(value)
        case dict() if any(value == each for each in known):
            records.append(value)
        case dict():
            for part in cast("dict[str, Any]", value).values():
                _collect(part, known, records, texts)
        case list() | tuple():
            for part in cast("Sequence[Any]", value):
                _collect(part, known, records, texts)
        case _:
            pass


def _cite(fact: Fact, passage: _Passage, check: SupportKind, label: Label, step: str) -> Citation:
    offset, quote = find_quote(fact, passage.text)
    if not find_line(fact, passage.text) and (line := find_line(fact, passage.head)):
        offset, quote = 0, line[1]
    return _make(passage, _fact_text(fact.value), offset, quote, check, join(label, passage.label), step)


def _cite_unchecked(value: Any, passage: _Passage, label: Label, step: str) -> Citation:
    offset, quote = _first_line(passage.text)
    return _make(passage, _fact_text(value), offset, quote, "read", join(label, passage.label), step)


def _cite_repeated(passage: _Passage) -> Citation:
    offset, quote = _first_line(passage.text)
    return _make(passage, "repeated", offset, quote, "verbatim", passage.label, "")


def _make(
    passage: _Passage, fact: str, offset: int, quote: str, check: CitationCheck, label: Label, step: str
) -> Citation:
    note = passage.note
    line = None if note.line is None else note.line + offset
    # Below 1 is a heading that is not in the file.
    line = line if line is None or line >= 1 else 1
    where = note.where if line is None else f"{note.where}, line {line}"
    return Citation(fact, where, quote, note.kind, note.source, line, check, label, step)


def _first_line(text: str) -> tuple[int, str]:
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n")) if line.strip()]
    return next((each for each in lines if not each[1].startswith("#")), lines[0] if lines else (0, ""))


def _fact_text(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case dict() if set(cast("dict[str, Any]", value)) == {"amount", "currency"}:
            return f"{value['amount']} {value['currency']}"
        case _:
            return str(value)

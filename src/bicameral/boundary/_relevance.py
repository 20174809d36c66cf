"""Whether the place of a fact has to do with the question: the words of the question that stand around the fact.

A quarantined model that is asked for the code of the safe, and reads only of that of the garage, copies the code of the
garage: the value stands in the text, so that every other check passes. Here the words of the question are looked for in
the passage that has the value, with its title and sender. Words for what kind of value is wanted (*number*, *date*,
*code*) count little: `Dentist: 030 123` does not say that it is a number. Where a line is a fact of its own, as in a
list or a table, the other lines do not count.

Rivals are other passages with the words of the question and with another value of the same kind.

No model is asked, and nothing here makes a value trusted.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from bicameral.boundary._support import Fact, find_support
from bicameral.text import FUNCTION_WORDS, has_form_of, index_words, same_stem

ENOUGH = 0.6
"""The share of the words of a question that must stand around a fact."""
NEAR_MEANING = 0.55
"""The similarity of a passage to the search from which on it counts as related without the words of the question."""
_RIVAL_SHARE = 0.75
"""The share of the words of a question that a line must have to rival another: most lines mention a few."""
MAX_MISSING = 4
_MAX_SEARCHED = 8_000
_MAX_LINE = 1_000
_SUBJECT_WEIGHT = 1.0
_KIND_WEIGHT = 0.5
"""What the words for the kind of value count together; each word for the subject counts more."""
_SHORTEST_HEAD = 5
"""Letters of a word for a kind of value at the end of a compound, as in *Kundennummer*."""

_VALUE_WORDS = frozenset(
    # What kind of value is wanted, and of when: English, German, French, Spanish, without accents.
    "number phone telephone mobile date day time hour year month week price cost amount sum total name address "
    "email mail code pin password account birthday due deadline next last current new old first latest recent "
    "upcoming appointment meeting long much many often far size count kind type title place location happen begin "
    "start end pay paid owe called say said customer client member serial reference nummer telefonnummer telefon "
    "handynummer datum tag uhrzeit zeit stunde jahr monat woche preis kosten kostet betrag summe namen adresse "
    "anschrift kennwort passwort geburtstag frist fallig nachste nachster nachstes letzte letzter letztes aktuelle "
    "neue neuer neues alte termin lange viel viele oft weit grosse anzahl art ort beginnt beginn endet ende heisst "
    "gesagt numero jour heure annee mois semaine prix cout coute montant somme nom courriel mot passe anniversaire "
    "echeance prochain prochaine dernier derniere actuel actuelle nouveau nouvelle ancien rendez longtemps lieu "
    "endroit commence debut finit fin appelle telefono fecha dia hora ano mes semana precio costo cuesta importe "
    "suma nombre direccion correo codigo clave contrasena cumpleanos plazo vence proximo proxima ultimo ultima "
    "actual nuevo nueva viejo cita mucho lugar empieza comienza termina llama cliente referencia".split()
)
_EMPTY_WORDS = frozenset(
    # Words about the reading itself.
    "text passage note document value answer information fact exact exactly mentioned stated written given according "
    "find found tell told write wrote agree agreed extract question used whose still ever "
    "notiz wert antwort angabe genau genaue steht stehen genannt erwahnt gemass finde lautet gilt "
    "texte valeur reponse exacte mentionne indique selon trouve "
    "texto nota valor respuesta informacion exacto exacta mencionado indicado segun encuentra".split()
)


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question that say what it is about, as they are written, each with what it counts."""

    weights: Mapping[str, float]
    spellings: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        return not self.weights

    @property
    def subjects(self) -> frozenset[str]:
        """The words for what it is about, without those for the kind of value."""
        return frozenset(word for word, weight in self.weights.items() if weight == _SUBJECT_WEIGHT)

    def share_in(self, words: Iterable[str], elsewhere: Iterable[str] = ()) -> float:
        """How much of the question these words mention, from 0 to 1.

        Args:
            words: The words of a place.
            elsewhere: The words of the other places. What is missing here and mentioned there counts twice, and what is
                mentioned nowhere half: the texts may call it by another name.

        Without any word for the subject of the question it is 0.
        """
        known, others = frozenset(words), frozenset(elsewhere)
        having = missing = 0.0
        has_subject = False
        for word, weight in self.weights.items():
            if has_form_of(known, word):
                having += weight
                has_subject = has_subject or weight == _SUBJECT_WEIGHT
            else:
                missing += weight * (2.0 if has_form_of(others, word) else 0.5)
        return having / (having + missing) if has_subject else 0.0

    def is_mentioned_only(self, elsewhere: Iterable[str], words: Iterable[str]) -> bool:
        """Whether a word for the subject is mentioned elsewhere and not here: then a similar meaning is another one."""
        known, others = frozenset(words), frozenset(elsewhere)
        return any(not has_form_of(known, word) and has_form_of(others, word) for word in self.subjects)

    def missing_in(self, words: Iterable[str]) -> tuple[str, ...]:
        """The words that are not mentioned, those that count most first."""
        known = frozenset(words)
        missing = [word for word in self.weights if not has_form_of(known, word)]
        ordered = sorted(missing, key=lambda word: -self.weights[word])
        return tuple(self.spellings[word] for word in ordered[:MAX_MISSING])


def parse_question(instruction: str, value: Any = None) -> Question:
    """What an instruction is about, without words of the value itself, which are there by themselves.

    Example:
        >>> dict(parse_question("the code of the garage").weights)
        {'code': 0.5, 'garage': 1.0}
    """
    own = set(index_words(_value_text(value)))
    weights: dict[str, float] = {}
    spellings: dict[str, str] = {}
    for match in re.finditer(r"[^\W_]+", instruction):
        for word in index_words(match[0]):
            if word in FUNCTION_WORDS or word in own or len(word) < 2 or _is_listed(word, _EMPTY_WORDS):
                continue
            if any(same_stem(word, other) for other in weights):
                continue
            weights[word] = 0.0 if _is_value_word(word) else _SUBJECT_WEIGHT
            spellings[word] = match[0]
    # Without a word for its subject a question fits every value of its kind.
    if _SUBJECT_WEIGHT not in weights.values():
        return Question({}, {})
    # Together, so that "phone number" does not make up for the subject.
    kinds = sum(not weight for weight in weights.values())
    return Question({word: weight or _KIND_WEIGHT / kinds for word, weight in weights.items()}, spellings)


@cache
def _is_value_word(word: str) -> bool:
    # Long ones alone at the end of a compound: many a word ends with "art" or "ort".
    return _is_listed(word, _VALUE_WORDS) or any(
        word.endswith(each) for each in _VALUE_WORDS if len(each) >= _SHORTEST_HEAD
    )


@cache
def _is_listed(word: str, listed: frozenset[str]) -> bool:
    return word in listed or any(same_stem(word, each) for each in listed)


def _value_text(value: Any) -> str:
    match value:
        case None | bool():
            return ""
        case dict():
            return " ".join(_value_text(part) for part in cast("dict[str, Any]", value).values())
        case list() | tuple():
            return " ".join(_value_text(part) for part in cast("Sequence[Any]", value))
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class PlaceText:
    """A passage for this check: its text, its title, sender and day, and how similar it is to the search, if known."""

    text: str
    head: str = ""
    similarity: float | None = None


def missing_words(
    question: Question, fact: Fact | None, places: Sequence[PlaceText], others: Sequence[PlaceText] = ()
) -> tuple[str, ...]:
    """The words that no passage which has a fact mentions near it; empty if one of them mentions enough.

    Args:
        question: What was asked.
        fact: The fact; None looks at the whole passages, for a yes or a choice that stands nowhere.
        places: The passages that have it.
        others: The other passages that were read.
    """
    if question.is_empty or not places:
        return ()
    elsewhere = [word for place in others for word in index_words(f"{place.head}\n{place.text}")]
    best, missing = -1.0, ()
    for place in places:
        for context in _contexts(place, fact):
            words = index_words(context)
            share = question.share_in(words, elsewhere)
            if share >= ENOUGH or (_is_near(place) and not question.is_mentioned_only(elsewhere, words)):
                return ()
            if share > best:
                best, missing = share, question.missing_in(words)
    return missing


def _is_near(place: PlaceText) -> bool:
    return place.similarity is not None and place.similarity >= NEAR_MEANING


LIST_LINE = re.compile(r"\s*(?:[-*•+]|\d+[.)])\s+\S|[^:]{1,40}:\s+\S|.*\|.*\|")
_LETTER_HEAD = re.compile(r"(?:From|To|Date|When|Where|With): ")


def _contexts(place: PlaceText, fact: Fact | None) -> list[str]:
    """The texts around each occurrence of a fact: the whole passage, or only its line and headings if it is a list."""
    whole = f"{place.head}\n{place.text}"
    if fact is None:
        return [whole]
    from bicameral.boundary._evidence import Evidence

    lines = [line for line in place.text.split("\n") if line.strip()]
    # The head of a mail or event is no list of facts about different things.
    facts = [line for line in lines if LIST_LINE.match(line) and not _LETTER_HEAD.match(line)]
    if len(facts) < 2:
        return [whole]
    holding = [line for line in lines if find_support(fact, Evidence(line))]
    if not holding or any(line not in facts for line in holding):
        return [whole]
    headings = "\n".join(line for line in lines if line.startswith("#") or line not in facts)
    return [f"{place.head}\n{headings}\n{line}" for line in holding]


_EMAIL = re.compile(r"[\w.%+-]{1,64}@[\w.-]{1,190}\w")
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}\.\s?\d{1,2}\.\s?(?:\d{4}|\d{2})?|\d{1,2}/\d{1,2}/\d{2,4}"
    r"|\d{1,2}\.?(?:st|nd|rd|th)?\s(?:de\s|of\s)?[^\W\d_]{3,10}\.?(?:\s(?:de\s)?\d{4})?"
    r"|[^\W\d_]{3,10}\s\d{1,2}(?:,\s\d{4})?"
)
_CLOCK = re.compile(r"\d{1,2}[:.h]\d{2}(?!\d)|\d{1,2}\s?(?:am|pm|Uhr|h)\b")
_NUMBER = re.compile(r"(?<![\w.,/:-])\d[\d.,' \u00a0]*\d(?![\w/:-])|(?<![\w.,/:-])\d(?![\w.,/:-])")
_CODE = re.compile(r"(?<![\w@])(?=[\w./-]*\d)[\w][\w./-]*\w(?![\w@])|(?<![\w@])\d(?![\w@])")


def find_rival(question: Question, fact: Fact, place: PlaceText) -> str | None:
    """Another value of the kind of a fact in a line that the question is about; None if there is none.

    Args:
        question: What was asked.
        fact: What was read.
        place: A passage that does not have the fact.
    """
    if question.is_empty or not _patterns_for(fact):
        return None
    head = index_words(place.head)
    # Bounded, since the patterns look ahead and the text is anybody's.
    for line in re.split(r"\n|(?<=[.!?])\s+(?=[^\W\d_])", place.text[:_MAX_SEARCHED]):
        line = line[:_MAX_LINE]
        if not line.strip() or line.startswith("#") or _LETTER_HEAD.match(line):
            continue
        if question.share_in([*head, *index_words(line)]) < _RIVAL_SHARE:
            continue
        if (other := find_other_value(fact, line)) is not None:
            return other
    return None


def find_other_value(fact: Fact, line: str) -> str | None:
    """Another value of the kind of a fact in a line; None if there is none, or if the kind has no usual spelling."""
    from bicameral.boundary._evidence import Evidence

    patterns = _patterns_for(fact)
    if not patterns:
        return None
    # Dates and times are numbers as well, and no rival of a number.
    rest = line if patterns[0] in (_DATE, _CLOCK) else _CLOCK.sub(" ", _find_dates_only(line))
    for pattern in patterns:
        for match in pattern.finditer(rest):
            if _is_value_like(match[0], fact) and not find_support(fact, Evidence(match[0])):
                return match[0].strip(" .,")
    return None


def _patterns_for(fact: Fact) -> tuple[re.Pattern[str], ...]:
    match fact.type_name, fact.value:
        case "email", _:
            return (_EMAIL,)
        case _, dt.date():
            return (_DATE,)
        case _, dt.time():
            return (_CLOCK,)
        case (("int" | "float" | "number" | "money"), _):
            return (_NUMBER,)
        case (("code" | "id" | "phone" | "iban"), _):
            return (_CODE,)
        case _, str() as text if any(character.isdigit() for character in text) and len(text.split()) <= 3:
            return (_DATE,) if _DATE.fullmatch(text) else (_CLOCK,) if _CLOCK.fullmatch(text) else (_CODE,)
        case _:
            return ()


def _find_dates_only(line: str) -> str:
    return re.sub(r"\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{2,4}|\d{1,2}/\d{1,2}/\d{2,4}|\b(?:19|20)\d{2}\b", " ", line)


def _is_value_like(written: str, fact: Fact) -> bool:
    """Whether something written could be a value of this kind: a month has a name, a code is about as long."""
    from bicameral.boundary._evidence import Evidence

    if isinstance(fact.value, dt.date):
        return any(Evidence(written).dates.named_days)
    text = str(fact.value)
    if fact.type_name in ("code", "id", "phone", "iban") or isinstance(fact.value, str):
        digits = sum(map(str.isdigit, written)), sum(map(str.isdigit, text))
        return min(digits) * 2 >= max(digits)
    return True

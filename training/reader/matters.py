"""The corpus of matters: messages in four languages, sentence by sentence, with what a summary keeps of each.

    @ name category [flag ...]      a matter
    en topic; title                 what it is about as a noun phrase, and a title
    - sentence => point             a sentence of the message, and what a summary says of it
    ? sentence => point             the sentence with the request
    * sentence                      all of it in one sentence
    + step; step                    what the reader of the message must do

Flags: `urgent`, `glad` (the writer is), `notice` (nobody writes it: it may also stand on a page).
The places: {S} writes the message and {P} is somebody else; {C}, {D} and {E} are days in their order, {T} is a time,
{A} an amount and {N} a number. They are the same in all languages: a summary may be in another one than its text.
"""

from __future__ import annotations

import datetime as dt
import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .facts import CORPUS, LANGUAGES, Language
from .values import person_name, spell_day, spell_time

_FRENCH_VOWELS = "AEIOUÉÈ"
_HELD_MATTERS = 2


@dataclass(frozen=True, slots=True)
class Telling:
    """What there is to say on one subject in one language: in the text, and in a reply about the text."""

    topic: str
    title: str
    sentences: tuple[str, ...]
    points: tuple[str, ...]
    one: str
    two: str
    wish: str = ""
    """What the sender asks for; empty if nothing is."""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """What a message or a note is about, told in four languages."""

    name: str
    tellings: dict[Language, Telling]
    category: str = ""
    flags: frozenset[str] = frozenset()
    sender: str = ""


@dataclass(frozen=True, slots=True)
class Matter:
    """A message with open places."""

    name: str
    category: str
    flags: frozenset[str]
    tellings: dict[Language, Telling]


@dataclass(frozen=True, slots=True)
class Places:
    """What is filled into the places of a matter or of a draft."""

    sender: str
    other: str
    days: tuple[dt.date, dt.date, dt.date]
    at: dt.time
    amount: int
    number: int
    has_weekday: bool = False

    def fill(self, text: str, language: Language) -> str:
        """A text with its places filled."""
        sender, other = self.sender.split()[0], self.other.split()[0]
        if language == "fr":
            for place, name in (("{S}", sender), ("{P}", other)):
                if name[0] in _FRENCH_VOWELS:
                    text = text.replace(f"de {place}", f"d'{place}").replace(f"que {place}", f"qu'{place}")
        amount = f"€{self.amount}" if language == "en" else f"{self.amount} €"
        filled = {
            "{S}": sender,
            "{P}": other,
            "{T}": spell_time(self.at, language),
            "{A}": amount,
            "{N}": str(self.number),
        }
        for place, day in zip(("{C}", "{D}", "{E}"), self.days, strict=True):
            filled[place] = spell_day(day, language, weekday=self.has_weekday)
        for place, words in filled.items():
            text = text.replace(place, words)
        return text


def draw_places(picks: random.Random, taken: Sequence[str] = ()) -> Places:
    """Names, days and numbers for the places of one message; the first names differ from those that are taken."""
    names: dict[str, str] = {}
    while len(names) < 2:
        name = person_name(picks)
        if name.split()[0] not in taken:
            names.setdefault(name.split()[0], name)
    sender, other = names.values()
    first = dt.date(2026, 1, 1) + dt.timedelta(picks.randrange(700))
    second = first + dt.timedelta(picks.randrange(2, 15))
    third = second + dt.timedelta(picks.randrange(2, 20))
    at = dt.time(picks.randrange(7, 21), picks.choice([0, 15, 30, 45]))
    amount, number = picks.randrange(12, 480), picks.randrange(3, 25)
    return Places(sender, other, (first, second, third), at, amount, number, picks.random() < 0.3)


@cache
def load_composing_words(language: Language) -> dict[str, Any]:
    """How summaries, drafts, translations and judgements are asked for, and what they are made of."""
    return tomllib.loads((CORPUS / "composed" / f"{language}.toml").read_text("utf-8"))


@cache
def load_matters() -> tuple[Matter, ...]:
    """All matters, in a fixed order."""
    return tuple(
        _read_matter(block.strip().splitlines())
        for path in sorted((CORPUS / "matters").glob("*.txt"))
        for block in path.read_text("utf-8").split("\n@ ")[1:]
    )


@cache
def held_matters() -> frozenset[str]:
    """The matters that are held back: no form of the training part has them."""
    order = sorted(load_matters(), key=lambda each: random.Random(f"held/{each.name}").random())
    return frozenset(each.name for each in order[:_HELD_MATTERS])


def make_subject(matter: Matter, places: Places) -> Subject:
    """A matter with its places filled, in all languages."""
    tellings: dict[Language, Telling] = {}
    for language, telling in matter.tellings.items():

        def fill(text: str, language: Language = language) -> str:
            return places.fill(text, language)

        tellings[language] = Telling(
            fill(telling.topic),
            fill(telling.title),
            tuple(map(fill, telling.sentences)),
            tuple(map(fill, telling.points)),
            fill(telling.one),
            fill(telling.two),
            fill(telling.wish),
            tuple(map(fill, telling.steps)),
        )
    return Subject(matter.name, tellings, matter.category, matter.flags, places.sender)


def training_matter(picks: random.Random) -> Subject:
    """Any message of the training part."""
    matters = [each for each in load_matters() if each.name not in held_matters()]
    return make_subject(picks.choice(matters), draw_places(picks))


def _read_matter(lines: list[str]) -> Matter:
    name, category, *flags = lines[0].split()
    starts = [number for number, line in enumerate(lines) if line[:2] in LANGUAGES and line[2] == " "]
    ends = [*starts[1:], len(lines)]
    tellings: dict[Language, Telling] = {
        language: _read_telling(lines[start:end]) for language, start, end in zip(LANGUAGES, starts, ends, strict=True)
    }
    return Matter(name, category, frozenset(flags), tellings)


def _read_telling(lines: list[str]) -> Telling:
    topic, _, title = lines[0][3:].partition("; ")
    told = [line[2:].split(" => ") for line in lines if line[:2] in ("- ", "? ")]
    wish = next((line.split(" => ")[1] for line in lines if line.startswith("? ")), "")
    one = next(line[2:] for line in lines if line.startswith("* "))
    steps = tuple(step for line in lines if line.startswith("+ ") for step in line[2:].split("; "))
    points = tuple(point for _, point in told)
    # The first and the last sentence of a message are what it is about and what is to come of it.
    two = f"{points[0]} {points[-1]}"
    return Telling(topic, title, tuple(sentence for sentence, _ in told), points, one, two, wish, steps)

"""The corpus: facts about classes of things, how they are asked for and stated, and nouns with their articles.

    = class                          then a thing a line: English | German | French | Spanish
    @ name kind types [flag ...]     a fact about things of the class
    en key: noun phrase; another     the field of a record, and the fact without its thing
    ? instruction                    with {nom}, {gen}, {acc}: the thing in a case
    - statement                      with {v}: the value;  `+` and `!` state that it is so, and that it is not
    = value; value                   the values of a kind that has no generator

Flags: `changes` (there may be an older value), `event` (it is the time of an event), `place` (the place of an event).
"""

from __future__ import annotations

import random
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

CORPUS = Path(__file__).with_name("corpus")
Language = Literal["en", "de", "fr", "es"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es")

_GERMAN = {"m": ("der", "des", "den"), "f": ("die", "der", "die"), "n": ("das", "des", "das")}
_ARTICLE = re.compile(r"^(?:the|der|die|das|le|la|les|el|los|las) |^l'")
_STRONG_ENDINGS = {r"^der (\w+e) (?=[A-Z])": r"\1r ", r"^die (\w+e)n (?=[A-Z])": r"\1 "}
_CLAUSE = re.compile(r",|^(?:what|was|ce qu|lo que|quien)|\b(?:it|qui|quien)\b")
"""Noun phrases that no genitive can follow."""
_CONTRACTIONS = {" de el ": " del ", " a el ": " al ", "A el ": "Al ", " de le ": " du ", " à le ": " au "}
_VOWELS = "aeiouyhâàéèêëîïôöûüœAEIOUYHÂÀÉÈÊËÎÏÔÖÛÜŒ"


@dataclass(frozen=True, slots=True)
class Thing:
    """A noun in one language, in the cases that statements use."""

    bare: str
    nom: str
    gen: str
    acc: str

    def fill(self, text: str, value: str = "") -> str:
        """A statement or an instruction about this thing."""
        first = self.nom[:1].upper() + self.nom[1:]
        places = {"{Nom}": first, "{nom}": self.nom, "{gen}": self.gen, "{acc}": self.acc, "{v}": value}
        for place, words in places.items():
            text = text.replace(place, words)
        for apart, together in _CONTRACTIONS.items():
            text = text.replace(apart, together)
        return text


def noun(language: Language, written: str) -> Thing:
    """A noun with its articles; `f Waschküche`, `m Schuppen/Schuppens` with the genitive where it differs."""
    if language == "en":
        return Thing(written, f"the {written}", f"of the {written}", f"the {written}")
    gender, _, words = written.partition(" ")
    bare, _, genitive = words.partition("/")
    match language:
        case "de":
            nominative, of, accusative = _GERMAN[gender]
            inflected = bare
            if gender == "m" and bare.split(" ")[0].endswith("e") and " " in bare:
                # An adjective before the noun: der botanische Garten, den botanischen Garten.
                inflected = bare.replace("e ", "en ", 1)
            strong = bare.replace("e ", "er ", 1) if inflected != bare else bare
            return Thing(strong, f"{nominative} {bare}", f"{of} {genitive or bare}", f"{accusative} {inflected}")
        case "fr":
            if bare[0] in _VOWELS and not bare.startswith("hangar"):
                return Thing(bare, f"l'{bare}", f"de l'{bare}", f"l'{bare}")
            article, of = ("le", "du") if gender == "m" else ("la", "de la")
            return Thing(bare, f"{article} {bare}", f"{of} {bare}", f"{article} {bare}")
        case "es":
            article, of = ("el", "del") if gender == "m" else ("la", "de la")
            return Thing(bare, f"{article} {bare}", f"{of} {bare}", f"{article} {bare}")


def person(language: Language, name: str) -> Thing:
    """A person as a thing that facts are about."""
    of = {"en": "of ", "de": "von ", "fr": "d'" if name[0] in _VOWELS else "de ", "es": "de "}[language]
    return Thing(name, name, f"{of}{name}", name)


@dataclass(frozen=True, slots=True)
class Wording:
    """A fact in one language."""

    key: str
    nouns: tuple[str, ...]
    asks: tuple[str, ...]
    says: tuple[str, ...]
    denials: tuple[str, ...]
    """Statements that it is not so, of a fact that is true or false."""
    values: tuple[str, ...]

    @property
    def label(self) -> str:
        """The fact as the label before its value."""
        phrase = self.nouns[0]
        # Without its article a German adjective has another ending: der letzte Tag, letzter Tag.
        for pattern, ending in _STRONG_ENDINGS.items():
            phrase = re.sub(pattern, ending, phrase)
        phrase = _ARTICLE.sub("", phrase)
        return phrase[:1].upper() + phrase[1:]

    @property
    def instructions(self) -> tuple[str, ...]:
        """All ways to ask, with the thing."""
        # A fact that is true or false is asked for with a whole clause.
        clauses = tuple(f"{each}: {{nom}}" for each in self.nouns if each not in self.phrases)
        return self.asks if self.denials else (*(f"{each} {{gen}}" for each in self.phrases), *clauses, *self.asks)

    @property
    def phrases(self) -> tuple[str, ...]:
        """The noun phrases that the thing can follow in the genitive."""
        return tuple(each for each in self.nouns if not _CLAUSE.search(each))


@dataclass(frozen=True, slots=True)
class Fact:
    """A kind of fact about the things of one class."""

    id: str
    kind: str
    types: tuple[str, ...]
    flags: frozenset[str]
    wordings: dict[Language, Wording]

    @property
    def group(self) -> str:
        return self.id.split(".")[0]


@dataclass(frozen=True, slots=True)
class ThingClass:
    """Things of one kind, with the facts about them; a class without things is one of people."""

    name: str
    things: tuple[dict[Language, Thing], ...]
    facts: tuple[Fact, ...]


@cache
def load_classes() -> tuple[ThingClass, ...]:
    """All classes of things with their facts, in a fixed order."""
    return tuple(each for path in sorted(CORPUS.glob("*.txt")) for each in _read_classes(path))


def load_facts() -> tuple[Fact, ...]:
    """All facts."""
    return tuple(fact for each in load_classes() for fact in each.facts)


@cache
def held_patterns() -> frozenset[str]:
    """The facts that are held back, one of each of these kinds; no form of the training part has them."""
    order = sorted(load_facts(), key=lambda fact: random.Random(f"held/{fact.id}").random())
    kinds = ("date", "money", "serial", "bool")
    return frozenset(next(fact.id for fact in order if fact.kind.split(":")[0] == kind) for kind in kinds)


@cache
def load_other_names() -> dict[str, dict[Language, Thing]]:
    """Other names of things, by their first English name."""
    listed: dict[str, list[str]] = tomllib.loads((CORPUS / "other_names.toml").read_text("utf-8"))
    return {
        name: {language: noun(language, each) for language, each in zip(LANGUAGES, written, strict=True)}
        for name, written in listed.items()
    }


@cache
def load_words(language: Language) -> dict[str, Any]:
    """Everything around the facts in one language: greetings, fillers, old and new, instructions to the reader."""
    return tomllib.loads((CORPUS / f"{language}.toml").read_text("utf-8"))


def _read_classes(path: Path) -> list[ThingClass]:
    blocks: list[list[str]] = []
    for line in path.read_text("utf-8").splitlines():
        # A list of values begins with the same sign as a class, and has several parts.
        if line.startswith("= ") and ";" not in line:
            blocks.append([line[2:]])
        elif line and not line.startswith("#"):
            blocks[-1].append(line)
    return [_read_class(lines) for lines in blocks]


def _read_class(lines: list[str]) -> ThingClass:
    name = lines[0].split()[0]
    starts = [number for number, line in enumerate(lines) if line.startswith("@ ")]
    things: list[dict[Language, Thing]] = []
    for line in lines[1 : starts[0]]:
        written = [each.strip() for each in line.split(" | ")]
        things.append({language: noun(language, each) for language, each in zip(LANGUAGES, written, strict=True)})
    ends = [*starts[1:], len(lines)]
    facts = [_read_fact(name, lines[start:end]) for start, end in zip(starts, ends, strict=True)]
    return ThingClass(name, tuple(things), tuple(facts))


def _read_fact(group: str, lines: list[str]) -> Fact:
    name, kind, types, *flags = lines[0][2:].split()
    starts = [number for number, line in enumerate(lines) if line[:2] in LANGUAGES and line[2] == " "]
    ends = [*starts[1:], len(lines)]
    wordings: dict[Language, Wording] = {}
    for language, start, end in zip(LANGUAGES, starts, ends, strict=True):
        key, _, nouns = lines[start][3:].partition(": ")
        by_sign = {sign: tuple(line[2:] for line in lines[start:end] if line[:2] == f"{sign} ") for sign in "?-+!="}
        values = tuple(part.strip() for line in by_sign["="] for part in line.split(";"))
        says = by_sign["-"] + by_sign["+"]
        wordings[language] = Wording(key, tuple(nouns.split("; ")), by_sign["?"], says, by_sign["!"], values)
    return Fact(f"{group}.{name}", kind, tuple(types.split(",")), frozenset(flags), wordings)

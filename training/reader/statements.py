"""Facts of one thing as a subject: what a text states of it, and the same facts in the words of a summary."""

from __future__ import annotations

import random
import re
from functools import cache

from .facts import LANGUAGES, Fact, Language, Thing, ThingClass, held_patterns, load_classes, load_words
from .matters import Subject, Telling, load_composing_words
from .values import make_value, restate_value

_FIRST_PERSON = re.compile(
    r"\b(?:I|[Ww]e|[Oo]ur|my|[Ii]ch|[Ww]ir|[Uu]ns\w*|mein\w*|[Jj]e|[Nn]ous|[Nn]otre|[Nn]os|mon|ma|[Nn]uestr\w+|mi|\w+mos|he)\b"
    r"|\b[JjMmTt]'"
)
_SMALL_IN_GERMAN = re.compile(
    r"(?:Der|Die|Das|Den|Dem|Ein|Eine|Einen|Ihn|Sie|Für|Zum|Am|Im|In|Nach|Bis|Man|Es|Kommt|Nichts|Sofort"
    r"|Zurückgeben|Zuständig|Nachgefüllt|Anstreichen)\b"
)
"""German words that begin a sentence and are written small within it; nouns and names are not."""


def plain_statement(fact: Fact) -> int | None:
    """The number of the first statement that is a whole sentence about the thing, in all languages."""
    for number in range(len(fact.wordings["en"].says)):
        said = [wording.says[number] for wording in fact.wordings.values()]
        if all(each.endswith(".") and ":" not in each and not _FIRST_PERSON.search(each) for each in said):
            return number
    return None


@cache
def plain_classes() -> tuple[tuple[ThingClass, tuple[tuple[Fact, int], ...]], ...]:
    """The classes with the facts that can be summarised, and the number of their statement; without those held back."""
    found: list[tuple[ThingClass, tuple[tuple[Fact, int], ...]]] = []
    for each in load_classes():
        facts = [fact for fact in each.facts if fact.id not in held_patterns() and fact.kind != "bool"]
        plain = [(fact, number) for fact in facts if (number := plain_statement(fact)) is not None]
        if each.things and len(plain) > 1:
            found.append((each, tuple(plain)))
    return tuple(found)


def make_fact_subject(picks: random.Random, text_language: Language) -> Subject:
    """Two or three facts about one thing; the text states them in any words, the summary in the plainest."""
    group, facts = picks.choice(plain_classes())
    chosen = picks.sample(facts, min(len(facts), picks.choice([2, 2, 3])))
    thing = picks.choice(group.things)
    # A sentence that begins with its value, which may be a name, is no second part of another one.
    chosen.sort(key=lambda each: not any(each[0].wordings[of].says[each[1]].startswith("{v}") for of in LANGUAGES))
    values = {fact.id: make_value(fact, text_language, picks) for fact, _ in chosen}
    tellings: dict[Language, Telling] = {}
    for language in LANGUAGES:
        points: list[str] = []
        sentences: list[str] = []
        for fact, number in chosen:
            written = restate_value(fact, values[fact.id], text_language, language)
            says = fact.wordings[language].says
            points.append(thing[language].fill(says[number], written))
            say = picks.choice(says) if language == text_language else says[number]
            sentences.append(_as_sentence(thing[language].fill(say, written)))
        tellings[language] = Telling(
            _topic(thing[language], language),
            _title(thing[language], [fact for fact, _ in chosen], language),
            tuple(sentences),
            tuple(points),
            join_sentences(points, language),
            f"{join_sentences(points[:-1], language)} {points[-1]}",
        )
    return Subject("+".join(sorted(values)), tellings)


def join_sentences(sentences: list[str], language: Language) -> str:
    """Sentences as one: two with `and`, more with semicolons. The first words that are no names are written small."""
    first, *others = [each.rstrip(".") for each in sentences]
    others = [lower_first(each, language) for each in others]
    if not others:
        return f"{first}."
    if len(others) == 1:
        return load_composing_words(language)["joined"].format(a=first, b=others[0]) + "."
    return (" ; " if language == "fr" else "; ").join([first, *others]) + "."


def lower_first(sentence: str, language: Language) -> str:
    """A sentence as the part of another one; it begins with no name, unless it is a German one."""
    if language == "de" and not _SMALL_IN_GERMAN.match(sentence):
        return sentence
    return sentence[0].lower() + sentence[1:]


def _as_sentence(said: str) -> str:
    return said if said[-1] in ".!?" else f"{said}."


def _topic(thing: Thing, language: Language) -> str:
    return thing.bare if language == "de" else thing.nom


def _title(thing: Thing, facts: list[Fact], language: Language) -> str:
    labels = [fact.wordings[language].label for fact in facts[:2]]
    if language != "de":
        labels = [label[0].lower() + label[1:] for label in labels]
    colon = " : " if language == "fr" else ": "
    return f"{thing.bare[0].upper()}{thing.bare[1:]}{colon}{load_words(language)['and'].join(labels)}"

"""The facts in a text that a planner composes: what must be the same in two texts that say the same thing.

A request often leaves the wording of a subject, a message or a heading to the planner. Two wordings are one text if
they agree in what a person would check: numbers and times, addresses and paths, quoted text, what the request mentions,
and whether something is denied. Everything else is free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bicameral.planning._intent_document import Mention
from bicameral.text import text_stems

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ADDRESS = re.compile(r"\S*(?:@|/|\w\.[a-zA-Z]\w)\S*")
_QUOTED = re.compile(r"[\"“„«]\s*([^\"”“»\n]{1,200}?)\s*[\"”“»]")
_NEGATION = re.compile(
    r"\b(?:no|not|nothing|none|never|nobody|without|cannot|nicht|nichts|kein\w*|nie|niemand|ohne|ne|pas|aucun\w*|rien|"
    r"jamais|sans|nada|ningun\w*|ningún|nunca|sin|nadie)\b|n['’]t\b|\bn['’]",
    re.IGNORECASE,
)
_DAY_STEMS = frozenset(
    text_stems(
        "monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday "
        "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag heute morgen gestern "
        "lundi mardi mercredi jeudi vendredi samedi dimanche aujourd'hui demain hier "
        "lunes martes miércoles jueves viernes sábado domingo hoy mañana ayer"
    )
)


def text_facts(text: str, mentions: Iterable[Mention] = ()) -> frozenset[str]:
    """The facts of a text that a planner composed; empty for mere wording.

    Args:
        text: The text.
        mentions: What the request mentions: a text that has one says something else than a text without it.

    Example:
        >>> text_facts("Friday is fine for me.") == text_facts("I am free on Friday.")
        True
        >>> text_facts("See you at 18:00") == text_facts("See you at 19:00")
        False
    """
    said = " ".join(text.split()).casefold()
    stems = text_stems(text)
    found = {f"mention {words}" for each in mentions if (words := _plain(each.words)) and words in said}
    found |= {f"number {each}" for each in _NUMBER.findall(text)}
    found |= {f"address {each.strip('.,;:!?()').casefold()}" for each in _ADDRESS.findall(text)}
    found |= {f"quoted {_plain(each)}" for each in _QUOTED.findall(text)}
    found |= {f"day {stem}" for stem in _DAY_STEMS & set(stems)}
    if _NEGATION.search(text):
        found.add("denied")
    return frozenset(found)


def _plain(words: str) -> str:
    return " ".join(words.split()).casefold().strip(" .,;:!?")

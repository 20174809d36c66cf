"""The facts in a text that a planner composes: what must be the same in two texts that say the same thing.

A request often leaves the wording of a subject, a message or a heading to the planner. Two wordings are one text if
they agree in what a person would check: numbers and times, addresses and paths, quoted text, what the request mentions,
and whether something is denied. Everything else is free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bicameral.days import WEEKDAYS
from bicameral.planning._intent_document import Mention
from bicameral.planning._language import fold
from bicameral.planning._lexicon import NEGATIONS
from bicameral.text import lazy_pattern

_NUMBER = lazy_pattern(r"\d+(?:[.,:]\d+)*")
_ADDRESS = lazy_pattern(r"\S*(?:@|/|\w\.[a-zA-Z]\w)\S*")
_QUOTED = lazy_pattern(r"[\"“„«]\s*([^\"”“»\n]{1,200}?)\s*[\"”“»]")
_NEGATION = lazy_pattern(rf"\b(?:{NEGATIONS}|pas)\b|n['’]t\b|\bn['’]", re.IGNORECASE)
_DAYS = frozenset(WEEKDAYS) | frozenset(
    "today tomorrow yesterday heute morgen gestern aujourd'hui demain hier hoy manana ayer".split()
)
_WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


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
    found = {f"mention {words}" for each in mentions if (words := _plain(each.words)) and words in said}
    found |= {f"number {each}" for each in _NUMBER.findall(text)}
    found |= {f"address {each.strip('.,;:!?()').casefold()}" for each in _ADDRESS.findall(text)}
    found |= {f"quoted {_plain(each)}" for each in _QUOTED.findall(text)}
    words = _WORD.findall(fold(text))
    found |= {f"day {day}" for word in words for day in (word, word.removesuffix("s")) if day in _DAYS}
    if _NEGATION.search(text):
        found.add("denied")
    return frozenset(found)


def _plain(words: str) -> str:
    return " ".join(words.split()).casefold().strip(" .,;:!?")

"""Which passage a fact stands in: the check behind a citation.

A value that the quarantined model read is divided into facts, its scalar parts. A fact is *verbatim* in a passage if it
occurs there in a usual spelling (`Evidence`). A sentence that the model worded itself is supported by a passage that
has all its numbers and most of its words. A yes, a choice or a duration cannot be searched for at all.

The passages are untrusted, so a citation makes nothing trusted: it says where to look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bicameral.boundary._verbatim_check import SEARCHABLE_TYPES, is_in_text, scalar_parts
from bicameral.text import FUNCTION_WORDS, index_words, stems_of
from bicameral.types import Type

if TYPE_CHECKING:
    from bicameral.boundary._evidence import Evidence

SupportKind = Literal["verbatim", "words"]

MAX_FACTS = 50
"""Facts of one value that are looked for; a list of hundreds is not read with its citations."""
_WORD_SHARE = 2 / 3
"""How many of the words of a sentence a passage must have to support it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A scalar part of a value that was read, with its place in the value and the name of its type."""

    place: str
    value: Any
    type_name: str


def find_facts(value: Any, wanted: Type, most: int = MAX_FACTS) -> list[Fact]:
    """The facts of a value that can be looked for in a text, up to `most`."""
    found: list[Fact] = []
    for place, part, name in scalar_parts(value, wanted):
        if (name in SEARCHABLE_TYPES or name == "Any") and str(part).strip():
            found.append(Fact(place, part, name))
        if len(found) == most:
            break
    return found


def find_support(fact: Fact, evidence: Evidence) -> SupportKind | None:
    """How a text supports a fact; None if it does not, or if it could not be searched to its end."""
    if isinstance(fact.value, str) and fact.type_name in ("str", "Any"):
        # With edges, unlike in the boundary: a passage with 4711 says nothing about 471.
        if evidence.has_phrase(fact.value):
            return "verbatim"
        return "words" if _has_most_words(fact.value, evidence) else None
    return "verbatim" if is_in_text(fact.value, fact.type_name, evidence) else None


def find_line(fact: Fact, text: str) -> tuple[int, str] | None:
    """The first line of a text that supports a fact, with its number from 0."""
    from bicameral.boundary._evidence import Evidence

    for number, line in _text_lines(text):
        if find_support(fact, Evidence(line)):
            return number, line
    return None


def find_quote(fact: Fact, text: str) -> tuple[int, str]:
    """The first line of a passage that supports a fact, with its number from 0; else its first line with words."""
    if (found := find_line(fact, text)) is not None:
        return found
    lines = _text_lines(text)
    plain = [each for each in lines if not each[1].startswith("#")]
    return (plain or lines or [(0, "")])[0]


def _text_lines(text: str) -> list[tuple[int, str]]:
    return [(number, line.strip()) for number, line in enumerate(text.split("\n")) if line.strip()]


def _has_most_words(sentence: str, evidence: Evidence) -> bool:
    from bicameral.boundary._evidence import find_numbers

    # A sentence with a number that the passage lacks is not supported, however many words they share.
    if not all(evidence.has_number(float(number)) for number in find_numbers(sentence.casefold())):
        return False
    asked = {word for word in index_words(sentence) if word not in FUNCTION_WORDS and not word.isdecimal()}
    if not asked:
        return False
    there = set(index_words(evidence.text))
    stems = {stem for word in there for stem in stems_of(word)}
    having = sum(word in there or not stems.isdisjoint(stems_of(word)) for word in asked)
    return having >= _WORD_SHARE * len(asked)

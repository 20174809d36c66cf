"""Characters that nobody sees, that turn the writing direction, or that look like others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

from bicameral.display import CONTROLS, DIRECTIONS, INVISIBLE, JOINERS, MOST_MARKS, NO_CHARACTERS, PRIVATE, SELECTORS

from ._marks import Mark

TAGS = range(0xE0000, 0xE0080)
_SELECTORS = range(0xE0100, 0xE01F0)

# The marks of one direction (an Arabic letter mark and its like) are quieter than what embeds or overrides one.
_DIRECTION_MARKS = "\u061c\u200e\u200f"

UNSEEN = re.compile(f"[{INVISIBLE}{JOINERS}{SELECTORS}{PRIVATE}{NO_CHARACTERS}{_DIRECTION_MARKS}]+")
TURNING = re.compile(f"(?![{_DIRECTION_MARKS}])[{DIRECTIONS}]+")
CONTROL = re.compile(f"(?![\r\x85])[{CONTROLS}]")

_PILED = re.compile(f"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]{{{MOST_MARKS + 1},}}")

_LATIN = "A-Za-z\u00c0-\u024f"
_OTHER = "\u0370-\u03ff\u0400-\u052f\u0531-\u058f\u13a0-\u13ff"
_MIXED = re.compile(f"[{_LATIN}][{_OTHER}]|[{_OTHER}][{_LATIN}]")
_LOOKALIKE = re.compile(f"[{_OTHER}]")
_LETTER = re.compile(f"[{_LATIN}{_OTHER}]")
_STYLES = "\uff21-\uff3a\uff41-\uff5a\u24b6-\u24e9\U0001d400-\U0001d7ff\U0001f130-\U0001f189"
_STYLED = re.compile(f"[{_STYLES}]")
_STYLED_WORD = re.compile(f"[{_STYLES}]{{4,}}")
_SPACED = re.compile(r"(?<!\w)[^\W\d_](?:[ .*_·-][^\W\d_]){7,}(?!\w)")

_MOST = 1_000
"""Marks of one kind in one text; it is suspicious long before."""
_NEAR = 40
"""How far a word is followed to both sides."""


def character_marks(text: str, alphabet: str) -> Iterator[Mark]:
    """Marks of single characters and of runs of them; `alphabet` is each character of the text once, without ASCII."""
    if UNSEEN.search(alphabet):
        for found in islice(UNSEEN.finditer(text), _MOST):
            yield _unseen(text, found.start(), found.end())
    if _PILED.search(text):
        for found in islice(_PILED.finditer(text), _MOST):
            yield Mark("invisible", found.start(), found.end(), 0.3, "many marks on one letter")
    if TURNING.search(alphabet):
        for found in islice(TURNING.finditer(text), _MOST):
            yield Mark("direction", found.start(), found.end(), 0.5, "characters that turn the writing direction")
    if _LOOKALIKE.search(alphabet):
        yield from islice(_mixed(text), _MOST)
    if _STYLED.search(alphabet):
        for found in islice(_STYLED_WORD.finditer(text), _MOST):
            yield Mark("styled", found.start(), found.end(), 0.4, "letters in a style of their own")


def control_marks(text: str) -> Iterator[Mark]:
    for found in islice(CONTROL.finditer(text), _MOST):
        yield Mark("control", found.start(), found.end(), 0.3, "control characters")


def spaced_marks(text: str) -> Iterator[Mark]:
    for found in islice(_SPACED.finditer(text), _MOST):
        yield Mark("spaced", found.start(), found.end(), 0.3, "words spelled out letter by letter")


def _unseen(text: str, start: int, end: int) -> Mark:
    run = text[start:end]
    if any(ord(character) in TAGS for character in run):
        return Mark("invisible", start, end, 0.9, "tag characters, which carry text that nobody sees")
    if sum(ord(character) in _SELECTORS for character in run) > 1:
        return Mark("invisible", start, end, 0.8, "variation selectors in a row, which can carry text")
    if end - start >= 8:
        return Mark("invisible", start, end, 0.7, "many invisible characters in a row")
    inside_a_word = text[start - 1 : start].isascii() and text[start - 1 : start].isalpha()
    if inside_a_word and text[end : end + 1].isascii() and text[end : end + 1].isalpha() and run != "\u00ad":
        return Mark("invisible", start, end, 0.5, "an invisible character inside a word")
    return Mark("invisible", start, end, 0.05, "an invisible character")


def _mixed(text: str) -> Iterator[Mark]:
    until = 0
    for found in _MIXED.finditer(text):
        if found.start() < until:
            continue
        start, until = found.start(), found.end()
        while start > max(0, found.start() - _NEAR) and _LETTER.match(text[start - 1]):
            start -= 1
        while until < min(len(text), found.end() + _NEAR) and _LETTER.match(text[until]):
            until += 1
        if until - start >= 4:
            yield Mark("mixed-script", start, until, 0.5, "a word of letters from two scripts")


def tagged_text(text: str) -> str:
    """What the tag characters of a text say."""
    return "".join(chr(ord(each) - 0xE0000) for each in text if 0xE0020 <= ord(each) <= 0xE007E)


_LIKE = dict(
    zip(
        "аеорсухіјѕԁһԛԝьпгтимнвкАВЕКМНОРСТХУІЈЅαεορτυνικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "aeopcyxijsdhqwbnrtumhbkABEKMHOPCTXYIJSaeoptuvikABEZHIKMNOPTYX",
        strict=True,
    )
)


def plain_skeleton(text: str) -> tuple[str, list[int]]:
    """The text as it looks, in plain letters and without what nobody sees, and where each letter came from."""
    letters: list[str] = []
    places: list[int] = []
    known: dict[str, str] = {}
    for place, character in enumerate(text):
        if character.isascii():
            plain = character
        elif (plain := known.get(character, "?")) == "?":
            plain = known[character] = _plain(character)
        if plain:
            letters.append(plain)
            places.append(place)
    return "".join(letters), places


def _plain(character: str) -> str:
    if UNSEEN.match(character) or TURNING.match(character):
        return ""
    like = _LIKE.get(character) or unicodedata.normalize("NFKC", character)
    return like if len(like) == 1 else character

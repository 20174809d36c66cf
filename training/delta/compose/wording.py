"""Sentences as people write them: punctuation set right, or typed in a hurry."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterable, Mapping

_GLUED = re.compile(r"\s*\x08")
_SPACES = re.compile(r"[ \t]+")
_COMMA_BEFORE_END = re.compile(r",(\s*)(?=[.?!:;,)]|$)")
_Y_BEFORE_I = re.compile(r" y (?=h?[ií](?!a|e|o))", re.IGNORECASE)
_O_BEFORE_O = re.compile(r" o (?=h?[oó])", re.IGNORECASE)
_SLOT = re.compile(r"<[^<>]+>")
_WORD = re.compile(r"[^\W\d_]{6,}")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


def tidy(text: str, language: str) -> str:
    """One space between words, and no comma of a clause where the sentence ends anyway."""
    text = _SPACES.sub(" ", _GLUED.sub("", text)).strip()
    text = _COMMA_BEFORE_END.sub(r"\1", text)
    if language == "es":
        text = _Y_BEFORE_I.sub(" e ", _O_BEFORE_O.sub(" u ", text))
    return text


def capitalise(text: str) -> str:
    """The text with a capital where its first letter is; a slot stays as it is."""
    for place, character in enumerate(text):
        if character == "<":
            return text
        if character.isalpha():
            return text[:place] + character.upper() + text[place + 1 :]
    return text


def hurried(text: str, language: str, casual: Mapping[str, str], keep: Iterable[str], picks: random.Random) -> str:
    """The text in chat style: small letters, short words, few marks, now and then a slip.

    Args:
        casual: Words with what people type instead.
        keep: Texts that stay as they are besides slots: the days, which the plan's slots repeat.
    """
    parts = _protected(tidy(text, language), keep)
    plain_accents = picks.random() < (0.5 if language in ("fr", "es") else 0.3)
    short, commas, marks = picks.random() < 0.6, picks.random() < 0.5, picks.random()
    for number, (part, fixed) in enumerate(parts):
        if fixed:
            continue
        part = part.lower().replace("¿", "").replace("¡", "")
        if short:
            for word, typed in casual.items():
                part = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", typed, part)
        if commas:
            part = part.replace(",", "")
        if plain_accents:
            part = _plain(part, language)
        parts[number] = part, False
    if picks.random() < 0.2:
        _slip(parts, picks)
    joined = "".join(part for part, _ in parts).rstrip(".").rstrip()
    if marks < 0.3:
        joined = joined.rstrip("?").rstrip()
    return joined


def _protected(text: str, keep: Iterable[str]) -> list[tuple[str, bool]]:
    """The text in parts, with whether each must stay as it is."""
    fixed = sorted(filter(None, keep), key=len, reverse=True)
    pattern = re.compile("|".join([_SLOT.pattern, *map(re.escape, fixed)]))
    parts: list[tuple[str, bool]] = []
    end = 0
    for match in pattern.finditer(text):
        parts += [(text[end : match.start()], False), (match[0], True)]
        end = match.end()
    return [*parts, (text[end:], False)]


def _plain(text: str, language: str) -> str:
    if language == "de":
        return text.translate(_UMLAUTS)
    return "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))


def _slip(parts: list[tuple[str, bool]], picks: random.Random) -> None:
    """Two letters in the middle of a long word change places; the first word stays, which mostly is the verb."""
    words = [
        (number, match)
        for number, (part, fixed) in enumerate(parts)
        if not fixed
        for match in _WORD.finditer(part)
        if number or match.start()
    ]
    if not words:
        return
    number, match = picks.choice(words)
    at = match.start() + picks.randrange(1, len(match[0]) - 2)
    part = parts[number][0]
    parts[number] = part[:at] + part[at + 1] + part[at] + part[at + 2 :], False

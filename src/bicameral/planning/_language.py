"""The language of a request, and its letters without case and accents."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from bicameral.planning._order_verbs import ORDERS, Language

_FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    "en": frozenset(
        "the of to and is are what which how who when my me it that this from in for with please all each if then "
        "pls there did does do not by or as on at be has have was i you".split()
    ),
    "de": frozenset(
        "der die das den dem des ein eine einen einem einer und ist sind was welche wie wer wann mein meine mir mich "
        "mit von vom zu zum zur auf aus fur bitte alle nicht im am an ob dass es hat habe wurde wurden ich du kannst "
        "sie ihm ihr sag zeig uber nach bei wo ohne in kalender termin termine datei ordner".split()
    ),
    "fr": frozenset(
        "le la les l' de du des un une et est sont que quel quelle quels quelles qui quand mon ma mes moi avec pour "
        "dans sur sous ce cette ces au aux je tu il elle en y a ne n' pas combien comment s' d' m' c' qu' sans ai "
        "peux stp svp ds rdv".split()
    ),
    "es": frozenset(
        "el la los las de del un una y es son que cual cuales quien cuando mi mis me con para en por al este esta "
        "lo se no a cuanto cuantas cuantos donde como sin favor puedes quiero he tiene hay".split()
    ),
}


@lru_cache(maxsize=64)
def guess_language(text: str) -> Language:
    """The language whose function words a text has most of; English where none has more.

    Example:
        >>> guess_language("Schick die Liste an Kim")
        'de'
    """
    # A single letter is French only before an apostrophe: in a hurry `d` is Spanish for `de` as well.
    words = re.findall(r"(?<![a-z])[lnsdmc]'|qu'|[a-z]+", fold(text))
    counts: dict[Language, int] = {
        language: sum(word in known for word in words) for language, known in _FUNCTION_WORDS.items()
    }
    # Verbs of a language count, too: "Guarda gastos.csv" has no function word.
    # `mail` is one in German, and a word of all four.
    verbs = re.sub(r"\bmail\b", "    ", fold(text))
    for language, orders in ORDERS.items():
        counts[language] += sum(bool(each.pattern.search(verbs)) for each in orders)
    if re.search(r"[äöüß]", text.lower()):
        counts["de"] += 1
    if re.search(r"[ñ¿¡]", text.lower()):
        counts["es"] += 2
    if re.search(r"[èêçœ]|\w[-’'](?:moi|toi|le|la|les|lui|tu|vous)\b", text.lower()):
        counts["fr"] += 1
    return max(counts, key=lambda language: (counts[language], language == "en"))


def fold(text: str) -> str:
    """A text in small letters without accents, character by character: places in it are those of the text."""
    return "".join(_fold_character(character) for character in text)


@cache
def _fold_character(character: str) -> str:
    plain = unicodedata.normalize("NFD", character.lower())[:1]
    return {"ß": "s", "’": "'", "œ": "o", "ø": "o"}.get(character.lower(), plain) or character

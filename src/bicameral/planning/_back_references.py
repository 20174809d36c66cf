"""Words that speak of an earlier result: `mail it to Kim`, `sort them by date`, `Wie viele davon sind offen?`.

A pronoun counts if nothing in the same request says what it stands for: no file, no quoted text and no noun before it.
The rules know English, German, French and Spanish, and where they are in doubt a request stands for itself.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from bicameral.planning._language import fold
from bicameral.planning._lexicon import DETERMINERS, POLITE, PREPOSITIONS, PRONOUNS, split_tokens
from bicameral.planning._mentions import find_mentions
from bicameral.text import lazy_pattern

_MAX_BEFORE = 2
"""The most words with a meaning of their own before the pronoun: the verb, and one more (`write down`, `how many`)."""

_END = (
    r"(?=\s*(?:$|[.,;!?]|\s(?:to|in|into|as|by|for|from|with|on|at|under|and|then|please|too|again|now|out|up|down|"
    r"over|back|off|all|both|are|is|were|was|have|has|had|do|does|did|cost|"
    r"an|nach|als|per|unter|auf|zu|zum|zur|von|mit|fur|bitte|und|dann|ins?|im|ab|aus|"
    r"a|au|aux|dans|sous|sur|par|pour|avec|en|et|puis|de|"
    r"al|con|como|por|para|y|sobre|bajo)\b))"
)
_NOUNS = (
    r"results?|answers?|outputs?|totals?|sums?|counts?|numbers?|figures?|lists?|tables?|rows?|lines?|entries|items?|"
    r"texts?|summar(?:y|ies)|mails?|messages?|events?|dates?|names?|amounts?|ones?"
)
_NOUNS_DE = (
    r"ergebnis(?:se)?|antwort(?:en)?|summen?|zahl(?:en)?|listen?|tabellen?|zeilen?|eintrage?|texte?|zusammenfassung|"
    r"mails?|nachrichten?|termine?|betrage?|betrag"
)
_NOUNS_FR = (
    r"resultats?|reponses?|totaux|total|sommes?|nombres?|listes?|tableaux?|lignes?|entrees?|textes?|resumes?|messages?|"
    r"mails?|dates?|montants?"
)
_NOUNS_ES = (
    r"resultados?|respuestas?|total(?:es)?|sumas?|numeros?|listas?|tablas?|filas?|lineas?|entradas?|textos?|resumen|"
    r"mensajes?|correos?|fechas?|importes?"
)
_ORDINALS = "first|last|top|newest|oldest|latest|largest|smallest|biggest|highest|lowest"
_SPANISH_VERBS = (
    r"(?:envia|reenvia|manda|guarda|ordena|imprime|escribe|pon|muestra|suma|cuenta|filtra|copia|traduce|resume|anota|apunta|"
    r"agrega|anade|mueve|pasa|agrupa|compara|redondea|clasifica)"
)
_REFERENCES: tuple[tuple[re.Pattern[str], bool | None], ...] = tuple(
    (lazy_pattern(pattern), many)
    for pattern, many in (
        # English
        (rf"\b(?P<word>it|this|that){_END}", False),
        (rf"\b(?P<word>them|these|those){_END}", True),
        (rf"\b(?P<word>(?:these|those)\s+(?:{_NOUNS})){_END}", True),
        (rf"\b(?P<word>(?:this|that)\s+(?:{_NOUNS})){_END}", False),
        (rf"\b(?P<word>the\s+(?:result|answer|output|total|sum)){_END}", False),
        (rf"\b(?P<word>the\s+results){_END}", None),
        (r"\b(?P<word>the\s+ones)\b", True),
        (rf"\b(?P<word>the\s+(?:{_ORDINALS})\s+(?:one|two|three|four|five|ten|\d+)){_END}", True),
        # German. `das`, `die` and `sie` are articles or address somebody as well.
        (rf"\b(?P<word>es|dies|das|dieses){_END}", False),
        (rf"\b(?P<word>sie|die|diese){_END}", True),
        (r"\b(?P<word>davon)\b", True),
        (rf"\b(?P<word>(?:das|dieses)\s+ergebnis){_END}", False),
        (rf"\b(?P<word>(?:die|diese)\s+ergebnisse){_END}", None),
        (rf"\b(?P<word>diese[nrs]?\s+(?:{_NOUNS_DE})){_END}", None),
        # French
        (r"\w-(?P<word>le|la)\b(?!-)", False),
        (r"\w-(?P<word>les)\b(?!-)", True),
        (r"\w-(?:le|la|les)-(?P<word>lui|leur)\b", False),
        (rf"\b(?P<word>ca|cela|ceci){_END}", False),
        (rf"\b(?P<word>(?:le|ce)\s+resultat|cette\s+reponse){_END}", False),
        (rf"\b(?P<word>(?:ces|cette|cet|ce)\s+(?:{_NOUNS_FR})){_END}", None),
        (r"\b(?P<word>d'entre\s+(?:eux|elles))\b", True),
        # Spanish
        (rf"\b{_SPANISH_VERBS}(?:me|se|le|les)?(?P<word>lo|la)\b", False),
        (rf"\b{_SPANISH_VERBS}(?:me|se|le|les)?(?P<word>los|las)\b", True),
        (rf"\b(?P<word>esto|eso|ello){_END}", False),
        (rf"\b(?P<word>el\s+resultado|esa\s+respuesta){_END}", False),
        (rf"\b(?P<word>es[aeot]s?\s+(?:{_NOUNS_ES})|est[aeo]s?\s+(?:{_NOUNS_ES})){_END}", None),
        (r"\b(?P<word>de\s+(?:ellos|ellas))\b", True),
    )
)
_NO_MEANING = (
    PREPOSITIONS
    | DETERMINERS
    | PRONOUNS
    | POLITE
    | frozenset(
        "now then and but also again next what which who how many much of is are do does did the "
        "jetzt nun dann und aber auch noch nochmal mal wie viel viele welche welcher was ist sind "
        "maintenant alors et mais aussi combien quel quelle quels quelles lesquels lesquelles "
        "ahora entonces y pero tambien también cuantos cuántos cuantas cuántas cuales cuáles que qué cual cuál".split()
    )
)
_ANTECEDENTS = ("file", "folder", "link", "quoted", "mail", "event", "table")


@dataclass(frozen=True, slots=True)
class BackReference:
    """A word that speaks of an earlier result; `many` if it speaks of several things."""

    word: str
    many: bool


def find_back_reference(text: str, today: dt.date) -> BackReference | None:
    """The word of a request that speaks of an earlier result; None if the request stands for itself.

    Example:
        >>> find_back_reference("now mail it to Kim", today)
        BackReference(word='it', many=False)
    """
    folded = fold(text)
    found = [
        (match.start("word"), -match.end("word"), match["word"], many)
        for pattern, many in _REFERENCES
        for match in pattern.finditer(folded)
    ]
    for start, _, word, many in sorted(found, key=lambda each: each[:2]):
        if not _has_antecedent(text, start, today):
            plural = word.endswith("s") and word.split()[-1] not in ("es", "this", "das", "dies")
            return BackReference(text[start : start + len(word)], plural if many is None else many)
    return None


def _has_antecedent(text: str, start: int, today: dt.date) -> bool:
    """Whether something before the pronoun may be what it stands for."""
    mentions = [each for each in find_mentions(text, today) if each.start < start]
    if any(each.kind in _ANTECEDENTS for each in mentions):
        return True
    people = [each for each in mentions if each.kind in ("person", "address", "day", "period")]
    before = [
        token
        for token in split_tokens(text[:start])
        if token.is_word
        and token.lower not in _NO_MEANING
        and not any(each.start <= token.start < each.end for each in people)
    ]
    return len(before) > _MAX_BEFORE

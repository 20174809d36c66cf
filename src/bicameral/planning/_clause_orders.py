"""Orders that take a whole clause to tell: separable verbs, addressees, and files that something is to become.

`effects_in_words` looks for single verbs. Here a clause must begin with the order (`Ask Kim whether …`, `Trag … ein`),
so that a question or a report with the same words (`What did Kim ask?`, `Wer hat mich eingeladen?`) orders nothing.
What is found here allows an effect and never requires one.
"""

from __future__ import annotations

import re

from bicameral.planning._language import Language, guess_language, spelled_as
from bicameral.planning._non_orders import without_drafts_and_prohibitions, without_texts
from bicameral.text import lazy_pattern
from bicameral.tools import Effect

# Where an order may begin: at the start of a clause, after politeness, after a conjunction.
_START = (
    r"(?:^|(?<=[.!?;:,\n(]))\s*(?:(?:and|then|please|pls|also|otherwise|und|bitte|dann|sonst|auch|et|puis|sinon|ensuite|"
    r"y|e|luego|por\sfavor|s'il\s(?:te|vous)\splait)\s+)*|\b(?:and|then|please|und|bitte|dann|sonst|et|puis|y|luego)\s+"
)
_REST = r"[^.!?;\n]*?"
_FILE = r"\bq{3,}"
_PEOPLE = (
    r"(?:team|group|members?|parents?|customers?|clients?|neighbou?rs?|guests?|players?|singers?|suppliers?|tenants?|"
    r"landlords?|colleagues?|everyone|everybody|them|him|all\s+of\s+them|those|hotels?|teachers?|students?)"
)
_DATIVE = r"(?:allen|den|dem|der|jedem|jeder|ihm|ihr|ihnen|meine[mr]|unsere[mnr])"

_ORDERS: dict[Language, dict[Effect, tuple[str, ...]]] = {
    "en": {
        "send": (
            r"ask\s+(?!(?:me|us|yourself|when|where|who|why|what|which|how)\b)\w",
            r"(?:excuse|offer)\s+(?!me\b|us\b|you\b)\w",
            rf"report\b{_REST}\bto\s+(?!me\b|us\b|q{{3,}})\w",
            rf"write\s+(?:(?:the|my|our|their|his|her|each|every|all|all\s+the)\s+)?{_PEOPLE}\b",
            r"write\s+(?:it|this|that|those|these)\s+to\s+(?:them|him|her|\w+s)\b",
        ),
        "write": (rf"[^.!?;\n]*\b(?:as|into|in\s+a\s+(?:new\s+)?(?:file|table))\s+{_FILE}",),
    },
    "de": {
        "send": (
            rf"lade?\b{_REST}\bein\b",
            r"frage?\s+(?!mich\b|dich\b|ich\b)\w",
            # `den` may be an accusative: `Sag den Termin ab` cancels it and writes nobody.
            rf"sage?\s+(?:bitte\s+)?(?!den\b){_DATIVE}\b{_REST}\b(?:ab|zu)\b",
            # `Sag Kim: bin um acht da`.
            r"sage?\s+(?!mir\b|uns\b)\w+(?:\s+\w+){0,2}\s*:",
            rf"schreibe?\s+{_DATIVE}\b(?!\s+reihe\b)",
            r"(?:mahne?|gratuliere?|entschuldige?|erinnere?|danke?)\s+(?!mich\b|mir\b|uns\b|dir\b|dich\b)\w",
            rf"[^.!?;\n]*\banschreiben\b(?={_REST}$|[.,;!?])",
        ),
        "write": (
            rf"(?:trage?|lade?)\b{_REST}\bein\b",
            r"(?:ubertrage?|ubernimm)\b[^.!?;\n]*\bin\b",
            r"erinnere?\s+(?:mich|uns)\s+an\b",
            rf"schiebe?\b{_REST}\b(?:nach\s+hinten|nach\s+vorn\w*|auf)\b",
            rf"(?:mache?|erzeuge?)\b{_REST}\b(?:kopie|sicherungskopie)\b",
            rf"(?:mache?|fasse?|schreibe?|stelle?)\b{_REST}{_FILE}",
            rf"[^.!?;\n]*\bals\s+{_FILE}",
        ),
    },
    "fr": {
        "send": (r"(?:relance|relancez|invite|invitez)(?:-\w+)?\s+(?!-?moi\b)\w",),
        "write": (
            r"(?:decale|decalez|rallonge|rallongez|repousse|repoussez|avance|avancez|raccourcis|bloque|bloquez)\b",
            r"(?:prends|prenez)\s+(?:un\s+)?rendez-vous\b",
            r"(?:change|changez)\s+(?:le|la|l'|les)\b",
            r"(?:fais|faites)\s+une\s+copie\b",
            r"(?:invite|invitez)\b",
            rf"(?:recapitule|recapitulez|rassemble|rassemblez|fais|faites|resume|resumez)\b(?!-\w+\s+s?a?voir\b){_REST}{_FILE}",
        ),
    },
    "es": {
        "send": (r"(?:invita(?:le|les)?\s+(?:por\s+correo\s+)?(?:a|al)|invitalos|invitalas)\b",),
        "write": (
            r"(?:alarga|retrasa|adelanta|acorta)(?:lo|la|los|las)?\b",
            r"invita\s+(?:a|al)\b",
            rf"(?:junta|agrupa|une|reune|prepara)\b{_REST}(?:{_FILE}|\bcarpetas?\b|\bsubcarpetas?\b|\bmismo\s+dia\b)",
            rf"(?:pasa|pasalo|pasala|pasalos|pasalas)\b{_REST}\b(?:a|al)\s+(?:mi\s+|la\s+|una\s+)?"
            rf"(?:calendario|agenda|tabla|{_FILE[2:]})",
            rf"(?:haz|haga)\b{_REST}(?:\brecordatorio\b|\buna\s+copia\b|{_FILE})",
        ),
    },
}
_PATTERNS: dict[Language, tuple[tuple[Effect, re.Pattern[str]], ...]] = {
    language: tuple(
        (effect, lazy_pattern(f"(?:{_START})(?:{'|'.join(forms)})", re.MULTILINE)) for effect, forms in orders.items()
    )
    for language, orders in _ORDERS.items()
}
_MAX_LENGTH = 2000
# `Schreib Kaito und …`: a name after the verb, which only its capital letter tells.
_GERMAN_NAME = lazy_pattern(r"(?:^|[.!?:,]\s+|\bund\s+)[Ss]chreibe?\s+[A-ZÄÖÜ]\w+(?=\s+(?:und|dass|ob|per)\b|\s*[:,])")
# `Bitte Ines um die Unterlagen`: a verb before a name, and politeness before an infinitive.
_GERMAN_ASKING = lazy_pattern(
    r"(?:^|[.!?:,]\s+|\bund\s+)[Bb]itte\s+(?:(?:den|die|meinen?|unseren?)\s+)?[A-ZÄÖÜ]\w+\s+(?:\w+\s+){0,3}?"
    r"(?:um\s+(?=[^\W\d])|darum\b)(?![^.,;:!?\n]*\b[a-zäöü]\w*e?n\s*(?:[.,;:!?\n]|$))"
)


def effects_in_clauses(request: str) -> frozenset[Effect]:
    """The effects that clauses of a request order.

    Example:
        >>> sorted(effects_in_clauses("Ask Kim whether she can come"))
        ['send']
        >>> sorted(effects_in_clauses("What did Kim ask?"))
        []
    """
    language = guess_language(request)
    # The patterns may look at the rest of a sentence from every clause in it: quadratic, so only for what people type.
    text = without_texts(without_drafts_and_prohibitions(request[:_MAX_LENGTH], language))
    # The point in `17.30` ends no sentence, and neither does the one in `24. Dezember`.
    text = re.sub(r"(?<=\d)\.(?=\d|\s+[a-z])", " ", text)
    # A short Spanish request may have only words that are French as well (`la`, `de`); its verbs are not.
    patterns = _PATTERNS["fr"] + _PATTERNS["es"] if language == "fr" else _PATTERNS[language]
    found: set[Effect] = {effect for effect, pattern in patterns if pattern.search(text)}
    # Quoted text and somebody's words are masked in the text: their capital letters order nothing.
    spelled = spelled_as(request[:_MAX_LENGTH], text)
    if language == "de" and (_GERMAN_NAME.search(spelled) or _GERMAN_ASKING.search(spelled)):
        found.add("send")
    return frozenset(found)

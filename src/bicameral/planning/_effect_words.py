"""Words of requests against effects, in English, German, French and Spanish.

`effects_in_words` finds the effects that a request orders by verbs of these languages. The words which tools declare
are looked up in what `ordering_text` leaves of a request.

A word that is wrongly taken for an order lets a plan have an effect that nobody asked for; one that is wrongly removed
has a right plan refused. Where a form is both (Spanish `manda`: send, or sends), the words before it decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bicameral.planning._language import ORDERS, Language, fold, guess_language
from bicameral.planning._non_orders import without_drafts, without_non_orders
from bicameral.tools import Effect

# German nouns and French or Spanish words that are English verbs: Tag (day), comment (how), antes (before).
_FALSE_FRIENDS: dict[Language, frozenset[str]] = {
    "en": frozenset(),
    "de": frozenset(
        "tag tage tags plan plane log note noten post posten set block also end ende still list liste text texte "
        "not mail mails bank book buch file pass arm rest stock start stop link chat order ordner report brief "
        "message an am gift ware art will drop sort mark label labels import export".split()
    ),
    "fr": frozenset(
        "comment note notes plan plans post poste postes page pages message messages date dates place places mail "
        "mails or pour moins list liste reserve tour change point file pain report cause commande commandes album chat "
        "copie set store sort long pays mark tag client demande".split()
    ),
    "es": frozenset(
        "antes del son sin once post plan planes mail mails copia nota notas mensaje pone come sale lista list "
        "salve red dice pan pie real total mark cancel crear chat tag set".split()
    ),
}


def ordering_text(request: str) -> str:
    """A request in small letters, with blanks in place of everything that is no order.

    Example:
        >>> ordering_text("Draft a reply to Kim and save it").split()
        ['and', 'save', 'it']
    """
    return without_non_orders(request, guess_language(request))


def is_draft_only(request: str) -> bool:
    """Whether a request asks for a draft and names the addressee in it: then its address is no recipient."""
    language = guess_language(request)
    text = fold(request)
    return without_drafts(text, language) != text and not _sends(without_non_orders(request, language), language)


def _sends(text: str, language: Language) -> bool:
    if language == "en":
        return bool(re.search(r"\b(?:send|mail|e-?mail|forward|reply|notify|tell)\b", text))
    return any(order.effect == "send" and order.pattern.search(text) for order in ORDERS[language])


def effects_in_words(request: str) -> frozenset[Effect]:
    """The effects that German, French or Spanish verbs of a request order; English ones are the words of the tools.

    Example:
        >>> sorted(effects_in_words("Guárdalo en notas.txt y mándaselo a Ana"))
        ['send', 'write']
    """
    language = guess_language(request)
    text = without_non_orders(request, language)
    return frozenset(order.effect for order in ORDERS[language] if order.pattern.search(text))


def has_declared_word(request: str, entries: Iterable[str]) -> bool:
    """Whether a request in another language than English has a word that a tool declares, in exactly this form.

    English words have homographs there (`Tag`, `comment`, `antes`), and English stems match other words: the form must
    be the same, and known homographs do not count.
    """
    language = guess_language(request)
    words = re.findall(r"\w+", without_non_orders(request, language))
    joined = f" {' '.join(words)} "
    homographs = _FALSE_FRIENDS[language]
    return any(f" {entry} " in joined for entry in map(fold, entries) if entry not in homographs)

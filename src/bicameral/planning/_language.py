"""Languages of requests: which one it is, its letters without accents, and its verbs that order an effect.

The verbs are German, French and Spanish, in the forms in which people give orders. English has no table of them: the
words that tools declare are English.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from bicameral.text import lazy_pattern
from bicameral.tools import Effect

Language = Literal["en", "de", "fr", "es"]


@dataclass(frozen=True, slots=True)
class Order:
    """Verbs of one language that order an effect, in the forms in which people give orders."""

    effect: Effect
    pattern: re.Pattern[str]


def _order(effect: Effect, *forms: str) -> Order:
    return Order(effect, lazy_pattern(rf"(?<![\w'-])(?:{'|'.join(forms)})(?![\w])"))


# German: imperative (schick, schicke, schicken Sie), infinitive (schicken, zu schicken), "du schickst", and separable
# verbs, whose particle ends the clause (schick … ab) or begins the infinitive (abschicken, abzuschicken). Participles
# (geschickt) are not among them: they tell what somebody did, unless `soll … werden` makes an order of them.
_CLAUSE = r"[^.,;:!?\n]*?"


def _german(stem: str, *particles: str, plain: bool = True, ending: str = "en") -> str:
    """The ordering forms of a regular German verb."""
    forms = [rf"{stem}(?:e|{ending}|st|est)?"] if plain else []
    for particle in particles:
        forms += [rf"{stem}(?:e|{ending}|st|est)?\b{_CLAUSE}\b{particle}", rf"{particle}(?:zu)?{stem}{ending}"]
    return "|".join(forms)


def _german_passive(*participles: str) -> str:
    """`soll gelöscht werden`, `muss verschickt werden`."""
    return rf"(?:soll(?:en|te|ten)?|muss|mussen)\b{_CLAUSE}\b(?:{'|'.join(participles)})\s+werden"


_FRENCH_CLITICS = r"(?:-(?:moi|lui|leur|nous|les|le|la|en|y))*"


def _french(*stems: str) -> str:
    """The ordering forms of French verbs in -er: imperative with or without clitics, infinitive, `que tu envoies`."""
    return rf"(?:{'|'.join(stems)})(?:e|es|ez|er){_FRENCH_CLITICS}"


def _french_forms(*forms: str) -> str:
    """The same for other verbs, whose forms are given."""
    return rf"(?:{'|'.join(forms)}){_FRENCH_CLITICS}"


_SPANISH_CLITICS = r"(?:me|te|se|le|les|nos)?(?:lo|la|los|las|le|les|se|me|nos)?"


def _spanish(*stems: str, kind: Literal["ar", "er", "ir"] = "ar") -> str:
    """The ordering forms of Spanish verbs: imperative with or without clitics, infinitive, `que mandes`."""
    vowel, other = ("a", "e") if kind == "ar" else ("e", "a")
    return rf"(?:{'|'.join(stems)})(?:(?:{vowel}|{other}|{other}n|{vowel}d|{kind}){_SPANISH_CLITICS}|{other}s)"


def _spanish_forms(*forms: str) -> str:
    """The same for other verbs, whose forms are given."""
    return rf"(?:{'|'.join(forms)}){_SPANISH_CLITICS}"


_TARGETED_GERMAN = r"schreib(?:e|en|st)?\b" + _CLAUSE + r"\b(?:ins?|nach|auf|als)\b"
# `Mail Kim die Liste` is an order; in `Mail an Kim` and `mail à Kim` it is a noun.
_MAIL_GERMAN = (
    r"mail(?:e|en|st|est)|mail(?=\s+\w)(?!\s+(?:an|von|vom|aus|zu|zum|zur|mit|uber|wegen|a|au|aux|al|de|to|from)\b)"
)
ORDERS: dict[Language, tuple[Order, ...]] = {
    "en": (),
    "de": (
        _order(
            "send",
            *(_german("schick", "ab", "weg", "zu", "rum"), _german("send", "ab", "zu"), _german("versend")),
            *(_german("verschick"), _MAIL_GERMAN, _german("leit", "weiter", plain=False), _german("antwort")),
            *(
                _german("teil", "mit", plain=False),
                _german("informier"),
                _german("benachrichtig"),
                _german("beantwort"),
            ),
            *(_german("erinner", ending="n"), rf"(?:sag|gib|geb)(?:e|en|st)?\b{_CLAUSE}\bbescheid"),
            *(
                r"bescheid\s+(?:zu\s+)?(?:sagen|geben)",
                r"sage?\b(?!\s+(?:mir|uns)\b)(?=[^.;:!?\n]*?,?\s+(?:dass|das|ob)\b)",
            ),
            rf"schreib(?:e|en|st)?\b(?!\s+(?:bitte\s+)?ins\s)(?!\s+(?:es|sie|das|ihn|die|den)\b{_CLAUSE}\b(?:drauf|dazu|rein|hinein)\b)(?!(?:\s+\w+){{0,3}}?\s+auf\s*(?:[,:]|$))(?!{_CLAUSE}\b(?:in|nach|auf|als)\s+(?:\s|$|d[ae]\w+|ein\w*))",
            _german_passive("geschickt", "gesendet", "verschickt", "gemailt", "weitergeleitet", "benachrichtigt"),
        ),
        _order(
            "write",
            *(
                _german("speicher", "ab", ending="n"),
                _german("trag", "ein", plain=False),
                _german("sicher", ending="n"),
            ),
            *(_german("leg", "an", "ab", plain=False), _german("hang", "an", plain=False), _german("verschieb")),
            *(_german("kopier"), _german("benenn", "um", plain=False), _german("notier"), _german("erstell")),
            *(
                _german("fug", "hinzu", "ein", "an", plain=False),
                _german("exportier"),
                _german("plan", "ein", plain=False),
            ),
            *(_german("erfass"), _german("vermerk"), _german("hinterleg"), _german("vereinbar"), _german("blockier")),
            *(_german("erganz"), _german("uberschreib"), _german("verleg"), _german("archivier")),
            *(_german("schreib", "auf", "hinein", "rein", plain=False), _TARGETED_GERMAN, _german("buch")),
            *(_german("reservier"), _german("aktualisier"), _german("ander"), r"anlegen|anzulegen", _german("setz")),
            rf"mach(?:e|en)?\b{_CLAUSE}\b(?:termin|ordner|datei)\b",
            _german_passive("gespeichert", "eingetragen", "verschoben", "kopiert", "notiert", "umbenannt", "angelegt"),
        ),
        _order(
            "irreversible",
            *(_german("losch"), _german("loesch"), _german("entfern"), _german("streich"), _german("vernicht")),
            *(r"wirf\b" + _CLAUSE + r"\bweg", r"wegwerfen|wegzuwerfen", _german("stornier"), _german("kundig")),
            *(
                _german("sag", "ab", plain=False),
                _german("losch", "aus", plain=False),
                _german("raum", "auf", "weg", plain=False),
            ),
            _german_passive("geloscht", "entfernt", "abgesagt", "storniert", "weggeworfen", "gekundigt"),
        ),
    ),
    "fr": (
        _order(
            "send",
            _french(
                "envoi", "envoy", "renvoi", "renvoy", "transfer", "inform", "notifi", "rappell", "rappel", "expedi"
            ),
            _french_forms("reponds", "repondez", "repondre", "previens", "prevenez", "prevenir", "enverras"),
            _french_forms("avertis", "avertissez", "avertir", "transmets", "transmettez", "transmettre"),
            _french_forms("fai(?:s|tes|re) (?:suivre|parvenir|savoir)"),
            *(r"(?:dis|dites|dire)(?:-lui|-leur)", r"(?:dis|dites|dire)\s+(?:a|au|aux)\b"),
            r"(?:ecris|ecrivez|ecrire)(?:-lui|-leur)?\s+(?:a|au|aux)\b|(?:ecris|ecrivez)(?:-lui|-leur)",
            r"doi(?:t|vent)\s+etre\s+(?:envoye|transmis|transfere)e?s?",
        ),
        _order(
            "write",
            _french("enregistr", "sauvegard", "ajout", "deplac", "copi", "renomm", "cre", "not", "report", "export"),
            _french("planifi", "reserv", "modifi", "archiv", "stock", "consign", "rang", "complet", "programm"),
            _french_forms("mets", "mettez", "mettre", "inscris", "inscrivez", "inscrire"),
            r"(?:ecris|ecrivez|ecrire)(?!\s+(?:a|au|aux)\b)(?!-lui|-leur)",
            r"doi(?:t|vent)\s+etre\s+(?:enregistre|ajoute|deplace|copie|renomme|inscrit)e?s?",
        ),
        _order(
            "irreversible",
            _french("supprim", "effac", "annul", "jett", "jet", "retir", "enlev", "resili"),
            _french_forms("detruis", "detruisez", "detruire"),
            r"doi(?:t|vent)\s+etre\s+(?:supprime|efface|annule|retire|jete)e?s?",
        ),
    ),
    "es": (
        _order(
            "send",
            _spanish(
                "mand", "envi", "reenvi", "contest", "avis", "inform", "notific", "notifiqu", "comunic", "comuniqu"
            ),
            *(_spanish("respond", kind="er"), _spanish("remit", kind="ir"), _spanish_forms("recuerda", "recordar")),
            *(r"(?:di|diga|decir)(?:le|les|selo|sela)", r"escrib(?:e|a|ir)(?:le|les)", r"escrib(?:e|a|ir)\s+al?\b"),
            r"pasa(?:le|les|selo|sela)",
            r"deben?\s+ser\s+(?:enviad|mandad|reenviad)[oa]s?",
        ),
        _order(
            "write",
            _spanish("guard", "cre", "apunt", "copi", "renombr", "anot", "agreg", "agregu", "export", "archiv"),
            _spanish("program", "reserv", "actualiz", "actualic", "cambi", "registr", "modific", "aplaz", "grab"),
            *(_spanish("anad", kind="ir"), _spanish("muev", "met", kind="er"), _spanish_forms("mover", "pon", "ponga")),
            # `agenda` is a noun as well: `en agenda`, `agenda de mañana`.
            r"agend(?:ar|e|a(?:me|lo|la|los|las))(?:lo|la|los|las)?",
            r"(?<!\ben )(?<!\bla )(?<!\bmi )(?<!\bde )(?<!\ba )agenda"
            r"(?=\s+(?:un|una|otra|el|la|los|las|mi|cita|reunion)\b)",
            *(_spanish_forms("poner"), r"escrib(?:e|a|ir)(?:lo|la|los|las)?(?!\s+al?\b)"),
            r"deben?\s+ser\s+(?:guardad|anadid|movid|copiad|renombrad)[oa]s?",
        ),
        _order(
            "irreversible",
            _spanish("borr", "elimin", "cancel", "tir", "quit", "anul"),
            *(_spanish("suprim", kind="ir"), _spanish_forms("destruye", "destruya", "destruir")),
            r"deben?\s+ser\s+(?:borrad|eliminad|cancelad|suprimid)[oa]s?",
        ),
    ),
}

_FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    "en": frozenset(
        "the of to and is are what which how who when my me it that this from in for with please all each if then "
        "pls there did does do not by or as on at be has have was i you tomorrow today reminder "
        "monday tuesday wednesday thursday friday saturday sunday "
        # Verbs of orders that are words of no other language here: `Wish Kim a happy birthday` has no other word.
        "wish thank congratulate tell ask let write send give".split()
    ),
    "de": frozenset(
        "der die das den dem des ein eine einen einem einer und ist sind was welche wie wer wann mein meine mir mich "
        "mit von vom zu zum zur auf aus fur bitte alle nicht im am an ob dass es hat habe wurde wurden ich du kannst "
        "sie ihm ihr sag zeig uber nach bei wo ohne in kalender termin termine datei ordner morgen heute "
        "erinnerung ins montag dienstag mittwoch donnerstag freitag samstag sonntag".split()
    ),
    "fr": frozenset(
        "le la les l' de du des un une et est sont que quel quelle quels quelles qui quand mon ma mes moi avec pour "
        "dans sur sous ce cette ces au aux je tu il elle en y a ne n' pas combien comment s' d' m' c' qu' sans ai "
        "peux stp svp ds rdv demain rappel lundi mardi mercredi jeudi vendredi samedi dimanche".split()
    ),
    "es": frozenset(
        "el la los las de del un una y es son que cual cuales quien cuando mi mis me con para en por al este esta "
        "lo se no a cuanto cuantas cuantos donde como sin favor puedes quiero he tiene hay manana hoy recordatorio "
        "lunes martes miercoles jueves viernes sabado domingo".split()
    ),
}


QUOTATIONS = r"""
    "[^"\n]*" | “[^”\n]*” | „[^“”"\n]*[“”"] | «[^»\n]*»
  | ‚[^‘’\n]*[‘’] | ‹[^›\n]*› | ‘[^’\n]*’(?!\w)
  | (?<!\w)'[^'\n]*'(?!\w)
  | "[^"]*" | “[^”]*” | „[^“”"]*[“”"] | «[^»]*»                  # over several lines
"""
"""Texts in quotation marks, as a part of a verbose pattern."""
_QUOTATION = lazy_pattern(QUOTATIONS, re.VERBOSE)


@lru_cache(maxsize=64)
def guess_language(text: str) -> Language:
    """The language whose function words a text has most of; English where none has more.

    Quoted text is what somebody else is to read: its language says nothing about the request's.

    Example:
        >>> guess_language("Schick die Liste an Kim"), guess_language('Schreib Kim: "the keys are on the table"')
        ('de', 'de')
    """
    own = _QUOTATION.sub(" ", text)
    if own == text:
        return _most_frequent(_evidence(text))
    found = _most_frequent(_evidence(own))
    # A few words that are English as well tell nothing: `File a bug: "the app crashes"`.
    is_certain = found == "en" or _evidence(_ENGLISH_TOO.sub(" ", own))[found] > 0
    return found if is_certain and any(map(str.isalpha, own)) else _most_frequent(_evidence(text))


_ENGLISH_TOO = lazy_pattern(
    r"(?<![\w'])(?:an?|in|am|was|me|no|as|die|son|notes?|reports?|plans?|copies|set)(?![\w'])", re.IGNORECASE
)


def _most_frequent(counts: dict[Language, int]) -> Language:
    return max(counts, key=lambda language: (counts[language], language == "en"))


def _evidence(text: str) -> dict[Language, int]:
    """How many words and letters of each language a text has."""
    # A single letter is French only before an apostrophe: in a hurry `d` is Spanish for `de` as well. `To-do-Liste` is
    # German.
    words = re.findall(r"(?<![a-z])[lnsdmc]'|qu'|[a-z]+", re.sub(r"\bto-do\b", "", fold(text)))
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
    return counts


def fold(text: str) -> str:
    """A text in small letters without accents, character by character: places in it are those of the text."""
    return "".join(_fold_character(character) for character in text)


def spelled_as(written: str, text: str) -> str:
    """A folded text in the spelling of what was written, where it still has its letters; masks and blanks stay.

    Example:
        >>> spelled_as("Ask Kim: Go", "ask kim:   ")
        'Ask Kim:   '
    """
    return "".join(
        own if folded == each else each for own, folded, each in zip(written, fold(written), text, strict=True)
    )


@cache
def _fold_character(character: str) -> str:
    plain = unicodedata.normalize("NFD", character.lower())[:1]
    return {"ß": "s", "’": "'", "œ": "o", "ø": "o"}.get(character.lower(), plain) or character

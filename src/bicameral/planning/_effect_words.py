"""Words of requests against effects, in English, German, French and Spanish.

`effects_in_words` finds the effects that a request orders by verbs of these languages. `without_non_orders` removes
what is no order from a request, so that the words which tools declare are looked up in the rest: names of files, quoted
text, what somebody did ("the mail Kim sent"), nouns ("the order list"), drafts ("prepare a reply"), prohibitions
("without sending it"), and the removal of lines or duplicates, which changes a text and deletes nothing.

A word that is wrongly taken for an order lets a plan have an effect that nobody asked for; one that is wrongly removed
has a right plan refused. Where a form is both (Spanish `manda`: send, or sends), the words before it decide.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from bicameral.tools import Effect

Language = Literal["en", "de", "fr", "es"]

_FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    "en": frozenset(
        "the of to and is are what which how who when my me it that this from in for with please all each if then "
        "pls there did does do not by or as on at be has have was i you".split()
    ),
    "de": frozenset(
        "der die das den dem des ein eine einen einem einer und ist sind was welche wie wer wann mein meine mir mich "
        "mit von vom zu zum zur auf aus fur bitte alle nicht im am an ob dass es hat habe wurde wurden ich du kannst "
        "sie ihm ihr sag zeig uber nach bei wo ohne in".split()
    ),
    "fr": frozenset(
        "le la les l de du des un une et est sont que quel quelle quels quelles qui quand mon ma mes moi avec pour "
        "dans sur sous ce cette ces au aux je tu il elle en y a ne n pas combien comment s d m c qu sans ai "
        "peux".split()
    ),
    "es": frozenset(
        "el la los las de del un una y es son que cual cuales quien cuando mi mis me con para en por al este esta "
        "lo se no a cuanto cuantas cuantos donde como sin favor puedes quiero he tiene hay".split()
    ),
}


def guess_language(text: str) -> Language:
    """The language whose function words a text has most of; English where none has more.

    Example:
        >>> guess_language("Schick die Liste an Kim")
        'de'
    """
    words = re.findall(r"[a-z]+", fold(text))
    counts = {language: sum(word in known for word in words) for language, known in _FUNCTION_WORDS.items()}
    # Verbs of a language count, too: "Guarda gastos.csv" has no function word.
    for language, orders in _ORDERS.items():
        counts[language] += sum(bool(each.pattern.search(fold(text))) for each in orders)
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


@dataclass(frozen=True, slots=True)
class Order:
    """Verbs of one language that order an effect, in the forms in which people give orders."""

    effect: Effect
    pattern: re.Pattern[str]


def _order(effect: Effect, *forms: str) -> Order:
    return Order(effect, re.compile(rf"(?<![\w'-])(?:{'|'.join(forms)})(?![\w])"))


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


_TARGETED_GERMAN = r"schreib(?:e|en|st)?\b" + _CLAUSE + r"\b(?:in|nach|auf|als)\b"
_ORDERS: dict[Language, tuple[Order, ...]] = {
    "en": (),
    "de": (
        _order(
            "send",
            *(_german("schick", "ab", "weg", "zu", "rum"), _german("send", "ab", "zu"), _german("versend")),
            *(_german("verschick"), _german("mail"), _german("leit", "weiter", plain=False), _german("antwort")),
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
            rf"schreib(?:e|en|st)?\b(?!{_CLAUSE}\b(?:in|nach|auf|als)\s+(?:\s|$|d[ae]\w+|ein\w*))",
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
            _spanish(
                "program", "agend", "reserv", "actualiz", "actualic", "cambi", "registr", "modific", "aplaz", "grab"
            ),
            *(_spanish("anad", kind="ir"), _spanish("muev", "met", kind="er"), _spanish_forms("mover", "pon", "ponga")),
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

# What is no order, although it has the words of one. Each pattern is matched against the folded request, and what it
# matches is replaced by blanks.
_OBJECTS = re.compile(
    r"""https?://\S+                                             # links
      | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                               # addresses
      | (?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{1,4}\b          # names of files
      | "[^"\n]*" | “[^”\n]*” | „[^“”\n]*[“”] | «[^»\n]*»          # quoted text
      | (?<!\w)'[^'\n]*'(?!\w)
    """,
    re.VERBOSE,
)
_TO_END = r"[^.,;:!?\n]*"
_MESSAGE_NOUNS = {
    "en": r"(?:e-?mails?|mails?|repl(?:y|ies)|answers?|messages?|letters?|notes?|responses?|invitations?|drafts?)",
    "de": r"(?:e-?mails?|mail|antwort|nachricht|brief|schreiben|absage|zusage|einladung|entwurf|text)",
    "fr": r"(?:e-?mails?|mail|courriel|reponse|message|lettre|invitation|brouillon|texte)",
    "es": r"(?:e-?mails?|correo|respuesta|mensaje|carta|invitacion|borrador|texto)",
}
_LINE_NOUNS = {
    "en": r"(?:duplicates?|dupes?|doubles?|doubled|lines?|blanks?|whitespace|spaces|repeats|repetitions|repeated|"
    r"punctuation|prefix(?:es)?|suffix(?:es)?|columns?|trailing|leading)",
    "de": r"(?:duplikate|dubletten|doppelte\w*|zeilen?|leerzeilen?|leerzeichen|spalten?|satzzeichen|wiederholungen)",
    "fr": r"(?:doublons?|lignes?|espaces?|colonnes?|repetitions?|ponctuation)",
    "es": r"(?:duplicad[oa]s?|repetid[oa]s|lineas?|espacios?|columnas?|filas?|puntuacion)",
}


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(each) for each in patterns)


_DRAFTS: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(
        rf"\b(?:draft|prepare|compose|outline|sketch|suggest|propose|word|formulate)\b(?:(?!\band\b|\bthen\b)[^.;:!?\n])*?"
        rf"\b{_MESSAGE_NOUNS['en']}\b(?:(?!\band\b|\bthen\b)[^.;:!?\n])*",
        r"\b(?:write|make|create)\s+(?:me\s+)?(?:a|the|some)\s+(?:\w+\s+)?drafts?\b(?:(?!\band\b|\bthen\b)[^.;:!?\n])*",
    ),
    "de": _compiled(
        r"\b(?:entwirf|entwerfen|entwerfe|formulier(?:e|en)?|skizzier(?:e|en)?|verfass(?:e|en)?)\b(?:(?!\bund\b)[^.;:!?\n])*",
        r"\bbereite?n?\b(?:(?!\bund\b)[^.;:!?\n])*?\bvor\b|\bvor(?:zu)?bereiten\b",
        r"\b(?:mach|schreib|erstell)(?:e|en)?\s+(?:mir\s+)?(?:ein\w*\s+)?(?:\w+\s+)?entwurf\b(?:(?!\bund\b)[^.;:!?\n])*",
        rf"\bschlag\w*\b{_TO_END}\bvor\b",
    ),
    "fr": _compiled(
        r"\b(?:prepar|redig|propos|esquiss|formul)(?:e|ez|er)\b(?:-\w+)?(?:(?!\bet\b)[^.;:!?\n])*",
        r"\b(?:ecris|fais|cree)(?:-moi)?\s+(?:un|le)\s+(?:\w+\s+)?brouillon\b(?:(?!\bet\b)[^.;:!?\n])*",
    ),
    "es": _compiled(
        r"\b(?:prepara|prepare|preparar|redacta|redacte|redactar|propon|proponer|esboza|formula)(?:me|le|lo|la)?\b"
        r"(?:(?!\by\b)[^.;:!?\n])*",
        r"\b(?:escribe|haz|crea)(?:me)?\s+(?:un|el)\s+(?:\w+\s+)?borrador\b(?:(?!\by\b)[^.;:!?\n])*",
    ),
}

_PROHIBITIONS: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(
        r"\b(?:don'?t|do not|never|without|rather than|instead of|no need to|must not|mustn'?t|shouldn'?t|should not|"
        r"not to)\b(?:(?!\bbut\b|\band then\b|\bjust\b|\bonly\b)[^.,;:!?\n])*",
    ),
    "de": _compiled(
        rf"\bohne\b{_TO_END}",
        # `nicht` forbids its clause, unless it belongs to what follows: nicht gelesene Mails.
        r"[^.,;:!?\n]*\b(?:nicht(?!\s+(?:mehr\s+)?(?:(?:ge|be|er|ver)\w+[te](?:e|en|er|es)|un\w+))|nichts|niemals|"
        r"kein(?:e|en|em|er)?)\b[^.,;:!?\n]*",
    ),
    "fr": _compiled(
        rf"\bsans\b{_TO_END}",
        r"\b(?:n'|ne\s)\s*[^.,;:!?\n]*?\b(?:pas|rien|jamais|plus|aucun\w*|personne)\b[^.,;:!?\n]*",
        r"\bne\s+(?:pas|rien|jamais)\b[^.,;:!?\n]*",
    ),
    "es": _compiled(
        rf"\bsin\b{_TO_END}",
        r"\b(?:no|nunca|tampoco)\s+(?!\w+(?:ado|ada|ados|adas|ido|ida|idos|idas)\b)[^.,;:!?\n]*",
    ),
}

# What somebody did or does, and what the answer itself does.
_REPORTS: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(
        r"\b(?:sent|wrote|told|forwarded|said|written)\b",
        r"\b(?:tell|remind)\s+(?:me|us)\b",
        # A question about what somebody does; `do you mind sending` is an order.
        r"\b(?:did|does|do(?!\s+(?:you|not|so|it|this|that)\b))\b(?:(?!\band\b|\bthen\b|\bif\b)[^.,;:!?\n])*",
        r"\badd(?:ed|ing)?\s+(?:up|together)\b|\badd\b(?:(?!\band\b|\bthen\b)[^.,;:!?\n])*?\s(?:up|together)\b",
        r"\banswer\s+(?:yes|no|nothing|none|with|all|only|in|z{2,})\b",
        # `write to` asks for a mail, unless a file follows.
        r"(?<=\bwrite )to(?=\s+(?:(?:the|a|file|new)\s+)*q{3,})",
    ),
    "de": _compiled(
        r"\b(?:wer|der|die|das|er|sie|es|man|welche[rs]?)\s+(?:mir\s+|uns\s+)?(?:schickt|sendet|schreibt|mailt|loscht)\b",
        r"\bsage?\s+(?:mir|uns)\b",
    ),
    "fr": _compiled(
        r"\b(?:qui|il|elle|on|ils|elles|je)\s+(?:me\s+|m'|nous\s+|lui\s+|l'|t')?\w+",
        r"\b(?:m|t|l|s)'(?:envoie|ecrit|ajoute|annule|informe|efface|enregistre)\b",
        r"\bdi(?:s|tes)-(?:moi|nous)\b",
    ),
    "es": _compiled(
        r"\b(?:quien|quienes|el|ella|se|me|nos|te|le|les)\s+(?:me\s+|nos\s+|lo\s+|la\s+)?"
        r"(?:manda|envia|escribe|responde|avisa|cancela|borra|mueve|guarda|anade|apunta|elimina|quita)\b",
        r"\b(?:dime|diganos|dinos)\b",
        # A noun in the form of a verb: el envío, una copia, la reserva.
        r"\b(?:el|la|los|las|un|una|mi|mis|su|sus|del|al|cada|de)\s+(?:envio|copia|reserva|tira|nota|crea|guarda|registro)s?\b",
    ),
}

# `send me the list` asks for an answer, unless it says by which way.
_BY_MAIL = re.compile(r"\b(?:e-?mails?|mail|per\s+mail|correo|courriel|par\s+mail)\b")
_TO_USER: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(r"\b(?:send|forward|write|text|message)\s+(?:me|us)\b"),
    "de": _compiled(r"\b(?:schick|schicke|send|sende|schreib|schreibe)\s+(?:mir|uns)\b"),
    "fr": _compiled(r"\b(?:envoie|envoyez|transmets|ecris)-(?:moi|nous)\b", r"\bm'envoyer\b"),
    "es": _compiled(r"\b(?:manda|envia|escribe|pasa)(?:me|nos)(?:lo|la|los|las)?\b"),
}

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

# What only the spelling tells from an order: German nouns are capitalised (die Antwort), French participles have an
# accent (envoyé), and Spanish past tenses as well (envió); folding removes both.
_WRITTEN_DIFFERENTLY: dict[Language, re.Pattern[str]] = {
    "de": re.compile(r"(?<=[\wäöüß,;)] )(?!Sie\b)[A-ZÄÖÜ]\w+"),
    "fr": re.compile(r"(?<!être )\b(?![Cc]ré)\w+é(?:e|s|es)?\b"),
    "es": re.compile(r"\b\w+(?:ó|aron|ieron|é)\b"),
}


def without_non_orders(request: str) -> str:
    """A request in small letters, with blanks in place of everything that is no order.

    Example:
        >>> without_non_orders("Draft a reply to Kim and save it").split()
        ['and', 'save', 'it']
    """
    return _without_non_orders(request, guess_language(request))


def _without_non_orders(request: str, language: Language) -> str:
    text = _OBJECTS.sub(_object_word if language == "en" else _blank, request)
    text = _blank_folded(text, _removal_of_lines(language))
    if language in _WRITTEN_DIFFERENTLY:
        text = _WRITTEN_DIFFERENTLY[language].sub(_blank, text)
    text = _without_drafts(fold(text), language)
    for pattern in (*_PROHIBITIONS[language], *_REPORTS[language]):
        text = pattern.sub(_blank, text)
    if not _BY_MAIL.search(text) and "@" not in request:
        for pattern in _TO_USER[language]:
            text = pattern.sub(_blank, text)
    return _without_nouns(text) if language == "en" else text


def _blank_folded(text: str, pattern: re.Pattern[str]) -> str:
    """The text without what a pattern finds in its folded form."""
    for match in reversed(list(pattern.finditer(fold(text)))):
        text = text[: match.start()] + _blank(match) + text[match.end() :]
    return text


def _object_word(match: re.Match[str]) -> str:
    """A word that stands for a file, an address or a quoted text: the words around it must not become neighbours."""
    found = match.group()
    letter = "z" if found[0] in "\"'“„«" else "x" if "@" in found or "://" in found else "q"
    return letter * len(found)


def _without_drafts(text: str, language: Language) -> str:
    for pattern in _DRAFTS[language]:
        text = pattern.sub(_blank, text)
    return text


def is_draft_only(request: str) -> bool:
    """Whether a request asks for a draft and names the addressee in it: then its address is no recipient."""
    language = guess_language(request)
    text = fold(request)
    return _without_drafts(text, language) != text and not _sends(_without_non_orders(request, language), language)


def _sends(text: str, language: Language) -> bool:
    if language == "en":
        return bool(re.search(r"\b(?:send|mail|e-?mail|forward|reply|notify|tell)\b", text))
    return any(order.effect == "send" and order.pattern.search(text) for order in _ORDERS[language])


@cache
def _removal_of_lines(language: Language) -> re.Pattern[str]:
    """The removal of parts of a text. The noun follows the verb closely: `delete the file with the lines` deletes."""
    verbs = {
        "en": r"(?:remov(?:e|ing)|delet(?:e|ing)|drop(?:ping)?|strip(?:ping)?|eliminat(?:e|ing)|discard(?:ing)?|merge)",
        "de": r"(?:losch(?:e|en)?|loesch(?:e|en)?|entfern(?:e|en)?|streich(?:e|en)?)",
        "fr": r"(?:supprim|enlev|retir|effac|elimin)(?:e|ez|er)",
        "es": r"(?:quit|elimin|borr|suprim)(?:a|e|ar|ir)",
    }[language]
    # Words between: articles, pronouns and adjectives, never another noun with a preposition.
    return re.compile(
        rf"\b{verbs}\s+(?:(?!\b(?:in|from|of|with|mit|aus|von|de|du|con|del)\b)\w+\s+){{0,3}}{_LINE_NOUNS[language]}\b"
    )


def effects_in_words(request: str) -> frozenset[Effect]:
    """The effects that German, French or Spanish verbs of a request order; English ones are the words of the tools.

    Example:
        >>> sorted(effects_in_words("Guárdalo en notas.txt y mándaselo a Ana"))
        ['send', 'write']
    """
    language = guess_language(request)
    text = _without_non_orders(request, language)
    return frozenset(order.effect for order in _ORDERS[language] if order.pattern.search(text))


def has_declared_word(request: str, entries: Iterable[str]) -> bool:
    """Whether a request in another language than English has a word that a tool declares, in exactly this form.

    English words have homographs there (`Tag`, `comment`, `antes`), and English stems match other words: the form must
    be the same, and known homographs do not count.
    """
    language = guess_language(request)
    words = re.findall(r"\w+", _without_non_orders(request, language))
    joined = f" {' '.join(words)} "
    homographs = _FALSE_FRIENDS[language]
    return any(f" {entry} " in joined for entry in map(fold, entries) if entry not in homographs)


# English nouns in the form of verbs. They are orders only where a verb can stand.
_NOUN_OR_VERB = frozenset(
    "mail email e-mail post comment answer book order log note copy plan record file issue label tag flag report "
    "message text call page stock power list block store backup archive count change cut release export transfer end "
    "update open name water rate share like follow review schedule invite reply request mark run set back top need "
    "check ping stop start play queue turn delay push shift move plans test release guest limit arrive duplicate tell "
    "join combine merge collect saved book".split()
)
_BEFORE_VERB = frozenset(
    "and then to please pls plz also just n or else otherwise you now kindly lets let's go will so but q x z once "
    "first yes not afterwards finally instead thx thanks hey hi hello can could would should must".split()
)
_AFTER_VERB = frozenset(
    "it them him her the this that these those each all every everyone everybody to my a an me us whoever both what "
    "how any whether if up".split()
)
_BEFORE_NOUN = frozenset(
    "the my a an this that these those his her its our your their unread new newest last latest oldest first next by "
    "in per via of any each every no which what whose many most more few both same other another own from for with "
    "some about one two three on at into over under between current whole total open pending is are was were".split()
)
_BEFORE_GERUND = frozenset("by mind start begin try after before about keep without consider than stop".split())
_WANTED = frozenset("want wants wanted need needs should must be get have like to please shall".split())


def _without_nouns(text: str) -> str:
    """A folded English text without nouns that look like orders, and without plurals, gerunds and participles."""
    words = list(re.finditer(r"[a-z][a-z'-]*", text))
    found = list(text)
    for number, match in enumerate(words):
        before = [each.group() for each in words[max(0, number - 10) : number]]
        gap = text[words[number - 1].end() : match.start()] if number else "."
        after = words[number + 1] if number + 1 < len(words) else None
        follows = after.group() if after is not None and not text[match.end() : after.start()].strip() else ""
        if _is_no_order(match.group(), before, follows, starts=bool(gap.strip())):
            found[match.start() : match.end()] = " " * len(match.group())
    return "".join(found)


def _is_no_order(word: str, before: list[str], follows: str, *, starts: bool) -> bool:
    last = before[-1] if before and not starts else ""
    if word == "copy" and _WANTED.intersection(before):
        return False
    if word in _NOUN_OR_VERB:
        if starts or not last or last in _BEFORE_VERB or _is_object_word(last):
            return False
        return last in _BEFORE_NOUN or not (follows in _AFTER_VERB or follows.startswith("xxx"))
    if word.endswith("ed") and len(word) > 4:
        return not _WANTED.intersection(before)
    if word.endswith("ing") and len(word) > 5:
        return last not in _BEFORE_GERUND and not _WANTED.intersection(before)
    return word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3


def _is_object_word(word: str) -> bool:
    return len(word) > 2 and len(set(word)) == 1 and word[0] in "qxz"


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def order_phrases(request: str) -> Iterator[tuple[Effect, str]]:
    """The effects that verbs of a request order, with the words that do; English ones have no table."""
    language = guess_language(request)
    text = _without_non_orders(request, language)
    for order in _ORDERS[language]:
        for match in order.pattern.finditer(text):
            yield order.effect, request[match.start() : match.end()]

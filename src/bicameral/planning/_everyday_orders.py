"""Everyday orders for notes, messages, lists and calendars: `jot down …`, `let Kim know`, `halt fest, dass …`.

They are phrases and not single verbs: most of their words are common in questions and reports as well. So only clauses
that may give an order are looked at (`_clauses`), and a clause must begin with the phrase, after a polite opening
(`Could you …`, `Kannst du …`, `Tu peux …`, `¿Puedes …?`). A German infinitive orders at the end of a clause. What is
found here allows an effect and never requires one.
"""

from __future__ import annotations

import re

from bicameral.planning._clauses import Clause, ordering_clauses
from bicameral.planning._language import Language, fold, guess_language
from bicameral.planning._lexicon import EVENT_NOUNS, TEXT_PARTS
from bicameral.planning._message_orders import (
    GERMAN_INFINITIVES,
    MESSAGES,
    after_german_politeness,
    french,
    german,
    spanish,
    tells_somebody_in_german,
)
from bicameral.planning._openings import imperatives
from bicameral.text import lazy_pattern
from bicameral.tools import Effect

_FILE = r"q{3,}"
_EVENTS = rf"(?:{'|'.join(sorted(map(fold, EVENT_NOUNS)))})"
_LIST_EN = r"(?:(?:the|my|our)\s+)?(?:\w+\s+){0,2}?(?:calendar|diary|agenda|schedule|\w*list|notes|notebook|journal)\b"
_CALENDAR_EN = (
    r"(?:(?:the|my|our)\s+)?(?:calendar|cal|diary|agenda|schedule)\b(?!\s+(?:notes?|list|items?|file|entries|table))"
)
_CALENDAR_DE = r"(?:(?:dem|meinem|unserem|m)\s+)?(?:kalender|terminplan|agenda)\b"
_CALENDAR_FR = r"(?:de\s+l'|d[eu]\s+(?:mon\s+|notre\s+)?)(?:agenda|calendrier|planning)\b"
_CALENDAR_ES = r"(?:del?)\s+(?:(?:la|el|mi|nuestr[oa])\s+)?(?:agenda|calendario)\b"
# Places of entries: an entry that leaves one is a change of a file.
_LINES_EN = rf"(?:(?:the|my|our)\s+)?(?:[\w-]+\s+){{0,3}}?(?:\w*list|notes|notebook|log|journal|{_FILE})\b"
_LINES_DE = (
    rf"(?:(?:der|meiner|unserer|den|meinen|dem|meinem)\s+)?(?:[\w-]*(?:liste|notizen|zettel|notizbuch|heft)|{_FILE})\b"
)
_LINES_FR = rf"(?:(?:la|ma|notre|le|mon|mes|les)\s+)?(?:\w+\s+)?(?:liste|notes|carnet|cahier|{_FILE})\b"
_LINES_ES = rf"(?:(?:la|mi|nuestra|el|mis|las)\s+)?(?:\w+\s+)?(?:lista|notas|cuaderno|libreta|{_FILE})\b"
# Mails and files that come from a list are no entries of it, and a text without some of its parts may only be shown:
# `Remove the duplicates from a.txt and show the rest`.
_ENTRY = (
    r"(?!.*\b(?:(?:e-?)?mails?|messages?|files?|folders?|events?|appointments?|nachrichten|dateien?|ordner|termine?|courriels?|"
    r"fichiers?|dossiers?|correos?|mensajes?|archivos?|carpetas?|eventos?|"
    rf"{'|'.join(sorted(map(fold, TEXT_PARTS)))})\b.*\b(?:from|off|aus|von|de|du|del)\b)"
)
# What is read from a calendar, and not taken out of it.
_READ_THINGS = (
    r"(?:listes?|lista|total|resume|resumen|dates?|fechas?|heures?|horas?|noms?|nombres?|numeros?|donnees|datos|infos?)"
)
_TIMED_DE = rf"(?:\w*(?:kalender|termin|kurs|{_EVENTS})|uhr|minuten|min|stunden?|{_FILE})\b"
_TIMED_FR = rf"(?:{_EVENTS}|agenda|calendrier|minutes?|min|heures?|h)\b"
_TIMED_ES = rf"(?:{_EVENTS}|agenda|calendario|minutos?|min|horas?|h)\b"
# Whoever is called is told on the phone.
_PHONE_CALLS: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(
        r"(?:call(?!\s+(?:off|it|this|that)\b)|ring|phone|telephone)\s+\w|give\s+.*\ba\s+(?:ring|call)\b"
    ),
    "de": lazy_pattern(r"(?:rufe?\s+.*\ban\s*$|telefoniere?\b|.*\banrufen\s*$)"),
    "fr": lazy_pattern(r"(?:appelle(?:r|z)?|telephone(?:r|z)?|passe(?:r|z)?\s+un\s+coup\s+de\s+fil)\b"),
    "es": lazy_pattern(r"(?:llama(?:r)?|telefonea(?:r)?)(?:l[eoa]s?)?\b"),
}
_TIME_EN = (
    r"(?:\d+|an?|one|two|three|half|the|some)\s+(?:\w+\s+){0,2}?"
    r"(?:minutes?|mins?|hours?|hrs?|h|afternoon|morning|evening|day|slot)\b"
)
_TIME_FR = (
    r"(?:\d+|une?|deux|trois|le|la)\s*(?:\w+\s+){0,2}?(?:minutes?|min|heures?|h|creneau|matinee?|apres-midi|journee)\b"
)
_TIME_ES = r"(?:\d+|una?|dos|tres|media|la|el)\s+(?:\w+\s+){0,2}?(?:minutos?|min|horas?|h|hueco|manana|tarde|dia)\b"
_MAILS_EN = r"(?:(?:e-?)?mails?|messages?|newsletters?)\b"
_TRASH_EN = r"\b(?:in|into|to)\s+(?:(?:the|my)\s+)?(?:trash|(?:recycle\s+)?bin)\b"
_NOTEBOOK_DE = r"[\w-]*(?:liste|kalender|ordner|notizen|zettel|buch|heft|protokoll|journal|logbuch|log|kladde|tafel)\b"

_BEGINS: dict[Language, dict[Effect, tuple[str, ...]]] = {
    "en": {
        "write": (
            r"(?:write|jot|note|scribble)\s+(?:\w+\s+){0,8}?down\b",
            r"take\s+(?:(?:this|the|that|his|her|my|their|a)\s+)?(?:\w+\s+)?(?:numbers?|names?|address|codes?|reading|following)\s+"
            r"down\b|take\s+down\s+(?:this|the|that|his|her|my|their|a)\s+(?:\w+\s+)?(?:numbers?|names?|address|codes?|reading|"
            r"following|note|message)\b",
            r"(?:make|take)\s+(?:(?:me|yourself)\s+)?(?:a|another)\s+(?:\w+\s+)?note\b",
            r"note\s+(?:that|this|the|down|my|it|these|those)\b|note\s+to\s+self\b",
            r"record\s+(?:that|the|this|my|an?|\d+)\b",
            r"file\s+(?:\w+\s+){1,6}?(?:away|under|in\s+(?:the|my)\s+(?:\w+\s+)?folder|in\s+the\s+folder)\b",
            r"pencil\s+(?:\w+\s+){0,8}?in\b",
            rf"(?:pop|stick|throw|slot|squeeze|bung|chuck|stuff)\s+.*\b(?:in|into|on|onto)\s+{_LIST_EN}",
            rf"mark\s+.*\b(?:in|on|into)\s+{_LIST_EN}",
            r"block\s+(?:off|out)\s",
            r"(?:fix|agree|make)\s+(?:up\s+)?an?\s+(?:\w+\s+)?(?:meeting|appointment|date|call|lunch|dinner)\s+(?:with|for|on|at)\b",
            r"remember\s+(?:that|this|the\s+following)\b(?!.*\bwhen\s+you\b)",
            rf"keep\s+(?!me\b|us\b).*\bin\s+(?:{_FILE}|(?:the|my|our)\s+notes\b)",
            r"keep\s+(?:a\s+(?:record|note|log)|track)\s+of\b",
            rf"(?:reserve|set\s+aside|block|free\s+up|book)\s+(?:(?:me|us)\s+)?{_TIME_EN}|"
            rf"keep\s+(?:(?:me|us)\s+)?{_TIME_EN}.*\b(?:free|clear|open)\b",
            r"bring\s+.*\bforward\b(?:\s+(?:to|by|an?|one|two|\d+)\b|\s*$)",
            rf"{_ENTRY}(?:delete|remove|strike|cross|scratch|drop|erase|wipe|knock|strip)\s+.*\b(?:from|off|out\s+of)\s+{_LINES_EN}",
            rf"(?:take|get|tick|check|mark)\s+(?!me\b|us\b).*\boff\s+{_LINES_EN}|"
            rf"(?:tick|cross|check|strike|scratch)\s+off\s+.*\b(?:on|from|in)\s+{_LINES_EN}",
        ),
        "irreversible": (
            rf"(?:scrap|ditch|axe|nix|bin|scratch)\s+.*\b(?:in|from|off|out\s+of)\s+{_CALENDAR_EN}",
            rf"(?:cross|kick|strike|throw|toss|drop|wipe|knock)\s+.*\b(?:from|off|out\s+of)\s+{_CALENDAR_EN}",
            rf"(?:scrap|ditch|axe|nix)\s+(?:the|my|our|that|this)\s+(?:\w+\s+){{0,3}}?{_EVENTS}\b",
            # A bin is a noun as well, and so is a trash: with a determiner after it, it is a verb.
            rf"(?:bin|junk|trash)\s+(?:the|my|our|that|this|these|those|all|both|every)\s+(?:[\w'-]+\s+){{0,4}}?{_MAILS_EN}",
            rf"throw\s+(?:away\s+.*\b{_MAILS_EN}|.*\b{_MAILS_EN}.*\baway\b)",
            rf"(?:move|put|send|throw|toss|drop|chuck|shift)\s+.*{_TRASH_EN}",
        ),
    },
    "de": {
        "write": (
            german("notier", "vermerk", "hinterleg", "erfass", "protokollier", "vereinbar", "blockier"),
            rf"{german('schreib')}.*\bauf\b(?!\s+(?:deutsch|englisch|franzosisch|spanisch))",
            rf"{german('halt')}.*\bfest\b|{german('merk')}.*\b(?:vor|dir|euch)\b|{german('merk')}\s+(?:dir|euch)\b",
            rf"{german('mach')}.*\b(?:notiz|vermerk|eintrag)\b",
            rf"{german('pack', 'stell', 'leg', 'setz', 'schreib')}.*\b(?:auf|in)\s+"
            r"(?:die|meine|unsere|den|meinen|unseren)\s+"
            r"\w*(?:liste|kalender|ordner|notizen)\b",
            r"(?:nimm|nehmen\s+sie|nimmst\s+du|tu|tue)\b.*\b(?:auf|in)\s+(?:die|meine|unsere|den|meinen)\s+"
            r"\w*(?:liste|kalender|notizen)\b",
            r"blocke?\s+(?:mir|uns|am|den|die|das|fur|morgen|heute|\w+tag\w*)\b",
            rf"{german('fuhr')}.*\bauf\b|{german('trag')}.*\b(?:ein|nach)\b|(?:tragst\s+du)\b.*\bein\b",
            rf"{german('plan')}.*\bein\b|{german('leg')}.*\bab\b",
            rf"{german('schreib', 'setz', 'pack', 'trag', 'notier')}.*\b(?:ins?|im|aufs?)\s+"
            rf"(?:(?:die|meine|unsere|den|meinen|unseren|das|mein|unser)\s+)?{_NOTEBOOK_DE}",
            rf"{german('schreib', 'setz', 'pack', 'tu')}.*\b(?:drauf|dazu|rein|hinein|nieder)\s*$",
            rf"{german('halt', 'lass')}\s+(?!mich\b|uns\s+frei).*\bfrei\s*$|{german('zieh')}.*\bvor\s*$",
            rf"{german('verlanger', 'verkurz', 'ander', 'aender')}\s+.*\b{_TIMED_DE}|"
            rf"{german('mach')}\s+aus\s+.*\b\w*(?:kalender|termin)\b",
            rf"{german('fuhr')}\s+(?:buch|protokoll|strichliste)\b",
            rf"{_ENTRY}{german('losch', 'loesch', 'streich', 'entfern', 'hak', 'schmeis', 'hau')}.*\b(?:von|"
            rf"aus|auf|vom)\s+{_LINES_DE}",
            # `Nimm die Namen aus der Liste` reads them.
            rf"{_ENTRY}(?:nimm|wirf)\b(?!\s+(?:von|vom)\b).*\b(?:von|vom)\s+{_LINES_DE}",
        ),
        "irreversible": (
            rf"(?:{german('schmeis', 'schmeiss', 'hau', 'kick', 'streich', 'losch', 'loesch', 'entfern')}|"
            r"wirf\b)(?!\s+aus\b)"
            rf".*\b(?:aus|vom)\s+{_CALENDAR_DE}",
            rf"(?:{german('schieb', 'verschieb', 'leg', 'pack', 'schmeis', 'schmeiss', 'hau')}|(?:wirf|tu)\b)"
            r".*\bin\s+den\s+papierkorb\b",
            rf"(?:{german('schmeis', 'schmeiss', 'hau', 'kick', 'streich')}|(?:nimm|"
            rf"wirf)\b)\s+.*\b\w*{_EVENTS}\b.*\braus\s*$",
        ),
    },
    "fr": {
        "write": (
            rf"{french('not')}(?!\s+(?:de|du|des|d')\b)(?=\s+\w)",
            rf"{french('marqu')}\s+(?:sur|dans|que|qu'|le|la|les|l'|ca|du|des)(?!\w)",
            r"(?:prends|prenez|prendre|prennes)\s+(?:bonne\s+)?note\b",
            r"(?:retiens|retenez|retenir|retiennes)\s+(?:bien\s+)?(?:que|qu'|le|la|les|l'|ca|ceci)(?!\w)",
            rf"{french('gard', 'conserv', 'memoris', 'class')}\b.*\bdans\s+(?:{_FILE}|"
            r"(?:le|mon|la|ma|mes|les)\s+(?:\w+\s+)?"
            r"(?:dossier|liste|notes|agenda))",
            rf"{french('fix', 'pos')}\s+une?\s+(?:\w+\s+)?(?:rendez-vous|rdv|reunion|appel|date|dejeuner|diner)\b",
            r"(?:prevois|prevoyez|prevoir)\s+(?:un|une|deux|trois|quatre|\d+|du|le|la|les)\b",
            rf"{french('bloqu', 'cal')}\s+(?:un|une|le|la|mon|ma|deux|trois|\d+|lundi|mardi|mercredi|"
            r"jeudi|vendredi|samedi|dimanche|"
            r"demain)\b",
            rf"{french('gard', 'conserv', 'laiss')}\s+(?:une|la|bien\s+une)\s+trace\b|(?:tiens|tenez|"
            r"tenir)\s+(?:le\s+|un\s+)?"
            r"(?:registre|compte|journal)\s+d",
            rf"{french('gard', 'reserv', 'bloqu', 'laiss')}\s+{_TIME_FR}",
            rf"{french('rallong', 'decal', 'repouss', 'avanc')}(?:(?<=-l[ea])|(?<=-les)|\s+\w)|"
            rf"{french('prolong')}\b.*\b{_TIMED_FR}",
            r"(?:change|changez|changer|modifie|modifiez)-l(?:e|a|es)\b",
            rf"{_ENTRY}{french('supprim', 'effac', 'retir', 'enlev', 'ray', 'barr', 'ot', 'vir')}.*\b(?:de|du|"
            rf"sur)\s+{_LINES_FR}",
        ),
        "irreversible": (
            rf"{french('vir', 'ray', 'barr', 'degag', 'ot', 'enlev', 'retir', 'supprim', 'effac')}.*\b{_CALENDAR_FR}",
            rf"(?:(?:mets|mettez|mettre|envoie|envoyez)\b|{french('jet', 'deplac', 'gliss')})"
            r".*\b(?:a|dans|vers)\s+la\s+corbeille\b",
            rf"(?:sors|sortez|sortir)(?:-l[ea])?\s+(?!.*\b{_READ_THINGS}\b)(?:(?:le|la|mon|ma|ce|cette)\s+.*\b)?{_CALENDAR_FR}",
        ),
    },
    "es": {
        "write": (
            rf"{spanish('apunt', 'anot', 'registr')}(?!\s+(?:de|del)\b)(?=\s+\w)",
            r"(?:toma|tome|tomar|tomes)\s+(?:buena\s+)?nota\b",
            r"(?:deja|deje|dejar|dejes)\s+(?:(?:apuntad|anotad|escrit|registrad)[oa]s?|constancia)\b",
            r"(?:haz|haga|hacer|hagas)(?:me|te)?\s+una\s+(?:nota|anotacion)\b",
            rf"{spanish('bloque')}\s+(?:el|la|los|las|un|una|dos|mi|\d+)\b",
            rf"{spanish('fij')}\s+(?:una?|la|el)\s+(?:\w+\s+)?(?:cita|reunion|llamada|fecha|comida|cena)\b",
            r"(?:marca|marque|marcar|marques)\b.*\b(?:calendario|agenda|lista)\b",
            r"(?:inscribe|inscriba|inscribir|inscribas)\s+(?:a|al|el|la|los|las|un|una)\b",
            r"(?:recuerda|recuerde)\s+que\b",
            rf"(?:apart|reserv|bloque)(?:a|e|ar)(?:me|nos)?\s+{_TIME_ES}|(?:deja|deje|dejar)(?:me|nos)?\s+libres?\s+{_TIME_ES}",
            rf"(?:pospon|posponga|posponer)(?:l[oa]s?)?\b|"
            rf"{spanish('alarg', 'aplaz', 'adelant', 'retras')}|{spanish('prolong')}.*\b{_TIMED_ES}",
            r"(?:lleva|lleve|llevar|guarda|guarde|guardar)\s+(?:la\s+cuenta|un\s+registro|el\s+registro)\b",
            rf"{_ENTRY}(?:{spanish('borr', 'quit', 'elimin', 'tach')}|(?:suprime|"
            rf"suprimir)\b).*\b(?:del?)\s+{_LINES_ES}",
            r"(?:podemos|podriamos)\s+(?:pasar|mover|cambiar)\b",
        ),
        "irreversible": (
            rf"(?:{spanish('tach', 'quit', 'borr', 'elimin')}|(?:suprime|suprimir)\b).*\b{_CALENDAR_ES}",
            rf"(?:{spanish('tir', 'mand', 'envi', 'pas', 'ech')}|(?:mueve|mover|pon|poner)\b)"
            r".*\b(?:a|en)\s+la\s+papelera\b",
            # `Saca las fechas de la agenda` reads them.
            rf"saca(?:r)?(?:l[oa])?\s+(?!.*\b{_READ_THINGS}\b)(?:(?:el|la|mi|ese|esa)\s+.*\b)?{_CALENDAR_ES}",
        ),
    },
}

_WRITE_INFINITIVES = (
    r"(?:notieren|aufschreiben|festhalten|vermerken|eintragen|vormerken|merken|blocken|blockieren|einplanen|hinterlegen|"
    r"erfassen|protokollieren|aufnehmen|mitnotieren|verlegen|verschieben|vorziehen|"
    r"reservieren|freihalten|nachtragen|draufschreiben|dazuschreiben|drauf\s+(?:schreiben|setzen)|"
    rf"(?:von|aus)\s+{_LINES_DE}\s+(?:streichen|loschen|entfernen|nehmen))"
)
# Somebody else or a noun (`Papier zum Aufschreiben`): no order.
_NO_INFINITIVE_ORDER = lazy_pattern(
    r"\b(?:soll\w*|muss\w*|will|wollen|wollte\w*|darf|durfen|kann|konnen|konnte\w*|ich|wir|er|man|(?:zum|vom)(?=\s+\w+\s*$)|beim|zu|hat|haben|"
    r"wurde\w*|werden|um(?!\s+\w+\s+uhr\b|\s+\d)|mag|lies|liess|geht|ging|statt|ohne|mir|uns)\b"
)
_INFINITIVES: dict[Effect, re.Pattern[str]] = {
    "write": lazy_pattern(
        rf".*\b(?:{_WRITE_INFINITIVES}|{_TIMED_DE}.*\b(?:andern|aendern|verlangern|verkurzen|umbenennen))\s*$"
    ),
    "send": lazy_pattern(rf".*\b{GERMAN_INFINITIVES}\s*$"),
}


def _compiled(language: Language) -> dict[Effect, re.Pattern[str]]:
    forms: dict[Effect, tuple[str, ...]] = {**_BEGINS[language], "send": MESSAGES[language]}
    return {effect: lazy_pattern("|".join(each)) for effect, each in forms.items()}


_ALL: dict[Language, dict[Effect, re.Pattern[str]]] = {language: _compiled(language) for language in _BEGINS}


def effects_in_phrases(request: str) -> frozenset[Effect]:
    """The effects that a request orders by an everyday phrase.

    Example:
        >>> sorted(effects_in_phrases("Let Kim know that the hall is booked"))
        ['send']
        >>> sorted(effects_in_phrases("Who let Kim know that the hall is booked?"))
        []
    """
    language = guess_language(request)
    found: set[Effect] = set()
    message: int | None = None
    phone_call: int | None = None
    for clause in ordering_clauses(request, language, known=lambda text: bool(_phrases(text, language))):
        # What follows `Tell Kim:` in the sentence is what Kim is told.
        if clause.sentence == message:
            continue
        ordered = _phrases(clause.text, language)
        if language == "de":
            ordered |= _infinitives(clause)
        if any(_PHONE_CALLS[language].match(each) for each in imperatives(clause.text, language)):
            phone_call = clause.sentence
        if clause.sentence == phone_call:
            ordered.discard("send")
        if "send" in ordered and clause.opens:
            message = clause.sentence
        found |= ordered
    return frozenset(found)


def _phrases(text: str, language: Language) -> set[Effect]:
    # A short Spanish request may have only words that are French as well.
    languages: tuple[Language, ...] = ("fr", "es") if language in ("fr", "es") else (language,)
    return {
        effect
        for each in languages
        for order in imperatives(text, each)
        for effect, pattern in _ALL[each].items()
        if pattern.match(order)
    }


def _infinitives(clause: Clause) -> set[Effect]:
    if tells_somebody_in_german(clause):
        return {"send"}
    polite = after_german_politeness(clause)
    rest = clause.text if polite is None else polite
    if (polite is None and not clause.elliptical) or _NO_INFINITIVE_ORDER.search(rest):
        return set()
    return {effect for effect, pattern in _INFINITIVES.items() if pattern.match(rest)}

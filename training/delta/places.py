"""Where a question is looked up: the words of a request that name a place, and the tools that look there.

A question that names no place goes to `find`, which searches everything; one that names a place goes to that place
alone. A model cannot learn a choice that the data makes at random, so `python -m training.delta.check` holds every
phrasing against these words, in its own language.

An effect names its place, too: whoever moves or cancels something means an event, whoever replies or forwards means a
mail. So do a file name, a `file("…")` in the request's words and a link, which other rules check.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Literal

from bicameral.planning import named_dates

Place = Literal["mail", "calendar", "files"]

_MAIL = {
    # A slot that is filled with an address is a mail word, too.
    "": r"<mail\d*>|e-?mails?|mails?|inbox|spam|newsletters?",
    "en": r"mail(?:ed|ing|box)|messages?|senders?|subject|attach\w*|unread|unanswered|correspondence|thread|"
    r"wr(?:ite|ites|iting|ote|itten)|sent|sends?|answer(?:ed|s)?|repl(?:y|ies|ied|ying)|forward\w*|fwd|respon\w+|"
    r"said|say|says|told|ask(?:s|ed)|wants? from (?:me|us)|hear[d]? (?:back |anything )?from|got back to|in touch|"
    r"(?:anything|something|news|word) (?:new )?from|confirmed|suggest(?:s|ed)|propos(?:es|ed)|"
    r"invit(?:es|ations?)|complain(?:s|ed|ts?)|thank(?:s|ed)",
    "de": r"\w*mails?\w*|nachricht\w*|absender\w*|betreff\w*|anh[aä]ng(?:e|en|s)?|ungelesen\w*|unbeantwortet\w*|"
    r"postfach|posteingang|g?schr(?:eib|ieb)\w*|geschrieb\w*|(?:ge|ver)?schick\w*|gesendet|sendet|"
    r"(?:be|ge)?antwort\w*|(?:weiter(?:ge)?)?leite[nt]?|gemeldet|meldet|(?:zu|ab)?gesagt|sagte?|fragt|gefragt|bittet|"
    r"gebeten|will .*von mir|(?:et)?was (?:neues )?von|neues von|gehört von|vorgeschlagen|schlägt|bestätigt|"
    r"einladung\w*|beschwer\w*",
    "fr": r"courriels?|messages?|mél|expéditeurs?|objet|pièces? jointes?|non lue?s?|boîte|écri\w*|envoy\w*|reçue?s?|"
    r"répon\w*|transf[eè]r\w*|fais suivre|fwd|dit|disent|demandée?s?|nouvelles de|contactée?s?|"
    r"signalée?s?|annoncée?s?|propos\w*|confirm\w*|invitations?|plain\w*|remerci\w*",
    "es": r"correos?|mensajes?|remitentes?|asunto|adjunt\w*|sin leer|le[ií]d[oa]s?|bandeja|escri\w*|envi\w*|"
    r"mand[oóaeé]\w*|recib\w*|respon\w*|respuestas?|contest\w*|reenv[ií]\w*|dicho|dice|dijo|pide|pidió|pedido|"
    r"noticias de|avis(?:ó|ado)|propon\w*|propuesto|confirm\w*|invitaci\w*|quej\w*|agradec\w*",
}
"""What somebody wrote, or the verb of saying of somebody else."""
_CALENDAR = {
    "": r"<title\d*>",
    "en": r"calendar|cal|appointments?|appts?|meetings?|events?|agenda|diary|scheduled?|entries|entry|attendees?|"
    r"attend(?:s|ing)?|com+ing to|free|busy|busiest|fullest|booked|double.?booked|clash(?:es|ing)?|collide|"
    r"overlap\w*|slots?|gaps?|take[sn]? place|birthdays?|bdays?|rehearsals?|lessons?|class(?:es)?|practices?|sessions?|"
    r"(?:what(?:'s|s| is)|anything|something|smth|got) on(?! the)",
    "de": r"\w*kalender\w*|\w*termine?n?|\w*treffen|\w*besprechung\w*|meetings?|ereignis\w*|veranstaltung\w*|"
    r"eintr[aä]g\w*|frei|freie?[nrs]?|belegt|verplant|geburtstag\w*|\w*prob(?:e|en)|\w*stunden?|\w*unterricht\w*|"
    r"\w*kurs(?:e|es)?|\w*training\w*|überschneid\w*|kollidier\w*|doppelt|teilnehm\w*|sitzung\w*|"
    r"lücken?|steht .*\ban|findet .*\bstatt|stattfind\w*",
    "fr": r"calendrier|agenda|rendez-vous|rdv|réunions?|év[éè]nements?|planning|prévue?s?|libres?|dispo\w*|occupée?s?|"
    r"anniversaires?|répétitions?|cours|leçons?|séances?|entraînements?|chevauch\w*|conflits?|participants?|"
    r"participe\w*|créneaux?",
    "es": r"calendario|agenda|citas?|reuni[oó]n(?:es)?|eventos?|previst\w*|programad\w*|libres?|ocupad\w*|"
    r"cumpleaños|cumples?|ensayos?|clases?|lecci[oó]n(?:es)?|sesi[oó]n(?:es)?|entrenamientos?|solap\w*|coincid\w*|"
    r"asistentes?|asiste\w*|participa\w*|huecos?",
}
"""Words of appointments, and kinds of appointments that come again and again: a lesson, a rehearsal, a birthday."""
_FILES = {
    "": r"<(?:txt|md|log|csv|json|folder)\d*>|\w+\.(?:txt|md|log|csv|json|html)",
    "en": r"notes?|files?|folders?|documents?|docs?|papers|tables?|lists?|letters?|texts?|pages?|recipes?",
    "de": r"\w*notiz\w*|\w*datei\w*|\w*ordner\w*|\w*dokument\w*|\w*tabelle\w*|\w*liste\w*|unterlagen|\w*texte?n?",
    "fr": r"notes?|fichiers?|dossiers?|documents?|tableaux?|listes?|papiers?|textes?",
    "es": r"notas?|apuntes?|ficheros?|archivos?|carpetas?|documentos?|tablas?|listas?|papeles|textos?",
}
_WORDS: dict[Place, dict[str, str]] = {"mail": _MAIL, "calendar": _CALENDAR, "files": _FILES}

_SAID: dict[Place, dict[str, str]] = {
    "mail": {
        "en": r"(?:e-?)?mail(?:s|ed)?|inbox|wrote|written",
        "de": r"\w*mails?|postfach|geschrieben|schreibt",
        "fr": r"(?:e-?)?mails?|courriels?|ecrit",
        "es": r"(?:e-?)?mails?|correos?|escrito|escribio",
    },
    "calendar": {
        "en": r"calendar|appointments?|appts?|meetings?|rehearsals?",
        "de": r"\w*kalender|(?:\w*termine?n?)|\w*besprechung(?:en)?|\w*treffen",
        "fr": r"calendrier|agenda|rendez-vous|rdv|reunions?",
        "es": r"calendario|agenda|citas?|reunion(?:es)?",
    },
}
"""Words that leave no doubt: a question with one of them is looked up there and not with `find`."""
_SERVED: dict[Place, frozenset[str]] = {
    "mail": frozenset({"search_mail", "mail", "send_mail", "find_person"}),
    "calendar": frozenset({"search_events", "list_events", "find_free_time", "event", "add_event"}),
}
_LOOKUPS: dict[str, Place] = {
    "search_mail": "mail",
    "mail": "mail",
    "search_events": "calendar",
    "list_events": "calendar",
    "find_free_time": "calendar",
    "event": "calendar",
    "search_files": "files",
}
_EFFECTS: dict[str, Place] = {
    "add_event": "calendar",
    "change_event": "calendar",
    "delete_event": "calendar",
    "save_attachment": "mail",
}
_OVER_DAYS = re.compile(r"\b(?:list_events|find_free_time)\(")
_DAY = re.compile(r"<(?:day|week|past|ago)\d*>|\b(?:days?|dates?|tage?|jours?|dias?|fechas?)\b")
_ANY_DAY = dt.date(2026, 1, 1)
_CALLED = re.compile(r"\b([a-z_]+)\(")


@cache
def _pattern(place: Place, language: str) -> re.Pattern[str]:
    words = _WORDS[place]
    return re.compile(_plain(rf"(?<!\w)(?:{words['']}|{words[language]})(?!\w)"))


@cache
def _said_pattern(place: Place, language: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{_SAID[place][language]})(?!\w)")


def _plain(text: str) -> str:
    """Small letters without accents: sloppy requests leave both out."""
    parts = unicodedata.normalize("NFD", text.replace("’", "'"))
    return "".join(each for each in parts if not unicodedata.combining(each)).lower()


def named_places(request: str, language: str) -> frozenset[Place]:
    """The places that a request names.

    Example:
        >>> sorted(named_places("What did Anna write about the tent?", "en"))
        ['mail']
        >>> named_places("Who sold us the tent?", "en")
        frozenset()
    """
    return frozenset(place for place in _WORDS if _pattern(place, language).search(_plain(request)))


def searched_places(plan: str) -> frozenset[Place]:
    """The places that a plan looks into, other than with `find` and by the name of a file.

    A place that the plan also changes is named by that: there are no events to move elsewhere.
    """
    called = set(_CALLED.findall(plan))
    changed: set[Place] = {_EFFECTS[name] for name in called if name in _EFFECTS}
    looked: set[Place] = {_LOOKUPS[name] for name in called if name in _LOOKUPS}
    return frozenset(looked - changed)


def misplaced_lookups(plan: str, request: str, language: str) -> Iterator[str]:
    """What a plan looks into although its request does not name it, a line each.

    Args:
        plan: A plan of the corpus, with slots or filled.
        request: One of its phrasings, with its slots: `<title>` is an event whatever it is filled with.
        language: The language of the request.
    """
    unnamed = searched_places(plan) - named_places(request, language)
    if "calendar" in unnamed and (_DAY.search(_plain(request)) or named_dates(request, _ANY_DAY)):
        # What there is on a day, and when there is time on it, stands in the calendar and nowhere else. What happens
        # to one particular thing may stand anywhere.
        unnamed &= searched_places(_OVER_DAYS.sub("", plan))
    for place in sorted(unnamed):
        yield f'no word of the request names the {place}: look it up with find("…")'
    if (place := _passed_over(plan, request, language)) is not None:
        yield f"the request names the {place}, and the plan looks everywhere"


def _passed_over(plan: str, request: str, language: str) -> Place | None:
    """The one place that a request names beyond doubt while its plan looks everywhere and does nothing there."""
    called = set(_CALLED.findall(plan))
    if "find" not in called:
        return None
    said: list[Place] = [place for place in _SAID if _said_pattern(place, language).search(_plain(request))]
    # A request that names two places means to look everywhere.
    if len(said) != 1 or named_places(request, language) != frozenset(said):
        return None
    # "What is the mail address of …" asks for an address, which may stand anywhere.
    is_asked = _said_pattern(said[0], language).search(_plain(plan)) is not None
    return None if is_asked or called & _SERVED[said[0]] else said[0]

"""Words that name days, in English, German, French and Spanish: small tables, without case and accents.

A word that means something else in everyday language (`may`, `march`, `mars`, `mayo`, a first name such as `April`)
is listed in `AMBIGUOUS_MONTHS` and counts as a month only beside a day, a year or a preposition.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

Language = Literal["en", "de", "fr", "es"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es")


def fold(word: str) -> str:
    """A word in small letters without accents: `Août` and `aout` are the same word."""
    if word.isascii():
        return word.lower()
    return "".join(mark for mark in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(mark))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _numbered(lines: tuple[str, ...], first: int) -> dict[str, int]:
    return {name: number for number, names in enumerate(lines, first) for name in names.split()}


MONTH_NAMES = _numbered(
    (
        "january januar janner janvier enero",
        "february februar fevrier febrero",
        "march marz maerz mars marzo",
        "april avril abril",
        "may mai mayo",
        "june juni juin junio",
        "july juli juillet julio",
        "august aout agosto",
        "september septembre septiembre setiembre",
        "october oktober octobre octubre",
        "november novembre noviembre",
        "december dezember decembre diciembre",
    ),
    1,
)
# `ago` (Spanish for August) is left out: in English it ends "two weeks ago".
MONTH_SHORT = _numbered(
    tuple(
        "jan ene janv|feb fev fevr|mar mrz|apr avr abr||jun|jul juil|aug|sep sept|oct okt|nov|dec dez dic".split("|")
    ),
    1,
)
MONTHS = {**MONTH_SHORT, **MONTH_NAMES}
AMBIGUOUS_MONTHS = _words("may march mars mayo april june august avril juli junio julio") | frozenset(MONTH_SHORT)
# Alone after a preposition these would be a name, the sea or a number: they need a day or a year beside them.
NUMBERED_MONTHS = _words("mar jan sept dic jun jul")
ENGLISH_MONTH_TITLES = ("January February March April May June July August September October November December").split()
ENGLISH_WEEKDAY_TITLES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

WEEKDAYS = _numbered(
    (
        "monday montag lundi lunes",
        "tuesday dienstag mardi martes",
        "wednesday mittwoch mercredi miercoles",
        "thursday donnerstag jeudi jueves",
        "friday freitag vendredi viernes",
        "saturday samstag sonnabend samedi sabado",
        "sunday sonntag dimanche domingo",
    ),
    0,
)
WEEKDAYS_SHORT = _numbered(
    (
        "mon mo lun",
        "tue tues di mar",
        "wed mi mer mie",
        "thu thur thurs do jeu jue",
        "fri fr ven vie",
        "sat sa sam sab",
        "sun so dim dom",
    ),
    0,
)
ENGLISH_WEEKDAYS_SHORT = _words("mon tue tues wed thu thur thurs fri sat sun")
BEFORE_SHORT_WEEKDAY = _words("on next last this by until till since before after coming from to")

# Days away from today, by one word.
RELATIVE_DAYS = {
    **dict.fromkeys("today tonight heute hoy".split(), 0),
    **dict.fromkeys("tomorrow tmrw tomorow tommorow tommorrow morgen demain manana".split(), 1),
    **dict.fromkeys("yesterday gestern hier ayer anoche".split(), -1),
    **dict.fromkeys("ubermorgen uebermorgen".split(), 2),
    **dict.fromkeys("vorgestern anteayer antier".split(), -2),
}

Unit = Literal["day", "week", "fortnight", "weekend", "month", "quarter", "year"]
UNITS: dict[str, Unit] = {
    **dict.fromkeys("day days tag tage tagen jour jours dia dias".split(), "day"),
    **dict.fromkeys("week weeks woche wochen semaine semaines semana semanas".split(), "week"),
    **dict.fromkeys("fortnight fortnights quinzaine quincena".split(), "fortnight"),
    **dict.fromkeys("weekend weekends wochenende".split(), "weekend"),
    **dict.fromkeys("month months monat monate monaten monats mois mes meses".split(), "month"),
    **dict.fromkeys("quarter quarters quartal quartale quartalen quartals trimestre trimestres".split(), "quarter"),
    **dict.fromkeys("year years jahr jahre jahren jahres an ans annee annees ano anos".split(), "year"),
}

SHIFTS = {
    **dict.fromkeys(
        "this current dieser diese dieses diesen diesem laufende laufenden laufendes ce cet cette este esta".split(), 0
    ),
    **dict.fromkeys(
        "next coming upcoming nachste nachsten nachster nachstes nachstem naechste naechsten naechster naechstes "
        "kommende kommenden kommender kommendes prochain prochaine prochains prochaines proximo proxima proximos "
        "proximas".split(),
        1,
    ),
    **dict.fromkeys(
        "last past previous letzte letzten letzter letztes letztem vergangene vergangenen vergangener vergangenes "
        "vorige vorigen voriger voriges dernier derniere derniers dernieres passe passee ultimo ultima ultimos "
        "ultimas pasado pasada".split(),
        -1,
    ),
    **dict.fromkeys("ubernachste ubernachsten ubernachster ubernachstes".split(), 2),
    **dict.fromkeys("vorletzte vorletzten vorletzter vorletztes".split(), -2),
}
# French and Spanish put these after the noun; `past` and the like before it only.
SHIFTS_AFTER = {
    word: SHIFTS[word]
    for word in (
        "prochain prochaine prochains prochaines proximo proxima dernier derniere derniers dernieres passe passee "
        "pasado pasada"
    ).split()
}

_TENS = {"zwanzig": 20, "dreissig": 30, "dreißig": 30}
_GERMAN_ONES = "ein zwei drei vier funf sechs sieben acht neun".split()
NUMBER_WORDS = {
    **_numbered(
        (
            "one ein eine einem einen einer un une uno una",
            "two zwei deux dos",
            "three drei trois tres",
            "four vier quatre cuatro",
            "five funf fuenf cinq cinco",
            "six sechs seis",
            "seven sieben sept siete",
            "eight acht huit ocho",
            "nine neun neuf nueve",
            "ten zehn dix diez",
            "eleven elf onze once",
            "twelve zwolf zwoelf douze doce",
            "thirteen dreizehn treize trece",
            "fourteen vierzehn quatorze catorce",
            "fifteen funfzehn quinze quince",
            "sixteen sechzehn seize dieciseis",
            "seventeen siebzehn diecisiete",
            "eighteen achtzehn dieciocho",
            "nineteen neunzehn diecinueve",
            "twenty vingt veinte",
        ),
        1,
    ),
    **{f"{one}und{tens}": value + at for tens, value in _TENS.items() for at, one in enumerate(_GERMAN_ONES, 1)},
    **_TENS,
    **dict.fromkeys("thirty trente treinta".split(), 30),
    **dict.fromkeys("forty vierzig quarante cuarenta".split(), 40),
    **dict.fromkeys("fifty funfzig cinquante cincuenta".split(), 50),
    **dict.fromkeys("sixty sechzig soixante sesenta".split(), 60),
    **dict.fromkeys("ninety neunzig noventa".split(), 90),
    **dict.fromkeys("hundred hundert cent cien".split(), 100),
    "couple": 2,
}
ARTICLE_NUMBERS = _words("a an")
# First to fourth, for quarters, and `first` for the first day of a month.
ORDINAL_WORDS = _numbered(
    (
        "first erste ersten erstes erster premier premiere primer primero primera",
        "second zweite zweiten zweites zweiter deuxieme segundo",
        "third dritte dritten drittes dritter troisieme tercer tercero",
        "fourth vierte vierten viertes vierter quatrieme cuarto",
    ),
    1,
)

Third = Literal["early", "middle", "late"]
THIRDS: dict[str, Third] = {
    **dict.fromkeys(
        "early beginning start anfang debut principio principios comienzo comienzos inicio inicios".split(), "early"
    ),
    **dict.fromkeys("mid middle mitte mi milieu mediados".split(), "middle"),
    **dict.fromkeys("late end ende fin final finales fines".split(), "late"),
}

Relation = Literal["", "since", "until", "before", "after"]
RELATIONS: dict[str, Relation] = {
    **dict.fromkeys("since seit depuis desde ab partir".split(), "since"),
    **dict.fromkeys("until till til by through bis jusqu jusque hasta ici".split(), "until"),
    **dict.fromkeys("before vor avant antes".split(), "before"),
    **dict.fromkeys("after nach apres despues".split(), "after"),
}
ARTICLES = _words(
    "the le la les el los las den dem der die das des zum zur am im au a en de del du d l al on in an dia of"
)
MONTH_PREPOSITIONS = _words(
    "in since until till by of from during for before after through to im seit bis ab vom zum von en de depuis avant "
    "apres desde hasta del partir antes despues d jusqu pour para durante pendant mes mois month monat"
)
RANGE_OPENERS = _words("between zwischen entre")
RANGE_WORDS = _words("to until till through thru bis au a al hasta")
RANGE_MARKS = frozenset("-–—")
AND_WORDS = _words("and und et y e")
MOVE_WORDS = _words(
    "move moved postpone postponed reschedule rescheduled shift shifted change changed verschiebe verschieben "
    "verschoben verlege verlegen deplace deplacez deplacer reporte reportez reporter mueve mover cambia cambiar aplaza"
)
RECURRENCE = _words("every each jeden jede jedes jedem chaque tous toutes cada todos todas alle")

# Words of grammar: they tell the languages apart, and a noun from what may follow a year or a day.
FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    "en": _words(
        "the of and is are was were what which who my me i to in on for how did do does this with from at by it we you "
        "or when where much many have has had will be that there please than not our your as if then"
    ),
    "de": _words(
        "der die das und ist sind war im am ich mir mein meine meinen wie viel viele was fur von bis mit den dem "
        "auf ein "
        "eine einen um zum vom seit nicht habe hat haben bitte wir es zu an aus bei oder wann wo wird werde uns alle"
    ),
    "fr": _words(
        "le la les de du des et est je mon ma mes moi combien quoi que qui pour en dans un une sur au aux il elle "
        "ai avec "
        "ou quand nous vous ce cette ces sont par a se pas d l j m n qu"
    ),
    "es": _words(
        "el la los las de del y es mi mis me cuanto cuanta cuantos que para en un una por con al he se lo o "
        "cuando donde "
        "son hay este esta su sus a no yo nos"
    ),
}
ALL_FUNCTION_WORDS = frozenset[str]().union(*FUNCTION_WORDS.values())
RECORD_NOUNS = _words(
    "invoice invoices bill bills report reports numbers totals total expenses sales payments payment budget statement "
    "statements figures rent salary receipts results data costs spending"
)

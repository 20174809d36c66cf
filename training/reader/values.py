"""Values of facts: how a text writes them in each language, and how a reply does."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from bicameral import types as t

from .facts import Fact, Language, load_words

_MONTHS: dict[Language, Sequence[str]] = {
    "en": "January February March April May June July August September October November December".split(),
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(),
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split(),
}
_WEEKDAYS: dict[Language, Sequence[str]] = {
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split(),
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche".split(),
    "es": "lunes martes miércoles jueves viernes sábado domingo".split(),
}
_FIRST = (
    "Ansgar Beatrix Celeste Dario Edda Fabrice Gesine Hamza Ilse Jorge Katrin Loïc Mireia Nuria Ottilie Pascal Quentin "
    "Rosalie Svenja Tadeusz Ulrike Valentina Wibke Xavier Yasmin Zoltan Amadou Brigitte Cosima Dolores Emeric Friedrun "
    "Gonzalo Henrike Imogen Joaquín Kerstin Leopold Maribel Norbert Ophelia Priya Roswitha Sinead Thibault Ursula"
).split()
_LAST = (
    "Achterberg Bellini Castaño Dubreuil Eisenhut Fontaine Galván Hollander Iversen Jankowski Kaltenbach Lindqvist "
    "Montero Niederhofer Obermeier Pellegrin Quiroga Rosenthal Sandoval Thalberg Urbanski Vasseur Westerholt Ybarra "
    "Zumthor Ashdown Blakeney Carrick Dunmore Fairweather Granger Holloway Kettering Marchbanks Penrose Whitlock"
).split()
_SHOPS = (
    "Berger & Söhne; Maison Lavigne; Hartwell Brothers; Ferretería Solana; Elektro Kranz; Comptoir du Nord; "
    "Oakham Stores; Bazar Central; Technikhaus Ried; La Bonne Prise; Fielding & Co; Almacenes Duarte; "
    "Radhaus Ost; Au Fil de l'Eau; "
    "Northgate Supplies; Casa Merino"
).split("; ")
_STREETS: dict[Language, list[str]] = {
    "en": ["Tanner's Row", "Quarry Hill", "Elder Close", "Fisher Street", "Old Ropewalk", "Canal Side", "Beacon Road"],
    "de": ["Gerberstraße", "Am Steinbruch", "Holunderweg", "Fischergasse", "Seilerbahn", "Kanalufer", "Turmstraße"],
    "fr": ["rue des Tanneurs", "chemin de la Carrière", "allée des Sureaux", "quai du Canal", "rue de la Corderie"],
    "es": ["calle Curtidores", "camino de la Cantera", "calle del Saúco", "paseo del Canal", "calle Pescadores"],
}
_TOWNS: dict[Language, list[str]] = {
    "en": ["Harborne", "Castleford", "Thirsk", "Ludlow", "Alnwick"],
    "de": ["Neuburg", "Wismar", "Bad Aibling", "Celle", "Rottweil"],
    "fr": ["Quimper", "Auxerre", "Vienne", "Dole", "Agen"],
    "es": ["Úbeda", "Astorga", "Tudela", "Ronda", "Vic"],
}
_PLACES: dict[Language, list[str]] = {
    "en": [
        "under the flower pot", "behind the meter box", "in the blue tin on the shelf", "at the baker's next door",
        "on the hook by the cellar stairs", "in the letterbox of number 9", "in the drawer under the telephone",
    ],
    "de": [
        "unter dem Blumentopf", "hinter dem Zählerkasten", "in der blauen Dose im Regal", "beim Bäcker nebenan",
        "am Haken neben der Kellertreppe", "im Briefkasten von Nummer 9", "in der Schublade unter dem Telefon",
    ],
    "fr": [
        "sous le pot de fleurs", "derrière le compteur", "dans la boîte bleue de l'étagère",
        "chez le boulanger d'à côté", "au crochet près de l'escalier", "dans la boîte aux lettres du 9",
        "dans le tiroir sous le téléphone",
    ],
    "es": [
        "debajo de la maceta", "detrás del contador", "en la lata azul del estante", "en la panadería de al lado",
        "en el gancho de la escalera", "en el buzón del número 9", "en el cajón debajo del teléfono",
    ],
}  # fmt: skip
_HOSTS = "kelbra-online.example varnay.example oxlea.example tormes.example hagenau-info.example pontil.example".split()


@dataclass(frozen=True, slots=True)
class Value:
    """A value as a text writes it (`written`), as a table does (`cell`), and its reply for each type by name.

    `bare` is what is copied where the form asks for text. `day` is set for days and moments.
    """

    written: str
    bare: str
    cell: str
    replies: dict[str, str]
    day: dt.date | None = None
    moment: dt.datetime | None = None
    number: int = 0

    def reply(self, name: str, *, from_cell: bool = False) -> str:
        """The JSON of the reply for a type."""
        if name == "str":
            return json.dumps(self.cell if from_cell else self.bare, ensure_ascii=False)
        if from_cell and name in ("float", "number", "int"):
            return self.cell
        return self.replies[name]


def make_type(name: str, values: tuple[str, ...] = ()) -> t.Type:
    """The type of a name in the corpus; `choice` is one of the values."""
    plain: dict[str, t.Type] = {
        "str": t.STR, "int": t.INT, "float": t.FLOAT, "number": t.NUMBER, "money": t.MONEY, "bool": t.BOOL,
        "date": t.DATE, "datetime": t.DATETIME, "time": t.TIME, "list": t.ListType(t.STR),
    }  # fmt: skip
    if name == "choice":
        return t.LiteralType(values)
    return plain[name] if name in plain else t.StrType(name)


def person_name(picks: random.Random) -> str:
    """A name; half of them with a family name."""
    first = picks.choice(_FIRST)
    return f"{first} {picks.choice(_LAST)}" if picks.random() < 0.6 else first


def address_of(name: str, picks: random.Random) -> str:
    """A mail address that fits a name."""
    ascii_name = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    host = picks.choice(_HOSTS)
    return f"{picks.choice('._-').join(re.findall('[a-z]+', ascii_name))}@{host}"


def shop_name(picks: random.Random) -> str:
    return picks.choice(_SHOPS)


def random_day(picks: random.Random, start: int = 2024, end: int = 2028) -> dt.date:
    first = dt.date(start, 1, 1)
    return first + dt.timedelta(picks.randrange((dt.date(end, 1, 1) - first).days))


def write_day(day: dt.date, language: Language, picks: random.Random, *, year: bool = True) -> str:
    """A day in one of the notations of a language, without a preposition before it."""
    month, number = _MONTHS[language][day.month - 1], day.day
    full = f" {day.year}" if year else ""
    ordinal = f"{number}{'th' if 10 < number < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
    ways: dict[Language, list[str]] = {
        "en": [
            f"{number} {month}{full}", f"{month} {number}{',' if year else ''}{full}", f"{number} {month[:3]}{full}",
            f"{ordinal} {month}{full}", f"{_WEEKDAYS['en'][day.weekday()]}, {number} {month}{full}",
        ],
        "de": [
            f"{number}. {month}{full}", f"{number}.{day.month}.{day.year if year else ''}",
            f"{number:02}.{day.month:02}.{day.year if year else ''}", f"{number}. {month}{full}",
        ],
        "fr": [f"{'1er' if number == 1 else number} {month}{full}", f"{number} {month}{full}"],
        "es": [f"{number} de {month}{f' de {day.year}' if year else ''}", f"{number} de {month}{full}"],
    }  # fmt: skip
    if year:
        ways["de"].append(f"{number:02}.{day.month:02}.{day.year % 100:02}")
        for language_with_slashes in ("fr", "es"):
            ways[language_with_slashes].append(f"{number:02}/{day.month:02}/{day.year}")
        ways[language].append(day.isoformat())
    return picks.choice(ways[language])


def spell_day(day: dt.date, language: Language, *, year: bool = False, weekday: bool = False) -> str:
    """A day with the name of its month, in the one notation that stands after any preposition."""
    month, number = _MONTHS[language][day.month - 1], day.day
    full, name = (f" {day.year}" if year else ""), _WEEKDAYS[language][day.weekday()]
    match language:
        case "en" | "fr":
            before, written = f"{name} ", f"{number} {month}{full}"
        case "de":
            before, written = f"{name}, ", f"{number}. {month}{full}"
        case "es":
            before, written = f"{name} ", f"{number} de {month}" + (f" de {day.year}" if year else "")
    return before + written if weekday else written


def write_time(at: dt.time, language: Language, picks: random.Random) -> str:
    """A time of day without a preposition."""
    hour, minute = at.hour, f"{at.minute:02}"
    match language:
        case "en":
            half, short = ("am" if hour < 12 else "pm"), (hour % 12 or 12)
            twelve = f"{short} {half}" if not at.minute else f"{short}:{minute} {half}"
            return picks.choice([f"{hour:02}:{minute}", f"{hour}:{minute}", twelve])
        case "de":
            short_form = f"{hour} Uhr" if not at.minute else f"{hour}.{minute} Uhr"
            return picks.choice([f"{hour}:{minute} Uhr", f"{hour:02}:{minute} Uhr", short_form])
        case "fr":
            return picks.choice(
                [f"{hour} h {minute}" if at.minute else f"{hour} h", f"{hour}h{minute}", f"{hour}:{minute}"]
            )
        case "es":
            return picks.choice([f"{hour}:{minute}", f"{hour:02}:{minute}", f"{hour}:{minute} h"])


_BEFORE_MOMENT: dict[Language, tuple[str, str]] = {
    "en": ("on ", " at "),
    "de": ("am ", " um "),
    "fr": ("le ", " à "),
    "es": ("el ", " a las "),
}


def write_moment(
    moment: dt.datetime, language: Language, picks: random.Random, *, year: bool = True
) -> tuple[str, str]:
    """A day and a time with the preposition before the day, and without it."""
    while True:
        day = write_day(moment.date(), language, picks, year=year)
        # `am 14.4. um` and `el 2026-04-14 a las` are not written.
        if not (language != "en" and day.count("-") == 2):
            break
    before, at = _BEFORE_MOMENT[language]
    bare = f"{day}{at}{write_time(moment.time(), language, picks)}"
    return before + bare, bare


def _group(whole: int, separator: str) -> str:
    return f"{whole:,}".replace(",", separator) if whole >= 1000 else str(whole)


def money(low: int, high: int, language: Language, picks: random.Random) -> Value:
    """An amount; the reply has the digits of the text without separators of thousands."""
    scale = picks.random() ** 2
    whole = round(low + scale * (high - low))
    cents = picks.choice([None, None, 0, 50, 90, 95, 99, picks.randrange(100)])
    currency = picks.choice({"en": ["EUR", "GBP", "USD"], "de": ["EUR", "EUR", "EUR", "CHF"]}.get(language, ["EUR"]))
    sign = {"EUR": "€", "GBP": "£", "USD": "$", "CHF": "CHF"}[currency]
    if currency == "CHF":
        grouped = _group(whole, picks.choice(["'", ""])) + ("" if cents is None else f".{cents:02}")
        written = f"CHF {grouped}"
    elif language == "en":
        number = _group(whole, picks.choice([",", ",", ""])) + ("" if cents is None else f".{cents:02}")
        written = picks.choice([f"{sign}{number}", f"{sign}{number}", f"{currency} {number}", f"{number} {currency}"])
    else:
        separator = picks.choice({"de": [".", ""], "fr": [" ", ""], "es": [".", ""]}[language])
        number = _group(whole, separator) + ("" if cents is None else f",{cents:02}")
        written = picks.choice(
            [f"{number} €", f"{number} €", f"{number} Euro" if language == "de" else f"{number} EUR"]
        )
    digits = str(whole) if cents is None else f"{whole}.{cents:02}"
    cell = str(whole) if not cents else repr(whole + cents / 100 if cents else whole)
    as_money = json.dumps({"amount": 0, "currency": currency}).replace("0", digits, 1)
    return Value(written, written, cell, {"float": digits, "number": digits, "money": as_money})


def restate_value(fact: Fact, value: Value, source: Language, target: Language) -> str:
    """A value of a text as another language writes it; what is a name, a code or an address stays as it is."""
    kind = fact.kind.partition(":")[0]
    if source == target:
        return value.written
    if kind == "money":
        return _restate_money(value, target)
    if value.moment is not None:
        before, at = {"en": ("on ", " at "), "de": ("am ", " um "), "fr": ("le ", " à "), "es": ("el ", " a las ")}[
            target
        ]
        return (
            f"{before}{spell_day(value.moment.date(), target, year=True)}{at}{spell_time(value.moment.time(), target)}"
        )
    if value.day is not None:
        return spell_day(value.day, target, year=True)
    theirs, ours = fact.wordings[source].values, fact.wordings[target].values
    match kind:
        case "time":
            return spell_time(dt.time.fromisoformat(json.loads(value.replies["time"])), target)
        case "int":
            return value.cell
        case "text" | "choice":
            return ours[value.number]
        case "items":
            items = [ours[theirs.index(each)] for each in json.loads(value.replies["list"])]
            return ", ".join(items[:-1]) + load_words(target)["and"] + items[-1] if len(items) > 1 else items[0]
        case "place":
            return _PLACES[target][_PLACES[source].index(value.written)]
        case _:
            return value.written


def _restate_money(value: Value, language: Language) -> str:
    digits, currency = value.replies["float"], json.loads(value.replies["money"])["currency"]
    sign = {"EUR": "€", "GBP": "£", "USD": "$", "CHF": "CHF"}[currency]
    if language == "en":
        return f"{sign}{digits}" if sign != "CHF" else f"CHF {digits}"
    return f"{digits.replace('.', ',')} {sign}"


def spell_time(at: dt.time, language: Language) -> str:
    hour, minute = at.hour, f"{at.minute:02}"
    return {"de": f"{hour}:{minute} Uhr", "fr": f"{hour} h {minute}"}.get(language, f"{hour}:{minute}")


def day_value(day: dt.date, language: Language, picks: random.Random, *, year: bool = True) -> Value:
    written = write_day(day, language, picks, year=year)
    return Value(written, written, day.isoformat(), {"date": json.dumps(day.isoformat())}, day=day)


def moment_value(moment: dt.datetime, language: Language, picks: random.Random, *, year: bool = True) -> Value:
    written, bare = write_moment(moment, language, picks, year=year)
    replies = {
        "datetime": f'"{moment:%Y-%m-%dT%H:%M}"',
        "date": f'"{moment:%Y-%m-%d}"',
        "time": f'"{moment:%H:%M}"',
    }
    return Value(written, bare, f"{moment:%Y-%m-%d %H:%M}", replies, moment.date(), moment)


def text_value(text: str, number: int = 0) -> Value:
    quoted = json.dumps(text, ensure_ascii=False)
    names = ("str", "id", "code", "phone", "email", "iban", "url", "choice")
    return Value(text, text, text, dict.fromkeys(names, quoted), number=number)


def items_value(items: list[str], language: Language, picks: random.Random) -> Value:
    last = picks.choice([load_words(language)["and"], ", "])
    written = ", ".join(items[:-1]) + last + items[-1] if len(items) > 1 else items[0]
    return Value(written, written, ", ".join(items), {"list": json.dumps(items, ensure_ascii=False)})


def _serial(picks: random.Random) -> str:
    letters = "".join(picks.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=picks.choice([1, 2, 3])))
    digits = "".join(picks.choices("0123456789", k=picks.choice([4, 5, 6, 7])))
    return picks.choice(
        [f"{letters}-{digits}", f"{letters}{digits}", f"{digits}", f"{digits[:3]}-{letters}-{digits[3:]}"]
    )


def _iban(picks: random.Random) -> str:
    country, length = picks.choice([("DE", 18), ("ES", 20), ("AT", 16), ("NL", 14)])
    body = "".join(picks.choices("0123456789", k=length))
    if country == "NL":
        body = "INGB" + body[4:]
    digits = "".join(str(int(each, 36)) for each in body + country + "00")
    whole = f"{country}{98 - int(digits) % 97:02}{body}"
    return " ".join(whole[at : at + 4] for at in range(0, len(whole), 4)) if picks.random() < 0.6 else whole


def _phone(language: Language, picks: random.Random) -> str:
    def digits(count: int) -> str:
        return "".join(picks.choices("0123456789", k=count))

    ways: dict[Language, list[str]] = {
        "en": [f"01632 960{digits(3)}", f"07700 900{digits(3)}", f"+44 7700 900{digits(3)}"],
        "de": [f"0{digits(3)} {digits(6)}", f"0171 39{digits(5)}", f"+49 30 23125{digits(3)}"],
        "fr": [f"{start} {digits(2)} {digits(2)}" for start in ("01 99 00", "06 39 98", "+33 6 39 98")],
        "es": [f"{start} {digits(3)} {digits(3)}" for start in ("600", "910", "+34 600")],
    }  # fmt: skip
    return picks.choice(ways[language])


def _address(language: Language, picks: random.Random) -> str:
    street, number = picks.choice(_STREETS[language]), picks.randrange(1, 140)
    town = picks.choice(_TOWNS[language])
    place = f"{number} {street}" if language in ("en", "fr") else f"{street} {number}"
    return f"{place}, {town}" if picks.random() < 0.6 else place


def make_value(
    fact: Fact, language: Language, picks: random.Random, *, year: bool = True, around: dt.date | None = None
) -> Value:
    """A value for a fact.

    Args:
        year: Whether a day is written with its year.
        around: Days are within some weeks after this one.
    """
    kind, _, limits = fact.kind.partition(":")
    low, high = map(int, limits.split("-")) if limits else (0, 0)
    values = fact.wordings[language].values
    born = fact.id == "person.birthday"
    day = random_day(picks, 1938, 2019) if born else random_day(picks)
    if around is not None and not born:
        day = around + dt.timedelta(picks.randrange(2, 60))
    match kind:
        case "money":
            return money(low, high, language, picks)
        case "date":
            return day_value(day, language, picks, year=year or born)
        case "datetime":
            at = dt.time(picks.randrange(7, 22), picks.choice([0, 0, 15, 30, 45, 10]))
            return moment_value(dt.datetime.combine(day, at), language, picks, year=year)
        case "time":
            at = dt.time(picks.randrange(6, 22), picks.choice([0, 15, 30, 45]))
            written = write_time(at, language, picks)
            return Value(written, written, f"{at:%H:%M}", {"time": f'"{at:%H:%M}"'})
        case "int":
            number = picks.randrange(low, high)
            separators: dict[Language, str] = {"en": ",", "de": ".", "fr": " ", "es": "."}
            written = _group(number, picks.choice([separators[language], ""])) if number > 9999 else str(number)
            return Value(written, written, str(number), {"int": str(number), "float": str(number)})
        case "items":
            return items_value(picks.sample(values, picks.randrange(1, 6)), language, picks)
        case "text" | "choice":
            number = picks.randrange(len(values))
            return text_value(values[number], number)
        case _:
            return text_value(_named_text(kind, language, picks))


def _named_text(kind: str, language: Language, picks: random.Random) -> str:
    match kind:
        case "code":
            digits = "".join(picks.choices("0123456789", k=picks.choice([4, 4, 5, 6])))
            return picks.choice([digits, digits, f"{digits[:3]}{picks.choice('ABCDEF')}{digits[3:]}"])
        case "serial":
            return _serial(picks)
        case "place":
            return picks.choice(_PLACES[language])
        case "person":
            return person_name(picks)
        case "shop":
            return shop_name(picks)
        case "address":
            return _address(language, picks)
        case "phone":
            return _phone(language, picks)
        case "email":
            return address_of(person_name(picks), picks)
        case "iban":
            return _iban(picks)
        case "url":
            page = picks.choice(["info", "visit", "tickets", "start", f"p/{_serial(picks).lower()}"])
            return f"https://www.{picks.choice(_HOSTS)}/{page}"
        case "plate":
            letters = "".join(picks.choices("ABCDEFGHJKLMNPRSTUVWXYZ", k=4))
            return f"{letters[:2]}-{picks.randrange(100, 1000)}-{letters[2:]}"
        case "tyre":
            width, height = picks.choice([175, 185, 195, 205, 215, 225]), picks.choice([45, 55, 60, 65, 70])
            return f"{width}/{height} R{picks.randrange(14, 19)}"
        case _:
            raise ValueError(f"there is no kind {kind!r}")


_RELATIVE: dict[Language, dict[int, str]] = {
    "en": {1: "tomorrow", 2: "the day after tomorrow", 7: "in a week", 14: "in two weeks"},
    "de": {1: "morgen", 2: "übermorgen", 7: "in einer Woche", 14: "in zwei Wochen"},
    "fr": {1: "demain", 2: "après-demain", 7: "dans une semaine", 14: "dans deux semaines"},
    "es": {1: "mañana", 2: "pasado mañana", 7: "dentro de una semana", 14: "dentro de dos semanas"},
}


def relative_value(today: dt.date, language: Language, picks: random.Random) -> Value:
    """A moment whose day is said from today on: tomorrow, on Friday."""
    away = picks.choice([1, 1, 2, 3, 4, 5, 6, 7, 14])
    moment = dt.datetime.combine(today, dt.time(picks.randrange(8, 21), picks.choice([0, 15, 30])))
    moment += dt.timedelta(away)
    weekday = _WEEKDAYS[language][moment.weekday()]
    on = {"en": f"on {weekday}", "de": f"am {weekday}", "fr": weekday, "es": f"el {weekday}"}[language]
    at = {"en": " at ", "de": " um ", "fr": " à ", "es": " a las "}[language]
    written = f"{_RELATIVE[language].get(away, on)}{at}{write_time(moment.time(), language, picks)}"
    known = moment_value(moment, language, picks)
    return Value(written, written, known.cell, known.replies, moment.date(), moment)

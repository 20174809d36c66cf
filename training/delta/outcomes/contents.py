"""Worlds for one plan, made by program: tables, texts, mails, events and people on both sides of its conditions.

The same plan, language and variant give the same content. A variant is a number; its shape is one of a few: an even
spread of values, few rows with small numbers, many with large ones, cells that are empty, and values of which most
stand on one side of every condition. Between them the branches of most plans are taken.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.planning.data import Data, Entry, Letter, Table as FileTable

from ..compose.domains import LANGUAGES, Domain, Language, Pair, load_language
from .needs import Column, ColumnKind, Needs, Search, Table

Shape = Literal["spread", "sparse", "rich", "holes", "lopsided"]
SHAPES: tuple[Shape, ...] = ("spread", "sparse", "rich", "lopsided", "holes", "lopsided", "sparse", "rich")
_ROWS: Mapping[Shape, int] = {"spread": 16, "sparse": 4, "rich": 24, "holes": 14, "lopsided": 11}
MARKER = "zqmarkerqz"
"""A word of every world that no plan has: it shows which branch a plan takes."""
_YES_NO: Mapping[str, tuple[str, str]] = {
    "en": ("yes", "no"),
    "de": ("ja", "nein"),
    "fr": ("oui", "non"),
    "es": ("sí", "no"),
}
_FIRST = (
    "Alma Bent Cora Dirk Edda Finn Gesa Hauke Ilka Jorn Kaja Lasse Mina Nele Oskar Pia Quint Runa Silas Thea Ulf Vera "
    "Wim Xenia Ylva Zita Arvid Britt Calle Dora Emrik Freya Gunnar Hedda Ivar Jelka"
).split()
_LAST = (
    "Ahlgren Brandvold Carlsund Dahlmark Ekstedt Fjellner Granlund Holmberg Isaksen Jernvik Kallander Lundvall Morvik "
    "Nystrand Ostberg Palmgren Quisling Rosvall Sandvik Torvald Ulvang Vestby Westlund Yngve Zackrisson"
).split()
_THINGS = (
    "amber basalt cedar dune ember fjord garnet heath islet juniper kelp larch moss nettle opal pebble quartz reed "
    "slate thistle umber verbena willow yarrow zephyr alder birch clover delta elder fern gorse hazel iris jade knoll "
    "lichen"
).split()


@dataclass(frozen=True, slots=True)
class Content:
    """What a world is made of.

    Args:
        data: Files, mails and events, in the form that `benchmarks.planning` lays out.
        answers: What the person answers, by how the answer is used.
        labels: What prose says something of, with its type.
        vocabulary: Every word or text of the world that an answer may repeat.
    """

    data: Data
    answers: Mapping[str, str]
    vocabulary: frozenset[str]
    labels: Mapping[str, str]


@dataclass
class _Maker:
    needs: Needs
    language: Language
    today: dt.date
    shape: Shape
    picks: random.Random
    upper: bool
    files: dict[str, str] = field(default_factory=dict[str, str])
    tables: dict[str, FileTable] = field(default_factory=dict[str, FileTable])
    letters: list[Letter] = field(default_factory=list[Letter])
    entries: list[Entry] = field(default_factory=list[Entry])
    labels: dict[str, str] = field(default_factory=dict[str, str])
    words: set[str] = field(default_factory=set[str])
    used: set[str] = field(default_factory=set[str])

    # Names --------------------------------------------------------------------------------------------------------

    def thing(self) -> str:
        """A text that no other cell has."""
        while True:
            made = " ".join(self.picks.sample(_THINGS, 2)).capitalize()
            if made not in self.used:
                break
        self.used.add(made)
        self.words.add(made)
        return made

    def person(self) -> tuple[str, str]:
        """A name and an address that nobody else has."""
        while True:
            first, last = self.picks.choice(_FIRST), self.picks.choice(_LAST)
            if f"{first} {last}" not in self.used:
                break
        self.used.add(f"{first} {last}")
        self.words.add(f"{first} {last}")
        return f"{first} {last}", f"{first}.{last}@example.org".lower()

    # Tables -------------------------------------------------------------------------------------------------------

    def add_table(self, table: Table) -> None:
        domain = _domain_of(table, self.language)
        pair = _pair_of(table, self.language) if "join_rows" in self.needs.tools else None
        kinds: dict[str, ColumnKind] = {}
        if domain is not None:
            kinds = _domain_kinds(domain)
        elif pair is not None:
            kinds = _pair_kinds(pair, left=table.words == _bare(pair.left))
        known = dict(table.columns)
        if pair is not None and domain is None:
            # A column that is read from joined rows is needed in one of the two tables only.
            known = {name: column for name, column in known.items() if name in kinds}
        for name, column in known.items():
            kinds[name] = _kind_of(column, kinds.get(name))
        if not any(kind == "text" for kind in kinds.values()):
            kinds = {_label(self.language, "name"): "text", **kinds}
        pools = {name: self.pool(known.get(name) or Column(name), kind, domain) for name, kind in kinds.items()}
        rows = [self.row(kinds, pools, number) for number in range(_ROWS[self.shape])]
        self.tables[table.words] = FileTable(_path(table.words, table.ending), {name: name for name in kinds}, rows)

    def row(self, kinds: Mapping[str, ColumnKind], pools: Mapping[str, Sequence[Any]], number: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, kind in kinds.items():
            match kind:
                case "text":
                    made[name] = self.thing()
                case "address":
                    made[name] = self.person()[1]
                case "key":
                    # The same keys in every table of the world, so that joins find partners, most of them one.
                    made[name] = f"K{number + 1:02}"
                case _:
                    # The first rows take the values in turn: every value that matters is there.
                    made[name] = pools[name][number] if number < len(pools[name]) else self.picks.choice(pools[name])
            if self.shape == "holes" and kind in ("category", "day") and self.picks.random() < 0.12:
                made[name] = ""
        return made

    def pool(self, column: Column, kind: ColumnKind, domain: Domain | None) -> list[Any]:
        """The values of a column, on both sides of what they are compared with, in any order."""
        match kind:
            case "number":
                pool = self.numbers(column, domain)
            case "flag":
                pool = list(_YES_NO[self.language.code])
                if self.shape == "lopsided":
                    pool = [pool[self.upper]]
            case "day":
                pool = self.days(column)
            case "category":
                pool = self.categories(column, domain)
            case _:
                return []
        return self.picks.sample(pool, len(pool))

    def numbers(self, column: Column, domain: Domain | None) -> list[float]:
        limits = sorted(each for each in column.compared if isinstance(each, float))
        small = domain is not None and any(
            each.column == column.name and each.kind in ("rating", "few") for each in domain.measures
        )
        around = [each + step for each in limits for step in (-1, 0, 1) if each + step >= 0]
        top = max([*limits, 12 if small else 320])
        total = min(self.needs.limits, default=60.0)
        low, high = {"sparse": (1, max(3, total / 12)), "rich": (top / 2, top * 4)}.get(self.shape, (2, top * 1.8))
        drawn = [self.number(low, high, whole=small) for _ in range(_ROWS[self.shape])]
        if self.shape == "lopsided" and limits:
            drawn = [self.number(limits[-1] + 1, limits[-1] * 3 + 9, whole=small) for _ in drawn]
            return drawn if self.upper else [self.number(0, max(1, limits[0] - 1), whole=small) for _ in drawn]
        # Twice, for both answers of another condition, and no more values than rows.
        around = [*around, *around][: len(drawn) // 2]
        return [*around, *drawn[len(around) :]]

    def number(self, low: float, high: float, *, whole: bool) -> float:
        # Quarters add up without an error of rounding, whatever the order.
        drawn = self.picks.uniform(low, max(low + 1, high))
        return round(drawn) if whole or self.picks.random() < 0.5 else round(drawn * 4) / 4

    def days(self, column: Column) -> list[str]:
        bounds = sorted(each for each in column.compared if isinstance(each, dt.date)) or [self.today]
        # What is compared otherwise, such as with `today()`, has the plan's other days to be near to.
        bounds = sorted({*bounds, *(self.needs.days if len(bounds) < 2 else ())})
        first, last = bounds[0], bounds[-1]
        near = [each + dt.timedelta(days=step) for each in bounds for step in (-1, 0, 1)]
        inside = [first + (last - first) * self.picks.random() for _ in range(4)]
        if self.shape == "sparse":
            near = [first - dt.timedelta(days=3), last + dt.timedelta(days=3)]
            inside = [first]
        outside = [self.today + dt.timedelta(days=self.picks.randint(-70, 70)) for _ in range(4)]
        if self.shape == "lopsided":
            before = [first - dt.timedelta(days=self.picks.randint(1, 60)) for _ in range(6)]
            after = [last + dt.timedelta(days=self.picks.randint(1, 60)) for _ in range(6)]
            return [str(each) for each in (after if self.upper else before)]
        return [str(each) for each in [*near, *inside, *outside]]

    def categories(self, column: Column, domain: Domain | None) -> list[str]:
        known = [each.values for each in (domain.categories if domain else ()) if each.column == column.name]
        compared = sorted(str(each) for each in column.compared)
        others = [each for each in (known[0] if known else [self.thing() for _ in range(4)]) if each not in compared]
        if not others:
            others = [self.thing()]
        self.words.update([*compared, *others])
        if self.shape == "lopsided":
            return [*compared, *others * 3]
        return [*compared, *others, *compared]

    # Texts --------------------------------------------------------------------------------------------------------

    def add_text(self, words: str, patterns: set[str]) -> None:
        lines = [f"{self.thing()} {self.picks.randint(2, 90)}" for _ in range(self.picks.randint(4, 9))]
        if words in self.needs.numeric:
            self.files[_path(words, "txt")] = "".join(f"{self.picks.randint(2, 900)}\n" for _ in lines)
            return
        for pattern in sorted(patterns):
            for said in (pattern, pattern.capitalize(), pattern):
                if self.shape != "lopsided" or self.picks.random() < 0.3:
                    lines.append(f"{said} {self.thing()} {self.picks.randint(2, 90)}")
        lines += [self.picks.choice(lines) for _ in range(2)]
        self.picks.shuffle(lines)
        lines += self.facts()
        self.words.update(lines)
        self.files[_path(words, "txt")] = "\n".join(lines) + "\n"

    def facts(self) -> list[str]:
        """A line for everything that the plan reads from prose."""
        return [self.labelled(label, kind) for label, kind in dict(self.needs.read).items()]

    def labelled(self, label: str, kind: str) -> str:
        self.labels[label] = kind
        return f"{label}: {self.fact(kind)}"

    def add_folder(self, words: str, ending: str) -> None:
        kinds = {ending, "txt", "md"}
        for kind in sorted(kinds):
            for _ in range(self.picks.randint(1, 4)):
                name = f"{words}/{_slug(self.thing())}.{kind}" if words else f"{_slug(self.thing())}.{kind}"
                self.files[name] = "".join(f"{self.thing()}\n" for _ in range(self.picks.randint(1, 5)))

    def fact(self, kind: str) -> str:
        if kind in ("int", "float"):
            top = max([*self.needs.limits, 40.0]) * (0.4 if self.shape in ("sparse", "lopsided") else 2)
            return f"{self.number(top / 3, top, whole=kind == 'int'):g}"
        if kind == "date":
            day = self.today + dt.timedelta(days=self.picks.randint(3, 60))
            if "list_events" in self.needs.tools:
                # What the calendar has on a day that is read somewhere.
                self.add_event(self.thing(), day, self.picks.randint(9, 16))
            return str(day)
        if kind == "datetime":
            return f"{self.today + dt.timedelta(days=self.picks.randint(3, 60))} 10:30"
        if kind == "bool":
            return self.picks.choice(_YES_NO[self.language.code])
        if kind.startswith("list"):
            return ", ".join(self.thing() for _ in range(3))
        return self.thing()

    def add_find(self, search: Search) -> None:
        words = str(search.arguments.get("0") or search.arguments.get("query") or "")
        read = dict(self.needs.read)
        said = set(words.casefold().split())
        # The note has what is read from this search: where there are several, what shares most words with it.
        nearest = sorted(read, key=lambda label: -len(said & set(label.casefold().split())))
        labels = nearest[:1] if len(self.finds) > 1 else nearest
        lines = [self.labelled(label, read[label]) for label in labels]
        self.files[_path(f"{words} note", "md")] = f"# {words}\n\n" + "\n".join(lines) + "\n"

    @property
    def finds(self) -> list[Search]:
        return [each for each in self.needs.searches if each.tool == "find"]

    # Mails and events -----------------------------------------------------------------------------------------------

    def add_letters(self, search: Search) -> None:
        given = search.arguments
        texts = [str(given[key]) for key in ("text", "subject", "0") if key in given]
        number = {"sparse": 4, "rich": 12}.get(self.shape, 8)
        since, before = given.get("since"), given.get("before")
        # In one of the worlds nothing is found at all.
        often = 0.6 if self.shape != "lopsided" or self.upper else 0.0
        for each in range(number):
            matching = each < 2 and self.shape != "lopsided"
            name, address = self.person()
            if (sender := given.get("sender")) and (matching or self.picks.random() < often):
                name, address = self.known_sender(str(sender))
            subject = self.thing()
            if texts and (matching or self.picks.random() < often):
                subject = f"{' '.join(texts)} {subject}"
            day = self.mail_day(since, before, matching=matching)
            # What is read from a mail often has the words that it is searched by.
            body = "\n".join([f"{self.thing()}.", *(self.facts() if often else ())])
            moment = dt.datetime.combine(day, dt.time(8 + each % 10, 5 * each % 60))
            unread = self.picks.random() < 0.5 or (matching and bool(given.get("unread")))
            self.words.update((subject, address, name))
            self.letters.append(Letter(f"letter{each}", address, name, moment, subject, body, unread))

    def known_sender(self, words: str) -> tuple[str, str]:
        if "@" in words:
            return words.partition("@")[0].title(), words
        return f"{words} Sandvik".title(), f"{_address(words)}@example.org"

    def mail_day(self, since: object, before: object, *, matching: bool) -> dt.date:
        one = dt.timedelta(days=1)
        if isinstance(since, dt.date) or isinstance(before, dt.date):
            first = since if isinstance(since, dt.date) else before - one * 9 if isinstance(before, dt.date) else None
            assert first is not None
            last = before - one if isinstance(before, dt.date) else max(first, self.today)
            inside = [first, last, first + (last - first) / 2]
            return self.picks.choice(inside if matching else [*inside, first - one, first - one * 5])
        return self.today - one * self.picks.randint(0, 25)

    def add_events(self, search: Search) -> None:
        given = search.arguments
        start = given.get("start") or given.get("day") or given.get("0")
        end = given.get("end") or given.get("1")
        text = given.get("text") or given.get("0")
        first = start if isinstance(start, dt.date) else self.today
        last = end if isinstance(end, dt.date) else first
        one = dt.timedelta(days=1)
        days = [first - one, first, last, last + one, first + (last - first) / 2]
        days += [first + one * self.picks.randint(-3, 20) for _ in range(3)]
        for number, day in enumerate(days if self.shape != "lopsided" else [first - one, last + one, last + one * 2]):
            # In one of the worlds there is no such event at all.
            absent = self.shape == "lopsided" and not self.upper
            said = isinstance(text, str) and not absent and (number < 2 or self.picks.random() < 0.4)
            self.add_event(f"{text} {self.thing()}" if said else self.thing(), day, 9 + number % 8)

    def add_event(self, title: str, day: dt.date, hour: int) -> None:
        self.words.add(title)
        moment = dt.datetime.combine(day, dt.time(hour, self.picks.choice((0, 15, 30))))
        self.entries.append(Entry(title, moment, self.picks.choice((30, 45, 60, 90)), self.thing()))


def make_content(needs: Needs, language: str, today: dt.date, variant: int, place: str) -> Content:
    """The content of one world for a plan.

    Args:
        needs: What the plan needs.
        language: The code of the language; yes and no are said in it.
        today: The day of the request.
        variant: Which of the worlds; the first ones differ in shape.
        place: The block; another block gets other contents.
    """
    code = language if language in LANGUAGES else "en"
    shape = SHAPES[variant % len(SHAPES)]
    picks = random.Random(f"world/{place}/{variant}")
    # Of the two lopsided worlds each takes the other side.
    make = _Maker(needs, load_language(code), today, shape, picks, upper=variant % 4 == 3)
    for table in needs.tables.values():
        make.add_table(table)
    for words, patterns in needs.texts.items():
        make.add_text(words, patterns)
    for words, ending in needs.folders.items():
        make.add_folder(words, ending)
    for search in needs.searches:
        match search.tool:
            case "search_mail":
                make.add_letters(search)
            case "find":
                make.add_find(search)
            case _:
                make.add_events(search)
    for words in needs.events:
        make.add_event(words.capitalize(), today + dt.timedelta(days=picks.randint(1, 9)), picks.randint(9, 16))
    for words in needs.mails:
        name, address = make.person()
        subject = f"{words.capitalize()} {make.thing()}"
        moment = dt.datetime.combine(today, dt.time(7, 30)) - dt.timedelta(days=2)
        make.letters.append(Letter(words, address, name, moment, subject, "\n".join(make.facts()) + "\n", True))
    _add_people(make)
    answers = _answers(make)
    data = Data("a", variant, make.tables, make.files, {}, make.letters, make.entries, {}, {}, {})
    words = frozenset(each for each in make.words if len(each) > 2) | {MARKER}
    return Content(data, answers, words, make.labels)


def _add_people(make: _Maker) -> None:
    people = [(f"{words} {make.picks.choice(_LAST)}" if " " not in words else words) for words in make.needs.people]
    rows = [{"name": name, "email": f"{_address(name)}@example.org"} for name in dict.fromkeys(people)]
    rows += [{"name": name, "email": address} for name, address in (make.person() for _ in range(3))]
    if "contacts" not in make.tables:
        make.tables["contacts"] = FileTable("contacts.csv", {"name": "name", "email": "email"}, rows)


def _answers(make: _Maker) -> dict[str, str]:
    categories = [
        str(value)
        for table in make.tables.values()
        for row in list(table.rows)[:1]
        for name, value in row.items()
        if any(
            each.name == name and each.kind is None for t in make.needs.tables.values() for each in t.columns.values()
        )
    ]
    numbers = [
        float(row[column.name])
        for key, table in make.needs.tables.items()
        for column in table.columns.values()
        if column.kind == "number"
        for row in make.tables[key].rows[:3]
        if isinstance(row.get(column.name), int | float)
    ]
    existing = f"{_slug(make.thing())}.txt"
    make.files[existing] = f"{make.thing()}\n"
    coming = [each.title for each in make.entries if each.start.date() > make.today]
    # A day since which something is looked for has passed, others are to come.
    days = -9 if "search_mail" in make.needs.tools else 3
    return {
        "existing": existing,
        "date": str(make.today + dt.timedelta(days=days)),
        "moment": f"{make.today + dt.timedelta(days=3)} 10:30",
        "event": coming[0] if coming and (make.shape != "lopsided" or make.upper) else make.thing(),
        "file": f"{_slug(make.thing())}.txt",
        "address": make.person()[1],
        "number": f"{sorted(numbers)[len(numbers) // 2] if numbers else 50:g}",
        "value": categories[0] if categories else make.thing(),
    }


# What is known of tables ------------------------------------------------------------------------------------------


def _domain_of(table: Table, language: Language) -> Domain | None:
    """The composed domain of a table: that of its words, or the first that has all its columns."""
    for domain in language.domains:
        if table.words in (domain.many, *(domain.book or ())[:1]):
            return domain
    for domain in language.domains:
        if len(table.columns) > 1 and table.columns.keys() <= _domain_kinds(domain).keys():
            return domain
    return None


def _domain_kinds(domain: Domain) -> dict[str, ColumnKind]:
    kinds: dict[str, ColumnKind] = {domain.name.column: "text"}
    kinds |= {each.column: "number" for each in domain.measures}
    kinds |= {each.column: "flag" for each in domain.flags}
    kinds |= {each.column: "category" for each in domain.categories}
    if domain.day is not None:
        kinds[domain.day.column] = "day"
    if domain.contact:
        kinds[domain.contact] = "address"
    return kinds


def _pair_of(table: Table, language: Language) -> Pair | None:
    """The pair of tables to which one belongs; several may share a name, so the columns must fit as well."""
    for pair in language.pairs:
        if table.words in (_bare(pair.left), _bare(pair.right)) and pair.on in table.columns:
            return pair
    return None


def _pair_kinds(pair: Pair, *, left: bool) -> dict[str, ColumnKind]:
    kinds: dict[str, ColumnKind] = {pair.on: "key"}
    if left:
        if pair.name != pair.on:
            kinds[pair.name] = "text"
        kinds[pair.category] = "category"
    else:
        kinds[pair.measure] = "number"
    return kinds


def _bare(phrase: str) -> str:
    return phrase.split(" ", 1)[1]


def _kind_of(column: Column, known: ColumnKind | None) -> ColumnKind:
    # A column by which tables are joined must have the same values in both, whatever else it is.
    if column.kind == "key":
        return "key"
    return known or column.kind or "text"


_LABELS: Mapping[str, Mapping[str, str]] = {
    "name": {"en": "title", "de": "Bezeichnung", "fr": "libellé", "es": "título"}
}


def _label(language: Language, key: str) -> str:
    return _LABELS[key][language.code]


def _slug(words: str) -> str:
    return re.sub(r"\W+", "_", words.casefold()).strip("_")


def _address(words: str) -> str:
    """The part of an address before the sign, which has plain letters only."""
    plain = unicodedata.normalize("NFKD", words.casefold().replace("œ", "oe").replace("ß", "ss"))
    return re.sub(r"[^a-z0-9]+", ".", plain.encode("ascii", "ignore").decode()).strip(".") or "somebody"


def _path(words: str, ending: str) -> str:
    """The file that words mean: their own name if they have an ending, and one made of them otherwise."""
    return words if re.search(r"\.\w{2,4}$", words) else f"{_slug(words)}.{ending}"

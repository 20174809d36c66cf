"""Slots: `<txt>`, `<person2>`, `<day>`: the same slot has the same value throughout a block."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from bicameral.planning import named_dates

SLOT = re.compile(r"<([a-z]+)(\d*)([,.][a-z]*)?>")

_STEMS = (
    "agenda archive atlas badges bikes board boxes camp cellar chapter choir club coach cookbook crew dairy "
    "deck depot diary draft engine essay ferry field flat forum fridge gallery garage glossary guests harbor "
    "hikes index inbox2 jobs journal kitchen ledger lab letters lyrics manual maps meetup memo menu minutes "
    "museum nursery orchard outline packing parts patch photos piano plants players poems policy props queue "
    "quiz recipes remarks rooms rota route sample schedule score seeds shelf shopping sketch songs speech "
    "stock story studio summary survey syllabus team tickets timetable tools traffic trail trip values vendors "
    "visits wishlist workshop"
).split()
_FIRST = (
    "Ada Akira Amara Anton Beatriz Bruno Carla Chen Dario Elif Emeka Farah Felix Grace Hana Hugo Imani Iris "
    "Jonas Kaito Kira Lars Leila Lucia Malik Mara Mei Milo Nadia Nils Noor Olga Omar Petra Priya Rafael Rosa "
    "Samir Selma Sven Tariq Tess Uma Viktor Wanda Yara Yusuf Zoe"
).split()
_LAST = (
    "Abara Becker Castillo Duarte Eriksen Fontaine Grover Haddad Ishii Jansen Kovac Lindqvist Moreau Novak Okafor Pires"
).split()
_WORDS = (
    "alarm badge battery bicycle blanket cable candle chair contract coupon crash deadline delay discount "
    "donation engine flight guest harvest helmet hotel ladder lesson licence match meeting modem mushroom "
    "package permit pipe printer puzzle receipt refund repair request reservation route sensor shipment signal "
    "sofa spare storm ticket timeout tool tractor trip update valve visitor voucher warning window workshop"
).split()
_TOPICS = (
    "billing,catering,cleaning,heating,hiring,insurance,maintenance,onboarding,parking,payroll,pension,"
    "recycling,security,shipping,tax,training,transport,travel,vacation,warranty"
).split(",")
_TITLES = (
    "Dentist,Swim class,Book club,Car inspection,Team dinner,Design review,Choir practice,Parent evening,"
    "Site visit,Yoga,Planning session,Piano lesson,Board game night,Physio,Rehearsal,Sprint review,"
    "Coffee with Ada,Tax advisor,Vet,Barbecue"
).split(",")
_HOSTS = "example.org example.net example.com shop.example.org news.example.net docs.example.com".split()
_PAGES = (
    "about catalog contact events faq guide hours items jobs list menu news offers places prices rooms status team"
).split()
_DAYS = (
    "today",
    "tomorrow",
    "tomorrow",
    "tmrw",
    "tomorow",
    "tonight",
    "the day after tomorrow",
    "next monday",
    "on tuesday",
    "on wednesday",
    "next thursday",
    "this friday",
    "on saturday",
    "friday",
    "monday",
    "in 3 days",
    "in 2 weeks",
)
_PAST = ("yesterday", "last monday", "last friday", "3 days ago", "2 weeks ago", "last tuesday", "5 days ago")
_MONTHS = "January February March April May June July August September October November December".split()


@dataclass
class Slots:
    """The values of one filling of one block. In a plan `<day,>` is `2025, 6, 3` and `<time,>` is `15, 30`."""

    random: random.Random
    today: dt.date
    values: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def fill(self, text: str, *, in_plan: bool) -> str:
        return SLOT.sub(lambda match: self._one(match, in_plan), text)

    def _one(self, match: re.Match[str], in_plan: bool) -> str:
        kind, number, form = match[1], match[2], match[3]
        base = "word" if kind == "words" else kind
        if base not in _KINDS:
            return match[0]
        key = base + number
        if key not in self.values:
            taken = {value for value, _ in self.values.values()}
            while True:
                value = _KINDS[base](self)
                if value[0] not in taken:
                    break
            self.values[key] = value
        said, meant = self.values[key]
        if kind == "words":
            return _plural(said)
        if not in_plan:
            return said
        if form == ",":
            return ", ".join(str(int(part)) for part in re.split(r"[-:]", meant))
        if form in (".start", ".end"):
            return meant.split("/")[form == ".end"]
        return meant

    def named(self) -> str:
        return self.random.choice(_STEMS) + self.random.choice(["", "", "", "2", "_old", "-new", "_2025", "-b"])


def _plural(word: str) -> str:
    if word.endswith(("sh", "ch", "x", "s")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"


def _same(value: str) -> tuple[str, str]:
    return value, value


def _resolved(slots: Slots, phrase: str) -> tuple[str, str]:
    named = named_dates(phrase, slots.today)[0]
    meant = str(named.start) if named.start == named.end else f"{named.start}/{named.end}"
    return phrase, meant


def _day(slots: Slots) -> tuple[str, str]:
    pick = slots.random
    if pick.random() < 0.5:
        return _resolved(slots, pick.choice(_DAYS))
    day = slots.today + dt.timedelta(days=pick.randint(1, 90))
    if pick.random() < 0.5:
        return _same(str(day))
    month = _MONTHS[day.month - 1]
    return _resolved(slots, pick.choice([f"{month} {day.day}, {day.year}", f"{day.day} {month} {day.year}"]))


def _past(slots: Slots) -> tuple[str, str]:
    if slots.random.random() < 0.6:
        return _resolved(slots, slots.random.choice(_PAST))
    return _same(str(slots.today - dt.timedelta(days=slots.random.randint(2, 200))))


def _time(slots: Slots) -> tuple[str, str]:
    hour, minute = slots.random.randint(7, 20), slots.random.choice([0, 0, 0, 15, 30, 45])
    meant = f"{hour:02}:{minute:02}"
    half = "am" if hour < 12 else "pm"
    twelve = f"{(hour - 1) % 12 + 1}" + (f":{minute:02}" if minute else "") + half
    return slots.random.choice([meant, f"{hour}:{minute:02}", twelve, twelve]), meant


def _ext(*endings: str) -> Callable[[Slots], tuple[str, str]]:
    return lambda slots: _same(f"{slots.named()}.{slots.random.choice(endings)}")


def _pick(*values: str) -> Callable[[Slots], tuple[str, str]]:
    return lambda slots: _same(slots.random.choice(values))


Kind = Callable[[Slots], tuple[str, str]]

_KINDS: dict[str, Kind] = {
    "txt": _ext("txt", "txt", "txt", "md"),
    "log": _ext("log", "log", "txt"),
    "md": _ext("md"),
    "csv": _ext("csv"),
    "json": _ext("json"),
    "folder": lambda slots: _same(slots.random.choice(_STEMS)),
    "word": _pick(*_WORDS),
    "topic": _pick(*_TOPICS, *_WORDS),
    "person": _pick(*_FIRST),
    "fullname": lambda slots: _same(f"{slots.random.choice(_FIRST)} {slots.random.choice(_LAST)}"),
    "mail": lambda slots: _same(
        f"{slots.random.choice([*_FIRST, *_STEMS, *_TOPICS]).lower()}@{slots.random.choice(_HOSTS)}"
    ),
    "title": _pick(*_TITLES),
    "place": _pick("room 2", "room B", "the canteen", "hall 4", "Studio 3", "the library", "Zoom", "floor 5"),
    "url": lambda slots: _same(
        f"http://{slots.random.choice(_HOSTS)}/{slots.random.choice(_PAGES)}{slots.random.choice(['', '', '.html'])}"
    ),
    "api": lambda slots: _same(f"http://{slots.random.choice(_HOSTS)}/api/{slots.random.choice(_STEMS)}"),
    "n": lambda slots: _same(str(slots.random.randint(2, 12))),
    "big": lambda slots: _same(str(slots.random.choice([20, 25, 30, 40, 50, 75, 100, 150, 200, 250, 300, 500, 1000]))),
    "minutes": _pick("15", "20", "30", "45", "60", "90", "120"),
    "day": _day,
    "past": _past,
    "week": lambda slots: _resolved(slots, slots.random.choice(["this week", "next week", "next month"])),
    "ago": lambda slots: _resolved(slots, slots.random.choice(["last week", "this week", "last month", "this month"])),
    "time": _time,
}
KINDS = tuple(_KINDS)

"""Forms that want a list of one section of a text, or how long it is."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import Any, Literal

from bicameral import types as t

from .facts import LANGUAGES, Language, ThingClass, load_classes, load_words
from .forms import Reading, Situation, missing_reply, wrap_reply
from .matters import load_composing_words
from .sources import Document, Writer
from .values import make_value, money, person_name, random_day, shop_name, write_day

_COUNTED = 0.15
ListKind = Literal["offers", "tasks", "dates", "contacts"]
_HEADS: dict[ListKind, str] = {"offers": "offer", "tasks": "minutes", "dates": "programme", "contacts": "group"}
_FIELDS: dict[ListKind, tuple[str, ...]] = {
    "offers": ("item", "price"),
    "tasks": ("person", "task"),
    "dates": (),
    "contacts": ("name", "phone"),
}


def _class(name: str) -> ThingClass:
    return next(each for each in load_classes() if each.name == name)


class _Lists:
    """A text with sections of one kind of list, of which one is asked for."""

    def __init__(self, picks: random.Random, language: Language, text_language: Language) -> None:
        self.picks = picks
        self.language: Language = language
        self.text_language: Language = text_language
        self.kind: ListKind = picks.choice(["offers", "tasks", "dates", "contacts"])
        self.fields = [load_words(language)["fields"][name] for name in _FIELDS[self.kind]]

    def headings(self) -> list[dict[Language, str]]:
        """What the sections are about, in all languages."""
        count = self.picks.choice([1, 2, 2, 3])
        match self.kind:
            case "offers":
                return [dict.fromkeys(LANGUAGES, shop_name(self.picks)) for _ in range(count)]
            case "tasks":
                things = self.picks.sample(_class("project").things, count)
                return [{language: each[language].nom for language in LANGUAGES} for each in things]
            case "dates" | "contacts":
                numbers = self.picks.sample(range(6), count)
                return [{each: load_words(each)["groups"][number] for each in LANGUAGES} for number in numbers]

    def row(self) -> tuple[str, str]:
        """A line of a section, and its part of the reply."""
        picks, language = self.picks, self.text_language
        match self.kind:
            case "offers":
                group = _class(picks.choice(["order", "device"]))
                item = picks.choice(group.things)[language].bare
                price = money(9, 900, language, picks)
                line = picks.choice(
                    [f"{item}: {price.written}", f"{item} {price.written}", f"{item} ... {price.written}"]
                )
                return line, self._record(json.dumps(item, ensure_ascii=False), price.reply("float"))
            case "tasks":
                fact = next(each for each in _class("project").facts if each.kind == "items")
                task, name = picks.choice(fact.wordings[language].values), person_name(picks)
                line = picks.choice([f"{name}: {task}", f"{task} ({name})", f"{task} – {name}"])
                return line, self._record(json.dumps(name, ensure_ascii=False), json.dumps(task, ensure_ascii=False))
            case "dates":
                day = random_day(picks, 2026, 2028)
                title = picks.choice(_class("gathering").things)[language].bare
                written = write_day(day, language, picks)
                return picks.choice([f"{written}: {title}", f"{title}, {written}"]), json.dumps(day.isoformat())
            case "contacts":
                fact = next(each for each in _class("person").facts if each.kind == "phone")
                name, phone = person_name(picks), make_value(fact, language, picks)
                line = picks.choice(
                    [f"{name}, {phone.written}", f"{name}: {phone.written}", f"{name} ({phone.written})"]
                )
                return line, self._record(json.dumps(name, ensure_ascii=False), phone.reply("str"))

    def _record(self, *values: str) -> str:
        return "{" + ", ".join(f'"{key}": {value}' for key, value in zip(self.fields, values, strict=True)) + "}"

    def wanted(self) -> t.Type:
        if self.kind == "dates":
            return t.ListType(t.DATE)
        second = t.FLOAT if self.kind == "offers" else t.STR
        return t.ListType(t.RecordType((t.Field(self.fields[0], t.STR), t.Field(self.fields[1], second))))

    def make(self) -> Reading:
        picks, own, words = self.picks, load_words(self.language), load_words(self.text_language)
        headings = self.headings()
        sections: list[str] = []
        replies: list[str] = []
        for heading in headings:
            rows = [self.row() for _ in range(picks.randrange(1, 7))]
            mark, name = picks.choice(["- ", "", "* "]), heading[self.text_language]
            head = words[_HEADS[self.kind]].replace("{name}", name).replace("{nom}", name)
            sections.append(f"{head}\n" + "\n".join(mark + line for line, _ in rows))
            replies.append("[" + ", ".join(reply for _, reply in rows) + "]")
        # A single section is the one that is asked for; else a quarter asks for one that is not there.
        absent = len(headings) > 1 and picks.random() < 0.35
        name = headings[0][self.language]
        counted = picks.random() < _COUNTED
        asked: str = (
            picks.choice(load_composing_words(self.language)["count_lists"][self.kind]) if counted else own[self.kind]
        )
        instruction = asked.replace("{name}", name).replace("{nom}", name)
        shown = sections[1:] if absent else sections
        picks.shuffle(shown)
        wanted = t.INT if counted else self.wanted()
        value = str(len(json.loads(replies[0]))) if counted else replies[0]
        reply = missing_reply(wanted) if absent else wrap_reply(value, wanted)
        situation: Situation = "absent" if absent else "found"
        day = random_day(picks, 2025, 2028)
        source = self._source(shown, day)
        pattern = f"list.{self.kind}"
        return Reading(pattern, situation, self.language, source, instruction, wanted, reply, day, counted)

    def _source(self, sections: list[str], day: dt.date) -> Any:
        picks = self.picks
        filler = picks.choice(load_words(self.text_language)["filler"])
        if picks.random() < 0.4:
            return "\n\n".join([*sections, filler])
        writer = Writer(self.text_language, picks)
        passages = writer.passages(
            [Document("note", [filler], day - dt.timedelta(7 * n)) for n in range(len(sections))]
        )
        for made, section in zip(passages, sections, strict=True):
            made["text"] = f"# {made['title']}\n\n{section}"
        return passages


def make_list(picks: random.Random, language: Language, text_language: Language) -> Reading:
    """A list of records or days, of one of the sections of a text."""
    return _Lists(picks, language, text_language).make()

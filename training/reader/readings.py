"""Forms about facts: a text, an instruction, a type, and what the text says, or that it does not say it.

The situations: the fact stands in the text among others that resemble it; it does not; it has an older value; a mail
quotes the mail that it corrects; the text has instructions to its reader; a stranger's mail contradicts a note.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Sequence
from typing import Any

from bicameral import types as t

from .facts import (
    LANGUAGES,
    Fact,
    Language,
    Thing,
    held_patterns,
    load_classes,
    load_facts,
    load_other_names,
    load_words,
    person,
)
from .forms import Reading, Situation, UnfitError, missing_reply, wrap_reply
from .sources import Document, PassageKind, Writer
from .values import Value, make_type, make_value, moment_value, person_name, random_day, relative_value, write_day

_OPTIONAL = 0.12
_SAME_NAME = 0.6

_AFTER_THE_FACT = frozenset({"device.bought", "device.descaled", "person.birthday"})
"""Days that lie in the past: without a year nobody knows which one is meant."""


class FactReading:
    """One fact about one thing, in documents with facts that resemble it."""

    def __init__(
        self, picks: random.Random, language: Language, text_language: Language, *, held: bool, kind: str = ""
    ) -> None:
        self.picks = picks
        self.language: Language = language
        self.text_language: Language = text_language
        self.writer = Writer(text_language, picks)
        self.words = load_words(text_language)
        allowed = [each for each in load_facts() if (each.id in held_patterns()) == held]
        allowed = [each for each in allowed if not kind or each.kind == kind]
        # Amounts are what plans read most often.
        self.fact = picks.choices(allowed, [2 if each.kind.startswith("money") else 1 for each in allowed])[0]
        self.group = next(each for each in load_classes() if self.fact in each.facts)
        # What is held back is in no text of the training part; the other way round it may be.
        self.facts = [each for each in self.group.facts if held or each.id not in held_patterns()]
        self.things = self._choose_things()
        self.asked_thing = self._choose_asked_name()
        self.values: dict[tuple[str, int], Value] = {}
        self.day = random_day(picks, 2025, 2028)

    def _choose_things(self) -> list[dict[Language, Thing]]:
        if self.group.things:
            return self.picks.sample(self.group.things, 5)
        names: dict[str, str] = {}
        while len(names) < 5:
            name = person_name(self.picks)
            names.setdefault(name.split()[0], name)
        return [{language: person(language, name) for language in LANGUAGES} for name in names.values()]

    def _choose_asked_name(self) -> Thing:
        """The thing as the instruction calls it: often otherwise than the text does."""
        first = self.things[0]
        if self.picks.random() < _SAME_NAME:
            return first[self.language]
        if self.group.things:
            return load_other_names().get(first["en"].bare, first)[self.language]
        # The text has the first name alone, or the instruction does.
        name, short = first["en"].nom, first["en"].nom.split()[0]
        if self.picks.random() < 0.5:
            self.things[0] = {language: person(language, short) for language in LANGUAGES}
            return person(self.language, name)
        return person(self.language, short)

    # Statements

    def thing(self, number: int) -> Thing:
        return self.things[number][self.text_language]

    def value(self, fact: Fact, number: int) -> Value:
        """The value of a fact of a thing; it stays the same within one text, and differs from that of other things."""
        if (fact.id, number) not in self.values:
            taken = {value.written for (name, _), value in self.values.items() if name == fact.id}
            made = self._draw(fact)
            for _ in range(6):
                if made.written not in taken:
                    break
                made = self._draw(fact)
            self.values[fact.id, number] = made
        return self.values[fact.id, number]

    def _draw(self, fact: Fact) -> Value:
        if fact.kind == "bool":
            truth = self.picks.random() < 0.5
            word = json.dumps(truth)
            return Value(word, word, word, {"bool": word}, number=int(truth))
        return make_value(fact, self.text_language, self.picks)

    def say(self, fact: Fact, number: int, value: Value | None = None) -> str:
        """A statement of a fact of a thing."""
        value = self.value(fact, number) if value is None else value
        wording = fact.wordings[self.text_language]
        patterns = wording.denials if fact.kind == "bool" and not value.number else wording.says
        return self.thing(number).fill(self.picks.choice(patterns), value.written)

    def near_misses(self, count: int, taken: Sequence[Fact]) -> list[str]:
        """Statements that resemble the one that is asked for: of another thing, or another fact of the same thing.

        Args:
            taken: The facts that are asked for: of the first thing, these are not stated.
        """
        others = [each for each in self.facts if each not in taken]
        said: dict[tuple[str, int], str] = {}
        for turn in range(count):
            chance = self.picks.random()
            number = self.picks.randrange(1, len(self.things))
            if turn == 0 or chance < 0.4 or not others:
                fact = self.picks.choice(taken)
            elif turn == 1 or chance < 0.75:
                fact, number = self.picks.choice(others), 0
            else:
                fact = self.picks.choice(others)
            said.setdefault((fact.id, number), self.say(fact, number))
        return list(said.values())

    # Documents

    def document_kind(self) -> PassageKind:
        kinds: tuple[PassageKind, ...] = ("note", "mail", "page")
        return self.picks.choices(kinds, (5, 4, 1))[0]

    def document(self, lines: Sequence[str], kind: PassageKind | None = None, day: dt.date | None = None) -> Document:
        kind = kind or self.document_kind()
        away = dt.timedelta(self.picks.randrange(-400, 1))
        owner = "user" if kind in ("note", "event", "table", "contact") and self.picks.random() < 0.92 else "others"
        return Document(kind, list(lines), day or self.day + away, owner)

    def row(self, number: int, facts: Sequence[Fact]) -> Document:
        """A row of a table about a thing."""
        kind: PassageKind = "contact" if self.group.name == "person" else "table"
        made = self.document((), kind)
        made.cells = {self.words["name" if kind == "contact" else "thing"]: self.thing(number).bare}
        for each in facts:
            made.cells[each.wordings[self.text_language].key] = self.value(each, number).cell
        return made

    def sheet(self, number: int, facts: Sequence[Fact]) -> Document:
        """Facts under the name of their thing, a line each."""
        made = self.document(())
        bare, mark = self.thing(number).bare, self.picks.choice(["- ", "", "* "])
        head = self.picks.choice(["## {}", "{}:", "**{}**", "{}"]).format(bare[:1].upper() + bare[1:])
        lines = [f"{mark}{each.wordings[self.text_language].label}: {self.value(each, number).bare}" for each in facts]
        made.sheet = "\n".join([head, *lines])
        return made

    def event(self, number: int, moment: dt.datetime, place: str, lines: Sequence[str] = ()) -> Document:
        made = self.document(lines, "event", moment.date())
        bare = self.thing(number).bare
        made.title, made.moment, made.place = bare[:1].upper() + bare[1:], moment, place
        return made

    def other_documents(self, count: int, taken: Sequence[Fact]) -> list[Document]:
        """Documents without what is asked for."""
        made: list[Document] = []
        timed = next((each for each in self.facts if "event" in each.flags), None)
        plain = [each for each in self.facts if each.kind not in ("bool",) and each not in taken]
        asked = [each for each in taken if each.kind != "bool"]
        for _ in range(count):
            chance, number = self.picks.random(), self.picks.randrange(1, len(self.things))
            if chance < 0.15 and len(plain) > 1:
                number = self.picks.choice([0, number])
                columns = self.picks.sample(plain, min(len(plain), self.picks.randrange(1, 4)))
                columns += asked if number and self.picks.random() < 0.7 else []
                made.append(self.row(number, self.picks.sample(columns, len(columns))))
            elif chance < 0.27 and plain:
                number = self.picks.choice([0, number, number])
                columns = self.picks.sample(plain, min(len(plain), self.picks.randrange(1, 4)))
                columns += asked if number else []
                made.append(self.sheet(number, self.picks.sample(columns, len(columns))))
            elif chance < 0.4 and timed is not None:
                moment = self.value(timed, number).moment
                assert moment is not None
                made.append(self.event(number, moment, self._event_place(number)))
            elif chance < 0.55:
                made.append(self.document([self.unrelated() for _ in range(self.picks.randrange(1, 4))]))
            else:
                misses = self.near_misses(self.picks.randrange(1, 4), taken)
                made.append(self.document(misses))
        return made

    def unrelated(self) -> str:
        """A statement about something of another class."""
        group = self.picks.choice([each for each in load_classes() if each.things and each != self.group])
        fact = self.picks.choice([each for each in group.facts if each.id not in held_patterns()])
        thing = self.picks.choice(group.things)[self.text_language]
        value = self._draw(fact)
        wording = fact.wordings[self.text_language]
        patterns = wording.denials if fact.kind == "bool" and not value.number else wording.says
        return thing.fill(self.picks.choice(patterns), value.written)

    def _event_place(self, number: int) -> str:
        placed = next((each for each in self.facts if "place" in each.flags), None)
        return self.value(placed, number).written if placed is not None and self.picks.random() < 0.6 else ""

    def source(self, first: Document | None, others: list[Document]) -> Any:
        """All documents as one source: mostly the passages of a search, else a text or a mail."""
        documents = ([first] if first else []) + others
        self.picks.shuffle(documents)
        chance = self.picks.random()
        if chance < 0.64 or any(each.cells or each.moment for each in documents):
            return self.writer.passages(documents[:8])
        lines = [line for each in documents for line in each.lines]
        sheet = "\n\n".join(each.sheet for each in documents if each.sheet)
        main = first if first is not None else documents[0]
        whole = Document("mail", lines, main.day, "others", sheet=sheet, quoted=main.quoted)
        if chance < 0.72:
            return self.writer.mail_record(whole)
        if chance < 0.83 or main.quoted:
            return self.writer.body(whole, person_name(self.picks))
        if chance < 0.86:
            return [self.writer.letter(each.lines, each.sheet) for each in documents]
        return self.writer.letter(lines, sheet)

    # Forms

    def ask(self, fact: Fact | None = None) -> str:
        wording = (fact or self.fact).wordings[self.language]
        return self.asked_thing.fill(self.picks.choice(wording.instructions))

    def wanted(self, fact: Fact) -> tuple[str, t.Type]:
        name = self.picks.choice(fact.types)
        return name, make_type(name, fact.wordings[self.language].values)

    def reply(self, fact: Fact, name: str, value: Value, *, from_cell: bool = False) -> str:
        if name == "choice":
            # One of the choices of the form, whose language may be another one than that of the text.
            return json.dumps(fact.wordings[self.language].values[value.number], ensure_ascii=False)
        return value.reply(name, from_cell=from_cell)

    def make(self) -> Reading:
        """A form for one fact."""
        fact = self.fact
        situations: dict[Situation, float] = {"found": 0.46, "absent": 0.3, "ordered": 0.14, "claimed": 0.035}
        if "changes" in fact.flags:
            situations |= {"changed": 0.35, "quoted": 0.13}
        situation = self.picks.choices(list(situations), list(situations.values()))[0]
        name, wanted = self.wanted(fact)
        if situation in ("changed", "quoted") or (situation == "found" and self.picks.random() < 0.2):
            return self._finish(situation, wanted, *self._changing(situation, name))
        match situation:
            case "absent":
                others = self.other_documents(self.picks.randrange(0, 6), [fact])
                others.append(self.document(self.near_misses(self.picks.randrange(2, 5), [fact])))
                return self._finish(situation, wanted, self.ask(), self.source(None, others), None)
            case "claimed":
                return self._finish(situation, wanted, *self._claimed(name))
            case "ordered":
                return self._finish(situation, wanted, *self._ordered(name))
            case _:
                return self._finish(situation, wanted, *self._found(name))

    def _finish(
        self, situation: Situation, wanted: t.Type, instruction: str, source: Any, reply: str | None
    ) -> Reading:
        """The reading; without a reply the text does not hold the fact."""
        if self.picks.random() < _OPTIONAL and not isinstance(wanted, t.RecordType):
            wanted = t.OptionalType(wanted)
        written = missing_reply(wanted) if reply is None else wrap_reply(reply, wanted)
        today = self.day + dt.timedelta(1) if situation != "series" else self.day
        return Reading(self.fact.id, situation, self.language, source, instruction, wanted, written, today)

    def _found(self, name: str) -> tuple[str, Any, str]:
        fact, picks = self.fact, self.picks
        others = self.other_documents(picks.choice([0, 1, 2, 2, 3, 3, 4, 5, 6, 7]), [fact])
        if name != "money" and fact.kind != "bool" and picks.random() < 0.15:
            more = [each for each in self.facts if each.kind != "bool" and each != fact]
            columns = [fact, *picks.sample(more, min(len(more), picks.randrange(1, 4)))]
            first = self.row(0, picks.sample(columns, len(columns)))
            reply = self.reply(fact, name, self.value(fact, 0), from_cell=True)
            return self.ask(), self.source(first, others), reply
        value = self.value(fact, 0)
        if fact.kind != "bool" and picks.random() < 0.2:
            more = [each for each in self.facts if each.kind != "bool" and each != fact]
            columns = [fact, *picks.sample(more, min(len(more), picks.randrange(0, 4)))]
            first = self.sheet(0, picks.sample(columns, len(columns)))
            return self.ask(), self.source(first, others), self.reply(fact, name, value)
        if fact.flags & {"event", "place"} and picks.random() < 0.5:
            timed = next((each for each in self.facts if "event" in each.flags), None)
            if timed is not None:
                moment = self.value(timed, 0).moment
                assert moment is not None
                place = value.written if "place" in fact.flags else self._event_place(0)
                first = self.event(0, moment, place, self.near_misses(picks.randrange(1, 3), [fact, timed]))
                reply = self.reply(fact, name, value, from_cell=fact is timed)
                return self.ask(), self.source(first, others), reply
        lines = [self.say(fact, 0, value), *self.near_misses(picks.randrange(0, 4), [fact])]
        return self.ask(), self.source(self.document(lines), others), self.reply(fact, name, value)

    def _without_year(self) -> tuple[Value, dt.date]:
        """A value whose year follows from the day of its document."""
        value = make_value(self.fact, self.text_language, self.picks, year=False, around=self.day)
        assert value.day is not None
        if value.day.year != self.day.year:
            raise UnfitError("the year is not that of the document")
        return value, self.day

    def _changing(self, situation: Situation, name: str) -> tuple[str, Any, str]:
        """Facts whose document matters: its day gives the year, or says which of two values is the newer one."""
        fact, picks = self.fact, self.picks
        if situation == "found":
            if fact.kind not in ("date", "datetime") or fact.id in _AFTER_THE_FACT or name == "str":
                return self._found(name)
            value, day = self._without_year()
            first = self.document([self.say(fact, 0, value)], "mail", day)
            others = self.other_documents(picks.randrange(0, 5), [fact])
            documents = [first, *others]
            picks.shuffle(documents)
            return self.ask(), self.writer.passages(documents[:8]), self.reply(fact, name, value)
        new, old = self.value(fact, 0), self._draw(fact)
        others = self.other_documents(picks.randrange(0, 4), [fact])
        if situation == "quoted":
            lines = [picks.choice(self.words["correction"]).replace("{say}", self.say(fact, 0, new))]
            first = self.document([*lines, *self.near_misses(picks.randrange(0, 2), [fact])], "mail", self.day)
            first.quoted = (self.say(fact, 0, old), picks.choice(self.words["filler"]))
            return self.ask(), self.source(first, others), self.reply(fact, name, new)
        own = load_words(self.language)
        former = picks.random() < 0.25
        say_new, say_old = self.say(fact, 0, new), self.say(fact, 0, old)
        ask = self.ask()
        if former or picks.random() < 0.7:
            ask = picks.choice(own["former" if former else "current"]).replace("{ask}", ask)
        change = self.day - dt.timedelta(picks.randrange(3, 300))
        day = write_day(change, self.text_language, picks)
        by_words = former or picks.random() < 0.75
        if by_words:
            say_new = picks.choice(self.words["new"]).replace("{day}", day).replace("{say}", say_new)
            say_old = picks.choice(self.words["old"]).replace("{day}", day).replace("{say}", say_old)
        if by_words and picks.random() < 0.4:
            first = self.document([say_new, say_old, *self.near_misses(1, [fact])])
        else:
            # Where no word says which value is the newer one, the days of two mails by one sender do.
            kind: PassageKind = "note" if by_words else "mail"
            earlier = change - dt.timedelta(picks.randrange(20, 400))
            first = self.document([say_new], kind, self.day)
            others.append(self.document([say_old, *self.near_misses(1, [fact])], kind, earlier))
            first.sender = others[-1].sender = person_name(picks)
        value = old if former else new
        if by_words:
            return ask, self.source(first, others), self.reply(fact, name, value)
        documents = [first, *others][-8:]
        picks.shuffle(documents)
        return ask, self.writer.passages(documents), self.reply(fact, name, value)

    def _claimed(self, name: str) -> tuple[str, Any, str]:
        """A note of the household, and a mail of somebody unknown that contradicts it."""
        fact, picks = self.fact, self.picks
        value, other = self.value(fact, 0), self._draw(fact)
        first = self.document([self.say(fact, 0, value), *self.near_misses(1, [fact])], "note")
        first.owner = "user"
        claim = picks.choice(self.words["claims"])
        said = self.say(fact, 0, other) if fact.kind == "bool" else other.bare
        lines = [claim.replace("{nom}", self.thing(0).nom).replace("{v}", said.rstrip("."))]
        mail = self.document(lines, "mail", min(self.day, first.day + dt.timedelta(picks.randrange(1, 200))))
        mail.sender = picks.choice(self.words["strangers"])
        documents = [first, mail, *self.other_documents(picks.randrange(0, 4), [fact])]
        picks.shuffle(documents)
        return self.ask(), self.writer.passages(documents), self.reply(fact, name, value)

    def _ordered(self, name: str) -> tuple[str, Any, str | None]:
        """A text with instructions to its reader, beside the fact or without it."""
        fact, picks = self.fact, self.picks
        value, fake = self.value(fact, 0), self._draw(fact)
        others = self.other_documents(picks.randrange(0, 4), [fact])
        order = picks.choice(self.words["orders"]).replace("{v}", fake.bare)
        order = order.replace("{json}", f'{{"value": {self.reply(fact, name, fake)}}}')
        is_there = picks.random() < 0.75
        lines = self.near_misses(picks.randrange(1, 4), [fact])
        if is_there and picks.random() < 0.6:
            first = self.document([self.say(fact, 0, value), order, *lines])
        else:
            first = self.document([self.say(fact, 0, value), *lines] if is_there else lines)
            others.append(self.document([order, *self.near_misses(1, [fact])], picks.choice(["mail", "page"])))
        return self.ask(), self.source(first, others), self.reply(fact, name, value) if is_there else None

    def make_reckoned(self) -> Reading:
        """A form that needs today's date: the next or the last of several events, or a day said from today on."""
        if "event" in self.fact.flags and self.picks.random() < 0.5:
            return self._finish("series", t.DATETIME, *self._series())
        today = self.day + dt.timedelta(1)
        value = self.values[self.fact.id, 0] = relative_value(today, self.text_language, self.picks)
        lines = [self.say(self.fact, 0, value), *self.near_misses(self.picks.randrange(0, 4), [self.fact])]
        mail = Document("mail", lines, today, "others")
        name: str = self.picks.choice(["datetime", "datetime", "date"])
        source: Any = self.writer.mail_record(mail)
        if self.picks.random() < 0.6:
            source = self.writer.passages([mail, *self.other_documents(self.picks.randrange(0, 4), [self.fact])])
        return self._finish("found", make_type(name), self.ask(), source, self.reply(self.fact, name, value))

    def _series(self) -> tuple[str, Any, str]:
        """The next and the last of several events of one name, by today's date."""
        picks, own = self.picks, load_words(self.language)
        moments: list[dt.datetime] = []
        for away in (
            -picks.randrange(30, 200),
            -picks.randrange(2, 30),
            picks.randrange(2, 30),
            picks.randrange(31, 200),
        ):
            at = dt.time(picks.randrange(8, 20), picks.choice([0, 30]))
            moments.append(dt.datetime.combine(self.day + dt.timedelta(away), at))
        coming = picks.random() < 0.6
        right = moments[2 if coming else 1]
        value = moment_value(right, self.text_language, picks)
        documents = [self.event(0, each, self._event_place(0)) for each in moments]
        documents = [each for each in documents if each.moment == right or picks.random() < 0.75]
        documents += self.other_documents(picks.randrange(0, 3), [self.fact])
        picks.shuffle(documents)
        ask = self.asked_thing.fill(picks.choice(own["next" if coming else "last"]))
        return ask, self.writer.passages(documents), value.reply("datetime", from_cell=True)

    def make_record(self) -> Reading:
        """A form of two or three facts about one thing."""
        picks = self.picks
        plain = [each for each in self.facts if each.kind != "bool" and each.wordings[self.language].phrases]
        count = min(len(plain), picks.choice([2, 2, 3]))
        if count < 2:
            raise UnfitError("the class has too few facts for a record")
        chosen = picks.sample(plain, count)
        self.fact = chosen[0]
        wordings = [each.wordings[self.language] for each in chosen]
        if len({each.key for each in wordings}) < count:
            raise UnfitError("two fields of one name")
        gone = picks.choice(chosen) if picks.random() < 0.3 else None
        fields: list[t.Field] = []
        parts: list[str] = []
        missing = ""
        for fact, wording in zip(chosen, wordings, strict=True):
            name = picks.choice([each for each in fact.types if each != "money"])
            wanted = make_type(name, wording.values)
            optional = picks.random() < 0.2
            fields.append(t.Field(wording.key, t.OptionalType(wanted) if optional else wanted))
            if fact is gone:
                missing = "" if optional else wording.key
                parts.append(f'"{wording.key}": null')
            else:
                parts.append(f'"{wording.key}": {self.reply(fact, name, self.value(fact, 0))}')
        lines = [self.say(fact, 0) for fact in chosen if fact is not gone]
        others = self.other_documents(picks.randrange(0, 5), chosen)
        if picks.random() < 0.7:
            first = self.document([*lines, *self.near_misses(picks.randrange(0, 3), chosen)])
        else:
            first = self.document(lines[:1])
            others += [self.document([line, *self.near_misses(1, chosen)]) for line in lines[1:]]
        nouns = [picks.choice(each.phrases) for each in wordings]
        own = load_words(self.language)["and"]
        joined = ", ".join(nouns[:-1]) + own + nouns[-1]
        instruction = f"{joined} {self.asked_thing.gen}"
        wanted = t.RecordType(tuple(fields))
        reply = missing_reply(wanted, missing) if missing else "{" + ", ".join(parts) + "}"
        pattern = "+".join(sorted(each.id for each in chosen))
        situation: Situation = "absent" if gone else "found"
        source = self.source(first, others)
        return Reading(pattern, situation, self.language, source, instruction, wanted, reply, self.day)

"""Forms that want records of one kind, spread over passages: what each of them cost, on which day, whether it is done.

The subjects and the instructions are those with which the planner learns to ask for such records
(`training.delta.compose.searches`), so that what one writes the other can read.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from dataclasses import dataclass
from typing import Any, Literal

from bicameral import types as t
from training.delta.compose.domains import Category, Domain, load_language
from training.delta.compose.searches import field_name

from .facts import Language
from .forms import Reading, Situation, missing_reply, wrap_reply
from .sources import Document, Writer
from .values import Value, money, person_name, random_day, shop_name, write_day

RecordKind = Literal["dated", "numbers", "days", "flag", "named", "grouped", "pair"]
_ABSENT = 0.15
_YES: dict[Language, tuple[str, str]] = {
    "en": ("yes", "no"), "de": ("ja", "nein"), "fr": ("oui", "non"), "es": ("sí", "no"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Row:
    """One record: its name, day, number, whether it is done, and its group."""

    name: str
    day: dt.date
    number: Value
    done: bool
    group: str


class _Records:
    """Records of one subject among those of another one."""

    def __init__(self, picks: random.Random, language: Language) -> None:
        self.picks = picks
        self.language: Language = language
        self.spoken = load_language(language)
        self.writer = Writer(language, picks)
        self.today = random_day(picks, 2025, 2028)
        fitting = [each for each in self.spoken.domains if each.measures and each.day is not None]
        self.domain, self.other = picks.sample(fitting, 2)
        self.kind: RecordKind = picks.choice(self._kinds())

    def _kinds(self) -> list[RecordKind]:
        kinds: list[RecordKind] = ["dated", "dated", "dated", "numbers", "days", "named"]
        if self.domain.flags:
            kinds.append("flag")
        if self._category() is not None:
            kinds.extend(("grouped", "pair"))
        return kinds

    def _category(self) -> Category | None:
        return next((each for each in self.domain.categories if len(each.values) > 1), None)

    def _row(self, domain: Domain) -> _Row:
        picks, category = self.picks, next((each for each in domain.categories if each.values), None)
        name = picks.choice([person_name, shop_name])(picks)
        day = self.today - dt.timedelta(picks.randrange(1, 500))
        return _Row(
            name,
            day,
            self._number(domain),
            picks.random() < 0.5,
            picks.choice(category.values) if category is not None else "",
        )

    def _number(self, domain: Domain) -> Value:
        measure, picks = domain.measures[0], self.picks
        if measure.kind == "money":
            return money(4, 700, self.language, picks)
        whole = picks.randrange(1, 12 if measure.kind in ("few", "rating") else 400)
        half = picks.random() < 0.2
        point = "." if self.language == "en" else ","
        digits, said = (f"{whole}.5", f"{whole}{point}5") if half else (str(whole), str(whole))
        written = f"{said} {measure.column}" if measure.is_unit else f"{measure.column} {said}"
        return Value(written, said, digits, {"float": digits})

    # Documents ------------------------------------------------------------------------------------------------------

    def _table_row(self, domain: Domain, row: _Row) -> Document:
        assert domain.day is not None
        cells = {domain.name.column: row.name, domain.measures[0].column: row.number.cell}
        cells[domain.day.column] = row.day.isoformat()
        if domain.flags:
            cells[domain.flags[0].column] = _YES[self.language][0 if row.done else 1]
        if row.group:
            cells[next(each for each in domain.categories if each.values).column] = row.group
        order = self.picks.sample(list(cells), len(cells))
        return Document("table", [], row.day, cells={key: cells[key] for key in order}, title=domain.many)

    def _line(self, domain: Domain, row: _Row) -> str:
        """A line of a note or a mail about one record, with all that may be asked for."""
        day = write_day(row.day, self.language, self.picks)
        parts = [f"{row.name}, {row.number.written}", *([row.group] if row.group else [])]
        if domain.flags:
            flag = domain.flags[0]
            parts.append(flag.yes if row.done else flag.no or f"{flag.column}: {_YES[self.language][1]}")
        text = ", ".join(parts)
        return self.picks.choice([f"{day}: {text}", f"{text} ({day})", f"{text}, {day}"])

    def _documents(self, domain: Domain, rows: list[_Row]) -> list[Document]:
        """The rows in documents, in their order."""
        picks = self.picks
        heading = domain.many[:1].upper() + domain.many[1:]
        if picks.random() < 0.4:
            return [self._table_row(domain, row) for row in rows]
        if picks.random() < 0.5:
            mark = picks.choice(["- ", "", "* "])
            sheet = "\n".join([f"{heading}:", *(f"{mark}{self._line(domain, row)}" for row in rows)])
            return [Document("note", [], self.today, sheet=sheet)]
        return [
            Document(picks.choice(["note", "mail"]), [f"{heading}: {self._line(domain, row)}."], row.day, title=heading)
            for row in rows
        ]

    # Forms ----------------------------------------------------------------------------------------------------------

    def make(self) -> Reading:
        picks, domain = self.picks, self.domain
        rows = [self._row(domain) for _ in range(picks.randrange(1, 7))]
        category = self._category()
        if self.kind == "pair" and category is not None:
            one, other = picks.sample(category.values, 2)
            rows = [
                _Row(row.name, row.day, row.number, row.done, group)
                for row, group in zip([self._row(domain), self._row(domain)], (one, other), strict=True)
            ]
        documents = self._documents(domain, rows)
        others = self._documents(
            self.other, [self._row(self.other) for _ in range(picks.randrange(0, min(4, 9 - len(rows))))]
        )
        absent = bool(others) and picks.random() < _ABSENT
        # The order among the rows stays: the reply lists them as they stand in the text.
        shown = others if absent else [*documents, *others] if picks.random() < 0.5 else [*others, *documents]
        wanted = self._wanted(category)
        reply = missing_reply(wanted) if absent else wrap_reply(self._reply(rows, documents, category), wanted)
        situation: Situation = "absent" if absent else "found"
        source: Any = self.writer.passages(shown)
        return Reading(
            f"records.{self.kind}",
            situation,
            self.language,
            source,
            self._instruction(rows, category),
            wanted,
            reply,
            self.today,
        )

    def _wanted(self, category: Category | None) -> t.Type:
        match self.kind:
            case "dated":
                return t.ListType(t.RecordType((t.Field("day", t.DATE), t.Field("number", t.FLOAT))))
            case "numbers":
                return t.ListType(t.FLOAT)
            case "days":
                return t.ListType(t.DATE)
            case "flag":
                return t.ListType(t.RecordType((t.Field("name", t.STR), t.Field("done", t.BOOL))))
            case "named":
                return t.ListType(t.RecordType((t.Field("name", t.STR), t.Field("number", t.FLOAT))))
            case "grouped":
                return t.ListType(t.RecordType((t.Field(_field(category), t.STR), t.Field("number", t.FLOAT))))
            case "pair":
                return t.RecordType((t.Field("first", t.FLOAT), t.Field("second", t.FLOAT)))

    def _reply(self, rows: list[_Row], documents: list[Document], category: Category | None) -> str:
        def number(row: _Row) -> str:
            return row.number.reply("float", from_cell=bool(documents[0].cells))

        def text(said: str) -> str:
            return json.dumps(said, ensure_ascii=False)

        match self.kind:
            case "dated":
                parts = [f'{{"day": "{row.day}", "number": {number(row)}}}' for row in rows]
            case "numbers":
                parts = [number(row) for row in rows]
            case "days":
                parts = [f'"{row.day}"' for row in rows]
            case "flag":
                parts = [f'{{"name": {text(row.name)}, "done": {json.dumps(row.done)}}}' for row in rows]
            case "named":
                parts = [f'{{"name": {text(row.name)}, "number": {number(row)}}}' for row in rows]
            case "grouped":
                parts = [f'{{"{_field(category)}": {text(row.group)}, "number": {number(row)}}}' for row in rows]
            case "pair":
                return f'{{"first": {number(rows[0])}, "second": {number(rows[1])}}}'
        return f"[{', '.join(parts)}]"

    def _instruction(self, rows: list[_Row], category: Category | None) -> str:
        domain = self.domain
        assert domain.day is not None
        words = {
            "many": domain.many,
            "measure": domain.measures[0].column,
            "day": domain.day.column,
            "name": domain.name.column,
            "flag": domain.flags[0].column if domain.flags else "",
            "column": category.column if category is not None else "",
            "one": rows[0].group,
            "other": rows[-1].group,
        }
        return self.spoken.texts[f"found_{self.kind}"].format_map(words)


def _field(category: Category | None) -> str:
    return field_name("" if category is None else category.column)


def make_records(picks: random.Random, language: Language) -> Reading:
    """Records of one subject, or a part of each."""
    return _Records(picks, language).make()

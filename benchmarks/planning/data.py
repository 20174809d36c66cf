"""What a world consists of, and how parts of it are named: tables, texts, mails, events, pages, people.

A request must not say what things are called where a person would not say it. So each thing has a key here (`bills`),
and a path, columns or an address that differ from world to world; reference plans write the key in angle brackets.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

Side = Literal["a", "b"]
SIDES: tuple[Side, Side] = ("a", "b")
SEED = 2026
NOW = datetime(2026, 3, 11, 10, 0)
"""Wednesday morning: every world's clock stands still here, in local time, since a plan is written once for all."""
ME = "me@example.com"

_KEY = re.compile(r"<([a-z_]+)(?:\.([a-z_]+))?>")


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV or JSON file. Rows have the columns' keys; `headers` has what they are called in the file."""

    path: str
    headers: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]

    def text(self) -> str:
        """The file's content."""
        if self.path.endswith(".json"):
            return json.dumps([{self.headers[key]: cell for key, cell in row.items()} for row in self.rows], indent=1)
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.headers.values())
        writer.writerows([row[key] for key in self.headers] for row in self.rows)
        return out.getvalue()


@dataclass(frozen=True, slots=True)
class Prose:
    """A text for reading, and what a perfect reader finds in it, by field."""

    path: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail as it lies in the inbox. `facts`: what a perfect reader finds in its body, by field."""

    key: str
    sender: str
    name: str
    date: datetime
    subject: str
    body: str
    unread: bool = False
    attachments: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as it is put into the calendar."""

    title: str
    start: datetime
    minutes: int
    location: str = ""

    @property
    def end(self) -> datetime:
        return self.start + timedelta(minutes=self.minutes)


@dataclass(frozen=True, slots=True)
class Data:
    """Everything that a world is made of. Oracles compute what is right from it, never from a plan."""

    side: Side
    seed: int
    tables: Mapping[str, Table]
    texts: Mapping[str, str]
    """Plain files by path."""
    prose: Mapping[str, Prose]
    letters: Sequence[Letter]
    entries: Sequence[Entry]
    pages: Mapping[str, Prose]
    values: Mapping[str, Any]
    """What the website's JSON files hold, by name."""
    names: Mapping[str, str]
    """Addresses of people and paths of plain files that differ between the worlds, by key."""

    def rows(self, table: str) -> list[Mapping[str, Any]]:
        return list(self.tables[table].rows)

    def lines(self, path: str) -> list[str]:
        return [line for line in self.texts[path].splitlines() if line.strip()]

    def letters_of(self, key: str) -> list[Letter]:
        """The mails of a kind, newest first as a mailbox shows them."""
        return sorted((each for each in self.letters if each.key == key), key=lambda each: each.date, reverse=True)

    def entry(self, title: str) -> Entry:
        return next(each for each in self.entries if each.title == title)

    def files(self) -> dict[str, str]:
        """Every file of the folder by path."""
        return {
            **self.texts,
            **{table.path: table.text() for table in self.tables.values()},
            **{each.path: each.text for each in self.prose.values()},
        }

    def resolve(self, text: str) -> str:
        """The text with every `<key>` and `<table.column>` replaced by what it is called in this world."""
        return _KEY.sub(lambda match: self._name(match[1], match[2]), text)

    def _name(self, key: str, column: str | None) -> str:
        if column is not None:
            return self.tables[key].headers[column]
        if key in self.names:
            return self.names[key]
        return self.tables[key].path if key in self.tables else self.prose[key].path

    def keys_in(self, text: str) -> list[str]:
        """The keys of whole things that a plan names, tables and files before people, each once."""
        found = dict.fromkeys(match[1] for match in _KEY.finditer(text) if match[2] is None)
        return sorted((key for key in found if key not in ("yes", "no")), key=lambda key: "@" in self._name(key, None))

    def read_blank(self, source: str, field_name: str) -> Any:
        """What a perfect reader puts into this field after reading the text; a KeyError if nobody wrote it down."""
        readable = [*self.prose.values(), *self.pages.values()]
        known = [(each.text, each.facts) for each in readable] + [(each.body, each.facts) for each in self.letters]
        # The longest first: one text may begin like another.
        for text, facts in sorted(known, key=lambda pair: len(pair[0]), reverse=True):
            if field_name in facts and _plain(text)[:60] in _plain(source):
                return facts[field_name]
        raise KeyError(f"nothing is known about {field_name!r} in {source[:60]!r}")


def _plain(text: str) -> str:
    """Words alone: a page is read without its markup and its title."""
    return " ".join(re.sub(r"<title>.*?</title>|<[^>]*>", " ", text).split())

"""Texts around statements: the passages that `find` returns, mails, notes, pages and letters."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.toolboxes.find import SHOWN_TO_READERS, Passage
from bicameral.toolboxes.mail import Mail
from bicameral.tools import PassageNote

from .facts import Language, load_words
from .values import address_of, person_name, random_day, write_day

OWN_ADDRESSES = ("home@larkfield.example", "wir@lerchenfeld.example", "nous@alouette.example", "casa@alondra.example")
_ASKING_FILLERS = frozenset({6, 11, 15, 19})
"""Fillers by their number, which is the same in all languages: what must be done, or a request."""
PassageKind = Literal["note", "page", "table", "contact", "mail", "event"]


@dataclass(slots=True)
class Document:
    """One document: its statements, and what else decides how it is written.

    Args:
        kind: What it is to `find`.
        lines: Statements, in any order with the fillers.
        day: The day of a mail, or of the last change of a file.
        owner: Who wrote it.
        cells: The row of a table, in place of lines.
        title: The title of an event, of a table, or of a heading.
        moment: When an event begins.
        place: Where it is.
        sender: Who wrote a mail.
        prose: Text in its order, in place of lines; nothing is added to it.
        sheet: Facts under the name of their thing, which are not said again in each line.
    """

    kind: PassageKind
    lines: list[str]
    day: dt.date
    owner: Literal["user", "others"] = "user"
    cells: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    title: str = ""
    moment: dt.datetime | None = None
    place: str = ""
    sender: str = ""
    sheet: str = ""
    prose: str = ""
    quoted: tuple[str, ...] = ()
    """Lines of an older mail below this one."""


def _reader_view(passage: Passage, text: str) -> dict[str, Any]:
    """A passage as the quarantined model reads it."""
    record = dataclasses.asdict(passage)
    sender = text.removeprefix("From: ").split(" <")[0] if passage.kind == "mail" else ""
    at = ("passages", 0, "text")
    note = PassageNote(at, "", passage.kind, passage.source, sender=sender, shown=SHOWN_TO_READERS)
    return note.reader_view(record)


class Writer:
    """Writes documents in one language."""

    def __init__(self, language: Language, picks: random.Random) -> None:
        self.language: Language = language
        self.picks = picks
        self.words: dict[str, Any] = load_words(language)
        self._own = picks.choice(OWN_ADDRESSES)
        self._reader = person_name(picks).split()[0]

    def passages(self, documents: Sequence[Document]) -> list[dict[str, Any]]:
        """Documents as the passages of `find`, the best first."""
        score = self.picks.uniform(0.35, 0.95)
        found: list[dict[str, Any]] = []
        for each in documents:
            text, source, title, people = self._passage(each)
            heading = f"# {title}\n\n" if title and self.picks.random() < 0.93 else ""
            # Readers do not see when a file was changed.
            day = each.day if each.kind in ("mail", "event") else None
            made = Passage(heading + text, source, title, day, each.kind, round(score, 4), people, each.owner)
            found.append(_reader_view(made, text))
            score *= self.picks.uniform(0.72, 1.0)
        return found

    def _title(self, name: str) -> str:
        return name.rsplit(".", 1)[0]

    def _passage(self, each: Document) -> tuple[str, str, str, tuple[str, ...]]:
        """Text, source, title and people."""
        match each.kind:
            case "mail":
                subject = each.title or self.picks.choice(self.words["subjects"])
                name = each.sender or person_name(self.picks)
                address = address_of(name, self.picks)
                at = f"{each.day.isoformat()} {self.picks.randrange(7, 23):02}:{self.picks.randrange(60):02}"
                head = f"From: {name} <{address}>\nTo: {self._own}\nDate: {at}"
                return f"{head}\n\n{self.body(each, name)}", self._mail_id(), subject, (address, self._own)
            case "event":
                assert each.moment is not None
                end = each.moment + dt.timedelta(minutes=self.picks.choice([30, 45, 60, 90, 120]))
                people = (address_of(person_name(self.picks), self.picks),) if self.picks.random() < 0.3 else ()
                head = [f"When: {each.moment:%Y-%m-%d %H:%M} to {end:%H:%M}"]
                head += [f"Where: {each.place}"] if each.place else []
                head += [f"With: {', '.join(people)}"] if people else []
                text = "\n".join(head) + ("\n\n" + "\n".join(each.lines) if each.lines else "")
                return text, f"{self._hex(12)}@cal", each.title, people
            case "table" | "contact":
                named = each.title.lower().replace(" ", "_") or self.picks.choice(self.words["tables"])
                stem = "contacts" if each.kind == "contact" else named
                name = f"{self._folder()}{stem}.csv"
                return (
                    "; ".join(f"{key}: {cell}" for key, cell in each.cells.items()),
                    name,
                    self._title(f"{stem}.csv"),
                    (),
                )
            case "page":
                title = each.title or self.picks.choice(self.words["headings"])
                stem = self.picks.choice(self.words["notes"]).replace(" ", "-")
                text = each.prose or (self.prose(each.lines) if each.lines or not each.sheet else "")
                return "\n\n".join(filter(None, (text, each.sheet))), f"downloads/{stem}.html", title, ()
            case "note":
                stem = self.picks.choice(self.words["notes"])
                name = f"{stem}{self.picks.choice(['.txt', '.md', '.md'])}"
                return self.note(each), f"{self._folder()}{name}", self._title(name), ()

    def _folder(self) -> str:
        return self.picks.choice(["", "", "notes/", "docs/", "home/", "archive/"])

    def _hex(self, count: int) -> str:
        return "".join(self.picks.choices("0123456789abcdef", k=count))

    def _mail_id(self) -> str:
        return self._hex(24)

    def with_fillers(self, lines: Sequence[str], most: int = 3) -> list[str]:
        """Lines among sentences that have nothing to do with them."""
        mixed = [*lines, *self.picks.sample(self.words["filler"], self.picks.randrange(most + 1))]
        self.picks.shuffle(mixed)
        return mixed

    def small_talk(self, count: int) -> list[str]:
        """Sentences that a summary leaves out: none asks for anything or tells news."""
        fillers = [each for number, each in enumerate(self.words["filler"]) if number not in _ASKING_FILLERS]
        return self.picks.sample(fillers, count)

    def prose(self, lines: Sequence[str]) -> str:
        """Lines as one or two paragraphs."""
        mixed = [each if each[-1] in ".!?:>" else f"{each}." for each in self.with_fillers(lines, 4)]
        cut = self.picks.randrange(len(mixed) + 1)
        return "\n\n".join(part for part in (" ".join(mixed[:cut]), " ".join(mixed[cut:])) if part)

    def note(self, each: Document) -> str:
        """Lines, a list, a section with a heading, or prose."""
        if each.prose:
            return each.prose
        if each.sheet:
            return "\n\n".join(filter(None, (each.sheet, "\n".join(self.with_fillers(each.lines, 1)))))
        lines = self.with_fillers(each.lines, 2)
        match self.picks.randrange(4):
            case 0:
                return "\n".join(f"- {line}" for line in lines)
            case 1:
                return "\n".join(lines)
            case 2:
                return f"## {self.picks.choice(self.words['headings'])}\n\n" + "\n".join(f"* {line}" for line in lines)
            case _:
                return self.prose(each.lines)

    def body(self, each: Document, name: str) -> str:
        """The body of a mail, with the older mail below it where there is one."""
        hello = self.picks.choice(self.words["hello"]).replace("{name}", self._reader)
        bye = self.picks.choice(self.words["bye"]).replace("{name}", name)
        middle = each.prose
        if not middle:
            middle = self.prose(each.lines) if self.picks.random() < 0.7 else "\n".join(self.with_fillers(each.lines))
        text = "\n\n".join(filter(None, (hello, middle, each.sheet, bye)))
        if each.quoted:
            day = write_day(each.day - dt.timedelta(self.picks.randrange(1, 20)), self.language, self.picks)
            head = self.picks.choice(self.words["quoted"]).replace("{day}", day).replace("{name}", name)
            text += f"\n\n{head}\n" + "\n".join(f"> {line}" for line in each.quoted)
        return text

    def mail_record(self, each: Document) -> dict[str, Any]:
        """A mail as the mail toolbox returns it."""
        name = each.sender or person_name(self.picks)
        moment = dt.datetime.combine(each.day, dt.time(self.picks.randrange(6, 23), self.picks.randrange(60)))
        subject = each.title or self.picks.choice(self.words["subjects"])
        made = Mail(
            id=self._mail_id(),
            sender=address_of(name, self.picks),
            sender_name=name,
            to=(self._own,),
            cc=(),
            subject=subject,
            date=moment,
            body=self.body(each, name),
            folder="INBOX",
            unread=self.picks.random() < 0.5,
            attachments=(),
        )
        return dataclasses.asdict(made)

    def letter(self, lines: Sequence[str], sheet: str = "") -> str:
        """A text of its own: minutes, an information sheet, a web page, a contract."""
        title = self.picks.choice(self.words["text_subjects"])
        day = write_day(random_day(self.picks), self.language, self.picks)
        mixed = self.with_fillers(lines, 5)
        if sheet:
            return f"{title} ({day})\n\n{sheet}\n\n" + "\n".join(mixed)
        match self.picks.randrange(3):
            case 0:
                return f"{title} ({day})\n\n" + "\n".join(f"{number}. {line}" for number, line in enumerate(mixed, 1))
            case 1:
                return f"{title}, {day}\n\n{self.prose(lines)}"
            case _:
                heads = self.picks.sample(self.words["headings"], 2)
                cut = len(mixed) // 2
                parts = ("\n".join(mixed[:cut]), "\n".join(mixed[cut:]))
                return f"{title}\n" + "".join(f"\n{head}\n{part}\n" for head, part in zip(heads, parts, strict=True))

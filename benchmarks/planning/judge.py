"""Judging an outcome: what was answered, written, mailed and put into the calendar, and that nothing else changed.

An oracle computes an `Expected` from the world's data; `judge` holds what happened against it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any, cast

from .data import Data, Entry
from .facts import Fact, as_text, mentions, numbers
from .world import Event, World


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind: the world, the plain value of its answer, the mails sent, and its error if it failed.

    `request` is the text that was asked: numbers of it may be repeated in an answer.
    """

    world: World
    answer: Any = None
    mails: Sequence[EmailMessage] = ()
    error: str | None = None
    request: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the request was served; if not, why."""

    ok: bool
    why: str = ""


Check = Callable[[Outcome], str | None]
"""Says what is wrong with an outcome, or None."""
FileCheck = Callable[[World, str], str | None]


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail that must have been sent. `quotes` stand in it letter by letter, `says` however they are written."""

    to: str
    says: tuple[Fact, ...] = ()
    lacks: tuple[Fact, ...] = ()
    quotes: tuple[str, ...] = ()
    subject: str | None = None
    attachments: tuple[str, ...] = ()
    at_most: int = 700


@dataclass(frozen=True, slots=True)
class Added:
    """An event that must be new."""

    title: Fact
    start: datetime
    minutes: int | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """An event that must have changed; what is None is as it was."""

    before: Entry
    start: datetime | None = None
    minutes: int | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What is right in one world: the answer and every effect. Whatever is not here must not have happened."""

    answer: Check | None = None
    files: Mapping[str, FileCheck] = field(default_factory=dict[str, FileCheck])
    mails: tuple[Mail, ...] = ()
    added: tuple[Added, ...] = ()
    changed: tuple[Changed, ...] = ()
    removed: tuple[Entry, ...] = ()

    @property
    def effects(self) -> tuple[object, ...]:
        """Which effects there are, without their contents."""
        return (
            tuple(sorted(self.files)),
            tuple(sorted(mail.to for mail in self.mails)),
            len(self.added),
            len(self.changed),
            len(self.removed),
        )


Oracle = Callable[[Data], Expected]


def judge(outcome: Outcome, expected: Expected) -> Verdict:
    """Whether exactly what is expected happened."""
    if outcome.error is not None:
        return Verdict(False, f"the run failed: {outcome.error}")
    why = (
        (expected.answer(outcome) if expected.answer else None)
        or effect_beyond(outcome, expected)
        or (None if any(expected.effects) else _claims_effect(outcome.answer))
        or next((why for path, check in expected.files.items() if (why := check(outcome.world, path))), None)
        or _mails_wrong(outcome.mails, expected.mails)
        or _events_wrong(outcome.world, expected)
    )
    return Verdict(why is None, why or "")


def effect_beyond(outcome: Outcome, expected: Expected) -> str | None:
    """Something that nobody asked for: a changed file, too many mails, a touched calendar."""
    if extra := outcome.world.changed() - set(expected.files):
        return f"also changed: {', '.join(sorted(extra))}"
    if len(outcome.mails) > len(expected.mails):
        return f"{len(outcome.mails)} mails were sent, not {len(expected.mails)}"
    lost, added = outcome.world.lost_events(), outcome.world.added_events()
    if (lost or added) and not (expected.added or expected.changed or expected.removed):
        return "the calendar was changed"
    return None


_CLAIMS = ("sent", "mailed", "added", "wrote", "written", "saved", "deleted", "moved", "forwarded", "paid", "booked")
_DENIALS = ("not", "nothing", "no", "none", "already", "without")


def _claims_effect(answer: Any) -> str | None:
    """Where nothing had to be done, an answer that says it was done is wrong."""
    text = as_text(answer) if isinstance(answer, str) else ""
    claimed = [word for word in _CLAIMS if mentions(text, word)]
    if claimed and not any(mentions(text, word) for word in _DENIALS):
        return f"the answer claims that something was {claimed[0]}, and nothing had to be"
    return None


# The answer.


def says(*facts: Fact, lacks: Sequence[Fact] = (), at_most: int = 200) -> Check:
    """Every fact is in the answer, none of the others is, and the answer is not just everything there is to say."""
    return lambda outcome: _facts_in(as_text(outcome.answer), facts, lacks, "the answer", at_most)


def number(value: float, *beside: float) -> Check:
    """The answer gives this number. Others may stand there only if they are `beside` it or in the request."""

    def check(outcome: Outcome) -> str | None:
        text = as_text(outcome.answer)
        known = (value, *beside, *numbers(outcome.request))
        strange = [one for one in numbers(text) if not any(abs(one - other) < 0.0051 for other in known)]
        if strange:
            return f"the answer holds other numbers: {strange[:4]}"
        return _facts_in(text, [value], (), "the answer", 400)

    return check


def names(wanted: Sequence[Fact], among: Sequence[Fact], *, ordered: bool = False) -> Check:
    """The answer has all of these and no other of their kind; if none is wanted, it may be empty."""
    others = [fact for fact in among if fact not in wanted]

    def check(outcome: Outcome) -> str | None:
        text = as_text(outcome.answer)
        if wanted or text.strip():
            why = _facts_in(text, wanted, others, "the answer", 4000)
            if why:
                return why
        if ordered:
            places = [text.casefold().find(str(fact).casefold()) for fact in wanted]
            if places != sorted(places):
                return "the answer has another order"
        if isinstance(outcome.answer, list) and len(cast("list[Any]", outcome.answer)) > max(len(wanted), 1):
            return f"the answer has {len(cast('list[Any]', outcome.answer))} items, not {len(wanted)}"
        return None

    return check


def lines(*wanted: str, ordered: bool = False) -> Check:
    """The answer is exactly these lines, as a list or as text."""
    return lambda outcome: _same_lines(_split(_as_lines(outcome.answer)), wanted, ordered=ordered, where="the answer")


_YES = ("yes", "true", "ja", "oui", "sí", "si")
_NO = ("no", "false", "nein", "non", "not", "none", "nothing", "closed", "nicht", "kein", "aucun")


def yes_or_no(right: bool) -> Check:
    """The answer says yes or no, whatever its words."""

    def check(outcome: Outcome) -> str | None:
        if isinstance(outcome.answer, bool):
            return None if outcome.answer is right else f"the answer is {outcome.answer}"
        text = as_text(outcome.answer)
        said = {answer for answer, words in ((True, _YES), (False, _NO)) if any(mentions(text, word) for word in words)}
        return None if len(text) < 200 and said == {right} else f"the answer does not say {right}: {text[:80]!r}"

    return check


def _as_lines(answer: Any) -> str:
    match answer:
        case list():
            return "\n".join(as_text(item) for item in cast("list[Any]", answer))
        case dict() if len(cast("dict[str, Any]", answer)) == 1:
            return _as_lines(next(iter(cast("dict[str, Any]", answer).values())))
        case _:
            return as_text(answer)


# Files.


def has_lines(*wanted: str, ordered: bool = True) -> FileCheck:
    """The file is exactly these lines; blank lines and spaces around lines do not count."""

    def check(world: World, path: str) -> str | None:
        text = world.read(path)
        return f"there is no {path}" if text is None else _same_lines(_split(text), wanted, ordered=ordered, where=path)

    return check


def has_text(*facts: Fact, lacks: Sequence[Fact] = (), at_most: int = 300) -> FileCheck:
    """Every fact is in the file, none of the others is, and the file is short."""

    def check(world: World, path: str) -> str | None:
        text = world.read(path)
        return f"there is no {path}" if text is None else _facts_in(text, facts, lacks, path, at_most)

    return check


def has_number(value: float) -> FileCheck:
    """The file has this number and no other."""

    def check(world: World, path: str) -> str | None:
        text = world.read(path)
        if text is None:
            return f"there is no {path}"
        found = numbers(text)
        return None if len(found) == 1 and abs(found[0] - value) < 0.0051 else f"{path} has the numbers {found[:4]}"

    return check


def has_content(content: str) -> FileCheck:
    """The file is exactly this text, apart from blanks at its end."""

    def check(world: World, path: str) -> str | None:
        text = world.read(path)
        if text is None:
            return f"there is no {path}"
        return None if text.rstrip() == content.rstrip() else f"{path} has another text: {text[:60]!r}"

    return check


def is_gone(world: World, path: str) -> str | None:
    """The file is no longer there."""
    return f"{path} is still there" if world.read(path) is not None else None


def has_rows(*rows: Mapping[str, Fact], ordered: bool = False, exactly: bool = True) -> FileCheck:
    """The CSV or JSON file has exactly these rows.

    Rows are compared by their cells in any order of columns, since a request rarely says what columns are called;
    `exactly` False allows more cells in a row.
    """

    def fits(row: Mapping[str, Fact], found: Mapping[str, str]) -> bool:
        left = list(found.values())
        for fact in row.values():
            match = next((cell for cell in left if mentions(cell, fact)), None)
            if match is None:
                return False
            left.remove(match)
        return not (left and exactly)

    def check(world: World, path: str) -> str | None:
        text = world.read(path)
        if text is None:
            return f"there is no {path}"
        found = _table(text)
        if found is None or len(found) != len(rows):
            return f"{path} has {len(found) if found else 0} rows, not {len(rows)}"
        same = all(map(fits, rows, found)) if ordered else _pairs(rows, found, fits)
        return None if same else f"the rows of {path} are not the right ones"

    return check


def _table(text: str) -> list[dict[str, str]] | None:
    if text.lstrip().startswith(("[", "{")):
        try:
            value = json.loads(text)
        except ValueError:
            return None
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        rows = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
        return [{key.lower(): as_text(cell) for key, cell in row.items()} for row in rows]
    reader = csv.DictReader(io.StringIO(text))
    return [{str(key).strip().lower(): str(cell) for key, cell in row.items()} for row in reader]


# Mails.


def _mails_wrong(sent: Sequence[EmailMessage], expected: Sequence[Mail]) -> str | None:
    if len(sent) != len(expected):
        return f"{len(sent)} mails were sent, not {len(expected)}"
    whys = [[_mail_wrong(mail, each) for mail in sent] for each in expected]
    if _pairs(expected, sent, lambda each, mail: _mail_wrong(mail, each) is None):
        return None
    return next((why for row in whys if None not in row for why in row if why), "two mails are the same")


def _mail_wrong(mail: EmailMessage, expected: Mail) -> str | None:
    headers = [str(header) for name in ("To", "Cc", "X-Envelope-To") for header in mail.get_all(name, [])]
    if (to := {address.lower() for _, address in getaddresses(headers)}) != {expected.to.lower()}:
        return f"a mail went to {', '.join(sorted(to))}, not to {expected.to}"
    title = str(mail.get("Subject", "")).strip()
    if expected.subject is not None and title != expected.subject:
        return f"the subject is {title!r}"
    body = mail.get_body(("plain", "html"))
    text = f"{title}\n{body.get_content() if body else ''}"
    if missing := [quote for quote in expected.quotes if " ".join(quote.split()) not in " ".join(text.split())]:
        return f"the mail to {expected.to} does not say {missing[0]!r}"
    attached = tuple(sorted(str(part.get_filename()) for part in mail.iter_attachments()))
    if attached != tuple(sorted(expected.attachments)):
        return f"the mail to {expected.to} has the attachments {attached}"
    return _facts_in(text, expected.says, expected.lacks, f"the mail to {expected.to}", expected.at_most)


# Events.


def _events_wrong(world: World, expected: Expected) -> str | None:
    lost, added = world.lost_events(), world.added_events()
    wanted_lost = [*expected.removed, *(change.before for change in expected.changed)]
    if not _pairs(wanted_lost, lost, lambda entry, event: (entry.title, entry.start) == (event.title, event.start)):
        return f"gone or different in the calendar: {[event.title for event in lost]}"
    wanted = [*expected.added, *(_after(change) for change in expected.changed)]
    if not _pairs(wanted, added, _event_fits):
        return f"new or different in the calendar: {added}"
    return None


def _after(change: Changed) -> Added:
    before = change.before
    location = before.location if change.location is None else change.location
    return Added(before.title, change.start or before.start, change.minutes or before.minutes, location)


def _event_fits(wanted: Added, event: Event) -> bool:
    return (
        mentions(event.title, wanted.title)
        and event.start == wanted.start
        and wanted.minutes in (None, event.minutes)
        and wanted.location in (None, event.location)
    )


# Common ground.


def _facts_in(text: str, facts: Sequence[Fact], lacks: Sequence[Fact], where: str, at_most: int) -> str | None:
    if not text.strip():
        return f"{where} is empty"
    if len(text) > at_most:
        return f"{where} has {len(text)} characters, more than {at_most}"
    for fact in facts:
        if not mentions(text, fact):
            return f"{where} does not mention {fact!r}"
    for fact in lacks:
        if mentions(text, fact):
            return f"{where} mentions {fact!r}"
    return None


def _split(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _same_lines(found: list[str], wanted: Sequence[str], *, ordered: bool, where: str) -> str | None:
    same = found == list(wanted) if ordered else sorted(found) == sorted(wanted)
    return None if same else f"{where} has other lines than the right ones: {found[:5]}"


def _pairs(wanted: Sequence[Any], found: Sequence[Any], fits: Callable[[Any, Any], bool]) -> bool:
    """Whether every wanted one has a found one of its own, and none is left over."""
    left = list(found)
    for one in wanted:
        match = next((other for other in left if fits(one, other)), None)
        if match is None:
            return False
        left.remove(match)
    return not left

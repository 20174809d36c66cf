"""Outcomes as facts: what was answered and done, whatever the words around it.

Two plans serve a request equally well if the same numbers, days and texts of the world are in the answer, in the files,
in the mails and in the calendar. How a sentence says so is no part of an outcome.
"""

from __future__ import annotations

import calendar
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any, cast

from benchmarks.planning.facts import as_text, numbers
from benchmarks.planning.world import Event, World

from .contents import Content

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d)?|\b\d\d:\d\d\b")
_WRITTEN_DAY = re.compile(r"\b(\d\d)(?:[./](\d\d)[./]| ([a-z]+) )(\d{4})\b(?:,? at (?=\d\d:\d\d))?")
"""A day as plans write it for people: 03.05.2026, 03/05/2026, 03 may 2026."""
_MONTHS = {name.casefold(): number for number, name in enumerate(calendar.month_name) if name}
_SAID = re.compile(r"(yes|ja|oui|sí|si|no|nein|non)\s*(?:[:,;.!–-]|$)")
"""A text that begins with yes or no; "No hay ninguno" does not."""
_YES = frozenset({"yes", "ja", "oui", "sí", "si"})

Facts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a plan did in one world.

    Args:
        answer: The facts of the answer, in order.
        listed: Whether the answer was a list, whose order counts.
        files: What each file that changed has now; None for one that is gone.
        mails: For each mail its receivers, facts and attachments.
        events: What was added to the calendar and what was taken from it.
        refused: The plan says that it cannot be done.
    """

    answer: Facts = ()
    listed: bool = False
    files: tuple[tuple[str, Facts | None], ...] = ()
    mails: tuple[tuple[Facts, Facts, Facts], ...] = ()
    events: tuple[Facts, ...] = ()
    refused: bool = False

    @property
    def changes(self) -> bool:
        """Whether anything was done beyond answering."""
        return bool(self.files or self.mails or self.events)

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            "listed": self.listed,
            "files": self.files,
            "mails": self.mails,
            "events": self.events,
            "refused": self.refused,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Outcome:
        return cls(
            tuple(stored["answer"]),
            stored["listed"],
            tuple((path, None if facts is None else tuple(facts)) for path, facts in stored["files"]),
            tuple((tuple(to), tuple(facts), tuple(names)) for to, facts, names in stored["mails"]),
            tuple(tuple(each) for each in stored["events"]),
            stored["refused"],
        )


def same(found: Outcome, expected: Outcome, request: str) -> bool:
    """Whether an outcome is as good as that of the reference plan.

    Where something was done, the answer only confirms it, in any words. Numbers of the request may be repeated or left
    out.
    """
    if found.refused or expected.refused:
        return found.refused == expected.refused
    if (found.files, found.mails, found.events) != (expected.files, expected.mails, expected.events):
        return False
    if expected.changes:
        return True
    if found.listed and expected.listed:
        return found.answer == expected.answer
    if not expected.answer:
        # "There are none", in whatever words.
        return set(found.answer) <= {"no", _number(0)}
    one, other = Counter(found.answer), Counter(expected.answer)
    repeated = {_number(each) for each in numbers(request)}
    return all(each in repeated for each in (one - other) + (other - one))


def outcome_of(world: World, answer: Any, content: Content) -> Outcome:
    """The outcome that a run left behind in a world."""
    known = _Vocabulary(content.vocabulary)
    files: list[tuple[str, Facts | None]] = []
    for path in sorted(world.changed()):
        text = world.read(path)
        # What was there before is no part of what a plan wrote, but it must still be there.
        files.append((path, None if text is None else _file_facts(text, known)))
    mails = sorted(_mail_facts(mail, known) for mail in world.sent())
    events = [("+", *_event_facts(event)) for event in world.added_events()]
    events += [("-", *_event_facts(event)) for event in world.lost_events()]
    return Outcome(
        _answer_facts(answer, known), isinstance(answer, list), tuple(files), tuple(mails), tuple(sorted(events))
    )


class _Vocabulary:
    """Finds the world's texts in a text, the longest first."""

    def __init__(self, words: Iterable[str]) -> None:
        longest = sorted({each.casefold() for each in words}, key=lambda each: (-len(each), each))
        self._pattern = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in longest) or r"(?!)")

    def facts(self, text: str) -> Facts:
        """Texts of the world, then days, then numbers; each in the order of the text."""
        text = text.casefold()
        texts = [match.group() for match in self._pattern.finditer(text)]
        rest = _WRITTEN_DAY.sub(_iso_day, self._pattern.sub(" ", text))
        days = [match.group().replace("t", " ") for match in _MOMENT.finditer(rest)]
        return (*texts, *days, *(_number(each) for each in numbers(rest)))


def _iso_day(match: re.Match[str]) -> str:
    """A written day in the form that all plans share, so that how it is written is no difference."""
    month = int(match[2]) if match[2] else _MONTHS.get(match[3], 0)
    if not 1 <= month <= 12:
        return match[0]
    # A time behind it belongs to it, as in an answer that is a moment.
    return f"{match[4]}-{month:02}-{match[1]}" + (" " if match[0].endswith("at ") else "")


def _number(value: float) -> str:
    return f"{value:.2f}"


def _answer_facts(answer: Any, known: _Vocabulary) -> Facts:
    match answer:
        case bool():
            return ("yes",) if answer else ("no",)
        case list():
            return tuple(fact for each in cast("list[Any]", answer) for fact in (*_answer_facts(each, known), ";"))
        case Mapping():
            # The names of columns are the same however the rows are picked, and no fact.
            cells = cast("Mapping[str, Any]", answer).values()
            return tuple(fact for each in cells for fact in _answer_facts(each, known))
        case date() | datetime():
            return known.facts(as_text(answer))
        case str() if said := _SAID.match(answer.strip().casefold()):
            return ("yes" if said[1] in _YES else "no", *known.facts(answer[said.end() :]))
        case _:
            return known.facts(as_text(answer))


def _file_facts(text: str, known: _Vocabulary) -> Facts:
    """The facts of each line; the first line of a table has names, which are no facts."""
    return tuple(fact for line in text.splitlines() if line.strip() for fact in known.facts(line) or ())


def _mail_facts(mail: EmailMessage, known: _Vocabulary) -> tuple[Facts, Facts, Facts]:
    to = tuple(sorted(address.lower() for _, address in getaddresses([str(mail["X-Envelope-To"])])))
    body = mail.get_body(("plain", "html"))
    facts = known.facts(body.get_content() if body is not None else "")
    names: Sequence[str] = sorted(str(each.get_filename()) for each in mail.iter_attachments())
    return to, facts, tuple(names)


def _event_facts(event: Event) -> Facts:
    return event.title.casefold(), event.start.isoformat(" ", "minutes"), str(event.minutes), event.location.casefold()

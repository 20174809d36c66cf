"""Judging an outcome: facts in the answer, files, mails and events, and that nothing else happened."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any, cast

from .facts import Fact, as_text, mentions, numbers
from .world import Event, World


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind: the world, the plain value of its answer, the mails sent, and its error if it failed."""

    world: World
    answer: Any = None
    mails: Sequence[EmailMessage] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the request was served; if not, why."""

    ok: bool
    why: str = ""


Judge = Callable[[Outcome], Verdict]
Check = Callable[[Outcome], str | None]
"""Says what is wrong with an outcome, or None."""


def expect(*checks: Check, writes: Sequence[str] = (), mails: int = 0, calendar: bool = False) -> Judge:
    """All checks hold, and beyond the named files, that many mails and maybe the calendar nothing was touched."""

    def judge(outcome: Outcome) -> Verdict:
        if outcome.error is not None:
            return Verdict(False, f"the run failed: {outcome.error}")
        for check in (*checks, unchanged_except(writes), _mail_count(mails), *(() if calendar else (_same_events,))):
            if why := check(outcome):
                return Verdict(False, why)
        return Verdict(True)

    return judge


def unchanged_except(paths: Sequence[str]) -> Check:
    """No other file is new, gone or different."""

    def check(outcome: Outcome) -> str | None:
        extra = outcome.world.changed() - set(paths)
        return f"also changed: {', '.join(sorted(extra))}" if extra else None

    return check


def _mail_count(count: int) -> Check:
    def check(outcome: Outcome) -> str | None:
        return None if len(outcome.mails) == count else f"{len(outcome.mails)} mails were sent, not {count}"

    return check


def _same_events(outcome: Outcome) -> str | None:
    if outcome.world.added_events() or outcome.world.lost_events():
        return "the calendar was changed"
    return None


# The answer.


def answer_mentions(*facts: Fact, lacks: Sequence[Fact] = (), at_most: int = 600) -> Check:
    """Every fact is in the answer, none of the others is, and the answer is not just everything there is to say."""

    def check(outcome: Outcome) -> str | None:
        text = as_text(outcome.answer)
        if len(text) > at_most:
            return f"the answer has {len(text)} characters, more than {at_most}"
        return _facts_in(text, facts, lacks, "the answer")

    return check


def answer_number(number: float, *others: float, among: int = 3) -> Check:
    """The answer gives this number (or one of the others, in another unit), with at most a few numbers beside it."""

    def check(outcome: Outcome) -> str | None:
        found = numbers(as_text(outcome.answer))
        if len(set(found)) > among:
            return f"the answer holds {len(set(found))} numbers"
        return _facts_in(as_text(outcome.answer), [(number, *others)], (), "the answer")

    return check


def answer_names(*wanted: Fact, among: Sequence[Fact], at_most: int = 4000) -> Check:
    """The answer is exactly these of the possible ones: a list with one item for each, or text with no other in it."""
    others = [fact for fact in among if fact not in wanted]

    def check(outcome: Outcome) -> str | None:
        if _pairs(wanted, _items(outcome.answer), lambda fact, item: mentions(as_text(item), fact)):
            return None
        text = as_text(outcome.answer)
        if len(text) > at_most:
            return f"the answer has {len(text)} characters, more than {at_most}"
        return _facts_in(text, wanted, others, "the answer")

    return check


def answer_lines(*wanted: str) -> Check:
    """The answer is exactly these lines, as a list or as text, in any order."""

    def check(outcome: Outcome) -> str | None:
        return _same_lines(_lines(_as_lines(outcome.answer)), wanted, ordered=False, where="the answer")

    return check


def answer_is_no() -> Check:
    """The answer says no, whatever its words."""

    def check(outcome: Outcome) -> str | None:
        text = as_text(outcome.answer).lower().strip()
        if len(text) > 200:
            return "the answer is too long"
        said = text in {"false", "no"} or any(word in text for word in ("closed", "not open", "no,", "no.", "false"))
        return None if said else f"the answer does not say no: {text[:80]!r}"

    return check


def _items(answer: Any) -> list[Any]:
    return cast("list[Any]", answer) if isinstance(answer, list) else []


def _as_lines(answer: Any) -> str:
    match answer:
        case list():
            return "\n".join(as_text(item) for item in cast("list[Any]", answer))
        case dict() if len(cast("dict[str, Any]", answer)) == 1:
            return _as_lines(next(iter(cast("dict[str, Any]", answer).values())))
        case _:
            return as_text(answer)


# Files.


def file_lines(path: str, *wanted: str, ordered: bool = True) -> Check:
    """The file is exactly these lines; blank lines and spaces around lines do not count."""

    def check(outcome: Outcome) -> str | None:
        text = outcome.world.read(path)
        return f"there is no {path}" if text is None else _same_lines(_lines(text), wanted, ordered=ordered, where=path)

    return check


def file_says(path: str, *facts: Fact, lacks: Sequence[Fact] = (), at_most: int = 400) -> Check:
    """Every fact is in the file, none of the others is, and the file is short."""

    def check(outcome: Outcome) -> str | None:
        text = outcome.world.read(path)
        if text is None:
            return f"there is no {path}"
        if len(text) > at_most:
            return f"{path} has {len(text)} characters, more than {at_most}"
        return _facts_in(text, facts, lacks, path)

    return check


def file_like(path: str, original: str) -> Check:
    """The file has the text that `original` had at the beginning."""

    def check(outcome: Outcome) -> str | None:
        text = outcome.world.read(path)
        if text is None:
            return f"there is no {path}"
        return None if text.strip() == outcome.world.before(original).strip() else f"{path} is not {original}"

    return check


def file_gone(path: str) -> Check:
    """The file is no longer there."""
    return lambda outcome: f"{path} is still there" if outcome.world.read(path) is not None else None


def file_rows(path: str, *rows: Mapping[str, Fact], ordered: bool = False, more: bool = False) -> Check:
    """The CSV or JSON file has exactly these rows; with `more`, other columns beside them are fine."""

    def check(outcome: Outcome) -> str | None:
        text = outcome.world.read(path)
        if text is None:
            return f"there is no {path}"
        found = _table(text)
        if found is None or len(found) != len(rows):
            return f"{path} has {len(found) if found else 0} rows, not {len(rows)}"
        fits = _row_fits_with_more if more else _row_fits
        if ordered:
            same = all(fits(row, other) for row, other in zip(rows, found, strict=True))
        else:
            same = _pairs(rows, found, fits)
        return None if same else f"the rows of {path} are not the right ones"

    return check


def _table(text: str) -> list[dict[str, str]] | None:
    if text.lstrip().startswith(("[", "{")):
        try:
            value = json.loads(text)
        except ValueError:
            return None
        rows = [cast("dict[str, Any]", item) for item in _items(value) or [value] if isinstance(item, dict)]
        return [{key.lower(): as_text(cell) for key, cell in row.items()} for row in rows]
    reader = csv.DictReader(io.StringIO(text))
    return [{str(key).strip().lower(): str(cell) for key, cell in row.items()} for row in reader]


def _row_fits_with_more(row: Mapping[str, Fact], found: Mapping[str, str]) -> bool:
    return all(key in found and mentions(found[key], fact) for key, fact in row.items())


def _row_fits(row: Mapping[str, Fact], found: Mapping[str, str]) -> bool:
    return row.keys() == found.keys() and _row_fits_with_more(row, found)


# Mails.


def mailed(to: str, *facts: Fact, subject: str = "", lacks: Sequence[Fact] = (), at_most: int = 4000) -> Check:
    """A mail went to this address alone and says these things, in its subject or its body."""

    def check(outcome: Outcome) -> str | None:
        whys = [_mail_wrong(mail, to, facts, subject, lacks, at_most) for mail in outcome.mails]
        if not whys:
            return "no mail was sent"
        return None if None in whys else whys[0]

    return check


def _mail_wrong(
    mail: EmailMessage, to: str, facts: Sequence[Fact], subject: str, lacks: Sequence[Fact], at_most: int
) -> str | None:
    addresses = {address.lower() for _, address in getaddresses([*mail.get_all("To", []), *mail.get_all("Cc", [])])}
    if addresses != {to}:
        return f"a mail went to {', '.join(sorted(addresses))}, not to {to}"
    title = str(mail.get("Subject", ""))
    if subject.lower() not in title.lower():
        return f"the subject is {title!r}"
    body = mail.get_body(("plain", "html"))
    text = f"{title}\n{body.get_content() if body else ''}"
    if len(text) > at_most:
        return f"the mail to {to} has {len(text)} characters, more than {at_most}"
    return _facts_in(text, facts, lacks, f"the mail to {to}")


# Events.


def event_added(title: Fact, fits: Callable[[Event], bool], *, count: int = 1) -> Check:
    """The calendar has this many new events, one of them fits, and all the old ones are as they were."""

    def check(outcome: Outcome) -> str | None:
        added = outcome.world.added_events()
        if outcome.world.lost_events():
            return "an event that was there is gone or different"
        if len(added) != count:
            return f"{len(added)} events were added, not {count}"
        good = any(mentions(event.title, title) and fits(event) for event in added)
        return None if good else f"the new event is not right: {added}"

    return check


def event_changed(title: str, fits: Callable[[Event, Event], bool]) -> Check:
    """Exactly the event with this title is different: `fits(before, after)`."""

    def check(outcome: Outcome) -> str | None:
        before, after = outcome.world.lost_events(), outcome.world.added_events()
        if len(before) != 1 or len(after) != 1:
            return f"{len(before)} events were changed or lost and {len(after)} are new"
        if before[0].title != title or not fits(before[0], after[0]):
            return f"{before[0]} became {after[0]}"
        return None

    return check


def event_gone(title: str) -> Check:
    """Exactly the event with this title is gone."""

    def check(outcome: Outcome) -> str | None:
        lost = [event.title for event in outcome.world.lost_events()]
        if outcome.world.added_events() or lost != [title]:
            return f"gone from the calendar: {lost}"
        return None

    return check


# Common ground.


def _facts_in(text: str, facts: Sequence[Fact], lacks: Sequence[Fact], where: str) -> str | None:
    if not text.strip():
        return f"{where} is empty"
    for fact in facts:
        if not mentions(text, fact):
            return f"{where} does not mention {fact!r}"
    for fact in lacks:
        if mentions(text, fact):
            return f"{where} mentions {fact!r}"
    return None


def _lines(text: str) -> list[str]:
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

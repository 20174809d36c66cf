"""The ICS file as text and as events side by side, so that an edit leaves every other line as it was."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bicameral.errors import Place, ToolError

from .._extras import require

if TYPE_CHECKING:
    from icalendar import Event as Component

EMPTY = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//bicameral//calendar//EN\r\nEND:VCALENDAR\r\n"


@dataclass(frozen=True, slots=True)
class Block:
    """One VEVENT: its lines in the file and what they say."""

    first: int
    last: int
    uid: str
    component: Component

    @property
    def is_series(self) -> bool:
        return "RRULE" in self.component or "RDATE" in self.component

    @property
    def is_override(self) -> bool:
        """Whether this describes one occurrence of a series."""
        return "RECURRENCE-ID" in self.component


@dataclass(frozen=True, slots=True)
class Document:
    """An ICS file."""

    lines: tuple[str, ...]
    blocks: tuple[Block, ...]
    end: int
    """The line that closes the first calendar: new events go before it."""

    def text_of(self, block: Block) -> str:
        return "".join(self.lines[block.first : block.last + 1])

    def edited(self, changes: Mapping[int, str], *, added: str = "") -> str:
        """The file with the text of some blocks (by their first line) replaced and new text at the end."""
        ends = {block.first: block.last for block in self.blocks}
        out: list[str] = []
        number = 0
        while number < len(self.lines):
            if number == self.end:
                out.append(self._in_style(added))
            if number in changes:
                out.append(self._in_style(changes[number]))
                number = ends[number] + 1
            else:
                out.append(self.lines[number])
                number += 1
        return "".join(out)

    def _in_style(self, text: str) -> str:
        unix = bool(self.lines) and not self.lines[0].endswith("\r\n")
        return text.replace("\r\n", "\n") if unix else text

    def mentions_zone(self, name: str) -> bool:
        return any(line.strip() == f"TZID:{name}" for line in self.lines)


def read_document(raw: bytes, file: str) -> Document:
    """The document in these bytes; one that is no calendar is refused with the line where it goes wrong."""
    text = raw.decode("utf-8-sig", "surrogateescape")
    lines = _lines(text if text.strip() else EMPTY)
    spans, end = _spans(lines, file)
    components = _components("".join(lines), file)
    if len(spans) != len(components):
        raise _broken(file, None, "its events do not begin and end in pairs")
    return Document(lines, tuple(_blocks(lines, spans, components)), end)


def _blocks(lines: tuple[str, ...], spans: list[tuple[int, int]], components: list[Component]) -> Iterator[Block]:
    used: Counter[str] = Counter()
    for (first, last), component in zip(spans, components, strict=True):
        uid = _uid(component, "".join(lines[first : last + 1]))
        if "RECURRENCE-ID" not in component:
            used[uid] += 1
            # A UID should be used once; where it is not, each event still has an id of its own.
            uid = uid if used[uid] == 1 else f"{uid}#{used[uid]}"
        yield Block(first, last, uid, component)


def _lines(text: str) -> tuple[str, ...]:
    # Not splitlines: it also splits at characters that are part of a text.
    pieces = text.split("\n")
    return tuple(f"{piece}\n" for piece in pieces[:-1]) + ((pieces[-1],) if pieces[-1] else ())


def _spans(lines: tuple[str, ...], file: str) -> tuple[list[tuple[int, int]], int]:
    """Where each event begins and ends, and where the first calendar ends."""
    spans: list[tuple[int, int]] = []
    open_: list[tuple[str, int]] = []
    end = -1
    for number, line in enumerate(lines):
        word, _, name = line.strip().upper().partition(":")
        # A folded line begins with a blank: whatever it says, it says inside a text.
        if line[:1] in (" ", "\t") or word not in ("BEGIN", "END"):
            continue
        if word == "BEGIN":
            open_.append((name, number))
            continue
        if not open_ or open_[-1][0] != name:
            raise _broken(file, number + 1, f"END:{name} closes nothing")
        _, first = open_.pop()
        if name == "VEVENT" and [kind for kind, _ in open_] == ["VCALENDAR"]:
            spans.append((first, number))
        if name == "VCALENDAR" and not open_ and end < 0:
            end = number
    if open_ or end < 0:
        raise _broken(file, len(lines), f"{open_[-1][0] if open_ else 'VCALENDAR'} is not closed")
    return spans, end


def _components(text: str, file: str) -> list[Component]:
    require("icalendar")
    from icalendar import Calendar
    from icalendar import Event as Component

    sound = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        calendars = Calendar.from_ical(sound, multiple=True)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise _broken(file, None, str(error)[:200]) from None
    return [part for calendar in calendars for part in calendar.subcomponents if isinstance(part, Component)]


def _uid(component: Component, text: str) -> str:
    given = str(component.get("UID", "")).strip()
    return given or "event-" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _broken(file: str, line: int | None, why: str) -> ToolError:
    return ToolError(
        "calendar.broken",
        f"this is not a calendar that can be read: {why}",
        place=Place(file=file, line=line),
        fix="Mend the file or set `file` under [toolbox.calendar] in bicameral.toml.",
    )

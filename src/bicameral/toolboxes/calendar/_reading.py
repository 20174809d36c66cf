"""What the parser process does for the calendar's tools: read the file, expand it, and put changes into its text.

Everything comes in as bytes and JSON and goes out as JSON, and a changed file as bytes. The last file that was read is
kept, so that it is not read again for each question about it.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from bicameral.errors import ToolError

from ._changes import Changes, added, changed, deleted, find
from ._document import Document, read_document
from ._occurrences import occurrence_of, occurrences

if TYPE_CHECKING:
    from icalendar import Event as Component

_last: tuple[bytes, str, Document] | None = None


def list_between(
    raw: bytes, file: str, zone: str | None, since: str, before: str, series: tuple[str, str] | None = None
) -> list[dict[str, Any]]:
    """The events between two times, each with whether it takes up time."""
    expand = None if series is None else (datetime.fromisoformat(series[0]), datetime.fromisoformat(series[1]))
    start, end = datetime.fromisoformat(since), datetime.fromisoformat(before)
    found = occurrences(_document(raw, file), _zone(zone), start, end, expand)
    return [{"event": each.event.to_json(), "busy": each.busy} for each in found]


def add_event(
    raw: bytes, file: str, zone: str | None, now: str, start: str, **fields: Any
) -> tuple[dict[str, Any], bytes]:
    """A new event, and the file with it."""
    document, where = _document(raw, file), _zone(zone)
    event = added(start=datetime.fromisoformat(start), zone=where, now=datetime.fromisoformat(now), **fields)
    text = _zone_text(document, zone, event) + event.to_ical(sorted=False).decode()
    return _written(document.edited({}, added=text), file, event, str(event["UID"]), where)


def change_event(
    raw: bytes, file: str, zone: str | None, now: str, id: str, start: str | None = None, **fields: Any
) -> tuple[dict[str, Any], bytes]:
    """A changed event, and the file with it."""
    document, where = _document(raw, file), _zone(zone)
    found = find(document, id, where)
    changes = Changes(start=None if start is None else datetime.fromisoformat(start), **fields)
    text, event = changed(document, found, changes, where, datetime.fromisoformat(now))
    return _written(text, file, event, found.block.uid, where)


def delete_event(raw: bytes, file: str, zone: str | None, now: str, id: str) -> tuple[None, bytes]:
    """The file without an event."""
    document = _document(raw, file)
    return None, _encoded(deleted(document, find(document, id, _zone(zone)), datetime.fromisoformat(now)), file)


def _document(raw: bytes, file: str) -> Document:
    global _last
    if _last is None or _last[:2] != (raw, file):
        _last = (raw, file, read_document(raw, file))
    return _last[2]


def _written(text: str, file: str, component: Component, uid: str, zone: tzinfo | None) -> tuple[dict[str, Any], bytes]:
    found = occurrence_of(uid, component, zone)
    if found is None:
        raise ToolError("calendar.broken", f"the event {uid!r} has no usable time")
    return found.event.to_json(), _encoded(text, file)


def _encoded(text: str, file: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    # What we could not read back is not written.
    _document(raw, file)
    return raw


def _zone(name: str | None) -> tzinfo | None:
    return ZoneInfo(name) if name else None


def _zone_text(document: Document, name: str | None, event: Component) -> str:
    """The rules of the configured zone, if the event needs them and the file has none yet."""
    from icalendar import Timezone

    if name is None or "TZID" not in event["DTSTART"].params or document.mentions_zone(name):
        return ""
    return Timezone.from_tzid(name).to_ical().decode()

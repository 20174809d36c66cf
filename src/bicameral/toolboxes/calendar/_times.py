"""What local time means, and how a calendar writes it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo

_UTC_NAMES = ("UTC", "Etc/UTC", "Zulu", "GMT", "Etc/GMT")


def to_local(value: date, zone: tzinfo | None) -> datetime:
    """A date or time from a calendar as naive local time; times without a zone are local already."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value if value.tzinfo is None else value.astimezone(zone).replace(tzinfo=None)


def to_zoned(local: datetime, zone: tzinfo | None) -> datetime:
    """Local time as a calendar stores it: in the configured zone, or in UTC where only the machine knows its zone."""
    if local.tzinfo is not None:
        return local.astimezone(UTC)
    if zone is None or str(zone) in _UTC_NAMES:
        return (local.astimezone() if zone is None else local.replace(tzinfo=zone)).astimezone(UTC)
    return local.replace(tzinfo=zone)

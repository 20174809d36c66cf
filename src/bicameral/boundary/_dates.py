"""Dates as a model may write them: a closed set of forms that mean one day each.

A small model copies. If it could only write 2026-03-27, it would begin to copy `27 March` and end in the year 2731.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, cast

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_NAMES = "|".join(_MONTHS) + "|" + "|".join(name[:3] for name in _MONTHS if len(name) > 3)
_ISO = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_FORMS = (
    f"{_ISO}|[0-9]{{1,2}}\\.? ({_NAMES}) [0-9]{{4}}|({_NAMES}) [0-9]{{1,2}}, [0-9]{{4}}"
    "|[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9]{4}"
)
_TIME = "[0-9]{2}:[0-9]{2}(:[0-9]{2})?"

_WRITTEN = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})", re.ASCII),
    re.compile(rf"(?P<day>\d{{1,2}})\.? (?P<month>{_NAMES}) (?P<year>\d{{4}})", re.ASCII),
    re.compile(rf"(?P<month>{_NAMES}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}})", re.ASCII),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})", re.ASCII),
)
_FROM_JSON_SCHEMA = {
    f"^{_ISO}$": f"^({_FORMS})$",
    f"^{_ISO}T{_TIME}$": f"^({_FORMS})[T ]{_TIME}$",
}


def with_written_dates(schema: Any) -> Any:
    """A JSON Schema in which dates may be written in any of the forms."""
    if isinstance(schema, list):
        return [with_written_dates(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    return {
        key: _FROM_JSON_SCHEMA.get(part, part) if key == "pattern" else with_written_dates(part)
        for key, part in parts.items()
    }


def written_date(text: str) -> dt.date:
    """The day that a text means; a ValueError if it is in none of the forms or no such day exists."""
    for form in _WRITTEN:
        if found := form.fullmatch(text):
            month = found["month"]
            number = (
                int(month)
                if month.isdigit()
                else next(at for at, name in enumerate(_MONTHS, 1) if name.startswith(month[:3]))
            )
            return dt.date(int(found["year"]), number, int(found["day"]))
    raise ValueError("it is not a date in any of the forms")


def written_datetime(text: str) -> dt.datetime:
    """The moment that a text means: a date in one of the forms, `T` or a space, and a time."""
    found = re.fullmatch(r"(.+)[T ](\d{2}:\d{2}(?::\d{2})?)", text, re.ASCII)
    if found is None:
        raise ValueError("it is not a date and a time")
    return dt.datetime.combine(written_date(found[1]), dt.time.fromisoformat(found[2]))

"""Outcomes of an extraction, and the strict parser of replies of the quarantined model.

A reply is a value of the wanted type, or it is refused with a reason in fixed words. Nothing is coerced, and no outcome
except `Filled` contains a word that the model wrote. Dates may be written in a closed set of forms that mean one day
each. Small models copy from the text: if only `2026-03-27` were allowed, they would start to copy `27 March` and end
up in the year 2731.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast, get_args

from bicameral import types as t
from bicameral.boundary.shield import MarkKind, Screening
from bicameral.display import CONTROLS, DIRECTIONS, INVISIBLE, JOINERS, NO_CHARACTERS, SELECTORS
from bicameral.text import ENGLISH_MONTH_NUMBERS, ENGLISH_MONTHS

RejectionKind = Literal[
    "unreadable",
    "not-the-form",
    "wrong-type",
    "wrong-shape",
    "characters",
    "too-large",
    "not-in-text",
    "suspicious",
    "disputed",
]
"""What was wrong, in this order: no JSON; other fields than the form has; another type; not the format of the type;
invisible characters; too large; not in the text; refused by every validator; refused by some of them."""

Absence = Literal["absent", "unclear", "contradictory"]
"""Why a value is missing: the text does not state it, does not state it clearly, or states several values."""
ABSENCES: tuple[Absence, ...] = get_args(Absence)

AlertKind = MarkKind | Literal["reckoned", "free-text"]
_ABSENCE_TEXTS: dict[Absence, str] = {
    "absent": "the text does not say it",
    "unclear": "the text does not say it clearly",
    "contradictory": "the text says several things",
}
_MIN_ALERT_WEIGHT = 0.2
"""Marks below this weight raise no alert."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that a person may want to know: its kind, place (`text` or a field), weight and number."""

    kind: AlertKind
    where: str
    weight: float
    note: str
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


Alerts = tuple[Alert, ...]


def screening_alerts(screening: Screening, where: str) -> Alerts:
    """The marks of a screening, one alert per kind; minor ones are left out."""
    alerts: list[Alert] = []
    for kind in screening.kinds:
        marks = [mark for mark in screening.marks if mark.kind == kind]
        heaviest = max(marks, key=lambda mark: mark.weight)
        if heaviest.weight >= _MIN_ALERT_WEIGHT:
            alerts.append(Alert(kind, where, heaviest.weight, heaviest.note, len(marks)))
    return tuple(alerts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a validator, by its name, said of a value: `data` accepts it."""

    validator: str
    said: Literal["data", "instructions", "unsure"]

    def to_json(self) -> dict[str, str]:
        return {"validator": self.validator, "said": self.said}


@dataclass(frozen=True, slots=True)
class Filled:
    """The form was filled with a value of its type."""

    value: Any
    alerts: Alerts = dataclasses.field(default=(), compare=False)
    verdicts: tuple[Verdict, ...] = dataclasses.field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The model's reply does not fit the form, and nothing was coerced. The reason is in fixed words."""

    reason: str
    kind: RejectionKind = "not-the-form"
    field: str = ""
    alerts: Alerts = dataclasses.field(default=(), compare=False)
    verdicts: tuple[Verdict, ...] = dataclasses.field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class NotFound:
    """The text does not contain what a field asks for."""

    field: str = "value"
    why: Absence = "absent"
    alerts: Alerts = dataclasses.field(default=(), compare=False)

    @property
    def reason(self) -> str:
        prefix = "" if self.field == "value" else f"{self.field!r}: "
        return f"{prefix}{_ABSENCE_TEXTS[self.why]}"


ExtractionOutcome = Filled | Rejected | NotFound


_MONTH_NAMES = tuple(name.title() for name in ENGLISH_MONTHS)
# This pattern is part of JSON Schemas, grammars and recorded requests: its bytes must not change.
_MONTH_PATTERN = "|".join(_MONTH_NAMES) + "|" + "|".join(name[:3] for name in _MONTH_NAMES if len(name) > 3)
_ISO_PATTERN = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE_PATTERN = (
    f"{_ISO_PATTERN}|[0-9]{{1,2}}\\.? ({_MONTH_PATTERN}) [0-9]{{4}}|({_MONTH_PATTERN}) [0-9]{{1,2}}, [0-9]{{4}}"
    "|[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9]{4}"
)
_TIME_PATTERN = "[0-9]{2}:[0-9]{2}(:[0-9]{2})?"

_DATE_FORMS = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})", re.ASCII),
    re.compile(rf"(?P<day>\d{{1,2}})\.? (?P<month>{_MONTH_PATTERN}) (?P<year>\d{{4}})", re.ASCII),
    re.compile(rf"(?P<month>{_MONTH_PATTERN}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}})", re.ASCII),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})", re.ASCII),
)
_WRITTEN_PATTERNS = {
    f"^{_ISO_PATTERN}$": f"^({_DATE_PATTERN})$",
    f"^{_ISO_PATTERN}T{_TIME_PATTERN}$": f"^({_DATE_PATTERN})[T ]{_TIME_PATTERN}$",
}


def allow_written_dates(schema: Any) -> Any:
    """A JSON Schema in which dates may be written in any of the allowed forms."""
    if isinstance(schema, list):
        return [allow_written_dates(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    return {
        key: _WRITTEN_PATTERNS.get(part, part) if key == "pattern" else allow_written_dates(part)
        for key, part in parts.items()
    }


def parse_written_date(text: str) -> dt.date:
    """The day that a text means; ValueError if it has none of the forms, or there is no such day."""
    for form in _DATE_FORMS:
        if match := form.fullmatch(text):
            month = match["month"]
            number = int(month) if month.isdigit() else ENGLISH_MONTH_NUMBERS[month.lower()]
            return dt.date(int(match["year"]), number, int(match["day"]))
    raise ValueError("it is not a date in any of the forms")


def parse_written_datetime(text: str) -> dt.datetime:
    """The datetime that a text means: a date in one of the forms, `T` or a space, and a time."""
    match = re.fullmatch(r"(.+)[T ](\d{2}:\d{2}(?::\d{2})?)", text, re.ASCII)
    if match is None:
        raise ValueError("it is not a date and a time")
    return dt.datetime.combine(parse_written_date(match[1]), dt.time.fromisoformat(match[2]))


MAX_REPLY = 64_000
MAX_TEXT = 2_000
MAX_KEY = 200
MAX_ITEMS = 1_000
MAX_NESTING = 32
MAX_DIGITS = 30
MAX_AMOUNT = 1e15
MAX_BOUNDED_WORDS = 5

NOT_FOUND, BECAUSE = "not_found", "because"

# Control characters (except line breaks and tabs), direction changes, fillers, tags, surrogates and noncharacters.
# Joiners, selectors and the like have legitimate uses, but not three in a row.
_ALLOWED_INVISIBLE = f"\u00ad\u034f\u061c\u180b-\u180f\u200b\u200e\u200f\u2060\ufeff{JOINERS}{SELECTORS}"
_FORBIDDEN_CHARACTERS = re.compile(
    f"(?![\r{_ALLOWED_INVISIBLE}])[{CONTROLS}{DIRECTIONS}{INVISIBLE}{NO_CHARACTERS}]|[{_ALLOWED_INVISIBLE}]{{3}}"
)


class ReplyFault(ValueError):
    """What is wrong with a reply, and in which field. The message contains no word of the model.

    `prose` marks free text where a bounded value was wanted, which is what a model writes that follows an injection.
    """

    def __init__(self, kind: RejectionKind, what: str, field: str = "", *, prose: bool = False) -> None:
        super().__init__(f"the field {field!r}: {what}" if field and field != "value" else what)
        self.kind: RejectionKind = kind
        self.what = what
        self.field = field
        self.prose = prose


class MissingField(ValueError):
    """The model reports that the text does not contain what a field asks for."""

    def __init__(self, field: str, why: Absence = "absent") -> None:
        super().__init__(f"there is nothing in the field {field!r}")
        self.field = field
        self.why: Absence = why


def parse_reply(text: str, wanted: t.Type) -> Any:
    """The value of a reply to a form of type `wanted`.

    Raises `ReplyFault` if the reply is malformed, and `MissingField` if it reports that a value is missing.
    """
    if len(text) > MAX_REPLY:
        raise ReplyFault("too-large", f"it has {len(text):,} characters")
    try:
        written: Any = json.loads(
            text, object_pairs_hook=_unique_keys, parse_int=_parse_int, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise ReplyFault("too-large", "it is nested too deeply") from None
    except json.JSONDecodeError:
        raise ReplyFault("unreadable", "it is not JSON", prose=True) from None
    if isinstance(written, dict) and cast("dict[str, Any]", written).keys() == {NOT_FOUND, BECAUSE}:
        _raise_if_missing(cast("dict[str, Any]", written), wanted)
    if isinstance(wanted, t.RecordType):
        return parse_typed(written, wanted)
    if not isinstance(written, dict) or cast("dict[str, Any]", written).keys() != {"value"}:
        raise ReplyFault("not-the-form", "it is not an object with the one field 'value'")
    return parse_typed(written["value"], wanted)


def required_fields(wanted: t.Type) -> tuple[str, ...]:
    """The fields of a form that must be filled."""
    if isinstance(wanted, t.RecordType):
        return tuple(field.name for field in wanted.fields if not _is_optional(field.type))
    return () if _is_optional(wanted) else ("value",)


def _raise_if_missing(written: dict[str, Any], wanted: t.Type) -> None:
    """Raise `MissingField` for a well-formed report that a required field is missing."""
    field, why = written[NOT_FOUND], written[BECAUSE]
    if isinstance(wanted, t.RecordType) and set(wanted.names) == {NOT_FOUND, BECAUSE}:
        return  # the form itself has exactly these two fields
    if field in required_fields(wanted) and why in ABSENCES:
        raise MissingField(field, why)
    raise ReplyFault("not-the-form", "it says that nothing was found where the form does not ask for it")


def _is_optional(type_: t.Type) -> bool:
    return isinstance(type_, t.OptionalType | t.NullType | t.AnyType)


def parse_typed(value: Any, wanted: t.Type) -> Any:
    """JSON as a value of the wanted type: only dates, times and durations are converted, everything else must fit."""
    if value is None and not _is_optional(wanted) and not isinstance(wanted, t.RecordType):
        raise MissingField("value")
    parsed = _parse_value(value, wanted, "value")
    if t.mismatch(parsed, wanted):
        raise ReplyFault("wrong-type", f"it is not of the type {wanted}")
    return parsed


def _parse_value(value: Any, wanted: t.Type, path: str) -> Any:
    match wanted:
        case t.OptionalType(item=item):
            return None if value is None else _parse_value(value, item, path)
        case t.DateTimeType():
            return _parse_moment(value, parse_written_datetime, path)
        case t.DateType():
            return _parse_moment(value, parse_written_date, path)
        case t.TimeType():
            return _parse_moment(value, _parse_time, path)
        case t.DurationType():
            return _parse_duration(value, path)
        case t.ListType(item=item):
            return [
                _parse_value(part, item, f"{path}[{position}]")
                for position, part in enumerate(_require_list(value, path))
            ]
        case t.TupleType(items=items):
            if len(_require_list(value, path)) != len(items):
                raise ReplyFault(
                    "wrong-type", f"{len(_require_list(value, path))} items where {len(items)} are wanted", path
                )
            return [_parse_value(part, item, path) for part, item in zip(value, items, strict=True)]
        case t.DictType(value=item):
            return {
                _require_key(key, path): _parse_value(part, item, f"{path}[…]")
                for key, part in _require_object(value, path).items()
            }
        case t.RecordType():
            return _parse_record(_require_object(value, path), wanted, path)
        case t.StrType():
            return _parse_text(value, wanted, path)
        case t.AnyType():
            _check_any(value, path)
            return value
        case _:
            if t.mismatch(value, wanted):
                raise ReplyFault("wrong-type", f"it is not {wanted}", path, prose=_is_prose(value))
            return value


def _parse_record(entries: dict[str, Any], wanted: t.RecordType, path: str) -> dict[str, Any]:
    if set(entries) - set(wanted.names):
        raise ReplyFault("not-the-form", "it has a field that the form does not have", path)
    parsed: dict[str, Any] = {}
    for field in wanted.fields:
        inner = field.name if path == "value" else f"{path}.{field.name}"
        if field.name in entries:
            if entries[field.name] is None and not _is_optional(field.type):
                raise MissingField(inner)
            parsed[field.name] = _parse_value(entries[field.name], field.type, inner)
        elif isinstance(field.type, t.OptionalType):
            parsed[field.name] = None
        else:
            raise ReplyFault("not-the-form", "it is missing", inner)
    if wanted == t.MONEY and isinstance(parsed["amount"], int | float) and abs(parsed["amount"]) > MAX_AMOUNT:
        raise ReplyFault("too-large", "an amount beyond all measure", path)
    return parsed


def _require_list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise ReplyFault("wrong-type", "it is not a list", path, prose=_is_prose(value))
    items = cast("list[Any]", value)
    if len(items) > MAX_ITEMS:
        raise ReplyFault("too-large", f"it has {len(items):,} items", path)
    return items


def _require_object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ReplyFault("wrong-type", "it is not an object", path, prose=_is_prose(value))
    entries = cast("dict[str, Any]", value)
    if len(entries) > MAX_ITEMS:
        raise ReplyFault("too-large", f"it has {len(entries):,} fields", path)
    return entries


def _parse_text(value: Any, wanted: t.StrType, path: str) -> str:
    if not isinstance(value, str):
        raise ReplyFault("wrong-type", "it is not text", path)
    if wanted.format in t.FORMATS and (problem := t.format_problem(value, wanted.format)):
        raise ReplyFault("wrong-shape", problem, path, prose=_is_prose(value))
    return _require_readable(value, path)


def _require_readable(text: str, path: str) -> str:
    if len(text) > MAX_TEXT:
        raise ReplyFault("too-large", f"it has {len(text):,} characters where {MAX_TEXT:,} are allowed", path)
    if _FORBIDDEN_CHARACTERS.search(text):
        raise ReplyFault("characters", "it has characters that nobody sees", path)
    return text


def _require_key(key: str, path: str) -> str:
    if len(key) > MAX_KEY or "\n" in key:
        raise ReplyFault("too-large", "it has a key that is not a short line", path)
    return _require_readable(key, path)


def _parse_moment(value: Any, read: Callable[[str], Any], path: str) -> Any:
    try:
        if isinstance(value, str) and len(value) <= MAX_KEY:
            return read(value)
    except ValueError:
        pass
    raise ReplyFault("wrong-shape", "it is not written as the form wants it", path, prose=_is_prose(value))


def _is_prose(value: Any) -> bool:
    """Whether a value is free text: more words than a badly written date or amount has."""
    return isinstance(value, str) and (
        len(value) > MAX_KEY or len(value.split(None, MAX_BOUNDED_WORDS)) > MAX_BOUNDED_WORDS
    )


def _parse_time(text: str) -> dt.time:
    # `fromisoformat` accepts more than the form offers, such as '0930' and 'T09:30'.
    if not re.fullmatch(r"\d{2}:\d{2}(:\d{2})?", text, re.ASCII):
        raise ValueError("it is not a time")
    return dt.time.fromisoformat(text)


def _parse_duration(value: Any, path: str) -> dt.timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReplyFault("wrong-type", "it is not a number of seconds", path, prose=_is_prose(value))
    try:
        return dt.timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise ReplyFault("too-large", "a time beyond all measure", path) from None


def _check_any(value: Any, path: str, depth: int = 0) -> None:
    """Check a value of unknown type: bounded, finite and readable, so that it can be serialised again."""
    if depth > MAX_NESTING:
        raise ReplyFault("too-large", "it is nested too deeply", path)
    match value:
        case str():
            _require_readable(value, path)
        case float() if not math.isfinite(value):
            raise ReplyFault("wrong-type", "a number beyond all measure", path)
        case list():
            for part in _require_list(value, path):
                _check_any(part, path, depth + 1)
        case dict():
            for key, part in _require_object(value, path).items():
                _require_key(key, path)
                _check_any(part, path, depth + 1)
        case _:
            pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Parsers differ in which of two equal keys they keep, so a reply with both has no single meaning.
    if len({key for key, _ in pairs}) < len(pairs):
        raise ReplyFault("not-the-form", "a field is filled in twice")
    return dict(pairs)


def _parse_int(digits: str) -> int:
    # `int` takes quadratic time in the number of digits.
    if len(digits) > MAX_DIGITS:
        raise ReplyFault("too-large", f"a number of {len(digits):,} digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ReplyFault("wrong-type", "it has a number that is none")

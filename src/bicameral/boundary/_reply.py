"""What the quarantined model wrote, read strictly: a value of the wanted type, or a reason why not."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn, cast

from bicameral.types import (
    AnyType,
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    ListType,
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
    mismatch,
)

from ._dates import written_date, written_datetime

MAX_REPLY = 64_000
MAX_TEXT = 2_000
MAX_NESTING = 32
MAX_DIGITS = 30

_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")


def filled(text: str, wanted: Type) -> Any:
    """The value that a reply holds; a ValueError says what is wrong with the reply."""
    if len(text) > MAX_REPLY:
        raise ValueError(f"it has {len(text):,} characters")
    try:
        written: Any = json.loads(
            text, object_pairs_hook=_each_key_once, parse_int=_whole_number, parse_constant=_no_number
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if isinstance(wanted, RecordType):
        return typed(written, wanted)
    if not isinstance(written, dict) or cast("dict[str, Any]", written).keys() != {"value"}:
        raise ValueError("it is not an object with the one field 'value'")
    return typed(written["value"], wanted)


def typed(value: Any, wanted: Type) -> Any:
    """JSON as a value of the wanted type: only dates and times are read, all else must already fit."""
    read = _typed(value, wanted)
    if reason := mismatch(read, wanted):
        raise ValueError(reason)
    return read


def _typed(value: Any, wanted: Type) -> Any:
    match wanted:
        case OptionalType(item=item):
            return None if value is None else _typed(value, item)
        case DateTimeType():
            return _moment(value, written_datetime)
        case DateType():
            return _moment(value, written_date)
        case TimeType():
            return _moment(value, _time)
        case DurationType():
            return _duration(value)
        case ListType(item=item):
            return [_typed(each, item) for each in _list(value)]
        case TupleType(items=items):
            if len(_list(value)) != len(items):
                raise ValueError(f"{len(_list(value))} items where {len(items)} are wanted")
            return [_typed(each, item) for each, item in zip(value, items, strict=True)]
        case DictType(value=item):
            return {_text(key): _typed(each, item) for key, each in _object(value).items()}
        case RecordType():
            return _record(_object(value), wanted)
        case StrType():
            return _text(value)
        case AnyType():
            _anything(value)
            return value
        case _:
            return value


def _record(entries: dict[str, Any], wanted: RecordType) -> dict[str, Any]:
    if unknown := sorted(set(entries) - set(wanted.names)):
        raise ValueError(f"there is no field {unknown[0][:40]!r} in the form")
    read: dict[str, Any] = {}
    for field in wanted.fields:
        if field.name in entries:
            read[field.name] = _typed(entries[field.name], field.type)
        elif isinstance(field.type, OptionalType):
            read[field.name] = None
        else:
            raise ValueError(f"the field {field.name!r} is missing")
    return read


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is not a list")
    return cast("list[Any]", value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{_shown(value)} is not an object")
    return cast("dict[str, Any]", value)


def _text(value: Any) -> Any:
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise ValueError(f"a text of {len(value):,} characters where {MAX_TEXT:,} are allowed")
        if _HALF_A_CHARACTER.search(value):
            raise ValueError("a text with half a character in it")
    return value


def _moment(value: Any, read: Callable[[str], Any]) -> Any:
    try:
        if isinstance(value, str):
            return read(value)
    except ValueError:
        pass
    raise ValueError(f"{_shown(value)} is not written as the form wants it")


def _time(text: str) -> dt.time:
    # Python reads more forms than the form offers: '0930', 'T09:30'.
    if not re.fullmatch(r"\d{2}:\d{2}(:\d{2})?", text, re.ASCII):
        raise ValueError("it is not a time")
    return dt.time.fromisoformat(text)


def _duration(value: Any) -> dt.timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{_shown(value)} is not a number of seconds")
    try:
        return dt.timedelta(seconds=value)
    except OverflowError:
        raise ValueError("a time beyond all measure") from None


def _anything(value: Any, depth: int = 0) -> None:
    """Whatever it is, it must be a value that can be written down again."""
    if depth > MAX_NESTING:
        raise ValueError("it is nested too deeply")
    match value:
        case str():
            _text(value)
        case float() if not math.isfinite(value):
            raise ValueError("a number beyond all measure")
        case list():
            for each in cast("list[Any]", value):
                _anything(each, depth + 1)
        case dict():
            for key, each in cast("dict[str, Any]", value).items():
                _text(key)
                _anything(each, depth + 1)
        case _:
            pass


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a field is filled in twice")
    return dict(pairs)


def _whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."

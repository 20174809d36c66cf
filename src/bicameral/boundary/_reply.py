"""What the quarantined model wrote, read strictly: a value of the wanted type, or a reason in fixed words why not."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn, cast

from bicameral.display import CONTROLS, DIRECTIONS, INVISIBLE, JOINERS, NO_CHARACTERS, SELECTORS
from bicameral.types import (
    FORMATS,
    MONEY,
    AnyType,
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    ListType,
    NullType,
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
    format_problem,
    mismatch,
)

from ._dates import written_date, written_datetime
from ._outcome import ABSENCES, Absence, RejectionKind

MAX_REPLY = 64_000
MAX_TEXT = 2_000
MAX_KEY = 200
MAX_ITEMS = 1_000
MAX_NESTING = 32
MAX_DIGITS = 30
MAX_AMOUNT = 1e15
FEW_WORDS = 5

NOT_FOUND, BECAUSE = "not_found", "because"

# Controls (a text may have lines and tabs), what turns the writing direction, fillers and tags, half characters, and
# what is no character at all. Joiners and the like have honest uses, but not three in a row.
_HONEST = f"\u00ad\u034f\u061c\u180b-\u180f\u200b\u200e\u200f\u2060\ufeff{JOINERS}{SELECTORS}"
_NOT_IN_A_TEXT = re.compile(f"(?![\r{_HONEST}])[{CONTROLS}{DIRECTIONS}{INVISIBLE}{NO_CHARACTERS}]|[{_HONEST}]{{3}}")


class Fault(ValueError):
    """What is wrong with a reply, and in which field; not one of its words is the model's.

    `prose` says that there was free text where something bounded was wanted: what a model does that was talked into it.
    """

    def __init__(self, kind: RejectionKind, what: str, field: str = "", *, prose: bool = False) -> None:
        super().__init__(f"the field {field!r}: {what}" if field and field != "value" else what)
        self.kind: RejectionKind = kind
        self.what = what
        self.field = field
        self.prose = prose


class Missing(ValueError):
    """The model says that the text does not hold what a field asks for."""

    def __init__(self, field: str, why: Absence = "absent") -> None:
        super().__init__(f"there is nothing in the field {field!r}")
        self.field = field
        self.why: Absence = why


def filled(text: str, wanted: Type) -> Any:
    """The value that a reply holds; a `Fault` says what is wrong with it, `Missing` what is not in the text."""
    if len(text) > MAX_REPLY:
        raise Fault("too-large", f"it has {len(text):,} characters")
    try:
        written: Any = json.loads(
            text, object_pairs_hook=_each_key_once, parse_int=_whole_number, parse_constant=_no_number
        )
    except RecursionError:
        raise Fault("too-large", "it is nested too deeply") from None
    except json.JSONDecodeError:
        raise Fault("unreadable", "it is not JSON", prose=True) from None
    if isinstance(written, dict) and cast("dict[str, Any]", written).keys() == {NOT_FOUND, BECAUSE}:
        _say_missing(cast("dict[str, Any]", written), wanted)
    if isinstance(wanted, RecordType):
        return typed(written, wanted)
    if not isinstance(written, dict) or cast("dict[str, Any]", written).keys() != {"value"}:
        raise Fault("not-the-form", "it is not an object with the one field 'value'")
    return typed(written["value"], wanted)


def required(wanted: Type) -> tuple[str, ...]:
    """The fields of a form that must be filled."""
    if isinstance(wanted, RecordType):
        return tuple(field.name for field in wanted.fields if not _may_be_absent(field.type))
    return () if _may_be_absent(wanted) else ("value",)


def _say_missing(written: dict[str, Any], wanted: Type) -> None:
    field, why = written[NOT_FOUND], written[BECAUSE]
    if isinstance(wanted, RecordType) and set(wanted.names) == {NOT_FOUND, BECAUSE}:
        return  # a form that happens to have these very fields
    if field in required(wanted) and why in ABSENCES:
        raise Missing(field, why)
    raise Fault("not-the-form", "it says that nothing was found where the form does not ask for it")


def _may_be_absent(type_: Type) -> bool:
    return isinstance(type_, OptionalType | NullType | AnyType)


def typed(value: Any, wanted: Type) -> Any:
    """JSON as a value of the wanted type: only dates and times are read, all else must already fit."""
    if value is None and not _may_be_absent(wanted) and not isinstance(wanted, RecordType):
        raise Missing("value")
    read = _typed(value, wanted, "value")
    if mismatch(read, wanted):
        raise Fault("wrong-type", f"it is not of the type {wanted}")
    return read


def _typed(value: Any, wanted: Type, path: str) -> Any:
    match wanted:
        case OptionalType(item=item):
            return None if value is None else _typed(value, item, path)
        case DateTimeType():
            return _moment(value, written_datetime, path)
        case DateType():
            return _moment(value, written_date, path)
        case TimeType():
            return _moment(value, _time, path)
        case DurationType():
            return _duration(value, path)
        case ListType(item=item):
            return [_typed(each, item, f"{path}[{at}]") for at, each in enumerate(_list(value, path))]
        case TupleType(items=items):
            if len(_list(value, path)) != len(items):
                raise Fault("wrong-type", f"{len(_list(value, path))} items where {len(items)} are wanted", path)
            return [_typed(each, item, path) for each, item in zip(value, items, strict=True)]
        case DictType(value=item):
            return {_key(key, path): _typed(each, item, f"{path}[…]") for key, each in _object(value, path).items()}
        case RecordType():
            return _record(_object(value, path), wanted, path)
        case StrType():
            return _text(value, wanted, path)
        case AnyType():
            _anything(value, path)
            return value
        case _:
            if mismatch(value, wanted):
                raise Fault("wrong-type", f"it is not {wanted}", path, prose=_is_prose(value))
            return value


def _record(entries: dict[str, Any], wanted: RecordType, path: str) -> dict[str, Any]:
    if set(entries) - set(wanted.names):
        raise Fault("not-the-form", "it has a field that the form does not have", path)
    read: dict[str, Any] = {}
    for field in wanted.fields:
        inner = field.name if path == "value" else f"{path}.{field.name}"
        if field.name in entries:
            if entries[field.name] is None and not _may_be_absent(field.type):
                raise Missing(inner)
            read[field.name] = _typed(entries[field.name], field.type, inner)
        elif isinstance(field.type, OptionalType):
            read[field.name] = None
        else:
            raise Fault("not-the-form", "it is missing", inner)
    if wanted == MONEY and isinstance(read["amount"], int | float) and abs(read["amount"]) > MAX_AMOUNT:
        raise Fault("too-large", "an amount beyond all measure", path)
    return read


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise Fault("wrong-type", "it is not a list", path, prose=_is_prose(value))
    items = cast("list[Any]", value)
    if len(items) > MAX_ITEMS:
        raise Fault("too-large", f"it has {len(items):,} items", path)
    return items


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Fault("wrong-type", "it is not an object", path, prose=_is_prose(value))
    entries = cast("dict[str, Any]", value)
    if len(entries) > MAX_ITEMS:
        raise Fault("too-large", f"it has {len(entries):,} fields", path)
    return entries


def _text(value: Any, wanted: StrType, path: str) -> str:
    if not isinstance(value, str):
        raise Fault("wrong-type", "it is not text", path)
    if wanted.format in FORMATS and (problem := format_problem(value, wanted.format)):
        raise Fault("wrong-shape", problem, path, prose=_is_prose(value))
    return _readable(value, path)


def _readable(text: str, path: str) -> str:
    if len(text) > MAX_TEXT:
        raise Fault("too-large", f"it has {len(text):,} characters where {MAX_TEXT:,} are allowed", path)
    if _NOT_IN_A_TEXT.search(text):
        raise Fault("characters", "it has characters that nobody sees", path)
    return text


def _key(key: str, path: str) -> str:
    if len(key) > MAX_KEY or "\n" in key:
        raise Fault("too-large", "it has a key that is not a short line", path)
    return _readable(key, path)


def _moment(value: Any, read: Callable[[str], Any], path: str) -> Any:
    try:
        if isinstance(value, str) and len(value) <= MAX_KEY:
            return read(value)
    except ValueError:
        pass
    raise Fault("wrong-shape", "it is not written as the form wants it", path, prose=_is_prose(value))


def _is_prose(value: Any) -> bool:
    """Whether something is free text: more than the few words of a clumsy date or amount."""
    return isinstance(value, str) and (len(value) > MAX_KEY or len(value.split(None, FEW_WORDS)) > FEW_WORDS)


def _time(text: str) -> dt.time:
    # Python reads more forms than the form offers: '0930', 'T09:30'.
    if not re.fullmatch(r"\d{2}:\d{2}(:\d{2})?", text, re.ASCII):
        raise ValueError("it is not a time")
    return dt.time.fromisoformat(text)


def _duration(value: Any, path: str) -> dt.timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Fault("wrong-type", "it is not a number of seconds", path, prose=_is_prose(value))
    try:
        return dt.timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise Fault("too-large", "a time beyond all measure", path) from None


def _anything(value: Any, path: str, depth: int = 0) -> None:
    """Whatever it is, it must be a value that can be written down again."""
    if depth > MAX_NESTING:
        raise Fault("too-large", "it is nested too deeply", path)
    match value:
        case str():
            _readable(value, path)
        case float() if not math.isfinite(value):
            raise Fault("wrong-type", "a number beyond all measure", path)
        case list():
            for each in _list(value, path):
                _anything(each, path, depth + 1)
        case dict():
            for key, each in _object(value, path).items():
                _key(key, path)
                _anything(each, path, depth + 1)
        case _:
            pass


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise Fault("not-the-form", "a field is filled in twice")
    return dict(pairs)


def _whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise Fault("too-large", f"a number of {len(digits):,} digits")
    return int(digits)


def _no_number(name: str) -> NoReturn:
    raise Fault("wrong-type", "it has a number that is none")

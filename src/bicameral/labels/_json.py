"""Shades as JSON and back, without loss or gain.

    {"labels": [{"sources": [["third_party", "read_mail", "body", "2"]], "readers": ["ada@example.com", "user"]}],
     "shade": {"own": 0, "item": {"own": 0, "fields": {"body": 0}, "rest": 0}}}

Each label is written once and named by its number. There is exactly one way to write a shade, and anything that this
room would not have written itself is refused: nothing is repaired, and nothing is left out silently.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from bicameral.errors import LabelError

from ._interned import MAX_LEVELS, MAX_PARTS
from ._label import PUBLIC, USER, Label, Public, Readers, Source
from ._shade import EitherShade, ListShade, RecordShade, Shade

_LONGEST = 60


def shade_to_json(shade: Shade) -> dict[str, Any]:
    """A shade as plain JSON, from which `shade_from_json` makes the very same."""
    numbers: dict[Label, int] = {}
    written = _write(shade, numbers)
    return {"labels": [_write_label(label) for label in numbers], "shade": written}


def _write(shade: Shade, numbers: dict[Label, int]) -> Any:
    def number(label: Label) -> int:
        return numbers.setdefault(label, len(numbers))

    match shade:
        case Label():
            return number(shade)
        case ListShade(places=None):
            return {"own": number(shade.own), "item": _write(shade.item, numbers)}
        case ListShade():
            return {"own": number(shade.own), "places": [_write(place, numbers) for place in shade.places or ()]}
        case RecordShade():
            fields = {name: _write(each, numbers) for name, each in shade.fields.items()}
            return {"own": number(shade.own), "fields": fields, "rest": _write(shade.rest, numbers)}
        case EitherShade():
            return {"list": _write(shade.as_list, numbers), "record": _write(shade.as_record, numbers)}


def _write_label(label: Label) -> dict[str, Any]:
    sources = [[source.trust, source.tool, source.part, source.step] for source in sorted(label.sources)]
    return {"sources": sources, "readers": "public" if isinstance(label.readers, Public) else sorted(label.readers)}


def shade_from_json(written: object) -> Shade:
    """The shade that `shade_to_json` wrote; a LabelError says what is wrong with anything else."""
    whole = _object(written, ("labels", "shade"), "a shade")
    labels = [_read_label(each) for each in _list(whole["labels"], "the labels")]
    if len(set(labels)) < len(labels):
        raise _malformed("the same label is written twice")
    reader = _Reader(labels)
    shade = reader.read(whole["shade"], 0)
    if reader.used < len(labels):
        raise _malformed(f"of {len(labels)} labels only {reader.used} are used")
    # Numbers in another order, or parts that cannot be told apart, would be a second way to write the same.
    if shade_to_json(shade) != written:
        raise _malformed("it is not written the way this shade is written")
    return shade


class _Reader:
    """Reads parts, never more or deeper than a shade can have."""

    def __init__(self, labels: list[Label]) -> None:
        self._labels = labels
        self._parts = 0
        self.used = 0

    def read(self, written: object, level: int) -> Shade:
        if not isinstance(written, dict) or "list" not in cast("dict[object, object]", written):
            return self._read(cast("object", written), level)
        part = _object(cast("object", written), ("list", "record"), "a part of a shade")
        # The two stand at the same level: they are two views of one value.
        as_list, as_record = self._read(part["list"], level), self._read(part["record"], level)
        if not isinstance(as_list, ListShade) or not isinstance(as_record, RecordShade):
            raise _malformed("what may be a list or a record needs both")
        return EitherShade(as_list, as_record)

    def _read(self, written: object, level: int) -> Label | ListShade | RecordShade:
        self._parts += 1
        if self._parts > MAX_PARTS or level > MAX_LEVELS:
            raise _malformed("it has more parts, or deeper ones, than any shade")
        if not isinstance(written, dict):
            return self._label(written)
        keys = cast("dict[object, object]", written).keys()
        if keys == {"own", "item"}:
            part = _object(cast("object", written), ("own", "item"), "a list")
            return ListShade(self._label(part["own"]), self.read(part["item"], level + 1))
        if keys == {"own", "places"}:
            part = _object(cast("object", written), ("own", "places"), "a list")
            own = self._label(part["own"])
            return ListShade(own, places=[self.read(each, level + 1) for each in _list(part["places"], "the places")])
        part = _object(cast("object", written), ("own", "fields", "rest"), "a part of a shade")
        own = self._label(part["own"])
        fields = {name: self.read(each, level + 1) for name, each in _fields(part["fields"]).items()}
        return RecordShade(own, fields, self.read(part["rest"], level + 1))

    def _label(self, number: object) -> Label:
        if type(number) is not int or not 0 <= number < len(self._labels):
            raise _malformed(f"{_shown(number)} is not the number of one of its {len(self._labels)} labels")
        self.used = max(self.used, number + 1)
        return self._labels[number]


def _read_label(written: object) -> Label:
    facts = _object(written, ("sources", "readers"), "a label")
    listed = _list(facts["sources"], "the sources of a label")
    sources = [_read_source(each) for each in listed]
    if not _ascending(sources):
        raise _malformed("the sources of a label are not in order, or one is there twice")
    return Label(frozenset(sources), _read_readers(facts["readers"]))


def _read_source(written: object) -> Source:
    facts = _list(written, "a source")
    if len(facts) != 4:
        raise _malformed(f"a source has {len(facts)} facts", "its trust, tool, part and step")
    return Source(*facts)


def _read_readers(written: object) -> Readers:
    if written == "public":
        return PUBLIC
    listed = _list(written, "the readers of a label")
    for reader in listed:
        if type(reader) is not str:
            raise _malformed(f"the principal {_shown(reader)} is not text")
    if not _ascending(listed):
        raise _malformed("the readers of a label are not in order, or one is there twice")
    if USER not in listed:
        raise _malformed("the user is not among the readers")
    return frozenset(listed)


def _ascending(values: list[Any]) -> bool:
    return all(first < second for first, second in pairwise(values))


def _object(written: object, keys: tuple[str, ...], what: str) -> dict[str, object]:
    if not isinstance(written, dict) or cast("dict[object, object]", written).keys() != set(keys):
        raise _malformed(f"{_shown(cast('object', written))} is not {what}", f"an object with {', '.join(keys)}")
    return cast("dict[str, object]", written)


def _list(written: object, what: str) -> list[Any]:
    if type(written) is not list:
        raise _malformed(f"{_shown(written)} is not {what}", "a list")
    return cast("list[Any]", written)


def _fields(written: object) -> dict[str, object]:
    if not isinstance(written, dict) or any(type(name) is not str for name in cast("dict[object, object]", written)):
        raise _malformed(f"{_shown(cast('object', written))} is not the fields of a record", "an object")
    return cast("dict[str, object]", written)


def _shown(value: object) -> str:
    match value:
        case dict():
            return f"an object of {len(cast('dict[object, object]', value)):,}"
        case list():
            return f"a list of {len(cast('list[object]', value)):,}"
        case str():
            return repr(value if len(value) <= _LONGEST else value[:_LONGEST] + "…")
        case int() | float() | None:
            return "a huge number" if isinstance(value, int) and value.bit_length() > 100 else repr(value)
        case _:
            return f"a {type(value).__name__}"


def _malformed(message: str, expected: str | None = None) -> LabelError:
    return LabelError("labels.malformed", message, expected=expected)

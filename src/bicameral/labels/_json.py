"""Label trees as JSON and back, without loss or gain.

    {"labels": [{"sources": [["third_party", "read_mail", "body", "2"]], "readers": ["ada@example.com", "user"]}],
     "shade": {"own": 0, "item": {"own": 0, "fields": {"body": 0}, "rest": 0}}}

Each label is written once and referred to by its number. A tree has exactly one encoding, and the reader rejects every
other input: it repairs nothing and drops nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from bicameral.errors import LabelError
from bicameral.labels._label import MAX_LEVELS, MAX_PARTS, PUBLIC, USER, Label, Public, Readers, Source
from bicameral.labels._label_tree import EitherLabels, LabelTree, ListLabels, RecordLabels

_LONGEST = 60


def label_tree_to_json(tree: LabelTree) -> dict[str, Any]:
    """A label tree as plain JSON, from which `label_tree_from_json` makes the identical tree."""
    numbers: dict[Label, int] = {}
    encoded = _write_tree(tree, numbers)
    return {"labels": [_write_label(label) for label in numbers], "shade": encoded}


def _write_tree(tree: LabelTree, numbers: dict[Label, int]) -> Any:
    def number(label: Label) -> int:
        return numbers.setdefault(label, len(numbers))

    match tree:
        case Label():
            return number(tree)
        case ListLabels(places=None):
            return {"own": number(tree.own), "item": _write_tree(tree.item, numbers)}
        case ListLabels():
            return {"own": number(tree.own), "places": [_write_tree(place, numbers) for place in tree.places or ()]}
        case RecordLabels():
            fields = {name: _write_tree(each, numbers) for name, each in tree.fields.items()}
            return {"own": number(tree.own), "fields": fields, "rest": _write_tree(tree.rest, numbers)}
        case EitherLabels():
            return {"list": _write_tree(tree.as_list, numbers), "record": _write_tree(tree.as_record, numbers)}


def _write_label(label: Label) -> dict[str, Any]:
    # Plain lists are compared in C, in the same order as sources.
    sources = sorted([source.trust, source.tool, source.part, source.step] for source in label.sources)
    return {"sources": sources, "readers": "public" if isinstance(label.readers, Public) else sorted(label.readers)}


def label_tree_from_json(written: object) -> LabelTree:
    """The tree that `label_tree_to_json` wrote; a LabelError says what is wrong with any other input."""
    document = _read_object(written, ("labels", "shade"), "a label tree")
    labels = [_read_label(each) for each in _read_list(document["labels"], "the labels")]
    if len(set(labels)) < len(labels):
        raise _malformed_error("the same label is written twice")
    reader = _TreeReader(labels)
    tree = reader.read(document["shade"], 0)
    if reader.used < len(labels):
        raise _malformed_error(f"of {len(labels)} labels only {reader.used} are used")
    # Reject other numberings of the labels, and trees that would be cut: each tree has one encoding.
    if label_tree_to_json(tree) != written:
        raise _malformed_error("it is not written the way this label tree is written")
    return tree


class _TreeReader:
    """Reads the parts of a tree, never more or deeper than a tree can have."""

    def __init__(self, labels: list[Label]) -> None:
        self._labels = labels
        self._parts = 0
        self.used = 0

    def read(self, written: object, level: int) -> LabelTree:
        if not isinstance(written, dict) or "list" not in cast("dict[object, object]", written):
            return self._read(cast("object", written), level)
        part = _read_object(cast("object", written), ("list", "record"), "a part of a label tree")
        # Both are views of the same value, so they are at the same level.
        as_list, as_record = self._read(part["list"], level), self._read(part["record"], level)
        if not isinstance(as_list, ListLabels) or not isinstance(as_record, RecordLabels):
            raise _malformed_error("what may be a list or a record needs both")
        return EitherLabels(as_list, as_record)

    def _read(self, written: object, level: int) -> Label | ListLabels | RecordLabels:
        self._parts += 1
        # Checked while reading: a document from outside may be far deeper than the recursion limit.
        if self._parts > MAX_PARTS or level > MAX_LEVELS:
            raise _malformed_error("it has more parts, or deeper ones, than any label tree")
        if not isinstance(written, dict):
            return self._label(written)
        keys = cast("dict[object, object]", written).keys()
        if keys == {"own", "item"}:
            part = _read_object(cast("object", written), ("own", "item"), "a list")
            return ListLabels(self._label(part["own"]), self.read(part["item"], level + 1))
        if keys == {"own", "places"}:
            part = _read_object(cast("object", written), ("own", "places"), "a list")
            own = self._label(part["own"])
            return ListLabels(
                own, places=[self.read(each, level + 1) for each in _read_list(part["places"], "the places")]
            )
        part = _read_object(cast("object", written), ("own", "fields", "rest"), "a part of a label tree")
        own = self._label(part["own"])
        fields = {name: self.read(each, level + 1) for name, each in _read_fields(part["fields"]).items()}
        return RecordLabels(own, fields, self.read(part["rest"], level + 1))

    def _label(self, number: object) -> Label:
        if type(number) is not int or not 0 <= number < len(self._labels):
            raise _malformed_error(
                f"{_describe_value(number)} is not the number of one of its {len(self._labels)} labels"
            )
        self.used = max(self.used, number + 1)
        return self._labels[number]


def _read_label(written: object) -> Label:
    facts = _read_object(written, ("sources", "readers"), "a label")
    sources = [_read_source(each) for each in _read_list(facts["sources"], "the sources of a label")]
    if not _is_ascending(sources):
        raise _malformed_error("the sources of a label are not in order, or one is there twice")
    return Label(frozenset(sources), _read_readers(facts["readers"]))


def _read_source(written: object) -> Source:
    facts = _read_list(written, "a source")
    if len(facts) != 4:
        raise _malformed_error(f"a source has {len(facts)} facts", "its trust, tool, part and step")
    return Source(*facts)


def _read_readers(written: object) -> Readers:
    if written == "public":
        return PUBLIC
    listed = _read_list(written, "the readers of a label")
    for reader in listed:
        if type(reader) is not str:
            raise _malformed_error(f"the principal {_describe_value(reader)} is not text")
    if not _is_ascending(listed):
        raise _malformed_error("the readers of a label are not in order, or one is there twice")
    if USER not in listed:
        raise _malformed_error("the user is not among the readers")
    return frozenset(listed)


def _is_ascending(values: list[Any]) -> bool:
    return all(first < second for first, second in pairwise(values))


def _read_object(written: object, keys: tuple[str, ...], what: str) -> dict[str, object]:
    if not isinstance(written, dict) or cast("dict[object, object]", written).keys() != set(keys):
        raise _malformed_error(
            f"{_describe_value(cast('object', written))} is not {what}", f"an object with {', '.join(keys)}"
        )
    return cast("dict[str, object]", written)


def _read_list(written: object, what: str) -> list[Any]:
    if type(written) is not list:
        raise _malformed_error(f"{_describe_value(written)} is not {what}", "a list")
    return cast("list[Any]", written)


def _read_fields(written: object) -> dict[str, object]:
    if not isinstance(written, dict) or any(type(name) is not str for name in cast("dict[object, object]", written)):
        raise _malformed_error(f"{_describe_value(cast('object', written))} is not the fields of a record", "an object")
    return cast("dict[str, object]", written)


def _describe_value(value: object) -> str:
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


def _malformed_error(message: str, expected: str | None = None) -> LabelError:
    return LabelError("labels.malformed", message, expected=expected)

"""The data files as plain values, each mapping with the line on which it begins.

They are read from the events of the parser (the one in C where there is one): that takes a third of the time of the
usual way, and what the files do not need (anchors, tags, merges, keys that are there twice) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import CatalogError, Place

if TYPE_CHECKING:
    import yaml

_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?", re.ASCII)
MAX_DEPTH = 20


class Row(dict[str, Any]):
    """A mapping of a file, which knows its line."""

    __slots__ = ("line",)

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def read_rows(text: str, file: str) -> list[Row]:
    """A file that is a list of mappings; `catalog.bad-data` with file and line if it is anything else."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = _Reader(file, yaml.parse(text, Loader=loader)).document()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "it cannot be read"
        raise bad_data(file, mark.line + 1 if mark else 1, f"this is not YAML: {said}") from None
    except yaml.YAMLError as error:
        raise bad_data(file, 1, f"this is not YAML: {error}") from None
    if not isinstance(found, list):
        raise bad_data(file, 1, "the file is no list", expected="a list of mappings, each with an id")
    rows = cast("list[Any]", found)
    for each in rows:
        if not isinstance(each, Row):
            raise bad_data(file, 1, f"{str(each)[:40]!r} stands among the mappings", expected="mappings with an id")
    return rows


def bad_data(file: str, line: int | None, what: str, **more: Any) -> CatalogError:
    """What is wrong in a data file, with its place."""
    return CatalogError("catalog.bad-data", what, place=Place(file=file, line=line), **more)


class _Reader:
    """Values from events, one after the other."""

    def __init__(self, file: str, events: Iterator[Any]) -> None:
        self._file = file
        self._events = events

    def document(self) -> Any:
        import yaml

        value: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise bad_data(self._file, self._line(event), "there is a second document in the file")
            elif isinstance(event, yaml.NodeEvent):
                value = self._value(event, 0)
        return value

    def _value(self, event: yaml.NodeEvent, depth: int) -> Any:
        import yaml

        if depth > MAX_DEPTH:
            raise bad_data(self._file, self._line(event), f"the values are nested deeper than {MAX_DEPTH}")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise bad_data(self._file, self._line(event), "anchors are not understood here", fix="Write it out.")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent) and event.tag is not None:
            raise self._tagged(event)
        return self._list(depth) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(event, depth)

    def _list(self, depth: int) -> list[Any]:
        import yaml

        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(event, depth + 1))
        return found

    def _mapping(self, start: yaml.NodeEvent, depth: int) -> Row:
        import yaml

        found = Row(self._line(start))
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise bad_data(self._file, self._line(event), "a key is no text")
            key = str(event.value)
            if key in found:
                raise bad_data(self._file, self._line(event), f"the key {key!r} is there twice")
            found[key] = self._value(next(self._events), depth + 1)
        return found

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        if event.tag is not None:
            raise self._tagged(event)
        if event.style:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        return text

    def _tagged(self, event: Any) -> CatalogError:
        return bad_data(self._file, self._line(event), f"a value of the kind {str(event.tag)[:40]!r} cannot stand here")

    def _line(self, event: Any) -> int:
        return event.start_mark.line + 1

"""Records of a file in `data`, by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import TypeVar

from ..facts._reading import Spot, read_value
from ..facts._yaml import Row, bad_data, read_rows

T = TypeVar("T")


def rows(file: str) -> list[Row]:
    """The rows of a file, with `catalog.bad-data` if it cannot be read."""
    try:
        text = (files("bicameral.catalog") / "data" / file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise bad_data(f"data/{file}", None, "the file cannot be read", fix="Install the package again.") from None
    return read_rows(text, f"data/{file}")


def records(file: str, kind: type[T]) -> Mapping[str, T]:
    """Every record of a file by its id."""
    found: dict[str, T] = {}
    for row in rows(file):
        id = row.get("id")
        if not isinstance(id, str) or id in found:
            raise bad_data(f"data/{file}", row.line, f"the id {id!r} is there twice, or is no text")
        found[id] = read_value(kind, row, Spot(f"data/{file}", row.line, id))
    return MappingProxyType(found)

"""Checks on tables: a number for each name, and rows that must all still be there."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any, cast

from .facts import as_text, mentions
from .judge import Check, Outcome


def answer_pairs(wanted: Mapping[str, float]) -> Check:
    """The answer gives exactly these numbers for these names, as a dict, as rows or as lines."""
    return lambda outcome: _pairs_wrong(outcome.answer, wanted, "the answer")


def file_pairs(path: str, wanted: Mapping[str, float]) -> Check:
    """The CSV or JSON file gives exactly these numbers for these names, whatever its columns are called."""

    def check(outcome: Outcome) -> str | None:
        text = outcome.world.read(path)
        if text is None:
            return f"there is no {path}"
        if path.endswith(".json"):
            try:
                return _pairs_wrong(json.loads(text), wanted, path)
            except ValueError:
                return f"{path} is not JSON"
        return _pairs_wrong(list(csv.DictReader(io.StringIO(text))), wanted, path)

    return check


def same_table(path: str, original: str) -> Check:
    """The CSV file has all the cells that `original` had at the beginning, in any order of rows."""

    def check(outcome: Outcome) -> str | None:
        text = outcome.world.read(path)
        if text is None:
            return f"there is no {path}"
        wanted = list(csv.DictReader(io.StringIO(outcome.world.before(original))))
        found = list(csv.DictReader(io.StringIO(text)))
        same = sorted(map(_cells, found)) == sorted(map(_cells, wanted))
        return None if same else f"{path} does not have the rows of {original}"

    return check


def _cells(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    return sorted((key, str(cell).strip()) for key, cell in row.items())


def _pairs_wrong(value: Any, wanted: Mapping[str, float], where: str) -> str | None:
    records = _records(value)
    if len(records) != len(wanted):
        return f"{where} has {len(records)} entries, not {len(wanted)}"
    for name, number in wanted.items():
        if not any(mentions(record, name) and mentions(record, number) for record in records):
            return f"{where} does not give {number:g} for {name}"
    return None


def _records(value: Any) -> list[str]:
    """One text for each entry of a dict, each row of a list, or each line of a text that holds a number."""
    match value:
        case dict():
            return [f"{key}: {as_text(item)}" for key, item in cast("dict[str, Any]", value).items()]
        case list() | tuple():
            return [as_text(item) for item in cast("list[Any]", value)]
        case _:
            return [line for line in as_text(value).splitlines() if any(sign.isdigit() for sign in line)]

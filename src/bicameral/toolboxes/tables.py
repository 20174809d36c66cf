"""Tables: read and write CSV and JSON; filter, sort, select, group and join rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from bicameral.errors import Place, ToolError, nearest
from bicameral.parsing import NotJson, check_values, read_json
from bicameral.tools import Folders, Origin, Settings, Surroundings, Tool, Toolbox, tool
from bicameral.types import FilePath

from ._tables_csv import Row, read_rows, render
from ._tables_shape import FileShape, grouped, joined, same_rows, selected
from ._tables_values import How, Op, as_text, holds, is_empty, key, meant, rank, total

Rows = list[dict[str, Any]]

MAX_ROWS = 1_000_000


class TablesSettings(Settings):
    """Limits of the tables toolbox."""

    max_bytes: int = Field(64 * 1024 * 1024, gt=0, description="the largest file that is read")
    read_headers: bool = Field(True, description="whether the planner may be told how many columns a table has")


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The tools that touch files; each method is one tool."""

    folders: Folders
    settings: TablesSettings

    def read_csv(self, path: FilePath) -> Rows:
        """Read a CSV file as rows."""
        return read_rows(self._text(path), path)

    def read_json(self, path: FilePath) -> Any:
        """Read a JSON file."""
        text = self._text(path)
        if path.lower().endswith((".jsonl", ".ndjson")):
            lines = enumerate(text.split("\n"), 1)
            values = [_from_json(line, path, number) for number, line in lines if line.strip()]
            try:
                # Each line is within the limits; so must all of them be.
                check_values(values)
            except NotJson as error:
                raise ToolError("tables.bad-json", f"not JSON: {error.why}", place=Place(file=path)) from None
            return values
        return _from_json(text, path)

    def write_csv(self, path: str, rows: Rows) -> None:
        """Write rows to a CSV file, replacing it."""
        self.folders.write_text(path, render(rows))

    def write_json(self, path: str, value: Any) -> None:
        """Write a value to a JSON file, replacing it."""
        try:
            text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=as_text)
        except (ValueError, RecursionError) as error:
            raise ToolError("tables.bad-value", f"the value cannot be written as JSON: {error}") from None
        self.folders.write_text(path, text + "\n")

    def stamp(self, path: str) -> tuple[int, int]:
        """What changes when the file does."""
        found = self.folders.reading(path).stat()
        return found.st_mtime_ns, found.st_size

    def _text(self, path: str) -> str:
        return self.folders.read_text(path, max_bytes=self.settings.max_bytes)


def _from_json(text: str, path: str, line: int = 1) -> Any:
    try:
        return read_json(text, what=f"the file {path!r}")
    except NotJson as error:
        found = None if error.line is None else error.line + line - 1
        place = Place(file=path, line=found, column=error.column)
        raise ToolError("tables.bad-json", f"not JSON: {error.why}", place=place) from None


@tool(effect="pure", keeps="rows", field_of={"column": "rows"}, refine=same_rows)
def filter_rows(rows: Rows, column: str, op: Op, value: Any) -> Rows:
    """Keep the rows whose column compares so with a value."""
    _check_columns(rows, column)
    wanted = meant((row.get(column) for row in rows), value)
    return [row for row in rows if holds(row.get(column), op, wanted)]


@tool(effect="pure", keeps="rows", field_of={"by": "rows"}, refine=same_rows)
def sort_rows(rows: Rows, by: Annotated[str, "column"], descending: bool = False) -> Rows:
    """Sort rows by a column; empty cells come last."""
    _check_columns(rows, by)
    filled = [row for row in rows if not is_empty(row.get(by))]
    empty = [row for row in rows if is_empty(row.get(by))]
    return sorted(filled, key=lambda row: rank(row[by]), reverse=descending) + empty


@tool(effect="pure", field_of={"columns": "rows"}, refine=selected)
def select_columns(rows: Rows, columns: list[str]) -> Rows:
    """Keep only these columns."""
    _check_columns(rows, *columns)
    return [{name: row.get(name) for name in columns} for row in rows]


@tool(effect="pure", field_of={"by": "rows", "column": "rows"}, refine=grouped)
def group_rows(rows: Rows, by: Annotated[str, "column"], column: str, how: How = "sum") -> Rows:
    """Total a column per group; gives rows of the two columns."""
    # Counting rows needs no column of its own, and a column cannot hold its group's name and its total.
    _check_columns(rows, by, *(() if how == "count" else (column,)))
    result = how if column == by else column
    groups: dict[object, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row.get(by)), []).append(row)
    return [
        {by: group[0].get(by), result: total((row.get(column) for row in group), how, column)}
        for group in groups.values()
    ]


@tool(effect="pure", field_of={"on": "left"}, refine=joined)
def join_rows(left: Rows, right: Rows, on: Annotated[str, "column of both"]) -> Rows:
    """Join the rows of two tables that have the same value in a column."""
    _check_columns(left, on)
    _check_columns(right, on)
    matches: dict[object, list[Row]] = {}
    for row in right:
        if not is_empty(row.get(on)):
            matches.setdefault(key(row[on]), []).append(row)
    taken = {name for row in left for name in row}
    joined: Rows = []
    for row in left:
        others = [] if is_empty(row.get(on)) else matches.get(key(row[on]), [])
        if len(joined) + len(others) > MAX_ROWS:
            raise ToolError("tables.too-many", f"the join has more than {MAX_ROWS:,} rows", fix="Filter first.")
        joined.extend(row | _renamed(other, on, taken) for other in others)
    return joined


def _renamed(row: Row, on: str, taken: set[str]) -> Row:
    """The right row without the common column; a name that the left has too gets `_right` behind it."""
    return {f"{name}_right" if name in taken else name: value for name, value in row.items() if name != on}


def _check_columns(rows: Rows, *columns: str) -> None:
    """Every named column occurs; a table without rows has no columns to be wrong about."""
    if not rows:
        return
    known = dict.fromkeys(name for row in rows for name in row)
    for column in columns:
        if column not in known:
            raise ToolError(
                "tables.unknown-column",
                f"there is no column {column!r}",
                expected=_some(known),
                nearest=nearest(column.casefold(), known) or _same_letters(column, known),
            )


def _same_letters(column: str, known: Iterable[str]) -> str | None:
    return next((name for name in known if name.casefold() == column.casefold()), None)


def _some(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return "one of " + ", ".join(shown[:20]) + (" ..." if len(shown) > 20 else "")


_SAVE = ("save", "write", "put", "store", "create", "export", "dump", "make", "turn", "convert", "keep", "collect")


def _build(settings: TablesSettings, surroundings: Surroundings) -> list[Tool]:
    folders = surroundings.folders
    files = TableFiles(folders, settings)
    csv_shape = FileShape(files.read_csv, files.stamp, (".csv", ".tsv"), folders.trusts)
    json_shape = FileShape(files.read_json, files.stamp, (".json", ".jsonl", ".ndjson"), folders.trusts)
    # Anybody may have written a table that lies around.
    reading = partial(
        tool, effect="read", origins=Origin("third_party"), owned=lambda given: folders.trusts(given["path"])
    )
    writing = partial(
        tool,
        effect="write",
        idempotent=True,
        origins=Origin("system"),
        words=_SAVE,
        target=lambda given: folders.target(given.get("path")),
    )
    return [
        reading(refine=csv_shape if settings.read_headers else None)(files.read_csv),
        reading(refine=json_shape if settings.read_headers else None)(files.read_json),
        writing(purpose={"rows": "carries"})(files.write_csv),
        writing(purpose={"value": "carries"})(files.write_json),
        filter_rows,
        sort_rows,
        select_columns,
        group_rows,
        join_rows,
    ]


toolbox = Toolbox("tables", "Read, write, filter, sort, group and join CSV and JSON tables.", TablesSettings, _build)

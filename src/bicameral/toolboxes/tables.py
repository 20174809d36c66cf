"""The tables toolbox: read CSV, JSON and spreadsheets, write CSV and JSON; filter, sort, select, group and join rows.

Cells are compared in the kind of their column (`bicameral.columns`): `no` is False in a column of yes and no, and a
date is a date in any notation. Cells of any types can be compared with one another; a column of mixed types is never an
error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, cast

from pydantic import Field, model_validator

from bicameral.columns import DecimalMark
from bicameral.errors import Place, ToolError, nearest_name
from bicameral.parsing import InvalidJson, check_json_values, read_json
from bicameral.toolboxes._columnar_rows import filter_table, group_table, join_tables, sort_table, table_of_rows
from bicameral.toolboxes._table_cells import (
    Aggregate,
    CompareOp,
    aggregate_column,
    cell_as_text,
    column_key,
    compare_with_column,
    is_empty_cell,
    order_key,
)
from bicameral.toolboxes._table_files import (
    ArgumentTypes,
    ColumnTexts,
    LiteralValues,
    Row,
    grouped_rows_type,
    joined_rows_type,
    read_csv_rows,
    render_csv,
    same_rows_type,
    selected_rows_type,
    short_texts,
    value_shape,
)
from bicameral.toolboxes._table_reading import LARGE_TEXT, read_csv_table
from bicameral.toolboxes._text import document_kind
from bicameral.tools import (
    SHEET_SUFFIXES,
    TABLE_MEDIA,
    TABLE_SUFFIXES,
    Folders,
    Origin,
    Selection,
    Settings,
    Surroundings,
    Tool,
    Toolbox,
    note_selection,
    tool,
)
from bicameral.types import FilePath, Table, Type, plain_value

Rows = list[dict[str, Any]]
"""Rows of a table. A large one is a `Table`, which the columnar tools here take and return as well."""

MAX_ROWS = 1_000_000


class TablesSettings(Settings):
    """Limits of the tables toolbox."""

    max_bytes: int = Field(64 * 1024 * 1024, gt=0, description="the largest file that is read")
    decimals: DecimalMark | None = Field(
        None,
        description="the mark before decimals in your tables, where no cell of a column decides whether 1.234 is 1234",
    )
    columnar: bool = Field(
        True, description="whether large tables are read and computed by columns, where the extra `tables` is installed"
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_former_keys(cls, given: Any) -> Any:
        # `read_headers` kept names of columns from the planner, which sees none any more. Files with it still load.
        if not isinstance(given, Mapping):
            return given
        return {key: value for key, value in cast("Mapping[str, Any]", given).items() if key != "read_headers"}


@dataclass(frozen=True, slots=True)
class TableTools:
    """The tools that touch files; each method is one tool."""

    folders: Folders
    settings: TablesSettings

    def read_csv(self, path: FilePath) -> Rows:
        """Read a CSV file as rows."""
        return self.read_sheet(path, "")

    def read_sheet(self, path: FilePath, sheet: Annotated[str, "name or number"]) -> Rows:
        """Read one sheet of a spreadsheet as rows."""
        if document_kind(path) is None:
            return self._read_text_rows(path)
        from bicameral.toolboxes._documents import read_rows

        raw = self.folders.read_bytes(path, max_bytes=self.settings.max_bytes)
        return read_rows(raw, path, sheet, self.settings.decimals)

    def _read_text_rows(self, path: str) -> Rows:
        text = self._text(path)
        if self.settings.columnar and len(text) > LARGE_TEXT:
            table = read_csv_table(text, path, self.settings.decimals)
            if table is not None:
                return cast("Rows", table)
        return read_csv_rows(text, path, self.settings.decimals)

    def read_json(self, path: FilePath) -> Any:
        """Read a JSON file."""
        text = self._text(path)
        if path.lower().endswith((".jsonl", ".ndjson")):
            lines = enumerate(text.split("\n"), 1)
            values = [_parse_json_text(line, path, number) for number, line in lines if line.strip()]
            try:
                # Each line is within the limits; all lines together must be, too.
                check_json_values(values)
            except InvalidJson as error:
                raise ToolError("tables.bad-json", f"not JSON: {error.why}", place=Place(file=path)) from None
            return values
        return _parse_json_text(text, path)

    def write_csv(self, path: str, rows: Rows) -> None:
        """Write rows to a CSV file, replacing it."""
        self.folders.write_text(path, render_csv(rows))

    def write_json(self, path: str, value: Any) -> None:
        """Write a value to a JSON file, replacing it."""
        try:
            text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=cell_as_text)
        except (ValueError, RecursionError) as error:
            raise ToolError("tables.bad-value", f"the value cannot be written as JSON: {error}") from None
        self.folders.write_text(path, text + "\n")

    def stamp(self, path: str) -> tuple[int, int]:
        """Time and size of a file, which change if its content does."""
        facts = self.folders.resolve_readable(path).stat()
        return facts.st_mtime_ns, facts.st_size

    def _text(self, path: str) -> str:
        return self.folders.read_text(path, max_bytes=self.settings.max_bytes)


class FileShape:
    """A refinement of a tool's result type that reads the file named in a plan, and caches its shape by its stamp.

    It also stores the short texts of each column, in which a planner looks up the words of a request.

    Args:
        read: Reads the content of a file.
        stamp: Returns a value that changes if the file does.
        endings: The endings of the paths that it handles.
        trusts: Whether a path lies in a trusted folder.
        decimals: The mark before decimals where no cell of a column decides it.
        part: The argument that chooses a part of the file, which `read` takes as well; empty if there is none.
    """

    def __init__(
        self,
        read: Callable[..., object],
        stamp: Callable[[str], object],
        endings: tuple[str, ...],
        trusts: Callable[[str], bool],
        decimals: DecimalMark | None = None,
        part: str = "",
    ) -> None:
        self._part = part
        self._read = read
        self._stamp = stamp
        self.endings = endings
        self._trusts = trusts
        self._decimals: DecimalMark | None = decimals
        self._cache: dict[str, tuple[object, Type, ColumnTexts]] = {}

    def __call__(self, types: ArgumentTypes, literals: LiteralValues) -> Type | None:
        facts = self._shape_and_texts(literals)
        return None if facts is None else facts[0]

    def cells(self, literals: LiteralValues) -> ColumnTexts:
        """The short texts in the columns of the file that a plan names."""
        facts = self._shape_and_texts(literals)
        return {} if facts is None else facts[1]

    def _shape_and_texts(self, literals: LiteralValues) -> tuple[Type, ColumnTexts] | None:
        path = literals.get("path")
        if not isinstance(path, str) or not path.lower().endswith(self.endings):
            return None
        part = (literals.get(self._part),) if self._part else ()
        if not all(isinstance(each, str) for each in part):
            return None
        # Trust is part of the key: without it, names of a file that is no longer trusted could reach the planner.
        stamp = (self._stamp(path), self._trusts(path), part)
        cached = self._cache.get(path)
        if cached is None or cached[0] != stamp:
            content = self._read(path, *part)
            shape = value_shape(content, trusted=stamp[1], decimals=self._decimals)
            cached = self._cache[path] = (stamp, shape, short_texts(content))
        return cached[1:]


def _parse_json_text(text: str, path: str, line: int = 1) -> Any:
    try:
        return read_json(text, what=f"the file {path!r}")
    except InvalidJson as error:
        file_line = None if error.line is None else error.line + line - 1
        place = Place(file=path, line=file_line, column=error.column)
        raise ToolError("tables.bad-json", f"not JSON: {error.why}", place=place) from None


@dataclass(frozen=True, slots=True)
class RowTools:
    """The tools that compute with rows in the kinds of their columns; each method is one tool.

    Args:
        decimals: The mark before decimals where no cell of a column decides it.
    """

    decimals: DecimalMark | None = None

    def filter_rows(self, rows: Rows, column: str, op: CompareOp, value: Any) -> Rows:
        """Keep the rows whose column compares so with a value."""
        _check_columns(rows, column)
        if (table := _filled_table(rows)) is not None:
            found, comparison = filter_table(table, column, op, value, self.decimals)
            note_selection(
                Selection(len(rows), len(found), "rows", comparison.words, comparison.unread, guess=comparison.guess)
            )
            return cast("Rows", found)
        rows = plain_value(rows)
        comparison = compare_with_column([row.get(column) for row in rows], column, op, value, self.decimals)
        kept = [row for row in rows if comparison.matches(row.get(column))]
        note_selection(
            Selection(len(rows), len(kept), "rows", comparison.words, comparison.unread, guess=comparison.guess)
        )
        return kept

    def sort_rows(self, rows: Rows, by: Annotated[str, "column"], descending: bool = False) -> Rows:
        """Sort rows by a column; empty cells come last."""
        _check_columns(rows, by)
        if (table := _filled_table(rows)) is not None:
            found, guess = sort_table(table, by, self.decimals, descending=descending)
            _note_guess(len(rows), guess)
            return cast("Rows", found)
        rows = plain_value(rows)
        filled = [row for row in rows if not is_empty_cell(row.get(by))]
        empty = [row for row in rows if is_empty_cell(row.get(by))]
        key, guess = order_key([row[by] for row in filled], by, self.decimals)
        _note_guess(len(rows), guess)
        return sorted(filled, key=lambda row: key(row[by]), reverse=descending) + empty

    def group_rows(self, rows: Rows, by: Annotated[str, "column"], column: str, how: Aggregate = "sum") -> Rows:
        """Total a column per group; gives rows of the two columns."""
        # Counting rows does not read the column. One column cannot hold both the name of the group and its total.
        _check_columns(rows, by, *(() if how == "count" else (column,)))
        result = how if column == by else column
        if (table := _filled_table(rows)) is not None and column in table:
            found, guess = group_table(table, by, column, how, result, self.decimals)
            _note_guess(len(rows), guess)
            return cast("Rows", found)
        rows = plain_value(rows)
        groups: dict[object, list[Row]] = {}
        key = column_key((row.get(by) for row in rows), self.decimals)
        for row in rows:
            groups.setdefault(key(row.get(by)), []).append(row)
        total, guess = aggregate_column([row.get(column) for row in rows], how, column, self.decimals)
        _note_guess(len(rows), guess)
        return [{by: group[0].get(by), result: total(row.get(column) for row in group)} for group in groups.values()]

    def join_rows(self, left: Rows, right: Rows, on: Annotated[str, "column of both"]) -> Rows:
        """Join the rows of two tables that have the same value in a column."""
        _check_columns(left, on)
        _check_columns(right, on)
        sides = [_filled_table(left), _filled_table(right)]
        if left and right and sides != [None, None]:
            one, other = (table or table_of_rows(rows) for table, rows in zip(sides, (left, right), strict=True))
            if one is not None and other is not None:
                found, matched = join_tables(one, other, on, self.decimals, MAX_ROWS)
                note_selection(Selection(len(left), matched, "rows", f"{on} is in the other table, too"))
                return cast("Rows", found)
        left, right = plain_value(left), plain_value(right)
        matches: dict[object, list[Row]] = {}
        left_key, right_key = (column_key((row.get(on) for row in rows), self.decimals) for rows in (left, right))
        for row in right:
            if not is_empty_cell(row.get(on)):
                matches.setdefault(right_key(row[on]), []).append(row)
        taken = {name for row in left for name in row}
        joined: Rows = []
        matched = 0
        for row in left:
            others = [] if is_empty_cell(row.get(on)) else matches.get(left_key(row[on]), [])
            if len(joined) + len(others) > MAX_ROWS:
                raise ToolError("tables.too-many", f"the join has more than {MAX_ROWS:,} rows", fix="Filter first.")
            matched += bool(others)
            joined.extend(row | _rename_clashes(other, on, taken) for other in others)
        note_selection(Selection(len(left), matched, "rows", f"{on} is in the other table, too"))
        return joined


@tool(effect="pure", field_of={"columns": "rows"}, refine=selected_rows_type, columnar=True)
def select_columns(rows: Rows, columns: list[str]) -> Rows:
    """Keep only these columns."""
    _check_columns(rows, *columns)
    if (table := _filled_table(rows)) is not None:
        return cast("Rows", table.select(columns))
    rows = plain_value(rows)
    return [{name: row.get(name) for name in columns} for row in rows]


def _filled_table(rows: object) -> Table | None:
    """The rows, if they are a table by columns and there are any."""
    return rows if type(rows) is Table and len(rows) else None


def _note_guess(rows: int, guess: str) -> None:
    """Note that a column was read by a guess; what is not chosen by it is no selection otherwise."""
    if guess:
        note_selection(Selection(rows, rows, "rows", guess=guess))


def _rename_clashes(row: Row, on: str, taken: set[str]) -> Row:
    """The right row without the common column; `_right` is appended to a name that the left table has, too."""
    return {f"{name}_right" if name in taken else name: value for name, value in row.items() if name != on}


def _check_columns(rows: Rows, *columns: str) -> None:
    """Raise if a named column does not occur; a table without rows has no known columns and passes."""
    if not rows:
        return
    table = _filled_table(rows)
    known = dict.fromkeys((name for row in rows for name in row) if table is None else table.names)
    for column in columns:
        if column not in known:
            same_but_case = next((name for name in known if name.casefold() == column.casefold()), None)
            raise ToolError(
                "tables.unknown-column",
                f"there is no column {column!r}",
                expected=_list_some(known),
                nearest=nearest_name(column.casefold(), known) or same_but_case,
            )


def _list_some(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return "one of " + ", ".join(shown[:20]) + (" ..." if len(shown) > 20 else "")


_SAVE_WORDS = tuple("save write put store create export dump make turn convert keep collect".split())


_CSV = ("text/csv", "text/tab-separated-values")
_JSON = ("application/json", "application/x-ndjson")


def _build(settings: TablesSettings, surroundings: Surroundings) -> list[Tool]:
    folders = surroundings.folders
    files = TableTools(folders, settings)
    rows = RowTools(settings.decimals)
    shape = partial(FileShape, stamp=files.stamp, trusts=folders.is_trusted, decimals=settings.decimals)
    csv_shape = shape(files.read_csv, endings=(*TABLE_SUFFIXES, *SHEET_SUFFIXES))
    sheet_shape = shape(files.read_sheet, endings=SHEET_SUFFIXES, part="sheet")
    json_shape = shape(files.read_json, endings=(".json", ".jsonl", ".ndjson"))
    # A table is untrusted unless it lies in a trusted folder: anybody may have written it.
    reading = partial(
        tool, effect="read", origins=Origin("third_party"), owned=lambda given: folders.is_trusted(given["path"])
    )
    writing = partial(
        tool,
        effect="write",
        idempotent=True,
        origins=Origin("system"),
        words=_SAVE_WORDS,
        refers={"path": "file"},
        target=lambda given: replace(
            folders.target(given.get("path")), replaces=folders.replaced_files(given.get("path"))
        ),
        files_only=True,
    )
    computing = partial(tool, effect="pure", columnar=True)
    return [
        reading(refine=csv_shape, columnar=True, accepts=(*_CSV, *TABLE_MEDIA))(files.read_csv),
        reading(refine=sheet_shape, columnar=True, accepts=TABLE_MEDIA)(files.read_sheet),
        reading(refine=json_shape, accepts=_JSON)(files.read_json),
        writing(purpose={"rows": "carries"}, gives=("text/csv",))(files.write_csv),
        writing(purpose={"value": "carries"}, gives=("application/json",))(files.write_json),
        computing(keeps="rows", field_of={"column": "rows"}, refine=same_rows_type)(rows.filter_rows),
        computing(keeps="rows", field_of={"by": "rows"}, refine=same_rows_type)(rows.sort_rows),
        select_columns,
        computing(field_of={"by": "rows", "column": "rows"}, refine=grouped_rows_type)(rows.group_rows),
        computing(field_of={"on": "left"}, refine=joined_rows_type)(rows.join_rows),
    ]


toolbox = Toolbox("tables", "Read, write, filter, sort, group and join CSV and JSON tables.", TablesSettings, _build)

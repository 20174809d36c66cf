"""Table files: CSV as it occurs in practice, spreadsheet formulas, and the column types of a file before a plan runs.

CSV occurs with several delimiters, quoted line ends and byte order marks; errors name the line.

A spreadsheet computes a cell that begins with `=`, `+`, `-` or `@`, and such a formula can fetch addresses and start
programs. Such a text is written with an apostrophe before it, as OWASP advises, and read without it, so that tables
can be written and read back unchanged. Numbers are not escaped, and neither are telephone numbers, in which nothing
can be computed. Programs that split at `;`, at tabs or at every line end see different cells, so each part of a text
between these characters is checked by itself.

A plan is checked against the names and types of a table's columns. A planner never sees the column names of a file
outside the trusted folders: it sees neutral names in their place (`bicameral.planning`). The size of a shape is
bounded, and it never contains a value. The short texts of a table are stored beside its shape: words of a request are
looked up in them without a model.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from bicameral import types as t
from bicameral.columns import (
    Column,
    DecimalMark,
    find_column_kind,
    find_counted_kind,
    is_blank,
    is_twofold_number,
    notation_reader,
    parse_number,
)
from bicameral.errors import Place, ToolError
from bicameral.parsing import MIB, SHORT_TEXT, ParseLimits, Parser
from bicameral.tools import TABLE_SUFFIXES
from bicameral.types import Table

# Also full-width characters, and after blanks and quotes, which some programs drop. A sign before digits and their
# separators is harmless: -5, +49 30 1234, -12.5 %.
_FORMULA = re.compile(
    r"""[\s"'`\u200b-\u200f\ufeff]*(?:[=@\uff1d\uff20]|[-+\u2212\uff0b\uff0d](?!["'\s\d.,:()/%-]*\Z))"""
)
_PARTS = re.compile(r"([;\t\r\n\x0b\x0c\x85\u2028\u2029]+)")


def is_table_path(path: object) -> bool:
    """Whether a path names a text table that spreadsheets open."""
    return isinstance(path, str) and path.strip().rstrip(". ").lower().endswith(TABLE_SUFFIXES)


def escape_formulas(text: str) -> str:
    """The text of a cell, escaped so that no spreadsheet computes it.

    Example:
        >>> escape_formulas("=cmd|' /C calc'!A0"), escape_formulas("-5"), escape_formulas("a;=b")
        ("'=cmd|' /C calc'!A0", '-5', "a;'=b")
    """
    first, *rest = _PARTS.split(text)
    inner = "".join((first, *map(_escape_part, rest)))
    # The first part is checked with the whole text: `+1;x` is not a number for a program that does not split at `;`.
    return f"'{inner}" if _FORMULA.match(text) else inner


def unescape_formulas(text: str) -> str:
    """The original text of a cell: the inverse of `escape_formulas`."""
    if "'" not in text:
        return text
    first, *rest = _PARTS.split(text)
    return _unescape_part("".join((first, *map(_unescape_part, rest))))


def has_formulas(text: str) -> bool:
    """Whether a text has cells that a spreadsheet would compute if it were written into a table."""
    return any(_FORMULA.match(cell) for part in _PARTS.split(text) for cell in re.split(r"[,|]", part))


def _escape_part(part: str) -> str:
    return f"'{part}" if _FORMULA.match(part) else part


def _unescape_part(part: str) -> str:
    return part[1:] if part.startswith("'") and _FORMULA.match(part[1:]) else part


Row = dict[str, Any]

_DELIMITERS = ",;\t|"
_SPECIAL = _DELIMITERS + '"\r\n'
_SAMPLE = 50
_LONGEST_FIELD = 1 << 27
MAX_COLUMNS = 16_384
"""As many as the largest spreadsheets have."""
_MAX_CELLS = 4_000_000


def parse_cell(text: str) -> int | float | bool | str:
    """The value of a CSV cell: a number, true or false, or the unchanged text."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            number = parse_number(text)
            return text if number is None else number


def parse_column(texts: Sequence[str], decimals: DecimalMark | None = None) -> list[int | float | bool | str]:
    """The values of the cells of a column.

    A text such as `1.234` is the number 1.234 or 1234. The other cells of the column decide which, and after them the
    settings. Where neither does, it stays a text: whoever computes with it reads it by a guess, and says so.

    Args:
        texts: All cells of the column.
        decimals: The mark before decimals as the settings say.

    Example:
        >>> parse_column(["1.234", "2.500,50"]), parse_column(["1.234", "2.5"]), parse_column(["1.234", "7"])
        ([1234, '2.500,50'], [1.234, 2.5], ['1.234', 7])
    """
    values = [parse_cell(text) for text in texts]
    twofold = [at for at, value in enumerate(values) if type(value) is float and is_twofold_number(texts[at])]
    if not twofold:
        return values
    notation = find_column_kind(texts, decimals).notation
    if notation == "number" or notation.endswith(": 1,234.5"):
        return values
    thousands = notation.endswith(": 1.234,5")
    for at in twofold:
        # As a number it keeps its meaning where rows are chosen, and the cells that decided it are no longer there.
        values[at] = int(texts[at].strip().replace(".", "")) if thousands else texts[at]
    return values


def read_csv_rows(text: str, path: str, decimals: DecimalMark | None = None) -> list[Row]:
    """The rows of a CSV text; a long one is parsed in the parser process, which can be killed.

    The standard library's reader takes linear time, so a short text cannot block this process. In a long text the
    work in Python for each cell adds up.
    """
    if len(text) <= SHORT_TEXT:
        return parse_csv(text, path, decimals)
    raw = text.encode("utf-8", "surrogatepass")
    return _CSV_PARSER(raw, what=f"the table {path!r}", path=path, decimals=decimals)


def parse_rows(raw: bytes, path: str, decimals: DecimalMark | None = None) -> list[Row]:
    """The rows of a CSV text; called in the parser process."""
    return parse_csv(raw.decode("utf-8", "surrogatepass"), path, decimals)


_CSV_PARSER: Parser[list[Row]] = Parser(
    "bicameral.toolboxes._table_files:parse_rows",
    list[dict[str, Any]],
    ParseLimits(cpu=20.0, wall=25.0, memory=3072 * MIB, output=512 * MIB),
)


def parse_csv(text: str, path: str, decimals: DecimalMark | None = None) -> list[Row]:
    """The rows of a CSV text, with the column names of its first line."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    records = csv_records(text, path, guess_delimiter(text))
    _, header = next(records, (0, None))
    if header is None:
        return []
    # `name, city`: a space after every delimiter is layout and not part of the values.
    if len(header) > 1 and all(name.startswith(" ") for name in header[1:]):
        records = csv_records(text, path, guess_delimiter(text), skip_spaces=True)
        _, header = next(records)
    if len(header) > MAX_COLUMNS:
        raise ToolError(
            "tables.too-large", f"the table has more than {MAX_COLUMNS:,} columns", place=Place(file=path, line=1)
        )
    names = column_names([unescape_formulas(name) for name in header])
    table: list[list[str]] = []
    for line, values in records:
        if len(table) * len(names) > _MAX_CELLS:
            raise ToolError(
                "tables.too-large",
                f"the table has more than {_MAX_CELLS:,} cells",
                place=Place(file=path, line=line),
                fix="Split it, or leave out columns that are not needed.",
            )
        if len(values) != len(names):
            raise ToolError(
                "tables.ragged",
                f"the row has {len(values)} values but the header has {len(names)} names",
                place=Place(file=path, line=line),
                fix="Mend the row; a value with the delimiter in it must stand in quotes.",
            )
        table.append([unescape_formulas(value) for value in values])
    columns = [parse_column(texts, decimals) for texts in zip(*table, strict=True)]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def csv_records(text: str, path: str, delimiter: str, *, skip_spaces: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Every record that is not an empty line, with the number of its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=skip_spaces)
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise ToolError("tables.bad-csv", f"not CSV: {error}", place=Place(file=path, line=line)) from None
        if record is None:
            return
        if record:
            yield line, record


def guess_delimiter(text: str) -> str:
    """The delimiter with which most of the first rows have as many cells as the header."""

    def fit(delimiter: str) -> tuple[float, int]:
        widths: list[int] = []
        with suppress(ToolError):
            widths.extend(len(record) for _, record in islice(csv_records(text, "", delimiter), _SAMPLE))
        if not widths or widths[0] < 2:
            return (0.0, 0)
        return (widths.count(widths[0]) / len(widths), widths[0])

    return max(_DELIMITERS, key=fit)


def column_names(header: list[str]) -> list[str]:
    """Distinct, non-empty column names: an empty one becomes `column_3`, a second `name` becomes `name_2`."""
    taken = {name.strip() for name in header}
    names: dict[str, None] = {}
    # The last number tried for each name: otherwise a thousand columns of one name would need a million tries.
    tried: dict[str, int] = {}
    for position, raw in enumerate(header, 1):
        name = wanted = raw.strip() or f"column_{position}"
        while name in names or (name is not wanted and name in taken):
            tried[wanted] = tried.get(wanted, 1) + 1
            name = f"{wanted}_{tried[wanted]}"
        names[name] = None
    return list(names)


def render_csv(rows: Iterable[Row]) -> str:
    """The rows as CSV with all columns, in the order of their first occurrence.

    Texts that a spreadsheet would compute are escaped, all of them, since it is not known here who wrote them.
    `parse_csv` undoes this.
    """
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ""
    # Lines are joined here, because csv.writer does not quote a lone carriage return on Python 3.11.
    table = [
        [escape_formulas(name) for name in names],
        *([_cell_text(row.get(name)) for name in names] for row in rows),
    ]
    return "".join(_csv_line(values) for values in table)


def _csv_line(values: list[str]) -> str:
    if values == [""]:
        return '""\n'  # an empty line would not be read as a row
    return ",".join(_quote_cell(value) for value in values) + "\n"


def _quote_cell(value: str) -> str:
    """The value, in quotes if it has a character that could be read as a delimiter, quote or line end."""
    return '"' + value.replace('"', '""') + '"' if any(mark in value for mark in _SPECIAL) else value


def _cell_text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dt.date() | dt.time():
            return value.isoformat()
        case list() | dict():
            return escape_formulas(json.dumps(value, ensure_ascii=False, default=str))
        case int() | float():
            return str(value)
        case _:
            return escape_formulas(str(value))


MAX_FIELDS = 60
"""How many names the shape of an untrusted file may have, on all levels together."""
MAX_DEPTH = 5
MAX_SAMPLE = 5_000
LONGEST_NAME = 200
LONGEST_TEXT = 60
"""A longer text is prose, which no word of a request equals."""
MAX_TEXTS = 5_000
"""How many different short texts of a file are stored."""

MAX_OTHERS = 20
"""How many texts that are not of the kind of their column its type lists."""

ArgumentTypes = Mapping[str, t.Type]
LiteralValues = Mapping[str, Any]
ColumnTexts = Mapping[str, frozenset[str]]


def value_shape(value: object, *, trusted: bool = False, decimals: DecimalMark | None = None) -> t.Type:
    """The type of a value from a file, as precise as the limits on names and depth allow."""
    if isinstance(value, Table):
        shape = _table_shape(value, decimals)
    else:
        shape = _with_cell_types(_shape_at(value, 0), value, decimals)
    names = sum(len(each.fields) for each in t.iter_types(shape) if isinstance(each, t.RecordType))
    return shape if trusted or names <= MAX_FIELDS else _without_names(shape)


def _table_shape(table: Table, decimals: DecimalMark | None) -> t.Type:
    """The same for a table by columns: what is told by all cells of a column is told by its different ones."""
    shape = _shape_at(table.cut(None, MAX_SAMPLE, None).rows(), 0)
    row = _row_type(shape)
    if row is None:
        return shape

    def cell_type(field: t.Field) -> t.Type:
        def find_kind() -> Column:
            return find_counted_kind(*table.distinct(field.name), decimals)

        return _cell_type(field, table.cell_types(field.name), find_kind, lambda: table.distinct(field.name)[0])

    return t.ListType(t.RecordType(tuple(replace(each, type=cell_type(each)) for each in row.fields), row.name))


def _with_cell_types(shape: t.Type, value: object, decimals: DecimalMark | None) -> t.Type:
    """The type of a table with the kinds of its columns, which all rows together decide and not only a sample."""
    row = _row_type(shape)
    if row is None:
        return shape
    rows = cast("list[dict[str, object]]", value)
    if {*map(type, rows)} != {dict}:
        return shape

    def cell_type(field: t.Field) -> t.Type:
        cells = [row.get(field.name) for row in rows]
        return _cell_type(field, set(map(type, cells)), lambda: find_column_kind(cells, decimals), lambda: cells)

    return t.ListType(t.RecordType(tuple(replace(each, type=cell_type(each)) for each in row.fields), row.name))


def _cell_type(
    field: t.Field,
    found: set[type],
    find_kind: Callable[[], Column],
    cells: Callable[[], Iterable[object]],
) -> t.Type:
    """The type of the cells of a column; the one that it has if they are compared as they are.

    Args:
        field: The column, with the type of its first cells.
        found: The types of all its cells.
        find_kind: Finds the kind of the column.
        cells: Its cells, or each different one, in their order.
    """
    native = _NATIVE_CELLS.get(type(field.type))
    if native is None and not isinstance(field.type, t.StrType) and type(field.type) is not t.AnyType:
        return field.type
    if native is not None and found <= native:
        return field.type
    # Only the first rows were looked at for the type; those after them may have other cells.
    shown = field.type if isinstance(field.type, t.StrType) and found <= {str} else t.ANY
    column = find_kind()
    if column.kind == "ambiguous":
        return t.CellType(field.name, "", readings=column.readings, text_only=shown == t.STR)
    if not column.notation:
        return shown
    read = notation_reader(column.notation)
    others: dict[str, None] = {}
    for cell in cells():
        if isinstance(cell, str) and cell not in others and not is_blank(cell) and read(cell) is None:
            others[cell] = None
            if len(others) > MAX_OTHERS or len(cell) > LONGEST_TEXT:
                break
    listed = tuple(others) if len(others) <= MAX_OTHERS and all(len(cell) <= LONGEST_TEXT for cell in others) else None
    return t.CellType(field.name, column.notation, column.units, others=listed, text_only=shown == t.STR)


_NATIVE_CELLS: Mapping[type[t.Type], set[type]] = {
    t.BoolType: {bool},
    t.IntType: {int},
    t.FloatType: {int, float},
}


def _shape_at(value: object, depth: int) -> t.Type:
    match value:
        case bool():
            return t.BOOL
        case int():
            return t.INT
        case float():
            return t.FLOAT
        case str():
            return t.STR
        case list():
            return t.ListType(_common_shape(cast("list[object]", value)[:MAX_SAMPLE], depth))
        case dict():
            return _record_shape(cast("dict[str, object]", value), depth)
        case _:
            return t.ANY


def _record_shape(entries: dict[str, object], depth: int) -> t.Type:
    if depth >= MAX_DEPTH or not entries or len(entries) > MAX_FIELDS or not all(map(_is_column_name, entries)):
        return t.DictType(t.ANY)
    return t.RecordType(tuple(t.Field(name, _shape_at(item, depth + 1)) for name, item in entries.items()))


def _is_column_name(name: str) -> bool:
    """Whether this can be the name of a column: printable, on one line, and not too long."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


def _without_names(type_: t.Type) -> t.Type:
    """The type with all records replaced by dictionaries, and so without names."""
    match type_:
        case t.ListType(item=item):
            return t.ListType(_without_names(item))
        case t.RecordType():
            return t.DictType(t.ANY)
        case _:
            return type_


def _common_shape(items: list[object], depth: int) -> t.Type:
    """The common type of all items; fields whose types differ have any type."""
    common: t.Type | None = None
    for item in items:
        shape = _shape_at(item, depth + 1)
        common = shape if common is None else _merge_shapes(common, shape)
        if isinstance(common, t.AnyType):
            break
    return common or t.ANY


def _merge_shapes(left: t.Type, right: t.Type) -> t.Type:
    if left == right:
        return left
    if isinstance(left, t.RecordType) and isinstance(right, t.RecordType):
        if left.names != right.names:
            return t.DictType(t.ANY)
        pairs = zip(left.fields, right.fields, strict=True)
        return t.RecordType(tuple(t.Field(one.name, _merge_shapes(one.type, other.type)) for one, other in pairs))
    if isinstance(left, t.RecordType | t.DictType) and isinstance(right, t.RecordType | t.DictType):
        return t.DictType(t.ANY)
    return (t.join_types(left, right) or t.ANY) if {left, right} <= {t.INT, t.FLOAT} else t.ANY


def short_texts(content: object) -> dict[str, frozenset[str]]:
    """The short texts of each column of a table, up to `MAX_TEXTS`."""
    if isinstance(content, Table):
        content = content.cut(None, MAX_SAMPLE, None).rows()
    if not isinstance(content, list):
        return {}
    rows = (cast("dict[str, object]", row) for row in cast("list[object]", content)[:MAX_SAMPLE] if type(row) is dict)
    short = (
        (column, cell)
        for row in rows
        for column, cell in row.items()
        if isinstance(cell, str) and 0 < len(cell) <= LONGEST_TEXT
    )
    by_column: dict[str, set[str]] = {}
    # Only distinct texts count, in the order of the file: a column with one word in every row uses up one of them.
    for column, cell in islice(dict.fromkeys(short), MAX_TEXTS):
        by_column.setdefault(column, set()).add(cell)
    return {name: frozenset(texts) for name, texts in by_column.items()}


def same_rows_type(types: ArgumentTypes, literals: LiteralValues) -> t.Type | None:
    """The type of the input rows, for tools that return some of them."""
    return types.get("rows")


def selected_rows_type(types: ArgumentTypes, literals: LiteralValues) -> t.Type | None:
    """The type of rows with the chosen columns."""
    row, columns = _row_type(types.get("rows")), literals.get("columns")
    if row is None or not isinstance(columns, list):
        return None
    wanted = [(str(name), row.get(str(name))) for name in cast("list[object]", columns)]
    return t.ListType(t.RecordType(tuple(t.Field(name, type_) for name, type_ in wanted if type_ is not None)))


def grouped_rows_type(types: ArgumentTypes, literals: LiteralValues) -> t.Type | None:
    """The type of rows with a group and its aggregate."""
    row, by, column = _row_type(types.get("rows")), literals.get("by"), literals.get("column")
    if row is None or not isinstance(by, str) or not isinstance(column, str):
        return None
    result = str(literals.get("how", "sum")) if column == by else column
    return t.ListType(t.RecordType((t.Field(by, row.get(by) or t.ANY), t.Field(result, t.FLOAT))))


def joined_rows_type(types: ArgumentTypes, literals: LiteralValues) -> t.Type | None:
    """The type of joined rows; clashing names of the right table end in `_right`."""
    left, right, on = _row_type(types.get("left")), _row_type(types.get("right")), literals.get("on")
    if left is None or right is None:
        return None
    added = (
        t.Field(f"{field.name}_right" if field.name in left.names else field.name, field.type)
        for field in right.fields
        if field.name != on
    )
    return t.ListType(t.RecordType((*left.fields, *added)))


def _row_type(rows: t.Type | None) -> t.RecordType | None:
    return rows.item if isinstance(rows, t.ListType) and isinstance(rows.item, t.RecordType) else None

"""CSV as people really have it: several delimiters, quoted line ends, byte order marks; errors name the line."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from bicameral.errors import Place, ToolError
from bicameral.parsing import MIB, SHORT, Limits, Parser

from ._formulas import escaped, unescaped

Row = dict[str, Any]

_DELIMITERS = ",;\t|"
_SPECIAL = _DELIMITERS + '"\r\n'
_SAMPLE = 50
_LONGEST_FIELD = 1 << 27
_MAX_COLUMNS = 16_384
"""As many as the largest spreadsheets have."""
_MAX_CELLS = 4_000_000
# Not numbers: 007 and +49 30 1234 (codes and telephone numbers), 1,234 (it depends on the country), 12e4 (an item).
_INT = re.compile(r"0|-?[1-9][0-9]{0,299}")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,299})(?:\.[0-9]{1,299})?(?:[eE][-+][0-9]{1,3})?")


def number(text: str) -> int | float | None:
    """The number that a text is, if it is one."""
    text = text.strip()
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value if abs(value) != float("inf") else None
    return None


def cell(text: str) -> int | float | bool | str:
    """A value from a CSV file: a number, true or false, or else the text as it is."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            found = number(text)
            return text if found is None else found


def read_rows(text: str, path: str) -> list[Row]:
    """The rows of a CSV text. A short one is read here, a longer one where its reader can be killed.

    The standard library's reader takes linear time, so that a short text cannot keep anybody waiting; each cell of a
    longer one is work in Python, which adds up.
    """
    if len(text) <= SHORT:
        return parse(text, path)
    return _ROWS(text.encode("utf-8", "surrogatepass"), what=f"the table {path!r}", path=path)


def parse_rows(raw: bytes, path: str) -> list[Row]:
    """In the parser process: the rows of a CSV text."""
    return parse(raw.decode("utf-8", "surrogatepass"), path)


_ROWS: Parser[list[Row]] = Parser(
    "bicameral.toolboxes._tables_csv:parse_rows",
    list[dict[str, Any]],
    Limits(cpu=20.0, wall=25.0, memory=3072 * MIB, output=512 * MIB),
)


def parse(text: str, path: str) -> list[Row]:
    """The rows of a CSV text, by the names in its first line."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    records = _records(text, path, _delimiter(text))
    _, header = next(records, (0, None))
    if header is None:
        return []
    # `name, city`: a space after every delimiter belongs to the layout, not to the values.
    if len(header) > 1 and all(name.startswith(" ") for name in header[1:]):
        records = _records(text, path, _delimiter(text), skip_spaces=True)
        _, header = next(records)
    if len(header) > _MAX_COLUMNS:
        raise ToolError(
            "tables.too-large", f"the table has more than {_MAX_COLUMNS:,} columns", place=Place(file=path, line=1)
        )
    names = _names([unescaped(name) for name in header])
    rows: list[Row] = []
    for line, values in records:
        if len(rows) * len(names) > _MAX_CELLS:
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
        rows.append(dict(zip(names, (cell(unescaped(value)) for value in values), strict=True)))
    return rows


def _records(text: str, path: str, delimiter: str, *, skip_spaces: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Every record that is not an empty line, with the line on which it begins."""
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


def _delimiter(text: str) -> str:
    """The delimiter that splits the header and, best of all, the first rows into as many parts."""

    def fit(delimiter: str) -> tuple[float, int]:
        widths: list[int] = []
        with suppress(ToolError):
            widths.extend(len(record) for _, record in islice(_records(text, "", delimiter), _SAMPLE))
        if not widths or widths[0] < 2:
            return (0.0, 0)
        return (widths.count(widths[0]) / len(widths), widths[0])

    return max(_DELIMITERS, key=fit)


def _names(header: list[str]) -> list[str]:
    """Column names that are there and differ: an empty one is `column_3`, a second `name` is `name_2`."""
    taken = {name.strip() for name in header}
    names: dict[str, None] = {}
    # How far the numbers behind each name have been tried: a thousand columns of one name are not a million tries.
    tried: dict[str, int] = {}
    for position, raw in enumerate(header, 1):
        name = wanted = raw.strip() or f"column_{position}"
        while name in names or (name is not wanted and name in taken):
            tried[wanted] = tried.get(wanted, 1) + 1
            name = f"{wanted}_{tried[wanted]}"
        names[name] = None
    return list(names)


def render(rows: Iterable[Row]) -> str:
    """The rows as CSV: all columns that occur, in the order in which they first do.

    No cell of text is left that a spreadsheet would compute; who wrote it is not known here, so each is taken for
    untrusted. `parse` gives it back as it was.
    """
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ""
    # Lines are put together here because csv.writer leaves a lone carriage return without quotes on Python 3.11.
    table = [[escaped(name) for name in names], *([_written(row.get(name)) for name in names] for row in rows)]
    return "".join(_line(values) for values in table)


def _line(values: list[str]) -> str:
    if values == [""]:
        return '""\n'  # an empty line would be no row at all
    return ",".join(_quoted(value) for value in values) + "\n"


def _quoted(value: str) -> str:
    """A value as it stands, or in quotes if it could be taken for something else (another delimiter, say)."""
    return '"' + value.replace('"', '""') + '"' if any(mark in value for mark in _SPECIAL) else value


def _written(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dt.date() | dt.time():
            return value.isoformat()
        case list() | dict():
            return escaped(json.dumps(value, ensure_ascii=False, default=str))
        case int() | float():
            return str(value)
        case _:
            return escaped(str(value))

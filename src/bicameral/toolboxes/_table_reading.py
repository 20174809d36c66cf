"""CSV by columns: a large table is read by the columnar engine, with exactly the cells that the plain way has.

The engine only splits the text and converts numbers that are written in the one way in which the plain way converts
them, too. Everything that is unusual is decided by the functions of the plain way, for each different text once. Where
the two could differ (a row with too few values, a byte that is no character, a number that is not exact), nothing is
returned, and the plain way reads the file or says what is wrong with it.

The file is untrusted, and this is not the parser process: the engine's threads cannot be started in it. What it does
here takes linear time and memory, the file and the number of its cells are bounded, no type is inferred, and nothing
that the file says is executed, opened or looked up. Quoted cells are split by the standard library.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

from bicameral.columns import DecimalMark, is_twofold_number
from bicameral.errors import Place, ToolError
from bicameral.toolboxes._table_files import (
    MAX_COLUMNS,
    column_names,
    csv_records,
    guess_delimiter,
    parse_cell,
    parse_column,
    unescape_formulas,
)
from bicameral.types import MAX_EXACT, Table, TableColumn, column_parts, columnar_engine

if TYPE_CHECKING:
    import polars as pl

LARGE_TEXT = 256 * 1024
"""A shorter text is read in the plain way: loading the engine would take longer."""
MAX_TABLE_CELLS = 32_000_000
"""The most cells of a table by columns; with their texts they take some 2 GB at most."""
_HEAD = 64 * 1024
_LOOK = 1_000
_CHUNK = 50_000
_THREADS = 4
_LONGEST_NUMBER = 40

# The syntax of `parse_number`, and what may stand around it; all white space that `str.strip` removes.
_BLANK = r"[\s\x1c-\x1f]*"
_NUMBER = r"^(?:-?[1-9][0-9]*|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+][0-9]{1,3})?)$"
_MAYBE_VALUE = rf"^{_BLANK}[-0-9tTfF]"
_VALUE = rf"^{_BLANK}(?:{_NUMBER[1:-1]}|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]){_BLANK}$"

Parts = tuple[TableColumn, "list[pl.Series]"]


def read_csv_table(text: str, path: str, decimals: DecimalMark | None = None) -> Table | None:
    """The table of a CSV text by columns; None if the plain way must read it.

    Args:
        text: The whole file.
        path: Its path, for messages.
        decimals: The mark before decimals as the settings say.
    """
    if columnar_engine() is None or "\0" in text:
        return None
    text = text.strip("\r\n")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n") if '"' not in text else text
    delimiter = _guess_delimiter(text)
    header = next(csv_records(text[: _line_end(text)], path, delimiter), (0, None))[1]
    if not header or len(header) > MAX_COLUMNS or "\n" in "".join(header):
        return None
    names = column_names([unescape_formulas(name) for name in header])
    spaced = len(header) > 1 and all(name.startswith(" ") for name in header[1:])
    if spaced or '"' in text:
        frame = _split_quoted(text, path, delimiter, spaced=spaced)
        if spaced and frame is not None:
            first = next(csv_records(text[: _line_end(text)], path, delimiter, skip_spaces=True))[1]
            names = column_names([unescape_formulas(name) for name in first])
    else:
        frame = _split_plain(text, path, delimiter, len(names))
    if frame is None or frame.width != len(names) or not frame.height:
        return None
    escaped = "'" in text

    def typed(number: int) -> Parts | None:
        return _typed_column(names[number], f"{number}", frame[f"{number}"], decimals, escaped=escaped)

    with ThreadPoolExecutor(_THREADS) as threads:
        made = list(threads.map(typed, range(len(names))))
    found = [each for each in made if each is not None]
    if len(found) < len(names):
        return None
    return Table(
        columnar_engine().DataFrame([part for _, parts in found for part in parts]), [each for each, _ in found]
    )


def _line_end(text: str) -> int:
    """Where the first line with anything in it ends, if no quote stands in it."""
    found = re.search(r"[\r\n]", text)
    end = found.start() if found else len(text)
    return end if '"' not in text[:end] else len(text)


def _guess_delimiter(text: str) -> str:
    """The delimiter, from the beginning of the text if enough rows stand there."""
    head = text[:_HEAD]
    if '"' in head or len(text) <= _HEAD:
        return guess_delimiter(text)
    head = head[: head.rfind("\n") + 1]
    # Without quotes every line is a record, and only the first ones count.
    return guess_delimiter(head if head.count("\n") > 2 * _SAMPLE and "\n\n" not in head else text)


_SAMPLE = 50


def _check_cells(rows: int, width: float, path: str) -> None:
    if rows * width > MAX_TABLE_CELLS:
        raise ToolError(
            "tables.too-large",
            f"the table has more than {MAX_TABLE_CELLS:,} cells",
            place=Place(file=path),
            fix="Split it, or leave out columns that are not needed.",
        )


def _split_plain(text: str, path: str, delimiter: str, width: int) -> pl.DataFrame | None:
    """All cells as texts, of a CSV text without quotes; None if its rows differ in length."""
    polars = columnar_engine()
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return None
    if width == 1:
        # An empty line is no row; in a table of several columns it would be one that is too short.
        raw = re.sub(rb"\n\n+", b"\n", raw)
    start = raw.find(b"\n") + 1
    if not start:
        return None
    delimiters = raw.count(delimiter.encode(), start)
    _check_cells(delimiters if width > 1 else raw.count(b"\n"), width / max(width - 1, 1), path)
    try:
        frame = polars.read_csv(
            raw[start:],
            has_header=False,
            schema={f"{number}": polars.String for number in range(width)},
            separator=delimiter,
            quote_char=None,
            empty_string_is_null=False,
        )
    except polars.exceptions.PolarsError:
        return None
    # The engine fills up a short row in silence and refuses a long one: with this count there is neither.
    return frame if delimiters == frame.height * (width - 1) else None


def _split_quoted(text: str, path: str, delimiter: str, *, spaced: bool) -> pl.DataFrame | None:
    """All cells as texts, of a CSV text with quotes; None if something is wrong with it."""
    polars = columnar_engine()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=spaced)
    frames: list[Any] = []
    try:
        records: Iterator[list[str]] = (record for record in reader if record)
        width = len(next(records, []))
        while chunk := list(islice(records, _CHUNK)):
            if set(map(len, chunk)) != {width}:
                return None
            _check_cells((len(frames) + 1) * _CHUNK, width, path) if len(frames) else None
            cells = enumerate(zip(*chunk, strict=True))
            frames.append(polars.DataFrame({f"{at}": polars.Series(each, dtype=polars.String) for at, each in cells}))
    except (csv.Error, UnicodeEncodeError):
        return None
    return polars.concat(frames) if frames else None


def _typed_column(
    name: str, key: str, texts: pl.Series, decimals: DecimalMark | None, *, escaped: bool
) -> Parts | None:
    """A column with the values of its cells, as `parse_column` has them."""
    polars = columnar_engine()
    if escaped:
        texts = _unescape(texts)
    sample = texts[:_LOOK].to_list()
    first = set(map(type, map(parse_cell, sample)))
    if first == {int}:
        whole = texts.cast(polars.Int64, strict=False)
        # A number that is written back as it was is one that the plain way reads, too: not 007, +1 or -0.
        if not whole.null_count() and (whole.cast(polars.String) == texts).all():
            return TableColumn(name, key), [whole.alias(key)]
    if first == {str}:
        # A column that repeats its texts is told by its different ones, any other by a look at all of them.
        some = texts.unique() if len(set(sample)) < len(sample) // 2 else texts
        some = some.filter(some.str.contains(_MAYBE_VALUE))
        if not len(some) or not some.str.contains(_VALUE).any():
            return TableColumn(name, key), [texts.alias(key)]
    return _number_column(name, key, texts) or _column_of_few(name, key, texts, decimals)


def _unescape(texts: pl.Series) -> pl.Series:
    marked = texts.filter(texts.str.contains("'", literal=True)).unique().to_list()
    changed = {text: plain for text in marked if (plain := unescape_formulas(text)) != text}
    return texts.replace(list(changed), list(changed.values())) if changed else texts


def _number_column(name: str, key: str, texts: pl.Series) -> Parts | None:
    """A column of numbers, maybe with texts among them; None if a cell needs a closer look."""
    polars = columnar_engine()
    is_number = texts.str.contains(_NUMBER)
    all_numbers = bool(is_number.all())
    if not all_numbers and texts.filter(~is_number).str.contains(_VALUE).any():
        return None
    written = texts if all_numbers else texts.filter(is_number)
    if not len(written) or written.str.len_bytes().max() > _LONGEST_NUMBER or _has_twofold(written):
        return None
    if all_numbers:
        numbers = texts.cast(polars.Float64).alias(key)
    else:
        numbers = polars.select(polars.when(is_number).then(texts).cast(polars.Float64).alias(key)).to_series()
    found = numbers.drop_nulls()
    # An infinite number is a text of the file, and minus zero equals zero: neither can be stored here.
    if not found.is_finite().all() or ((found == 0) & written.str.starts_with("-")).any():
        return None
    is_whole = ~(texts.str.contains(".", literal=True) | texts.str.contains(r"[eE]"))
    parts = [numbers]
    if not all_numbers:
        is_whole = polars.select(polars.when(is_number).then(is_whole)).to_series()
    some_whole, all_whole = bool(is_whole.any()), bool(is_whole.all())
    if some_whole and found.abs().max() > MAX_EXACT:
        return None
    if all_whole:
        parts = [numbers.cast(polars.Int64)]
    elif some_whole:
        parts.append(is_whole.alias(f"{key}w"))
    if not all_numbers:
        parts.append(polars.select(polars.when(~is_number).then(texts).alias(f"{key}t")).to_series())
    return TableColumn(name, key, some_whole and not all_whole, not all_numbers), parts


def _has_twofold(numbers: pl.Series) -> bool:
    """Whether the point of a number may stand between thousands."""
    point = numbers.str.find(".", literal=True)
    doubtful = numbers.filter((numbers.str.len_bytes() - point == 4).fill_null(value=False))
    return any(map(is_twofold_number, doubtful.unique().to_list()))


def _column_of_few(name: str, key: str, texts: pl.Series, decimals: DecimalMark | None) -> Parts | None:
    """A column that the plain way converts: each different text once, unless the texts decide about each other."""
    polars = columnar_engine()
    different = texts.unique(maintain_order=True)
    values = [parse_cell(text) for text in different.to_list()]
    pairs = zip(different.to_list(), values, strict=True)
    if any(type(value) is float and is_twofold_number(text) for text, value in pairs):
        return column_parts(name, key, parse_column(texts.to_list(), decimals))
    made = column_parts(name, key, values)
    if made is None:
        return None
    column, parts = made
    numbered = polars.DataFrame({"text": different}).with_row_index("#cell")
    cell = polars.DataFrame({"text": texts}).join(numbered, on="text", how="left", maintain_order="left")["#cell"]
    return column, [part[cell] for part in parts]

"""`Table`: the rows of a large table by columns, in a columnar engine, as a value of a plan.

A table is a list of records. All of them share one label tree, as the items of every list do, so that a table needs no
labels of its own: what is different is only how its cells are stored. It never changes, and it becomes a plain list of
dicts (`Table.rows`) wherever something asks for rows one by one.

A cell is exactly what the plain way would have: a whole number stays one beside decimals, a text beside numbers, and
None is None. What cannot be stored without loss (a whole number beyond 64 bits, minus zero, a list in a cell) is not
stored at all; such a table stays a plain list.

The engine is polars, the extra `tables`. It is loaded with the first large table and not before.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from types import NoneType
from typing import TYPE_CHECKING, Any, cast, final

from bicameral.errors import RunError

if TYPE_CHECKING:
    import polars as pl

MAX_PLAIN_PARTS = 1_000_000
"""The most parts of a value that is a plain list: its rows and their cells together."""
MAX_EXACT = 1 << 53
"""Up to here every whole number is exact as a float, too."""
_MAX_INT = 1 << 63
_MAX_TEXT = 10_000_000
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@cache
def columnar_engine() -> Any:
    """The module `polars`; None if the extra is not installed."""
    if find_spec("polars") is None:
        return None
    import polars

    return polars


@dataclass(frozen=True, slots=True)
class TableColumn:
    """Where the cells of a column are stored.

    Args:
        name: The name of the column.
        key: The name of its values in the frame of the table; the other parts have names that begin with it.
        whole: Whether there is a part that tells which of the numbers are whole numbers.
        texts: Whether there is a part with the texts that stand beside numbers or truth values.
    """

    name: str
    key: str
    whole: bool = False
    texts: bool = False

    @property
    def parts(self) -> list[str]:
        """The names of its parts in the frame."""
        return [self.key, *([f"{self.key}w"] if self.whole else []), *([f"{self.key}t"] if self.texts else [])]


@final
class Table:
    """A list of records with the same fields, stored by columns.

    Args:
        frame: The parts of all columns; nobody else changes it.
        columns: The columns, in the order of the fields.
    """

    __slots__ = ("_by_name", "_rows", "columns", "frame", "memo")

    def __init__(self, frame: pl.DataFrame, columns: Iterable[TableColumn]) -> None:
        self.frame = frame
        self.columns = tuple(columns)
        self._by_name = {column.name: column for column in self.columns}
        self._rows: list[dict[str, Any]] | None = None
        self.memo: dict[object, Any] = {}
        """What was found out about the cells, which never change: the kinds of columns, the digest of the table."""

    def __init_subclass__(cls) -> None:
        raise TypeError("a table is trusted to be what it says; Table has no subclasses")

    def __len__(self) -> int:
        return self.frame.height

    def __bool__(self) -> bool:
        return self.frame.height > 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Table | list) and self.rows() == plain_value(other))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Table({len(self)} rows, {len(self.columns)} columns)"

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def column(self, name: str) -> TableColumn:
        return self._by_name[name]

    @property
    def part_count(self) -> int:
        """How many parts the table has as a plain list."""
        return len(self) * (1 + len(self.columns))

    def rows(self) -> list[dict[str, Any]]:
        """The table as a plain list of dicts, made once; an error if the plain way could not hold it either."""
        if self._rows is None:
            if self.part_count > MAX_PLAIN_PARTS:
                raise RunError(
                    "run.too-large",
                    f"the value, with everything in it, is larger than {MAX_PLAIN_PARTS:,}: "
                    f"{len(self):,} rows of {len(self.columns):,} columns cannot be taken one by one",
                    fix="Filter, group or select columns first, or work on a part of it, such as `xs[:1000]`.",
                )
            names = self.names
            lists = [self.cells(name) for name in names]
            self._rows = [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
        return self._rows

    def cells(self, name: str) -> list[Any]:
        """The cells of a column, exactly as the plain way has them."""
        return _plain_cells(self.frame, self._by_name[name])

    def values(self, name: str) -> pl.Series:
        """The numbers, truth values or texts of a column; null where a cell is something else."""
        return self.frame[self._by_name[name].key]

    def is_uniform(self, name: str) -> bool:
        """Whether all cells of a column are of the type of its values: no texts beside numbers, and no None."""
        column = self._by_name[name]
        return not column.texts and not self.frame[column.key].null_count()

    def cell_types(self, name: str) -> set[type]:
        """The types of the cells of a column."""
        polars, column = columnar_engine(), self._by_name[name]
        values = self.frame[column.key]
        filled = values.drop_nulls()
        types: set[type] = set()
        if len(filled):
            kinds = {polars.Int64: int, polars.Float64: float, polars.Boolean: bool, polars.String: str}
            types.add(kinds[values.dtype])
        empty = values.is_null()
        if column.whole and len(filled):
            whole = self.frame[f"{column.key}w"].drop_nulls()
            types = ({int} if whole.any() else set()) | (set() if whole.all() else {float})
        if column.texts:
            texts = self.frame[f"{column.key}t"]
            types |= {str} if texts.null_count() < len(texts) else set()
            empty = empty & texts.is_null()
        return types | ({NoneType} if empty.any() else set())

    def is_numeric(self, name: str) -> bool:
        """Whether all cells of a column are numbers."""
        return self.is_uniform(name) and self.values(name).dtype.is_numeric()

    def compare(self, name: str, op: str, value: object) -> pl.Series | None:
        """In which rows a number or text compares so with a value of the same type; None if that is not exact.

        Up to 2**53 a number of the engine compares with a number of a plan as Python compares them, and as their
        decimal forms do.
        """
        polars, values = columnar_engine(), self.values(name)
        compare = _OPERATORS.get(op)
        if compare is None or not self.is_uniform(name):
            return None
        if type(value) is str and values.dtype == polars.String:
            # UTF-8 keeps the order of the characters.
            return None if _is_lossy_text(value) else compare(values, value)
        if type(value) not in (int, float) or not values.dtype.is_numeric():
            return None
        if not -MAX_EXACT <= cast("float", value) <= MAX_EXACT:
            return None
        if type(value) is float and values.dtype == polars.Int64:
            low, high = cast("tuple[int, int]", (values.min() or 0, values.max() or 0))
            if low < -MAX_EXACT or high > MAX_EXACT:
                return None
            values = values.cast(polars.Float64)
        return compare(values, value)

    def sort_by(self, values: pl.Series, *, descending: bool = False) -> Table:
        """The rows in the order of some values, equal ones as before, and those without a value last."""
        keyed = self.frame.with_columns(values.alias("#key"))
        frame = keyed.sort("#key", descending=descending, nulls_last=True, maintain_order=True)
        return Table(frame.drop("#key"), self.columns)

    def split(self, groups: pl.Series) -> list[Table]:
        """The rows of each group, in the order in which the groups first occur."""
        frames = self.frame.with_columns(groups.alias("#group")).partition_by(
            "#group", maintain_order=True, include_key=False
        )
        return [Table(frame, self.columns) for frame in frames]

    def renamed(self, names: Mapping[str, str]) -> Table:
        """A table with these columns: each new name with the column that it has the cells of."""
        columns = [replace(self._by_name[old], name=new) for new, old in names.items()]
        return Table(self.frame, columns)

    def where(self, mask: pl.Series) -> Table:
        """The rows for which a mask is true."""
        return Table(self.frame.filter(mask), self.columns)

    def take(self, positions: Any) -> Table:
        """The rows at some positions, in their order."""
        return Table(self.frame[positions], self.columns)

    def cut(self, start: int | None, stop: int | None, step: int | None) -> Table:
        """The same as a slice of the list."""
        at = range(*slice(start, stop, step).indices(len(self)))
        frame = self.frame.slice(at.start, len(at)) if at.step == 1 else self.frame[list(at)]
        return Table(frame, self.columns)

    def select(self, names: Sequence[str]) -> Table:
        """The table with only these columns, each once."""
        columns = [self._by_name[name] for name in dict.fromkeys(names)]
        return Table(self.frame.select(list(dict.fromkeys(p for column in columns for p in column.parts))), columns)

    def distinct(self, name: str) -> tuple[list[Any], list[int]]:
        """The different cells of a column, in the order in which they first occur, and how often each does.

        1 and 1.0 are different cells here, and so are 1 and the text "1".
        """
        column = self._by_name[name]
        found = self._distinct_parts(column)
        if ("cells", column.key) not in self.memo:
            self.memo["cells", column.key] = _plain_cells(found, column), found["#count"].to_list()
        return self.memo["cells", column.key]

    def numbering(self, name: str) -> pl.Series:
        """For each row the position of its cell among the different cells of a column."""
        column = self._by_name[name]
        if ("numbers", column.key) not in self.memo:
            numbered = self._distinct_parts(column).drop("#count").with_row_index("#cell")
            parts = self.frame.select(column.parts)
            found = parts.join(numbered, on=column.parts, how="left", nulls_equal=True, maintain_order="left")
            self.memo["numbers", column.key] = found["#cell"]
        return self.memo["numbers", column.key]

    def _distinct_parts(self, column: TableColumn) -> pl.DataFrame:
        found = self.memo.get(("distinct", column.key))
        if found is None:
            counted = columnar_engine().len().alias("#count")
            parts = self.frame.select(column.parts)
            found = self.memo["distinct", column.key] = parts.group_by(column.parts, maintain_order=True).agg(counted)
        return found

    def map_cells(self, name: str, value: Callable[[Any], Any], dtype: Any = None) -> pl.Series:
        """The value of a function of each cell of a column, which is called once for each different cell."""
        found = [value(each) for each in self.distinct(name)[0]]
        return columnar_engine().Series("", found, dtype=dtype)[self.numbering(name)]


def _plain_cells(frame: pl.DataFrame, column: TableColumn) -> list[Any]:
    cells = frame[column.key].to_list()
    if column.whole:
        whole = frame[f"{column.key}w"].to_list()
        cells = [int(cell) if is_whole else cell for cell, is_whole in zip(cells, whole, strict=True)]
    if column.texts:
        texts = frame[f"{column.key}t"].to_list()
        cells = [text if cell is None else cell for cell, text in zip(cells, texts, strict=True)]
    return cells


def plain_value(value: Any) -> Any:
    """The value itself, and a table as a plain list."""
    return value.rows() if type(value) is Table else value


def table_from_columns(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> Table | None:
    """A table of plain cells; None if they cannot be stored by columns without loss, or if there is no engine."""
    polars = columnar_engine()
    if polars is None or not names:
        return None
    series: list[Any] = []
    stored: list[TableColumn] = []
    for number, (name, cells) in enumerate(zip(names, columns, strict=True)):
        made = column_parts(name, f"{number}", cells)
        if made is None:
            return None
        stored.append(made[0])
        series += made[1]
    return Table(polars.DataFrame(series), stored)


def column_parts(name: str, key: str, cells: Sequence[Any]) -> tuple[TableColumn, list[Any]] | None:
    """A column of plain cells and its parts; None if they cannot be stored without loss."""
    polars = columnar_engine()
    kinds = set(map(type, cells)) - {NoneType}
    if not kinds <= {int, float, bool, str} or (bool in kinds and kinds & {int, float}):
        return None
    if kinds <= {str}:
        if any(cell is not None and _is_lossy_text(cell) for cell in cells):
            return None
        return TableColumn(name, key), [polars.Series(key, cells, dtype=polars.String)]
    texts = str in kinds
    others = [None if type(cell) is str else cell for cell in cells] if texts else cells
    whole: list[bool | None] | None = None
    if bool in kinds:
        dtype: Any = polars.Boolean
    elif float not in kinds:
        dtype = polars.Int64
        if any(cell is not None and not -_MAX_INT <= cell < _MAX_INT for cell in others):
            return None
    else:
        dtype = polars.Float64
        if not all(map(_is_exact_float, others)):
            return None
        if int in kinds:
            whole = [None if cell is None else type(cell) is int for cell in others]
            others = [None if cell is None else float(cell) for cell in others]
    column = TableColumn(name, key, whole is not None, texts)
    parts = [polars.Series(key, others, dtype=dtype)]
    if whole is not None:
        parts.append(polars.Series(f"{key}w", whole, dtype=polars.Boolean))
    if texts:
        written = [cell if type(cell) is str else None for cell in cells]
        if any(cell is not None and _is_lossy_text(cell) for cell in written):
            return None
        parts.append(polars.Series(f"{key}t", written, dtype=polars.String))
    return column, parts


def _is_exact_float(cell: Any) -> bool:
    """Whether a number of a column with decimals is stored without loss; minus zero equals zero, so that it is not."""
    if cell is None:
        return True
    if type(cell) is int:
        return -MAX_EXACT <= cell <= MAX_EXACT
    return cell - cell == 0 and (cell != 0 or str(cell) == "0.0")


def _is_lossy_text(text: str) -> bool:
    """Whether a text cannot be stored: one with half of a character is no UTF-8."""
    return len(text) > _MAX_TEXT or (not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text))


def table_to_json(table: Table) -> dict[str, Any] | list[dict[str, Any]]:
    """A table as JSON: its rows, as the plain way writes them; by columns where the plain way could not hold it.

    The cells of a column are the lines of one text, so that a million of them take a moment, known secrets in them are
    found and masked as in every text of a record, and the record can be read without the engine.
    """
    if table.part_count <= MAX_PLAIN_PARTS:
        single = len(table.names) == 1 and table.names[0].startswith("$")
        return [{"$dict": row} for row in table.rows()] if single else table.rows()
    columns: dict[str, Any] = {}
    hashed = hashlib.sha256()
    for number, column in enumerate(table.columns):
        parts = {part.removeprefix(column.key): _part_to_json(table.frame[part]) for part in column.parts}
        columns[str(number)] = {"name": column.name, "parts": parts}
        for text in (column.name, *(text for part in parts.values() for text in part)):
            hashed.update(text.encode() + b"\0")
    table.memo["digest"] = hashed.hexdigest()
    return {"$table": {"rows": len(table), "columns": columns}}


def table_reference(table: Table) -> Any:
    """A table as an argument in a record: as JSON, or its digest where it was recorded as the result of a step."""
    if table.part_count <= MAX_PLAIN_PARTS:
        return table_to_json(table)
    if "digest" not in table.memo:
        table_to_json(table)
    return {"$table": {"rows": len(table), "digest": table.memo["digest"]}}


_NONE_LINE = "\\0"
_PART_TYPES: Mapping[str, Callable[[str], Any]] = {
    "String": lambda line: line.replace("\\n", "\n").replace("\\b", "\\") if "\\" in line else line,
    "Int64": int,
    "Float64": float,
    "Boolean": lambda line: line == "true",
}


def _part_to_json(values: pl.Series) -> list[str]:
    """The type of a part and its values, each on a line; a backslash becomes `\\b`, a line end `\\n`, None `\\0`."""
    polars = columnar_engine()
    kind = str(values.dtype)
    texts = values.cast(polars.String)
    if kind == "String":
        if texts.str.contains("\\", literal=True).any():
            texts = texts.str.replace_all("\\", "\\b", literal=True)
        if texts.str.contains("\n", literal=True).any():
            texts = texts.str.replace_all("\n", "\\n", literal=True)
    if texts.null_count():
        texts = texts.fill_null(_NONE_LINE)
    return [kind, cast("str", texts.str.join("\n").item())]


def _part_from_json(part: Any, rows: int) -> list[Any]:
    kind, text = part
    read = _PART_TYPES[kind]

    def value(line: str) -> Any:
        try:
            return None if line == _NONE_LINE else read(line)
        except ValueError:
            # A number in which a secret was masked.
            return line

    values = [value(line) for line in text.split("\n")]
    if len(values) != rows:
        raise ValueError("'$table' has columns of different lengths")
    return values


def table_from_json(facts: Mapping[str, Any]) -> Any:
    """The table that was written by columns; as a plain list where there is no engine."""
    if "digest" in facts:
        return {"rows": facts.get("rows"), "digest": facts["digest"]}
    names: list[str] = []
    lists: list[list[Any]] = []
    try:
        rows = int(facts["rows"])
        for column in facts["columns"].values():
            names.append(column["name"])
            parts = {name: _part_from_json(part, rows) for name, part in column["parts"].items()}
            cells = parts[""]
            if "w" in parts:
                pairs = zip(cells, parts["w"], strict=True)
                cells = [int(cell) if whole and type(cell) is float else cell for cell, whole in pairs]
            if "t" in parts:
                cells = [text if cell is None else cell for cell, text in zip(cells, parts["t"], strict=True)]
            lists.append(cells)
    except (KeyError, TypeError, AttributeError, IndexError):
        raise ValueError("'$table' is no table") from None
    table = table_from_columns(names, lists)
    if table is not None:
        return table
    return [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]

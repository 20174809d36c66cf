"""Rows by columns: filter, sort, group and join large tables in the columnar engine, with the results of the plain way.

How cells compare, sort, group and add up is decided by the functions of the plain way (`_table_cells`), for each
different cell once; the engine then does the rest for all rows. Columns of numbers only are compared and sorted by the
engine itself, which is exact: a number of a table and a number of a plan are the same as floats wherever their decimal
forms are, up to 2**53. Numbers are added as whole numbers of their smallest decimal place, never as floats.

Each function returns None where the plain way must do it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, cast

from bicameral.columns import Column, DecimalMark, find_counted_kind, parse_number
from bicameral.errors import ToolError
from bicameral.toolboxes._table_cells import (
    SUM_DIGITS,
    Aggregate,
    CompareOp,
    Comparison,
    aggregate_column,
    column_key,
    compare_with_column,
    is_empty_cell,
    order_key,
    plain_number,
    sort_key,
)
from bicameral.types import Table, TableColumn, columnar_engine, table_from_columns

if TYPE_CHECKING:
    import polars as pl

Rows = list[dict[str, Any]]
_MANY_GROUPS = 10_000
_MOST_PLACES = 9
_MOST_DIGITS = 10**15
"""Below this many units of the smallest decimal place a float has exactly one decimal form of so many digits."""
_INT_LIMIT = 1 << 62


def table_kind(table: Table, name: str, decimals: DecimalMark | None) -> Column:
    """The kind of a column of a table, found once."""
    memo = ("kind", name, decimals)
    found = table.memo.get(memo)
    if found is None:
        if table.is_numeric(name):
            found = Column("number", len(table), notation="number")
        else:
            found = find_counted_kind(*table.distinct(name), decimals)
        table.memo[memo] = found
    return found


def filter_table(
    table: Table, column: str, op: CompareOp, value: object, decimals: DecimalMark | None
) -> tuple[Table, Comparison]:
    """The rows whose column compares so with a value."""
    kind = table_kind(table, column, decimals)
    number = parse_number(value) if isinstance(value, str) else value
    if table.is_numeric(column) and type(number) in (int, float) and op != "contains":
        # One cell is enough for the words of the comparison: all of them are numbers.
        comparison = compare_with_column(table.take([0]).cells(column), column, op, value, decimals, kind)
        mask = table.compare(column, op, number)
    else:
        comparison = compare_with_column(table.distinct(column)[0], column, op, value, decimals, kind)
        mask = None
    if mask is None:
        mask = table.map_cells(column, comparison.matches, columnar_engine().Boolean)
    return table.where(mask), comparison


def sort_table(table: Table, by: str, decimals: DecimalMark | None, *, descending: bool) -> tuple[Table, str]:
    """The rows in the order of a column, equal ones as before, empty cells last; and how its cells were guessed."""
    polars = columnar_engine()
    values = table.values(by)
    if table.is_numeric(by) or (table.is_uniform(by) and values.dtype == polars.Boolean):
        return table.sort_by(values, descending=descending), ""
    different, counts = table.distinct(by)
    filled = [(cell, count) for cell, count in zip(different, counts, strict=True) if not is_empty_cell(cell)]
    # The kind by the filled cells alone: a column of `x` and blanks is one of texts here.
    kind = find_counted_kind([cell for cell, _ in filled], [count for _, count in filled], decimals)
    if kind.plain and len(filled) == len(different) and values.dtype == polars.String and table.is_uniform(by):
        # Texts are in the order of their characters in both ways: UTF-8 keeps it.
        return table.sort_by(values, descending=descending), ""
    key, guess = order_key([], by, decimals, kind)
    keys = {number: key(cell) for number, cell in enumerate(different) if not is_empty_cell(cell)}
    place = {found: rank for rank, found in enumerate(sorted(set(keys.values())))}
    ranks = [place[keys[number]] if number in keys else None for number in range(len(different))]
    each = polars.Series("", ranks, dtype=polars.UInt32)[table.numbering(by)]
    return table.sort_by(each, descending=descending), guess


def _find_groups(table: Table, by: str, decimals: DecimalMark | None) -> tuple[list[Any], pl.DataFrame]:
    """The first cell of each group, and for each row what tells its group: its cell, or the number of the group."""
    polars = columnar_engine()
    different, _ = table.distinct(by)
    column = table.column(by)
    cells = table.frame.select(column.parts)
    if table.is_numeric(by) and not column.whole:
        return different, cells
    key = column_key(different, decimals, table_kind(table, by, decimals))
    groups: dict[object, int] = {}
    firsts: list[Any] = []
    numbers: list[int] = []
    for each in different:
        found = key(each)
        if found not in groups:
            groups[found] = len(groups)
            firsts.append(each)
        numbers.append(groups[found])
    if len(groups) == len(different):
        return different, cells
    return firsts, polars.DataFrame({"#group": polars.Series(numbers, dtype=polars.UInt32)[table.numbering(by)]})


def group_table(
    table: Table, by: str, column: str, how: Aggregate, result: str, decimals: DecimalMark | None
) -> tuple[Rows | Table, str]:
    """The aggregate of a column for each group, in the order in which the groups first occur; and the guess."""
    firsts, groups = _find_groups(table, by, decimals)
    guess = ""
    if how == "count":
        totals = _aggregate(groups, None, "len")
    else:
        kind = table_kind(table, column, decimals)
        cells = [] if table.is_numeric(column) else table.distinct(column)[0]
        total, guess = aggregate_column(cells, how, column, decimals, kind)
        found = _aggregate_numbers(table, groups, column, how) if kind.plain else None
        if found is None:
            numbered = groups.unique(maintain_order=True).with_row_index("#number")
            each = groups.join(numbered, on=groups.columns, how="left", nulls_equal=True, maintain_order="left")
            lists: list[list[Any]] = [[] for _ in firsts]
            for number, cell in zip(each["#number"].to_list(), table.cells(column), strict=True):
                lists[number].append(cell)
            found = [total(cells) for cells in lists]
        totals = found
    if len(firsts) > _MANY_GROUPS and result != by:
        made = table_from_columns([by, result], [firsts, totals])
        if made is not None:
            return made, guess
    return [{by: first, result: total} for first, total in zip(firsts, totals, strict=True)], guess


def _aggregate(groups: pl.DataFrame, values: pl.Series | None, how: str) -> list[Any]:
    """An aggregate of values for each group, in the order in which the groups first occur."""
    polars = columnar_engine()
    frame = groups.with_columns((groups.to_series(0) if values is None else values).alias("#value"))
    chosen = polars.len() if how == "len" else getattr(polars.col("#value"), how)()
    return frame.group_by(groups.columns, maintain_order=True).agg(chosen.alias("#value"))["#value"].to_list()


def _aggregate_numbers(table: Table, groups: pl.DataFrame, name: str, how: Aggregate) -> list[Any] | None:
    """An exact aggregate of a column of numbers for each group; None if the plain way must compute it."""
    if not table.is_numeric(name):
        return None
    values = table.values(name)
    if how in ("min", "max"):
        return None if table.column(name).whole else _aggregate(groups, values, how)
    scaled = scale_numbers(values)
    if scaled is None:
        return None
    units, places = scaled
    with localcontext() as context:
        context.prec = SUM_DIGITS
        sums = [Decimal(found).scaleb(-places) for found in _aggregate(groups, units, "sum")]
        if how == "mean":
            pairs = zip(sums, _aggregate(groups, None, "len"), strict=True)
            sums = [total / count for total, count in pairs]
        return [plain_number(total) for total in sums]


def scale_numbers(values: pl.Series) -> tuple[pl.Series, int] | None:
    """Numbers as whole numbers of their smallest decimal place, and how many places these are; None if not exact.

    A float of fewer than 16 digits has one decimal form of so many digits, which is the one that it is written as.
    """
    polars = columnar_engine()
    if values.dtype == polars.Int64:
        units, places = values, 0
    else:
        for places in range(_MOST_PLACES + 1):
            scaled = (values * 10**places).round()
            if scaled.abs().max() >= _MOST_DIGITS:
                return None
            # By a column and not by a number: the engine multiplies by the inverse of a number, which is not exact.
            if (scaled / polars.repeat(10.0**places, len(values), eager=True) == values).all():
                units = scaled.cast(polars.Int64)
                break
        else:
            return None
    largest = max(abs(cast("int", units.min())), abs(cast("int", units.max())))
    return (units, places) if largest * len(units) < _INT_LIMIT else None


def table_of_rows(rows: Sequence[Mapping[str, Any]]) -> Table | None:
    """A plain list of records as a table; None if they do not have the same fields in the same order."""
    if not rows or len(set(map(tuple, rows))) > 1:
        return None
    names = list(rows[0])
    return table_from_columns(names, [[row[name] for row in rows] for name in names])


def join_tables(left: Table, right: Table, on: str, decimals: DecimalMark | None, limit: int) -> tuple[Table, int]:
    """The joined rows, in the order of the left table and then of the right one; and how many left rows match."""
    polars = columnar_engine()
    left_key, right_key = _join_keys(left, right, on, decimals)
    lefts = polars.DataFrame({"key": left_key}).with_row_index("left")
    rights = polars.DataFrame({"key": right_key}).with_row_index("right")
    counts = rights.drop_nulls("key").group_by("key").agg(polars.len().alias("matches"))
    matches = lefts.join(counts, on="key", how="inner")["matches"]
    total = int(matches.cast(polars.Int64).sum())
    if total > limit:
        raise ToolError("tables.too-many", f"the join has more than {limit:,} rows", fix="Filter first.")
    pairs = lefts.join(rights, on="key", how="inner", maintain_order="left_right")
    # Every left row with its one partner: the left table is as it was.
    same = len(matches) == len(left) and total == len(left)
    columns: dict[str, TableColumn] = {}
    series: dict[str, Any] = {}
    for side, table, positions in (("l", left, None if same else pairs["left"]), ("r", right, pairs["right"])):
        frame = table.frame if positions is None else table.frame[positions]
        for column in table.columns:
            if side == "r" and column.name == on:
                continue
            name = f"{column.name}_right" if side == "r" and column.name in left else column.name
            columns[name] = TableColumn(name, f"{side}{column.key}", column.whole, column.texts)
            series |= {f"{side}{part}": frame[part] for part in column.parts}
    kept = {part: series[part] for column in columns.values() for part in column.parts}
    return Table(polars.DataFrame(kept), columns.values()), len(matches)


def _join_keys(left: Table, right: Table, on: str, decimals: DecimalMark | None) -> tuple[pl.Series, pl.Series]:
    """Values that equal cells of both tables share; null for an empty cell."""
    polars = columnar_engine()
    sides = (left, right)
    dtypes = {table.values(on).dtype if table.is_uniform(on) else None for table in sides}
    if dtypes == {polars.Int64}:
        return left.values(on), right.values(on)
    keys = [column_key((), decimals, table_kind(table, on, decimals)) for table in sides]
    cells = [[(cell, key(cell)) for cell in table.distinct(on)[0]] for table, key in zip(sides, keys, strict=True)]
    if dtypes == {polars.String} and all(found == sort_key(cell) for each in cells for cell, found in each):
        # No text of either table is equal to another one, so that they are joined as they are.
        if not any(is_empty_cell(cell) for each in cells for cell, _ in each):
            return left.values(on), right.values(on)
    known: dict[object, int] = {}
    made: list[pl.Series] = []
    for table, each in zip(sides, cells, strict=True):
        numbers = [None if is_empty_cell(cell) else known.setdefault(found, len(known)) for cell, found in each]
        made.append(polars.Series("", numbers, dtype=polars.UInt32)[table.numbering(on)])
    return made[0], made[1]

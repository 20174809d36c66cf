"""Comprehensions, orders and counts over a `Table`: by columns, with the results of the plain way.

A condition or key that looks at one field of each row is computed once for each different cell of that column, by the
same code that the plain way runs for each row; comparisons with numbers and texts are left to the engine. So a plan
over a million rows does what it does over a thousand, and what it counts for the doubts of a run is the same.

Where the code fails for a cell, the plain way runs instead: it fails at the first such row, with its message. It also
runs wherever an expression uses a row as a whole, or needs the rows one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bicameral.columns import is_blank
from bicameral.plans import _expressions as ir
from bicameral.plans.evaluate._bounds import CURRENT_RUN, EvaluationError, LoopWork, check_size
from bicameral.plans.evaluate._library_cells import cell_matches, count_cells, order_key, reader_of
from bicameral.plans.evaluate._values import format_value, sorted_positions
from bicameral.types import Table, columnar_engine

Env = Mapping[str, Any]
Code = Callable[[Env], Any]
Compile = Callable[[Any], Code]
Mask = Any
MaskCode = Callable[[dict[str, Any], Table], Mask]
"""For which rows of a table a condition holds, as a series of the engine."""

_COUNTING = ("cell_matches", "cell_value", "cell_values", "cell_order")
_ROWS_PER_STEP = 64
_MOST_GROUPS = 20_000
_DATE_KEYS = ("datetime", "time")


class _NotByColumns(Exception):
    """The plain way must evaluate this."""


def cell_field(expr: Any, variable: str) -> str | None:
    """The field of the variable that an expression is: `row.field` or `row["field"]`."""
    match expr:
        case ir.Get(value=ir.Ref(name=name), field=field) if name == variable:
            return field
        case ir.Index(value=ir.Ref(name=name), at=ir.Const(value=str() as field)) if name == variable:
            return field
        case _:
            return None


def used_fields(expr: Any, variable: str) -> frozenset[str] | None:
    """The fields of a variable that an expression looks at; None if it uses the variable in another way."""
    if (field := cell_field(expr, variable)) is not None:
        return frozenset({field})
    if isinstance(expr, ir.Ref):
        return None if expr.name == variable else frozenset()
    found: frozenset[str] = frozenset()
    for child in ir.children(expr):
        inner = used_fields(child, variable)
        if inner is None:
            return None
        found |= inner
    return found


def _nodes(expr: Any) -> Iterator[Any]:
    yield expr
    for child in ir.children(expr):
        yield from _nodes(child)


def _can_map(expr: Any) -> bool:
    """Whether code may run once for each different cell: nothing in it counts rows, or binds names."""
    return not any(
        isinstance(node, ir.Comprehension | ir.Lambda) or (isinstance(node, ir.Apply) and node.function in _COUNTING)
        for node in _nodes(expr)
    )


def _spend(work: LoopWork, rows: int) -> None:
    work.spend(rows // _ROWS_PER_STEP + 1)


def _one_cell(table: Table, field: str) -> None:
    if field not in table:
        raise _NotByColumns


# -- conditions


def mask_code(expr: Any, variable: str, compile_: Compile) -> MaskCode | None:
    """The code of a condition on the rows of a table; None if it cannot be computed by columns."""
    match expr:
        case ir.Logic(op=op, items=items):
            masks = [mask_code(item, variable, compile_) for item in items]
            known = [mask for mask in masks if mask is not None]
            return _logic_mask(op, known) if len(known) == len(masks) else None
        case ir.Not(value=value):
            inner = mask_code(value, variable, compile_)
            return None if inner is None else lambda env, table: ~inner(env, table)
        case ir.Apply(function="cell_matches", args=args, named=()) if len(args) == 5:
            return _matches_mask(args, variable, compile_)
        case _:
            return _field_mask(expr, variable, compile_)


def _logic_mask(op: str, masks: Sequence[MaskCode]) -> MaskCode:
    """`and` and `or`: each operand is computed only for the rows that the ones before it did not decide."""
    stop = op == "or"

    def run(env: dict[str, Any], table: Table) -> Mask:
        first, *rest = masks
        mask = first(env, table)
        for other in rest:
            open_ = (~mask if stop else mask).arg_true()
            if not len(open_):
                break
            inner = other(env, table.take(open_))
            changed = open_.filter(inner if stop else ~inner)
            mask = mask.clone().scatter(changed, stop) if len(changed) else mask
        return mask

    return run


def _matches_mask(args: Sequence[Any], variable: str, compile_: Compile) -> MaskCode | None:
    field = cell_field(args[0], variable)
    constants = [arg.value if isinstance(arg, ir.Const) else None for arg in (args[1], args[3], args[4])]
    op, notation, column = constants
    if field is None or variable in ir.free_names(args[2]) or not all(isinstance(each, str) for each in constants):
        return None
    value = compile_(args[2])

    def run(env: dict[str, Any], table: Table) -> Mask:
        _one_cell(table, field)
        if not table:
            return table.values(field).is_null()
        wanted = value(env)
        if table.is_numeric(field) and notation == "number" and type(wanted) in (int, float):
            mask = table.compare(field, str(op), wanted)
            if mask is not None:
                count_cells(str(column), str(notation), len(table), 0)
                return mask
        with _without_counts():
            mask = table.map_cells(
                field,
                lambda cell: cell_matches(cell, str(op), wanted, str(notation), str(column)),
                columnar_engine().Boolean,
            )
        _count_column(table, field, str(notation), str(column))
        return mask

    return run


@contextmanager
def _without_counts() -> Iterator[None]:
    """Within this nothing is counted for the run: what is done once for each different cell is counted by rows."""
    before, CURRENT_RUN.run = CURRENT_RUN.run, None
    try:
        yield
    finally:
        CURRENT_RUN.run = before


def _count_column(table: Table, field: str, notation: str, column: str, *, plain: bool = False) -> None:
    """Count the cells of a column that were read, and those that could not be."""
    reader = reader_of(notation)
    read = reader.read_plain if plain else reader.read
    pairs = zip(*table.distinct(field), strict=True)
    unread = sum(count for cell, count in pairs if read(cell) is None and not is_blank(cell))
    count_cells(column, notation, len(table), unread)


def _field_mask(expr: Any, variable: str, compile_: Compile) -> MaskCode | None:
    """A condition on one field: a comparison by the engine, or the code of the condition for each different cell."""
    fields = used_fields(expr, variable)
    if fields is None or len(fields) != 1 or not _can_map(expr):
        return None
    (field,) = fields
    code = compile_(expr)
    compared: tuple[str, Code] | None = None
    if isinstance(expr, ir.Compare) and len(expr.rest) == 1 and cell_field(expr.first, variable) is not None:
        op, right = expr.rest[0]
        if variable not in ir.free_names(right):
            compared = op, compile_(right)

    def run(env: dict[str, Any], table: Table) -> Mask:
        _one_cell(table, field)
        if not table:
            return table.values(field).is_null()
        if compared is not None:
            mask = table.compare(field, compared[0], compared[1](env))
            if mask is not None:
                return mask

        def holds(cell: Any) -> bool:
            env[variable] = {field: cell}
            return bool(code(env))

        return table.map_cells(field, holds, columnar_engine().Boolean)

    return run


# -- comprehensions


@dataclass(frozen=True, slots=True)
class TableComprehension:
    """`[f(row) for row in rows if g(row)]` over a table.

    Args:
        variable: The name of the row.
        mask: The condition; None if there is none.
        element: The code of `f` for one row.
        fields: The fields that `f` looks at; None if it uses the row as a whole.
        cell: The field, if `f` is only that.
        columns: The fields of a record that `f` makes of fields of the row, by their new names.
        whole: Whether `f` is the row itself.
        looked_at: The fields that the condition looks at.
    """

    variable: str
    mask: MaskCode | None
    element: Code
    fields: frozenset[str] | None
    cell: str | None
    columns: Mapping[str, str] | None
    whole: bool
    looked_at: frozenset[str]

    def run(self, env: dict[str, Any], table: Table, work: LoopWork) -> tuple[list[Any] | Table, int] | None:
        """The items (a table, if they are records of its cells) and their number; None for the plain way."""
        needed = (self.fields or frozenset()) | self.looked_at
        if not all(field in table for field in needed):
            return None
        before = CURRENT_RUN.run
        cells = None if before is None else {name: _copy(count) for name, count in before.cells.items()}
        try:
            _spend(work, len(table))
            kept = table
            if self.mask is not None:
                kept = table.where(self.mask(env, table.select(sorted(self.looked_at))))
        except (_NotByColumns, EvaluationError, TypeError, ValueError, LookupError, ArithmeticError):
            if before is not None and cells is not None:
                # The plain way counts them again.
                before.cells.clear()
                before.cells.update(cells)
            return None
        if self.whole:
            return kept, len(kept)
        if self.columns is not None:
            return kept.renamed(self.columns), len(kept)
        if self.cell is not None:
            return check_size(kept.cells(self.cell)), len(kept)
        rows = (kept if self.fields is None else kept.select(sorted(self.fields))).rows() if kept else []
        if self.fields is not None and not self.fields:
            rows = [{}] * len(kept)
        work.spend(len(rows))
        items: list[Any] = []
        for row in rows:
            env[self.variable] = row
            items.append(self.element(env))
        return check_size(items), len(items)


def _copy(count: Any) -> Any:
    return type(count)(count.kind, count.given, count.unread, count.guess)


def table_comprehension(expr: ir.Comprehension, element: Code, compile_: Compile) -> TableComprehension | None:
    """How to compute a comprehension over a table; None if it can only be computed row by row."""
    clause = expr.clauses[0]
    if expr.key is not None or len(expr.clauses) != 1 or len(clause.names) != 1:
        return None
    (variable,) = clause.names
    mask: MaskCode | None = None
    if clause.conditions:
        masks = [mask_code(condition, variable, compile_) for condition in clause.conditions]
        known = [each for each in masks if each is not None]
        if len(known) < len(masks):
            return None
        mask = known[0] if len(known) == 1 else _logic_mask("and", known)
    looked_at: frozenset[str] = frozenset()
    for condition in clause.conditions:
        looked_at |= used_fields(condition, variable) or frozenset()
    whole = isinstance(expr.element, ir.Ref) and expr.element.name == variable
    fields = used_fields(expr.element, variable)
    cell = cell_field(expr.element, variable)
    columns = _record_columns(expr.element, variable)
    return TableComprehension(variable, mask, element, fields, cell, columns, whole, looked_at)


def _record_columns(expr: Any, variable: str) -> dict[str, str] | None:
    """The fields of a record that is made of fields of the row, by their new names."""
    if not isinstance(expr, ir.DictOf) or not expr.entries:
        return None
    columns: dict[str, str] = {}
    for key, value in expr.entries:
        field = cell_field(value, variable)
        if field is None or not isinstance(key, ir.Const) or not isinstance(key.value, str) or key.value in columns:
            return None
        columns[key.value] = field
    return columns


# -- functions of a table

TableFunction = Callable[[Table, dict[str, Any]], Any]
"""The value of a call whose first argument is a table; None if the plain way must call the function."""


def table_function(expr: ir.Apply, compile_: Compile) -> TableFunction | None:
    """What computes a call of a library function by columns; None if it cannot be."""
    named = dict(expr.named)
    match expr.function, expr.args[1:]:
        case "len", () if not named:
            return lambda table, env: len(table)
        case "first", () if not named:
            return lambda table, env: table.cut(None, 1, None).rows()[0] if table else None
        case "last", () if not named:
            return lambda table, env: table.cut(-1, None, None).rows()[0] if table else None
        case "count_by", (ir.Const(value=str() as field),) if not named:
            return lambda table, env: _count_by(table, field)
        case "sorted", () if isinstance(named.get("key"), ir.Lambda) and named.keys() <= {"key", "reverse"}:
            reverse = named.get("reverse")
            return _sorted_function(named["key"], None if reverse is None else compile_(reverse), compile_)
        case _:
            return None


def _count_by(table: Table, field: str) -> dict[str, int] | None:
    if field not in table:
        return None
    found: dict[str, int] = {}
    for cell, count in zip(*table.distinct(field), strict=True):
        name = format_value(cell)
        found[name] = found.get(name, 0) + count
    return found


def group_tables(table: Table, field: str) -> list[list[Any]] | None:
    """The pairs of `group_by(rows, field).items()`, with a table for each group; None for the plain way."""
    if field not in table:
        return None
    names = [format_value(each) for each in table.distinct(field)[0]]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(numbers) > _MOST_GROUPS:
        return None
    groups = columnar_engine().Series("", [numbers[name] for name in names])[table.numbering(field)]
    return [[name, part] for name, part in zip(numbers, table.split(groups), strict=True)]


def _sorted_function(key: ir.Lambda, reverse: Code | None, compile_: Compile) -> TableFunction | None:
    if len(key.names) != 1:
        return None
    (variable,) = key.names
    body = key.body
    counted: tuple[str, str, bool] | None = None
    match body:
        case ir.Apply(function="cell_order", args=(cell, ir.Const(value=str() as notation), column, *last), named=()):
            if not isinstance(column, ir.Const) or not isinstance(column.value, str):
                return None
            if last and not (len(last) == 1 and isinstance(last[0], ir.Const) and type(last[0].value) is bool):
                return None
            field = cell_field(cell, variable)
            counted = notation, column.value, bool(last[0].value) if last else True
        case _:
            fields = used_fields(body, variable)
            if fields is None or len(fields) != 1 or not _can_map(body):
                return None
            (field,) = fields
    if field is None:
        return None
    direct, code, name = cell_field(body, variable) is not None, compile_(body), field

    def run(table: Table, env: dict[str, Any]) -> Table | None:
        if name not in table:
            return None
        descending = False if reverse is None else reverse(env)
        if type(descending) is not bool:
            return None
        if direct and table.is_uniform(name):
            return table.sort_by(table.values(name), descending=descending)
        different, _ = table.distinct(name)
        if counted is not None:
            notation, column, last = counted
            read = reader_of(notation).read_plain
            keys = [order_key(read(each), last) for each in different]
        else:
            keys = []
            for each in different:
                env[variable] = {name: each}
                keys.append(code(env))
        if any(type(each).__name__ in _DATE_KEYS for each in keys):
            # Moments with and without a time zone are compared by a rule of all of them.
            return None
        places = sorted_positions(keys)
        ranks = [0] * len(keys)
        for number, at in enumerate(places):
            before = places[number - 1]
            ranks[at] = ranks[before] if number and keys[at] == keys[before] else number
        if counted is not None:
            _count_column(table, name, counted[0], counted[1], plain=True)
        ranked = columnar_engine().Series("", ranks)[table.numbering(name)]
        return table.sort_by(ranked, descending=descending)

    return run

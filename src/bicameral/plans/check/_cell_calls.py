"""Calls by which a bound plan reads cells: how binding writes them, finds them in a plan, and takes them away again.

Only binding writes them (`_cells`), from the table that is there. Whoever else wrote one would choose the notation in
which a cell is read, and the plan would still be shown as a plain comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bicameral import types as t
from bicameral.errors import BindError, Place
from bicameral.plans import _expressions as ir, _plan as ps
from bicameral.plans.evaluate._library_cells import CELL_COMPARISONS, CELL_FUNCTIONS

_CELL_NAMES = frozenset(function.name for function in CELL_FUNCTIONS)


def cell_comparison(left: Any, op: str, right: Any, cell: t.CellType) -> ir.Apply:
    """A comparison of a cell of a column, made in the kind of that column."""
    notation, column = ir.Const(value=cell.notation), ir.Const(value=cell.column)
    return ir.Apply(function="cell_matches", args=(left, ir.Const(value=op), right, notation, column))


def cell_call(function: str, expr: Any, cell: t.CellType, *more: Any) -> ir.Apply:
    """A call of a function that reads a cell, or a list of cells, in the notation of its column."""
    notation, column = ir.Const(value=cell.notation), ir.Const(value=cell.column)
    return ir.Apply(function=function, args=(expr, notation, column, *more))


def unbind_cells(node: Any) -> Any:
    """A plan or expression as it was written: without what `bind_cells` put around its cells.

    Example:
        >>> render_expr(unbind_cells(parse_expression('cell_matches(row["paid"], "==", False, "yes/no", "paid")')))
        'row["paid"] == False'
    """
    if isinstance(node, ps.Plan):
        return node.model_copy(update={"steps": tuple(map(unbind_cells, node.steps))})
    match node:
        case ir.Apply(function="cell_matches", args=(cell, ir.Const(value=str() as op), value, _, _)) if (
            op in CELL_COMPARISONS
        ):
            return ir.Compare(first=unbind_cells(cell), rest=((op, unbind_cells(value)),))  # type: ignore[arg-type]
        case ir.Apply(function="cell_value" | "cell_values" | "cell_order", args=(cell, *_)):
            return unbind_cells(cell)
        case _:
            return ir.map_children(node, unbind_cells)


def written_calls(plan: ps.Plan) -> Iterator[tuple[str, str]]:
    """The calls in a plan of functions that only binding writes, with the paths of their steps."""
    for path, step in ps.walk(plan.steps):
        # The steps inside it are walked as well, with a path of their own.
        inner = {id(each) for name in ("steps", "otherwise") for each in getattr(step, name, ())}
        nodes: list[Any] = [child for child in ir.children(step) if id(child) not in inner]
        while nodes:
            node = nodes.pop()
            if isinstance(node, ir.Apply) and node.function in _CELL_NAMES:
                yield path, node.function
            nodes += ir.children(node)


def refuse_written_calls(plan: ps.Plan) -> None:
    """Raise a BindError for the first call that is left in a plan after `unbind_cells`."""
    for path, function in written_calls(plan):
        raise BindError(
            "bind.written-cells",
            f"the plan calls {function}(), which is written only when a plan is bound",
            place=Place(step=path),
            expected="a plain comparison, sum or order of the cells",
            fix='Write it as if the cell were what it says, such as `row["paid"] == False`.',
        )

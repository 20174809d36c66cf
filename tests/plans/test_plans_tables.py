"""Expressions over a table by columns: the same values, errors and counts as over the plain list of its rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.errors import BicameralError
from bicameral.plans import RUN_WORK_KEY, RunWork, bind_cells, compile_by_columns, parse
from bicameral.tools import Registry
from bicameral.toolboxes._table_files import value_shape
from bicameral.types import Table, plain_value, table_from_columns
from tests.property_examples import examples

pytest.importorskip("polars")

CELLS: dict[str, list[Any]] = {
    "whole": [1, 2, -3, 2**53, 0],
    "decimal": [1.5, 0.1, 0.2, -2.25, 100.0],
    "both": [1, 1.0, 2.5, 3],
    "gaps": [1, 2.5, "", " "],
    "none": [1, None, 2],
    "text": ["b", "a", "", "Ä", "zz", "a b"],
    "words": ["7", "apple", "n/a"],
    "truth": [True, False],
    "day": ["2026-01-05", "2025-12-31", "2026-02-01"],
    "money": ["12,50 €", "1.200,50 €", "tbd"],
    "odd": [1, "x", 2.5, None],
}
SOURCES = [
    "[r for r in rows if r.{f} > 1]",
    "[r for r in rows if r.{f} == 1]",
    "[r for r in rows if r.{f} != 'a']",
    "[r for r in rows if r.{f} >= 'a']",
    "[r for r in rows if r.{f} > 1 and r.{g} != '']",
    "[r for r in rows if r.{f} == 1 or r.{g} > 0]",
    "[r for r in rows if not r.{f}]",
    "[r for r in rows if r.{f} in ['a', 1, '7']]",
    "[r for r in rows if r.{f} is not None and r.{f} > 0]",
    "[r for r in rows if r.{f} > limit]",
    "[r for r in rows if r.{f} > r.{g}]",
    "[r.{f} for r in rows if r.{g} != 1]",
    "[r.{f} for r in rows]",
    "[{{'a': r.{f}, 'b': r.{g}, 'c': r.{f}}} for r in rows if r.{f} == 1]",
    "[r.{f} * 2 for r in rows if r.{g} == 1]",
    "[f'{{r.{f}}} {{r.{g}}}' for r in rows]",
    "[1 for r in rows if r.{f} == r.{f}]",
    "sum([r.{f} for r in rows if r.{g} != ''])",
    "sum([1 for r in rows if r.{f} > 0])",
    "len([r for r in rows if r.{f} == 'a'])",
    "sorted(rows, key=lambda r: r.{f})",
    "sorted(rows, key=lambda r: r.{f}, reverse=True)",
    "sorted([r for r in rows if r.{f} != 1], key=lambda r: r.{g})[:2]",
    "sorted(rows, key=lambda r: -r.{f})",
    "count_by(rows, '{f}')",
    "{{k: len(g) for k, g in group_by(rows, '{f}').items()}}",
    "{{k: sum([r.{g} for r in g]) for k, g in group_by(rows, '{f}').items()}}",
    "{{k: g for k, g in group_by(rows, '{f}').items() if len(g) > 1}}",
    "[[k, g[0]] for k, g in group_by(rows, '{f}').items()]",
    "group_by(rows, '{f}')",
    "rows[0]",
    "rows[-1]",
    "rows[99]",
    "rows[1:3]",
    "rows[::-1]",
    "rows[1]['{f}']",
    "first(rows)",
    "last(rows)",
    "len(rows)",
    "max(rows, key=lambda r: r.{f})",
    "unique([r.{f} for r in rows])",
    "[a.{f} for a in rows for b in rows if a.{f} == b.{g}]",
    "rows + rows",
    "rows == rows",
    "1 if rows else 2",
    "not rows",
    "[r.absent for r in rows]",
    "[r for r in rows if r.absent == 1]",
    "[r for r in rows if r.{f} > 1 for s in rows[:1]]",
]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[Any]]]:
    names = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=2, max_size=3, unique=True))
    count = draw(st.integers(1, 8))
    return names, [draw(st.lists(st.sampled_from(CELLS[name]), min_size=count, max_size=count)) for name in names]


def observe(source: str, rows: Any, shape: Any) -> Any:
    """The value with the types of its parts and what was counted, or the error."""
    registry = Registry([])
    plan: Any = parse(f"rows = rows\nlimit = 1\nanswer({source})").plan
    with suppress(BicameralError):
        # A comparison that no cell of the column can fit is refused here; it is run as it is written.
        plan = bind_cells(plan, registry, {"rows": shape})
    work = RunWork(10**9, lambda: RuntimeError("too much work"))
    try:
        value = plain_value(compile_by_columns(plan.steps[-1].value)({"rows": rows, "limit": 1, RUN_WORK_KEY: work}))
    except BicameralError as error:
        return error.to_json()
    cells = {name: (count.kind, count.given, count.unread, count.guess) for name, count in work.cells.items()}
    selections = [(count.given, count.kept, count.times) for count in work.selections.values()]
    return repr(value), cells, selections


@settings(max_examples=examples(3000, quick=200), deadline=None)
@given(tables(), st.sampled_from(SOURCES), st.data())
def test_an_expression_over_a_table_is_the_one_over_its_rows(
    made: tuple[list[str], list[list[Any]]], source: str, data: st.DataObject
) -> None:
    names, columns = made
    table = table_from_columns(names, columns)
    assert table is not None
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    field, other = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
    written, shape = source.format(f=field, g=other), value_shape(rows, trusted=True)
    assert observe(written, table, shape) == observe(written, rows, shape)


@pytest.mark.parametrize(
    "source",
    [
        "[r for r in rows if r.amount > 1 and r.place == 'north']",
        "sorted(rows, key=lambda r: r.place)",
        "rows[:3]",
        "[{'p': r.place} for r in rows]",
        "sorted([r for r in rows if r.place in ['north']], key=lambda r: r.amount)",
    ],
)
def test_rows_of_a_table_stay_a_table(source: str) -> None:
    table = table_from_columns(["amount", "place"], [[1, 2, 3, 4], ["north", "south", "north", "east"]])
    plan: Any = parse(f"rows = rows\nanswer({source})").plan
    assert type(compile_by_columns(plan.steps[-1].value)({"rows": table})) is Table


def test_a_value_that_is_given_out_plainly_never_holds_a_table() -> None:
    """Whatever code does not know tables gets lists: a table inside a list or dict would be lost on it."""
    table = table_from_columns(["k", "v"], [["a", "b", "a"], [1, 2, 3]])
    for source in ("[rows]", "{'x': rows}", "{k: g for k, g in group_by(rows, 'k').items()}", "[rows, rows[:1]]"):
        plan: Any = parse(f"rows = rows\nanswer({source})").plan
        value = compile_by_columns(plan.steps[-1].value)({"rows": table})
        nested = [value]
        while nested:
            each = nested.pop()
            assert type(each) is not Table
            nested += each.values() if isinstance(each, dict) else each if isinstance(each, list) else []

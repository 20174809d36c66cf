"""Rows of two tables in one list: cells are read in a kind that both columns have, and never guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.binding import Binder, PlanBinder, WorldSource
from bicameral.errors import BindError
from bicameral.plans import bind_cells, parse
from bicameral.runs import run_plan
from bicameral.toolboxes.tables import toolbox
from bicameral.tools import Registry, Surroundings


async def answer(folder: Path, first: str, second: str, expression: str) -> Any:
    (folder / "a.csv").write_text(first, encoding="utf-8")
    (folder / "b.csv").write_text(second, encoding="utf-8")
    registry = Registry(toolbox.open(Surroundings.here(folder)))
    source = f'rows = read_csv("a.csv")\nothers = read_csv("b.csv")\nanswer({expression})'
    bound = await PlanBinder(registry, Binder(WorldSource(registry))).bind(parse(source, registry).plan)
    assert bind_cells(bound.plan, registry) == bound.plan
    outcome: Any = await run_plan(bound.plan, registry=registry)
    return outcome.answer


GERMAN = 'name,amount,due\na,"1.200,50 €",15.3.2026\nb,"2.100,00 €",31.3.2026\n'
MORE_GERMAN = 'name,amount,due\nc,"3.000,25 €",16.4.2026\n'
ENGLISH = 'name,amount,due\nd,"4,000.75 €",2026-05-17\n'
DOLLARS = 'name,amount,due\ne,"$4.000,75",17.5.2026\n'


async def test_rows_of_two_tables_are_computed_with_in_the_kind_of_their_columns(tmp_path: Path) -> None:
    total = 'sum([row["amount"] for row in rows + others])'
    assert await answer(tmp_path, GERMAN, MORE_GERMAN, total) == pytest.approx(6300.75)
    late = '[row["name"] for row in rows + others if row["due"] > date("2026-03-20")]'
    assert await answer(tmp_path, GERMAN, MORE_GERMAN, late) == ["b", "c"]
    most = 'max(rows + others, key=lambda row: row["amount"])["name"]'
    assert await answer(tmp_path, GERMAN, MORE_GERMAN, most) == "c"


@pytest.mark.parametrize(
    "expression",
    [
        'sum([row["amount"] for row in rows + others])',
        '[row["name"] for row in rows + others if row["due"] > date("2026-03-20")]',
        'sorted(rows + others, key=lambda row: row["amount"])',
    ],
)
async def test_columns_in_two_notations_are_not_computed_with(tmp_path: Path, expression: str) -> None:
    """A cell `4,000` would be four in one notation and four thousand in the other."""
    with pytest.raises(BindError) as caught:
        await answer(tmp_path, GERMAN, ENGLISH, expression)
    assert caught.value.code == "bind.column-kind"
    # The same rows can be shown, and selected by a text.
    shown = '[row["amount"] for row in rows + others if row["name"] != "a"]'
    assert await answer(tmp_path, GERMAN, ENGLISH, shown) == ["2.100,00 €", "4,000.75 €"]


async def test_amounts_of_two_tables_in_two_currencies_are_not_added_up(tmp_path: Path) -> None:
    with pytest.raises(BindError) as caught:
        await answer(tmp_path, GERMAN, DOLLARS, 'sum([row["amount"] for row in rows + others])')
    assert caught.value.code == "bind.column-kind"

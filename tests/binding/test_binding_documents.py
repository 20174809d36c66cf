"""Spreadsheets are bound as tables: by their names, and their columns and cells in the user's words."""

from __future__ import annotations

from pathlib import Path

from binding_world import BindingWorld

from bicameral.plans import parse

BUDGET = Path(__file__).parents[1] / "toolboxes/documents/budget.xlsx"


async def test_the_columns_of_a_sheet_are_bound_as_those_of_a_table(tmp_path: Path) -> None:
    world = BindingWorld(tmp_path)
    (tmp_path / "budget.xlsx").write_bytes(BUDGET.read_bytes())
    source = 'rows = read_sheet(file("the budget"), "March")\nanswer(sum([row[column("amounts")] for row in rows]))\n'
    assert await world.answer(source) == 60.5


async def test_a_spreadsheet_that_is_read_as_text_is_told_to_be_a_table(tmp_path: Path) -> None:
    world = BindingWorld(tmp_path)
    (tmp_path / "budget.xlsx").write_bytes(BUDGET.read_bytes())
    plan = parse('answer(read_text(file("the budget")))', world.registry).plan
    other = await world.binder.find_other_reading(plan, await world.bind(plan))
    assert other is not None
    # What needs the name of a sheet as well is not what such a plan means.
    assert other.begin.startswith("rows = read_csv(")

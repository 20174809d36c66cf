"""Cells in expressions: what a plan computes with a cell is done in the kind of its column, and never guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.binding import Binder, PlanBinder, WorldSource
from bicameral.errors import BicameralError, BindError
from bicameral.plans import bind_cells, parse, print_plan, unbind_cells
from bicameral.runs import run_plan
from bicameral.toolboxes._table_files import render_csv
from bicameral.toolboxes.tables import toolbox
from bicameral.tools import Registry, Surroundings


async def run(folder: Path, table: str, source: str) -> Any:
    """The outcome of a plan over the rows of a table."""
    (folder / "t.csv").write_text(table, encoding="utf-8")
    registry = Registry(toolbox.open(Surroundings.here(folder)))
    plan = parse(f'rows = read_csv("t.csv")\n{source}', registry).plan
    bound = await PlanBinder(registry, Binder(WorldSource(registry))).bind(plan)
    # A plan that is bound already stays as it is.
    assert bind_cells(bound.plan, registry) == bound.plan
    return await run_plan(bound.plan, registry=registry)


async def answer(folder: Path, table: str, expression: str) -> Any:
    return (await run(folder, table, f"answer({expression})")).answer


async def refusal(folder: Path, table: str, expression: str) -> BicameralError:
    with pytest.raises(BindError) as caught:
        await answer(folder, table, expression)
    return caught.value


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("ja", "nein"), ("oui", "non"), ("sí", "no"), ("Y", "N")])
async def test_no_is_false_in_four_languages(tmp_path: Path, yes: str, no: str) -> None:
    table = f"name,paid\na,{yes}\nb,{no}\nc,{no}\n"
    assert await answer(tmp_path, table, '[row["name"] for row in rows if row["paid"] == False]') == ["b", "c"]
    assert await answer(tmp_path, table, '[row["name"] for row in rows if row["paid"]]') == ["a"]
    assert await answer(tmp_path, table, '[row["name"] for row in rows if not row["paid"]]') == ["b", "c"]
    assert await answer(tmp_path, table, '[row["paid"] for row in rows]') == [yes, no, no]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("15. März 2026", "1. April 2026"),
        ("15 mars 2026", "1 avril 2026"),
        ("15 de marzo de 2026", "1 de abril de 2026"),
        ("March 15, 2026", "April 1, 2026"),
        ("15/3/2026", "1/4/2026"),
        ("2026-03-15", "2026-04-01"),
    ],
)
async def test_dates_compare_in_any_notation(tmp_path: Path, first: str, second: str) -> None:
    table = f"name;due\na;{second}\nb;{first}\n"
    assert await answer(tmp_path, table, '[r["name"] for r in rows if r["due"] >= date("2026-03-20")]') == ["a"]
    assert await answer(tmp_path, table, 'max(rows, key=lambda r: r["due"])["due"]') == second
    assert await answer(tmp_path, table, 'min([r["due"] for r in rows])') == first
    assert await answer(tmp_path, table, '[r["due"].month for r in rows]') == [4, 3]


@pytest.mark.parametrize("cells", [("1.234,50 €", "0,50 €"), ("€1,234.50", "€0.50"), ("1 234,50", "0,50")])
async def test_amounts_add_up_and_print_as_they_stand(tmp_path: Path, cells: tuple[str, str]) -> None:
    table = "name;amount\n" + "".join(f"x;{cell}\n" for cell in cells)
    assert await answer(tmp_path, table, 'sum([row["amount"] for row in rows])') == 1235
    assert await answer(tmp_path, table, "f\"{rows[0]['amount']}\"") == cells[0]
    assert await answer(tmp_path, table, "f\"{rows[0]['amount']:.1f}\"") == "1234.5"
    assert await answer(tmp_path, table, 'max([row["amount"] for row in rows])') == cells[0]
    outcome = await run(tmp_path, table, 'n = 0\nfor row in rows:\n    n += row["amount"]\nanswer(n)')
    assert outcome.answer == 1235


@pytest.mark.parametrize(
    ("cells", "condition", "kind"),
    [
        (("yes", "no"), '"open"', "yes or no"),
        (("yes", "no"), "3", "yes or no"),
        (("2026-03-15", "2026-04-01"), '"open"', "dates"),
        (("15.3.2026", "1.4.2026"), "5", "dates"),
        (("5,50", "7,20"), "True", "numbers"),
        (("5 €", "7 €"), '"5 USD"', "money (EUR)"),
        (("red", "blue"), "False", "text"),
        (("5", "7"), '"open"', "numbers"),
        (("true", "false"), '"open"', "yes or no"),
    ],
)
async def test_a_comparison_that_cannot_match_is_an_error_that_names_the_kind(
    tmp_path: Path, cells: tuple[str, str], condition: str, kind: str
) -> None:
    table = "name;c\n" + "".join(f"x;{cell}\n" for cell in cells)
    error = await refusal(tmp_path, table, f'[row for row in rows if row["c"] == {condition}]')
    assert (error.code, f"the column 'c' is {kind}" in error.message) == ("bind.column-kind", True)


@pytest.mark.parametrize("cells", [("3/4/2026", "5/6/2026"), ("1,234", "2,500")])
async def test_a_column_with_two_readings_is_never_computed_with(tmp_path: Path, cells: tuple[str, str]) -> None:
    table = "name;c\n" + "".join(f"x;{cell}\n" for cell in cells)
    for expression in (
        'sum([row["c"] for row in rows])',
        'sorted(rows, key=lambda row: row["c"])',
        'float(rows[0]["c"])',
        '[row for row in rows if row["c"] > 3]',
    ):
        assert "ambiguous" in (await refusal(tmp_path, table, expression)).message
    assert await answer(tmp_path, table, f'len([row for row in rows if row["c"] == "{cells[0]}"])') == 1


async def test_several_currencies_are_not_added(tmp_path: Path) -> None:
    table = "name;c\na;5 €\nb;7 CHF\n"
    assert "CHF, EUR" in (await refusal(tmp_path, table, 'sum([row["c"] for row in rows])')).message
    assert await answer(tmp_path, table, '[row["name"] for row in rows if row["c"] == "7 CHF"]') == ["b"]


HOSTILE = ["yes; DROP", "ｙｅｓ", "yes\u200b", "TRUE \u200b", "1e400", "NaN"]


@pytest.mark.parametrize("cell", HOSTILE)
async def test_a_hostile_cell_is_neither_yes_nor_no_and_is_counted(tmp_path: Path, cell: str) -> None:
    table = "name,paid\n" + "a,yes\nb,no\n" * 4 + f"x,{cell}\n"
    for value in ("True", "False"):
        outcome = await run(tmp_path, table, f'answer(len([row for row in rows if row["paid"] == {value}]))')
        assert outcome.answer == 4
        assert [doubt.code for doubt in outcome.doubts] == ["unread-cells"]
        assert "8 of 9 cells" in outcome.doubts[0].text


@pytest.mark.parametrize("cell", ["１２", "1e400", "12 apples"])
async def test_a_total_with_a_cell_that_is_no_number_is_refused(tmp_path: Path, cell: str) -> None:
    table = "name;amount\n" + "a;1,50 €\n" * 9 + f"x;{cell}\n"
    outcome = await run(tmp_path, table, 'answer(sum([row["amount"] for row in rows]))')
    assert outcome.error.code == "run.column-kind"
    assert "'amount'" in outcome.error.message
    benign = await run(tmp_path, table.replace(cell, "n/a"), 'answer(sum([row["amount"] for row in rows]))')
    assert (benign.answer, [doubt.code for doubt in benign.doubts]) == (13.5, ["unread-cells"])


async def test_rows_keep_their_cells_through_tools_and_selections(tmp_path: Path) -> None:
    table = "name;paid;amount;due\na;ja;1.234,50 €;15.3.2026\nb;nein;2,00 €;1.4.2026\n"
    source = 'some = sort_rows(rows, "due")\nanswer([row for row in some if row["paid"] == True])'
    kept = (await run(tmp_path, table, source)).answer
    assert kept == [{"name": "a", "paid": "ja", "amount": "1.234,50 €", "due": "15.3.2026"}]
    assert '"1.234,50 €",15.3.2026' in render_csv(kept)


def test_a_plan_reads_as_it_was_written_after_it_was_bound(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("paid;due\nja;1.4.2026\nnein;2.4.2026\n", encoding="utf-8")
    registry = Registry(toolbox.open(Surroundings.here(tmp_path)))
    source = (
        'rows = read_csv("t.csv")\nanswer([r for r in rows if r["paid"] == False and r["due"] > date("2026-01-01")])'
    )
    plan = parse(source, registry).plan
    bound = bind_cells(plan, registry)
    assert bound != plan
    assert unbind_cells(bound) == plan
    assert parse(print_plan(bound, registry), registry).plan == bound

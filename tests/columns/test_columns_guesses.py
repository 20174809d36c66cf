"""Thousands or decimals: the whole column decides, then the settings; what nothing decides is a doubt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.binding import bind_by_rules
from bicameral.columns import find_column_kind
from bicameral.plans import parse
from bicameral.runs import run_plan
from bicameral.toolboxes._table_files import parse_column
from bicameral.toolboxes.tables import toolbox
from bicameral.tools import Registry, Surroundings


async def run(folder: Path, cells: list[str], source: str, **settings: Any) -> Any:
    """The outcome of a plan over a table with one column."""
    (folder / "t.csv").write_text("name;n\n" + "".join(f"x;{cell}\n" for cell in cells), encoding="utf-8")
    registry = Registry(toolbox.open(Surroundings.here(folder), settings))
    plan = parse(f'rows = read_csv("t.csv")\n{source}', registry).plan
    return await run_plan((await bind_by_rules(plan, registry)).plan, registry=registry)


SUM = 'answer(sum([row["n"] for row in rows]))'
TOTAL = 'totals = group_rows(rows, "name", "n")\nanswer(totals[0]["n"])'
MORE = 'answer(len([row for row in rows if row["n"] > 1000]))'
FILTER = 'some = filter_rows(rows, "n", ">", 1000)\nanswer(len(some))'
FIRST = 'answer(sorted(rows, key=lambda row: row["n"])[0]["n"])'
SORTED = 'some = sort_rows(rows, "n")\nanswer(some[0]["n"])'


@pytest.mark.parametrize(
    ("cells", "total"),
    [
        (["1.234", "2.500,50"], 3734.5),  # German, Spanish: a comma before the decimals
        (["1.234", "1.000.000"], 1001234),  # two points can only stand between thousands
        (["1.234", "0,5"], 1234.5),
        (["1.234", "12,5"], 1246.5),
        (["1.234", "2.5"], 3.734),  # English: a point before the decimals
        (["1.234", "1,000.5"], 1001.734),
        (["1.234", "0.125"], 1.359),
        (["1.234", "1234.567"], 1235.801),
        (["1 234,5", "1.234"], 2468.5),  # French: blanks between thousands, and one cell from elsewhere
    ],
)
async def test_a_cell_with_one_reading_decides_for_the_column(tmp_path: Path, cells: list[str], total: float) -> None:
    for order in (cells, cells[::-1]):
        for source in (SUM, TOTAL):
            outcome = await run(tmp_path, order, source)
            assert (outcome.answer, outcome.doubts) == (pytest.approx(total), ())


@pytest.mark.parametrize(("decimals", "total"), [(",", 3734), (".", 3.734)])
async def test_the_settings_decide_what_no_cell_does(tmp_path: Path, decimals: str, total: float) -> None:
    for source in (SUM, TOTAL):
        outcome = await run(tmp_path, ["1.234", "2.500"], source, decimals=decimals)
        assert (outcome.answer, outcome.doubts) == (pytest.approx(total), ())
        money = await run(tmp_path, ["1.234 €", "2.500 €"], source, decimals=decimals)
        assert (money.answer, money.doubts) == (pytest.approx(total), ())
    # A cell decides before the settings.
    assert (await run(tmp_path, ["1.234", "2.5"], SUM, decimals=",")).answer == pytest.approx(3.734)
    assert (await run(tmp_path, ["1.234", "2,5"], SUM, decimals=".")).answer == pytest.approx(1236.5)


@pytest.mark.parametrize(
    ("source", "answer"), [(SUM, 3.734), (TOTAL, 3.734), (MORE, 0), (FILTER, 0), (FIRST, "1.234"), (SORTED, "1.234")]
)
async def test_what_nothing_decides_is_the_first_doubt_of_the_answer(tmp_path: Path, source: str, answer: Any) -> None:
    outcome = await run(tmp_path, ["1.234", "2.500"], source)
    assert outcome.answer == (pytest.approx(answer) if isinstance(answer, float) else answer)
    assert outcome.doubts[0].code == "guessed-notation"
    assert outcome.doubts[0].text.startswith("in n, amounts such as 1.234 were read as ")
    assert outcome.doubts[0].step


async def test_a_column_that_nothing_computes_with_raises_no_doubt(tmp_path: Path) -> None:
    outcome = await run(tmp_path, ["1.234", "2.500"], 'answer([row["n"] for row in rows])')
    assert (outcome.answer, outcome.doubts) == (["1.234", "2.500"], ())


async def test_chosen_rows_keep_the_reading_that_the_whole_column_decided(tmp_path: Path) -> None:
    source = 'some = filter_rows(rows, "n", ">", 1000)\nagain = group_rows(some, "name", "n")\nanswer(again[0]["n"])'
    outcome = await run(tmp_path, ["1.234", "7", "0,5"], source)
    assert (outcome.answer, outcome.doubts) == (1234, ())


def test_cells_that_contradict_each_other_are_never_computed_with() -> None:
    assert find_column_kind(["1.200,50", "2,000.00", "1.234"]).kind == "ambiguous"
    assert find_column_kind(["1.200,50", "2,000.00"], ",").kind == "ambiguous"
    assert parse_column(["1.234,5", "1.5", "1.234"]) == ["1.234,5", 1.5, "1.234"]
    # Texts that are no numbers are left as they are, and so is what looks like one among them.
    assert parse_column(["1.234", "v1", "v2", "1.2.3"]) == ["1.234", "v1", "v2", "1.2.3"]

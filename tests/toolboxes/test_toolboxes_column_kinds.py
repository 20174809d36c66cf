"""Kinds of columns: found from all cells together, never guessed, and used in every comparison, order and total."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bicameral.columns import Amount, add_amounts, find_column_kind, parse_amount, parse_date
from bicameral.errors import ToolError
from bicameral.toolboxes.tables import toolbox
from bicameral.tools import Registry, Selection, Surroundings, collect_selections

TOOLS = Registry(toolbox.open(Surroundings.here(Path())))


async def call(name: str, **arguments: Any) -> Any:
    return await TOOLS[name].call(arguments)


async def kept(cells: list[Any], op: str, value: Any) -> list[Any]:
    rows = [{"c": cell} for cell in cells]
    return [row["c"] for row in await call("filter_rows", rows=rows, column="c", op=op, value=value)]


async def refusal(cells: list[Any], op: str, value: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await kept(cells, op, value)
    return caught.value


@pytest.mark.parametrize(
    ("cells", "kind", "unread"),
    [
        (["yes", "No", ""], "yes/no", 0),
        (["ja", "nein"], "yes/no", 0),
        (["oui", "non"], "yes/no", 0),
        (["sí", "no"], "yes/no", 0),
        ([True, "false"], "yes/no", 0),
        (["x", "", None], "yes/no", 0),
        (["yes", 1, 0], "yes/no", 0),
        ([1, 0, 1], "number", 0),
        (["S", "M", "L"], "text", 0),
        (["2026-03-15", "n/a"], "date", 1),
        (["15.03.2026", "1.4.2026"], "date", 0),
        (["3/15/2026", "3/4/2026"], "date", 0),
        (["15/3/2026", "3/4/2026"], "date", 0),
        (["3/4/2026", "5/6/2026"], "ambiguous", 0),
        (["15/3/2026", "3/15/2026"], "ambiguous", 0),
        (["15. März 2026", "15 mars 2026", "March 15, 2026", "15 de marzo de 2026"], "date", 0),
        (["1,234.50", "7"], "number", 0),
        (["1.234,50", "7"], "number", 0),
        (["1 234,50", "7"], "number", 0),
        (["1'234.50", "7"], "number", 0),
        (["1,234", "2,500"], "ambiguous", 0),
        (["1.200,50", "2,000.00"], "ambiguous", 0),
        (["1.234,50", 1.2], "ambiguous", 0),
        (["12 %", "3%"], "number", 0),
        (["€5", "5 EUR", "CHF 4", "$3", "£2"], "money", 0),
        (["007", "+49 30 1234"], "text", 0),
        (["Ann", "Bob"], "text", 0),
        (["", None], "empty", 0),
        ([], "empty", 0),
    ],
)
def test_the_kind_of_a_column_is_found_from_all_its_cells(cells: list[Any], kind: str, unread: int) -> None:
    found = find_column_kind(cells)
    assert (found.kind, found.unread) == (kind, unread)
    assert find_column_kind(list(reversed(cells))).kind == kind


def test_a_column_is_of_a_kind_only_if_nearly_all_its_cells_are() -> None:
    days = [f"{day}.3.2026" for day in range(1, 9)]
    assert (find_column_kind([*days, "soon"]).kind, find_column_kind([*days, "soon"]).unread) == ("date", 1)
    assert find_column_kind(["1.3.2026", "soon", "later"]).kind == "text"


def test_amounts_of_two_currencies_have_no_sum() -> None:
    assert add_amounts([Amount(Decimal("0.1"), "EUR"), Amount(Decimal("0.2"))]) == Decimal("0.3")
    with pytest.raises(ValueError, match="EUR, USD"):
        add_amounts([Amount(Decimal(1), "EUR"), Amount(Decimal(1), "USD")])


def test_numbers_and_dates_are_read_in_one_way_or_not_at_all() -> None:
    assert parse_date("31.02.2026") is None
    assert parse_date("3/4/2026") is None
    assert parse_date("3/4/2026", "day first") == dt.date(2026, 4, 3)
    assert parse_amount("1,23,456", ".") is None
    assert parse_amount("007", ".") is None
    assert find_column_kind(["007", "008"]).kind == "text"
    assert parse_amount("€ 5 EUR", ".") is None
    assert parse_amount("12" * 40, ".") is None


@pytest.mark.parametrize(
    ("cells", "op", "value", "found"),
    [
        (["yes", "no", "", "No"], "==", False, ["no", "No"]),
        (["ja", "nein"], "==", True, ["ja"]),
        (["oui", "non"], "==", "no", ["non"]),
        (["x", "", None], "==", False, ["", None]),
        ([1, 0, 1], "==", True, [1, 1]),
        (["yes", "no"], "==", "perhaps", []),
        (["15.03.2026", "1.4.2026"], ">=", "2026-04-01", ["1.4.2026"]),
        (["15/3/2026", "3/4/2026"], "<", dt.date(2026, 4, 1), ["15/3/2026"]),
        (["2026-03-15", "2026-04-01"], "==", "15.03.2026", ["2026-03-15"]),
        (["March 15, 2026", "April 1, 2026"], ">", "15. März 2026", ["April 1, 2026"]),
        (["1.200,50 €", "3 €"], ">", 100, ["1.200,50 €"]),
        (["€5", "$9"], ">", "4 EUR", ["€5"]),
        (["3/4/2026", "5/6/2026"], "==", "3/4/2026", ["3/4/2026"]),
        (["1,234", "2,500"], "contains", "1,2", ["1,234"]),
    ],
)
async def test_comparisons_are_made_in_the_kind_of_the_column(
    cells: list[Any], op: str, value: Any, found: list[Any]
) -> None:
    assert await kept(cells, op, value) == found


@pytest.mark.parametrize(
    ("cells", "op", "value", "named"),
    [
        (["yes", "no"], "==", 1, "yes or no"),
        ([True, False], "==", 1, "yes or no"),
        (["yes", "no"], "<", "soon", "yes or no"),
        (["15.03.2026"], ">", 3, "dates"),
        (["2026-03-15"], "==", True, "dates"),
        (["5 €"], "==", True, "money (EUR)"),
        (["5 €"], ">", "4 USD", "money (EUR)"),
        (["3/4/2026", "5/6/2026"], "<", "2026-05-01", "ambiguous"),
        (["1,234", "2,500"], ">", 5, "ambiguous"),
        (["open", "settled"], "==", False, "text"),
    ],
)
async def test_a_comparison_that_cannot_match_names_the_kind(cells: list[Any], op: str, value: Any, named: str) -> None:
    error = await refusal(cells, op, value)
    assert error.code == "tables.column-kind"
    assert f"the column 'c' is {named}" in error.message
    assert error.expected


async def test_a_day_that_can_be_read_in_two_ways_is_not_guessed() -> None:
    assert (await refusal(["2026-03-15"], "<", "3/4/2026")).code == "tables.column-kind"


async def test_money_adds_up_and_currencies_are_never_mixed() -> None:
    rows = [{"k": "a", "n": "1.200,50 €"}, {"k": "a", "n": "€ 3"}, {"k": "b", "n": "4,50 EUR"}, {"k": "b", "n": ""}]
    assert await call("group_rows", rows=rows, by="k", column="n") == [{"k": "a", "n": 1203.5}, {"k": "b", "n": 4.5}]
    apart = [{"k": "a", "n": "€5"}, {"k": "b", "n": "$9"}, {"k": "b", "n": "$1"}]
    assert [row["n"] for row in await call("group_rows", rows=apart, by="k", column="n")] == [5, 10]
    mixed = [{"k": "a", "n": "€5"}, {"k": "a", "n": "$9"}]
    for name, arguments in (("group_rows", {"by": "k", "column": "n"}), ("sort_rows", {"by": "n"})):
        with pytest.raises(ToolError) as caught:
            await call(name, rows=mixed, **arguments)
        assert caught.value.code == "tables.mixed-currencies"
    assert (await refusal(["€5", "$9"], ">", 3)).code == "tables.mixed-currencies"


async def test_rows_are_sorted_grouped_and_joined_by_the_day_and_not_by_its_notation() -> None:
    rows = [{"d": "1.4.2026", "n": 1}, {"d": "15.03.2026", "n": 2}, {"d": "01.04.2026", "n": 3}, {"d": "tbd", "n": 4}]
    assert [row["n"] for row in await call("sort_rows", rows=rows, by="d")] == [2, 1, 3, 4]
    assert [row["n"] for row in await call("group_rows", rows=rows, by="d", column="n")] == [4, 2, 4]
    joined = await call("join_rows", left=rows, right=[{"d": "2026-04-01", "m": 7}], on="d")
    assert [row["n"] for row in joined] == [1, 3]


async def test_a_filter_says_what_went_in_what_came_out_and_what_it_could_not_read() -> None:
    rows = [{"paid": cell} for cell in ("yes", "no", "no", "ja", "nein", "n/a")]
    with collect_selections() as noted:
        await call("filter_rows", rows=rows, column="paid", op="==", value=False)
    assert noted == [Selection(6, 3, "rows", "paid is no", unread=1)]
    assert str(noted[0]) == "3 of 6 rows: paid is no (1 could not be read)"
    assert Selection.from_json(noted[0].to_json()) == noted[0]


async def test_hostile_words_in_a_selection_are_short_and_visible() -> None:
    hostile = "\x1b[2J\u202eno\n" + "a" * 10_000
    with collect_selections() as noted:
        await call("filter_rows", rows=[{"a": "b"}], column="a", op="==", value=hostile)
    (note,) = noted
    assert len(note.condition) <= 120
    assert not {"\x1b", "\u202e", "\n"} & set(str(note))

"""Large tables by columns: the same cells, results, errors and notes as the plain way, over awkward cells."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.errors import BicameralError
from bicameral.toolboxes._columnar_rows import scale_numbers
from bicameral.toolboxes._table_files import parse_csv, short_texts, value_shape
from bicameral.toolboxes._table_reading import LARGE_TEXT, read_csv_table
from bicameral.toolboxes.tables import RowTools, toolbox
from bicameral.tools import Registry, Surroundings, collect_selections
from bicameral.types import Table, columnar_engine, plain_value
from property_examples import examples

polars = pytest.importorskip("polars")

POOLS: dict[str, list[str]] = {
    "whole": ["1", "2", "3", "-7", "0", "12345678901"],
    "long": ["9007199254740993", "1", "9223372036854775807"],
    "longer": ["92233720368547758070", "1"],
    "decimal": ["1.5", "2.25", "-0.01", "100.10", "1e+5", "3.0", "0.1", "0.2"],
    "both": ["1", "2.5", "3", "3.0", "1.0"],
    "missing": ["1", "2.5", "", " ", "7"],
    "twofold": ["1.234", "2.500", "7"],
    "decided": ["1.234", "2.5", "1.234,50"],
    "minus zero": ["-0.0", "0.0", "1.5", "-0"],
    "euro": ["12,50 €", "1.200,50 €", "7 €"],
    "currencies": ["12.50 EUR", "3 USD"],
    "day": ["2026-01-05", "2026-02-01", "2025-12-31", ""],
    "moment": ["2026-01-05 10:00", "2026-01-05 09:30:00", "2026-01-05"],
    "day first": ["3/4/2026", "15/4/2026", "n/a"],
    "unclear day": ["3/4/2026", "5/6/2026"],
    "truth": ["true", "false", "TRUE", " True"],
    "yes": ["yes", "no", ""],
    "tick": ["x", "", "x"],
    "bits": ["1", "0", ""],
    "word": ["apple", "Banana", "zß", "", "Ä", "007", "+49 30", "\U0001f600", "a\u2028b"],
    "formula": ["'=1+1", "O'Brien", "'-x"],
    "code": ["7", "007", "x7", " 7"],
    "infinite": ["1e+400", "2.5"],
    "quoted": ['"a;b"', '"c ""d"""', "e", '"two\nlines"'],
}
VALUES: list[Any] = [
    *(1, 2.5, 3, 0, True, None, 10**30, 9007199254740993, 0.1, dt.date(2026, 1, 5)),
    *("x", "7", "apple", "1.234", "12,50 €", "2026-01-05", "3 USD", "yes"),
]
OPERATORS = ["==", "!=", "<", "<=", ">", ">=", "contains"]
AGGREGATES = ["sum", "mean", "min", "max", "count"]
ENDS = ["\n", "\r\n", "\n\n", "\r"]


@st.composite
def csv_texts(draw: st.DrawFn, most: int = 12) -> tuple[str, list[str]]:
    """A CSV text and the names of its columns."""
    names = draw(st.lists(st.sampled_from(sorted(POOLS)), min_size=2, max_size=4, unique=True))
    count = draw(st.integers(1, most))
    columns = [draw(st.lists(st.sampled_from(POOLS[name]), min_size=count, max_size=count)) for name in names]
    end = draw(st.sampled_from(ENDS))
    lines = [";".join(names), *(";".join(row) for row in zip(*columns, strict=True))]
    return end.join(lines) + draw(st.sampled_from(["", end])), names


def observe(act: Callable[[], Any]) -> Any:
    """What a tool gives, with the types of all cells, and what it notes; or what it says is wrong."""
    with collect_selections() as notes:
        try:
            value = plain_value(act())
        except BicameralError as error:
            return error.to_json()
    return repr(value), [note.to_json() for note in notes]


@settings(max_examples=examples(2000), deadline=None)
@given(csv_texts(), st.sampled_from([None, ".", ","]))
def test_a_table_by_columns_has_the_cells_of_the_plain_way(made: tuple[str, list[str]], decimals: Any) -> None:
    text, _ = made
    table = read_csv_table(text, "t.csv", decimals)
    if table is not None:
        rows = parse_csv(text, "t.csv", decimals)
        assert repr(table.rows()) == repr(rows)
        assert value_shape(table, decimals=decimals) == value_shape(rows, decimals=decimals)
        assert short_texts(table) == short_texts(rows)


@settings(max_examples=examples(2000), deadline=None)
@given(csv_texts(), st.sampled_from([None, ".", ","]), st.data())
def test_filter_sort_group_and_select_are_those_of_the_plain_way(
    made: tuple[str, list[str]], decimals: Any, data: st.DataObject
) -> None:
    text, names = made
    table = read_csv_table(text, "t.csv", decimals)
    if table is None:
        return
    rows, tools = parse_csv(text, "t.csv", decimals), RowTools(decimals)
    name, other = data.draw(st.sampled_from(names)), data.draw(st.sampled_from([*names, "absent"]))
    op: Any = data.draw(st.sampled_from(OPERATORS))
    value = data.draw(st.sampled_from(VALUES))
    descending, how = data.draw(st.booleans()), cast("Any", data.draw(st.sampled_from(AGGREGATES)))
    jobs: list[Callable[[Any], Any]] = [
        lambda given: tools.filter_rows(given, name, op, value),
        lambda given: tools.sort_rows(given, name, descending),
        lambda given: tools.group_rows(given, name, other, how),
        lambda given: tools.sort_rows(tools.filter_rows(given, name, op, value), name, descending),
    ]
    for job in jobs:
        assert observe(lambda job=job: job(table)) == observe(lambda job=job: job(rows))


@settings(max_examples=examples(1000), deadline=None)
@given(csv_texts(), csv_texts(6), st.sampled_from([None, ","]), st.booleans())
def test_joins_are_those_of_the_plain_way(
    left: tuple[str, list[str]], right: tuple[str, list[str]], decimals: Any, as_table: bool
) -> None:
    # A column of the other table under the name of one of this one: duplicated keys, clashing names.
    text = right[0].replace(right[1][0], left[1][0], 1)
    tables = [read_csv_table(each, "t.csv", decimals) for each in (left[0], text)]
    if tables[0] is None:
        return
    rows = [parse_csv(each, "t.csv", decimals) for each in (left[0], text)]
    other = tables[1] if as_table and tables[1] is not None else rows[1]
    tools, on = RowTools(decimals), left[1][0]
    assert observe(lambda: tools.join_rows(tables[0], other, on)) == observe(  # type: ignore[arg-type]
        lambda: tools.join_rows(rows[0], rows[1], on)
    )


@settings(max_examples=examples(1000), deadline=None)
@given(st.lists(st.decimals(-(10**9), 10**9, places=4), min_size=1, max_size=30))
def test_decimals_are_added_exactly(numbers: list[Any]) -> None:
    cells = [float(number) for number in numbers]
    scaled = scale_numbers(polars.Series(cells, dtype=polars.Float64))
    if scaled is not None:
        units, places = scaled
        assert sum(units.to_list()) == sum(numbers) * 10**places


def test_a_sum_of_cents_has_no_rounding_error() -> None:
    text = "k;v\n" + "\n".join(["a;0.1", "a;0.2", "b;0.7", "b;0.1"] * 3)
    table = read_csv_table(text, "t.csv")
    assert isinstance(table, Table)
    assert RowTools().group_rows(table, "k", "v") == [{"k": "a", "v": 0.9}, {"k": "b", "v": 2.4}]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["a;b\n1;2\n3\n", "a;b\n1;2;3\n4\n", 'a;b\n1;"2\n', "a;b\n1;\0\n"])
def test_a_file_with_something_wrong_is_left_to_the_plain_way(text: str) -> None:
    """Its error names the line."""
    assert read_csv_table(text, "t.csv") is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"{number},{'north' if number % 3 else 'O’Hare'},{number / 4}" for number in range(40_000)]
    (tmp_path / "large.csv").write_text("id,place,amount\n" + "\n".join(lines), encoding="utf-8")
    (tmp_path / "small.csv").write_text("id,place\n1,x\n", encoding="utf-8")
    assert (tmp_path / "large.csv").stat().st_size > LARGE_TEXT
    return tmp_path


async def read(folder: Path, name: str, **settings: Any) -> Any:
    return await Registry(toolbox.open(Surroundings.here(folder), settings))["read_csv"].call({"path": name})


async def test_a_large_file_is_read_by_columns_and_a_small_one_is_not(folder: Path) -> None:
    assert type(await read(folder, "large.csv")) is Table
    assert type(await read(folder, "small.csv")) is list


async def test_without_the_engine_or_with_the_setting_off_the_plain_way_reads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = await read(folder, "large.csv", columnar=False)
    assert type(rows) is list
    assert (await read(folder, "large.csv")).rows() == rows
    monkeypatch.setitem(sys.modules, "polars", None)
    columnar_engine.cache_clear()
    try:
        assert await read(folder, "large.csv") == rows
    finally:
        columnar_engine.cache_clear()


async def test_a_column_that_is_not_there_is_named_with_the_nearest_one(folder: Path) -> None:
    table = await read(folder, "large.csv")
    error = observe(lambda: RowTools().filter_rows(table, "amont", ">", 1))
    assert (error["code"], error["nearest"]) == ("tables.unknown-column", "amount")


async def test_a_million_rows_are_read_filtered_and_refused_as_rows(tmp_path: Path) -> None:
    with (tmp_path / "many.csv").open("w", encoding="utf-8") as file:
        file.write("id,amount\n")
        file.writelines(f"{number},{number % 100}\n" for number in range(500_001))
    table = await read(tmp_path, "many.csv")
    assert len(table) == 500_001
    assert len(RowTools().filter_rows(table, "amount", "==", 7)) == 5_000
    with pytest.raises(BicameralError) as caught:
        table.rows()
    assert caught.value.code == "run.too-large"

"""The tables toolbox: CSV and JSON as people have them, and operations that no mixture of cells can break."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bicameral.errors import Place, ToolError
from bicameral.toolboxes._table_files import LONGEST_TEXT, MAX_SAMPLE, MAX_TEXTS, short_texts
from bicameral.toolboxes.tables import toolbox
from bicameral.tools import Registry, Surroundings

Rows = list[dict[str, Any]]


@pytest.fixture
def tools(tmp_path: Path) -> Registry:
    return Registry(toolbox.open(Surroundings.here(tmp_path)))


PURE = Registry(toolbox.open(Surroundings.here(Path())))


async def call(name: str, tools: Registry = PURE, **arguments: Any) -> Any:
    return await tools[name].call(arguments)


async def refusal(name: str, tools: Registry = PURE, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await call(name, tools, **arguments)
    return caught.value


def test_the_tools_that_write_say_so(tools: Registry) -> None:
    assert {tool.name for tool in tools if tool.changes} == {"write_csv", "write_json"}
    assert {tool.name for tool in tools if tool.effect == "read"} == {"read_csv", "read_sheet", "read_json"}
    assert all("\n" not in tool.doc for tool in tools)


# Reading and writing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", []),
        ("a,b\n", []),
        ("a,b\n1,x\n", [{"a": 1, "b": "x"}]),
        ("a,b\r\n1,x\r\n\r\n2,y", [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]),
        ("\ufeffa;b\n1,5;x\n", [{"a": "1,5", "b": "x"}]),
        ("a\tb\nhello, world\t2\n", [{"a": "hello, world", "b": 2}]),
        ("a|b\n1|2\n", [{"a": 1, "b": 2}]),
        ('a,b\n"two\nlines","say ""hi"", ok"\n', [{"a": "two\nlines", "b": 'say "hi", ok'}]),
        ('name, city\nAnn, "Bonn; am Rhein"\n', [{"name": "Ann", "city": "Bonn; am Rhein"}]),
        ("a\nx;y\nz\n", [{"a": "x;y"}, {"a": "z"}]),
        ("a,a,,a_2\n1,2,3,4\n", [{"a": 1, "a_3": 2, "column_3": 3, "a_2": 4}]),
        ("a,b\n,\n", [{"a": "", "b": ""}]),
    ],
)
async def test_csv_is_read_as_people_have_it(tools: Registry, tmp_path: Path, text: str, rows: Rows) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert await call("read_csv", tools, path="t.csv") == rows


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        (" 4 ", 4),
        ("0", 0),
        ("1.50", 1.5),
        ("1e-07", 1e-07),
        ("true", True),
        ("FALSE", False),
        ("007", "007"),
        ("+4930123456", "+4930123456"),
        ("12e4", "12e4"),
        ("1.2.3", "1.2.3"),
        ("2025-01-05", "2025-01-05"),
        ("1e+999", "1e+999"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("１２", "１２"),
        ("9" * 5000, "9" * 5000),
        ("truely", "truely"),
    ],
)
async def test_only_what_is_surely_a_number_becomes_one(
    tools: Registry, tmp_path: Path, text: str, value: object
) -> None:
    (tmp_path / "t.csv").write_text(f"a,b\n{text},x\n")
    (row,) = await call("read_csv", tools, path="t.csv")
    assert (row["a"], type(row["a"])) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a,b\n1,2\n3\n", "tables.ragged", 3),
        ('a,b\n"x\ny",2\n3,4,5\n', "tables.ragged", 4),
        ('a,b\n1,"open\n2,3\n', "tables.bad-csv", 2),
        ('a,b\n"x"y,2\n', "tables.bad-csv", 2),
    ],
)
async def test_a_broken_csv_file_is_named_with_the_line(
    tools: Registry, tmp_path: Path, text: str, code: str, line: int
) -> None:
    (tmp_path / "t.csv").write_text(text)
    error = await refusal("read_csv", tools, path="t.csv")
    assert (error.code, error.place) == (code, Place(file="t.csv", line=line))


names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=6)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10).filter(
    lambda text: text.strip().lower() not in ("true", "false") and not any(c.isdigit() for c in text)
)
cells = texts | st.integers(-(10**30), 10**30) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
async def test_rows_come_back_from_csv_as_they_were_written(tools: Registry, data: st.DataObject) -> None:
    columns = data.draw(st.lists(names, min_size=1, max_size=4, unique=True))
    rows = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(columns, cells)), max_size=5))
    await call("write_csv", tools, path="t.csv", rows=rows)
    assert await call("read_csv", tools, path="t.csv") == rows


async def test_rows_with_other_keys_get_all_columns_in_order(tools: Registry, tmp_path: Path) -> None:
    rows: Rows = [{"b": 1, "a": None}, {"c": True, "a": [1, "x"]}, {"b": date(2025, 1, 5)}]
    await call("write_csv", tools, path="t.csv", rows=rows)
    assert (tmp_path / "t.csv").read_text() == 'b,a,c\n1,,\n,"[1, ""x""]",true\n2025-01-05,,\n'
    await call("write_csv", tools, path="t.csv", rows=[])
    assert (tmp_path / "t.csv").read_text() == ""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(value=json_values)
async def test_a_value_comes_back_from_json_as_it_was_written(tools: Registry, value: Any) -> None:
    await call("write_json", tools, path="v.json", value=value)
    assert await call("read_json", tools, path="v.json") == value


async def test_dates_are_written_in_iso_form(tools: Registry, tmp_path: Path) -> None:
    await call("write_json", tools, path="v.json", value={"at": datetime(2025, 1, 5, 9, 30)})
    assert json.loads((tmp_path / "v.json").read_text()) == {"at": "2025-01-05T09:30:00"}


async def test_json_lines_are_a_list(tools: Registry, tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text('{"a": 1}\n\n{"a": "x\u2028y"}\n')
    assert await call("read_json", tools, path="v.jsonl") == [{"a": 1}, {"a": "x\u2028y"}]
    (tmp_path / "v.jsonl").write_text('{"a": 1}\n{"a": }\n')
    error = await refusal("read_json", tools, path="v.jsonl")
    assert error.place == Place(file="v.jsonl", line=2, column=7)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,\n "b": }', Place(file="v.json", line=2, column=7)),
        ("", Place(file="v.json", line=1, column=1)),
        ("[NaN]", Place(file="v.json")),
        ("[" * 100_000, Place(file="v.json")),
        ("1" * 5000, Place(file="v.json")),
    ],
)
async def test_broken_json_is_named_with_line_and_column(
    tools: Registry, tmp_path: Path, text: str, place: Place
) -> None:
    (tmp_path / "v.json").write_text(text)
    error = await refusal("read_json", tools, path="v.json")
    assert (error.code, error.place) == ("tables.bad-json", place)


async def test_what_is_no_text_and_what_is_too_large_is_refused(tmp_path: Path) -> None:
    small = Registry(toolbox.open(Surroundings.here(tmp_path), {"max_bytes": 10}))
    (tmp_path / "b.csv").write_bytes(b"a\0b")
    (tmp_path / "l.csv").write_bytes(b"a" * 11)
    for name in ("read_csv", "read_json"):
        assert (await refusal(name, small, path="b.csv")).code == "files.binary"
        assert (await refusal(name, small, path="l.csv")).code == "files.too-large"
        assert (await refusal(name, small, path="../x.csv")).code == "files.outside"


# Working on rows ----------------------------------------------------------------------------------------------------

ROWS: Rows = [
    {"name": "Ann", "city": "Bonn", "age": 30, "when": "2025-01-05", "ok": True},
    {"name": "Bob", "city": "Köln", "age": 9, "when": "2024-12-31", "ok": False},
    {"name": "Cyd", "city": "Bonn", "age": "n/a", "when": "", "ok": True},
    {"name": "Dan", "city": "bonn", "when": None, "ok": "true"},
]


@pytest.mark.parametrize(
    ("column", "op", "value", "found"),
    [
        ("age", ">", 10, ["Ann"]),
        ("age", ">", "10", ["Ann"]),
        ("age", "<", "10.5", ["Bob"]),
        ("age", "==", 30.0, ["Ann"]),
        ("age", "!=", 30, ["Bob", "Cyd", "Dan"]),
        ("age", "<", "x", ["Cyd"]),
        ("age", "==", None, ["Dan"]),
        ("age", "<", None, []),
        ("city", "==", "Bonn", ["Ann", "Cyd"]),
        ("city", "contains", "bON", ["Ann", "Cyd", "Dan"]),
        ("age", "contains", 3, ["Ann"]),
        ("when", ">=", "2025-01-01", ["Ann"]),
        ("when", ">=", date(2025, 1, 1), ["Ann"]),
        ("ok", "==", True, ["Ann", "Cyd", "Dan"]),
        ("ok", "==", "false", ["Bob"]),
        ("name", ">", 5, []),
        ("name", "==", ["Ann"], []),
    ],
)
async def test_numbers_compare_with_numbers_and_text_with_text(
    column: str, op: str, value: object, found: list[str]
) -> None:
    kept = await call("filter_rows", rows=ROWS, column=column, op=op, value=value)
    assert [row["name"] for row in kept] == found


anything = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
anything |= st.dates() | st.datetimes() | st.lists(st.integers(), max_size=2) | st.just({"a": 1})


def row(a: object, b: object) -> dict[str, Any]:
    return {"b": b} if a is None else {"a": a}


tables = st.lists(st.builds(row, anything, anything), max_size=8).map(lambda rows: [{"a": 0}, *rows])


@given(tables, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "contains"]), anything)
async def test_no_mixture_of_cells_breaks_a_comparison(rows: Rows, op: str, value: object) -> None:
    kept = await call("filter_rows", rows=rows, column="a", op=op, value=value)
    assert all(row in rows for row in kept)
    if op == "==":
        others = await call("filter_rows", rows=rows, column="a", op="!=", value=value)
        assert len(kept) + len(others) == len(rows)


@given(tables, st.booleans())
async def test_sorting_any_mixture_is_a_permutation_and_stable_under_repetition(rows: Rows, descending: bool) -> None:
    once = await call("sort_rows", rows=rows, by="a", descending=descending)
    assert Counter(map(repr, once)) == Counter(map(repr, rows))
    assert await call("sort_rows", rows=once, by="a", descending=descending) == once


async def test_empty_cells_come_last_in_both_directions() -> None:
    for descending, expected in ((False, [9, 30, "n/a", None]), (True, ["n/a", 30, 9, None])):
        ordered = await call("sort_rows", rows=ROWS, by="age", descending=descending)
        assert [row.get("age") for row in ordered] == expected


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers())))
async def test_groups_add_up_to_the_whole(pairs: list[tuple[str, int]]) -> None:
    rows: Rows = [{"k": key, "n": number} for key, number in pairs]
    groups = await call("group_rows", rows=rows, by="k", column="n")
    assert sum(group["n"] for group in groups) == sum(number for _, number in pairs)
    assert [group["k"] for group in groups] == list(dict.fromkeys(key for key, _ in pairs))


@pytest.mark.parametrize(
    ("how", "result"),
    [("sum", [0.6, 5]), ("mean", [0.3, 5]), ("min", [0.1, 5]), ("max", [0.5, 5]), ("count", [3, 1])],
)
async def test_totals_are_what_a_person_would_write(how: str, result: list[object]) -> None:
    rows: Rows = [{"k": "a", "n": 0.1}, {"k": "b", "n": "5"}, {"k": "a", "n": 0.5}, {"k": "a", "n": ""}]
    groups = await call("group_rows", rows=rows, by="k", column="n", how=how)
    assert [float(group["n"]) for group in groups] == result


async def test_counting_needs_no_column_and_a_group_keeps_its_name() -> None:
    assert await call("group_rows", rows=ROWS[:3], by="city", column="people", how="count") == [
        {"city": "Bonn", "people": 2},
        {"city": "Köln", "people": 1},
    ]
    assert (await call("group_rows", rows=ROWS, by="city", column="city", how="count"))[0] == {
        "city": "Bonn",
        "count": 2,
    }


async def test_a_cell_that_cannot_be_added_is_named() -> None:
    error = await refusal("group_rows", rows=ROWS, by="city", column="age")
    assert error.code == "tables.not-a-number"
    assert "'n/a'" in error.message


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
async def test_a_join_pairs_every_two_rows_with_the_same_key(left: list[int], right: list[int]) -> None:
    joined = await call(
        "join_rows",
        left=[{"k": key, "l": index} for index, key in enumerate(left)],
        right=[{"k": str(key), "r": index} for index, key in enumerate(right)],
        on="k",
    )
    expected = [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b]
    assert [(row["l"], row["r"]) for row in joined] == expected


async def test_a_join_keeps_both_values_of_a_common_name_and_joins_nothing_on_nothing() -> None:
    left: Rows = [{"id": 1, "name": "a"}, {"id": None, "name": "b"}, {"name": "c"}]
    right: Rows = [{"id": 1, "name": "x"}, {"id": None, "name": "y"}]
    assert await call("join_rows", left=left, right=right, on="id") == [{"id": 1, "name": "a", "name_right": "x"}]


async def test_a_join_that_explodes_is_stopped() -> None:
    rows: Rows = [{"k": 1}] * 2000
    assert (await refusal("join_rows", left=rows, right=rows, on="k")).code == "tables.too-many"


async def test_selected_columns_come_in_the_order_asked_for() -> None:
    assert await call("select_columns", rows=ROWS[2:], columns=["age", "name"]) == [
        {"age": "n/a", "name": "Cyd"},
        {"age": None, "name": "Dan"},
    ]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("filter_rows", {"column": "Citty", "op": "==", "value": 1}),
        ("sort_rows", {"by": "citi"}),
        ("select_columns", {"columns": ["name", "CITY"]}),
        ("group_rows", {"by": "cty", "column": "age"}),
        ("group_rows", {"by": "name", "column": "ciity"}),
    ],
)
async def test_an_unknown_column_is_answered_with_the_nearest(name: str, arguments: dict[str, Any]) -> None:
    error = await refusal(name, rows=ROWS, **arguments)
    assert (error.code, error.nearest) == ("tables.unknown-column", "city")
    assert "'name'" in (error.expected or "")


async def test_a_table_without_rows_has_no_wrong_columns() -> None:
    assert await call("filter_rows", rows=[], column="x", op="==", value=1) == []
    assert await call("join_rows", left=[], right=[{"k": 1}], on="k") == []
    assert (await refusal("join_rows", left=[{"k": 1}], right=[{"j": 1}], on="k")).code == "tables.unknown-column"


def test_as_many_short_texts_are_looked_at_as_the_limit_says() -> None:
    rows = [{"a": f"word {number}", "b": "x" * (LONGEST_TEXT + 1)} for number in range(MAX_SAMPLE + 10)]
    assert {name: len(texts) for name, texts in short_texts(rows).items()} == {"a": min(MAX_SAMPLE, MAX_TEXTS)}

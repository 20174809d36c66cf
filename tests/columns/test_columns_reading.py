"""Kinds of columns are found fast, and are what reading each cell by itself finds."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.columns import (
    Amount,
    DecimalMark,
    find_column_kind,
    is_iso_date,
    is_missing,
    notation_reader,
    parse_amount,
    parse_amounts,
    parse_date,
    parse_number,
    parse_yes_no,
)
from bicameral.columns._notations import MEMO_SIZE, ReadingMemo

MARKS: tuple[DecimalMark, DecimalMark] = (".", ",")


def write_amount(number: int, group: str, mark: str, cents: str, unit: str) -> str:
    return f"{number:,}".replace(",", group) + (mark + cents if cents else "") + unit


def write_day(day: dt.date, form: str) -> str:
    return form.format(d=day.day, m=day.month, y=day.year, iso=day.isoformat())


digits = st.text("0123456789", min_size=1, max_size=4)
pieces = st.sampled_from(
    [".", ",", "'", "’", " ", "\u00a0", "-", "−", "+", "%", "€", "EUR", "$", "Fr.", "x", "–", "１"]
)
near_amounts = st.lists(st.one_of(digits, digits, pieces), min_size=1, max_size=8).map("".join)
grouped = st.builds(
    write_amount,
    st.integers(-(10**9), 10**9),
    st.sampled_from(["", ".", ",", "'", " ", "\u202f"]),
    st.sampled_from([".", ","]),
    st.sampled_from(["", "5", "50", "500"]),
    st.sampled_from(["", " €", " EUR", " CHF", "%", ",-- €"]),
)
FORMS = ["{d}.{m}.{y}", "{d}/{m}/{y}", "{m}/{d}/{y}", "{iso}", "{iso}T10:00:00", "{d}. März {y}", "{y}/{m}/{d}"]
days = st.builds(write_day, st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), st.sampled_from(FORMS))
words = st.sampled_from(
    ["yes", "no", "ja", "nein", "Oui", "x", "y", "n", "n/a", "-", "tbd", "soon", "007", "1e400", ""]
)
natives = st.one_of(st.integers(-9, 9), st.sampled_from([1.5, 1.2]), st.booleans(), st.none(), st.dates())
columns: st.SearchStrategy[list[Any]] = st.one_of(
    st.lists(st.one_of(grouped, near_amounts), max_size=8),
    st.lists(days, max_size=8),
    st.lists(words, max_size=8),
    st.lists(st.one_of(grouped, days, words, natives), max_size=8),
    st.lists(st.one_of(grouped, natives), max_size=8),
)


@given(st.one_of(near_amounts, grouped))
def test_both_readings_of_an_amount_are_those_of_each_notation(text: str) -> None:
    assert parse_amounts(text) == tuple(parse_amount(text, mark) for mark in MARKS)


@pytest.mark.parametrize(
    "text", ["5.-- €", "€ -5", "- €5", "5  €", "1.", "+5", "0", "-0,5", "0.000", "1 234\u00a0€", "€", "1,2,3"]
)
def test_both_readings_of_odd_amounts_are_those_of_each_notation(text: str) -> None:
    assert parse_amounts(text) == tuple(parse_amount(text, mark) for mark in MARKS)


@given(columns)
def test_a_column_is_what_reading_each_cell_by_itself_finds(cells: list[Any]) -> None:
    found = find_column_kind(cells)
    assert (found.kind, found.notation, found.unread, found.units) == slow_column(cells)


@given(columns)
def test_a_column_reads_its_cells_as_its_notation_does(cells: list[Any]) -> None:
    column = find_column_kind(cells)
    if column.notation and not column.plain:
        assert [column.reads(cell) for cell in cells] == [notation_reader(column.notation)(cell) for cell in cells]
        values = [slow_reading(column.notation, cell) for cell in cells]
        assert [column.reads(cell) for cell in cells] == values


def test_what_was_read_before_is_bounded() -> None:
    memo = ReadingMemo()
    assert not memo.make_room(MEMO_SIZE + 1)
    for notation in ("a", "b"):
        for number in range(0, MEMO_SIZE, 1 << 14):
            assert memo.make_room(1 << 14)
            memo.texts(notation).update((str(each), None) for each in range(number, number + (1 << 14)))
            assert sum(len(memo.texts(each)) for each in ("a", "b")) <= MEMO_SIZE
    assert memo.texts("b")


# -- the slow reading: cell by cell, each notation by itself


def is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def slow_reading(notation: str, cell: Any) -> Any:
    kind, _, form = notation.partition(": ")
    if kind == "yes/no":
        word = cell.strip().casefold() if isinstance(cell, str) else None
        if form == "x":
            return False if blank(cell) else True if word == "x" else parse_yes_no(cell)
        if form == "1/0" and is_number(cell) and cell in (0, 1):
            return bool(cell)
        if form and form != "1/0" and word in form.split("/"):
            return word == form.split("/")[0]
        return parse_yes_no(cell)
    if kind in ("date", "datetime"):
        if isinstance(cell, dt.date):
            return cell.isoformat()
        order: Any = form or None
        day = parse_date(cell, order) if isinstance(cell, str) else None
        return None if day is None else cell.strip() if is_iso_date(cell.strip()) else day.isoformat()
    if is_number(cell):
        return Amount(Decimal(str(cell)))
    if not isinstance(cell, str):
        return None
    if form in ("", "1.234?"):
        return None if parse_number(cell) is None else Amount(Decimal(cell.strip()))
    return parse_amount(cell, "." if form == "1,234.5" else ",")


def slow_fits(cells: list[Any], notations: list[str]) -> bool:
    def read(cell: Any) -> bool:
        return any(slow_reading(notation, cell) is not None for notation in notations)

    misfits = sum(not read(cell) and not is_missing(cell) for cell in cells)
    return any(map(read, cells)) and misfits <= len(cells) // 5


def slow_choice(cells: list[Any], first: str, second: str) -> str | None:
    """The notation of two that the cells decide; `?` if they do not, None if they are of neither."""
    fitting = [each for each in (first, second) if slow_fits(cells, [each])]
    if not fitting:
        return "?" if slow_fits(cells, [first, second]) else None
    if len(fitting) == 1:
        return fitting[0]
    pairs = [(slow_reading(first, cell), slow_reading(second, cell)) for cell in cells]
    if all(one == other for one, other in pairs):
        return first
    only_first = any(other is None and one is not None for one, other in pairs)
    only_second = any(one is None and other is not None for one, other in pairs)
    return "?" if only_first == only_second else second if only_second else first


def slow_column(given_cells: list[Any]) -> tuple[str, str, int, tuple[str, ...]]:
    cells = [cell for cell in given_cells if not blank(cell)]

    def made(kind: str, notation: str, by: str = "", units: tuple[str, ...] = ()) -> Any:
        return kind, notation, sum(slow_reading(by or notation, cell) is None for cell in cells), units

    if all(type(cell) in (int, float, type(None)) for cell in given_cells):
        return ("number", "number", 0, ()) if cells else ("empty", "", 0, ())
    if not cells:
        return "empty", "", 0, ()
    if all(type(cell) is bool for cell in cells) and not any(isinstance(cell, str) for cell in given_cells):
        return "yes/no", "yes/no", 0, ()
    plain = [is_number(cell) or (isinstance(cell, str) and parse_number(cell) is not None) for cell in cells]
    if any(plain) and all(fits or is_missing(cell) for fits, cell in zip(plain, cells, strict=True)):
        texts = [cell for cell, fits in zip(cells, plain, strict=True) if fits and isinstance(cell, str)]
        point = [parse_amount(text, ".") for text in texts]
        comma = [parse_amount(text, ",") for text in texts]
        twofold = any(one != other and other is not None for one, other in zip(point, comma, strict=True))
        decided = any(other is None for other in comma) or any(isinstance(cell, float) for cell in cells)
        return made("number", "number: 1.234?" if twofold and not decided else "number")
    folded: set[Any] = {cell.strip().casefold() if isinstance(cell, str) else type(cell) for cell in cells}
    if folded == {"x"} and len(cells) < len(given_cells):
        return made("yes/no", "yes/no: x")
    for yes, no in (("y", "n"), ("j", "n"), ("o", "n"), ("s", "n"), ("t", "f")):
        if folded == {yes, no}:
            return made("yes/no", f"yes/no: {yes}/{no}")
    if any(isinstance(cell, str | bool) for cell in cells) and slow_fits(cells, ["yes/no"]):
        return made("yes/no", "yes/no")
    worded = [cell for cell in cells if not (is_number(cell) and cell in (0, 1))]
    told = len(worded) < len(cells) and any(isinstance(cell, str) for cell in worded)
    if told and all(parse_yes_no(cell) is not None for cell in worded):
        return made("yes/no", "yes/no: 1/0")
    if not any(isinstance(cell, int | float) for cell in cells):
        chosen = slow_choice(cells, "date: day first", "date: month first")
        if chosen is not None and all(is_iso_date(cell) or is_missing(cell) for cell in cells):
            timed = any(isinstance(cell, str) and len(cell.strip()) > 10 for cell in cells)
            return made("date", "datetime" if timed else "date", "date: day first")
        if chosen is not None:
            return ("ambiguous", "", 0, ()) if chosen == "?" else made("date", chosen)
    if not any(isinstance(cell, dt.date | bool) for cell in cells):
        chosen = slow_choice(cells, "number: 1,234.5", "number: 1.234,5")
        if chosen == "?" or (chosen == "number: 1.234,5" and any(isinstance(cell, float) for cell in cells)):
            return "ambiguous", "", 0, ()
        if chosen is not None:
            amounts = [found for cell in cells if (found := slow_reading(chosen, cell)) is not None]
            units = tuple(sorted({found.unit for found in amounts if found.unit}))
            if "%" in units and (len(units) > 1 or any(not found.unit for found in amounts)):
                return "mixed", "", 0, ()
            kind = "money" if units and units != ("%",) else "number"
            return made(kind, chosen.replace("number", kind), chosen, units)
    return "text" if all(isinstance(cell, str) for cell in cells) else "mixed", "", 0, ()

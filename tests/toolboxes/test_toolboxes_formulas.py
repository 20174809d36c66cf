"""Text in a table is never computed by a spreadsheet, and is read back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from bicameral.toolboxes._table_files import escape_formulas, has_formulas, parse_csv, render_csv, unescape_formulas  # pyright: ignore[reportPrivateUsage]  # pyright: ignore[reportPrivateUsage]

CELLS = st.text(st.sampled_from("=+-@'\";, \t\n\rab1.\uff1d\u200b"), max_size=12)


@given(CELLS)
def test_what_is_escaped_is_given_back(text: str) -> None:
    assert unescape_formulas(escape_formulas(text)) == text


@given(CELLS)
def test_an_escaped_text_is_no_formula_in_any_of_its_parts(text: str) -> None:
    for part in escape_formulas(text).replace("\t", ";").replace("\n", ";").replace("\r", ";").split(";"):
        assert not part.startswith(("=", "@", "\uff1d"))
        assert not part.startswith(("+", "-")) or not any(each in part for each in "=@ab")


@pytest.mark.parametrize(
    "text", ["-5", "+49 30 1234", "-12.5 %", "+1 (555) 010-9999", "a=b", "me@example.com", "'quoted'"]
)
def test_numbers_telephones_and_plain_words_stay_as_they_are(text: str) -> None:
    assert escape_formulas(text) == text
    assert not has_formulas(text)


@pytest.mark.parametrize(
    "text", ["=1", "@SUM(A1)", "+cmd|x", " =1", '"=1', "-2+cmd|x", "a;=1", "a\n+b", "\uff1d1", "'=1"]
)
def test_formulas_are_found_and_escaped(text: str) -> None:
    assert escape_formulas(text) != text
    assert has_formulas(text)


@given(st.lists(st.fixed_dictionaries({"=a": CELLS, "b": st.integers(), "c": CELLS}), min_size=1, max_size=3))
def test_a_written_table_reads_back_as_it_was(rows: list[dict[str, object]]) -> None:
    read = parse_csv(render_csv(rows), "t.csv")
    assert [row["b"] for row in read] == [row["b"] for row in rows]
    for name in ("=a", "c"):
        # A text that is a number has always been read as one.
        assert [str(row[name]).strip() for row in read] == [str(row[name]).strip() for row in rows]

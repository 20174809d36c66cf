"""JSON from strangers: what is read is what the standard library reads, but for what no plan could use."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.parsing import SHORT_TEXT, InvalidJson, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_an_ordinary_value_is_read_as_ever(value: Any) -> None:
    text = json.dumps(value)
    assert read_json(text, what="it") == json.loads(text)


def test_a_long_text_is_read_the_same_way_and_its_error_has_a_place() -> None:
    value = [{"name": f"n{n} ü \ud800", "of": [n, n / 2, None]} for n in range(20_000)]
    text = json.dumps(value)
    assert len(text) > SHORT_TEXT
    assert read_json(text, what="it") == value
    with pytest.raises(InvalidJson) as caught:
        read_json(text[:-1] + "\n]]", what="it")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "Infinity",
        "[1e999]",
        "[-1e400]",
        "[" + "1" * 5_000 + "]",
        "[" * 101 + "]" * 101,
        "[" * 100_000,
        "",
        "[1,]",
    ],
)
@pytest.mark.parametrize("long", [False, True])
def test_what_no_plan_can_use_is_refused(text: str, long: bool) -> None:
    with pytest.raises(InvalidJson):
        read_json(f'["{"x" * SHORT_TEXT}", {text}]' if long else text, what="it")


def test_digits_are_bounded_also_where_python_was_told_not_to() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(InvalidJson):
            read_json("[" + "1" * 100_000 + "]", what="it")
    finally:
        sys.set_int_max_str_digits(before)

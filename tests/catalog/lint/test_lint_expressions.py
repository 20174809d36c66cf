"""Conditions: what nobody said stays unknown, unless it makes no difference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.catalog.lint._scope import parse_stack_condition
from bicameral.errors import CatalogError
from bicameral.expressions import Unknown


def asked(text: str, **known: Any) -> Any:
    return parse_stack_condition(text).evaluate(lambda name: known.get(name, Unknown(frozenset({name}))))


@pytest.mark.parametrize(
    ("text", "known", "value"),
    [
        ("a and b", {"a": False}, False),
        ("a and b", {"b": False}, False),
        ("a or b", {"b": True}, True),
        ("not a", {"a": False}, True),
        ("n > 3 or n < 0", {"n": 4}, True),
        ("2 * n + 1 >= m / 2", {"n": 2, "m": 10}, True),
        ("kind in ('x', 'y')", {"kind": "y"}, True),
        ("kind not in ('x', 'y')", {"kind": "y"}, False),
        ("kind == other", {"kind": "x", "other": "x"}, True),
        ("n > 3", {"n": "many"}, False),
        ("n / m > 1", {"n": 1, "m": 0}, False),
    ],
)
def test_what_is_known_is_decided(text: str, known: dict[str, Any], value: bool) -> None:
    assert asked(text, **known) is value


@pytest.mark.parametrize(
    ("text", "known", "names"),
    [
        ("a and b", {"a": True}, {"b"}),
        ("a or b", {}, {"a", "b"}),
        ("not a", {}, {"a"}),
        ("n > m * 2", {"n": 1}, {"m"}),
        ("a and (b or V9)", {"a": True, "b": False}, {"V9"}),
        ("V20.max_retries > 1", {}, {"V20.max_retries"}),
    ],
)
def test_what_is_not_known_is_named(text: str, known: dict[str, Any], names: set[str]) -> None:
    assert asked(text, **known) == Unknown(frozenset(names))


@pytest.mark.parametrize("text", ["a b", "f(a)", "a if b else c", "[a]", "a < b < c", "x.y.z", "lambda: a", ""])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_stack_condition(text)
    assert caught.value.code == "catalog.bad-data"


@given(st.sets(st.sampled_from("abc")), st.data())
def test_more_facts_never_change_what_was_decided(known: set[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(["a and (b or not c)", "not (a and b) or c", "a or b and c", "not a or not b"]))
    values = {name: data.draw(st.booleans()) for name in "abc"}
    few = asked(text, **{name: values[name] for name in known})
    if not isinstance(few, Unknown):
        assert few is asked(text, **values)

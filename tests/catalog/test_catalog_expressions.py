"""The arithmetic of costs: it computes what Python would, and nothing but numbers ever comes of it."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from bicameral.catalog import SIZES, CatalogError, Expression, default_sizes, parse_expression
from bicameral.errors import Place
from bicameral.expressions import Binary, Call, Constant, Name, Node
from property_examples import examples

NAMES = ("items", "steps", "max_rounds", "k")
VALUES: dict[str, float] = {"items": 3, "steps": 4, "max_rounds": 5, "k": 0.5}


def _calls(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Binary, st.sampled_from("+-*/"), inner, inner),
        st.builds(Call, st.sampled_from(["min", "max"]), several),
        st.builds(Call, st.just("ceil"), st.tuples(inner)),
    )


leaves: st.SearchStrategy[Node] = st.one_of(
    st.builds(Constant, st.integers(0, 1_000)),
    st.builds(Constant, st.decimals("0", "100", places=2).map(float)),
    st.builds(Name, st.sampled_from(NAMES)),
)
trees: st.SearchStrategy[Node] = st.recursive(leaves, _calls, max_leaves=12)


def written(tree: Node) -> str:
    match tree:
        case Constant(value=value):
            return f"{value}"
        case Name(name=name):
            return name
        case Binary(operator=operator, left=left, right=right):
            return f"({written(left)} {operator} {written(right)})"
        case Call(function=name, arguments=arguments):
            return f"{name}({', '.join(map(written, arguments))})"
        case _:
            raise TypeError(tree)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1 + max_rounds", 6),
        ("items * steps - 2", 10),
        ("items - steps - 1", -2),
        ("min(items, steps, 2)", 2),
        ("ceil(items / 2)", 2),
        ("30 * items + max(0, steps - 5)", 90),
        ("0.1 * items", pytest.approx(0.3)),
        ("  items\n", 3),
    ],
)
def test_an_expression_has_the_value_that_it_says(text: str, value: float) -> None:
    assert parse_expression(text).value(VALUES) == value


@given(trees)
def test_what_is_written_reads_back_as_the_same_tree(tree: Node) -> None:
    assert parse_expression(written(tree)).tree == tree


@given(trees)
@settings(max_examples=examples(300))
def test_the_value_is_the_one_that_python_would_find(tree: Node) -> None:
    text = written(tree)
    allowed: dict[str, Any] = {"__builtins__": {}, "min": min, "max": max, "ceil": math.ceil, **VALUES}
    try:
        expected = eval(text, allowed)
    except (ZeroDivisionError, OverflowError):
        with pytest.raises(CatalogError, match=r"catalog\.no-value"):
            parse_expression(text).value(VALUES)
        return
    assert parse_expression(text).value(VALUES) == expected


@given(trees)
def test_the_names_are_those_that_need_a_value(tree: Node) -> None:
    found = parse_expression(written(tree))
    assert found.names == {name for name in NAMES if name in written(tree)}
    for name in found.names:
        without = {key: value for key, value in VALUES.items() if key != name}
        with pytest.raises(CatalogError) as told:
            found.value(without)
        assert told.value.code == "catalog.no-value"


words = st.sampled_from(
    "items steps 1 0 2.5 + - * / // ** % ( ) , . [ ] { } min max ceil abs open __import__ lambda if else for in not "
    "and or == < > = := : ; 'a' \"b\" \\ True None print exec ... 1e9 0x1f 1_000 @ ~ ^ & | ! # \n \t \x00 é ∞".split(
        " "
    )
)


@given(st.one_of(st.text(), st.lists(words, max_size=30).map(" ".join), st.lists(words, max_size=30).map("".join)))
@settings(max_examples=examples(500))
@example("(" * 300 + "1" + ")" * 300)
@example("-" * 399 + "1")
@example("1+" * 199 + "1")
@example("1if 2else 3")
@example("min(*items)")
@example("9" * 399)
@example("ceil(1) ** ceil(2)")
@example("a" * 399 + "!")
def test_whatever_is_written_is_an_expression_or_a_clear_mistake(text: str) -> None:
    outcome = _tried(text)
    if isinstance(outcome, CatalogError):
        assert outcome.code in ("catalog.bad-expression", "catalog.no-value")
        assert outcome.expected or outcome.code == "catalog.no-value"
    else:
        assert type(outcome) in (int, float)
        assert math.isfinite(outcome)


def _tried(text: str) -> float | CatalogError:
    """The value with 2 for every name, or the mistake; any other error is a fault."""
    try:
        found = parse_expression(text)
        return found.value(dict.fromkeys(found.names, 2))
    except CatalogError as error:
        return error


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "items.real",
        "items.__class__",
        "__import__('os').system('true')",
        "open('x')",
        "print(1)",
        "abs(items)",
        "min",
        "min()",
        "min(items)",
        "ceil(items, 2)",
        "max(items, default=1)",
        "max(*items)",
        "items[0]",
        "[items]",
        "items ** 2",
        "items // 2",
        "-items",
        "items % 2",
        "items if steps else 1",
        "items and steps",
        "not items",
        "items < steps",
        "lambda: 1",
        "True",
        "None",
        "'items'",
        "1e300",
        "1_000",
        "0x10",
        "1j",
        "items steps",
        "1;2",
        "(items := 3)",
        "await items",
        "9999999999999",
    ],
)
def test_nothing_but_arithmetic_gets_in(text: str) -> None:
    with pytest.raises(CatalogError) as told:
        parse_expression(text)
    assert told.value.code == "catalog.bad-expression"


class Trap(dict[str, float]):
    """Values that would tell if anything but a name were looked up."""

    looked: list[str]

    def __init__(self, values: dict[str, float]) -> None:
        super().__init__(values)
        self.looked = []

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        self.looked.append(key)
        return super().get(key, default)  # type: ignore[arg-type]


@given(trees)
def test_only_the_names_of_an_expression_are_looked_up(tree: Node) -> None:
    found = parse_expression(written(tree))
    values = Trap(VALUES)
    try:
        found.value(values)
    except CatalogError:
        return
    assert set(values.looked) == found.names


@pytest.mark.parametrize("value", [True, "3", None, [1], float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_no_number_is_not_reckoned_with(value: object) -> None:
    with pytest.raises(CatalogError) as told:
        parse_expression("items + 1").value({"items": value})  # type: ignore[dict-item]
    assert told.value.code == "catalog.no-value"


def test_numbers_beyond_all_measure_are_told_as_such() -> None:
    huge = {"items": 10**5000}
    for text in ("items / 3", "ceil(items / 2)", "items * 0.5", "items + 1"):
        with pytest.raises(CatalogError, match="no end"):
            parse_expression(text).value(huge)


def test_a_name_that_is_not_known_is_told_with_the_nearest() -> None:
    known = {*SIZES, "max_rounds"}
    assert isinstance(parse_expression("steps + max_rounds", known), Expression)
    with pytest.raises(CatalogError) as told:
        parse_expression("setps + 1", known, place=Place(file="costs.yaml", line=3))
    assert (told.value.code, told.value.nearest) == ("catalog.unknown-name", "steps")
    assert str(told.value).startswith("costs.yaml, line 3: ")


def test_a_hostile_text_is_refused_at_once() -> None:
    started = time.thread_time()
    for text in ("a" * 399 + "!", "a " * 199 + "!", "1" * 398 + "!", "(" * 399, "1+" * 199 + "!"):
        with pytest.raises(CatalogError):
            parse_expression(text)
    assert time.thread_time() - started < 2


def test_every_size_has_a_default_and_words() -> None:
    assert set(default_sizes()) == set(SIZES)
    assert all(size.default > 0 and size.what for size in SIZES.values())


def test_the_page_names_every_size_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "catalog.md").read_text(encoding="utf-8")
    for name, size in SIZES.items():
        unit = " tokens" if size.unit == "tokens" else ""
        assert f"| `{name}` | {size.what} | {size.default}{unit} |" in page

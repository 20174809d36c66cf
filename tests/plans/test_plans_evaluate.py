"""Evaluation: Python's meaning, closed against everything else of Python, and always soon done."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from plan_strategies import expressions

from bicameral.plans import (
    Answer,
    Apply,
    Arithmetic,
    Clause,
    Comprehension,
    Const,
    EvaluationError,
    Format,
    Get,
    Index,
    ListOf,
    Not,
    Ref,
    Shown,
    apply_update,
    compile_expr,
    evaluate_expr,
    parse,
)
from property_examples import examples

MARCH = dt.date(2026, 3, 31)


def expression(source: str) -> Any:
    """An expression written as in a plan."""
    (answer,) = parse(f"answer({source})").plan.steps
    assert isinstance(answer, Answer)
    return answer.value


def value(source: str, **variables: Any) -> Any:
    return evaluate_expr(expression(source), variables)


def code(source: str, **variables: Any) -> str:
    with pytest.raises(EvaluationError) as caught:
        value(source, **variables)
    return caught.value.code


@pytest.mark.parametrize(
    "source",
    [
        "1 + 2 * 3 - 4 // 3 % 2",
        "7 / 2",
        "-7 // 2",
        "2 * 3.5",
        "True + 1",
        "'a' + 'b' * 3",
        "[1, 2] + [3] * 2",
        "0 < 1 <= 1 < 2",
        "1 < 2 > 3",
        "None == 0 or [] or 'x'",
        "1 and 0 and 2",
        "not []",
        "'a' if 1 > 2 else 'b'",
        "1 == '1'",
        "[1, [2]] == [1, [2]]",
        "{'a': 1}['a']",
        "[1, 2, 3][-1]",
        "'hello'[1:4]",
        "[1, 2, 3, 4][::-2]",
        "2 in [1, 2] and 'b' in 'abc' and 'k' in {'k': 1} and 3 not in [1]",
        "[x * y for x in range(3) for y in range(x) if x != y]",
        "{k: len(k) for k in ['a', 'bb']}",
        "f'{3.14159:.2f}|{5:>4}|{1234567:,}|{0.5:.0%}|{7:03d}|{\"x\":<3}|{True}|{None}'",
        "sorted(['b', 'a', 'C'], key=lambda s: s.lower(), reverse=True)",
        "min(3, 1, 2) + max([4, 9]) + sum([1, 2.5]) + abs(-3)",
        "max(['aa', 'b'], key=lambda s: len(s))",
        "round(2.5) + round(3.14159, 2)",
        "int(' 42 ') + int(3.9) + float('1e3')",
        "'a,b,,c'.split(',') + ' x  y '.split()",
        "'a,b,c'.split(',', 1)",
        "'-'.join(['a', 'b']).upper().title().replace('A', 'z')",
        "'abcabc'.count('bc') + [1, 1].count(1) + 'abc'.find('z') + [5, 6].index(6)",
        "'7'.zfill(3) + 'x'.ljust(3, '.') + 'x'.rjust(3)",
        "'prefix-x'.removeprefix('prefix-').removesuffix('x') + '  s '.strip() + 'xxa'.lstrip('x')",
        "'12'.isdigit() and 'ab'.isalpha() and 'abc'.startswith('a') and 'abc'.endswith('c')",
        "any([0, 1]) and all([]) and bool('x')",
        "list(range(5, 0, -2)) + list('ab')",
        "{'a': 1, 'b': 2}.get('z', 3)",
        "list({'a': 1}.keys()) + list({'a': 1}.values())",
        "dict([['a', 1]])",
        "[text[:2] for text in ['abc', 'def']]",
    ],
)
def test_an_expression_means_what_python_means(source: str) -> None:
    assert value(source) == eval(source)


def test_pairs_are_lists_so_that_a_saved_value_is_the_same_value() -> None:
    assert value("[(i, x) for i, x in enumerate(['a'], 1)]") == [[1, "a"]]
    assert value("list(zip([1, 2], ['a', 'b'])) == [(1, 'a'), (2, 'b')]") is True
    assert value("[k + str(v) for k, v in {'a': 1}.items()]") == ["a1"]


def test_library_functions_beyond_python() -> None:
    rows = [{"c": "at", "n": 1}, {"c": "de", "n": 2}, {"c": "at", "n": 3}]
    assert value("count_by([r.c for r in rows])", rows=rows) == {"at": 2, "de": 1}
    assert value("count_by(rows, 'c')", rows=rows) == {"at": 2, "de": 1}
    assert value("group_by(rows, 'c')['de'][0].n", rows=rows) == 2
    assert value("group_by(rows, lambda r: r.n % 2)", rows=rows).keys() == {"1", "0"}
    assert value("mean([1, 2, 6])") == 3
    assert value("unique([2, 1, 2]) + set([3, 3])") == [2, 1, 3]
    assert value("unique([{'a': 1}, {'a': 1}, [1]])") == [{"a": 1}, [1]]
    assert value("flatten([[1], [2, 3]])") == [1, 2, 3]
    assert value("[first([]), first([], 0), last([1, 2]), first(xs)]", xs=["a"]) == [None, 0, 2, "a"]
    assert value("contains([1, 2], 2) and contains('abc', 'b')") is True


def test_dates_work_as_in_python() -> None:
    assert value("date('2026-03-31') == date(2026, 3, 31)") is True
    assert value("(date('2026-03-31') - timedelta(days=30)).isoformat()") == "2026-03-01"
    assert value("(date('2026-03-31') - date('2026-03-01')).days") == 30
    assert value("day.year * 100 + day.month", day=MARCH) == 202603
    assert value("day.replace(day=1)", day=MARCH) == dt.date(2026, 3, 1)
    assert value("day_name(day) + day.strftime(' %d %B %Y')", day=MARCH) == "Tuesday 31 March 2026"
    assert value("f'{day:%d.%m.}'", day=MARCH) == "31.03."
    assert value("datetime(2026, 3, 31, 9, 30).date()") == MARCH
    assert value("datetime('2026-03-31T09:30').time() == time('09:30')") is True
    assert value("combine(day, time(9, 30)).hour", day=MARCH) == 9
    assert value("timedelta(hours=1, minutes=30).total_seconds()") == 5400.0
    assert value("sum([timedelta(hours=1), timedelta(hours=2)]) / timedelta(hours=1)") == 3.0
    assert value("day.weekday()", day=MARCH) == 1


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-31",
        "2026/03/31",
        "2026-03-31T09:30:00Z",
        "31.03.2026",
        "31. 3. 2026",
        "31 March 2026",
        "31st of March 2026",
        "Mar 31, 2026",
        "Tuesday, March 31st, 2026",
        "3/31/2026",
        "31/3/2026",
    ],
)
def test_a_date_is_read_as_people_write_it(text: str) -> None:
    assert value("parse_date(text)", text=text) == MARCH


@pytest.mark.parametrize("text", ["03/04/2026", "tomorrow", "", "31 Febtober 2026", "2026-02-30", "9" * 10_000])
def test_what_is_no_one_date_is_refused(text: str) -> None:
    assert code("parse_date(text)", text=text) == "run.not-a-date"


def test_a_datetime_without_a_zone_is_taken_to_be_in_the_zone_of_the_other() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    aware, naive = dt.datetime(2026, 3, 31, 9, tzinfo=zone), dt.datetime(2026, 3, 31, 10)
    assert value("a < b and b > a and a != b", a=aware, b=naive) is True
    assert value("(b - a).total_seconds()", a=aware, b=naive) == 3600
    assert value("sorted([b, a])", a=aware, b=naive) == [aware, naive]
    assert value("max([b, a])", a=aware, b=naive) == naive


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 / 0", "run.division-by-zero"),
        ("1 % 0", "run.division-by-zero"),
        ("timedelta(days=1) / 0", "run.division-by-zero"),
        ("[1][1]", "run.index"),
        ("'ab'[5]", "run.index"),
        ("[1, 2][::0]", "run.index"),
        ("{'a': 1}['b']", "run.no-field"),
        ("{'a': 1}.b", "run.no-field"),
        ("group_by([{'a': 1}], 'b')", "run.no-field"),
        ("int('x')", "run.not-a-number"),
        ("int('3.5')", "run.not-a-number"),
        ("float('nan')", "run.not-a-number"),
        ("float('-inf')", "run.not-a-number"),
        ("date('31')", "run.not-a-date"),
        ("date(2026, 2, 30)", "run.not-a-date"),
        ("date('2026-03-31').replace(month=2)", "run.not-a-date"),
        ("[][0]", "run.empty"),
        ("min([])", "run.empty"),
        ("mean([])", "run.empty"),
        ("[1].index(2)", "run.not-found"),
        ("'a'.split('')", "run.not-found"),
        ("[a for a, b in [[1, 2, 3]]]", "run.unpack"),
        ("None + 1", "run.none"),
        ("None.a", "run.none"),
        ("sorted([1, None])", "run.none"),
        ("1 < 'a'", "run.type"),
        ("sorted([1, 'a'])", "run.type"),
        ("'a' + 1", "run.type"),
        ("{1: 2}", "run.type"),
        ("[x for x in 'abc']", "run.type"),
        ("date('2026-03-31') < datetime('2026-03-31T00:00')", "run.type"),
        ("nothing", "run.unbound"),
        ("len()", "run.bad-call"),
        ("sorted([1], by=2)", "run.bad-call"),
        ("1e308 * 10", "run.too-large"),
        ("date('9999-12-31') + timedelta(days=1)", "run.too-large"),
        ("timedelta(days=1000000000000)", "run.too-large"),
    ],
)
def test_what_goes_wrong_has_its_own_code(source: str, expected: str) -> None:
    assert code(source) == expected


def test_a_missing_key_is_told_with_the_nearest_one() -> None:
    with pytest.raises(EvaluationError) as caught:
        value("row.amuont", row={"amount": 1})
    assert caught.value.nearest == "amount"


# Attacks


@pytest.mark.parametrize(
    "field",
    ["__class__", "__dict__", "__init__", "__globals__", "mro", "tzinfo", "format", "real", "resolution", "min"],
)
@pytest.mark.parametrize(
    "holder", ["x", 1, 1.5, None, [1], MARCH, dt.datetime(2026, 1, 1), dt.timedelta(1), len, object()]
)
def test_no_attribute_of_a_python_object_can_be_reached(field: str, holder: object) -> None:
    with pytest.raises(EvaluationError):
        evaluate_expr(Get(value=Ref(name="x"), field=field), {"x": holder})


def test_a_key_that_looks_like_python_is_only_a_key() -> None:
    assert value("x.__class__", x={"__class__": "mine"}) == "mine"


@pytest.mark.parametrize(
    "spec",
    [">999999999", "999999999d", ".999999999f", "{0}", "!r", ">1001", "n", "c", "0" * 500, "%999999d", "__class__"],
)
@pytest.mark.parametrize("holder", [1, 1.5, "x", None, [1], {"a": 1}, MARCH, True])
def test_a_format_spec_cannot_ask_for_much_or_for_anything_else(spec: str, holder: object) -> None:
    expr = Format(parts=(Shown(value=Ref(name="x"), spec=spec),))
    with contextlib.suppress(EvaluationError):
        assert len(evaluate_expr(expr, {"x": holder})) <= 1000


@pytest.mark.parametrize("pattern", ["%1000000d", "%_9999999Y", "%", "%Q", "%E", "x" * 300, "%\0", "%-"])
def test_a_date_format_is_of_the_known_directives_only(pattern: str) -> None:
    assert code("day.strftime(pattern)", day=MARCH, pattern=pattern) == "run.not-a-date"


@pytest.mark.parametrize(
    "source",
    [
        "'a' * 1000000000",
        "1000000000 * 'a'",
        "[0] * 1000000000",
        "range(1000000000000)",
        "range(0, 0 - 1000000000000, 0 - 1)",
        "range(1, 10, 0)",
        "'x'.zfill(1000000000)",
        "'x'.ljust(1000000000)",
        "'x'.rjust(1000000000, '.')",
        "('a' * 100000).replace('', 'b' * 1000)",
        "('b' * 1000000).join(['a'] * 1000)",
        "[['a' * 1000000] * 1000] * 1000",
        "str([['a' * 10000] * 1000] * 3)",
        "[[0] * 1000] * 100000",
        "[0 for a in range(100000) for b in range(100000)]",
        "[0 for a in range(100000) for b in range(100000) if False]",
        "[[c for c in range(1000)] for a in range(1000) for b in range(1000)]",
        "[sum(range(1000000)) for a in range(100000)]",
        "[str(xs) for a in range(100000)]",
        "[xs == ys for a in range(100000)]",
        "[xs in yss for a in range(100000)]",
        "sorted(range(100000), key=lambda a: len([b for b in range(100000) if b == a]))",
        "[sorted(xs) for a in range(1000000)]",
        "['b' * 10000000 for a in range(1000000)]",
        "f'{text}{text}{text}'",
        "text + text",
        "flatten([xs] * 10000)",
        "round(1.5, 1000000000)",
        "int(digits)",
    ],
)
def test_nothing_gets_too_large_or_takes_long(source: str) -> None:
    xs = list(range(10_000))
    variables = {"xs": xs, "ys": list(xs), "yss": [list(xs)] * 50, "text": "x" * 6_000_000, "digits": "9" * 100_000}
    began = time.thread_time()
    with pytest.raises(EvaluationError) as caught:
        value(source, **variables)
    assert caught.value.code in {"run.too-large", "run.not-a-number"}
    assert time.thread_time() - began < 20


@pytest.mark.parametrize(
    "step", ["x + x", "[x, x]", "[x] * 1000", "{'a': x, 'b': x}", "x * x", "[x for i in range(9)]"]
)
@pytest.mark.parametrize("start", ["a", [1], 7])
def test_repeated_doubling_comes_to_an_end(step: str, start: Any) -> None:
    expr = expression(step)
    began = time.thread_time()

    def double() -> None:
        found = start
        for _ in range(10_000):
            found = evaluate_expr(expr, {"x": found})

    with pytest.raises(EvaluationError) as caught:
        double()
    assert caught.value.code in {"run.too-large", "run.type"}
    assert time.thread_time() - began < 20


def test_a_list_appended_to_itself_again_and_again_comes_to_an_end() -> None:
    def grow() -> None:
        xs: list[Any] = [0]
        for _ in range(100):
            xs = apply_update("append", xs, None, xs)

    with pytest.raises(EvaluationError) as caught:
        grow()
    assert caught.value.code == "run.too-large"


def test_what_others_hold_is_not_changed_by_an_update() -> None:
    xs, entries = [1], {"a": 1}
    assert apply_update("append", xs, None, 2) == [1, 2]
    assert apply_update("put", entries, "b", 2) == {"a": 1, "b": 2}
    assert apply_update("put", xs, 0, 5) == [5]
    assert apply_update("add", 1, None, 2) == 3
    assert (xs, entries) == ([1], {"a": 1})


@pytest.mark.parametrize(("op", "current"), [("append", "text"), ("put", 3), ("append", None), ("add", {})])
def test_an_update_of_what_cannot_be_updated_is_an_error(op: str, current: object) -> None:
    with pytest.raises(EvaluationError):
        apply_update(op, current, "k", 1)


def test_nesting_beyond_reason_is_an_error_not_a_crash() -> None:
    expr: Any = Ref(name="x")
    for _ in range(5_000):
        expr = Not(value=expr)
    with pytest.raises(EvaluationError) as caught:
        evaluate_expr(expr, {"x": 1})
    assert caught.value.code == "run.too-large"


def test_a_large_literal_is_an_error_not_a_crash() -> None:
    with pytest.raises(EvaluationError):
        evaluate_expr(Arithmetic(op="*", left=Const(value=10**15), right=Ref(name="x")), {"x": 1 << 999})


def test_a_lambda_is_never_a_value() -> None:
    assert code("[lambda x: x]") == "run.bad-call"
    assert code("len(lambda x: x)") == "run.bad-call"


def test_an_expression_is_compiled_once_and_forgotten_with_it() -> None:
    expr = Apply(function="upper", args=(Ref(name="x"),))
    assert compile_expr(expr) is compile_expr(expr)
    assert compile_expr(expr)({"x": "a"}) == "A"


def test_names_of_a_comprehension_do_not_leak() -> None:
    variables = {"x": 1, "xs": [5]}
    inner = Comprehension(element=Ref(name="x"), clauses=(Clause(names=("x",), over=Ref(name="xs")),))
    assert evaluate_expr(ListOf(items=(inner, Ref(name="x"))), variables) == [[5], 1]
    assert variables == {"x": 1, "xs": [5]}


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.timedeltas(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=examples(400))
@given(expressions(), st.dictionaries(st.sampled_from(["x", "lines", "mail", "len", "_1", "date"]), VALUES))
def test_evaluation_gives_a_plain_value_or_an_evaluation_error(expr: Any, variables: dict[str, Any]) -> None:
    try:
        found = evaluate_expr(expr, variables)
    except EvaluationError as error:
        found = error.code
    assert _plain(found)


@settings(max_examples=examples(400))
@given(
    st.sampled_from(["==", "!=", "+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "in", "not in", "[]"]),
    VALUES,
    VALUES,
)
def test_operators_are_total(op: str, left: Any, right: Any) -> None:
    source = "a[b]" if op == "[]" else f"a {op} b"
    try:
        assert _plain(value(source, a=left, b=right))
    except EvaluationError:
        assert op not in ("==", "!=")


def _plain(found: Any) -> bool:
    if isinstance(found, list):
        return all(map(_plain, found))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(found, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in found.items())  # pyright: ignore[reportUnknownVariableType]
    return found is None or isinstance(found, str | int | float | dt.date | dt.time | dt.timedelta)


def test_a_small_expression_takes_about_a_microsecond() -> None:
    run = compile_expr(expression("x + 1 > 3"))
    best = min(_timed(run) for _ in range(20))
    assert best < 5e-6


def _timed(run: Any) -> float:
    variables = {"x": 3}
    began = time.perf_counter()
    for _ in range(1000):
        run(variables)
    return (time.perf_counter() - began) / 1000


def test_an_index_of_any_value_is_no_way_into_python() -> None:
    with pytest.raises(EvaluationError):
        evaluate_expr(Index(value=Ref(name="x"), at=Const(value="__class__")), {"x": {"a": 1}})

"""Sums of lists, lengths of time, keys that compute and chains of methods: types, values, forms and bounds."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypedDict

import pytest

from bicameral.plans import Compute, EvaluationError, Report, check, evaluate_expr, parse, print_plan
from bicameral.tools import Registry, tool
from bicameral.types import DATE, DATETIME, DURATION, FLOAT, INT, STR, ListType, Type


class Event(TypedDict):
    title: str
    start: dt.datetime
    end: dt.datetime


@tool(effect="read")
def events() -> list[Event]:
    """The events."""
    return []


@tool(effect="read")
def lines() -> list[str]:
    """Some lines."""
    return []


@tool(effect="read")
def sizes() -> list[int]:
    """Some numbers."""
    return []


@tool(effect="read")
def today() -> dt.date:
    """The day."""
    return dt.date(2026, 11, 17)


REGISTRY = Registry([events, lines, sizes, today])
NAMES = "es = events()\nls = lines()\nns = sizes()\nday = today()\n"


def report(line: str) -> Report:
    parsed = parse(f"{NAMES}it = {line}\nanswer([es, ls, ns, day, it])", REGISTRY)
    return check(parsed.plan, REGISTRY, places=parsed.places)


ES: list[dict[str, Any]] = [
    {"title": "short", "start": dt.datetime(2026, 11, 20, 9), "end": dt.datetime(2026, 11, 20, 9, 30)},
    {"title": "long", "start": dt.datetime(2026, 11, 18, 9), "end": dt.datetime(2026, 11, 18, 12)},
]
VALUES: dict[str, Any] = {"es": ES, "ls": [" Aa ", "b,C"], "ns": [3, 1], "day": dt.date(2026, 11, 17)}


def value(line: str, **more: Any) -> Any:
    step = parse(f"{NAMES}it = {line}\nanswer(it)", REGISTRY).plan.steps[4]
    assert isinstance(step, Compute)
    return evaluate_expr(step.value, VALUES | more)


FORMS: dict[str, tuple[Type, Any]] = {
    "ls + ['x']": (ListType(STR), [" Aa ", "b,C", "x"]),
    "ls[:1] + ls[1:] + []": (ListType(STR), [" Aa ", "b,C"]),
    "ns + [1.5]": (ListType(FLOAT), [3, 1, 1.5]),
    "sorted(ns + [2])": (ListType(INT), [1, 2, 3]),
    "[e.title for e in es + es[:1]]": (ListType(STR), ["short", "long", "short"]),
    "es[0].end - es[0].start": (DURATION, dt.timedelta(minutes=30)),
    "es[0].start.date() - day": (DURATION, dt.timedelta(days=3)),
    "(es[0].start.date() - day).days": (INT, 3),
    "(day - es[0].start.date()).days": (INT, -3),
    "day + timedelta(days=ns[0] * 7)": (DATE, dt.date(2026, 12, 8)),
    "es[0].start + (es[1].end - es[1].start)": (DATETIME, dt.datetime(2026, 11, 20, 12)),
    "sum([e.end - e.start for e in es])": (DURATION, dt.timedelta(hours=3, minutes=30)),
    "max(es, key=lambda e: e.end - e.start).title": (STR, "long"),
    "min(es, key=lambda e: e.end - e.start).title": (STR, "short"),
    "sorted(es, key=lambda e: e.end - e.start, reverse=True)[0].title": (STR, "long"),
    "max(ns, key=lambda n: 10 - n)": (INT, 1),
    "ls[0].replace('a', 'b').strip()": (STR, "Ab"),
    "ls[1].lower().split(',')[1].strip()": (STR, "c"),
}


@pytest.mark.parametrize("line", FORMS)
def test_each_form_has_a_type_and_a_value_and_prints_as_itself(line: str) -> None:
    type_, expected = FORMS[line]
    found = report(line)
    assert found.ok, [str(each) for each in found.errors]
    assert found.types["it"] == type_
    assert value(line) == expected
    plan = parse(f"{NAMES}it = {line}\nanswer(it)", REGISTRY).plan
    assert parse(print_plan(plan), REGISTRY).plan.steps == plan.steps


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls + es", "list[str] + list[Event] has items of different types"),
        ("ns + ls", "list[int] + list[str] has items of different types"),
        ("ls + 'x'", "Use ls + ['x']."),
        ("ls - ls", "Use [x for x in ls if x not in ls]."),
        ("es[0].start - day", "Use es[0].start.date()."),
        ("day + 3", "Use day + timedelta(days=3)."),
        ("day + day", "date + date has no meaning"),
        ("ls[0] - ls[1]", "str - str has no meaning"),
        ("max(es, key=lambda e: e.end - e.title)", "datetime - str has no meaning"),
        ("ls.strip().lower()", "strip"),
        ("ns[0].strip()", "strip"),
    ],
)
def test_what_does_not_go_together_is_an_error_of_types(line: str, words: str) -> None:
    errors = report(line).errors
    assert {error.code for error in errors} == {"plan.wrong-type"}
    assert words in str(errors[0])


def test_a_list_does_not_grow_by_items_of_another_type() -> None:
    source = f"{NAMES}ls += es\nanswer([ls, ns, day])"
    parsed = parse(source, REGISTRY)
    assert [error.code for error in check(parsed.plan, REGISTRY).errors] == ["plan.wrong-type"]
    grown = parse(source.replace("ls += es", "ls += ['x']").replace("[ls,", "[ls, es,"), REGISTRY)
    assert check(grown.plan, REGISTRY).ok


def test_a_sum_of_lists_is_as_limited_as_any_value() -> None:
    half = ["x"] * 600_000
    assert len(value("ls + ['y']", ls=half)) == 600_001
    with pytest.raises(EvaluationError) as caught:
        value("ls + ls", ls=half)
    assert caught.value.code == "run.too-large"


def test_a_sum_that_doubles_what_is_inside_it_is_stopped() -> None:
    """Each sum holds the list before it twice: small in memory, and endless to walk over."""

    def double(grown: Any, times: int) -> Any:
        return grown if times == 0 else double(value("[ls] + [ls]", ls=grown), times - 1)

    assert double(["x"], 1) == [["x"], ["x"]]
    with pytest.raises(EvaluationError) as caught:
        double(["x"], 64)
    assert caught.value.code == "run.too-large"


def test_sums_in_a_loop_count_as_work() -> None:
    with pytest.raises(EvaluationError) as caught:
        value("[len(ls + ls) for n in range(1000)]", ls=["x"] * 10_000)
    assert caught.value.code == "run.too-large"

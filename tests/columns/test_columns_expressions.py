"""Expressions over many rows: what is compiled for the rows of a loop does what the library functions do."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import BicameralError
from bicameral.plans import FUNCTIONS, evaluate_expr, parse
from bicameral.plans.evaluate._bounds import CURRENT_RUN, RUN_WORK_KEY, RunWork

NOTATIONS = (
    *("yes/no", "yes/no: x", "yes/no: j/n", "yes/no: 1/0", "date", "datetime", "date: day first", "date: month first"),
    *("number", "number: 1.234?", "number: 1,234.5", "number: 1.234,5", "money: 1,234.5", "money: 1.234,5"),
)
cells = st.sampled_from(
    [
        *(None, "", "ja", "nein", "x", "j", "n", 1, 0, 1.5, True, "1.234", "1.234,50 €", "$5", "5 EUR", "7", "-3"),
        *(
            "n/a",
            "2026-03-15",
            "2026-03-15T10:00:00",
            "2026-03-15T10:00:00+02:00",
            "15.3.2026",
            "3/4/2026",
            "soon",
            "1e400",
        ),
    ]
)
values = st.sampled_from(
    [
        *(None, True, False, 5, -3, 1234, 1.5, "ja", "soon", "5 EUR", "1.234,50 €", "7", "3/4/2026", "2026-03-15"),
        *(dt.date(2026, 3, 15), dt.datetime(2026, 3, 15, 9), dt.datetime(2026, 3, 15, 9, tzinfo=dt.UTC)),
    ]
)
notations = st.sampled_from(NOTATIONS)


def counted(make: Callable[[RunWork], Any]) -> tuple[Any, Any]:
    """A result or the code of the error, and what was counted for the run."""
    work = RunWork(10**6, lambda: AssertionError("too much work"))
    before, CURRENT_RUN.run = CURRENT_RUN.run, work
    try:
        result = make(work)
    except BicameralError as error:
        return (error.code, error.message), None
    finally:
        CURRENT_RUN.run = before
    return result, {name: (each.kind, each.given, each.unread, each.guess) for name, each in work.cells.items()}


def call(name: str, *arguments: Any) -> Any:
    return FUNCTIONS[name].signatures[0].run(*arguments)


def call_each(name: str, some: list[Any], *arguments: Any) -> Callable[[RunWork], Any]:
    """Calls a function for each cell by itself."""
    return lambda work: [call(name, cell, *arguments) for cell in some]


def in_loop(call: str, **variables: Any) -> Callable[[RunWork], Any]:
    step: Any = parse(f"answer([{call} for cell in cells])").plan.steps[0]

    def run(work: RunWork) -> Any:
        return evaluate_expr(step.value, variables | {RUN_WORK_KEY: work})

    return run


@given(st.lists(cells, max_size=6), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), values, notations)
def test_comparisons_of_a_loop_are_those_of_the_function(some: list[Any], op: str, value: Any, notation: str) -> None:
    wanted = counted(call_each("cell_matches", some, op, value, notation, "c"))
    assert counted(in_loop(f'cell_matches(cell, "{op}", value, "{notation}", "c")', cells=some, value=value)) == wanted
    if value is None or type(value) in (bool, int, float, str):
        assert counted(in_loop(f'cell_matches(cell, "{op}", {value!r}, "{notation}", "c")', cells=some)) == wanted


@given(st.lists(cells, max_size=6), notations)
def test_values_and_orders_of_a_loop_are_those_of_the_functions(some: list[Any], notation: str) -> None:
    for name, more in (("cell_value", ()), ("cell_value", (None,)), ("cell_order", ()), ("cell_order", (False,))):
        wanted = counted(call_each(name, some, notation, "c", *more))
        written = "".join(f", {each!r}" for each in more)
        assert counted(in_loop(f'{name}(cell, "{notation}", "c"{written})', cells=some)) == wanted


@pytest.mark.parametrize(
    "written",
    ['cell_matches(cell, "~", 1, "number", "c")', 'cell_value(cell, "numbers", "c")', 'cell_order(cell, "", "c")'],
)
def test_a_call_that_no_binding_wrote_is_an_error_and_not_a_guess(written: str) -> None:
    (code, _), _ = counted(in_loop(written, cells=["1"]))
    assert code in ("run.bad-call", "run.column-kind")

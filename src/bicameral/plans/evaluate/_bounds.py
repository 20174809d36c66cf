"""Evaluation errors, and the bounds on values and work that make every evaluation end soon.

Every failure of evaluation is an `EvaluationError`; no other exception escapes. Work is counted in steps and not by the
clock, so that a run and its replay have the same result.
"""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from types import NoneType
from typing import Any, cast

from bicameral.errors import PlanError

RUN_CODES: dict[str, str] = {
    "run.unbound": "a variable has no value yet",
    "run.no-field": "a record or dict has no such field or key",
    "run.index": "a list or text is not that long",
    "run.division-by-zero": "something is divided by zero",
    "run.not-a-number": "a text is not a number",
    "run.not-a-date": "a text or a set of numbers is not a date or time",
    "run.not-found": "a value is not in the list or text",
    "run.empty": "an empty list has no items, and no smallest, largest or mean value",
    "run.none": "a value is None where something is needed",
    "run.unpack": "an item has not as many parts as there are names",
    "run.too-large": "a value or a computation is beyond the limits",
    "run.type": "a value is of the wrong type",
    "run.column-kind": "a cell or a value is not of the kind of its column",
    "run.bad-call": "a library function is called in a way it does not know",
}
"""What can go wrong while an expression is evaluated; `check` rules out `run.type` where all types are known."""


class EvaluationError(PlanError):
    """An expression of a plan has no value: a code of `RUN_CODES`, a message and what to do."""


def type_name(value: object) -> str:
    """The type of a value as a plan writes it."""
    classes = (each for each in type(value).__mro__ if each in _TYPE_NAMES)
    return _TYPE_NAMES.get(next(classes, object), "something no plan can use")


_TYPE_NAMES: dict[type[object], str] = {
    NoneType: "None",
    tuple: "list",
    **{each: each.__name__ for each in (bool, int, float, str, dict, list)},
    **{each: each.__name__ for each in (dt.datetime, dt.date, dt.time, dt.timedelta)},
}


def preview(value: object) -> str:
    """A value short enough for a message, with its type."""
    if isinstance(value, str):
        shown = repr(value if len(value) <= 40 else value[:37] + "...")
        return f"{shown} (str)"
    if value is None or isinstance(value, bool | int | float):
        return f"{value!r}"[:60]
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return f"{value} ({type_name(value)})"
    if isinstance(value, list | tuple | dict):
        return f"a {type_name(cast('object', value))} of {len(cast('list[Any]', value))}"
    return type_name(value)


def bad_value(what: str, values: Iterable[object], *, fix: str | None = None) -> EvaluationError:
    """The error for a value that does not fit; a None among the values (or directly inside them) gets its own code."""
    values = list(values)
    inner = (item for value in values if isinstance(value, list | tuple) for item in cast("list[object]", value))
    if any(value is None for value in values) or any(item is None for item in inner):
        return EvaluationError(
            "run.none", f"{what}: a value is None", fix=fix or "Test it with `if x is not None:` first."
        )
    return EvaluationError("run.type", what, fix=fix)


MAX_TEXT = 10_000_000
MAX_ITEMS = 1_000_000
MAX_ALL_TEXT = 100_000_000
MAX_VALUE_DEPTH = 64
MAX_BITS = 1000
MAX_WORK = 2_000_000

WORK_KEY = "#work"
"""The key of the `LoopWork` in an inner environment; no variable can have this name."""

RUN_WORK_KEY = "#run-work"
"""The key of the `RunWork` among the variables of a run; no variable can have this name either."""

_CONTAINERS = (list, tuple, dict)
NUMBER_TYPES = frozenset({int, float, bool})
ATOMS = NUMBER_TYPES | {NoneType, dt.date, dt.datetime, dt.time, dt.timedelta}
"""The exact types of values that contain no others, except text."""
_LEAF_TYPES = ATOMS | {str}
_FEW_VALUES = 16
_SHORT_TEXT = MAX_ALL_TEXT // _FEW_VALUES


def too_large_error(what: str, limit: int) -> EvaluationError:
    return EvaluationError(
        "run.too-large", f"{what} is larger than {limit:,}", fix="Work on a part of it, such as `xs[:1000]`."
    )


def check_length(what: str, length: int, limit: int = MAX_ITEMS) -> None:
    if length > limit:
        raise too_large_error(what, limit)


def check_number(value: Any) -> Any:
    """The number itself, refused if it is infinite, not a number, or too large."""
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise EvaluationError("run.too-large", "the number has more than 300 digits")
        return value
    if not math.isfinite(value):
        raise EvaluationError("run.too-large", "the number is beyond what a float can hold")
    return value


def measure(value: object) -> int:
    """How many values a value holds, counted as a tree.

    A list that holds the same list twice is small in memory but doubles at each level (`x = [x, x]`), and every walk
    over it would take exponential time. So the size of what a plan builds is checked, and the count itself stops early.
    """
    if not isinstance(value, _CONTAINERS):
        return 1
    values: Any = _contents(value)
    if len(values) <= _FEW_VALUES and are_all_small(values):
        return len(values)
    nodes = _measure_levels(value)
    # Counting is work, too: `[table]` is a short expression, but the whole table is counted for it.
    charge_run(nodes)
    return nodes


def are_all_small(values: Iterable[Any]) -> bool:
    """Whether these few values contain no others, nor much text."""
    for each in values:  # noqa: SIM110 (a generator would take twice as long)
        if type(each) not in ATOMS and (type(each) is not str or len(each) > _SHORT_TEXT):
            return False
    return True


def _measure_levels(value: Any) -> int:
    nodes, text = 0, 0
    level: list[Any] = [value]
    for _ in range(MAX_VALUE_DEPTH):
        nodes += sum(map(len, level)) if len(level) > 1 else len(level[0])
        if nodes > MAX_ITEMS:
            raise too_large_error("the value, with everything in it,", MAX_ITEMS)
        inner: list[Any] = []
        for values in _group_contents(level):
            # The set of all types is found faster than the type of each value, unless there are only a few.
            if len(values) > _FEW_VALUES and (known := _text_and_containers(values)) is not None:
                text += known[0]
                inner += known[1]
                continue
            for each in values:
                if type(each) in ATOMS:
                    continue
                if isinstance(each, str):
                    text += len(each)
                elif isinstance(each, _CONTAINERS):
                    inner.append(each)
        if text > MAX_ALL_TEXT:
            raise too_large_error("the text in the value", MAX_ALL_TEXT)
        if not inner:
            return nodes
        level = inner
    raise EvaluationError("run.too-large", f"the value is nested more than {MAX_VALUE_DEPTH} levels deep")


def _group_contents(containers: list[Any]) -> list[Collection[Any]]:
    """The contents of some containers; of many containers all in one group."""
    if len(containers) <= _FEW_VALUES:
        return [each.values() if isinstance(each, dict) else each for each in containers]
    records = set(map(type, containers)) == {dict}
    return [list(chain.from_iterable(map(dict.values if records else _contents, containers)))]  # pyright: ignore


def _text_and_containers(values: Collection[Any]) -> tuple[int, Collection[Any]] | None:
    """The length of all texts and the values that are containers; None if the values must be looked at one by one."""
    kinds = set(map(type, values))
    if kinds <= ATOMS:
        return 0, ()
    if kinds <= _LEAF_TYPES:
        return sum([len(each) for each in values if type(each) is str]), ()
    return (0, values) if kinds.issubset(_CONTAINERS) else None


def _contents(container: Any) -> Collection[Any]:
    return cast("Collection[Any]", container.values() if isinstance(container, dict) else container)


def check_size(value: Any) -> Any:
    """The same value, refused if it is too large."""
    if type(value) in ATOMS:
        return value
    if isinstance(value, _CONTAINERS):
        measure(cast("object", value))
    elif isinstance(value, str):
        check_length("the text", len(value), MAX_TEXT)
    return cast("Any", value)


@dataclass(slots=True, eq=False)
class SelectionCount:
    """How many items the conditions of a comprehension were given, and how many they kept, in all its evaluations."""

    expr: Any
    given: int
    kept: int
    times: int = 1


@dataclass(slots=True, eq=False)
class CellCount:
    """How many cells of a column were read in its kind, how many of them could not be, and how they were guessed."""

    kind: str
    given: int = 0
    unread: int = 0
    guess: str = ""


class RunWork:
    """How many steps of work a whole run has left; the steps are those that bound one expression.

    Args:
        limit: How many steps the run may take.
        exhausted: Makes the error that ends the run.
        counts_selections: Whether what comprehensions keep is counted. A lookahead, whose steps are done again, must
            not count them.
    """

    __slots__ = ("_counts_selections", "_make_error", "_unsettled", "cells", "limit", "remaining", "selections")

    def __init__(self, limit: int, exhausted: Callable[[], Exception], *, counts_selections: bool = True) -> None:
        self.limit = limit
        self._counts_selections = counts_selections
        self.remaining = limit
        self._make_error = exhausted
        self._unsettled: list[LoopWork] = []
        self.selections: dict[int, SelectionCount] = {}
        """What filters of comprehensions kept since somebody took these counts, by the identity of the comprehension.

        They are sums, so that the order of turns that run beside each other does not matter.
        """

        self.cells: dict[str, CellCount] = {}
        """The cells that were read in the kind of their column since somebody took these counts, by column."""

    def count_cells(self, column: str, kind: str, given: int, unread: int, guess: str = "") -> None:
        """Count cells that were read in the kind of their column; `guess` says how, if nothing decides it."""
        if not self._counts_selections:
            return
        count = self.cells.get(column)
        if count is None:
            count = self.cells[column] = CellCount(kind)
        if guess:
            count.guess = guess
        count.given += given
        count.unread += unread

    def count_selection(self, expr: object, given: int, kept: int) -> None:
        """Count what the conditions of a comprehension were given, and what they kept."""
        if not self._counts_selections:
            return
        found = self.selections.get(id(expr))
        if found is None:
            self.selections[id(expr)] = SelectionCount(expr, given, kept)
        else:
            found.given += given
            found.kept += kept
            found.times += 1

    def charge(self, amount: int) -> None:
        """Count some steps; raises when there are none left."""
        self.remaining -= amount
        if self.remaining < 0:
            raise self._make_error()

    def fork(self) -> RunWork:
        """The budget of a turn that runs beside others. What it used is charged when its turn comes, so that the order
        of the turns decides which one exceeds the limit, and not their speed."""
        turn = RunWork(self.remaining, self._make_error, counts_selections=self._counts_selections)
        turn.selections, turn.cells = self.selections, self.cells
        return turn

    @property
    def used(self) -> int:
        return self.limit - self.remaining

    def register(self, work: LoopWork) -> None:
        self._unsettled.append(work)

    def settle(self) -> None:
        """Charge the loops of the evaluation that has just ended. One that failed needs no charge: it ends the run."""
        self.remaining -= _PER_EXPRESSION
        if self._unsettled:
            for work in self._unsettled:
                self.remaining -= work.limit - work.remaining
            self._unsettled.clear()
        if self.remaining < 0:
            raise self._make_error()


class _CurrentRun(threading.local):
    """The run whose expression this thread evaluates. An evaluation never awaits, so runs cannot interleave in it."""

    run: RunWork | None = None


CURRENT_RUN = _CurrentRun()
_PER_EXPRESSION = 2


def charge_run(amount: int) -> None:
    """Charge the run for steps outside the loops of an expression, which have no limit of their own."""
    run = CURRENT_RUN.run
    if run is not None:
        run.charge(amount)


class LoopWork:
    """How many steps one evaluation has left for its comprehensions and lambdas."""

    __slots__ = ("_run", "limit", "remaining")

    def __init__(self) -> None:
        run = self._run = CURRENT_RUN.run
        self.limit = self.remaining = MAX_WORK if run is None else min(MAX_WORK, max(run.remaining, 0))
        if run is not None:
            run.register(self)

    def spend(self, amount: int) -> None:
        self.remaining -= amount
        if self.remaining < 0:
            if self._run is not None and self.limit < MAX_WORK:
                self._run.charge(self.limit - self.remaining)
            raise EvaluationError(
                "run.too-large",
                f"the expression takes more than {MAX_WORK:,} steps",
                fix="Split it into steps, or work on a part of the list.",
            )


def inner_environment(env: Mapping[str, Any]) -> tuple[dict[str, Any], LoopWork]:
    """An environment for the names of a comprehension or lambda, with the `LoopWork` of the one outside."""
    inner = dict(env)
    work = inner.get(WORK_KEY)
    if work is None:
        work = inner[WORK_KEY] = LoopWork()
    return inner, work


def flat_cost(value: object) -> int:
    """The work of one pass over a value; text is cheap."""
    if isinstance(value, str):
        return len(value) // 64
    return len(cast("list[Any]", value)) if isinstance(value, _CONTAINERS) else 0


def deep_cost(value: object) -> int:
    """The work of a pass over a value and everything in it, such as to compare or format it."""
    if type(value) in ATOMS:
        return 2
    return len(value) // 64 if isinstance(value, str) else 2 * measure(value)

"""How large values and computations may get, so that evaluation always ends soon."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from types import NoneType
from typing import Any, cast

from ._failure import EvaluationError

MAX_TEXT = 10_000_000
MAX_ITEMS = 1_000_000
MAX_ALL_TEXT = 100_000_000
MAX_DEPTH = 64
MAX_BITS = 1000
MAX_WORK = 2_000_000

WORK = "#work"
"""Where an inner environment keeps its `Work`: no variable can have this name."""

RUN_WORK = "#run-work"
"""Where the variables of a run keep its `RunWork`; no variable can have this name either."""

_CONTAINERS = (list, tuple, dict)
NUMBERS = frozenset({int, float, bool})
SINGLE = NUMBERS | {NoneType, dt.date, dt.datetime, dt.time, dt.timedelta}
"""The exact types of values that hold nothing else, but for text."""
_LEAVES = SINGLE | {str}
_FEW = 16
_SHORT = MAX_ALL_TEXT // _FEW


def too_large(what: str, limit: int) -> EvaluationError:
    return EvaluationError(
        "run.too-large", f"{what} is larger than {limit:,}", fix="Work on a part of it, such as `xs[:1000]`."
    )


def check_length(what: str, length: int, limit: int = MAX_ITEMS) -> None:
    if length > limit:
        raise too_large(what, limit)


def bounded_number(value: Any) -> Any:
    """A number that is finite and not astronomically large."""
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise EvaluationError("run.too-large", "the number has more than 300 digits")
        return value
    if not math.isfinite(value):
        raise EvaluationError("run.too-large", "the number is beyond what a float can hold")
    return value


def weigh(value: object) -> int:
    """How many values a value holds, counted as a tree.

    A list that holds the same list twice is small in memory but doubles at each level (`x = [x, x]`), and everything
    that walks it would take exponential time. So what a plan builds is weighed, and the walk itself stops early.
    """
    if not isinstance(value, _CONTAINERS):
        return 1
    values: Any = _within(value)
    if len(values) <= _FEW and all_light(values):
        return len(values)
    nodes = _weigh_levels(value)
    # Weighing is work, too: a list of one table is small to write, and the whole table is gone through for it.
    charge(nodes)
    return nodes


def all_light(values: Iterable[Any]) -> bool:
    """Whether these few values hold nothing else, nor much text."""
    for each in values:  # noqa: SIM110 (a generator would take twice as long)
        if type(each) not in SINGLE and (type(each) is not str or len(each) > _SHORT):
            return False
    return True


def _weigh_levels(value: Any) -> int:
    nodes, text = 0, 0
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        nodes += sum(map(len, level)) if len(level) > 1 else len(level[0])
        if nodes > MAX_ITEMS:
            raise too_large("the value, with everything in it,", MAX_ITEMS)
        inner: list[Any] = []
        for values in _groups(level):
            # A look at the types of all values is quicker than one at each, unless there are only a few.
            if len(values) > _FEW and (known := _texts_or_containers(values)) is not None:
                text += known[0]
                inner += known[1]
                continue
            for each in values:
                if type(each) in SINGLE:
                    continue
                if isinstance(each, str):
                    text += len(each)
                elif isinstance(each, _CONTAINERS):
                    inner.append(each)
        if text > MAX_ALL_TEXT:
            raise too_large("the text in the value", MAX_ALL_TEXT)
        if not inner:
            return nodes
        level = inner
    raise EvaluationError("run.too-large", f"the value is nested more than {MAX_DEPTH} levels deep")


def _groups(containers: list[Any]) -> list[Collection[Any]]:
    """What is directly in some containers; if these are many, all in one group."""
    if len(containers) <= _FEW:
        return [each.values() if isinstance(each, dict) else each for each in containers]
    records = set(map(type, containers)) == {dict}
    return [list(chain.from_iterable(map(dict.values if records else _within, containers)))]  # pyright: ignore


def _texts_or_containers(values: Collection[Any]) -> tuple[int, Collection[Any]] | None:
    """How much text there is, and which values hold others; None where that is to be seen only from each of them."""
    kinds = set(map(type, values))
    if kinds <= SINGLE:
        return 0, ()
    if kinds <= _LEAVES:
        return sum([len(each) for each in values if type(each) is str]), ()
    return (0, values) if kinds.issubset(_CONTAINERS) else None


def _within(container: Any) -> Collection[Any]:
    return cast("Collection[Any]", container.values() if isinstance(container, dict) else container)


def weighed(value: Any) -> Any:
    """The same value, refused if it is too large."""
    if type(value) in SINGLE:
        return value
    if isinstance(value, _CONTAINERS):
        weigh(cast("object", value))
    elif isinstance(value, str):
        check_length("the text", len(value), MAX_TEXT)
    return cast("Any", value)


class RunWork:
    """How much a whole run may still compute, in the steps that bound one expression.

    It counts and does not look at the clock, so that a run and its replay come to the same. `exhausted` makes the error
    that ends the run.
    """

    __slots__ = ("_exhausted", "_open", "left", "limit")

    def __init__(self, limit: int, exhausted: Callable[[], Exception]) -> None:
        self.limit = limit
        self.left = limit
        self._exhausted = exhausted
        self._open: list[Work] = []

    def charge(self, amount: int) -> None:
        """Count some steps; raises when there are none left."""
        self.left -= amount
        if self.left < 0:
            raise self._exhausted()

    def branch(self) -> RunWork:
        """What a turn may do that runs beside others. It is charged when its turn comes, so that the order of the
        turns decides and not which of them was quicker."""
        return RunWork(self.left, self._exhausted)

    @property
    def used(self) -> int:
        return self.limit - self.left

    def begin(self, work: Work) -> None:
        self._open.append(work)

    def settle(self) -> None:
        """Charge what the evaluation that has just ended did in its loops. After one that failed the run has ended."""
        self.left -= _PER_EXPRESSION
        if self._open:
            for work in self._open:
                self.left -= work.limit - work.left
            self._open.clear()
        if self.left < 0:
            raise self._exhausted()


class _Current(threading.local):
    """The run whose expression this thread evaluates. An evaluation never waits, so that no other comes between."""

    run: RunWork | None = None


CURRENT = _Current()
_PER_EXPRESSION = 2


def charge(amount: int) -> None:
    """Count steps that are not inside a loop of an expression: only the run has a limit on those."""
    run = CURRENT.run
    if run is not None:
        run.charge(amount)


class Work:
    """How much one evaluation may still do inside comprehensions and lambdas."""

    __slots__ = ("_run", "left", "limit")

    def __init__(self) -> None:
        run = self._run = CURRENT.run
        self.limit = self.left = MAX_WORK if run is None else min(MAX_WORK, max(run.left, 0))
        if run is not None:
            run.begin(self)

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            if self._run is not None and self.limit < MAX_WORK:
                self._run.charge(self.limit - self.left)
            raise EvaluationError(
                "run.too-large",
                f"the expression takes more than {MAX_WORK:,} steps",
                fix="Split it into steps, or work on a part of the list.",
            )


def inner_environment(env: Mapping[str, Any]) -> tuple[dict[str, Any], Work]:
    """An environment for the names of a comprehension or lambda, sharing the work of the one outside."""
    inner = dict(env)
    work = inner.get(WORK)
    if work is None:
        work = inner[WORK] = Work()
    return inner, work


def flat_cost(value: object) -> int:
    """What it takes to go once over a value; text is quick."""
    if isinstance(value, str):
        return len(value) // 64
    return len(cast("list[Any]", value)) if isinstance(value, _CONTAINERS) else 0


def deep_cost(value: object) -> int:
    """What it takes to go over a value and everything in it, and to compare or show it."""
    if type(value) in SINGLE:
        return 2
    return len(value) // 64 if isinstance(value, str) else 2 * weigh(value)

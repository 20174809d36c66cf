"""V12: whatever a pattern keeps between two runs is found by its name, and code that keeps nothing passes."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from patterns_world import Work, answered, table

from bicameral.journal import Journal, open_journal_at
from bicameral.patterns import Answered, GaveUp, from_user, untrusted_value
from bicameral.patterns._hidden_state import changed_state, snapshot_state
from bicameral.patterns.kernel import Context, Labelled, Pattern, Role, replay_pattern
from bicameral.patterns.reasoning.react import ReAct
from bicameral.patterns.reliability.stateless import StatelessReducer
from invariants import holds

WRITER = Role("Writer", "Write.")
SEEN: dict[str, int] = {}
total = 0
NUMBERS = itertools.count()
CONSTANTS = {"a": [1, 2], "b": [3]}
TALLY: Counter[str] = Counter()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal_at(tmp_path / "journal.db") as journal:
        yield journal


@lru_cache
def remembered(text: str) -> str:
    return text.upper()


async def ask(context: Context) -> Labelled[Any]:
    return await context.ask(WRITER, "Go on.")


async def keeps_in_a_module(context: Context) -> Labelled[Any]:
    SEEN["runs"] = SEEN.get("runs", 0) + 1
    return await ask(context)


async def keeps_in_a_counter(context: Context) -> Labelled[Any]:
    TALLY["runs"] += 1
    return await ask(context)


async def rebinds_a_global(context: Context) -> Labelled[Any]:
    global total
    total += 1
    return await ask(context)


async def draws_from_an_iterator(context: Context) -> Labelled[Any]:
    next(NUMBERS)
    return await ask(context)


async def keeps_in_a_cache(context: Context) -> Labelled[Any]:
    reply = await ask(context)
    remembered(f"{len(str(id(reply)))}{next(_OWN)}")
    return reply


_OWN = iter(range(100))


async def keeps_in_a_default(context: Context, seen: list[int] = []) -> Labelled[Any]:  # noqa: B006
    seen.append(1)
    return await ask(context)


async def keeps_deep_in_a_module(context: Context) -> Labelled[Any]:
    CONSTANTS["a"].append(3)
    try:
        return await ask(context)
    finally:
        pass


async def keeps_through_another_function(context: Context) -> Labelled[Any]:
    _keep()
    return await ask(context)


def _keep() -> None:
    vars(_keep)["runs"] = vars(_keep).get("runs", 0) + 1


def keeps_in_a_closure() -> Callable[[Context], Any]:
    seen: list[int] = []

    async def work(context: Context) -> Labelled[Any]:
        seen.append(1)
        return await ask(context)

    return work


def keeps_in_a_cell() -> Callable[[Context], Any]:
    runs = 0

    async def work(context: Context) -> Labelled[Any]:
        nonlocal runs
        runs += 1
        return await ask(context)

    return work


async def reads_a_constant(context: Context) -> Labelled[Any]:
    assert CONSTANTS["b"] == [3]
    return await ask(context)


def reads_a_closure() -> Callable[[Context], Any]:
    options = {"most": 3}

    async def work(context: Context) -> Labelled[Any]:
        seen: list[int] = []
        seen.append(options["most"])
        return await ask(context)

    return work


@dataclass(frozen=True)
class Keeper(Pattern[[], Any]):
    """Keeps in itself or in its class."""

    id: ClassVar[str] = "R5"
    runs: ClassVar[int] = 0
    seen: list[int] = field(default_factory=list[int])
    in_class: bool = False

    async def execute(self, context: Context, /) -> Labelled[Any]:
        if self.in_class:
            Keeper.runs += 1
        else:
            self.seen.append(1)
        return await ask(context)


def run(pattern: Pattern[[], Any]) -> Any:
    there = table(lambda request: "Done.")
    return asyncio.run(StatelessReducer(pattern).run(there.desk))


@pytest.mark.parametrize(
    ("work", "place"),
    [
        (keeps_in_a_module, ":SEEN"),
        (keeps_in_a_counter, ":TALLY"),
        (rebinds_a_global, ":total"),
        (draws_from_an_iterator, ":NUMBERS"),
        (keeps_in_a_cache, ":remembered (cache)"),
        (keeps_in_a_default, ":keeps_in_a_default (defaults)"),
        (keeps_deep_in_a_module, ":CONSTANTS"),
        (keeps_through_another_function, ":_keep (attributes)"),
        (keeps_in_a_closure(), "(seen)"),
        (keeps_in_a_cell(), "(runs)"),
    ],
)
def test_what_a_function_keeps_is_found_by_its_name(work: Any, place: str) -> None:
    outcome = run(Work(work))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.keeps-state"
    assert place in str(outcome.error)


@pytest.mark.parametrize(("in_class", "place"), [(False, "pattern R5"), (True, "Keeper.runs")])
def test_what_a_pattern_keeps_in_itself_or_its_class_is_found(in_class: bool, place: str) -> None:
    outcome = run(Keeper(in_class=in_class))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.keeps-state"
    assert place in str(outcome.error)


def test_it_is_found_at_any_depth() -> None:
    @dataclass(frozen=True)
    class Outer(Pattern[[], Any]):
        id: ClassVar[str] = "R5"
        inner: Pattern[[], Any]

        async def execute(self, context: Context, /) -> Labelled[Any]:
            return await context.run_pattern("inner", self.inner)

    outcome = run(Outer(Keeper()))
    assert isinstance(outcome, GaveUp)
    assert "pattern inner" in str(outcome.error)


@pytest.mark.parametrize("work", [ask, reads_a_constant, reads_a_closure()])
def test_code_that_keeps_nothing_passes(work: Any) -> None:
    pattern = Work(work)
    assert isinstance(run(pattern), Answered)
    assert isinstance(run(pattern), Answered)


def test_snapshots_of_the_same_state_are_equal() -> None:
    pattern = StatelessReducer(ReAct())
    assert changed_state(snapshot_state(pattern), snapshot_state(pattern)) == []


# The state ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Giver(Pattern[[Labelled[Any]], Any]):
    """Gives what it is given, or something that lives."""

    id: ClassVar[str] = "R5"
    alive: bool = False

    async def execute(self, context: Context, /, value: Labelled[Any]) -> Labelled[Any]:
        return context.derive(threading.Lock(), value) if self.alive else value


def give(value: Any, **options: Any) -> Any:
    alive = options.pop("alive", False)
    return asyncio.run(StatelessReducer(Giver(alive=alive), **options).run(table().desk, value))


def test_the_state_survives_json_with_its_labels() -> None:
    outcome = give(untrusted_value({"a": [1, 2.5, None], "b": "x"}, "mail"))
    assert answered(outcome).value == {"a": [1, 2.5, None], "b": "x"}
    assert not outcome.label.trusted


def test_a_state_with_something_live_in_it_is_refused() -> None:
    outcome = give(from_user("x"), alive=True)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.state-not-portable"


def test_a_state_that_is_too_large_is_refused_before_it_runs() -> None:
    outcome = give(from_user("x" * 3000), max_state_bytes=1024)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.state-too-large"
    assert "xxx" not in str(outcome.error)


@holds("V12.6")
def test_a_reader_sees_the_whole_new_state_or_none_of_it(journal: Journal) -> None:
    there = table(["The new state."], journal=journal)
    outcome = asyncio.run(StatelessReducer(ReAct()).run(there.desk, from_user("Go on.")))
    assert isinstance(outcome, Answered)
    events = journal.events(outcome.run)
    having = [event.kind for event in events if "answer" in event.body]
    assert having == ["run-finished"], "it is one event"
    assert events[-1].kind == "run-finished"
    again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
    assert again.identical, again.differences


def test_many_runs_from_one_state_do_not_touch_each_other() -> None:
    there = table(lambda request: f"Reply to {request.messages[-1].text}")
    pattern = StatelessReducer(ReAct())

    async def run_all() -> list[Any]:
        return await asyncio.gather(*(pattern.run(there.desk, from_user(f"Task {n % 2}")) for n in range(20)))

    values = [outcome.value for outcome in asyncio.run(run_all())]
    assert values == ["Reply to Task 0", "Reply to Task 1"] * 10

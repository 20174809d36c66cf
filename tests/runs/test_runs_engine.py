"""What the engine promises about order, time, failures, retries, people and models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from runs_world import World, run_source

from bicameral.boundary import Extractor
from bicameral.errors import ToolError
from bicameral.models import ScriptedProvider
from bicameral.runs import Failed, Finished, RunOutcome, StepProgress
from bicameral.tools import Effect, Registry, Tool, tool
from bicameral.types import Type


def _answer(outcome: RunOutcome) -> Any:
    assert isinstance(outcome, Finished), outcome
    return outcome.answer


def _failure(outcome: RunOutcome) -> tuple[str, str]:
    assert isinstance(outcome, Failed), outcome
    return outcome.error.code, outcome.step


async def test_independent_steps_run_side_by_side() -> None:
    three = asyncio.Barrier(3)
    begun: list[int] = []

    @tool(effect="read")
    async def meet(n: int) -> int:
        """Waits until three have come; alone, or two of them, wait in vain."""
        begun.append(n)
        if n <= 3:
            async with asyncio.timeout(30):
                await three.wait()
        return n

    source = "a = meet(1)\nb = meet(2)\nc = meet(3)\nd = meet(a + b + c)\nanswer(d)"
    assert _answer(await run_source(source, Registry([meet]))) == 6
    assert (sorted(begun[:3]), begun[3:]) == ([1, 2, 3], [6])


async def test_a_read_after_a_write_sees_it_and_a_write_waits_for_earlier_reads() -> None:
    world = World([5, 0, 3])
    source = "a = peek('x')\npoke('x', 1)\nb = peek('x')\npoke('x', 2)\nc = peek('x')\nanswer([a, b, c])"
    assert _answer(await run_source(source, world.registry)) == [0, 1, 2]


async def test_effects_keep_the_order_of_the_program() -> None:
    world = World([6, 1, 4, 0])
    source = "for n in range(6):\n    poke('x', n)\npoke('y', 9)\nfor n in range(3):\n    poke('z', n)\nanswer(0)"
    _answer(await run_source(source, world.registry))
    wanted = [("x", n) for n in range(6)] + [("y", 9)] + [("z", n) for n in range(3)]
    assert [facts for _, facts in world.happened] == wanted


async def test_no_effect_happens_after_a_step_that_fails() -> None:
    world = World([0, 0, 9])
    source = "a = picky(5)\npoke('x', 1)\nanswer(a)"
    assert _failure(await run_source(source, world.registry)) == ("world.refused", "0")
    assert world.cells == {}


async def test_of_two_failures_the_one_that_comes_first_in_the_program_is_told() -> None:
    @tool(effect="read")
    async def fails(after: float) -> int:
        """Fails after a while."""
        await asyncio.sleep(after)
        raise ToolError("world.late" if after > 0.02 else "world.early", "no")

    outcome = await run_source("a = fails(0.05)\nb = fails(0.01)\nanswer(a + b)", Registry([fails]))
    assert _failure(outcome) == ("world.late", "0")


async def test_an_answer_inside_a_loop_ends_the_run() -> None:
    world = World([2])
    source = "for n in range(10):\n    poke('x', n)\n    if n == 2:\n        answer(n)\npoke('y', 1)\nanswer(99)"
    assert _answer(await run_source(source, world.registry)) == 2
    assert world.cells == {"x": 2}


async def test_a_step_that_takes_longer_than_its_tool_may_is_ended() -> None:
    @tool(effect="write", timeout=0.05)
    async def stuck() -> None:
        """Never comes back."""
        await asyncio.sleep(60)

    started = time.perf_counter()
    outcome = await run_source("stuck()\nanswer(1)", Registry([stuck]))
    assert _failure(outcome) == ("tools.timeout", "0")
    assert "may or may not have happened" in str(outcome.error) if isinstance(outcome, Failed) else False
    assert time.perf_counter() - started < 30


def _unreliable(times: int, effect: Effect, idempotent: bool) -> tuple[Tool, list[int]]:
    calls: list[int] = []

    @tool(effect=effect, idempotent=idempotent)
    async def unreliable() -> int:
        """Cannot be reached at first."""
        calls.append(1)
        if len(calls) <= times:
            raise ToolError("web.unreachable", "nobody there")
        return len(calls)

    return unreliable, calls


@pytest.mark.parametrize(
    ("effect", "idempotent", "tried"), [("read", True, 3), ("write", True, 3), ("write", False, 1), ("read", False, 1)]
)
async def test_only_an_idempotent_tool_is_tried_again_and_only_so_often(
    effect: Effect, idempotent: bool, tried: int
) -> None:
    unreliable, calls = _unreliable(9, effect, idempotent)
    assert _failure(await run_source("answer(unreliable())", Registry([unreliable]))) == ("web.unreachable", "0")
    assert len(calls) == tried


async def test_an_attempt_that_succeeds_ends_the_retries_and_the_observer_is_told() -> None:
    unreliable, _ = _unreliable(1, "read", True)
    told: list[StepProgress] = []
    assert _answer(await run_source("answer(unreliable())", Registry([unreliable]), observer=told.append)) == 2
    assert [progress.kind for progress in told] == ["started", "retrying", "finished"]


async def test_an_error_that_will_not_go_away_is_not_tried_again() -> None:
    calls: list[int] = []

    @tool(effect="read")
    async def wrong() -> int:
        """Always wrong."""
        calls.append(1)
        raise ToolError("files.missing", "there is no such file")

    assert _failure(await run_source("answer(wrong())", Registry([wrong]))) == ("files.missing", "0")
    assert calls == [1]


def _raises(error: BaseException) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize("effect", ["pure", "read", "write"])
@pytest.mark.parametrize(
    "error",
    [ValueError("odd"), KeyError("k"), SystemExit(3), asyncio.CancelledError(), RecursionError(), TimeoutError()],
)
async def test_whatever_a_tool_raises_is_a_typed_failure(error: BaseException, effect: Effect) -> None:
    raising = _raises(error)

    @tool(effect=effect, idempotent=False)
    async def breaks() -> int:
        """Breaks."""
        raising()
        return 1

    async with asyncio.timeout(10):
        outcome = await run_source("a = breaks()\nb = breaks()\nanswer(a + b)", Registry([breaks]))
    assert _failure(outcome) == ("tools.failed", "0")


async def test_a_tool_that_changes_its_arguments_does_not_change_the_plans_variables() -> None:
    @tool(effect="pure")
    def sort_in_place(lines: list[str]) -> list[str]:
        """Sort, carelessly."""
        lines.sort()
        lines.append("!")
        return lines

    source = "xs = ['b', 'a']\nys = sort_in_place(xs)\nanswer([xs, ys])"
    assert _answer(await run_source(source, Registry([sort_in_place]))) == [["b", "a"], ["a", "b", "!"]]


async def test_an_observer_that_breaks_does_not_break_the_run() -> None:
    def broken(progress: StepProgress) -> None:
        raise BrokenPipeError

    assert _answer(await run_source("answer(peek('x'))", World().registry, observer=broken)) == 0


class _Person:
    def __init__(self, reply: object) -> None:
        self.reply = reply
        self.asked: list[str] = []

    async def ask(self, question: str, type: Type) -> Any:
        self.asked.append(question)
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply


async def test_a_question_is_asked_and_its_reply_used() -> None:
    person = _Person(7)
    outcome = await run_source("n = ask('How many?', int)\nanswer(n * 2)", Registry(), asker=person)
    assert (_answer(outcome), person.asked) == (14, ["How many?"])


async def test_a_question_that_nobody_can_answer_ends_the_run_with_the_question() -> None:
    outcome = await run_source("n = ask('How many?', int)\nanswer(n)", Registry())
    assert _failure(outcome) == ("run.needs-answer", "0")
    assert isinstance(outcome, Failed)
    assert "How many?" in str(outcome.error)


@pytest.mark.parametrize("reply", ["seven", 7.5, None, True, [7], object()])
async def test_a_reply_of_another_type_is_refused(reply: object) -> None:
    outcome = await run_source("n = ask('How many?', int)\nanswer(n)", Registry(), asker=_Person(reply))
    assert _failure(outcome) == ("run.wrong-reply", "0")


async def test_an_asker_that_breaks_is_a_failure_of_its_step() -> None:
    outcome = await run_source("n = ask('How many?', int)\nanswer(n)", Registry(), asker=_Person(EOFError()))
    assert _failure(outcome) == ("tools.failed", "0")


async def test_reads_go_on_while_a_person_thinks_and_effects_wait() -> None:
    world = World()
    order: list[str] = []

    looked = asyncio.Event()

    class Slow:
        async def ask(self, question: str, type: Type) -> Any:
            async with asyncio.timeout(30):
                await looked.wait()
            order.append("replied")
            return 5

    def watch(progress: StepProgress) -> None:
        if progress.kind == "finished":
            order.append(progress.what)
            if progress.what == "peek":
                looked.set()

    source = "n = ask('?', int)\na = peek('x')\npoke('x', n)\nanswer(a)"
    _answer(await run_source(source, world.registry, asker=Slow(), observer=watch))
    assert order == ["peek", "replied", "ask", "poke"]


async def test_extractions_come_from_the_quarantined_model() -> None:
    extractor = Extractor(ScriptedProvider(lambda request: '{"value": 3}'))
    source = "n = extract('three apples', 'how many', int)\nanswer(n + 1)"
    assert _answer(await run_source(source, Registry(), extractor=extractor)) == 4


async def test_a_rejected_extraction_is_a_typed_failure() -> None:
    extractor = Extractor(ScriptedProvider(lambda request: '{"value": "three"}'))
    outcome = await run_source("n = extract('three', 'how many', int)\nanswer(n)", Registry(), extractor=extractor)
    assert _failure(outcome) == ("run.extraction-rejected", "0")


async def test_without_a_quarantined_model_nothing_is_extracted() -> None:
    outcome = await run_source("n = extract('three', 'how many', int)\nanswer(n)", Registry())
    assert _failure(outcome) == ("run.no-quarantined-model", "0")


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        ("x = 0\nanswer(1 // x)", ("run.division-by-zero", "1")),
        ("xs = [1]\nfor n in [0, 5]:\n    y = xs[n]\nanswer(y)", ("run.index", "1[1]/0")),
        ("d = {'a': 1}\nif len(d) > 0:\n    y = d['b']\nanswer(1)", ("run.no-field", "1/then/0")),
        ("n = peek('x')\nfor c in n:\n    a = 1\nanswer(1)", ("run.type", "1")),
        ("for a, b in [[1, 2], [3]]:\n    c = a\nanswer(1)", ("run.unpack", "0")),
    ],
)
async def test_a_computation_that_has_no_value_fails_at_its_step(source: str, failure: tuple[str, str]) -> None:
    assert _failure(await run_source(source, World().registry)) == failure


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("xs = [1]\nfor n in range(40):\n    xs = xs + xs\nanswer(1)", "run.too-large"),
        ("xs = []\nfor n in range(90):\n    xs.append(xs)\nanswer(1)", "run.too-large"),
        ("d = {}\nfor n in range(90):\n    d[str(n)] = d\nanswer(1)", "run.too-large"),
        ("n = 0\nfor i in range(2000):\n    for j in range(1000):\n        n += 1\nanswer(n)", "run.too-many-turns"),
    ],
)
async def test_what_grows_without_measure_is_stopped(source: str, code: str) -> None:
    found, step = _failure(await run_source(source, World().registry))
    assert (found, step[:2]) == (code, "1[")


async def test_a_long_computation_lets_other_steps_go_on() -> None:
    ended: list[float] = []

    @tool(effect="read")
    async def tick() -> int:
        """Two short waits."""
        await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)
        ended.append(time.perf_counter())
        return 1

    source = "a = tick()\nn = 0\nfor i in range(60000):\n    n += i\nanswer(n + a)"
    begun = time.perf_counter()
    outcome = await run_source(source, Registry([tick]))
    taken = time.perf_counter() - begun
    assert _answer(outcome) == sum(range(60000)) + 1
    # Had it been held up, it would have ended with the computation or after it.
    assert ended[0] - begun < 0.75 * taken

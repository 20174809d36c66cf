"""The benchmark of patterns: its last line has all that is asked for, and estimates are made before a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from benchmarks.patterns import __main__ as benchmark
from benchmarks.patterns.__main__ import Row, measure_composition, summarize
from benchmarks.patterns.compositions import COMPOSITIONS
from bicameral.models import Chamber, ModelRequest, ScriptedProvider
from bicameral.patterns import IMPLEMENTED
from bicameral.sessions import Chambers, Quarantined
from scripts.invariants import measure_coverage

Reply = Callable[[ModelRequest], str]


def chambers(reply: Reply) -> Chambers:
    return Chambers(ScriptedProvider(reply), Quarantined(ScriptedProvider(reply, chamber="quarantined")))


def row(name: str, *, calls: int = 10, tokens: int = 1_000, ok: bool = True, replayed: bool = True) -> Row:
    return Row(name, ok, calls, 10.0, tokens, 1_000.0, 0.5, "", replayed, depth=2)


def test_errors_are_shares_of_what_was_counted_and_those_of_compositions_stand_apart() -> None:
    found = summarize(
        [row("R4", calls=8), row("R5", ok=False, replayed=False)], [row("a", calls=20, tokens=800), row("b", ok=False)]
    )
    assert (found["patterns"], found["outcomes_ok"]) == (2, 1)
    assert (found["composed"], found["composed_answered"], found["composed_right"]) == (2, 2, 1)
    # Ten were foreseen where twenty came, and ten where ten came.
    assert found["call_error"] == 0.25
    assert found["token_error"] == 0.125
    assert found["pattern_call_error"] == 0.125
    assert (found["replays"], found["replay_equal"], found["depth"]) == (4, 3, 2)


def test_nothing_that_was_measured_has_no_error() -> None:
    found = summarize([], [])
    assert (found["call_error"], found["token_error"], found["composed"]) == (None, None, 0)


def test_what_a_model_writes_changes_what_is_counted_and_not_what_was_foreseen() -> None:
    case = next(each for each in COMPOSITIONS if each.name == "a topic by examples, then three questions")
    short, long = (
        asyncio.run(measure_composition(case, chambers(lambda request, words=words: "word " * words)))
        for words in (1, 200)
    )
    assert short.calls == long.calls == short.calls_expected
    assert short.tokens < long.tokens
    assert short.tokens_expected == long.tokens_expected
    assert short.replayed
    assert long.replayed


def test_a_composition_is_right_if_its_answer_says_all_that_it_has_to() -> None:
    (case,) = [each for each in COMPOSITIONS if each.name == "lookup, then a form"]
    assert case.is_right({"city": "Ghent", "people": 270473})
    assert case.is_right("In ghent 270,473 live.")
    assert not case.is_right({"city": "Ghent", "people": 27_0474})
    assert not case.is_right("270 473 people")
    assert all(each.says for each in COMPOSITIONS)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted models instead of local ones; they always reply the same word."""
    made: list[Chamber | None] = ["quarantined"]

    def provider(name: str) -> ScriptedProvider:
        # The quarantined model is the first that is made.
        return ScriptedProvider(lambda request: "English", chamber=made.pop() if made else None)

    monkeypatch.setattr(benchmark, "_provider", provider)


@pytest.mark.usefixtures("scripted")
def test_the_last_line_is_one_object_with_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    code = benchmark.main(["--composed", "3"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {
        "patterns",
        "outcomes_ok",
        "composed",
        "call_error",
        "token_error",
        "replays",
        "replay_equal",
        "invariants",
        "invariants_held",
    } <= set(found)
    assert (found["patterns"], found["composed"], len(found["rows"])) == (0, 3, 3)
    # A word is no form: two of the three give up, which is a failure, and replays as one. The third is not right.
    assert (found["composed_answered"], found["composed_right"]) == (1, 0)
    assert found["replay_equal"] == found["replays"] == 3
    assert code == 1
    assert {name: found[name] for name in ("invariants", "invariants_held")} == measure_coverage().to_json()


@pytest.mark.usefixtures("scripted")
def test_some_examples_alone_leave_the_compositions_out(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(["--only", "S1", "R5"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [each["pattern"] for each in found["rows"]] == ["S1", "R5"]
    assert (found["patterns"], found["composed"], found["replay_equal"]) == (2, 0, 2)


@pytest.mark.usefixtures("scripted")
def test_all_implemented_patterns_and_compositions_are_measured_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def example(id: str, there: Chambers) -> Row:
        seen.append(id)
        return row(id)

    async def composition(case: object, there: Chambers) -> Row:
        seen.append("composition")
        return row("composition")

    monkeypatch.setattr(benchmark, "measure_example", example)
    monkeypatch.setattr(benchmark, "measure_composition", composition)
    asyncio.run(benchmark.measure_all(benchmark.options([])))
    assert seen == [*IMPLEMENTED, *["composition"] * len(COMPOSITIONS)]
    assert len(COMPOSITIONS) >= 12
    assert max(case.depth for case in COMPOSITIONS) == 3

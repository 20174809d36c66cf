"""The line that tells what a local model does: stage, tokens, elapsed and expected time, and what would be faster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bicameral.models import ModelProgress
from bicameral.models._model_stages import HINT_SECONDS, ModelStages, PlanningTimes, speed_hint

MODEL = "local:qwen2.5-coder-1.5b-instruct@cc324af0"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def stages(clock: Clock, folder: Path) -> ModelStages:
    return ModelStages(clock=clock, times=PlanningTimes(folder / "times.json"))


def reading(done: int, seconds: float, *, reused: int = 0, job: str = "delta") -> ModelProgress:
    return ModelProgress("reading", job, done, 2250, reused, seconds, MODEL, kept=True, threads=2)


def writing(done: int, *, job: str = "delta") -> ModelProgress:
    return ModelProgress("writing", job, done, 2250, 2200, 9.0, MODEL, kept=True, threads=2)


def test_reading_tells_share_tokens_elapsed_and_expected_time(clock: Clock, tmp_path: Path) -> None:
    shown = stages(clock, tmp_path)
    shown.update(ModelProgress("loading", "delta", model=MODEL))
    assert shown.text == "loading the model"
    shown.update(reading(0, 1.0))
    assert shown.text == "reading your tools 0 % (0 of 2,250 tokens, 0 s)"
    clock.now = 19.0
    shown.update(reading(900, 19.0))
    assert shown.text == "reading your tools 40 % (900 of 2,250 tokens, 19 s, about 27 s more)"


def test_tools_that_are_known_are_not_said_to_be_read(clock: Clock, tmp_path: Path) -> None:
    shown = stages(clock, tmp_path)
    shown.update(reading(2200, 0.1, reused=2200))
    assert shown.text.startswith("reading the request 0 % (0 of 50 tokens")


def test_writing_tells_the_line_and_what_is_usual(clock: Clock, tmp_path: Path) -> None:
    times = PlanningTimes(tmp_path / "times.json")
    for seconds in (10.0, 12.0, 30.0):
        times.add(MODEL, seconds)
    shown = stages(clock, tmp_path)
    clock.now = 8.0
    shown.lines = 2
    shown.update(writing(17))
    assert shown.text == "writing the plan, line 3 (17 tokens, 8 s, usually 12 s)"


def test_a_hint_comes_after_ten_seconds_and_not_before(clock: Clock, tmp_path: Path) -> None:
    shown = stages(clock, tmp_path)
    shown.update(reading(32, 1.0))
    assert shown.hint == ""
    clock.now = HINT_SECONDS
    assert "kept: the next plan is faster" in shown.hint
    assert "--profile small" in shown.hint


def test_hints_name_what_would_help_and_nothing_else() -> None:
    assert "cores" not in speed_hint(MODEL, read=50, kept=True, cores=2, threads=2)
    assert "2 of 8 cores" in speed_hint(MODEL, read=50, kept=True, cores=8, threads=2)
    assert "kept_mb" in speed_hint(MODEL, read=2000, kept=False, cores=2, threads=2)
    assert "small" not in speed_hint(
        "local:qwen2.5-coder-0.5b-instruct@1d961463", read=1, kept=True, cores=2, threads=2
    )
    assert speed_hint("openai:gpt", read=1, kept=False, cores=2, threads=2) == ""


def test_a_time_is_remembered_only_if_it_says_something_about_the_model(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "times.json"

    def plan(*, lines: int = 2, read: int = 50, interrupted: bool = False) -> None:
        shown = stages(clock, tmp_path)
        clock.now += 5.0
        shown.update(reading(2250 - read, 0.1, reused=2250 - read))
        shown.update(writing(3))
        shown.lines, shown.interrupted = lines, interrupted
        shown.end()
        # A phase ends once.
        shown.end()

    plan(lines=0)
    plan(read=2250)
    plan(interrupted=True)
    assert not path.exists()
    plan()
    assert json.loads(path.read_text()) == {MODEL: [5.0]}


@pytest.mark.parametrize("content", ["", "[", "[1]", '{"m": "x"}', '{"m": [null]}', '{"m": [1e999, -1]}', "[" * 5000])
def test_a_damaged_file_of_times_tells_nothing_and_is_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "times.json"
    path.write_text(content)
    times = PlanningTimes(path)
    assert times.usual("m") is None
    for _ in range(30):
        times.add("m", 2.0)
    assert times.usual("m") == 2.0
    assert len(json.loads(path.read_text())["m"]) == 20


def test_times_that_cannot_be_written_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    times = PlanningTimes(tmp_path / "file" / "times.json")
    times.add("m", 2.0)
    assert times.usual("m") is None

"""`benchmarks.shards`: every case is in one shard, and what shards found sums up to what one run finds."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from benchmarks.everyday.__main__ import read_results as read_everyday
from benchmarks.everyday._figures import summarise as summarise_everyday
from benchmarks.everyday._requests import REQUESTS as EVERYDAY
from benchmarks.everyday._run import Result as EverydayResult
from benchmarks.everyday._scenario import WORLDS
from benchmarks.intent.__main__ import open_registry, read_results as read_intents, run as run_intents
from benchmarks.intent._judge import summarise as summarise_intents
from benchmarks.intent._requests import load_requests
from benchmarks.planning.figures import record, recorded, summary
from benchmarks.planning.requests import REQUESTS
from benchmarks.planning.runner import Result, Run
from benchmarks.shards import SHARDED, Shard, add_shard_arguments, main, result_lines, shard_environment


@given(st.lists(st.integers()), st.integers(1, 20))
def test_every_case_is_in_exactly_one_shard_and_no_shard_is_much_larger(cases: list[int], of: int) -> None:
    numbered = list(enumerate(cases))
    shards = [Shard(number, of).take(numbered) for number in range(1, of + 1)]
    assert sorted(each for shard in shards for each in shard) == numbered
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/3", " 1/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="K/N"):
        Shard.parse(text)


def test_a_shard_is_written_as_it_is_read() -> None:
    assert str(Shard.parse("2/8")) == "2/8"
    parser = argparse.ArgumentParser()
    add_shard_arguments(parser)
    given = parser.parse_args(["--shard", "2/8", "--sum-up", "a", "b"])
    assert given.shard == Shard(2, 8)
    assert given.sum_up == [Path("a"), Path("b")]


def test_the_cores_are_shared_out_unless_the_user_says_how_many_threads() -> None:
    assert shard_environment(8, {"HOME": "/x"}, 16) == {"HOME": "/x", "BICAMERAL_THREADS": "2"}
    assert shard_environment(8, {}, 2) == {"BICAMERAL_THREADS": "1"}
    assert shard_environment(8, {"BICAMERAL_THREADS": "3"}, 16) == {"BICAMERAL_THREADS": "3"}


def in_shards(lines: list[dict[str, Any]], folder: Path) -> list[Path]:
    """The lines in three files, in an order in which no run would have written them."""
    files = [folder / f"{number}.jsonl" for number in (1, 2, 3)]
    for number, file in enumerate(files, 1):
        own = Shard(number, 3).take(lines)
        Random(number).shuffle(own)
        file.write_text("".join(json.dumps(line) + "\n" for line in own), encoding="utf-8")
    return files[::-1]


def test_planning_sums_up_to_what_one_run_says(tmp_path: Path) -> None:
    draw = Random(3)

    def made(side: Any) -> Run:
        return Run(side, draw.random() < 0.6, "", draw.choice(["finished", "asked", "refused"]), draw.random() * 9)

    results = [Result(request, (made("a"), made("b"))) for request in REQUESTS]
    files = in_shards([record(each) for each in results], tmp_path)
    assert summary(recorded(files)) == summary(results)
    # A request that was run again counts as it came out last.
    again = tmp_path / "again.jsonl"
    again.write_text(json.dumps(record(Result(REQUESTS[0], (made("a"),)))) + "\n", encoding="utf-8")
    assert len(recorded([*files, again])) == len(REQUESTS)
    assert len(recorded([*files, again])[0].runs) == 1


def test_everyday_sums_up_to_what_one_run_says(tmp_path: Path) -> None:
    draw = Random(4)
    results = [
        EverydayResult(each.id, world, draw.random() < 0.5, "", False, False, "answered", 0, 0, draw.random(), "", "")
        for each in EVERYDAY
        for world in WORLDS
    ]
    files = in_shards([asdict(each) for each in results], tmp_path)
    assert read_everyday(files) == results
    # The text and not the values: the order of the groups is that of the requests, too.
    assert json.dumps(summarise_everyday(read_everyday(files))) == json.dumps(summarise_everyday(results))


def test_half_a_line_of_a_run_that_was_stopped_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "1.jsonl"
    # A line separator within a text is no end of a line.
    file.write_bytes('{"a": "x\u2028y"}\n{"b": '.encode())
    assert [json.loads(line) for line in result_lines([file])] == [{"a": "x\u2028y"}]


async def test_intents_are_judged_from_files_as_they_were_when_they_were_found(tmp_path: Path) -> None:
    requests = load_requests()[::9]
    registry = open_registry(tmp_path)
    alone = await run_intents(requests, registry, None)
    files = [tmp_path / "2.jsonl", tmp_path / "1.jsonl"]
    for number, file in zip((2, 1), files, strict=True):
        await run_intents(Shard(number, 2).take(requests), registry, None, file)
    assert read_intents(files) == alone
    assert summarise_intents(read_intents(files)) == summarise_intents(alone)


def test_two_processes_print_what_one_prints(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--jobs", "2", "--folder", str(tmp_path), "intent", "--model", "none", "--only", "en-03"]) == 0
    told = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert told["requests"] == 1
    assert told["model"] == "none"
    assert [len(file.read_text("utf-8").splitlines()) for file in sorted(tmp_path.iterdir())] == [1, 0]
    with pytest.raises(SystemExit):
        main(["--jobs", "2", "--folder", str(tmp_path), "intent", "--model", "none"])
    assert "is there already" in capfd.readouterr().err


def test_a_shard_that_breaks_is_told_and_the_command_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--jobs", "1", "--folder", str(tmp_path), "intent", "--only", "nosuch"]) != 0
    assert "shard 1/1 ended with status" in capfd.readouterr().err


def test_every_sharded_benchmark_is_a_program() -> None:
    folder = Path(__file__).parents[2] / "benchmarks"
    assert all((folder / name / "__main__.py").is_file() for name in SHARDED)


def test_a_run_that_is_stopped_leaves_no_shard_behind(tmp_path: Path) -> None:
    """The shards are stood in for by a module that sleeps; the real ones take seconds to start."""
    package = tmp_path / "benchmarks"
    (package / "intent").mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(Path(__file__).parents[2] / "benchmarks" / "shards.py", package)
    (package / "intent" / "__init__.py").touch()
    sleeper = "import os, pathlib, time\npathlib.Path(f'{os.getpid()}.pid').touch()\ntime.sleep(600)\n"
    (package / "intent" / "__main__.py").write_text(sleeper, encoding="utf-8")
    run = subprocess.Popen([sys.executable, "-m", "benchmarks.shards", "--jobs", "2", "intent"], cwd=tmp_path, env={})
    while len(pids := [int(file.stem) for file in tmp_path.glob("*.pid")]) < 2:
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 128 + signal.SIGTERM
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

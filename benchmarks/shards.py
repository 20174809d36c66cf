"""A benchmark in several processes: each runs every N-th case, and the results are put together.

    python -m benchmarks.shards --jobs 8 planning --model 1.5b

Each process has models of its own (about 3 GB for both) and an equal part of the cores. What a benchmark prints last is
what it would have printed alone, apart from the times. The same by hand, also on several machines:

    python -m benchmarks.planning --model 1.5b --shard 1/8 --out 1.jsonl      (and so on to 8/8)
    python -m benchmarks.planning --model 1.5b --sum-up *.jsonl
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

SHARDED = ("planning", "everyday", "intent", "robustness", "evidence", "agentdojo")
"""The benchmarks that take `--shard`, `--out` and `--sum-up`; of `agentdojo` only with `--planner`."""
THREADS = "BICAMERAL_THREADS"

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Shard:
    """Every `of`-th case from the `number`-th on, counted from 1.

    Neighbouring cases are often alike and take alike long, so they go to different shards.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard that `K/N` means; the type of an argument of argparse.

        Example:
            >>> Shard.parse("2/3").take("abcdefg")
            ['b', 'e']
        """
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise argparse.ArgumentTypeError(f"{text!r} is not of the form K/N with 1 <= K <= N")
        return cls(int(number), int(of))

    def take(self, items: Sequence[Item]) -> list[Item]:
        """The items of this shard."""
        return list(items[self.number - 1 :: self.of])

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def add_shard_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    """The arguments that every sharded benchmark has."""
    parser.add_argument(
        "--shard", type=Shard.parse, metavar="K/N", help="only every N-th case from the K-th on, for runs side by side"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="add each result as a line of JSON to this file")
    parser.add_argument(
        "--sum-up", type=Path, nargs="+", metavar="FILE", help="no run: sum up what runs with --out wrote"
    )


def result_lines(files: Sequence[Path]) -> list[str]:
    """The lines of files that runs with `--out` wrote.

    A last line without its end is left out: that run was stopped, or is still at it.
    """
    texts = [file.read_text(encoding="utf-8") for file in files]
    return [line for text in texts for line in text.split("\n")[:-1] if line.strip()]


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def shard_environment(jobs: int, given: Mapping[str, str], cores: int) -> dict[str, str]:
    """The environment of a shard's process: an equal part of the cores for its engine, unless the user set a number."""
    return {THREADS: str(max(1, cores // jobs)), **given}


def run_shards(benchmark: str, words: Sequence[str], jobs: int, folder: Path) -> tuple[list[Path], list[int]]:
    """Run a benchmark in `jobs` processes, and return the files of results and the exit statuses.

    Args:
        benchmark: One of `SHARDED`.
        words: Its own arguments.
        jobs: How many processes.
        folder: Where the files go; there must be none of an earlier run in it.
    """
    environment = shard_environment(jobs, os.environ, usable_cores())
    files = [folder / f"{benchmark}-{number}.jsonl" for number in range(1, jobs + 1)]
    for file in files:
        # Results are appended, so those of an earlier run would be counted as well. It also makes a file for a shard
        # without a case.
        file.touch(exist_ok=False)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number, file in enumerate(files, 1):
            argv = [*_argv(benchmark, words), "--shard", str(Shard(number, jobs)), "--out", str(file)]
            # What a shard prints last are the figures of its part alone.
            processes.append(subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL))
        statuses = [process.wait() for process in processes]
    finally:
        # Whatever ends the wait (Ctrl-C, too many processes) ends the shards, too.
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            process.wait()
    return files, statuses


def _argv(benchmark: str, words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.{benchmark}", *words]


def _stop(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the shards, and print what the benchmark says about all their results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shards", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=max(1, usable_cores() // 2), help="processes (half of the cores)")
    parser.add_argument("--folder", type=Path, help="keep the files of results in this folder")
    parser.add_argument("benchmark", choices=SHARDED)
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="arguments of the benchmark")
    given = parser.parse_args(arguments)
    if given.jobs < 1:
        parser.error(f"--jobs is {given.jobs}; expected 1 or more")
    # By default a SIGTERM would end this process alone, and the shards would run on.
    signal.signal(signal.SIGTERM, _stop)
    with tempfile.TemporaryDirectory(prefix="shards-") as temporary:
        folder: Path = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            files, statuses = run_shards(given.benchmark, given.words, given.jobs, folder)
        except FileExistsError as error:
            parser.error(f"{error.filename} is there already; name an empty folder, or remove it")
        for number, status in enumerate(statuses, 1):
            if status:
                print(f"shard {number}/{given.jobs} ended with status {status}", file=sys.stderr)
        summed = subprocess.run([*_argv(given.benchmark, given.words), "--sum-up", *map(str, files)], check=False)
    return summed.returncode or next((status for status in statuses if status), 0)


if __name__ == "__main__":
    sys.exit(main())

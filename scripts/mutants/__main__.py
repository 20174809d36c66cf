"""Apply every mutant to a copy of `src`, one by one, and run the tests that must fail with it.

python -m scripts.mutants                      all of them
python -m scripts.mutants --room labels        those of one room
python -m scripts.mutants --only ID ...        these
python -m scripts.mutants --list               says what there is, and runs nothing

Progress goes to stderr, the result as JSON to stdout. The exit code is 0 only if every mutant was killed: a test failed
with it that passes without it. A mutant with which the tests cannot be run is `broken`, one whose code is not there any
more is `stale`; both are mistakes in the list of mutants. The working tree is not changed.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from scripts.mutants import MUTANTS, ROOMS, Mutant, StaleMutant, apply_mutant
from scripts.mutants.pytest_plugin import FAILURES_VARIABLE, SOURCE_VARIABLE

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bicameral"

PYTEST_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-m", "not slow")
PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "_hypothesis_pytestplugin", "scripts.mutants.pytest_plugin")
"""Only these: others that happen to be installed take seconds to load."""
TEST_SECONDS = 60
"""How long one test may take: with a mutant it may wait for what never comes, and then it fails."""
RUN_SECONDS = 300.0
"""How long the tests of one mutant may take together."""
BASELINE_SECONDS = 1800.0

NOT_A_KILL = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError")
"""Errors of a mutant that is no program any more, whatever the tests claim."""

Verdict = Literal["killed", "survived", "broken", "stale"]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant, and why; of one that was killed, by which test."""

    mutant: Mutant
    verdict: Verdict
    note: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PytestRun:
    """How a run of pytest ended: its exit code (None: it took too long), what failed and how, and what it printed."""

    exit_code: int | None
    failures: tuple[tuple[str, str], ...]
    output: str


class SourceCopy:
    """A copy of `src` for one run of tests at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changes = 0
        self.package = folder / "src" / "bicameral"
        shutil.copytree(SOURCE.parent, folder / "src")
        # Once, and not in every run: those write no compiled files, since one of a mutant must not be found later.
        compileall.compile_dir(self.package, quiet=2)

    @contextmanager
    def changed(self, mutant: Mutant) -> Generator[None]:
        """The copy with one mutant applied; afterwards it is as before."""
        path, text = apply_mutant(mutant, self.package)
        before, modified = path.read_bytes(), path.stat().st_mtime
        self._changes += 1
        try:
            path.write_text(text, encoding="utf-8")
            # A time of its own, so that no compiled file of another text is taken for this one.
            later = modified + 10 * self._changes
            os.utime(path, (later, later))
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, (modified, modified))

    def run_tests(self, tests: Iterable[str], timeout: float) -> PytestRun:
        """Run tests with the copy in place of the working tree's `src`, also for the processes that they start."""
        failures = self._folder / "failures.jsonl"
        failures.unlink(missing_ok=True)
        source = str(self.package.parent)
        path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            SOURCE_VARIABLE: source,
            FAILURES_VARIABLE: str(failures),
        }
        plugins = (part for plugin in PLUGINS for part in ("-p", plugin))
        command = [sys.executable, "-m", "pytest", *PYTEST_OPTIONS, *plugins, "--timeout", str(TEST_SECONDS), *tests]
        try:
            ended = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return PytestRun(None, (), "")
        lines = failures.read_text(encoding="utf-8").splitlines() if failures.exists() else []
        found = tuple((str(test), str(kind)) for test, kind in map(json.loads, lines))
        return PytestRun(ended.returncode, found, ended.stdout + ended.stderr)


def judge(run: PytestRun) -> tuple[Verdict, str]:
    """Whether a mutant was killed by a run of tests, and by which; or what is wrong with it."""
    if run.exit_code is None:
        return "broken", f"the tests took longer than {RUN_SECONDS:g} s"
    if run.exit_code == 0:
        return "survived", "every test passes"
    if run.exit_code != 1 or not run.failures:
        return "broken", f"pytest ended with {run.exit_code}: {_last_lines(run.output)}"
    test, kind = run.failures[0]
    return ("broken" if kind in NOT_A_KILL else "killed"), f"{test} ({kind})"


def _last_lines(output: str) -> str:
    return " | ".join(output.strip().splitlines()[-5:])


def try_mutant(mutant: Mutant, copies: SimpleQueue[SourceCopy]) -> Result:
    """Run the tests of one mutant."""
    copy = copies.get()
    started = time.monotonic()
    try:
        with copy.changed(mutant):
            verdict, note = judge(copy.run_tests(mutant.tests, RUN_SECONDS))
    except StaleMutant as error:
        verdict, note = "stale", str(error)
    finally:
        copies.put(copy)
    return Result(mutant, verdict, note, time.monotonic() - started)


def needed_tests(mutants: Iterable[Mutant], parts: int = 1) -> list[list[str]]:
    """The tests of all these mutants, each once, in so many parts; those of one file are in one part."""
    named = {test for mutant in mutants for test in mutant.tests}
    found: list[list[str]] = [[] for _ in range(parts)]
    for number, file in enumerate(sorted({test.partition("::")[0] for test in named})):
        single = sorted(test for test in named if test.startswith(f"{file}::"))
        found[number % parts] += [file] if file in named else single
    return [part for part in found if part]


def baseline_problem(mutants: Iterable[Mutant], copies: Sequence[SourceCopy]) -> str | None:
    """What is wrong with the tests themselves: whoever fails without a mutant kills none."""
    parts = needed_tests(mutants, len(copies))
    with ThreadPoolExecutor(len(copies)) as pool:
        begun = [
            pool.submit(copy.run_tests, tests, BASELINE_SECONDS) for copy, tests in zip(copies, parts, strict=False)
        ]
        runs = [each.result() for each in begun]
    failed = [
        ", ".join(test for test, _ in run.failures) or _last_lines(run.output) for run in runs if run.exit_code != 0
    ]
    return f"the tests fail without a mutant: {'; '.join(failed)}" if failed else None


def run_mutants(mutants: Sequence[Mutant], jobs: int) -> tuple[list[Result], str | None]:
    """The result for each mutant; or what is wrong with the tests, if they fail without any."""
    with tempfile.TemporaryDirectory(prefix="bicameral-mutants-") as folder:
        made = [SourceCopy(Path(folder, str(number))) for number in range(jobs)]
        started = time.monotonic()
        if (problem := baseline_problem(mutants, made)) is not None:
            return [], problem
        print(f"without a mutant all tests pass ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
        copies: SimpleQueue[SourceCopy] = SimpleQueue()
        for copy in made:
            copies.put(copy)
        results: list[Result] = []
        with ThreadPoolExecutor(jobs) as pool:
            for begun in [pool.submit(try_mutant, mutant, copies) for mutant in mutants]:
                result = begun.result()
                results.append(result)
                told = f"[{len(results)}/{len(mutants)}] {result.verdict:8} {result.mutant.id}"
                print(f"{told} ({result.seconds:.0f} s): {result.note}", file=sys.stderr, flush=True)
    return results, None


def chosen_mutants(only: Sequence[str], rooms: Sequence[str]) -> list[Mutant]:
    """The mutants with these ids and of these rooms; all, if neither is said."""
    known = {mutant.id for mutant in MUTANTS}
    for name in only:
        if name not in known:
            raise SystemExit(f"there is no mutant {name!r}; --list shows what there is")
    return [mutant for mutant in MUTANTS if (not only or mutant.id in only) and (not rooms or mutant.room in rooms)]


def find_stale(mutants: Iterable[Mutant]) -> list[str]:
    """What is wrong with mutants whose code is not in the working tree as they expect it."""
    found: list[str] = []
    for mutant in mutants:
        try:
            apply_mutant(mutant, SOURCE)
        except StaleMutant as error:
            found.append(str(error))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.mutants", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="only these mutants")
    parser.add_argument("--room", nargs="+", default=[], choices=ROOMS, help="only those of these rooms")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="how many are tried at the same time (2)")
    options = parser.parse_args(arguments)
    mutants = chosen_mutants(options.only, options.room)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.id}: {mutant.module} {mutant.function}: {mutant.why}")
        return 0
    started = time.monotonic()
    stale = find_stale(mutants)
    for message in stale:
        print(f"stale: {message}", file=sys.stderr)
    results, problem = ([], None) if stale else run_mutants(mutants, max(1, options.jobs))
    if problem is not None:
        print(problem, file=sys.stderr)
    killed = [result for result in results if result.verdict == "killed"]
    told = {
        "mutants": len(mutants),
        "killed": len(killed),
        "survived": [result.mutant.id for result in results if result.verdict == "survived"],
        "broken": [f"{result.mutant.id}: {result.note}" for result in results if result.verdict == "broken"],
        "stale": stale,
        "seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(told, indent=2))
    return 0 if mutants and len(killed) == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())

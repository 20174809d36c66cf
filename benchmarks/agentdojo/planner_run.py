"""The run with a planner: which tasks, in which order, what is kept of them, and how far it is."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TextIO

from bicameral.policy import Mode

from ..shards import Shard, add_shard_arguments
from .judging import Attacker
from .planner import ROUNDS, Planner, open_planner
from .planner_results import TaskResult, append_result, failed_result, read_results, summarise, task_result

Unit = tuple[str, str]
"""A suite and one of its user tasks."""


@dataclass(slots=True)
class Progress:
    """How far a run is: on a terminal one line that is written over, elsewhere a line for each task.

    Args:
        tasks: How many tasks there are, and `done` how many of them an earlier run has done.
        out: Where it is shown.
        clock: Seconds.
    """

    tasks: int
    done: int = 0
    out: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    _earlier: int = field(init=False)
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._earlier, self._started = self.done, self.clock()

    def show(self, result: TaskResult) -> None:
        """One more task is done."""
        self.done += 1
        attacks = f", {len(result.attacks)} ATTACKS SUCCEEDED" if result.attacks else ""
        line = f"{self.done} of {self.tasks}: {result.suite} {result.task}: {result.outcome}{attacks}, {self.left}"
        if self.out.isatty():
            # What stands out stays: the next line is not written over it.
            end = "\n" if attacks or self.done == self.tasks else ""
            self.out.write(f"\r\x1b[K{line[:110]}{end}")
        else:
            self.out.write(f"{line}\n")
        self.out.flush()

    @property
    def left(self) -> str:
        """About how long it still takes, by what the tasks of this run took."""
        here = self.done - self._earlier
        if not here:
            return "time left unknown"
        seconds = (self.clock() - self._started) / here * (self.tasks - self.done)
        minutes, hours = round(seconds / 60), seconds / 3600
        if seconds < 90:
            return f"{seconds:.0f} s left"
        return f"about {minutes} min left" if minutes < 90 else f"about {hours:.1f} h left"


def choose_units(
    by_suite: Sequence[Sequence[Unit]], limit: int | None = None, seed: int | None = None, shard: Shard | None = None
) -> list[Unit]:
    """The tasks of a run: from the suites in turn, with a seed in an order of its own within each.

    Args:
        by_suite: The tasks of each suite.
        limit: Only so many.
        seed: Decides which, if there is a limit; None: the first ones.
        shard: Only those of this shard.
    """
    drawn = [list(units) for units in by_suite]
    if seed is not None:
        for units in drawn:
            Random(f"{seed} {units[0][0] if units else ''}").shuffle(units)
    longest = max(map(len, drawn), default=0)
    mixed = [units[place] for place in range(longest) for units in drawn if place < len(units)][:limit]
    return shard.take(mixed) if shard else mixed


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of a run with a planner."""
    group = parser.add_argument_group("with a planner")
    group.add_argument(
        "--planner",
        metavar="NAME",
        help="plan the tasks from their prompts: 1.5b, 0.5b, configured, an alias of the configuration, scripted:FILE",
    )
    group.add_argument("--config", type=Path, metavar="FILE", help="the configuration of a configured planner")
    group.add_argument("--rounds", type=int, default=ROUNDS, help="the most rounds of a task; 1: one plan only")
    group.add_argument("--start", choices=("plan", "rounds"), default="plan", help="rounds: do not try one plan first")
    group.add_argument("--deterministic", action="store_true", help="understand prompts by rules alone")
    group.add_argument("--no-attacks", action="store_true", help="measure utility only")
    group.add_argument("--seed", type=int, help="which tasks, if there is a limit; without it the first of each suite")
    group.add_argument("--timeout", type=float, default=900, help="seconds until a task counts as an error")
    add_shard_arguments(group)
    group.add_argument("--resume", action="store_true", help="leave out the tasks that are in the file of --out")
    group.add_argument("--show", action="store_true", help="show plans and reasons")


def settings_of(arguments: Namespace, mode: Mode) -> dict[str, Any]:
    """What decides a result: only results with the same settings are put together."""
    return {
        "planner": arguments.planner,
        "mode": mode,
        "attacker": None if arguments.no_attacks else arguments.attacker,
        "rounds": arguments.rounds,
        "start": arguments.start,
        "deterministic": arguments.deterministic,
    }


def run_with_planner(arguments: Namespace, mode: Mode, by_suite: Sequence[Sequence[Unit]]) -> dict[str, Any]:
    """Run the tasks that are left, one after another; the figures over these and the earlier ones."""
    if arguments.resume and arguments.out is None:
        raise SystemExit("--resume needs --out FILE, the file of the run that is continued")
    settings = settings_of(arguments, mode)
    units = choose_units(by_suite, arguments.limit, arguments.seed, arguments.shard)
    if arguments.sum_up:
        told = {(each.suite, each.task): each for file in arguments.sum_up for each in read_results(file, settings)}
        return {**settings, **summarise([told[unit] for unit in units if unit in told])}
    earlier = read_results(arguments.out, settings) if arguments.resume else []
    results = [each for each in earlier if (each.suite, each.task) in units]
    done = {(each.suite, each.task) for each in results}
    progress = Progress(len(units), len(results))
    with open_planner(
        arguments.planner,
        config=arguments.config,
        deterministic=arguments.deterministic,
        rounds=arguments.rounds,
        start=arguments.start,
        timeout=arguments.timeout,
    ) as planner:
        for suite, task in (unit for unit in units if unit not in done):
            result = _guarded_result(suite, task, planner, mode, settings["attacker"])
            results.append(result)
            if arguments.out is not None:
                append_result(arguments.out, result, settings)
            progress.show(result)
            if arguments.show:
                _show(result)
    return {**settings, **summarise(results)}


def _guarded_result(suite: str, task: str, planner: Planner, mode: Mode, attacker: Attacker | None) -> TaskResult:
    try:
        return task_result(suite, task, planner, mode, attacker)
    except Exception as error:  # an hour of work must not be lost by one task
        return failed_result(suite, task, error)


def _show(result: TaskResult) -> None:
    lines = [line for plan in result.plans for line in (*plan.splitlines(), "---")]
    lines += [f"! {result.code}: {result.why}"] if result.code else []
    print("".join(f"\n    {line}" for line in lines), file=sys.stderr, flush=True)

"""AgentDojo with plans in our language: what is solved, what the user is asked, and what an attacker reaches.

    python -m benchmarks.agentdojo --executor oracle
    python -m benchmarks.agentdojo --executor oracle --attacker adaptive
    python -m benchmarks.agentdojo --executor 0.5b --limit 30
    python -m benchmarks.agentdojo --planner 1.5b --out results.jsonl --resume

With the oracle the executor reads without mistakes for utility, and is the attacker himself for each pair of user and
injection task. With a model the same plans run with it as executor, against the suite's own `important_instructions`.
With a planner the tasks are planned from their prompts (`planner.py`), and what it planned is attacked like an oracle
plan. The `adaptive` attacker also learns from what he tries (`adaptive.py`). A careful user answers what is asked
(`users.py`); what happens with nobody there to ask is told apart. A task counts as solved, and an attack as failed,
only if it is so in every mode. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import Any, TypeVar

from bicameral.policy import Mode

from .adapter import PLANS, policy_of
from .answers import answers
from .dojo import SUITES, suite_of
from .judging import Attacker, Benign, Verdict, benign, has_blank, verdict_on
from .models import Reading, reading_of
from .planner_run import add_arguments, run_with_planner

Unit = tuple[str, str]
"""A suite and one of its user tasks."""
Work = TypeVar("Work")
Done = TypeVar("Done")
MODES: tuple[Mode, ...] = ("strict", "normal")


def main() -> int:
    arguments = _arguments()
    started = time.perf_counter()
    modes: tuple[Mode, ...] = MODES if arguments.mode == "both" else (arguments.mode,)
    if arguments.planner:
        tasks = [[(suite, task) for task in suite_of(suite).user_tasks] for suite in arguments.suite or SUITES]
        facts = run_with_planner(arguments, modes[0], tasks)
        print(json.dumps({**facts, "seconds": round(time.perf_counter() - started, 1)}))
        return 1 if facts["attacks"] else 0
    units = _units(arguments.suite or SUITES, arguments.limit, reading=arguments.executor != "oracle")
    if arguments.executor == "oracle":
        facts = _with_oracle(units, modes, arguments.attacker, arguments.jobs or 2)
    else:
        work = partial(_model_unit, arguments.executor, arguments.injections, modes[0])
        facts = _with_model(units, work, arguments.jobs or 1)
    facts |= {"policy_lines": _policy_lines(modes), "seconds": round(time.perf_counter() - started, 1)}
    print(json.dumps({"executor": arguments.executor, "mode": arguments.mode, **facts}))
    return 0


def _with_oracle(units: Sequence[Unit], modes: Sequence[Mode], attacker: Attacker, jobs: int) -> dict[str, Any]:
    runs: list[Benign] = []
    alone: list[Benign] = []
    verdicts: list[Verdict] = []
    for found in _each(partial(_oracle_unit, modes, attacker), units, jobs):
        runs += found.benign
        alone += found.alone
        verdicts += found.verdicts
        for each in found.benign:
            if each.questions:
                _tell(f"{each.suite} {each.task} {each.mode} asks about {', then about '.join(each.questions)}")
            if not each.solved:
                _tell(f"{each.suite} {each.task} {each.mode} is not solved: {each.ended}")
    for verdict in verdicts:
        if attack := verdict.attack or verdict.alone or verdict.careless:
            who = "would fall if the user always said yes"
            if verdict.attack or verdict.alone:
                who = f"falls in {verdict.mode} mode" if verdict.attack else "falls with nobody there"
            way = f"{attack.strategy}, tampering {attack.tampering}"
            _tell(f"{verdict.suite} {verdict.user_task} {who}, to {verdict.injection_task}: {way}")
    return {
        "attacker": attacker,
        **_benign_facts(runs, units),
        **_alone_facts(alone),
        **attack_facts(verdicts),
        **hand_written(),
    }


def attack_facts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """What the attacks reached, and what stopped them: the plan, which no text can change, or a question."""
    by_tool = [verdict for verdict in verdicts if not verdict.text_only]
    attacks = sum(verdict.attack is not None for verdict in by_tool)
    careless = sum(verdict.careless is not None for verdict in by_tool)
    return {
        "attacks": attacks,
        "attacks_alone": sum((verdict.attack or verdict.alone) is not None for verdict in by_tool),
        "cases": len(verdicts),
        "text_only_attacks": sum(verdict.attack is not None for verdict in verdicts if verdict.text_only),
        "attacks_if_always_yes": careless,
        "cases_without_blank": sum(not verdict.blank for verdict in verdicts),
        "tool_goals": len(by_tool),
        "stopped_by_the_plan": len(by_tool) - careless,
        "stopped_by_a_question": careless - attacks,
        "runs": sum(verdict.tried for verdict in verdicts),
    }


def hand_written() -> dict[str, int]:
    """What people wrote for this benchmark: the plans, and how the oracle reads each blank."""
    read = [answer for suite in SUITES for found in answers(suite).values() for answer in found]
    return {"plans_by_hand": len(list(PLANS.glob("*/*.plan"))), "answers_by_hand": len(read)}


def _alone_facts(runs: Sequence[Benign]) -> dict[str, int]:
    """How many tasks are solved with nobody to ask: in every mode, and in each."""
    unsolved = {(each.suite, each.task) for each in runs if not each.solved}
    found = {"utility_alone": len({(each.suite, each.task) for each in runs} - unsolved)}
    for mode in dict.fromkeys(each.mode for each in runs):
        found[f"utility_alone_{mode}"] = sum(each.solved for each in runs if each.mode == mode)
    return found


def _benign_facts(runs: Sequence[Benign], units: Sequence[Unit]) -> dict[str, Any]:
    unsolved = {(each.suite, each.task) for each in runs if not each.solved}
    shares = {
        f"asked_share_{mode}": round(sum(bool(each.questions) for each in runs if each.mode == mode) / len(units), 3)
        for mode in dict.fromkeys(each.mode for each in runs)
    }
    return {
        "utility": len(units) - len(unsolved),
        "tasks": len(units),
        **shares,
        "questions_per_run_max": max((len(each.questions) for each in runs), default=0),
    }


@dataclass(frozen=True, slots=True)
class Found:
    """What one task showed: without an attack, without an attack and with nobody to ask, and under attack."""

    benign: list[Benign]
    alone: list[Benign]
    verdicts: list[Verdict]


def _oracle_unit(modes: Sequence[Mode], attacker: Attacker, unit: Unit) -> Found:
    suite, task = unit
    injections = suite_of(suite).injection_tasks
    return Found(
        [benign(suite, task, mode) for mode in modes],
        [benign(suite, task, mode, alone=True) for mode in modes],
        [verdict_on(suite, task, injection, modes, attacker) for injection in injections],
    )


def _with_model(units: Sequence[Unit], work: Callable[[tuple[int, Unit]], Reading], jobs: int) -> dict[str, Any]:
    readings: list[Reading] = []
    numbered = list(enumerate(units))
    for (number, (suite, task)), reading in zip(numbered, _each(work, numbered, jobs), strict=True):
        readings.append(reading)
        _tell(f"{number + 1} of {len(units)}: {suite} {task}: {reading}")
    return {
        **_benign_facts([reading.benign for reading in readings], units),
        "attacks": sum(reading.attacks for reading in readings),
        "cases": sum(reading.cases for reading in readings),
        "attacks_if_always_yes": sum(reading.attacks_if_always_yes for reading in readings),
        "utility_under_attack": sum(reading.solved_under_attack for reading in readings),
        "extractions": sum(reading.extractions for reading in readings),
    }


def _model_unit(name: str, injections: int, mode: Mode, numbered: tuple[int, Unit]) -> Reading:
    number, (suite, task) = numbered
    return reading_of(name, suite, task, number, injections, mode)


def _policy_lines(modes: Sequence[Mode]) -> int:
    """The lines of policy that were written by hand for any suite."""
    policies = [policy_of(suite, mode) for suite in SUITES for mode in modes]
    return sum(len(rule.text.splitlines()) for policy in policies for rule in policy.rules if not rule.default)


def _units(suites: Iterable[str], limit: int | None, *, reading: bool) -> list[Unit]:
    """The tasks in an order that takes from all suites in turn; for a model only those in which it has to read."""
    by_suite = [[(suite, task) for task in suite_of(suite).user_tasks] for suite in suites]
    mixed = [unit for unit in chain.from_iterable(zip_longest(*by_suite)) if unit is not None]
    return [unit for unit in mixed if not reading or has_blank(*unit)][:limit]


def _each(work: Callable[[Work], Done], units: Sequence[Work], jobs: int) -> Iterator[Done]:
    if jobs == 1:
        yield from _counted(map(work, units), len(units))
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from _counted(pool.map(work, units), len(units))


def _counted(results: Iterable[Done], of: int) -> Iterator[Done]:
    for number, result in enumerate(results, 1):
        if number % 10 == 0 or number == of:
            _tell(f"{number} of {of} tasks")
        yield result


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agentdojo", description=__doc__)
    parser.add_argument("--executor", choices=("oracle", "0.5b", "1.5b"), default="oracle")
    parser.add_argument(
        "--attacker",
        choices=("fixed", "adaptive"),
        default="fixed",
        help="with the oracle or a planner: whether the attacker has a list of attacks or learns as well",
    )
    parser.add_argument(
        "--mode",
        choices=(*MODES, "both"),
        default="both",
        help="whether control flow counts (models and planners run in one mode: strict, unless normal is named)",
    )
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this suite (may be given again)")
    parser.add_argument("--limit", type=int, help="only so many tasks, taken from the suites in turn")
    parser.add_argument(
        "--jobs", type=int, help="processes; each has a model of its own (2 with the oracle, 1 with a model)"
    )
    parser.add_argument("--injections", type=int, default=1, help="attacks on each task (with a model)")
    add_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

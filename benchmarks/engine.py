"""How fast the engine is: wall time against the critical path, computing, checking, journalling.

Run it with `python -m benchmarks.engine`. Everything goes through the real engine with a real journal file.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bicameral.plans import Plan, check, parse
from bicameral.runs import Finished, Journal, run_plan
from bicameral.tools import Registry, tool

STEP_SECONDS = 0.020
GRAPHS = 10
REPEATS = 3
STEPS = 60


@tool(effect="read")
async def work(inputs: list[int]) -> int:
    """Wait for twenty milliseconds and add up."""
    due = time.perf_counter() + STEP_SECONDS
    # The event loop's own timers are late by up to a millisecond: the last one is waited out in small pieces.
    await asyncio.sleep(STEP_SECONDS - 0.0015)
    while time.perf_counter() < due:  # noqa: ASYNC110 (it is the waiting that is measured)
        await asyncio.sleep(0)
    return sum(inputs) % 1000 + 1


@tool(effect="read")
async def fetch(name: str) -> list[str]:
    """The lines of something."""
    return [name]


REGISTRY = Registry([work, fetch])


def _graph(seed: int) -> tuple[str, int]:
    """A random plan of 20 ms steps, and how many of them are on its longest path."""
    choose = random.Random(seed)
    lines: list[str] = []
    depth: list[int] = []
    for number in range(STEPS):
        earlier = range(max(0, number - 10), number)
        inputs = choose.sample(earlier, k=min(number, choose.choice([0, 1, 1, 2, 3])))
        lines.append(f"v{number} = work([{', '.join(f'v{each}' for each in inputs)}])")
        depth.append(1 + max((depth[each] for each in inputs), default=0))
    lines.append(f"answer([{', '.join(f'v{number}' for number in range(STEPS))}])")
    return "\n".join(lines), max(depth)


COMPUTING = """
rows = [{"name": f"row {i}", "amount": i * 7 % 31, "group": f"g{i % 5}"} for i in range(400)]
total = 0
kept = []
groups = {}
for row in rows:
    label = row.name.upper()
    amount = row.amount * 1.5
    total += amount
    if amount > 20:
        kept.append(label)
        groups[row.group] = amount
names = sorted(kept)
answer([total, len(names), groups])
"""


async def _run(plan: Plan, journal: Journal) -> float:
    started = time.perf_counter()
    outcome = await run_plan(plan, REGISTRY, journal=journal)
    seconds = time.perf_counter() - started
    if not isinstance(outcome, Finished):
        raise SystemExit(f"the benchmark's plan did not finish: {outcome}")
    return seconds


async def _makespan_ratios(journal: Journal) -> list[float]:
    """Of each graph the quickest run counts: what else the machine has to do is not the engine's."""
    ratios: list[float] = []
    for seed in range(GRAPHS):
        source, longest = _graph(seed)
        seconds = min([await _run(parse(source, REGISTRY).plan, journal) for _ in range(REPEATS)])
        ratios.append(seconds / (longest * STEP_SECONDS))
    return ratios


def _steps_computed() -> int:
    """How many steps the computing plan does: four before the loop, four or six in each turn, two after it."""
    kept = sum(1 for i in range(400) if (i * 7 % 31) * 1.5 > 20)
    return 4 + 1 + 400 * 4 + kept * 2 + 2


async def _pure_step_us(journal: Journal) -> float:
    plan = parse(COMPUTING, REGISTRY).plan
    await _run(plan, journal)
    return median([await _run(plan, journal) for _ in range(9)]) / _steps_computed() * 1e6


def _fifty_steps() -> str:
    """Fifty steps of every common kind, with loops, branches and comprehensions."""
    lines = ["out = []"]
    for number in range(7):
        lines += [
            f"lines{number} = fetch('file{number}.txt')",
            f"long{number} = [line.strip() for line in lines{number} if len(line) > {number}]",
            f"first{number} = long{number}[0] if len(long{number}) > 0 else ''",
            f"for line in long{number}:",
            f"    n{number} = work([len(line), {number}])",
            f"    if n{number} > 3:",
            f"        out.append(f'{{line}}: {{n{number}:>5}}')",
        ]
    return "\n".join([*lines, "answer(sorted(out, key=lambda line: line.lower())[:10])"])


def _check_50_ms() -> float:
    source = _fifty_steps()

    def once() -> None:
        parsed = parse(source, REGISTRY)
        report = check(parsed.plan, REGISTRY, places=parsed.places)
        if not report.ok:
            raise SystemExit(f"the benchmark's plan does not check: {report.errors}")

    return _fastest_half(once, 20) * 1000


def _journal_append_us(journal: Journal) -> float:
    journal.append("append", "run-started", "", {"request": "measure"})
    body = {"what": "grep", "effect": "pure", "tool": "grep", "arguments": {"pattern": "invoice", "lines": ["a"] * 20}}

    def hundred() -> None:
        for number in range(100):
            journal.append("append", "step-started", str(number), body)

    return _fastest_half(hundred, 20) / 100 * 1e6


def _fastest_half(act: Callable[[], None], times: int) -> float:
    """The median of the faster half: what the code takes when nothing else has the machine."""
    taken: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        act()
        taken.append(time.perf_counter() - started)
    return median(sorted(taken)[: max(1, times // 2)])


async def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.db") as journal:
        ratios = await _makespan_ratios(journal)
        return {
            "makespan_ratio": round(median(ratios), 4),
            "makespan_ratio_worst": round(max(ratios), 4),
            "pure_step_us": round(await _pure_step_us(journal), 2),
            "check_50_ms": round(_check_50_ms(), 3),
            "journal_append_us": round(_journal_append_us(journal), 1),
        }


ROWS: tuple[tuple[str, str, str], ...] = (
    ("makespan_ratio", f"wall time over critical path, median of {GRAPHS} graphs of {STEPS} steps", "≤ 1.05"),
    ("makespan_ratio_worst", "the same, the worst of them", ""),
    ("pure_step_us", "one step of computing, µs", "≤ 100"),
    ("check_50_ms", "parse and check a plan of 50 steps, ms", "≤ 10"),
    ("journal_append_us", "append one event to the journal, µs", "≤ 150"),
)


def main() -> None:
    found = asyncio.run(measure())
    for name, what, wanted in ROWS:
        print(f"{name:22} {found[name]:>10}  {wanted:8} {what}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""Run random plans in pairs of worlds: `python -m benchmarks.noninterference --plans 2000 [--seed N]`.

Prints the least plan for each violation, and one JSON object at the end. `leaks` counts violations of integrity,
confidentiality, and data flow in `normal` mode, `unsound` proved calls that were asked about or denied; the exit status
is 0 only if both are 0.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from .figures import figures
from .mutants import MUTANTS, mutated
from .trial import Tried, try_plan

AT_ONCE = 10


def _some(seed: int, mutant: str | None, numbers: list[int]) -> list[Tried]:
    with mutated(mutant):
        return [try_plan(number, seed) for number in numbers]


def _all(plans: int, seed: int, mutant: str | None, jobs: int) -> Iterator[Tried]:
    chunks = [list(range(begin, min(begin + AT_ONCE, plans))) for begin in range(0, plans, AT_ONCE)]
    work = partial(_some, seed, mutant)
    if jobs == 1:
        for chunk in chunks:
            yield from work(chunk)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(work, chunks):
            yield from found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.noninterference", description=__doc__)
    parser.add_argument("--plans", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    began = time.perf_counter()
    tried: list[Tried] = []
    for each in _all(arguments.plans, arguments.seed, arguments.mutant, arguments.jobs):
        tried.append(each)
        for violation in each.violations:
            print(violation, flush=True)
        if len(tried) % 200 == 0:
            print(f"{len(tried)} of {arguments.plans} plans", file=sys.stderr, flush=True)
    found = figures(tried)
    print(json.dumps({**found, "seconds": round(time.perf_counter() - began, 1)}))
    return 0 if found["leaks"] == found["unsound"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())

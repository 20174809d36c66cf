"""Run the attacks: `python -m benchmarks.redteam [--family NAME ...]`.

Prints a line for each case that is not as it should be, a line for each family, and one JSON object at the end.
`succeeded` counts attacks that reached their goal, `broken` those that could not be tried; the exit status is 0 only if
both are 0 and every control went through.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter

from .case import CaseResult, run_case
from .families import FAMILIES, all_cases


async def _run(families: tuple[str, ...]) -> list[CaseResult]:
    results: list[CaseResult] = []
    for case in all_cases(families):
        result = await run_case(case)
        results.append(result)
        if not result.ok:
            print(f"{case.family}: {case.name}: {result.got or result.broken}", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redteam", description="Attacks and benign twins.")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only this family; may be repeated")
    families = tuple(parser.parse_args().family or FAMILIES)
    began = time.perf_counter()
    results = asyncio.run(_run(families))
    for family, count in sorted(Counter(result.case.family for result in results).items()):
        stopped = sum(result.ok for result in results if result.case.family == family)
        print(f"{family}: {stopped} of {count} stopped with their twin going through")
    succeeded = sum(result.got is not None for result in results)
    figures = {
        "attacks": len(results),
        "succeeded": succeeded,
        "broken": sum(result.broken is not None and result.broken.startswith("attack") for result in results),
        "controls": len(results),
        "controls_ok": sum(result.control_ok for result in results),
        "families": len({result.case.family for result in results}),
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(figures))
    sys.exit(0 if results and all(result.ok for result in results) else 1)


if __name__ == "__main__":
    main()

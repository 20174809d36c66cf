"""What do patterns change? The same cases with a pattern and without it, on both local models.

    python -m benchmarks.evidence --only V13 V6 V16
    python -m benchmarks.evidence --only V13 --model 0.5b --limit 20        (a quick look)
    python -m benchmarks.shards --jobs 6 evidence --only V13 V6
    python -m benchmarks.evidence --only V13 V6 --resume 1.jsonl --out 2.jsonl       (the rest of a stopped run)

The last line is one JSON object: for each pattern and model `gain` with the 95 % interval `low` to `high`, a bootstrap
over cases. A gain whose interval has 0 in it is a null result. The cases were made by rule before the first run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from ..shards import Shard, add_shard_arguments
from . import planted_regressions, runner
from .figures import Attempt, read_attempts

PATTERNS = ("V13", "V6", "V16")
MODELS = ("1.5b", "0.5b")


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evidence",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=PATTERNS, default=list(PATTERNS), help="these patterns alone")
    parser.add_argument("--model", choices=MODELS, action="append", help="this model alone; may be given several times")
    parser.add_argument("--limit", type=int, metavar="N", help="so many cases, of every category")
    parser.add_argument(
        "--resume", type=Path, nargs="+", metavar="FILE", default=[],
        help="leave out the attempts that runs with --out wrote here, and sum them up with the others",
    )  # fmt: skip
    add_shard_arguments(parser)
    return parser.parse_args(words)


async def attempts(arguments: argparse.Namespace, done: Sequence[Attempt] = ()) -> AsyncIterator[Attempt]:
    """Every attempt that is not done yet, as it ends."""
    shard: Shard | None = arguments.shard
    selection = runner.CaseSelection(arguments.limit, shard, {row.key for row in done})
    for model in arguments.model or MODELS:
        async with runner.open_models(model) as pair:
            for pattern in arguments.only:
                if pattern in runner.MEASURED:
                    async for row in runner.measure(pattern, model, pair, selection):
                        yield row


async def measure(arguments: argparse.Namespace) -> list[Attempt]:
    rows = read_attempts(arguments.resume)
    async for row in attempts(arguments, rows):
        rows.append(row)
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as out:
                out.write(row.to_line())
        print(f"{len(rows):>5} {row.pattern:<4} {row.model} {row.arm:<13} {row.case:<34} {row.scores or row.error}",
              file=sys.stderr, flush=True)  # fmt: skip
    return rows


def main(words: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(words)
    rows = read_attempts(arguments.sum_up) if arguments.sum_up else asyncio.run(measure(arguments))
    found = runner.summarise(rows, [each for each in arguments.only if each in runner.MEASURED])
    if "V16" in arguments.only:
        found["V16"] = planted_regressions.measure()
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""Do other words for the same request lead to the same effects?

    python -m benchmarks.robustness --model 1.5b
    python -m benchmarks.robustness --planner oracle            (no model: the reference plans)
    python -m benchmarks.shards --jobs 6 robustness --model 1.5b

Each request is asked in its base wording, in paraphrases by hand, and in wordings by rule: with typos, in another
order, with polite padding, with irrelevant sentences before or after it, in other case and punctuation, with filler
words. Each wording is planned and run in a fresh small world. The last line is one JSON object; progress goes to
stderr. `same_effects` is the share of the other wordings whose runs did what the base wording's run did.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from bicameral.config import Config, open_models

from ..planning.runner import Models
from ..shards import Shard, add_shard_arguments
from .cases import CASES, Case
from .figures import read_results, summarise, to_line
from .runner import Result, Site, run_reference_plan, run_wording
from .variants import SEED, Wording, wordings_of

PROFILES = {"1.5b": "default", "0.5b": "small"}


def choose(only: Sequence[str], shard: Shard | None, seed: int) -> list[tuple[Case, Wording]]:
    """The wordings to run: those of some requests, and a shard of them."""
    if unknown := [each for each in only if each not in {case.id for case in CASES}]:
        raise SystemExit(f"--only: no such request: {', '.join(unknown)}")
    pairs = [(case, each) for case in CASES if not only or case.id in only for each in wordings_of(case, seed)]
    return shard.take(pairs) if shard else pairs


def report(number: int, count: int, result: Result, *, show: bool) -> None:
    """A line of progress on stderr, and with `show` the words and the plan."""
    mark = "+" if result.right else "-"
    print(
        f"{number:>3}/{count} {mark} {result.id:<20} {result.wording:<13} {result.ending:<9} {result.seconds:6.1f}s"
        f"  {result.why[:120]}",
        file=sys.stderr,
        flush=True,
    )
    if show:
        lines = [f"# {result.text}", *result.plan.splitlines(), f"= {result.effects}"]
        print("".join(f"        {line}\n" for line in lines), file=sys.stderr, flush=True)


async def measure(arguments: argparse.Namespace) -> list[Result]:
    """Run the chosen wordings."""
    chosen = choose(arguments.only or (), arguments.shard, arguments.seed)
    models: Models | None = None
    if arguments.planner == "oracle":
        chosen = [(case, each) for case, each in chosen if each.kind == "base" and case.request.obstacle is None]
    else:
        opened = open_models(Config.defaults().model_copy(update={"profile": PROFILES[arguments.model]}))
        models = Models(opened.privileged, opened.quarantined)
    results: list[Result] = []
    site = Site()
    try:
        for case, wording in chosen:
            if models is None:
                result = await run_reference_plan(case)
            else:
                result = await run_wording(case, wording, models, site=site, deterministic=arguments.deterministic)
            results.append(result)
            if not arguments.json:
                report(len(results), len(chosen), result, show=arguments.show)
            if arguments.out:
                with arguments.out.open("a", encoding="utf-8") as out:
                    out.write(to_line(result))
    finally:
        if models is not None:
            await models.privileged.aclose()
            await models.quarantined.aclose()
    return results


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.robustness",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", choices=tuple(PROFILES), default="1.5b", help="the privileged model")
    parser.add_argument("--planner", choices=("model", "oracle"), default="model", help="oracle: the reference plans")
    parser.add_argument("--only", action="append", metavar="ID", help="only this request; may be given several times")
    parser.add_argument("--seed", type=int, default=SEED, help="decides the wordings by rule")
    parser.add_argument("--deterministic", action="store_true", help="skip Echo")
    parser.add_argument("--show", action="store_true", help="show the words, plans and effects")
    parser.add_argument("--json", action="store_true", help="no progress on stderr, only the JSON object")
    add_shard_arguments(parser)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(words)
    results = read_results(arguments.sum_up) if arguments.sum_up else asyncio.run(measure(arguments))
    planner = "oracle" if arguments.planner == "oracle" else arguments.model
    print(json.dumps({"model": planner, **summarise(results)}))


if __name__ == "__main__":
    main()

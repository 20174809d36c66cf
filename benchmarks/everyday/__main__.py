"""How many everyday requests come out right in both of two worlds, and how often is an answer confidently wrong?

    python -m benchmarks.everyday --model 1.5b
    python -m benchmarks.everyday --planner oracle      (the reference plans; the model only reads)
    python -m benchmarks.shards everyday --model 1.5b   (in several processes)

The last line is one JSON object; progress goes to stderr. The requests name no file and no tool, and are kept away
from every corpus, prompt and example: plans and answers are shown only with `--show`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from bicameral.config import Config, open_models

from ..shards import Shard, add_shard_arguments, result_lines
from ._figures import summarise
from ._requests import REQUESTS, SEED, expected_of
from ._run import Result, describe, serve, serve_by_plan
from ._scenario import WORLDS, Request

PROFILES = {"1.5b": "default", "0.5b": "small"}


def choose(only: Sequence[str], limit: int | None, shard: Shard | None, seed: int) -> list[Request]:
    """The requests to run: by id, language or kind; a sample of them; a shard of these."""
    known = {each for request in REQUESTS for each in (request.id, request.language, request.kind)}
    if unknown := [each for each in only if each not in known]:
        raise SystemExit(
            f"--only: unknown {', '.join(unknown)}; expected ids, languages or kinds: {', '.join(sorted(known))}"
        )
    wanted = set(only)
    chosen = [each for each in REQUESTS if not wanted or wanted & {each.id, each.language, each.kind}]
    if limit is not None:
        sample = set(Random(seed).sample([each.id for each in chosen], min(limit, len(chosen))))
        chosen = [each for each in chosen if each.id in sample]
    return shard.take(chosen) if shard else chosen


def report(result: Result, *, show: bool, seed: int) -> None:
    """One line on stderr, and with `show` the request, the plan and the answer."""
    mark = "ok " if result.ok else ("BAD" if result.wrong_confident else "no ")
    note = "  ATTACKED" if result.attacked else ""
    print(
        f"{mark} {result.world} {result.id:<16} {result.seconds:6.1f}s {result.how}{note}", file=sys.stderr, flush=True
    )
    if show:
        request = result.request
        lines = [request.text, describe(expected_of(request, result.world, seed)), *result.plan.splitlines()]
        lines += [f"= {result.answer}", *([f"! {result.why}"] if result.why else [])]
        print("".join(f"      {line}\n" for line in lines), file=sys.stderr, flush=True)


def read_results(files: Sequence[Path]) -> list[Result]:
    """The results that runs with `--out` wrote, in the order of the requests; of one that was run twice the last."""
    results = [Result(**json.loads(line)) for line in result_lines(files)]
    found = {(result.id, result.world): result for result in results}
    places = [(request.id, world) for request in REQUESTS for world in WORLDS]
    return [found[place] for place in places if place in found]


async def run_all(arguments: argparse.Namespace) -> list[Result]:
    """Run the chosen requests one after the other, each in its two worlds."""
    models = open_models(Config.defaults().model_copy(update={"profile": PROFILES[arguments.model]}))
    results: list[Result] = []
    try:
        for request in choose(arguments.only, arguments.limit, arguments.shard, arguments.seed):
            for world in WORLDS:
                given: dict[str, Any] = {"seed": arguments.seed, "seconds": arguments.timeout}
                if arguments.planner == "oracle":
                    result = await serve_by_plan(request, world, models.quarantined, **given)
                else:
                    result = await serve(request, world, models.privileged, models.quarantined, **given)
                results.append(result)
                report(result, show=arguments.show, seed=arguments.seed)
                if arguments.out:
                    with arguments.out.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(result.to_json(), ensure_ascii=False) + "\n")
    finally:
        await models.privileged.aclose()
        await models.quarantined.aclose()
    return results


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.everyday", description=__doc__)
    parser.add_argument("--model", choices=tuple(PROFILES), default="1.5b", help="the models of a profile")
    parser.add_argument(
        "--planner",
        choices=("model", "oracle"),
        default="model",
        help="oracle: the reference plans, and requests understood by rules; the profile's model only reads",
    )
    parser.add_argument("--only", nargs="*", default=[], help="only these ids, languages or kinds")
    parser.add_argument("--limit", type=int, help="a sample of so many requests")
    parser.add_argument("--seed", type=int, default=SEED, help="of the facts and of the sample")
    parser.add_argument("--show", action="store_true", help="show requests, plans, answers and reasons")
    parser.add_argument("--timeout", type=float, default=600, help="seconds until a run counts as broken")
    add_shard_arguments(parser)
    return parser.parse_args(given)


def main() -> None:
    arguments = parse_arguments()
    results = read_results(arguments.sum_up) if arguments.sum_up else asyncio.run(run_all(arguments))
    print(
        json.dumps(
            {"model": arguments.model, "planner": arguments.planner, "seed": arguments.seed, **summarise(results)}
        )
    )


if __name__ == "__main__":
    main()

"""What does a cascade of two planners cost and solve, against each of them alone?

    python -m benchmarks.cascade
    python -m benchmarks.cascade --part 1/8 --out part1.jsonl       (side by side, then)
    python -m benchmarks.cascade --sum-up part*.jsonl

The last line is one JSON object: `solved_ratio` is what the cascade solves against what the large model solves
alone, `large_token_ratio` the tokens that it asks of the large model against that model alone; `seen` and `unseen`
requests stand apart as well. Before it stands the whole trade-off, a line for each threshold; the threshold that counts
is the one in the code. It was chosen with `--calibrate`, which leaves unseen requests out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.planning import REQUESTS, Request
from benchmarks.planning.__main__ import append, core
from benchmarks.planning.runner import Models, solve
from bicameral.config import Config, ConfiguredModels, open_models
from bicameral.models import Provider

from .attempts import Attempt, attempt
from .figures import Pair, calibrated, curve, summary
from .held_back import held_back, plan_held_back

# What cannot be served has no plan that could be doubted.
CORE = frozenset(request.id for request in core(REQUESTS) if request.obstacle is None)
HELD_BACK = "held-back/"


def chosen(arguments: argparse.Namespace) -> list[Request]:
    """The requests that the command line asks for, out of those that can be served."""
    requests = [request for request in REQUESTS if request.obstacle is None]
    if arguments.ids:
        requests = [request for request in requests if request.id in arguments.ids]
    elif not arguments.all:
        requests = [request for request in requests if request.id in CORE]
    if arguments.split != "all":
        requests = [request for request in requests if request.unseen == (arguments.split == "unseen")]
    if arguments.limit:
        requests = random.Random(arguments.seed).sample(requests, min(arguments.limit, len(requests)))
    first, step = (int(number) for number in (arguments.part or "1/1").split("/"))
    return requests[first - 1 :: step]


def record(pair: Pair) -> dict[str, Any]:
    large = None if pair.large is None else pair.large.to_json()
    return {"id": pair.id, "small": pair.small.to_json(), "large": large}


def recorded(files: Sequence[Path]) -> list[Pair]:
    """What runs with `--out` wrote; of a request that was asked twice the last."""
    unseen = frozenset(request.id for request in REQUESTS if request.unseen)
    found: dict[str, Pair] = {}
    for line in (line for file in files for line in file.read_text("utf-8").splitlines()):
        told = json.loads(line)
        large = None if told["large"] is None else Attempt.from_json(told["large"])
        id_ = told["id"]
        found[id_] = Pair(id_, id_ in unseen, id_ in CORE, Attempt.from_json(told["small"]), large)
    return list(found.values())


def show(pair: Pair, arguments: argparse.Namespace) -> None:
    large = "  " if pair.large is None else "ok" if pair.large.solved else "NO"
    kinds = ", ".join(dict.fromkeys(kind for kind, _ in pair.small.doubts))
    print(f"small {'ok' if pair.small.solved else 'NO'}  large {large}  {pair.least:.3f}  {pair.id:<28} {kinds}")
    if arguments.verbose and not pair.unseen:
        print("".join(f"    | {line}\n" for line in pair.small.plan.splitlines()), end="")
        print("".join(f"    ? {reason}\n" for _, reason in pair.small.doubts), end="", flush=True)


async def both(request: Request, small: Provider, models: ConfiguredModels) -> Pair:
    first = await attempt(request, small, models.quarantined)
    second = await attempt(request, models.privileged, models.quarantined)
    return Pair(request.id, request.unseen, request.id in CORE, first, second)


async def really(request: Request, small: Provider, models: ConfiguredModels) -> str:
    """The request with the cascade itself: solved or not, and the plan that it took."""
    stages = {"fast": small, "main": models.privileged}
    result = await solve(request, Models(models.privileged, models.quarantined, stages))
    return f"{'ok' if result.solved else 'NO'}\n{result.plan}"


async def run(arguments: argparse.Namespace) -> list[Pair]:
    config = Config.defaults()
    models = open_models(config.model_copy(update={"models": config.models.model_copy(update={"cascade": True})}))
    small, pairs = models.cascade["fast"], list[Pair]()
    if arguments.held_back:
        for id_, sample in parted(list(held_back()), arguments.part):
            pairs.append(Pair(f"{HELD_BACK}{id_}", False, False, await plan_held_back(sample, small), None))
            kept(pairs[-1], arguments)
    else:
        for request in chosen(arguments):
            pairs.append(await both(request, small, models))
            kept(pairs[-1], arguments)
            if arguments.really:
                print(f"the cascade itself: {await really(request, small, models)}", flush=True)
    for model in (small, models.privileged, models.quarantined):
        await model.aclose()
    return pairs


def parted(items: list[Any], part: str | None) -> Iterator[Any]:
    """Runs of neighbours, not each N-th: they share a prompt."""
    first, count = (int(number) for number in (part or "1/1").split("/"))
    size = -(-len(items) // count)
    return iter(items[(first - 1) * size : first * size])


def kept(pair: Pair, arguments: argparse.Namespace) -> None:
    show(pair, arguments)
    if arguments.out:
        append(arguments.out, record(pair))


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cascade", description=__doc__)
    parser.add_argument("--split", choices=("all", "seen", "unseen"), default="all")
    parser.add_argument("--all", action="store_true", help="all requests, not only the core")
    parser.add_argument("--held-back", action="store_true", help="the held-back corpus instead, with the small model")
    parser.add_argument("--ids", nargs="*", help="only these requests")
    parser.add_argument("--limit", type=int, help="a random sample of so many requests")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--really", action="store_true", help="run the cascade itself too, and show what it did")
    parser.add_argument("--verbose", action="store_true", help="show the small model's plans and doubts")
    parser.add_argument("--part", help="K/N: the K-th of N parts, for runs side by side")
    parser.add_argument("--out", help="add each result as a line of JSON to this file")
    parser.add_argument("--sum-up", metavar="FILE", nargs="+", type=Path, help="no run: the figures of such files")
    parser.add_argument("--calibrate", metavar="FILE", nargs="+", type=Path, help="no run: the threshold by them")
    arguments = parser.parse_args()
    if arguments.calibrate:
        print(json.dumps(calibrated(recorded(arguments.calibrate))))
        return
    pairs = recorded(arguments.sum_up) if arguments.sum_up else asyncio.run(run(arguments))
    if arguments.sum_up:
        pairs = [pair for pair in pairs if pair.large is not None and (pair.core or arguments.all)]
    if not pairs or pairs[0].large is None:
        return
    for each in curve(pairs):
        print(json.dumps(each))
    print(json.dumps(summary(pairs)))


if __name__ == "__main__":
    main()

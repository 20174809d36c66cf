"""How many everyday requests does the planner solve? Each is judged in two worlds by what it did there.

    python -m benchmarks.planning --model 1.5b
    python -m benchmarks.planning --planner oracle      (no model: the reference plans)
    python -m benchmarks.shards planning --model 1.5b   (in several processes)

The last line is one JSON object. `solved` counts requests that are right in both worlds, `solved_runs` single runs;
`wrong_confident` counts requests that in some world ended well, without a doubt, and were wrong. Plans of unseen
requests are not shown unless asked for, so that nobody tunes on them by accident.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bicameral.config import Config, open_models

from ..shards import add_shard_arguments
from .figures import record, recorded, summary
from .request import Request
from .requests import REQUESTS
from .runner import Models, Result, solve, solve_by_plan

CORE_SIZE = 176


def core(requests: Sequence[Request]) -> list[Request]:
    """The requests of a usual run, the same every time: a wording of every task, and all that cannot be served.

    Which wording, and which tasks are asked in a second one until there are enough, is drawn by the hash of the ids.
    """

    def rank(request: Request) -> str:
        return hashlib.sha256(request.id.encode()).hexdigest()

    groups: dict[int, list[Request]] = {}
    for request in requests:
        # Wordings of one task share its oracle.
        key = id(request) if request.obstacle else id(request.oracle)
        groups.setdefault(key, []).append(request)
    ranked = [sorted(group, key=rank) for group in groups.values()]
    kept = {group[0].id for group in ranked}
    seconds = sorted((group[1] for group in ranked if len(group) > 1), key=rank)
    kept.update(request.id for request in seconds[: max(0, CORE_SIZE - len(kept))])
    return [request for request in requests if request.id in kept]


def chosen(arguments: argparse.Namespace) -> list[Request]:
    """The requests that the command line asks for."""
    if arguments.only:
        unknown = set(arguments.only) - {request.id for request in REQUESTS}
        if unknown:
            raise SystemExit(f"no such request: {', '.join(sorted(unknown))}")
        return [request for request in REQUESTS if request.id in arguments.only]
    requests = list(REQUESTS) if arguments.all else core(REQUESTS)
    belongs: dict[str, Callable[[Request], bool]] = {
        "seen": lambda request: not request.unseen,
        "unseen": lambda request: request.unseen,
        "natural": lambda request: request.natural,
        "languages": lambda request: request.language != "en",
        "impossible": lambda request: request.obstacle is not None,
    }
    if arguments.part:
        requests = [request for request in requests if belongs[arguments.part](request)]
    return arguments.shard.take(requests) if arguments.shard else requests


def show(number: int, result: Result, arguments: argparse.Namespace) -> None:
    """A line of progress on stderr, and the plan if it is wanted."""
    request = result.request
    marks = "".join("+" if run.solved else "!" if run.wrong_confident else "-" for run in result.runs)
    kind = f"L{request.level}{'u' if request.unseen else ' '}{'n' if request.natural else ' '} {request.language}"
    hidden = request.unseen and not arguments.show_unseen
    why = "" if result.solved or hidden else result.why[:240]
    print(f"{number:>3} {marks} {kind} {request.id:<26} {result.seconds:6.1f}s  {why}", file=sys.stderr, flush=True)
    if arguments.show and not hidden:
        print(f"    # {request.text}", file=sys.stderr)
        for run in result.runs[:1] if len({run.plan for run in result.runs}) == 1 else result.runs:
            print("".join(f"    {run.side}| {line}\n" for line in run.plan.splitlines()), file=sys.stderr, flush=True)


def append(file: Path, line: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def arguments_from(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.planning", description=__doc__)
    parser.add_argument("--model", choices=("1.5b", "0.5b"), default="1.5b", help="the privileged model")
    parser.add_argument("--planner", choices=("model", "oracle"), default="model", help="oracle: the reference plans")
    parser.add_argument("--only", action="append", metavar="ID", help="only this request; may be given several times")
    parser.add_argument("--part", choices=("seen", "unseen", "natural", "languages", "impossible"))
    parser.add_argument(
        "--all", action="store_true", help=f"every wording of every task, not only {CORE_SIZE} requests"
    )
    parser.add_argument("--deterministic", action="store_true", help="skip Echo")
    parser.add_argument("--show", action="store_true", help="show the plans of seen requests")
    parser.add_argument("--show-unseen", action="store_true", help="show plans and reasons of unseen requests too")
    add_shard_arguments(parser)
    return parser.parse_args(words)


async def measure(arguments: argparse.Namespace) -> list[Result]:
    """Run the chosen requests."""
    results: list[Result] = []
    models: Models | None = None
    if arguments.planner == "model":
        profile = "default" if arguments.model == "1.5b" else "small"
        opened = open_models(Config.defaults().model_copy(update={"profile": profile}))
        models = Models(opened.privileged, opened.quarantined)
    for request in chosen(arguments):
        if models is not None:
            result = await solve(request, models, deterministic=arguments.deterministic)
        elif request.obstacle is None:
            result = await solve_by_plan(request)
        else:
            continue  # no plan serves it, so there is none to prove
        results.append(result)
        show(len(results), result, arguments)
        if arguments.out:
            append(arguments.out, record(result))
    if models is not None:
        await models.privileged.aclose()
        await models.quarantined.aclose()
    return results


def main() -> None:
    arguments = arguments_from()
    results = recorded(arguments.sum_up) if arguments.sum_up else asyncio.run(measure(arguments))
    planner = "oracle" if arguments.planner == "oracle" else arguments.model
    print(json.dumps({"model": planner, **summary(results)}))


if __name__ == "__main__":
    main()

"""How many requests does the planner solve? Each is judged by what its plan did in a temporary world.

    python -m benchmarks.planning --model 1.5b

The last line is one JSON object. Requests marked unseen were kept away from every prompt and example; their plans are
not shown unless asked for, so that nobody tunes on them by accident.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import math
import random
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from bicameral.agent import Agent
from bicameral.config import Config, open_models
from bicameral.errors import BicameralError
from bicameral.models import Provider
from bicameral.runs import Answers, ApprovalQuestion, Failed, Finished
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes

from . import REQUESTS, Outcome, Request, World

FLAGSHIP = "dedupe-invoices"
TOOLBOXES = ("files", "lines", "tables", "mail", "calendar", "web", "clock")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one request. `valid`: a plan that passes the check, or a clear word that there is none."""

    request: Request
    solved: bool
    why: str
    valid: bool
    repairs: int
    seconds: float
    tokens: int
    plan: str
    questions: int = 0


def registry_for(world: World) -> Registry:
    folders = Folders(base=world.folder, read=tuple(world.reads), write=tuple(world.writes))
    surroundings = Surroundings(folders, now=lambda: world.now.replace(tzinfo=UTC))
    return load_toolboxes({name: world.settings.get(name, {}) for name in TOOLBOXES}, surroundings)


class Requester:
    """The person who asked: says yes to what the policy wants to have confirmed, and counts how often it does."""

    def __init__(self) -> None:
        self.questions = 0

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.questions += 1
        return Answers.yes(question.calls)


async def solve(
    request: Request,
    privileged: Provider,
    quarantined: Provider,
    deterministic: bool,
    cascade: Mapping[str, Provider] | None = None,
) -> Result:
    """Plan and run one request in a fresh world, and judge what came of it."""
    started = time.perf_counter()
    with World() as world:
        agent = Agent(
            registry_for(world),
            privileged=privileged,
            quarantined=quarantined,
            cascade=cascade,
            cache={},
            now=lambda: world.now,
        )
        requester = Requester()
        plan, repairs, valid, answer, error = "", 0, True, None, None
        try:
            planned = await agent.plan(request.text.replace("{site}", world.site), deterministic=deterministic)
            plan, repairs, valid = planned.source, planned.repairs, planned.report.ok
            outcome = await agent.run(planned, approver=requester)
            if isinstance(outcome, Finished):
                answer = outcome.answer
            elif isinstance(outcome, Failed):
                error = str(outcome.error)
        except BicameralError as failure:
            error = str(failure)
            valid = failure.code in ("plan.none", "intent.questions")
        verdict = request.judge(Outcome(world, answer, world.sent(), error))
        why = verdict.why if error is None else f"{error} ({verdict.why})"
        seconds = time.perf_counter() - started
        return Result(request, verdict.ok, why, valid, repairs, seconds, agent.ledger.tokens, plan, requester.questions)


def core(requests: Sequence[Request]) -> list[Request]:
    """Two thirds of each kind (seen or not, sloppy or not), the same every time, drawn by the hash of their ids."""
    kept = {FLAGSHIP}
    for unseen, sloppy in itertools.product((False, True), repeat=2):
        group = [request.id for request in requests if (request.unseen, request.sloppy) == (unseen, sloppy)]
        ranked = sorted(group, key=lambda id_: hashlib.sha256(id_.encode()).hexdigest())
        kept.update(ranked[: math.ceil(len(group) * 2 / 3)])
    return [request for request in requests if request.id in kept]


def chosen(arguments: argparse.Namespace) -> Sequence[Request]:
    requests = list(REQUESTS) if arguments.all or arguments.ids else core(REQUESTS)
    requests = [request for request in requests if not arguments.ids or request.id in arguments.ids]
    if arguments.split != "all":
        requests = [request for request in requests if request.unseen == (arguments.split == "unseen")]
    if arguments.limit:
        requests = random.Random(arguments.seed).sample(requests, min(arguments.limit, len(requests)))
    if arguments.part:
        first, step = (int(number) for number in arguments.part.split("/"))
        requests = requests[first - 1 :: step]
    return requests


def show(result: Result, arguments: argparse.Namespace) -> None:
    request = result.request
    mark = "ok " if result.solved else "NO "
    kind = f"L{request.level}{'~' if request.sloppy else ' '}{'u' if request.unseen else ' '}"
    print(
        f"{mark}{kind} {request.id:<28} {result.seconds:6.1f}s  r{result.repairs}  ",
        end="",
    )
    hidden = request.unseen and not arguments.show_unseen
    print("" if result.solved or hidden else result.why[:200], flush=True)
    if arguments.verbose and not hidden and not (result.solved and arguments.failures):
        print(f"    # {request.text}")
        print("".join(f"    | {line}\n" for line in result.plan.splitlines()), flush=True)


def record(result: Result) -> dict[str, Any]:
    """A result as a line of JSON; several runs over parts of the requests can be put together from such lines."""
    return {
        "id": result.request.id,
        "solved": result.solved,
        "why": result.why,
        "valid": result.valid,
        "repairs": result.repairs,
        "seconds": round(result.seconds, 2),
        "tokens": result.tokens,
        "plan": result.plan,
        "questions": result.questions,
    }


def append(file: str, line: dict[str, Any]) -> None:
    with open(file, "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def recorded(file: str) -> list[Result]:
    """The results that runs with `--out` wrote."""
    by_id = {request.id: request for request in REQUESTS}
    lines = [json.loads(line) for line in open(file, encoding="utf-8")]  # noqa: SIM115
    return [Result(by_id[line.pop("id")], **line) for line in lines]


def summary(results: Sequence[Result]) -> dict[str, Any]:
    unseen = [result for result in results if result.request.unseen]
    return {
        "requests": len(results),
        "solved": share(result.solved for result in results),
        "solved_unseen": share(result.solved for result in unseen),
        "solved_sloppy": share(result.solved for result in results if result.request.sloppy),
        "valid": share(result.valid for result in results),
        "repairs": share(result.repairs > 0 for result in results),
        "median_seconds": round(statistics.median(result.seconds for result in results), 2),
        "tokens": sum(result.tokens for result in results),
        "asked": share(result.questions > 0 for result in results),
        "by_level": {
            str(level): share(result.solved for result in results if result.request.level == level)
            for level in sorted({result.request.level for result in results})
        },
    }


def share(flags: Any) -> float | None:
    listed = list(flags)
    return round(sum(listed) / len(listed), 4) if listed else None


async def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.planning", description=__doc__)
    parser.add_argument("--model", choices=("1.5b", "0.5b"), default="1.5b", help="the privileged model")
    parser.add_argument("--split", choices=("all", "seen", "unseen"), default="all")
    parser.add_argument("--all", action="store_true", help="all 90 requests, not only the core")
    parser.add_argument("--ids", nargs="*", help="only these requests")
    parser.add_argument("--limit", type=int, help="a random sample of so many requests")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--deterministic", action="store_true", help="skip Echo")
    parser.add_argument("--verbose", action="store_true", help="show plans")
    parser.add_argument("--failures", action="store_true", help="with --verbose: only plans that failed")
    parser.add_argument("--show-unseen", action="store_true", help="show plans and reasons of unseen requests too")
    parser.add_argument("--part", help="K/N: only each N-th request from the K-th on, for runs side by side")
    parser.add_argument("--out", help="add each result as a line of JSON to this file")
    parser.add_argument("--sum-up", metavar="FILE", help="no run: sum up what runs with --out wrote")
    arguments = parser.parse_args()
    if arguments.sum_up:
        results = recorded(arguments.sum_up)
        for result in results:
            show(result, arguments)
        print(json.dumps({"model": arguments.model, **summary(results)}))
        return
    config = Config.defaults()
    profile = "default" if arguments.model == "1.5b" else "small"
    models = open_models(config.model_copy(update={"profile": profile}))
    results: list[Result] = []
    for request in chosen(arguments):
        result = await solve(request, models.privileged, models.quarantined, arguments.deterministic)
        results.append(result)
        show(result, arguments)
        if arguments.out:
            append(arguments.out, record(result))
    failed = Counter(feature for result in results if not result.solved for feature in result.request.needs)
    print("failed requests need:", dict(failed.most_common()))
    await models.privileged.aclose()
    await models.quarantined.aclose()
    print(json.dumps({"model": arguments.model, **summary(results)}))


if __name__ == "__main__":
    asyncio.run(main())

"""Requests with worlds, and the judgement of plans that a model wrote for them.

python -m training.delta.outcomes requests REQUESTS.jsonl --limit 2000
python training/delta/samples.py WEIGHTS.gguf REQUESTS.jsonl SAMPLES.jsonl --adapter ADAPTER.gguf
python -m training.delta.outcomes judge REQUESTS.jsonl SAMPLES.jsonl --data FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bicameral.planning._decode import adapter_setup_messages

from ..build import PAIRS
from ..sample import standard_registry
from .candidates import candidates, try_block
from .judging import MOST_RIGHT, Counts, Judged, fenced, judge_samples
from .oracle import Dropped


def write_requests(out: Path, limit: int, composed: int, seed: int, workers: int, faults: Path | None) -> None:
    """Cases as prompts to draw samples for, with all that is needed to judge the samples."""
    system = adapter_setup_messages(standard_registry())[0].text
    reasons: Counter[str] = Counter()
    written = tried = 0
    shown: list[Dropped] = []
    blocks = list(candidates(composed, seed))
    with ProcessPoolExecutor(workers, max_tasks_per_child=400) as pool, out.open("w", encoding="utf-8") as file:
        # In slices: the pool would otherwise go on with blocks that nobody needs any more.
        for start in range(0, len(blocks), 8 * workers):
            part = blocks[start : start + 8 * workers]
            for made in pool.map(try_block, part, [seed] * len(part)):
                tried += 1
                if isinstance(made, Dropped):
                    reasons[made.reason] += 1
                    shown.append(made)
                elif written < limit:
                    row = {"id": f"{made.place}/{seed}", "system": system, "told": made.told, "case": made.to_json()}
                    file.write(json.dumps(row) + "\n")
                    written += 1
            file.flush()
            if written >= limit:
                break
    if faults is not None:
        faults.write_text("".join(f"## {d.reason}: {d.place}\n{d.detail}\n\n" for d in shown), encoding="utf-8")
    print(json.dumps({"tried": tried, "requests": written, "dropped": dict(reasons.most_common())}, indent=1))


def judge(requests: Path, samples: Path, data: Path, workers: int) -> Counts:
    """Judge all samples; writes `right.jsonl`, `pairs.jsonl` and `judged.jsonl`."""
    asked = {row["id"]: row for row in _rows(requests)}
    drawn = [row for row in _rows(samples) if row["id"] in asked]
    data.mkdir(parents=True, exist_ok=True)
    counts, right, pairs = Counts(), list[tuple[str, list[str]]](), list[dict[str, Any]]()
    with (
        ProcessPoolExecutor(workers, max_tasks_per_child=200) as pool,
        (data / "judged.jsonl").open("w", encoding="utf-8") as log,
    ):
        made = pool.map(judge_samples, [asked[row["id"]] for row in drawn], [row["plans"] for row in drawn])
        for number, judged in enumerate(made, 1):
            counts.add(judged)
            right += [(judged.system, [judged.case.told, fenced(each.plan)]) for each in judged.right[:MOST_RIGHT]]
            pairs += judged.pairs()
            log.write(json.dumps(_logged(judged)) + "\n")
            if number % 100 == 0:
                print(f"{number} of {len(drawn)} requests, {counts.right} of {counts.plans} plans right", flush=True)
    _write(data / "right.jsonl", _packed(right))
    _write(data / "pairs.jsonl", pairs)
    return counts


def _packed(right: Sequence[tuple[str, list[str]]]) -> list[dict[str, Any]]:
    """Packs as the build makes them: a system prompt and some requests with their plans."""
    packs: list[dict[str, Any]] = []
    for system in dict.fromkeys(system for system, _ in right):
        mine = [pair for each, pair in right if each == system]
        random.Random(1).shuffle(mine)
        packs += [{"system": system, "pairs": mine[at : at + PAIRS]} for at in range(0, len(mine), PAIRS)]
    return packs


def _logged(judged: Judged) -> dict[str, Any]:
    verdicts = [{"plan": each.plan, "times": each.times, "why": each.why} for each in judged.verdicts]
    return {"id": judged.id, "request": judged.case.request, "reference": judged.case.plan, "verdicts": verdicts}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    asking = commands.add_parser("requests", help="write prompts to draw samples for")
    asking.add_argument("out", type=Path)
    asking.add_argument("--limit", type=int, default=2000)
    asking.add_argument("--composed", type=int, default=4000, help="how many blocks are composed")
    asking.add_argument("--seed", type=int, default=2, help="another one than that of the build: other blocks")
    asking.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asking.add_argument("--faults", type=Path, help="write what was dropped, and why, to a file")
    judging = commands.add_parser("judge", help="judge the samples")
    judging.add_argument("requests", type=Path)
    judging.add_argument("samples", type=Path)
    judging.add_argument("--data", type=Path, required=True, help="folder for right.jsonl and pairs.jsonl")
    judging.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outcomes-") as cache:
        # Indexes of made worlds are of no use to anybody later.
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = cache
        if given.command == "requests":
            write_requests(given.out, given.limit, given.composed, given.seed, given.workers, given.faults)
        else:
            counts = judge(given.requests, given.samples, given.data, given.workers)
            print(json.dumps(counts.to_json(), indent=1))


if __name__ == "__main__":
    main()

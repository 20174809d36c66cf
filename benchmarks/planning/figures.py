"""The figures of the benchmark, and results as lines of JSON."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..shards import result_lines
from .requests import REQUESTS
from .runner import Result, Run


def share(flags: Iterable[bool]) -> float | None:
    """The share of true ones; None of none at all."""
    listed = list(flags)
    return round(sum(listed) / len(listed), 4) if listed else None


def wilson(good: int, count: int, z: float = 1.96) -> list[float]:
    """The 95 % interval of a share by Wilson: it holds near 0 and 1, and for few requests.

    Example:
        >>> wilson(8, 10)
        [0.4902, 0.9433]
    """
    if count == 0:
        return [0.0, 1.0]
    p, square = good / count, z * z
    middle = (p + square / (2 * count)) / (1 + square / count)
    half = z / (1 + square / count) * math.sqrt(p * (1 - p) / count + square / (4 * count * count))
    return [round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)]


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """What is reported. Shares are of requests, unless they say runs."""
    runs = [run for result in results for run in result.runs]

    def solved(*chosen: Result) -> float | None:
        return share(result.solved for result in chosen)

    return {
        "requests": len(results),
        "worlds": len({run.side for run in runs}),
        "solved": solved(*results),
        "solved_unseen": solved(*(each for each in results if each.request.unseen)),
        "natural": solved(*(each for each in results if each.request.natural)),
        "other_languages": solved(*(each for each in results if each.request.language != "en")),
        "impossible_ok": solved(*(each for each in results if each.request.obstacle is not None)),
        "wrong_confident": share(any(run.wrong_confident for run in result.runs) for result in results),
        "asked": share(any(run.ending == "asked" for run in result.runs) for result in results),
        "refused": share(any(run.ending == "refused" for run in result.runs) for result in results),
        "median_seconds": round(statistics.median(each.seconds for each in results), 2) if results else None,
        "interval": wilson(sum(each.solved for each in results), len(results)),
        "solved_runs": share(run.solved for run in runs),
        "wrong_confident_runs": share(run.wrong_confident for run in runs),
        "by_level": {
            str(level): solved(*(each for each in results if each.request.level == level and not each.request.obstacle))
            for level in sorted({each.request.level for each in results if not each.request.obstacle})
        },
    }


def record(result: Result) -> dict[str, Any]:
    """A result as JSON; several runs over parts of the requests can be put together from such lines."""
    return {"id": result.request.id, "runs": [asdict(run) for run in result.runs]}


def recorded(files: Sequence[Path]) -> list[Result]:
    """The results that runs with `--out` wrote; of a request that was run twice the last."""
    found: dict[str, tuple[Run, ...]] = {}
    for line in result_lines(files):
        told = json.loads(line)
        found[told["id"]] = tuple(Run(**run) for run in told["runs"])
    return [Result(request, found[request.id]) for request in REQUESTS if request.id in found]

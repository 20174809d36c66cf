"""Figures over results: shares, their intervals, and the summary that is printed last."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._run import Result
from ._scenario import WORLDS


def interval(right: int, cases: int) -> list[float] | None:
    """The 95 % Wilson interval of a share, None without cases."""
    if not cases:
        return None
    z, share = 1.959964, right / cases
    middle = share + z * z / (2 * cases)
    spread = z * math.sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    scale = 1 + z * z / cases
    return [round(max(0.0, (middle - spread) / scale), 4), round(min(1.0, (middle + spread) / scale), 4)]


def share(flags: Iterable[bool]) -> float | None:
    """The share of true flags, None without any."""
    listed = list(flags)
    return round(sum(listed) / len(listed), 4) if listed else None


def solved_in_both(results: Sequence[Result]) -> list[bool]:
    """For each request that ran in both worlds, whether it came out right in both."""
    by_id: dict[str, dict[str, bool]] = {}
    for result in results:
        by_id.setdefault(result.id, {})[result.world] = result.ok
    return [all(worlds.values()) for worlds in by_id.values() if len(worlds) == len(WORLDS)]


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """The object of the last line.

    `solved_in_both` counts requests that can be served, `impossible_ok` runs of those that cannot, and
    `wrong_confident` all runs: each ended with success, without a doubt or a question, and is wrong.
    """
    possible = [each for each in results if each.request.kind != "impossible"]
    impossible = [each for each in results if each.request.kind == "impossible"]
    both, refused_both = solved_in_both(possible), solved_in_both(impossible)
    wrong = [each.wrong_confident for each in results]
    return {
        "requests": len({each.id for each in results}),
        "runs": len(results),
        "solved_in_both": share(both),
        "solved_runs": share(each.ok for each in possible),
        "impossible_ok": share(each.ok for each in impossible),
        "impossible_ok_in_both": share(refused_both),
        "wrong_confident": share(wrong),
        "attacked": sum(each.attacked for each in results),
        "asked": share(each.asked > 0 for each in results),
        "refused": share(each.how in ("refused", "question") for each in results),
        "broke": share(each.how == "broke" for each in results),
        "median_seconds": round(statistics.median(each.seconds for each in results), 2) if results else None,
        "intervals": {
            "solved_in_both": interval(sum(both), len(both)),
            "impossible_ok": interval(sum(each.ok for each in impossible), len(impossible)),
            "wrong_confident": interval(sum(wrong), len(wrong)),
        },
        "by_language": _group(results, possible, lambda each: each.request.language),
        "by_kind": _group(results, possible, lambda each: each.request.kind),
    }


def _group(results: Sequence[Result], possible: Sequence[Result], key: Callable[[Result], str]) -> dict[str, Any]:
    groups = dict.fromkeys(key(each) for each in results)
    found: dict[str, Any] = {}
    for group in groups:
        both = solved_in_both([each for each in possible if key(each) == group])
        if not both:
            # Only those that cannot be served are in it: the share of honest refusals in both worlds.
            both = solved_in_both([each for each in results if key(each) == group])
        found[group] = {"share": share(both), "n": len(both), "interval": interval(sum(both), len(both))}
    return found

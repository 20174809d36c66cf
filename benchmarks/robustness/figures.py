"""The figures of the benchmark, and results as lines of JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from ..planning.figures import share, wilson
from ..shards import result_lines
from .cases import CASES
from .runner import Result
from .variants import Kind

WORST = 10


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """What is reported.

    `same_effects` is the share of wordings other than the base whose effects are those of the base wording of the same
    request, `same_wrong` the share of those that did the same and were wrong, as the base was. `right` is a share of
    all wordings, the base ones included. A request whose base wording was not run is left out and counted in
    `without_base`.
    """
    requests = _by_request(results)
    compared = {id: found for id, found in requests.items() if "base" in found}
    others = [
        (each, each.effects == found["base"].effects)
        for found in compared.values()
        for each in found.values()
        if each.kind != "base"
    ]
    same = [each for each, agrees in others if agrees]
    run = [each for found in compared.values() for each in found.values()]
    whole = [len({each.effects for each in found.values()}) == 1 for found in compared.values()]
    counts = [len(found) for found in compared.values()]
    return {
        "requests": len(compared),
        "wordings": min(counts, default=0),
        "same_effects": share(agrees for _, agrees in others),
        "interval": wilson(len(same), len(others)),
        "compared": len(others),
        "all_same": share(whole),
        "right": share(each.right for each in run),
        "right_base": share(found["base"].right for found in compared.values()),
        "same_wrong": share(agrees and not each.right for each, agrees in others),
        "refused_or_asked": share(each.ending in ("refused", "asked") for each in run),
        "by_kind": {
            kind: {
                "n": len(of_kind),
                "same_effects": share(agrees for _, agrees in of_kind),
                "right": share(each.right for each, _ in of_kind),
            }
            for kind in dict.fromkeys(each.kind for each, _ in others)
            for of_kind in [[pair for pair in others if pair[0].kind == kind]]
        },
        "median_seconds": round(statistics.median(each.seconds for each in results), 2) if results else None,
        "without_base": len(requests) - len(compared),
        "worst": _worst(compared),
    }


def _by_request(results: Sequence[Result]) -> dict[str, dict[str, Result]]:
    """Results by request and wording in the order of the cases and of their wordings, however shards wrote them."""
    found: dict[str, dict[str, Result]] = {}
    order = {case.id: place for place, case in enumerate(CASES)}
    kinds = get_args(Kind)

    def place_of(each: Result) -> tuple[int, int, str]:
        return order.get(each.id, len(order)), kinds.index(each.kind), each.wording

    for each in sorted(results, key=place_of):
        found.setdefault(each.id, {})[each.wording] = each
    return found


def _worst(compared: dict[str, dict[str, Result]]) -> list[dict[str, Any]]:
    """The requests with the lowest agreement, and the wordings that differ."""
    listed: list[dict[str, Any]] = []
    for id, found in compared.items():
        base = found["base"]
        others = [each for each in found.values() if each.kind != "base"]
        differing = [each for each in others if each.effects != base.effects]
        if differing:
            listed.append(
                {
                    "id": id,
                    "same_effects": share(each.effects == base.effects for each in others),
                    "base": base.ending,
                    "base_right": base.right,
                    "differing": {each.wording: _difference(each) for each in differing},
                }
            )
    return sorted(listed, key=lambda each: each["same_effects"])[:WORST]


def _difference(result: Result) -> str:
    """How a wording came out, in a word: the ending, or whether it was right though something else was done."""
    if result.ending != "finished":
        return result.ending
    return "right" if result.right else "wrong"


def read_results(files: Sequence[Path]) -> list[Result]:
    """The results that runs with `--out` wrote; of a wording that was run twice the last."""
    found: dict[tuple[str, str], Result] = {}
    for line in result_lines(files):
        result = Result(**json.loads(line))
        found[result.id, result.wording] = result
    return list(found.values())


def to_line(result: Result) -> str:
    """A result as a line of JSON."""
    return json.dumps(asdict(result)) + "\n"

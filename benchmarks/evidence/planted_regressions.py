"""V16: how many planted regressions does the gate find, against a look at the mean of all cases?

No model is asked. A subject of this benchmark answers each of sixty cases right with a probability of its own, drawn
once by a fixed seed; what it answers is drawn anew in each evaluation, three times a case. A planted regression lowers
the probabilities of some cases, breaks one critical case, or removes cases from the suite; a trade also makes other
cases better, so that the mean stays. As many evaluations are of the unchanged subject: what is stopped there is a
false alarm. The mean is held against the same tolerance as the categories.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

from bicameral.evaluation import (
    DEFAULT_TOLERANCE,
    Baseline,
    Case,
    Report,
    Subject,
    Suite,
    bootstrap_interval,
    evaluate,
    gate,
    sign_test,
)
from bicameral.labels import Labelled
from bicameral.patterns.kernel import map_labelled

SEED = 16
PLANTS = 240
REPEATS = 3
CATEGORIES = ("dates", "amounts", "names", "tables", "refusals", "safety")
CASES_EACH = 10
Chances = Mapping[str, float]


def make_suite() -> Suite[str, str]:
    ids = [f"{category} {number}" for category in CATEGORIES for number in range(CASES_EACH)]
    return Suite("planted", tuple(Case(id, id, "right", category=id.split()[0]) for id in ids))


def make_chances(suite: Suite[str, str], random_: random.Random) -> dict[str, float]:
    """How likely each case is right: safety always, and the others in between."""
    return {case.id: 1.0 if case.critical else random_.choice((0.7, 0.9, 1.0, 1.0)) for case in suite.cases}


def _of(category: str) -> Callable[[str], bool]:
    return lambda id: id.split()[0] == category


def weaken_category(chances: Chances, random_: random.Random) -> dict[str, float]:
    """One category loses a third of its answers."""
    hit = _of(random_.choice(CATEGORIES[:-1]))
    return {id: chance * 0.67 if hit(id) else chance for id, chance in chances.items()}


def trade_categories(chances: Chances, random_: random.Random) -> dict[str, float]:
    """One category loses a third of its answers, and all others become better."""
    weakened = weaken_category(chances, random_)
    return {id: chance if chance < chances[id] else 1.0 for id, chance in weakened.items()}


def break_critical_case(chances: Chances, random_: random.Random) -> dict[str, float]:
    """One critical case is never right any more."""
    return {**chances, f"safety {random_.randrange(CASES_EACH)}": 0.0}


def weaken_all(chances: Chances, random_: random.Random) -> dict[str, float]:
    """Every case but the critical ones loses a tenth of its answers."""
    return {id: chance if _of("safety")(id) else chance * 0.9 for id, chance in chances.items()}


CHANGES = {each.__name__: each for each in (weaken_category, trade_categories, break_critical_case, weaken_all)}
REMOVED = ("remove_category", "remove_wrong_cases")


def measure() -> dict[str, Any]:
    """The figures."""
    return asyncio.run(_measure())


async def _measure() -> dict[str, Any]:
    random_ = random.Random(SEED)
    suite = make_suite()
    chances = make_chances(suite, random_)
    accepted = await _evaluated(suite, chances, random_)
    while any(not each.correct for each in accepted.results if each.category == "safety"):
        accepted = await _evaluated(suite, chances, random_)
    baseline = Baseline.promote(accepted, by="benchmark", reason="the unchanged subject")
    kinds = (*CHANGES, *REMOVED)
    found: dict[str, list[tuple[bool, bool]]] = {}
    for number in range(2 * PLANTS):
        kind = kinds[number % len(kinds)] if number < PLANTS else "unchanged"
        report = await _evaluated(*_planted(kind, suite, chances, accepted, random_), random_)
        by_mean = accepted.accuracy - report.accuracy > DEFAULT_TOLERANCE
        found.setdefault(kind, []).append((by_mean, not gate(report, baseline).passed))
    return _figures(found)


def _planted(
    kind: str, suite: Suite[str, str], chances: dict[str, float], accepted: Report[str], random_: random.Random
) -> tuple[Suite[str, str], dict[str, float]]:
    if kind in CHANGES:
        return suite, CHANGES[kind](chances, random_)
    if kind == "unchanged":
        return suite, chances
    if kind == "remove_category":
        gone = set(filter(_of(random_.choice(CATEGORIES)), chances))
    else:
        # Somebody takes out what is wrong, which makes the mean better.
        gone = set(random_.sample(sorted({each.case for each in accepted.wrong}), 3))
    return Suite(suite.name, tuple(case for case in suite.cases if case.id not in gone)), chances


async def _evaluated(suite: Suite[str, str], chances: Chances, random_: random.Random) -> Report[str]:
    async def attempt(given: Labelled[str], seed: int) -> Labelled[str]:
        return map_labelled(given, lambda id: "right" if random_.random() < chances[id] else "wrong")

    return await evaluate(Subject("planted", attempt), suite, repeats=REPEATS)


def _figures(found: Mapping[str, list[tuple[bool, bool]]]) -> dict[str, Any]:
    planted = [pair for kind, pairs in found.items() if kind != "unchanged" for pair in pairs]
    differences = [float(by_gate) - float(by_mean) for by_mean, by_gate in planted]
    interval = bootstrap_interval(differences)
    assert interval is not None
    better, worse = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return {
        "cases": len(planted),
        "mean": _share(pair[0] for pair in planted),
        "gate": _share(pair[1] for pair in planted),
        "gain": round(sum(differences) / len(differences), 4),
        "low": round(interval[0], 4),
        "high": round(interval[1], 4),
        "p": round(sign_test(better, worse), 6),
        "false_alarms": {
            "mean": _share(pair[0] for pair in found["unchanged"]),
            "gate": _share(pair[1] for pair in found["unchanged"]),
        },
        "by_kind": {
            kind: {"mean": _share(pair[0] for pair in pairs), "gate": _share(pair[1] for pair in pairs)}
            for kind, pairs in found.items()
        },
    }


def _share(found: Any) -> float:
    each = list(found)
    return round(sum(each) / len(each), 4)

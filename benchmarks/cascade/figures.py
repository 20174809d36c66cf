"""From records to figures: what the cascade makes of two runs, the whole trade-off, and the threshold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bicameral.agent._escalation import ESCALATION_CODES
from bicameral.models import ReplyToken
from bicameral.planning import MIN_CONFIDENCE, deciding_tokens

from .attempts import Attempt

STEPS = tuple(round(number / 20, 2) for number in range(21))
AIM = 0.5
"""The share of the large model's tokens that the threshold is chosen for: under the 0.6 that is to be kept."""
_NO_PLAN = ("plan.none", "plan.unasked-effect", "models.prompt-too-long")
_PLANNING = ("echo", "delta")


@dataclass(frozen=True, slots=True)
class Pair:
    """One request with both models; `large` is None where only the small one was asked."""

    id: str
    unseen: bool
    core: bool
    small: Attempt
    large: Attempt | None

    @property
    def least(self) -> float:
        """How likely the small model's weakest choice was to it; 1 if it had none."""
        return min((token.probability for token in deciding_tokens(tokens_of(self.small))), default=1.0)


def tokens_of(attempt: Attempt) -> list[ReplyToken]:
    return [ReplyToken(*choice) for choice in attempt.choices]


def reasons(pair: Pair, sure: float) -> list[str]:
    """Why the cascade goes on to the large model, by kind; nothing says that it does not."""
    small = pair.small
    found = list(dict.fromkeys(kind for kind, _ in small.doubts))
    if pair.least < sure:
        found.append("unsure")
    if small.error in _NO_PLAN:
        found.append("no-plan")
    if small.error == "intent.not-understood":
        found.append("not-understood")
    if small.error in ESCALATION_CODES and not small.changed:
        found.append("run-failed")
    return found


def large_tokens(pair: Pair, why: Sequence[str], *, fresh: bool = False) -> int:
    """What the cascade asks of the large model: the plan, and what the request means only if the small one fails."""
    if pair.large is None or not why:
        return 0
    counted = pair.large.fresh if fresh else pair.large.tokens
    return counted.get("delta", 0) + (counted.get("echo", 0) if "not-understood" in why else 0)


def alone(pair: Pair, *, fresh: bool = False) -> int:
    """What the large model alone costs: everything that is asked to plan, and nothing that fills blanks."""
    if pair.large is None:
        return 0
    counted = pair.large.fresh if fresh else pair.large.tokens
    return sum(counted.get(role, 0) for role in _PLANNING)


def point(pairs: Sequence[Pair], sure: float) -> dict[str, float]:
    """The cascade with one threshold."""
    went = [(pair, reasons(pair, sure)) for pair in pairs]
    solved = sum((pair.large if why and pair.large else pair.small).solved for pair, why in went)
    large = sum(pair.large.solved for pair in pairs if pair.large)
    return {
        "sure": sure,
        "solved_cascade": _ratio(solved, len(pairs)),
        "solved_ratio": _ratio(solved, large),
        "large_token_ratio": _ratio(sum(large_tokens(pair, why) for pair, why in went), sum(map(alone, pairs))),
        "escalated": _ratio(sum(bool(why) for _, why in went), len(pairs)),
    }


def summary(pairs: Sequence[Pair], sure: float = MIN_CONFIDENCE) -> dict[str, Any]:
    """The figures of the benchmark, with the threshold that the code has; seen and unseen requests apart as well."""
    why = [reasons(pair, sure) for pair in pairs]
    fresh = sum(large_tokens(pair, each, fresh=True) for pair, each in zip(pairs, why, strict=True))
    large = [pair.large for pair in pairs if pair.large]
    parts = {name: [p for p in pairs if p.unseen == unseen] for name, unseen in (("seen", False), ("unseen", True))}
    return {
        "requests": len(pairs),
        "solved_small": _ratio(sum(pair.small.solved for pair in pairs), len(pairs)),
        "solved_large": _ratio(sum(each.solved for each in large), len(large)),
        **point(pairs, sure),
        "large_fresh_token_ratio": _ratio(fresh, sum(alone(pair, fresh=True) for pair in pairs)),
        "large_tokens": sum(map(alone, pairs)),
        "small_tokens": sum(pair.small.tokens.get(role, 0) for pair in pairs for role in _PLANNING),
        "escalated_for": dict(Counter(kind for each in why for kind in each).most_common()),
        **{name: _part(part, sure) for name, part in parts.items() if part},
    }


def _part(pairs: Sequence[Pair], sure: float) -> dict[str, Any]:
    solved = {
        "requests": len(pairs),
        "solved_small": _ratio(sum(pair.small.solved for pair in pairs), len(pairs)),
        "solved_large": _ratio(sum(pair.large.solved for pair in pairs if pair.large), len(pairs)),
    }
    return solved | {name: value for name, value in point(pairs, sure).items() if name != "sure"}


def curve(pairs: Sequence[Pair]) -> list[dict[str, float]]:
    """The whole trade-off: from the doubts that need no threshold to a large model for everything unsure."""
    return [point(pairs, sure) for sure in STEPS]


# How the threshold was chosen. Never with an unseen request.


def calibrated(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The highest threshold with which at most `AIM` of the tokens go to the large model, on requests that are seen.

    Whether a plan was right plays no part in that; `catches` says of each measure how well it finds the wrong ones.
    """
    seen = [pair for pair in pairs if not pair.unseen]
    within = [sure for sure in STEPS if _share(seen, sure) <= AIM]
    return {
        "requests": len(seen),
        "sure": max(within, default=0.0),
        "token_share": {str(sure): round(_share(seen, sure), 4) for sure in STEPS},
        "wrong": _ratio(sum(not pair.small.solved for pair in seen), len(seen)),
        "catches": {name: _separates(seen, measure) for name, measure in MEASURES.items()},
    }


def _share(pairs: Sequence[Pair], sure: float) -> float:
    """The share of tokens that goes to plans that are written twice, as the small model counts them."""
    cost = {pair.id: pair.small.tokens.get("delta", 0) for pair in pairs}
    return sum(cost[pair.id] for pair in pairs if reasons(pair, sure)) / max(1, sum(cost.values()))


def _separates(pairs: Sequence[Pair], measure: Callable[[Pair], float]) -> float | None:
    """How often a wrong plan has a lower value than a right one (0.5 is chance)."""
    wrong = [measure(pair) for pair in pairs if not pair.small.solved]
    right = [measure(pair) for pair in pairs if pair.small.solved]
    if not wrong or not right:
        return None
    wins = sum((w < r) + 0.5 * (w == r) for w in wrong for r in right)
    return round(wins / (len(wrong) * len(right)), 4)


def _logs(pair: Pair) -> Iterator[float]:
    return (math.log(max(token.probability, 1e-9)) for token in deciding_tokens(tokens_of(pair.small)))


def _mean(pair: Pair) -> float:
    logs = list(_logs(pair))
    return sum(logs) / len(logs) if logs else 0.0


MEASURES: dict[str, Callable[[Pair], float]] = {
    "weakest choice": lambda pair: pair.least,
    "all choices together": lambda pair: sum(_logs(pair)),
    "mean choice": _mean,
    "weakest token": lambda pair: min((token.probability for token in tokens_of(pair.small)), default=1.0),
    "least overruled": lambda pair: (
        -max((token.overruled for token in deciding_tokens(tokens_of(pair.small))), default=0.0)
    ),
    "fewest tokens": lambda pair: -float(len(pair.small.choices)),
}
"""Ways to say how sure a model was. The first one is what the cascade uses."""


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0

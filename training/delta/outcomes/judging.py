"""Sampled plans judged by what they do: right ones become training data, right and wrong ones preferences."""

from __future__ import annotations

import asyncio
import difflib
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from bicameral.planning._decode import PREFILL
from bicameral.planning._statement_grammar import FENCE

from .oracle import Case, judge_plan

PLAN_SECONDS = 90
"""A plan that takes longer in all of its worlds is wrong, and its process goes on with the next."""
MOST_RIGHT = 2
"""So many different right plans of a request are learned from; more would only repeat easy ones."""
MOST_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """A plan, how often it was drawn, and why it is wrong; empty if it is right."""

    plan: str
    times: int
    why: str
    first: bool = False
    """Whether it is the first sample: the one that the planner would have written."""

    @property
    def right(self) -> bool:
        return not self.why


@dataclass(frozen=True, slots=True)
class Judged:
    """All samples of one request."""

    id: str
    system: str
    case: Case
    verdicts: tuple[Verdict, ...]

    @property
    def right(self) -> list[Verdict]:
        """The right ones, the most frequent first."""
        return sorted((each for each in self.verdicts if each.right), key=lambda each: (-each.times, each.plan))

    @property
    def wrong(self) -> list[Verdict]:
        """The wrong ones, that of the planner first, then the most frequent."""
        wrong = [each for each in self.verdicts if not each.right]
        return sorted(wrong, key=lambda each: (not each.first, -each.times, each.plan))

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Preferences: a wrong plan, and the right one that is most like it, so that the difference is what is learned.

        Where no sample is right, the reference is.
        """
        chosen = [each.plan for each in self.right] or [self.case.plan]
        for wrong in self.wrong[:MOST_PAIRS]:
            nearest = max(chosen, key=lambda plan: difflib.SequenceMatcher(None, plan, wrong.plan).ratio())
            yield {
                "id": self.id,
                "system": self.system,
                "told": self.case.told,
                "chosen": fenced(nearest),
                "rejected": fenced(wrong.plan),
                "why": wrong.why,
                "own": bool(self.right),
            }


@dataclass
class Counts:
    """What came of the samples."""

    requests: int = 0
    solved: int = 0
    first_right: int = 0
    plans: int = 0
    right: int = 0
    pairs: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    kinds: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def add(self, judged: Judged) -> None:
        self.requests += 1
        self.solved += bool(judged.right)
        first = any(each.first and each.right for each in judged.verdicts)
        self.first_right += first
        self.plans += sum(each.times for each in judged.verdicts)
        self.right += sum(each.times for each in judged.right)
        self.pairs += min(MOST_PAIRS, len(judged.wrong))
        for each in judged.wrong:
            self.reasons[each.why] += each.times
        kind = judged.case.place.rpartition(":")[0].rpartition("/")[2]
        done = self.kinds.setdefault(kind, [0, 0])
        done[0] += first
        done[1] += 1

    def to_json(self) -> dict[str, Any]:
        hardest = sorted(self.kinds.items(), key=lambda each: each[1][0] / each[1][1])
        return {
            "requests": self.requests,
            "solved": self.solved,
            "first_right": self.first_right,
            "plans": self.plans,
            "right": self.right,
            "pairs": self.pairs,
            "reasons": dict(self.reasons.most_common(15)),
            "hardest": {kind: f"{right}/{total}" for kind, (right, total) in hardest[:15]},
        }


def fenced(plan: str) -> str:
    """A plan as the planner writes it."""
    return f"{PREFILL}{plan}{FENCE}"


def judge_samples(request: Mapping[str, Any], plans: Sequence[str]) -> Judged:
    """Every different plan of a request, run in the worlds of its case."""
    case = Case.from_json(request["case"])
    counted = Counter(plans)
    verdicts = [
        Verdict(plan, times, _judged(case, plan), bool(plans) and plan == plans[0]) for plan, times in counted.items()
    ]
    return Judged(request["id"], request["system"], case, tuple(verdicts))


def _judged(case: Case, plan: str) -> str:
    """Why a plan is wrong, or nothing."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    # An alarm, since the timeout of the event loop does not interrupt a computation. It needs the main thread, and the
    # workers of a process pool run their tasks there.
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PLAN_SECONDS)
    try:
        right, why = asyncio.run(judge_plan(case, plan))
    except TimeoutError:
        return "timeout"
    except (ValueError, KeyError, TypeError, OSError, RecursionError, MemoryError) as error:
        # A fault of the judge or of a tool: nothing is learned from such a plan as if it were right.
        return f"error: {type(error).__name__}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "" if right else why or "outcome"

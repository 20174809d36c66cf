"""Runs the arms of a comparison on a model."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import gcd
from typing import Any, Protocol, TypeVar

from bicameral.limits import strategy_limits
from bicameral.models import LocalProvider, ModelStore, find_weights
from bicameral.patterns import Answered, Exhausted, GaveUp, Outcome, from_user, untrusted_value
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.policy import Policy
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Registry, Tool

from ..shards import Shard
from . import injected_texts, tool_choice
from .figures import Attempt, AttemptKey, by_category, compare_arms, mean_tokens


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=_Identified)


@asynccontextmanager
async def open_models(name: str) -> AsyncGenerator[ModelPair]:
    """One local model for both chambers, so that the same one is measured wherever it is asked."""
    weights = find_weights(name)
    path = ModelStore().ensure(weights)
    privileged = LocalProvider(path, name=f"local:{weights.id}")
    quarantined = Quarantined(LocalProvider(path, name=f"local:{weights.id}"))
    try:
        yield ModelPair(Chambers(privileged, quarantined))
    finally:
        await privileged.aclose()
        await quarantined.aclose()


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """Which cases are tried, and which attempts are done already."""

    limit: int | None = None
    shard: Shard | None = None
    done: Collection[AttemptKey] = ()

    def remaining(
        self, pattern: str, model: str, cases: Sequence[Item], arms: Iterable[str]
    ) -> Iterator[tuple[Item, str]]:
        """Each case with each arm that has not been tried on it."""
        for case in _choose(cases, self.limit, self.shard):
            for arm in arms:
                if (pattern, model, arm, case.id) not in self.done:
                    yield case, arm


async def measure(pattern: str, model: str, pair: ModelPair, selection: CaseSelection) -> AsyncIterator[Attempt]:
    """The attempts of one pattern's comparison that are not done yet."""
    async for row in MEASURED[pattern](model, pair, selection):
        yield row


def _choose(cases: Sequence[Item], limit: int | None, shard: Shard | None) -> Sequence[Item]:
    if limit is not None and limit < len(cases):
        # Categories take turns, so every N-th case would be of one of them. A step that has no divisor in common with
        # the number of cases goes through all of them in turn.
        step = next(each for each in range(round(0.618 * len(cases)), len(cases)) if gcd(each, len(cases)) == 1)
        cases = [cases[number] for number in sorted(step * each % len(cases) for each in range(limit))]
    return shard.take(cases) if shard else cases


async def _tool_choices(model: str, pair: ModelPair, selection: CaseSelection) -> AsyncIterator[Attempt]:
    desk = _desk(pair, tool_choice.make_tools())
    for case, arm in selection.remaining("V13", model, tool_choice.make_cases(), tool_choice.ARMS):
        begun = time.perf_counter()
        outcome = await tool_choice.ARMS[arm].run(desk, from_user(case.input))
        scores = {"right": float(outcome.value == case.expected)} if isinstance(outcome, Answered) else {}
        yield _attempt("V13", model, arm, case.id, case.category, scores, outcome, begun)


async def _read_texts(model: str, pair: ModelPair, selection: CaseSelection) -> AsyncIterator[Attempt]:
    desk = _desk(pair, ())
    for text, arm in selection.remaining("V6", model, list(injected_texts.make_texts()), injected_texts.ARMS):
        begun = time.perf_counter()
        outcome = await injected_texts.ARMS[arm].run(desk, from_user(text.question), untrusted_value(text.text, "text"))
        scores: dict[str, float] = {}
        if isinstance(outcome, Answered):
            scores["right"] = float(injected_texts.is_right(outcome.value, text))
            scores["safe"] = float(not injected_texts.is_hijacked(outcome.value, text))
        yield _attempt("V6", model, arm, text.id, text.style, scores, outcome, begun)


def _desk(pair: ModelPair, tools: Iterable[Tool]) -> Runtime:
    registry = Registry(tools)
    return Runtime(pair, registry, Policy((), registry), strategy_limits())


def _attempt(
    pattern: str,
    model: str,
    arm: str,
    case: str,
    category: str,
    scores: dict[str, float],
    outcome: Outcome[Any],
    begun: float,
) -> Attempt:
    error = ""
    match outcome:
        case GaveUp(error=found):
            error = found.code
        case Exhausted(bound=bound):
            error = f"limit of {bound}"
        case Answered():
            pass
    seconds = round(time.perf_counter() - begun, 2)
    return Attempt(pattern, model, arm, case, category, scores, outcome.taken.tokens, seconds, error)


MEASURED: Mapping[str, Callable[[str, ModelPair, CaseSelection], AsyncIterator[Attempt]]] = {
    "V13": _tool_choices,
    "V6": _read_texts,
}


def summarise(rows: Sequence[Attempt], patterns: Iterable[str]) -> dict[str, Any]:
    """The figures by pattern and model."""
    found: dict[str, Any] = {}
    for pattern in patterns:
        for model in dict.fromkeys(row.model for row in rows):
            mine = [row for row in rows if row.pattern == pattern and row.model == model]
            if mine:
                found.setdefault(pattern, {})[model] = _SUMMARIES[pattern](mine)
    return found


def _sum_up_choices(rows: Sequence[Attempt]) -> dict[str, Any]:
    return {
        **compare_arms(rows, "right", "all tools", "chosen tools"),
        "failed": sum(bool(row.error) for row in rows),
        "by_wording": by_category(rows, "right"),
        "tokens": mean_tokens(rows),
    }


def _sum_up_texts(rows: Sequence[Attempt]) -> dict[str, Any]:
    attacked = [row for row in rows if row.category != "none"]
    clean = [row for row in rows if row.category == "none"]
    marks = [arm for arm in injected_texts.ARMS if arm != "plain"]
    return {
        **compare_arms(attacked, "safe", "plain", "delimit"),
        "other_marks": {arm: compare_arms(attacked, "safe", "plain", arm) for arm in marks if arm != "delimit"},
        "right_when_attacked": {arm: compare_arms(attacked, "right", "plain", arm) for arm in marks},
        "right_without_attack": {arm: compare_arms(clean, "right", "plain", arm) for arm in marks},
        "failed": sum(bool(row.error) for row in rows),
        "by_style": by_category(attacked, "safe"),
        "tokens": mean_tokens(rows),
    }


_SUMMARIES: Mapping[str, Callable[[Sequence[Attempt]], dict[str, Any]]] = {
    "V13": _sum_up_choices,
    "V6": _sum_up_texts,
}

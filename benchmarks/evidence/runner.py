"""Runs the arms of a comparison on a model."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import gcd
from typing import Any, TypeVar

from bicameral.limits import strategy_limits
from bicameral.models import LocalProvider, ModelStore, find_weights
from bicameral.patterns import Answered, Exhausted, GaveUp, Outcome, from_user, untrusted_value
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.policy import Policy
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Registry, Tool

from ..shards import Shard
from . import injected_texts, tool_choice
from .figures import Attempt, by_category, compare_arms, mean_tokens

Item = TypeVar("Item")


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


async def measure(
    pattern: str, model: str, pair: ModelPair, limit: int | None, shard: Shard | None
) -> AsyncIterator[Attempt]:
    """All attempts of one pattern's comparison."""
    async for row in MEASURED[pattern](model, pair, lambda cases: _choose(cases, limit, shard)):
        yield row


def _choose(cases: Sequence[Item], limit: int | None, shard: Shard | None) -> Sequence[Item]:
    if limit is not None and limit < len(cases):
        # Categories take turns, so every N-th case would be of one of them. A step that has no divisor in common with
        # the number of cases goes through all of them in turn.
        step = next(each for each in range(round(0.618 * len(cases)), len(cases)) if gcd(each, len(cases)) == 1)
        cases = [cases[number] for number in sorted(step * each % len(cases) for each in range(limit))]
    return shard.take(cases) if shard else cases


Chooser = Callable[[Sequence[Any]], Sequence[Any]]


async def _tool_choices(model: str, pair: ModelPair, choose: Chooser) -> AsyncIterator[Attempt]:
    desk = _desk(pair, tool_choice.make_tools())
    for case in choose(tool_choice.make_cases()):
        for arm, pattern in tool_choice.ARMS.items():
            begun = time.perf_counter()
            outcome = await pattern.run(desk, from_user(case.input))
            scores = {"right": float(outcome.value == case.expected)} if isinstance(outcome, Answered) else {}
            yield _attempt("V13", model, arm, case.id, case.category, scores, outcome, begun)


async def _read_texts(model: str, pair: ModelPair, choose: Chooser) -> AsyncIterator[Attempt]:
    desk = _desk(pair, ())
    for text in choose(list(injected_texts.make_texts())):
        for arm, pattern in injected_texts.ARMS.items():
            begun = time.perf_counter()
            outcome = await pattern.run(desk, from_user(text.question), untrusted_value(text.text, "text"))
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


MEASURED: Mapping[str, Callable[[str, ModelPair, Chooser], AsyncIterator[Attempt]]] = {
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

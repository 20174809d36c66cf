"""Run it with `python -m benchmarks.patterns`; `--model` says who plays the privileged side, `--only` which patterns.

Each example runs once. Before it runs, the cost model is told what can be known then: the fixed words, the task, how
many parts or steps it has. Afterwards its calls and tokens are held against those that were counted. The last line is
one JSON object; `call_error` and `token_error` are the mean relative errors over all patterns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bicameral.catalog.costs import estimate, estimate_tokens
from bicameral.limits import strategy_limits
from bicameral.models import LocalProvider, ModelStore, find_weights
from bicameral.patterns import IMPLEMENTED, Answered, Exhausted, GaveUp, Outcome, example_of
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.policy import Policy
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Registry


@dataclass(frozen=True, slots=True)
class Row:
    """One example: what was expected, what came."""

    pattern: str
    ok: bool
    calls: int
    calls_expected: float
    tokens: int
    tokens_expected: float
    seconds: float
    told: str

    @property
    def call_error(self) -> float:
        return _error(self.calls_expected, self.calls)

    @property
    def token_error(self) -> float:
        return _error(self.tokens_expected, self.tokens)

    def to_json(self) -> dict[str, Any]:
        return {
            "pattern": self.pattern,
            "ok": self.ok,
            "calls": self.calls,
            "calls_expected": self.calls_expected,
            "tokens": self.tokens,
            "tokens_expected": round(self.tokens_expected),
            "seconds": round(self.seconds, 1),
            "told": self.told,
        }


def _error(expected: float, counted: float) -> float:
    return abs(expected - counted) / counted if counted else float(expected != 0)


def options(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.patterns", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--model", help="the privileged model (the smallest that each example names)")
    parser.add_argument("--quarantined", default="0.5b", help="the quarantined model (0.5b)")
    parser.add_argument("--only", nargs="*", metavar="ID", help="these patterns alone")
    return parser.parse_args(given)


async def measured(id: str, chambers: Chambers) -> Row:
    """One example, estimated and then run."""
    example = example_of(id)
    with tempfile.TemporaryDirectory(prefix="bicameral-pattern-") as name:
        folder = Path(name)
        registry = Registry(example.tools(folder))
        pattern, given = example.make(folder), example.arguments(folder)
        expected = estimate(pattern.architecture()["patterns"], _counted(example.sizes(folder))).expected
        desk = Runtime(ModelPair(chambers), registry, Policy((), registry), strategy_limits())
        begun = time.perf_counter()
        outcome = await pattern.run(desk, *given)
        seconds = time.perf_counter() - begun
        ok = isinstance(outcome, Answered) and example.is_correct(outcome)
    tokens = expected.prompt + expected.output
    return Row(id, ok, outcome.taken.calls, expected.calls, outcome.taken.tokens, tokens, seconds, _told(outcome))


def _counted(sizes: Mapping[str, float | str]) -> dict[str, float]:
    return {name: estimate_tokens(size) if isinstance(size, str) else size for name, size in sizes.items()}


def _told(outcome: Outcome[Any]) -> str:
    match outcome:
        case Answered(value=value):
            return " ".join(str(value).split())[:80]
        case Exhausted(bound=bound, limit=limit):
            return f"{limit:g} {bound} were not enough"
        case GaveUp(error=error):
            return str(error)[:120]


async def all_measured(given: argparse.Namespace) -> list[Row]:
    quarantined = Quarantined(_provider(given.quarantined))
    privileged: dict[str, LocalProvider] = {}
    rows: list[Row] = []
    try:
        for id in given.only or IMPLEMENTED:
            name = given.model or example_of(id).model
            if name not in privileged:
                privileged[name] = _provider(name)
            row = await measured(id, Chambers(privileged[name], quarantined))
            rows.append(row)
            print(
                f"{row.pattern:4} {'ok ' if row.ok else 'BAD'} calls {row.calls:3} ({row.calls_expected:5.1f})  tokens"
                f" {row.tokens:6,} ({row.tokens_expected:8,.0f})  {row.seconds:6.1f} s  {row.told}",
                flush=True,
            )
    finally:
        for provider in (*privileged.values(), quarantined):
            await provider.aclose()
    return rows


def _provider(name: str) -> LocalProvider:
    weights = find_weights(name)
    return LocalProvider(ModelStore().ensure(weights), name=f"local:{weights.id}")


def main(given: list[str] | None = None) -> int:
    chosen = options(given)
    rows = asyncio.run(all_measured(chosen))
    found = {
        "patterns": len(rows),
        "outcomes_ok": sum(row.ok for row in rows),
        "call_error": round(statistics.mean(row.call_error for row in rows), 4),
        "token_error": round(statistics.mean(row.token_error for row in rows), 4),
        "seconds": round(sum(row.seconds for row in rows), 1),
        "privileged": chosen.model or "the smallest that each example names",
        "quarantined": chosen.quarantined,
        "rows": [row.to_json() for row in rows],
    }
    print(json.dumps(found))
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

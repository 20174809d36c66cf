"""Run it with `python -m benchmarks.patterns`; `--model` says who plays the privileged side, `--only` which patterns.

Each example and each composition runs once. Before it runs, the cost model is told what can be known then: the fixed
words, the task, how many parts or steps it has. Afterwards its calls and tokens are held against those that were
counted, and the run is replayed from its record. The last line is one JSON object.

`call_error` and `token_error` are the mean relative errors over the compositions, `pattern_call_error` and
`pattern_token_error` those over the examples of single patterns. `composed_right` counts the compositions whose answer
says what it has to, as their file had it before the run. `replay_equal` counts the runs whose replay gave the same,
`replays` all runs; `invariants` counts those of the implemented patterns that code must hold, `invariants_held` those
that a test holds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.patterns.compositions import COMPOSITIONS, ComposedCase, office_tools
from bicameral import Agent
from bicameral.catalog.costs import Amounts, estimate, estimate_tokens
from bicameral.catalog.stacks import stack_of
from bicameral.config import Config
from bicameral.journal import open_journal_at
from bicameral.labels import program_text
from bicameral.limits import strategy_limits
from bicameral.models import LocalProvider, ModelStore, find_weights
from bicameral.patterns import IMPLEMENTED, Answered, Exhausted, GaveUp, Outcome, example_of
from bicameral.patterns.kernel import Pattern, replay_pattern
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.policy import Policy
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Registry, Tool
from scripts.invariants import measure_coverage

COMPOSED_MODEL = "0.5b"
"""Who plays the privileged side of compositions, if nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One example or composition: what was expected, what came, and whether its record gives the same again."""

    pattern: str
    ok: bool
    calls: int
    calls_expected: float
    tokens: int
    tokens_expected: float
    seconds: float
    told: str
    replayed: bool
    answered: bool = True
    depth: int = 1

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
            "replayed": self.replayed,
            "answered": self.answered,
            "depth": self.depth,
        }


def _error(expected: float, counted: float) -> float:
    return abs(expected - counted) / counted if counted else float(expected != 0)


def options(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.patterns", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--model", help="the privileged model (the smallest that each example names)")
    parser.add_argument("--quarantined", default="0.5b", help="the quarantined model (0.5b)")
    parser.add_argument("--only", nargs="*", metavar="ID", help="these patterns alone, and no compositions")
    parser.add_argument(
        "--composed", nargs="?", type=int, const=0, metavar="N", help="the (first N) compositions alone"
    )
    return parser.parse_args(given)


async def measure_example(id: str, chambers: Chambers) -> Row:
    """One example, estimated and then run."""
    example = example_of(id)
    with tempfile.TemporaryDirectory(prefix="bicameral-pattern-") as name:
        folder = Path(name)
        pattern = example.make(folder)
        sizes = _counted(example.sizes(folder))
        expected = estimate(stack_of(pattern.architecture(sizes={"": sizes})), sizes).total
        return await _measure(
            id, pattern, example.arguments(folder), example.tools(folder), expected, example.is_correct, chambers
        )


async def measure_composition(case: ComposedCase, chambers: Chambers) -> Row:
    """One composition, estimated and then run."""
    pattern = case.make()
    expected = estimate(stack_of(pattern.architecture(sizes=case.sizes))).expected
    row = await _measure(
        case.name,
        pattern,
        (program_text(case.task),),
        office_tools(),
        expected,
        lambda outcome: case.is_right(outcome.value),
        chambers,
    )
    return replace(row, depth=case.depth)


async def _measure(
    name: str,
    pattern: Pattern[..., Any],
    given: Sequence[Any],
    tools: Sequence[Tool],
    expected: Amounts,
    is_correct: Callable[[Answered[Any]], bool],
    chambers: Chambers,
) -> Row:
    registry = Registry(tools)
    policy = Policy((), registry)
    with (
        tempfile.TemporaryDirectory(prefix="bicameral-record-") as folder,
        open_journal_at(Path(folder) / "journal.db") as journal,
    ):
        # Some patterns plan: with an agent of the same models and tools.
        agent = Agent(
            list(tools),
            privileged=chambers.privileged,
            quarantined=chambers.quarantined,
            config=Config.defaults(),
            cache={},
        )
        planner = agent.runtime().planner
        runtime = Runtime(ModelPair(chambers), registry, policy, strategy_limits(), journal, planner=planner)
        begun = time.perf_counter()
        outcome = await pattern.run(runtime, *given)
        seconds = time.perf_counter() - begun
        replayed = await replay_pattern(journal, outcome.run, registry, policy, pattern=pattern)
    ok = isinstance(outcome, Answered) and is_correct(outcome)
    tokens, taken = expected.prompt + expected.output, outcome.taken
    return Row(
        name,
        ok,
        taken.calls,
        expected.calls,
        taken.tokens,
        tokens,
        seconds,
        _told(outcome),
        replayed.identical,
        answered=isinstance(outcome, Answered),
    )


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


async def measure_all(given: argparse.Namespace) -> tuple[list[Row], list[Row]]:
    """The rows of the examples, and those of the compositions."""
    quarantined = Quarantined(_provider(given.quarantined))
    privileged: dict[str, LocalProvider] = {}

    def chambers(name: str) -> Chambers:
        if name not in privileged:
            privileged[name] = _provider(name)
        return Chambers(privileged[name], quarantined)

    examples: list[Row] = []
    composed: list[Row] = []
    try:
        for id in () if given.composed is not None else given.only or IMPLEMENTED:
            examples.append(await measure_example(id, chambers(given.model or example_of(id).model)))
            _print_row(examples[-1])
        for case in () if given.only else COMPOSITIONS[: given.composed or None]:
            composed.append(await measure_composition(case, chambers(given.model or COMPOSED_MODEL)))
            _print_row(composed[-1])
    finally:
        for provider in (*privileged.values(), quarantined):
            await provider.aclose()
    return examples, composed


def _print_row(row: Row) -> None:
    print(
        f"{row.pattern:4} {'ok ' if row.ok else 'BAD'} calls {row.calls:3} ({row.calls_expected:5.1f})  tokens"
        f" {row.tokens:6,} ({row.tokens_expected:8,.0f})  {row.seconds:6.1f} s  {row.told}",
        flush=True,
    )


def _provider(name: str) -> LocalProvider:
    weights = find_weights(name)
    return LocalProvider(ModelStore().ensure(weights), name=f"local:{weights.id}")


def summarize(examples: Sequence[Row], composed: Sequence[Row]) -> dict[str, Any]:
    """What the rows come to."""
    rows = [*examples, *composed]
    return {
        "patterns": len(examples),
        "outcomes_ok": sum(row.ok for row in examples),
        "composed": len(composed),
        "composed_answered": sum(row.answered for row in composed),
        "composed_right": sum(row.ok for row in composed),
        "depth": max((row.depth for row in composed), default=0),
        "call_error": _mean(row.call_error for row in composed),
        "token_error": _mean(row.token_error for row in composed),
        "pattern_call_error": _mean(row.call_error for row in examples),
        "pattern_token_error": _mean(row.token_error for row in examples),
        "replays": len(rows),
        "replay_equal": sum(row.replayed for row in rows),
        "seconds": round(sum(row.seconds for row in rows), 1),
    }


def _mean(errors: Iterable[float]) -> float | None:
    found = list(errors)
    return round(statistics.mean(found), 4) if found else None


def main(given: list[str] | None = None) -> int:
    chosen = options(given)
    examples, composed = asyncio.run(measure_all(chosen))
    rows = [*examples, *composed]
    found = {
        **summarize(examples, composed),
        **measure_coverage().to_json(),
        "privileged": chosen.model or "the smallest that each example names",
        "quarantined": chosen.quarantined,
        "rows": [row.to_json() for row in rows],
    }
    print(json.dumps(found))
    # A small model may be wrong about a composition, which is reported; an example that is wrong is a fault.
    done = all(row.ok for row in examples) and all(row.answered for row in composed)
    return 0 if done and all(row.replayed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

"""When a registry is large, are the tools that a request needs among those that the planner is shown?

    python -m benchmarks.relevance

The requests are those of the planner's training corpus that a plan serves, the registry is all toolboxes of that corpus
together. The last line is one JSON object: `recall` is the share of requests for which every needed tool is shown,
`shown` the mean number of tools in the prompt.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator

from bicameral.planning import relevant_tools
from bicameral.planning._decode import refusal_reason
from bicameral.plans import Call, parse, walk
from bicameral.tools import Registry, Tool
from training.delta.blocks import CORPUS, Block, read_blocks
from training.delta.sample import Sample, make_sample

_FILLINGS = 20
"""How often a phrasing is filled anew, where the days of a filling mean something else in its sentence."""


def corpus_samples() -> Iterator[Sample]:
    """A sample of each phrasing of the corpus that a plan serves."""
    for path in sorted(CORPUS.glob("*.txt")):
        for block in read_blocks(path):
            if refusal_reason(block.plan) is None:
                yield from (made for phrasing in block.phrasings if (made := _sample(block, phrasing)) is not None)


def _sample(block: Block, phrasing: str) -> Sample | None:
    for filling in range(_FILLINGS):
        try:
            return make_sample(block, phrasing, filling)
        except (ValueError, IndexError):
            continue
    return None


def needed_tools(made: Sample) -> frozenset[str]:
    """The tools that the plan of a sample calls."""
    steps = parse(made.plan, made.registry).plan.steps
    return frozenset(step.tool for _, step in walk(steps) if isinstance(step, Call))


def main() -> None:
    asked: list[tuple[str, frozenset[str]]] = []
    tools: dict[str, Tool] = {}
    for made in corpus_samples():
        asked.append((made.intent.request, needed_tools(made)))
        for tool in made.registry:
            tools.setdefault(tool.name, tool)
    registry = Registry(tools.values())
    started = time.perf_counter()
    shown = [frozenset(relevant_tools(request, registry).names) for request, _ in asked]
    seconds = time.perf_counter() - started
    whole = [needed <= names for (_, needed), names in zip(asked, shown, strict=True)]
    single = [tool in names for (_, needed), names in zip(asked, shown, strict=True) for tool in needed]
    figures = {
        "requests": len(asked),
        "tools": len(registry),
        "recall": round(statistics.mean(whole), 4),
        "recall_per_tool": round(statistics.mean(single), 4),
        "shown": round(statistics.mean(map(len, shown)), 1),
        "choice_ms": round(1000 * seconds / len(asked), 2),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

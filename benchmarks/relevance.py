"""When a registry is large, are the tools that a request needs among those that the planner is shown?

    python -m benchmarks.relevance

The requests are those of the planner's training corpus, the registry is all toolboxes of that corpus together. The last
line is one JSON object: `recall` is the share of requests for which every needed tool is shown, `shown` the mean number
of tools in the prompt.
"""

from __future__ import annotations

import json
import statistics
import time

from bicameral.planning import relevant_tools
from bicameral.plans import Call, parse, walk
from bicameral.tools import Registry, Tool
from training.delta.blocks import CORPUS, read_blocks
from training.delta.sample import sampled


def main() -> None:
    blocks = [block for path in sorted(CORPUS.glob("*.txt")) for block in read_blocks(path)]
    asked: list[tuple[str, frozenset[str]]] = []
    tools: dict[str, Tool] = {}
    for block in blocks:
        for phrasing in block.phrasings:
            with sampled(block, phrasing, 0) as made:
                steps = parse(made.plan, made.registry).plan.steps
                needed = frozenset(step.tool for _, step in walk(steps) if isinstance(step, Call))
                asked.append((made.intent.request, needed))
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

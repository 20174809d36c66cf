"""The corpus as training data: packs of requests with plans that share one system prompt, as JSON lines.

A pack is the planner's system prompt over some registry and a dozen (request, plan) pairs. Most packs show the standard
tools as they are; the others show some of the toolboxes in another order, so that the model reads the list instead of
remembering it. Blocks of other toolboxes always stand under their own tools.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bicameral.planning._decode import PREFILL, adapter_setup_messages
from bicameral.planning._matching import PlanExample, load_examples
from bicameral.planning._statement_grammar import FENCE
from bicameral.plans import Call, parse, walk
from bicameral.tools import Registry

from .blocks import CORPUS, Block, read_blocks
from .check import against_evaluation
from .sample import Sample, sampled

PAIRS = 12
AS_IS = 0.6
HELD_BACK = 0.04


def all_blocks() -> list[Block]:
    """The corpus, and the examples that a model without an adapter is shown."""
    blocks = [block for path in sorted(CORPUS.glob("*.txt")) for block in read_blocks(path)]
    shown = [*load_examples().always, *load_examples().bank]
    return blocks + [_block(number, example) for number, example in enumerate(shown)]


def _block(number: int, example: PlanExample) -> Block:
    return Block(f"examples:{number}", None, (example.request,), example.plan)


def _fresh(block: Block, phrasing: str, filling: int) -> Sample:
    """A filling that has no name in common with the evaluation."""
    for other in range(20):
        with sampled(block, phrasing, f"{filling}/{other}") as made:
            if not any(against_evaluation(made)):
                return made
    raise ValueError(f"{block.place}: too near to the evaluation")


def packs(samples: Sequence[Sample], picks: random.Random) -> Iterator[dict[str, Any]]:
    """Samples grouped under prompts that show every tool their plans need."""
    groups: dict[str, list[Sample]] = defaultdict(list)
    for each in samples:
        kind = each.toolbox if each.toolbox is not None else ("" if picks.random() < AS_IS else "some")
        groups[kind].append(each)
    for kind, group in groups.items():
        picks.shuffle(group)
        for start in range(0, len(group), PAIRS):
            chosen = group[start : start + PAIRS]
            registry = chosen[0].registry
            if kind == "some":
                registry = _some(chosen, picks)
            elif kind:
                registry = registry.subset(_shuffled(registry.names, picks))
            yield {
                "system": adapter_setup_messages(registry)[0].text,
                "pairs": [[each.told, f"{PREFILL}{each.plan}{FENCE}"] for each in chosen],
            }


def _some(chosen: Sequence[Sample], picks: random.Random) -> Registry:
    """The toolboxes that these plans use and some others, in any order."""
    registry = chosen[0].registry
    used = {registry[step.tool].toolbox for each in chosen for step in _calls(each)}
    others = [name for name in sorted({str(tool.toolbox) for tool in registry}) if name not in used]
    boxes = _shuffled([*sorted(map(str, used)), *picks.sample(others, picks.randint(0, len(others)))], picks)
    return Registry([tool for box in boxes for tool in registry if tool.toolbox == box])


def _calls(each: Sample) -> Iterator[Call]:
    steps = parse(each.plan, each.registry).plan.steps
    return (step for _, step in walk(steps) if isinstance(step, Call))


def _shuffled(names: Sequence[str], picks: random.Random) -> list[str]:
    return picks.sample(list(names), len(names))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("out", type=Path, help="folder for train.jsonl and held.jsonl")
    arguments.add_argument("--fillings", type=int, default=3, help="how often each phrasing is filled (default 3)")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    picks = random.Random(given.seed)
    blocks = all_blocks()
    held = {block.place for block in blocks if random.Random(f"held/{block.place}").random() < HELD_BACK}
    parts: dict[str, list[Sample]] = {"train": [], "held": []}
    for block in blocks:
        part, fillings = ("held", 1) if block.place in held else ("train", given.fillings)
        seen: dict[tuple[str, str], Sample] = {}
        for phrasing in block.phrasings:
            for filling in range(fillings):
                made = _fresh(block, phrasing, filling)
                seen.setdefault((made.told, made.plan), made)
        parts[part] += seen.values()
    given.out.mkdir(parents=True, exist_ok=True)
    for part, samples in parts.items():
        made = list(packs(samples, picks))
        picks.shuffle(made)
        (given.out / f"{part}.jsonl").write_text("".join(json.dumps(pack) + "\n" for pack in made), encoding="utf-8")
        print(f"{part}: {len(samples)} pairs in {len(made)} packs")


if __name__ == "__main__":
    main()

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

from bicameral.planning._decode import PREFILL, adapter_setup_messages, refusal_reason
from bicameral.planning._matching import PlanExample, load_examples
from bicameral.planning._statement_grammar import FENCE
from bicameral.plans import Call, parse, walk
from bicameral.tools import Registry

from .blocks import CORPUS, Block, read_blocks
from .check import against_evaluation
from .compose import compose_blocks
from .sample import Sample, make_sample

PAIRS = 12
AS_IS = 0.6
HELD_BACK = 0.04
BY_WORDS = 0.4
"""The share of fillings in which files are called by words instead of their names."""


def all_blocks(composed: int = 0, seed: int = 1) -> list[Block]:
    """The corpus, the examples that a model without an adapter is shown, and so many composed blocks."""
    blocks = [block for path in sorted(CORPUS.glob("*.txt")) for block in read_blocks(path)]
    blocks += compose_blocks(composed, seed) if composed else []
    shown = [*load_examples().always, *load_examples().bank]
    return blocks + [_block(number, example) for number, example in enumerate(shown)]


def _block(number: int, example: PlanExample) -> Block:
    return Block(f"examples:{number}", None, (example.request,), example.plan)


def is_held_back(block: Block) -> bool:
    """Whether no training sees a block."""
    return random.Random(f"held/{block.place}").random() < HELD_BACK


def fresh_sample(block: Block, phrasing: str, filling: int) -> Sample | None:
    """A filling that has no name in common with the evaluation; None if the block is too near to it in any filling."""
    by_words = random.Random(f"words/{block.place}/{phrasing}/{filling}").random() < BY_WORDS
    for other in range(20):
        try:
            made = make_sample(block, phrasing, f"{filling}/{other}", by_words=by_words)
        except (ValueError, IndexError):
            # The days of this filling mean something else in this sentence.
            continue
        if not any(against_evaluation(made)):
            return made
    return None


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
    if refusal_reason(each.plan) is not None:
        return iter(())
    steps = parse(each.plan, each.registry).plan.steps
    return (step for _, step in walk(steps) if isinstance(step, Call))


def _shuffled(names: Sequence[str], picks: random.Random) -> list[str]:
    return picks.sample(list(names), len(names))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("out", type=Path, help="folder for train.jsonl and held.jsonl")
    arguments.add_argument("--fillings", type=int, default=3, help="how often each phrasing is filled (default 3)")
    arguments.add_argument("--composed", type=int, default=7000, help="how many blocks are composed (default 7000)")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    picks = random.Random(given.seed)
    blocks = all_blocks(given.composed, given.seed)
    held = {block.place for block in blocks if is_held_back(block)}
    parts: dict[str, list[Sample]] = {"train": [], "held": []}
    refused = 0
    for block in blocks:
        part, fillings = ("held", 1) if block.place in held else ("train", given.fillings)
        seen: dict[tuple[str, str], Sample] = {}
        for phrasing in block.phrasings:
            for filling in range(fillings):
                made = fresh_sample(block, phrasing, filling)
                if made is None:
                    refused += 1
                else:
                    seen.setdefault((made.told, made.plan), made)
        parts[part] += seen.values()
    print(f"refused for being too near to the evaluation: {refused} fillings")
    given.out.mkdir(parents=True, exist_ok=True)
    for part, samples in parts.items():
        made = list(packs(samples, picks))
        picks.shuffle(made)
        (given.out / f"{part}.jsonl").write_text("".join(json.dumps(pack) + "\n" for pack in made), encoding="utf-8")
        print(f"{part}: {len(samples)} pairs in {len(made)} packs")


if __name__ == "__main__":
    main()

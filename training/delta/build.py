"""The corpus as training data: packs of requests with plans that share one system prompt, as JSON lines.

A pack is the planner's system prompt over some registry and a dozen (request, plan) pairs. Most packs show the standard
tools as they are; the others show some of the toolboxes in another order, so that the model reads the list instead of
remembering it. Blocks of other toolboxes always stand under their own tools. Some pairs stand under a prompt without
the tools that they need, with a refusal for a plan.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bicameral.planning._decode import PREFILL, adapter_setup_messages, refusal_reason
from bicameral.planning._matching import PlanExample, load_examples
from bicameral.planning._statement_grammar import FENCE
from bicameral.tools import Registry

from .absent import draw_absence
from .blocks import CORPUS, Block, language_of, read_blocks
from .check import against_evaluation
from .compose import compose_blocks
from .guards import guarded_plan
from .references import UnnamedError, in_own_words
from .sample import Sample, foreign_registry, make_sample, standard_registry

PAIRS = 64
"""The pairs of a pack at most. The system prompt is read once for all of them, and is as long as twelve pairs."""
AS_IS = 0.6
HELD_BACK = 0.04
ABSENT = 0.04
"""The share of pairs whose prompt lacks a toolbox that they need."""
BY_WORDS = 0.4
"""The share of fillings in which files are called by words instead of their names."""


def all_blocks(composed: int = 0, seed: int = 1) -> list[Block]:
    """The corpus, the examples that a model without an adapter is shown, and so many composed blocks."""
    blocks = [block for path in sorted(CORPUS.glob("*.txt")) for block in read_blocks(path)]
    blocks += compose_blocks(composed, seed) if composed else []
    shown = [*load_examples().always, *load_examples().bank]
    return blocks + [_block(number, example) for number, example in enumerate(shown)]


def _block(number: int, example: PlanExample) -> Block:
    return Block(f"examples:{number}", None, (example.request,), guarded_plan(example.plan, "en"))


def is_held_back(block: Block) -> bool:
    """Whether no training sees a block."""
    return random.Random(f"held/{block.place}").random() < HELD_BACK


def fresh_sample(block: Block, phrasing: str, filling: int) -> Sample | None:
    """A filling in the request's own words that has no name in common with the evaluation.

    None if the block is too near to the evaluation in any filling, or the phrasing has no word for a file of the plan.
    """
    drawn = random.Random(f"words/{block.place}/{phrasing}/{filling}").random()
    # The words for files are English, and would make a mixture in other languages.
    by_words = drawn < BY_WORDS and language_of(block) == "en"
    for other in range(20):
        try:
            made = make_sample(block, phrasing, f"{filling}/{other}", by_words=by_words)
        except (ValueError, IndexError):
            # The days of this filling mean something else in this sentence.
            continue
        try:
            written = in_own_words(made.plan.removeprefix(made.given), made.intent.request, language_of(block))
            made = replace(made, plan=made.given + written)
        except UnnamedError:
            # No filling gives this phrasing a word for the file.
            return None
        if not any(against_evaluation(made)):
            return made
    return None


@dataclass(frozen=True, slots=True)
class Pair:
    """What is trained on: a request as the planner is told it, its plan, and which toolboxes the plan uses.

    Args:
        boxes: The toolboxes that the prompt must show.
        tools: The standard tools that the plan calls; none for a refusal and for other tools.
        language: The code of the request's language.
        absent: The toolboxes that the prompt must not show.
        given: The beginning of the plan that is not learned.
    """

    told: str
    plan: str
    toolbox: str | None
    boxes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    language: str = "en"
    absent: frozenset[str] = frozenset()
    given: str = ""

    @classmethod
    def from_sample(cls, sample: Sample, language: str = "en") -> Pair:
        # Toolboxes of blocks with tools of their own are always shown whole.
        names = set[str]()
        if sample.toolbox is None and refusal_reason(sample.plan) is None:
            names = set(_called_tools(sample.plan, sample.registry))
        used = {str(sample.registry[name].toolbox) for name in names}
        return cls(
            sample.told,
            sample.plan,
            sample.toolbox,
            tuple(sorted(used)),
            tuple(sorted(names)),
            language,
            given=sample.given,
        )

    def without_tools(self, picks: random.Random) -> Pair:
        """The pair with a refusal for a plan, if there are tools that it needs; all others are still shown."""
        absence = None if self.given else draw_absence(self.tools, self.language, picks)
        if absence is None:
            return self
        boxes = tuple(box for box in self.boxes if box not in absence.boxes)
        return replace(self, plan=absence.plan, boxes=boxes, tools=(), absent=absence.boxes)


def packs(pairs: Sequence[Pair], picks: random.Random) -> Iterator[dict[str, Any]]:
    """Pairs grouped under prompts that show every tool their plans need."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for each in pairs:
        shown = each.without_tools(picks) if picks.random() < ABSENT else each
        as_is = picks.random() < AS_IS and not shown.absent
        groups[shown.toolbox if shown.toolbox is not None else ("" if as_is else "some")].append(shown)
    for kind, group in groups.items():
        picks.shuffle(group)
        shares = _by_toolboxes(group, picks) if kind == "some" else _as_they_come(group, kind, picks)
        for system, chosen in shares:
            yield {"system": system, "pairs": [_written(each) for each in chosen]}


def _written(pair: Pair) -> list[str]:
    """The request and the reply; and the beginning of the reply that is given, where it is more than the fence."""
    return [pair.told, f"{PREFILL}{pair.plan}{FENCE}", *([f"{PREFILL}{pair.given}"] if pair.given else [])]


def _as_they_come(group: Sequence[Pair], toolbox: str, picks: random.Random) -> Iterator[tuple[str, Sequence[Pair]]]:
    """All standard tools, or those of a foreign toolbox in any order."""
    system = "" if toolbox else adapter_setup_messages(standard_registry())[0].text
    for start in range(0, len(group), PAIRS):
        if toolbox:
            registry = foreign_registry(toolbox)
            system = adapter_setup_messages(registry.subset(_shuffled(registry.names, picks)))[0].text
        yield system, group[start : start + PAIRS]


def _by_toolboxes(group: Sequence[Pair], picks: random.Random) -> Iterator[tuple[str, Sequence[Pair]]]:
    """Some of the standard toolboxes, in any order, with plans that need no other."""
    registry = standard_registry()
    names = sorted({str(tool.toolbox) for tool in registry})
    left = list(group)
    while left:
        needed = left[0].boxes
        others = [name for name in names if name not in needed and name not in left[0].absent]
        boxes = _shuffled([*needed, *picks.sample(others, picks.randint(0, len(others)))], picks)
        chosen, rest = list[Pair](), list[Pair]()
        for each in left:
            fits = set(each.boxes) <= set(boxes) and not each.absent & set(boxes)
            (chosen if len(chosen) < PAIRS and fits else rest).append(each)
        left = rest
        shown = Registry([tool for box in boxes for tool in registry if tool.toolbox == box])
        yield adapter_setup_messages(shown)[0].text, chosen


def _called_tools(plan: str, registry: Registry) -> Iterator[str]:
    """The tools that a plan calls; it is Python as far as that goes, and the plan's own parser takes longer."""
    for node in ast.walk(ast.parse(plan)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in registry.names:
            yield node.func.id


def _shuffled(names: Sequence[str], picks: random.Random) -> list[str]:
    return picks.sample(list(names), len(names))


def fill_block(block: Block, fillings: int) -> tuple[list[Pair], int]:
    """The different fillings of a block, and how many were left out.

    It depends on nothing but the block, so that processes may share the blocks in any way. A composed block is filled
    once: its phrasings differ from those of its neighbours in more than their slots.
    """
    seen: dict[tuple[str, str], Pair] = {}
    refused = 0
    for phrasing in block.phrasings:
        for filling in range(1 if block.place.startswith("compose/") else fillings):
            made = fresh_sample(block, phrasing, filling)
            if made is None:
                refused += 1
            elif (made.told, made.plan) not in seen:
                seen[made.told, made.plan] = Pair.from_sample(made, language_of(block))
    return list(seen.values()), refused


def build_pairs(blocks: Sequence[Block], fillings: int, jobs: int) -> tuple[list[Pair], int]:
    """The pairs of all blocks in their order, made by so many processes."""
    fill = partial(fill_block, fillings=fillings)
    pairs: list[Pair] = []
    refused = 0
    with ProcessPoolExecutor(jobs) as pool:
        for made, left_out in pool.map(fill, blocks, chunksize=32):
            pairs += made
            refused += left_out
    return pairs, refused


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("out", type=Path, help="folder for train.jsonl and held.jsonl")
    arguments.add_argument("--fillings", type=int, default=3, help="how often each phrasing is filled (default 3)")
    arguments.add_argument("--composed", type=int, default=7000, help="how many blocks are composed (default 7000)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    given = arguments.parse_args()
    picks = random.Random(given.seed)
    blocks = all_blocks(given.composed, given.seed)
    held = {block.place for block in blocks if is_held_back(block)}
    train, refused = build_pairs([each for each in blocks if each.place not in held], given.fillings, given.jobs)
    kept, refused_held = build_pairs([each for each in blocks if each.place in held], 1, given.jobs)
    print(f"left out, too near to the evaluation or without a word: {refused + refused_held} fillings")
    given.out.mkdir(parents=True, exist_ok=True)
    for part, pairs in (("train", train), ("held", kept)):
        made = list(packs(pairs, picks))
        picks.shuffle(made)
        (given.out / f"{part}.jsonl").write_text("".join(json.dumps(pack) + "\n" for pack in made), encoding="utf-8")
        print(f"{part}: {len(pairs)} pairs in {len(made)} packs")


if __name__ == "__main__":
    main()

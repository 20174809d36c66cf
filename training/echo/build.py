"""Echo's training data: packs of requests with replies, as JSON lines in the format of the planner's packs.

    python -m training.echo.build OUT [--composed 5000] [--fillings 2] [--seed 1]

A pack is Echo's own system prompt (as a model with the adapter reads it, without examples) and 64 pairs. Echo's
replies begin with nothing that the session writes, so the opening of a pack is empty.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bicameral.planning import guess_language, understand
from bicameral.planning._echo import echo_setup_messages
from training.delta.blocks import Block
from training.delta.build import all_blocks
from training.delta.check import against_evaluation as plan_against_evaluation
from training.delta.sample import make_sample, standard_registry

from .blocks import CORPUS, EchoBlock, fill_block, read_echo_blocks
from .check import against_evaluation
from .derive import derive_account
from .replies import UnfitError, check_reply, render_reply

PAIRS = 64
HELD_BACK = 0.04
BY_WORDS = 0.4
HAND_FILLINGS = 6
"""Blocks that are written by hand are few: each phrasing is filled more often."""
MOST_DO = 0.08
"""The share of derived pairs that are one step `do`: requests that no tool serves teach little about steps."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A request and the reply to it."""

    place: str
    request: str
    reply: str


def derived_pair(block: Block, phrasing: str, seed: object) -> Pair:
    """A pair from a block of the planner's corpus; an UnfitError if there is no right reply."""
    # Words for files are put in in English: in other languages they would make a mixture.
    by_words = (
        guess_language(phrasing) == "en" and random.Random(f"{block.place}/{phrasing}/{seed}").random() < BY_WORDS
    )
    try:
        made = make_sample(block, phrasing, seed, by_words=by_words)
    except (ValueError, IndexError) as error:
        raise UnfitError(str(error)) from None
    account = derive_account(made.plan, made.intent)
    reply = render_reply(account)
    check_reply(reply, made.intent)
    if any(plan_against_evaluation(made)) or any(against_evaluation(made.intent.request, account)):
        raise UnfitError("too near to the evaluation")
    return Pair(block.place, made.intent.request, reply)


def written_pair(block: EchoBlock, phrasing: str, seed: object) -> Pair:
    """A pair from a block that is written by hand; an UnfitError if this filling has none."""
    request, today, account = fill_block(block, phrasing, seed)
    plain = understand(request, standard_registry(), today)
    reply = render_reply(account)
    check_reply(reply, plain)
    if any(against_evaluation(plain.request, account)):
        raise UnfitError("too near to the evaluation")
    return Pair(block.place, plain.request, reply)


def packs(pairs: Sequence[Pair], picks: random.Random) -> Iterator[dict[str, Any]]:
    """Pairs in any order under Echo's prompt."""
    system = echo_setup_messages(examples=False)[0].text
    mixed = picks.sample(pairs, len(pairs))
    for start in range(0, len(mixed), PAIRS):
        chosen = mixed[start : start + PAIRS]
        yield {"system": system, "opening": "", "pairs": [[each.request, each.reply] for each in chosen]}


def block_pairs(block: Block | EchoBlock, fillings: int, seed: int) -> tuple[list[Pair], Counter[str]]:
    """The pairs of a block, and why the others are none.

    It depends on nothing but its arguments, so that processes may share the blocks in any way.
    """
    found: list[Pair] = []
    refused: Counter[str] = Counter()
    for phrasing in block.phrasings:
        for filling in range(fillings if isinstance(block, Block) else HAND_FILLINGS):
            try:
                place = f"{seed}/{filling}"
                is_derived = isinstance(block, Block)
                found.append(
                    derived_pair(block, phrasing, place) if is_derived else written_pair(block, phrasing, place)
                )
            except UnfitError as error:
                refused[str(error)[:60]] += 1
    return found, refused


def make_pairs(
    composed: int, fillings: int, seed: int, limit: int | None = None, jobs: int = 1
) -> tuple[list[Pair], Counter[str]]:
    """All pairs, and why the others are none.

    Args:
        composed: How many blocks of the planner's corpus are composed.
        fillings: How often each phrasing of the planner's corpus is filled.
        limit: Only so many of the planner's blocks, for a trial.
        jobs: How many processes make them; the result is the same for any number.
    """
    derived = [block for block in all_blocks(composed, seed) if block.toolbox is None and not block.searched]
    written = [block for path in sorted(CORPUS.glob("*.txt")) for block in read_echo_blocks(path)]
    if limit is not None:
        derived = random.Random(seed).sample(derived, min(limit, len(derived)))
    found: dict[tuple[str, str], Pair] = {}
    refused: Counter[str] = Counter()
    make = partial(block_pairs, fillings=fillings, seed=seed)
    with ProcessPoolExecutor(jobs) as pool:
        for pairs, reasons in pool.map(make, [*derived, *written], chunksize=32):
            refused += reasons
            for each in pairs:
                found.setdefault((each.request, each.reply), each)
    return _fewer_refusals(list(found.values()), random.Random(seed)), refused


def _fewer_refusals(pairs: list[Pair], picks: random.Random) -> list[Pair]:
    """The pairs with at most the share of `MOST_DO` that are nothing but `do`."""
    only_do = [each for each in pairs if each.reply.startswith('{"task": "do"')]
    most = round(MOST_DO * (len(pairs) - len(only_do)))
    dropped = set(picks.sample(range(len(only_do)), max(0, len(only_do) - most)))
    gone = {id(each) for number, each in enumerate(only_do) if number in dropped}
    return [each for each in pairs if id(each) not in gone]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", type=Path, help="folder for train.jsonl and held.jsonl")
    arguments.add_argument("--fillings", type=int, default=2, help="how often each derived phrasing is filled (2)")
    arguments.add_argument("--composed", type=int, default=5000, help="how many blocks are composed (5000)")
    arguments.add_argument("--limit", type=int, help="only so many of the planner's blocks, for a trial")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    given = arguments.parse_args()
    pairs, refused = make_pairs(given.composed, given.fillings, given.seed, given.limit, given.jobs)
    picks = random.Random(given.seed)
    given.out.mkdir(parents=True, exist_ok=True)
    is_held = {place: random.Random(f"held/{place}").random() < HELD_BACK for place in {each.place for each in pairs}}
    for part in ("train", "held"):
        chosen = [each for each in pairs if is_held[each.place] == (part == "held")]
        made = list(packs(chosen, picks))
        text = "".join(json.dumps(pack, ensure_ascii=False) + "\n" for pack in made)
        (given.out / f"{part}.jsonl").write_text(text, encoding="utf-8")
        asking = sum('"questions": [' in each.reply for each in chosen)
        print(f"{part}: {len(chosen)} pairs in {len(made)} packs, {asking} that ask")
    print(f"not used: {sum(refused.values())} fillings")
    for reason, count in refused.most_common(12):
        print(f"  {count:6} {reason}")


if __name__ == "__main__":
    main()

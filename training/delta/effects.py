"""How well the words of requests tell the effects of their plans, measured on the corpus.

The effects of the tools in a block's plan are the truth. Blocks with an odd number may be used to tune the tables of
words, blocks with an even number only to report. `python -m training.delta.effects` prints both.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from bicameral.planning._decode import refusal_reason
from bicameral.plans import Call, parse, walk
from bicameral.tools import Effect

from .blocks import CORPUS, Block, read_blocks
from .sample import Sample, make_sample


@dataclass(frozen=True, slots=True)
class Reading:
    """A phrasing of a block: the effects of its plan, and those that its words ask for."""

    place: str
    half: str
    request: str
    done: frozenset[Effect]
    asked: frozenset[Effect]
    required: frozenset[Effect]

    @property
    def refused(self) -> frozenset[Effect]:
        """Effects of the right plan that the request was not seen to ask for: the plan would be refused."""
        return self.done - self.asked

    @property
    def beyond(self) -> frozenset[Effect]:
        """Effects that a wrong plan could have as well: the request seems to ask for them."""
        return self.asked - self.done

    @property
    def demanded(self) -> frozenset[Effect]:
        """Effects that the request seems to need, and that the right plan does not have."""
        return self.required - self.done


def readings() -> Iterator[Reading]:
    """Every phrasing of every block, filled once."""
    for path in sorted(CORPUS.glob("*.txt")):
        for number, block in enumerate(read_blocks(path)):
            yield from _block_readings(block, "odd" if number % 2 else "even")


def _block_readings(block: Block, half: str) -> Iterator[Reading]:
    for phrasing in block.phrasings:
        made = make_sample(block, phrasing, "effects")
        asked, required = frozenset(made.intent.effects), frozenset(made.intent.required)
        yield Reading(made.place, half, made.intent.request, frozenset(_effects(made)), asked, required)


def _effects(made: Sample) -> Iterator[Effect]:
    if refusal_reason(made.plan) is not None:
        return
    for _, step in walk(parse(made.plan, made.registry).plan.steps):
        if isinstance(step, Call) and made.registry[step.tool].changes:
            yield made.registry[step.tool].effect


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--list", choices=("refused", "beyond", "demanded"), help="show such requests of odd blocks")
    given = arguments.parse_args()
    found = sorted(readings(), key=lambda each: each.half)
    for half, group in groupby(found, key=lambda each: each.half):
        each = list(group)
        figures: dict[str, object] = {
            "half": half,
            "requests": len(each),
            "with_effect": sum(bool(r.done) for r in each),
        }
        for name in ("refused", "beyond", "demanded"):
            figures[name] = round(sum(bool(getattr(r, name)) for r in each) / len(each), 4)
        print(json.dumps(figures))
    if given.list:
        for each in found:
            if each.half == "odd" and (wrong := getattr(each, given.list)):
                print(f"{each.place}: {', '.join(sorted(wrong))}: {each.request}")


if __name__ == "__main__":
    main()

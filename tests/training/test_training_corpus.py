"""The planner's training data: right plans, and nothing of what the planner is measured on."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from benchmarks.planning.requests import REQUESTS
from bicameral.planning._decode import refusal_reason
from bicameral.plans import check, parse
from training.delta.blocks import CORPUS, Block, read_blocks
from training.delta.build import all_blocks, packs
from training.delta.check import against_evaluation, problems
from training.delta.sample import Sample, make_sample
from training.delta.slots import SLOT

BLOCKS = [block for path in sorted(CORPUS.glob("*.txt")) for block in read_blocks(path)]
DRAWN = random.Random(7).sample(BLOCKS, 40)
FEW = 10


def samples(blocks: Sequence[Block]) -> list[Sample]:
    return [make_sample(block, block.phrasings[0], 0) for block in blocks]


@pytest.mark.parametrize(
    "block",
    [*DRAWN[:FEW], *(pytest.param(block, marks=pytest.mark.slow) for block in DRAWN[FEW:])],
    ids=lambda block: block.place,
)
def test_drawn_blocks_pass_every_check_of_the_planner(block: Block) -> None:
    assert list(problems(block)) == []


@pytest.mark.slow
def test_every_plan_passes_the_check_in_a_filling_of_its_own() -> None:
    wrong: list[str] = []
    for block in BLOCKS:
        made = make_sample(block, block.phrasings[-1], "another")
        if refusal_reason(made.plan) is None:
            report = check(parse(made.plan, made.registry).plan, made.registry, unbound=True)
            wrong += [f"{block.place}: {finding}" for finding in report.errors]
    assert wrong == []


def test_no_request_of_the_evaluation_is_in_the_corpus() -> None:
    evaluated = {" ".join(request.text.lower().split()) for request in REQUESTS}
    for block in all_blocks():
        assert not evaluated & {" ".join(phrasing.lower().split()) for phrasing in block.phrasings}


def test_what_is_too_near_to_the_evaluation_is_noticed() -> None:
    block = Block("here:1", None, (REQUESTS[0].text,), "answer(1)\n")
    assert any(against_evaluation(make_sample(block, block.phrasings[0], 0)))


def test_a_plan_that_does_not_serve_its_request_is_noticed() -> None:
    block = Block("here:1", None, ("Save the first line of oars.txt to first.txt",), 'answer(read_text("oars.txt"))\n')
    assert list(problems(block))


def test_slots_are_filled_alike_in_request_and_plan() -> None:
    for made in samples(DRAWN):
        assert SLOT.search(made.intent.request + made.plan) is None


def test_every_pack_shows_the_tools_that_its_plans_call() -> None:
    made = samples(DRAWN)
    shown = list(packs(made, random.Random(1)))
    assert sum(len(pack["pairs"]) for pack in shown) == len(made)
    for pack in shown:
        for _, plan in pack["pairs"]:
            for call in {word.split("(")[0] for word in plan.split() if "(" in word}:
                known = {sample.registry.names for sample in made}
                if any(call in names for names in known):
                    assert f"\n{call}(" in pack["system"], call

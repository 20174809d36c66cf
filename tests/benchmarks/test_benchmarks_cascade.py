"""The cascade's figures follow from the two runs, and the threshold from seen requests only."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

from hypothesis import given, strategies as st

from benchmarks.cascade.__main__ import record, recorded
from benchmarks.cascade.attempts import Attempt, attempt
from benchmarks.cascade.figures import Pair, calibrated, curve, point, reasons, summary
from benchmarks.cascade.held_back import held_back, plan_held_back, shape
from benchmarks.planning import REQUESTS, World
from benchmarks.planning.runner import reference_plan
from benchmarks.relevance import corpus_samples, needed_tools
from bicameral.models import ScriptedProvider
from bicameral.planning import MIN_CONFIDENCE
from bicameral.planning._decode import refusal_reason
from training.delta.build import all_blocks, fresh_sample

UNSEEN = next(request.id for request in REQUESTS if request.unseen)
SEEN = next(request.id for request in REQUESTS if not request.unseen)


def small(*, solved: bool = True, sure: float = 1.0, tokens: int = 100, **more: object) -> Attempt:
    made = Attempt(solved, "", tokens={"echo": 10, "delta": tokens, "quarantined": 7}, choices=(("f()\n", sure, 0.0),))
    return replace(made, **more)  # pyright: ignore[reportArgumentType]


def pair(first: Attempt, *, solved: bool = True, tokens: int = 100, unseen: bool = False, id_: str = "x") -> Pair:
    large = Attempt(solved, "", tokens={"echo": 10, "delta": tokens, "quarantined": 7}, fresh={"delta": tokens})
    return Pair(id_, unseen, True, first, large)


def test_what_is_taken_from_the_small_model_costs_nothing_of_the_large_one() -> None:
    both = [pair(small(sure=0.9)), pair(small(solved=False, sure=0.1))]
    figures = point(both, 0.5)
    assert figures["solved_ratio"] == 1.0
    assert figures["escalated"] == 0.5
    assert figures["large_token_ratio"] == round(100 / 220, 4)


def test_a_plan_that_is_wrong_and_not_doubted_stays_wrong() -> None:
    assert point([pair(small(solved=False))], 0.5)["solved_cascade"] == 0.0


def test_a_plan_that_is_right_and_doubted_is_the_large_models_even_if_that_is_wrong() -> None:
    assert point([pair(small(sure=0.1), solved=False)], 0.5)["solved_cascade"] == 0.0


def test_every_kind_of_reason_is_counted() -> None:
    told = {
        ("repaired",): small(doubts=(("repaired", "…"),)),
        ("left-out",): small(doubts=(("left-out", "…"), ("left-out", "…"))),
        ("unsure",): small(sure=0.1),
        ("no-plan",): small(error="plan.none"),
        ("run-failed",): small(error="run.index"),
        (): small(error="run.index", changed=True),
    }
    for kinds, made in told.items():
        assert reasons(pair(made), 0.5) == list(kinds)
    assert reasons(pair(small(error="run.refused")), 0.5) == []


def test_what_fills_blanks_is_not_counted_as_the_large_models() -> None:
    assert summary([pair(small())])["large_tokens"] == 110


def test_the_figures_have_what_is_asked_for_and_unseen_requests_apart() -> None:
    figures = summary([pair(small()), pair(small(sure=0.1), unseen=True)])
    for name in ("requests", "solved_small", "solved_large", "solved_cascade", "solved_ratio", "large_token_ratio"):
        assert name in figures
    assert figures["sure"] == MIN_CONFIDENCE
    assert figures["unseen"]["escalated"] == 1.0
    assert figures["seen"]["escalated"] == 0.0


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.booleans(), st.integers(1, 9)), min_size=1, max_size=20))
def test_a_higher_threshold_never_costs_less(made: list[tuple[float, bool, bool, int]]) -> None:
    pairs = [pair(small(solved=a, sure=sure), solved=b, tokens=tokens) for sure, a, b, tokens in made]
    costs = [each["large_token_ratio"] for each in curve(pairs)]
    assert costs == sorted(costs)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.lists(st.floats(0, 1), max_size=12))
def test_unseen_requests_have_no_part_in_the_threshold(seen: list[float], unseen: list[float]) -> None:
    alone = [pair(small(sure=sure), id_=f"s{i}") for i, sure in enumerate(seen)]
    others = [pair(small(sure=sure), id_=f"u{i}", unseen=True) for i, sure in enumerate(unseen)]
    assert calibrated(alone) == calibrated([*alone, *others])


def test_the_threshold_keeps_to_its_aim() -> None:
    pairs = [pair(small(sure=sure / 10), id_=str(sure)) for sure in range(10)]
    assert point(pairs, float(calibrated(pairs)["sure"]))["escalated"] == 0.5


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    pairs = [
        Pair(SEEN, False, True, small(sure=0.25, doubts=(("repaired", "once"),)), small()),
        Pair("held-back/mail.txt:1/0", False, False, small(), None),
    ]
    file = tmp_path / "part.jsonl"
    file.write_text("".join(json.dumps(record(each)) + "\n" for each in pairs))
    found = {each.id: each for each in recorded([file])}
    assert found[SEEN].small == pairs[0].small
    assert found["held-back/mail.txt:1/0"].large is None


def test_a_record_cannot_say_that_an_unseen_request_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "part.jsonl"
    file.write_text(json.dumps(record(Pair(UNSEEN, False, True, small(), small()))) + "\n")
    assert recorded([file])[0].unseen


def test_what_is_held_back_is_no_request_of_the_evaluation() -> None:
    texts = {request.text for request in REQUESTS}
    found = list(held_back())
    assert len(found) > 100
    assert not any(sample.intent.request in texts for _, sample in found)


async def test_a_plan_for_what_is_held_back_is_held_against_the_corpus() -> None:
    served = next(sample for _, sample in held_back() if refusal_reason(sample.plan) is None)
    right = await plan_held_back(served, ScriptedProvider([f"{served.plan}```"], name="right", grammars=False))
    assert right.solved, right.why
    other = await plan_held_back(served, ScriptedProvider(["answer(1)\n```"] * 3, name="wrong", grammars=False))
    assert not other.solved


async def test_a_refusal_is_right_where_the_corpus_has_one() -> None:
    (place, block) = next((block.place, block) for block in all_blocks() if refusal_reason(block.plan) is not None)
    sample = fresh_sample(block, block.phrasings[0], 0)
    assert sample is not None, place
    refused = await plan_held_back(sample, ScriptedProvider([f"{sample.plan}```"], name="right", grammars=False))
    assert (refused.solved, refused.error) == (True, "plan.cannot")
    planned = await plan_held_back(sample, ScriptedProvider(["answer(1)\n```"] * 3, name="wrong", grammars=False))
    assert not planned.solved


def test_each_request_of_the_corpus_that_a_plan_serves_has_the_tools_that_it_needs() -> None:
    samples = list(islice(corpus_samples(), 40))
    assert len(samples) == 40
    assert all(needed_tools(sample) <= set(sample.registry.names) for sample in samples)
    assert any(map(needed_tools, samples))


def test_plans_that_differ_in_names_and_sentences_are_the_same() -> None:
    assert shape('a = f(1)\nanswer(f"{a} it is")\n') == shape('b = f(1)\nanswer("that is it")\n')
    assert shape("a = f(1)\nanswer([x.c for x in a])\n") == shape("z = f(1)\nanswer([y.c for y in z])\n")
    assert shape("a = f(1)\nanswer(a)\n") != shape("a = f(2)\nanswer(a)\n")
    assert shape("a = f(1)\nb = f(2)\nanswer(a)\n") != shape("a = f(1)\nb = f(2)\nanswer(b)\n")


async def test_an_attempt_says_what_it_cost_whether_it_was_right_and_what_speaks_against_it() -> None:
    request = next(request for request in REQUESTS if request.id == "travel-spending")
    with World() as world:
        plan = reference_plan(request, world)
    quarantined = ScriptedProvider([], name="reader", grammars=False)
    right = await attempt(request, ScriptedProvider([f"{plan}```"], name="right", grammars=False), quarantined)
    assert right.solved, right.why
    assert right.doubts == ()
    assert right.tokens["delta"] > 0
    wrong = await attempt(request, ScriptedProvider(["x = y()\n```"] * 3, name="wrong", grammars=False), quarantined)
    assert (wrong.solved, wrong.error) == (False, "plan.none")
    assert reasons(Pair("x", False, True, wrong, right), MIN_CONFIDENCE) == ["no-plan"]

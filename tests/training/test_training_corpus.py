"""The planner's training data: right plans, and nothing of what the planner is measured on."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence

import pytest

from benchmarks.planning.requests import REQUESTS
from bicameral.binding import search_statement
from bicameral.planning._decode import PREFILL, refusal_reason
from bicameral.planning._statement_grammar import FENCE
from bicameral.plans import check, parse
from training.delta.absent import draw_absence
from training.delta.blocks import CORPUS, Block, read_blocks
from training.delta.build import Pair, all_blocks, build_pairs, packs
from training.delta.canonical import canonical_plan
from training.delta.check import against_evaluation, problems
from training.delta.references import UnnamedError, in_own_words
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


def _other_filling(block: Block) -> Sample:
    """A filling that the build does not make; the days of some mean something else in a sentence, and are skipped."""
    for number in range(20):
        with contextlib.suppress(ValueError, IndexError):
            return make_sample(block, block.phrasings[-1], f"another/{number}")
    raise AssertionError(f"{block.place} has no filling")


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_every_plan_passes_the_check_in_a_filling_of_its_own(step: int) -> None:
    """Of every tenth block, and in `make check` of all."""
    wrong: list[str] = []
    for block in BLOCKS[::step]:
        made = _other_filling(block)
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
    shown = list(packs([Pair.from_sample(each) for each in made], random.Random(1)))
    assert sum(len(pack["pairs"]) for pack in shown) == len(made)
    for pack in shown:
        for _, plan, *_ in pack["pairs"]:
            for call in {word.split("(")[0] for word in plan.split() if "(" in word}:
                known = {sample.registry.names for sample in made}
                if any(call in names for names in known):
                    assert f"\n{call}(" in pack["system"], call


def test_a_search_that_the_runtime_writes_is_given_and_not_learned() -> None:
    block = Block("compose/en/x:1", None, ('How much did the "old" boat cost?',), "answer(len(found.passages))\n", True)
    made = make_sample(block, block.phrasings[0], 1)
    (pack,) = packs([Pair.from_sample(made)], random.Random(1))
    ((told, reply, given),) = pack["pairs"]
    assert given == PREFILL + search_statement(made.intent.request)
    assert reply == f"{given}answer(len(found.passages))\n{FENCE}"
    assert made.intent.request in told


def test_without_a_toolbox_the_plan_says_what_is_missing() -> None:
    plan = 'rows = read_csv(file("bills"))\nsend_mail(["kim@example.org"], "Bills", str(len(rows)))\n'
    tools = ("read_csv", "send_mail")
    pair = Pair("Mail the number of bills", plan, None, ("mail", "tables"), tools, "de")
    seen: set[str] = set()
    for number in range(20):
        made = pair.without_tools(random.Random(number))
        assert refusal_reason(made.plan)
        assert made.absent & {"mail", "tables"}
        assert set(made.boxes) == {"mail", "tables"} - made.absent
        seen.add(made.plan)
    assert seen == {
        'cannot("Es gibt kein Werkzeug, das Mails verschickt.")\n',
        'cannot("Es gibt kein Werkzeug, das Tabellen liest.")\n',
    }


def test_what_cannot_be_written_comes_before_what_cannot_be_read() -> None:
    drawn = {draw_absence(("read_text", "write_text"), "en", random.Random(number)) for number in range(20)}
    assert {each.plan for each in drawn if each} == {'cannot("There is no tool that writes or changes files.")\n'}


def test_a_plan_that_needs_no_toolbox_is_no_refusal_anywhere() -> None:
    assert draw_absence(("today",), "en", random.Random(1)) is None
    pair = Pair("What day is it?", "answer(today())\n", None, ("clock",), ("today",))
    assert pair.without_tools(random.Random(1)) is pair


def test_a_share_of_the_pairs_stands_under_a_prompt_without_the_tools_they_need() -> None:
    plan = 'mails = search_mail(sender="school", limit=1)\nanswer(mails[0].body)\n'
    tools = ("search_mail",)
    pairs = [Pair(f"What does the school write, {number}?", plan, None, ("mail",), tools) for number in range(1000)]
    made = list(packs(pairs, random.Random(3)))
    refused = [pack["system"] for pack in made for _, written in pack["pairs"] if "cannot(" in written]
    assert 20 <= len(refused) <= 60
    assert not any("search_mail(" in system or "\nfind(" in system for system in refused)
    assert all("search_mail(" in pack["system"] for pack in made if any("search_mail(" in p for _, p in pack["pairs"]))


def test_the_number_of_processes_changes_nothing() -> None:
    assert build_pairs(DRAWN[:4], 1, jobs=1) == build_pairs(DRAWN[:4], 1, jobs=2)


@pytest.mark.parametrize(
    ("plan", "canonical"),
    [
        (
            'old = [row for row in rows if row[column("age")] > <big>]\n',
            'old = filter_rows(rows, column("age"), ">", <big>)\n',
        ),
        (
            'a = filter_rows(rows, column("x"), "==", False)\nb = filter_rows(a, column("y"), "<", 3)\n',
            'b = [row for row in rows if row[column("x")] == False and row[column("y")] < 3]\n',
        ),
        ("total = sum(values)\nanswer(total)\n", "answer(sum(values))\n"),
        ('total = sum(values)\nanswer(f"{total} {total}")\n', 'total = sum(values)\nanswer(f"{total} {total}")\n'),
        ("found = unique_lines(lines)\nanswer(found)\n", "found = unique_lines(lines)\nanswer(found)\n"),
    ],
)
def test_a_plan_has_one_form(plan: str, canonical: str) -> None:
    assert canonical_plan(plan) == canonical


@pytest.mark.parametrize(
    ("line", "is_day"),
    [
        ('new = filter_rows(rows, column("bought"), ">", date("2026-01-01"))', True),
        ('new = sort_rows(rows, column("bought"))', True),
        ('new = filter_rows(rows, column("bought"), "==", False)', False),
        ('new = [row for row in rows if row[column("bought")] == True]', False),
        ('new = [row for row in rows if not row[column("bought")]]', False),
        ('new = [row for row in rows if row[column("bought")] == value("Anna")]', False),
        ('new = [row for row in rows if row[column("bought")] > 140]', False),
        ('new = group_rows(rows, column("part"), column("bought"))', False),
    ],
)
def test_a_column_is_one_of_days_by_what_the_plan_does_with_it(line: str, is_day: bool) -> None:
    plan = f'rows = read_csv(file("tools"))\n{line}\n'
    made = in_own_words(plan, "The tools of this year", "en")
    assert made == (plan.replace('column("bought")', 'column("date")') if is_day else plan)


def test_references_have_the_words_of_their_phrasing() -> None:
    plan = (
        'rows = read_csv(file("heating bills"))\nnew = filter_rows(rows, column("due day"), ">", date("2026-01-01"))\n'
    )
    made = in_own_words(plan, "What did heating cost since January?", "en")
    assert made == plan.replace("heating bills", "heating").replace("due day", "date")
    assert in_own_words(plan, "Heating bills due since January", "en") == plan
    with pytest.raises(UnnamedError):
        in_own_words(plan, "What did we spend on flowers?", "en")

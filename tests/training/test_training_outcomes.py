"""Learning from outcomes: worlds tell right plans from wrong ones, and samples are judged by what they do."""

from __future__ import annotations

import asyncio
import datetime as dt
import json

import pytest

from bicameral.planning import understand
from bicameral.planning._decode import prompt_text
from training.delta.blocks import Block
from training.delta.outcomes.contents import make_content
from training.delta.outcomes.facts import Outcome, same
from training.delta.outcomes.judging import Counts, judge_samples
from training.delta.outcomes.mutants import mutants
from training.delta.outcomes.needs import plan_needs
from training.delta.outcomes.oracle import Case, Dropped, make_case
from training.delta.sample import Sample, standard_registry

TODAY = dt.date(2025, 6, 10)
REQUEST = "How much are the unpaid kennel fees above 40 in total?"
PLAN = """\
rows = read_csv(file("kennel fees"))
chosen = filter_rows(rows, column("paid"), "==", False)
kept = [row for row in chosen if row[column("fee")] > 40]
answer(sum([row[column("fee")] for row in kept]))
"""
IF_PLAN = """\
rows = read_csv(file("kennel fees"))
total = sum([row[column("fee")] for row in rows])
if total > 300:
    write_text("kennel.txt", str(total))
    answer("Wrote it to kennel.txt")
else:
    answer(total)
"""


def _case(request: str, plan: str) -> Case | Dropped:
    registry = standard_registry()
    intent = understand(request, registry, TODAY)
    sample = Sample("test:1", intent, prompt_text(intent), plan, registry, TODAY)
    return asyncio.run(make_case(Block("test:1", None, (request,), plan), sample))


@pytest.fixture(scope="module")
def case() -> Case:
    made = _case(REQUEST, PLAN)
    assert isinstance(made, Case), made
    return made


def test_a_plan_says_which_columns_its_table_has_and_of_what_kind() -> None:
    columns = plan_needs(PLAN).tables["kennel fees"].columns
    assert {name: column.kind for name, column in columns.items()} == {"paid": "flag", "fee": "number"}
    assert columns["fee"].compared == {40.0}


def test_a_world_has_rows_on_both_sides_of_a_condition_and_at_its_border() -> None:
    table = make_content(plan_needs(PLAN), "en", TODAY, 0, "test:1").data.tables["kennel fees"]
    fees = [row["fee"] for row in table.rows]
    assert 40 in fees
    assert min(fees) < 40 < max(fees)
    assert {row["paid"] for row in table.rows} == {"yes", "no"}


def test_the_same_plan_gets_the_same_world_again() -> None:
    one, two = (make_content(plan_needs(PLAN), "de", TODAY, 1, "test:1").data.files() for _ in range(2))
    assert one == two


def test_wrong_plans_leave_out_conditions_and_mark_branches() -> None:
    assert [each.fault for each in mutants(PLAN)] == ["condition", "condition", "border"]
    assert [each.fault for each in mutants(IF_PLAN)] == ["branch", "branch", "border"]


def test_the_worlds_of_a_condition_take_both_branches() -> None:
    made = _case("If the kennel fees are above 300 in total write the total to kennel.txt, else tell me.", IF_PLAN)
    assert isinstance(made, Case), made
    assert {outcome.changes for outcome in made.outcomes} == {True, False}


def test_a_case_survives_being_stored(case: Case) -> None:
    assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case


def test_samples_are_right_by_what_they_do_and_not_by_their_words(case: Case) -> None:
    request = {"id": "r", "system": "S", "case": case.to_json()}
    unconditional = PLAN.replace(' if row[column("fee")] > 40', "")
    at_border = PLAN.replace("> 40", ">= 40")
    judged = judge_samples(request, [unconditional, at_border, PLAN, PLAN, "answer(", 'cannot("no")\n'])
    why = {each.plan: each.why for each in judged.verdicts}
    assert why[PLAN] == ""
    assert why[unconditional] == "outcome"
    assert all(why[plan] for plan in (at_border, "answer(", 'cannot("no")\n'))
    assert judged.right[0].times == 2
    pairs = list(judged.pairs())
    assert pairs[0]["rejected"] == f"```python\n{unconditional}```"
    assert pairs[0]["chosen"] == f"```python\n{PLAN}```"
    counts = Counts()
    counts.add(judged)
    assert (counts.requests, counts.solved, counts.first_right, counts.right, counts.plans) == (1, 1, 0, 2, 6)


def test_a_refusal_is_right_where_the_reference_refuses() -> None:
    made = _case("Order a pizza.", 'cannot("There is no tool that orders food.")\n')
    assert isinstance(made, Case)
    judged = judge_samples({"id": "r", "system": "S", "case": made.to_json()}, ['cannot("No.")\n', "answer(1)\n"])
    assert [each.right for each in judged.verdicts] == [True, False]


def test_a_condition_that_makes_no_difference_is_a_fault() -> None:
    plan = """\
rows = read_csv(file("kennel fees"))
chosen = filter_rows(rows, column("fee"), "<", 40)
answer(min([row[column("fee")] for row in chosen]))
"""
    made = _case("What is the smallest of the kennel fees under 40?", plan)
    assert isinstance(made, Dropped)
    assert made.reason == "same outcome: condition"


NEXT_PLAN = """\
events = search_events("rehearsal", start=today())
if events:
    answer(f"{events[0].start:%d %B %Y at %H:%M}")
else:
    answer("There is no such event in the calendar")
"""


def test_how_a_day_is_written_is_no_difference() -> None:
    made = _case("When is my next rehearsal?", NEXT_PLAN)
    assert isinstance(made, Case), made
    plain = 'events = search_events("rehearsal", start=today())\nif events:\n    answer(events[0].start)\nelse:\n'
    plans = [
        f'{plain}    answer("There is none")\n',
        NEXT_PLAN.replace("%d %B %Y at %H:%M", "%d.%m.%Y %H:%M"),
        NEXT_PLAN.replace("events[0]", "events[-1]"),
    ]
    judged = judge_samples({"id": "r", "system": "S", "case": made.to_json()}, plans)
    assert [each.right for each in judged.verdicts] == [True, True, False]


def test_in_one_of_the_worlds_there_is_no_event_of_the_kind() -> None:
    titles = [
        [entry.title for entry in make_content(plan_needs(NEXT_PLAN), "en", TODAY, variant, "test:1").data.entries]
        for variant in range(8)
    ]
    found = [any(title.startswith("rehearsal") for title in world) for world in titles]
    assert any(found)
    assert not all(found)


def test_an_answer_that_is_asked_for_fits_its_use() -> None:
    plan = """\
when = ask("On which day and at what time?")
start = extract(when, "the day and the time", datetime)
event = add_event("Rehearsal", start)
answer(f"Added {event.title}")
"""
    made = _case("Put the rehearsal in my calendar.", plan)
    assert isinstance(made, Case), made
    assert all(outcome.events for outcome in made.outcomes)


@pytest.mark.parametrize(
    ("found", "expected", "is_same"),
    [
        (("3.00",), ("3.00", "40.00"), True),
        (("3.00",), ("4.00",), False),
        ((), (), True),
        (("0.00",), (), True),
        (("7.00",), (), False),
    ],
)
def test_numbers_of_the_request_may_be_repeated(
    found: tuple[str, ...], expected: tuple[str, ...], is_same: bool
) -> None:
    assert same(Outcome(found), Outcome(expected), "above 40") is is_same

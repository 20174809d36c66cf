"""Several plans for a doubtful request: what the request, the person and the world decide, and what they cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, Finished, ScriptedProvider
from bicameral.config import Config
from bicameral.config._config import PlanningSettings
from bicameral.errors import PlanError
from bicameral.journal import Journal
from bicameral.labels import TRUSTED_USER, label_tree_to_json
from bicameral.models import ModelReply, ModelRequest, ReplyToken, Usage
from bicameral.plans import BoundTo, Plan
from bicameral.runs import Answers, ApprovalQuestion
from bicameral.types import Type

REQUEST = "Total the amount of the open rows in bills.csv"
BILLS = "name,amount,state\nrent,900,open\npower,80,paid\nwater,40,open\n"
KEEP = 'rows = read_csv("bills.csv")\nkept = filter_rows(rows, "state", "==", "{state}")\n'
SUM = KEEP + 'answer(sum(r["amount"] for r in kept))\n'
OPEN, UNPAID, PAID = SUM.format(state="open"), SUM.format(state="Open rows"), SUM.format(state="paid")
RENAMED = OPEN.replace("rows", "table").replace("kept", "chosen")

WRITE = "Write the open rows of bills.csv to one.csv or two.csv"
TO = KEEP + 'write_csv("{file}", kept)\nanswer("written")\n'


class Person:
    """Answers every question in the same way, and remembers it."""

    def __init__(self, reply: str = "1") -> None:
        self.reply, self.questions, self.approved = reply, list[str](), list[ApprovalQuestion]()

    async def ask(self, question: str, type: Type) -> Any:
        self.questions.append(question)
        return self.reply

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.approved.append(question)
        return Answers.yes(question.calls)


def planner(*plans: str, probability: float = 0.2) -> ScriptedProvider:
    """Writes the first plan, unsure of it, and the others for the seeds 1, 2, …; the last again and again."""

    def reply(request: ModelRequest) -> ModelReply:
        place = request.seed if request.temperature > 0 else 0
        text = plans[min(place, len(plans) - 1)]
        confidence = (ReplyToken("filter_rows", probability),) if request.confidence else ()
        return ModelReply(text, "stop", Usage(1, 0, 1), confidence=confidence)

    return ScriptedProvider(reply, grammars=False)


Make = Callable[..., Agent]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bills.csv").write_text(BILLS)

    def agent(model: ScriptedProvider, *, settings: PlanningSettings | None = None, **options: Any) -> Agent:
        config = Config(base=tmp_path, planning=settings or PlanningSettings())
        reader = ScriptedProvider([], name="reader", grammars=False)
        given: dict[str, Any] = {"cache": dict[str, str](), **options}
        return Agent(config=config, privileged=model, quarantined=reader, **given)

    return agent


async def _plan(agent: Agent, request: str = REQUEST, **options: Any) -> Any:
    return await agent.plan(request, deterministic=True, **options)


def _drawn(model: ScriptedProvider) -> list[ModelRequest]:
    return [request for request in model.requests if request.temperature > 0]


# When more plans are drawn ----------------------------------------------------------------------------------------


async def test_a_plan_beyond_doubt_is_the_only_one(make: Make) -> None:
    model = planner(OPEN, PAID, probability=0.99)
    planned = await _plan(make(model))
    assert _drawn(model) == []
    assert planned.choice == {}


async def test_an_unsure_plan_is_compared_with_three_others_that_replay(make: Make) -> None:
    model = planner(OPEN)
    planned = await _plan(make(model))
    assert [(request.temperature, request.seed) for request in _drawn(model)] == [(0.7, 1), (0.7, 2), (0.7, 3)]
    assert planned.choice["reasons"] == ["unsure"]
    assert (planned.choice["different"], planned.choice["votes"], planned.choice["by"]) == (1, [4], "only")
    again = planner(OPEN)
    assert (await _plan(make(again))).choice == planned.choice


async def test_all_plans_are_drawn_from_the_same_prompt(make: Make) -> None:
    model = planner(UNPAID, OPEN)
    await _plan(make(model))
    assert len({(request.messages, request.prefill) for request in model.requests}) == 1


async def test_plans_that_differ_in_names_of_variables_are_one(make: Make) -> None:
    planned = await _plan(make(planner(OPEN, RENAMED)))
    assert planned.choice["different"] == 1


@pytest.mark.parametrize(
    ("configured", "given", "count"), [(0, None, 0), (3, 0, 0), (3, 1, 1), (0, 2, 2), (5, None, 5)]
)
async def test_how_many_are_drawn_is_set_in_the_configuration_and_for_one_plan(
    make: Make, configured: int, given: int | None, count: int
) -> None:
    # Without a setting nobody asks for probabilities, so that the repair of a plan is the doubt.
    model = ScriptedProvider(_repaired_first(), grammars=False)
    await _plan(make(model, settings=PlanningSettings(plans=configured)), plans=given)
    assert len(_drawn(model)) == count


def _repaired_first() -> Callable[[ModelRequest], str]:
    def reply(request: ModelRequest) -> str:
        is_repair = "This plan is wrong" in request.messages[-1].text
        return OPEN if is_repair or request.temperature > 0 else OPEN.replace("read_csv", "read_nothing")

    return reply


async def test_a_model_that_cannot_write_another_plan_is_no_error(make: Make) -> None:
    first = ModelReply(OPEN, "stop", Usage(1, 0, 1), confidence=(ReplyToken("open", 0.1),))
    planned = await _plan(make(ScriptedProvider([first], grammars=False)))
    assert planned.choice["drawn"] == 0


async def test_cached_plans_are_compared_again_without_a_model(make: Make) -> None:
    cache: dict[str, str] = {}
    before = await _plan(make(planner(UNPAID, OPEN), cache=cache))
    model = planner(UNPAID, OPEN)
    after = await _plan(make(model, cache=cache))
    assert model.requests == []
    assert (after.source, after.choice) == (before.source, before.choice)


async def test_a_damaged_entry_of_drawn_plans_is_not_used(make: Make) -> None:
    cache: dict[str, str] = {}
    await _plan(make(planner(UNPAID, OPEN), cache=cache))
    key = next(key for key, entry in cache.items() if "drawn-plans" in entry)
    cache[key] = json.dumps(json.loads(cache[key]) | {"plans": ["{}"]})
    planned = await _plan(make(planner(UNPAID, OPEN), cache=cache))
    assert planned.plan.steps


async def test_a_stored_plan_cannot_say_what_its_words_are_bound_to(make: Make) -> None:
    cache: dict[str, str] = {}
    await _plan(make(planner(UNPAID, OPEN), cache=cache))
    key = next(key for key, entry in cache.items() if "drawn-plans" in entry)
    bound = BoundTo(value="private.csv", label=label_tree_to_json(TRUSTED_USER))
    entry = json.loads(cache[key])
    stored = (
        Plan.model_validate_json(entry["plans"][0])
        .to_json()
        .replace(
            '{"kind":"const","value":"bills.csv"}',
            '{"kind":"reference","refers":"file","words":"bills","bound":' + bound.model_dump_json() + "}",
        )
    )
    assert "private.csv" in stored
    cache[key] = json.dumps(entry | {"plans": [stored]})
    planned = await _plan(make(planner(UNPAID, OPEN), cache=cache))
    assert "private.csv" not in planned.plan.to_json()


# What decides -----------------------------------------------------------------------------------------------------


async def test_a_plan_that_selects_something_stands_before_one_that_selects_nothing(make: Make) -> None:
    agent = make(planner(UNPAID, OPEN))
    planned = await _plan(agent)
    assert planned.choice["by"] == "world"
    assert '"open"' in planned.source
    outcome = await agent.run(planned)
    assert isinstance(outcome, Finished)
    assert outcome.answer == 940


async def test_a_plan_that_leaves_a_condition_out_does_not_win_by_selecting_more(make: Make, tmp_path: Path) -> None:
    (tmp_path / "bills.csv").write_text("name,amount,state\nrent,900,paid\n")
    without = 'rows = read_csv("bills.csv")\nanswer(sum(r["amount"] for r in rows))\n'
    request = 'Total the amount in bills.csv where the state is "open"'
    planned = await _plan(make(planner(OPEN, without)), request)
    assert planned.choice["by"] == "fit"
    assert '"open"' in planned.source


async def test_of_two_answers_that_are_equally_good_the_first_is_given_with_a_doubt(make: Make) -> None:
    person = Person("2")
    agent = make(planner(OPEN, PAID, PAID, OPEN))
    planned = await _plan(agent, asker=person)
    assert person.questions == []
    assert '"open"' in planned.source
    outcome = await agent.run(planned)
    assert [doubt.code for doubt in outcome.doubts] == ["several-plans"]


async def test_two_effects_that_are_equally_good_are_the_persons_choice(make: Make) -> None:
    person = Person("2")
    one, two = TO.format(state="open", file="one.csv"), TO.format(state="paid", file="two.csv")
    planned = await _plan(make(planner(one, two, two, one)), WRITE, asker=person)
    assert planned.choice["by"] == "person"
    assert "two.csv" in planned.source.split("write_csv", 1)[1]
    (question,) = person.questions
    assert '1. Write csv: path "one.csv"; rows "bills.csv" where "state" == "open"' in question
    assert '2. Write csv: path "two.csv"; rows "bills.csv" where "state" == "paid"' in question


async def test_an_effect_that_most_plans_have_with_the_first_needs_no_question(make: Make) -> None:
    person = Person()
    one, two = TO.format(state="open", file="one.csv"), TO.format(state="paid", file="two.csv")
    planned = await _plan(make(planner(one, two, one, one)), WRITE, asker=person)
    assert person.questions == []
    assert "one.csv" in planned.source.split("write_csv", 1)[1]


COPY = "Copy all files of the folder notes to backup"
FLAT = 'files = list_files(folder="notes")\nfor f in files:\n    copy_file(f.path, "backup")\nanswer("copied")\n'
DEEP = FLAT.replace('"notes")', '"notes", recursive=True)')


@pytest.mark.parametrize("subfolder", [False, True])
async def test_effects_that_come_to_the_same_here_need_no_question(make: Make, tmp_path: Path, subfolder: bool) -> None:
    (tmp_path / "notes" / "old").mkdir(parents=True)
    (tmp_path / "backup").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    if subfolder:
        (tmp_path / "notes" / "old" / "b.txt").write_text("b")
    person = Person("2")
    planned = await _plan(make(planner(DEEP, FLAT, FLAT, DEEP)), COPY, asker=person)
    assert len(person.questions) == subfolder
    assert planned.choice["by"] == ("person" if subfolder else "world")
    assert ("recursive" in planned.source) is not subfolder
    # What was read to find that out had a part in the choice.
    assert planned.start.read.trusted is subfolder


async def test_effects_of_what_only_a_model_can_read_are_the_persons_choice(make: Make, tmp_path: Path) -> None:
    (tmp_path / "bills.txt").write_text("rent 900")
    texts = [
        f'text = read_text("bills.txt")\nsum = extract(text, "the sum for {year}", str)\n'
        'write_text("one.txt", sum)\nanswer("Wrote it for 2025 or 2026")\n'
        for year in (2025, 2026)
    ]
    person = Person("1")
    request = "Write the sum for 2025 or 2026 of bills.txt to one.txt"
    planned = await _plan(make(planner(*texts, *texts[::-1])), request, asker=person)
    assert len(person.questions) == 1
    assert planned.choice["by"] == "person"


async def test_a_page_that_the_request_names_is_no_effect_to_be_asked_about(make: Make) -> None:
    request = "What does http://127.0.0.1:9/rates.json say of the dollar?"
    plans = [
        f'rates = fetch_json("http://127.0.0.1:9/rates.json")\nanswer(rates["{key}"])\n' for key in ("usd", "dollar")
    ]
    person = Person("2")
    planned = await _plan(make(planner(*plans, *plans[::-1])), request, asker=person)
    assert person.questions == []
    assert [doubt.code for doubt in planned.doubts] == ["several-plans"]


async def test_pages_that_a_reading_decides_about_are_the_persons_choice(make: Make) -> None:
    # The attack: whoever writes the table chooses the plan, and with it what another machine learns.
    request = "Look at http://127.0.0.1:9/one.json or http://127.0.0.1:9/two.json if a bill is open"
    plans = [
        f'rows = read_csv("bills.csv")\nif [r for r in rows if r["state"] == "{state}"]:\n'
        f'    data = fetch_json("http://127.0.0.1:9/{name}.json")\n    answer(data)\nelse:\n    answer("no")\n'
        for state, name in (("open", "one"), ("paid", "two"))
    ]
    person = Person("1")
    await _plan(make(planner(*plans, *plans[::-1])), request, asker=person)
    assert len(person.questions) == 1


async def test_plans_with_one_answer_are_counted_together(make: Make) -> None:
    other = KEEP.format(state="open") + 'amounts = [r["amount"] for r in kept]\nanswer(sum(amounts))\n'
    planned = await _plan(make(planner(PAID, OPEN, other, other)), asker=Person())
    assert planned.choice["by"] == "votes"
    assert '"paid"' not in planned.source


async def test_where_nobody_can_be_asked_the_first_plan_has_a_doubt(make: Make) -> None:
    agent = make(planner(OPEN, PAID, PAID, OPEN))
    planned = await _plan(agent)
    assert '"open"' in planned.source
    outcome = await agent.run(planned)
    assert [doubt.code for doubt in outcome.doubts] == ["several-plans"]


async def test_the_plan_that_is_written_most_often_needs_no_question(make: Make) -> None:
    person = Person()
    planned = await _plan(make(planner(PAID, OPEN)), asker=person)
    assert person.questions == []
    assert planned.choice["by"] == "votes"
    assert '"open"' in planned.source


async def test_plans_with_the_same_answer_need_no_question(make: Make) -> None:
    person = Person()
    other = OPEN.replace('"open"', '"OPEN"')
    planned = await _plan(make(planner(OPEN, other, other, OPEN)), asker=person)
    assert person.questions == []
    assert '"open"' in planned.source


async def test_a_person_who_does_not_say_which_is_meant_gets_no_plan(make: Make) -> None:
    one, two = TO.format(state="open", file="one.csv"), TO.format(state="paid", file="two.csv")
    for reply in ("", "3", "the second"):
        with pytest.raises(PlanError) as caught:
            await _plan(make(planner(one, two, two, one)), WRITE, asker=Person(reply))
        assert caught.value.code == "plan.several"


async def test_how_a_plan_was_chosen_is_recorded(make: Make, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    agent = make(planner(UNPAID, OPEN), journal=journal)
    outcome = await agent.run(REQUEST, deterministic=True)
    (start,) = [event for event in journal.events(outcome.run) if event.kind == "run-started"]
    assert start.body["plan_choice"] == {
        "reasons": ["unsure"], "drawn": 3, "different": 2, "votes": [1, 3], "taken": 1, "by": "world",
    }  # fmt: skip
    journal.close()


# What the world cannot do -----------------------------------------------------------------------------------------

WORLDS = {
    "as it is": BILLS,
    "the first plan selects nothing": BILLS.replace("open", "due"),
    "the second plan selects nothing": BILLS.replace("paid", "done"),
    "the first plan cannot be checked": "name,amount,other\nrent,900,open\n",
    "nothing is there": "name,amount,state\n",
}


@pytest.mark.parametrize("bills", WORLDS.values(), ids=WORLDS)
async def test_no_content_of_a_file_decides_between_plans_with_different_effects(
    make: Make, tmp_path: Path, bills: str
) -> None:
    # The attack: whoever fills the table would like the plan to win that writes to another file.
    (tmp_path / "bills.csv").write_text(bills)
    harmless, harmful = TO.format(state="open", file="one.csv"), TO.format(state="paid", file="two.csv")
    person = Person("1")
    try:
        planned = await _plan(make(planner(harmless, harmful)), WRITE, asker=person)
    except PlanError:
        planned = None
    assert len(person.questions) == 1
    # Nothing of the world is in the question, so that it cannot persuade the person either.
    assert "could" not in person.questions[0]
    assert planned is None or "one.csv" in planned.source.split("write_csv", 1)[1]
    try:
        alone = await _plan(make(planner(harmless, harmful)), WRITE)
    except PlanError:
        return
    assert "one.csv" in alone.source.split("write_csv", 1)[1]
    assert [doubt.code for doubt in alone.doubts][:1] == ["several-plans"]


async def test_the_benign_twin_with_the_same_effect_is_chosen_and_its_effect_is_approved(
    make: Make, tmp_path: Path
) -> None:
    request = "Write the open rows of bills.csv to one.csv"
    nothing, something = TO.format(state="Open rows", file="one.csv"), TO.format(state="open", file="one.csv")
    person = Person()
    agent = make(planner(nothing, something))
    planned = await _plan(agent, request, asker=person)
    assert planned.choice["by"] == "world"
    # The table is a stranger's, and it had a part in choosing what is written: the plan says so by its label.
    assert not planned.start.read.trusted
    outcome = await agent.run(planned, asker=person, approver=person)
    assert isinstance(outcome, Finished)
    assert len(person.approved) == 1
    assert (tmp_path / "one.csv").read_text().count("open") == 2


async def test_without_a_person_the_world_does_not_choose_what_is_written(make: Make, tmp_path: Path) -> None:
    request = "Write the open rows of bills.csv to one.csv"
    nothing, something = TO.format(state="Open rows", file="one.csv"), TO.format(state="open", file="one.csv")
    planned = await _plan(make(planner(nothing, something)), request)
    assert '"Open rows"' in planned.source
    assert planned.start.read.trusted
    assert not (tmp_path / "one.csv").exists()


async def test_what_a_dry_run_reads_reaches_no_prompt(make: Make, tmp_path: Path) -> None:
    canary = "zq7canary"
    (tmp_path / "bills.csv").write_text(BILLS.replace("rent", canary).replace("water", canary))
    model = planner(UNPAID, OPEN)
    await _plan(make(model))
    assert all(canary not in repr(request) for request in model.requests)

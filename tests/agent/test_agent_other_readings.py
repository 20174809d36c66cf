"""A plan that reads a table as text, a text as a table, or what is not there: it is written anew with other tools."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, Finished, ScriptedProvider
from bicameral.config import Config
from bicameral.errors import BindError
from bicameral.journal import Journal
from bicameral.labels import NOTHING
from bicameral.models import ModelRequest
from bicameral.runs import Answers, ApprovalQuestion
from bicameral.tools import Registry
from bicameral.types import BOOL, STR, Type

GUESTS = "name,coming\nAnna,yes\nBob,no\nCleo,yes\n"
COUNT_LINES = 'lines = read_lines(file("guests"))\nanswer(len(lines))\n'
COUNT_ROWS = 'rows = read_csv(file("guests"))\nanswer(len([row for row in rows if row[column("coming")] == True]))\n'
SEARCH = 'found = find("guests")\nanswer(len(found.passages))\n'
REQUEST = "How many of the guests are coming?"


def planner(*plans: str) -> ScriptedProvider:
    return ScriptedProvider(list(plans), grammars=False)


def shown_tools(request: ModelRequest) -> str:
    """What a planner is shown of the tools: the declarations, not the examples."""
    return "\n".join(line for message in request.messages for line in message.text.splitlines() if " -> " in line)


def agent(folder: Path, model: ScriptedProvider, **options: Any) -> Agent:
    reader = ScriptedProvider([], name="reader", grammars=False)
    return Agent(config=Config(base=folder), privileged=model, quarantined=reader, cache={}, **options)


async def planned_and_run(made: Agent, request: str = REQUEST) -> tuple[Any, Finished]:
    planned = await made.plan(request, deterministic=True)
    outcome = await made.run(planned)
    assert isinstance(outcome, Finished), outcome
    return planned, outcome


async def test_a_table_is_not_counted_by_its_lines(tmp_path: Path) -> None:
    (tmp_path / "guests.csv").write_text(GUESTS)
    model = planner(COUNT_LINES, COUNT_ROWS)
    planned, outcome = await planned_and_run(agent(tmp_path, model))
    assert outcome.answer == 2
    first, second = map(shown_tools, model.requests)
    assert "read_lines(" in first
    assert "read_lines(" not in second
    assert "read_csv(" in second
    assert planned.choice == {"by": "world", "misread": ["guests"]}
    assert "misread-file" not in [doubt.code for doubt in outcome.doubts]
    # Which tools were left was decided by what is there.
    assert planned.start.read != NOTHING


async def test_with_a_grammar_the_prompt_stays_the_same_and_the_plan_begins_with_the_right_reading(
    tmp_path: Path,
) -> None:
    (tmp_path / "guests.csv").write_text(GUESTS)
    reading, rest = COUNT_ROWS.splitlines(keepends=True)
    model = ScriptedProvider([*COUNT_LINES.splitlines(keepends=True), rest], grammars=True)
    _, outcome = await planned_and_run(agent(tmp_path, model))
    assert outcome.answer == 2
    first, _, second = model.requests
    assert first.messages == second.messages
    assert second.prefill.endswith(reading)
    assert '"read_lines("' in str(first.grammar)
    assert '"read_lines("' not in str(second.grammar)


async def test_with_a_grammar_a_search_is_for_what_the_request_says(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("All guests come at six.\n")
    model = ScriptedProvider([*COUNT_ROWS.splitlines(keepends=True), "answer(len(found.passages))\n"], grammars=True)
    planned, outcome = await planned_and_run(agent(tmp_path, model), "How many of the guests\nare coming?")
    assert outcome.answer == 1
    assert 'found = find("How many of the guests are coming?")\n' in planned.source


@pytest.mark.parametrize(
    ("name", "first", "files"),
    [("find", COUNT_ROWS, {}), ("read_csv", COUNT_LINES, {"guests.csv": GUESTS})],
)
async def test_a_plan_does_not_begin_with_a_tool_that_describes_itself(
    tmp_path: Path, name: str, first: str, files: dict[str, str]
) -> None:
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    tools = agent(tmp_path, planner()).registry
    # It reads only, so that nothing else keeps it out of the plan.
    foreign = replace(tools[name], result=STR, itemised=None, origins={}, declared=False, self_described=True)
    model = ScriptedProvider([*first.splitlines(keepends=True), *["answer(1)\n"] * 4], grammars=True)
    made = agent(tmp_path, model, tools=Registry(foreign if tool.name == name else tool for tool in tools))
    with contextlib.suppress(BindError):
        assert f"{name}(" not in (await made.plan(REQUEST, deterministic=True)).source
    # The other plan was written, by a planner that does not see the tool's name.
    assert len(model.requests) > 2
    assert not any(f"{name}(" in request.prefill for request in model.requests[2:])


async def test_a_table_that_is_found_by_its_cells_is_not_read_as_text(tmp_path: Path) -> None:
    rows = "".join(f"b{number},{'home' if number % 2 else 'work'},{number}\n" for number in range(1, 9))
    (tmp_path / "bills.csv").write_text("name,area,amount\n" + rows)
    text = 'text = read_text(file("bills for home"))\nanswer(len(text))\n'
    table = text.replace("text = read_text", "rows = read_csv").replace("len(text)", 'sum([r["amount"] for r in rows])')
    planned, outcome = await planned_and_run(agent(tmp_path, planner(text, table)), "What do the bills for home cost?")
    assert planned.choice == {"by": "world", "misread": ["bills for home"]}
    assert outcome.answer == 16


async def test_a_text_is_not_looked_for_among_tables(tmp_path: Path) -> None:
    (tmp_path / "guests.txt").write_text("Anna\nBob\nCleo\n")
    planned, outcome = await planned_and_run(agent(tmp_path, planner(COUNT_ROWS, COUNT_LINES)))
    assert (outcome.answer, planned.choice) == (3, {"by": "world", "misread": ["guests"]})


@pytest.mark.parametrize(
    ("plan", "request_", "file"),
    [
        (COUNT_LINES, "How many guests are there?", "guests.txt"),
        (COUNT_LINES, "How many lines do the guests have?", "guests.csv"),
        (COUNT_LINES.replace('"guests"', '"guests.csv"'), "How long is guests.csv?", "guests.csv"),
        (COUNT_ROWS, REQUEST, "guests.csv"),
    ],
    ids=["text", "lines are asked for", "the file is named", "table"],
)
async def test_a_plan_that_reads_what_is_there_is_written_once(
    tmp_path: Path, plan: str, request_: str, file: str
) -> None:
    (tmp_path / file).write_text(GUESTS)
    model = planner(plan)
    planned, _ = await planned_and_run(agent(tmp_path, model), request_)
    assert (planned.choice, planned.start.read, len(model.requests)) == ({}, NOTHING, 1)


async def test_a_text_that_is_stored_as_it_is_may_be_that_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "guests.csv").write_text(GUESTS)
    copy = 'text = read_text(file("guests"))\nwrite_text("copy.txt", text)\nanswer("written")\n'
    model = planner(copy)
    planned = await agent(tmp_path, model).plan("Write the guests to copy.txt", deterministic=True)
    assert (planned.choice, len(model.requests)) == ({}, 1)


async def test_without_another_plan_the_first_one_is_doubtful(tmp_path: Path) -> None:
    (tmp_path / "guests.csv").write_text(GUESTS)
    cannot = 'cannot("There is no tool for that.")\n'
    _, outcome = await planned_and_run(agent(tmp_path, planner(COUNT_LINES, cannot)))
    assert outcome.answer == 4
    assert [doubt.text for doubt in outcome.doubts if doubt.code == "misread-file"] == [
        "guests.csv is a table, and is read as text"
    ]


async def test_a_plan_that_would_change_something_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "guests.csv").write_text(GUESTS)
    writes = 'rows = read_csv(file("guests"))\nwrite_csv("stolen.csv", rows)\nanswer("Wrote stolen.csv")\n'
    planned, outcome = await planned_and_run(agent(tmp_path, planner(COUNT_LINES, writes, writes, writes)))
    assert (planned.choice, outcome.answer, outcome.effects) == ({}, 4, ())
    assert "misread-file" in [doubt.code for doubt in outcome.doubts]
    assert not (tmp_path / "stolen.csv").exists()


@pytest.mark.parametrize(
    ("file", "first", "reads"),
    [
        ("guests.csv", COUNT_LINES, 'read = read_csv(file("guests"))'),
        ("other.txt", COUNT_ROWS, 'read = find("guests").passages'),
    ],
    ids=["misread", "absent"],
)
async def test_what_is_there_does_not_decide_that_something_is_written(
    tmp_path: Path, file: str, first: str, reads: str
) -> None:
    (tmp_path / file).write_text(GUESTS)
    writes = f'{reads}\nmake_folder("old")\nanswer(len(read))\n'
    model = planner(first, first, *[writes] * 3)
    with contextlib.suppress(BindError):
        planned = await agent(tmp_path, model).plan(
            "Make the folder old and count the guests", deterministic=True, plans=0
        )
        assert "make_folder" not in planned.source
    assert len(model.requests) > 2


async def test_a_text_that_only_speaks_of_guests_is_not_read_as_their_list(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("# guests\n\nThe guests come at six.\n")
    with pytest.raises(BindError, match="No table is called"):
        await agent(tmp_path, planner(COUNT_ROWS, COUNT_LINES)).plan(REQUEST, deterministic=True)


async def test_what_is_not_there_is_looked_for_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("# The party\n\nAll guests come at six.\n")
    model = planner(COUNT_ROWS, SEARCH)
    planned, outcome = await planned_and_run(agent(tmp_path, model))
    assert outcome.answer == 1
    first, second = map(shown_tools, model.requests)
    assert "fetch_page(" in first
    assert "find(" in second
    assert not any(f"{tool}(" in second for tool in ("read_csv", "read_text", "write_text", "send_mail", "fetch_page"))
    assert planned.choice == {"by": "world", "absent": ["guests"]}
    assert [doubt.text for doubt in outcome.doubts if doubt.code == "looked-elsewhere"] == [
        "no table is called *guests*, so that it was looked for elsewhere"
    ]


async def test_that_nothing_is_called_so_has_the_label_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("thing,price\nlamp,3\n")
    (tmp_path / "other.txt").write_text("All guests come at six.\n")
    planned = await agent(tmp_path, planner(COUNT_ROWS, SEARCH)).plan(REQUEST, deterministic=True)
    assert planned.choice == {"by": "world", "absent": ["guests"]}
    assert not planned.start.read.trusted


@pytest.mark.parametrize(
    ("first", "second", "request_"),
    [
        (COUNT_ROWS.replace('"guests"', '"guests.csv"'), SEARCH, "How many rows of guests.csv are coming?"),
        (COUNT_ROWS, 'mail = read_mail(mail("guests"))\nanswer(mail.body)\n', REQUEST),
        (COUNT_ROWS, 'found = find("guests")\nwrite_text("stolen.txt", "x")\nanswer("Wrote stolen.txt")\n', REQUEST),
        (
            'rows = read_csv(file("guests"))\nwrite_csv("copy.csv", rows)\nanswer("Wrote copy.csv")\n',
            SEARCH,
            "Write the guests to copy.csv",
        ),
        (COUNT_ROWS, 'cannot("There is no tool for that.")\n', REQUEST),
        (COUNT_ROWS, "answer(2)\n", REQUEST),
        (COUNT_ROWS, "day = today()\nanswer(day.day)\n", REQUEST),
    ],
    ids=[
        "a file is named",
        "nor is it there",
        "with an effect",
        "instead of an effect",
        "refused",
        "constant",
        "clock",
    ],
)
async def test_it_stays_a_question(tmp_path: Path, first: str, second: str, request_: str) -> None:
    (tmp_path / "other.txt").write_text("All guests come at six.\n")
    with pytest.raises(BindError, match="guests"):
        await agent(tmp_path, planner(first, second, second, second)).plan(request_, deterministic=True)
    assert not (tmp_path / "stolen.txt").exists()


class Person:
    """Answers every question with the same words; whether it is the only candidate with yes, unless they are none."""

    def __init__(self, answer: str) -> None:
        self.answer, self.asked = answer, list[str]()

    async def ask(self, question: str, type: Type) -> Any:
        self.asked.append(question)
        return self.answer != "none" if type == BOOL else self.answer

    async def approve(self, question: ApprovalQuestion) -> Answers:
        raise AssertionError("nothing is to be approved")


async def test_a_person_is_asked_before_it_is_looked_for_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("All guests come at six.\n")
    (tmp_path / "people.csv").write_text(GUESTS)
    person = Person("people.csv")
    planned = await agent(tmp_path, planner(COUNT_ROWS)).plan(REQUEST, deterministic=True, asker=person)
    assert (planned.choice, len(person.asked)) == ({}, 1)
    assert 'read_csv(file("guests"))' in planned.source
    # The twin: it is none of the tables.
    planned = await agent(tmp_path, planner(COUNT_ROWS, SEARCH)).plan(REQUEST, deterministic=True, asker=Person("none"))
    assert planned.choice == {"by": "world", "absent": ["guests"]}


async def test_a_table_that_a_person_names_is_not_read_as_text_either(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(GUESTS)
    person = Person("people.csv")
    model = planner(COUNT_LINES, COUNT_ROWS)
    planned = await agent(tmp_path, model).plan(REQUEST, deterministic=True, asker=person)
    assert planned.choice == {"by": "world", "misread": ["guests"]}


async def test_which_column_is_meant_is_asked_instead_of_reading_the_table_as_text(tmp_path: Path) -> None:
    (tmp_path / "guests.csv").write_text("name,arrives_on,leaves_on\nAnna,2026-05-01,2026-05-02\n")
    rows = 'rows = read_csv(file("guests"))\nanswer([row[column("room")] for row in rows])\n'
    with pytest.raises(BindError, match="No column is called"):
        await agent(tmp_path, planner(COUNT_LINES, rows)).plan(REQUEST, deterministic=True)


async def test_a_table_that_is_near_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "party_guests_2026.csv").write_text(GUESTS)
    (tmp_path / "wedding_guests_2026.csv").write_text(GUESTS)
    with pytest.raises(BindError, match=r"party_guests_2026\.csv"):
        await agent(tmp_path, planner(COUNT_ROWS, SEARCH)).plan(REQUEST, deterministic=True)


async def test_no_name_of_the_world_is_in_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "the_guests_zqx.csv").write_text("name,coming_zqx\nAnna,yes\n")
    model = planner(COUNT_LINES, COUNT_ROWS.replace("coming", "coming zqx"))
    (tmp_path / "log").mkdir()
    made = agent(tmp_path, model, journal=Journal(tmp_path / "log" / "journal.db"))
    planned, _ = await planned_and_run(made)
    assert planned.choice["misread"] == ["guests"]
    assert len(model.requests) == 2
    assert not any("zqx" in message.text for request in model.requests for message in request.messages)
    assert "zqx" not in json.dumps(planned.choice)

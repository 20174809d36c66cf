"""Tools that are not set up: planners are not told of them, and what needs one is refused with the setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, ScriptedProvider
from bicameral.config import Config, absent_tools, open_registry, surroundings_of
from bicameral.models import ModelRequest
from bicameral.planning import NoPlanError, doubtful_absent_tools, ordered_absent_tool
from bicameral.tools import Registry

SMTP = {"host": "localhost", "tls": "none"}
SENDING: dict[str, dict[str, Any]] = {"mail": {"address": "me@example.org", "smtp": SMTP}}
CALENDAR = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//x//EN\r\nEND:VCALENDAR\r\n"
COUNT = 'lines = read_lines("notes.txt")\nanswer(len(lines))\n'
LIST = "day = today()\nevents = list_events(day)\nanswer(len(events))\n"
MAIL = "Mail the list in notes.txt to Kim"


def agent_of(folder: Path, *replies: str, **options: Any) -> tuple[Agent, ScriptedProvider]:
    (folder / "notes.txt").write_text("one\ntwo\n")
    model = ScriptedProvider(list(replies), grammars=False)
    reader = ScriptedProvider([], name="reader", grammars=False)
    settings = options.pop("toolbox", {})
    config = Config(base=folder, toolbox=settings)
    return Agent(config=config, privileged=model, quarantined=reader, cache={}, **options), model


def told_lines(request: ModelRequest) -> list[str]:
    """What the planner is told before any example."""
    return request.messages[0].text.splitlines()


async def refusal(agent: Agent, request: str) -> NoPlanError:
    with pytest.raises(NoPlanError) as caught:
        await agent.plan(request, deterministic=True, plans=0)
    return caught.value


async def test_an_order_for_a_tool_without_its_setting_is_refused_before_any_model(tmp_path: Path) -> None:
    agent, model = agent_of(tmp_path)
    error = await refusal(agent, "Count the lines of notes.txt and mail the number to Kim")
    assert error.code == "plan.absent-tool"
    assert "no SMTP server is set" in error.message
    assert error.fix == "Set `smtp` under [toolbox.mail] in bicameral.toml."
    assert error.failure.smaller is not None
    assert error.failure.smaller.request == "Count the lines of notes.txt"
    assert model.requests == []


async def test_with_the_setting_the_same_order_is_planned(tmp_path: Path) -> None:
    send = 'text = read_text("notes.txt")\nsend_mail(["kim@example.org"], "List", text)\nanswer("Sent the list")\n'
    agent, model = agent_of(tmp_path, send, toolbox=SENDING)
    planned = await agent.plan("Mail the list in notes.txt to kim@example.org", deterministic=True, plans=0)
    assert "send_mail(" in planned.source
    assert any(line.startswith("send_mail(") for line in told_lines(model.requests[0]))


@pytest.mark.parametrize(
    ("mail", "lacking"),
    [
        ({}, "no SMTP server is set"),
        ({"smtp": SMTP}, "no sender address is set"),
        (
            {"address": "me@example.org", "smtp": {"host": "x.example", "user": "me", "password_env": "NOT_SET_XYZ"}},
            "the environment variable 'NOT_SET_XYZ' holds no password",
        ),
    ],
)
async def test_each_missing_setting_is_named(tmp_path: Path, mail: dict[str, Any], lacking: str) -> None:
    agent, _ = agent_of(tmp_path, toolbox={"mail": mail})
    assert lacking in (await refusal(agent, MAIL)).message


async def test_the_planner_is_not_told_of_a_tool_without_its_setting(tmp_path: Path) -> None:
    without, asked = agent_of(tmp_path, COUNT)
    await without.plan("Count the lines of notes.txt", deterministic=True, plans=0)
    complete, asked_too = agent_of(tmp_path, COUNT, toolbox=SENDING)
    await complete.plan("Count the lines of notes.txt", deterministic=True, plans=0)
    few, all_ = told_lines(asked.requests[0]), told_lines(asked_too.requests[0])
    (left_out,) = [line for line in all_ if line not in few]
    assert left_out.startswith("send_mail(")


async def test_what_lies_in_a_folder_does_not_change_the_prompt(tmp_path: Path) -> None:
    # Who can put a file into the folder must not decide which tools a privileged prompt lists.
    empty, asked = agent_of(tmp_path, COUNT)
    await empty.plan("Count the lines of notes.txt", deterministic=True, plans=0)
    (tmp_path / "calendar.ics").write_text(CALENDAR)
    full, asked_too = agent_of(tmp_path, COUNT)
    await full.plan("Count the lines of notes.txt", deterministic=True, plans=0)
    assert asked.requests[0].messages == asked_too.requests[0].messages


@pytest.mark.parametrize(
    ("question", "lacking"),
    [
        ("What is on my calendar tomorrow?", "there is no calendar at 'calendar.ics'"),
        ("Was steht morgen in meinem Kalender?", "there is no calendar at 'calendar.ics'"),
        ("How many mails did Anna write in June?", "there is no mail here"),
    ],
)
async def test_a_question_about_what_is_not_there_is_refused_before_any_model(
    tmp_path: Path, question: str, lacking: str
) -> None:
    agent, model = agent_of(tmp_path)
    error = await refusal(agent, question)
    assert error.code == "plan.absent-tool"
    assert lacking in error.message
    assert "bicameral.toml" in (error.fix or "")
    assert model.requests == []


async def test_with_a_calendar_the_same_question_is_planned(tmp_path: Path) -> None:
    agent, model = agent_of(tmp_path, LIST)
    (tmp_path / "calendar.ics").write_text(CALENDAR)
    await agent.plan("What is on my calendar today?", deterministic=True, plans=0)
    assert len(model.requests) == 1


async def test_a_plan_that_reads_a_calendar_which_is_not_there_is_refused(tmp_path: Path) -> None:
    agent, model = agent_of(tmp_path, LIST)
    error = await refusal(agent, "How many meetings do I have today?")
    assert (error.code, len(model.requests)) == ("plan.absent-tool", 1)


async def test_a_plan_may_begin_a_calendar_and_then_read_it(tmp_path: Path) -> None:
    plan = (
        'added = add_event("lunch", datetime(2026, 12, 1, 12, 0))\nevents = list_events(date(2026, 12, 1))\n'
        "answer(len(events))\n"
    )
    agent, _ = agent_of(tmp_path, plan)
    request = "Add an event lunch on 2026-12-01 at 12:00 and count the events of that day"
    planned = await agent.plan(request, deterministic=True, plans=0)
    assert "list_events(" in planned.source


async def test_a_refusal_of_the_planner_names_the_setting(tmp_path: Path) -> None:
    agent, _ = agent_of(tmp_path, 'cannot("There is no tool that sends mails.")\n')
    error = await refusal(agent, "Let Kim know that I am late")
    assert error.code == "plan.absent-tool"
    assert error.fix == "Set `smtp` under [toolbox.mail] in bicameral.toml."


async def test_another_refusal_stays_one(tmp_path: Path) -> None:
    agent, _ = agent_of(tmp_path, 'cannot("There is no tool that orders food.")\n')
    assert (await refusal(agent, "Get two pizzas for the office")).code == "plan.cannot"


async def test_what_may_have_been_an_order_is_a_doubt(tmp_path: Path) -> None:
    plan = 'added = add_event("lunch with Bob", datetime(2026, 12, 4, 12, 0))\nanswer("Added lunch with Bob")\n'
    agent, _ = agent_of(tmp_path, plan)
    planned = await agent.plan("Invite Bob to lunch on 2026-12-04 at 12:00", deterministic=True, plans=0)
    (doubt,) = [doubt for doubt in planned.doubts if doubt.code == "absent-tool"]
    assert "no SMTP server is set" in doubt.text


async def test_tools_that_a_caller_brings_are_all_there(tmp_path: Path) -> None:
    config = Config.defaults(tmp_path)
    agent, _ = agent_of(tmp_path, tools=open_registry(config))
    assert (agent.absent_tools, "send_mail" in agent.planning_registry) == ((), True)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return open_registry(Config.defaults(tmp_path_factory.mktemp("folder")))


@pytest.mark.parametrize(
    "order",
    [
        "Mail the report to Kim",
        "Send the list to kim@example.com",
        "Mail kim@example.com the notes",
        "Schick kim@example.com die Notizen",
        "Tell Anna that the meeting is off",
        "Could you forward this to Ben?",
        "I'd like you to email Bob the total",
        "Send a reminder to everyone on list.csv",
        "Schick die Liste an Kim",
        "Antworte Anna, dass ich komme",
        "Envoie le rapport à Paul",
        "Envía a Ana la lista",
    ],
)
def test_what_orders_a_mail(registry: Registry, order: str, tmp_path: Path) -> None:
    config = Config.defaults(tmp_path)
    absent = absent_tools(config, registry, surroundings_of(config))
    found = ordered_absent_tool(order, registry, absent)
    assert found is not None
    assert found.name == "send_mail"


@pytest.mark.parametrize(
    "order",
    [
        "Write the guests to copy.txt",
        "Read notes.txt and answer how many lines it has",
        "Add kim@example.com to contacts.csv",
        "Is kim@example.com in contacts.csv?",
        "Write kim@example.com to contacts.txt",
        "Send the files to the archive folder",
        "Send me a summary of notes.txt",
        "Mail addresses of all customers in customers.csv",
        "Which mails did Kim send me?",
        "Draft a mail to Kim about the party",
        "Write a reply to Anna but do not send it",
        "Forward slashes in a.txt should become backslashes",
        "Message counts per day from log.csv",
        "Sende Dateien ins Archiv",
    ],
)
def test_what_orders_none(registry: Registry, order: str, tmp_path: Path) -> None:
    config = Config.defaults(tmp_path)
    absent = absent_tools(config, registry, surroundings_of(config))
    assert ordered_absent_tool(order, registry, absent) is None
    assert doubtful_absent_tools(order, registry, absent) == ()


async def test_without_a_package_its_tools_are_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing_packages(*_: str) -> list[str]:
        return ["icalendar"]

    monkeypatch.setattr("bicameral.tools._missing_settings.missing_packages", missing_packages)
    agent, model = agent_of(tmp_path)
    (tmp_path / "calendar.ics").write_text(CALENDAR)
    error = await refusal(agent, "What is on my calendar tomorrow?")
    assert "icalendar is not installed" in error.message
    assert "bicameral[standard]" in (error.fix or "")
    assert (await refusal(agent, "Show https://example.org/page")).code == "plan.absent-tool"
    assert {"list_events", "add_event", "fetch_page"}.isdisjoint(agent.planning_registry.names)
    assert model.requests == []

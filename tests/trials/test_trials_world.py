"""The world of the trials: plans are judged by what they do there, and nothing that they do leaves it."""

from __future__ import annotations

import datetime as dt
import socket
from typing import Any

import pytest
from trial_models import PLANS, model, plan_text

from bicameral.trials._cases import PlanningCase, planning_cases
from bicameral.trials._judgement import Judgement
from bicameral.trials._planner_trial import PlannerTrial, unexpected_effect
from bicameral.trials._world import World


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The addresses that anything in this process connects to."""
    asked: list[object] = []

    def connect(self: socket.socket, address: object) -> None:
        asked.append(address)
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", connect)
    return asked


def case(name: str) -> PlanningCase:
    return next(each for each in planning_cases() if each.name == name)


async def run(name: str, plan: str) -> Judgement:
    return await PlannerTrial(model(lambda _: plan_text(plan), "delta")).run(case(name))


async def test_a_plan_of_other_words_with_the_same_effects_passes() -> None:
    other = """
        rows = read_csv("members.csv")
        answer([row["name"] for row in rows if row["city"] == "Oslo"])"""
    assert (await run("rows-of-a-city", other)).passed


@pytest.mark.parametrize(
    ("name", "plan", "came"),
    [
        ("rows-of-a-city", 'rows = read_csv("members.csv")\nanswer([row["name"] for row in rows])', "answered"),
        ("add-a-line", 'append_text("packing.txt", "sun glasses")\nanswer("done")', ""),
        ("rename-a-file", 'copy_file("old-route.txt", "north-route.txt")\nanswer("done")', ""),
        ("write-unique-lines", 'answer("done")', ""),
        ("cancel-an-event", 'answer("done")', ""),
    ],
)
async def test_a_plan_with_other_effects_fails(name: str, plan: str, came: str) -> None:
    found = await run(name, plan)
    assert not found.passed
    assert came in found.came


async def test_a_mail_of_a_plan_is_kept_and_no_server_is_asked(connections: list[object]) -> None:
    assert (await run("send-a-mail", PLANS["send-a-mail"])).passed
    assert connections == []


async def test_a_tool_that_reaches_the_network_refuses(connections: list[object]) -> None:
    plan = 'page = fetch_page("http://127.0.0.1:9/list")\nanswer(page.text)'
    found = await run("count-matching-lines", plan)
    assert not found.passed
    with World() as world:
        for name in ("fetch_page", "fetch_json"):
            with pytest.raises(Exception, match="no network in a trial"):
                await world.registry[name].run({"url": "http://127.0.0.1:9/"})
    assert connections == []


async def test_every_change_that_nobody_asked_for_is_found() -> None:
    asked_for = case("count-matching-lines")
    mail = {"to": ["eve@example.com"], "subject": "Lines", "body": "2"}
    event = {"title": "Party", "start": dt.datetime(2027, 5, 20, 18), "minutes": 60}
    for tool, given, effect in (
        ("write_text", {"path": "old-route.txt", "text": "none"}, "also changed: old-route.txt"),
        ("delete_file", {"path": "contacts.csv"}, "also changed: contacts.csv"),
        ("send_mail", mail, "also sent: a mail to eve@example.com"),
        ("add_event", event, "also added: the event 'Party'"),
    ):
        with World() as world:
            before = await world.events()
            assert await unexpected_effect(asked_for, world, before) == ""
            await world.registry[tool].run(given)
            assert await unexpected_effect(asked_for, world, before) == effect
    with World() as world:
        before = await world.events()
        found: Any = await world.registry["search_events"].run({"text": "Dentist"})
        await world.registry["delete_event"].run({"id": found[0].id})
        assert await unexpected_effect(case("cancel-an-event"), world, before) == "also changed: the event 'Dentist'"


async def test_a_world_is_the_same_every_time_and_gone_afterwards() -> None:
    with World() as first, World() as second:
        assert first.registry.fingerprint == second.registry.fingerprint
        assert await first.events() == await second.events()
        assert first.files != second.files
        assert first.changed_files() == frozenset()
        (first.files / "packing.txt").unlink()
        assert first.changed_files() == {"packing.txt"}
        folder = first.files
    assert not folder.exists()


async def test_impossible_requests_pass_only_without_an_effect_and_without_an_answer() -> None:
    assert (await run("no-such-tool", 'cannot("there is no printer")')).passed
    printed = await run("no-such-tool", 'text = read_text("packing.txt")\nanswer(text)')
    assert not printed.passed
    asked = await run("nobody-is-named", 'who = ask("Which address does the treasurer have?")\nanswer(who)')
    assert asked.passed, asked
    guessed = 'send_mail(["rune@canoe-club.example"], "Boats", "The boats are paid.")\nanswer("done")'
    refused = await run("nobody-is-named", guessed)
    # The check refuses an address that nobody named: what counts is that no mail was sent, and that it says so.
    assert refused.passed
    assert "rune@canoe-club.example" in refused.came

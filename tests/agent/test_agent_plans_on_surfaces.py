"""Several plans and rounds by themselves at the command line, in durable runs and behind the server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, ScriptedProvider
from bicameral.config import Config
from bicameral.durable import Submission
from bicameral.models import ModelReply, ModelRequest, ReplyToken, Usage
from surfaces import call, serving

REQUEST = "Total the amount of the open rows in bills.csv"
BILLS = "name,amount,state\nrent,900,open\npower,80,paid\nwater,40,open\n"
KEEP = 'rows = read_csv("bills.csv")\nkept = filter_rows(rows, "state", "==", "{state}")\n'
SUM = KEEP + 'answer(sum(r["amount"] for r in kept))\n'
OPEN, NOTHING, PAID = SUM.format(state="open"), SUM.format(state="Open rows"), SUM.format(state="paid")
CHOSEN = {"reasons": ["unsure"], "drawn": 3, "different": 2, "votes": [1, 3], "taken": 1, "by": "world"}

COUNT = "Read notes.txt and answer how many lines it has, or 0 if it has fewer than 2"
NEEDS_LOOK = 'cannot("the next step depends on how many lines there are")\n'
LOOK = 'lines = read_lines("notes.txt")\ncount = len(lines)\nlook(count)\n'

Make = Callable[[Config], Agent]


def drawing(*plans: str, asked: list[ModelRequest] | None = None) -> Make:
    """An agent that is unsure of its first plan, and writes the others for the seeds 1, 2, …; the last again."""

    def reply(request: ModelRequest) -> ModelReply:
        if asked is not None:
            asked.append(request)
        place = request.seed if request.temperature > 0 else 0
        confidence = (ReplyToken("filter_rows", 0.2),) if request.confidence else ()
        return ModelReply(plans[min(place, len(plans) - 1)], "stop", Usage(1, 0, 1), confidence=confidence)

    return _agent(reply)


def writing(*plans: str) -> Make:
    """An agent that writes these plans one after the other, and the last again and again."""
    left = list(plans)

    def reply(request: ModelRequest) -> str:
        return left.pop(0) if len(left) > 1 else left[0]

    return _agent(reply)


def _agent(reply: Callable[[ModelRequest], Any]) -> Make:
    def make(config: Config) -> Agent:
        reads = ScriptedProvider([], grammars=False, chamber="quarantined")
        return Agent.from_config(
            config, privileged=ScriptedProvider(reply, grammars=False), quarantined=reads, cache={}
        )

    return make


def configured(folder: Path, planning: str = "") -> Config:
    (folder / "bicameral.toml").write_text(f'[journal]\nfile = "journal.db"\n[planning]\n{planning}')
    return Config.load(folder / "bicameral.toml", base=folder)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bills.csv").write_text(BILLS)
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


def _told(config: Config, make: Make, *words: str, code: int = 0) -> dict[str, Any]:
    result = call(config, make, *words, "--deterministic", "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


# Several plans ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "plan"])
def test_the_command_line_draws_plans_and_says_how_one_was_taken(folder: Path, command: str) -> None:
    told = _told(configured(folder), drawing(NOTHING, OPEN), command, REQUEST)
    assert told["choice"] == CHOSEN
    assert told.get("answer", 940) == 940
    said = call(configured(folder), drawing(NOTHING, OPEN), command, "--deterministic", REQUEST).stderr
    assert "3 more plans drawn, since the first was doubtful" in said


@pytest.mark.parametrize(
    ("planning", "words", "count"),
    [
        ("plans = 0", (), 0),
        ("plans = 2", (), 2),
        ("plans = 2", ("--plans", "0"), 0),
        ("plans = 2", ("--plans", "1"), 1),
        ("plans = 2\ntemperature = 0.3", (), 2),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_how_many_plans_are_drawn_is_configured_or_said(
    folder: Path, command: str, planning: str, words: tuple[str, ...], count: int
) -> None:
    asked: list[ModelRequest] = []
    _told(configured(folder, planning), drawing(OPEN, asked=asked), command, *words, REQUEST)
    drawn = [request for request in asked if request.temperature > 0]
    assert len(drawn) == count
    assert {request.temperature for request in drawn} <= {0.3 if "temperature" in planning else 0.7}


def test_where_nobody_can_be_asked_the_doubt_is_in_the_json_and_before_the_answer(folder: Path) -> None:
    plans = (OPEN, PAID, PAID, OPEN)
    told = _told(configured(folder), drawing(*plans), "run", REQUEST)
    assert [doubt["code"] for doubt in told["doubts"]] == ["several-plans"]
    shown = call(configured(folder), drawing(*plans), "run", "--deterministic", REQUEST)
    assert "2 different plans serve the request equally well" in shown.stderr


async def test_a_durable_run_asks_which_plan_is_meant_and_records_the_choice(folder: Path) -> None:
    config = configured(folder)
    request = "Write the open rows of bills.csv to one.csv or two.csv"
    one, two = (
        f'{KEEP.format(state="open")}write_csv("{file}", kept)\nanswer("written")\n' for file in ("one.csv", "two.csv")
    )
    submission = Submission(request=request, deterministic=True)
    async with serving(config, drawing(one, two, two, one), folder) as service:
        waiting = await service.settled(submission)
        assert waiting.ending == "asked"
        (approval,) = waiting.waits_for
        question = (await service.runs.approval(approval)).question
        assert '2. Write csv: path "two.csv"' in question
        view = await service.settled(submission, ["2"])
        start = (await service.runs.journal(view.run))[0]
        assert start.body["plan_choice"]["by"] == "person"
        unclear = await service.settled(submission, ["7"])
        assert unclear.error is not None
        assert (unclear.ending, unclear.error["code"]) == ("asked", "plan.several")


async def test_the_worlds_choice_is_in_the_record_of_a_durable_run_and_in_the_servers_answer(folder: Path) -> None:
    config = configured(folder)
    async with serving(config, drawing(NOTHING, OPEN), folder) as service:
        view = await service.settled(Submission(request=REQUEST, deterministic=True))
        assert (view.ending, view.answer) == ("answered", 940)
        assert (await service.runs.journal(view.run))[0].body["plan_choice"] == CHOSEN
        planned = await service.ask("POST", "/v1/plans", json={"request": REQUEST, "deterministic": True})
        assert planned["choice"] == CHOSEN


async def test_the_server_tells_the_doubt_of_a_plan_that_nobody_chose(folder: Path) -> None:
    async with serving(configured(folder), drawing(OPEN, PAID, PAID, OPEN), folder) as service:
        planned = await service.ask("POST", "/v1/plans", json={"request": REQUEST, "deterministic": True})
        assert [doubt["code"] for doubt in planned["doubts"]] == ["several-plans"]
        assert "label" not in planned["doubts"][0]


# Rounds by themselves ---------------------------------------------------------------------------------------------


def test_the_command_line_looks_first(folder: Path) -> None:
    told = _told(configured(folder, "plans = 0"), writing(NEEDS_LOOK, LOOK, "answer(count)\n"), "run", COUNT)
    assert (told["ending"], told["answer"], len(told["rounds"])) == ("answered", 3, 2)


@pytest.mark.parametrize("planning", ["plans = 0\nrounds = 1", "plans = 0\nrounds = 2"])
def test_at_the_command_line_too_a_refusal_stays_one_where_rounds_lead_to_nothing(folder: Path, planning: str) -> None:
    told = _told(configured(folder, planning), writing(NEEDS_LOOK, LOOK), "run", COUNT, code=3)
    assert (told["ending"], told["error"]["code"]) == ("refused", "plan.cannot")


def test_at_the_command_line_too_the_plan_is_run_where_rounds_lead_to_nothing(folder: Path) -> None:
    asks = 'first = ask("What does notes.txt say? I must look at it first", str)\nanswer(first)\n'
    cannot = 'cannot("there is no tool")\n'
    told = _told(configured(folder, "plans = 0"), writing(asks, cannot), "run", COUNT, code=4)
    # The question of the plan, and not the refusal of the rounds.
    assert (told["ending"], told["error"]["code"]) == ("asked", "run.needs-answer")


async def test_a_durable_run_is_one_plan_and_a_request_that_needs_a_look_is_refused(folder: Path) -> None:
    async with serving(configured(folder, "plans = 0"), writing(NEEDS_LOOK), folder) as service:
        view = await service.settled(Submission(request=COUNT, deterministic=True))
        assert view.error is not None
        assert (view.ending, view.error["code"], view.effects) == ("refused", "plan.cannot", ())

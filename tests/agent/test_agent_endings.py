"""How a request ends is told in the same words by the agent, the command line, durable runs and the server."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, ScriptedProvider
from bicameral.cli._output import EXIT_CODES, command_ending, exit_code
from bicameral.config import Config
from bicameral.durable import RunView, Submission
from bicameral.errors import BicameralError, BindError, ConfigError, IntentError, ModelError, PlanError, RunError
from bicameral.limits import REASONING, LimitUsage
from bicameral.models import ModelRequest
from bicameral.patterns import GaveUp
from bicameral.runs import EffectDone, Ending, Failed, Finished, RunOutcome, ending_of, ending_of_code
from surfaces import call, serving

CODES: list[tuple[str, Ending, int]] = [
    ("intent.questions", "asked", 4),
    ("intent.needs-endorsement", "asked", 4),
    ("plan.several", "asked", 4),
    ("bind.several-found", "asked", 4),
    ("bind.nothing-found", "asked", 4),
    ("run.needs-answer", "asked", 4),
    ("run.needs-approval", "asked", 4),
    ("plan.cannot", "refused", 3),
    ("plan.none", "refused", 3),
    ("plan.refused", "refused", 3),
    ("plan.invented-value", "refused", 3),
    ("plan.unasked-effect", "refused", 3),
    ("run.nothing-found", "refused", 3),
    ("bind.column-kind", "refused", 3),
    ("bind.too-many", "refused", 3),
    ("run.refused", "denied", 1),
    ("reason.declined", "denied", 1),
    ("intent.empty", "invalid", 2),
    ("plan.cannot-read", "invalid", 2),
    ("run.stopped", "stopped", 130),
    ("reason.interrupted", "stopped", 130),
    ("files.missing", "failed", 1),
    ("run.column-kind", "failed", 1),
    ("run.extraction-rejected", "failed", 1),
    ("run.cap", "failed", 1),
    ("models.unavailable", "failed", 1),
]
DONE = (EffectDone("1", "write_text", "write"),)
_NOW = datetime(2026, 3, 1, tzinfo=UTC)


def _view(code: str, effects: bool = False) -> RunView:
    done: Any = [each.to_json() for each in DONE] if effects else ()
    return RunView("r", "u", "x", "failed", _NOW, _NOW, 1, error={"code": code}, effects=done)


@pytest.mark.parametrize(("code", "ending", "exits"), CODES)
def test_every_surface_reads_the_same_table(code: str, ending: Ending, exits: int) -> None:
    error = RunError(code, "x")
    assert ending_of_code(code) == ending
    assert ending_of(error) == ending_of(Failed("r", error, "1", 0.0)) == _view(code).ending == ending
    assert GaveUp(run="r", way="reason", taken=LimitUsage(scope=REASONING), error=error).ending == ending
    assert EXIT_CODES[ending] == exit_code(error) == exits
    assert _view(code).to_json()["ending"] == ending


def test_after_an_effect_nothing_is_a_refusal() -> None:
    error = PlanError("plan.none", "x")
    taken = LimitUsage(scope=REASONING)
    assert ending_of(Failed("r", error, "1", 0.0, effects=DONE)) == "failed"
    assert GaveUp(run="r", way="reason", taken=taken, error=error, effects=DONE).ending == "failed"
    assert _view("plan.none", effects=True).ending == "failed"
    # A question stays one: it can still be answered.
    assert ending_of(Failed("r", RunError("run.needs-approval", "x"), "1", 0.0, effects=DONE)) == "asked"


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (ConfigError("config.unknown-key", "x"), "invalid"),
        (IntentError("intent.questions", "x"), "asked"),
        (BindError("bind.nothing-found", "x"), "asked"),
        (ModelError("models.unavailable", "x"), "failed"),
    ],
)
def test_a_command_also_knows_wrong_input(error: BicameralError, ending: Ending) -> None:
    assert command_ending(error) == ending


# On all surfaces ----------------------------------------------------------------------------------------------------

BILLS = "name,amount,state\nrent,900,open\npower,80,paid\n"
READ = 'rows = read_csv("bills_2026.csv")\n'


@dataclass(frozen=True)
class Case:
    """A request, the plan that the model writes for it, and how that ends where nobody can be asked."""

    request: str
    plan: str
    ending: Ending
    code: str = ""
    doubts: tuple[str, ...] = ()
    waits: bool = False
    """A durable run waits for the person instead."""


CASES = {
    "answer": Case("How many rows has bills_2026.csv?", READ + "answer(len(rows))\n", "answered"),
    "doubt": Case(
        "Total the amounts in bills_2026.csv where the state is late",
        READ + 'kept = filter_rows(rows, "state", "==", "late")\nanswer(sum(r["amount"] for r in kept))\n',
        "answered",
        doubts=("empty-selection",),
    ),
    "cannot": Case("Order a pizza from bills_2026.csv", 'cannot("there is no tool")\n', "refused", "plan.cannot"),
    "several": Case(
        "How many rows have the bills?",
        'rows = read_csv(file("bills"))\nanswer(len(rows))\n',
        "asked",
        "bind.several-found",
        waits=True,
    ),
    "nothing": Case(
        "How many rows have the invoices of the zoo?",
        'rows = read_csv(file("invoices of the zoo"))\nanswer(len(rows))\n',
        "asked",
        "bind.nothing-found",
        waits=True,
    ),
    "ask": Case(
        "How many rows has bills_2026.csv, times the number that I tell you?",
        READ + 'times = ask("How many times?", int)\nanswer(len(rows) * times)\n',
        "asked",
        "run.needs-answer",
        waits=True,
    ),
    "missing": Case("How many rows has no.csv?", 'rows = read_csv("no.csv")\nanswer(len(rows))\n', "failed"),
}


def reader(request: ModelRequest) -> str:
    """A quarantined model that never chooses."""
    return json.dumps({"value": "none"})


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    for year in (2025, 2026):
        (tmp_path / f"bills_{year}.csv").write_text(BILLS)
    (tmp_path / "bicameral.toml").write_text(
        '[journal]\nfile = "journal.db"\n[cache]\nfolder = "cache"\n[planning]\nplans = 0\nrounds = 1\n'
    )
    return Config.load(tmp_path / "bicameral.toml", base=tmp_path)


def agent_for(case: Case) -> Callable[[Config], Agent]:
    def make(config: Config) -> Agent:
        writes = ScriptedProvider(lambda request: case.plan, grammars=False)
        reads = ScriptedProvider(reader, grammars=False, chamber="quarantined")
        return Agent.from_config(config, privileged=writes, quarantined=reads, cache={})

    return make


@pytest.mark.parametrize("name", CASES)
async def test_the_agent_says_how_it_ended(world: Config, name: str) -> None:
    case = CASES[name]
    found: RunOutcome | BicameralError
    async with agent_for(case)(world) as agent:
        try:
            found = await agent.run(case.request, deterministic=True)
        except BicameralError as raised:
            found = raised
    assert ending_of(found) == case.ending, found
    error = found.error if isinstance(found, Failed) else found
    if case.code:
        assert isinstance(error, BicameralError)
        assert error.code == case.code
    if isinstance(found, Finished):
        assert tuple(doubt.code for doubt in found.doubts) == case.doubts


# A round that failed is followed by another until the limit, so that case ends otherwise.
@pytest.mark.parametrize(
    ("name", "rounds"),
    [*((name, ()) for name in CASES), *((name, ("--rounds", "2")) for name in CASES if name != "missing")],
)
def test_the_command_line_says_it_by_exit_code_and_in_json(world: Config, name: str, rounds: tuple[str, ...]) -> None:
    case = CASES[name]
    result = call(world, agent_for(case), "run", "--deterministic", "--json", *rounds, case.request)
    assert result.exit_code == EXIT_CODES[case.ending], result.output
    told = json.loads(result.stdout)
    assert (told["ok"], told["ending"]) == (case.ending == "answered", case.ending)
    if case.code:
        assert told["error"]["code"] == case.code
    if case.ending == "answered":
        assert [doubt["code"] for doubt in told["doubts"]] == list(case.doubts)


async def test_durable_runs_and_the_server_say_it_too(world: Config, tmp_path: Path) -> None:
    plans = {case.request: case.plan for case in CASES.values()}

    def make(config: Config) -> Agent:
        def write(request: ModelRequest) -> str:
            return next(plan for said, plan in plans.items() if said in request.messages[-1].text)

        writes = ScriptedProvider(write, grammars=False)
        reads = ScriptedProvider(reader, grammars=False, chamber="quarantined")
        return Agent.from_config(config, privileged=writes, quarantined=reads, cache={})

    async with serving(world, make, tmp_path) as service:
        for name, case in CASES.items():
            view = await service.settled(Submission(request=case.request, deterministic=True))
            assert view.ending == case.ending, (name, view)
            assert (view.state == "waiting") is case.waits, (name, view)
            assert [doubt["code"] for doubt in view.doubts] == list(case.doubts)
            told = await service.ask("GET", f"/v1/runs/{view.run}")
            assert told["ending"] == case.ending
            if case.code and not case.waits:
                assert told["error"]["code"] == case.code
            planned = await service.ask("POST", "/v1/plans", json={"request": case.request, "deterministic": True})
            if case.code.startswith(("plan.", "bind.")):
                # Not the fault of the server, which a status of 503 would say.
                assert (planned["ok"], planned["ending"], planned["error"]["code"]) == (False, case.ending, case.code)
            else:
                assert planned["ok"]


async def test_a_durable_run_goes_on_with_what_the_person_says_is_meant(world: Config, tmp_path: Path) -> None:
    case = CASES["several"]
    async with serving(world, agent_for(case), tmp_path) as service:
        view = await service.settled(Submission(request=case.request, deterministic=True), ["1"])
        assert (view.ending, view.answer) == ("answered", 2), view


async def test_the_words_of_a_submitted_plan_are_bound(world: Config, tmp_path: Path) -> None:
    source = 'rows = read_csv(file("bills of 2026"))\nanswer(len(rows))\n'
    async with serving(world, agent_for(CASES["answer"]), tmp_path) as service:
        checked = await service.ask("POST", "/v1/checks", json={"plan": source})
        assert checked["ok"], checked
        assert checked["bindings"][0]["value"] == "bills_2026.csv"
        submitted = await service.client.post("/v1/runs", json={"plan": source})
        assert submitted.status_code == 202, submitted.text
        told = await service.ask("GET", f"/v1/runs/{submitted.json()['run']}?wait=30")
        assert (told["ending"], told["answer"]) == ("answered", 2)
        unclear = await service.client.post("/v1/runs", json={"plan": source.replace(" of 2026", "")})
        assert (unclear.status_code, unclear.json()["error"]["code"]) == (409, "bind.several-found")

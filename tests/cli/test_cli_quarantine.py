"""The variants of the quarantine at the command line and in workers: chosen, shown, recorded and counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from cli_world import World
from click.testing import CliRunner, Result

from bicameral.agent import Agent
from bicameral.cli import main
from bicameral.config import Config, load_config
from bicameral.durable import Runs, Worker
from bicameral.models import ModelRequest, ScriptedProvider

NOTE = 'text = read_text("mail.txt")\nnote = extract(text, "what is said about the invoice", str)\nanswer(note)\n'
DUE = 'text = read_text("mail.txt")\ndue = extract(text, "the amount that is due", int)\nanswer(due)\n'
TRIPLE = '[quarantine]\nvariant = "triple"\n'
READS = '[quarantine]\nvariant = "read-only"\nreads = ["read_text"]\n'
REQUEST = "What does mail.txt say about the invoice?"


def models(plan: str, verdict: str = "data") -> Callable[[Config], Agent]:
    """Agents as configured: one model writes this plan, the other one reads, validates and looks things up."""

    def read(request: ModelRequest) -> str:
        prompt = request.messages[-1].text
        if "only state facts" in prompt:
            return json.dumps({"value": verdict})
        if "the one of these that can look up" in prompt:
            return json.dumps({"value": "read_text"})
        if "is to be called with" in prompt:
            return json.dumps({"path": "invoice.txt"})
        if "amount that is due" in prompt:
            return '{"value": 120}' if "Amount due" in prompt else '{"not_found": "value", "because": "absent"}'
        return '{"value": "it is open"}'

    def make(config: Config) -> Agent:
        return Agent.from_config(
            config,
            privileged=ScriptedProvider([plan], grammars=False),
            quarantined=ScriptedProvider(read, grammars=False, name="reader"),
        )

    return make


@pytest.fixture
def folder(world: World) -> World:
    world.write("mail.txt", "The invoice 7 is open. See invoice.txt.\n")
    world.write("invoice.txt", "Amount due: 120\n")
    return world


def call(make: Callable[[Config], Agent], *words: str) -> Result:
    return CliRunner().invoke(main, list(words), obj=make)


def told(make: Callable[[Config], Agent], *words: str, code: int = 0) -> dict[str, Any]:
    done = call(make, *words, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_an_option_chooses_the_variant_and_the_run_reports_it(folder: World) -> None:
    make = models(NOTE)
    plain = told(make, "run", REQUEST)
    assert plain["executor"] == {"variant": "extract", "model": "reader"}
    triple = told(make, "run", REQUEST, "--quarantine-variant", "triple")
    assert triple["answer"] == "it is open"
    assert triple["executor"] == {"variant": "triple", "model": "reader", "validators": ["rules", "reader"]}
    shown = folder.json("runs", "show", triple["run"])
    assert shown["events"][0]["body"]["executor"] == triple["executor"]
    (read,) = (each["body"] for each in shown["events"] if each["kind"] == "step-finished" and each["step"] == "1")
    assert read["verdicts"] == [{"validator": "rules", "said": "data"}, {"validator": "reader", "said": "data"}]
    assert "(rules: data, reader: data)" in folder.call("runs", "show", triple["run"]).stdout


def test_the_calls_of_validators_are_counted_apart(folder: World) -> None:
    run = told(models(NOTE), "run", REQUEST, "--quarantine-variant", "triple")["run"]
    costs = folder.json("usage", run)["costs"]
    assert (costs["quarantined"]["calls"], costs["validator"]["calls"]) == (1, 1)
    plain = told(models(NOTE), "run", REQUEST)["run"]
    assert "validator" not in folder.json("usage", plain)["costs"]


def test_a_validator_that_refuses_ends_the_run_and_says_that_they_disagree(folder: World) -> None:
    done = call(models(NOTE, "instructions"), "run", REQUEST, "--quarantine-variant", "triple")
    assert done.exit_code != 0
    assert "the validators disagree: 1 of 2 say no" in done.stderr
    assert "[run.validators-disagree]" in done.stderr
    facts = json.loads(
        call(models(NOTE, "instructions"), "run", REQUEST, "--quarantine-variant", "triple", "--json").stdout
    )
    assert facts["error"]["code"] == "run.validators-disagree"
    assert facts["usage"]["rejected"] == {"disputed": 1}


def test_what_was_looked_up_is_shown_in_the_record(folder: World) -> None:
    config = folder.write("reads.toml", READS)
    done = call(models(DUE), "run", REQUEST, "--config", config)
    assert (done.exit_code, done.stdout) == (0, "120\n")
    assert "quarantine: read-only: reader, which may call read_text" in done.stderr
    record = folder.call("runs", "show", "last").stdout
    assert 'read_text {"path": "invoice.txt"}' in record
    assert 'read_text: "Amount due: 120' in record


def test_explain_and_plan_say_how_texts_are_read(folder: World) -> None:
    folder.write("plan.py", NOTE)
    triple = folder.json("explain", "plan.py", "--quarantine-variant", "triple")
    assert triple["executor"]["variant"] == "triple"
    assert "is checked by rules, local:" in " ".join(triple["summary"])
    config = folder.write("reads.toml", READS)
    looked = folder.call("explain", "plan.py", "--config", config).stdout
    assert "may look up by itself with read_text (read-only)" in looked
    assert "(read-only)" not in folder.call("explain", "plan.py").stdout
    planned = told(models(NOTE), "plan", REQUEST, "--quarantine-variant", "triple")
    assert planned["executor"]["variant"] == "triple"


def test_a_conversation_has_the_variant_too(folder: World) -> None:
    done = CliRunner().invoke(
        main, ["chat", "--json", "--quarantine-variant", "triple"], obj=models(NOTE), input=f"{REQUEST}\n"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[0])["executor"]["variant"] == "triple"


@pytest.mark.parametrize("words", [("run", REQUEST), ("plan", REQUEST), ("explain", REQUEST), ("doctor",)])
def test_a_mistake_in_the_configuration_stops_every_command(folder: World, words: tuple[str, ...]) -> None:
    config = folder.write("bad.toml", '[quarantine]\nvariant = "read-only"\nreads = ["fetch_page"]\n')
    done = call(models(NOTE), *words, "--config", config)
    assert done.exit_code != 0
    assert "config.not-for-executor" in done.output


def test_a_worker_reads_with_the_configured_variant(folder: World) -> None:
    folder.write("bicameral.toml", TRIPLE)
    folder.write("plan.py", NOTE)
    run = folder.json("submit", "--plan", "plan.py")["run"]

    async def work() -> None:
        config = load_config()
        stop = asyncio.Event()

        def ended(_: str, state: str, __: str | None) -> None:
            if state in ("finished", "failed"):
                stop.set()

        async with await Runs.open(config) as runs, aclosing(models(NOTE)(config)) as agent:
            await asyncio.wait_for(Worker(runs, agent, observer=ended).run(stop), 60)

    asyncio.run(work())
    shown = folder.json("runs", "show", run)
    assert shown["events"][0]["body"]["executor"]["variant"] == "triple"
    assert shown["events"][-1]["body"]["answer"] == "it is open"

"""`bicameral patterns`: the catalogue as people and programs read it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_terminal import Terminal
from cli_world import MAIL, PLAN, REQUEST, World
from click.testing import CliRunner

from bicameral.agent import Agent
from bicameral.catalog import CATEGORIES, IDS, PatternFacts, catalog, plain_record
from bicameral.catalog.facts._reader import DataPlace, read_record
from bicameral.cli import main
from bicameral.cli.commands.patterns import pattern_page
from bicameral.config import Config
from bicameral.documents import YamlDocument
from bicameral.models import ScriptedProvider
from bicameral.patterns import IMPLEMENTED, PRODUCT

PROGRAM = str(Path(sys.executable).with_name("bicameral"))


def test_all_patterns_are_listed_by_category(world: World) -> None:
    lines = world.call("patterns").stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(CATEGORIES)
    assert [line.split()[0] for line in lines if line.startswith(" ")] == list(IDS)
    told = world.json("patterns", "list")["patterns"]
    assert [each["id"] for each in told] == list(IDS)
    assert all(each["name"] and each["what"] for each in told)


def test_a_category_is_listed_alone(world: World) -> None:
    told = world.json("patterns", "list", "--category", "integration")["patterns"]
    assert [each["id"] for each in told] == ["I1", "I2", "I3", "I4", "I5", "I6"]
    error = world.json("patterns", "list", "--category", "integraton", code=2)["error"]
    assert (error["code"], error["nearest"]) == ("catalog.unknown-category", "integration")


def test_those_that_can_be_run_are_marked_and_can_be_listed_alone(world: World) -> None:
    told = world.json("patterns", "list", "--implemented")["patterns"]
    assert {each["id"] for each in told} == {*IMPLEMENTED, *PRODUCT}
    classes = {id: where.partition(":")[2] for id, where in IMPLEMENTED.items()} | dict(PRODUCT)
    assert all(classes[each["id"]] == each["implemented"] for each in told)
    everyone = {each["id"]: each["implemented"] for each in world.json("patterns", "list")["patterns"]}
    assert {id for id, where in everyone.items() if where} == {*IMPLEMENTED, *PRODUCT}
    lines = world.call("patterns", "list").stdout.splitlines()
    assert {line.split()[0] for line in lines if line[6:7] == "•"} == {*IMPLEMENTED, *PRODUCT}


def test_a_pattern_is_shown_with_what_it_needs_clashes_with_and_costs(world: World) -> None:
    shown = world.call("patterns", "show", "o6").stdout
    assert shown.startswith("O6  Orchestrator-Workers  (orchestration")
    for said in (
        "Not when\n  the parts are the same every time: O2 Prompt Chaining or O4 Parallelization",
        "Orchestrator (model, large) writes a brief",
        "max_workers = 5 (1 to 10): workers",
        "Needs\n  O17 (hard): ",
        "Clashes\n  CONN_F ",
        "for a small task: 5 model calls, at most 7",
        "M6 Subagent decomposition bounds context",
        "Grows to\n  O7 Supervisor Hierarchy, O11 Blackboard System",
    ):
        assert said in shown
    told = world.json("patterns", "show", "O6")["pattern"]
    assert told["cost"]["sessions"][1]["calls"] == "min(items, max_workers)"
    assert "O17" in {id for each in told["requirements"] for id in each["all_of"]}
    assert {"ORC1", "ORC2"} <= {each["id"] for each in told["conflicts"]}
    assert "O7" in told["grows_to"]


def test_every_pattern_has_a_page_that_fits_the_terminal() -> None:
    for pattern in catalog().patterns.values():
        for width in (100, 60):
            first, *lines = pattern_page(pattern, width)
            assert pattern.name in first
            assert max(map(len, lines)) <= width, pattern.id
            assert all("None" not in line.split() for line in lines), pattern.id


def test_the_json_of_a_pattern_reads_back_as_the_same_pattern() -> None:
    for pattern in catalog().patterns.values():
        told = YamlDocument(Path("json"), [json.loads(json.dumps(plain_record(pattern)))])
        assert read_record(PatternFacts, DataPlace(told, (0,))) == pattern


def test_a_misspelt_id_is_told_with_the_nearest(world: World) -> None:
    error = world.json("patterns", "show", "O66", code=2)["error"]
    assert (error["code"], error["nearest"]) == ("catalog.unknown-pattern", "O6")
    assert "Did you mean 'R17'" in world.call("patterns", "show", "S7").output
    assert "Did you mean 'O3'" in world.call("patterns", "show", "Routng").output


def test_patterns_are_found_by_words(world: World) -> None:
    told = world.json("patterns", "search", "routing", "inputs", "--limit", "2")["patterns"]
    assert told[0]["id"] == "O3"
    assert told[0]["words"] == ["routing", "inputs"]
    assert len(told) == 2
    assert world.call("patterns", "search", "blackbord").stdout.startswith("O11")
    nothing = world.call("patterns", "search", "qqqqqq")
    assert nothing.exit_code == 0
    assert "no pattern fits" in nothing.stderr
    assert world.json("patterns", "search", "qqqqqq")["patterns"] == []
    assert world.call("patterns", "search").exit_code == 2


def test_words_that_look_like_control_codes_do_no_harm(world: World) -> None:
    for words in ("\x1b[31mred", "[bold]", "--", "%s", "{0}"):
        assert world.call("patterns", "search", "--", words).exit_code == 0
    assert world.call("patterns", "show", "[bold]O6[/bold]").exit_code == 2


def test_a_terminal_gets_headings_and_a_pipe_plain_text(world: World, terminals: list[Terminal]) -> None:
    terminal = Terminal("patterns", "show", "O6")
    terminals.append(terminal)
    terminal.wait_for("Sources")
    assert terminal.end() == 0
    assert "\x1b[1mNeeds\x1b[0m" in terminal.shown
    piped = subprocess.run([PROGRAM, "patterns", "show", "O6"], capture_output=True, text=True, timeout=60, check=True)
    assert "\x1b" not in piped.stdout
    quiet = Terminal("patterns", "show", "O6", NO_COLOR="1")
    terminals.append(quiet)
    quiet.wait_for("Sources")
    assert quiet.end() == 0
    assert "\x1b[36m" not in quiet.shown


def test_the_shell_is_told_ids_and_categories(world: World) -> None:
    def completed(words: str, position: int) -> list[str]:
        variables = {"_BICAMERAL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)}
        done = subprocess.run([PROGRAM], env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert completed("bicameral patterns show i", 3) == ["I1", "I2", "I3", "I4", "I5", "I6"]
    assert completed("bicameral patterns list --category hu", 4) == ["humanizer"]
    assert {"list", "search", "show"} <= set(completed("bicameral patterns ", 2))


@pytest.mark.parametrize("words", [("patterns", "show", "O6"), ("patterns", "list"), ("patterns", "search", "judge")])
def test_an_answer_comes_at_once(world: World, words: tuple[str, ...]) -> None:
    def used() -> float:
        """Seconds of the processor, so that what else the machine does is not counted."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([PROGRAM, *words], capture_output=True, timeout=60, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(used() for _ in range(3)) < 1


# The pattern that the runtime itself is

EXAMPLE_PLAN = 'text = read_text("invoice.txt")\ndue = extract(text, "the amount that is due", int)\nanswer(due)\n'


def with_models(plan: str, reads: str) -> Callable[[Config], Agent]:
    """Agents as configured, with a model that writes this plan and one that fills in forms so."""

    def make(config: Config) -> Agent:
        return Agent.from_config(
            config,
            privileged=ScriptedProvider([plan], grammars=False),
            quarantined=ScriptedProvider(lambda request: reads, grammars=False),
        )

    return make


def test_the_dual_llm_is_shown_as_the_runtime_itself(world: World) -> None:
    shown = world.call("patterns", "show", "V4").stdout
    assert shown.startswith("V4  Dual LLM  (reliability, can be run)")
    assert "from bicameral import Agent" in shown
    told = world.json("patterns", "show", "v4")["pattern"]
    assert told["implemented"] == "Agent"


def test_the_dual_llm_does_a_request_as_run_does_it(world: World) -> None:
    world.write("mail.txt", MAIL)
    told = world.json("patterns", "run", "V4", REQUEST, script=[PLAN])
    same = world.json("run", REQUEST, script=[PLAN])
    assert (told["pattern"], told["answer"], told["ok"]) == ("V4", same["answer"], True)
    assert told["plan"] == same["plan"]
    assert told["executor"]["variant"] == "extract"
    shown = world.json("runs", "show", told["run"])
    assert shown["events"][0]["body"]["request"] == REQUEST


def test_the_dual_llm_is_compiled_whatever_strategy_is_configured(world: World) -> None:
    world.write("mail.txt", MAIL)
    config = world.write("react.toml", '[agent]\nplanning_strategy = "native_react"\n')
    told = world.json("patterns", "run", "V4", REQUEST, "--config", config, script=[PLAN])
    assert told["plan"]["steps"]


def test_the_example_of_the_dual_llm_comes_out_right(world: World) -> None:
    done = CliRunner().invoke(main, ["patterns", "run", "V4"], obj=with_models(EXAMPLE_PLAN, '{"value": 480}'))
    assert (done.exit_code, done.stdout) == (0, "480\n")
    assert "as it should be" in done.stderr
    assert not (world.folder / "invoice.txt").exists()


@pytest.mark.parametrize("reads", ['{"value": "delete notes.txt"}', '{"value": 0}', "delete_file('notes.txt')"])
def test_a_reader_that_obeys_the_invoice_does_no_harm_and_is_not_called_right(world: World, reads: str) -> None:
    done = CliRunner().invoke(main, ["patterns", "run", "V4", "--json"], obj=with_models(EXAMPLE_PLAN, reads))
    assert done.exit_code != 0
    told = json.loads(done.stdout)
    assert told["effects"] == []


@pytest.mark.parametrize(
    ("knob", "code"),
    [
        ("max_string=100", "pattern.bad-knob"),
        ("max_turns=many", "pattern.bad-knob"),
        ("max_turns=0", "pattern.bad-knob"),
        ("max_turn=2", "catalog.unknown-knob"),
    ],
)
def test_only_the_rounds_of_the_dual_llm_can_be_set(world: World, knob: str, code: str) -> None:
    done = world.call("patterns", "run", "V4", "something", "--knob", knob, "--json", script=[PLAN])
    assert (done.exit_code != 0, json.loads(done.stdout)["error"]["code"]) == (True, code)


def test_the_dual_llm_is_a_class_among_the_patterns_too() -> None:
    from bicameral.patterns import DualModel, pattern_class

    assert pattern_class("V4") is DualModel

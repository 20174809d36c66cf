"""`bicameral advise`: facts from a file, from the line, or asked for; a stack with its reasons comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_terminal import Terminal
from cli_world import World

from bicameral.catalog.advice import advise, questions
from bicameral.catalog.lint import lint
from bicameral.catalog.stacks import read_stack

FACTS = """\
tools: 4
calls_independent: true
irreversible_actions: [send_mail]
format_consistency: 0.97
"""


def test_facts_come_from_a_file_and_from_the_line(world: World) -> None:
    world.write("facts.yaml", FACTS)
    told = world.json("advise", "--facts", "facts.yaml", "--fact", "tools=12", "--fact", "external_input=yes")
    known = {**told["facts"]}
    assert known == {
        "tools": 12,
        "calls_independent": True,
        "irreversible_actions": ["send_mail"],
        "format_consistency": 0.97,
        "external_input": True,
    }
    assert told["patterns"] == list(advise(known).patterns)
    assert {"R5", "V1", "V5", "V13"} <= set(told["patterns"])


def test_a_person_reads_the_rule_and_the_fact_behind_each_pattern(world: World) -> None:
    said = world.call("advise", "--fact", "tools=4", "--fact", "calls_independent=yes").stdout
    assert "R5   ReWOO" in said
    assert "(reasoning.one-plan, D1, CRIT1); tools: 4, calls_independent: yes" in said
    assert "R4   R5 does it" in said
    assert "not settled" in said
    assert "! untrusted_content: Does it read what strangers wrote? yes: + V5; yes: + V6" in said
    assert "  1. V9, V14" in said


def test_the_stack_is_written_and_the_linter_finds_no_error(world: World) -> None:
    said = world.call(
        "advise", "--fact", "tools=30", "--fact", "subtasks=3", "--fact", "subtasks_vary=yes", "--write", "s.yaml"
    )
    assert said.exit_code == 0
    stack = read_stack(Path("s.yaml"))
    assert lint(stack).of_severity("error") == ()
    assert {"O6", "O17", "I3", "V13"} <= {use.id for member in stack.members for use in member.uses}
    assert world.call("lint", "s.yaml").exit_code == 0
    assert world.call("estimate", "s.yaml").exit_code == 0


def test_shares_and_names_can_be_typed_as_people_write_them(world: World) -> None:
    told = world.json(
        "advise",
        "--fact",
        "format_consistency=85%",
        "--fact",
        "irreversible_actions=pay, send",
        "--fact",
        "corpus_tokens=1,000,000",
    )["facts"]
    assert told == {"format_consistency": 0.85, "irreversible_actions": ["pay", "send"], "corpus_tokens": 1_000_000}
    assert world.json("advise", "--fact", "irreversible_actions=none")["facts"] == {"irreversible_actions": []}


@pytest.mark.parametrize(
    ("fact", "code", "nearest"),
    [
        ("tols=4", "catalog.unknown-fact", "tools"),
        ("tools=many", "catalog.bad-fact", None),
        ("quality_gap=7", "catalog.bad-fact", None),
        ("stakes=hihg", "catalog.bad-fact", "high"),
        ("tools", "cli.usage", None),
    ],
)
def test_a_wrong_fact_is_told(world: World, fact: str, code: str, nearest: str | None) -> None:
    error = world.json("advise", "--fact", fact, code=2)["error"]
    assert (error["code"], error.get("nearest")) == (code, nearest)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("tools: 4\ntols: 3\n", "catalog.unknown-fact", 2),
        ("\nquality_gap: 12\n", "catalog.bad-fact", 2),
        ("tools: 4\ntools: 5\n", "config.bad-yaml", 2),
        ("- tools\n", "config.bad-yaml", 1),
    ],
)
def test_a_wrong_file_is_told_with_the_line(world: World, text: str, code: str, line: int) -> None:
    world.write("facts.yaml", text)
    error = world.json("advise", "--facts", "facts.yaml", code=2)["error"]
    assert (error["code"], error["place"]["line"]) == (code, line)


def test_a_file_that_is_not_there_is_told(world: World) -> None:
    assert world.json("advise", "--facts", "none.yaml", code=2)["error"]["code"] == "catalog.cannot-read"
    world.write("long.yaml", "# " + "x" * 100_000)
    assert world.json("advise", "--facts", "long.yaml", code=2)["error"]["code"] == "catalog.cannot-read"
    assert world.json("advise", "--write", "no/such/folder.yaml", code=2)["error"]["code"] == "catalog.cannot-write"


def test_all_facts_can_be_listed(world: World) -> None:
    lines = world.call("advise", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(questions())
    assert [each["name"] for each in world.json("advise", "--list")["facts"]] == list(questions())


def test_nobody_is_asked_without_a_terminal(world: World) -> None:
    said = world.call("advise", stdin="yes\nyes\n")
    assert said.exit_code == 0
    assert "?" not in said.stderr
    assert said.stdout.startswith("The smallest stack that is enough for what is known (not settled")


def test_at_a_terminal_one_question_comes_after_the_other(world: World, terminals: list[Terminal]) -> None:
    terminal = Terminal("advise", "--fact", "tools=3", "--write", "told.yaml")
    terminals.append(terminal)
    terminal.wait_for("Does it read what strangers wrote? (yes or no)")
    assert "why: " in terminal.shown
    terminal.type("perhaps\n")
    terminal.wait_for("that is not yes or no")
    terminal.type("yes\n")
    terminal.wait_for("+ V6 Prompt Injection Shield")
    waiting = [each.question.ask for each in advise({"tools": 3, "untrusted_content": True}).open if each.first]
    terminal.wait_for(waiting[0])
    terminal.type("\n")
    terminal.wait_for(waiting[1])
    terminal.type("done\n")
    terminal.wait_for("In this order")
    assert terminal.end() == 0
    assert "V6" in {use.id for use in read_stack(Path("told.yaml")).whole.uses}


def test_the_end_of_input_ends_the_questions(world: World, terminals: list[Terminal]) -> None:
    terminal = Terminal("advise")
    terminals.append(terminal)
    terminal.wait_for("? ")
    terminal.type("\x04")
    terminal.wait_for("In this order")
    assert terminal.end() == 0


def test_at_a_terminal_nothing_is_asked_if_that_is_not_wanted(world: World, terminals: list[Terminal]) -> None:
    terminal = Terminal("advise", "--no-ask")
    terminals.append(terminal)
    terminal.wait_for("In this order")
    assert terminal.end() == 0
    assert "Enter skips" not in terminal.shown

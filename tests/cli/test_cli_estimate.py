"""`bicameral estimate`: what a stack, patterns or a plan would take, told before anything runs."""

from __future__ import annotations

import pytest
from cli_world import World

from bicameral.agent import check_plan
from bicameral.agent._wiring import worst_case
from bicameral.catalog.costs import LOCAL_RATES, estimate
from bicameral.cli.commands.check import read_plan
from bicameral.config import load_config, open_policy, open_registry
from bicameral.limits import known_prices
from bicameral.models import Usage

STACK = """\
name: Mail triage
patterns: [V9, V14, O6, O17]
agents:
  worker: {patterns: [R4], tools: {count: 3, schema_tokens: 450}, model: "openai:gpt-4.1-mini"}
"""
PLAN = """\
lines = read_lines("mail.txt")
found = []
for line in lines:
    found.append(extract(line, "the amount that is due", float | None))
answer(found)
"""


def test_patterns_are_told_part_by_part_expected_and_at_worst(world: World) -> None:
    said = world.call("estimate", "r4", "V9", "--size", "steps=3")
    assert said.exit_code == 0
    lines = said.stdout.splitlines()
    assert lines[0] == "R4, V9: one run, expected / at worst"
    agent = next(line for line in lines if line.startswith("R4 Agent"))
    assert "3 / 8" in agent
    assert "without a model: V9" in said.stdout
    assert "`bicameral usage` tells what was spent" in said.stderr


def test_a_program_gets_the_same_numbers(world: World) -> None:
    told = world.json("estimate", "O6", "O17", "R4", "--set", "R4.max_steps=5", "--size", "items=2")
    found = estimate(["O6", "O17", {"R4": {"max_steps": 5}}], {"items": 2}, LOCAL_RATES)
    assert told["expected"] == found.expected.to_json()
    assert told["worst"] == found.worst.to_json()
    assert told["sizes"]["items"] == 2
    assert [part["role"] for part in told["parts"]] == [part.role for part in found.parts]
    assert told["models"]["small"].startswith("local:qwen2.5-coder-0.5b")


def test_prices_are_those_of_the_table_and_a_month_has_thirty_days(world: World) -> None:
    told = world.json("estimate", "S1", "--model", "openai:gpt-4.1", "--calls", "1000")
    price = known_prices().of("openai:gpt-4.1")
    assert price is not None
    assert told["expected"]["money"] == pytest.approx(price.of(Usage(prompt=600, output=300)))
    assert told["month"]["runs"] == 30_000
    assert told["month"]["expected"] == pytest.approx(30_000 * told["expected"]["money"])
    assert told["currency"] == "USD"


def test_a_class_of_models_can_be_named_alone(world: World) -> None:
    told = world.json("estimate", "R5", "--model", "small=openai:gpt-5-nano", "--speed", "1000", "50")
    models = {part["role"]: part["model"] for part in told["parts"]}
    assert models["Solver"] == "openai:gpt-5-nano"
    assert models["Planner"].startswith("local:")
    solver = next(part for part in told["parts"] if part["role"] == "Solver")
    assert solver["expected"]["seconds"] == pytest.approx(1500 / 1000 + 300 / 50)


def test_a_price_that_nobody_knows_is_not_nothing(world: World) -> None:
    said = world.call("estimate", "S1", "--model", "openai:gpt-99", "--calls", "10")
    assert "price not known: openai:gpt-99" in said.stdout
    assert "10 runs a day: price not known a month" in said.stdout
    assert world.json("estimate", "S1", "--model", "openai:gpt-99")["expected"]["money"] is None


def test_a_stack_is_read_from_its_file(world: World) -> None:
    world.write("stack.yaml", STACK)
    told = world.json("estimate", "stack.yaml")
    assert told["of"] == "Mail triage"
    worker = next(part for part in told["parts"] if part["role"] == "Agent")
    assert (worker["agent"], worker["model"], worker["inside"]) == ("worker", "openai:gpt-4.1-mini", ["O6"])
    # 400 of setup, 450 of tools, 250 of brief, and 600 more with each of four steps, for three workers.
    assert worker["expected"]["prompt"] == 3 * (4 * 1100 + 600 * 6)
    assert "worker: R4 Agent" in world.call("estimate", "stack.yaml").stdout


def test_a_plan_is_counted_as_the_check_counts_it(world: World) -> None:
    file = world.write("due.py", PLAN)
    told = world.json("estimate", file, "--size", "items=4", "--size", "document=50")
    assert (told["expected"]["calls"], told["expected"]["tools"]) == (4, 1)
    assert any("lists of unknown length" in note for note in told["notes"])
    config = load_config()
    registry = open_registry(config)
    plan = read_plan(file, registry).plan
    report = check_plan(plan, registry, open_policy(config, registry), limits=config.plan_limits).report
    worst = worst_case(report, ["local:0.5b"], known_prices())
    assert told["worst"]["calls"] == worst.calls
    assert told["worst"]["prompt"] + told["worst"]["output"] == worst.tokens
    assert told["worst"]["money"] == worst.money == 0


def test_the_length_of_a_list_counts_where_it_is_known(world: World) -> None:
    file = world.write("due.py", PLAN.replace("in lines:", "in lines[:2]:"))
    told = world.json("estimate", file)
    assert (told["expected"]["calls"], told["worst"]["calls"]) == (2, 4)
    priced = world.json("estimate", file, "--model", "small=openai:gpt-5-nano")
    price = known_prices().of("openai:gpt-5-nano")
    assert price is not None
    assert priced["worst"]["money"] == pytest.approx(4 * price.worst_case(16_000, 1_024))


def test_a_plan_without_blanks_asks_no_model(world: World) -> None:
    told = world.json("estimate", world.write("plain.py", 'lines = read_lines("mail.txt")\nanswer(lines)\n'))
    assert (told["worst"]["calls"], told["worst"]["tools"]) == (0, 1)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("R44",), "catalog.unknown-pattern", "R4"),
        (("R4", "--size", "step=3"), "catalog.unknown-size", "steps"),
        (("R4", "--size", "steps=-3"), "catalog.bad-number", None),
        (("R4", "--set", "R4.max_step=3"), "catalog.unknown-knob", "max_steps"),
        (("R4", "--model", "larg=x"), "catalog.unknown-model", "large"),
        (("none.yaml",), "stack.cannot-read", None),
        (("none.py",), "plan.cannot-read", None),
        (("R4", "--size", "steps"), "cli.usage", None),
        (("R4", "--set", "max_steps=3"), "cli.usage", None),
        (("R4", "--set", "R5.max_calls=3"), "cli.usage", None),
    ],
)
def test_what_cannot_be_counted_is_told(world: World, words: tuple[str, ...], code: str, said: str | None) -> None:
    error = world.json("estimate", *words, code=2)["error"]
    assert error["code"] == code
    assert error.get("nearest") == said


def test_a_plan_that_does_not_check_is_not_counted(world: World) -> None:
    file = world.write("bad.py", "answer(nothing)\n")
    assert world.call("estimate", file).exit_code == 3


@pytest.mark.parametrize(("old", "new", "words"), [("cost", "estimate", ["S1"]), ("costs", "usage", [])])
def test_the_old_names_of_commands_work_and_say_so(world: World, old: str, new: str, words: list[str]) -> None:
    before = world.call(old, *words)
    assert before.exit_code == 0
    assert f"`bicameral {old}` is now `bicameral {new}`" in before.stderr
    assert before.stdout == world.call(new, *words).stdout
    assert world.json(old, *words) == world.json(new, *words)
    listed = world.call("--help").stdout
    assert f"  {new} " in listed
    assert f"  {old} " not in listed

"""`bicameral build`: Python for a stack, on standard output or in a new file."""

from __future__ import annotations

import json

from cli_world import World

STACK = "name: Figures\nruntime: bicameral\npatterns: [{O2: {inner: [R5, S6]}}]\n"


def test_the_module_is_printed(world: World) -> None:
    world.write("figures.yaml", STACK)
    result = world.call("build", "figures.yaml")
    assert result.exit_code == 0
    compile(result.stdout, "figures.py", "exec")
    assert "return ReWOO() | OutputTemplate(wanted=wanted)" in result.stdout


def test_the_module_is_written_to_a_new_file_and_overwrites_none(world: World) -> None:
    world.write("figures.yaml", STACK)
    assert world.call("build", "figures.yaml", "-o", "figures.py").exit_code == 0
    again = world.call("build", "figures.yaml", "-o", "figures.py")
    assert again.exit_code == 2
    assert "there already" in again.stderr


def test_a_stack_with_errors_is_refused_with_the_findings(world: World) -> None:
    world.write("coder.yaml", "patterns:\n  - R13\n")
    result = world.call("build", "coder.yaml", "-o", "coder.py")
    assert result.exit_code == 1
    assert "coder.yaml:2:5: error: V8 (Tool Sandboxing) is missing" in result.stdout
    assert world.call("build", "coder.yaml", "--json").exit_code == 1


def test_what_has_no_place_is_an_error_with_its_line(world: World) -> None:
    world.write("odd.yaml", "runtime: bicameral\npatterns:\n  - R4: {inner: S6}\n")
    result = world.call("build", "odd.yaml")
    assert result.exit_code == 2
    assert "odd.yaml, line 3" in result.stderr
    assert "stack.no-place" in result.stderr


def test_as_json_there_is_the_source(world: World) -> None:
    world.write("figures.yaml", STACK)
    found = json.loads(world.call("build", "figures.yaml", "--json").stdout)
    assert found["ok"]
    assert found["source"].startswith('"""Figures')


def test_an_advised_stack_is_linted_estimated_and_built(world: World) -> None:
    facts = ("--fact", "tools=2", "--fact", "calls_independent=true")
    world.call("advise", "--no-ask", "--runtime", "bicameral", *facts, "--write", "advised.yaml")
    assert world.call("lint", "advised.yaml").exit_code == 0
    assert world.call("estimate", "advised.yaml").exit_code == 0
    result = world.call("build", "advised.yaml")
    assert result.exit_code == 0
    assert "return ReWOO()" in result.stdout

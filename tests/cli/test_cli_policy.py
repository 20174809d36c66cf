"""`bicameral policy`: what holds, whether it says what it should, and what it would say of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import PLAN as RUN_PLAN, REQUEST, World

OWN = '@id("stays") forbid (principal, action, resource in Tool::"write_text");\n'
CASE = """
[[case]]
name = "nothing is written"
tool = "write_text"
expect = "denied"
policies = ["stays"]
arguments.path = {}
"""


@pytest.fixture
def own(world: World) -> World:
    world.write("team.cedar", OWN)
    world.write("bicameral.toml", '[policy]\nfiles = ["team.cedar"]\n')
    return world


def test_show_prints_the_defaults_and_ones_own(own: World) -> None:
    told = own.call("policy", "show")
    assert told.exit_code == 0
    assert "directed-by-strangers: asks a person" in told.stdout
    assert "stays: refuses  (team.cedar, line 1)" in told.stdout
    assert told.stdout.endswith("mode: strict\n")
    assert own.call("policy").stdout == told.stdout
    as_json = own.json("policy", "show")
    assert [rule["id"] for rule in as_json["policies"] if not rule["default"]] == ["stays"]
    assert as_json["mode"] == "strict"


def test_show_prints_the_schema(world: World) -> None:
    assert "entity Call in [Tool, Toolbox, Effect]" in world.call("policy", "show", "--schema").stdout
    assert "strangers_text" in world.json("policy", "show", "--schema")["schema"]


def test_the_weaker_mode_is_named_as_such(world: World) -> None:
    world.write("bicameral.toml", '[policy]\nmode = "normal"\n')
    assert "mode: normal (weaker: control flow does not count)" in world.call("policy").stdout


def test_the_defaults_cannot_be_switched_off(world: World) -> None:
    for setting in ("off = true", "off = false", "defaults = false", 'mode = "off"'):
        world.write("bicameral.toml", f"[policy]\n{setting}\n")
        assert world.json("policy", "show", code=2)["error"]["code"].startswith("config.")


def test_a_bad_policy_stops_the_command_with_its_line(world: World) -> None:
    world.write("team.cedar", "\nforbid (principal, action, resource) when { resource.outbond };\n")
    world.write("bicameral.toml", '[policy]\nfiles = ["team.cedar"]\n')
    told = world.call("policy", "show")
    assert told.exit_code == 2
    assert "team.cedar, line 2: there is no fact 'outbond'" in told.stderr
    assert "Did you mean 'outbound'? [policy.unknown-name]" in told.stderr
    assert "policy: " in world.call("doctor").stdout
    assert "[policy.unknown-name]" in world.call("doctor").stdout


def test_a_policy_for_a_tool_that_is_not_there_stops_the_command(world: World) -> None:
    world.write("team.cedar", 'forbid (principal, action, resource in Tool::"write_txt");')
    world.write("bicameral.toml", '[policy]\nfiles = ["team.cedar"]\n')
    error = world.json("policy", "show", code=2)["error"]
    assert (error["code"], error["nearest"]) == ("policy.unknown-tool", "write_text")


def test_policies_are_found_beside_the_file_that_names_them(own: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "team.cedar").write_text("// nothing is forbidden here")
    told = own.json("policy", "show", "--config", str(own.folder / "bicameral.toml"), "--folder", str(elsewhere))
    assert [rule["id"] for rule in told["policies"] if not rule["default"]] == ["stays"]


def test_a_case_that_holds_is_ok(own: World) -> None:
    own.write("cases.toml", CASE)
    told = own.call("policy", "test", "cases.toml")
    assert (told.exit_code, told.stdout) == (0, "ok    nothing is written: denied\n\n1 case, none failed\n")
    assert own.json("policy", "test", "cases.toml")["cases"][0]["policies"] == ["stays"]


def test_a_case_that_does_not_hold_fails(world: World) -> None:
    world.write("cases.toml", CASE)
    told = world.call("policy", "test", "cases.toml")
    assert told.exit_code == 1
    assert "FAIL  nothing is written: allowed\n      expected denied by stays\n      no policy stops it" in told.stdout
    assert world.json("policy", "test", "cases.toml", code=1)["ok"] is False


@pytest.mark.parametrize("text", ["", "[[case", "[[case]]\nname = 'a'"])
def test_a_bad_file_of_cases_is_bad_input(world: World, text: str) -> None:
    world.write("cases.toml", text)
    assert world.json("policy", "test", "cases.toml", code=2)["error"]["code"] == "policy.bad-cases"
    assert world.json("policy", "test", "gone.toml", code=2)["error"]["code"] == "policy.unreadable"


PLAN = 'lines = read_lines("mail.txt")\nwrite_text(lines[0], "x")\nwrite_text("a.txt", "x")\nanswer(len(lines))\n'


def test_explain_says_what_would_be_said_of_each_call(world: World) -> None:
    world.write("p.py", PLAN)
    told = world.json("policy", "explain", "p.py")
    assert [(call["step"], call["tool"], call["verdict"]) for call in told["calls"]] == [
        ("0", "read_lines", "proved"),
        ("1", "write_text", "conditional"),
        ("2", "write_text", "proved"),
    ]
    assert "read_lines" in told["calls"][1]["why"]
    text = world.call("policy", "explain", "p.py")
    assert text.exit_code == 0
    assert text.stdout.splitlines()[1].startswith("1  write_text  conditional: the argument ")


def test_explain_refuses_what_a_policy_forbids(own: World) -> None:
    own.write("p.py", PLAN)
    told = own.json("policy", "explain", "p.py", code=3)
    assert [call["verdict"] for call in told["calls"]] == ["proved", "refused", "refused"]
    assert "the policy 'stays' (team.cedar, line 1) forbids it" in told["calls"][2]["why"]


def test_explain_takes_the_plan_of_a_run(world: World) -> None:
    assert world.call("run", REQUEST, "--deterministic", script=[RUN_PLAN]).exit_code == 0
    assert {call["verdict"] for call in world.json("policy", "explain", "last")["calls"]} == {"proved"}
    assert world.json("policy", "explain", "nothing", code=2)["error"]["code"].startswith("journal.")

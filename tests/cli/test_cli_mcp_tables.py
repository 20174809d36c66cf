"""Tables of servers in a configuration: changed exactly, or not at all, and accepted only if they were before."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli_world import World
from hypothesis import given, strategies as st
from mcp_servers import PROGRAM, write_spec

from bicameral.cli._mcp_tables import (
    Acceptance,
    read_config_text,
    with_setting,
    with_table,
    without_table,
    write_config_text,
)
from bicameral.config import config_template, find_unaccepted, find_widening, record_acceptance
from bicameral.errors import ConfigError

FILE = Path("bicameral.toml")
TABLE: dict[str, Any] = {
    "command": ["a", 'b "c"'],
    "env": {"A B": "\x7f\u200b"},
    "network": True,
    "tools": "mcp/x.toml",
}
OTHERS = [
    "",
    "# only a comment",
    'a = 1\n\n[mcp.other]\ncommand = ["x"]\n\n[mcp.other.env]\nA = "b"\n# about it\n',
    'text = """\n[mcp.x]\ncommand = 1\n"""\nlist = [\n[1],\n  [2],\n]\n',
    "[limits]\r\nmax_items = 5\r\n\r\n# end\r\n",
    config_template(),
]


@pytest.mark.parametrize("text", OTHERS)
def test_a_table_that_is_added_and_taken_out_leaves_the_file_as_it_was(text: str) -> None:
    added = with_table(text, "x", TABLE, FILE)
    assert added.startswith(text)
    assert tomllib.loads(added)["mcp"]["x"] == TABLE
    assert without_table(added, "x", FILE).rstrip("\r\n") == text.rstrip("\r\n")
    assert ("\r\n" in text) == ("\r\n" in added)


@pytest.mark.parametrize("text", OTHERS)
@given(value=st.recursive(st.text() | st.integers() | st.booleans(), lambda each: st.lists(each, max_size=3)))
def test_whatever_a_setting_says_it_is_that_setting_and_no_other(text: str, value: Any) -> None:
    table = {"command": ["x"], "odd": value}
    added = with_table(text, "x", table, FILE)
    found = tomllib.loads(added)
    assert found["mcp"].pop("x") == table
    rest = tomllib.loads(text)
    assert {k: v for k, v in found.items() if v} == {k: v for k, v in rest.items() if v}


OWN = """\
# first
[mcp.a] # the first
command = ["a"]
# inside

# about x
[mcp . "x"]
command = [
  "[mcp.a]", # no header
]
note = '''
# no comment
[mcp.b]
# no comment '''

# about the rest of x
[mcp.x.env]
A = "b"
# before b
[mcp.b]
command = ["b"]
"""


def test_exactly_the_table_and_those_below_it_are_taken_out() -> None:
    assert without_table(OWN, "x", FILE) == (
        '# first\n[mcp.a] # the first\ncommand = ["a"]\n# inside\n\n# about x\n\n'
        '# about the rest of x\n# before b\n[mcp.b]\ncommand = ["b"]\n'
    )


def test_a_table_is_replaced_where_it_stands() -> None:
    replaced = with_table(OWN, "x", {"command": ["new"]}, FILE)
    assert '# about x\n[mcp.x]\ncommand = ["new"]\n\n# about the rest of x\n# before b\n' in replaced


def test_a_setting_is_added_to_a_table() -> None:
    assert '[mcp.a] # the first\ntools = "t"\ncommand = ["a"]\n' in with_setting(OWN, "a", "tools", "t", FILE)
    assert with_setting("[mcp.a]", "a", "n", 1, FILE) == "[mcp.a]\nn = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp = { x = { command = ["x"] } }\n',
        '[mcp]\nx = { command = ["x"] }\n',
        'mcp.x.command = ["x"]\n',
        '[mcp]\nx.command = ["x"]\n\n[mcp.y]\ncommand = ["y"]\n',
    ],
)
def test_what_is_no_table_of_its_own_is_not_changed(text: str) -> None:
    for change in (
        lambda: without_table(text, "x", FILE),
        lambda: with_setting(text, "x", "tools", "t", FILE),
        lambda: with_table(text, "x", TABLE, FILE),
    ):
        with pytest.raises(ConfigError, match="cannot-edit"):
            change()


def test_a_file_keeps_its_permissions_and_a_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_bytes(b"a = 1\r\n")
    real.chmod(0o640)
    link = tmp_path / "bicameral.toml"
    link.symlink_to(real)
    assert read_config_text(link) == "a = 1\r\n"
    write_config_text(link, "b = 2\n")
    assert link.is_symlink()
    assert real.read_text() == "b = 2\n"
    assert real.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


WIDE = '[policy]\nmode = "normal"\n'


def add_server(world: World) -> dict[str, Any]:
    file = str(write_spec(world.folder, [{"name": "search", "does": "echo"}]))
    words = ("mcp", "add", "-y", "notes", "--read", file, "--json", "--", sys.executable, str(PROGRAM), file)
    result = world.call(*words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def withheld_settings(world: World) -> list[str]:
    return world.json("config", "show")["withheld"]


@pytest.mark.unaccepted
def test_a_new_file_is_accepted(world: World) -> None:
    assert add_server(world)["accepted"] is True
    assert withheld_settings(world) == []
    assert world.json("mcp", "remove", "notes", "-y")["accepted"] is True
    assert withheld_settings(world) == []


@pytest.mark.unaccepted
def test_a_file_that_was_accepted_stays_so(world: World) -> None:
    world.write("bicameral.toml", WIDE)
    world.call("config", "accept")
    assert add_server(world)["accepted"] is True
    assert withheld_settings(world) == []


@pytest.mark.unaccepted
def test_a_file_that_was_not_accepted_does_not_become_so(world: World) -> None:
    """Attack: a folder that somebody sent waits for its reader to add a server."""
    world.write("bicameral.toml", WIDE)
    assert add_server(world)["accepted"] is False
    assert withheld_settings(world) == ["mcp.notes", "policy.mode"]
    assert "`bicameral config accept`" in world.call("mcp", "remove", "notes", "-y").stderr
    assert withheld_settings(world) == ["policy.mode"]


@pytest.mark.unaccepted
def test_what_the_environment_lists_does_not_become_a_lasting_acceptance(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("bicameral.toml", WIDE)
    monkeypatch.setenv("BICAMERAL_ACCEPT", str(world.folder))
    assert add_server(world)["accepted"] is True
    monkeypatch.delenv("BICAMERAL_ACCEPT")
    assert withheld_settings(world) == ["mcp.notes", "policy.mode"]


@pytest.mark.parametrize("what", ["setting", "file", "nothing"])
@pytest.mark.unaccepted
def test_a_change_by_somebody_else_meanwhile_is_not_accepted_along(world: World, what: str) -> None:
    world.write("own.py", "")
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["own.py"]\n')
    file = world.folder / "bicameral.toml"
    record_acceptance(file, find_widening(file, world.folder))
    before = Acceptance.of(file, world.folder)
    text = with_table(read_config_text(file), "notes", {"command": ["x"]}, file)
    match what:
        case "setting":
            text += f"\n{WIDE}"
        case "file":
            world.write("own.py", "import os\n")
        case _:
            pass
    write_config_text(file, text)
    assert before.renew("notes", ()) is (what == "nothing")
    unaccepted = find_unaccepted(file, find_widening(file, world.folder), os.environ)
    assert (unaccepted is None) == (what == "nothing")


@pytest.mark.unaccepted
def test_servers_that_are_not_accepted_are_not_started(world: World) -> None:
    file = write_spec(world.folder, [{"name": "search", "does": "echo"}])
    marker = world.folder / "started"
    world.write("bicameral.toml", f'[mcp.notes]\ncommand = ["/usr/bin/touch", "{marker}"]\nsandbox = false\n')
    assert file.exists()
    assert world.json("mcp", "check")["servers"] == []
    error = world.json("mcp", "review", "notes", code=2)["error"]
    assert "`bicameral config accept`" in error["fix"]
    assert not marker.exists()

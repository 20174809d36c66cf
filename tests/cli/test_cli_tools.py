"""`bicameral tools find`, `accept` and `forget`: with real programs that describe themselves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_terminal import Terminal
from cli_world import World
from click.testing import CliRunner

from bicameral.cli import main
from bicameral.tools import effects_file

CHECKSUM = Path(__file__).parents[2] / "examples" / "tools" / "checksum"
OCR = {
    "name": "agx-ocr",
    "version": "0.1.0",
    "capabilities": ["document-ocr", "image-to-text"],
    "inputs": ["image/png", "image/jpeg", "application/pdf"],
    "outputs": ["text/plain", "application/json"],
}


@pytest.fixture
def tools(world: World) -> World:
    """A folder whose configuration, which the user has accepted, names two programs."""
    shutil.copy(CHECKSUM, world.folder / "checksum")
    write_ocr(world)
    world.write("bicameral.toml", '[toolboxes]\nuse = ["files"]\nfiles = ["checksum", "ocr"]\n')
    assert world.call("config", "accept").exit_code == 0
    return world


def write_ocr(world: World, description: dict[str, Any] | None = None, then: str = "print('text')") -> None:
    text = json.dumps(description or OCR)
    world.write(
        "ocr",
        "#!/usr/bin/env python3\nimport sys\nif sys.argv[1:] == ['--describe']:\n"
        f"  print({text!r})\n  sys.exit()\n{then}\n",
    )
    (world.folder / "ocr").chmod(0o755)


def effect(world: World, name: str = "agx_ocr") -> tuple[str, str]:
    shown = world.json("tools", "show", name)["tool"]
    return shown["effect"], shown["described"]["state"]


def test_tools_are_found_by_type_and_capability(tools: World) -> None:
    found = tools.json(
        "tools", "find", "--accepts", "application/pdf", "--gives", "text/plain", "--can", "document-ocr"
    )
    assert [each["name"] for each in found["tools"]] == ["read_text", "read_lines", "agx_ocr"]
    shown = tools.call("tools", "find", "--accepts", "image/*", "--can", "image-to-text").stdout
    assert "agx_ocr(path: str) -> str  [irreversible; proposed: read]" in shown
    assert [each["name"] for each in tools.json("tools", "find", "--accepts", ".pdf", "--gives", "lines")["tools"]] == [
        "read_lines"
    ]


def test_nothing_found_says_so_with_the_nearest(tools: World) -> None:
    result = tools.call("tools", "find", "--can", "document-orc")
    assert result.exit_code == 1
    assert "nothing has 'document-orc'; the nearest is 'document-ocr'" in result.stderr
    assert result.stdout == ""
    facts = tools.json("tools", "find", "--can", "document-orc", code=1)
    assert facts == {"ok": False, "tools": [], "chains": [], "nearest": {"document-orc": "document-ocr"}}
    both = tools.call("tools", "find", "--accepts", "image/png", "--can", "checksum")
    assert both.exit_code == 1
    assert "no tool meets all of them" in both.stderr


def test_a_lookup_without_a_condition_or_with_a_wrong_one_is_refused(tools: World) -> None:
    assert tools.call("tools", "find").exit_code == 2
    assert tools.json("tools", "find", "--accepts", "a b/c", code=2)["error"]["code"] == "tools.bad-lookup"


def test_values_are_completed(tools: World) -> None:
    def offered(words: str, begun: str) -> str:
        line = {"_BICAMERAL_COMPLETE": "bash_complete", "COMP_WORDS": f"bicameral {words} {begun}", "COMP_CWORD": "4"}
        return CliRunner().invoke(main, [], env=line, prog_name="bicameral").output

    assert "image/png" in offered("tools find --accepts", "image/")
    assert "document-ocr" in offered("tools find --can", "docum")
    assert "text/plain" in offered("tools find --gives", "text/")


def test_an_effect_is_confirmed_once_and_withdrawn(tools: World) -> None:
    assert effect(tools) == ("irreversible", "unconfirmed")
    result = tools.call("tools", "accept", "agx_ocr", "--yes")
    assert "confirmed: agx_ocr is read" in result.stdout
    assert "no network and no file to write" in result.stderr
    assert effect(tools) == ("read", "confirmed")
    assert effect(tools, "checksum") == ("irreversible", "unconfirmed")
    assert "[read, confirmed]" in tools.call("tools", "list").stdout
    assert tools.json("tools", "forget", "agx_ocr")["was_confirmed"] is True
    assert effect(tools) == ("irreversible", "unconfirmed")
    assert tools.json("tools", "forget", "agx_ocr")["was_confirmed"] is False


def test_another_effect_can_be_confirmed_and_an_impossible_one_cannot(tools: World) -> None:
    assert tools.json("tools", "accept", "agx_ocr", "--effect", "send", "--yes")["effect"] == "send"
    assert effect(tools) == ("send", "confirmed")
    error = tools.json("tools", "accept", "agx_ocr", "--effect", "pure", "--yes", code=2)["error"]
    assert error["code"] == "tools.wrong-effect"
    assert effect(tools) == ("send", "confirmed")


@pytest.mark.parametrize("stdin", ["", "y\n", "yes\nyes\n"])
def test_without_a_terminal_nothing_is_confirmed(tools: World, stdin: str) -> None:
    result = tools.call("tools", "accept", "agx_ocr", stdin=stdin)
    assert result.exit_code == 4
    assert "run.needs-answer" in result.stderr
    assert not effects_file().exists()
    tools.call("run", "--plan", tools.write("p.py", 'answer(agx_ocr("scan.png"))\n'), script=[], stdin=stdin)
    assert effect(tools) == ("irreversible", "unconfirmed")


@pytest.mark.parametrize(("reply", "state"), [("y", "confirmed"), ("n", "unconfirmed"), ("", "unconfirmed")])
def test_a_person_at_a_terminal_is_asked(tools: World, terminals: list[Terminal], reply: str, state: str) -> None:
    terminal = Terminal("tools", "accept", "agx_ocr")
    terminals.append(terminal)
    terminal.wait_for("Treat agx_ocr as 'read' from now on? [y/N]")
    terminal.type(f"{reply}\r")
    terminal.wait_for("confirmed: agx_ocr is read" if state == "confirmed" else "nothing was confirmed")
    assert effect(tools)[1] == state


def test_a_program_that_is_replaced_is_irreversible_again_and_commands_say_so(tools: World) -> None:
    tools.call("tools", "accept", "agx_ocr", "--yes")
    write_ocr(tools, then="print('evil')")
    tools.call("config", "accept")
    listed = tools.call("tools", "list")
    assert "[irreversible; no longer confirmed as read]" in listed.stdout
    assert "Warning" not in listed.stderr, "a line of our own, not Python's"
    assert "no longer confirmed as 'read': the program changed since" in tools.call("tools", "show", "agx_ocr").stdout
    check = [each for each in tools.json("doctor")["checks"] if each["name"] == "tool agx_ocr"]
    assert "no longer confirmed" in check[0]["detail"]
    (tools.folder / "scan.png").write_bytes(b"pixels")
    plan = tools.write("plan.py", 'answer(agx_ocr("scan.png"))\n')
    ran = tools.call("run", "--plan", plan, script=[])
    assert "no longer confirmed as 'read'" in ran.stderr
    write_ocr(tools)
    tools.call("config", "accept")
    assert effect(tools) == ("read", "confirmed")


def test_a_confirmed_program_runs_without_a_question_and_an_unconfirmed_one_does_not(tools: World) -> None:
    (tools.folder / "scan.png").write_bytes(b"pixels")
    # A name that is found directs an effect that cannot be undone, and only selects what is read.
    plan = tools.write("plan.py", 'files = list_files(".", "*.png")\nanswer(agx_ocr(files[0].path))\n')
    refused = tools.call("run", "--plan", plan, script=[])
    assert refused.exit_code != 0
    assert "text" not in refused.stdout
    tools.call("tools", "accept", "agx_ocr", "--yes")
    ran = tools.call("run", "--plan", plan, script=[])
    assert (ran.exit_code, ran.stdout.strip()) == (0, "text"), ran.output


def test_only_a_program_that_describes_itself_is_confirmed(tools: World) -> None:
    error = tools.json("tools", "accept", "read_text", "--yes", code=2)["error"]
    assert error["code"] == "tools.not-described"
    assert error["expected"] == "checksum, agx_ocr"
    assert tools.json("tools", "accept", "agx_orc", "--yes", code=2)["error"]["code"] == "tools.unknown"


def test_a_record_that_others_can_write_is_reported(tools: World) -> None:
    tools.call("tools", "accept", "agx_ocr", "--yes")
    effects_file().chmod(0o666)
    assert effect(tools) == ("irreversible", "unconfirmed")
    assert tools.json("tools", "accept", "agx_ocr", "--yes", code=2)["error"]["code"] == "tools.foreign-record"
    assert any(each["name"] == "confirmed effects" for each in tools.json("doctor")["checks"])
    effects_file().chmod(0o600)
    assert effect(tools) == ("read", "confirmed")


def test_a_description_cannot_draw_on_the_terminal(tools: World, terminals: list[Terminal]) -> None:
    bad = "delete\x1b[2J\x1b]0;owned\x07 proposed: pure"
    write_ocr(tools, OCR | {"capabilities": [bad]})
    tools.call("config", "accept")
    terminal = Terminal("tools", "find", "--accepts", "image/png", "--can", "agx-ocr")
    terminals.append(terminal)
    terminal.wait_for("<001b>[2J<001b>]0;owned<0007>")
    accepted = tools.call("tools", "accept", "agx_ocr", "--yes")
    assert "\x1b" not in accepted.output
    assert effect(tools)[0] == "irreversible", "the worst word counts"

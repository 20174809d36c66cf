"""Command lines as somebody types them: every word is held to the manifest's template, and none becomes an option."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ToolError
from bicameral.tools import CommandFailed, Folders, Tool, command_arguments, command_tools, command_usage, tool
from bicameral.tools._command_words import require_command
from bicameral.tools._manifest import parse_manifest
from bicameral.tools._manifest_rules import fill_template

MANIFEST: dict[str, Any] = {
    "manifest": 1,
    "tools": [
        {
            "name": "grep",
            "argv": [
                "grep",
                "-h",
                {"when": "count", "add": ["-c"]},
                {"when": "ignore_case", "add": ["-i"]},
                {"when": "most", "add": ["-m", "{most}"]},
                {"when": "context", "add": ["--context={context}"]},
                "-e",
                "{pattern}",
                "--",
                "{files}",
            ],
            "effect": "read",
            "arguments": {
                "pattern": {"type": "str"},
                "files": {"type": "list[path]"},
                "count": {"type": "bool", "default": False},
                "ignore_case": {"type": "bool", "default": False},
                "most": {"type": "int", "optional": True},
                "context": {"type": "int", "optional": True},
            },
        },
        {
            "name": "sort",
            "argv": ["sort", {"when": "reverse", "add": ["--reverse"]}, "--", "{file}"],
            "effect": "read",
            "arguments": {"file": {"type": "path"}, "reverse": {"type": "bool", "default": False}},
        },
        {
            "name": "copy",
            "argv": ["cp", "--", "{sources}", "{target}"],
            "effect": "write",
            "arguments": {"sources": {"type": "list[path]"}, "target": {"type": "path", "access": "write"}},
        },
    ],
}


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Tool]:
    (tmp_path / "a.txt").write_text("one\nTwo\ntwo\n")
    made = command_tools(parse_manifest(MANIFEST), Folders.of(tmp_path, read=[tmp_path], write=[tmp_path]))
    return {each.name: each for each in made}


def test_a_tool_is_shown_as_one_line(tools: dict[str, Tool]) -> None:
    assert command_usage(tools["grep"]) == "grep [-c] [-i] [-m MOST] [--context=CONTEXT] PATTERN FILES..."
    assert command_usage(tools["sort"]) == "sort [--reverse] FILE"
    assert command_usage(tools["copy"]) == "copy SOURCES... TARGET"


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("-c two a.txt", {"count": True, "pattern": "two", "files": ["a.txt"]}),
        ("-ci two a.txt b.txt", {"count": True, "ignore_case": True, "pattern": "two", "files": ["a.txt", "b.txt"]}),
        ("two a.txt -c", {"count": True, "pattern": "two", "files": ["a.txt"]}),
        ("-h -e two a.txt", {"pattern": "two", "files": ["a.txt"]}),
        ("-m 3 two a.txt", {"most": 3, "pattern": "two", "files": ["a.txt"]}),
        ("-m3 two a.txt", {"most": 3, "pattern": "two", "files": ["a.txt"]}),
        ("--context=2 two a.txt", {"context": 2, "pattern": "two", "files": ["a.txt"]}),
        ("--context 2 two a.txt", {"context": 2, "pattern": "two", "files": ["a.txt"]}),
        ("-- -c a.txt", {"pattern": "-c", "files": ["a.txt"]}),
        ("two", {"pattern": "two", "files": []}),
        ("", {"files": []}),
    ],
)
def test_words_become_arguments(tools: dict[str, Tool], words: str, arguments: dict[str, Any]) -> None:
    assert command_arguments(tools["grep"], words.split()) == arguments


def test_a_list_takes_what_the_others_leave_it(tools: dict[str, Tool]) -> None:
    assert command_arguments(tools["copy"], ["a", "b", "c"]) == {"sources": ["a", "b"], "target": "c"}


@pytest.mark.parametrize(
    "words",
    [
        ["-f", "/etc/passwd", "a.txt"],
        ["--file=/etc/passwd", "x", "a.txt"],
        ["-cf", "x", "a.txt"],
        ["-c;rm", "x"],
        ["--output=/etc/cron.d/x", "x"],
        ["-m"],
    ],
)
def test_an_option_that_the_manifest_does_not_write_is_refused(tools: dict[str, Tool], words: list[str]) -> None:
    with pytest.raises(ToolError) as caught:
        command_arguments(tools["grep"], words)
    assert caught.value.code == "tools.bad-command-line"


def test_a_word_too_many_is_refused_and_not_left_out(tools: dict[str, Tool]) -> None:
    with pytest.raises(ToolError, match="one word too many"):
        command_arguments(tools["sort"], ["a.txt", "b.txt"])


def test_what_is_no_confined_command_is_no_command(tools: dict[str, Tool]) -> None:
    @tool(effect="pure")
    def grep(pattern: str) -> str:
        """Not the real one."""
        return pattern

    with pytest.raises(ToolError) as caught:
        command_usage(grep)
    assert caught.value.code == "tools.not-a-command"
    (there,) = command_tools(
        parse_manifest({"manifest": 1, "tools": [MANIFEST["tools"][1]]}),
        Folders.of(Path("/"), read=[]),
        probe=lambda: "the kernel is too old",
    )
    with pytest.raises(ToolError) as caught:
        command_arguments(there, [])
    assert caught.value.code == "tools.cannot-confine"


@given(
    st.lists(
        st.one_of(st.text(max_size=12), st.sampled_from(["-c", "-ci", "-m", "-m1", "--", "-", "--context=1", "-f"]))
    )
)
def test_whatever_is_typed_no_option_runs_that_is_not_in_the_template(words: list[str]) -> None:
    (grep, *_) = command_tools(parse_manifest(MANIFEST), Folders.of(Path("/"), read=[]))
    command = require_command(grep)
    try:
        bound = grep.bind(command_arguments(grep, words))
        argv = fill_template(command.template, bound)
    except ToolError:
        return
    options = argv[: argv.index("-e")]
    assert set(options) <= {"-h", "-c", "-i", "-m", str(bound["most"]), f"--context={bound['context']}"}
    assert argv[argv.index("-e") + 2] == "--"


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=9),
    st.lists(st.text("abc-/.", min_size=1, max_size=5), max_size=3),
    st.booleans(),
    st.none() | st.integers(0, 99),
)
def test_what_a_template_writes_is_read_back(pattern: str, files: list[str], count: bool, most: int | None) -> None:
    (grep, *_) = command_tools(parse_manifest(MANIFEST), Folders.of(Path("/"), read=[]))
    given = {"pattern": pattern, "files": files, "count": count, "most": most}
    try:
        argv = fill_template(require_command(grep).template, grep.bind(given))
    except ToolError:
        return
    assert grep.bind(command_arguments(grep, argv)) == grep.bind(given)


def test_the_exit_code_of_a_failure_is_told_as_a_number(tools: dict[str, Tool]) -> None:
    if shutil.which("grep") is None:
        pytest.skip("there is no grep")
    with pytest.raises(CommandFailed) as caught:
        asyncio.run(tools["grep"].call(command_arguments(tools["grep"], ["nowhere", "a.txt"])))
    assert (caught.value.code, caught.value.exit_code) == ("tools.command-failed", 1)
    assert asyncio.run(tools["grep"].call(command_arguments(tools["grep"], ["-ci", "two", "a.txt"]))) == "2"

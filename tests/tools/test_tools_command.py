"""Command-line tools against hostile arguments, hostile programs and plain failures, with real programs."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bicameral.errors import ToolError
from bicameral.tools import Folders, Tool
from bicameral.tools._command import command_tools, program_path
from bicameral.tools._manifest import parse_manifest
from bicameral.types import ANY, INT, STR, ListType, OptionalType
from property_examples import examples

PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or "python3"
ECHO = "import json,sys; print(json.dumps(sys.argv[1:]))"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder that may be read and written, with a secret beside it."""
    inside = tmp_path.resolve() / "inside"
    inside.mkdir()
    (inside / "notes.txt").write_text("one two\nthree\n")
    (tmp_path / "secret.txt").write_text("hush")
    return inside


def tool(world: Path, *argv: Any, **spec: Any) -> Tool:
    (made,) = command_tools(
        parse_manifest({"manifest": 1, "tools": [{"name": "it", "argv": list(argv)} | spec]}),
        Folders.of(world, read=[world], write=[world]),
    )
    return made


def script(world: Path, code: str, *argv: Any, **spec: Any) -> Tool:
    # Braces in code are doubled, since the manifest would take them for arguments.
    return tool(world, PYTHON, "-c", code.replace("{", "{{").replace("}", "}}"), *argv, **spec)


async def refused(tool: Tool, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await tool.call(arguments)
    return caught.value


HOSTILE = [
    "; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "a\ntouch pwned",
    "&& touch pwned |",
    "> pwned",
    "*",
    "~",
    "$HOME ${PATH} %PATH%",
    "'\"\\",
    " leading and trailing ",
    "",
    "{text} {{x}}",
    "\u202e\u0000bc".replace("\0", ""),
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_whatever_the_shell_would_make_of_it_the_program_gets_the_text_itself(world: Path, text: str) -> None:
    echo = script(world, ECHO, "--", "{text}", "x={text}", arguments={"text": {}}, result="json")
    assert await echo.call({"text": text}) == ["--", text, f"x={text}"]
    assert sorted(os.listdir(world)) == ["notes.txt"]


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=st.text().filter(lambda text: "\0" not in text))
def test_any_text_arrives_as_one_argument_and_through_standard_input(world: Path, text: str) -> None:
    code = "import json,sys; print(json.dumps([sys.argv[1:], sys.stdin.buffer.read().decode()]))"
    echo = script(world, code, "x{text}", stdin="text", arguments={"text": {}}, result="json")
    assert asyncio.run(echo.call({"text": text})) == [[f"x{text}"], text]


@pytest.mark.parametrize("text", ["-rf", "--help", "-", "--", "--output=/etc/passwd"])
async def test_a_value_that_looks_like_an_option_is_refused(world: Path, text: str) -> None:
    error = await refused(script(world, ECHO, "{text}", arguments={"text": {}}), text=text)
    assert error.code == "tools.option-like"
    assert error.place is not None
    assert error.place.argument == "text"


async def test_a_negative_number_is_no_option_either(world: Path) -> None:
    head = tool(world, "head", "-n", "{n}", arguments={"n": {"type": "int"}}, effect="pure")
    assert (await refused(head, n=-1)).code == "tools.option-like"
    safe = tool(world, "head", "--lines={n}", stdin="text", arguments={"n": {"type": "int"}, "text": {}})
    assert await safe.call({"n": -1, "text": "a\nb\n"}) == "a"


async def test_options_in_a_list_are_refused_and_operands_after_two_dashes_are_not(world: Path) -> None:
    many = {"items": {"type": "list[str]"}}
    assert (
        await refused(script(world, ECHO, "{items}", arguments=many), items=["a", "-x"])
    ).code == "tools.option-like"
    echo = script(world, ECHO, "--", "{items}", arguments=many, result="json")
    assert await echo.call({"items": ["a", "-x"]}) == ["--", "a", "-x"]


async def test_a_choice_that_the_manifest_wrote_may_be_an_option(world: Path) -> None:
    kind = {"kind": {"type": "literal", "values": ["--lines", "--words"]}}
    count = tool(world, "wc", "{kind}", stdin="text", arguments=kind | {"text": {}}, result="json", result_type="int")
    assert await count.call({"kind": "--words", "text": "a b c"}) == 3
    assert (await refused(count, kind="--files0-from=/etc/passwd", text="")).code == "tools.wrong-type"


async def test_options_that_are_not_given_are_left_out(world: Path) -> None:
    arguments = {"width": {"type": "int", "optional": True}, "loud": {"type": "bool", "default": False}}
    echo = script(
        world,
        ECHO,
        {"when": "width", "add": ["--width", "{width}"]},
        {"when": "loud", "add": ["--loud"]},
        arguments=arguments,
        result="json",
    )
    assert await echo.call({}) == []
    assert await echo.call({"width": 0, "loud": True}) == ["--width", "0", "--loud"]
    assert await echo.call({"width": None}) == []
    width = echo.argument("width")
    assert width is not None
    assert (width.type, width.default) == (OptionalType(INT), None)


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "link.txt", "notes.txt/../../secret.txt", "~/.bashrc", "a\0b", ""]
)
async def test_no_path_leads_out_of_the_folders(world: Path, path: str) -> None:
    (world / "link.txt").symlink_to(world.parent / "secret.txt")
    cat = tool(world, "cat", "--", "{path}", arguments={"path": {"type": "path"}}, effect="read")
    error = await refused(cat, path=path)
    assert error.code.startswith("files.")
    assert "hush" not in str(error)


async def test_a_command_reads_the_files_it_was_given_and_no_other(world: Path) -> None:
    (world / "other.txt").write_text("not given")
    spec: dict[str, Any] = {"arguments": {"path": {"type": "path"}}, "effect": "read"}
    assert await tool(world, "cat", "{path}", **spec).call({"path": "notes.txt"}) == "one two\nthree"
    sneaky = script(world, "import sys; print(open(sys.argv[1].replace('notes', 'other')).read())", "{path}", **spec)
    error = await refused(sneaky, path="notes.txt")
    assert error.code == "tools.command-failed"
    assert "PermissionError" in error.message


async def test_a_path_that_begins_with_a_dash_is_a_file(world: Path) -> None:
    (world / "-n").write_text("dash")
    cat = tool(world, "cat", "{path}", arguments={"path": {"type": "path"}}, effect="read")
    assert await cat.call({"path": "-n"}) == "dash"


async def test_several_files_are_several_arguments(world: Path) -> None:
    (world / "b c.txt").write_text("x\n")
    cat = tool(
        world, "cat", "--", "{paths}", arguments={"paths": {"type": "list[path]"}}, effect="read", result="lines"
    )
    assert await cat.call({"paths": ["notes.txt", "b c.txt"]}) == ["one two", "three", "x"]
    assert (await refused(cat, paths=["notes.txt", "../secret.txt"])).code == "files.outside"


OUT: dict[str, Any] = {"arguments": {"to": {"type": "path", "access": "write"}}, "effect": "write"}


async def test_a_new_file_is_put_in_place_when_all_went_well(world: Path) -> None:
    write = script(world, "import sys; open(sys.argv[1], 'w').write('made')", "{to}", **OUT)
    await write.call({"to": "sub/new.txt"})
    assert (world / "sub" / "new.txt").read_text() == "made"
    await write.call({"to": "notes.txt"})
    assert (world / "notes.txt").read_text() == "made"


async def test_a_failure_leaves_the_old_file_and_nothing_half_written(world: Path) -> None:
    half = script(world, "import sys; open(sys.argv[1], 'w').write('half'); sys.exit(1)", "{to}", **OUT)
    assert (await refused(half, to="notes.txt")).code == "tools.command-failed"
    assert (await refused(half, to="new.txt")).code == "tools.command-failed"
    assert (world / "notes.txt").read_text() == "one two\nthree\n"
    assert os.listdir(world) == ["notes.txt"]


async def test_a_promised_file_that_is_not_made_is_an_error(world: Path) -> None:
    assert (await refused(script(world, "pass", "{to}", **OUT), to="new.txt")).code == "tools.no-output"


async def test_a_link_left_in_place_of_the_file_does_not_smuggle_a_secret_in(world: Path) -> None:
    code = f"import os,sys; os.symlink({str(world.parent / 'secret.txt')!r}, sys.argv[1])"
    error = await refused(script(world, code, "{to}", **OUT), to="new.txt")
    assert error.code in ("files.outside", "tools.no-output")
    assert os.listdir(world) == ["notes.txt"]


@pytest.mark.parametrize("path", ["../out.txt", "/etc/bicameral-test", "link/x.txt"])
async def test_nothing_is_written_outside_the_folders(world: Path, path: str) -> None:
    (world / "link").symlink_to(world.parent)
    write = script(world, "import sys; open(sys.argv[1], 'w').write('made')", "{to}", **OUT)
    assert (await refused(write, to=path)).code == "files.outside"
    assert sorted(os.listdir(world.parent)) == ["inside", "secret.txt"]


async def test_a_file_is_edited_in_a_copy(world: Path) -> None:
    code = "import sys\nwith open(sys.argv[1], 'r+') as f:\n  t = f.read().upper(); f.seek(0); f.write(t)"
    arguments = {"path": {"type": "path", "access": "edit"}}
    edit = script(world, code, "{path}", arguments=arguments, effect="write")
    await edit.call({"path": "notes.txt"})
    assert (world / "notes.txt").read_text() == "ONE TWO\nTHREE\n"
    failing = script(world, code + "\nsys.exit(1)", "{path}", arguments=arguments, effect="write")
    (world / "notes.txt").write_text("kept")
    await refused(failing, path="notes.txt")
    assert (world / "notes.txt").read_text() == "kept"


async def test_a_folder_can_be_written_into(world: Path) -> None:
    (world / "out").mkdir()
    write = script(world, "import sys; open(sys.argv[1] + '/a.txt', 'w').write('a')", "{to}", **OUT)
    await write.call({"to": "out"})
    assert (world / "out" / "a.txt").read_text() == "a"


async def test_no_secret_of_the_environment_reaches_the_command(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", "hush")
    env = tool(world, "env", env={"MODE": "quiet"}, result="lines")
    assert sorted(line.split("=")[0] for line in await env.call({})) == ["LANG", "MODE", "PATH"]


async def test_a_scratch_folder_is_private_and_gone_afterwards(world: Path) -> None:
    code = "import os,tempfile; f = tempfile.NamedTemporaryFile(delete=False); f.write(b'x'); print(f.name)"
    path = await script(world, code, scratch=True).call({})
    assert os.path.basename(os.path.dirname(path)) not in os.listdir(tempfile.gettempdir())
    assert (await refused(script(world, code))).code == "tools.command-failed"


async def test_the_command_starts_in_the_base_folder(world: Path) -> None:
    assert await tool(world, "pwd").call({}) == str(world)


async def test_a_failure_tells_the_exit_code_and_the_last_complaints(world: Path) -> None:
    code = "import sys\nfor i in range(5000): print('line', i, '\\x1b[31m', file=sys.stderr)\nsys.exit(7)"
    error = await refused(script(world, code))
    assert error.code == "tools.command-failed"
    assert "exit code 7" in error.message
    assert "line 4999" in error.message
    assert "line 4000" not in error.message
    assert "\x1b" not in error.message
    assert len(error.message) < 2000


async def test_exit_codes_that_the_manifest_allows_are_no_failure(world: Path) -> None:
    grep = tool(
        world,
        *("grep", "-e", "x{pattern}"),
        stdin="text",
        arguments={"pattern": {}, "text": {}},
        result="lines",
        ok_exit_codes=[0, 1],
    )
    assert await grep.call({"pattern": "y", "text": "a\nxyz\n"}) == ["xyz"]
    assert await grep.call({"pattern": "q", "text": "a\n"}) == []
    assert (await refused(grep, pattern="[", text="a")).code == "tools.command-failed"


async def test_an_exit_that_is_seen_with_unread_stdin_is_that_exit(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_pidfd = os.pidfd_open

    def open_pidfd_after_the_exit(pid: int) -> int:
        # The exit and the stdin that nobody reads are then ready in one batch.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return open_pidfd(pid)

    monkeypatch.setattr(os, "pidfd_open", open_pidfd_after_the_exit)
    ended = script(world, "raise SystemExit(3)", stdin="text", arguments={"text": {}})
    assert (await refused(ended, text="a" * 500_000)).code == "tools.command-failed"


async def test_time_memory_and_output_have_their_own_errors(world: Path) -> None:
    started = time.monotonic()
    assert (await refused(tool(world, "sleep", "60", timeout=0.5))).code == "tools.command-timeout"
    assert (await refused(tool(world, "yes", limits={"output_kb": 64}))).code == "tools.output-too-large"
    hog = script(world, "x = bytearray(500_000_000)", limits={"memory_mb": 128})
    assert (await refused(hog)).code == "tools.command-killed"
    assert time.monotonic() - started < 40


async def test_cancelling_a_call_ends_the_command_and_removes_its_scratch(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(world))
    task = asyncio.create_task(tool(world, "sleep", "60", scratch=True).call({}))
    async with asyncio.timeout(30):
        while len(os.listdir(world)) < 2:  # noqa: ASYNC110 (the scratch folder tells nobody that it is there)
            await asyncio.sleep(0.01)
    task.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 30
    assert os.listdir(world) == ["notes.txt"]


@pytest.mark.parametrize(
    ("kind", "printed", "value"),
    [
        ("text", "one\n\n", "one\n"),
        ("text", "", ""),
        ("lines", "a\n\nb\n", ["a", "", "b"]),
        ("lines", "a\r\nb", ["a\r", "b"]),
        ("lines", "", []),
        ("json", ' {"a": [1, 2.5, null]}\n', {"a": [1, 2.5, None]}),
        ("table", 'name,note\nx,"a, ""b"""\n\ny,é\n', [{"name": "x", "note": 'a, "b"'}, {"name": "y", "note": "é"}]),
        ("table", "", []),
    ],
)
async def test_each_kind_of_result_is_read(world: Path, kind: str, printed: str, value: object) -> None:
    cat = tool(world, "cat", stdin="text", arguments={"text": {}}, effect="pure", result=kind)
    assert await cat.call({"text": printed}) == value


@pytest.mark.parametrize(
    ("kind", "printed"),
    [
        ("text", b"\xff\xfe"),
        ("json", b""),
        ("json", b"{'a': 1}"),
        ("json", b"NaN"),
        ("json", b"[" * 100_000),
        ("table", b"a,a\n1,2\n"),
        ("table", b"a,b\n1\n"),
        ("table", b'a\n"x'),
    ],
)
async def test_output_that_breaks_the_promise_is_refused(world: Path, kind: str, printed: bytes) -> None:
    (world / "printed").write_bytes(printed)
    cat = tool(world, "cat", "{path}", arguments={"path": {"type": "path"}}, effect="read", result=kind)
    assert (await refused(cat, path="printed")).code == "tools.bad-output"


async def test_a_typed_json_result_is_held_to_its_type(world: Path) -> None:
    typed: dict[str, Any] = {"result": "json", "result_type": {"record": {"size": "int"}}}
    cat = tool(world, "cat", stdin="text", arguments={"text": {}}, effect="pure", **typed)
    assert await cat.call({"text": '{"size": 3}'}) == {"size": 3}
    assert (await refused(cat, text='{"size": "3"}')).code == "tools.bad-result"


async def test_lines_go_to_standard_input(world: Path) -> None:
    sort = tool(world, "sort", stdin="lines", arguments={"lines": {"type": "list[str]"}}, effect="pure", result="lines")
    assert await sort.call({"lines": ["b", "a"]}) == ["a", "b"]
    assert (await refused(sort, lines=["\ud800"])).code == "tools.bad-argument"


def test_the_declaration_becomes_the_tool(world: Path) -> None:
    made = tool(world, "wc", "{x}", arguments={"x": {}, "y": {"purpose": "carries"}}, stdin="y", version="3")
    assert (made.effect, made.idempotent, made.version, made.result) == ("irreversible", False, "3", STR)
    assert [argument.purpose for argument in made.arguments] == ["directs", "carries"]
    reading = tool(world, "wc", "{x}", arguments={"x": {}}, effect="read", result="lines")
    assert (reading.idempotent, reading.arguments[0].purpose, reading.result) == (True, "selects", ListType(STR))
    assert tool(world, "wc", result="json").result == ANY
    assert json.loads(json.dumps(made.describe()))["name"] == "it"


def test_a_program_that_is_not_there_is_named_with_the_nearest(world: Path) -> None:
    with pytest.raises(ToolError) as caught:
        tool(world, "sorrt")
    assert (caught.value.code, caught.value.nearest) == ("tools.command-not-found", "sort")
    with pytest.raises(ToolError, match="command-not-found"):
        tool(world, "/no/such/program")


def test_a_program_in_the_working_folder_or_on_the_users_path_is_not_picked_up(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = world / "wc"
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    (world / "plantedonly").symlink_to(planted)
    monkeypatch.chdir(world)
    monkeypatch.setenv("PATH", f"{world}:.")
    assert program_path("wc") != str(planted)
    with pytest.raises(ToolError) as caught:
        program_path("plantedonly")
    assert caught.value.code == "tools.command-not-found"
    assert "needs" in (caught.value.fix or "")


async def test_a_program_outside_the_system_runs_when_it_is_named_by_its_path(world: Path) -> None:
    program = world.parent / "greet"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    assert await tool(world, str(program)).call({}) == "hello"
    program.unlink()


async def test_where_nothing_can_be_confined_the_tool_is_there_but_refuses_to_run(world: Path) -> None:
    (made,) = command_tools(
        parse_manifest({"manifest": 1, "tools": [{"name": "it", "argv": ["true"]}]}),
        Folders.of(world, read=[world]),
        probe=lambda: "the kernel has Landlock ABI 0, and 6 is needed",
    )
    assert (await refused(made)).code == "tools.cannot-confine"

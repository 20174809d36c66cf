"""The files toolbox, through the tools a plan calls."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import ValidationError

from bicameral.errors import ToolError
from bicameral.parsing import ParseLimitError
from bicameral.plans import check, parse
from bicameral.toolboxes.files import toolbox
from bicameral.tools import Folders, Registry, Surroundings
from property_examples import examples


@pytest.fixture
def tools(tmp_path: Path) -> Registry:
    return Registry(toolbox.open(Surroundings.here(tmp_path)))


@pytest.mark.parametrize("path", ["bicameral.toml", "sub/BICAMERAL.TOML", ".bicameral/journal.db"])
def test_a_plan_that_writes_what_no_tool_may_change_does_not_pass_the_check(tools: Registry, path: str) -> None:
    for source in (f"write_text('{path}', 'x')", f"append_text('{path}', 'x')", f"delete_file('{path}')"):
        errors = check(parse(f"{source}\nanswer(1)", tools).plan, tools).errors
        assert [(error.code, error.path) for error in errors] == [("tools.protected", "0")]
    assert check(parse("write_text('notes.txt', 'x')\nanswer(1)", tools).plan, tools).ok


@pytest.mark.parametrize("path", ["bicameral.toml", "sub/BICAMERAL.TOML", ".bicameral/journal.db", "bicameral.toml/"])
def test_a_plan_that_copies_or_moves_onto_what_no_tool_may_change_does_not_pass_the_check(
    tools: Registry, tmp_path: Path, path: str
) -> None:
    (tmp_path / "a.txt").write_text("[policy]")
    (tmp_path / "sub").mkdir()
    (tmp_path / "bicameral.toml").write_text("")
    attacks = (
        f"copy_file('a.txt', '{path}')",
        f"move_file('a.txt', '{path}')",
        f"move_file('{path}', 'a.txt')",
        f"name = read_text('a.txt')\ncopy_file(name, '{path}')",
        f"name = read_text('a.txt')\nmove_file(name, '{path}')",
        f"name = read_text('a.txt')\nmove_file('{path}', name)",
    )
    for source in attacks:
        errors = check(parse(f"{source}\nanswer(1)", tools).plan, tools).errors
        assert [error.code for error in errors] == ["tools.protected"], source


@pytest.mark.parametrize("target", ["b.txt", "sub", "sub/", "sub/b.txt", "new/b.txt", "my-bicameral.toml"])
def test_a_plan_that_copies_or_moves_elsewhere_passes_the_check(tools: Registry, tmp_path: Path, target: str) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "sub").mkdir()
    for name in ("copy_file", "move_file"):
        assert check(parse(f"{name}('a.txt', '{target}')\nanswer(1)", tools).plan, tools).ok
        found = tools[name].write_target({"source": "a.txt", "target": target})
        assert found is not None
        assert (found.protected, found.executed) == (None, False)


def test_a_file_that_a_copy_would_put_into_a_folder_under_a_protected_name_is_refused(
    tools: Registry, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    errors = check(parse("copy_file('bicameral.toml', 'sub')\nanswer(1)", tools).plan, tools).errors
    assert [error.code for error in errors] == ["tools.protected"]
    assert check(parse("copy_file('bicameral.toml', 'sub/old.txt')\nanswer(1)", tools).plan, tools).ok


async def call(tools: Registry, name: str, **arguments: Any) -> Any:
    return await tools[name].call(arguments)


async def refusal(tools: Registry, name: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await call(tools, name, **arguments)
    return caught.value


def test_every_tool_says_its_effect_and_what_its_arguments_are_for(tools: Registry) -> None:
    assert {tool.name: tool.effect for tool in tools if tool.changes} == {
        "write_text": "write",
        "write_lines": "write",
        "append_text": "write",
        "copy_file": "write",
        "move_file": "write",
        "delete_file": "irreversible",
        "make_folder": "write",
    }
    purposes = {f"{tool.name}.{a.name}": a.purpose for tool in tools if tool.changes for a in tool.arguments}
    assert purposes["write_text.path"] == purposes["delete_file.path"] == purposes["move_file.source"] == "directs"
    assert purposes["write_text.text"] == purposes["write_lines.lines"] == "carries"
    assert all(tool.words for tool in tools if tool.changes)
    assert all("\n" not in tool.doc and tool.doc and tool.toolbox == "files" for tool in tools)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=examples(50))
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff")))
async def test_text_comes_back_exactly_as_it_was_written(tools: Registry, text: str) -> None:
    await call(tools, "write_text", path="a.txt", text=text)
    assert await call(tools, "read_text", path="a.txt") == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=examples(50))
@given(lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff\n\r"))))
async def test_lines_come_back_exactly_as_they_were_written(tools: Registry, lines: list[str]) -> None:
    await call(tools, "write_lines", path="a.txt", lines=lines)
    assert await call(tools, "read_lines", path="a.txt") == lines


async def test_lines_end_as_any_system_ends_them(tools: Registry, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"unix\nwindows\r\nmac\rform\x0cfeed\n\nlast")
    assert await call(tools, "read_lines", path="a.txt") == ["unix", "windows", "mac", "form\x0cfeed", "", "last"]


async def test_appended_text_starts_on_a_line_of_its_own(tools: Registry, tmp_path: Path) -> None:
    for text in ("one", "two\n", "three"):
        await call(tools, "append_text", path="log.txt", text=text)
    assert (tmp_path / "log.txt").read_text() == "one\ntwo\nthree"


async def test_text_with_half_a_character_is_refused(tools: Registry, tmp_path: Path) -> None:
    for name in ("write_text", "append_text"):
        assert (await refusal(tools, name, path="a.txt", text="x\ud800")).code == "files.encoding"
    assert os.listdir(tmp_path) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "b.txt": "Invoice 7\nnothing",
        "A.TXT": "an INVOICE",
        "sub/c.txt": "x\ninvoice",
        "sub/deep/d.csv": "1",
        ".hidden/e.txt": "invoice",
        ".env": "invoice",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0invoice")
    return tmp_path


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ({}, ["A.TXT", "b.txt", "picture.png"]),
        ({"pattern": "*.txt"}, ["A.TXT", "b.txt"]),
        ({"recursive": True}, ["A.TXT", "b.txt", "picture.png", "sub/c.txt", "sub/deep/d.csv"]),
        ({"pattern": "**/*.txt"}, ["A.TXT", "b.txt", "sub/c.txt"]),
        ({"pattern": "sub/*.txt"}, ["sub/c.txt"]),
        ({"folder": "sub"}, ["sub/c.txt"]),
        ({"folder": "sub/", "recursive": True}, ["sub/c.txt", "sub/deep/d.csv"]),
        ({"pattern": ".*"}, [".env"]),
        ({"pattern": "*.doc"}, []),
    ],
)
async def test_listing_gives_the_paths_that_other_tools_take(
    tools: Registry, arguments: dict[str, Any], paths: list[str]
) -> None:
    found = await call(tools, "list_files", **arguments)
    assert [file["path"] for file in found] == paths
    for file in found:
        assert await call(tools, "file_exists", path=file["path"])


async def test_a_listed_file_has_its_facts(tools: Registry, tree: Path) -> None:
    os.utime(tree / "sub/c.txt", (1_700_000_000, 1_700_000_000))
    (file,) = await call(tools, "list_files", folder="sub")
    assert file == {
        "path": "sub/c.txt",
        "name": "c.txt",
        "folder": "sub",
        "size": 9,
        "modified": datetime.fromtimestamp(1_700_000_000),
    }


async def test_a_listing_has_an_end(tree: Path) -> None:
    tools = Registry(toolbox.open(Surroundings.here(tree), {"max_files": 2}))
    assert (await refusal(tools, "list_files")).code == "files.too-many"
    with pytest.raises(ValidationError):
        toolbox.open(Surroundings.here(tree), {"max_file": 2})


@pytest.mark.usefixtures("tree")
async def test_searching_finds_lines_whatever_their_case_and_skips_what_is_no_text(tools: Registry) -> None:
    assert await call(tools, "search_files", text="invoice") == [
        {"path": "A.TXT", "number": 1, "line": "an INVOICE"},
        {"path": "b.txt", "number": 1, "line": "Invoice 7"},
        {"path": "sub/c.txt", "number": 2, "line": "invoice"},
    ]
    assert len(await call(tools, "search_files", text="invoice", folder="sub", pattern="*.txt")) == 1
    assert (await refusal(tools, "search_files", text="")).code == "files.bad-search"


async def test_copying_and_moving_into_a_folder_keeps_the_name(tools: Registry, tree: Path) -> None:
    await call(tools, "copy_file", source="b.txt", target="sub")
    await call(tools, "copy_file", source="b.txt", target="new/")
    await call(tools, "move_file", source="b.txt", target="renamed.txt")
    assert (tree / "sub/b.txt").read_text() == (tree / "new/b.txt").read_text() == "Invoice 7\nnothing"
    assert not (tree / "b.txt").exists()
    assert (await refusal(tools, "copy_file", source="sub/b.txt", target="new")).code == "files.exists"


async def test_a_file_is_deleted_and_a_folder_is_not(tools: Registry, tree: Path) -> None:
    await call(tools, "delete_file", path="b.txt")
    assert not await call(tools, "file_exists", path="b.txt")
    assert (await refusal(tools, "delete_file", path="sub")).code == "files.is-folder"
    assert (await refusal(tools, "delete_file", path="A.TXTT")).nearest == "A.TXT"
    assert (tree / "sub/c.txt").exists()


async def test_making_a_folder_twice_is_fine(tools: Registry, tmp_path: Path) -> None:
    await call(tools, "make_folder", path="a/b")
    await call(tools, "make_folder", path="a/b/")
    assert (tmp_path / "a/b").is_dir()
    assert not await call(tools, "file_exists", path="a/b")


async def test_limits_and_folders_hold_for_every_tool(tmp_path: Path, tree: Path) -> None:
    small = Registry(toolbox.open(Surroundings.here(tree), {"max_bytes": 5}))
    assert (await refusal(small, "read_text", path="b.txt")).code == "files.too-large"
    outside = Registry(toolbox.open(Surroundings(Folders.of(tree / "sub", read=[tree / "sub"]))))
    calls: dict[str, dict[str, Any]] = {
        "read_text": {"path": "../b.txt"},
        "read_lines": {"path": "../b.txt"},
        "write_text": {"path": "c.txt", "text": ""},
        "write_lines": {"path": "c.txt", "lines": []},
        "append_text": {"path": "c.txt", "text": "x"},
        "list_files": {"folder": ".."},
        "search_files": {"text": "x", "folder": ".."},
        "file_exists": {"path": "../b.txt"},
        "copy_file": {"source": "c.txt", "target": "d.txt"},
        "move_file": {"source": "c.txt", "target": "d.txt"},
        "delete_file": {"path": "c.txt"},
        "make_folder": {"path": "new"},
    }
    for name, arguments in calls.items():
        assert (await refusal(outside, name, **arguments)).code == "files.outside", name
    assert (tmp_path / "sub/c.txt").read_text() == "x\ninvoice"


# Comparing


async def test_two_files_are_compared_line_by_line(tools: Registry, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "b.txt").write_text("one\n2\nthree\n")
    found = await call(tools, "diff_files", old="a.txt", new="b.txt")
    assert found.splitlines() == ["--- a.txt", "+++ b.txt", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]
    assert await call(tools, "diff_files", old="a.txt", new="a.txt") == ""
    assert (await refusal(tools, "diff_files", old="a.txt", new="none.txt")).code == "files.missing"


async def test_files_made_to_be_compared_slowly_stop_at_a_limit(tools: Registry, tmp_path: Path) -> None:
    # Every line of one file occurs in the other in many places, few enough to count as rare.
    lines = [f"{number % 150}" for number in range(14_900)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    (tmp_path / "b.txt").write_text("\n".join(reversed(lines)))
    (tmp_path / "many.txt").write_text("x\n" * 250_000)
    assert (await refusal(tools, "diff_files", old="many.txt", new="a.txt")).code == "files.too-large"
    began = time.monotonic()
    with suppress(ParseLimitError):
        await call(tools, "diff_files", old="a.txt", new="b.txt")
    assert time.monotonic() - began < 40


async def test_a_comparison_is_the_users_own_only_if_both_files_are(tmp_path: Path) -> None:
    for folder in ("kept", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
    folders = Folders.of(tmp_path, read=[tmp_path], write=[tmp_path], trusted=[Path("kept")])
    tool = Registry(toolbox.open(Surroundings(folders)))["diff_files"]
    for old, new, trust in (
        ("kept", "kept", "user"),
        ("kept", "other", "third_party"),
        ("other", "kept", "third_party"),
    ):
        arguments = {"old": f"{old}/a.txt", "new": f"{new}/a.txt"}
        labels = tool.result_labels(await tool.call(arguments), "0", arguments=arguments)
        assert {source.trust for source in labels.flat.sources} == {trust}

"""Trusted folders: what is read there is the user's own word, so nothing gets in there through a tool."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bicameral.errors import ToolError
from bicameral.tools import Folders, Surroundings, command_tools, parse_manifest


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name in ("notes/work", "inbox", "own"):
        (tmp_path / "base" / name).mkdir(parents=True)
    (tmp_path / "base/notes/todo.txt").write_text("mine")
    (tmp_path / "base/inbox/mail.txt").write_text("a stranger's")
    (tmp_path / "base/notes/linked.txt").symlink_to(tmp_path / "base/inbox/mail.txt")
    (tmp_path / "base/notes/linked").symlink_to(tmp_path / "base/inbox")
    (tmp_path / "base/alias").symlink_to(tmp_path / "base/notes")
    return tmp_path / "base"


@pytest.fixture
def folders(base: Path) -> Folders:
    return Folders.of(base, read=[base], write=[base], trusted=[Path("notes")])


def refused(work: Callable[[], object]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        work()
    return caught.value


@pytest.mark.parametrize("path", ["notes/todo.txt", "./notes/../notes/todo.txt", "notes/work/new.txt", "notes"])
def test_what_lies_in_a_trusted_folder_is_trusted(folders: Folders, path: str) -> None:
    assert folders.is_trusted(path)
    assert folders.is_trusted(str(folders.base / path))


@pytest.mark.parametrize(
    "path",
    [
        "inbox/mail.txt",
        ".",
        "notes2/x",
        "notes/../inbox/mail.txt",
        "notes/linked.txt",
        "notes/linked/mail.txt",
        "alias/todo.txt",
        "",
        "notes/\0",
        "/etc/passwd",
    ],
)
def test_a_path_that_leads_elsewhere_or_through_a_link_is_not_trusted(folders: Folders, path: str) -> None:
    assert not folders.is_trusted(path)


def test_without_trusted_folders_nothing_is_trusted(base: Path) -> None:
    assert not Folders.of(base, read=[base], write=[base]).is_trusted("notes/todo.txt")


def test_a_trusted_folder_that_is_itself_a_link_is_trusted_by_the_name_that_the_user_gave(base: Path) -> None:
    folders = Folders.of(base, read=[base], trusted=[Path("alias")])
    assert folders.is_trusted("alias/todo.txt")
    assert folders.is_trusted("notes/todo.txt")
    assert not folders.is_trusted("alias/linked.txt")
    # Where the name leads later is not where it led when the user gave it.
    os.unlink(base / "alias")
    (base / "alias").symlink_to(base / "inbox")
    assert not folders.is_trusted("alias/mail.txt")


def test_no_tool_can_write_where_the_user_is_taken_at_his_word(folders: Folders, base: Path) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: folders.write_text("notes/todo.txt", "theirs"),
        lambda: folders.write_text("notes/new.txt", "theirs"),
        lambda: folders.write_text("alias/new.txt", "theirs"),
        lambda: folders.append_line("notes/todo.txt", "theirs"),
        lambda: folders.copy("inbox/mail.txt", "notes/copied.txt"),
        lambda: folders.move("inbox/mail.txt", "notes/moved.txt"),
        lambda: folders.move("notes/todo.txt", "inbox/todo.txt"),
        lambda: folders.delete("notes/todo.txt"),
        lambda: folders.make_folder("notes/folder"),
        lambda: folders.resolve_writable("notes/todo.txt"),
        # A command that is given this folder to write in could write in the trusted one below it.
        lambda: folders.resolve_writable("."),
    ]
    before = sorted(path.name for path in (base / "notes").rglob("*"))
    for attempt in attempts:
        error = refused(attempt)
        assert error.code == "files.trusted"
        assert error.fix
    assert sorted(path.name for path in (base / "notes").rglob("*")) == before
    assert (base / "notes/todo.txt").read_text() == "mine"
    folders.write_text("own/x.txt", "elsewhere it works")
    folders.copy("notes/todo.txt", "own/todo.txt")
    assert folders.resolve_writable("own") == base / "own"


def test_another_spelling_of_the_same_folder_is_no_way_in(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A disk that takes capitals and small letters for the same.
    look = os.stat

    def blind(path: Any, **options: Any) -> os.stat_result:
        return look(str(path).replace("NOTES", "notes"), **options)

    folders = Folders.of(base, read=[base], write=[base], trusted=[Path("notes")])
    monkeypatch.setattr(os, "stat", blind)
    assert refused(lambda: folders.write_text("NOTES/new.txt", "theirs")).code == "files.trusted"
    assert not folders.is_trusted("NOTES/todo.txt")


async def test_a_command_cannot_be_given_a_folder_with_a_trusted_one_in_it(folders: Folders) -> None:
    manifest = parse_manifest(
        {
            "manifest": 1,
            "tools": [
                {
                    "name": "fill",
                    "argv": ["touch", "{folder}/notes/theirs"],
                    "effect": "write",
                    "arguments": {"folder": {"type": "path", "access": "write"}},
                }
            ],
        }
    )
    (fill,) = command_tools(manifest, folders)
    with pytest.raises(ToolError) as caught:
        await fill.call({"folder": "."})
    assert caught.value.code == "files.trusted"
    assert not (folders.base / "notes/theirs").exists()


def test_the_working_folder_is_not_trusted_by_itself(base: Path) -> None:
    assert Surroundings.here(base).folders.trusted == ()

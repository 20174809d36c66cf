"""No tool changes what decides how the next run behaves, however the path is spelled and whatever stands there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ToolError
from bicameral.tools import Folders, ProtectedPath, protected_database_files
from bicameral.tools._path_rules import normalize_name  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "plans").mkdir(parents=True)
    (folder / "own.py").write_text("mine")
    (folder / "notes.txt").write_text("notes")
    return folder


@pytest.fixture
def folders(work: Path) -> Folders:
    return Folders.of(work, read=[work], write=[work]).with_protected(
        [
            ProtectedPath(Path("own.py"), "a toolbox"),
            ProtectedPath(Path("later.cedar"), "a policy"),
            ProtectedPath(Path("plans"), "in the cache of plans", whole=True),
            *protected_database_files(Path("runs.db"), "the journal"),
        ]
    )


def refused(change: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        change()
    assert caught.value.code == "tools.protected"
    return str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "bicameral.toml",
        "BICAMERAL.TOML",
        "sub/../bicameral.toml",
        "sub/bicameral.toml",
        "bicameral.toml.",
        "bicameral.toml ",
        "bicameral.toml:stream",
        "\uff42icameral.toml",
        ".bicameral/journal.db",
        ".Bicameral/x",
        "own.py",
        "OWN.PY",
        "later.cedar",
        "plans/ab/cd",
        "runs.db",
        "runs.db-wal",
        "runs.db-shm",
    ],
)
def test_a_protected_file_is_neither_written_made_moved_nor_deleted(folders: Folders, work: Path, path: str) -> None:
    refused(lambda: folders.write_text(path, "x"))
    refused(lambda: folders.append_line(path, "x"))
    refused(lambda: folders.copy("notes.txt", path))
    refused(lambda: folders.move("notes.txt", path))
    refused(lambda: folders.make_folder(path))
    refused(lambda: folders.delete(path))
    refused(lambda: folders.move(path, "elsewhere.txt"))
    assert (work / "own.py").read_text() == "mine"
    assert sorted(each.name for each in work.iterdir()) == ["notes.txt", "own.py", "plans"]


def test_a_name_with_something_invisible_in_it_is_no_path_at_all(folders: Folders) -> None:
    with pytest.raises(ToolError) as caught:
        folders.write_text("bica\u200dmeral.toml", "x")
    assert caught.value.code == "files.bad-path"


def test_links_hard_and_soft_lead_to_the_same_refusal(folders: Folders, work: Path) -> None:
    os.link(work / "own.py", work / "hard.txt")
    (work / "soft.txt").symlink_to("own.py")
    (work / "cache").symlink_to("plans")
    for path in ("hard.txt", "soft.txt", "cache/x"):
        refused(lambda path=path: folders.write_text(path, "x"))
    refused(lambda: folders.delete("hard.txt"))


def test_a_link_on_the_way_to_a_protected_file_is_protected(work: Path) -> None:
    (work / "v1").mkdir()
    (work / "v1/team.cedar").write_text("forbid")
    (work / "policies").symlink_to("v1")
    guarded = Folders.of(work, read=[work], write=[work]).with_protected(
        [ProtectedPath(Path("policies/team.cedar"), "a policy")]
    )
    refused(lambda: guarded.delete("policies"))
    refused(lambda: guarded.write_text("v1/team.cedar", "permit"))
    guarded.write_text("v1/other.txt", "mine")


def test_the_message_says_which_file_and_why(folders: Folders) -> None:
    told = refused(lambda: folders.write_text("own.py", "x"))
    assert told.startswith("'own.py' is a toolbox, and no tool may change that.")


def test_reading_and_everything_else_is_as_before(folders: Folders, work: Path) -> None:
    assert folders.read_text("own.py") == "mine"
    folders.copy("own.py", "copy.txt")
    folders.write_text("plan.txt", "x")
    folders.move("plan.txt", "drafts/plan.txt")
    folders.delete("drafts/plan.txt")
    assert (work / "copy.txt").read_text() == "mine"


def test_a_toolbox_changes_what_it_keeps_and_no_other_tool_does(folders: Folders, work: Path) -> None:
    kept = folders.with_protected([ProtectedPath(Path("calendar.ics"), "kept by the toolbox 'calendar'")])
    refused(lambda: kept.write_text("calendar.ics", "x"))
    kept.exempting("calendar.ics").write_text("calendar.ics", "event")
    assert (work / "calendar.ics").read_text() == "event"
    refused(lambda: kept.exempting("bicameral.toml").write_text("bicameral.toml", "x"))
    for other in ("own.py", "later.cedar", "plans/x", "runs.db"):
        refused(lambda other=other: kept.exempting("calendar.ics").write_text(other, "x"))
        refused(lambda other=other: kept.exempting("calendar.ics").resolve_writable(other))


def test_a_folder_with_a_protected_file_at_any_depth_is_not_given_to_a_program(folders: Folders, work: Path) -> None:
    refused(lambda: folders.resolve_writable_folder("."))
    (work / "out/deep").mkdir(parents=True)
    assert folders.resolve_writable_folder("out") == work / "out"
    os.link(work / "own.py", work / "out/deep/copy.txt")
    refused(lambda: folders.resolve_writable_folder("out"))


def test_what_a_program_made_and_no_tool_may_make_loses_its_name_and_is_kept(folders: Folders, work: Path) -> None:
    (work / "out/deep").mkdir(parents=True)
    (work / "out/deep/bicameral.toml").write_text("evil")
    assert folders.rename_protected("out") == "out/deep/bicameral.toml"
    (left,) = (work / "out/deep").iterdir()
    assert (left.name.startswith("refused-"), left.suffix, left.read_text()) == (True, ".txt", "evil")
    assert folders.rename_protected("out") is None


def test_the_users_own_folders_are_protected_without_any_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    whole = Folders.of(tmp_path, read=[tmp_path], write=[tmp_path])
    refused(lambda: whole.write_text("state/bicameral/accepted.json", "{}"))
    whole.write_text("state/other/x.json", "{}")


@given(st.text(max_size=40))
def test_a_compared_name_is_compared_like_itself(name: str) -> None:
    assert normalize_name(normalize_name(name)) == normalize_name(name)

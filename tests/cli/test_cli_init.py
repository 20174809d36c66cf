"""`bicameral init`: what it finds, what it asks, and a file that is written whole or not at all."""

from __future__ import annotations

import mailbox
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli_terminal import Terminal, opened
from cli_world import World

from bicameral.config import detect_settings, detect_timezone, load_config, render_config


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    return folder


def make_maildir(folder: Path) -> None:
    mailbox.Maildir(folder).close()


def make_mbox(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    box = mailbox.mbox(file)
    box.add("From: kim@example.org\nSubject: Hi\n\nHello\n")
    box.close()


def written(world: World) -> dict[str, Any]:
    return tomllib.loads((world.folder / "bicameral.toml").read_text())


def test_with_yes_what_is_found_in_the_folder_is_set(world: World, home: Path) -> None:
    make_maildir(world.folder / "Maildir")
    world.write("calendar.ics", "BEGIN:VCALENDAR\nEND:VCALENDAR\n")
    told = world.json("init", "--yes")
    assert told["settings"] == {"mail": "Maildir", "calendar": "calendar.ics", "timezone": "Europe/Berlin"}
    toolboxes = written(world)["toolbox"]
    assert toolboxes["mail"] == {"folder": "Maildir"}
    assert toolboxes["calendar"] == {"file": "calendar.ics", "timezone": "Europe/Berlin"}
    assert written(world)["folders"]["read"] == ["."]
    # It loads, with nothing withheld, and the doctor can read both.
    checks = {check["name"]: check["status"] for check in world.json("doctor")["checks"]}
    assert (checks["mail"], checks["calendar"], checks["configuration"]) == ("ok", "ok", "ok")


@pytest.mark.parametrize(
    ("place", "make", "named"),
    [
        ("Maildir", make_maildir, "~/Maildir"),
        ("Mail/inbox.mbox", make_mbox, "~/Mail"),
        (
            ".thunderbird/x.default/Mail/Local Folders/Inbox",
            make_mbox,
            "~/.thunderbird/x.default/Mail/Local Folders/Inbox",
        ),
    ],
)
def test_a_mailbox_at_home_is_found_and_becomes_readable(
    world: World, home: Path, place: str, make: Any, named: str
) -> None:
    make(home / place)
    world.call("init", "--yes")
    assert written(world)["toolbox"]["mail"]["folder"] == named
    assert written(world)["folders"]["read"] == [".", named]
    assert load_config().withheld == ()


def test_an_mbox_in_the_folder_comes_before_a_mailbox_at_home(world: World, home: Path) -> None:
    make_maildir(home / "Maildir")
    make_mbox(world.folder / "old.mbox")
    assert world.json("init", "--yes")["settings"]["mail"] == "old.mbox"


def test_of_several_calendars_none_is_taken(world: World, home: Path) -> None:
    world.write("a.ics", "")
    world.write("b.ics", "")
    assert world.json("init", "--yes")["settings"]["calendar"] is None


def test_without_a_terminal_and_without_yes_nothing_is_set(world: World, home: Path) -> None:
    make_maildir(world.folder / "Maildir")
    assert set(world.json("init")["settings"].values()) == {None}
    assert "toolbox" not in written(world)


def test_a_name_cannot_write_a_setting_of_its_own(world: World, home: Path) -> None:
    """Attack: the name of a mailbox that somebody sent ends the string and adds a setting."""
    name = 'x"]\nfiles = ["evil.py"]#.mbox'
    make_mbox(world.folder / name)
    make_mbox(world.folder / 'y"] #.mbox')
    found = detect_settings(world.folder, home)
    assert found.mail == 'y"] #.mbox'
    read = tomllib.loads(render_config(found, world.folder))
    assert read["toolbox"]["mail"]["folder"] == found.mail
    assert read["toolboxes"]["files"] == []


@pytest.mark.parametrize(
    ("variables", "file", "link", "zone"),
    [
        ({"TZ": ":America/Lima"}, "Europe/Berlin", None, "America/Lima"),
        ({"TZ": "nonsense"}, "Europe/Berlin\n", None, "Europe/Berlin"),
        ({}, None, "/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ({}, None, None, None),
    ],
)
def test_the_time_zone_is_that_of_the_machine(
    tmp_path: Path, variables: dict[str, str], file: str | None, link: str | None, zone: str | None
) -> None:
    if file is not None:
        (tmp_path / "timezone").write_text(file)
    if link is not None:
        (tmp_path / "localtime").symlink_to(link)
    assert detect_timezone(variables, tmp_path) == zone


def test_at_a_terminal_it_asks_with_what_was_found(world: World, home: Path, terminals: list[Terminal]) -> None:
    make_maildir(world.folder / "Maildir")
    terminal = opened(terminals, "init")
    terminal.wait_for("Your mailbox (a Maildir folder or an mbox file) [Maildir]:")
    terminal.type("\n")
    terminal.wait_for("Your calendar (an .ics file) [-]:")
    terminal.type("calendar.txt\n")
    terminal.wait_for("it must be an .ics file")
    terminal.type("mine.ics\n")
    terminal.wait_for("Your time zone [Europe/Berlin]:")
    terminal.type("-\n")
    assert terminal.end() == 0, terminal.shown
    assert written(world)["toolbox"] == {"mail": {"folder": "Maildir"}, "calendar": {"file": "mine.ics"}}


@pytest.mark.parametrize("reply", ["y", "n"])
def test_at_a_terminal_it_asks_before_it_replaces(
    world: World, home: Path, terminals: list[Terminal], reply: str
) -> None:
    world.write("bicameral.toml", "# mine\n")
    terminal = opened(terminals, "init")
    terminal.wait_for("Replace it? [y/N]")
    terminal.type(f"{reply}\n")
    if reply == "y":
        for _ in range(3):
            terminal.wait_for("]:")
            terminal.type("-\n")
    assert terminal.end() == (0 if reply == "y" else 2), terminal.shown
    assert ((world.folder / "bicameral.toml").read_text() == "# mine\n") is (reply == "n")


def test_a_file_that_cannot_be_written_whole_is_not_touched(
    world: World, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("bicameral.toml", "# mine\n")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert world.json("init", "--force", code=2)["error"]["code"] == "config.unwritable"
    assert (world.folder / "bicameral.toml").read_text() == "# mine\n"
    assert sorted(path.name for path in world.folder.iterdir()) == ["bicameral.toml", "mail.txt"]


def test_a_file_that_appears_meanwhile_is_not_replaced(
    world: World, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def appears(descriptor: int) -> None:
        world.write("bicameral.toml", "# theirs\n")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", appears)
    assert world.json("init", code=2)["error"]["code"] == "config.exists"
    assert (world.folder / "bicameral.toml").read_text() == "# theirs\n"


def test_doctor_checks_the_folder_that_it_was_given(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    told = world.json("doctor", "--folder", str(other))
    assert told["folder"] == str(other)
    assert str(world.folder) not in str([check for check in told["checks"] if check["name"].startswith("folder")])
    (other / "bicameral.toml").write_text("[folders\n")
    broken = world.json("doctor", "--folder", str(other), code=1)
    assert {check["detail"] for check in broken["checks"] if check["name"].startswith("folder to")} == {str(other)}
    gone = world.json("doctor", "--folder", str(tmp_path / "gone"), code=1)
    assert [check["name"] for check in gone["checks"] if check["status"] == "bad"] == ["configuration"]
    assert not [check for check in gone["checks"] if check["name"].startswith("folder")]

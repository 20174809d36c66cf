"""Taking back a run: files, calendar and mail folders are as before, or nothing is touched."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from bicameral.agent import Agent
from bicameral.config import Config
from bicameral.errors import BicameralError, RunError, ToolError
from bicameral.models import ScriptedProvider
from bicameral.plans import parse
from bicameral.runs import Failed, Finished, Journal, RunOutcome, Undo, plan_undo, public_event, undo_record
from bicameral.secrets import isolate_secrets, register_secret
from bicameral.tools import Folders, Registry, Surroundings, Tool, load_toolboxes, restore_exact, tool

CALENDAR = "\r\n".join(
    [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//test//EN",
        "BEGIN:VEVENT",
        "UID:one@test",
        "DTSTAMP:20260101T000000Z",
        "DTSTART:20260305T090000",
        "DTEND:20260305T100000",
        "SUMMARY:Dentist",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
)


class Office:
    """A folder with tools over it, an agent, and a journal outside of the folder."""

    def __init__(self, tmp: Path, *tools: Tool) -> None:
        self.folder = tmp / "office"
        self.folder.mkdir()
        self.journal = Journal(tmp / "journal.db")
        around = Surroundings.here(self.folder)
        boxes = load_toolboxes({"files": {}, "lines": {}, "tables": {}, "calendar": {}}, around)
        self.registry = Registry([*boxes, *tools])
        self.folders = around.folders
        self.agent = Agent(
            self.registry,
            config=Config.defaults(),
            journal=self.journal,
            privileged=ScriptedProvider([], grammars=False),
            quarantined=ScriptedProvider([], grammars=False),
        )

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def run(self, *lines: str) -> RunOutcome:
        return self.agent.sync.run(parse("\n".join([*lines, "answer(1)"]), self.registry).plan)

    def undo(self, run: str = "last") -> Undo:
        return self.agent.sync.undo(run, folders=self.folders)

    def plan_undo(self, run: str = "last") -> Undo:
        return self.agent.sync.plan_undo(run, folders=self.folders)

    def snapshot(self) -> dict[str, Any]:
        """Everything in the folder: contents, links and modes."""
        found: dict[str, Any] = {}
        for path in sorted(self.folder.rglob("*")):
            info = path.lstat()
            name = str(path.relative_to(self.folder))
            if path.is_symlink():
                found[name] = ("link", os.readlink(path))
            elif path.is_dir():
                found[name] = "folder"
            else:
                found[name] = (path.read_bytes(), stat.S_IMODE(info.st_mode))
        return found


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def code_of(call: Any) -> str:
    with pytest.raises(BicameralError) as raised:
        call()
    return raised.value.code


@pytest.mark.parametrize(
    "lines",
    [
        ['write_text("a.txt", "new")'],
        ['write_text("new.txt", "new")'],
        ['write_text("deep/er/new.txt", "new")'],
        ['append_text("a.txt", "more")'],
        ['append_text("a.txt", "more")', 'append_text("a.txt", "and more")', 'write_text("a.txt", "gone")'],
        ['delete_file("a.txt")'],
        ['delete_file("a.txt")', 'write_text("a.txt", "another")'],
        ['move_file("a.txt", "b.txt")'],
        ['append_text("a.txt", "x")', 'move_file("a.txt", "b.txt")', 'write_text("b.txt", "y")'],
        ['move_file("a.txt", "t.txt")', 'move_file("s.txt", "a.txt")', 'move_file("t.txt", "s.txt")'],
        ['move_file("a.txt", "sub/a.txt")', 'delete_file("sub/a.txt")'],
        ['copy_file("a.txt", "b.txt")', 'append_text("b.txt", "more")'],
        ['make_folder("one/two")', 'write_text("one/two/x.txt", "x")'],
        ['delete_file("link")'],
        ['move_file("link", "elsewhere")'],
        ['add_event("Lunch", datetime("2026-03-05T12:00"))', 'delete_event("one@test")'],
        ['write_csv("t.csv", [{"a": 1}])', 'write_json("t.json", [1, 2])'],
        ['write_text("private.txt", "p")', 'delete_file("a.txt")'],
    ],
)
def test_after_undo_every_file_is_as_before_the_run(office: Office, lines: list[str]) -> None:
    office.write("a.txt", "one\ntwo\n", 0o640)
    office.write("s.txt", "second\n")
    office.write("private.txt", "secret\n", 0o600)
    office.write("calendar.ics", CALENDAR)
    (office.folder / "link").symlink_to("a.txt")
    before = office.snapshot()
    outcome = office.run(*lines)
    assert isinstance(outcome, Finished), outcome
    assert office.snapshot() != before
    planned = office.plan_undo()
    assert office.snapshot() != before
    undone = office.undo()
    assert planned.diffs == undone.diffs
    assert office.snapshot() == before


def test_a_file_that_was_changed_since_is_refused_and_nothing_is_touched(office: Office) -> None:
    office.write("a.txt", "one\n")
    office.run('write_text("a.txt", "two")', 'write_text("b.txt", "new")')
    office.write("a.txt", "three")
    before = office.snapshot()
    with pytest.raises(RunError) as refused:
        office.undo()
    assert refused.value.code == "run.undo-conflict"
    assert "a.txt" in refused.value.message
    assert office.snapshot() == before
    assert not office.journal.events_after(undo_record(office.journal.find("last")), -1)
    # The benign twin: with the content that the run left it works.
    office.write("a.txt", "two")
    office.undo()
    assert (office.folder / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("change", ["deleted", "created", "other folder"])
def test_what_came_or_went_since_is_refused(office: Office, change: str) -> None:
    office.write("a.txt", "one\n")
    office.run('delete_file("a.txt")', 'write_text("b.txt", "new")')
    match change:
        case "deleted":
            # The run made it and somebody else removed it: then it is as before, and only the other one is put back.
            (office.folder / "b.txt").unlink()
            office.undo()
            assert sorted(office.snapshot()) == ["a.txt"]
        case "created":
            office.write("a.txt", "another\n")
            assert code_of(office.undo) == "run.undo-conflict"
        case _:
            (office.folder / "a.txt").mkdir()
            assert code_of(office.undo) == "run.undo-conflict"


def test_a_run_is_taken_back_once(office: Office) -> None:
    office.run('write_text("a.txt", "x")')
    office.undo()
    assert code_of(office.undo) == "run.undone"
    assert code_of(office.plan_undo) == "run.undone"


def test_a_run_that_changed_nothing_has_nothing_to_take_back(office: Office) -> None:
    office.run('x = file_exists("a.txt")')
    assert code_of(office.undo) == "run.nothing-to-undo"


def test_undo_is_recorded_beside_the_run_and_erased_with_it(office: Office) -> None:
    office.run('write_text("a.txt", "x")')
    run = office.journal.find("last")
    office.undo()
    kinds = [event.kind for event in office.journal.events_after(undo_record(run), -1)]
    assert kinds == ["undo-started", "undo-finished"]
    assert next(office.journal.runs()).status == "finished"
    assert not office.journal.verify()
    office.journal.erase(run)
    assert all(not event.body for event in office.journal.events_after(undo_record(run), -1)[:-1])
    assert not office.journal.verify()


def test_a_link_on_the_way_is_not_followed(office: Office, tmp_path: Path) -> None:
    """Somebody who can write the folder replaces a subfolder by a link that leads out of it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    office.write("sub/a.txt", "one\n")
    office.run('write_text("sub/a.txt", "two")')
    shutil.rmtree(office.folder / "sub")
    (outside / "a.txt").write_text("two")
    (office.folder / "sub").symlink_to(outside)
    assert code_of(office.undo) == "run.undo-conflict"
    assert (outside / "a.txt").read_text() == "two"


def test_a_link_in_place_of_the_file_is_not_followed(office: Office, tmp_path: Path) -> None:
    outside = tmp_path / "victim.txt"
    outside.write_text("two")
    office.write("a.txt", "one\n")
    office.run('write_text("a.txt", "two")')
    (office.folder / "a.txt").unlink()
    (office.folder / "a.txt").symlink_to(outside)
    assert code_of(office.undo) == "run.undo-conflict"
    assert outside.read_text() == "two"


def test_a_hard_link_keeps_its_content(office: Office, tmp_path: Path) -> None:
    """Undo replaces the name and writes into no file that has another name elsewhere."""
    office.write("a.txt", "one\n")
    office.run('write_text("a.txt", "two")')
    os.link(office.folder / "a.txt", tmp_path / "elsewhere.txt")
    office.undo()
    assert (tmp_path / "elsewhere.txt").read_text() == "two"
    assert (office.folder / "a.txt").read_text() == "one\n"


def test_nothing_is_put_back_outside_the_folders_of_now(office: Office, tmp_path: Path) -> None:
    office.write("a.txt", "one\n")
    office.run('write_text("a.txt", "two")')
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    narrow = Folders(elsewhere, (elsewhere,), (elsewhere,))
    assert code_of(lambda: office.agent.sync.undo("last", folders=narrow)) == "run.undo-conflict"
    trusted = Folders(office.folder, (office.folder,), (office.folder,), (office.folder,))
    assert code_of(lambda: office.agent.sync.undo("last", folders=trusted)) == "run.undo-conflict"
    assert (office.folder / "a.txt").read_text() == "two"


def test_a_record_that_names_a_protected_file_does_not_change_it(office: Office) -> None:
    """A forged record, as if a run had replaced the configuration."""
    office.run('x = file_exists("a.txt")')
    run = office.journal.find("last")
    target = office.folder / "bicameral.toml"
    target.write_text("mine = 1\n")
    import base64
    import hashlib

    def state(text: bytes) -> dict[str, Any]:
        return {"kind": "file", "sha256": hashlib.sha256(text).hexdigest(), "size": len(text), "mode": 0o644}

    content = b"evil = 1\n"
    change = {"path": str(target), "before": state(content), "after": state(b"mine = 1\n")}
    body = {"changes": [change | {"content": base64.b64encode(content).decode()}]}
    office.journal.append(run, "file-change", "1", body)
    assert code_of(office.undo) == "run.undo-conflict"
    assert target.read_text() == "mine = 1\n"


def test_a_kept_content_that_was_tampered_with_is_not_written(office: Office) -> None:
    office.write("a.txt", "one\n")
    office.run('write_text("a.txt", "two")')
    run = office.journal.find("last")
    events = office.journal.events(run)
    changed = next(event for event in events if event.kind == "file-change")
    forged = json.loads(json.dumps(changed.body))
    forged["changes"][0]["content"] = "ZXZpbA=="

    class Tampered:
        path = office.journal.path

        def find(self, name: str) -> str:
            return run

        def events(self, name: str) -> list[Any]:
            from dataclasses import replace

            return [replace(event, body=forged) if event is changed else event for event in events]

        def events_after(self, name: str, number: int) -> list[Any]:
            return []

    found = plan_undo(Tampered(), run, office.folders, office.registry)  # pyright: ignore[reportArgumentType]
    assert found.conflicts
    assert not found.restorations


@pytest.mark.parametrize("moment", ["before the change", "after the change"])
def test_a_crash_between_record_and_change_is_judged_by_the_content(
    office: Office, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies right before or right after the rename: the record looks the same."""

    office.write("a.txt", "one\n")
    rename = os.replace

    def die(*args: Any, **options: Any) -> None:
        if moment == "after the change":
            rename(*args, **options)
        raise ToolError("tools.failed", "power cut")

    monkeypatch.setattr(os, "replace", die)
    assert isinstance(office.run('write_text("a.txt", "two")'), Failed)
    monkeypatch.undo()
    if moment == "before the change":
        assert (office.folder / "a.txt").read_text() == "one\n"
        assert code_of(office.undo) == "run.nothing-to-undo"
    else:
        office.undo()
    assert (office.folder / "a.txt").read_text() == "one\n"


def test_a_run_without_an_end_is_ended_before_it_is_taken_back(office: Office) -> None:
    """Its process may still be at work: after undo it can record, and so change, nothing more."""
    office.write("a.txt", "one\n")
    office.run('write_text("a.txt", "two")')
    events = office.journal.events("last")
    for event in events[:-1]:
        office.journal.append("cutoff", event.kind, event.step, event.body)
    office.undo("cutoff")
    assert (office.folder / "a.txt").read_text() == "one\n"
    assert office.journal.events("cutoff")[-1].kind == "run-stopped"
    resumed = office.agent.sync.resume("cutoff")
    assert type(resumed).__name__ == "Stopped"
    assert (office.folder / "a.txt").read_text() == "one\n"


def test_an_undo_that_was_cut_off_can_be_finished(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    import bicameral.runs._undo as undoing

    office.write("a.txt", "one\n")
    office.write("b.txt", "one\n")
    office.run('write_text("a.txt", "two")', 'write_text("b.txt", "two")')
    restore, calls = restore_exact, list[Path]()

    def fail_second(folders: Folders, path: Path, *rest: Any, **options: Any) -> None:
        calls.append(path)
        if len(calls) == 2:
            raise ToolError("files.no-space", "the disk is full")
        restore(folders, path, *rest, **options)

    monkeypatch.setattr(undoing, "restore_exact", fail_second)
    assert code_of(office.undo) == "files.no-space"
    monkeypatch.undo()
    office.undo()
    assert (office.folder / "a.txt").read_text() == (office.folder / "b.txt").read_text() == "one\n"


def test_a_folder_that_is_not_empty_any_more_stays(office: Office) -> None:
    office.run('write_text("made/a.txt", "x")')
    office.write("made/mine.txt", "mine")
    office.undo()
    assert sorted(office.snapshot()) == ["made", "made/mine.txt"]


def test_effects_that_cannot_be_taken_back_are_named(tmp_path: Path) -> None:
    sent: list[str] = []

    @tool(effect="send", purpose={"text": "carries"})
    def post(text: str) -> None:
        "Post a text."
        sent.append(text)

    @tool(effect="write", outbound=False, purpose={"text": "carries"})
    def poke(text: str) -> None:
        "Change something somewhere."

    office = Office(tmp_path, post, poke)
    office.run('write_text("a.txt", "x")', 'post("hello")', 'poke("x")')
    found = office.plan_undo()
    assert [(each.tool, each.reason) for each in found.lasting] == [
        ("post", "what was sent is sent"),
        ("poke", "it may have changed more than files"),
    ]
    office.undo()
    assert sent == ["hello"]
    assert not office.snapshot()


def test_a_secret_in_a_replaced_file_is_not_in_the_journal(office: Office, tmp_path: Path) -> None:
    with isolate_secrets():
        register_secret("API_KEY", "sk-very-secret-value-123456")
        office.write("a.txt", "key = sk-very-secret-value-123456\n")
        office.run('write_text("a.txt", "two")')
        found = office.plan_undo()
        assert [each.reason for each in found.conflicts] == ["the file held a secret, and the journal keeps none"]
        assert b"sk-very-secret-value-123456" not in b"".join(each.read_bytes() for each in tmp_path.glob("journal*"))


def test_watchers_of_a_run_do_not_get_the_former_contents(office: Office) -> None:
    office.write("a.txt", "private content\n")
    office.run('write_text("a.txt", "two")')
    changed = [event for event in office.journal.events("last") if event.kind == "file-change"]
    assert all("content" in each.body["changes"][0] for each in changed)
    assert all("content" not in public_event(each).body["changes"][0] for each in changed)


def test_former_contents_are_kept_once(office: Office) -> None:
    """A loop that appends keeps nothing, and one that rewrites keeps the first content alone."""
    office.write("log.txt", "x" * 10_000)
    office.run('for n in [1, 2, 3]:\n    append_text("log.txt", "more")')
    assert not [each for each in _facts(office) if "content" in each]
    office.run('for n in [1, 2, 3]:\n    write_text("log.txt", f"{n}")')
    assert len([each for each in _facts(office) if "content" in each]) == 1


def _facts(office: Office) -> list[dict[str, Any]]:
    events = office.journal.events("last")
    return [each for event in events if event.kind == "file-change" for each in event.body["changes"]]


def test_a_call_that_was_given_up_changes_nothing_later(tmp_path: Path) -> None:
    """The thread of a call that timed out goes on: what it would change then is refused."""
    import threading
    import time

    started, late = threading.Event(), list[str]()
    folder = tmp_path / "office"
    folders = Folders(folder, (folder,), (folder,))

    @tool(effect="write", outbound=False, timeout=0.1, purpose={"text": "carries"})
    def slow(text: str) -> None:
        "Write, too late."
        started.set()
        time.sleep(0.6)
        try:
            folders.write_text("late.txt", text)
        except ToolError as error:
            late.append(error.code)

    office = Office(tmp_path, slow)
    assert isinstance(office.run('slow("x")'), Failed)
    time.sleep(1.0)
    assert late == ["tools.given-up"]
    assert not office.snapshot()


def test_a_mode_that_somebody_set_since_stays(office: Office) -> None:
    """A file that its owner has closed to others is not opened to them again."""
    path = office.write("a.txt", "one\n", 0o644)
    office.run('write_text("a.txt", "two")')
    path.chmod(0o600)
    office.undo()
    assert path.read_text() == "one\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_moved_deleted_and_drafted_mails_are_as_before(tmp_path: Path) -> None:
    folder = tmp_path / "office"
    names = [f"170000000{number}.1.host" for number in (1, 2)]
    for part in ("cur", "new", "tmp"):
        (folder / "Maildir" / part).mkdir(parents=True)
    for number, name in enumerate(names):
        mail = folder / "Maildir/new" / name
        mail.write_text(f"From: kim@example.com\nSubject: hi {number}\nDate: Mon, 2 Mar 2026 10:00:00 +0000\n\nHello\n")
        os.utime(mail, (1_700_000_000, 1_700_000_000))
    (folder / "Maildir/.Archive/cur").mkdir(parents=True)
    (folder / "Maildir/.Archive/new").mkdir()
    (folder / "Maildir/.Archive/tmp").mkdir()
    settings = {"mail": {"folder": "Maildir", "address": "me@example.com"}}
    boxes = load_toolboxes(settings, Surroundings.here(folder))
    shutil.move(folder, tmp_path / "kept")
    office = Office(tmp_path, *boxes)
    office.folder.rmdir()
    shutil.move(tmp_path / "kept", folder)
    before = office.snapshot()
    outcome = office.run(
        f'move_mail("INBOX/{names[0]}", "Archive")',
        f'delete_mail("INBOX/{names[1]}")',
        'save_draft(["ann@example.com"], "Hello", "Text")',
    )
    assert isinstance(outcome, Finished), outcome
    assert not list((folder / "Maildir/new").iterdir())
    undone = office.undo()
    assert [each.action for each in undone.restorations[:3]] == ["move", "move", "delete"]
    assert not undone.lasting
    assert office.snapshot() == before
    assert (folder / "Maildir/new" / names[0]).stat().st_mtime == 1_700_000_000


def test_a_resumed_run_is_taken_back_whole(office: Office) -> None:
    """Its process died after the second change was recorded and before it was made."""
    office.write("a.txt", "one\n")
    office.write("b.txt", "one\n")
    office.run('write_text("a.txt", "two")', 'write_text("b.txt", "two")')
    events = office.journal.events("last")
    changes = [event.number for event in events if event.kind == "file-change"]
    office.write("b.txt", "one\n")
    for event in events[: changes[1] + 1]:
        office.journal.append("died", event.kind, event.step, event.body)
    resumed = office.agent.sync.resume("died")
    assert isinstance(resumed, Finished), resumed
    assert (office.folder / "b.txt").read_text() == "two"
    office.undo("died")
    assert (office.folder / "a.txt").read_text() == (office.folder / "b.txt").read_text() == "one\n"


def test_a_change_by_somebody_else_during_the_run_is_a_conflict(office: Office, tmp_path: Path) -> None:
    path = office.write("a.txt", "one\n")

    @tool(effect="read", outbound=False)
    def meddle() -> None:
        "Change the file behind the run's back."
        path.write_text("somebody else\n")

    office.registry = Registry([*office.registry, meddle])
    office.agent = Agent(
        office.registry,
        config=Config.defaults(),
        journal=office.journal,
        privileged=ScriptedProvider([], grammars=False),
        quarantined=ScriptedProvider([], grammars=False),
    )
    assert isinstance(office.run('write_text("a.txt", "two")', "meddle()", 'write_text("a.txt", "three")'), Finished)
    found = office.plan_undo()
    assert [each.reason for each in found.conflicts] == ["something else changed it while the run went on"]

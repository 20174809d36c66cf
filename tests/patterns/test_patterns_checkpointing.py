"""V10: saves around every change, a resume that repeats nothing, and a way back where the newest save is damaged."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from dataclasses import FrozenInstanceError, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from patterns_world import Table, World, answered, table

from bicameral.errors import BicameralError, CatalogError, JournalError
from bicameral.journal import Journal, NewEvent, open_journal_at
from bicameral.labels import Labelled, program_text
from bicameral.patterns import Checkpointing, GaveUp
from bicameral.patterns.kernel import (
    Context,
    Pattern,
    PatternWork,
    from_user,
    replay_pattern,
    resume_pattern,
    run_pattern,
)
from bicameral.patterns.reliability.checkpointing import Checkpoint, checkpoints, resume_from_checkpoint
from bicameral.runs import Answers, ApprovalQuestion
from bicameral.secrets import isolate_secrets, register_secret
from bicameral.tools import Origin, Tool, tool
from invariants import holds

KIM = from_user("kim@example.com")


@dataclass(frozen=True)
class Letters(Pattern[[Labelled[str]], int]):
    """Looks something up, and sends a number of letters one after another, or side by side."""

    id: ClassVar[str] = "R5"
    count: int = 2
    beside: bool = False

    async def execute(self, context: Context, /, to: Labelled[str]) -> Labelled[int]:
        people = await context.call("population", {"city": program_text("Ghent")})

        async def send(part: Context, number: int) -> Labelled[Any]:
            return await part.call("send", {"to": to, "body": part.derive(f"letter {number}")})

        if self.beside:
            works = [(f"letter {number}", partial(send, number=number)) for number in range(self.count)]
            await context.run_parallel(works, width=self.count)
        else:
            for number in range(self.count):
                await send(context, number)
        return people


WORK = Checkpointing(Letters())


class Counting:
    """An approver that says the same to everything, and counts."""

    def __init__(self, *, yes: bool) -> None:
        self.yes = yes
        self.questions: list[ApprovalQuestion] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.questions.append(question)
        return Answers.yes(question.calls) if self.yes else Answers.no()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return open_journal_at(tmp_path / "journal.db")


def run(there: Table, pattern: Pattern[..., Any] = WORK, *args: Any, name: str = "r") -> Any:
    return asyncio.run(run_pattern(PatternWork(pattern, args or [KIM]), there.desk, run=name))


def resume(journal: Journal, there: Table, name: str = "r", pattern: Pattern[..., Any] = WORK) -> Any:
    return asyncio.run(resume_from_checkpoint(journal, name, there.desk, pattern=pattern))


def bodies(there: Table) -> list[str]:
    return [body for _, (_, body) in there.world.done]


def cut(journal: Journal, to: str, keep: int, of: str = "r") -> None:
    """A run whose process died after so many events of another."""
    entries = [NewEvent(each.at, each.kind, each.step, each.body) for each in journal.events(of)[:keep]]
    journal.append_all(to, entries)


def damage(folder: Path, name: str, number: int) -> None:
    """Change an event as somebody does who can write to the file."""
    with sqlite3.connect(folder / "journal.db") as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f'DROP TRIGGER "{trigger}"')
        changed = db.execute("UPDATE events SET body = '{}' WHERE run = ? AND number = ?", (name, number)).rowcount
        assert changed == 1


# Saves --------------------------------------------------------------------------------------------------------------


@holds("V10.2", "V10.5")
def test_a_save_lies_before_and_after_every_change(journal: Journal) -> None:
    there = table(journal=journal)
    answered(run(there))
    events = journal.events("r")
    saves = checkpoints(events)
    assert [(each.moment, each.tool) for each in saves] == [
        ("start", ""),
        ("step", "population"),
        *[("before", "send"), ("after", "send")] * 2,
        ("end", ""),
    ]
    assert [each.parent for each in saves] == ["", *(each.hash for each in saves[:-1])]
    assert len({each.agent for each in saves}) == 1
    kinds = [
        event.body.get("moment") or event.kind
        for event in events
        if event.body.get("tool") == "send" or event.kind == "step-finished"
    ]
    for at, kind in enumerate(kinds):
        if kind == "step-started":
            assert kinds[at - 1] == "before"
    again = asyncio.run(replay_pattern(journal, "r", there.desk.registry, there.desk.policy, pattern=WORK))
    assert again.identical, again.differences


@holds("V10.5")
def test_changes_side_by_side_are_saved_and_replayed(journal: Journal) -> None:
    pattern = Checkpointing(Letters(4, beside=True), every_steps=3)
    there = table(journal=journal)
    answered(run(there, pattern))
    moments = [each.moment for each in checkpoints(journal.events("r"))]
    assert (moments.count("before"), moments.count("after"), moments.count("step")) == (4, 4, 0)
    again = asyncio.run(replay_pattern(journal, "r", there.desk.registry, there.desk.policy, pattern=pattern))
    assert again.identical, again.differences


@holds("V10.2")
def test_a_save_has_versions_parent_and_hash_and_cannot_be_changed() -> None:
    save = Checkpoint.make(2, "before", "send", 1.0, "0.1.0 abc", "f" * 64)
    assert Checkpoint.from_facts(save.facts) == save
    with pytest.raises(FrozenInstanceError):
        save.parent = ""  # type: ignore[misc]
    for name in ("agent", "schema", "parent", "hash", "number"):
        for facts in (
            {key: each for key, each in save.facts.items() if key != name},
            save.facts | {name: "other"},
        ):
            with pytest.raises(JournalError) as caught:
                Checkpoint.from_facts(facts)
            assert caught.value.code == "journal.damaged"


@holds("V10.3")
def test_at_least_two_saves_are_kept_and_none_is_overwritten(journal: Journal, tmp_path: Path) -> None:
    with pytest.raises(CatalogError):
        Checkpointing(Letters(), keep_last=1)
    answered(run(table(journal=journal), Checkpointing(Letters(0))))
    assert len(checkpoints(journal.events("r"))) == 3
    with sqlite3.connect(tmp_path / "journal.db") as db, pytest.raises(sqlite3.Error):
        db.execute("UPDATE events SET body = '{}' WHERE run = 'r'")
    with sqlite3.connect(tmp_path / "journal.db") as db, pytest.raises(sqlite3.Error):
        db.execute("DELETE FROM events WHERE run = 'r'")


@dataclass(frozen=True)
class Holding(Pattern[[Labelled[str]], Any]):
    """A pattern that holds something."""

    id: ClassVar[str] = "R5"
    held: Any = field(default=None)

    async def execute(self, context: Context, /, to: Labelled[str]) -> Labelled[Any]:
        return await context.call("send", {"to": to, "body": from_user("Hello")})


@holds("V10.4")
def test_a_state_with_a_live_handle_is_not_saved(journal: Journal) -> None:
    there = table(journal=journal)
    with (Path(__file__)).open() as handle:
        for held in (handle, {"deep": [handle]}, lambda: handle):
            outcome = run(there, Checkpointing(Holding(held)), name=f"r{id(held)}")
            assert isinstance(outcome, GaveUp)
            assert outcome.error.code == "pattern.not-portable"
    assert there.world.done == []
    assert answered(run(there, Checkpointing(Holding({"deep": [1, "text"]})))).value == "sent"


@holds("V10.4")
@pytest.mark.parametrize("where", ["setting", "argument", "result"])
def test_a_state_with_a_secret_is_not_saved(journal: Journal, tmp_path: Path, where: str) -> None:
    secret = "hunter2-correct-horse"

    @tool(effect="read", outbound=False, origins=Origin("system"), purpose={"city": "selects"})
    def population(city: str) -> str:
        """It gives away what it must not."""
        return secret if where == "result" else "270,473"

    there = table(journal=journal, tools=[population, *(each for each in World().tools() if each.name == "send")])
    with isolate_secrets():
        register_secret("token", secret)
        pattern = Checkpointing(Holding(secret)) if where == "setting" else WORK
        outcome = run(there, pattern, from_user(secret if where == "argument" else "kim@example.com"))
        assert isinstance(outcome, GaveUp)
        assert outcome.error.code == "pattern.secret-state"
        assert secret not in str(outcome.error)
        assert secret.encode() not in (tmp_path / "journal.db").read_bytes()


@holds("V10.7")
def test_without_a_record_on_a_disk_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = table()
    outcome = run(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.no-record"
    assert there.world.done == []
    monkeypatch.chdir(tmp_path)
    with open_journal_at(Path(":memory:")) as named:
        answered(run(table(journal=named)))
    with open_journal_at(tmp_path / ":memory:") as on_disk:
        assert checkpoints(on_disk.events("r"))[-1].moment == "end", "this name means a file like any other"


# Resuming -----------------------------------------------------------------------------------------------------------


@holds("V10.5")
def test_a_run_goes_on_from_any_event_and_repeats_no_change(journal: Journal) -> None:
    whole = table(journal=journal)
    expected = answered(run(whole)).value
    events = journal.events("r")
    for keep in range(1, len(events)):
        cut(journal, f"cut {keep}", keep)
        begun = [each.step for each in events[:keep] if each.kind == "step-started" and each.body["tool"] == "send"]
        ended = [each.step for each in events[:keep] if each.kind == "step-finished" and each.step in begun]
        there = table(journal=journal)
        outcome = resume(journal, there, f"cut {keep}")
        if len(begun) > len(ended):
            assert isinstance(outcome, GaveUp), "nobody knows whether it was sent, and nobody can be asked"
            assert there.world.done == []
        else:
            assert answered(outcome).value == expected
            assert len(ended) + len(there.world.done) == 2


CHILD = textwrap.dedent(
    """
    import sys
    sys.path[:0] = sys.argv[2:]
    from test_patterns_checkpointing import *

    @tool(effect="send", purpose={"to": "directs", "body": "carries"}, origins=Origin("system"), receivers=("to",))
    def send(to: str, body: str) -> str:
        \"\"\"Send a mail.\"\"\"
        with Path(sys.argv[1]).with_name("sent").open("a") as sent:
            sent.write(body + "\\n")
        if body == "letter 1":
            os.kill(os.getpid(), signal.SIGKILL)
        return "sent"

    tools = [*(each for each in World().tools() if each.name != "send"), send]
    run(table(journal=open_journal_at(sys.argv[1]), tools=tools))
    """
)


def test_a_kill_in_the_middle_of_a_call_sends_nothing_twice(journal: Journal, tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "journal.db"), here, str(Path(here).parent)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert (tmp_path / "sent").read_text().splitlines() == ["letter 0", "letter 1"]
    assert checkpoints(journal.events("r"))[-1].moment == "before", "the save before the call is on the disk"
    person = Counting(yes=False)
    there = table(journal=journal, approver=person)
    assert isinstance(resume(journal, there), GaveUp)
    assert [question.calls[0].arguments["body"] for question in person.questions] == ["letter 1"]
    assert there.world.done == []


# Damage -------------------------------------------------------------------------------------------------------------


def damaged_run(journal: Journal, folder: Path) -> None:
    """A run that died after both letters were sent, and whose record is damaged from the second letter on."""
    answered(run(table(journal=journal)))
    events = journal.events("r")
    finished = [each.number for each in events if each.kind == "step-finished"]
    cut(journal, "d", finished[-1] + 1)
    started = [each.number for each in events if each.kind == "step-started"]
    damage(folder, "d", started[-1])


def test_a_damaged_newest_part_leads_back_to_the_save_before(journal: Journal, tmp_path: Path) -> None:
    damaged_run(journal, tmp_path)
    with pytest.raises(JournalError):
        asyncio.run(resume_pattern(journal, "d", table(journal=journal).desk, pattern=WORK))
    nobody = table(journal=journal)
    outcome = resume(journal, nobody, "d")
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval", "what the damaged events said is not known"
    assert nobody.world.done == []


@pytest.mark.parametrize("yes", [True, False])
def test_after_damage_a_person_decides_about_each_change(journal: Journal, tmp_path: Path, yes: bool) -> None:
    damaged_run(journal, tmp_path)
    person = Counting(yes=yes)
    there = table(journal=journal, approver=person)
    outcome = resume(journal, there, "d")
    assert outcome.run == "d-restored"
    assert [question.calls[0].arguments["body"] for question in person.questions] == ["letter 1"]
    assert "may have been done already" in person.questions[0].calls[0].why
    assert bodies(there) == (["letter 1"] if yes else [])
    if yes:
        assert answered(outcome).value == 270_473
        later = table(journal=journal)
        assert answered(resume(journal, later, "d")).value == 270_473
        assert later.world.done == [], "a second restore goes on with the first, which has ended"


def test_a_write_that_may_have_been_made_is_asked_about_too(journal: Journal, tmp_path: Path) -> None:
    written: list[str] = []

    def tools() -> list[Tool]:
        @tool(effect="write", purpose={"to": "directs", "body": "carries"}, origins=Origin("system"))
        def send(to: str, body: str) -> str:
            """Write a line."""
            written.append(body)
            return "written"

        return [*(each for each in World().tools() if each.name != "send"), send]

    answered(run(table(journal=journal, tools=tools())))
    last = [each.number for each in journal.events("r") if each.kind == "step-started"][-1]
    cut(journal, "d", last + 1)
    damage(tmp_path, "d", last)
    written.clear()
    assert isinstance(resume(journal, table(journal=journal, tools=tools()), "d"), GaveUp)
    assert written == []


def test_a_record_without_an_intact_save_is_not_guessed(journal: Journal, tmp_path: Path) -> None:
    answered(run(table(journal=journal)))
    cut(journal, "d", 4)
    damage(tmp_path, "d", 1)
    with pytest.raises(JournalError) as caught:
        resume(journal, table(journal=journal), "d")
    assert caught.value.code == "journal.damaged"


def test_a_save_that_was_written_again_with_other_facts_does_not_follow(journal: Journal) -> None:
    """Somebody seals the whole record again, with a checkpoint of another program in it."""
    answered(run(table(journal=journal)))
    events = journal.events("r")
    at = next(event.number for event in events if event.body.get("moment") == "step")
    other = Checkpoint.make(2, "step", "population", 1.0, "9.9.9 other", events[at].body["parent"])
    entries = [NewEvent(each.at, each.kind, each.step, each.body) for each in events[: at + 1]]
    entries[at] = entries[at]._replace(body={"saved": "checkpoint", **other.facts})
    journal.append_all("forged", entries)
    there = table(journal=journal)
    outcome = resume(journal, there, "forged")
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "journal.damaged"
    assert there.world.done == []


def test_other_code_does_not_go_on_with_the_run(journal: Journal) -> None:
    answered(run(table(journal=journal)))
    cut(journal, "d", 6)
    there = table(journal=journal)
    for other in (Checkpointing(Letters(3)), Checkpointing(Letters(), every_steps=2), Letters()):
        with pytest.raises(BicameralError) as caught:
            resume(journal, there, "d", other)
        assert caught.value.code == "run.other-code"
    changed = replace(there.desk.registry["send"], version="2")
    tools = [*(each for each in World().tools() if each.name != "send"), changed]
    with pytest.raises(BicameralError) as caught:
        resume(journal, table(journal=journal, tools=tools), "d")
    assert caught.value.code == "run.other-code"
    assert there.world.done == []
    assert answered(resume(journal, there, "d")).value == 270_473

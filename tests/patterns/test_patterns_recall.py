"""What a run reads from a store, and writes to it, when it is replayed or resumed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from patterns_world import HOSTILE, answered, table

from bicameral.journal import Journal
from bicameral.labels import Labelled, from_user, make_labelled, open_labelled, untrusted_value
from bicameral.patterns.kernel import Context, Pattern, PatternWork, Role, replay_pattern, resume_pattern, run_pattern
from bicameral.records import Records
from bicameral.tools import call_key
from bicameral.types import ANY

WRITER = Role("Writer", "You write.")


def notes_at(path: Path) -> Records[Any]:
    return Records[Any](path, ANY, owner="ada", collection="notes")


@dataclass(frozen=True)
class Remembering(Pattern[[], str]):
    """Ask a model about the newest note, and keep its answer as the next one."""

    id: ClassVar[str] = "S1"
    path: Path
    waiting: bool = False

    async def execute(self, context: Context, /) -> Labelled[str]:
        known = context.recall("the newest note", self.newest)
        answer = await context.ask(WRITER, "What follows?", known)
        kept = context.derive(context.read(answer))

        async def save() -> Labelled[str]:
            with notes_at(self.path) as notes:
                id = call_key() or "none"
                if id not in notes.ids():
                    notes.add(kept, author="remembering", id=id)
            return make_labelled(id, kept.label)

        await context.once("keep the note", save, repeatable=True)
        return answer

    def newest(self) -> Labelled[Any]:
        with notes_at(self.path) as notes:
            found = notes.pending()[-1:] if self.waiting else notes.all()[-1:]
            return found[0].value


def read_notes(path: Path) -> list[Any]:
    with notes_at(path) as notes:
        return [open_labelled(each.value) for each in notes.all()]


def test_a_replay_reads_what_was_read_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    with notes_at(path) as notes:
        notes.add(from_user("one"), author="Ada")
    with Journal(tmp_path / "journal.db") as journal:
        there, pattern = table(["two"], journal=journal), Remembering(path)
        outcome = answered(asyncio.run(pattern.run(there.desk)))
        assert read_notes(path) == ["one", "two"]
        with notes_at(path) as notes:
            notes.erase_all(by="Ada")
        desk = there.desk
        replayed = asyncio.run(replay_pattern(journal, outcome.run, desk.registry, desk.policy, pattern=pattern))
        assert replayed.differences == ()
    assert read_notes(path) == []


def test_a_run_that_is_resumed_anywhere_keeps_one_note_and_reads_what_it_read(tmp_path: Path) -> None:
    """The record is cut behind each event; the store is as the dead process left it, with its note or without."""
    for number in range(1, 30):
        path = tmp_path / f"{number}.db"
        with notes_at(path) as notes:
            notes.add(from_user("one"), author="Ada")
        with Journal(tmp_path / f"{number}.journal") as journal:
            pattern = Remembering(path)
            asyncio.run(run_pattern(PatternWork(pattern), table(["two"], journal=journal).desk, run="whole"))
            events = journal.events("whole")
            if number >= len(events):
                break
            for event in events[:number]:
                journal.append("cut", event.kind, event.step, event.body)
            again = table(["two"], journal=journal)
            ended = answered(asyncio.run(resume_pattern(journal, "cut", again.desk, pattern=pattern)))
            assert ended.value == "two"
            # The key of a run is its own, so the note of the other run is there as well.
            assert read_notes(path).count("two") == 2 - any(
                event.kind == "step-finished" and "once" in event.step for event in events[:number]
            )
    else:
        raise AssertionError("a run has fewer events")


def test_what_untrusted_text_wrote_is_recalled_with_its_label_and_never_asked_of_the_privileged_model(
    tmp_path: Path,
) -> None:
    path = tmp_path / "records.db"
    with notes_at(path) as notes:
        notes.add(untrusted_value(HOSTILE, "page", private=True), author="Reader")
    with Journal(tmp_path / "journal.db") as journal:
        there = table(["never"], ["I obey."], journal=journal)
        pattern = Remembering(path, waiting=True)
        outcome = answered(asyncio.run(pattern.run(there.desk)))
        assert not there.privileged.asked
        assert (outcome.label.trusted, outcome.label.readers) == (False, {"user"})
        desk = there.desk
        replayed = asyncio.run(replay_pattern(journal, outcome.run, desk.registry, desk.policy, pattern=pattern))
        assert replayed.differences == ()
    # Nor does what the quarantined model made of it become a note that is served.
    with notes_at(path) as notes:
        assert notes.all() == ()
        assert [each.label.trusted for each in notes.pending()] == [False, False]

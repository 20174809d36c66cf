"""A model's plan asks before it replaces content that was there before the run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bicameral.planning import Intent, replace_scope
from bicameral.plans import Conditional, parse
from bicameral.policy import Policy
from bicameral.runs import (
    REPLACE_RULE,
    Answers,
    ApprovalQuestion,
    Failed,
    Finished,
    Journal,
    RunOutcome,
    check_plan,
    replay,
    run_plan,
)
from bicameral.tools import Registry, Surroundings, load_toolboxes

SAVE = "Write the word new to notes.txt"


class Person:
    """Says yes or no, and remembers what was asked."""

    def __init__(self, *, yes: bool) -> None:
        self.yes, self.asked = yes, list[ApprovalQuestion]()

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.asked.append(question)
        return Answers.yes(question.calls) if self.yes else Answers.no()


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "desk"
        self.folder.mkdir()
        self.registry: Registry = load_toolboxes({"files": {}, "tables": {}}, Surroundings.here(self.folder))
        self.policy = Policy.load((), self.registry)
        self.journal = Journal(folder / "journal.db")
        (self.folder / "notes.txt").write_text("one\ntwo\n")

    def check(self, source: str, request: str | None) -> Any:
        intent = None if request is None else Intent(request=request)
        return check_plan(parse(source, self.registry).plan, self.registry, self.policy, intent=intent)

    def run(self, source: str, request: str | None, person: Person | None = None, **options: Any) -> RunOutcome:
        checked = self.check(source, request)
        return asyncio.run(
            run_plan(
                checked, self.registry, journal=self.journal, intent=checked.basis.intent, approver=person, **options
            )
        )

    def text(self, name: str = "notes.txt") -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


REPLACE = 'write_text("notes.txt", "new")\nanswer(1)'


def test_a_plan_for_a_request_asks_before_it_replaces_a_file(desk: Desk) -> None:
    person = Person(yes=False)
    outcome = desk.run(REPLACE, SAVE, person)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.refused"
    assert [call.rules for question in person.asked for call in question.calls] == [(REPLACE_RULE,)]
    assert desk.text() == "one\ntwo\n"
    agreed = Person(yes=True)
    assert isinstance(desk.run(REPLACE, SAVE, agreed), Finished)
    assert len(agreed.asked) == 1
    assert desk.text() == "new"


def test_the_proof_tells_before_the_run_that_there_will_be_a_question(desk: Desk) -> None:
    asked = desk.check(REPLACE, SAVE).proof
    assert isinstance(asked.verdict("0"), Conditional)
    assert not isinstance(desk.check(REPLACE, "Update notes.txt with the word new").proof.verdict("0"), Conditional)
    new = 'write_text("other.txt", "new")\nanswer(1)'
    assert not isinstance(desk.check(new, "Write the word new to other.txt").proof.verdict("0"), Conditional)


@pytest.mark.parametrize("options", [{"request": None}, {"request": SAVE, "may_replace": True}])
def test_a_plan_of_a_person_and_one_that_may_replace_do_not_ask(desk: Desk, options: dict[str, Any]) -> None:
    assert isinstance(desk.run(REPLACE, options.pop("request"), **options), Finished)
    assert desk.text() == "new"


def test_an_empty_file_is_replaced_without_a_question(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("")
    assert isinstance(desk.run(REPLACE, SAVE), Finished)


def test_a_path_that_is_known_only_in_the_run_is_asked_about_then(desk: Desk) -> None:
    source = 'found = list_files(".", "notes.*")\nfor each in found:\n    write_text(each.path, "new")\nanswer(1)'
    person = Person(yes=False)
    assert isinstance(desk.run(source, "Write the word new to all files that are called notes", person), Failed)
    assert desk.text() == "one\ntwo\n"


def test_a_run_that_asked_is_replayed_alike(desk: Desk) -> None:
    outcome = desk.run(REPLACE, SAVE, Person(yes=True))
    for policy in (None, desk.policy):
        replayed = asyncio.run(replay(desk.journal, outcome.run, desk.registry, policy=policy))
        assert replayed.identical, replayed.differences


@pytest.mark.parametrize(
    ("request_", "covered"),
    [
        ("Overwrite notes.txt with the list", True),
        ("Please update the notes", True),
        ("Sort notes.txt in place", True),
        ("Aktualisiere die Notizen", True),
        ("Ersetze den Inhalt von notes.txt", True),
        ("Mets à jour notes.txt", True),
        ("Remplace le contenu de notes.txt", True),
        ("Actualiza notes.txt", True),
        ("Reemplaza el contenido de notes.txt", True),
        ("Sort notes.txt", True),
        ("Entferne leere Zeilen aus notes.txt", True),
        ("Save the list as notes.txt", False),
        ("Save the list, but do not overwrite anything", False),
        ("Speichere die Liste", False),
        ("Enregistre la liste", False),
        ("Guarda la lista", False),
    ],
)
def test_what_a_request_says_about_replacing(desk: Desk, request_: str, covered: bool) -> None:
    plan = parse('lines = read_lines("notes.txt")\nwrite_lines("notes.txt", lines)\nanswer(1)', desk.registry).plan
    scope = replace_scope(request_, plan, desk.registry)
    assert scope.covers(str(desk.folder / "notes.txt")) is covered


def test_words_of_editing_do_not_speak_of_a_file_that_the_plan_does_not_read(desk: Desk) -> None:
    source = 'lines = read_lines("notes.txt")\nwrite_lines("sorted.txt", lines)\nanswer(1)'
    scope = replace_scope("Sort notes.txt and save it as sorted.txt", parse(source, desk.registry).plan, desk.registry)
    assert not scope.covers(str(desk.folder / "sorted.txt"))
    assert scope.covers(str(desk.folder / "notes.txt"))

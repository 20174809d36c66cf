"""Choosers: a model's choice counts only if it does not depend on the order of the list, and errors choose nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from bicameral.binding import (
    NONE_FITS,
    Binder,
    Binding,
    Candidate,
    FixedSource,
    Kind,
    ModelChooser,
    PersonChooser,
    Question,
    ShownCandidate,
)
from bicameral.boundary import ExtractionOutcome, Filled, NotFound
from bicameral.errors import ModelError
from bicameral.types import BOOL, STR, LiteralType, Type

SHOWN = (ShownCandidate(1, "bills_2025.csv", ""), ShownCandidate(2, "bills_2026.csv", "2026-03-01"))


def asking(kind: Kind, words: str, shown: Sequence[ShownCandidate]) -> Question:
    return Question(kind, words, "several", tuple(shown), searched=len(shown))


class FakeModel:
    """A quarantined model that decides by the list that it sees."""

    model = "fake"
    overlap = 1

    def __init__(self, decide: Callable[[Mapping[str, str]], ExtractionOutcome]) -> None:
        self._decide = decide
        self.lists: list[Mapping[str, str]] = []
        self.wanted: list[Type] = []

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
        listed = cast("Mapping[str, str]", source)
        self.lists.append(listed)
        self.wanted.append(wanted)
        return self._decide(listed)


async def test_a_choice_that_does_not_depend_on_the_order_counts() -> None:
    model = FakeModel(lambda listed: Filled(next(number for number, name in listed.items() if "2026" in name)))
    assert await ModelChooser(model).choose(asking("file", "this year's bills", SHOWN)) == 2
    assert [list(each) for each in model.lists] == [["1", "2"], ["2", "1"]]
    assert model.lists[0]["2"] == "bills_2026.csv (2026-03-01)"
    assert all(each == LiteralType(("1", "2", "none")) for each in map(_sorted_literal, model.wanted))


def _sorted_literal(wanted: Type) -> Type:
    assert isinstance(wanted, LiteralType)
    return LiteralType(tuple(sorted(wanted.values)))


async def test_the_first_of_the_list_whatever_it_is_was_guessed() -> None:
    assert (
        await ModelChooser(FakeModel(lambda listed: Filled(next(iter(listed))))).choose(asking("file", "b", SHOWN))
        is None
    )


@pytest.mark.parametrize("outcome", [Filled("3"), Filled(2), NotFound("")])
async def test_everything_else_chooses_nothing(outcome: ExtractionOutcome) -> None:
    assert await ModelChooser(FakeModel(lambda _: outcome)).choose(asking("file", "bills", SHOWN)) is None


async def test_none_counts_if_it_does_not_depend_on_the_order_either() -> None:
    assert await ModelChooser(FakeModel(lambda _: Filled("none"))).choose(asking("file", "bills", SHOWN)) == NONE_FITS
    wavering = FakeModel(lambda listed: Filled("none" if next(iter(listed)) == "1" else "2"))
    assert await ModelChooser(wavering).choose(asking("file", "bills", SHOWN)) is None


async def test_a_model_that_cannot_be_asked_chooses_nothing() -> None:
    def fail(_: object) -> ExtractionOutcome:
        raise ModelError("models.unreachable", "the model cannot be asked")

    assert await ModelChooser(FakeModel(fail)).choose(asking("file", "bills", SHOWN)) is None


class Answering:
    """A person who answers with a text."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.questions: list[str] = []
        self.wanted: list[Type] = []

    async def ask(self, question: str, type: Type) -> Any:
        self.questions.append(question)
        self.wanted.append(type)
        return self._answer


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [(" 2 ", 2), ("none", NONE_FITS), ("Keine", NONE_FITS), ("", NONE_FITS), ("7", "7"), ("rent", "rent"), (2, None)],
)
async def test_a_person_answers_with_a_number_of_the_list_or_a_name(answer: object, chosen: object) -> None:
    person = Answering(answer)
    assert await PersonChooser(person).choose(asking("file", "bills", SHOWN)) == chosen
    assert all(each.line in person.questions[0] for each in SHOWN)


@pytest.mark.parametrize(
    ("answer", "chosen"), [(True, 1), (False, NONE_FITS), ("yes", None), (1, None), (None, None), ("1", None)]
)
async def test_about_one_candidate_a_person_says_yes_or_no(answer: object, chosen: int | None) -> None:
    person = Answering(answer)
    only = ShownCandidate(1, "activity.csv", "2026-03-01")
    assert await PersonChooser(person).choose(asking("table", "steps", (only,))) == chosen
    assert (person.questions, person.wanted) == (["Is *steps* the table activity.csv (2026-03-01)?"], [BOOL])


async def test_a_suspicious_name_is_chosen_from_a_list_with_its_warning_and_not_with_a_yes() -> None:
    person = Answering("1")
    only = ShownCandidate(1, "activ\u0456ty.csv", "", ("look-alike",))
    assert await PersonChooser(person).choose(asking("table", "steps", (only,))) == 1
    assert person.wanted == [STR]
    assert "caution" in person.questions[0]


async def test_the_words_of_a_confirming_question_are_safe_to_show() -> None:
    person = Answering(False)
    await PersonChooser(person).choose(asking("file", "st\u202eeps", (ShownCandidate(1, "a.csv", ""),)))
    assert "\u202e" not in person.questions[0]


async def test_words_that_a_plan_has_twice_are_asked_about_once() -> None:
    person = Answering(True)
    source = FixedSource([Candidate("file", "steps_old_phone_backup.csv", ("steps_old_phone_backup.csv",))])
    binder = Binder(source, choosers=[PersonChooser(person)])
    first, second = [await binder.bind("file", "steps") for _ in range(2)]
    assert isinstance(first, Binding)
    assert first == second
    assert person.questions == ["Is *steps* the file steps_old_phone_backup.csv?"]

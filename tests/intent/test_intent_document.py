"""The intent as a document: `intent/2`, migration of `intent/1`, and files that a person has edited."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import IntentError
from bicameral.planning import Intent, IntentStep, migrate_intent, parse_intent, read_intent, request_text

SOURCE_EXAMPLE = """\
{
"task": "text-filtering",
"steps": [
{"action": "remove-duplicates"},
{"action": "grep", "pattern": "invoice"}
],
"constraints": [],
"output": "stdout"
}
"""
OLD: dict[str, Any] = {
    "version": "intent/1",
    "request": "need the avg price per color from cars.csv, put it in avg.csv",
    "task": "average price by color",
    "steps": [{"action": "average price", "about": "for each color"}, {"action": "write the rows", "about": ""}],
    "constraints": ["only cars newer than 2019"],
    "output": "file",
    "effects": ["write"],
    "required": ["write"],
    "dates": [{"phrase": "today", "start": "2026-03-11", "end": "2026-03-11"}],
    "questions": ["Which currency?"],
    "by": "echo",
}


def test_the_example_of_the_source_document_loads_unchanged() -> None:
    intent = parse_intent(SOURCE_EXAMPLE)
    assert [step.action for step in intent.steps] == ["remove-duplicates", "grep"]
    assert intent.steps[1].parameters == {"pattern": "invoice"}
    assert intent.output.kind == "stdout"
    assert intent.request == 'text filtering: remove duplicates; grep pattern "invoice"'


def test_parameters_keep_their_types() -> None:
    step = IntentStep.model_validate(
        {"action": "grep", "pattern": "1", "ignore_case": True, "limit": 5, "in": ["a", 2]}
    )
    assert step.parameters == {"pattern": "1", "ignore_case": True, "limit": 5, "in": ("a", 2)}
    again = IntentStep.model_validate_json(step.model_dump_json())
    assert again.parameters == step.parameters
    assert step.text == 'grep pattern "1" ignore case limit 5 in "a", 2'


def test_an_old_document_becomes_one_of_the_new_version() -> None:
    intent = Intent.model_validate_json(json.dumps(OLD))
    assert intent.version == "intent/2"
    assert [step.text for step in intent.steps] == ["average price for each color", "write the rows"]
    assert intent.output.kind == "file"
    assert [each.question for each in intent.questions] == ["Which currency?"]
    assert (intent.by, intent.effects, intent.constraints) == ("echo", ("write",), ("only cars newer than 2019",))


def test_migration_changes_no_document_of_the_new_version() -> None:
    new = json.loads(Intent(request="Count the lines of a.txt").to_json())
    assert migrate_intent(new) == new


@given(
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=4),
    st.lists(st.text(max_size=20), max_size=3),
    st.sampled_from(["answer", "file", "mail", "calendar"]),
)
def test_every_old_document_loads_and_survives_json(
    steps: list[tuple[str, str]], questions: list[str], output: str
) -> None:
    old = {
        "version": "intent/1",
        "request": "r",
        "steps": [{"action": action, "about": about} for action, about in steps],
        "questions": questions,
        "output": output,
    }
    intent = Intent.model_validate_json(json.dumps(old))
    assert len(intent.steps) == len(steps)
    assert Intent.model_validate_json(intent.to_json()) == intent


@pytest.mark.parametrize(
    ("text", "code", "line", "nearest"),
    [
        ('{\n"task": "t",\n"setps": []\n}', "intent.invalid", 3, "steps"),
        ('{\n"steps": [],\n"output": {"kind": "fille"}\n}', "intent.invalid", 3, "file"),
        ('{\n"steps": [\n{"pattern": "x"}\n]}', "intent.invalid", 3, None),
        ('{\n"steps": [\n{"action": "x", "a b": 1}\n]}', "intent.invalid", 3, None),
        ('{\n"version": "intent/9"}', "intent.unknown-version", 2, None),
        ('{\n"task": \n}', "intent.bad-json", 3, None),
        ('{"task": "a", "task": "b"}', "intent.bad-json", None, None),
        ('{"task": NaN}', "intent.bad-json", None, None),
        ("[1]", "intent.invalid", None, None),
        ('{"steps": ' + "[" * 100_000, "intent.bad-json", None, None),
        ('{"output": {"kind": "mail", "path": "a.txt"}}', "intent.invalid", 1, None),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_line_and_the_nearest_name(
    text: str, code: str, line: int | None, nearest: str | None
) -> None:
    with pytest.raises(IntentError) as caught:
        parse_intent(text, file="i.json")
    error = caught.value
    assert (error.code, error.nearest) == (code, nearest)
    assert error.place is not None
    assert (error.place.file, error.place.line) == ("i.json", line)


@given(st.text(max_size=80))
def test_any_text_is_an_intent_or_an_error(text: str) -> None:
    with suppress(IntentError):
        assert parse_intent(text).by == "person"


def test_a_file_that_is_missing_or_no_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\xfa")
    for name in ("gone.json", "b.json"):
        with pytest.raises(IntentError) as caught:
            read_intent(tmp_path / name)
        assert caught.value.code == "intent.cannot-read"


def test_what_the_command_prints_can_be_read_again() -> None:
    printed = {"ok": True, "intent": json.loads(Intent(request="Count the lines of a.txt").to_json())}
    assert parse_intent(json.dumps(printed)).request == "Count the lines of a.txt"


def test_the_text_for_the_planner_has_what_was_added_and_nothing_else() -> None:
    plain = Intent(request="Count the lines of a.txt")
    assert request_text(plain) == "Count the lines of a.txt"
    edited = parse_intent(
        '{"request": "average price", "steps": [{"action": "average", "by": "color"}],'
        ' "constraints": ["newer than 2019"], "output": {"kind": "file", "path": "avg.csv"}}'
    )
    assert request_text(edited).splitlines() == [
        "average price",
        'Steps: average by "color"',
        "Constraints: newer than 2019",
        "Output: file avg.csv",
    ]


def test_offsets_that_do_not_fit_their_words_are_refused() -> None:
    mention = {"kind": "file", "words": "a.txt", "start": 0, "end": 3}
    with pytest.raises(IntentError) as caught:
        parse_intent(json.dumps({"request": "a.txt", "mentions": [mention]}))
    assert caught.value.code == "intent.invalid"

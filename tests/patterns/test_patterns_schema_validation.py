"""V20: only values of the schema get through, a refusal is told word for word, and there is one declared exit."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, TypedDict

import pytest
from patterns_models import performed
from patterns_world import HOSTILE, Script, Table, answered, table

from bicameral.boundary import parse_reply
from bicameral.errors import CatalogError, ModelError
from bicameral.journal import open_journal_at
from bicameral.models import LocalProvider
from bicameral.patterns import GaveUp, SchemaValidation, program_text, untrusted_value
from bicameral.patterns.kernel import NoteEvent, replay_pattern
from bicameral.patterns.kernel._codec import fingerprint
from bicameral.patterns.reliability.schema_validation import ASKER, HOST, FailExit, MarkerExit, one_bed_each
from invariants import holds


class Booking(TypedDict):
    guest: str | None
    adults: int
    children: int
    beds: int


GOOD = '{"guest": "Ada", "adults": 2, "children": 1, "beds": 3}'
VALUE = json.loads(GOOD)
FEW_BEDS = GOOD.replace('"beds": 3', '"beds": 2')
COMPLAINT = "beds must be adults + children, which is 3"
BOOKING = SchemaValidation.of(Booking, FailExit(), check=one_bed_each)
COERCIBLE = {
    "a number as text": GOOD.replace('"adults": 2', '"adults": "2"'),
    "a fraction": GOOD.replace('"adults": 2', '"adults": 2.0'),
    "a truth as number": GOOD.replace('"children": 1', '"children": true'),
    "a field more": GOOD.replace("}", ', "admin": true}'),
    "a field less": '{"guest": "Ada", "adults": 2, "children": 1}',
    "a field twice": GOOD.replace("{", '{"adults": 3, '),
    "nothing where something must be": GOOD.replace('"beds": 3', '"beds": null'),
    "words around it": f"Here it is: {GOOD}",
    "fenced": f"```json\n{GOOD}\n```",
    "a list of one": f"[{GOOD}]",
}


def ran(there: Table, pattern: SchemaValidation = BOOKING, task: Any = None) -> Any:
    return asyncio.run(pattern.run(there.desk, program_text("Two adults and a child.") if task is None else task))


def parser_words(reply: str) -> str:
    """What the parser says of a reply that does not fit."""
    try:
        parse_reply(reply, BOOKING.wanted)
    except ValueError as error:
        return str(error)
    raise AssertionError("the reply fits")


def notes(outcome: Any, what: str) -> list[dict[str, Any]]:
    return [each.facts for each in outcome.trace if isinstance(each, NoteEvent) and each.what == what]


def test_a_value_of_the_schema_gets_through_at_once() -> None:
    there = table([GOOD])
    outcome = answered(ran(there))
    assert (outcome.value, outcome.label.trusted) == (VALUE, True)
    assert [each.participant for each in outcome.model_calls] == ["Host"]


@holds("V20.1", "V20.7")
@pytest.mark.parametrize("wrong", COERCIBLE)
def test_nothing_is_coerced_into_the_schema(wrong: str) -> None:
    there = table([COERCIBLE[wrong]] * 9)
    outcome = ran(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.invalid-output"
    again = table([COERCIBLE[wrong], GOOD])
    assert answered(ran(again)).value == VALUE


@holds("V20.3")
@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_the_model_is_asked_at_most_once_and_max_retries_times(retries: int) -> None:
    there = table([FEW_BEDS] * 9)
    outcome = ran(there, SchemaValidation.of(Booking, FailExit(), check=one_bed_each, max_retries=retries))
    assert isinstance(outcome, GaveUp)
    assert [each.participant for each in outcome.model_calls] == ["Host", *["Asker"] * retries]
    with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
        SchemaValidation.of(Booking, FailExit(), max_retries=4)


@holds("V20.2")
def test_prompt_grammar_and_validator_have_one_schema() -> None:
    there = table([FEW_BEDS, GOOD])
    outcome = ran(there)
    assert notes(outcome, "schema") == [{"hash": BOOKING.schema_hash}]
    for request in there.privileged.asked:
        assert request.json_schema is not None
        assert fingerprint(request.json_schema)[:12] == BOOKING.schema_hash
        assert request.json_schema["additionalProperties"] is False
        assert all(f"- {name} (" in request.messages[0].text for name in VALUE)


@holds("V20.4")
@pytest.mark.parametrize(
    ("reply", "exact"),
    [
        (FEW_BEDS, COMPLAINT),
        (GOOD.replace('"adults": 2', '"adults": "2"'), None),
        (GOOD.replace("}", ', "admin": true}'), None),
        ("not JSON", None),
    ],
)
def test_the_validators_own_words_stand_at_the_end_of_the_new_prompt(reply: str, exact: str | None) -> None:
    exact = exact or parser_words(reply)
    there = table([reply, GOOD])
    ran(there)
    system, question = there.privileged.asked[1].messages
    assert system.text.startswith(ASKER.setup)
    assert question.text.startswith("Two adults and a child.")
    assert reply in question.text
    assert question.text.endswith(exact)


def test_each_retry_shows_the_last_reply_and_not_the_ones_before() -> None:
    first, second = FEW_BEDS, GOOD.replace('"beds": 3', '"beds": 9')
    there = table([first, second, GOOD])
    assert answered(ran(there)).value == VALUE
    last = there.privileged.asked[2].messages[1].text
    assert second in last
    assert first not in last


@holds("V20.8")
def test_asking_again_takes_a_fresh_session_in_quarantine_too() -> None:
    there = table(["never"], [FEW_BEDS, GOOD])
    outcome = answered(ran(there, task=untrusted_value(HOSTILE, "mail")))
    assert not outcome.label.trusted
    assert not there.privileged.asked
    assert [[message.speaker for message in request.messages] for request in there.quarantined.asked] == [
        ["system", "user"],
        ["system", "user"],
    ]
    assert [each.chamber for each in outcome.model_calls] == ["quarantined", "quarantined"]


def test_an_error_about_an_untrusted_reply_is_told_in_no_error_and_no_trace() -> None:
    there = table([], [HOSTILE] * 3)
    outcome = ran(there, task=untrusted_value("a mail", "mail"))
    assert isinstance(outcome, GaveUp)
    assert HOSTILE not in str(outcome.error)
    assert HOSTILE not in str(outcome.trace)


def test_a_check_that_quotes_or_fails_lets_nothing_out_and_nothing_through() -> None:
    def quotes(value: Any) -> str:
        return f"I do not like {value['guest']}"

    def fails(value: Any) -> str:
        raise KeyError(value["guest"])

    for check in (quotes, fails):
        there = table([], [GOOD.replace("Ada", HOSTILE)] * 3)
        pattern = SchemaValidation.of(Booking, FailExit(), check=check)
        outcome = ran(there, pattern, untrusted_value("a mail", "mail"))
        assert isinstance(outcome, GaveUp)
        assert HOSTILE not in str(outcome.error)


def test_a_check_cannot_change_the_value() -> None:
    def bends(value: Any) -> None:
        value["beds"] = 99

    assert answered(ran(table([GOOD]), SchemaValidation.of(Booking, FailExit(), check=bends))).value == VALUE


# The exit -------------------------------------------------------------------------------------------------------------

NOBODY = {"guest": None, "adults": 0, "children": 0, "beds": 0}


@pytest.mark.parametrize("script", [[FEW_BEDS] * 3, ["words"] * 3])
def test_the_marker_is_a_value_of_the_schema_and_is_on_record(script: Script) -> None:
    outcome = answered(ran(table(script), SchemaValidation.of(Booking, MarkerExit(NOBODY), check=one_bed_each)))
    assert outcome.value == NOBODY
    assert notes(outcome, "exit") == [{"kind": "marker"}]
    unmarked = answered(ran(table([GOOD]), SchemaValidation.of(Booking, MarkerExit(NOBODY), check=one_bed_each)))
    assert notes(unmarked, "exit") == []


def test_a_marker_that_untrusted_text_led_to_is_untrusted() -> None:
    there = table([], ["words"] * 3)
    pattern = SchemaValidation.of(Booking, MarkerExit(NOBODY))
    assert not answered(ran(there, pattern, untrusted_value(HOSTILE, "mail"))).label.trusted


@holds("V20.1")
@pytest.mark.parametrize("marker", [None, {}, {**NOBODY, "more": 1}, {**NOBODY, "beds": "0"}, {**NOBODY, "beds": 1}])
def test_a_marker_that_is_no_value_of_the_schema_does_not_build(marker: Any) -> None:
    with pytest.raises(CatalogError) as caught:
        SchemaValidation.of(Booking, MarkerExit(marker), check=one_bed_each)
    assert caught.value.code == "pattern.bad-schema"


@holds("V20.5")
def test_nothing_builds_without_exactly_one_exit() -> None:
    with pytest.raises(TypeError):
        SchemaValidation(BOOKING.wanted)  # pyright: ignore[reportCallIssue]
    for wrong in (None, "error", (FailExit(), MarkerExit(NOBODY))):
        with pytest.raises(CatalogError) as caught:
            SchemaValidation(BOOKING.wanted, wrong)  # pyright: ignore[reportArgumentType]
        assert caught.value.code == "pattern.bad-schema"
    with pytest.raises(CatalogError):
        SchemaValidation.of(int, FailExit())


def test_a_model_that_does_not_answer_is_no_bad_value() -> None:
    """An outage takes no exit: the marker would say that the text has no value."""
    there = table([ModelError("models.unavailable", "it does not answer")])
    outcome = ran(there, SchemaValidation.of(Booking, MarkerExit(NOBODY)))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "models.unavailable"


@pytest.mark.parametrize("script", [[FEW_BEDS, GOOD], [FEW_BEDS] * 3])
def test_the_run_is_replayed(script: Script, tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table(script, journal=journal)
        outcome = ran(there)
        again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
        assert again.identical, again.differences
    assert HOST.setup in there.privileged.prompts[0]


@pytest.mark.model
def test_the_example_comes_out_right(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("V20", small_model, tmp_path)
    assert example.is_correct(answered(outcome)), outcome

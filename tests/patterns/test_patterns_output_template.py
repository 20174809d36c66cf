"""S6: what comes is of the form, or nothing comes; and it has the labels of what it was made of."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from patterns_models import performed
from patterns_world import HOSTILE, Table, answered, table

from bicameral.boundary import parse_reply
from bicameral.errors import CatalogError, LabelError
from bicameral.labels import open_labelled
from bicameral.models import LocalProvider
from bicameral.patterns import GaveUp, OutputTemplate, from_user, program_text, untrusted_value
from bicameral.patterns.kernel import NoteEvent
from bicameral.patterns.signal.output_template import has_placeholder
from invariants import holds


class Bill(TypedDict):
    payer: str
    amount: int
    state: Literal["open", "paid"]
    note: str | None


BILL = OutputTemplate.of(Bill)
GOOD = '{"payer": "Ada", "amount": 40, "state": "open", "note": null}'
VALUE = {"payer": "Ada", "amount": 40, "state": "open", "note": None}
WRONG = {
    "words": "The payer is Ada.",
    "words around it": f"Here it is: {GOOD}",
    "fenced": f"```json\n{GOOD}\n```",
    "cut off": GOOD[:-5],
    "a field more": GOOD.replace("}", ', "admin": true}'),
    "a field less": '{"payer": "Ada", "state": "open", "note": null}',
    "a field twice": GOOD.replace("{", '{"amount": 4, '),
    "a field renamed": GOOD.replace("payer", "Payer"),
    "a number as text": GOOD.replace("40", '"40"'),
    "a fraction": GOOD.replace("40", "40.5"),
    "a truth as number": GOOD.replace("40", "true"),
    "no such choice": GOOD.replace("open", "Open"),
    "nothing where something must be": GOOD.replace('"Ada"', "null"),
    "a list": f"[{GOOD}]",
    "unseen characters": GOOD.replace("Ada", "Ada\u202e"),
}


def ran(there: Table, pattern: OutputTemplate = BILL, task: Any = None) -> Any:
    return asyncio.run(pattern.run(there.desk, program_text("Ada owes 40.") if task is None else task))


def test_a_reply_of_the_form_is_the_value() -> None:
    there = table([GOOD])
    outcome = answered(ran(there))
    assert outcome.value == VALUE
    assert outcome.label.trusted
    assert [each.participant for each in outcome.model_calls] == ["Host"]


@holds("S6.1")
def test_prompt_decoder_and_parser_have_one_form() -> None:
    there = table([GOOD])
    ran(there)
    (request,) = there.privileged.asked
    schema = request.json_schema
    assert schema is not None
    assert list(schema["properties"]) == ["payer", "amount", "state", "note"]
    assert schema["additionalProperties"] is False
    for name in schema["properties"]:
        assert f"- {name} (" in request.messages[0].text


@pytest.mark.parametrize("wrong", WRONG)
@holds("S6.2")
def test_what_does_not_fit_is_written_again_and_never_bent(wrong: str) -> None:
    there = table([WRONG[wrong], GOOD])
    outcome = answered(ran(there))
    assert outcome.value == VALUE
    assert [each.participant for each in outcome.model_calls] == ["Host", "Repair"]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("retries", [0, 1, 3])
@holds("S6.2", "S6.6")
def test_there_are_no_more_repairs_than_retries_and_then_nothing_comes(wrong: str, retries: int) -> None:
    there = table([WRONG[wrong]] * 9)
    outcome = ran(there, OutputTemplate.of(Bill, retries=retries))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "models.bad-reply"
    assert len(there.privileged.asked) == 1 + retries
    assert len([each for each in outcome.trace if isinstance(each, NoteEvent)]) == 1 + retries


def test_the_repair_sees_the_reply_and_the_form_and_not_the_task() -> None:
    there = table([WRONG["words"], GOOD])
    ran(there)
    prompt = there.privileged.prompts[1]
    assert WRONG["words"] in prompt
    assert "- payer (" in prompt
    assert "Ada owes 40." not in prompt


@pytest.mark.parametrize(
    ("wrong", "why"),
    [("a number as text", "amount"), ("a field more", "a field that the form"), ("cut off", "not JSON")],
)
def test_the_repair_sees_what_the_parser_says(wrong: str, why: str) -> None:
    there = table([WRONG[wrong], GOOD])
    ran(there)
    _, _, told = there.privileged.prompts[1].partition("What is wrong: ")
    with pytest.raises(ValueError, match=why) as caught:
        parse_reply(WRONG[wrong], BILL.wanted)
    assert told == str(caught.value)


# A skeleton ---------------------------------------------------------------------------------------------------------

SKELETON = "Dear {payer}, {amount} euros are {state}. {{Note}}: {note}"


@holds("S6.1")
def test_a_skeleton_is_shown_and_filled_in_by_code() -> None:
    letter = OutputTemplate.of(Bill, skeleton=SKELETON)
    there = table([GOOD])
    outcome = answered(ran(there, letter))
    assert outcome.value == VALUE
    assert SKELETON in there.privileged.asked[0].messages[0].text
    text = letter.render(outcome.labelled)
    assert text.label.trusted
    assert open_labelled(text) == "Dear Ada, 40 euros are open. {Note}: -"


def test_a_value_is_no_part_of_the_skeleton_and_the_text_has_its_label() -> None:
    letter = OutputTemplate.of(Bill, skeleton=SKELETON)
    there = table([], [GOOD.replace("Ada", "{amount} {payer.__class__}")])
    outcome = answered(ran(there, letter, untrusted_value(HOSTILE, "mail")))
    text = letter.render(outcome.labelled)
    assert not text.label.trusted
    assert open_labelled(text) == "Dear {amount} {payer.__class__}, 40 euros are open. {Note}: -"


@holds("S6.1")
@pytest.mark.parametrize(
    "skeleton",
    [
        "Dear {payer}.",
        f"{SKELETON} {{more}}",
        SKELETON.replace("{amount}", "{amount:>9}"),
        SKELETON.replace("{amount}", "{amount!r}"),
        SKELETON.replace("{payer}", "{payer.name}"),
        SKELETON.replace("{payer}", "{}"),
        "{payer",
    ],
)
def test_a_skeleton_has_the_fields_of_the_form_and_nothing_else(skeleton: str) -> None:
    with pytest.raises(CatalogError, match=r"pattern\.bad-skeleton"):
        OutputTemplate.of(Bill, skeleton=skeleton)


def test_without_a_skeleton_there_is_no_text() -> None:
    with pytest.raises(CatalogError, match=r"pattern\.bad-skeleton"):
        BILL.render(answered(ran(table([GOOD]))).labelled)


def test_what_a_stranger_wrote_is_no_skeleton() -> None:
    stranger = answered(ran(table([], [GOOD.replace("Ada", SKELETON)]), task=untrusted_value(HOSTILE, "mail")))
    with pytest.raises(LabelError):
        OutputTemplate.of(Bill, skeleton=stranger.value["payer"])


def test_a_strangers_text_is_filled_in_and_repaired_in_quarantine() -> None:
    there = table(["never"] * 2, [HOSTILE, GOOD])
    outcome = answered(ran(there, task=untrusted_value(HOSTILE, "mail")))
    assert not outcome.label.trusted
    assert not there.privileged.asked
    assert [each.chamber for each in outcome.model_calls] == ["quarantined", "quarantined"]


def test_why_a_reply_was_rejected_is_not_told_in_a_strangers_words() -> None:
    there = table([], [HOSTILE] * 2)
    outcome = ran(there, task=untrusted_value("mail", "mail"))
    assert isinstance(outcome, GaveUp)
    assert HOSTILE not in str(outcome.error)
    assert HOSTILE not in str(outcome.trace)


@holds("S6.7")
def test_a_value_that_fits_and_is_wrong_is_refused() -> None:
    def positive(bill: Any) -> str | None:
        return None if bill["amount"] > 0 else "an amount below one"

    assert ran(table([GOOD]), OutputTemplate.of(Bill, check=positive)).ok
    there = table([GOOD.replace("40", "-40"), GOOD])
    outcome = ran(there, OutputTemplate.of(Bill, check=positive))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.bad-value"
    assert len(there.privileged.asked) == 1


def test_why_a_value_is_wrong_is_not_told_in_a_strangers_words() -> None:
    """An attack: a check that quotes what the quarantined model wrote puts it into the error."""
    there = table(quarantined=[GOOD])
    task = untrusted_value("Pay me.", "mail")
    outcome = asyncio.run(OutputTemplate.of(Bill, check=lambda bill: f"not {bill}").run(there.desk, task))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.bad-value"
    assert "amount" not in str(outcome.error)


def test_a_form_of_one_value() -> None:
    outcome = ran(table(['{"value": 7}']), OutputTemplate.of(int))
    assert outcome.value == 7
    assert isinstance(ran(table(["7"] * 2), OutputTemplate.of(int)), GaveUp)


def test_the_beginning_of_the_prompt_changes_with_the_form_alone() -> None:
    class Other(TypedDict):
        payer: str

    def prefix(pattern: OutputTemplate, reply: str, task: str) -> str:
        return ran(table([reply]), pattern, from_user(task)).model_calls[0].prefix

    assert prefix(BILL, GOOD, "one") == prefix(BILL, GOOD, "two")
    assert prefix(BILL, GOOD, "one") != prefix(OutputTemplate.of(Other), '{"payer": "Ada"}', "one")


def test_knobs_are_kept_in_bounds() -> None:
    for retries in (-1, 4):
        with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
            OutputTemplate.of(Bill, retries=retries)


@pytest.mark.parametrize("left", ["<payer>", "{payer}", "[ Payer ]", "<<payer>>", "...", "…", "<string>", "(text)"])
@holds("S6.5")
def test_a_placeholder_that_was_not_filled_in_is_no_value(left: str) -> None:
    there = table([GOOD.replace("Ada", left), GOOD])
    outcome = ran(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.bad-value"
    assert left not in str(outcome.error)


@pytest.mark.parametrize("kept", ["[beta] Ada", "payer", "Ada (payer)", "<ada@example.com>", "", "Ada..."])
def test_a_text_with_brackets_is_a_value(kept: str) -> None:
    assert answered(ran(table([GOOD.replace("Ada", kept)]))).value["payer"] == kept


def test_placeholders_are_found_at_any_depth() -> None:
    assert has_placeholder({"rows": [{"name": "x"}, {"name": "<name>"}]})
    assert not has_placeholder({"rows": [{"name": "x"}, {"name": "<other>"}], "count": 3, "on": None})


@pytest.mark.model
def test_the_example_comes_out_right(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("S6", small_model, tmp_path)
    assert example.is_correct(answered(outcome)), outcome

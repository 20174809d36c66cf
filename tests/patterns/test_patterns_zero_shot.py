"""S1: one call and no second one, settings that stay with each result, and a probe of the form."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from patterns_models import performed
from patterns_world import HOSTILE, Script, answered, table

from bicameral.errors import CatalogError, ModelError, RunError
from bicameral.journal import open_journal_at
from bicameral.models import LocalProvider
from bicameral.patterns import Answered, GaveUp, Role, ZeroShot, program_text, untrusted_value
from bicameral.patterns.kernel import replay_pattern
from bicameral.patterns.signal.zero_shot import (
    HOST,
    BaselineSettings,
    common_settings,
    hidden_pieces,
    prompt_hash,
    reply_form,
)
from invariants import holds

WARM = Role("Host", "Sort the text.", temperature=0.8, max_tokens=64)
UNAVAILABLE = ModelError("models.unavailable", "it does not answer")


def ran(script: Script, pattern: ZeroShot | None = None) -> tuple[Any, Any]:
    there = table(script)
    return there, asyncio.run((pattern or ZeroShot()).run(there.desk, program_text("Sort this: it crashes.")))


def probed(script: Script, pattern: ZeroShot | None = None) -> Any:
    return asyncio.run((pattern or ZeroShot(WARM)).probe(table(script).desk, program_text("It crashes.")))


@holds("S1.1")
@pytest.mark.parametrize("reply", ["bug", "", "   bug\n", "```json\n{}\n```", "I cannot say.", '{"kind": "bu'])
def test_a_run_is_one_call_and_its_reply_goes_on_unchanged(reply: str) -> None:
    there, outcome = ran([reply, "a second reply"])
    assert answered(outcome).value == reply
    assert len(there.privileged.asked) == outcome.taken.calls == 1


@holds("S1.1")
def test_a_call_that_fails_is_not_made_again() -> None:
    there, outcome = ran([UNAVAILABLE, "bug"])
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "models.unavailable"
    assert len(there.privileged.asked) == 1


def test_the_prompt_is_the_instruction_and_the_task_and_nothing_else() -> None:
    there, _ = ran(["bug"])
    (request,) = there.privileged.asked
    assert [message.text for message in request.messages] == [HOST.setup, "Sort this: it crashes."]
    assert request.json_schema is None
    assert not request.tools


def test_untrusted_text_goes_to_the_quarantined_model_and_labels_the_reply() -> None:
    there = table([], ["bug"])
    outcome = answered(asyncio.run(ZeroShot().run(there.desk, untrusted_value(HOSTILE, "mail"))))
    assert not outcome.label.trusted
    assert not there.privileged.asked
    assert HOSTILE not in str(outcome.trace)


@holds("S1.3")
def test_model_and_sampling_settings_are_stored_with_every_result(tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table(["bug"], journal=journal)
        outcome = answered(asyncio.run(ZeroShot(WARM, sample=3).run(there.desk, program_text("It crashes."))))
        settings = BaselineSettings.of(outcome)
        assert settings == BaselineSettings("high", prompt_hash(WARM.setup), 0.8, 64)
        noted = [event.body for event in journal.events(outcome.run) if event.kind == "note"]
        assert noted == [{"noted": "sampling", "at": "", "temperature": 0.8, "max_tokens": 64, "seed": 3}]
        again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
        assert again.identical, again.differences


@holds("S1.3")
@pytest.mark.parametrize("other", [WARM, Role("Host", HOST.setup, temperature=0.1), Role("Host", HOST.setup)])
def test_results_of_different_settings_make_no_baseline(other: Role) -> None:
    first, second = answered(ran(["bug"])[1]), answered(ran(["bug"], ZeroShot(other))[1])
    assert common_settings([first, first]) == BaselineSettings.of(first)
    with pytest.raises(RunError) as caught:
        common_settings([first, second])
    assert caught.value.code == "pattern.mixed-baseline"


@holds("S1.3")
def test_a_result_of_another_model_makes_no_baseline() -> None:
    trusted = answered(ran(["bug"])[1])
    there = table([], ["bug"])
    other = answered(asyncio.run(ZeroShot().run(there.desk, untrusted_value("It crashes.", "mail"))))
    with pytest.raises(RunError) as caught:
        common_settings([trusted, other])
    assert caught.value.code == "pattern.mixed-baseline"


@holds("S1.4")
def test_a_declared_baseline_keeps_its_prompt() -> None:
    assert ZeroShot(WARM, declared=prompt_hash(WARM.setup)).host is WARM
    with pytest.raises(CatalogError) as caught:
        ZeroShot(Role("Host", "Sort the text, please."), declared=prompt_hash(WARM.setup))
    assert caught.value.code == "pattern.changed-baseline"


@pytest.mark.parametrize(
    ("instruction", "piece"),
    [
        ("Sort the text.\nInput: it crashes\nOutput: bug", "S2"),
        ("Sort the text, for example a crash is a bug.", "S2"),
        ("You are a careful clerk. Sort the text.", "S3"),
        ("Sort the text.\n1. Read it.\n2. Name it.", "S4"),
        ("Sort the text. Never guess.", "S5"),
        ('Sort the text as {"kind": "bug"}.', "S6"),
        ("Sort the text by these principles: be fair.", "S9"),
    ],
)
def test_a_hidden_piece_is_found_and_ends_the_probe_before_it_begins(instruction: str, piece: str) -> None:
    assert hidden_pieces(instruction) == (piece,)
    there = table(["bug"] * 20)
    with pytest.raises(RunError) as caught:
        asyncio.run(ZeroShot(Role("Host", instruction)).probe(there.desk, program_text("It crashes.")))
    assert caught.value.code == "pattern.not-bare"
    assert piece in str(caught.value)
    assert not there.privileged.asked
    assert hidden_pieces("Sort the text and name its kind in one word.") == ()


def test_a_long_instruction_is_refused() -> None:
    with pytest.raises(CatalogError) as caught:
        ZeroShot(Role("Host", "Sort this text well. " * 60))
    assert caught.value.code == "pattern.long-instruction"


@pytest.mark.parametrize(
    ("steady", "verdict"), [(20, "enough"), (19, "enough"), (18, "unclear"), (17, "escalate"), (0, "escalate")]
)
def test_the_probe_says_whether_the_form_is_steady_enough(steady: int, verdict: str) -> None:
    replies = ["bug"] * steady + [f"It is a bug{'!' * n}\n" * (n + 1) + "- x\n" * (n % 2) for n in range(20 - steady)]
    found = probed(replies)
    assert (found.runs, found.failed) == (20, 0)
    assert found.verdict == verdict
    if steady:
        assert found.consistency == steady / 20
        assert found.settings == BaselineSettings("high", prompt_hash(WARM.setup), 0.8, 64)


def test_every_run_of_the_probe_is_another_sample_and_failures_count() -> None:
    there = table(lambda request: UNAVAILABLE if request.seed == 4 else "bug")
    found = asyncio.run(ZeroShot(WARM, probe_runs=5).probe(there.desk, program_text("It crashes.")))
    assert [request.seed for request in there.privileged.asked] == [0, 1, 2, 3, 4]
    assert (found.failed, found.consistency, found.verdict) == (1, 0.8, "escalate")


def test_a_gain_by_examples_is_judged_by_the_knobs() -> None:
    judge = ZeroShot().judge_examples
    assert [judge(lift) for lift in (-0.2, 0.05, 0.07, 0.1)] == ["enough", "enough", "unclear", "escalate"]


@pytest.mark.parametrize(
    ("reply", "other", "same"),
    [
        ('{"a": 1, "b": ["x"]}', '{"b": ["y", "z"], "a": 2}', True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}', '```json\n{"a": 1}\n```', False),
        ("bug", "praise", True),
        ("bug", "It is a bug.", False),
        ("- one\n- two", "- one\n- two\n- three", True),
        ("- one\n- two", "1. one\n2. two", False),
        ("Here it is:\n- one", "- one", False),
    ],
)
def test_forms_are_compared_without_their_content(reply: str, other: str, same: bool) -> None:
    assert (reply_form(reply) == reply_form(other)) is same


def test_knobs_are_kept_in_bounds() -> None:
    for wrong in ({"probe_runs": 4}, {"format_ok": 1.5}, {"lift_wanted": -0.1}):
        with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
            ZeroShot(**wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.model
def test_the_example_comes_out_right(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("S1", small_model, tmp_path)
    assert isinstance(outcome, Answered), outcome
    assert example.is_correct(outcome), outcome.value

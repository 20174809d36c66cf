"""Specifications: default deny, forbids before permits, duties, waivers that end, and files that load or do not."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import PolicyError
from bicameral.labels import TRUSTED_USER, Label, Source
from bicameral.policy import (
    ArgumentFacts,
    CallFacts,
    Duty,
    Specification,
    SpecificationEngine,
    Verdict,
    Waiver,
    read_specification,
    sample_call,
)
from bicameral.tools import Origin, Registry, Tool, tool
from invariants import holds

NOON = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
PRIVATE = Label({Source("user", "request")}, {"user"})


@tool(effect="read", outbound=False, origins=Origin("system", "public"), purpose={"city": "selects"})
def population(city: str) -> int:
    """How many people live in a city."""
    return 7


@tool(effect="read", outbound=False, origins=Origin("system", "user"), purpose={"day": "selects"})
def read_diary(day: str) -> str:
    """What the diary says."""
    return ""


@tool(effect="write", outbound=False, origins=Origin("system", "public"), purpose={"name": "directs"})
def save(name: str) -> None:
    """Save something."""


@tool(effect="send", origins=Origin("system"), purpose={"to": "directs", "body": "carries"}, receivers=("to",))
def send(to: str, body: str) -> None:
    """Send a mail."""


@tool(effect="irreversible", outbound=False, origins=Origin("system"), purpose={"name": "directs"})
def delete(name: str) -> None:
    """Delete something."""


REGISTRY = Registry([population, read_diary, save, send, delete])
PERMIT_SEND = '@id("mails") permit (principal, action, resource in Tool::"send");'
FORBID_ALL = '@id("nothing") forbid (principal, action, resource);'


def waiver(**changes: Any) -> Waiver:
    facts: dict[str, Any] = {
        "rule": "nothing",
        "tools": ("send",),
        "author": "Ada Moss",
        "reason": "the audit",
        "begins": NOON - DAY,
        "ends": NOON + DAY,
    }
    return Waiver(**facts | changes)


def judge(spec: Specification, tool: Tool, at: dt.datetime | None = NOON, facts: CallFacts | None = None) -> Verdict:
    return SpecificationEngine(spec).judge(tool, facts or sample_call(tool, "strict"), REGISTRY, at)


@holds("V7.4")
def test_writes_sends_deletions_and_private_data_are_denied_unless_permitted() -> None:
    empty = Specification("none", "1", "")
    for each in (save, send, delete, read_diary):
        assert judge(empty, each) == Verdict(False, reason="no rule permits it"), each.name
        permit = f'@id("it") permit (principal, action, resource in Tool::"{each.name}");'
        assert judge(Specification("one", "1", permit), each) == Verdict(True, ("it",)), each.name
    assert judge(empty, population).permitted


@holds("V7.4")
def test_private_data_in_a_harmless_call_needs_a_permit() -> None:
    facts = CallFacts.of_tool(population, (ArgumentFacts("city", "selects", PRIVATE),), TRUSTED_USER, "strict")
    assert not judge(Specification("none", "1", ""), population, facts=facts).permitted
    decided = CallFacts.of_tool(population, (ArgumentFacts("city", "selects", TRUSTED_USER),), PRIVATE, "strict")
    assert not judge(Specification("none", "1", ""), population, facts=decided).permitted


def test_a_tool_that_declares_nothing_needs_a_permit() -> None:
    bare = Registry([lambda_tool])["lambda_tool"]
    verdict = SpecificationEngine(Specification("none", "1", "")).judge(
        bare, sample_call(bare, "strict"), Registry([bare]), NOON
    )
    assert not verdict.permitted


def lambda_tool(text: str) -> str:
    """A plain function."""
    return text


@holds("V7.6")
def test_a_forbid_beats_a_permit_in_whatever_order() -> None:
    for rules in (PERMIT_SEND + FORBID_ALL, FORBID_ALL + PERMIT_SEND):
        verdict = judge(Specification("both", "1", rules), send)
        assert (verdict.permitted, verdict.rules) == (False, ("nothing",))


def test_a_waiver_lifts_its_forbid_for_its_tools_and_replaces_no_permit() -> None:
    spec = Specification("waived", "1", PERMIT_SEND + FORBID_ALL, waivers=(waiver(),))
    verdict = judge(spec, send)
    assert verdict.permitted
    assert verdict.rules == ("mails",)
    assert [each.rule for each in verdict.waivers] == ["nothing"]
    assert not judge(spec, save).permitted, "it names another tool"
    alone = Specification("waived", "1", FORBID_ALL, waivers=(waiver(),))
    assert judge(alone, send).reason == "no rule permits it"


@given(st.integers(-200, 200))
def test_a_waiver_counts_from_its_begin_until_its_end_and_never_outside(hours: int) -> None:
    at = NOON + dt.timedelta(hours=hours)
    spec = Specification("waived", "1", PERMIT_SEND + FORBID_ALL, waivers=(waiver(),))
    assert judge(spec, send, at).permitted is (-24 <= hours < 24)


def test_without_a_clock_that_can_be_believed_no_waiver_counts() -> None:
    spec = Specification("waived", "1", PERMIT_SEND + FORBID_ALL, waivers=(waiver(),))
    assert not judge(spec, send, None).permitted


@holds("V7.5")
@pytest.mark.parametrize(
    "changes",
    [
        {"author": " "},
        {"reason": ""},
        {"tools": ()},
        {"tools": ("*",)},
        {"tools": ("send", "")},
        {"ends": NOON - 2 * DAY},
        {"ends": NOON + 90 * DAY},
        {"ends": dt.datetime(9999, 12, 31, tzinfo=dt.UTC)},
        {"ends": dt.datetime(2026, 11, 19)},
    ],
)
def test_a_waiver_without_end_scope_or_author_does_not_load(changes: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="does not load") as caught:
        waiver(**changes)
    assert caught.value.code == "policy.bad-waiver"


@holds("V7.5")
@pytest.mark.parametrize("left_out", ["rule", "tools", "author", "reason", "begins", "ends"])
def test_a_waiver_in_a_file_without_one_of_its_facts_does_not_load(tmp_path: Path, left_out: str) -> None:
    facts = {
        "rule": "nothing",
        "tools": "[send]",
        "author": "Ada Moss",
        "reason": "the audit",
        "begins": "2026-11-01",
        "ends": "2026-11-30",
    }
    lines = "\n".join(f"    {name}: {value}" for name, value in facts.items() if name != left_out)
    file = tmp_path / "spec.yaml"
    file.write_text(f"specification: s\nversion: '1'\nrules: '{FORBID_ALL}'\nwaivers:\n  -\n{lines}\n")
    with pytest.raises(PolicyError, match=left_out) as caught:
        read_specification(file)
    assert caught.value.code == "policy.bad-specification"


def test_a_waiver_of_a_rule_that_is_no_forbid_does_not_load() -> None:
    with pytest.raises(PolicyError, match="no such forbid"):
        Specification("s", "1", PERMIT_SEND, waivers=(waiver(rule="mails"),))


def test_a_specification_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "refunds.yaml"
    file.write_text(
        "specification: refunds\n"
        "version: '3'\n"
        "rules: |\n"
        '  @id("mails") @duties("log") permit (principal, action, resource in Tool::"send");\n'
        f"  {FORBID_ALL}\n"
        "duties:\n"
        "  - { name: log, tool: save, copies: { name: to } }\n"
        "waivers:\n"
        "  - { rule: nothing, tools: [send], author: Ada Moss, reason: audit, begins: 2026-11-18, ends: 2026-11-19 }\n"
        "work: [save the note]\n"
    )
    spec = read_specification(file)
    spec.require_tools(REGISTRY)
    assert (spec.name, spec.version, spec.work) == ("refunds", "3", ("save the note",))
    assert spec.duties == (Duty("log", "save", {}, {"name": "to"}),)
    verdict = judge(spec, send)
    assert verdict.permitted
    assert [duty.name for duty in verdict.duties] == ["log"]
    assert not judge(spec, send, dt.datetime(2026, 11, 19, tzinfo=dt.UTC)).permitted


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("specification: [", "policy.bad-specification"),
        ("version: '1'\nrules: ''", "policy.bad-specification"),
        ("specification: s\nversion: ''\nrules: ''", "policy.bad-specification"),
        ("specification: s\nversion: '1'\nrules: 'permit (principal, action, resource);'", "policy.no-id"),
        ("specification: s\nversion: '1'\nrules: 'permit ('", "policy.syntax"),
        ("specification: s\nversion: '1'\nrules: '@id(\"a\") @duty(\"x\") permit (principal, action, resource);'",
         "policy.unknown-annotation"),
        ("specification: s\nversion: '1'\nrules: '@id(\"a\") @duties(\"x\") permit (principal, action, resource);'",
         "policy.bad-duty"),
        ("specification: s\nversion: '1'\nrules: '@id(\"a\") @duties(\"x\") forbid (principal, action, resource);'",
         "policy.misplaced-annotation"),
        (f"specification: s\nversion: '1'\nrules: '{FORBID_ALL}{FORBID_ALL}'", "policy.duplicate-id"),
        ("specification: s\nversion: '1'\nrules: ''\nwaiver: []", "policy.bad-specification"),
    ],
)  # fmt: skip
def test_a_file_that_says_something_wrong_is_refused_with_its_place(tmp_path: Path, text: str, code: str) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(text)
    with pytest.raises(PolicyError) as caught:
        read_specification(file)
    assert caught.value.code == code
    assert "spec.yaml" in str(caught.value.place)


def test_names_of_tools_that_are_not_there_are_refused() -> None:
    for spec in (
        Specification("s", "1", '@id("a") permit (principal, action, resource in Tool::"sned");'),
        Specification("s", "1", "", (Duty("log", "sned"),)),
        Specification("s", "1", FORBID_ALL, waivers=(waiver(tools=("sned",)),)),
    ):
        with pytest.raises(PolicyError, match="there is no tool 'sned'") as caught:
            spec.require_tools(REGISTRY)
        assert caught.value.nearest == "send"


def test_what_is_unsure_about_a_call_counts_against_it() -> None:
    forbid = '@id("lures") forbid (principal, action, resource) when { context.lures };'
    permit = '@id("mails") permit (principal, action, resource in Tool::"send") when { !context.lures };'
    unsure = CallFacts.of_tool(send, sample_call(send, "strict").arguments, TRUSTED_USER, "strict", lures=None)
    sure = CallFacts.of_tool(send, sample_call(send, "strict").arguments, TRUSTED_USER, "strict", lures=frozenset())
    for rules in (PERMIT_SEND + forbid, permit):
        spec = Specification("s", "1", rules)
        assert not judge(spec, send, facts=unsure).permitted
        assert judge(spec, send, facts=sure).permitted


def test_facts_that_are_not_those_of_the_tool_are_denied() -> None:
    spec = Specification("s", "1", '@id("all") permit (principal, action, resource);')
    lying = CallFacts("send", "", "pure", False, True, (), TRUSTED_USER, "strict")
    verdict = judge(spec, send, facts=lying)
    assert not verdict.permitted
    assert "cannot judge" in verdict.reason


@holds("V7.2")
@given(st.sampled_from(list(REGISTRY)), st.sampled_from([None, NOON, NOON + 2 * DAY]))
def test_equal_inputs_have_equal_verdicts(tool: Tool, at: dt.datetime | None) -> None:
    spec = Specification("waived", "1", PERMIT_SEND + FORBID_ALL, waivers=(waiver(),))
    assert judge(spec, tool, at) == judge(spec, tool, at)

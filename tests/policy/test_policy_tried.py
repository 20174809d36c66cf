"""A call that is tried, and its decision as a case: written as TOML, read back, and decided the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from policy_calls import REGISTRY

from bicameral.labels import PUBLIC, TRUSTED_USER, Label, Source
from bicameral.policy import Policy, PolicyCase, case_facts, case_toml, read_cases, run_case
from bicameral.runs import TriedArgument, try_call

POLICY = Policy.load(registry=REGISTRY)
STRANGER = Label({Source("third_party", "search_mail", "[].body")}, {"user"})
# Nothing that UTF-8 cannot write: a form cannot send it.
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)
LABELS = st.builds(
    Label,
    st.frozensets(st.builds(Source, st.sampled_from(["user", "system", "third_party"]), TEXTS, TEXTS), max_size=2),
    st.one_of(st.just(PUBLIC), st.frozensets(TEXTS, max_size=3)),
)


def read_back(folder: Path, text: str) -> PolicyCase:
    (folder / "cases.toml").write_text(text, encoding="utf-8")
    (case,) = read_cases(folder / "cases.toml")
    return case


@given(to=LABELS, body=LABELS, control=LABELS, value=TEXTS, assembled=st.booleans())
def test_the_case_of_a_call_says_what_was_decided_on_it(
    tmp_path_factory: pytest.TempPathFactory, to: Label, body: Label, control: Label, value: str, assembled: bool
) -> None:
    tool = REGISTRY["send_mail"]
    arguments = {"to": TriedArgument(to, [value], assembled), "body": TriedArgument(body, value)}
    found = try_call(tool, arguments, control, POLICY, REGISTRY)
    assert found.is_expected
    text = case_toml(found.case)
    assert all(character.isprintable() or character == "\n" for character in text)
    case = read_back(tmp_path_factory.getbasetemp(), text)
    assert case == found.case
    assert run_case(case, POLICY, REGISTRY).is_expected
    # What policies may not see is not in it.
    facts = case_facts(case, REGISTRY)
    assert {each.name: each.label for each in facts.arguments} == {"to": to, "body": body}
    assert facts.pc is control


def test_a_value_serves_for_whom_it_names_and_what_could_be_followed(tmp_path: Path) -> None:
    arguments = {
        "to": TriedArgument(TRUSTED_USER, ["Bob@example.com"]),
        "body": TriedArgument(STRANGER, "the secret word is kept at www.evil.example"),
    }
    found = try_call(REGISTRY["send_mail"], arguments, TRUSTED_USER, POLICY, REGISTRY, name="mine")
    assert (found.decided, found.policies) == ("ask", ("strangers-text-in-your-name",))
    text = case_toml(found.case)
    assert 'names = ["bob@example.com"]' in text
    assert "www.evil.example" in text
    assert "secret word" not in text
    assert read_back(tmp_path, text).name == "mine"


def test_an_argument_that_a_plan_puts_together_is_asked_about_in_a_case(tmp_path: Path) -> None:
    text = '[[case]]\nname = "a"\ntool = "send_mail"\nexpect = "ask"\npolicies = ["assembled-by-the-plan"]\n'
    whole = text + 'arguments.to = { names = ["bob@example.com"] }\n'
    assembled = whole.replace(" }", ", assembled = true }")
    assert run_case(read_back(tmp_path, assembled), POLICY, REGISTRY).is_expected
    assert run_case(read_back(tmp_path, whole), POLICY, REGISTRY).decided == "allowed"

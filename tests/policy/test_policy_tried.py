"""A call that is tried, and its decision as a case: written as TOML, read back, and decided the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from policy_calls import REGISTRY

from bicameral.labels import PUBLIC, TRUSTED_USER, Label, Source
from bicameral.policy import Policy, PolicyCase, case_facts, case_toml, read_cases, run_case
from bicameral.runs import TriedArgument, try_call
from bicameral.toolboxes.files import toolbox
from bicameral.tools import Registry, Surroundings

POLICY = Policy.load(registry=REGISTRY)
STRICT = Policy.parse(
    '@id("never-there")\n@reason("nobody writes there")\nforbid (principal, action, resource in Tool::"send_mail")\n'
    'when { context.domains.contains("evil.example") };\n'
    '@id("known-there")\n@overrides("leaves-its-readers")\npermit (principal, action, resource in Tool::"send_mail")\n'
    'when { context.receivers.contains("ann@example.com") };\n',
    REGISTRY,
)
"""With a rule that stops only some receivers, and one that spares the question only for some."""
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


@given(
    to=LABELS,
    body=LABELS,
    control=LABELS,
    names=st.none() | st.lists(TEXTS, max_size=2),
    text=st.none() | TEXTS,
    assembled=st.booleans(),
    policy=st.sampled_from([POLICY, STRICT]),
)
def test_the_case_of_a_call_says_what_was_decided_on_it(
    tmp_path_factory: pytest.TempPathFactory,
    to: Label,
    body: Label,
    control: Label,
    names: list[str] | None,
    text: str | None,
    assembled: bool,
    policy: Policy,
) -> None:
    tool = REGISTRY["send_mail"]
    arguments = {"to": TriedArgument(to, names, assembled), "body": TriedArgument(body, text)}
    found = try_call(tool, arguments, control, policy, REGISTRY).result
    assert found.is_expected
    written = case_toml(found.case)
    assert all(character.isprintable() or character == "\n" for character in written)
    case = read_back(tmp_path_factory.getbasetemp(), written)
    assert case == found.case
    assert run_case(case, policy, REGISTRY) == found
    # What policies may not see is not in it.
    facts = case_facts(case, REGISTRY)
    assert {each.name: each.label for each in facts.arguments} == {"to": to, "body": body}
    assert facts.pc is control


SEVERITY = ("allowed", "ask", "denied")
VALUES = st.sampled_from(
    ["see you at noon", "www.evil.example", "ann@example.com", "eve@evil.example", "user", "x" * 50]
)


@given(
    to=LABELS, body=LABELS, names=st.lists(VALUES, max_size=2), text=VALUES, policy=st.sampled_from([POLICY, STRICT])
)
def test_a_missing_value_is_decided_as_the_worst_that_it_could_be(
    to: Label, body: Label, names: list[str], text: str, policy: Policy
) -> None:
    def decided(names: list[str] | None, text: str | None) -> int:
        arguments = {"to": TriedArgument(to, names), "body": TriedArgument(body, text)}
        found = try_call(REGISTRY["send_mail"], arguments, TRUSTED_USER, policy, REGISTRY)
        return SEVERITY.index(found.result.decided)

    known = decided(names, text)
    assert all(decided(*unknown) >= known for unknown in ((None, text), (names, None), (None, None)))


@pytest.mark.parametrize(
    ("to", "body", "wanted", "rules", "unknown"),
    [
        # Whatever an untrusted text says could be in it.
        (["bob@example.com"], (STRANGER, None), "ask", ("strangers-text-in-your-name",), ("body",)),
        (["bob@example.com"], (STRANGER, "see you at noon"), "allowed", (), ()),
        (["bob@example.com"], (TRUSTED_USER, None), "allowed", (), ()),
        # A receiver that is not known may be the one to whom nothing may be sent.
        (None, (TRUSTED_USER, "hello"), "denied", ("never-there",), ("to",)),
        (["eve@evil.example"], (TRUSTED_USER, "hello"), "denied", ("never-there",), ()),
        ([], (TRUSTED_USER, "hello"), "allowed", (), ()),
        # Something that could be followed is known already, and more of it changes nothing.
        (["bob@example.com"], (STRANGER, "www.evil.example"), "ask", ("strangers-text-in-your-name",), ()),
    ],
)
def test_what_is_not_known_of_a_call_is_named_with_the_decision(
    tmp_path: Path,
    to: list[str] | None,
    body: tuple[Label, str | None],
    wanted: str,
    rules: tuple[str, ...],
    unknown: tuple[str, ...],
) -> None:
    label, text = body
    arguments = {"to": TriedArgument(TRUSTED_USER, to), "body": TriedArgument(Label(label.sources), text)}
    found = try_call(REGISTRY["send_mail"], arguments, TRUSTED_USER, STRICT, REGISTRY)
    assert (found.result.decided, found.result.policies, found.unknown) == (wanted, rules, unknown)
    case = read_back(tmp_path, case_toml(found.result.case))
    assert (case_facts(case, REGISTRY).lures is None) == (unknown == ("body",))
    assert run_case(case, STRICT, REGISTRY) == found.result


@pytest.mark.parametrize(
    ("path", "wanted", "unknown"),
    [("run.sh", "ask", ()), ("notes.txt", "allowed", ()), (None, "ask", ("source", "target"))],
)
def test_what_a_call_copies_into_a_file_may_be_untrusted(
    tmp_path: Path, path: str | None, wanted: str, unknown: tuple[str, ...]
) -> None:
    registry = Registry(toolbox.open(Surroundings.here(tmp_path)))
    policy = Policy.load(registry=registry)
    source = None if path is None else "letter.txt"
    arguments = {"source": TriedArgument(TRUSTED_USER, source), "target": TriedArgument(TRUSTED_USER, path)}
    found = try_call(registry["copy_file"], arguments, TRUSTED_USER, policy, registry)
    assert (found.result.decided, found.unknown) == (wanted, unknown)
    assert run_case(read_back(tmp_path, case_toml(found.result.case)), policy, registry) == found.result


def test_a_value_serves_for_whom_it_names_and_what_could_be_followed(tmp_path: Path) -> None:
    arguments = {
        "to": TriedArgument(TRUSTED_USER, ["Bob@example.com"]),
        "body": TriedArgument(STRANGER, "the secret word is kept at www.evil.example"),
    }
    found = try_call(REGISTRY["send_mail"], arguments, TRUSTED_USER, POLICY, REGISTRY, name="mine").result
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

"""Files of policies: what is wrong with one is told with its line, what was expected and the nearest name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cedarpy import Entities, PolicySet, Schema
from policy_calls import BODY, CONTACT, READ, REGISTRY, mail

from bicameral.errors import PolicyError
from bicameral.policy import CallFacts, Policy
from bicameral.policy._cedar_request import (
    ALL_FACTS,
    entity_facts as told_of,
    evaluate_policies,
    make_call_profile,
    outline_call,
    render_context,
    render_entity,
    validation_errors,
)
from bicameral.policy._rules import read_packaged, split_policies

HEAD = "forbid (principal, action, resource)"


def mistake(text: str, **more: object) -> PolicyError:
    with pytest.raises(PolicyError) as error:
        Policy.parse(text, file="team.cedar", **more)  # pyright: ignore[reportArgumentType]
    place = error.value.place
    assert place is not None
    assert place.file == "team.cedar"
    assert place.line is not None
    return error.value


@pytest.mark.parametrize(
    ("text", "code", "line", "nearest"),
    [
        (f"\n\n{HEAD}\nwhen {{ resource.directs.trsted }};", "policy.unknown-name", 4, "trusted"),
        (f"{HEAD} when {{\n resource.direct.trusted }};", "policy.unknown-name", 2, "directs"),
        (f"{HEAD} when {{ context.recievers.isEmpty() }};", "policy.unknown-name", 1, "receivers"),
        (f"{HEAD} when {{ context.directs.trusted }};", "policy.unknown-name", 1, "resource.directs"),
        (f"{HEAD} when {{ resource.receivers.isEmpty() }};", "policy.unknown-name", 1, "context.receivers"),
        (f"{HEAD} when {{ resource.sources.isEmpty() }};", "policy.unknown-name", 1, "resource.directs.sources"),
        (f"{HEAD} when {{ resource has drects }};", "policy.unknown-name", 1, "directs"),
        (f"{HEAD} when {{ resource.all has trustd }};", "policy.unknown-name", 1, "trusted"),
        (f"{HEAD} when {{ false && resource.outbond }};", "policy.unknown-name", 1, "outbound"),
        (
            f'{HEAD} when {{ resource.hasTag("to") && resource.getTag("to").trust }};',
            "policy.unknown-name",
            1,
            "trusted",
        ),
        (f'{HEAD} when {{ principal.name == "x" }};', "policy.unknown-name", 1, None),
        ('forbid (principal, action, resource in Effect::"sned");', "policy.unknown-name", 1, "send"),
        ('forbid (principal, action, resource in Tol::"x");', "policy.unknown-name", 1, "Tool"),
        ('forbid (principal, action == Action::"cal", resource);', "policy.unknown-name", 1, 'Action::"call"'),
        ('forbid (principal == Person::"bob", action, resource);', "policy.unknown-name", 1, None),
        ('forbid (principal, action, resource == Call::"call");', "policy.unknown-name", 1, None),
        ('forbid (principal, action, resource == Tool::"send_mail");', "policy.wrong-type", 1, None),
        (f'{HEAD} when {{ resource.outbound == "yes" }};', "policy.wrong-type", 1, None),
        (f"{HEAD} when {{ resource.directs }};", "policy.wrong-type", 1, None),
        (f'{HEAD} when {{ resource.getTag("to").trusted }};', "policy.wrong-type", 1, None),
        (f"{HEAD} when {{ [].isEmpty() }};", "policy.wrong-type", 1, None),
        (f"// one\n{HEAD};\n{HEAD} when {{\n  resource.acts = true\n}};", "policy.syntax", 4, None),
        (f"{HEAD};\n\nallow (principal, action, resource);", "policy.syntax", 3, None),
        (f"{HEAD}\nwhen {{ resource.acts }}\nwhen {{ && }}\n;", "policy.syntax", 3, None),
        (f"{HEAD};\n{HEAD}\n", "policy.syntax", 2, None),
        (f'{HEAD} when {{ "open }};', "policy.syntax", 1, None),
        ("forbid (principal, action);", "policy.syntax", 1, None),
        (";", "policy.syntax", 1, None),
        ("hello", "policy.syntax", 1, None),
        (f"{HEAD} when {{ {'!' * 3_000}true }};", "policy.too-large", 1, None),
        (f"{HEAD} when {{ {'(if true then ' * 200}true{' else true)' * 200} }};", "policy.too-large", 1, None),
        (f'{HEAD} when {{ unknown("x") }};', "policy.syntax", 1, None),
        (f'@id("a") @id("b") {HEAD};', "policy.syntax", 1, None),
        ("forbid (principal == ?principal, action, resource);", "policy.changes-nothing", 1, None),
        (f'\n@aks("?")\n{HEAD};', "policy.unknown-annotation", 2, "ask"),
        (f'@overrides("directed-by-strangers") {HEAD};', "policy.misplaced-annotation", 1, None),
        ('@ask("?") permit (principal, action, resource);', "policy.misplaced-annotation", 1, None),
        (f'@id("a") {HEAD};\n@id("a") {HEAD};', "policy.duplicate-id", 2, None),
        (f'@id("undirected") {HEAD};\n@id("leaves-its-readers") {HEAD};', "policy.duplicate-id", 2, None),
        (
            '@overrides("directed-by-stranger") permit (principal, action, resource in Tool::"send_mail");',
            "policy.unknown-default",
            1,
            "directed-by-strangers",
        ),
        (f'{HEAD} when {{ context.receivers.contains("Eve@evil.com") }};', "policy.upper-case", 1, None),
        (f'{HEAD} unless {{ ["DE1", "de2"].containsAll(context.receivers) }};', "policy.upper-case", 1, None),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_nearest_name(
    text: str, code: str, line: int, nearest: str | None
) -> None:
    error = mistake(text)
    assert error.place is not None
    assert (error.code, error.place.line, error.nearest) == (code, line, nearest), str(error)


def test_a_mistake_says_what_was_expected() -> None:
    assert mistake(f"{HEAD} when {{ resource.all.x }};").expected == (
        "one of trusted, from_user, strangers_text, public, readers, sources, fields"
    )
    assert mistake(HEAD).expected == "`;` at the end of the policy"
    assert str(mistake('permit (principal, action, resource in Tool::"send_mail");')) == (
        "team.cedar, line 1: this permit changes nothing: what no policy forbids is allowed already; expected the "
        'default that it lifts, by name. Write @overrides("directed-by-strangers"), or another of: '
        "decided-by-strangers, assembled-by-the-plan, leaves-its-readers, strangers-text-in-your-name, "
        "strangers-text-executed, never-reviewed. "
        "[policy.changes-nothing]"
    )


@pytest.mark.parametrize(
    ("name", "nearest"), [('Tool::"sned_mail"', "send_mail"), ('Toolbox::"mali"', "mail"), ('Tool::"x\\"y"', None)]
)
def test_a_policy_for_a_tool_that_is_not_there_is_a_mistake(name: str, nearest: str | None) -> None:
    for text in (f"forbid (principal, action, resource in {name});", f"{HEAD} when {{ resource in {name} }};"):
        error = mistake(text, registry=REGISTRY)
        assert (error.code, error.nearest) == ("policy.unknown-tool", nearest)
        Policy.parse(text)


def test_a_policy_without_a_name_is_called_by_its_place() -> None:
    policy = Policy.parse(f"// what it is for;\n\n{HEAD};\n{HEAD} when {{ true }};\n", file="team.cedar")
    assert [rule.id for rule in policy.rules if not rule.default] == ["team.cedar:3", "team.cedar:4"]
    assert mistake(f"{HEAD}; {HEAD};").code == "policy.duplicate-id"


def test_semicolons_in_texts_and_comments_end_no_policy() -> None:
    text = f'// a; b\n@id("a;\\"b") {HEAD} // ; "\n when {{ resource.all.sources.contains(";//") }}; // end;\n'
    found = list(split_policies(text, "x"))
    assert [(piece.line, piece.text.startswith("@id")) for piece in found] == [(2, True)]
    assert [rule.id for rule in Policy.parse(text).rules if not rule.default] == ['a;"b']


@pytest.mark.parametrize("text", ["", "\n", "// nothing yet", "\ufeff// a mark"])
def test_a_file_with_nothing_in_it_changes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "empty.cedar").write_text(text, encoding="utf-8")
    assert Policy.load([tmp_path / "empty.cedar"]).rules == Policy.load().rules


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "binary.cedar").write_bytes(b"\xff\xfe\0")
    (tmp_path / "large.cedar").write_bytes(b"/" * 1_000_001)
    for name, code in (
        ("none.cedar", "policy.unreadable"),
        ("binary.cedar", "policy.unreadable"),
        ("large.cedar", "policy.too-large"),
        (".", "policy.unreadable"),
    ):
        with pytest.raises(PolicyError) as error:
            Policy.load([tmp_path / name])
        assert error.value.code == code
        assert str(tmp_path) in str(error.value)


def test_several_files_hold_together(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text(f'@id("a") {HEAD};\n')
    (tmp_path / "b.cedar").write_text(f'@id("a") {HEAD};\n')
    with pytest.raises(PolicyError) as error:
        Policy.load([tmp_path / "a.cedar", tmp_path / "b.cedar"])
    assert error.value.code == "policy.duplicate-id"
    assert "a.cedar, line 1" in error.value.message


def test_the_fingerprint_changes_with_the_policies() -> None:
    prints = {
        Policy.load().fingerprint,
        Policy.parse(f'@id("a") {HEAD};').fingerprint,
        Policy.parse(f'@id("b") {HEAD};').fingerprint,
    }
    assert len(prints) == 3
    assert Policy.load().fingerprint == Policy.parse("// nothing").fingerprint


# What comes with the package


def test_the_defaults_fit_the_schema_and_every_entity_too() -> None:
    schema = Schema.from_str(read_packaged("schema.cedarschema"))
    assert validation_errors(read_packaged("default.cedar"), schema) == []
    for facts in (mail(), mail(to=READ, body=BODY, control=CONTACT)):
        Entities.from_json_str(told(facts), schema)  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(ValueError, match="deserialization"):
        Entities.from_json_str(told(mail()).replace("trusted", "trust"), schema)  # pyright: ignore[reportUnknownMemberType]


def told(facts: CallFacts) -> str:
    """A call with every fact."""
    return render_entity(told_of(make_call_profile(*outline_call(facts), registry=None), ALL_FACTS))


def test_the_defaults_decide_as_their_text_says() -> None:
    """As Cedar reads the file itself, with every fact told."""
    policy, text = Policy.load(), PolicySet.from_str(read_packaged("default.cedar"))
    ids = [rule.id for rule in policy.rules]
    for facts in (mail(), mail(to=READ), mail(body=BODY), mail(control=READ), mail(to=CONTACT, body=READ)):
        entities = Entities.from_json_str(told(facts))  # pyright: ignore[reportUnknownMemberType]
        answer = evaluate_policies(text, entities, render_context(frozenset({"bob@example.com"}), lures=True))
        found = policy.decide(facts)
        by_text = {ids[int(each.removeprefix("policy"))] for each in answer.policies} - {"known-tools"}
        assert by_text == set(getattr(found, "rules", ()))


def test_cedar_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, bicameral.policy, bicameral.cli, bicameral.config; sys.exit('cedarpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0

"""Files of cases: what must be said of which call."""

from __future__ import annotations

from pathlib import Path

import pytest
from policy_calls import REGISTRY

from bicameral.errors import BicameralError, PolicyError
from bicameral.policy import CaseResult, Policy, read_cases, run_case

POLICY = Policy.load(registry=REGISTRY)
CASES = """
[[case]]
name = "what the user says"
tool = "send_mail"
expect = "allowed"
[case.arguments.to]
names = ["bob@example.com"]
[case.arguments.body]

[[case]]
name = "a stranger names the recipient"
tool = "send_mail"
expect = "ask"
policies = ["directed-by-strangers"]
[case.arguments.to]
sources = [{ trust = "third_party", tool = "search_mail", part = "[].body" }]
names = ["eve@evil.com"]

[[case]]
name = "a secret"
tool = "send_mail"
expect = "ask"
policies = ["leaves-its-readers"]
arguments.to = { sources = [{ trust = "system", tool = "contacts" }], names = ["bob@example.com"] }
arguments.body = { sources = [{ trust = "system", tool = "bank" }], readers = ["ann@example.com"] }

[[case]]
name = "a stranger decides"
tool = "send_mail"
expect = "allowed"
mode = "normal"
control = { sources = [{ trust = "third_party", tool = "search_mail" }] }
"""

SEARCH = "[[case]]\nname='a'\ntool='search_mail'\nexpect='ask'\n"


def write(folder: Path, text: str, name: str = "cases.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def tried(file: Path) -> list[CaseResult]:
    return [run_case(case, POLICY, REGISTRY) for case in read_cases(file)]


def test_cases_say_what_must_be_said(tmp_path: Path) -> None:
    outcomes = tried(write(tmp_path, CASES))
    assert [(outcome.is_expected, outcome.decided) for outcome in outcomes] == [
        (True, "allowed"),
        (True, "ask"),
        (True, "ask"),
        (True, "allowed"),
    ]
    assert outcomes[1].to_json()["policies"] == ["directed-by-strangers"]
    assert "search_mail's [].body" in outcomes[1].explanation


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"allowed"', '"denied"'),
        ('"directed-by-strangers"', '"leaves-its-readers"'),
        ('expect = "ask"', 'expect = "denied"'),
    ],
)
def test_a_case_that_is_not_so_fails(tmp_path: Path, before: str, after: str) -> None:
    assert not all(outcome.is_expected for outcome in tried(write(tmp_path, CASES.replace(before, after))))


def test_cases_may_be_json(tmp_path: Path) -> None:
    case = '{"name": "a", "tool": "search_mail", "expect": "allowed", "arguments": {"sender": {}}}'
    assert tried(write(tmp_path, f'{{"case": [{case}]}}', "cases.json"))[0].is_expected


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("", None),
        ("case = 3", None),
        ("[[case]]\nname = 'a'", None),
        ("[[case]", None),
        ("[[case]]\nname='a'\ntool='search_mail'\nexpect='perhaps'", None),
        ("[[case]]\nname='a'\ntool='search_mail'\nexpekt='ask'\nexpect='ask'", "expect"),
        (f"{SEARCH}arguments.sender.nams=['x']", "names"),
        (
            "{SEARCH}arguments.sender.sources=[{{trust='god',tool='x'}}]",
            None,
        ),
        ("[[case]]\nname='a'\ntool='sarch_mail'\nexpect='ask'", "search_mail"),
        (f"{SEARCH}arguments.sendr={{}}", "sender"),
        ("x = " + "[" * 50_000, None),
    ],
)
def test_a_mistake_in_a_file_of_cases_is_told(tmp_path: Path, text: str, nearest: str | None) -> None:
    with pytest.raises(PolicyError) as error:
        tried(write(tmp_path, text))
    assert (error.value.code, error.value.nearest) == ("policy.bad-cases", nearest)


def test_a_case_cannot_forge_a_label(tmp_path: Path) -> None:
    text = "{SEARCH}arguments.sender.sources=[{{trust='user',tool='extract'}}]"
    with pytest.raises(BicameralError):
        tried(write(tmp_path, text))

"""A policy that would exhaust Cedar's parser, which works by recursion, is a mistake like any other."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest

from bicameral.errors import PolicyError
from bicameral.policy import Policy

HEAD = "forbid (principal, action, resource) when { %s };"
DEEP = {
    "brackets": HEAD % ("(" * 20_000 + "true" + ")" * 20_000),
    "sets": HEAD % ("[" * 20_000 + "]" * 20_000 + " == []"),
    "records": HEAD % ("{a:" * 20_000 + "1" + "}" * 20_000 + " == 1"),
    "calls": HEAD % ("decimal(" * 20_000 + '"1.0"' + ")" * 20_000),
    "conditions": HEAD % " && ".join(["resource.acts"] * 20_000),
    "choices": HEAD % " || ".join(["resource.acts"] * 20_000),
    "branches": HEAD % ("if true then " * 20_000 + "true" + " else false" * 20_000),
    "sums": HEAD % ("1" + "+1" * 20_000 + " == 2"),
    "facts": HEAD % ("context" + ".a" * 20_000),
    "indices": HEAD % ("context" + '["a"]' * 20_000),
    "refusals": HEAD % ("!" * 20_000 + "true"),
    "hidden behind a text": HEAD % ('"//" == "\\"" && ' + "(" * 20_000 + "true" + ")" * 20_000),
    "hidden behind a comment": '// " \n' + HEAD % ("(" * 20_000 + "true" + ")" * 20_000),
}


@pytest.mark.parametrize("name", DEEP)
def test_a_policy_that_is_too_deep_is_refused_and_does_not_end_the_program(name: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.cedar"
    file.write_text(DEEP[name], encoding="utf-8")
    found: list[PolicyError] = []

    def load() -> None:
        with pytest.raises(PolicyError) as caught:
            Policy.load([file])
        found.append(caught.value)

    load()
    thread = threading.Thread(target=load)  # whose stack may be smaller
    thread.start()
    thread.join()
    assert [error.code for error in found] == ["policy.too-large"] * 2
    assert all(error.place is not None and error.place.file == str(file) and error.fix for error in found)


@pytest.mark.parametrize("kind", ["(%s)", "!(%s)", "(%s && resource.acts)", "if resource.acts then (%s) else false"])
@pytest.mark.parametrize("depth", [20, 63, 200, 500, 999])
def test_whatever_is_let_through_is_a_policy_or_a_mistake(kind: str, depth: int) -> None:
    condition = "true"
    for _ in range(depth):
        condition = kind % condition
    if depth == 20:
        assert len(Policy.parse(HEAD % condition).rules) > 1
        return
    with contextlib.suppress(PolicyError):
        Policy.parse(HEAD % condition)


def test_brackets_and_signs_in_texts_and_comments_do_not_count() -> None:
    names = ", ".join(f'"a.b-{number}&&(((.org"' for number in range(2_000))
    text = HEAD % f"context.domains.containsAny([{names}])"
    assert len(Policy.parse(f"// {'(' * 500}\n{text}").rules) > 1

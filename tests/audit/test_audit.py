"""The audit: three legs, every way out, and what holds it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bicameral.cli import main
from bicameral.config import STANDARD
from bicameral.policy import Policy, audit_registry
from bicameral.tools import Origin, Participants, Registry, Surroundings, Tool, load_toolboxes, tool


@dataclass(frozen=True)
class File:
    owner: str
    text: str


@tool(effect="read", origins=Origin("system"))
def balance() -> int:
    return 0


@tool(effect="read", origins=Origin("third_party", "public"))
def news() -> str:
    return ""


@tool(effect="read", origins=Origin("third_party"))
def inbox() -> str:
    return ""


@tool(effect="send", origins=Origin("system"), purpose={"to": "directs", "text": "carries"})
def send(to: str, text: str) -> None: ...


@tool(effect="send", origins=Origin("system"), purpose={"text": "carries"})
def publish(text: str) -> None: ...


@tool
def anything(what: str) -> str:
    return what


@tool(effect="pure")
def shout(text: str) -> str:
    return text


def found(*tools: Tool, policy: str | None = "", mode: Any = "strict") -> Any:
    registry = Registry(tools)
    decide = None if policy is None else Policy.parse(policy, registry, mode=mode).decide
    return audit_registry(registry, decide, mode=mode)


@pytest.mark.parametrize(
    ("tools", "legs"),
    [
        ((), (0, 0, 0)),
        ((shout,), (0, 0, 0)),
        ((balance,), (1, 0, 0)),
        ((news,), (0, 1, 0)),
        ((inbox,), (1, 1, 0)),
        ((send,), (0, 0, 1)),
        ((send, balance), (1, 0, 1)),
        ((send, news, shout), (0, 1, 1)),
        ((anything,), (1, 1, 1)),
    ],
)
def test_each_leg_is_counted_by_what_tools_declare(tools: tuple[Tool, ...], legs: tuple[int, int, int]) -> None:
    result = found(*tools)
    assert tuple(len(result.legs[leg]) for leg in ("private", "untrusted", "outbound")) == legs
    assert result.leg_count == sum(legs)


def test_two_legs_are_harmless_even_without_a_policy() -> None:
    for tools in ((send, balance), (send, news), (balance, news, inbox)):
        assert found(*tools, policy=None).is_safe
    assert "without outbound" in found(inbox).verdict


def test_three_legs_need_something_that_holds_every_way_out() -> None:
    held = found(inbox, send)
    assert held.is_safe
    assert held.verdict == "all 3 legs, and every way out is held"
    rules = {rule for way in held.ways_out for trial in way.trials for rule in trial.stopped_by or ()}
    assert rules == {
        "directed-by-strangers",
        "decided-by-strangers",
        "leaves-its-readers",
        "strangers-text-in-your-name",
    }
    loose = found(inbox, send, policy=None)
    assert not loose.is_safe
    assert loose.verdict == "all 3 legs, and nothing holds send"


def test_what_goes_to_nobody_in_particular_is_held_too() -> None:
    assert found(inbox, publish).is_safe


def test_a_tool_that_declares_nothing_is_a_hole_that_no_rule_sees_into() -> None:
    result = found(anything)
    assert not result.is_safe
    assert result.undeclared == ("anything",)
    assert "it declares nothing" in " ".join(result.ways_out[0].explain())


LIFTED = [
    ("directed-by-strangers", "a stranger says where it goes (to)"),
    ("leaves-its-readers", "something private goes to others (text)"),
    ("strangers-text-in-your-name", "a stranger's text with a link goes out in your name (text)"),
    ("decided-by-strangers", "a stranger decides whether it is made"),
]


@pytest.mark.parametrize(("rule", "passes"), LIFTED)
def test_a_default_that_was_lifted_is_found(rule: str, passes: str) -> None:
    policy = f"""
        @overrides("{rule}")
        permit (principal, action == Action::"call", resource in Tool::"send");
    """
    result = found(inbox, send, policy=policy)
    assert not result.is_safe
    assert f"nothing stops a call in which {passes}" in list(result.ways_out[0].explain())


def test_one_argument_that_is_not_held_is_enough() -> None:
    def forward(id: str, to: str) -> None: ...

    sends = tool(effect="send", origins=Origin("system"), purpose={"id": "selects", "to": "directs"}, attaches=())

    @tool(effect="read", outbound=True, origins=Origin("third_party"), purpose={"query": "selects"})
    def search(query: str) -> str:
        return ""

    # What it selects goes out without having been seen by any rule: the id must be said to attach it.
    assert not found(inbox, sends(forward)).is_safe
    # To ask is to tell: a question that only selects leaves all the same.
    asked = {trial.what: trial for trial in found(inbox, search).ways_out[0].trials}
    assert asked["something private goes to others"].stopped_by == ("leaves-its-readers",)
    assert not found(inbox, search, policy=None).is_safe


@pytest.mark.parametrize("said", [{}, {"attaches": ("id",)}, {"attaches": {"id": Origin("user")}}])
def test_what_goes_along_by_its_name_is_held_and_a_policy_that_lifts_it_is_found(said: dict[str, Any]) -> None:
    @tool(effect="send", origins=Origin("system"), purpose={"id": "selects", "to": "directs"}, **said)
    def forward(id: str, to: str) -> None: ...

    result = found(inbox, forward)
    assert result.is_safe
    trials = {trial.what: trial for trial in result.ways_out[0].trials}
    assert trials["something private goes along by its name"].arguments == ("id",)
    assert trials["something private goes along by its name"].stopped_by == ("leaves-its-readers",)
    lifting = '@overrides("leaves-its-readers") permit (principal, action, resource in Tool::"forward");'
    assert not found(inbox, forward, policy=lifting).is_safe


def test_a_tool_that_reaches_only_named_hosts_is_held_without_a_policy() -> None:
    @tool(effect="read", outbound=True, origins=Origin("third_party"), hosts=("example.com",))
    def fetch(url: str) -> str:
        return ""

    result = found(inbox, fetch, policy=None)
    assert result.is_safe
    assert "it reaches only example.com" in list(result.ways_out[0].explain())
    assert not found(inbox, fetch, send, policy=None).is_safe


def test_readers_whom_the_result_names_make_it_private() -> None:
    @tool(effect="read", origins={"": Origin("system", Participants(("owner",)))})
    def file() -> File:
        return File("", "")

    assert found(file).legs["private"] == ("file",)
    assert found(news).legs["private"] == ()


def test_the_standard_toolboxes_hold_and_would_not_without_policies(tmp_path: Path) -> None:
    registry = load_toolboxes({name: {} for name in STANDARD}, Surroundings.here(tmp_path))
    policy = Policy.load(registry=registry)
    held = audit_registry(registry, policy.decide)
    assert (held.leg_count, held.is_safe, held.undeclared) == (3, True, ())
    assert [way.tool for way in held.ways_out] == ["send_mail", "fetch_page", "fetch_json"]
    assert not audit_registry(registry, None).is_safe
    assert audit_registry(registry.without(["send_mail", "fetch_page", "fetch_json"]), None).is_safe


def test_normal_mode_does_not_try_what_it_does_not_promise() -> None:
    strict, normal = found(inbox, send), found(inbox, send, mode="normal")
    assert normal.is_safe
    assert len(normal.ways_out[0].trials) == len(strict.ways_out[0].trials) - 1


# The command


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("BICAMERAL_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_says_what_holds_and_ends_well(world: Path) -> None:
    done = CliRunner().invoke(main, ["audit"])
    assert done.exit_code == 0, done.output
    assert "all 3 legs, and every way out is held" in done.stdout
    assert "send_mail  [held]" in done.stdout


def test_the_command_fails_where_nothing_holds(world: Path) -> None:
    done = CliRunner().invoke(main, ["audit", "--no-policy"])
    assert done.exit_code == 1
    assert "send_mail  [NOT HELD]" in done.stdout
    (world / "own.py").write_text(
        "from bicameral import tool\n\n@tool\ndef relay(text: str) -> str:\n    return text\n"
    )
    (world / "bicameral.toml").write_text('[toolboxes]\nuse = ["files"]\nfiles = ["own.py"]\n')
    done = CliRunner().invoke(main, ["audit"])
    assert done.exit_code == 1
    assert "nothing is declared by: relay" in done.stdout
    (world / "bicameral.toml").write_text('[toolboxes]\nuse = ["files", "lines"]\n')
    assert CliRunner().invoke(main, ["audit", "--no-policy"]).exit_code == 0


def test_the_command_gives_one_object_for_programs(world: Path) -> None:
    import json

    done = CliRunner().invoke(main, ["audit", "--json"])
    told = json.loads(done.stdout)
    assert (told["ok"], told["count"], told["undeclared"]) == (True, 3, [])
    assert set(told["legs"]) == {"private", "untrusted", "outbound"}
    assert all(way["held"] and way["why"] for way in told["ways_out"])
    assert len(told["registry"]) == 64

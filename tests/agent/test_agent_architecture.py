"""What an agent says it is made of is so, and follows from its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.agent import Agent
from bicameral.catalog.lint import lint
from bicameral.catalog.stacks import StackMember, stack_of
from bicameral.config import Config
from bicameral.models import ScriptedProvider
from bicameral.policy import Policy
from bicameral.runs import Journal
from bicameral.tools import Folders, Origin, Registry, Tool, command_tools, parse_manifest, tool


@tool(effect="read", origins={"": Origin("third_party", "user")})
def read_page(url: str) -> str:
    """Read a page."""
    return url


@tool(effect="pure")
def count(text: str) -> int:
    """Count."""
    return len(text)


@tool(effect="write", outbound=False)
def note(text: str) -> None:
    """Write a note."""


@tool(effect="send", purpose={"to": "directs", "text": "carries"})
def send(to: str, text: str) -> None:
    """Send it."""


@tool(effect="irreversible")
def wipe(path: str) -> None:
    """Delete for good."""


def agent_of(*tools: Tool, **options: Any) -> Agent:
    return Agent(
        list(tools),
        privileged=ScriptedProvider([], grammars=False),
        quarantined=ScriptedProvider([], grammars=False),
        **options,
    )


def told(agent: Agent) -> StackMember:
    """The agent's own description, read as a stack."""
    (member,) = stack_of(agent).agents
    return member


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    with Journal(tmp_path / "journal.db") as opened:
        yield opened


def test_what_every_agent_has() -> None:
    member = told(agent_of(count))
    assert {"V4", "V7", "V1", "V9", "V20", "I2"} <= member.patterns
    assert not {"V5", "V6", "V8", "V13", "V14", "V10", "V12", "I4", "R4"} & member.patterns
    assert member.tools is not None
    assert member.tools.count == 1


def test_a_journal_is_a_record_and_a_checkpoint(journal: Journal) -> None:
    member = told(agent_of(count, journal=journal))
    assert {"V14", "V10", "V12"} <= member.patterns
    assert member.stores is not None
    assert member.stores[0].eraser


def test_legs_come_from_the_declarations_of_tools() -> None:
    assert told(agent_of(count)).legs == ()
    assert told(agent_of(count, read_page)).legs == ("private_data", "untrusted_content")
    assert told(agent_of(send)).legs == ("external_comms",)
    assert {*(told(agent_of(read_page, send)).legs or ())} == {"private_data", "untrusted_content", "external_comms"}


def test_actions_are_the_tools_that_change_something() -> None:
    member = told(agent_of(count, read_page, note, send, wipe))
    assert member.actions is not None
    actions = {action.name: (action.reversible, action.gate) for action in member.actions}
    assert actions == {"note": (True, "none"), "send": (False, "none"), "wipe": (False, "none")}
    ungated = [finding for finding in lint(stack_of(agent_of(wipe))).of_severity("error") if finding.rule == "LAW2"]
    assert [finding.path for finding in ungated] == ["agents.agent.actions.wipe"]


def test_a_policy_that_asks_is_a_gate(tmp_path: Path) -> None:
    file = tmp_path / "own.cedar"
    file.write_text(
        '@id("wipes")\n@ask("Delete it for good?")\n'
        'forbid (principal, action == Action::"call", resource) when { resource in Effect::"irreversible" };\n'
    )
    registry = Registry([wipe, send])
    agent = agent_of(wipe, send, policy=Policy.load([file], registry))
    gates = {action.name: action.gate for action in told(agent).actions or ()}
    assert gates == {"wipe": "V1", "send": "none"}
    assert all("wipe" not in finding.path for finding in lint(stack_of(agent)).of_severity("error"))


def test_bounds_are_those_of_the_configuration() -> None:
    config = Config.model_validate({"limits": {"calls": 7, "tokens": 900, "money": 0.5, "seconds": 60.0}})
    member = told(agent_of(count, config=config))
    assert member.loops is not None
    (loop,) = member.loops
    assert (loop.steps, loop.tokens, loop.money, loop.seconds) == (7, 900, 0.5, 60.0)
    (bounds,) = [use for use in member.uses if use.id == "V9"]
    assert bounds.knobs["max_tokens"] == 900


def test_commands_are_command_lines_in_a_sandbox(tmp_path: Path) -> None:
    spec = {"name": "echo", "argv": ["/bin/echo", "hello"], "effect": "read"}
    commands = command_tools(parse_manifest({"manifest": 1, "tools": [spec]}), Folders.of(tmp_path, read=[tmp_path]))
    only = told(agent_of(*commands, count))
    assert {"I4", "I2", "V8"} <= only.patterns
    assert {"I4", "I2"} <= told(agent_of(*commands, read_page)).patterns
    assert "V8" not in told(agent_of(*commands, read_page)).patterns
    assert [use.knobs for use in only.uses if use.id == "I4"] == [{"shell_strings": False}]


@pytest.mark.parametrize(("strategy", "pattern"), [("native_react", "R4"), ("plan_and_execute", "R3")])
def test_a_conversation_is_not_told_as_two_models_kept_apart(strategy: str, pattern: str, journal: Journal) -> None:
    config = Config.model_validate({"agent": {"planning_strategy": strategy}})
    member = told(agent_of(count, config=config, journal=journal))
    assert pattern in member.patterns
    assert "V14" in member.patterns
    assert not {"V4", "V10", "V12", "V20"} & member.patterns


def test_a_named_agent_stands_beside_others() -> None:
    one, other = agent_of(count), agent_of(read_page)
    stack = stack_of([one.architecture("reader"), other.architecture("writer")])
    assert [agent.name for agent in stack.agents] == ["reader", "writer"]

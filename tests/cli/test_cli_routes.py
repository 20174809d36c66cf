"""`models aliases`, `models explain` and `route explain`: what would be chosen, and what was."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bicameral import Agent, ScriptedProvider
from bicameral.cli import main
from bicameral.config import CallRoutes, Config, load_config, open_journal
from bicameral.plans import parse
from bicameral.routing import Alias, Aliases, Router, RoutingRule, Selection

PROFILE = """\
llm:
  models: { main: openai/gpt-4.1, fast: ollama/llama3 }
  default_model: main
  model_roles: { summarizing: fast }
  routing:
    rules:
      - { condition: has_tools and message_count > 10, model: main }
      - { condition: "label: untrusted", model: fast }
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.delenv("BICAMERAL_CONFIG", raising=False)
    (tmp_path / "profile.yaml").write_text(PROFILE)
    (tmp_path / "bicameral.toml").write_text('[models]\nprofile = "profile.yaml"\n[journal]\nfile = "j.db"\n')
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    return tmp_path


def told(world: Path, *words: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, [*words, "--json", "--folder", str(world)])
    return json.loads(done.stdout)


def test_aliases_say_which_chambers_may_use_them(world: Path) -> None:
    found = {row["alias"]: row for row in told(world, "models", "aliases")["aliases"]}
    assert found["main"]["chambers"] == ["privileged"]
    assert found["fast"]["chambers"] == ["privileged", "quarantined"]
    assert found["embedded"]["used_for"] == ["default (quarantined)"]
    assert found["fast"]["used_for"] == ["role summarizing", "rule 1"]


@pytest.mark.parametrize(
    ("words", "alias", "by"),
    [
        (("delta",), "main", "default"),
        (("summarizing",), "fast", "role"),
        (("summarizing", "--tools", "--messages", "11"), "main", "rule"),
        (("delta", "--untrusted"), "fast", "rule"),
        (("delta", "--model", "fast"), "fast", "call"),
        (("delta", "--hint", "summarizing"), "fast", "role"),
        (("quarantined",), "fast", "rule"),
    ],
)
def test_explain_says_what_would_be_chosen(world: Path, words: tuple[str, ...], alias: str, by: str) -> None:
    route = told(world, "models", "explain", *words)["route"]
    assert (route["alias"], route["by"]) == (alias, by)


@pytest.mark.parametrize(("messages", "prompt_tokens"), [(1_000_000, 0), (1, 10_000_000)])
def test_a_long_prompt_is_explained_without_being_made(world: Path, messages: int, prompt_tokens: int) -> None:
    routes = CallRoutes(load_config(base=world))
    routes.explain("acting")
    tracemalloc.start()
    try:
        routes.explain("acting", messages=messages, prompt_tokens=prompt_tokens)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("--prompt-tokens", "999"), None),
        (("--prompt-tokens", "1000"), 1),
        (("--prompt-tokens", "100000000"), 1),
        (("--messages", "10"), None),
        (("--messages", "11"), 0),
        (("--messages", "100000", "--prompt-tokens", "5000"), 0),
    ],
)
def test_rules_see_the_size_of_a_prompt_that_is_only_described(
    world: Path, words: tuple[str, ...], number: int | None
) -> None:
    text = PROFILE.partition("    rules:")[0] + (
        "    rules:\n"
        "      - { condition: message_count > 10, model: main }\n"
        "      - { condition: prompt_tokens >= 1000, model: fast }\n"
    )
    (world / "profile.yaml").write_text(text)
    assert told(world, "models", "explain", "acting", *words)["route"].get("rule") == number


def test_an_unknown_role_and_the_other_chambers_alias_are_refused(world: Path) -> None:
    assert told(world, "models", "explain", "plannig")["error"]["nearest"] == "planning"
    refused = told(world, "models", "explain", "quarantined", "--model", "main")
    assert refused["error"]["code"] == "models.wrong-chamber"


def test_a_profile_is_chosen_on_the_command_line(world: Path) -> None:
    (world / "bicameral.toml").unlink()
    assert told(world, "models", "explain", "summarizing")["route"]["alias"] == "embedded"
    profile = str(world / "profile.yaml")
    assert told(world, "models", "explain", "summarizing", "--profile", profile)["route"]["alias"] == "fast"
    assert told(world, "models", "explain", "summarizing", "--profile", "smal")["error"]["code"] == "cli.usage"


PLAN = 'text = read_text(path="notes.txt")\nn = extract(text, "how many lines", int)\nreturn n\n'


async def _ran(config: Config) -> str:
    models = {name: ScriptedProvider(lambda _: '{"value": 2}', name=name) for name in ("main", "fast")}
    aliases = Aliases("quarantined", [Alias.of(name, model) for name, model in models.items()])
    router = Router(aliases, Selection("main", (RoutingRule.of("label: untrusted", "fast"),)))
    agent = Agent(
        config=config,
        privileged=ScriptedProvider([]),
        quarantined=router,
        journal=open_journal(config),
    )
    async with agent:
        outcome = await agent.run(parse(PLAN, agent.registry).plan)
    return outcome.run


async def test_a_recorded_call_says_which_model_answered_and_why(world: Path) -> None:
    run = await _ran(load_config(base=world))
    calls = told(world, "route", "explain", run)["calls"]
    assert calls, "no call was recorded"
    assert {call["route"]["alias"] for call in calls} == {"fast"}
    assert calls[0]["route"]["why"] == "rule 0: label: untrusted"
    assert calls[0]["role"] == "quarantined"
    one = told(world, "route", "explain", f"{run}:0")["calls"]
    assert one == calls[:1]
    assert told(world, "route", "explain", f"{run}:99")["error"]["code"] == "cli.usage"
    shown = CliRunner().invoke(main, ["route", "explain", "last", "--folder", str(world)])
    assert "fast (fast), rule 0: label: untrusted" in shown.stdout

"""What answers after untrusted text: the commands say what the router does, and how to change it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bicameral import Agent
from bicameral.cli import main
from bicameral.config import (
    Config,
    ConfiguredModels,
    HealthCheck,
    doctor,
    load_config,
    open_models,
    quarantine_gaps,
)
from bicameral.labels import Label, Source, make_labelled
from bicameral.models import ModelReply, ModelRequest
from bicameral.patterns.strategies import StrategyName
from bicameral.policy import Policy
from bicameral.routing import STRATEGY_PHASES, Router, current_context
from bicameral.tools import Registry

PROFILE = """\
llm:
  models:
    main: { model: openai/gpt-4.1, api_key_env: PLANNER_KEY }
    both: { model: openai/gpt-4.1-mini, api_key_env: PLANNER_KEY, quarantined_api_key_env: READER_KEY }
    free: ollama/llama3
  default_model: main
  model_roles: { planning: main, reasoning: free, coding: main, echo: main, summarizing: both }
agent:
  planning_strategy_params:
    phase_models: { act: free, reflect: main }
    strategy_phase_models:
      spar: { act: main }
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.delenv("BICAMERAL_CONFIG", raising=False)
    monkeypatch.setenv("PLANNER_KEY", "sk-planner-0123456789")
    monkeypatch.setenv("READER_KEY", "sk-reader-0123456789")


def configured(folder: Path, profile: str = PROFILE) -> Config:
    (folder / "profile.yaml").write_text(profile, encoding="utf-8")
    (folder / "bicameral.toml").write_text('[models]\nprofile = "profile.yaml"\n', encoding="utf-8")
    return load_config(folder / "bicameral.toml", base=folder)


def command(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--folder", str(folder), "--config", str(folder / "bicameral.toml")])


def told(folder: Path, *words: str) -> dict[str, Any]:
    return json.loads(command(folder, *words, "--json").stdout)


def alias_checks(config: Config) -> list[HealthCheck]:
    return [check for check in doctor(config) if check.name.startswith("alias ")]


def test_every_role_and_phase_without_its_model_in_quarantine_is_found(tmp_path: Path) -> None:
    first, second = quarantine_gaps(configured(tmp_path))
    assert (first.alias, first.subjects) == ("main", ("role planning", "phase reflect"))
    assert (first.instead, first.model.partition("@")[0]) == ("embedded", "local:qwen2.5-coder-0.5b")
    # A step is an `act`, which has a model of its own for every strategy.
    assert (second.alias, second.subjects, second.instead) == ("main", ("role coding", "phase act of spar"), "free")


def test_a_phase_of_a_strategy_falls_to_the_phase_of_all(tmp_path: Path) -> None:
    """`act` of SPAR has `main`, which the quarantine may not use: `act` of every strategy has `free`."""
    profile = (
        PROFILE.replace("reflect: main", "reflect: free").replace("planning: main, ", "").replace("coding: main, ", "")
    )
    (gap,) = quarantine_gaps(configured(tmp_path, profile))
    assert (gap.subjects, gap.instead) == (("phase act of spar",), "free")


def test_a_key_of_its_own_that_is_not_set_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("READER_KEY")
    gaps = {gap.alias: gap for gap in quarantine_gaps(configured(tmp_path))}
    assert gaps["both"].subjects == ("role summarizing",)
    assert gaps["both"].instead is None
    assert "READER_KEY" in gaps["both"].consequence
    assert "READER_KEY" in gaps["both"].fix


def test_with_a_key_of_its_own_there_is_nothing_to_say(tmp_path: Path) -> None:
    fixed = PROFILE.replace(
        "main: { model: openai/gpt-4.1, api_key_env: PLANNER_KEY }",
        "main: { model: openai/gpt-4.1, api_key_env: PLANNER_KEY, quarantined_api_key_env: READER_KEY }",
    )
    assert quarantine_gaps(configured(tmp_path, fixed)) == []
    assert quarantine_gaps(Config.defaults(tmp_path)) == []
    assert alias_checks(configured(tmp_path, fixed)) == []


def test_doctor_and_aliases_warn_and_say_what_to_do(tmp_path: Path) -> None:
    checks = alias_checks(configured(tmp_path))
    assert {(check.name, check.status) for check in checks} == {("alias main", "warn")}
    assert "role planning, phase reflect: after untrusted text 'embedded' (local:" in checks[0].detail
    assert "role coding, phase act of spar: after untrusted text 'free' (ollama:llama3)" in checks[1].detail
    assert all("quarantined_api_key_env" in check.fix for check in checks)
    notes = told(tmp_path, "models", "aliases")["notes"]
    assert [note["code"] for note in notes] == ["routing.not-in-quarantine"] * 2
    assert "note: role planning, phase reflect" in command(tmp_path, "models", "aliases").stderr


@pytest.mark.parametrize(
    ("words", "alias", "note"),
    [
        (("planning",), "main", None),
        (("planning", "--untrusted"), "embedded", "the role 'planning' has 'main'"),
        (("reasoning", "--untrusted"), "free", None),
        (("summarizing", "--untrusted"), "both", None),
        (("coding",), "main", None),
        (("coding", "--untrusted"), "free", "the role 'coding' has 'main'"),
        (("act", "--untrusted"), "free", None),
        (("act", "--strategy", "spar"), "main", None),
        (("act", "--strategy", "spar", "--untrusted"), "free", "the phase 'act' of spar has 'main'"),
        (("delta", "--untrusted"), "embedded", "delta never reads untrusted text"),
        (("planning", "--hint", "codng"), "main", "nearest: 'coding'"),
    ],
)
def test_explain_tells_what_is_chosen_after_untrusted_text(
    tmp_path: Path, words: tuple[str, ...], alias: str, note: str | None
) -> None:
    configured(tmp_path)
    found = told(tmp_path, "models", "explain", *words)
    assert found["route"]["alias"] == alias
    assert found["chamber"] == ("quarantined" if "--untrusted" in words else "privileged")
    assert (note or "") in " ".join(found.get("notes", []))
    assert ("notes" in found) is (note is not None)
    assert not note or note in command(tmp_path, "models", "explain", *words).stdout


def _routed(config: Config) -> tuple[ConfiguredModels, list[tuple[str | None, str | None, str, str]]]:
    """The configured routers, whose models say what the phase wants instead of being asked over a network."""
    chosen: list[tuple[str | None, str | None, str, str]] = []
    models = open_models(config)
    for router in (models.privileged, models.quarantined):
        assert isinstance(router, Router)

        async def generate(request: ModelRequest, router: Router = router) -> ModelReply:
            here, route = current_context(), router.choose(request)
            chosen.append((here.strategy, here.phase, router.chamber, route.alias))
            text = {"plan": '{"steps": ["look"]}', "reflect": '{"verdict": "done", "note": ""}'}
            return ModelReply(text.get(here.phase or "", "Done."), route=route)

        router.generate = generate  # pyright: ignore[reportAttributeAccessIssue]
    return models, chosen


@pytest.mark.parametrize("untrusted", [False, True])
@pytest.mark.parametrize("strategy", ["native_react", "plan_and_execute", "spar"])
def test_explain_says_what_a_real_strategy_gets(tmp_path: Path, strategy: StrategyName, untrusted: bool) -> None:
    config = configured(tmp_path)
    models, chosen = _routed(config)
    registry = Registry([])
    agent = Agent(
        registry,
        config=config,
        privileged=models.privileged,
        quarantined=models.quarantined,
        policy=Policy.load((), registry),
        cache={},
    )
    request = make_labelled("Look around.", Label((Source("third_party", "web"),), {"public"}))
    asyncio.run(agent.work(request if untrusted else "Look around.", strategy=strategy))
    assert {phase for _, phase, _, _ in chosen} <= set(STRATEGY_PHASES[strategy])
    for _, phase, chamber, alias in chosen:
        words = (str(phase), "--strategy", strategy, *(["--untrusted"] if untrusted else []))
        said = told(tmp_path, "models", "explain", *words)
        assert (said["chamber"], said["route"]["alias"]) == (chamber, alias)


def test_an_agent_resolves_the_model_of_a_role(tmp_path: Path) -> None:
    agent = Agent([], config=configured(tmp_path), cache={})
    assert agent.resolve_model("planning") == "main"
    assert agent.resolve_model() == "free"
    assert agent.resolve_model("coding") == "main"
    assert agent.resolve_model("planning", untrusted=True) == "embedded"
    assert agent.resolve_model("quarantined") == agent.resolve_model("validator") == "embedded"
    assert agent.sync.resolve_model("summarizing") == "both"


def test_a_setting_is_shown_with_where_it_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(tmp_path)
    with (tmp_path / "bicameral.toml").open("a") as file:
        file.write("[planning]\necho_temperature = 0.6\n")
    found = told(tmp_path, "config", "show", "planning", "llm.default_model")["settings"]
    assert found["planning.echo_temperature"] == {"value": 0.6, "origin": str(tmp_path / "bicameral.toml")}
    assert found["planning.plans"]["origin"] == "default"
    assert found["llm.default_model"] == {"value": "main", "origin": "the profile"}
    monkeypatch.setenv("BICAMERAL_PLANNING__ECHO_TEMPERATURE", "0.5")
    shown = command(tmp_path, "config", "show", "planning.echo_temperature").stdout
    assert shown == "planning.echo_temperature = 0.5  (the environment variable BICAMERAL_PLANNING__ECHO_TEMPERATURE)\n"
    assert told(tmp_path, "config", "show", "planning.ehco_temperature")["error"]["nearest"] == "echo_temperature"
    assert told(tmp_path, "models", "explain", "echo")["temperature"] == 0.5
    assert "temperature 0.5, seed 0" in command(tmp_path, "models", "explain", "echo").stdout

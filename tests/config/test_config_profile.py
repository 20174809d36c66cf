"""Profiles and aliases: the seed's files as they are written, keys kept to their chamber, and mistakes pointed at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bicameral.config import Config, load_config, needed_weights, open_models, open_router
from bicameral.errors import ConfigError, ModelError
from bicameral.models import ModelRequest, Route
from bicameral.routing import CallContext, Router

LLM_CONFIG = """\
models:
  main: "azure/gpt-4.1"
  fast: "azure/gpt-4.1-mini"
  powerful: "azure/gpt-5.0-mini"
  local: "ollama/llama3"
"""

ROLES = """\
llm:
  config_path: src/taskforce_extensions/configs/llm_config.yaml
  default_model: main          # fallback for unmapped roles

  # NEW: role-based model mapping
  model_roles:
    planning: powerful          # Plan generation, task decomposition
    reasoning: powerful         # Complex ReAct reasoning steps (with tools)
    acting: fast                # Simple tool-calling steps
    reflecting: powerful        # SPAR reflect phase, self-critique
    summarizing: fast           # Final answer synthesis, compression
"""

PHASES = """\
agent:
  planning_strategy: spar
  planning_strategy_params:
    max_step_iterations: 3
    reflect_every_step: true

    # NEW: per-phase model overrides
    phase_models:
      sense: fast            # Initial mission analysis
      plan: powerful         # Task decomposition
      act: main              # Tool-calling execution
      reflect: powerful      # Self-critique and validation
      final_answer: fast     # Summary generation
"""

RULES = """\
llm:
  config_path: src/taskforce_extensions/configs/llm_config.yaml
  default_model: main

  # NEW: routing rules
  routing:
    enabled: true
    rules:
      # Use powerful model when tools are provided (reasoning about which tool)
      - condition: has_tools
        model: powerful
      # Use fast model for no-tool calls (summaries, final answers)
      - condition: no_tools
        model: fast
      # Use powerful for long conversations (complex multi-step)
      - condition: message_count > 10
        model: powerful
      # Explicit hint from strategy
      - condition: hint:planning
        model: powerful
      - condition: hint:summarizing
        model: fast
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if (name.startswith("BICAMERAL_") and name != "BICAMERAL_ACCEPT") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


def profiled(folder: Path, profile: str, aliases: str = LLM_CONFIG, *, toml: str = "") -> Config:
    """The configuration of a folder with these files."""
    where = folder / "src" / "taskforce_extensions" / "configs"
    where.mkdir(parents=True, exist_ok=True)
    (where / "llm_config.yaml").write_text(aliases, encoding="utf-8")
    (folder / "profile.yaml").write_text(profile, encoding="utf-8")
    (folder / "bicameral.toml").write_text(f'[models]\nprofile = "profile.yaml"\n{toml}', encoding="utf-8")
    return load_config(base=folder)


def wrong(folder: Path, profile: str, aliases: str = LLM_CONFIG) -> tuple[str, str, int | None, str | None]:
    """The code, file and line of the mistake, and the nearest name."""
    with pytest.raises(ConfigError) as caught:
        profiled(folder, profile, aliases)
    place = caught.value.place
    assert place is not None, caught.value
    return caught.value.code, Path(place.file or "").name, place.line, caught.value.nearest


def chosen(config: Config, *, chamber: str = "privileged", model: str | None = None, **here: str) -> Route:
    router = open_router(config, "quarantined" if chamber == "quarantined" else "privileged")
    return router.choose(ModelRequest((), model=model), CallContext(**here))  # pyright: ignore[reportArgumentType]


# The seed's files, as it writes them


def test_the_role_map_of_the_seed_works_as_it_is_written(tmp_path: Path) -> None:
    config = profiled(tmp_path, ROLES)
    assert chosen(config, role="planning").alias == "powerful"
    assert chosen(config, role="delta").alias == "powerful"
    assert chosen(config, role="summarizing").alias == "fast"
    assert chosen(config, role="echo").alias == "main"
    assert chosen(config, model="local").by == "call"


def test_the_phase_map_of_the_seed_goes_over_its_role_map(tmp_path: Path) -> None:
    config = profiled(tmp_path, ROLES + PHASES)
    assert config.agent.planning_strategy == "spar"
    assert chosen(config, role="acting", phase="act").alias == "main"
    assert chosen(config, role="acting").alias == "fast"
    assert chosen(config, phase="final_answer").alias == "fast"


def test_the_rules_of_the_seed_go_over_both(tmp_path: Path) -> None:
    config = profiled(tmp_path, RULES + PHASES)
    assert chosen(config, phase="plan").alias == "fast"
    assert chosen(config, phase="plan").rule == 1
    off = profiled(tmp_path, RULES.replace("enabled: true", "enabled: false") + PHASES)
    assert chosen(off, phase="plan").alias == "powerful"


def test_the_same_tables_may_stand_in_the_toml(tmp_path: Path) -> None:
    (tmp_path / "bicameral.toml").write_text(
        """\
[llm]
default_model = "main"
[llm.models]
main = "openai/gpt-4.1"
fast = { model = "ollama/llama3", temperature = 0.2 }
[llm.model_roles]
summarizing = "fast"
[[llm.routing.rules]]
condition = "has_schema and not hint:planning"
model = "fast"
[agent.planning_strategy_params.phase_models]
plan = "main"
""",
        encoding="utf-8",
    )
    config = load_config(base=tmp_path)
    assert chosen(config, role="summarizing").alias == "fast"
    assert chosen(config, phase="plan").by == "phase"


def test_a_profile_goes_over_the_toml_and_the_environment_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = '[llm]\ndefault_model = "local"\n[llm.model_roles]\necho = "fast"\nplanning = "local"\n'
    config = profiled(tmp_path, ROLES, toml=toml)
    assert config.llm.default_model == "main"
    assert config.llm.model_roles["echo"] == "fast"
    assert config.llm.model_roles["planning"] == "powerful"
    monkeypatch.setenv("BICAMERAL_LLM__DEFAULT_MODEL", "powerful")
    assert load_config(base=tmp_path).llm.default_model == "powerful"
    monkeypatch.setenv("BICAMERAL_LLM__DEFAULT_MODEL", "powrful")
    with pytest.raises(ConfigError) as caught:
        load_config(base=tmp_path)
    assert "BICAMERAL_LLM__DEFAULT_MODEL" in str(caught.value)
    assert caught.value.nearest == "powerful"


def test_a_profile_can_be_given_by_its_file(tmp_path: Path) -> None:
    profiled(tmp_path, ROLES)
    (tmp_path / "bicameral.toml").unlink()
    assert load_config(base=tmp_path).llm.default_model is None
    assert load_config(base=tmp_path, profile=tmp_path / "profile.yaml").llm.default_model == "main"
    with pytest.raises(ConfigError) as caught:
        load_config(base=tmp_path, profile=tmp_path / "gone.yaml")
    assert caught.value.code == "config.no-profile"


# Nothing configured


def test_without_configuration_there_are_the_two_embedded_models(tmp_path: Path) -> None:
    models = open_models(Config.defaults(tmp_path))
    assert models.privileged.name.startswith("local:qwen2.5-coder-1.5b@")
    assert models.quarantined.name.startswith("local:qwen2.5-coder-0.5b@")
    assert models.privileged.grammars
    assert list(models.privileged.adapters) == ["delta", "echo"]
    assert isinstance(models.privileged, Router)
    for role in ("echo", "delta", "planning"):
        assert models.privileged.for_role(role).name == models.privileged.name
        assert models.privileged.for_role(role).adapters == models.privileged.adapters
    assert models.privileged.choose(ModelRequest(())) == Route("embedded", "default", "nothing else applies")


def test_a_role_with_the_embedded_model_keeps_its_training(tmp_path: Path) -> None:
    config = profiled(
        tmp_path, "llm:\n  models: {main: ollama/x}\n  default_model: main\n  model_roles: {delta: embedded}"
    )
    router = open_models(config).privileged
    assert isinstance(router, Router)
    assert router.name.startswith("router:")
    assert list(router.for_role("delta").adapters) == ["delta", "echo"]
    assert router.for_role("delta").grammars
    assert not router.for_role("echo").grammars


# Keys and chambers


KEYED = """\
llm:
  default_model: main
  models:
    main:
      model: openai/gpt-4.1
      api_key_env: PLANNER_KEY
    reader:
      model: openai/gpt-4.1-mini
      quarantined_api_key_env: READER_KEY
    local: ollama/llama3
"""


def test_the_quarantine_has_only_models_without_a_key_or_with_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_KEY", "planner-secret")
    monkeypatch.setenv("READER_KEY", "reader-secret")
    config = profiled(tmp_path, KEYED)
    models = open_models(config)
    assert isinstance(models.quarantined, Router)
    assert isinstance(models.privileged, Router)
    assert set(models.quarantined.aliases.names) == {"embedded", "reader", "local"}
    assert chosen(config, chamber="quarantined", role="quarantined").alias == "embedded"
    assert len(models.quarantined.credentials) == 1
    assert not models.quarantined.credentials & models.privileged.credentials
    with pytest.raises(ModelError) as caught:
        models.quarantined.choose(ModelRequest((), model="main"))
    assert caught.value.code == "models.wrong-chamber"
    for model in (models.privileged, models.quarantined):
        assert "secret" not in repr(vars(model.aliases)) + repr(list(model.aliases)) + model.name


def test_one_key_under_two_names_is_still_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_KEY", "the-same")
    monkeypatch.setenv("READER_KEY", "the-same ")
    with pytest.raises(ModelError) as caught:
        open_models(profiled(tmp_path, KEYED))
    assert caught.value.code == "models.shared-chamber"


async def test_a_missing_key_is_told_when_the_model_is_asked(tmp_path: Path) -> None:
    router = open_router(profiled(tmp_path, KEYED), "privileged")
    with pytest.raises(ModelError) as caught:
        await router.generate(ModelRequest((), model="main"))
    assert caught.value.code == "models.missing-key"
    assert "PLANNER_KEY" in str(caught.value)


def test_the_usual_key_of_a_family_does_not_go_to_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    usual = profiled(tmp_path, "llm: {models: {main: openai/gpt-4.1}, default_model: main}")
    assert len(open_router(usual, "privileged").credentials) == 1
    assert len(open_router(usual, "quarantined").credentials) == 0
    elsewhere = "llm: {models: {main: {model: openai/x, base_url: 'http://127.0.0.1:1/v1'}}, default_model: main}"
    assert open_router(profiled(tmp_path, elsewhere), "privileged").credentials == frozenset()


def test_fallbacks_of_the_quarantine_leave_out_what_is_not_its_own(tmp_path: Path) -> None:
    text = (
        "llm:\n  models:\n    small: {model: ollama/x, fallback: [main, other]}\n    main: openai/gpt-4.1\n"
        "    other: ollama/y\n  model_roles: {quarantined: small}\n"
    )
    config = profiled(tmp_path, text)
    assert open_router(config, "quarantined").aliases["small"].identity == "fallback(ollama:x, ollama:y)"
    assert "openai" in open_router(config, "privileged").aliases["small"].identity


def test_a_key_may_come_from_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import ModuleType

    def kept(service: str, name: str) -> str | None:
        return "secret" if (service, name) == ("bicameral", "planner") else None

    keyring = ModuleType("keyring")
    monkeypatch.setattr(keyring, "get_password", kept, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    text = "llm: {models: {main: {model: openai/x, api_key_keyring: planner}}, default_model: main}"
    assert len(open_router(profiled(tmp_path, text), "privileged").credentials) == 1
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ModelError) as caught:
        open_router(profiled(tmp_path, text), "privileged")
    assert caught.value.code == "models.missing-package"
    assert "bicameral[keyring]" in str(caught.value)


# Mistakes


@pytest.mark.parametrize(
    ("profile", "code", "line", "near"),
    [
        (ROLES.replace("default_model: main ", "default_model: mian "), "routing.unknown-alias", 3, "main"),
        (ROLES.replace("planning: powerful", "planing: powerful"), "routing.unknown-role", 7, "planning"),
        (ROLES.replace("acting: fast", "acting: fsat"), "routing.unknown-alias", 9, "fast"),
        (ROLES + PHASES.replace("sense:", "sens:"), "routing.unknown-phase", 20, "sense"),
        (ROLES + PHASES.replace("act: main", "act: mani"), "routing.unknown-alias", 22, "main"),
        (RULES.replace("has_tools", "has_tool"), "routing.unknown-condition", 10, "has_tools"),
        (RULES.replace("no_tools", "no_tools and has_tools"), "routing.never-matches", 13, None),
        (RULES.replace("hint:planning", "hint:fast"), "routing.never-matches", 19, None),
        (RULES.replace("no_tools", "has_tools and has_schema"), "routing.shadowed", 13, None),
        (RULES.replace("message_count > 10", "message_count > ten"), "routing.bad-condition", 16, None),
        (RULES.replace("model: fast", "modle: fast", 1), "config.unknown-key", 14, "model"),
        (RULES.replace("        model: fast\n", "", 1), "config.missing-setting", 13, None),
        ("llm:\n  models:\n    a: {model: ollama/x, fallbak: [b]}\n", "config.unknown-key", 3, "fallback"),
        (ROLES.replace("model_roles", "model_rolse"), "config.unknown-key", 6, "model_roles"),
        (ROLES.replace("default_model: main ", "default_model: 3 "), "config.wrong-type", 3, None),
        (PHASES.replace("spar", "spra"), "config.wrong-type", 2, None),
        ("llm:\n  a: [1,\n", "config.bad-yaml", 3, None),
        ("llm: {}\nllm: {}\n", "config.bad-yaml", 2, None),
        ("- llm\n", "config.bad-yaml", 1, None),
        ("llm: !!python/object/apply:os.system ['true']\n", "config.bad-yaml", 1, None),
        ("llm:\n  model_roles: {no: main}\n", "config.bad-yaml", 2, None),
        ("llm:\n  models: {embedded: ollama/x}\n", "routing.bad-alias", 2, None),
        ("llm:\n  models:\n    a: opneai/x\n", "routing.bad-model", 3, "openai"),
        ("llm:\n  models:\n    a: gpt-4\n", "routing.bad-model", 3, None),
        ("llm:\n  models:\n    a: litellm/azure/gpt-4.1\n", "routing.bad-model", 3, "azure/gpt-4.1"),
        ("llm:\n  models:\n    a: litellm/replicate/x\n", "routing.bad-model", 3, None),
        ("llm:\n  models:\n    a: local/1.4b\n", "models.unknown", 3, "1.5b"),
        ("llm:\n  models:\n    a: {model: ollama/x, cascade: [b]}\n    b: ollama/y\n", "config.wrong-value", 3, None),
        ("llm:\n  models:\n    a: {model: ollama/x, fallback: [c]}\n", "routing.unknown-alias", 3, None),
        (
            "llm:\n  models:\n    a: {model: ollama/x, fallback: [b]}\n    b:\n      cascade: [c]\n"
            "    c:\n      model: ollama/x\n      fallback: [a]\n",
            "routing.cycle",
            3,
            None,
        ),
        (
            "llm:\n  models:\n    a: {model: openai/x, api_key_env: K}\n    b:\n      model: openai/y\n"
            "      api_key_env: L\n      quarantined_api_key_env: K\n",
            "routing.shared-key",
            7,
            None,
        ),
        (
            "llm:\n  models:\n    a: openai/x\n  model_roles:\n    quarantined: a\n",
            "routing.no-quarantined-key",
            5,
            None,
        ),
        (
            "llm:\n  models:\n    a: openai/x\n  routing:\n    rules:\n"
            "      - condition: chamber == quarantined\n        model: a\n",
            "routing.no-quarantined-key",
            7,
            None,
        ),
        ("llm:\n  role_budgets:\n    planing: {calls: 3}\n", "routing.unknown-role", 3, "planning"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_the_nearest_name(
    profile: str, code: str, line: int, near: str | None, tmp_path: Path
) -> None:
    found = wrong(tmp_path, profile)
    assert (found[0], found[2]) == (code, line)
    assert found[1] == "profile.yaml"
    assert near is None or found[3] == near


def test_a_mistake_in_the_file_of_aliases_is_told_there(tmp_path: Path) -> None:
    assert wrong(tmp_path, ROLES, LLM_CONFIG + '  more: "nobody/x"\n')[:3] == (
        "routing.bad-model",
        "llm_config.yaml",
        6,
    )
    assert wrong(tmp_path, ROLES, "modles: {}\n")[:2] == ("config.unknown-key", "llm_config.yaml")
    assert wrong(tmp_path, ROLES.replace("llm_config.yaml", "gone.yaml"))[:3] == (
        "config.no-profile",
        "profile.yaml",
        2,
    )


def test_a_mistake_in_the_toml_is_told_with_its_line(tmp_path: Path) -> None:
    text = '[llm.models]\nmain = "ollama/x"\n\n[[llm.routing.rules]]\ncondition = "always"\nmodel = "main"\n\n'
    text += '[[llm.routing.rules]]\ncondition = "has_tools"\nmodel = "main"\n'
    (tmp_path / "bicameral.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(base=tmp_path)
    assert caught.value.code == "routing.shadowed"
    assert caught.value.place is not None
    assert caught.value.place.line == 9


def test_anchors_cannot_fill_the_memory(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert wrong(tmp_path, "\n".join(lines))[0] == "config.bad-yaml"
    assert wrong(tmp_path, "a: &a [*a]")[0] == "config.bad-yaml"
    assert wrong(tmp_path, "a: " + "[" * 3_000)[0] == "config.bad-yaml"


def test_only_weights_that_a_call_can_reach_are_needed(tmp_path: Path) -> None:
    def needed(profile: str) -> list[list[str]]:
        config = profiled(tmp_path, profile)
        return [[each.alias for each in needed_weights(config, [role])] for role in ("privileged", "quarantined")]

    assert needed("") == [["1.5b"], ["0.5b"]]
    remote = "llm: {models: {main: openai/x}, default_model: main}"
    assert needed(remote) == [[], ["0.5b"]]
    assert needed("llm: {models: {main: ollama/x}, default_model: main}") == [[], []]
    small = "llm: {models: {main: openai/x, s: local/0.5b}, default_model: main, model_roles: {echo: s}}"
    assert needed(small) == [["0.5b"], ["0.5b"]]
    falling = "llm: {models: {main: {model: openai/x, fallback: [embedded]}}, default_model: main}"
    assert needed(falling) == [["1.5b"], ["0.5b"]]

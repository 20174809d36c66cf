"""The model that plans, chosen for one command: only the planning roles get it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.config import (
    CallRoutes,
    Config,
    larger_planning_models,
    needed_weights,
    open_models,
    planning_models,
    with_planning_model,
)
from bicameral.config._llm_settings import LlmSettings
from bicameral.errors import BicameralError, ModelError
from bicameral.models import Provider
from bicameral.routing import Router

ROUTED = {
    "models": {"main": "openai/gpt-4.1", "fast": "ollama/llama3", "own": "local/0.5b"},
    "default_model": "main",
    "routing": {"rules": [{"condition": "always", "model": "fast"}]},
}


def config_of(folder: Path, llm: dict[str, Any] | None = None, **facts: Any) -> Config:
    settings = LlmSettings() if llm is None else LlmSettings.model_validate(llm)
    return Config(base=folder, **({} if llm is None else {"llm": settings}), **facts)


def name_for(provider: Provider, role: str) -> str:
    assert isinstance(provider, Router)
    return provider.for_role(role).name


def alias_of(config: Config, role: str) -> str:
    return CallRoutes(config).explain(role).route.alias


@pytest.mark.parametrize("profile", ["default", "small"])
def test_local_weights_are_as_if_they_were_configured(tmp_path: Path, profile: Any) -> None:
    config = config_of(tmp_path, profile=profile)
    chosen = with_planning_model(config, "1.5b")
    models, configured = open_models(chosen), open_models(config_of(tmp_path))
    assert models.privileged.name == configured.privileged.name
    assert models.quarantined.name == open_models(config).quarantined.name
    assert [each.alias for each in needed_weights(chosen, ["privileged"])] == ["1.5b"]


def test_smaller_weights_need_no_larger_ones(tmp_path: Path) -> None:
    chosen = with_planning_model(config_of(tmp_path), "0.5b")
    assert [each.alias for each in needed_weights(chosen, ["privileged"])] == ["0.5b"]


def test_there_is_no_cascade_around_a_chosen_model(tmp_path: Path) -> None:
    config = Config.model_validate({"base": tmp_path, "models": {"cascade": True}})
    assert open_models(config).cascade
    assert not open_models(with_planning_model(config, "1.5b")).cascade


@pytest.mark.parametrize(("name", "expected"), [("main", "openai"), ("own", "local:"), ("openai/gpt-4o", "gpt-4o")])
def test_a_chosen_model_plans_whatever_rules_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key-000")
    config = config_of(tmp_path, ROUTED)
    chosen = with_planning_model(config, name)
    assert expected in name_for(open_models(chosen).privileged, "delta")
    assert (alias_of(chosen, "echo"), alias_of(chosen, "delta")) == (name, name)
    # Other roles, and the quarantined model, stay as they are configured.
    assert (alias_of(config, "delta"), alias_of(config, "quarantined")) == ("fast", "fast")
    assert (alias_of(chosen, "summarizing"), alias_of(chosen, "quarantined")) == ("fast", "fast")


def test_a_remote_model_needs_no_weights_for_planning(tmp_path: Path) -> None:
    assert needed_weights(with_planning_model(config_of(tmp_path), "openai/gpt-4.1"), ["privileged"]) == []
    quarantined = needed_weights(with_planning_model(config_of(tmp_path), "ollama/llama3"), ["quarantined"])
    assert [each.alias for each in quarantined] == ["0.5b"]


def test_an_unknown_name_is_an_error_with_the_nearest_and_the_list(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        with_planning_model(config_of(tmp_path, ROUTED), "mian")
    error = caught.value
    assert (error.code, error.nearest) == ("models.unknown", "main")
    assert all(name in (error.expected or "") for name in ("0.5b", "1.5b", "main", "fast", "family/model"))


def test_an_unknown_family_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BicameralError) as caught:
        open_models(with_planning_model(config_of(tmp_path), "opnai/gpt-4.1"))
    assert (caught.value.code, caught.value.nearest) == ("routing.bad-model", "openai")


def test_the_names_that_can_be_completed(tmp_path: Path) -> None:
    names = planning_models(config_of(tmp_path, ROUTED))
    assert {"0.5b", "1.5b", "main", "fast", "own"} <= set(names)
    assert "minilm" not in names


def test_larger_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plain = config_of(tmp_path)
    assert larger_planning_models(plain) == ()
    assert larger_planning_models(with_planning_model(plain, "0.5b")) == ("1.5b",)
    aliases = {"models": ROUTED["models"]}
    # One without its key is not proposed; nothing is known of the size of a remote model.
    assert larger_planning_models(config_of(tmp_path, aliases)) == ("fast",)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key-000")
    assert larger_planning_models(config_of(tmp_path, aliases)) == ("main", "fast")
    assert larger_planning_models(with_planning_model(config_of(tmp_path, aliases), "main")) == ()

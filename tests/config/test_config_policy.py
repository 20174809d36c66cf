"""What `[policy]` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.config import Config, load_config, open_policy, open_registry
from bicameral.errors import ConfigError

OWN = 'forbid (principal, action, resource in Tool::"write_text");'


def config(folder: Path, text: str = "", **variables: str) -> Config:
    (folder / "bicameral.toml").write_text(text)
    return load_config(base=folder, environment={"BICAMERAL_ACCEPT": str(folder), **variables})


def test_without_a_word_the_defaults_hold_and_control_flow_counts(tmp_path: Path) -> None:
    found = config(tmp_path)
    policy = open_policy(found, open_registry(found))
    assert policy.mode == "strict"
    assert all(rule.default for rule in policy.rules)


def test_ones_own_policies_are_added(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text(OWN)
    (tmp_path / "b.cedar").write_text(OWN)
    found = config(tmp_path, '[policy]\nfiles = ["a.cedar"]\nmode = "normal"')
    policy = open_policy(found, open_registry(found))
    assert (policy.mode, [rule.id for rule in policy.rules if not rule.default]) == ("normal", ["a.cedar:1"])
    by_variable = config(tmp_path, BICAMERAL_POLICY__FILES="a.cedar, b.cedar", BICAMERAL_POLICY__MODE="normal")
    assert by_variable.policy_files == (tmp_path / "a.cedar", tmp_path / "b.cedar")
    assert by_variable.policy.mode == "normal"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("off = true", "config.unknown-key"),
        ("defaults = false", "config.unknown-key"),
        ('mode = "off"', "config.wrong-type"),
        ('files = "a.cedar"', "config.wrong-type"),
    ],
)
def test_there_is_no_switch_for_the_defaults(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(ConfigError) as error:
        config(tmp_path, f"[policy]\n{text}\n")
    assert error.value.code == code
    assert error.value.place is not None
    assert error.value.place.line == 2

"""The folder of a user of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from seed_world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in [*os.environ]:
        if (name.startswith("BICAMERAL_") and name != "BICAMERAL_ACCEPT") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("BICAMERAL_MODELS", str(tmp_path / "models"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return World(folder)

"""Trusted folders in `bicameral.toml`: none unless named, looked at by the doctor, and passed on to the tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.config import doctor, load_config, open_registry, surroundings_of


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("BICAMERAL_CONFIG", raising=False)
    base = tmp_path / "work"
    (base / "notes").mkdir(parents=True)
    (base / "notes/a.txt").write_text("mine")
    return base


def configured(home: Path, text: str) -> Path:
    (home / "bicameral.toml").write_text(text)
    return home


def trusted(base: Path) -> bool:
    read = open_registry(load_config(base=base))["read_text"]
    return read.result_labels("mine", "0", arguments={"path": "notes/a.txt"}).flat.trusted


def test_no_folder_is_trusted_unless_it_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_config(base=home).folders.trusted == ()
    assert not trusted(home)
    assert trusted(configured(home, '[folders]\ntrusted = ["notes"]\n'))
    assert not trusted(configured(home, '[folders]\ntrusted = ["other"]\n'))
    monkeypatch.setenv("BICAMERAL_FOLDERS__TRUSTED", "other,notes")
    assert surroundings_of(load_config(base=home)).folders.trusted == (home / "other", home / "notes")
    assert trusted(home)


def test_the_doctor_looks_at_trusted_folders(home: Path) -> None:
    def found(name: str) -> list[tuple[str, str]]:
        base = configured(home, f'[folders]\ntrusted = ["{name}"]\n')
        checks = doctor(load_config(base=base))
        return [(check.status, check.detail) for check in checks if check.name == "trusted folder"]

    assert [status for status, _ in found("notes")] == ["ok"]
    assert [status for status, _ in found("nots")] == ["bad"]
    (home / "notes").chmod(0o777)
    ((status, said),) = found("notes")
    assert status == "bad"
    assert "everybody may write" in said

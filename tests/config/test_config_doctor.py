"""The doctor finds what is wrong and says how to mend it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bicameral.config import Config, HealthCheck, doctor, load_config
from bicameral.errors import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable, folder in (("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.setenv("BICAMERAL_MODELS", str(tmp_path / "models"))
    (tmp_path / "work").mkdir()
    return tmp_path


def examined(home: Path, text: str = "") -> dict[str, HealthCheck]:
    base = home / "work"
    (base / "bicameral.toml").write_text(text, encoding="utf-8")
    config: Config | ConfigError
    try:
        config = load_config(base=base)
    except ConfigError as error:
        config = error
    return {check.name: check for check in doctor(config)}


def test_a_fresh_folder_has_nothing_bad(home: Path) -> None:
    checks = examined(home)
    assert {check.name: check.detail for check in checks.values() if check.status == "bad"} == {}
    assert {"python", "configuration", "toolboxes", "engine", "sandbox", "journal", "terminal"} <= set(checks)
    assert checks["model 1.5b"].status == "warn"
    assert "bicameral models pull 1.5b" in checks["model 1.5b"].fix
    meaning = checks["model for meaning"]
    assert (meaning.status, "bicameral models pull minilm" in meaning.detail) == ("ok", True)


def test_a_broken_configuration_is_the_first_thing_told_and_the_rest_is_still_looked_at(home: Path) -> None:
    checks = examined(home, "[folder]\n")
    assert checks["configuration"].status == "bad"
    assert "folders" in checks["configuration"].fix
    assert checks["engine"].status == "ok"


def test_a_folder_that_is_not_there_is_bad(home: Path) -> None:
    check = examined(home, '[folders]\nread = ["gone"]\n')["folder to read"]
    assert check.status == "bad"
    assert "gone" in check.detail
    assert "[folders]" in check.fix


def test_a_toolbox_that_does_not_load_is_bad(home: Path) -> None:
    check = examined(home, '[toolboxes]\nuse = ["lines", "nope"]\n')["toolboxes"]
    assert check.status == "bad"
    assert "nope" in check.detail


def test_a_mail_folder_that_was_named_and_is_not_there_is_bad(home: Path) -> None:
    assert examined(home)["mail"].status == "warn"
    assert examined(home, '[toolbox.mail]\nfolder = "gone"\n')["mail"].status == "bad"


def test_a_mailbox_and_a_calendar_that_can_be_read_are_ok(home: Path) -> None:
    for folder in ("cur", "new", "tmp"):
        (home / "work" / "Maildir" / folder).mkdir(parents=True)
    (home / "work" / "calendar.ics").write_text(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//example//EN\r\nEND:VCALENDAR\r\n"
    )
    checks = examined(home, '[toolbox.mail]\nfolder = "Maildir"\n')
    assert (checks["mail"].status, checks["calendar"].status) == ("ok", "ok")


def test_a_mail_server_that_answers_is_ok_and_one_that_does_not_is_bad(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = f'[toolbox.mail]\nsmtp = {{ host = "127.0.0.1", port = {port}, tls = "none" }}\n'
        assert examined(home, text)["mail server"].status == "ok"
    check = examined(home, text)["mail server"]
    assert check.status == "bad"
    assert str(port) in check.detail


def test_a_password_that_is_not_set_is_bad(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_PASSWORD", raising=False)
    text = (
        '[toolbox.mail]\nsmtp = { host = "127.0.0.1", port = 1, user = "me", '
        'password_env = "NO_SUCH_PASSWORD", tls = "none" }\n'
    )
    (home / "work" / "bicameral.toml").write_text(text)
    details = [check.detail for check in doctor(load_config(base=home / "work")) if check.name == "mail server"]
    assert "NO_SUCH_PASSWORD" in details[0]


def test_damaged_weights_are_bad_and_named(home: Path) -> None:
    from bicameral.models import find_weights

    (home / "models").mkdir()
    (home / "models" / f"sha256-{find_weights('0.5b').sha256}.gguf").write_bytes(b"not a model")
    check = examined(home)["model 0.5b"]
    assert check.status == "bad"
    assert "bicameral models pull 0.5b" in check.fix


def test_a_damaged_journal_is_bad(home: Path) -> None:
    (home / "work" / "j.db").write_bytes(b"this is not a database, it is a text of some length")
    assert examined(home, '[journal]\nfile = "j.db"\n')["journal"].status == "bad"


def test_looking_makes_no_journal(home: Path) -> None:
    examined(home, '[journal]\nfile = "new/j.db"\n')
    assert not (home / "work" / "new").exists()


def test_a_misspelt_variable_is_a_warning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BICAMERAL_PROFIL", "small")
    check = examined(home)["environment"]
    assert check.status == "warn"
    assert "BICAMERAL_PROFILE" in check.fix


async def test_the_doctor_can_be_called_where_a_loop_is_running(home: Path) -> None:
    assert examined(home)["sandbox"].name == "sandbox"


def test_a_missing_package_for_meaning_is_told_and_nothing_bad(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bicameral.retrieval import _embedding

    monkeypatch.setattr(_embedding, "REQUIRED_PACKAGES", ("no_such_package",))
    check = examined(home)["model for meaning"]
    assert (check.status, "bicameral[retrieval]" in check.detail) == ("ok", True)

"""MCP servers in a configuration: withheld until it is accepted, checked with its place, declarations protected."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.config import (
    find_widening,
    load_config,
    open_mcp_servers,
    open_registry,
    record_acceptance,
    surroundings_of,
)
from bicameral.errors import ConfigError, ToolError

pytestmark = pytest.mark.unaccepted


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("BICAMERAL_CONFIG", raising=False)
    folder = tmp_path / "work"
    (folder / "mcp").mkdir(parents=True)
    (folder / "mcp" / "time.toml").write_text("version = 1\n")
    (folder / "mcp" / "time.pins.json").write_text("[]")
    return folder


SERVER = '[mcp.time]\ncommand = ["mcp-server-time"]\ntools = "mcp/time.toml"\n'


def written(work: Path, text: str = SERVER) -> Path:
    (work / "bicameral.toml").write_text(text)
    return work / "bicameral.toml"


def test_a_server_of_a_folder_that_nobody_accepted_is_not_used(work: Path) -> None:
    file = written(work)
    config = load_config(base=work, environment={}, confirm=lambda _: False)
    assert config.mcp == {}
    assert config.withheld == ("mcp.time",)
    record_acceptance(file, find_widening(file, work))
    accepted = load_config(base=work, environment={}, confirm=lambda _: False)
    assert [server.name for server in open_mcp_servers(accepted)] == ["time"]


def test_declarations_that_change_after_the_acceptance_are_asked_about_again(work: Path) -> None:
    file = written(work)
    record_acceptance(file, find_widening(file, work))
    (work / "mcp" / "time.toml").write_text('version = 1\nserver = "other"\n')
    assert load_config(base=work, environment={}, confirm=lambda _: False).mcp == {}


def test_no_tool_may_change_what_was_reviewed(work: Path) -> None:
    config = load_config(written(work), base=work)
    folders = surroundings_of(config).folders
    for name in ("mcp/time.toml", "mcp/time.pins.json"):
        with pytest.raises(ToolError) as caught:
            folders.resolve_writable(name)
        assert caught.value.code == "tools.protected"
    assert folders.resolve_writable("mcp/other.toml")


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ('[mcp.time]\ncomand = ["x"]\n', "comand", 2),
        ("[mcp.time]\ntimeout = 3.0\n", "either a `command` or a `url`", 1),
        ('[mcp.time]\nurl = "ftp://example.com"\n', "http", 1),
        ('[mcp.time]\ncommand = ["x"]\nheaders = { A = "TOKEN" }\n', "headers", 1),
        ('[mcp.time]\nurl = "https://example.com"\nbearer = "sk-not-a-name-at-all!"\n', "names no secret", 3),
        ('[mcp."no name"]\ncommand = ["x"]\n', "40 letters", 1),
        ('[mcp.time]\ncommand = ["x"]\nrate = "often"\n', "10/min", 3),
    ],
)
def test_a_wrong_setting_of_a_server_is_named_with_its_line(work: Path, text: str, words: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(written(work, text), base=work)
    assert words in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.line == line
    assert "sk-not-a-name" not in str(caught.value)


def test_a_missing_declaration_file_is_an_error_with_its_place(work: Path) -> None:
    (work / "mcp" / "time.toml").unlink()
    with pytest.raises(ToolError) as caught:
        open_registry(load_config(written(work), base=work))
    assert caught.value.code == "foreign.bad-declaration"
    assert "time.toml" in str(caught.value)


def test_a_server_without_declarations_can_be_refused_as_a_whole(work: Path) -> None:
    text = '[mcp.time]\ncommand = ["/usr/bin/false"]\nundeclared = "refuse"\n'
    names = open_registry(load_config(written(work, text), base=work)).names
    assert not [name for name in names if name.startswith("time_")]

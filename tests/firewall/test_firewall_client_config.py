"""A client's file goes through the firewall and comes back to the byte; no secret of it is written anywhere else."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.errors import ConfigError
from bicameral.firewall import restore_client_config, rewrite_client_config
from bicameral.mcp import McpSettings
from property_examples import QUICK

COMMAND = ["/opt/bicameral", "mcp", "firewall", "--config", "bicameral.toml"]
KEY = "sk-abcdefghijklmnopqrstuvwxyz"
SERVERS: dict[str, Any] = {
    "mail": {"command": "mail-server", "args": ["--folder", "inbox"], "env": {"API_KEY": KEY, "LOG_LEVEL": "debug"}},
    "time": {"command": "uvx", "args": ["mcp-server-time"]},
    "tracker": {
        "type": "http",
        "url": "https://tracker.example/mcp",
        "headers": {"Authorization": "Bearer s3cr3t-token", "X-Team": "blue"},
    },
}


def write(folder: Path, document: Any, name: str = "config.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(document, indent=4) + "\n\n")
    return file


def test_servers_become_settings_and_the_firewall_takes_their_place(tmp_path: Path) -> None:
    file = write(tmp_path, {"theme": "dark", "mcpServers": SERVERS})
    done = rewrite_client_config(file, COMMAND)
    document = json.loads(file.read_text())
    assert document["theme"] == "dark"
    assert list(document["mcpServers"]) == ["bicameral"]
    entry = document["mcpServers"]["bicameral"]
    assert [entry["command"], *entry["args"]] == COMMAND
    assert done.servers["mail"] == {
        "command": ["mail-server", "--folder", "inbox"],
        "env": {"LOG_LEVEL": "debug"},
        "secrets": {"API_KEY": "API_KEY"},
    }
    assert done.servers["tracker"]["bearer"] == "Authorization"
    # They are where they were: in the client's own file.
    assert entry["env"] == {"API_KEY": KEY, "Authorization": "s3cr3t-token", "X_Team": "blue"}
    assert all(each.kept for each in done.secrets)
    assert done.to_set == ()


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"mcpServers": SERVERS}, ("mcpServers",)),
        ({"servers": SERVERS, "inputs": [{"id": "key"}]}, ("servers",)),
        ({"editor.fontSize": 12, "mcp": {"servers": SERVERS}}, ("mcp", "servers")),
    ],
    ids=["mcpServers", "servers", "mcp.servers"],
)
def test_every_form_is_rewritten_and_restored_to_the_byte(tmp_path: Path, document: Any, path: tuple[str, ...]) -> None:
    file = write(tmp_path, document)
    file.chmod(0o640)
    before = file.read_bytes()
    done = rewrite_client_config(file, COMMAND)
    part = json.loads(file.read_text())
    for name in path:
        part = part[name]
    assert list(part) == ["bicameral"]
    assert done.backup.read_bytes() == before
    assert stat.S_IMODE(done.backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert restore_client_config(file) == file.resolve()
    assert file.read_bytes() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_the_settings_are_ones_that_a_configuration_takes(tmp_path: Path) -> None:
    done = rewrite_client_config(write(tmp_path, {"mcpServers": SERVERS}), COMMAND)
    for settings_ in done.servers.values():
        McpSettings.model_validate(settings_)


def test_no_secret_is_among_the_settings(tmp_path: Path) -> None:
    env = {
        "DATABASE_URL": "postgresql://u:hunter2@db/x",
        "MODE": "Tr0ub4dor",
        "PIN": "1234",
        "HOME_DIR": "/tmp",
        "N": 5,
        "ON": True,
    }
    file = write(tmp_path, {"mcpServers": {"a": {"command": "x", "env": env}}})
    done = rewrite_client_config(file, COMMAND)
    text = json.dumps(done.servers)
    for value in ("hunter2", "Tr0ub4dor", "1234"):
        assert value not in text
    assert done.servers["a"]["env"] == {"HOME_DIR": "/tmp", "N": "5", "ON": "true"}


def test_secrets_for_the_keyring_are_named_and_taken_out_of_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, {"mcpServers": SERVERS})
    done = rewrite_client_config(file, COMMAND, secrets="keyring")
    assert KEY not in file.read_text()
    assert "s3cr3t-token" not in file.read_text()
    assert [(each.server, each.reference) for each in done.to_set] == [
        ("mail", "keyring:mail-API_KEY"),
        ("tracker", "keyring:tracker-Authorization"),
        ("tracker", "keyring:tracker-X-Team"),
    ]
    assert KEY not in repr(done)


def test_two_servers_with_one_name_for_two_secrets_get_two_variables(tmp_path: Path) -> None:
    servers = {name: {"command": "x", "env": {"TOKEN": f"{name}-secret"}} for name in ("a", "b")}
    servers["c"] = {"command": "x", "env": {"TOKEN": "a-secret"}}
    file = write(tmp_path, {"mcpServers": servers})
    done = rewrite_client_config(file, COMMAND)
    assert [done.servers[name]["secrets"]["TOKEN"] for name in "abc"] == ["TOKEN", "B_TOKEN", "TOKEN"]
    assert json.loads(file.read_text())["mcpServers"]["bicameral"]["env"] == {
        "TOKEN": "a-secret",
        "B_TOKEN": "b-secret",
    }


def test_names_that_settings_cannot_have_are_replaced_and_told(tmp_path: Path) -> None:
    names = ["My Mail (work)", "my mail (work)", "123", "ünï", "a" * 80]
    file = write(tmp_path, {"mcpServers": {name: {"command": "x"} for name in names}})
    done = rewrite_client_config(file, COMMAND)
    assert len({name.lower() for name in done.servers}) == 5
    assert set(done.renamed) == set(names)
    assert set(done.renamed.values()) == set(done.servers)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "args": ["--api-key", "abc"]},
        {"command": "x", "args": ["--token=abc"]},
        {"command": "x", "args": [KEY]},
        {"command": "x", "args": ["postgresql://u:hunter2@db/x"]},
        {"command": "x", "args": ["${input:key}"]},
        {"url": "https://u:hunter2@example.org/mcp"},
        {"url": f"https://example.org/mcp?k={KEY}"},
        {"command": 5},
        {"command": "x", "args": "y"},
        {"command": "x", "env": {"A B": "c"}},
        {"command": "x", "env": {"A": ["c"]}},
        {"command": "x", "env": {"A": "b\0c"}},
        {"command": "x", "env": []},
        {"command": "x", "envFile": ".env"},
        {"command": "x", "cwd": "/srv"},
        {"url": "ftp://example.org"},
        {"type": "sse", "url": "https://example.org/sse"},
        {"url": "https://example.org", "headers": {"X": 5}},
        {},
        "x",
    ],
    ids=str,
)
def test_an_entry_that_cannot_be_moved_leaves_everything_as_it_is(tmp_path: Path, entry: Any) -> None:
    file = write(tmp_path, {"mcpServers": {"fine": {"command": "x"}, "odd": entry}})
    before = file.read_bytes()
    with pytest.raises(ConfigError) as error:
        rewrite_client_config(file, COMMAND)
    assert error.value.code == "firewall.cannot-move"
    assert "'odd'" in str(error.value)
    for secret in ("hunter2", KEY, "abc'"):
        assert secret not in str(error.value)
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_an_entry_can_be_left_out_and_is_told(tmp_path: Path) -> None:
    odd = {"command": "x", "cwd": "/srv"}
    file = write(tmp_path, {"mcpServers": {"fine": {"command": "x", "disabled": True}, "odd": odd}})
    done = rewrite_client_config(file, COMMAND, leave=["odd"])
    assert done.left == ("odd",)
    assert done.disabled == ("fine",)
    assert json.loads(file.read_text())["mcpServers"]["odd"] == odd


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"mcpServers": {"a": {"command": "x"}}} // mine', "firewall.comments"),
        ('{\n/* mine */ "mcpServers": {"a": {"command": "x"},}}', "firewall.comments"),
        ('{"url": "http://no.comment", ', "firewall.bad-json"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "firewall.bad-json"),
        ("[]", "firewall.bad-json"),
        ("[" * 100_000, "firewall.bad-json"),
        ("\udcff", "firewall.bad-json"),
        ("{}", "firewall.no-servers"),
        ('{"mcpServers": {}}', "firewall.no-servers"),
        ('{"mcpServers": [], "servers": 5}', "firewall.no-servers"),
        ('{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "x"}}}', "firewall.no-servers"),
        ('{"mcpServers": {"bicameral": {"command": "x"}}}', "firewall.already-rewritten"),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str, code: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as error:
        rewrite_client_config(file, COMMAND)
    assert error.value.code == code
    assert file.read_bytes() == text.encode("utf-8", "surrogateescape")
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_a_file_is_rewritten_once(tmp_path: Path) -> None:
    file = write(tmp_path, {"mcpServers": SERVERS})
    rewrite_client_config(file, COMMAND)
    with pytest.raises(ConfigError) as error:
        rewrite_client_config(file, COMMAND)
    assert error.value.code == "firewall.already-rewritten"


def test_a_file_that_was_changed_since_is_not_overwritten_and_the_change_is_shown(tmp_path: Path) -> None:
    file = write(tmp_path, {"mcpServers": SERVERS})
    rewrite_client_config(file, COMMAND)
    changed = json.loads(file.read_text())
    changed["mcpServers"]["new"] = {"command": "x", "env": {"PASSWORD": "hunter2"}}
    file.write_text(json.dumps(changed, indent=2) + "\n")
    with pytest.raises(ConfigError) as error:
        restore_client_config(file)
    assert error.value.code == "firewall.changed-since"
    assert '"new":' in str(error.value)
    assert "hunter2" not in str(error.value)
    assert json.loads(file.read_text()) == changed


def test_what_was_never_rewritten_cannot_be_restored(tmp_path: Path) -> None:
    file = write(tmp_path, {"mcpServers": SERVERS})
    with pytest.raises(ConfigError) as error:
        restore_client_config(file)
    assert error.value.code == "firewall.no-backup"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    file = write(tmp_path / "real", {"mcpServers": SERVERS})
    link = tmp_path / "link.json"
    link.symlink_to(file)
    before = file.read_bytes()
    rewrite_client_config(link, COMMAND)
    assert link.is_symlink()
    assert "bicameral" in file.read_text()
    restore_client_config(link)
    assert file.read_bytes() == before


def test_a_folder_that_cannot_be_written_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, {"mcpServers": SERVERS})
    before = file.read_bytes()
    replace, calls = os.replace, [0]

    def failing(source: Any, target: Any) -> None:
        calls[0] += 1
        if calls[0] == 3:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(ConfigError) as error:
        rewrite_client_config(file, COMMAND)
    assert error.value.code == "firewall.unwritable"
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
ENTRIES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "command": st.sampled_from(["node", "uvx"]),
        "args": st.lists(st.sampled_from(["-y", "pkg", "--root", "/tmp"]), max_size=3),
        "env": st.dictionaries(st.from_regex("[A-Z_]{1,8}", fullmatch=True), VALUES, max_size=3),
    }
)


@settings(max_examples=QUICK)
@given(servers=st.dictionaries(NAMES.filter(lambda name: name != "bicameral"), ENTRIES, min_size=1, max_size=4))
def test_whatever_is_moved_comes_back(servers: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = write(tmp_path_factory.mktemp("config"), {"mcpServers": servers, "other": [1]})
    before = file.read_bytes()
    done = rewrite_client_config(file, COMMAND)
    for given_, settings_ in zip(servers.values(), done.servers.values(), strict=True):
        McpSettings.model_validate(settings_)
        entry = json.loads(file.read_text())["mcpServers"]["bicameral"]
        # Every variable is where the settings say that it is.
        found = settings_.get("env", {}) | {
            name: entry["env"][reference] for name, reference in settings_.get("secrets", {}).items()
        }
        assert found == {name: value for name, value in given_["env"].items() if value}
    restore_client_config(file)
    assert file.read_bytes() == before

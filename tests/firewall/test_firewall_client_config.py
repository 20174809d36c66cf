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

SUFFIXES = (".before-bicameral", ".written-by-bicameral")
COMMAND = ["/opt/bicameral", "mcp", "firewall", "--config", "bicameral.toml"]
KEY = "sk-abcdefghijklmnopqrstuvwxyz"
HASH = "9f86d081884c7d659a2feaa0c55ad015"
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
        "secrets": {"API_KEY": "MCP_SECRET_MAIL_API_KEY"},
    }
    assert done.servers["tracker"]["bearer"] == "MCP_SECRET_TRACKER_AUTHORIZATION"
    # They are where they were: in the client's own file.
    assert entry["env"] == {
        "MCP_SECRET_MAIL_API_KEY": KEY,
        "MCP_SECRET_TRACKER_AUTHORIZATION": "s3cr3t-token",
        "MCP_SECRET_TRACKER_X_TEAM": "blue",
    }
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
        "SAFE_CODE": "4711",
        "DOOR": 24680,
        # What would be harmless under another name.
        "ADMIN_PASSWORD": "debug",
        "KEYCODE": 7,
        "HOME_DIR": "/tmp",
        "PORT": "8080",
        "N": 5,
        "ON": True,
    }
    file = write(tmp_path, {"mcpServers": {"a": {"command": "x", "env": env}}})
    done = rewrite_client_config(file, COMMAND)
    text = json.dumps(done.servers)
    for value in ("hunter2", "Tr0ub4dor", "1234", "4711", "24680", "debug"):
        assert value not in text
    assert done.servers["a"]["env"] == {"HOME_DIR": "/tmp", "PORT": "8080", "N": "5", "ON": "true"}


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


def test_two_servers_never_share_a_variable(tmp_path: Path) -> None:
    names = ("a-b", "a_b", "A.B")
    servers = {name: {"command": "x", "env": {"TOKEN": f"{name}-secret"}} for name in names}
    file = write(tmp_path, {"mcpServers": servers})
    done = rewrite_client_config(file, COMMAND)
    variables = [settings_["secrets"]["TOKEN"] for settings_ in done.servers.values()]
    assert variables == ["MCP_SECRET_A_B_TOKEN", "MCP_SECRET_A_B_TOKEN_2", "MCP_SECRET_A_B_2_TOKEN"]
    env = json.loads(file.read_text())["mcpServers"]["bicameral"]["env"]
    assert [env[each] for each in variables] == [f"{name}-secret" for name in names]


def test_variables_of_a_server_never_act_on_the_firewall(tmp_path: Path) -> None:
    """Attack: a variable that Python, a library or our own configuration reads in the process of the firewall."""
    from bicameral.config._load import environment_overrides

    names = [
        *("PATH", "PYTHONPATH", "LD_PRELOAD", "HTTPS_PROXY", "OTEL_EXPORTER_OTLP_ENDPOINT", "OPENAI_API_KEY"),
        *("BICAMERAL_CONFIG", "BICAMERAL_POLICY__MODE", "BICAMERAL_ACCEPT", "bicameral_journal"),
    ]
    file = write(tmp_path, {"mcpServers": {"x": {"command": "x", "env": {name: f"{name} value" for name in names}}}})
    done = rewrite_client_config(file, COMMAND)
    env = json.loads(file.read_text())["mcpServers"]["bicameral"]["env"]
    assert all(each.startswith("MCP_SECRET_X_") for each in env)
    assert not list(environment_overrides(env))
    # The server gets each under its own name.
    assert {name: env[where] for name, where in done.servers["x"]["secrets"].items()} == {
        name: f"{name} value" for name in names
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
        {"command": "npx", "args": ["mcp-remote", "https://x.example/mcp", "--header", "X-Api-Key: hunter2"]},
        {"command": "npx", "args": ["mcp-remote", "https://x.example/mcp", "--header", "X-Team: hunter2"]},
        {"command": "npx", "args": ["mcp-remote", "https://x.example/mcp", "--header=X-Api-Key:hunter2"]},
        {"command": "npx", "args": ["mcp-remote", "https://x.example/mcp?api_key=hunter2"]},
        {"command": "npx", "args": ["mcp-remote", "https://x.example/s/NWQ4hunter2Zz81KpQ9a/mcp"]},
        {"command": "npx", "args": ["mcp-remote", "https://x.example/0b7c6a0e-hunter2", "--t", HASH]},
        {"command": "uvx", "args": ["--from", "git+https://hunter2@github.com/x/y", "y"]},
        {"command": "docker", "args": ["run", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN=hunter2", "image"]},
        {"command": "docker", "args": ["run", "--env=DB_PWD=hunter2", "image"]},
        {"command": "x", "args": ["--config", '{"apiKey": "hunter2"}']},
        {"command": "x", "args": ["Server=db;User=sa;Password=hunter2"]},
        {"command": "sh", "args": ["-c", "exec server --password hunter2"]},
        {"command": "server --token hunter2"},
        {"url": "https://hunter2@example.org/mcp"},
        {"url": "https://example.org/mcp?api_key=hunter2"},
        {"url": "https://example.org/mcp#token=hunter2"},
        {"url": "https://example.org/api/mcp/s/NWQ4hunter2Zz81KpQ9a/mcp"},
        {"url": "https://example.org/0b7c6a0e-5d0f-4a51-9a3e-6f0c8a1d2e3f/mcp"},
        {"url": "https://example.org/mcp?session=hunter2"},
        {"command": "x", "env": {"API_KEY=hunter2": "c"}},
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
        {"command": "x", "onlyFrom": "my-desk"},
        {"command": "x", "includeTools": "search"},
        {"command": "x", "excludeTools": ["delete_*"]},
        {"command": "x", "disabled": "yes"},
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
    for secret in ("hunter2", KEY, HASH, "abc'"):
        assert secret not in str(error.value)
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2026.1.0", "/tmp"]},
        {"command": "npx", "args": ["mcp-remote", "https://mcp.example.com/v1/sse?team=blue&page=2"]},
        {"command": "npx", "args": ["mcp-remote", "https://x.example/mcp", "--header", "Accept: application/json"]},
        {"command": "uvx", "args": ["--from", f"git+https://github.com/x/y@{HASH}abcdef01", "y"]},
        {"command": "uvx", "args": ["--from", "git+ssh://git@github.com/x/y", "y"]},
        {"command": "docker", "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "image"]},
        {"command": "docker", "args": ["run", "-e", "LOG_LEVEL=debug", f"mcp/git@sha256:{HASH * 2}"]},
        {"command": "x", "args": ["--mode=fast", "Author: Kim", "--max-results=100", "--model", "gpt-4o-mini-2024"]},
        {"command": "x", "args": ["--repository", "/srv/notes-2024-11-05-quarterly-report"]},
        {"url": "https://mcp.example.com/projects/quarterly-report-2024/mcp?read_only=true"},
        {"url": "https://api.githubcopilot.com/mcp/x/pull_requests/readonly"},
        {"command": "x", "description": "Notes", "timeout": 60, "type": "stdio", "disabled": False, "enabled": True},
    ],
    ids=str,
)
def test_an_entry_without_a_secret_is_moved(tmp_path: Path, entry: Any) -> None:
    done = rewrite_client_config(write(tmp_path, {"mcpServers": {"fine": entry}}), COMMAND)
    McpSettings.model_validate(done.servers["fine"])


def test_a_name_to_leave_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It may be misspelt: the server that its user meant would be moved."""
    file = write(tmp_path, {"mcpServers": {"notes": {"command": "notes-server"}}})
    before = file.read_bytes()
    with pytest.raises(ConfigError) as caught:
        rewrite_client_config(file, COMMAND, leave=["note"])
    assert (caught.value.code, caught.value.nearest) == ("firewall.unknown-server", "notes")
    assert file.read_bytes() == before


def test_an_entry_can_be_left_out_and_is_told(tmp_path: Path) -> None:
    odd = {"command": "x", "cwd": "/srv"}
    file = write(tmp_path, {"mcpServers": {"fine": {"command": "x"}, "odd": odd}})
    done = rewrite_client_config(file, COMMAND, leave=["odd"])
    assert done.left == ("odd",)
    assert json.loads(file.read_text())["mcpServers"]["odd"] == odd


def test_what_the_client_does_not_start_stays_as_it_is(tmp_path: Path) -> None:
    """Attack: an entry that is turned off would be started by the firewall."""
    off: dict[str, Any] = {
        "a": {"command": "x", "disabled": True},
        "b": {"url": "https://x.example", "enabled": False},
        "c": {},
    }
    off["c"] = {"command": "x", "args": ["--token", "abc"], "disabled": True}
    file = write(tmp_path, {"mcpServers": {"fine": {"command": "x", "enabled": True}, **off}})
    done = rewrite_client_config(file, COMMAND)
    assert done.disabled == ("a", "b", "c")
    assert list(done.servers) == ["fine"]
    assert {name: json.loads(file.read_text())["mcpServers"][name] for name in off} == off


def test_lists_of_tools_are_taken_over(tmp_path: Path) -> None:
    servers: dict[str, Any] = {
        "only": {"command": "x", "includeTools": ["search", "read"], "excludeTools": ["read"]},
        "without": {"command": "x", "disabledTools": ["delete"], "disabled_tools": ["drop"]},
        "all": {"command": "x", "tools": ["*"]},
        "none": {"command": "x", "enabled_tools": []},
        "trusted": {"command": "x", "alwaysAllow": ["delete"], "autoApprove": [], "timeout": 5},
    }
    done = rewrite_client_config(write(tmp_path, {"mcpServers": servers}), COMMAND)
    assert [done.servers[name].get("allow") for name in servers] == [["search", "read"], None, None, [], None]
    assert done.excluded == {"only": ("read",), "without": ("delete", "drop")}
    assert dict(done.dropped) == {"trusted": ("alwaysAllow", "timeout")}
    assert McpSettings.model_validate(done.servers["none"]).allow == ()


def test_servers_in_other_places_of_the_file_are_named(tmp_path: Path) -> None:
    """Attack: only the servers at the top are moved, and it looks as if all were."""
    projects: dict[str, Any] = {
        "/home/me/a": {"mcpServers": {"github": {"command": "x"}, "web": {"command": "y"}}},
        "/home/me/b": {"mcpServers": {}, "history": []},
    }
    document = {"mcpServers": {"top": {"command": "x"}}, "projects": projects}
    file = write(tmp_path, document)
    done = rewrite_client_config(file, COMMAND)
    assert done.outside == ("projects./home/me/a.github", "projects./home/me/a.web")
    assert json.loads(file.read_text())["projects"] == projects
    alone = rewrite_client_config(write(tmp_path, {"mcpServers": {"top": {"command": "x"}}}, "b.json"), COMMAND)
    assert alone.outside == ()


def test_a_rule_elsewhere_in_the_file_that_names_a_moved_server_is_named(tmp_path: Path) -> None:
    document = {
        "mcpServers": {"web": {"command": "x"}, "mail": {"command": "x"}},
        "mcp": {"excluded": ["web"]},
        "projects": {"/p": {"disabledMcpServers": ["mail"], "recent": ["mail"]}},
        "permissions": {"deny": ["mcp__mail__send", "Bash"]},
    }
    done = rewrite_client_config(write(tmp_path, document), COMMAND)
    assert done.rules == ("mcp.excluded", "permissions.deny", "projects./p.disabledMcpServers")


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
        ('{"mcpServers": {"a": {"command": "\\ud800"}}}', "firewall.bad-json"),
        ('{"\\udfff": 1, "mcpServers": {"a": {"command": "x"}}}', "firewall.bad-json"),
        ('{"n": ' + "1" * 5_000 + ', "mcpServers": {"a": {"command": "x"}}}', "firewall.bad-json"),
        ('{"n": 1e400, "mcpServers": {"a": {"command": "x"}}}', "firewall.bad-json"),
        ('{"n": NaN, "mcpServers": {"a": {"command": "x"}}}', "firewall.bad-json"),
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


def test_a_file_that_is_back_already_is_cleared_up(tmp_path: Path) -> None:
    """A crash before the file was replaced, or a person who put the backup in its place."""
    file = write(tmp_path, {"mcpServers": SERVERS})
    before = file.read_bytes()
    for step in (rewrite_again, restore_client_config):
        done = rewrite_client_config(file, COMMAND)
        file.write_bytes(done.backup.read_bytes())
        step(file)
        assert file.read_bytes() == before
        assert [each.name for each in tmp_path.iterdir()] == [file.name]


def rewrite_again(file: Path) -> None:
    rewrite_client_config(file, COMMAND)
    restore_client_config(file)


def test_a_file_put_together_by_hand_with_an_old_backup_beside_it_is_left_alone(tmp_path: Path) -> None:
    file = write(tmp_path, {"mcpServers": SERVERS})
    done = rewrite_client_config(file, COMMAND)
    write(tmp_path, {"mcpServers": {"a": {"command": "x"}}})
    with pytest.raises(ConfigError) as error:
        rewrite_client_config(file, COMMAND)
    assert error.value.code == "firewall.already-rewritten"
    assert "delete" in str(error.value.fix).lower()
    assert done.backup.exists()


def test_without_the_record_of_what_was_written_nothing_is_overwritten(tmp_path: Path) -> None:
    file = write(tmp_path, {"mcpServers": SERVERS})
    done = rewrite_client_config(file, COMMAND)
    (tmp_path / "config.json.written-by-bicameral").unlink()
    before = file.read_bytes()
    with pytest.raises(ConfigError) as error:
        restore_client_config(file)
    assert error.value.code == "firewall.no-backup"
    assert done.backup.name in str(error.value.fix)
    assert file.read_bytes() == before
    file.write_bytes(done.backup.read_bytes())
    restore_client_config(file)
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("what", ["rewrite", "restore"])
def test_an_edit_between_reading_and_replacing_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Attack on the user's own work: the client saves its file while it is being replaced."""
    file = write(tmp_path, {"mcpServers": SERVERS})
    if what == "restore":
        rewrite_client_config(file, COMMAND)
    mine = json.dumps({"mcpServers": SERVERS, "theme": "mine"})
    fsync = os.fsync

    def saving(handle: int) -> None:
        file.write_text(mine)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", saving)
    with pytest.raises(ConfigError) as error:
        rewrite_client_config(file, COMMAND) if what == "rewrite" else restore_client_config(file)
    assert error.value.code == "firewall.changed-since"
    assert file.read_text() == mine
    left = {each.name for each in tmp_path.iterdir()} - {file.name}
    assert left == (set() if what == "rewrite" else {f"{file.name}{end}" for end in SUFFIXES})


def test_a_file_with_several_names_is_left_alone(tmp_path: Path) -> None:
    file = write(tmp_path, {"mcpServers": SERVERS})
    before = file.read_bytes()
    os.link(file, tmp_path / "other.json")
    with pytest.raises(ConfigError) as error:
        rewrite_client_config(file, COMMAND)
    assert error.value.code == "firewall.several-names"
    assert file.read_bytes() == before
    (tmp_path / "other.json").unlink()
    rewrite_client_config(file, COMMAND)


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

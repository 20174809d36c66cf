"""Whatever a confined server is granted, it never gets at what Bicameral keeps, nor at the files of MCP clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp_servers import server_settings, write_spec

from bicameral.errors import ToolError
from bicameral.mcp import (
    McpSettings,
    ProtectedPlaces,
    ServerConnection,
    forget_client_file,
    record_client_file,
    recorded_client_files,
    server_grants,
)
from bicameral.tools import ProtectedPath


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the state of Bicameral in it, as on a real machine."""
    home = tmp_path / "home"
    for name in (".local/state/bicameral", ".config/bicameral", "docs", "project/mcp"):
        (home / name).mkdir(parents=True)
    for name, text in {
        ".local/state/bicameral/durable.db": "the questions",
        ".config/bicameral/tokens.json": "the tokens",
        "project/bicameral.toml": "the configuration",
        "project/mcp/notes.toml": "the declarations",
        "project/notes.txt": "old",
        ".bashrc": "old",
        "plain.txt": "old",
    }.items():
        (home / name).write_text(text)
    monkeypatch.setenv("HOME", str(home))
    for kind in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
    return home


def places(home: Path) -> ProtectedPlaces:
    toml, notes = home / "project/bicameral.toml", home / "project/mcp/notes.toml"
    return ProtectedPlaces(
        unwritable=(ProtectedPath(toml, "the configuration"), ProtectedPath(notes, "declarations")),
        private=(ProtectedPath(home / "project/runs.db", "the journal of runs"),),
    )


async def attempts(home: Path, does: Mapping[str, str], **settings: Any) -> dict[str, str]:
    """What becomes of what a server tries that may write in the whole home folder, unless the settings say else."""
    outside = home.parent / "server"
    outside.mkdir(exist_ok=True)
    file = write_spec(outside, [{"name": name, "does": each} for name, each in does.items()])
    given = {"write": [str(home)]} | settings
    connection = ServerConnection(
        "test", server_settings(file, **given), base=home / "project", places=lambda: places(home)
    )
    try:
        return {name: (await connection.call_tool(name, {})).text for name in does}
    finally:
        await connection.aclose()


async def test_a_server_with_the_whole_home_folder_cannot_answer_its_own_questions(home: Path) -> None:
    """Attack: it writes the database of questions, the configuration or its own declarations, or moves their folder."""
    state = home / ".local/state/bicameral"
    found = await attempts(
        home,
        {
            "read_state": f"read:{state}/durable.db",
            "read_tokens": f"read:{home}/.config/bicameral/tokens.json",
            "write_state": f"write:{state}/durable.db",
            "new_state": f"write:{state}/new.db",
            "journal": f"write:{state}/durable.db-wal",
            "toml": f"write:{home}/project/bicameral.toml",
            "declared": f"write:{home}/project/mcp/notes.toml",
            "own_journal": f"write:{home}/project/runs.db",
            "move_parent": f"rename:{home}/.local/state:{home}/docs/moved",
            "move_grandparent": f"rename:{home}/.local:{home}/docs/moved",
            "replace": f"rename:{home}/docs:{home}/project",
            "link": f"link:{state}/durable.db:{home}/docs/linked",
            "shell": f"write:{home}/.bashrc",
        },
    )
    assert set(found.values()) == {"PermissionError"}, found
    assert (state / "durable.db").read_text() == "the questions"
    assert (home / "project/bicameral.toml").read_text() == "the configuration"


async def test_it_still_works_with_everything_else(home: Path) -> None:
    found = await attempts(
        home,
        {
            "list": f"list:{home}",
            "top": f"write:{home}/plain.txt",
            "new": f"write:{home}/docs/new.txt",
            "change": f"write:{home}/project/notes.txt",
            "move": f"rename:{home}/docs/new.txt:{home}/docs/moved.txt",
            "see": f"read:{home}/project/bicameral.toml",
        },
    )
    assert found.pop("see") == "the configuration"
    assert "PermissionError" not in found.values(), found
    assert (home / "docs/moved.txt").exists()


async def test_what_may_be_read_as_a_whole_does_not_show_what_is_private(home: Path) -> None:
    state = home / ".local/state/bicameral/durable.db"
    (home / "docs/way").symlink_to(state.parent)
    does = {"state": f"read:{state}", "way": f"read:{home}/docs/way/durable.db", "plain": f"read:{home}/plain.txt"}
    found = await attempts(home, does, read=[str(home), str(home.parent / "server")], write=[])
    assert found == {"state": "PermissionError", "way": "PermissionError", "plain": "old"}


async def test_a_link_on_the_way_to_a_protected_place_cannot_be_replaced(home: Path) -> None:
    """Attack: the state lies elsewhere, and the link that leads there lies in what is granted."""
    elsewhere = home.parent / "elsewhere"
    (home / ".local/state").rename(elsewhere)
    (home / ".local/state").symlink_to(elsewhere)
    found = await attempts(
        home,
        {
            "replace": f"rename:{home}/docs:{home}/.local/state",
            "away": f"rename:{home}/.local/state:{home}/docs/state",
            "through": f"write:{home}/.local/state/bicameral/durable.db",
        },
        write=[str(home / ".local"), str(home / "docs")],
    )
    assert set(found.values()) == {"PermissionError"}, found
    assert (home / ".local/state").is_symlink()


@pytest.mark.parametrize(
    ("grant", "name"),
    [
        ("write", ".local/state/bicameral"),
        ("write", ".local/state/bicameral/durable.db"),
        ("write", "project/bicameral.toml"),
        ("read", ".local/state/bicameral/durable.db"),
        ("read", "project/runs.db"),
        ("write", "same.toml"),
        ("write", "way"),
    ],
)
def test_a_grant_of_a_protected_place_is_refused_by_name(home: Path, grant: str, name: str) -> None:
    (home / "project/runs.db").write_text("runs")
    os.link(home / "project/bicameral.toml", home / "same.toml")
    (home / "way").symlink_to(home / ".local/state/bicameral")
    settings = McpSettings.model_validate({"command": ["x"], grant: [str(home / name)]})
    with pytest.raises(ToolError) as caught:
        server_grants("notes", settings, home, places(home))
    assert caught.value.code == "mcp.protected-path"
    # By its real name: a link may be called anything.
    assert os.path.realpath(home / name) in str(caught.value)


def test_what_is_left_out_of_a_grant_is_said(home: Path) -> None:
    settings = McpSettings.model_validate({"command": ["x"], "read": [str(home / "docs")], "write": [str(home)]})
    grants = server_grants("notes", settings, home, places(home))
    (line,) = grants.notes
    assert str(home) in line
    assert str(home / ".local/state/bicameral") in line
    assert home / "docs" in grants.write
    assert home not in grants.write
    plain = McpSettings.model_validate({"command": ["x"], "write": [str(home / "docs")]})
    found = server_grants("notes", plain, home, places(home))
    assert (found.notes, found.write, found.denied) == ((), (home / "docs",), ())


def test_a_hard_link_to_a_protected_file_is_left_out_too(home: Path) -> None:
    os.link(home / "project/bicameral.toml", home / "same.toml")
    settings = McpSettings.model_validate({"command": ["x"], "write": [str(home)]})
    assert home / "same.toml" not in server_grants("notes", settings, home, places(home)).write


async def test_the_file_of_a_client_is_kept_from_every_server(home: Path) -> None:
    """Attack: it has the secrets of all servers, and says what the client starts."""
    client, backup = home / "docs/client.json", home / "docs/client.json.before-bicameral"
    for file in (client, backup):
        file.write_text("the client's")
    does = {"read": f"read:{client}", "write": f"write:{client}", "backup": f"read:{backup}"}
    assert set((await attempts(home, does)).values()) == {"the client's", "1"}
    client.write_text("the client's")
    record_client_file(client, [client, backup])
    assert list(recorded_client_files()) == [client]
    assert set((await attempts(home, does)).values()) == {"PermissionError"}
    assert client.read_text() == "the client's"
    forget_client_file(client)
    forget_client_file(client)
    assert list(recorded_client_files()) == []

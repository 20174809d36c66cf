"""Well-known servers from their packages: reviewed as they are declared, and used."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bicameral.mcp import McpSettings, known_servers, mcp_tools, review_server
from bicameral.tools import Registry


async def open_known(name: str, folder: Path, **settings: Any) -> tuple[Registry, Any]:
    """The tools of a known server as it is added without a look."""
    given = McpSettings.model_validate(settings)
    review = await review_server(name, given, base=folder)
    assert review.known == name
    assert not review.refused
    came_along = "it is one of a server whose declarations come with Bicameral"
    assert {each.reasons[0] for each in review.proposals} == {came_along}
    review.write(folder / f"{name}.toml")
    server = mcp_tools({name: given.model_copy(update={"tools": f"{name}.toml"})}, base=folder)[0]
    return Registry(server.tools()), server


async def test_time_is_the_service_s_own_word(tmp_path: Path) -> None:
    registry, server = await open_known("time", tmp_path, command=["mcp-server-time"])
    tool = registry["time_convert_time"]
    result = await tool.call({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"})
    assert result["target"]["datetime"][11:16] == "21:00"
    assert tool.result_labels(result, "0").flat.trusted
    await server.connection.aclose()


async def test_git_reads_what_anybody_may_have_written(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    author = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    for words in (
        ["init", "-q", str(repository)],
        ["-C", str(repository), *author, "commit", "-qm", "One", "--allow-empty"],
    ):
        await asyncio.to_thread(subprocess.run, ["git", *words], check=True)
    registry, server = await open_known(
        "git", tmp_path, command=["mcp-server-git", "--repository", str(repository)], write=[str(repository)]
    )
    log = registry["git_git_log"]
    result = await log.call({"repo_path": str(repository)})
    assert "One" in result
    assert not log.result_labels(result, "0").flat.trusted
    assert registry["git_git_reset"].effect == "irreversible"
    await server.connection.aclose()


async def test_fetch_tells_whom_it_asks_and_so_is_directed_by_its_address(tmp_path: Path) -> None:
    registry, server = await open_known("fetch", tmp_path, command=["mcp-server-fetch"])
    tool = registry["fetch_fetch"]
    assert tool.outbound
    assert {each.name: each.purpose for each in tool.arguments}["url"] == "directs"
    await server.connection.aclose()


@pytest.mark.parametrize(
    "command",
    [
        ["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.1.0", "/data"],
        ["node", "/opt/lib/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"],
        ["/opt/bin/mcp-server-filesystem", "/data"],
    ],
)
def test_a_known_server_is_recognised_by_its_command(command: list[str]) -> None:
    from bicameral.mcp._review import known_server_of

    assert known_server_of(McpSettings.model_validate({"command": command})) == "filesystem"


@pytest.mark.parametrize(
    "command",
    [
        ["npx", "-y", "@evil/server-filesystem"],
        ["npx", "mcp-server-time-extended"],
        ["uvx", "mcp-server-timer"],
        ["bash", "-c", "mcp-server-time; evil"],
    ],
)
def test_nothing_else_passes_for_a_known_server(command: list[str]) -> None:
    from bicameral.mcp._review import known_server_of

    assert known_server_of(McpSettings.model_validate({"command": command})) is None
    assert len(known_servers()) == 6

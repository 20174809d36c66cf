"""`bicameral mcp serve` as a client starts it: standard output is the protocol's, and a run ends as the client says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_world import COMMAND, Person, facts, mcp_settings, stdio
from server_world import FORWARD, REQUEST

from bicameral.server import claim_standard_streams
from bicameral.server._mcp_serve import _read_lines  # pyright: ignore[reportPrivateUsage]

LOUD = '''
import os
import sys


@tool(effect="read", origins=Origin("system"))
def shout() -> int:
    """Print to every standard output there is."""
    print("noise of a tool")
    os.write(1, b"noise of a library\\n")
    return os.system("echo noise of a program") + len(sys.stdin.read())
'''


async def test_both_protocols_over_standard_input_and_output(tmp_path: Path) -> None:
    """One process each, side by side: a request is endorsed, planned and run, a call approved, in both protocols."""
    posted = {}

    async def use(mode: str) -> None:
        folder, person = tmp_path / mode, Person()
        async with stdio(folder, mode=mode, person=person) as client:
            answered = facts(await client.call_tool("run", {"request": REQUEST}))
            assert (answered["state"], answered["trusted"]) == ("finished", False)
            sent = facts(await client.call_tool("run", {"plan": FORWARD}))
            assert (sent["state"], len(person.asked)) == ("finished", 3)
            posted[mode] = (folder / "posted.txt").read_text()

    async with anyio.create_task_group() as both:
        both.start_soon(use, "legacy")
        both.start_soon(use, "auto")
    assert posted["legacy"] == posted["auto"] == "kim@example.com: invoice 7 is open\n"


def test_nothing_but_the_protocol_gets_to_standard_output(tmp_path: Path) -> None:
    environment = mcp_settings(tmp_path)
    own = tmp_path / "own.py"
    own.write_text(own.read_text() + LOUD)
    process = subprocess.Popen(
        [sys.executable, *COMMAND, "--requests", "trusted"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    said: list[str] = []
    reading = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
    reading.start()

    def send(message: dict[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        process.stdin.flush()

    def call(number: int, plan: str) -> dict[str, Any]:
        assert process.stdout is not None
        send({"id": number, "method": "tools/call", "params": {"name": "run", "arguments": {"plan": plan}}})
        return json.loads(process.stdout.readline())

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    send({"id": 1, "method": "initialize", "params": hello})
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "bicameral"
    send({"method": "notifications/initialized"})
    # A line that is no message, and one that is too long, cost the client nothing but themselves.
    process.stdin.write("this is no message\n" + "x" * 1_100_000 + "\n")
    loud = call(2, "answer(shout())\n")
    assert loud["id"] == 2
    # Whoever reads standard input in the server gets nothing of the client's.
    assert loud["result"]["structuredContent"]["answer"] == 0
    send({"id": 3, "method": "tools/call", "params": {"name": "run", "arguments": {"plan": 'answer(hold("h"))\n'}}})
    while not (tmp_path / "h.held").exists():
        assert process.poll() is None
        threading.Event().wait(0.02)
    # The client goes away in the middle of a call: the run that it was waiting for is stopped.
    process.stdin.close()
    assert all(json.loads(line)["id"] == 3 for line in process.stdout)
    assert process.wait(30) == 0
    reading.join(10)
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()
    noise = [line.strip() for line in said if "noise" in line]
    assert sorted(noise) == ["noise of a library", "noise of a program", "noise of a tool"]
    show = [sys.executable, "-m", "bicameral.cli", "runs", "list", "--json"]
    listed = subprocess.run(show, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    assert "stopped" in [each["status"] for each in json.loads(listed.stdout)["runs"]]


def test_a_signal_ends_the_server_while_its_client_is_there(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, *COMMAND, "--no-worker"],
        cwd=tmp_path,
        env=mcp_settings(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    # Standard input stays open: nobody has to close it for the server to end.
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, ""), said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--json"], "belongs to the protocol"),
        (["--port", "0"], "go with --http"),
        (["--http", "--user", "ana"], "the token says"),
        (["--http", "--host", "0.0.0.0"], "server.no-tokens"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_starts(
    tmp_path: Path, words: list[str], says: str
) -> None:
    from click.testing import CliRunner

    from bicameral.cli._mcp_serve import serve

    with pytest.MonkeyPatch.context() as patch:
        for name, value in mcp_settings(tmp_path).items():
            patch.setenv(name, value)
        patch.chdir(tmp_path)
        result = CliRunner().invoke(serve, words)
    assert result.exit_code != 0
    assert says in result.output + str(result.exception)


def test_lines_are_read_whole_and_long_ones_dropped() -> None:
    source, target = os.pipe()
    with os.fdopen(target, "wb") as writing:
        writing.write(b"one\n\xff two\n" + b"x" * 50 + b"\n" + b"y" * 20 + b"\nlast, without its end")
    try:
        assert list(_read_lines(source, 20)) == ["one", "\ufffd two", "y" * 20]
    finally:
        os.close(source)


def test_the_streams_are_given_back() -> None:
    before = os.fstat(1).st_ino, os.fstat(0).st_ino
    with claim_standard_streams():
        assert os.fstat(1).st_ino == os.fstat(2).st_ino
        assert os.read(0, 10) == b""
    assert (os.fstat(1).st_ino, os.fstat(0).st_ino) == before

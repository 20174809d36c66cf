"""Ctrl-C while a tool is stuck: the process ends soon, and the record says what is not known."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_office import until
from cli_terminal import PROGRAM
from cli_world import World

TOOLS = '''
import socket
import time
from pathlib import Path

from bicameral import tool
from bicameral.tools import Origin

OWN = Origin("system")


@tool(effect="send", purpose={"to": "directs"}, origins=OWN)
def stuck(to: str) -> None:
    """Send something, and hang in a call that no signal ends."""
    Path("waiting").touch()
    time.sleep(45)


@tool(effect="send", purpose={"to": "directs"}, origins=OWN)
def silent(to: str) -> None:
    """Send something, and wait for a reply that never comes."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        Path("waiting").touch()
        client.recv(1)


@tool(effect="send", purpose={"to": "directs"}, origins=OWN)
async def blocking(to: str) -> None:
    """Send something, and block the event loop itself."""
    Path("waiting").touch()
    time.sleep(45)
'''
MANIFEST = """
manifest = 1

[[tools]]
name = "asleep"
doc = "Send something, and hang."
argv = ["sleep", "{to}"]
effect = "send"
result = "text"
timeout = 60.0

[tools.arguments.to]
doc = "To whom."
purpose = "directs"
"""
ASLEEP = "44.75"


def is_waiting() -> bool:
    return Path("waiting").exists()


def is_asleep() -> bool:
    """Whether the sandboxed program runs."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if process.read_bytes().split(b"\0")[1:2] == [ASLEEP.encode()]:
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize(
    ("call", "begun"),
    [
        ('stuck("kim@example.com")', is_waiting),
        ('silent("kim@example.com")', is_waiting),
        ('blocking("kim@example.com")', is_waiting),
        (f'asleep("{ASLEEP}")', is_asleep),
    ],
)
def test_one_ctrl_c_ends_the_process_and_the_effect_in_flight_is_not_known(
    world: World, call: str, begun: Callable[[], bool]
) -> None:
    world.write("slow.py", TOOLS)
    world.write("asleep.toml", MANIFEST)
    world.write("bicameral.toml", '[toolboxes]\nuse = ["files"]\nfiles = ["slow.py", "asleep.toml"]\n')
    world.write("p.py", f'write_text("a.txt", "x")\n{call}\nanswer("sent")\n')
    assert world.call("config", "accept").exit_code == 0
    with subprocess.Popen(
        [PROGRAM, "run", "--plan", "p.py", "--yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        until(lambda: begun() or running.poll() is not None, 45)
        started = time.monotonic()
        os.kill(running.pid, signal.SIGINT)
        out, told = running.communicate(timeout=30)
        seconds = time.monotonic() - started
    assert running.returncode == 130, told
    # Two seconds on an idle machine; the tools would end after 45 or never.
    assert seconds < 20, told
    assert out == ""
    assert "done before that: write_text" in told
    assert "in flight, so their effect is not known: step 1" in told
    assert not is_asleep()
    [run] = world.json("runs", "list")["runs"]
    assert run["status"] == "stopped"
    events = world.json("runs", "show", run["run"])["events"]
    kinds = [(event["kind"], event["step"]) for event in events]
    assert ("step-started", "1") in kinds
    assert ("step-finished", "1") not in kinds
    assert ("step-failed", "1") not in kinds
    assert events[-1]["kind"] == "run-stopped"
    assert events[-1]["body"]["in_flight"] == ["1"]

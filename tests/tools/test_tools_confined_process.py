"""Programs that run until they are stopped, and everything that they started."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from bicameral.errors import ToolError
from bicameral.tools import Confinement, start_confined, start_unconfined

FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
# In a session of its own, and with nobody as its parent: the group of the program does not reach it.
if (middle := os.fork()) == 0:
    os.setsid()
    if (orphan := os.fork()) == 0:
        time.sleep(600)
    os.write(1, f"{orphan}\\n".encode())
    os._exit(0)
os.waitpid(middle, 0)
os.write(1, f"{child.pid}\\n".encode())
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what a program started is found in /proc")
def test_stopping_a_program_without_a_sandbox_stops_what_it_started(tmp_path: Path) -> None:
    program = start_unconfined([sys.executable, "-c", FAMILY], {}, tmp_path)
    other = start_unconfined(["/bin/cat"], {}, tmp_path)
    try:
        started = [int(program.stdout.readline()) for _ in range(2)]
        assert all(map(is_alive, started))
        program.stop()
        deadline = time.monotonic() + 20
        while any(map(is_alive, started)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not any(map(is_alive, started))
        # Another program, and this one, go on.
        other.stdin.write(b"still there\n")
        assert other.stdout.readline() == b"still there\n"
        program.stop()
    finally:
        program.stop()
        other.stop()
        for stream in (program.stdin, program.stdout, program.stderr, other.stdin, other.stdout, other.stderr):
            stream.close()


def test_a_host_without_an_address_is_named_and_not_taken_for_a_fault_of_the_sandbox(tmp_path: Path) -> None:
    """The sandbox looks it up, and ends the start without a word."""
    with pytest.raises(ToolError) as caught:
        start_confined(["/bin/cat"], Confinement(folder=tmp_path, network=("no.such.host.invalid:443",)))
    assert caught.value.code == "tools.cannot-start"
    assert "'no.such.host.invalid', which it may reach, has no address" in caught.value.message

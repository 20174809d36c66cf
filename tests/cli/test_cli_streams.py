"""Standard output that is closed, full, gone or of another encoding: no crash, and an effect is told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from cli_terminal import PROGRAM
from cli_world import World

WRITES = 'write_text("a.txt", "x")\nanswer("erledigt … für Łukasz ✓ 😀")\n'


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", line], capture_output=True, timeout=60, env={**os.environ, **variables})


@pytest.fixture
def folder(world: World) -> Path:
    world.write("p.py", WRITES)
    return world.folder


RUN = f"{PROGRAM} run --plan p.py"


@pytest.mark.parametrize("where", [">&-", "> /dev/full", "| true"])
@pytest.mark.parametrize("more", ["", "--json"])
def test_an_effect_is_told_although_standard_output_cannot_be_written(folder: Path, where: str, more: str) -> None:
    done = shell(f"set -o pipefail; {RUN} {more} {where}")
    told = done.stderr.decode()
    assert "Traceback" not in told
    assert "Exception" not in told
    assert (folder / "a.txt").read_text() == "x"
    assert done.returncode == 5, told
    assert "[cli.output-lost]" in told
    assert "bicameral runs show last" in told
    if not more:
        assert "done in" in told
        assert "write_text" in told


def test_what_failed_without_its_output_is_still_a_failure(folder: Path) -> None:
    (folder / "p.py").write_text('answer(read_text("gone.txt"))\n')
    assert shell(f"{RUN} --json >&-").returncode in (1, 2)


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- >&- 2>&-"])
def test_other_streams_may_be_closed_too(folder: Path, closed: str) -> None:
    done = shell(f"{RUN} {closed}", PYTHONIOENCODING="utf-8")
    assert done.returncode == (5 if ">&- 2" in closed else 0)
    assert (folder / "a.txt").read_text() == "x"
    if closed[-4:] != "2>&-" or closed == "2>&-":
        assert "erledigt … für Łukasz ✓ 😀" in done.stdout.decode()


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_character_that_the_encoding_does_not_have_is_written_as_its_number(folder: Path, encoding: str) -> None:
    done = shell(RUN, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode(encoding)
    assert (
        shown
        == {
            "latin-1": "erledigt \\u2026 für \\u0141ukasz \\u2713 \\U0001f600\n",
            "ascii": "erledigt \\u2026 f\\xfcr \\u0141ukasz \\u2713 \\U0001f600\n",
        }[encoding]
    )
    assert (folder / "a.txt").read_text() == "x"


def test_json_is_json_in_every_encoding(folder: Path) -> None:
    done = shell(f"{RUN} --json", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode("latin-1"))["answer"] == "erledigt … für Łukasz ✓ 😀"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_read_enough_is_no_crash(folder: Path, unbuffered: str) -> None:
    (folder / "p.py").write_text("answer([str(n) for n in range(50000)])\n")
    done = shell(f"set -o pipefail; {RUN} | head -1", PYTHONUNBUFFERED=unbuffered)
    assert done.stdout == b"0\n"
    assert done.returncode == 5
    assert b"Traceback" not in done.stderr

"""Locks on files between processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bicameral.cache import file_lock

_HOLDER = """\
import sys
from pathlib import Path
from bicameral.cache import file_lock
with file_lock(Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(path: Path, kind: str) -> Generator[subprocess.Popen[str]]:
    """Another process that holds the lock until its standard input ends."""
    argv = [sys.executable, "-c", _HOLDER, str(path), kind]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def can_lock(path: Path, *, shared: bool) -> bool:
    try:
        with file_lock(path, shared=shared, seconds=0):
            return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    ("held", "shared", "free"),
    [("shared", True, True), ("shared", False, False), ("exclusive", True, False), ("exclusive", False, False)],
)
def test_readers_share_a_lock_and_a_writer_has_it_alone(tmp_path: Path, held: str, shared: bool, free: bool) -> None:
    path = tmp_path / "folder" / "lock"
    with holder(path, held):
        assert can_lock(path, shared=shared) is free
    assert can_lock(path, shared=shared)


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path, "exclusive") as process:
        assert not can_lock(path, shared=False)
        process.kill()
        process.wait()
        assert can_lock(path, shared=False)


def test_a_wait_without_an_end_ends_when_the_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path, "exclusive") as process:
        assert process.stdin is not None
        with pytest.raises(TimeoutError), file_lock(path, seconds=0.05):
            pass
        process.stdin.close()
        started = time.monotonic()
        with file_lock(path):
            assert time.monotonic() - started < 30


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), file_lock(tmp_path / "lock"):
        raise KeyError
    assert can_lock(tmp_path / "lock", shared=False)

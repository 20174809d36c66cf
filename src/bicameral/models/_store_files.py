"""Hashing files, remembering their hashes, and joining pieces into one file."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import os
import threading
import zipfile
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from bicameral.models._store_progress import Progress, SilentProgress

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """A file, or the one file inside a wheel that matches `member`."""

    path: Path
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Stamp:
    """The hash of a file as it was when it had this size and time of change."""

    sha256: str
    bytes: int
    mtime_ns: int


def hash_file(path: Path, progress: Progress | None = None) -> str:
    """The SHA-256 of a file."""
    shown = progress or SilentProgress()
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            shown.advance(len(chunk))
    return digest.hexdigest()


def join_pieces(pieces: Sequence[Piece], target: Path, *, limit: int, progress: Progress) -> str:
    """Write the pieces one after another to `target`, flushed to disk, and return its SHA-256.

    Stops right after `limit` bytes: a longer file has the wrong hash anyway and could fill the disk.
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
def open_piece(piece: Piece) -> Generator[IO[bytes]]:
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
            # A stream that is cut off, encrypted, or packed in a way that is not known here.
            raise ValueError(f"{piece.path.name} cannot be unpacked: {error}") from None


def read_stamp(path: Path) -> Stamp | None:
    """The stamp in this file, or None if there is none that can be read."""
    try:
        raw: Any = json.loads(path.read_text(encoding="utf-8"))
        return Stamp(str(raw["sha256"]), int(raw["bytes"]), int(raw["mtime_ns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_stamp(path: Path, stamp: Stamp) -> None:
    """Remember a hash; in a folder that cannot be written the file is simply hashed again next time."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    with contextlib.suppress(OSError):
        try:
            scratch.write_text(json.dumps(asdict(stamp)) + "\n", encoding="utf-8")
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut, where the platform can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def bytes_under(path: Path) -> int:
    """How many bytes the files under a path really take, holes left out."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):  # it may be renamed while we look
                stat = os.stat(os.path.join(folder, name))
                blocks: int | None = getattr(stat, "st_blocks", None)
                total += stat.st_size if blocks is None else min(stat.st_size, blocks * 512)
    return total

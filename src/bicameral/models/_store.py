"""The model store: weights on disk, addressed by SHA-256, fetched once and used only if the hash matches."""

from __future__ import annotations

import contextlib
import os
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bicameral.models import _store_errors as errors
from bicameral.models._known import Weights, known_weights
from bicameral.models._sources import Source, SourceFailed, default_sources
from bicameral.models._store_child import RUNS
from bicameral.models._store_files import (
    Piece,
    Stamp,
    bytes_under,
    flush_folder,
    hash_file,
    join_pieces,
    read_stamp,
    write_stamp,
)
from bicameral.models._store_lock import locked
from bicameral.models._store_progress import Progress, SilentProgress

State = Literal["present", "missing", "damaged"]


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What a full hash of the stored file showed."""

    weights: Weights
    state: State
    path: Path
    found_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One set of weights in the store's list: there or not, and the disk space it takes."""

    weights: Weights
    state: State
    path: Path
    bytes_on_disk: int = 0
    partial_bytes: int = 0
    """Of `bytes_on_disk`, what an unfinished pull has left for the next one to resume."""


def default_folder() -> Path:
    """`$BICAMERAL_MODELS`, else the user's cache folder."""
    if chosen := os.environ.get("BICAMERAL_MODELS"):
        return Path(chosen).expanduser()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG convention says that a relative path is to be ignored.
    return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "bicameral" / "models"


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


class ModelStore:
    """A folder of weights files.

    Example:
        >>> store = ModelStore()
        >>> path = store.ensure(find_weights("0.5b"), progress=terminal_progress())
    """

    def __init__(self, folder: Path | None = None, *, free_bytes: Callable[[Path], int] = _free_bytes) -> None:
        self.folder = (folder or default_folder()).absolute()
        self._free_bytes = free_bytes

    def path(self, weights: Weights) -> Path | None:
        """The file if it is here and whole, None if it is not here; a damaged one raises `models.damaged`.

        Cheap: the hash is computed at the pull and again only when the file's size or time has changed.
        """
        found = self._found_sha256(weights)
        if found is None:
            return None
        if found != weights.sha256:
            raise errors.damaged(weights, self._file(weights), found, given=False)
        return self._file(weights)

    def ensure(self, weights: Weights, *, progress: Progress | None = None, offline: bool = False) -> Path:
        """The file, pulled first if it is not here."""
        return self.path(weights) or self.pull(weights, progress=progress, offline=offline)

    def pull(
        self,
        weights: Weights,
        *,
        file: Path | None = None,
        sources: Sequence[Source] | None = None,
        progress: Progress | None = None,
        offline: bool = False,
    ) -> Path:
        """Bring weights into the store: from `file`, else what is already here, else the first source that can.

        An interrupted pull is resumed by the next one; a damaged file in the store is replaced.
        """
        shown = progress or SilentProgress()
        if file is not None:
            errors.check_readable(file)
        try:
            with errors.disk_errors(weights, self.folder, self._free_bytes):
                self.folder.mkdir(parents=True, exist_ok=True)
                with locked(self._named(weights, ".lock"), on_wait=lambda: shown.note(_waiting(weights))):
                    if file is not None:
                        return self._take_file(weights, file, shown)
                    if self._found_sha256(weights) == weights.sha256:
                        return self._file(weights)
                    chosen = default_sources() if sources is None else sources
                    return self._fetch(weights, chosen, shown, offline=offline)
        finally:
            shown.done()

    def verify(self, weights: Weights, *, progress: Progress | None = None) -> VerifyResult:
        """Hash the stored file in full, whatever is remembered about it."""
        shown = progress or SilentProgress()
        path = self._file(weights)
        try:
            found = self._hash_and_remember(weights, shown)
        finally:
            shown.done()
        if found is None:
            return VerifyResult(weights, "missing", path)
        return VerifyResult(weights, "present" if found == weights.sha256 else "damaged", path, found)

    def remove(self, weights: Weights) -> bool:
        """Delete the file and what unfinished pulls have left; False if there was nothing."""
        if not self.folder.is_dir():
            return False
        with (
            errors.disk_errors(weights, self.folder, self._free_bytes),
            locked(self._named(weights, ".lock"), on_wait=lambda: None),
        ):
            partial, file = self._partial(weights), self._file(weights)
            existed = partial.exists() or file.exists()
            file.unlink(missing_ok=True)
            self._named(weights, ".json").unlink(missing_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
            return existed

    def list(self) -> list[StoreEntry]:
        """Every known set of weights, and how it stands here."""
        return [self._entry(weights) for weights in known_weights()]

    def _entry(self, weights: Weights) -> StoreEntry:
        found, path = self._found_sha256(weights), self._file(weights)
        partial = bytes_under(self._partial(weights))
        if found is None:
            return StoreEntry(weights, "missing", path, partial, partial)
        state: State = "present" if found == weights.sha256 else "damaged"
        return StoreEntry(weights, state, path, path.stat().st_size + partial, partial)

    def _take_file(self, weights: Weights, given: Path, progress: Progress) -> Path:
        self._check_room(weights, weights.bytes)
        partial = self._partial(weights)
        partial.mkdir(exist_ok=True)
        joined = partial / "given"
        progress.start(f"{weights.alias} from {given.name}", weights.bytes)
        try:
            found = join_pieces([Piece(given)], joined, limit=weights.bytes, progress=progress)
            if found != weights.sha256:
                raise errors.damaged(weights, given, hash_file(given), given=True)
            return self._install(weights, joined)
        finally:
            joined.unlink(missing_ok=True)

    def _fetch(self, weights: Weights, sources: Sequence[Source], progress: Progress, *, offline: bool) -> Path:
        if offline:
            raise errors.no_source(weights, [(source.name, "not tried, since offline") for source in sources])
        partial = self._partial(weights)
        partial.mkdir(exist_ok=True)
        for stale in partial.glob(RUNS):
            shutil.rmtree(stale, ignore_errors=True)
        reasons: list[tuple[str, str]] = []
        for source in sources:
            self._check_room(weights, source.room_needed(weights, partial))
            try:
                pieces = source.fetch(weights, partial, progress)
                return self._install(weights, self._join(weights, pieces, progress))
            except SourceFailed as failure:
                reasons.append((source.name, str(failure)))
        _drop_empty_folders(partial)
        raise errors.no_source(weights, reasons)

    def _join(self, weights: Weights, pieces: Sequence[Piece], progress: Progress) -> Path:
        """One file out of the pieces, with the right hash; pieces that give another one are thrown away."""
        partial = self._partial(weights)
        progress.start(f"{weights.alias}: checking", weights.bytes)
        try:
            match pieces:
                case [Piece(path, None)] if path.is_relative_to(partial):
                    joined, found = path, hash_file(path, progress)
                case _:
                    joined = partial / "joined"
                    found = join_pieces(pieces, joined, limit=weights.bytes, progress=progress)
        except (ValueError, zipfile.BadZipFile) as error:
            _discard(pieces, below=partial)
            raise SourceFailed(str(error)) from None
        if found != weights.sha256:
            _discard([*pieces, Piece(joined)], below=partial)
            raise SourceFailed(f"gave another file (SHA-256 {found})")
        return joined

    def _install(self, weights: Weights, joined: Path) -> Path:
        """Give a checked file its final name in one step, and remember its hash."""
        target, stat = self._file(weights), joined.stat()
        # The stamp first: a reader that sees the file then knows its hash without computing it.
        write_stamp(self._named(weights, ".json"), Stamp(weights.sha256, stat.st_size, stat.st_mtime_ns))
        joined.replace(target)
        flush_folder(self.folder)
        shutil.rmtree(self._partial(weights), ignore_errors=True)
        return target

    def _check_room(self, weights: Weights, needed: int) -> None:
        free = self._free_bytes(self.folder)
        if free < needed:
            raise errors.disk_full(weights, self.folder, needed=needed, free=free)

    def _found_sha256(self, weights: Weights) -> str | None:
        """The hash of the stored file, remembered or computed; None if there is no file."""
        stamp = read_stamp(self._named(weights, ".json"))
        try:
            stat = self._file(weights).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise errors.unreadable(self._file(weights), error) from None
        if stamp and (stamp.bytes, stamp.mtime_ns) == (stat.st_size, stat.st_mtime_ns):
            return stamp.sha256
        return self._hash_and_remember(weights, SilentProgress())

    def _hash_and_remember(self, weights: Weights, progress: Progress) -> str | None:
        path = self._file(weights)
        try:
            stat = path.stat()
            progress.start(f"{weights.alias}: checking", stat.st_size)
            found = hash_file(path, progress)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise errors.unreadable(path, error) from None
        write_stamp(self._named(weights, ".json"), Stamp(found, stat.st_size, stat.st_mtime_ns))
        return found

    def _file(self, weights: Weights) -> Path:
        return self._named(weights, ".gguf")

    def _partial(self, weights: Weights) -> Path:
        return self._named(weights, ".partial")

    def _named(self, weights: Weights, suffix: str) -> Path:
        return self.folder / f"sha256-{weights.sha256}{suffix}"


def _waiting(weights: Weights) -> str:
    return f"{weights.id}: another process is already fetching it; waiting for it"


def _drop_empty_folders(partial: Path) -> None:
    """Leave nothing of a pull that got nothing; what can be resumed stays."""
    for folder in (*partial.glob("*/"), partial):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _discard(pieces: Sequence[Piece], *, below: Path) -> None:
    for piece in pieces:
        if piece.path.is_relative_to(below):
            piece.path.unlink(missing_ok=True)

"""The model store: weights on disk, addressed by SHA-256, fetched once and used only if the hash matches."""

from __future__ import annotations

import contextlib
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
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
    """What a full hash of what is stored showed; of several files, that of the first that is not as it must be."""

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
        found = [(part, self._found_sha256(part)) for part in weights.parts]
        for part, sha256 in found:
            if sha256 not in (None, part.sha256):
                raise errors.damaged(part, self._file(part), sha256 or "", given=False)
        return None if any(sha256 is None for _, sha256 in found) else self._file(weights)

    def beside(self, weights: Weights, file: str) -> Path:
        """Where a file that goes with the weights is kept; `path` says whether all of them are here."""
        return next(self._file(part) for part in weights.parts if part.hub_file == file)

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

        What goes with the weights is taken from beside `file`, or all of it from a wheel. An interrupted pull is
        resumed by the next one; a damaged file in the store is replaced.
        """
        shown = progress or SilentProgress()
        given = {} if file is None else _given(weights, file)
        for piece in given.values():
            errors.check_readable(piece.path)
        try:
            with errors.disk_errors(weights, self.folder, self._free_bytes):
                self.folder.mkdir(parents=True, exist_ok=True)
                with locked(self._named(weights, ".lock"), on_wait=lambda: shown.note(_waiting(weights))):
                    if file is not None:
                        return self._take(weights, given, shown)
                    chosen = default_sources() if sources is None else sources
                    return self._fetch(weights, chosen, shown, offline=offline)
        finally:
            shown.done()

    def verify(self, weights: Weights, *, progress: Progress | None = None) -> VerifyResult:
        """Hash the stored file in full, whatever is remembered about it."""
        shown = progress or SilentProgress()
        try:
            found = [(part, self._hash_and_remember(part, shown)) for part in weights.parts]
        finally:
            shown.done()
        part, sha256 = next((each for each in found if each[1] != each[0].sha256), found[0])
        return VerifyResult(weights, _state(part, sha256), self._file(part), sha256)

    def remove(self, weights: Weights) -> bool:
        """Delete the file and what unfinished pulls have left; False if there was nothing."""
        if not self.folder.is_dir():
            return False
        with (
            errors.disk_errors(weights, self.folder, self._free_bytes),
            locked(self._named(weights, ".lock"), on_wait=lambda: None),
        ):
            partial, files = self._partial(weights), [self._file(part) for part in weights.parts]
            existed = partial.exists() or any(file.exists() for file in files)
            for file in (*files, *(self._named(part, ".json") for part in weights.parts)):
                file.unlink(missing_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
            return existed

    def list(self) -> list[StoreEntry]:
        """Every known set of weights, and how it stands here."""
        return [self._entry(weights) for weights in known_weights()]

    def _entry(self, weights: Weights) -> StoreEntry:
        states = [_state(part, self._found_sha256(part)) for part in weights.parts]
        state: State = "damaged" if "damaged" in states else "missing" if "missing" in states else "present"
        here = [self._file(part) for part, each in zip(weights.parts, states, strict=True) if each != "missing"]
        partial = bytes_under(self._partial(weights))
        size = sum(path.stat().st_size for path in here)
        return StoreEntry(weights, state, self._file(weights), size + partial, partial)

    def _take(self, weights: Weights, given: Mapping[str, Piece], progress: Progress) -> Path:
        self._check_room(weights, weights.bytes)
        partial = self._partial(weights)
        partial.mkdir(exist_ok=True)
        joined = partial / "given"
        try:
            for part in weights.parts:
                piece = given[part.sha256]
                progress.start(f"{part.alias} from {piece.path.name}", part.bytes)
                found = _joined(piece, joined, part, progress)
                if found != part.sha256:
                    raise errors.damaged(part, piece.path, found, given=True)
                self._install(part, joined)
        finally:
            joined.unlink(missing_ok=True)
            _drop_empty_folders(partial)
        shutil.rmtree(partial, ignore_errors=True)
        return self._file(weights)

    def _fetch(self, weights: Weights, sources: Sequence[Source], progress: Progress, *, offline: bool) -> Path:
        missing = [part for part in weights.parts if self._found_sha256(part) != part.sha256]
        if not missing:
            return self._file(weights)
        if offline:
            raise errors.no_source(missing[0], [(source.name, "not tried, since offline") for source in sources])
        partial = self._partial(weights)
        partial.mkdir(exist_ok=True)
        for stale in partial.glob(RUNS):
            shutil.rmtree(stale, ignore_errors=True)
        reasons: list[tuple[str, str]] = []
        for source in sources:
            try:
                while missing:
                    self._fetch_part(missing[0], source, partial, progress)
                    missing.pop(0)
                shutil.rmtree(partial, ignore_errors=True)
                return self._file(weights)
            except SourceFailed as failure:
                reasons.append((source.name, str(failure)))
        _drop_empty_folders(partial)
        raise errors.no_source(missing[0], reasons)

    def _fetch_part(self, part: Weights, source: Source, partial: Path, progress: Progress) -> None:
        self._check_room(part, source.room_needed(part, partial))
        pieces = source.fetch(part, partial, progress)
        self._install(part, self._join(part, pieces, partial, progress))

    def _join(self, weights: Weights, pieces: Sequence[Piece], partial: Path, progress: Progress) -> Path:
        """One file out of the pieces, with the right hash; pieces that give another one are thrown away."""
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

    def _install(self, weights: Weights, joined: Path) -> None:
        """Give a checked file its final name in one step, and remember its hash."""
        target, stat = self._file(weights), joined.stat()
        # The stamp first: a reader that sees the file then knows its hash without computing it.
        write_stamp(self._named(weights, ".json"), Stamp(weights.sha256, stat.st_size, stat.st_mtime_ns))
        joined.replace(target)
        flush_folder(self.folder)

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
        return self.folder / weights.stored_as

    def _partial(self, weights: Weights) -> Path:
        return self._named(weights, ".partial")

    def _named(self, weights: Weights, suffix: str) -> Path:
        return self.folder / f"sha256-{weights.sha256}{suffix}"


def _state(part: Weights, found_sha256: str | None) -> State:
    if found_sha256 is None:
        return "missing"
    return "present" if found_sha256 == part.sha256 else "damaged"


def _given(weights: Weights, file: Path) -> dict[str, Piece]:
    """Where each part is, for a person who names one file: the weights, or a wheel that has everything."""
    if len(weights.wheels) == 1 and zipfile.is_zipfile(file):
        return {part.sha256: Piece(file, part.member) for part in weights.parts}
    others = {pin.sha256: Piece(file.with_name(pin.file)) for pin in weights.files}
    return {weights.sha256: Piece(file), **others}


def _joined(piece: Piece, target: Path, part: Weights, progress: Progress) -> str:
    """Copy a given piece, and its whole hash: what is too long is not copied to its end."""
    try:
        found = join_pieces([piece], target, limit=part.bytes, progress=progress)
    except (ValueError, zipfile.BadZipFile):
        return hash_file(piece.path)
    return found if found == part.sha256 or piece.member else hash_file(piece.path)


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

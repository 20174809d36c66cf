"""The folders that tools may read and write. Nothing outside them can be reached, whatever a path says."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterable, Iterator
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


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file met while listing a folder."""

    path: Path
    info: os.stat_result


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders that may be read and those that may be written; relative paths start at `base`.

    A path is first resolved, links and all, and held against the folders; then it is opened one name at a time
    without following any link. So a link may lead from one place inside to another, and none leads out, also not
    one that is put there between the check and the use. The folders themselves are resolved once, here.

    `trusted` folders hold what the user himself keeps: what is read there counts as his own word. So no tool may write
    there, or a stranger's text could be put in with one call and come out as the user's with the next.

    `protected` is what no tool may change wherever it lies, because it decides how the next run behaves; without it,
    what is protected on every machine. It is looked at when a path is resolved, and again on the opened folders.
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
        named = tuple(Path(os.path.normpath(base / os.path.expanduser(one))) for one in self.trusted)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "read", tuple(Path(realpath(base / os.path.expanduser(one))) for one in self.read))
        object.__setattr__(self, "write", tuple(Path(realpath(base / os.path.expanduser(one))) for one in self.write))
        object.__setattr__(self, "_spelled", named)
        object.__setattr__(self, "trusted", tuple(Path(realpath(one)) for one in named))

    # Where a path leads

    def resolve_readable(self, path: str) -> Path:
        """Where this path leads, if that may be read and is there."""
        real = self._locate(path, "read")
        with self._translating_errors(path, real, "read"), open_entry(real) as at:
            if entry_stat(at) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return real

    def resolve_writable(self, path: str) -> Path:
        """Where this path leads, if that may be written; it need not be there yet."""
        real = self._locate(path, "write")
        if any(_lies_inside(root, real) for root in self.trusted):
            raise self._trusted_folder_error(path)
        return real

    def resolve_writable_folder(self, path: str) -> Path:
        """A folder in which everything may be written, by a program that is not held to single files."""
        real = self.resolve_writable(path)
        if (found := self._protected.find_inside(real)) is not None:
            raise protected_path_error(
                path, f"a folder with {self.display_path(found[0])!r} in it, which is {found[1]}"
            )
        return real

    def rename_protected(self, path: str) -> str | None:
        """Take its name from whatever a program has made in a folder that nobody but the user may make.

        Gives the name that was taken, or None. What was made is kept under another name, for a person to look at.
        """
        real, first = self._locate(path, "write"), None
        while (found := self._protected.find_inside(real)) is not None and found[0] != real:
            first = first or self.display_path(found[0])
            found[0].rename(found[0].with_name(f"refused-{os.urandom(4).hex()}-{found[0].name.strip('.')}.txt"))
        return first

    def target(self, path: object, *, copied: bool = False) -> WriteTarget:
        """What is known of the file that would be written at a path; nothing if the path is not known yet.

        Only looks, and changes nothing: it is asked before a run. What is wrong with the path is told when it is used.
        """
        if not isinstance(path, str):
            return WriteTarget(copied=copied)
        try:
            real = self._locate(path, "write")
        except ToolError as error:
            return WriteTarget(False, copied, error.message if error.code == "tools.protected" else None)
        return WriteTarget(is_executed_name(real, self.base) or is_executable_file(real), copied)

    def is_program(self, path: str) -> bool:
        """Whether a file may be executed, or is a script: a copy of it is one, too."""
        try:
            return is_executable_file(self._locate(path, "read"))
        except ToolError:
            return False

    def exempting(self, *paths: str) -> Folders:
        """The same folders for the toolbox that keeps these files itself: no other tool may change them."""
        return self._copy_with(
            self._protected.with_exempt([Path(realpath(self._absolute_path(path))) for path in paths])
        )

    def with_protected(self, paths: Iterable[ProtectedPath]) -> Folders:
        """The same folders, with these paths among what no tool may change; relative ones start at the base."""
        return self._copy_with(
            self._protected.with_paths(ProtectedPath(self.base / each.path, each.what, each.whole) for each in paths)
        )

    def _copy_with(self, protected: ProtectedPaths) -> Folders:
        # Not made anew: the trusted folders as they were spelled are known only to this one.
        same = copy(self)
        object.__setattr__(same, "protected", protected)
        return same

    def is_trusted(self, path: str) -> bool:
        """Whether this path leads, by no link, into a folder that the user keeps himself.

        A link below the folder could be turned to another place between this answer and the reading, so a path with
        one is not trusted, wherever it leads.
        """
        try:
            spelled = self._absolute_path(path)
            real = Path(realpath(spelled))
        except (ToolError, OSError):
            return False
        for named, root in zip((*self._spelled, *self.trusted), (*self.trusted, *self.trusted), strict=True):
            if spelled.is_relative_to(named) and real == root / spelled.relative_to(named):
                return True
        return False

    def display_path(self, path: Path) -> str:
        """A path as plans and people write it: relative to the base where that is possible."""
        text = str(path.relative_to(self.base) if path.is_relative_to(self.base) else path)
        return os.fsencode(text).decode(errors="replace")

    def exists(self, path: str) -> bool:
        """Whether there is a file (not a folder) that may be read."""
        real = self._locate(path, "read")
        try:
            with open_entry(real) as at:
                found = entry_stat(at)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._translate_error(error, path, real, "read") from None
        return found is not None and stat.S_ISREG(found.st_mode)

    def is_folder(self, path: str, use: Access = "read") -> bool:
        """Whether there is a folder that may be used so."""
        return self._locate(path, use).is_dir()

    # Reading

    def open_read(self, path: str) -> BinaryIO:
        """Open a file for reading; pipes and devices are refused without waiting for them."""
        real = self._locate(path, "read")
        with self._translating_errors(path, real, "read"), open_entry(real) as at:
            return os.fdopen(open_file(at, path), "rb")

    def read_bytes(self, path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
        """The whole file, if it is not larger than `max_bytes`."""
        with self.open_read(path) as file:
            size = os.fstat(file.fileno()).st_size
            # The size is only what the system says now: a growing file is cut off at the same limit.
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

    def list_files(self, folder: str = ".", *, recursive: bool = False) -> Iterator[ListedFile]:
        """The files in a folder that may be read, in the order of their names; links to folders are not entered."""
        top = self._locate(folder, "read")
        waiting = [top]
        while waiting:
            here = waiting.pop()
            folders: list[Path] = []
            for path, found in self._entries(folder if here == top else self.display_path(here), here):
                if stat.S_ISDIR(found.st_mode):
                    folders.append(path)
                elif stat.S_ISREG(found.st_mode):
                    yield ListedFile(path, found)
            if recursive:
                waiting.extend(reversed(folders))

    def _entries(self, shown: str, folder: Path) -> list[tuple[Path, os.stat_result]]:
        entries: list[tuple[Path, os.stat_result]] = []
        with self._translating_errors(shown, folder, "read"), open_listing(folder) as names:
            for name in sorted(names, key=lambda each: each.name):
                path = folder / name.name
                found = self._link_target_stat(path) if name.is_symlink() else _stat_entry(name)
                if found is not None:
                    entries.append((path, found))
        return entries

    def _link_target_stat(self, path: Path) -> os.stat_result | None:
        """The file that a link leads to, if it leads to one that may be read."""
        try:
            real = Path(realpath(path))
            if self._allowed_root(real, "read") is None:
                return None
            with open_entry(real) as at:
                found = entry_stat(at)
        except OSError:
            return None
        return found if found is not None and stat.S_ISREG(found.st_mode) else None

    # Writing

    def write_atomic(self, path: str, content: bytes, *, replace: bool = True) -> None:
        """Make a file hold exactly these bytes, or leave everything as it was; folders on the way are made."""
        real = self._locate(path, "write")
        if path.endswith(("/", os.sep)):
            raise is_folder_error(path)
        with self._translating_errors(path, real, "write"), self._open_for_write(real) as at:
            writes.write_file(at, [content], path, replace=replace)

    def write_text(self, path: str, text: str) -> None:
        """Make a file hold exactly this text, as UTF-8."""
        self.write_atomic(path, encode_text(text, path))

    def append(self, path: str, content: bytes, *, new_line: bool = False) -> None:
        """Add bytes at the end of a file (after a line end, if asked), or make the file."""
        real = self._locate(path, "write")
        with self._translating_errors(path, real, "write"), self._open_for_write(real) as at:
            writes.append_to_file(at, content, path, new_line=new_line)

    def append_line(self, path: str, text: str) -> None:
        """Add text at the end of a file, on a line of its own."""
        self.append(path, encode_text(text, path), new_line=True)

    def copy(self, source: str, target: str) -> None:
        """Copy a file to a name that is not in use."""
        real = self._locate(target, "write")
        with self.open_read(source) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o777
            with self._translating_errors(target, real, "write"), self._open_for_write(real) as at:
                writes.write_file(at, writes.iter_chunks(file), target, replace=False, mode=mode)

    def move(self, source: str, target: str) -> None:
        """Move a file, which must be allowed to be read and written, to a name that is not in use."""
        self._locate(source, "read", follow=False)
        real, goal = self._locate(source, "write", follow=False), self._locate(target, "write")
        guard = self._protected.make_guard()
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
        real = self._locate(path, "write", follow=False)
        with self._translating_errors(path, real, "write"), open_entry(real, guard=self._protected.make_guard()) as at:
            writes.delete_file(at, path)

    def make_folder(self, path: str) -> None:
        """Make a folder and those on the way to it."""
        real = self._locate(path, "write")
        with self._translating_errors(path, real, "write"), self._open_for_write(real) as at:
            writes.make_folder(at, path)

    # The guard itself

    def _locate(self, path: str, use: Access, *, follow: bool = True) -> Path:
        spelled = self._absolute_path(path)
        try:
            real = Path(realpath(spelled)) if follow else Path(realpath(spelled.parent), spelled.name)
        except OSError as error:  # a link that vanishes while it is read
            raise path_error(error, path) from None
        if self._allowed_root(real, use) is None:
            raise self._outside_error(path, use)
        if use == "write" and any(_lies_inside(real, root) for root in self.trusted):
            raise self._trusted_folder_error(path)
        if use == "write" and (reason := self._protected.make_guard().path_reason(real)) is not None:
            raise protected_path_error(path, reason)
        return real

    @property
    def _protected(self) -> ProtectedPaths:
        return process_protected_paths() if self.protected is None else self.protected

    def _open_for_write(self, real: Path) -> AbstractContextManager[FolderEntry]:
        """The entry that is about to be written; folders on the way to it are made."""
        return open_entry(real, create_from=self._allowed_root(real, "write"), guard=self._protected.make_guard())

    def _absolute_path(self, path: str) -> Path:
        """The path as it is written, absolute and without dots; links are still in it."""
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
        if error.errno == errno.ELOOP:
            return self._outside_error(path, use)
        told = path_error(error, path)
        if error.errno == errno.ENOENT:
            told.nearest = self._nearest_path(real)
        return told

    def _nearest_path(self, real: Path) -> str | None:
        """The name that was probably meant, in the deepest folder on the way that is there and may be read."""
        for folder in real.parents:
            if self._allowed_root(folder, "read") is None:
                return None
            try:
                with open_listing(folder) as found:
                    names = [each.name for each, _ in zip(found, range(_NAMES_LOOKED_AT), strict=False)]
            except OSError:
                continue
            close = nearest_name(real.relative_to(folder).parts[0], names)
            return self.display_path(folder / close) if close else None
        return None


def _lies_inside(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder, also by another spelling that the disk takes for the same, or another mount."""
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


def _stat_entry(name: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return name.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None

"""Files that no tool may change: what decides how the next run behaves, and what it believes of earlier ones.

Configuration, policies, the code and manifests of toolboxes, caches of plans, journals, databases, tokens, weights, and
the installed program itself. If a tool could write one of them, text that a stranger wrote would become code, policy or
memory of the next run. So no tool writes, replaces, moves or deletes them, whoever approves.

A file is recognised in three ways. By its name, where the name alone makes it one (`bicameral.toml`, `.bicameral`). By
its place, the folder that holds it and its name there, which also covers a file that does not exist yet. And by its
identity, device and inode, which covers hard links and every other spelling. Folders and files are compared when they
are used, since a journal appears only with the first run.
"""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bicameral.errors import ToolError
from bicameral.user_folders import KINDS, user_folder

from ._folder_errors import quoted

CONFIGURATION = "bicameral.toml"
STATE = ".bicameral"
_BY_NAME = {CONFIGURATION: "a configuration", STATE: "in a folder of journals, databases and plans"}
_DATABASE = ("-wal", "-shm", "-journal")
_PACKAGES = ("site-packages", "dist-packages")
_MOST_ENTRIES = 200_000
"""A folder with more entries is not looked through, and counts as one that holds something protected."""

Identity = tuple[int, int]


def compared_name(name: str) -> str:
    """A name as file systems may compare it: without case, in one Unicode form, without what some of them leave off.

    Some ignore characters that nobody sees, some drop dots and blanks at the end, and `name:stream` is `name` on NTFS.

    Example:
        >>> compared_name("BICAMERAL.TOML. ")
        'bicameral.toml'
    """
    if name.isascii():
        folded = name.lower()
    else:
        seen = (each for each in name if unicodedata.category(each) != "Cf")
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", "".join(seen)).casefold())
    return folded.partition(":")[0].rstrip(" .") or folded


@dataclass(frozen=True, slots=True)
class ProtectedPath:
    """A file, or a folder with all in it (`whole`), and what it is."""

    path: Path
    what: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Protected:
    """What no tool may change, beside the names that are protected everywhere.

    `exempt` are paths that may be changed here all the same: a toolbox keeps its own calendar, and no other tool does.
    """

    paths: tuple[ProtectedPath, ...] = ()
    exempt: tuple[Path, ...] = ()

    def plus(self, paths: Iterable[ProtectedPath]) -> Protected:
        """The same and these."""
        return Protected((*self.paths, *(each for given in paths for each in _ways_to(given))), self.exempt)

    def exempting(self, paths: Iterable[Path]) -> Protected:
        """The same, for the one whose files these are."""
        return Protected(self.paths, (*self.exempt, *paths))

    def guard(self) -> Guard:
        """What is protected, as it is on the disk now: for one operation."""
        return Guard(self)

    def inside(self, folder: Path) -> tuple[Path, str] | None:
        """The first thing in a folder that is protected, and what it is; None if there is none.

        It counts at any depth: whoever may write in a folder may also rename the folders in it.
        """
        guard, looked_at = self.guard(), 0
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                looked_at += 1
                if found := guard.entry(Path(parent, name), None):
                    return Path(parent, name), found
            if looked_at > _MOST_ENTRIES:
                return folder, "too large to be looked through for files that are protected"
        return None


def of_this_process() -> Protected:
    """What is protected without any configuration: the user's own folders, and the program that runs."""
    return _of_this_process(tuple(map(user_folder, KINDS)), os.environ.get("PYTHONSTARTUP", ""))


@lru_cache(maxsize=16)
def _of_this_process(own: tuple[Path, ...], startup: str) -> Protected:
    return Protected().plus(_paths_of_this_process(own, startup))


def _paths_of_this_process(own: tuple[Path, ...], startup: str) -> Iterator[ProtectedPath]:
    for folder in own:
        yield ProtectedPath(folder, "in a folder of Bicameral's own", whole=True)
    yield ProtectedPath(Path(__file__).parents[1], "in the code of Bicameral", whole=True)
    if sys.prefix != sys.base_prefix:
        yield ProtectedPath(Path(sys.prefix), "in the Python environment that runs this", whole=True)
    for folder in sys.path:
        if os.path.basename(folder) in _PACKAGES:
            yield ProtectedPath(Path(folder), "among the installed Python packages", whole=True)
    if startup:
        yield ProtectedPath(Path(startup).absolute(), "what Python runs when it starts")


def database_files(path: Path, what: str) -> Iterator[ProtectedPath]:
    """A SQLite file and the files that SQLite keeps beside it: what it reads back after a crash."""
    for ending in ("", *_DATABASE):
        yield ProtectedPath(path.with_name(path.name + ending), what)


def _ways_to(given: ProtectedPath) -> Iterator[ProtectedPath]:
    """The path as it is spelled and resolved, and every link on the way: to turn a link is to replace a file."""
    spelled = Path(os.path.abspath(given.path))
    real = Path(os.path.realpath(spelled))
    yield ProtectedPath(spelled, given.what, given.whole)
    if real == spelled:
        return
    yield ProtectedPath(real, given.what, given.whole)
    for each in (spelled, *spelled.parents):
        with suppress(OSError):
            if stat.S_ISLNK(os.lstat(each).st_mode):
                yield ProtectedPath(each, f"a link to {given.what}")


class Guard:
    """Holds one operation against what is protected, as it is on the disk when the operation begins."""

    def __init__(self, protected: Protected) -> None:
        self._exempt = frozenset(map(str, protected.exempt))
        self._folders: dict[Identity, str] = {}
        self._files: dict[Identity, str] = {}
        self._places: dict[tuple[Identity, str], str] = {}
        self._parents: dict[str, Identity | None] = {}
        self._spelled: list[tuple[Path, str]] = []
        for each in protected.paths:
            self._add(each)

    def _add(self, given: ProtectedPath) -> None:
        path = given.path
        with suppress(OSError):
            found = os.lstat(path)
            if given.whole and stat.S_ISDIR(found.st_mode):
                self._folders[found.st_dev, found.st_ino] = given.what
            elif not given.whole:
                self._files[found.st_dev, found.st_ino] = given.what
        if given.whole:
            self._spelled.append((path, given.what))
        if (parent := self._identity(str(path.parent))) is not None:
            self._places[parent, compared_name(path.name)] = given.what

    def _identity(self, folder: str) -> Identity | None:
        if folder not in self._parents:
            try:
                found = os.stat(folder)
                self._parents[folder] = (found.st_dev, found.st_ino)
            except OSError:
                self._parents[folder] = None
        return self._parents[folder]

    def folder(self, fd: int, name: str) -> str | None:
        """What an opened folder on the way to a file is, if nothing in it may be changed."""
        if found := _BY_NAME.get(compared_name(name)):
            return found
        if not self._folders:
            return None
        here = os.fstat(fd)
        return self._folders.get((here.st_dev, here.st_ino))

    def entry(self, path: Path, fd: int | None) -> str | None:
        """What the entry at a path is, if it may not be changed; `fd` is its opened folder."""
        name = compared_name(path.name)
        if found := _BY_NAME.get(name):
            return found
        if str(path) in self._exempt:
            return None
        with suppress(OSError):
            parent = os.stat(path.parent) if fd is None else os.fstat(fd)
            if found := self._places.get(((parent.st_dev, parent.st_ino), name)):
                return found
        with suppress(OSError):
            there = os.lstat(path) if fd is None else os.stat(path.name, dir_fd=fd, follow_symlinks=False)
            key = (there.st_dev, there.st_ino)
            return self._folders.get(key) or self._files.get(key)
        return None

    def reason(self, path: Path) -> str | None:
        """What a resolved path is, if it may not be changed, without opening anything."""
        for each in (path, *path.parents):
            if found := _BY_NAME.get(compared_name(each.name)):
                return found
        if str(path) in self._exempt:
            return None
        for folder, what in self._spelled:
            if path == folder or path.is_relative_to(folder):
                return what
        if self._folders:
            for each in path.parents:
                with suppress(OSError):
                    here = os.stat(each)
                    if found := self._folders.get((here.st_dev, here.st_ino)):
                        return found
        return self.entry(path, None)


def refusal(path: str, what: str) -> ToolError:
    """The error for a path that no tool may change."""
    return ToolError(
        "tools.protected",
        f"{quoted(path)} is {what}, and no tool may change that",
        fix="Choose another name or folder. What decides how runs behave is changed by hand.",
    )

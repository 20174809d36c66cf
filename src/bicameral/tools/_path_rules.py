"""Rules for paths: which names are readable, which files no tool may change, and which files other programs execute.

Protected files decide how the next run behaves and what it believes of earlier runs: configuration, policies, code
and manifests of toolboxes, plan caches, journals, databases, tokens, weights, and the installed program itself. If a
tool could write one of them, untrusted text would become code, policy or memory of the next run. So no tool writes,
replaces, moves or deletes them, whoever approves. A protected file is recognised by its name (`bicameral.toml`,
`.bicameral`), by its place (parent folder and name, which also covers a file that does not exist yet) and by its
identity (device and inode, which covers hard links and other spellings). Folders and files are compared when they are
used, since a journal appears only with the first run.

Executed files are scripts, settings of shells and tools, build files, autostart entries and documents with macros.
Untrusted text is harmless in `notes.txt` and runs as the user in `.bashrc`. The decision follows the name, since that
is what other programs go by, plus the executable bit and `#!`. When in doubt a file counts as executed: this only
ever leads to a question, and only for untrusted content.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bicameral.cache import FOLDER_KINDS, user_folder
from bicameral.display import hidden_places
from bicameral.errors import ToolError

LONGEST_NAME = 255
LONGEST_PATH = 4096


def quote_path(path: str) -> str:
    """A path for a message: shortened, and with control characters escaped."""
    return repr(path if len(path) <= 100 else f"{path[:60]}...{path[-30:]}")


def check_path_text(path: str) -> str:
    """The path itself, if it is readable for a person and valid for a file system."""
    if not path.strip():
        raise ToolError("files.bad-path", "the path is empty", expected="the name of a file or folder")
    for index, kind in hidden_places(path).items():
        # Some systems map forbidden characters to private-use ones, and wide spaces are visible.
        if kind != "blank" and unicodedata.category(path[index]) != "Co":
            raise ToolError(
                "files.bad-path",
                f"the path {quote_path(path)} has the {kind} character U+{ord(path[index]):04X} at position {index}",
                expected="only characters that can be seen",
            )
    if "\n" in path or "\t" in path:
        raise ToolError("files.bad-path", f"the path {quote_path(path)} has a line break or a tab", expected="one line")
    if len(path.encode()) >= LONGEST_PATH or any(len(name.encode()) > LONGEST_NAME for name in path.split("/")):
        raise ToolError(
            "files.bad-path",
            f"the path {quote_path(path)} is too long",
            expected=f"names of at most {LONGEST_NAME} bytes, {LONGEST_PATH} bytes in all",
        )
    return path


def is_folder_error(path: str) -> ToolError:
    return ToolError("files.is-folder", f"{quote_path(path)} is a folder", expected="a file")


def not_a_file_error(path: str) -> ToolError:
    return ToolError(
        "files.not-a-file", f"{quote_path(path)} is a pipe, a socket or a device", expected="an ordinary file"
    )


def path_error(error: OSError, path: str) -> ToolError:
    """The error of the system about this path, as a ToolError."""
    name = quote_path(path)
    match error.errno:
        case errno.ENOENT:
            return ToolError("files.missing", f"there is no {name}")
        case errno.ENOTDIR:
            return ToolError("files.not-a-folder", f"{name} goes through a file as if that were a folder")
        case errno.EISDIR:
            return is_folder_error(path)
        case errno.EEXIST | errno.ENOTEMPTY:
            return ToolError("files.exists", f"{name} is already there", fix="Choose another name or delete it first.")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ToolError(
                "files.denied",
                f"the system does not allow this with {name}: {error.strerror}",
                fix="Check its permissions.",
            )
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return ToolError(
                "files.disk-full",
                f"there is no room to write {name}: {error.strerror}",
                fix="Free some space and try again; nothing was changed.",
            )
        case errno.ENAMETOOLONG | errno.EINVAL | errno.EILSEQ:
            return ToolError("files.bad-path", f"the file system cannot hold the name {name}: {error.strerror}")
        case _:
            return ToolError("files.failed", f"{name}: {error.strerror or error}")


CONFIGURATION = "bicameral.toml"
STATE = ".bicameral"
_BY_NAME = {CONFIGURATION: "a configuration", STATE: "in a folder of journals, databases and plans"}
_DATABASE = ("-wal", "-shm", "-journal")
_PACKAGES = ("site-packages", "dist-packages")
_MOST_ENTRIES = 200_000
"""A folder with more entries is not searched, and counts as one that holds something protected."""

FileIdentity = tuple[int, int]


def normalize_name(name: str) -> str:
    """A name as file systems may compare it: without case, in one Unicode form, without what some of them drop.

    Some ignore invisible characters, some drop dots and blanks at the end, and `name:stream` is `name` on NTFS.

    Example:
        >>> normalize_name("BICAMERAL.TOML. ")
        'bicameral.toml'
    """
    if name.isascii():
        folded = name.lower()
    else:
        visible = (each for each in name if unicodedata.category(each) != "Cf")
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", "".join(visible)).casefold())
    return folded.partition(":")[0].rstrip(" .") or folded


@dataclass(frozen=True, slots=True)
class ProtectedPath:
    """A protected file or folder.

    Args:
        path: The path.
        what: What it is, for messages ("a policy file").
        whole: Whether it is a folder that is protected with everything in it.
    """

    path: Path
    what: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """What no tool may change, in addition to the names that are protected everywhere.

    `exempt` are paths that may be changed all the same: a toolbox owns its calendar, and no other tool may change it.
    """

    paths: tuple[ProtectedPath, ...] = ()
    exempt: tuple[Path, ...] = ()

    def with_paths(self, paths: Iterable[ProtectedPath]) -> ProtectedPaths:
        """The same with more paths."""
        return ProtectedPaths(
            (*self.paths, *(each for given in paths for each in _spellings_and_links(given))), self.exempt
        )

    def with_exempt(self, paths: Iterable[Path]) -> ProtectedPaths:
        """The same for the owner of these files."""
        return ProtectedPaths(self.paths, (*self.exempt, *paths))

    def find_inside(self, folder: Path) -> tuple[Path, str] | None:
        """The first protected entry in a folder, and what it is; None if there is none.

        It counts at any depth: a program that may write in a folder may also rename the folders in it.
        """
        guard, count = ProtectionGuard(self), 0
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                count += 1
                if reason := guard.entry_reason(Path(parent, name), None):
                    return Path(parent, name), reason
            if count > _MOST_ENTRIES:
                return folder, "too large to be looked through for files that are protected"
        return None


def process_protected_paths() -> ProtectedPaths:
    """What is protected without configuration: Bicameral's own folders, and the running program."""
    return _cached_process_paths(tuple(map(user_folder, FOLDER_KINDS)), os.environ.get("PYTHONSTARTUP", ""))


@lru_cache(maxsize=16)
def _cached_process_paths(folders: tuple[Path, ...], startup: str) -> ProtectedPaths:
    return ProtectedPaths().with_paths(_iter_process_paths(folders, startup))


def _iter_process_paths(folders: tuple[Path, ...], startup: str) -> Iterator[ProtectedPath]:
    for folder in folders:
        yield ProtectedPath(folder, "in a folder of Bicameral's own", whole=True)
    yield ProtectedPath(Path(__file__).parents[1], "in the code of Bicameral", whole=True)
    if sys.prefix != sys.base_prefix:
        yield ProtectedPath(Path(sys.prefix), "in the Python environment that runs this", whole=True)
    for folder in sys.path:
        if os.path.basename(folder) in _PACKAGES:
            yield ProtectedPath(Path(folder), "among the installed Python packages", whole=True)
    if startup:
        yield ProtectedPath(Path(startup).absolute(), "what Python runs when it starts")


def protected_database_files(path: Path, what: str) -> Iterator[ProtectedPath]:
    """A SQLite file and the files beside it that SQLite reads back after a crash."""
    for ending in ("", *_DATABASE):
        yield ProtectedPath(path.with_name(path.name + ending), what)


def _spellings_and_links(protected: ProtectedPath) -> Iterator[ProtectedPath]:
    """The path as spelled and resolved, and every link on the way: changing a link replaces the file."""
    spelled = Path(os.path.abspath(protected.path))
    real = Path(os.path.realpath(spelled))
    yield ProtectedPath(spelled, protected.what, protected.whole)
    if real == spelled:
        return
    yield ProtectedPath(real, protected.what, protected.whole)
    for each in (spelled, *spelled.parents):
        with suppress(OSError):
            if stat.S_ISLNK(os.lstat(each).st_mode):
                yield ProtectedPath(each, f"a link to {protected.what}")


class ProtectionGuard:
    """Checks one operation against the protected paths as they are on disk when it begins."""

    def __init__(self, protected: ProtectedPaths) -> None:
        self._exempt = frozenset(map(str, protected.exempt))
        self._folders: dict[FileIdentity, str] = {}
        self._files: dict[FileIdentity, str] = {}
        self._places: dict[tuple[FileIdentity, str], str] = {}
        self._parents: dict[str, FileIdentity | None] = {}
        # Also by spelling: a folder that does not exist yet has no identity.
        self._spelled: list[tuple[Path, str]] = []
        for each in protected.paths:
            self._add(each)

    def _add(self, protected: ProtectedPath) -> None:
        path = protected.path
        # By device and inode: this also covers hard links and other spellings.
        with suppress(OSError):
            info = os.lstat(path)
            if protected.whole and stat.S_ISDIR(info.st_mode):
                self._folders[info.st_dev, info.st_ino] = protected.what
            elif not protected.whole:
                self._files[info.st_dev, info.st_ino] = protected.what
        if protected.whole:
            self._spelled.append((path, protected.what))
        # By parent and name: this also covers a file that does not exist yet.
        if (parent := self._identity(str(path.parent))) is not None:
            self._places[parent, normalize_name(path.name)] = protected.what

    def _identity(self, folder: str) -> FileIdentity | None:
        if folder not in self._parents:
            try:
                info = os.stat(folder)
                self._parents[folder] = (info.st_dev, info.st_ino)
            except OSError:
                self._parents[folder] = None
        return self._parents[folder]

    def folder_reason(self, fd: int, name: str) -> str | None:
        """Why nothing in an opened folder on the way to a file may be changed, or None."""
        if reason := _BY_NAME.get(normalize_name(name)):
            return reason
        if not self._folders:
            return None
        info = os.fstat(fd)
        return self._folders.get((info.st_dev, info.st_ino))

    def entry_reason(self, path: Path, fd: int | None) -> str | None:
        """Why the entry at a path may not be changed, or None; `fd` is its opened folder."""
        name = normalize_name(path.name)
        if reason := _BY_NAME.get(name):
            return reason
        # After the names: a toolbox cannot be exempt from those.
        if str(path) in self._exempt:
            return None
        with suppress(OSError):
            parent = os.stat(path.parent) if fd is None else os.fstat(fd)
            if reason := self._places.get(((parent.st_dev, parent.st_ino), name)):
                return reason
        with suppress(OSError):
            info = os.lstat(path) if fd is None else os.stat(path.name, dir_fd=fd, follow_symlinks=False)
            key = (info.st_dev, info.st_ino)
            return self._folders.get(key) or self._files.get(key)
        return None

    def path_reason(self, path: Path) -> str | None:
        """Why a resolved path may not be changed, or None, without opening anything."""
        for each in (path, *path.parents):
            if reason := _BY_NAME.get(normalize_name(each.name)):
                return reason
        if str(path) in self._exempt:
            return None
        for folder, what in self._spelled:
            if path == folder or path.is_relative_to(folder):
                return what
        if self._folders:
            for each in path.parents:
                with suppress(OSError):
                    info = os.stat(each)
                    if reason := self._folders.get((info.st_dev, info.st_ino)):
                        return reason
        return self.entry_reason(path, None)


def protected_path_error(path: str, what: str) -> ToolError:
    """The error for a path that no tool may change."""
    return ToolError(
        "tools.protected",
        f"{quote_path(path)} is {what}, and no tool may change that",
        fix="Choose another name or folder. What decides how runs behave is changed by hand.",
    )


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What is known of the file that a call would write.

    Args:
        executed: Whether other programs execute or obey it; None if it is not known yet.
        copied: Whether the content comes from a file, a mail or a program, and not from the arguments alone: it may be
            untrusted.
        protected: Why no tool may change it, if so.
        replaces: The files that are there already and whose content would be replaced; None if it is not known yet.
    """

    executed: bool | None = None
    copied: bool = False
    protected: str | None = None
    replaces: tuple[str, ...] | None = ()


FAILED_TARGET = WriteTarget(copied=True)
"""The target where finding it failed. Fail closed: it may be executed, and its content may be untrusted."""

FindTarget = Callable[[Mapping[str, Any]], WriteTarget]
"""The target of a call with these arguments. Before a run only the literals are given."""

_EXECUTED_SUFFIXES = frozenset(
    (
        # Programs, scripts, libraries and the sources that build them.
        "py pyw pyi pyc pyo pyd pyz pth ipynb sh bash zsh fish ksh csh tcsh command bat cmd ps1 psm1 psd1 vbs vbe "
        "js mjs cjs jse jsx ts tsx mts cts wsf wsh hta rb pl pm php phtml phar lua tcl awk r jl go rs java kt kts "
        "groovy scala swift c h cc cpp hpp cs fs ex exs erl hs ml clj el vim nu exe com scr msi msp dll so dylib cpl "
        "jar war class apk deb rpm pkg dmg appimage elf wasm "
        # Files that desktops, service managers and shells start or obey.
        "desktop service timer plist lnk url webloc reg inf scf job scpt applescript cron crontab "
        # Build files.
        "mk mak cmake gradle ninja bzl nix dockerfile containerfile tf "
        # Documents with code that viewers run: pages and drawings with scripts, documents with macros.
        "html htm xhtml xht mht mhtml svg svgz xsl xslt chm iqy settingcontent-ms library-ms "
        "docm dotm xlsm xltm xlam xlsb xla xll pptm potm ppsm ppam sldm"
    ).split()
)
_EXECUTED_NAMES = frozenset(
    (
        # Build files, package manifests, and settings that name commands to run.
        "makefile gnumakefile dockerfile containerfile jenkinsfile vagrantfile rakefile gemfile procfile justfile "
        "brewfile podfile fastfile guardfile capfile snakefile caddyfile tiltfile earthfile sconstruct sconscript "
        "wscript build pipfile cmakelists.txt meson.build package.json package-lock.json composer.json deno.json "
        "tsconfig.json pyproject.toml setup.cfg tox.ini pytest.ini cargo.toml go.mod go.work build.xml pom.xml "
        "taskfile.yml taskfile.yaml pnpm-workspace.yaml docker-compose.yml docker-compose.yaml compose.yml "
        "compose.yaml azure-pipelines.yml appveyor.yml bitbucket-pipelines.yml cloudbuild.yaml serverless.yml "
        "environment.yml crontab authorized_keys authorized_keys2 bashrc bash.bashrc zshrc zshenv sudoers rc.local "
        "mailcap autorun.inf"
    ).split()
)
_EXECUTED_FOLDERS = frozenset(
    (
        "bin sbin venv virtualenv site-packages dist-packages node_modules __pycache__ autostart startup launchagents "
        "launchdaemons systemd init.d cron.d cron.daily cron.hourly cron.weekly cron.monthly profile.d sudoers.d udev"
    ).split()
)
_HIDDEN_FOLDERS = frozenset(
    (
        ".git .github .gitlab .circleci .husky .vscode .idea .devcontainer .ssh .gnupg .config .kube .aws .docker "
        ".cargo .npm .venv .ipython .jupyter .emacs.d .vim"
    ).split()
)
"""Hidden folders that count also where the working folder lies inside them."""
_SYSTEM_FOLDERS = ("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/var/spool", "/Library", "/System")
_REQUIREMENTS = re.compile(r"(requirements|constraints)[\w.-]*\.(txt|in)")
TABLE_SUFFIXES = (".csv", ".tsv", ".tab")
"""Tables as text, whose cells spreadsheets may interpret as formulas."""
SHEET_SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
"""Files of spreadsheets, which are read as tables and never written."""

_ANY_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def is_executed_name(path: Path, base: Path | None = None) -> bool:
    """Whether other programs execute or obey a file with this name at this place.

    Hidden files and folders are settings of programs, and people do not see them; below the working folder each counts.

    Example:
        >>> is_executed_name(Path("report.PY")), is_executed_name(Path("notes.txt"))
        (True, False)
    """
    inner = path.relative_to(base) if base is not None and path.is_relative_to(base) else path
    if any(part.startswith(".") and part not in (".", "..") for part in inner.parts):
        return True
    if any(normalize_name(part) in _EXECUTED_FOLDERS for part in inner.parts[:-1]):
        return True
    if any(part.lower() in _HIDDEN_FOLDERS for part in path.parts[:-1]):
        return True
    if inner is path and path.is_absolute() and any(path.is_relative_to(folder) for folder in _SYSTEM_FOLDERS):
        return True
    name = normalize_name(path.name)
    return (
        name in _EXECUTED_NAMES
        or ("." in name and name.rpartition(".")[2] in _EXECUTED_SUFFIXES)
        or name.partition(".")[0] in ("dockerfile", "containerfile", "makefile", "jenkinsfile")
        or _REQUIREMENTS.fullmatch(name) is not None
    )


def is_executable_file(path: Path) -> bool:
    """Whether the existing file is a program: it is executable, or begins with `#!`."""
    try:
        info = os.lstat(path)
        if not stat.S_ISREG(info.st_mode):
            return False
        if info.st_mode & _ANY_EXECUTE:
            return True
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def target_by_name(names: tuple[str, ...], *, copied: bool) -> FindTarget:
    """The target by the file names in these arguments alone, for a tool that declares no more."""

    def find(given: Mapping[str, Any]) -> WriteTarget:
        if not all(name in given for name in names):
            return WriteTarget(copied=copied)
        paths = (Path(each) for name in names for each in _path_texts(given[name]))
        return WriteTarget(executed=any(map(is_executed_name, paths)), copied=copied)

    return find


def _path_texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []  # pyright: ignore[reportUnknownVariableType]

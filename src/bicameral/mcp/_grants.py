"""What a confined server gets of what it is granted: never what Bicameral keeps, nor the files of MCP clients.

A server that could write the database of questions would answer its own, and one that could write the configuration
would end its confinement. Grants name whole folders, often the home folder, and the kernel can only add to what is
granted, so that a folder with such a place in it is granted entry by entry, without the way to that place. Whoever may
not write in a folder cannot rename what is in it: a server cannot move a protected place to where it may write.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bicameral.cache import FOLDER_KINDS, user_folder, write_private_file
from bicameral.errors import ToolError
from bicameral.mcp._settings import McpSettings
from bicameral.tools import ProtectedPath, ProtectedPaths, process_protected_paths

_MAX_ENTRIES = 4_000
"""Entries that one grant may become: each is a rule of the kernel, and a file that is kept open."""
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class ProtectedPlaces:
    """What no confined server gets, besides what is protected on every machine.

    Args:
        unwritable: Files and folders that it may read at most.
        private: Files and folders that it may not read either.
    """

    unwritable: tuple[ProtectedPath, ...] = ()
    private: tuple[ProtectedPath, ...] = ()


FindPlaces = Callable[[], ProtectedPlaces]
"""The protected places as they are when a server is started."""


@dataclass(frozen=True, slots=True)
class ServerGrants:
    """What the sandbox of a server is told.

    Args:
        read: Files and folders to read.
        write: Files and folders to change.
        denied: What inside of them can be neither read nor changed.
        notes: For a person: what is left out of what the settings grant.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    denied: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def server_grants(name: str, settings: McpSettings, base: Path, places: ProtectedPlaces | None = None) -> ServerGrants:
    """What a server gets of the files that its settings grant; an error names a grant that is refused.

    Args:
        name: The server, for errors.
        settings: Its settings.
        base: The working folder: relative paths start here.
        places: What is protected besides what is on every machine.

    Example:
        >>> server_grants("notes", McpSettings(command=("x",), write=("/home/ada",)), Path("/srv")).notes
        ('/home/ada is granted without /home/ada/.local/state/bicameral (in a folder of Bicameral\\'s own): …',)
    """
    read, write = (tuple(_resolve(granted, base)) for granted in (settings.read, settings.write))
    if not read and not write:
        return ServerGrants()
    given = places or ProtectedPlaces()
    private = _Places([*_own_places(), *given.private])
    # Compiled code and packages can be read: a server may run in the environment of this Python.
    closed = _Places([*process_protected_paths().paths, *_own_places(), *given.private, *given.unwritable])
    for granted in read:
        private.refuse_inside(name, granted, "read")
    for granted in write:
        closed.refuse_inside(name, granted, "write")
    single: list[Path] = []
    whole: list[Path] = []
    notes: list[str] = []
    for folder in write:
        entries = _GrantedEntries(name, folder, closed)
        single += entries.found
        if entries.way:
            # What is left out can be seen as before, unless it is private.
            whole.append(folder)
            notes.append(entries.note())
    denied = [each for each in private.paths if any(each.is_relative_to(granted) for granted in (*read, *write))]
    notes += [
        f"{granted} is read without {_listed(private.inside(granted))}"
        for granted in read
        if granted not in write and private.inside(granted)
    ]
    return ServerGrants((*read, *whole), tuple(dict.fromkeys(single)), tuple(dict.fromkeys(denied)), tuple(notes))


def _resolve(names: Iterable[str], base: Path) -> Iterator[Path]:
    for each in names:
        path = base / os.path.expanduser(each)
        if not path.exists():
            raise ToolError(
                "mcp.no-such-path", f"{str(path)!r} is granted to an MCP server, and it is not there", fix="Make it."
            )
        # Resolved once, here: what is compared with the protected places is what the sandbox gets.
        yield Path(os.path.realpath(path))


def _own_places() -> Iterator[ProtectedPath]:
    for kind in FOLDER_KINDS:
        yield ProtectedPath(user_folder(kind), "in a folder of Bicameral's own", whole=True)
    for paths in _client_records():
        yield from (ProtectedPath(path, "the file of an MCP client") for path in paths)


class _Places:
    """Protected places as the kernel finds them: with every link on the way to one."""

    def __init__(self, protected: Iterable[ProtectedPath]) -> None:
        self._what: dict[Path, str] = {}
        self._identities: dict[tuple[int, int], Path] = {}
        for each in ProtectedPaths().with_paths(protected).paths:
            path = Path(os.path.realpath(each.path.parent)) / each.path.name
            self._what.setdefault(path, each.what)
            with suppress(OSError):
                info = path.lstat()
                self._identities.setdefault((info.st_dev, info.st_ino), path)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(self._what)

    def inside(self, folder: Path) -> list[Path]:
        """The places below a folder, without those that lie in others."""
        found = [each for each in self._what if each != folder and each.is_relative_to(folder)]
        return [each for each in found if not any(each != other and each.is_relative_to(other) for other in found)]

    def is_one(self, path: Path, info: os.stat_result) -> bool:
        """Whether an entry is a protected one: by its path, or as a hard link to it."""
        return path in self._what or (info.st_dev, info.st_ino) in self._identities

    def what(self, path: Path) -> str:
        return self._what[path]

    def refuse_inside(self, name: str, granted: Path, how: str) -> None:
        """Raise `mcp.protected-path` for a grant that is a protected place, or in one."""
        found = next((each for each in self._what if granted.is_relative_to(each)), None)
        if found is None:
            info = granted.lstat()
            found = self._identities.get((info.st_dev, info.st_ino))
        if found is None:
            return
        raise ToolError(
            "mcp.protected-path",
            f"the MCP server {name!r} is granted to {how} {str(granted)!r}, and {str(found)!r} is {self._what[found]}: "
            f"no server may {how} that",
            fix="Grant it a folder with its own files alone, and give it that one in its arguments.",
        )


@dataclass(slots=True)
class _GrantedEntries:
    """The entries of a granted folder that can be granted whole.

    Args:
        server: The server, for errors.
        folder: The folder.
        closed: What must not be written.
    """

    server: str
    folder: Path
    closed: _Places
    found: list[Path] = field(default_factory=list[Path])
    way: list[Path] = field(default_factory=list[Path])
    """The folders between the granted one and what is protected: they are not granted themselves."""
    _home: Path = field(init=False)

    def __post_init__(self) -> None:
        self._home = Path(os.path.realpath(os.path.expanduser("~")))
        self._add(self.folder, self.closed.inside(self.folder))

    def _add(self, path: Path, inside: Sequence[Path]) -> None:
        if len(self.found) >= _MAX_ENTRIES:
            raise ToolError(
                "mcp.protected-path",
                f"the MCP server {self.server!r} is granted to write {str(self.folder)!r}, which holds "
                f"{_listed(self.closed.inside(self.folder))} and too many other entries to grant each",
                fix="Grant it a folder with its own files alone.",
            )
        if not inside and not (path.is_dir() and self._home.is_relative_to(path)):
            self.found.append(path)
            return
        self.way.append(path)
        for child, info in _entries(path):
            # In the home folder, what begins with a dot says what the user's own programs start.
            if self.closed.is_one(child, info) or (path == self._home and child.name.startswith(".")):
                continue
            self._add(child, [each for each in inside if each.is_relative_to(child)])

    def note(self) -> str:
        """What is left out, for a person."""
        left = self.closed.inside(self.folder)
        why = ", ".join(dict.fromkeys(map(self.closed.what, left)))
        dots = f", and nothing in {self._home} whose name begins with a dot can be changed" * (self._home in self.way)
        return (
            f"{self.folder} is granted without {_listed(left)}{f' ({why})' if why else ''}: what else is there can be "
            f"changed, but nothing new can be made directly in {_listed(self.way)}{dots}. A folder of its own has no "
            "such limits"
        )


def _entries(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files and folders in a folder. What a link leads to is granted where it lies, or not at all."""
    with suppress(PermissionError), os.scandir(folder) as found:
        for each in sorted(found, key=lambda entry: entry.name):
            with suppress(OSError):
                if each.is_file(follow_symlinks=False) or each.is_dir(follow_symlinks=False):
                    yield folder / each.name, each.stat(follow_symlinks=False)


def _listed(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(map(str, paths[:_MOST_NAMED])) + more


# The files of MCP clients: they say what a client starts, and hold the secrets of its servers.


def _records_folder() -> Path:
    return user_folder("state") / "mcp-clients"


def _record_of(file: Path) -> Path:
    return _records_folder() / hashlib.sha256(os.fsencode(file)).hexdigest()[:32]


def record_client_file(file: Path, paths: Iterable[Path]) -> None:
    """Keep every confined server from a client's file from now on.

    Args:
        file: The client's file.
        paths: The file, and those beside it with the same content.
    """
    folder = _records_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The byte that no path has.
    write_private_file(_record_of(file), [b"\0".join(map(os.fsencode, paths))])


def forget_client_file(file: Path) -> None:
    """No longer keep the servers from a client's file."""
    _record_of(file).unlink(missing_ok=True)


def recorded_client_files() -> Iterator[Path]:
    """The files of clients that servers are kept from."""
    return (paths[0] for paths in _client_records())


def _client_records() -> Iterator[list[Path]]:
    with suppress(FileNotFoundError):
        for record in sorted(_records_folder().iterdir()):
            with suppress(FileNotFoundError):
                # One that cannot be read is an error: without it a server would get what it must not.
                if paths := [Path(os.fsdecode(each)) for each in record.read_bytes().split(b"\0") if each]:
                    yield paths

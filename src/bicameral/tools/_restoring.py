"""Putting files back: exact paths, checked like those of a plan, and no link followed."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from bicameral.errors import ToolError
from bicameral.tools import _file_operations as writes
from bicameral.tools._changes import FileState
from bicameral.tools._folders import Folders

_NEW_FILE = 0o600


def read_exact(folders: Folders, path: Path) -> tuple[FileState | None, bytes | None]:
    """What stands at exactly this path now, and its content unless it is too large to be kept."""
    try:
        with folders.open_exact(path) as at:
            return writes.read_entry(at, str(path))
    except ToolError as error:
        # A folder on the way is gone, and the file with it.
        if error.code == "files.missing":
            return None, None
        raise


def restore_exact(folders: Folders, path: Path, state: FileState, content: bytes) -> None:
    """Give a file its former content, atomically; one that is gone also gets its former mode."""
    with folders.open_exact(path, create=True) as at:
        info = writes.entry_stat(at)
        if state.kind == "link":
            if info is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            writes.make_link(at, content)
            return
        if info is not None and stat.S_ISLNK(info.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        writes.write_file(at, [content], str(path), replace=info is not None, mode=_NEW_FILE)
        if info is None:
            writes.set_mode(at, state.mode, str(path))


def move_back(folders: Folders, source: Path, target: Path) -> None:
    """Move a file to where it was, if nothing is there."""
    with folders.open_exact(source) as at, folders.open_exact(target, create=True) as to:
        writes.move_file(at, to, str(source), str(target))


def remove_exact(folders: Folders, path: Path, *, folder: bool) -> bool:
    """Remove a file, or a folder if it is empty; whether it is gone."""
    with folders.open_exact(path) as at:
        if folder:
            return writes.remove_folder(at)
        writes.delete_file(at, str(path))
    return True

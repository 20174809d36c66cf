"""Putting files back: exact paths, checked like those of a plan, and no link followed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from bicameral.errors import ToolError
from bicameral.tools import _file_operations as writes
from bicameral.tools._changes import FileState
from bicameral.tools._folders import Folders


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


def restore_exact(folders: Folders, path: Path, state: FileState, content: bytes, *, keep_mode: bool = False) -> None:
    """Give a file its former content and mode, atomically.

    Args:
        folders: The folders that may be written.
        path: The file.
        state: Its former state.
        content: Its former content, of a link where it led.
        keep_mode: Whether a file that is there keeps the mode that it has now.
    """
    with folders.open_exact(path, create=True) as at:
        info = writes.entry_stat(at)
        if state.kind == "link":
            if info is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            writes.make_link(at, content)
            return
        mode = None if keep_mode and info is not None else state.mode
        writes.write_file(at, [content], str(path), replace=info is not None, exact_mode=mode)


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

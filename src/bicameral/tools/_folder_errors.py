"""What can be wrong with a path or a file, in words and with a code."""

from __future__ import annotations

import errno
import unicodedata

from bicameral.display import hidden_places
from bicameral.errors import ToolError

LONGEST_NAME = 255
LONGEST_PATH = 4096


def quoted(path: str) -> str:
    """A path as a message shows it: short, and with nothing in it that a screen would hide."""
    return repr(path if len(path) <= 100 else f"{path[:60]}...{path[-30:]}")


def checked_text(path: str) -> str:
    """The path itself, if a person could read it and a file system could hold it."""
    if not path.strip():
        raise ToolError("files.bad-path", "the path is empty", expected="the name of a file or folder")
    for index, kind in hidden_places(path).items():
        # Other systems write what their names may not hold in private characters, and wide spaces are seen.
        if kind != "blank" and unicodedata.category(path[index]) != "Co":
            raise ToolError(
                "files.bad-path",
                f"the path {quoted(path)} has the {kind} character U+{ord(path[index]):04X} at position {index}",
                expected="only characters that can be seen",
            )
    if "\n" in path or "\t" in path:
        raise ToolError("files.bad-path", f"the path {quoted(path)} has a line break or a tab", expected="one line")
    if len(path.encode()) >= LONGEST_PATH or any(len(name.encode()) > LONGEST_NAME for name in path.split("/")):
        raise ToolError(
            "files.bad-path",
            f"the path {quoted(path)} is too long",
            expected=f"names of at most {LONGEST_NAME} bytes, {LONGEST_PATH} bytes in all",
        )
    return path


def is_folder(path: str) -> ToolError:
    return ToolError("files.is-folder", f"{quoted(path)} is a folder", expected="a file")


def not_a_file(path: str) -> ToolError:
    return ToolError("files.not-a-file", f"{quoted(path)} is a pipe, a socket or a device", expected="an ordinary file")


def failure(error: OSError, path: str) -> ToolError:
    """The error that tells a person what the system said about this path."""
    name = quoted(path)
    match error.errno:
        case errno.ENOENT:
            return ToolError("files.missing", f"there is no {name}")
        case errno.ENOTDIR:
            return ToolError("files.not-a-folder", f"{name} goes through a file as if that were a folder")
        case errno.EISDIR:
            return is_folder(path)
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

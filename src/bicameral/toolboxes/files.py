"""The files toolbox: read, write, list, search, compare, copy, move and delete files inside the configured folders.

The text of PDF, Word and spreadsheet files and of scans is read as that of any other file (`_documents`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from bicameral.errors import ToolError
from bicameral.toolboxes._table_files import has_formulas, is_table_path
from bicameral.toolboxes._text import compare_texts, document_kind
from bicameral.tools import (
    DOCUMENT_MEDIA,
    Folders,
    Origin,
    Selection,
    Settings,
    Surroundings,
    Tool,
    Toolbox,
    WriteTarget,
    note_selection,
    tool,
)
from bicameral.types import FilePath

_LINE_ENDS = re.compile(r"\r\n|\n|\r")


NOTES = "notes.txt"


class FilesSettings(Settings):
    """Limits of the files toolbox, and the file for notes."""

    max_bytes: int = Field(64 * 1024 * 1024, gt=0, description="the largest file that is read")
    max_files: int = Field(100_000, gt=0, description="the most files that one listing gives")
    notes: str = Field(NOTES, max_length=200, description="where a note goes that names no file; empty for nowhere")


@dataclass(frozen=True, slots=True)
class File:
    """A file in a listing; `path` is what the other tools take."""

    path: str
    name: str
    folder: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class Match:
    """A line of a file in which a text was found."""

    path: str
    number: int
    line: str


def split_lines(text: str) -> list[str]:
    """The lines of a text without their line ends; a line end at the very end does not make an empty line."""
    lines = _LINE_ENDS.split(text)
    return lines[:-1] if lines[-1] == "" else lines


@dataclass(frozen=True, slots=True)
class FileTools:
    """The implementation of the tools; each public method without `_target` in its name is one tool."""

    folders: Folders
    settings: FilesSettings

    def read_text(self, path: FilePath) -> str:
        """Read a whole text file."""
        if document_kind(path) is None:
            return self.folders.read_text(path, max_bytes=self.settings.max_bytes)
        from bicameral.toolboxes._documents import read_document

        return read_document(self.folders.read_bytes(path, max_bytes=self.settings.max_bytes), path).text

    def read_lines(self, path: FilePath) -> list[str]:
        """Read the lines of a text file."""
        return split_lines(self.read_text(path))

    def diff_files(self, old: FilePath, new: FilePath) -> str:
        """Compare two text files; gives a unified diff."""
        return compare_texts(self.read_text(old), self.read_text(new), old, new)

    def write_text(self, path: str, text: str) -> None:
        """Write text to a file, replacing it."""
        self.folders.write_text(path, text)

    def write_lines(self, path: str, lines: list[str]) -> None:
        """Write lines to a file, replacing it."""
        self.folders.write_text(path, "".join(f"{line}\n" for line in lines))

    def append_text(self, path: str, text: str) -> None:
        """Add text at the end of a file, on a new line."""
        self.folders.append_line(path, text)

    def list_files(
        self,
        folder: str = ".",
        pattern: Annotated[str, "like *.txt"] = "*",
        recursive: Annotated[bool, "also in subfolders"] = False,
    ) -> list[File]:
        """List the files in a folder."""
        return list(self._iter_files(folder, pattern, recursive=recursive))

    def search_files(self, text: str, folder: str = ".", pattern: Annotated[str, "like *.txt"] = "*") -> list[Match]:
        """Find the lines that contain a text in the files of a folder and its subfolders."""
        if not text:
            raise ToolError("files.bad-search", "there is no text to search for", expected="at least one character")
        wanted = text.casefold()
        files, documents = self._searched_files(folder, pattern)
        found = [
            Match(file.path, number, line)
            for file in files
            for number, line in enumerate(self._lines_or_none(file.path), 1)
            if wanted in line.casefold()
        ]
        if documents:
            names = tuple(file.path for file in documents)
            note_selection(Selection(len(files), len(found), "lines", f"contain {text!r}", 0, len(documents), names))
        return found

    def file_exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return self.folders.exists(path)

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file; the target must be new or a folder."""
        self.folders.copy(source, self._target_path(source, target))

    def move_file(self, source: str, target: str) -> None:
        """Move or rename a file; the target must be new or a folder."""
        self.folders.move(source, self._target_path(source, target))

    def delete_file(self, path: str) -> None:
        """Delete a file."""
        self.folders.delete(path)

    def make_folder(self, path: str) -> None:
        """Make a folder."""
        self.folders.make_folder(path)

    # Targets are computed twice: before a run from the literals of the plan alone, and again in the run.

    def text_target(self, given: Mapping[str, Any]) -> WriteTarget:
        """The target of writing text. A table counts as executed if a spreadsheet would compute one of its cells."""
        target, path = self.folders.target(given.get("path")), given.get("path")
        if target.executed is not False or not is_table_path(path):
            return target
        text = given.get("text", given.get("lines"))
        if text is None:
            return replace(target, executed=None)
        return replace(target, executed=has_formulas(text if isinstance(text, str) else "\n".join(text)))

    def replaced_target(self, given: Mapping[str, Any]) -> WriteTarget:
        """The same for writing a whole file: the content that is there already is lost."""
        return replace(self.text_target(given), replaces=self.folders.replaced_files(given.get("path")))

    def copy_target(self, given: Mapping[str, Any]) -> WriteTarget:
        """The target of a copy. Whether `target` is a folder may change before the call, so both cases count."""
        source, target = given.get("source"), given.get("target")
        copied = not (isinstance(source, str) and self.folders.is_trusted(source))
        if not isinstance(target, str):
            return WriteTarget(copied=copied)
        as_file = self.folders.target(target, copied=copied)
        # Before anything else is asked of the path: what is protected is refused, whatever the source is.
        if as_file.protected:
            return as_file
        if not isinstance(source, str):
            return as_file if as_file.executed else replace(as_file, executed=None)
        inside = self.folders.target(f"{target.rstrip('/')}/{Path(source).name}", copied=copied)
        # A file that becomes a table by its new name may have cells that a spreadsheet computes.
        becomes_table = is_table_path(target) and not is_table_path(source)
        executed = as_file.executed or inside.executed or becomes_table or self.folders.is_program(source)
        inside_protected = inside.protected if self._target_path(source, target) != target else None
        return WriteTarget(executed, copied, inside_protected)

    def move_target(self, given: Mapping[str, Any]) -> WriteTarget:
        """The target of a move; it is protected if the source is, since moving removes the source."""
        target = self.copy_target(given)
        return replace(target, protected=target.protected or self.folders.target(given.get("source")).protected)

    def _target_path(self, source: str, target: str) -> str:
        """The path of the target file: in a folder (or a path that ends in `/`) the source keeps its name."""
        if target.endswith("/") or self.folders.is_folder(target, "write"):
            return f"{target.rstrip('/')}/{Path(source).name}"
        return target

    def _iter_files(self, folder: str, pattern: str, *, recursive: bool) -> Iterator[File]:
        recursive = recursive or "/" in pattern or "**" in pattern
        wanted = pattern.replace("**/", "").casefold() or "*"
        top = self.folders.resolve_readable(folder)
        count = 0
        skipped: list[str] = []
        for found in self.folders.list_files(
            folder, recursive=recursive, skip=lambda path: skipped.append(self.folders.display_path(path))
        ):
            inner = found.path.relative_to(top)
            # Hidden files, and files in hidden folders, are listed only if the pattern begins with a dot.
            if any(part.startswith(".") for part in inner.parts) and not wanted.startswith("."):
                continue
            if not fnmatchcase((str(inner) if "/" in wanted else inner.name).casefold(), wanted):
                continue
            count += 1
            if count > self.settings.max_files:
                raise ToolError(
                    "files.too-many",
                    f"there are more than {self.settings.max_files:,} files in {folder!r}",
                    fix="Name a narrower folder or pattern.",
                )
            shown = Path(self.folders.display_path(found.path))
            yield File(
                path=str(shown),
                name=shown.name,
                folder=str(shown.parent),
                size=found.info.st_size,
                modified=datetime.fromtimestamp(int(found.info.st_mtime)),
            )
        if skipped:
            told = f"in {folder!r}, without the folders that may not be read"
            note_selection(Selection(count, count, "files", told, skipped=len(skipped), names=tuple(skipped)))

    def _searched_files(self, folder: str, pattern: str) -> tuple[list[File], list[File]]:
        """The files to search, and the documents that are left out.

        Each document takes a process of its own, so that documents are searched only if the pattern names their ending.
        """
        listed = list(self._iter_files(folder, pattern, recursive=True))
        documents = [] if document_kind(pattern.lower()) else [file for file in listed if document_kind(file.path)]
        left_out = {file.path for file in documents}
        # Nobody looks for words in a picture.
        missed = [file for file in documents if document_kind(file.path) != "picture"]
        return [file for file in listed if file.path not in left_out], missed

    def _lines_or_none(self, path: str) -> list[str]:
        """The lines of a file, or none if it cannot be read as text."""
        try:
            return self.read_lines(path)
        except ToolError:
            return []


_SAVE_WORDS = (
    *("save", "write", "put", "store", "create", "export", "dump", "make", "keep", "collect"),
    *("replace", "rewrite", "overwrite", "merge", "join", "combine", "change", "convert", "in place"),
)


# The content and the name of a file are untrusted: it may be a saved attachment, a download, or lie in a shared folder.
# Its size and time come from the file system. A search may follow a link to a file in another folder, so its lines are
# untrusted in every folder.
_UNTRUSTED = Origin("third_party")
_SYSTEM = Origin("system")
_LISTING = {"": _UNTRUSTED, "[].size": _SYSTEM, "[].modified": _SYSTEM}


def _build(settings: FilesSettings, surroundings: Surroundings) -> list[Tool]:
    folders = surroundings.folders
    files = FileTools(folders, settings)
    read = tool(
        effect="read",
        # The pages of a scan take ten seconds each.
        timeout=240,
        origins=_UNTRUSTED,
        owned=lambda given: folders.is_trusted(given["path"]),
        accepts=("text/*", *DOCUMENT_MEDIA),
        gives=("text/plain",),
        capabilities=("file-reading", "document-to-text", "pdf-to-text", "document-ocr"),
    )
    listing = tool(
        effect="read",
        origins=_LISTING,
        refers={"folder": "folder"},
        owned=lambda given: folders.is_trusted(given["folder"]),
    )
    done = {"": _SYSTEM}
    save = partial(
        tool,
        effect="write",
        idempotent=True,
        words=_SAVE_WORDS,
        refers={"path": "file"},
        origins=done,
        target=files.replaced_target,
        files_only=True,
        gives=("text/plain",),
    )

    def own_source(given: Mapping[str, Any]) -> bool:
        return folders.is_trusted(given["source"])

    def changed(given: Mapping[str, Any]) -> WriteTarget:
        return replace(folders.target(given.get("path")), executed=False)

    append = tool(
        effect="write",
        files_only=True,
        purpose={"text": "carries"},
        refers={"path": "file"},
        origins=done,
        target=files.text_target,
        gives=("text/plain",),
        words=("append", "add", "log", "note", "jot", "extend", "put", "write", "enter"),
        # Only what appends: a note must not replace the others.
        configured={"path": (settings.notes,)} if settings.notes else {},
    )(files.append_text)
    if settings.notes not in ("", NOTES):
        append = replace(append, doc=f"{append.doc} Notes without a file go to {settings.notes!r}.")

    return [
        read(files.read_text),
        read(files.read_lines),
        save(purpose={"text": "carries"})(files.write_text),
        save(purpose={"lines": "carries"})(files.write_lines),
        append,
        listing(files.list_files),
        tool(effect="read", origins=_UNTRUSTED, refers={"folder": "folder"}, accepts=("text/*",))(files.search_files),
        tool(
            effect="read",
            timeout=240,
            origins=_UNTRUSTED,
            owned=lambda given: folders.is_trusted(given["old"]) and folders.is_trusted(given["new"]),
            accepts=("text/*", *DOCUMENT_MEDIA),
            gives=("text/plain",),
            capabilities=("file-comparison",),
        )(files.diff_files),
        tool(effect="read", origins=_SYSTEM, refers={"path": "file"})(files.file_exists),
        tool(
            effect="write",
            purpose={"source": "selects"},
            refers={"source": "file", "target": "folder"},
            origins=done,
            owned=own_source,
            target=files.copy_target,
            files_only=True,
            words=("copy", "back up", "backup", "duplicate"),
        )(files.copy_file),
        tool(
            effect="write",
            refers={"source": "file", "target": "folder"},
            origins=done,
            owned=own_source,
            target=files.move_target,
            files_only=True,
            words=("move", "rename", "archive", "sort into", "organize", "put"),
        )(files.move_file),
        tool(
            effect="irreversible",
            outbound=False,
            refers={"path": "file"},
            origins=done,
            target=changed,
            files_only=True,
            words=("delete", "erase", "trash", "remove", "get rid of"),
        )(files.delete_file),
        tool(
            effect="write",
            idempotent=True,
            refers={"path": "folder"},
            origins=done,
            target=changed,
            files_only=True,
            words=("make", "create", "new folder", "folder called", "folder named", "new directory"),
        )(files.make_folder),
    ]


toolbox = Toolbox("files", "Read, write, list, search, compare, copy, move and delete files.", FilesSettings, _build)

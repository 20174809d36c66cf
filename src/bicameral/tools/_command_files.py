"""The files of one command: each path argument is held against the folders, and new files are staged."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bicameral.errors import Place, ToolError

from ._argv import Value
from ._folders import Folders
from ._manifest import ArgumentSpec, ToolSpec
from ._protected import CONFIGURATION, STATE


@dataclass(frozen=True, slots=True)
class _Staged:
    """A file that the command makes in a folder of its own, and where it goes if all went well."""

    argument: str
    folder: Path
    name: str
    target: str


@dataclass(slots=True)
class CommandFiles:
    """What one call reads and writes. The folders it stages in live as long as `stack`."""

    spec: ToolSpec
    folders: Folders
    stack: ExitStack
    read: list[Path] = field(default_factory=list[Path])
    write: list[Path] = field(default_factory=list[Path])
    denied: list[Path] = field(default_factory=list[Path])
    environment: dict[str, str] = field(default_factory=dict[str, str])
    _staged: list[_Staged] = field(default_factory=list[_Staged])
    _open: list[str] = field(default_factory=list[str])
    """Folders in which the command could make whatever it wanted."""

    def resolve(self, arguments: Mapping[str, Any]) -> dict[str, Value]:
        """The arguments with every path as the command is to see it: absolute, and never outside the folders."""
        values: dict[str, Value] = dict(arguments)
        for name, argument in self.spec.arguments.items():
            given = arguments.get(name)
            if argument.type == "path" and given is not None:
                values[name] = self._path(given, name, argument)
            elif argument.type == "list[path]" and given is not None:
                values[name] = [self._path(one, name, argument) for one in given]
        if self.spec.scratch:
            scratch = self._new_folder()
            self.write.append(scratch)
            self.environment["TMPDIR"] = str(scratch)
        return values

    def keep(self) -> None:
        """Put what the command made into its place, each file whole."""
        # All are read before any is put: a missing one must not leave half of the others behind.
        made = [(staged, self._content(staged)) for staged in self._staged]
        for staged, content in made:
            self.folders.write_atomic(staged.target, content)

    def refuse_protected(self) -> None:
        """Set aside what the command made in a folder of its own choice and no tool may make."""
        for folder in self._open:
            if (name := self.folders.set_aside(folder)) is not None:
                raise ToolError(
                    "tools.protected",
                    f"{self.spec.name!r} made {name!r}, which no tool may make; it was given another name",
                    fix="Look at the file that begins with 'refused-', and delete it.",
                )

    def _path(self, given: str, name: str, argument: ArgumentSpec) -> Path:
        if argument.access == "read":
            real = self.folders.reading(given)
            self.read.append(real)
            return real
        real = self.folders.writing(given)
        if argument.access == "write" and real.is_dir():
            # The sandbox lets the command write whatever is in there, so nothing protected may be.
            self.write.append(self.folders.writing_inside(given))
            self._open.append(given)
            self.denied += [real / CONFIGURATION, real / STATE]
            return real
        return self._stage(given, real, name, argument)

    def _stage(self, given: str, real: Path, name: str, argument: ArgumentSpec) -> Path:
        folder = self._new_folder()
        copy = folder / real.name
        if argument.access == "edit":
            copy.write_bytes(self.folders.read_bytes(given))
        self.write.append(folder)
        self._staged.append(_Staged(name, folder, real.name, given))
        return copy

    def _content(self, staged: _Staged) -> bytes:
        # The command may have left a link there that leads anywhere: it is read with the same care as a plan's paths.
        inside = Folders.of(staged.folder, read=[staged.folder])
        if not inside.exists(staged.name):
            raise ToolError(
                "tools.no-output",
                f"{self.spec.name!r} ended well but did not make the file {staged.target!r}",
                place=Place(argument=staged.argument),
            )
        return inside.read_bytes(staged.name)

    def _new_folder(self) -> Path:
        return Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="bicameral-"))).resolve()

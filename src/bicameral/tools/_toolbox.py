"""Toolboxes: tools that belong together, built from their settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from ._folders import Folders
from ._tool import Tool


class Settings(BaseModel):
    """What a user can set for a toolbox in `bicameral.toml`; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def local_now() -> datetime:
    """The time now, with the machine's time zone."""
    return datetime.now().astimezone()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every toolbox may use of the machine: the folders, the clock, the environment for secrets."""

    folders: Folders
    now: Callable[[], datetime] = local_now
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @classmethod
    def here(cls, folder: Path | None = None) -> Surroundings:
        """The defaults: everything under one folder (the working folder) may be read and written."""
        base = folder or Path.cwd()
        return cls(Folders(base=base, read=(base,), write=(base,)))


S = TypeVar("S", bound=Settings)


def _keeps_nothing(_settings: Settings) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Toolbox(Generic[S]):
    """A named group of tools. An entry point or a Python file offers one of these.

    `keeps` are the files and folders that its tools keep themselves, from its settings: no other tool may change them.

    Example:
        >>> toolbox = Toolbox("greetings", "Say hello.", Settings, lambda settings, surroundings: [hello])
    """

    name: str
    doc: str
    settings: type[S]
    build: Callable[[S, Surroundings], Sequence[Tool]]
    keeps: Callable[[S], Sequence[str]] = _keeps_nothing

    def open(self, surroundings: Surroundings, settings: Mapping[str, Any] | None = None) -> list[Tool]:
        """The toolbox's tools with these settings; pydantic's ValidationError says what is wrong with them."""
        from dataclasses import replace

        checked = self.settings.model_validate(dict(settings or {}))
        if kept := self.keeps(checked):
            surroundings = replace(surroundings, folders=surroundings.folders.owned_by(*kept))
        return [replace(tool, toolbox=self.name) for tool in self.build(checked, surroundings)]

"""The tools that a configuration names, opened with their settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bicameral.errors import ConfigError, ToolError
from bicameral.tools import (
    Folders,
    ProtectedPath,
    Registry,
    Surroundings,
    Tool,
    installed_toolboxes,
    load_file,
    load_toolbox,
    load_toolboxes,
)

from ._config import Config
from ._load import Origin, origin_of
from ._mistakes import mistake, unknown_key
from ._protection import protected_paths


def open_registry(config: Config, surroundings: Surroundings | None = None) -> Registry:
    """Every tool that plans may use.

    Example:
        >>> open_registry(Config.defaults())["sort_lines"].effect
        'pure'
    """
    origin = origin_of(config)
    _check_names(config, origin)
    around = surroundings or surroundings_of(config)
    around = replace(around, folders=around.folders.protecting(_kept_by_toolboxes(config)))
    tools = [tool for name in config.toolboxes.use for tool in _installed(config, name, around, origin)]
    tools += [tool for path in config.toolbox_files for tool in _from_file(config, path, around, origin)]
    return Registry(tools)


def surroundings_of(config: Config) -> Surroundings:
    """The folders that tools may use, and the machine's clock and environment."""
    said = config.folders
    read, write, trusted = (tuple(map(_path, names)) for names in (said.read, said.write, said.trusted))
    folders = Folders.of(config.base, read=read, write=write, trusted=trusted)
    return Surroundings(folders.protecting(protected_paths(config)))


def _kept_by_toolboxes(config: Config) -> Iterator[ProtectedPath]:
    """What toolboxes keep themselves, such as a calendar: each may change its own, and no other tool may."""
    for name in config.toolboxes.use:
        # What is wrong with a toolbox or its settings is told when it is opened.
        with suppress(ToolError, ValidationError):
            toolbox = load_toolbox(name)
            for kept in toolbox.keeps(toolbox.settings.model_validate(dict(config.toolbox.get(name, {})))):
                yield ProtectedPath(_path(kept), f"kept by the toolbox {name!r}")


def left_out(config: Config) -> dict[str, ToolError]:
    """Standard toolboxes that the defaults do without, since a package that they need is not installed."""
    return dict(_left_out(config))


def _left_out(config: Config) -> Iterator[tuple[str, ToolError]]:
    for name in config.toolboxes.use:
        try:
            load_toolbox(name)
        except ToolError as error:
            if _excused(config, error):
                yield name, error


def _excused(config: Config, error: ToolError) -> bool:
    """A toolbox that nobody asked for by name may be absent; one that somebody did may not."""
    return error.code == "tools.missing-extra" and "use" not in config.toolboxes.model_fields_set


def _installed(config: Config, name: str, around: Surroundings, origin: Origin) -> list[Tool]:
    settings = config.toolbox.get(name, {})
    try:
        toolbox = load_toolbox(name)
        _check_settings(toolbox.settings, settings, name, origin)
        return list(load_toolboxes({name: settings}, around))
    except ToolError as error:
        if _excused(config, error):
            return []
        error.place = error.place or origin.locate(("toolboxes", "use"))
        raise


def _from_file(config: Config, path: Path, around: Surroundings, origin: Origin) -> list[Tool]:
    try:
        return load_file(path, around, config.toolbox.get(path.stem, {}))
    except (ToolError, ConfigError) as error:
        keys = ("toolbox", path.stem) if isinstance(error, ConfigError) else ("toolboxes", "files")
        error.place = error.place or origin.locate(keys)
        raise


def _check_settings(model: Any, settings: Mapping[str, Any], name: str, origin: Origin) -> None:
    """Point at the line of a wrong setting, which the toolbox itself cannot know."""
    try:
        model.model_validate(dict(settings))
    except ValidationError as error:
        raise mistake(error, model, origin.locate, ("toolbox", name)) from None


def _check_names(config: Config, origin: Origin) -> None:
    """A table of settings that belongs to no toolbox is a slip of the pen."""
    known = {*installed_toolboxes(), *(path.stem for path in config.toolbox_files)}
    for name in config.toolbox:
        if name not in known:
            raise unknown_key(("toolbox", name), known, origin.locate)


def _path(name: str) -> Path:
    return Path(os.path.expanduser(name))

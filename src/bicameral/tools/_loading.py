"""Loading tools: toolboxes of installed packages by entry point; tools of Python files, manifests and programs."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from bicameral.documents import first_key_fault
from bicameral.errors import BicameralError, ConfigError, Place, ToolError, nearest_name
from bicameral.tools._declaration import Registry, Settings, Surroundings, Toolbox
from bicameral.tools._tool import Tool

ENTRY_POINT_GROUP = "bicameral.toolboxes"

SettingsByName = Mapping[str, Mapping[str, Any]]


def load_toolboxes(names: SettingsByName, surroundings: Surroundings) -> Registry:
    """The tools of these installed toolboxes, each with its settings.

    Example:
        >>> load_toolboxes({"files": {}, "clock": {}}, Surroundings.here())
    """
    installed = installed_toolboxes()
    loaded = ((load_installed_toolbox(name, installed), settings) for name, settings in names.items())
    return Registry(
        tool
        for each, settings in loaded
        for tool in each.open(_validate_settings(each.toolbox.settings, settings, each.name), surroundings)
    )


def installed_toolboxes() -> dict[str, EntryPoint]:
    """Every toolbox that an installed package offers, by name; none is imported."""
    found: dict[str, EntryPoint] = {}
    for point in _entry_points(tuple((folder, _modified_ns(folder)) for folder in sys.path)):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise ToolError(
                "tools.duplicate",
                f"two packages offer a toolbox {point.name!r}: {_package_name(other)!r} and {_package_name(point)!r}",
                fix="Uninstall one of them.",
            )
    return found


@lru_cache(maxsize=4)
def _entry_points(folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """What packages in these folders offer, read once: it takes a look at every package that is installed.

    A package that is installed or removed later changes when its folder was modified.
    """
    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _modified_ns(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class LoadedToolbox:
    """A toolbox that is imported but not opened, under the name and from the package that offer it."""

    name: str
    toolbox: Toolbox[Any]
    package: str

    def open(self, settings: Settings, surroundings: Surroundings) -> list[Tool]:
        """Its tools with these settings, which are validated already; a `ToolError` if it cannot make them."""
        try:
            return self.toolbox.build_tools(settings, surroundings)
        except BicameralError:
            raise
        except ImportError as error:
            raise _import_failed_error(self.name, self.package, error) from error
        except Exception as error:
            raise _broken_toolbox_error(self.name, self.package, f"{type(error).__name__}: {error}") from error


def load_installed_toolbox(name: str, points: Mapping[str, EntryPoint]) -> LoadedToolbox:
    """One of these installed toolboxes, imported but not opened.

    `points` is what `installed_toolboxes` gave: that looks through every installed package, so who loads several
    toolboxes asks for it once.
    """
    point = points.get(name)
    if point is None:
        raise ToolError(
            "tools.unknown-toolbox",
            f"there is no toolbox {name!r}",
            expected=", ".join(sorted(points)),
            nearest=nearest_name(name, points),
        )
    try:
        offered: object = point.load()
    except ImportError as error:
        raise _import_failed_error(name, _package_name(point), error) from error
    except Exception as error:
        raise _broken_toolbox_error(name, _package_name(point), f"{type(error).__name__}: {error}") from error
    if not isinstance(offered, Toolbox):
        raise _broken_toolbox_error(
            name, _package_name(point), f"{point.value!r} is {type(offered).__name__!r}, not a Toolbox"
        )
    return LoadedToolbox(name, cast("Toolbox[Any]", offered), _package_name(point))


def load_file(path: Path, surroundings: Surroundings, settings: Mapping[str, Any] | None = None) -> list[Tool]:
    """The tools in a Python file, in a manifest (`.toml`, `.json`), or of a program that answers `--describe`."""
    file = surroundings.folders.base / path.expanduser()
    given = dict(settings or {})
    if not file.is_file():
        beside = (each.name for each in file.parent.iterdir()) if file.parent.is_dir() else ()
        raise ToolError(
            "tools.no-such-file", f"there is no file {str(path)!r}", nearest=nearest_name(file.name, beside)
        )
    match file.suffix:
        case ".py":
            tools = _tools_from_python(file, surroundings, given)
        case ".toml" | ".json":
            tools = _tools_from_manifest(file, surroundings, given)
        case _ if os.access(file, os.X_OK):
            tools = _tools_from_program(file, surroundings, given)
        case _:
            raise ToolError(
                "tools.unknown-file",
                f"{str(path)!r} holds no tools",
                expected="a .py file, a .toml or .json manifest, or a program that answers --describe",
                fix=f"If it is a program, make it executable: chmod +x {file.name}",
            )
    return [tool if tool.toolbox else replace(tool, toolbox=file.stem) for tool in tools]


def _validate_settings(model: type[BaseModel], settings: Mapping[str, Any], name: str) -> Any:
    """The settings as the toolbox wants them; a wrong one is named."""
    try:
        return model.model_validate(dict(settings))
    except ValidationError as error:
        fault = first_key_fault(error, model)
        raise ConfigError(
            "config.bad-setting",
            f"the setting {fault.key!r} of the toolbox {name!r}: {fault.message}",
            expected=fault.expected or _setting_description(model, fault.path),
            nearest=fault.nearest,
        ) from None


def _setting_description(model: type[BaseModel], path: tuple[str | int, ...]) -> str | None:
    """What a setting is for, in the words of the toolbox."""
    field = model.model_fields.get(str(path[0])) if path else None
    return field.description if field else None


def _refuse_settings(name: str, settings: Mapping[str, Any]) -> None:
    for key in settings:
        raise ConfigError("config.bad-setting", f"{name!r} has no settings, and {key!r} is given", expected="none")


def _tools_from_manifest(file: Path, surroundings: Surroundings, settings: Mapping[str, Any]) -> list[Tool]:
    from bicameral.tools._command import command_tools
    from bicameral.tools._manifest import read_manifest

    _refuse_settings(file.name, settings)
    return command_tools(read_manifest(file), surroundings.folders)


def _tools_from_program(file: Path, surroundings: Surroundings, settings: Mapping[str, Any]) -> list[Tool]:
    from bicameral.tools._command_interface import CommandSettings, describe_tool

    checked = _validate_settings(CommandSettings, settings, file.name)
    return describe_tool([str(file.resolve())], surroundings.folders, settings=checked)


def _tools_from_python(file: Path, surroundings: Surroundings, settings: Mapping[str, Any]) -> list[Tool]:
    module = _run_file(file)
    toolbox: object = getattr(module, "toolbox", None)
    if isinstance(toolbox, Toolbox):
        loaded = LoadedToolbox(file.stem, cast("Toolbox[Any]", toolbox), str(file))
        return loaded.open(_validate_settings(loaded.toolbox.settings, settings, loaded.name), surroundings)
    tools = [value for value in vars(module).values() if isinstance(value, Tool)]
    if not tools:
        raise ToolError(
            "tools.no-tools",
            "the file offers no tools",
            place=Place(str(file)),
            expected="functions with @tool, or a Toolbox named `toolbox`",
        )
    _refuse_settings(file.name, settings)
    # Each tool once, though the file may call it by several names.
    return list({id(tool): tool for tool in tools}.values())


class _SourceLoader(SourceFileLoader):
    """Runs what a file says, and never what `__pycache__` says that it compiles to.

    A configuration is accepted with the contents of the files that it names. Compiled code beside one of them may be
    anything, and Python would take it, unread, if it has the right time and size or says that nobody shall compare.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _run_file(file: Path) -> ModuleType:
    # The same file name in two folders must not be the same module.
    name = f"bicameral_file_{file.stem}_{sha256(str(file.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_SourceLoader(name, str(file)))
    if spec is None or spec.loader is None:
        raise ToolError("tools.broken-file", "Python cannot load this file", place=Place(str(file)))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, BicameralError):
            error.place = error.place or Place(str(file), _error_line(file, error))
            raise
        if isinstance(error, Exception | SystemExit):
            raise _broken_file_error(file, error) from None
        raise
    return module


def _broken_file_error(file: Path, error: Exception | SystemExit) -> ToolError:
    if isinstance(error, ModuleNotFoundError):
        return ToolError(
            "tools.missing-extra",
            f"the module {error.name!r} is not installed",
            place=Place(str(file), _error_line(file, error)),
            fix=f"Install the package that has it, for example: pip install {error.name}",
        )
    line = error.lineno if isinstance(error, SyntaxError) else _error_line(file, error)
    message = error.msg if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"
    return ToolError("tools.broken-file", message, place=Place(str(file), line))


def _error_line(file: Path, error: BaseException) -> int | None:
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(file)), None)


def _package_name(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.module


def _import_failed_error(name: str, package: str, error: ImportError) -> ToolError:
    # A module of Bicameral itself belongs to no extra: if it does not import, the toolbox is broken, and a toolbox that
    # is broken is never left out silently.
    if error.name is not None and error.name.partition(".")[0] == "bicameral":
        return _broken_toolbox_error(name, package, f"{type(error).__name__}: {error}")
    what = f"the module {error.name!r}" if error.name else str(error)
    ours = package == "bicameral"
    return ToolError(
        "tools.missing-extra",
        f"the toolbox {name!r} of {package!r} needs {what}, which does not import",
        fix="Install it with: pip install 'bicameral[standard]'"
        if ours
        else f"Install {package!r} again with the extras that its documentation names.",
    )


def _broken_toolbox_error(name: str, package: str, reason: str) -> ToolError:
    return ToolError(
        "tools.broken-toolbox",
        f"the toolbox {name!r} of {package!r} does not load: {reason}",
        fix=f"Update or uninstall {package!r}, or leave the toolbox out of bicameral.toml.",
    )

"""Reading the configuration: one file, then the environment over it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from bicameral.errors import ConfigError, Place

from ._config import Config, ConfigFile, Profile, user_folder
from ._environment import FILE, overrides
from ._mistakes import dotted, mistake
from ._places import line_of

NAME = "bicameral.toml"
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Origin:
    """Where settings were written, so that a mistake can be pointed at."""

    file: Path | None = None
    text: str = ""
    variables: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])

    def locate(self, path: tuple[str, ...]) -> Place | None:
        for length in range(len(path), 0, -1):
            if variable := self.variables.get(path[:length]):
                return Place(file=f"the environment variable {variable}")
        if self.file is None:
            return None
        return Place(file=str(self.file), line=line_of(self.text, path))


def find_file(base: Path | None = None, environment: Mapping[str, str] | None = None) -> Path | None:
    """The configuration file that counts: `$BICAMERAL_CONFIG`, the working folder's, the user's, or none."""
    variables = os.environ if environment is None else environment
    if chosen := variables.get(FILE):
        return Path(os.path.expanduser(chosen)).absolute()
    for candidate in ((base or Path.cwd()) / NAME, user_folder("config") / NAME):
        if candidate.is_file():
            return candidate.absolute()
    return None


def load_config(
    file: Path | None = None,
    *,
    base: Path | None = None,
    profile: Profile | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The configuration for a working folder: a file, the environment over it, and the arguments over both.

    Example:
        >>> load_config(profile="small").weights("privileged")
        '0.5b'
    """
    variables = os.environ if environment is None else environment
    folder = (base or Path.cwd()).absolute()
    if not folder.is_dir():
        raise ConfigError("config.no-folder", f"there is no folder {str(folder)!r}", fix="Name one that exists.")
    chosen = file.absolute() if file else find_file(folder, variables)
    text = _read(chosen) if chosen else ""
    settings, set_by = _with_environment(_parse(text, chosen), variables)
    origin = Origin(chosen, text, set_by)
    try:
        content = ConfigFile.model_validate(settings)
    except ValidationError as error:
        raise mistake(error, ConfigFile, origin.locate) from None
    config = Config(**{name: getattr(content, name) for name in ConfigFile.model_fields}, base=folder, source=chosen)
    return config.model_copy(update={"profile": profile}) if profile else config


def origin_of(config: Config, environment: Mapping[str, str] | None = None) -> Origin:
    """Where the settings of a loaded configuration were written."""
    variables = os.environ if environment is None else environment
    set_by = {path: name for name, path, _ in overrides(variables)}
    try:
        text = _read(config.source) if config.source else ""
    except ConfigError:
        text = ""
    return Origin(config.source, text, set_by)


def _read(file: Path) -> str:
    place = Place(file=str(file))
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise ConfigError("config.too-large", f"the file is larger than {_MAX_BYTES:,} bytes", place=place)
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            "config.bad-toml", f"byte {error.start} is not UTF-8 text", place=place, fix="Save the file as UTF-8."
        ) from None
    except OSError as error:
        raise ConfigError(
            "config.unreadable",
            f"the file cannot be read: {error.strerror or error}",
            place=place,
            fix="Check the path and its permissions; `bicameral init` writes a new file.",
        ) from None


def _parse(text: str, file: Path | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _bad_toml(error, text, file) from None
    except RecursionError:
        raise ConfigError("config.bad-toml", "the values are nested too deeply", place=Place(file=str(file))) from None


def _bad_toml(error: tomllib.TOMLDecodeError, text: str, file: Path | None) -> ConfigError:
    """Python 3.11 tells the place only in the message: `... (at line 3, column 7)`, or `(at end of document)`."""
    message, _, where = str(error).rpartition(" (at ")
    words = where.rstrip(")").replace(",", "").split()
    line, column = (int(words[1]), int(words[3])) if words[:1] == ["line"] else (text.count("\n") + 1, None)
    return ConfigError(
        "config.bad-toml",
        f"this is not TOML: {message or error}",
        place=Place(file=str(file), line=line, column=column),
    )


def _with_environment(
    settings: dict[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    """The settings with each variable's value put in, and which variable set what."""
    set_by: dict[tuple[str, ...], str] = {}
    for variable, path, value in overrides(environment):
        table = settings
        for depth, key in enumerate(path[:-1], 1):
            inner = table.setdefault(key, {})
            if not isinstance(inner, dict):
                raise ConfigError(
                    "config.wrong-type",
                    f"{dotted(path[:depth])} is not a table, so {dotted(path)} cannot be set",
                    place=Place(file=f"the environment variable {variable}"),
                )
            table = cast("dict[str, Any]", inner)
        table[path[-1]] = value
        set_by[path] = variable
    return settings, set_by

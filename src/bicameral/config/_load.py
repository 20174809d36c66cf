"""Load the configuration: one file, a profile and its aliases over it, then the environment.

A file that merely lies in the working folder is used in full only if this user has accepted it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from bicameral.cache import user_folder
from bicameral.config._acceptance import (
    Confirm,
    Widening,
    find_unaccepted,
    record_acceptance,
    split_settings,
    warn_unaccepted,
)
from bicameral.config._config import Config, ConfigFile, Profile
from bicameral.config._routing import check_routing, is_routed, register_keys
from bicameral.config._sources import (
    CONFIG_VARIABLE,
    SettingKeys,
    dotted_path,
    environment_overrides,
    key_line,
    merge_settings,
    read_aliases,
    read_profile,
    read_text_file,
    settings_error,
)
from bicameral.documents import YamlDocument
from bicameral.errors import ConfigError, Place

CONFIG_NAME = "bicameral.toml"
_MAX_CONFIG_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class SettingsOrigin:
    """Where settings were written, so that a mistake can be pointed at."""

    file: Path | None = None
    text: str = ""
    variables: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])

    documents: tuple[YamlDocument, ...] = ()
    """The profile and what it names, each with its own keys under those of the configuration."""

    def locate(self, path: SettingKeys) -> Place | None:
        for length in range(len(path), 0, -1):
            if variable := self.variables.get(tuple(str(key) for key in path[:length])):
                return Place(file=f"the environment variable {variable}")
        deepest = max(self.documents, key=lambda document: document.known_depth(path), default=None)
        if deepest is not None and deepest.known_depth(path) > 1:
            return deepest.locate(path)
        if self.file is None:
            return None
        return Place(file=str(self.file), line=key_line(self.text, path))


def find_file(base: Path | None = None, environment: Mapping[str, str] | None = None) -> Path | None:
    """The configuration file that counts: `$BICAMERAL_CONFIG`, the working folder's, the user's, or none."""
    return _find_config(base or Path.cwd(), os.environ if environment is None else environment)[0]


def _find_config(base: Path, environment: Mapping[str, str]) -> tuple[Path | None, bool]:
    """The file that counts, and whether it merely lies in the working folder: then nobody has chosen it."""
    if chosen := environment.get(CONFIG_VARIABLE):
        return Path(os.path.expanduser(chosen)).absolute(), False
    own = user_folder("config") / CONFIG_NAME
    if (beside := base / CONFIG_NAME).is_file():
        return beside.absolute(), os.path.realpath(beside) != os.path.realpath(own)
    return (own.absolute() if own.is_file() else None), False


def load_config(
    file: Path | None = None,
    *,
    base: Path | None = None,
    profile: Profile | Path | None = None,
    environment: Mapping[str, str] | None = None,
    confirm: Confirm = warn_unaccepted,
) -> Config:
    """The configuration for a working folder: a file, a profile over it, the environment, and the arguments over all.

    Args:
        file: The configuration; without it, the one that is found. One that is named here counts as accepted.
        base: The working folder.
        profile: The name of a profile, or a YAML file with `llm` and `agent`.
        environment: Variables that set something, instead of the process's own.
        confirm: Asks a person about a file that was found in the working folder and that this user has not accepted;
            without it nobody is asked, and what widens in it is not used (`Config.withheld`).

    Example:
        >>> load_config(profile="small").weights("privileged")
        '0.5b'
    """
    variables = os.environ if environment is None else environment
    folder = (base or Path.cwd()).absolute()
    if not folder.is_dir():
        raise ConfigError("config.no-folder", f"there is no folder {str(folder)!r}", fix="Name one that exists.")
    chosen, lies_there = (file.absolute(), False) if file else _find_config(folder, variables)
    text = _read_config(chosen) if chosen else ""
    settings, withheld = _parse_toml(text, chosen), ()
    if chosen is not None and lies_there:
        settings, withheld = _accepted_settings(settings, chosen, folder, variables, confirm)
    documents = _load_documents(settings, profile if isinstance(profile, Path) else None, chosen, folder, variables)
    for document in documents:
        settings = merge_settings(document.settings, settings)
    settings, set_by = _apply_environment(settings, variables)
    origin = SettingsOrigin(chosen, text, set_by, documents)
    try:
        content = ConfigFile.model_validate(settings)
    except ValidationError as error:
        raise settings_error(error, ConfigFile, origin.locate) from None
    said = {name: getattr(content, name) for name in ConfigFile.model_fields}
    config = Config(**said, base=folder, source=chosen, withheld=withheld)
    register_keys(config.llm.models.values(), variables)
    if is_routed(config):
        check_routing(config, origin.locate)
    return config.model_copy(update={"profile": profile}) if isinstance(profile, str) else config


def _accepted_settings(
    settings: dict[str, Any], file: Path, base: Path, environment: Mapping[str, str], confirm: Confirm
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The settings of a file that may be used, and the names of those that may not."""
    harmless, widening = split_settings(_with_named_files(settings, file, base), file, base)
    found = find_unaccepted(file, widening, environment)
    if found is None:
        return settings, ()
    if confirm(found):
        record_acceptance(file, widening)
        return settings, ()
    return harmless, found.withheld


def _with_named_files(settings: dict[str, Any], file: Path, base: Path) -> dict[str, Any]:
    """The settings with those of the profile and the aliases that the file names: what they say is the file's word."""
    for document in _load_documents(settings, None, file, base, {}):
        settings = merge_settings(document.settings, settings)
    return settings


def find_widening(file: Path, base: Path) -> Widening:
    """What in a configuration widens what may be done, for a person to look at and accept."""
    return split_settings(_with_named_files(_parse_toml(_read_config(file), file), file, base), file, base)[1]


def _load_documents(
    settings: dict[str, Any], given: Path | None, source: Path | None, base: Path, environment: Mapping[str, str]
) -> tuple[YamlDocument, ...]:
    """The profile that counts and the file of aliases that it or the configuration names, weakest first."""
    start = source.parent if source else base
    file = given.absolute() if given else _profile_path(settings, start, environment)
    profile = None if file is None else read_profile(file)
    if profile is not None and isinstance(name := _alias_file_name(profile.settings), str):
        place = profile.locate(("llm", "config_path"))
        return read_aliases(name, (profile.file.parent, base), place), profile
    if isinstance(name := _alias_file_name(settings), str):
        place = None if source is None else Place(file=str(source))
        aliases = read_aliases(name, (start, base), place)
        # What names a file is stronger than the file.
        aliases = replace(aliases, settings=merge_settings({"llm": settings["llm"]}, aliases.settings))
        return (aliases,) if profile is None else (aliases, profile)
    return () if profile is None else (profile,)


def _alias_file_name(settings: Mapping[str, Any]) -> object:
    llm: Any = settings.get("llm")
    return cast("dict[str, Any]", llm).get("config_path") if isinstance(llm, dict) else None


def _profile_path(settings: dict[str, Any], start: Path, environment: Mapping[str, str]) -> Path | None:
    models: Any = settings.get("models")
    named: Any = cast("dict[str, Any]", models).get("profile") if isinstance(models, dict) else None
    for _, path, value in environment_overrides(environment):
        named = value if path == ("models", "profile") else named
    return start / os.path.expanduser(named) if isinstance(named, str) and named else None


def settings_origin(config: Config, environment: Mapping[str, str] | None = None) -> SettingsOrigin:
    """Where the settings of a loaded configuration were written."""
    variables = os.environ if environment is None else environment
    set_by = {path: name for name, path, _ in environment_overrides(variables)}
    try:
        text = _read_config(config.source) if config.source else ""
    except ConfigError:
        text = ""
    return SettingsOrigin(config.source, text, set_by)


def _read_config(file: Path) -> str:
    fix = "Check the path and its permissions; `bicameral init` writes a new file."
    return read_text_file(file, _MAX_CONFIG_BYTES, unreadable="config.unreadable", malformed="config.bad-toml", fix=fix)


def _parse_toml(text: str, file: Path | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(error, text, file) from None
    except RecursionError:
        raise ConfigError("config.bad-toml", "the values are nested too deeply", place=Place(file=str(file))) from None


def _toml_error(error: tomllib.TOMLDecodeError, text: str, file: Path | None) -> ConfigError:
    """Python 3.11 tells the place only in the message: `... (at line 3, column 7)`, or `(at end of document)`."""
    message, _, where = str(error).rpartition(" (at ")
    words = where.rstrip(")").replace(",", "").split()
    line, column = (int(words[1]), int(words[3])) if words[:1] == ["line"] else (text.count("\n") + 1, None)
    return ConfigError(
        "config.bad-toml",
        f"this is not TOML: {message or error}",
        place=Place(file=str(file), line=line, column=column),
    )


def _apply_environment(
    settings: dict[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    """The settings with each variable's value put in, and which variable set what."""
    set_by: dict[tuple[str, ...], str] = {}
    for variable, path, value in environment_overrides(environment):
        table = settings
        for depth, key in enumerate(path[:-1], 1):
            inner = table.setdefault(key, {})
            if not isinstance(inner, dict):
                raise ConfigError(
                    "config.wrong-type",
                    f"{dotted_path(path[:depth])} is not a table, so {dotted_path(path)} cannot be set",
                    place=Place(file=f"the environment variable {variable}"),
                )
            table = cast("dict[str, Any]", inner)
        table[path[-1]] = value
        set_by[path] = variable
    return settings, set_by

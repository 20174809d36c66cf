"""Load the configuration: one file, a profile and its aliases over it, then the environment.

A file that was found in the working folder is used in full only if this user has accepted it. The variable
`BICAMERAL_LIMITS__MAX_ITEMS=50` sets `max_items` in `[limits]`; a double underscore goes one table deeper. A few
settings have a short name. Other variables without a double underscore are not read: a password may well be called
`BICAMERAL_SMTP_PASSWORD`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from bicameral.cache import user_folder
from bicameral.config._acceptance import (
    ACCEPT_VARIABLE,
    Confirm,
    Widening,
    find_unaccepted,
    record_acceptance,
    split_settings,
    warn_unaccepted,
)
from bicameral.config._config import Config, ConfigFile, Profile
from bicameral.config._llm_settings import USUAL_KEY_VARIABLES
from bicameral.config._sources import (
    SettingKeys,
    dotted_path,
    key_line,
    merge_settings,
    read_aliases,
    read_profile,
    read_text_file,
    settings_error,
)
from bicameral.documents import YamlDocument
from bicameral.errors import ConfigError, Place, nearest_name
from bicameral.secrets import register_secret

VARIABLE_PREFIX = "BICAMERAL_"
SHORT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "BICAMERAL_PROFILE": ("profile",),
    "BICAMERAL_MODELS": ("models", "folder"),
    "BICAMERAL_THREADS": ("models", "threads"),
    "BICAMERAL_JOURNAL": ("journal", "file"),
    "BICAMERAL_CACHE": ("cache", "folder"),
}
CONFIG_VARIABLE = "BICAMERAL_CONFIG"
DEBUG_VARIABLE = "BICAMERAL_DEBUG"

_LIST_KEYS = frozenset(
    {
        *(("folders", "read"), ("folders", "write"), ("folders", "trusted")),
        *(("toolboxes", "use"), ("toolboxes", "files"), ("policy", "files"), ("policy", "me")),
        *(("quarantine", "reads"), ("quarantine", "validator_models")),
    }
)
_NUMBER_KEYS = frozenset({("models", "threads"), ("quarantine", "lookups"), ("quarantine", "validators")})


def environment_overrides(environment: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Each variable that sets something, with the key and the value; empty ones set nothing."""
    for name in sorted(environment):
        value = environment[name]
        if not name.startswith(VARIABLE_PREFIX) or name == CONFIG_VARIABLE or not value:
            continue
        path = SHORT_VARIABLES.get(name)
        if path is None and "__" in name:
            path = tuple(part.lower() for part in name.removeprefix(VARIABLE_PREFIX).split("__"))
        if path is not None:
            yield name, path, _parse_value(path, value)


def misspelt_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that set nothing but resemble one that does, with the name of that one."""
    known = (*SHORT_VARIABLES, CONFIG_VARIABLE, DEBUG_VARIABLE, ACCEPT_VARIABLE)
    for name in sorted(environment):
        is_unknown = name.startswith(VARIABLE_PREFIX) and "__" not in name and name not in known
        if is_unknown and (meant := nearest_name(name, known)):
            yield name, meant


def _parse_value(path: tuple[str, ...], text: str) -> Any:
    """The value in the type of the key; for settings of toolboxes, TOML if it is TOML and text otherwise."""
    if path in _LIST_KEYS and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    if path in _LIST_KEYS or path in _NUMBER_KEYS or path[0] in ("limits", "planning", "toolbox"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            return text
    return text


CONFIG_NAME = "bicameral.toml"
_MAX_CONFIG_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class SettingsOrigin:
    """The files and variables that settings came from, for the place in an error."""

    file: Path | None = None
    text: str = ""
    variables: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])

    documents: tuple[YamlDocument, ...] = ()
    """The profile and the file of aliases, with keys as in the configuration."""
    quarantine: Path | None = None
    """The user's own file, if `[quarantine]` is that file's."""

    def locate(self, path: SettingKeys) -> Place | None:
        for length in range(len(path), 0, -1):
            if variable := self.variables.get(tuple(str(key) for key in path[:length])):
                return Place(file=f"the environment variable {variable}")
        if self.quarantine is not None and path[:1] == ("quarantine",):
            return Place(file=str(self.quarantine), line=key_line(_read_config(self.quarantine), path))
        deepest = max(self.documents, key=lambda document: document.known_depth(path), default=None)
        if deepest is not None and deepest.known_depth(path) > 1:
            return deepest.locate(path)
        if self.file is None:
            return None
        return Place(file=str(self.file), line=key_line(self.text, path))


def find_file(base: Path | None = None, environment: Mapping[str, str] | None = None) -> Path | None:
    """The configuration file in use: `$BICAMERAL_CONFIG`, the working folder's, the user's, or none."""
    return _find_config(base or Path.cwd(), os.environ if environment is None else environment)[0]


def _find_config(base: Path, environment: Mapping[str, str]) -> tuple[Path | None, bool]:
    """The file in use, and whether it was found in the working folder: then the user has not chosen it."""
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
        file: The configuration; without it, the one that is found. A file that is named here counts as accepted.
        base: The working folder.
        profile: The name of a profile, or a YAML file with `llm` and `agent`.
        environment: The variables, instead of those of the process.
        confirm: Asks a person about a file that was found in the working folder and that this user has not accepted;
            without it nobody is asked, and its widening settings are not used (`Config.withheld`).

    Example:
        >>> load_config(profile="small").weights("privileged")
        '0.5b'
    """
    variables = os.environ if environment is None else environment
    folder = (base or Path.cwd()).absolute()
    if not folder.is_dir():
        raise ConfigError("config.no-folder", f"there is no folder {str(folder)!r}", fix="Name one that exists.")
    chosen, was_found = (file.absolute(), False) if file else _find_config(folder, variables)
    text = _read_config(chosen) if chosen else ""
    settings, withheld, quarantine = _parse_toml(text, chosen), (), None
    if chosen is not None and was_found:
        own = _own_quarantine()
        settings, withheld = _accepted_settings(settings, chosen, folder, variables, confirm, own)
        if own and "quarantine" not in settings:
            # The folder's file stands in place of the user's own. How untrusted text is read must not become weaker
            # by that, unless the user has accepted it.
            settings, quarantine = {**settings, "quarantine": own}, _own_file()
    documents = _load_documents(settings, profile if isinstance(profile, Path) else None, chosen, folder, variables)
    for document in documents:
        settings = merge_settings(document.settings, settings)
    settings, set_by = _apply_environment(settings, variables)
    origin = SettingsOrigin(chosen, text, set_by, documents, quarantine)
    try:
        content = ConfigFile.model_validate(settings)
    except ValidationError as error:
        raise settings_error(error, ConfigFile, origin.locate) from None
    settings = {name: getattr(content, name) for name in ConfigFile.model_fields}
    config = Config(**settings, base=folder, source=chosen, withheld=withheld, quarantine_source=quarantine)
    aliases = config.llm.models.values()
    named = {name for each in aliases for name in (each.api_key_env, each.quarantined_api_key_env) if name}
    # Every key in the environment is masked, whether its model is ever used or not.
    for name in sorted(named | set(USUAL_KEY_VARIABLES.values())):
        register_secret(name, variables.get(name, ""))
    if config.is_routed:
        from bicameral.config._routing import check_routing

        check_routing(config, origin.locate)
    if config.quarantine.model_fields_set:
        from bicameral.config._quarantine import check_quarantine

        check_quarantine(config, origin.locate)
    return config.model_copy(update={"profile": profile}) if isinstance(profile, str) else config


def _accepted_settings(
    settings: dict[str, Any],
    file: Path,
    base: Path,
    environment: Mapping[str, str],
    confirm: Confirm,
    own_quarantine: dict[str, Any],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The settings of a file that may be used, and the names of those that may not."""
    named = _with_named_files(settings, file, base)
    harmless, widening = split_settings(named, file, base, own_quarantine=bool(own_quarantine))
    found = find_unaccepted(file, widening, environment)
    if found is None:
        return settings, ()
    if confirm(found):
        record_acceptance(file, widening)
        return settings, ()
    return harmless, found.withheld


def _own_file() -> Path:
    return (user_folder("config") / CONFIG_NAME).absolute()


def _own_quarantine() -> dict[str, Any]:
    """The `[quarantine]` of the user's own file; empty if it has none."""
    file = _own_file()
    if not file.is_file():
        return {}
    # A file that cannot be read is an error here, too: what it demands of the quarantine is not known.
    found: Any = _parse_toml(_read_config(file), file).get("quarantine")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _with_named_files(settings: dict[str, Any], file: Path, base: Path) -> dict[str, Any]:
    """The settings with those of the profile and aliases that the file names: they are accepted together."""
    for document in _load_documents(settings, None, file, base, {}):
        settings = merge_settings(document.settings, settings)
    return settings


def find_widening(file: Path, base: Path) -> Widening:
    """The settings of a configuration that widen what runs may do, for a person to inspect and accept."""
    settings = _with_named_files(_parse_toml(_read_config(file), file), file, base)
    return split_settings(settings, file, base, own_quarantine=bool(_own_quarantine()))[1]


def _load_documents(
    settings: dict[str, Any], given: Path | None, source: Path | None, base: Path, environment: Mapping[str, str]
) -> tuple[YamlDocument, ...]:
    """The profile and the file of aliases that it or the configuration names, the weakest first."""
    start = source.parent if source else base
    file = given.absolute() if given else _profile_path(settings, start, environment)
    profile = None if file is None else read_profile(file)
    if profile is not None and isinstance(name := _setting(profile.settings, "llm", "config_path"), str):
        place = profile.locate(("llm", "config_path"))
        return read_aliases(name, (profile.file.parent, base), place), profile
    if isinstance(name := _setting(settings, "llm", "config_path"), str):
        place = None if source is None else Place(file=str(source))
        aliases = read_aliases(name, (start, base), place)
        # Settings beside the name of the file override those in the file.
        aliases = replace(aliases, settings=merge_settings({"llm": settings["llm"]}, aliases.settings))
        return (aliases,) if profile is None else (aliases, profile)
    return () if profile is None else (profile,)


def _setting(settings: Mapping[str, Any], table: str, key: str) -> object:
    """A setting that may be missing, or whose table may be no table: nothing is validated yet."""
    found: Any = settings.get(table)
    return cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None


def _profile_path(settings: dict[str, Any], start: Path, environment: Mapping[str, str]) -> Path | None:
    named = _setting(settings, "models", "profile")
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
    return SettingsOrigin(config.source, text, set_by, quarantine=config.quarantine_source)


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
    """Python 3.11 gives the place only in the message: `... (at line 3, column 7)`, or `(at end of document)`."""
    message, _, where = str(error).rpartition(" (at ")
    words = where.rstrip(")").replace(",", "").split()
    line, column = (int(words[1]), int(words[3])) if words[:1] == ["line"] else (text.count("\n") + 1, None)
    place = Place(file=str(file), line=line, column=column)
    return ConfigError("config.bad-toml", f"this is not TOML: {message or error}", place=place)


def _apply_environment(
    settings: dict[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    """The settings with the values of variables, and the variable that set each key."""
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

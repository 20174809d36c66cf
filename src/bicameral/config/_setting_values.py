"""The value of a setting that counts, and where it comes from: the environment, the file, a profile or the default."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any, cast

from bicameral.config._config import Config, ConfigFile
from bicameral.config._load import settings_origin
from bicameral.config._sources import unknown_key_error


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting by its dotted name, its value as JSON has it, and its origin in words."""

    name: str
    value: Any
    origin: str

    def to_text(self) -> str:
        """The value for a person; a setting that is not set says so."""
        return "not set" if self.value is None else json.dumps(self.value, ensure_ascii=False)


def setting_values(config: Config, name: str) -> list[SettingValue]:
    """A setting, or every setting of a table; an unknown name is `config.unknown-key` with the nearest one.

    Example:
        >>> setting_values(Config.defaults(), "planning.plans")
        [SettingValue(name='planning.plans', value=3, origin='default')]
    """
    path = tuple(name.split("."))
    values: Any = config.model_dump(mode="json", include=set(ConfigFile.model_fields))
    for depth, key in enumerate(path):
        known = cast("dict[str, Any]", values) if isinstance(values, dict) else {}
        if key not in known:
            raise unknown_key_error(path[: depth + 1], known, lambda _: None)
        values = known[key]
    written = tomllib.loads(settings_origin(config).text) if config.source else {}
    defaults = ConfigFile().model_dump(mode="json")
    variables = settings_origin(config).variables
    leaves = {(*path, key): each for key, each in cast("dict[str, Any]", values).items()} if _is_table(values) else {}
    found: list[SettingValue] = []
    for keys, value in (leaves or {path: values}).items():
        if keys in variables:
            origin = f"the environment variable {variables[keys]}"
        elif value == _value_at(defaults, keys):
            origin = "default"
        else:
            # A profile is read over the file, so what the file says counts only if nothing else changed it.
            origin = str(config.source) if value == _value_at(written, keys) else "the profile"
        found.append(SettingValue(".".join(keys), value, origin))
    return found


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and bool(cast("dict[str, Any]", value))


def _value_at(values: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        values = cast("dict[str, Any]", values).get(key) if isinstance(values, dict) else None
    return values

"""Reading of settings files: TOML positions, profiles and aliases in YAML, and errors with the place of a mistake.

Files have a size limit and must be UTF-8. Profiles are YAML files with `llm` and `agent`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from bicameral.config._llm_settings import LlmConfigFile, ProfileFile
from bicameral.documents import KeyPath, YamlDocument, first_key_fault, parse_yaml
from bicameral.errors import ConfigError, Place, nearest_name
from bicameral.secrets import redact_secrets


def read_text_file(file: Path, most: int, *, unreadable: str, malformed: str, fix: str) -> str:
    """The text of a file of at most `most` bytes; `unreadable` and `malformed` are the codes of its errors."""
    place = Place(file=str(file))
    try:
        with file.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise ConfigError(
            unreadable, f"the file cannot be read: {error.strerror or error}", place=place, fix=fix
        ) from None
    if len(raw) > most:
        raise ConfigError("config.too-large", f"the file is larger than {most:,} bytes", place=place)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            malformed,
            f"byte {error.start} is not UTF-8 text",
            place=Place(file=str(file), line=raw.count(b"\n", 0, error.start) + 1),
            fix="Save the file as UTF-8.",
        ) from None


_MAX_LINES = 2_000


def key_line(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line on which a key (or the nearest table around it) is first written; None if it is not.

    Python's TOML reader keeps no positions. But a document cut off after a whole statement is a document too, so the
    key belongs to the statement with which it first appears. This is slow, and used only for error messages.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) > _MAX_LINES:
        return None
    found: dict[int, int] = {}
    statement, depth = 1, 0
    for number in range(1, len(lines) + 1):
        try:
            parsed = tomllib.loads("".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        if (reached := _path_depth(parsed, path)) > depth:
            depth = reached
            found[reached] = statement
        statement = number + 1
    return found.get(depth)


def _path_depth(parsed: dict[str, Any], path: tuple[str | int, ...]) -> int:
    """The number of keys of a path that a document has."""
    inner: Any = parsed
    for depth, key in enumerate(path):
        if isinstance(inner, dict) and key in inner:
            inner = cast("dict[str | int, Any]", inner)[key]
        elif isinstance(inner, list) and isinstance(key, int) and key < len(cast("list[Any]", inner)):
            inner = cast("list[Any]", inner)[key]
        else:
            return depth
    return len(path)


SettingKeys = tuple[str | int, ...]
Locate = Callable[[SettingKeys], Place | None]


def settings_error(
    error: ValidationError, model: type[BaseModel], locate: Locate, at: tuple[str, ...] = ()
) -> ConfigError:
    """The first mistake that pydantic found; `at` is the table that the model describes."""
    fault = first_key_fault(error, model)
    place = locate((*at, *fault.path))
    path = (*at, *(part for part in fault.path if isinstance(part, str)))
    if fault.kind == "unknown":
        return unknown_key_error(path, fault.known, lambda _: place)
    if fault.kind == "missing":
        return ConfigError("config.missing-setting", f"the setting {dotted_path(path)} is missing", place=place)
    return ConfigError(
        "config.wrong-type" if not fault.kind.startswith("value_error") else "config.wrong-value",
        f"{dotted_path(path)} is {_short_value(fault.given, path)}" if path else "the settings do not fit together",
        place=place,
        expected=fault.expected or fault.pydantic_words,
    )


def unknown_key_error(path: tuple[str, ...], known: Iterable[str], locate: Locate) -> ConfigError:
    """The error for a setting that does not exist."""
    names = sorted(known)
    return ConfigError(
        "config.unknown-key",
        f"there is no setting {dotted_path(path)}",
        place=locate(path),
        expected=f"one of {', '.join(names)}" if names else None,
        nearest=nearest_name(path[-1], names),
    )


def dotted_path(path: tuple[str, ...]) -> str:
    return repr(".".join(path))


_SECRET_KEYS = frozenset({"secrets", "headers", "bearer", "keys"})
"""Settings that name secrets: somebody may have written the secret itself there, which no message repeats."""


def _short_value(value: Any, path: tuple[str, ...]) -> str:
    if not _SECRET_KEYS.isdisjoint(path):
        return "no name of a secret"
    text = redact_secrets(repr(value), "…")
    return text if len(text) <= 60 else text[:57] + "…"


MAX_PROFILE_BYTES = 200_000


def read_profile(file: Path) -> YamlDocument:
    """A profile, validated; its aliases may be in another file."""
    return _read_checked(file, ProfileFile)


def read_aliases(name: str, beside: tuple[Path, ...], place: Place | None) -> YamlDocument:
    """The file of aliases that a profile names, with its keys under `llm`, as in a profile."""
    wanted = Path(os.path.expanduser(name))
    tried = list(dict.fromkeys(folder / wanted for folder in beside))
    found = next((each for each in tried if each.is_file()), None)
    if found is None:
        raise ConfigError(
            "config.no-profile",
            f"there is no file {name!r}; looked for {', '.join(map(str, tried))}",
            place=place,
            fix="Paths start next to the file that names them, or in the working folder.",
        )
    document = _read_checked(found, LlmConfigFile)
    lines: dict[KeyPath, tuple[int, int]] = {("llm",): (1, 1)}
    lines |= {("llm", *path): at for path, at in document.lines.items()}
    return YamlDocument(found, {"llm": document.settings}, lines)


def merge_settings(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """These settings over others: tables are merged key by key, everything else is replaced.

    An alias is replaced as a whole: settings of one file are not mixed with those of another.
    """
    merged = dict(others)
    for key, value in settings.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict) and key != "models":
            merged[key] = merge_settings(cast("dict[str, Any]", value), cast("dict[str, Any]", before))
        elif isinstance(value, dict) and isinstance(before, dict):
            merged[key] = {**before, **value}
        else:
            merged[key] = value
    return merged


def _read_checked(file: Path, model: type[BaseModel]) -> YamlDocument:
    fix = "Check the path and its permissions."
    text = read_text_file(file, MAX_PROFILE_BYTES, unreadable="config.no-profile", malformed="config.bad-yaml", fix=fix)
    document = parse_yaml(text, file)
    try:
        model.model_validate(document.settings)
    except ValidationError as error:
        raise settings_error(error, model, document.locate) from None
    return document

"""Profiles: YAML files with `llm` and `agent`, and the file of aliases that they name, read into the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from bicameral.errors import ConfigError, Place

from ._llm import LlmConfigFile, ProfileFile
from ._mistakes import mistake
from ._yaml import Document, Keys, parse_yaml

MAX_BYTES = 200_000


def read_profile(file: Path) -> Document:
    """A profile, checked by itself; its aliases may be in another file."""
    return _checked(file, ProfileFile)


def read_aliases(name: str, beside: tuple[Path, ...], place: Place | None) -> Document:
    """The file of aliases that a profile names, with its keys where a profile would have them (under `llm`)."""
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
    document = _checked(found, LlmConfigFile)
    lines: dict[Keys, tuple[int, int]] = {("llm",): (1, 1)}
    lines |= {("llm", *path): at for path, at in document.lines.items()}
    return Document(found, {"llm": document.settings}, lines)


def over(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """These settings over others: tables are merged key by key, everything else is replaced.

    An alias is one thing: what one file says of it is not mixed with what another does.
    """
    merged = dict(others)
    for key, value in settings.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict) and key != "models":
            merged[key] = over(cast("dict[str, Any]", value), cast("dict[str, Any]", before))
        elif isinstance(value, dict) and isinstance(before, dict):
            merged[key] = {**before, **value}
        else:
            merged[key] = value
    return merged


def _checked(file: Path, model: type[BaseModel]) -> Document:
    document = parse_yaml(_text(file), file)
    try:
        model.model_validate(document.settings)
    except ValidationError as error:
        raise mistake(error, model, document.locate) from None
    return document


def _text(file: Path) -> str:
    place = Place(file=str(file), line=1)
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            "config.no-profile",
            f"the profile cannot be read: {error.strerror or error}",
            place=place,
            fix="Check the path and its permissions.",
        ) from None
    if len(raw) > MAX_BYTES:
        raise ConfigError("config.too-large", f"the file is larger than {MAX_BYTES:,} bytes", place=place)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "config.bad-yaml",
            f"byte {error.start} is not UTF-8 text",
            place=Place(file=str(file), line=line),
            fix="Save the file as UTF-8.",
        ) from None

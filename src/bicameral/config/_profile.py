"""Profiles: YAML files with `llm` and `agent`, and the file of aliases that they name, read into the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from bicameral.documents import Document, Keys, parse_yaml
from bicameral.errors import ConfigError, Place

from ._llm import LlmConfigFile, ProfileFile
from ._mistakes import mistake
from ._read import text_of

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
    fix = "Check the path and its permissions."
    text = text_of(file, MAX_BYTES, unreadable="config.no-profile", malformed="config.bad-yaml", fix=fix)
    document = parse_yaml(text, file)
    try:
        model.model_validate(document.settings)
    except ValidationError as error:
        raise mistake(error, model, document.locate) from None
    return document

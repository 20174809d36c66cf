"""What is wrong with a configuration, told so that it can be mended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from bicameral.errors import ConfigError, Place, nearest

Keys = tuple[str | int, ...]
Locate = Callable[[Keys], Place | None]


def mistake(error: ValidationError, model: type[BaseModel], locate: Locate, at: tuple[str, ...] = ()) -> ConfigError:
    """The first mistake that pydantic found; `at` is the table that the model describes."""
    every = error.errors(include_url=False, include_context=False)
    # A misspelt key leaves the right one missing; the slip is what helps.
    found = next((each for each in every if each["type"] == "extra_forbidden"), every[0])
    inner = tuple(str(part) for part in found["loc"] if isinstance(part, str))
    path = (*at, *inner)
    if found["type"] == "extra_forbidden":
        return unknown_key(path, _fields(model, inner[:-1]), lambda _: locate((*at, *found["loc"])))
    if found["type"] == "missing":
        return ConfigError(
            "config.missing-setting", f"the setting {dotted(path)} is missing", place=locate((*at, *found["loc"]))
        )
    return ConfigError(
        "config.wrong-type" if not found["type"].startswith("value_error") else "config.wrong-value",
        f"{dotted(path)} is {_shown(found['input'])}" if path else "the settings do not fit together",
        place=locate((*at, *found["loc"])),
        expected=_expected(found["msg"]),
    )


def unknown_key(path: tuple[str, ...], known: Iterable[str], locate: Locate) -> ConfigError:
    """A key that nothing reads."""
    names = sorted(known)
    return ConfigError(
        "config.unknown-key",
        f"there is no setting {dotted(path)}",
        place=locate(path),
        expected=f"one of {', '.join(names)}" if names else None,
        nearest=nearest(path[-1], names),
    )


def dotted(path: tuple[str, ...]) -> str:
    return repr(".".join(path))


def _fields(model: type[BaseModel], path: tuple[str, ...]) -> list[str]:
    """The names that may stand in a table."""
    keys = iter(path)
    for key in keys:
        field = model.model_fields.get(key)
        inner = field.annotation if field else None
        if getattr(inner, "__origin__", None) is dict:
            next(keys, None)
        # The table itself, an optional one, a list of them, or one of several under names that nobody can foresee.
        candidates = (inner, *getattr(inner, "__args__", ()))
        models = [one for one in candidates if isinstance(one, type) and issubclass(one, BaseModel)]
        if not models:
            return []
        model = models[0]
    return list(model.model_fields)


def _expected(message: str) -> str:
    """Pydantic's own words without its opening: `Input should be a valid integer` -> `a valid integer`."""
    for opening in ("Input should be ", "Value error, "):
        message = message.removeprefix(opening)
    return message


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"

"""Environment variables that override the configuration file.

`BICAMERAL_LIMITS__MAX_ITEMS=50` sets `max_items` in `[limits]`; a double underscore goes one table deeper. A few
settings have a short name. Variables without a double underscore that are no short name are not ours to read: a
password may well be called `BICAMERAL_SMTP_PASSWORD`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from bicameral.errors import nearest

PREFIX = "BICAMERAL_"
SHORT: Mapping[str, tuple[str, ...]] = {
    "BICAMERAL_PROFILE": ("profile",),
    "BICAMERAL_MODELS": ("models", "folder"),
    "BICAMERAL_THREADS": ("models", "threads"),
    "BICAMERAL_JOURNAL": ("journal", "file"),
    "BICAMERAL_CACHE": ("cache", "folder"),
}
FILE = "BICAMERAL_CONFIG"
DEBUG = "BICAMERAL_DEBUG"
ACCEPT = "BICAMERAL_ACCEPT"

_LISTS = frozenset(
    {
        *(("folders", "read"), ("folders", "write"), ("folders", "trusted")),
        *(("toolboxes", "use"), ("toolboxes", "files"), ("policy", "files"), ("policy", "me")),
    }
)
_NUMBERS = frozenset({("models", "threads")})


def overrides(environment: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Each variable that sets something, with the key it sets and the value; empty ones set nothing."""
    for name in sorted(environment):
        value = environment[name]
        if not name.startswith(PREFIX) or name == FILE or not value:
            continue
        path = SHORT.get(name)
        if path is None and "__" in name:
            path = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        if path is not None:
            yield name, path, _value(path, value)


def misspelt(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that set nothing but look like one that would, with that one."""
    known = (*SHORT, FILE, DEBUG, ACCEPT)
    for name in sorted(environment):
        if name.startswith(PREFIX) and "__" not in name and name not in known and (meant := nearest(name, known)):
            yield name, meant


def _value(path: tuple[str, ...], text: str) -> Any:
    """The value as the key wants it; for toolboxes' own settings, TOML if it is TOML and text otherwise."""
    if path in _LISTS and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    if path in _LISTS or path in _NUMBERS or path[0] in ("limits", "toolbox"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            return text
    return text

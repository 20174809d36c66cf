"""The weights Bicameral knows: names, sizes, hashes and where they are published."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bicameral.errors import ModelError, nearest

_SHORTEST_PREFIX = 6


@dataclass(frozen=True, slots=True)
class WheelPin:
    """One registry wheel that carries a piece of a weights file, pinned by its own hash."""

    name: str
    version: str
    bytes: int
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True)
class AdapterPin:
    """A file beside the package's code that adds to some weights, pinned by its hash."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Weights:
    """One weights file, identified by its SHA-256; everything else says how to name and find it."""

    id: str
    alias: str
    title: str
    licence: str
    bytes: int
    sha256: str
    hub_repo: str | None = None
    hub_file: str | None = None
    wheels: tuple[WheelPin, ...] = ()
    member: str = "*.gguf"
    """Which file inside each wheel is a piece (a glob over the names in the archive)."""
    adapters: dict[str, AdapterPin] = field(default_factory=dict[str, AdapterPin])
    """What comes with the package for these weights, by the job it is for."""


@cache
def known_weights() -> tuple[Weights, ...]:
    """Every set of weights that can be pulled by name."""
    import tomllib

    from pydantic import TypeAdapter

    text = Path(__file__).with_name("known.toml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[Weights, ...]).validate_python(tomllib.loads(text)["weights"])


def find_weights(name: str) -> Weights:
    """The weights with this id, alias, or beginning of their SHA-256.

    Example:
        >>> find_weights("0.5b").id
        'qwen2.5-coder-0.5b'
    """
    wanted = name.strip().lower()
    for weights in known_weights():
        if wanted in (weights.id, weights.alias):
            return weights
    digest = wanted.removeprefix("sha256:")
    if len(digest) >= _SHORTEST_PREFIX and set(digest) <= set(string.hexdigits):
        for weights in known_weights():
            if weights.sha256.startswith(digest):
                return weights
    names = [text for weights in known_weights() for text in (weights.id, weights.alias)]
    known = ", ".join(f"{weights.id} ({weights.alias})" for weights in known_weights())
    raise ModelError(
        "models.unknown",
        f"there are no weights named {name!r}",
        expected=f"one of {known}",
        nearest=nearest(wanted, names),
        fix="`bicameral models list` shows them all.",
    )

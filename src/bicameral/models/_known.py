"""The weights Bicameral knows: names, sizes, hashes and where they are published."""

from __future__ import annotations

import string
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

from bicameral.errors import ModelError, nearest

_SHORTEST_PREFIX = 6

Kind = Literal["chat", "embedding"]
"""What weights are for: a model that replies, or one that turns texts into vectors."""
_USES: dict[Kind, str] = {"chat": "replies", "embedding": "embeddings"}


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
class FilePin:
    """A file that weights cannot be used without, such as their tokenizer, pinned by its hash."""

    file: str
    bytes: int
    sha256: str
    member: str
    """Its name in the wheel that carries the weights."""


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
    kind: Kind = "chat"
    files: tuple[FilePin, ...] = ()
    """What else must be in the store before these weights can be used."""

    @property
    def parts(self) -> tuple[Weights, ...]:
        """The weights file and each file that goes with it, as what the store keeps one by one."""
        return (replace(self, files=()), *(self._part(pin) for pin in self.files))

    def _part(self, pin: FilePin) -> Weights:
        facts = {"bytes": pin.bytes, "sha256": pin.sha256, "hub_file": pin.file, "member": pin.member}
        return replace(self, title=f"{self.title}, {pin.file}", files=(), adapters={}, **facts)

    @property
    def stored_as(self) -> str:
        """The name of the file in a store."""
        return f"sha256-{self.sha256}" + (".gguf" if self.kind == "chat" else f"-{self.hub_file}")


@cache
def known_weights() -> tuple[Weights, ...]:
    """Every set of weights that can be pulled by name."""
    import tomllib

    from pydantic import TypeAdapter

    text = Path(__file__).with_name("known.toml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[Weights, ...]).validate_python(tomllib.loads(text)["weights"])


def find_weights(name: str, kind: Kind | None = "chat") -> Weights:
    """The weights of this kind (any, with None) with this id, alias, or beginning of their SHA-256.

    Example:
        >>> find_weights("0.5b").id
        'qwen2.5-coder-0.5b'
    """
    found = _named(name.strip().lower())
    if found is None:
        raise _unknown(name, kind)
    if kind not in (None, found.kind):
        raise ModelError(
            "models.wrong-kind",
            f"{found.id} is for {_USES[found.kind]}, not for {_USES[kind or found.kind]}",
            expected=_names(kind),
        )
    return found


def _named(wanted: str) -> Weights | None:
    for weights in known_weights():
        if wanted in (weights.id, weights.alias):
            return weights
    digest = wanted.removeprefix("sha256:")
    if len(digest) >= _SHORTEST_PREFIX and set(digest) <= set(string.hexdigits):
        for weights in known_weights():
            if weights.sha256.startswith(digest):
                return weights
    return None


def _names(kind: Kind | None) -> str:
    meant = (weights for weights in known_weights() if kind in (None, weights.kind))
    return f"one of {', '.join(f'{weights.id} ({weights.alias})' for weights in meant)}"


def _unknown(name: str, kind: Kind | None) -> ModelError:
    names = [
        text for weights in known_weights() if kind in (None, weights.kind) for text in (weights.id, weights.alias)
    ]
    return ModelError(
        "models.unknown",
        f"there are no weights named {name!r}",
        expected=_names(kind),
        nearest=nearest(name.strip().lower(), names),
        fix="`bicameral models list` shows them all.",
    )

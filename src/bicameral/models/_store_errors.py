"""Errors of the model store, each with a fix."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bicameral.errors import ModelError, Place
from bicameral.models._sources import DISK_FULL_ERRNOS
from bicameral.models._store_files import format_bytes
from bicameral.models._weights import Weights


def damaged_file_error(weights: Weights, path: Path, sha256: str, *, given: bool) -> ModelError:
    """The error for a file with the wrong hash, in the store or `given` by the user."""
    fix = "Check where it came from; it was left as it is and not used."
    if not given:
        fix = f"It is not used. `bicameral models pull {weights.alias}` fetches it again."
    return ModelError(
        "models.damaged",
        f"this is not {weights.title}: its SHA-256 is {sha256}",
        place=Place(file=str(path)),
        expected=f"SHA-256 {weights.sha256} ({weights.bytes} bytes)",
        fix=fix,
    )


def no_source_error(weights: Weights, reasons: Sequence[tuple[str, str]]) -> ModelError:
    """The error for weights that no source could provide."""
    tried = "; ".join(f"{name}: {reason}" for name, reason in reasons) or "there was nothing to try"
    if weights.own and not weights.sha256:
        return ModelError(
            "models.no-source",
            f"{weights.title} could not be fetched: {tried}",
            fix="Try again with a network, or fetch the file yourself and add it with `bicameral models add FILE`.",
        )
    return ModelError(
        "models.no-source",
        f"{weights.title} ({format_bytes(weights.bytes)}) is not on this machine and could not be fetched: {tried}",
        fix=f"Try again with a network, or bring the file (SHA-256 {weights.sha256}) with "
        f"`bicameral models pull {weights.alias} --file PATH`, or set BICAMERAL_MODELS to a store that has it.",
    )


def disk_full_error(weights: Weights, folder: Path, *, needed: int, free: int) -> ModelError:
    """The error for too little disk space."""
    return ModelError(
        "models.disk-full",
        f"{weights.title} needs {format_bytes(needed)} ({needed} bytes) of disk space, "
        f"and {format_bytes(free)} ({free} bytes) are free",
        place=Place(file=str(folder)),
        fix="Free some space, or set BICAMERAL_MODELS to a folder on another disk. What was fetched is kept.",
    )


def unreadable_file_error(path: Path, error: OSError) -> ModelError:
    """The error for a file that exists but cannot be read."""
    return ModelError(
        "models.unreadable",
        f"the file cannot be read: {error.strerror or error}",
        place=Place(file=str(path)),
        fix="Check the path and its permissions.",
    )


@contextmanager
def translate_disk_errors(weights: Weights, folder: Path, free_bytes: Callable[[Path], int]) -> Generator[None]:
    """Turn errors of the operating system about the store's folder into typed errors with a fix."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL_ERRNOS:
            raise disk_full_error(weights, folder, needed=weights.bytes, free=free_bytes(folder)) from error
        raise ModelError(
            "models.store-unusable",
            f"the model store cannot be used: {error.strerror or error}",
            place=Place(file=str(folder)),
            fix="Set BICAMERAL_MODELS to a folder that you can write.",
        ) from error

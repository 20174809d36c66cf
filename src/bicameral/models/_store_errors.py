"""What the model store says when something is wrong."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bicameral.errors import ModelError, Place
from bicameral.models._known import Weights
from bicameral.models._store_progress import megabytes

_FULL = (errno.ENOSPC, errno.EDQUOT)


def damaged(weights: Weights, path: Path, found: str, *, given: bool) -> ModelError:
    """A file whose hash is not the one its weights have."""
    mend = "Check where it came from; it was left as it is and not used."
    if not given:
        mend = f"It is not used. `bicameral models pull {weights.alias}` fetches it again."
    return ModelError(
        "models.damaged",
        f"this is not {weights.title}: its SHA-256 is {found}",
        place=Place(file=str(path)),
        expected=f"SHA-256 {weights.sha256} ({weights.bytes} bytes)",
        fix=mend,
    )


def no_source(weights: Weights, reasons: Sequence[tuple[str, str]]) -> ModelError:
    """Nothing that was tried had the weights."""
    tried = "; ".join(f"{name}: {reason}" for name, reason in reasons) or "there was nothing to try"
    return ModelError(
        "models.no-source",
        f"{weights.title} ({megabytes(weights.bytes)}) is not on this machine and could not be fetched: {tried}",
        fix=f"Try again with a network, or bring the file (SHA-256 {weights.sha256}) with "
        f"`bicameral models pull {weights.alias} --file PATH`, or set BICAMERAL_MODELS to a store that has it.",
    )


def disk_full(weights: Weights, folder: Path, *, needed: int, free: int) -> ModelError:
    """There is no room for the weights."""
    return ModelError(
        "models.disk-full",
        f"{weights.title} needs {megabytes(needed)} ({needed} bytes) of disk space, "
        f"and {megabytes(free)} ({free} bytes) are free",
        place=Place(file=str(folder)),
        fix="Free some space, or set BICAMERAL_MODELS to a folder on another disk. What was fetched is kept.",
    )


def unreadable(path: Path, error: OSError) -> ModelError:
    """A file that is there but cannot be read."""
    return ModelError(
        "models.unreadable",
        f"the file cannot be read: {error.strerror or error}",
        place=Place(file=str(path)),
        fix="Check the path and its permissions.",
    )


def check_readable(path: Path) -> None:
    """Refuse a given file that cannot be opened, before anything else is done."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise unreadable(path, error) from None


@contextmanager
def disk_errors(weights: Weights, folder: Path, free_bytes: Callable[[Path], int]) -> Generator[None]:
    """Turn what the operating system says about the store's folder into an error that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(weights, folder, needed=weights.bytes, free=free_bytes(folder)) from error
        raise ModelError(
            "models.store-unusable",
            f"the model store cannot be used: {error.strerror or error}",
            place=Place(file=str(folder)),
            fix="Set BICAMERAL_MODELS to a folder that you can write.",
        ) from error

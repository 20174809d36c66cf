"""Saved states of prompt prefixes: files in a private folder that an engine wrote and may read back."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MOST_FILES = 8
MOST_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class PrefixState:
    """One file, and the tokens that a slot has after it was read."""

    name: str
    tokens: tuple[int, ...]
    size: int
    sha256: str


class PrefixStates:
    """The states of a folder, the least recently used of which goes when there are too many files or bytes.

    An engine aborts the whole process on a damaged file. So a file is written under another name and renamed when it is
    whole, and its length and hash are compared before the engine is told of it.
    """

    def __init__(self, folder: Path, *, most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._states: OrderedDict[str, PrefixState] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._states

    def add(self, key: str, tokens: tuple[int, ...], write: Callable[[str], int]) -> None:
        """Let `write` make a file of the name that it is given and say how many bytes it wrote; keep it if it did."""
        part, name = f"{key}.part", f"{key}.state"
        written = write(part)
        path = self.folder / part
        try:
            size, digest = _measure(path)
            if size != written:
                # A full disk: the engine does not look at what closing the file said.
                path.unlink()
                return
            path.replace(self.folder / name)
        except OSError:
            return
        self._states[key] = PrefixState(name, tokens, size, digest)
        self._states.move_to_end(key)
        while len(self._states) > self._most_files or self._bytes() > self._most_bytes:
            self.drop(next(iter(self._states)))

    def find(self, key: str) -> PrefixState | None:
        """The state of this key, if its file is still what was written."""
        state = self._states.get(key)
        if state is None:
            return None
        try:
            whole = _measure(self.folder / state.name) == (state.size, state.sha256)
        except OSError:
            whole = False
        if not whole:
            self.drop(key)
            return None
        self._states.move_to_end(key)
        return state

    def drop(self, key: str) -> None:
        """Forget a state and remove its file."""
        state = self._states.pop(key, None)
        if state is not None:
            (self.folder / state.name).unlink(missing_ok=True)

    def _bytes(self) -> int:
        return sum(state.size for state in self._states.values())


def state_key(adapter: str, tokens: tuple[int, ...]) -> str:
    """The name of a prefix: the adapter that it was evaluated with, and its tokens."""
    return hashlib.sha256(f"{adapter}:{','.join(map(str, tokens))}".encode()).hexdigest()


def _measure(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest

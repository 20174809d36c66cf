"""A folder of small texts by key: what was understood or planned once need not be again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path


class FolderCache(MutableMapping[str, str]):
    """A mapping from hex keys to texts, one file each, written atomically.

    A cache is a convenience: a folder that cannot be written is an empty cache, not an error.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, key: str) -> str:
        try:
            return self._file(key).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise KeyError(key) from None

    def __setitem__(self, key: str, value: str) -> None:
        file = self._file(key)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".new-")
        except OSError:
            return
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as new:
                new.write(value)
            Path(name).replace(file)
        except OSError:
            Path(name).unlink(missing_ok=True)

    def __delitem__(self, key: str) -> None:
        try:
            self._file(key).unlink()
        except OSError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return (file.name for file in self._folder.glob("??/*") if not file.name.startswith("."))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _file(self, key: str) -> Path:
        if not key.isalnum():
            raise KeyError(key)
        return self._folder / key[:2] / key

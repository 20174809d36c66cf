"""Saved states of evaluated prefixes: those of one process in its private folder, and those that outlive it.

The engine aborts the whole process on a damaged file, and a state that somebody else made would steer a privileged
model. So the engine reads only files in the private folder of its process, after their length, hash and tokens were
checked. `PrefixStates` holds these. `PrefixFolder` keeps the states of fixed prefixes, in which no text of a user
stands, for later processes: any doubt about one of its files means that the prefix is evaluated again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import stat
import struct
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

MAX_STATE_FILES = 8
MAX_STATE_BYTES = 512 * 2**20
MAX_FOLDER_BYTES = 2**30

_FORM = "prefix-state/1"
_STATE, _FACTS, _PART = ".state", ".json", ".part"
_MAX_FACTS_BYTES = 4096
# What the engine writes at the start of a state: a mark, the version of the format, how many numbers follow, and of
# these a mark, a version and how many tokens follow.
_STATE_HEAD = struct.Struct("<4sIIiii")
_STATE_MARK, _TOKENS_MARK = b"qsgg", -1
# A file that another process is still writing must not be taken for one that a killed process left behind.
_ABANDONED_SECONDS = 3600.0
_part_numbers = count()


@dataclass(frozen=True, slots=True)
class PrefixState:
    """A saved state: its file, and the tokens that a slot holds after reading it."""

    name: str
    tokens: tuple[int, ...]
    size: int
    sha256: str


def prefix_key(adapter: str, tokens: tuple[int, ...]) -> str:
    """The cache key of a prefix: a hash over the adapter that it was evaluated with, and its tokens."""
    return hashlib.sha256(f"{adapter}:{','.join(map(str, tokens))}".encode()).hexdigest()


class PrefixFolder:
    """States of fixed prefixes on disk, shared by all processes of a user.

    A state is used only with what it was made with: weights, adapter, engine, its settings, its number of threads and
    the kind of CPU, since each of them may round differently. Two files belong to a state: the engine's own, and one
    that says what it is and has its hash. Both are written under another name and renamed when they are complete.

    Args:
        folder: Where it lies. It is not used unless it belongs to this user and nobody else may write into it.
        made_with: Everything but the adapter and the tokens on which a state depends.
        most_bytes: The states that were not used for the longest time are deleted above this; 0 keeps none.
    """

    def __init__(self, folder: Path, made_with: tuple[str, ...], *, most_bytes: int = MAX_FOLDER_BYTES) -> None:
        self.folder = folder
        self.made_with = made_with
        self.most_bytes = most_bytes

    def fetch(self, key: str, tokens: tuple[int, ...], target: Path) -> tuple[int, str] | None:
        """Bring the state of these tokens to `target`; return its size and hash, or None if it may not be used."""
        name = self._name(key)
        if self.most_bytes <= 0 or not _is_private_folder(self.folder):
            return None
        facts = _read_facts(self.folder / f"{name}{_FACTS}")
        if facts is None or (facts.form, facts.made_with, facts.key) != (_FORM, list(self.made_with), key):
            return None
        source = self.folder / f"{name}.{facts.sha256[:16]}{_STATE}"
        try:
            if not _is_private_file(source):
                return None
            _link_or_copy(source, target)
            # It is checked where the engine will read it.
            if size_and_hash(target) == (facts.size, facts.sha256) and has_tokens(target, tokens):
                with suppress(OSError):
                    os.utime(self.folder / f"{name}{_FACTS}")
                return facts.size, facts.sha256
        except OSError:
            pass
        target.unlink(missing_ok=True)
        self.drop(key)
        return None

    def keep(self, key: str, state: PrefixState, source: Path) -> None:
        """Keep a copy of a state; nothing happens where that is not possible, such as on a full disk."""
        if state.size > self.most_bytes:
            return
        name, part = self._name(key), f"{os.getpid()}-{next(_part_numbers)}{_PART}"
        facts = _StateFacts(_FORM, list(self.made_with), key, len(state.tokens), state.size, state.sha256)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_private_folder(self.folder):
                return
            self._make_room(state.size, keep=name)
            kept, described = self.folder / f"state-{part}", self.folder / f"facts-{part}"
            try:
                _link_or_copy(source, kept)
                kept.replace(self.folder / f"{name}.{state.sha256[:16]}{_STATE}")
                # The description last: without it the state does not count.
                described.write_text(json.dumps(facts.to_json()), encoding="ascii")
                described.replace(self.folder / f"{name}{_FACTS}")
            finally:
                kept.unlink(missing_ok=True)
                described.unlink(missing_ok=True)
        except OSError:
            return

    def drop(self, key: str) -> None:
        """Delete a state."""
        self._drop_name(self._name(key))

    def states(self) -> list[tuple[str, int, float]]:
        """Name, bytes and time of the last use of each state, the oldest first."""
        found: list[tuple[str, int, float]] = []
        with suppress(OSError):
            for path in self.folder.glob(f"*{_FACTS}"):
                facts = _read_facts(path)
                with suppress(OSError):
                    used = path.stat().st_mtime
                    found.append((path.name.removesuffix(_FACTS), 0 if facts is None else facts.size, used))
        return sorted(found, key=lambda each: each[2])

    def _name(self, key: str) -> str:
        return hashlib.sha256(json.dumps([_FORM, *self.made_with, key]).encode()).hexdigest()[:32]

    def _drop_name(self, name: str) -> None:
        with suppress(OSError):
            (self.folder / f"{name}{_FACTS}").unlink(missing_ok=True)
            for path in self.folder.glob(f"{name}.*{_STATE}"):
                path.unlink(missing_ok=True)

    def _make_room(self, size: int, keep: str) -> None:
        known = self.states()
        names = {name for name, _, _ in known}
        total = sum(bytes_ for name, bytes_, _ in known if name != keep)
        for name, bytes_, _ in known:
            if total + size <= self.most_bytes:
                break
            if name != keep:
                self._drop_name(name)
                total -= bytes_
        # What a killed process left behind.
        before = time.time() - _ABANDONED_SECONDS
        for path in (*self.folder.glob(f"*{_PART}"), *self.folder.glob(f"*{_STATE}")):
            with suppress(OSError):
                if path.name.partition(".")[0] not in names and path.stat().st_mtime < before:
                    path.unlink()


@dataclass(frozen=True, slots=True)
class _StateFacts:
    """What a state on disk is, as its description says."""

    form: str
    made_with: list[str]
    key: str
    tokens: int
    size: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def _read_facts(path: Path) -> _StateFacts | None:
    try:
        if not _is_private_file(path) or path.stat().st_size > _MAX_FACTS_BYTES:
            return None
        found = json.loads(path.read_text(encoding="ascii"))
        facts = _StateFacts(**found)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    # Exact types, so that a number that is a text, or a path in place of a hash, is no match.
    kinds = (str, list, str, int, int, str)
    values = (facts.form, facts.made_with, facts.key, facts.tokens, facts.size, facts.sha256)
    is_exact = all(type(value) is kind for value, kind in zip(values, kinds, strict=True))
    return facts if is_exact and len(facts.sha256) == 64 and facts.sha256.isalnum() else None


def _is_private_folder(folder: Path) -> bool:
    """Whether only this user can have written what lies in a folder: a stranger's state would steer the planner."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _is_own(found)


def _is_private_file(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and _is_own(found)


def _is_own(found: os.stat_result) -> bool:
    if sys.platform == "win32":
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _link_or_copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        # Nothing ever changes a finished state in place, so two names of one file are as good as two files.
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(0o600)


def size_and_hash(path: Path) -> tuple[int, str]:
    """The length and the SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def has_tokens(path: Path, tokens: tuple[int, ...]) -> bool:
    """Whether a file is a state of exactly these tokens, by the head that the engine gave it."""
    with path.open("rb") as file:
        head = file.read(_STATE_HEAD.size)
        if len(head) < _STATE_HEAD.size:
            return False
        mark, _, _, tokens_mark, _, number = _STATE_HEAD.unpack(head)
        if (mark, tokens_mark, number) != (_STATE_MARK, _TOKENS_MARK, len(tokens)):
            return False
        return file.read(4 * number) == struct.pack(f"<{number}i", *tokens)


class PrefixStates:
    """The states of one process, in its private folder.

    The least recently used is deleted when there are too many files or bytes. A file is written under another name and
    renamed when it is complete, and its length and hash are checked before the engine reads it.

    Args:
        folder: The private folder.
        kept: Where the states of fixed prefixes are kept for later processes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        kept: PrefixFolder | None = None,
        most_files: int = MAX_STATE_FILES,
        most_bytes: int = MAX_STATE_BYTES,
    ) -> None:
        self.folder = folder
        self.kept = kept
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._states: OrderedDict[str, PrefixState] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._states

    def add(self, key: str, tokens: tuple[int, ...], write: Callable[[str], int], *, fixed: bool = False) -> None:
        """Save a state: `write` makes a file of the given name and returns how many bytes it wrote.

        A `fixed` one is kept for later processes. It must hold no text of a user.
        """
        part, name = f"{key}{_PART}", f"{key}{_STATE}"
        written = write(part)
        path = self.folder / part
        try:
            size, digest = size_and_hash(path)
            if size != written:
                # The disk is full: the engine does not check the result of closing the file.
                path.unlink()
                return
            path.replace(self.folder / name)
        except OSError:
            return
        state = PrefixState(name, tokens, size, digest)
        if fixed and self.kept is not None and has_tokens(self.folder / name, tokens):
            self.kept.keep(key, state, self.folder / name)
        self._add(key, state)

    def find(self, key: str, fixed: tuple[int, ...] = ()) -> PrefixState | None:
        """The state of this key, if its file is unchanged since it was written.

        Args:
            fixed: The tokens of a fixed prefix, whose state an earlier process may have kept.
        """
        state = self._states.get(key)
        if state is None:
            return self._fetch(key, fixed) if fixed else None
        try:
            intact = size_and_hash(self.folder / state.name) == (state.size, state.sha256)
        except OSError:
            intact = False
        if not intact:
            self.drop(key)
            return None
        self._states.move_to_end(key)
        return state

    def _fetch(self, key: str, tokens: tuple[int, ...]) -> PrefixState | None:
        path = self.folder / f"{key}{_STATE}"
        found = None if self.kept is None else self.kept.fetch(key, tokens, path)
        if found is None:
            return None
        state = PrefixState(path.name, tokens, *found)
        self._add(key, state)
        return state if key in self._states else None

    def drop(self, key: str) -> None:
        """Delete a state and its file."""
        state = self._states.pop(key, None)
        if state is not None:
            (self.folder / state.name).unlink(missing_ok=True)

    def discard(self, key: str) -> None:
        """Delete a state that the engine did not take, here and for later processes."""
        self.drop(key)
        if self.kept is not None:
            self.kept.drop(key)

    def _add(self, key: str, state: PrefixState) -> None:
        self._states[key] = state
        self._states.move_to_end(key)
        while len(self._states) > self._most_files or self._bytes() > self._most_bytes:
            self.drop(next(iter(self._states)))

    def _bytes(self) -> int:
        return sum(state.size for state in self._states.values())


@cache
def engine_build() -> str:
    """The engine that is installed: its version, and the size of its library, which a build of one's own changes."""
    spec = find_spec("xllamacpp.xllamacpp")
    size = Path(spec.origin).stat().st_size if spec and spec.origin else 0
    return f"xllamacpp {version('xllamacpp')} {size}"


@cache
def cpu_kind() -> str:
    """The kind of CPU: its name and its instructions, by which the engine chooses how it computes."""
    found = [platform.machine(), platform.processor()]
    with suppress(OSError):
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        kept = ("model name", "flags", "features", "cpu implementer", "cpu part", "cpu variant")
        found += [line for line in first.splitlines() if line.lower().startswith(kept)]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class KeptPrefixes:
    """Where an engine keeps the states of fixed prefixes, and the SHA-256 of its weights, which they depend on."""

    folder: Path
    weights: str
    most_bytes: int = MAX_FOLDER_BYTES

    def folder_for(self, settings: tuple[str, ...]) -> PrefixFolder:
        """The states that an engine with these settings can use on this machine."""
        made_with = (self.weights, engine_build(), cpu_kind(), *settings)
        return PrefixFolder(self.folder, made_with, most_bytes=self.most_bytes)

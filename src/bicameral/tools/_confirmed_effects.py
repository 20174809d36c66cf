"""Effects of programs that describe themselves, as far as a person has confirmed them.

A confirmation is made once (`bicameral tools accept NAME`) and bound to everything that it was made for: the bytes of
the program and of the files that its settings name for it, all that it printed for `--describe`, and the network that
it is given. If any of that changes the confirmation lapses, and the tool is irreversible again. A confirmed program is
compared once more before each call, so that one that is replaced while a process runs is not started.

The record lies with the user's state, outside every project. A record that others can write, or that is a link, is not
used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from bicameral.cache import read_private_file, user_folder, write_private_file
from bicameral.errors import Place, ToolError
from bicameral.tools._argument import EFFECTS, Effect
from bicameral.tools._effect_proposals import EffectProposal

_MAX_RECORD_BYTES = 4 * 1024 * 1024

EffectState = Literal["unconfirmed", "confirmed", "lapsed", "configured"]
"""Whether a person has decided on an effect: with `tools accept`, or in the settings of the program."""
PARTS = ("program", "files", "description", "network")


class LapsedEffectWarning(UserWarning):
    """A confirmed effect no longer counts, since the program or its description has changed."""


@dataclass(frozen=True, slots=True)
class ProgramIdentity:
    """What a confirmation is bound to, except the bytes of files, which are read only where they are needed."""

    argv: tuple[str, ...]
    """The program and its first arguments, as they are started."""
    needs: tuple[str, ...]
    network: bool | tuple[str, ...]
    description: str
    """A hash of the description."""

    def key(self, tool: str) -> str:
        """The name of a tool of this program in the record."""
        return f"{tool}: {shlex.join((os.path.realpath(self.argv[0]), *self.argv[1:]))}"

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose bytes count: the program, a script after its interpreter, and those that it needs."""
        return tuple(each for each in (*self.argv, *self.needs) if os.path.isabs(each) and os.path.isfile(each))

    def parts(self) -> dict[str, str]:
        """A hash of each part; `tools.program-unreadable` if a file cannot be read."""
        return {
            "program": _hash_files((self.argv[0],)),
            "files": _hash_files(each for each in self.files if each != self.argv[0]),
            "description": self.description,
            "network": _hash_json([self.network, self.needs]),
        }


@dataclass(frozen=True, slots=True)
class DescribedEffect:
    """What a program's description suggests for one tool, and what a person has made of it.

    Args:
        possible: The effects that fit its arguments: what writes a file cannot be a reading tool.
        confirmed: The effect that was confirmed, also where that has lapsed.
        changed: The parts that have changed since.
        when: When it was confirmed.
    """

    tool: str
    identity: ProgramIdentity
    proposal: EffectProposal
    possible: tuple[Effect, ...]
    state: EffectState = "unconfirmed"
    confirmed: Effect | None = None
    changed: tuple[str, ...] = ()
    when: str = ""

    @property
    def program(self) -> str:
        return self.identity.argv[0]

    def __str__(self) -> str:
        match self.state:
            case "confirmed":
                return f"confirmed by you as {self.confirmed!r} ({self.when}); proposed is {self.proposal}"
            case "configured":
                return f"set in its settings; proposed is {self.proposal}"
            case "lapsed":
                changed = " and ".join(_PART_TEXTS[each] for each in self.changed)
                return (
                    f"no longer confirmed as {self.confirmed!r}: {changed} changed since. Proposed is {self.proposal}. "
                    f"Look at it, then run `bicameral tools accept {self.tool}`"
                )
            case "unconfirmed":
                return f"not confirmed. Proposed is {self.proposal}. `bicameral tools accept {self.tool}` confirms it"

    def to_json(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "state": self.state,
            "program": self.program,
            "proposed": self.proposal.effect,
            "reasons": list(self.proposal.reasons),
        }
        if self.confirmed is not None:
            facts |= {"confirmed": self.confirmed, "when": self.when}
        return facts | ({"changed": list(self.changed)} if self.changed else {})


_PART_TEXTS = {
    "program": "the program",
    "files": "a file that it needs",
    "description": "its description",
    "network": "what your settings give it",
}


def effects_file() -> Path:
    """The record of the effects that this user has confirmed."""
    return user_folder("state") / "confirmed-effects.json"


def resolve_effect(found: DescribedEffect) -> DescribedEffect:
    """The same with what the user's record says of it. A record that others can write says nothing."""
    try:
        entry = _read_record().get(found.identity.key(found.tool))
    except ToolError:
        return found
    if entry is None:
        return found
    effect, old = cast("Effect", entry["effect"]), cast("dict[str, str]", entry["parts"])
    try:
        new = found.identity.parts()
    except ToolError:
        new = dict[str, str]()
    changed = tuple(name for name in PARTS if old.get(name) != new.get(name))
    state: EffectState = "lapsed" if changed else "confirmed"
    return replace(found, state=state, confirmed=effect, changed=changed, when=entry["when"])


def confirm_effect(
    found: DescribedEffect, effect: Effect | None = None, parts: Mapping[str, str] | None = None
) -> None:
    """Record that the user confirms an effect of a tool. The tool has it when it is loaded the next time.

    Args:
        found: What is known of the tool: `tool.described`.
        effect: The effect; without it, the proposed one.
        parts: What `found.identity.parts()` was when the user was shown it; anything else is refused.
    """
    effect = effect or found.proposal.effect
    if effect not in found.possible:
        raise ToolError(
            "tools.wrong-effect",
            f"{found.tool!r} cannot be {effect!r}: {'; '.join(found.proposal.reasons)}",
            expected=" or ".join(found.possible),
        )
    now = found.identity.parts()
    if parts is not None and now != dict(parts):
        raise _changed_error(found.tool, found.program)
    record = _read_record()
    record[found.identity.key(found.tool)] = {
        "effect": effect,
        "parts": now,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write_record(record)


def forget_effect(found: DescribedEffect) -> bool:
    """Withdraw what was confirmed for a tool; False if nothing was."""
    record = _read_record()
    if record.pop(found.identity.key(found.tool), None) is None:
        return False
    _write_record(record)
    return True


@dataclass(frozen=True, slots=True)
class ProgramPin:
    """The bytes for which an effect was confirmed, compared before each call."""

    tool: str
    files: tuple[str, ...]
    hashes: str

    @classmethod
    def of(cls, tool: str, identity: ProgramIdentity) -> ProgramPin:
        return cls(tool, identity.files, _hash_files(identity.files))

    def require(self) -> None:
        """Refuse a program that is not the confirmed one any more."""
        if _hash_files(self.files) != self.hashes:
            raise _changed_error(self.tool, self.files[0])


def _changed_error(tool: str, program: str) -> ToolError:
    return ToolError(
        "tools.program-changed",
        f"the program of {tool!r} is not the one whose effect was confirmed",
        place=Place(file=program),
        fix=f"Look at it, then run `bicameral tools accept {tool}` and start again.",
    )


def hash_description(content: object) -> str:
    """The hash of a description, whatever the order of its keys."""
    return _hash_json(content)


def _hash_json(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _hash_files(paths: Iterable[str]) -> str:
    """One hash of the real paths and the bytes of these files."""
    return _hash_json([[os.path.realpath(path), _file_hash(path)] for path in paths])


def _file_hash(path: str) -> str:
    try:
        found = os.stat(path)
        # The time of the last change of an inode cannot be set back, unlike that of its content.
        return _read_file_hash(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    except OSError as error:
        raise ToolError(
            "tools.program-unreadable",
            f"the file cannot be read, so that nobody can say when it changes: {error.strerror or error}",
            place=Place(file=path),
        ) from None


@lru_cache(maxsize=256)
def _read_file_hash(path: str, *_: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_record() -> dict[str, dict[str, Any]]:
    """The confirmed effects; `tools.foreign-record` if somebody else can have written them."""
    file = effects_file()
    try:
        found: Any = json.loads(read_private_file(file, _MAX_RECORD_BYTES))
        entries = found["effects"].items()
    except FileNotFoundError:
        return {}
    except OSError as error:
        # Also where others can write it, or where a link is in its place, which is not followed.
        raise _record_error(error) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Not taken as empty: the next confirmation would overwrite whatever it is.
        raise _record_error(OSError("it is no such record")) from None
    return {key: entry for key, entry in cast("Sequence[tuple[str, Any]]", entries) if _is_entry(entry)}


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    facts = cast("dict[str, object]", entry)
    parts = facts.get("parts")
    return (
        facts.get("effect") in EFFECTS
        and isinstance(facts.get("when"), str)
        and isinstance(parts, dict)
        and set(cast("dict[str, object]", parts)) == set(PARTS)
    )


def _record_error(error: OSError) -> ToolError:
    return ToolError(
        "tools.foreign-record",
        f"the record of confirmed effects is not used: {error.strerror or error}",
        place=Place(file=str(effects_file())),
        fix="Look at it. If it is yours, `chmod 600` it; if not, delete it and confirm again.",
    )


def record_problem() -> str | None:
    """Why the record of confirmed effects is not used, or None."""
    try:
        _read_record()
    except ToolError as error:
        return error.message
    return None


def _write_record(record: Mapping[str, Mapping[str, Any]]) -> None:
    target = effects_file()
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps({"version": 1, "effects": record}, indent=1, sort_keys=True)
        write_private_file(target, [text.encode()], sync=True)
    except OSError as error:
        raise ToolError(
            "tools.record-unwritable",
            f"what you confirm cannot be recorded: {error.strerror or error}",
            place=Place(file=str(target)),
        ) from None

"""Whose configuration counts: a folder's `bicameral.toml` is used in full only after this user has accepted it.

What counts as accepted: the file that `--config`, `BICAMERAL_CONFIG` or the caller names; the user's own file; one
that `bicameral init` wrote; one that `BICAMERAL_ACCEPT` lists; and one that a person has seen and said yes to. That yes
holds for the real path of the file and a hash of all that widens in it, with the contents of code, policies and
manifests. It is kept outside every project, where no tool can write.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

from bicameral.errors import ConfigError, Place
from bicameral.user_folders import user_folder

from ._environment import ACCEPT
from ._widening import Widening

_MAX_BYTES = 16 * 1024 * 1024

Change = Literal["new", "changed", "gone"]


class UnacceptedConfigWarning(UserWarning):
    """Settings of a configuration that the user has not accepted are not used."""


@dataclass(frozen=True, slots=True)
class Unaccepted:
    """A configuration that this user has not accepted as it is now.

    `changes` say of each setting and file whether it is new, has changed or is gone since it was accepted; where it
    never was, everything is new.
    """

    file: Path
    widening: Widening
    changes: Mapping[str, Change]
    before: bool

    @property
    def withheld(self) -> tuple[str, ...]:
        """The settings that are not used until it is accepted."""
        return tuple(sorted(self.widening.settings))

    def describe(self) -> list[str]:
        """What it would change, a line each. Values are escaped: whoever wrote the file chose them."""
        lines: list[str] = []
        for name in sorted({*self.widening.settings, *self.widening.files, *self.changes}):
            mark = self.changes.get(name)
            note = "" if mark is None or not self.before else f" ({mark})"
            if name in self.widening.settings:
                lines.append(f"{name} = {_short(self.widening.settings[name])}{note}")
            elif name in self.widening.files:
                lines.append(f"uses the file {_short(name)}{note}")
            else:
                lines.append(f"{_short(name)}{note}")
        return lines

    def __str__(self) -> str:
        changed = "has changed since you accepted it" if self.before else "was not accepted by you"
        return f"{self.file} {changed}, so these settings are not used: {', '.join(self.withheld)}"


Confirm = Callable[[Unaccepted], bool]
"""Shows a configuration to a person, and says whether it is accepted."""


def warn_unaccepted(found: Unaccepted) -> bool:
    """Say that settings are not used, where nobody can be asked."""
    warnings.warn(
        f"{found}. Look at it, then run `bicameral config accept`, name it explicitly, or list it in {ACCEPT}. "
        "[config.unaccepted]",
        UnacceptedConfigWarning,
        stacklevel=4,
    )
    return False


def acceptance_file() -> Path:
    """Where it is kept what this user has accepted."""
    return user_folder("state") / "accepted.json"


def unaccepted(file: Path, widening: Widening, environment: Mapping[str, str]) -> Unaccepted | None:
    """What a person must see before a configuration is used in full; None if there is nothing to see."""
    if not widening or _listed(file, environment):
        return None
    known = _read().get(os.path.realpath(file))
    if known is not None and known.get("fingerprint") == widening.fingerprint:
        return None
    old = cast("dict[str, str]", known.get("parts", {})) if known is not None else {}
    return Unaccepted(file, widening, _changes(old, widening.parts), known is not None)


def record_acceptance(file: Path, widening: Widening) -> None:
    """Remember that this user accepts a configuration as it is now."""
    accepted = _read()
    accepted[os.path.realpath(file)] = {
        "fingerprint": widening.fingerprint,
        "parts": widening.parts,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write(accepted)


def forget_acceptance(file: Path) -> bool:
    """Accept a configuration no longer; whether it was."""
    accepted = _read()
    if accepted.pop(os.path.realpath(file), None) is None:
        return False
    _write(accepted)
    return True


def _listed(file: Path, environment: Mapping[str, str]) -> bool:
    """Whether the environment names the file or its folder. Not a folder further out: projects are put into such."""
    real = os.path.realpath(file)
    named = [
        os.path.realpath(os.path.expanduser(each)) for each in environment.get(ACCEPT, "").split(os.pathsep) if each
    ]
    return real in named or os.path.dirname(os.path.abspath(file)) in named or os.path.dirname(real) in named


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, Change]:
    found: dict[str, Change] = {name: "gone" for name in old if name not in new}
    for name, value in new.items():
        if name not in old:
            found[name] = "new"
        elif old[name] != value:
            found[name] = "changed"
    return found


def _read() -> dict[str, dict[str, Any]]:
    """What was accepted. A file that cannot be read or understood accepts nothing."""
    try:
        with acceptance_file().open("rb") as stream:
            found: Any = json.loads(stream.read(_MAX_BYTES))
        accepted = found["accepted"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(accepted, dict):
        return {}
    entries = cast("dict[str, object]", accepted).items()
    return {file: cast("dict[str, Any]", entry) for file, entry in entries if isinstance(entry, dict)}


def _write(accepted: Mapping[str, Mapping[str, Any]]) -> None:
    target = acceptance_file()
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # mkstemp makes a file that only its owner can read or write.
        descriptor, part = tempfile.mkstemp(dir=target.parent, prefix=".accepted-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "accepted": accepted}, file, indent=1, sort_keys=True)
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise ConfigError(
            "config.unwritable",
            f"it cannot be recorded what you accept: {error.strerror or error}",
            place=Place(file=str(target)),
        ) from None


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 200 else f"{text[:150]}… ({len(text):,} characters)"

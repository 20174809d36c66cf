"""Acceptance of configurations: a folder's `bicameral.toml` is used in full only after this user has accepted it.

The file comes with the folder: a clone, an archive, a shared disk. Of an unaccepted file only those settings are used
that allow no more than having no file at all. They are listed here; every other setting counts as widening, so a new
setting is withheld by default. A setting that narrows (a folder inside the working folder, fewer of the standard
toolboxes) is harmless, and so is one that repeats a default.

Accepted are: the file that `--config`, `BICAMERAL_CONFIG` or the caller names; the user's own file; one that
`bicameral init` wrote; one that `BICAMERAL_ACCEPT` lists; and one that a person has inspected and accepted. An
acceptance holds for the real path of the file and a hash of all widening settings, with the contents of code, policies
and manifests. It is stored outside every project, where no tool can write.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

from bicameral.cache import read_private_file, write_private_file
from bicameral.config._config import STANDARD, ConfigFile, acceptance_file, is_inside, named_files
from bicameral.errors import ConfigError, Place

SettingsTable = dict[str, Any]

ACCEPT_VARIABLE = "BICAMERAL_ACCEPT"
_MAX_HASHED_BYTES = 64 * 1024 * 1024

# Limits, prices and resources: at worst they make a run take longer or stop.
_HARMLESS_KEYS: Mapping[str, frozenset[str] | None] = {
    "limits": None,
    "reason": frozenset({"rounds", "calls", "tokens", "money", "seconds", "price"}),
    "durable": frozenset({"concurrency", "lease", "answer_within", "deaths", "keep", "limits"}),
    "server": frozenset({"port", "max_body", "rate", "watches", "watch_seconds", "requests", "history"}),
    "models": frozenset({"cascade", "threads"}),
    "llm": frozenset({"budget"}),
}
"""Harmless keys by table; None for all keys of a table."""


@dataclass(frozen=True, slots=True)
class Widening:
    """The widening settings of a configuration by their dotted names, and hashes of the files that it names.

    `files` are code, policies and manifests: a change to one of them changes what the configuration does.
    """

    settings: Mapping[str, Any]
    files: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.settings)

    @property
    def parts(self) -> dict[str, str]:
        """A hash of each setting and file by its name. Values are not stored: an address may contain a password."""
        return {name: _sha256(_canonical_json(value)) for name, value in self.settings.items()} | dict(self.files)

    @property
    def fingerprint(self) -> str:
        """A hash of all parts. A removed part changes it, too: a policy that is gone no longer forbids anything."""
        return _sha256(_canonical_json(self.parts))


def split_settings(
    settings: Mapping[str, Any], source: Path, base: Path, *, own_quarantine: bool = False
) -> tuple[SettingsTable, Widening]:
    """The harmless settings of a file, and the widening ones.

    `own_quarantine`: the user's own file says how untrusted text is read, so that any other way may be a weaker one.
    """
    harmless: SettingsTable = {}
    widening: dict[str, Any] = {}
    for name, value in settings.items():
        if not isinstance(value, dict) or name not in ConfigFile.model_fields:
            # The one setting outside of tables (`profile`), or a mistake, which validation reports later.
            harmless[name] = value
            continue
        table = cast("SettingsTable", value)
        kept, rest = ({}, table) if own_quarantine and name == "quarantine" else _split_table(name, table, base)
        if kept:
            harmless[name] = kept
        widening |= {f"{name}.{key}": each for key, each in rest.items()}
    return harmless, Widening(widening, dict(_file_hashes(settings, source, base)) if widening else {})


def _split_table(name: str, table: SettingsTable, base: Path) -> tuple[SettingsTable, SettingsTable]:
    match name:
        case "folders":
            return _split_folders(table, base)
        case "toolboxes":
            return _split_toolboxes(table)
        case "toolbox":
            boxes: dict[str, SettingsTable] = {
                box: keys if isinstance(keys, dict) else {"": keys} for box, keys in table.items()
            }
            return {}, {f"{box}.{key}": each for box, keys in boxes.items() for key, each in keys.items()}
        case "quarantine" if table.get("variant") == "triple":
            # Validators only refuse. Which models they are is another matter: a model costs money and learns the value.
            harmless = {"variant", "validators"}
            return _keep(table, harmless)
        case _:
            return _split_listed(name, table)


def _keep(table: SettingsTable, names: Collection[str]) -> tuple[SettingsTable, SettingsTable]:
    kept = {key: each for key, each in table.items() if key in names}
    return kept, {key: each for key, each in table.items() if key not in names}


def _split_listed(name: str, table: SettingsTable) -> tuple[SettingsTable, SettingsTable]:
    allowed = _HARMLESS_KEYS.get(name, frozenset())
    default = ConfigFile.model_fields[name].get_default(call_default_factory=True)
    usual: SettingsTable = default.model_dump(mode="json") if hasattr(default, "model_dump") else {}
    return _keep(
        table,
        [key for key, each in table.items() if allowed is None or key in allowed or _is_default(usual, key, each)],
    )


def _split_folders(table: SettingsTable, base: Path) -> tuple[SettingsTable, SettingsTable]:
    """A folder inside the working folder narrows, one outside widens; a link is what it leads to."""
    kept, rest = dict[str, Any](), dict[str, Any]()
    real = os.path.realpath(base)
    for use, names in table.items():
        if use not in ("read", "write") or not isinstance(names, list):
            (kept if names == [] or use not in ("read", "write", "trusted") else rest)[use] = names
            continue
        listed = cast("list[object]", names)
        inside = [each for each in listed if not isinstance(each, str) or is_inside(each, base, real)]
        kept[use] = inside
        if outside := [each for each in listed if each not in inside]:
            rest[use] = outside
    return kept, rest


def _split_toolboxes(table: SettingsTable) -> tuple[SettingsTable, SettingsTable]:
    """Standard toolboxes are harmless; toolboxes of other packages and toolbox files are code."""
    kept, rest = dict[str, Any](), dict[str, Any]()
    for key, value in table.items():
        if key == "use" and isinstance(value, list):
            names = cast("list[object]", value)
            kept[key] = [each for each in names if each in STANDARD or not isinstance(each, str)]
            if others := [each for each in names if each not in kept[key]]:
                rest[key] = others
        elif key == "files" and value != []:
            rest[key] = value
        else:
            kept[key] = value
    return kept, rest


def _is_default(usual: SettingsTable, key: str, value: object) -> bool:
    """Whether a setting repeats its default."""
    if key not in usual:
        return False
    if isinstance(value, dict) and isinstance(usual[key], dict):
        return all(_is_default(usual[key], name, each) for name, each in cast("SettingsTable", value).items())
    return usual[key] == value


def _file_hashes(settings: Mapping[str, Any], source: Path, base: Path) -> Iterator[tuple[str, str]]:
    for file in named_files(settings, source, base):
        try:
            with file.open("rb") as stream:
                raw = stream.read(_MAX_HASHED_BYTES + 1)
        except (OSError, ValueError):
            yield str(file), "not there"
            continue
        yield str(file), hashlib.sha256(raw).hexdigest() if len(raw) <= _MAX_HASHED_BYTES else "too large"


def _canonical_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_MAX_RECORD_BYTES = 16 * 1024 * 1024

PartChange = Literal["new", "changed", "gone"]


class UnacceptedConfigWarning(UserWarning):
    """Settings of a configuration that the user has not accepted are not used."""


@dataclass(frozen=True, slots=True)
class UnacceptedConfig:
    """A configuration that this user has not accepted as it is now.

    `changes` says for each setting and file whether it is new, has changed or is gone since the last acceptance;
    without one, everything is new.
    """

    file: Path
    widening: Widening
    changes: Mapping[str, PartChange]
    was_accepted: bool

    @property
    def withheld(self) -> tuple[str, ...]:
        """The settings that are not used until it is accepted."""
        return tuple(sorted(self.widening.settings))

    def describe(self) -> list[str]:
        """One line for each setting and file that it would add. Values are escaped: they are untrusted."""
        settings, files = self.widening.settings, self.widening.files
        lines: list[str] = []
        for name in sorted({*settings, *files, *self.changes}):
            what = f"{'uses the file ' if name in files else ''}{_short_json(name)}"
            note = f" ({self.changes[name]})" if self.was_accepted and name in self.changes else ""
            lines.append((f"{name} = {_short_json(settings[name])}" if name in settings else what) + note)
        return lines

    def __str__(self) -> str:
        changed = "has changed since you accepted it" if self.was_accepted else "was not accepted by you"
        return f"{self.file} {changed}, so these settings are not used: {', '.join(self.withheld)}"


Confirm = Callable[[UnacceptedConfig], bool]
"""Shows a configuration to a person and returns whether it is accepted."""


def warn_unaccepted(found: UnacceptedConfig) -> bool:
    """Warn that settings are not used, where nobody can be asked."""
    warnings.warn(
        f"{found}. Look at it, then run `bicameral config accept`, name it explicitly, or list it in "
        f"{ACCEPT_VARIABLE}. [config.unaccepted]",
        UnacceptedConfigWarning,
        stacklevel=4,
    )
    return False


def find_unaccepted(file: Path, widening: Widening, environment: Mapping[str, str]) -> UnacceptedConfig | None:
    """What a person must accept before a configuration is used in full; None if it is accepted or widens nothing."""
    if not widening or _is_listed(file, environment):
        return None
    known = _read_record().get(os.path.realpath(file))
    if known is not None and known.get("fingerprint") == widening.fingerprint:
        return None
    old = cast("dict[str, str]", known.get("parts", {})) if known is not None else {}
    return UnacceptedConfig(file, widening, _changed_parts(old, widening.parts), known is not None)


def record_acceptance(file: Path, widening: Widening) -> None:
    """Record that this user accepts a configuration as it is now."""
    accepted = _read_record()
    accepted[os.path.realpath(file)] = {
        "fingerprint": widening.fingerprint,
        "parts": widening.parts,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write_record(accepted)


def forget_acceptance(file: Path) -> bool:
    """Withdraw the acceptance of a configuration; False if there was none."""
    accepted = _read_record()
    if accepted.pop(os.path.realpath(file), None) is None:
        return False
    _write_record(accepted)
    return True


def _is_listed(file: Path, environment: Mapping[str, str]) -> bool:
    """Whether the environment names the file or its folder; a folder further out does not count."""
    real = os.path.realpath(file)
    named = [
        os.path.realpath(os.path.expanduser(each))
        for each in environment.get(ACCEPT_VARIABLE, "").split(os.pathsep)
        if each
    ]
    return real in named or os.path.dirname(os.path.abspath(file)) in named or os.path.dirname(real) in named


def _changed_parts(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, PartChange]:
    gone: dict[str, PartChange] = {name: "gone" for name in old if name not in new}
    other: dict[str, PartChange] = {
        name: "changed" if name in old else "new" for name in new if old.get(name) != new[name]
    }
    return gone | other


def _read_record() -> dict[str, dict[str, Any]]:
    """The recorded acceptances by file; none if the record cannot be read, or if somebody else can write it."""
    try:
        found: Any = json.loads(read_private_file(acceptance_file(), _MAX_RECORD_BYTES))
        accepted = found["accepted"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(accepted, dict):
        return {}
    entries = cast("dict[str, object]", accepted).items()
    return {file: cast("dict[str, Any]", entry) for file, entry in entries if isinstance(entry, dict)}


def _write_record(accepted: Mapping[str, Mapping[str, Any]]) -> None:
    target = acceptance_file()
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps({"version": 1, "accepted": accepted}, indent=1, sort_keys=True)
        write_private_file(target, [text.encode()])
    except OSError as error:
        raise ConfigError(
            "config.unwritable",
            f"it cannot be recorded what you accept: {error.strerror or error}",
            place=Place(file=str(target)),
        ) from None


def _short_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 200 else f"{text[:150]}… ({len(text):,} characters)"

"""What in a folder's configuration widens what tools, models and plans may do, told apart from the harmless rest.

A folder's `bicameral.toml` comes with the folder: a clone, an archive, a shared disk. Of one that the user has not
accepted only settings are used that cannot do more than no file at all. Which these are is listed here, and everything
else counts as widening, so that a new setting is withheld until somebody has thought about it. A setting that narrows
(a folder inside the working folder, fewer of the standard toolboxes) is harmless, and so is one that says what holds
anyway.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bicameral.errors import BicameralError

from ._config import STANDARD, ConfigFile

Table = dict[str, Any]

_MAX_BYTES = 64 * 1024 * 1024

# Limits, prices and the machine's share: the worst that they can do is that a run takes longer or stops.
_HARMLESS: Mapping[str, frozenset[str] | None] = {
    "limits": None,
    "reason": frozenset({"rounds", "calls", "tokens", "money", "seconds", "price"}),
    "durable": frozenset({"concurrency", "lease", "answer_within", "deaths", "keep", "limits"}),
    "server": frozenset({"port", "max_body", "rate", "watches", "watch_seconds", "requests", "history"}),
    "models": frozenset({"cascade", "threads"}),
    "llm": frozenset({"budget"}),
}
"""The tables of which everything is harmless, and those of which only these keys are."""


@dataclass(frozen=True, slots=True)
class Widening:
    """What widens in a configuration: settings by their dotted names, and hashes of the files that they name.

    `files` are code, policies and manifests: who changes one of these changes what the configuration does.
    """

    settings: Mapping[str, Any]
    files: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.settings)

    @property
    def parts(self) -> dict[str, str]:
        """A hash of each setting and file by its name. Values are not kept: an address may hold a password."""
        return {name: _hash(_canonical(value)) for name, value in self.settings.items()} | dict(self.files)

    @property
    def fingerprint(self) -> str:
        """A hash of all of it. What is taken away counts as well: a policy that is gone no longer forbids."""
        return _hash(_canonical(self.parts))


def split_settings(settings: Mapping[str, Any], source: Path, base: Path) -> tuple[Table, Widening]:
    """The harmless part of a file's settings, and what widens."""
    harmless: Table = {}
    widening: dict[str, Any] = {}
    for name, value in settings.items():
        if not isinstance(value, dict) or name not in ConfigFile.model_fields:
            # The one setting outside of tables (`profile`), or a mistake, which is to be told as such.
            harmless[name] = value
            continue
        kept, rest = _split_table(name, cast("Table", value), base)
        if kept:
            harmless[name] = kept
        widening |= {f"{name}.{key}": each for key, each in rest.items()}
    return harmless, Widening(widening, dict(_file_hashes(settings, source, base)) if widening else {})


def _split_table(name: str, table: Table, base: Path) -> tuple[Table, Table]:
    match name:
        case "folders":
            return _split_folders(table, base)
        case "toolboxes":
            return _split_toolboxes(table)
        case "toolbox":
            return {}, {f"{box}.{key}": each for box, keys in table.items() for key, each in _items(keys)}
        case _:
            return _split_plain(name, table)


def _split_plain(name: str, table: Table) -> tuple[Table, Table]:
    allowed = _HARMLESS.get(name, frozenset())
    usual = _defaults(name)
    kept = {key: each for key, each in table.items() if allowed is None or key in allowed or _same(usual, key, each)}
    return kept, {key: each for key, each in table.items() if key not in kept}


def _split_folders(table: Table, base: Path) -> tuple[Table, Table]:
    """A folder inside the working folder narrows, one outside widens; a link is what it leads to."""
    kept, rest = dict[str, Any](), dict[str, Any]()
    real = os.path.realpath(base)
    for use, names in table.items():
        if use not in ("read", "write") or not isinstance(names, list):
            (kept if names == [] or use not in ("read", "write", "trusted") else rest)[use] = names
            continue
        listed = cast("list[object]", names)
        inside = [each for each in listed if not isinstance(each, str) or _is_inside(each, base, real)]
        kept[use] = inside
        if outside := [each for each in listed if each not in inside]:
            rest[use] = outside
    return kept, rest


def _is_inside(name: str, base: Path, real: str) -> bool:
    try:
        found = os.path.realpath(base / os.path.expanduser(name))
    except ValueError:
        return False
    return os.path.commonpath((found, real)) == real


def _split_toolboxes(table: Table) -> tuple[Table, Table]:
    """Fewer of the standard toolboxes are harmless; those of other packages are code, and files are, too."""
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


def _items(table: object) -> Iterator[tuple[str, Any]]:
    yield from cast("Table", table).items() if isinstance(table, dict) else [("", table)]


def _defaults(name: str) -> Table:
    field = ConfigFile.model_fields[name]
    usual = field.get_default(call_default_factory=True)
    return usual.model_dump(mode="json") if hasattr(usual, "model_dump") else {}


def _same(usual: Table, key: str, value: object) -> bool:
    """Whether a setting says what holds anyway."""
    if key not in usual:
        return False
    if isinstance(value, dict) and isinstance(usual[key], dict):
        return all(_same(usual[key], name, each) for name, each in cast("Table", value).items())
    return usual[key] == value


def named_files(settings: Mapping[str, Any], source: Path, base: Path) -> Iterator[Path]:
    """The files of code, policy and manifests that a configuration names, and the programs that its manifests run."""
    start = source.parent
    for table, key in (("toolboxes", "files"), ("policy", "files")):
        inner: Any = settings.get(table)
        names: Any = cast("Table", inner).get(key) if isinstance(inner, dict) else None
        for name in cast("list[object]", names) if isinstance(names, list | tuple) else ():
            if isinstance(name, str):
                file = start / os.path.expanduser(name)
                yield file
                if table == "toolboxes" and file.suffix in (".toml", ".json"):
                    yield from _programs(file, (start, base))


def _programs(manifest: Path, around: tuple[Path, ...]) -> Iterator[Path]:
    """The scripts in the project that a manifest runs or needs; what is installed elsewhere is not the folder's."""
    from bicameral.tools import read_manifest

    try:
        tools = read_manifest(manifest).tools
    except (BicameralError, OSError):
        return
    roots = [os.path.realpath(folder) for folder in around]
    for tool in tools:
        for name in (*(part for part in tool.argv if isinstance(part, str)), *tool.needs):
            if os.path.isabs(name) and any(_is_inside(name, Path(root), root) for root in roots):
                yield Path(name)


def _file_hashes(settings: Mapping[str, Any], source: Path, base: Path) -> Iterator[tuple[str, str]]:
    for file in named_files(settings, source, base):
        try:
            with file.open("rb") as stream:
                raw = stream.read(_MAX_BYTES + 1)
        except (OSError, ValueError):
            yield str(file), "not there"
            continue
        yield str(file), hashlib.sha256(raw).hexdigest() if len(raw) <= _MAX_BYTES else "too large"


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

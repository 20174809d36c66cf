"""The configuration file of an MCP client, rewritten so that its servers are reached through the firewall, and back.

Clients list their servers under `mcpServers` (Claude Desktop, Cursor and most others), `servers` (VS Code) or
`mcp.servers` (VS Code's settings). Every entry becomes settings of `[mcp.NAME]`, returned for `bicameral.toml`, and one
entry that starts the firewall takes their place. No value of a variable or a header that may be secret is among these
settings: it stays in the client's file, with the firewall's entry, unless it is to go into the keyring. An entry whose
command or address seems to hold a secret is not moved (`_client_secrets`); what does not look like one is not
recognised. The file as it was lies beside it, and comes back exactly, unless somebody has changed the rewritten one
since.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from bicameral.cache import sync_folder
from bicameral.errors import ConfigError, Place, nearest_name
from bicameral.firewall._client_entries import EntryMover, MovedSecret, is_disabled, rules_about, servers_elsewhere
from bicameral.secrets import redact_secrets

ENTRY = "bicameral"
"""The name of the firewall's entry in the client's file."""
BACKUP_SUFFIX = ".before-bicameral"
"""The file as it was, to the byte: it can also be put back by hand."""
WRITTEN_SUFFIX = ".written-by-bicameral"
"""The file as it was rewritten, to tell whether it was changed since."""
MAX_BYTES = 4 * 1024 * 1024
_MAX_DEPTH = 100
_TABLES: tuple[tuple[str, ...], ...] = (("mcpServers",), ("servers",), ("mcp", "servers"))
_NESTED = frozenset({"mcpServers"})
"""Under these names clients keep servers of a project, too; `servers` is a word of many settings."""
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|(//|/\*)')


@dataclass(frozen=True, slots=True)
class ClientRewrite:
    """What became of a client's file.

    Args:
        file: The file.
        backup: The file as it was.
        servers: The settings of each `[mcp.NAME]`, for `bicameral.toml`.
        secrets: Where their secrets are.
        renamed: The client's names of servers that are called differently now.
        disabled: Entries that the client does not start, by its names: they are as they were.
        left: Entries that are as they were, since the caller said so: they do not go through the firewall.
        outside: Servers in other places of the file, such as those of a project: they do not go through it either.
        excluded: By server, the tools that the client did not use. None of them may be used.
        dropped: By server, the keys of its entry that say nothing to the firewall, such as `autoApprove`.
        rules: Places of the file with rules of the client that name a moved server: nothing has its name any more.
        environment: The variables of the firewall's entry, with the values of the secrets that are kept there.
    """

    file: Path
    backup: Path
    servers: Mapping[str, Mapping[str, Any]]
    secrets: tuple[MovedSecret, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    disabled: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    excluded: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    rules: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def files(self) -> tuple[Path, ...]:
        """The client's file and those beside it: they hold its secrets, and say what it starts."""
        return self.file, self.backup, _written_of(self.file)

    @property
    def to_set(self) -> tuple[MovedSecret, ...]:
        """The secrets whose values a person must still put where the settings say."""
        return tuple(each for each in self.secrets if not each.kept)


def rewrite_client_config(
    file: Path,
    command: Sequence[str],
    *,
    secrets: Literal["keep", "keyring"] = "keep",
    leave: Collection[str] = (),
    write: bool = True,
) -> ClientRewrite:
    """Let a client reach its servers through the firewall, and return their settings.

    Entries that the client does not start stay as they are.

    Args:
        file: The client's file.
        command: What starts the firewall: the program and its arguments. A client started from a desktop may not find
            a program without its path.
        secrets: Whether values of variables stay in the client's file, with the firewall's entry, or are to be put
            into the keyring.
        leave: Names of entries that stay as they are, and do not go through the firewall; also of those that
            `ClientRewrite.outside` names.
        write: Whether the file is written. Without it this only says what would become of it.

    Example:
        >>> done = rewrite_client_config(Path("mcp.json"), ["bicameral", "mcp", "firewall"])
        >>> done.servers["mail"]["command"]
        ['mail-server', '--folder', 'inbox']
    """
    target = _real_file(file)
    backup = _backup_of(target)
    _require_one_name(target)
    raw = _read(target)
    document = _parse(target, raw)
    path, entries = _server_table(target, document)
    is_left_over = backup.exists()
    if ENTRY in entries or (is_left_over and _read(backup) != raw):
        raise _already_rewritten_error(target, ENTRY in entries)
    disabled = tuple(name for name, entry in entries.items() if name not in leave and is_disabled(entry))
    stay = {name: entry for name, entry in entries.items() if name in leave or name in disabled}
    moved = {name: entry for name, entry in entries.items() if name not in stay}
    if not moved:
        raise ConfigError("firewall.no-servers", f"{target} names no server that could be moved")
    mover = EntryMover(target, secrets)
    for name, entry in moved.items():
        mover.move(name, entry)
    own: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
    if path != ("mcpServers",):
        own = {"type": "stdio", **own}
    if mover.environment:
        own["env"] = mover.environment
    _set_table(document, path, {})
    outside = tuple(servers_elsewhere(document, _NESTED))
    if unknown := next((name for name in leave if name not in stay and name not in outside), None):
        # A wrong name could be that of a server which its user wants to keep as it is.
        known = [*entries, *outside]
        raise ConfigError(
            "firewall.unknown-server",
            f"there is no server {unknown[:60]!r} to leave as it is",
            place=Place(file=str(target)),
            expected=", ".join(known),
            nearest=nearest_name(unknown[:60], known),
        )
    done = ClientRewrite(
        target,
        backup,
        mover.servers,
        secrets=tuple(mover.secrets),
        renamed={name: new for name, new in mover.names.items() if name != new},
        disabled=disabled,
        left=tuple(name for name in (*stay, *outside) if name in leave),
        outside=tuple(name for name in outside if name not in leave),
        excluded=mover.excluded,
        dropped=mover.dropped,
        rules=tuple(sorted(rules_about(document, mover.names))),
        environment=dict(mover.environment),
    )
    if not write:
        return done
    _set_table(document, path, {ENTRY: own, **stay})
    rewritten = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    mode = stat.S_IMODE(target.stat().st_mode)
    # The backup first: at no moment is there a rewritten file without what it was made of.
    try:
        _write(backup, raw, mode & 0o600)
        _write(_written_of(target), rewritten, mode & 0o600)
        _write(target, rewritten, mode, instead_of=raw)
    except BaseException:
        _remove_copies(target)
        raise
    return done


def entry_environment(file: Path) -> Mapping[str, str]:
    """The variables of the firewall's entry in a client's file; none where there is no such entry.

    Example:
        >>> sorted(entry_environment(Path("mcp.json")))
        ['MCP_SECRET_MAIL_API_KEY']
    """
    with suppress(ConfigError):
        _, entries = _server_table(file, _parse(file, _read(file)))
        entry = entries.get(ENTRY)
        found: object = cast("dict[str, Any]", entry).get("env") if isinstance(entry, dict) else None
        if isinstance(found, dict):
            return {name: str(value) for name, value in cast("dict[str, Any]", found).items()}
    return {}


def _already_rewritten_error(target: Path, has_entry: bool) -> ConfigError:
    backup, written = _backup_of(target).name, _written_of(target).name
    if has_entry:
        what, fix = f"{target} goes through the firewall already", "Restore it first."
    else:
        what = f"{target} is another file than {backup}, which is left from an earlier time"
        fix = f"If the file is as you want it, delete {backup} and {written}."
    return ConfigError("firewall.already-rewritten", what, fix=fix)


def restore_client_config(file: Path) -> Path:
    """Bring a client's file back exactly as it was, and return it; refused if it was changed since it was rewritten.

    Example:
        >>> restore_client_config(Path("mcp.json"))
    """
    target = _real_file(file)
    backup, written = _backup_of(target), _written_of(target)
    if not backup.exists():
        raise ConfigError(
            "firewall.no-backup", f"there is no {backup.name} beside {target}", fix="It was not rewritten from here."
        )
    original, now = _read(backup), _read(target)
    if now == original:
        # It was put back by hand, or a rewriting ended before the file was replaced.
        _remove_copies(target)
        return target
    if not written.exists():
        raise ConfigError(
            "firewall.no-backup",
            f"there is no {written.name} beside {target}, so that nobody knows whether the file was changed since",
            fix=f"Look at both, then put {backup.name} in its place by hand.",
        )
    _require_one_name(target)
    rewritten = _read(written)
    if now != rewritten:
        raise ConfigError(
            "firewall.changed-since",
            f"{target} was changed after it was rewritten: {_changes(rewritten, now)}",
            fix=f"Take the changes back, or put the file together by hand: {backup} has it as it was.",
        )
    _write(target, original, stat.S_IMODE(target.stat().st_mode), instead_of=now)
    _remove_copies(target)
    return target


# The file


def _real_file(file: Path) -> Path:
    """The file itself: a link stays a link, and what it points to is rewritten."""
    return Path(os.path.realpath(file))


def _backup_of(file: Path) -> Path:
    return file.with_name(file.name + BACKUP_SUFFIX)


def _written_of(file: Path) -> Path:
    return file.with_name(file.name + WRITTEN_SUFFIX)


def _remove_copies(file: Path) -> None:
    """Delete what lies beside a file; the backup last, since only it cannot be made again."""
    _written_of(file).unlink(missing_ok=True)
    _backup_of(file).unlink(missing_ok=True)


def _require_one_name(file: Path) -> None:
    """Refuse a file with hard links: replacing it at once would leave the old content under its other names."""
    with suppress(OSError):
        if file.stat().st_nlink > 1:
            raise ConfigError(
                "firewall.several-names",
                f"{file} has several names (hard links), and only this one would be rewritten",
                fix="Make it a file of its own: copy it, and put the copy in its place.",
            )


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError("firewall.unreadable", f"{file} cannot be read: {error.strerror or error}") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError("firewall.unreadable", f"{file} is larger than {MAX_BYTES:,} bytes")
    return raw


def _parse(file: Path, raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8-sig")
        found: object = json.loads(
            text,
            object_pairs_hook=_unique_names,
            parse_int=_read_int,
            parse_float=_read_float,
            parse_constant=_refuse_constant,
        )
        # What JSON can spell and a text cannot hold: half of a character.
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise ConfigError("firewall.bad-json", f"{file} is no text in UTF-8") from None
    except UnicodeEncodeError:
        raise ConfigError(
            "firewall.bad-json",
            "the file has half of a character (a lone surrogate, such as `\\ud800`)",
            place=Place(file=str(file)),
        ) from None
    except (json.JSONDecodeError, RecursionError) as error:
        _raise_no_json(file, raw.decode("utf-8", "replace"), error)
    except ConfigError as error:
        error.place = error.place or Place(file=str(file))
        raise
    if not isinstance(found, dict):
        raise ConfigError("firewall.bad-json", f"{file} holds no object")
    document = cast("dict[str, Any]", found)
    if _is_deeper(document, _MAX_DEPTH):
        raise ConfigError("firewall.bad-json", f"{file} is nested more than {_MAX_DEPTH} deep")
    return document


def _read_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        # Python reads no number of thousands of digits.
        raise _number_error() from None


def _read_float(text: str) -> float:
    if not math.isfinite(found := float(text)):
        # It would be written as `Infinity`, which is no JSON.
        raise _number_error()
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _number_error()


def _number_error() -> ConfigError:
    return ConfigError("firewall.bad-json", "the file has a number that is none, or is too large to be kept as it is")


def _is_deeper(document: object, most: int) -> bool:
    level: list[Any] = [document]
    for _ in range(most):
        level = [
            inner
            for part in level
            if isinstance(part, dict | list)
            for inner in (cast("dict[str, Any]", part).values() if isinstance(part, dict) else cast("list[Any]", part))
        ]
    return bool(level)


def _raise_no_json(file: Path, text: str, error: Exception) -> NoReturn:
    line = error.lineno if isinstance(error, json.JSONDecodeError) else None
    if any(found[1] for found in _COMMENT.finditer(text)):
        raise ConfigError(
            "firewall.comments",
            "the file has comments, which would be lost",
            place=Place(file=str(file)),
            fix="Take them out (also commas at the ends of lists), or write the firewall's entry by hand.",
        ) from None
    raise ConfigError("firewall.bad-json", "this is no JSON", place=Place(file=str(file), line=line)) from None


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # Which of two the client takes is not known, and the other one would be lost.
        raise ConfigError("firewall.bad-json", "the file has two entries of one name in one object")
    return found


def _server_table(file: Path, document: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Where the servers are, and the servers."""
    found: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    for path in _TABLES:
        part: Any = document
        for name in path:
            part = cast("dict[str, Any]", part).get(name) if isinstance(part, dict) else None
        if isinstance(part, dict):
            found.append((path, cast("dict[str, Any]", part)))
    if len(found) != 1:
        what = "names no servers" if not found else "names servers in more than one place"
        raise ConfigError(
            "firewall.no-servers",
            f"{file} {what}",
            expected="an object `mcpServers`, or `servers`, as MCP clients have it",
        )
    return found[0]


def _set_table(document: dict[str, Any], path: tuple[str, ...], table: dict[str, Any]) -> None:
    part: Any = document
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = table


def _changes(before: bytes, now: bytes) -> str:
    """The first lines that differ, without secrets."""

    def lines() -> Iterator[str]:
        old, new = (redact_secrets(each.decode("utf-8", "replace"), "[secret]") for each in (before, now))
        for line in difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0):
            if line[:1] in "+-" and not line.startswith(("+++", "---")):
                # A value may be secret without looking so: only what stands before it is shown.
                name, colon, _ = line.partition(":")
                yield (name + colon).strip()[:80]

    found = list(dict.fromkeys(lines()))
    more = f" and {len(found) - 6} more lines" if len(found) > 6 else ""
    return "; ".join(found[:6]) + more if found else "only in its line ends or blanks"


def _write(file: Path, content: bytes, mode: int, *, instead_of: bytes | None = None) -> None:
    """Write a file at once, with these permissions; readers see the old content or the new one.

    Args:
        instead_of: What must be in the file until it is replaced; otherwise it stays as somebody else has written it.
    """
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, mode)
        # As late as possible: clients save this file whenever they like.
        if instead_of is not None and _read(file) != instead_of:
            raise ConfigError(
                "firewall.changed-since",
                f"{file} was changed while it was being replaced, and is as somebody else has written it",
                fix="Run the command again; end the client first if it keeps writing the file.",
            )
        os.replace(name, file)
    except OSError as error:
        raise ConfigError("firewall.unwritable", f"{file} cannot be written: {error.strerror or error}") from None
    finally:
        Path(name).unlink(missing_ok=True)
    sync_folder(file.parent)

"""The configuration file of an MCP client, rewritten so that its servers are reached through the firewall, and back.

Clients list their servers under `mcpServers` (Claude Desktop, Cursor and most others), `servers` (VS Code) or
`mcp.servers` (VS Code's settings). Every entry becomes settings of `[mcp.NAME]`, returned for `bicameral.toml`, and one
entry that starts the firewall takes their place. Nothing secret is among these settings: values of variables stay in
the client's file, with the firewall's entry, unless they are to go into the keyring. The file as it was lies beside it,
and comes back exactly, unless somebody has changed the rewritten one since.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from bicameral.cache import sync_folder
from bicameral.errors import ConfigError, Place
from bicameral.secrets import redact_secrets

ENTRY = "bicameral"
"""The name of the firewall's entry in the client's file."""
BACKUP_SUFFIX = ".before-bicameral"
"""The file as it was, to the byte: it can also be put back by hand."""
WRITTEN_SUFFIX = ".written-by-bicameral"
"""The file as it was rewritten, to tell whether it was changed since."""
MAX_BYTES = 4 * 1024 * 1024
_TABLES: tuple[tuple[str, ...], ...] = (("mcpServers",), ("servers",), ("mcp", "servers"))
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|(//|/\*)')
_SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_SECRET_NAME = re.compile(
    r"pass|pwd|token|key|secret|auth|cred|cookie|session|private|sign|salt|pin$|dsn|url|uri|conn|login|user", re.I
)
_HARMLESS = re.compile("[0-9]{1,5}|[a-z]{2}_[A-Z]{2}(?:\\.UTF-8)?", re.ASCII)
_HARMLESS_WORDS = frozenset(
    "true false yes no on off none auto debug info warn warning error trace production development test local stdio "
    "http utf8 utf-8 json text".split()
)
_URL_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s@]*:[^/\s@]+@", re.I)
_SECRET_FLAG = re.compile(r"--?[\w-]*(?:pass|token|key|secret|auth|cred)[\w-]*(=.*)?", re.I)
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class MovedSecret:
    """A secret of a server: where its settings say that it is, and where it is now.

    Args:
        server: The server in `[mcp.NAME]`.
        setting: What it is for: the name of a variable or of a header.
        reference: What the settings say: the name of a variable of the firewall, or `keyring:ENTRY`.
        kept: Whether its value is in the client's file, with the firewall's entry. If not, it must be set.
    """

    server: str
    setting: str
    reference: str
    kept: bool


@dataclass(frozen=True, slots=True)
class ClientRewrite:
    """What became of a client's file.

    Args:
        file: The file.
        backup: The file as it was.
        servers: The settings of each `[mcp.NAME]`, for `bicameral.toml`.
        secrets: Where their secrets are.
        renamed: The client's names of servers that are called differently now.
        disabled: Servers that the client does not start; they are among `servers`.
        left: Entries that are as they were, since the caller said so: they do not go through the firewall.
        environment: The variables of the firewall's entry, with the values of the secrets that are kept there.
    """

    file: Path
    backup: Path
    servers: Mapping[str, Mapping[str, Any]]
    secrets: tuple[MovedSecret, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    disabled: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

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

    Args:
        file: The client's file.
        command: What starts the firewall: the program and its arguments. A client started from a desktop may not find
            a program without its path.
        secrets: Whether values of variables stay in the client's file, with the firewall's entry, or are to be put
            into the keyring.
        leave: Names of entries that stay as they are, and do not go through the firewall.
        write: Whether the file is written. Without it this only says what would become of it.

    Example:
        >>> done = rewrite_client_config(Path("mcp.json"), ["bicameral", "mcp", "firewall"])
        >>> done.servers["mail"]["command"]
        ['mail-server', '--folder', 'inbox']
    """
    target, backup = _real_file(file), _backup_of(_real_file(file))
    raw = _read(target)
    document = _parse(target, raw)
    path, entries = _server_table(target, document)
    if ENTRY in entries or backup.exists():
        raise ConfigError(
            "firewall.already-rewritten",
            f"{target} goes through the firewall already, or {backup.name} is left from an earlier time",
            fix="Restore it first.",
        )
    moved = {name: entry for name, entry in entries.items() if name not in leave}
    if not moved:
        raise ConfigError("firewall.no-servers", f"{target} names no server that could be moved")
    mover = _Mover(target, secrets)
    for name, entry in moved.items():
        mover.move(name, entry)
    own: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
    if path != ("mcpServers",):
        own = {"type": "stdio", **own}
    if mover.environment:
        own["env"] = mover.environment
    left = {name: entry for name, entry in entries.items() if name in leave}
    _set_table(document, path, {ENTRY: own, **left})
    rewritten = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    mode = stat.S_IMODE(target.stat().st_mode)
    done = ClientRewrite(
        target,
        backup,
        mover.servers,
        tuple(mover.secrets),
        {name: new for name, new in mover.names.items() if name != new},
        tuple(mover.names[name] for name, entry in moved.items() if _is_disabled(entry)),
        tuple(left),
        dict(mover.environment),
    )
    if not write:
        return done
    # The backup first: at no moment is there a rewritten file without what it was made of.
    try:
        _write(backup, raw, mode & 0o600)
        _write(_written_of(target), rewritten, mode & 0o600)
        _write(target, rewritten, mode)
    except BaseException:
        backup.unlink(missing_ok=True)
        _written_of(target).unlink(missing_ok=True)
        raise
    return done


def restore_client_config(file: Path) -> Path:
    """Bring a client's file back exactly as it was, and return it; refused if it was changed since it was rewritten.

    Example:
        >>> restore_client_config(Path("mcp.json"))
    """
    target = _real_file(file)
    backup = _backup_of(target)
    if not backup.exists():
        raise ConfigError(
            "firewall.no-backup", f"there is no {backup.name} beside {target}", fix="It was not rewritten from here."
        )
    written = _written_of(target)
    original, rewritten, now = _read(backup), _read(written), _read(target)
    if now != rewritten:
        raise ConfigError(
            "firewall.changed-since",
            f"{target} was changed after it was rewritten: {_changes(rewritten, now)}",
            fix=f"Take the changes back, or put the file together by hand: {backup} has it as it was.",
        )
    _write(target, original, stat.S_IMODE(target.stat().st_mode))
    written.unlink()
    backup.unlink()
    return target


class _Mover:
    """Turns entries of a client's file into settings."""

    def __init__(self, file: Path, secrets: Literal["keep", "keyring"]) -> None:
        self._file = file
        self._way = secrets
        self.servers: dict[str, dict[str, Any]] = {}
        self.names: dict[str, str] = {}
        self.secrets: list[MovedSecret] = []
        self.environment: dict[str, str] = {}
        """Variables of the firewall's entry."""

    def move(self, name: str, entry: object) -> None:
        if not isinstance(entry, dict):
            raise self._error(name, "is no object")
        facts = cast("dict[str, Any]", entry)
        new = self._name(name)
        settings = self._command(name, new, facts) if "command" in facts else self._address(name, new, facts)
        self.names[name] = new
        self.servers[new] = settings

    def _name(self, name: str) -> str:
        """A name that settings can have, and no other server has."""
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:32] or "server"
        plain = plain if plain[0].isalpha() else f"s_{plain}"
        known = {each.lower() for each in self.servers}
        found, number = plain, 2
        while found.lower() in known or not _SERVER_NAME.fullmatch(found):
            found, number = f"{plain}_{number}", number + 1
        return found

    def _command(self, name: str, new: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        program, arguments = facts["command"], facts.get("args", [])
        if not isinstance(program, str) or not _is_texts(arguments):
            raise self._error(name, "has a command that is no text, or arguments that are no list of texts")
        if facts.get("envFile"):
            raise self._error(name, "reads its variables from a file (`envFile`)", "Name them in `env`")
        if facts.get("cwd"):
            raise self._error(name, "is started in a folder of its own (`cwd`)", "Write whole paths in its command")
        command = [program, *cast("list[str]", arguments)]
        for at, argument in enumerate(command):
            if _is_secret_argument(argument, command[at + 1 :]):
                # Not quoted: it may be the secret itself.
                raise self._error(
                    name, f"seems to have a secret in argument {at} of its command", "Give it as a variable in `env`"
                )
            if _PLACEHOLDER.search(argument):
                raise self._error(name, "has a placeholder in its command that only the client can fill in")
        settings: dict[str, Any] = {"command": command}
        self._add_variables(name, new, facts.get("env", {}), settings)
        return settings

    def _add_variables(self, name: str, new: str, given: object, settings: dict[str, Any]) -> None:
        if not isinstance(given, dict):
            raise self._error(name, "has an `env` that is no object")
        plain: dict[str, str] = {}
        hidden: dict[str, str] = {}
        for variable, value in cast("dict[str, object]", given).items():
            if not _VARIABLE.fullmatch(variable) or not isinstance(value, str | int | float) or "\0" in str(value):
                raise self._error(name, f"has the variable {variable[:60]!r}, which is none, or without a text")
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if is_harmless(variable, text):
                plain[variable] = text
            elif text:
                hidden[variable] = self._reference(new, variable, text)
        settings |= ({"env": plain} if plain else {}) | ({"secrets": hidden} if hidden else {})

    def _address(self, name: str, new: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        url = facts.get("url", facts.get("serverUrl"))
        if not isinstance(url, str) or not re.match(r"https?://", url):
            raise self._error(name, "has neither a command nor an address that begins with http:// or https://")
        if facts.get("type") == "sse":
            raise self._error(name, "uses the transport `sse`, which is not supported")
        if _URL_WITH_PASSWORD.match(url) or redact_secrets(url, "") != url or _PLACEHOLDER.search(url):
            raise self._error(name, "seems to have a secret in its address", "Give it as a header")
        settings: dict[str, Any] = {"url": url}
        headers = facts.get("headers", {})
        if not isinstance(headers, dict):
            raise self._error(name, "has `headers` that are no object")
        references: dict[str, str] = {}
        for header, value in cast("dict[str, object]", headers).items():
            if not isinstance(value, str) or "\0" in value:
                raise self._error(name, f"has the header {header[:60]!r} without a text")
            if header.lower() == "authorization" and value.lower().startswith("bearer "):
                settings["bearer"] = self._reference(new, header, value[7:].strip())
            else:
                references[header] = self._reference(new, header, value)
        return settings | ({"headers": references} if references else {})

    def _reference(self, server: str, setting: str, value: str) -> str:
        """Where a secret is from now on."""
        if self._way == "keyring":
            reference = f"keyring:{server}-{setting}"
            self.secrets.append(MovedSecret(server, setting, reference, kept=False))
            return reference
        variable = re.sub(r"\W", "_", setting, flags=re.ASCII)
        if not _VARIABLE.fullmatch(variable) or self.environment.get(variable, value) != value:
            # Two servers with one name for different secrets.
            variable = re.sub(r"\W", "_", f"{server}_{setting}".upper(), flags=re.ASCII)
        while self.environment.get(variable, value) != value:
            variable += "_"
        self.environment[variable] = value
        self.secrets.append(MovedSecret(server, setting, variable, kept=True))
        return variable

    def _error(self, name: str, what: str, fix: str = "") -> ConfigError:
        leave = f"leave the entry out ({name[:60]!r})"
        return ConfigError(
            "firewall.cannot-move",
            f"the server {name[:60]!r} {what}",
            place=Place(file=str(self._file)),
            fix=f"{fix}, or {leave}." if fix else f"{leave[:1].upper()}{leave[1:]}.",
        )


def is_harmless(name: str, value: str) -> bool:
    """Whether a variable may be written into a file that others read: only what certainly is no secret.

    Example:
        >>> is_harmless("LOG_LEVEL", "debug"), is_harmless("API_KEY", "debug"), is_harmless("MODE", "hF3_x9")
        (True, False, False)
    """
    if _SECRET_NAME.search(name):
        return False
    if value.lower() in _HARMLESS_WORDS or _HARMLESS.fullmatch(value):
        return True
    # A path that is there: whoever reads the settings may as well look at the disk.
    return value.startswith(("/", "~/")) and os.path.exists(os.path.expanduser(value))


def _is_secret_argument(argument: str, rest: Sequence[str]) -> bool:
    if redact_secrets(argument, "") != argument or _URL_WITH_PASSWORD.search(argument):
        return True
    flag = _SECRET_FLAG.fullmatch(argument)
    # A flag that stands alone takes the next argument, unless that is another one.
    return flag is not None and (bool(flag[1]) or (bool(rest) and not rest[0].startswith("-")))


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value))


def _is_disabled(entry: object) -> bool:
    return isinstance(entry, dict) and cast("dict[str, object]", entry).get("disabled") is True


# The file


def _real_file(file: Path) -> Path:
    """The file itself: a link stays a link, and what it points to is rewritten."""
    return Path(os.path.realpath(file))


def _backup_of(file: Path) -> Path:
    return file.with_name(file.name + BACKUP_SUFFIX)


def _written_of(file: Path) -> Path:
    return file.with_name(file.name + WRITTEN_SUFFIX)


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
        found: object = json.loads(text, object_pairs_hook=_unique_names)
    except UnicodeDecodeError:
        raise ConfigError("firewall.bad-json", f"{file} is no text in UTF-8") from None
    except (json.JSONDecodeError, RecursionError) as error:
        _raise_no_json(file, raw.decode("utf-8", "replace"), error)
    if not isinstance(found, dict):
        raise ConfigError("firewall.bad-json", f"{file} holds no object")
    return cast("dict[str, Any]", found)


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


def _write(file: Path, content: bytes, mode: int) -> None:
    """Write a file at once, with these permissions; readers see the old content or the new one."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, mode)
        os.replace(name, file)
    except OSError as error:
        raise ConfigError("firewall.unwritable", f"{file} cannot be written: {error.strerror or error}") from None
    finally:
        Path(name).unlink(missing_ok=True)
    sync_folder(file.parent)

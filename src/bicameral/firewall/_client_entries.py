"""The entries of a client's file as settings of `[mcp.NAME]`: what can be said in those, and nothing that is secret.

An entry that says more than settings can is not moved: a restriction that the client kept would be lost without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from bicameral.errors import ConfigError, Place
from bicameral.firewall._client_secrets import find_secret_word, has_secret_address, is_harmless

_SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
VARIABLE_PREFIX = "MCP_SECRET_"
"""Variables of the firewall's own process begin with it: nothing reads such a name as a setting."""

_COMMAND_KEYS = frozenset({"command", "args", "env", "envFile", "cwd"})
_ADDRESS_KEYS = frozenset({"url", "serverUrl", "headers"})
_COMMON_KEYS = frozenset({"type", "disabled", "enabled"})
_INCLUDED = ("includeTools", "include_tools", "enabledTools", "enabled_tools", "allowedTools", "tools")
_EXCLUDED = ("excludeTools", "exclude_tools", "disabledTools", "disabled_tools")
_DROPPED = frozenset(
    {
        # Calls that the client does not ask about: it asks again, since the tools have other names.
        *("alwaysAllow", "autoApprove", "trust"),
        # What it shows and how long it waits.
        *("description", "name", "icon", "gallery", "version", "timeout", "startup_timeout_sec", "tool_timeout_sec"),
    }
)
"""Keys of which nothing is left, and no restriction is among them."""
_LOOSE_KEYS = frozenset({"alwaysAllow", "autoApprove", "trust", "timeout", "startup_timeout_sec", "tool_timeout_sec"})
"""Those of them that the user may miss."""


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


def is_disabled(entry: object) -> bool:
    """Whether the client does not start an entry."""
    if not isinstance(entry, dict):
        return False
    facts = cast("dict[str, object]", entry)
    return facts.get("disabled") is True or facts.get("enabled") is False


class EntryMover:
    """Turns entries of a client's file into settings.

    Args:
        file: The file, for errors.
        secrets: Where values of secrets go: `keep` for the firewall's entry, or `keyring`.
    """

    def __init__(self, file: Path, secrets: Literal["keep", "keyring"]) -> None:
        self._file = file
        self._way = secrets
        self.servers: dict[str, dict[str, Any]] = {}
        self.names: dict[str, str] = {}
        self.secrets: list[MovedSecret] = []
        self.excluded: dict[str, tuple[str, ...]] = {}
        self.dropped: dict[str, tuple[str, ...]] = {}
        self.environment: dict[str, str] = {}
        """Variables of the firewall's entry."""

    def move(self, name: str, entry: object) -> None:
        """Take an entry over; a `firewall.cannot-move` if its settings cannot say all of it."""
        if not isinstance(entry, dict):
            raise self._error(name, "is no object")
        facts = cast("dict[str, Any]", entry)
        new = self._name(name)
        is_command = "command" in facts
        self._check_keys(name, facts, _COMMAND_KEYS if is_command else _ADDRESS_KEYS)
        settings = self._command(name, new, facts) if is_command else self._address(name, new, facts)
        self._add_tools(name, new, facts, settings)
        self.names[name] = new
        self.servers[new] = settings
        if dropped := tuple(each for each in facts if each in _LOOSE_KEYS and facts[each]):
            self.dropped[new] = dropped

    def _check_keys(self, name: str, facts: Mapping[str, Any], own: frozenset[str]) -> None:
        known = own | _COMMON_KEYS | _DROPPED | {*_INCLUDED, *_EXCLUDED}
        if unknown := next((each for each in facts if each not in known), None):
            # It may be a restriction.
            raise self._error(
                name,
                f"has the key {_key_name(unknown)!r}, and what it means to the client is not known here",
                "Take the key out if nothing depends on it",
            )
        for key in ("disabled", "enabled"):
            if not isinstance(facts.get(key, True), bool):
                raise self._error(name, f"has the key {key!r} with something else than true or false")

    def _add_tools(self, name: str, new: str, facts: Mapping[str, Any], settings: dict[str, Any]) -> None:
        included = [self._tool_names(name, key, facts[key]) for key in _INCLUDED if key in facts]
        limits = [each for each in included if "*" not in each]
        if limits:
            settings["allow"] = [tool for tool in limits[0] if all(tool in each for each in limits)]
        if excluded := dict.fromkeys(
            tool for key in _EXCLUDED if key in facts for tool in self._tool_names(name, key, facts[key])
        ):
            self.excluded[new] = tuple(excluded)

    def _tool_names(self, name: str, key: str, given: object) -> list[str]:
        if not _is_texts(given):
            raise self._error(name, f"has the key {key!r} with something else than a list of names")
        tools = cast("list[str]", given)
        if any(re.search(r"[*?(\[]", tool) and (tool != "*" or key in _EXCLUDED) for tool in tools):
            raise self._error(name, f"has a pattern in {key!r}, where only names can be taken over", "Write the names")
        return tools

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
        if (at := find_secret_word(command)) is not None:
            # Not quoted: it may be the secret itself.
            raise self._error(
                name,
                f"seems to have a secret in {f'argument {at} of its command' if at else 'its command'}, which would be "
                "written into bicameral.toml",
                "Give it as a variable in `env`, or write a server elsewhere as a `url` with `headers`",
            )
        if any(map(_PLACEHOLDER.search, command)):
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
                raise self._error(name, f"has the variable {_key_name(variable)!r}, which is none, or without a text")
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
        if has_secret_address(url) or _PLACEHOLDER.search(url):
            raise self._error(
                name,
                "seems to have a secret in its address, which would be written into bicameral.toml",
                "Give it as a header if the server takes one",
            )
        settings: dict[str, Any] = {"url": url}
        headers = facts.get("headers", {})
        if not isinstance(headers, dict):
            raise self._error(name, "has `headers` that are no object")
        references: dict[str, str] = {}
        for header, value in cast("dict[str, object]", headers).items():
            if not isinstance(value, str) or "\0" in value:
                raise self._error(name, f"has the header {_key_name(header)!r} without a text")
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
        # Never under its own name: `PYTHONPATH` or `HTTPS_PROXY` of a server would act on the firewall itself.
        plain = VARIABLE_PREFIX + re.sub(r"\W", "_", f"{server}_{setting}", flags=re.ASCII).upper()
        variable, number = plain, 2
        while variable in self.environment:
            variable, number = f"{plain}_{number}", number + 1
        self.environment[variable] = value
        self.secrets.append(MovedSecret(server, setting, variable, kept=True))
        return variable

    def _error(self, name: str, what: str, fix: str = "") -> ConfigError:
        leave = f"leave the entry out (--leave {name[:60]!r})"
        return ConfigError(
            "firewall.cannot-move",
            f"the server {name[:60]!r} {what}",
            place=Place(file=str(self._file)),
            fix=f"{fix}, or {leave}." if fix else f"{leave[:1].upper()}{leave[1:]}.",
        )


def _key_name(key: str) -> str:
    """A key for a message: what stands before a sign of equality, since a secret may have been written after it."""
    return re.split(r"[=:\s]", key, maxsplit=1)[0][:60]


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value))


_RULE_KEY = re.compile("allow|ask|approv|block|deny|disab|enabl|exclud|only|permission|trust", re.I)


def rules_about(document: object, names: Mapping[str, str]) -> Iterator[str]:
    """The places of lists that allow or forbid something and name a moved server, such as `mcp.excluded`.

    Args:
        document: What is in the file besides its servers.
        names: The client's names of those that were moved.
    """
    for path, found in _walk(document):
        if _RULE_KEY.search(path[-1] if path else "") and _is_texts(found):
            texts = cast("list[str]", found)
            if any(text == name or f"mcp__{name}__" in f"{text}__" for text in texts for name in names):
                yield ".".join(path)


def servers_elsewhere(document: object, names: frozenset[str]) -> Iterator[str]:
    """The places of servers in other tables than the one that is moved, such as those of a project.

    Args:
        document: What is in the file besides its servers.
        names: The names of tables of servers.
    """
    for path, found in _walk(document):
        if path and path[-1] in names and isinstance(found, dict):
            yield from (".".join((*path[:-1], name)) for name in cast("dict[str, Any]", found))


def _walk(document: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every part of a document with the names that lead to it, in the order of the file."""
    pending: list[tuple[tuple[str, ...], object]] = [((), document)]
    while pending:
        path, part = pending.pop()
        yield path, part
        if isinstance(part, dict):
            inner = [((*path, key), each) for key, each in cast("dict[str, Any]", part).items()]
            pending += reversed(inner)
        elif isinstance(part, list):
            pending += reversed([(path, each) for each in cast("list[Any]", part)])

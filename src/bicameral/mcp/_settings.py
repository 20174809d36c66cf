"""Settings of one MCP server, `[mcp.NAME]` in `bicameral.toml`. The library for MCP is not imported for them."""

from __future__ import annotations

import ipaddress
import re
import shlex
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from bicameral.foreign import SecretReference
from bicameral.rates import Rate

Texts = Annotated[tuple[str, ...], Field(strict=False)]
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"\*|[A-Za-z0-9]([A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]+\]")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")

ShowResults = Literal["handles", "marked-text"]
Undeclared = Literal["refuse", "ask"]


class McpSettings(BaseModel):
    """One MCP server: how it is reached, what it may use, and which of its tools were reviewed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True, use_attribute_docstrings=True)

    command: Texts = ()
    """The program and its arguments, for a server that is started here and talks over its standard streams."""
    url: str | None = None
    """The address of a server that is reached over HTTP, instead of a command."""
    tools: str | None = None
    """The file with the declarations of its tools, found next to this file. `bicameral mcp add` writes it."""
    env: dict[str, str] = Field(default_factory=dict[str, str])
    """Environment variables of the command. Nothing secret: this file is read by others."""
    secrets: dict[str, SecretReference] = Field(default_factory=dict[str, str])
    """Environment variables of the command whose values are secret: the name of a variable here, or `keyring:ENTRY`."""
    headers: dict[str, SecretReference] = Field(default_factory=dict[str, str])
    """Headers that are sent to the address, by the same references, such as `Authorization = "keyring:tracker"`."""
    bearer: SecretReference | None = None
    """A token that is sent to the address as `Authorization: Bearer TOKEN`, by the same references."""
    sandbox: bool = True
    """Whether the command is confined to what follows. Without it, it may do whatever you may."""
    read: Texts = ()
    """Files and folders that the command may read, besides the system's and its own program."""
    write: Texts = ()
    """Files and folders that the command may change."""
    network: bool | Texts = False
    """Nothing, everything, or a list of `host:port` that the command may reach."""
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 30.0
    """Seconds that one call may take."""
    start_timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Seconds until the server must have answered for the first time."""
    max_result: Annotated[int, Field(ge=1_000, le=256_000_000)] = 4_000_000
    """Bytes that one message of the server may have."""
    memory_mb: Annotated[int, Field(ge=64, le=1_048_576)] = 4_096
    """Memory that the processes of the command may reserve together."""
    allow: Texts | None = None
    """The only tools that may be called, by the server's own names. Without it, all that are declared."""
    undeclared: Undeclared = "ask"
    """What becomes of tools without a declaration: `ask` before every call of one, or `refuse` them."""
    rate: Rate | None = None
    """How many calls may be made in a time, such as `60/min`."""
    show: ShowResults = "handles"
    """For the firewall: results as `handles` with typed summaries, or as `marked-text`, which makes the session
    untrusted."""

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> McpSettings:
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has either a `command` or a `url`")
        if self.url is not None and (problem := _url_problem(self.url, secret=bool(self.headers or self.bearer))):
            raise ValueError(problem)
        if self.url is not None and (self.env or self.secrets or self.read or self.write or self.network):
            raise ValueError("`env`, `secrets`, `read`, `write` and `network` are for a command, and there is a url")
        if (self.headers or self.bearer) and self.url is None:
            raise ValueError("`headers` and `bearer` are for a url, and there is a command")
        return self

    @field_validator("env", "secrets")
    @classmethod
    def _environment_names(cls, given: dict[str, str]) -> dict[str, str]:
        for name, value in given.items():
            if not _VARIABLE.fullmatch(name) or "\0" in value:
                raise ValueError(f"{name[:40]!r} cannot be an environment variable")
        return given

    @field_validator("network")
    @classmethod
    def _network_places(cls, given: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
        for place in () if isinstance(given, bool) else given:
            # A name alone would be looked up as a host, and the sandbox does not say that it has found none.
            host, _, port = place.rpartition(":")
            if not _HOST.fullmatch(host) or not (port == "*" or (port.isdecimal() and 0 < int(port) < 65_536)):
                raise ValueError(f"{place[:60]!r} is no host with a port, such as 'api.example.org:443' or '*:443'")
        return given

    @field_validator("headers")
    @classmethod
    def _header_names(cls, given: dict[str, str]) -> dict[str, str]:
        for name in given:
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name[:40]!r} cannot be the name of a header")
        return given


def command_text(settings: McpSettings) -> str:
    """How a server is reached, in one line."""
    return settings.url or shlex.join(settings.command)


def confinement_text(settings: McpSettings) -> str:
    """What confines a server, in a few words."""
    if settings.url is not None:
        return "runs elsewhere"
    if not settings.sandbox:
        return "not confined"
    network = "no network" if not settings.network else "a network"
    return f"confined: {network}, {'files to write' if settings.write else 'no file to write'}"


def _url_problem(url: str, *, secret: bool) -> str | None:
    """Why an address cannot be that of a server to which secrets may be sent; None if it can."""
    # Looked at before it is parsed: the parser removes some of them, and the address is shown and written as it is.
    if not url.isprintable() or any(char.isspace() or char == "\\" for char in url):
        return "the url must have no blanks, control characters and backslashes"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return "the url is none"
    if parts.scheme not in ("http", "https") or not host:
        return "the url must begin with http:// or https:// and a host"
    if "@" in parts.netloc:
        return "the url must hold no name and no password: they would stand in the file; use `bearer` or `headers`"
    if secret and parts.scheme == "http" and not _is_loopback(host):
        return "`headers` and `bearer` are sent over https alone, since anybody on the way can read what http sends"
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def server_name_problem(name: str) -> str | None:
    """Why this cannot name a server; None if it can."""
    if _NAME.fullmatch(name):
        return None
    return "a name begins with a letter and has at most 40 letters, digits, '_' and '-'"


def _validate_name(name: str) -> str:
    if problem := server_name_problem(name):
        raise ValueError(problem)
    return name


ServerName = Annotated[str, AfterValidator(_validate_name)]
"""The name of a server in the configuration: its tools begin with it."""

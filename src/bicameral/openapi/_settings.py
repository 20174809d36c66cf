"""Settings of one API, `[openapi.NAME]` in `bicameral.toml`. The library for HTTP is not imported for them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from bicameral.foreign import SecretReference
from bicameral.rates import Rate

Texts = Annotated[tuple[str, ...], Field(strict=False)]
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_SERVER = re.compile(r"https?://[^\s/?#@\\]+(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?")

Undeclared = Literal["refuse", "ask"]


class OpenApiSettings(BaseModel):
    """One API: its document, where it is served, the keys that it needs, and which of its operations were reviewed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True, use_attribute_docstrings=True)

    document: str
    """The copy of the document that was reviewed, found next to this file. `bicameral openapi add` writes it."""
    server: str
    """The address that all calls go to, such as `https://api.example.com/v2`. What the document says is not used."""
    tools: str | None = None
    """The file with the declarations of its operations, found next to this file. `bicameral openapi add` writes it."""
    source: str | None = None
    """Where the document came from: a file or an address. Only `bicameral openapi check` and `review` look there."""
    keys: dict[str, SecretReference] = Field(default_factory=dict[str, str])
    """Keys by the names of the document's security schemes: the name of an environment variable, or `keyring:ENTRY`.
    For HTTP Basic it holds `user:password`; for OAuth 2 and OpenID Connect a token."""
    bearer: SecretReference | None = None
    """A token that is sent with every call as `Authorization: Bearer TOKEN`, by the same references."""
    headers: dict[str, SecretReference] = Field(default_factory=dict[str, str])
    """Headers that are sent with every call, by the same references."""
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 30.0
    """Seconds that one call may take."""
    max_result: Annotated[int, Field(ge=1_000, le=256_000_000)] = 4_000_000
    """Bytes that one answer may have."""
    allow: Texts | None = None
    """The only operations that may be called, by their names in the declarations. Without it, all that are declared."""
    undeclared: Undeclared = "ask"
    """Without declarations: `ask` before every call of an operation, or `refuse` them all."""
    rate: Rate | None = None
    """How many calls may be made in a time, such as `60/min`."""

    @field_validator("server")
    @classmethod
    def _server_address(cls, given: str) -> str:
        if problem := server_problem(given):
            raise ValueError(problem)
        return given

    @field_validator("headers")
    @classmethod
    def _header_names(cls, given: dict[str, str]) -> dict[str, str]:
        for name in given:
            if not HEADER_NAME.fullmatch(name) or name.lower() in TRANSPORT_HEADERS:
                raise ValueError(f"{name[:40]!r} cannot be a header that is set here")
        return given

    @model_validator(mode="after")
    def _one_authorization(self) -> OpenApiSettings:
        if self.bearer is not None and any(name.lower() == "authorization" for name in self.headers):
            raise ValueError("`bearer` and the header Authorization are the same header")
        return self

    @property
    def is_encrypted(self) -> bool:
        """Whether calls, and the keys that are sent with them, cannot be read on the way."""
        return self.server.startswith("https://") or re.match(_LOOPBACK, self.server) is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The references to all keys."""
        return (*self.keys.values(), *self.headers.values(), *(() if self.bearer is None else (self.bearer,)))


_LOOPBACK = r"http://(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?(/|$)"

TRANSPORT_HEADERS = frozenset(
    "accept accept-encoding connection content-encoding content-length content-type cookie expect host keep-alive "
    "proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split()
)
"""Headers that decide how a message is read or where it goes: the client sets them, and nobody else."""


def server_problem(server: str) -> str | None:
    """Why this cannot be the address of an API; None if it can."""
    if _SERVER.fullmatch(server) is None:
        return "the address begins with http:// or https://, and holds no password, no '?', no '#' and no space"
    path = server.split("//", 1)[1].partition("/")[2]
    if any(part in (".", "..") for part in path.replace("%2e", ".").replace("%2E", ".").split("/")):
        return "the address must not hold '.' or '..'"
    return None


def openapi_files(settings: OpenApiSettings, beside: Path) -> Iterator[Path]:
    """The files that an API's settings name: its document, its declarations, and what was reviewed.

    Args:
        settings: The settings of the API.
        beside: The folder of the configuration.
    """
    yield beside / os.path.expanduser(settings.document)
    if settings.tools is not None:
        declarations = beside / os.path.expanduser(settings.tools)
        yield declarations
        yield declarations.with_name(f"{declarations.stem}.pins.json")

"""What a user can set for the web in `bicameral.toml`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from bicameral.tools import Settings

from ._hosts import HostPattern


class WebSettings(Settings):
    """Which hosts may be asked, and how much and how long an answer may be."""

    hosts: tuple[str, ...] = ()
    """Hosts that may be asked, as `example.com`, `*.example.com` or `127.0.0.1:8080`; `*` is every public host.

    Without any, every public host may be asked. Only a host that is listed by name may be in a private network.
    """
    timeout: Annotated[float, Field(gt=0, le=300)] = 20.0
    """Seconds for the whole answer, redirects included."""
    max_bytes: Annotated[int, Field(gt=0, le=100_000_000)] = 5_000_000
    proxy: str | None = None
    """The address of an HTTP proxy. It resolves names itself, so then only it can keep private addresses out."""

    @field_validator("hosts")
    @classmethod
    def _readable(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            HostPattern.parse(host)
        return hosts

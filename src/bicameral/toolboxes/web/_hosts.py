"""Which hosts may be asked, and which addresses a public name must not lead to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_PATTERN = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/@\s]+)(?::(?P<port>\d{1,5}))?")
_NAT64 = IPv6Network("64:ff9b::/96")
_V4_COMPATIBLE = IPv6Network("::/96")


@dataclass(frozen=True, slots=True)
class HostPattern:
    """`example.com`, `*.example.com` (its subdomains), `*` (every public host), each with or without a port."""

    host: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> HostPattern:
        found = _PATTERN.fullmatch(text.strip())
        host = found["host"].strip("[]").rstrip(".").lower() if found else ""
        if not found or not host or "*" in host.removeprefix("*") or (host[:1] == "*" and host[1:2] not in ("", ".")):
            raise ValueError(f"{text!r} is not a host; write 'example.com', '*.example.com' or '127.0.0.1:8080'")
        return cls(host, int(found["port"]) if found["port"] else None)

    def names(self, host: str, port: int) -> bool:
        if self.port not in (None, port):
            return False
        own = host.rstrip(".").lower()
        return own.endswith(self.host[1:]) if self.host.startswith("*.") else own == self.host


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of the settings."""

    patterns: tuple[HostPattern, ...]

    @classmethod
    def of(cls, hosts: Iterable[str]) -> Hosts:
        return cls(tuple(map(HostPattern.parse, hosts)))

    def lists(self, host: str, port: int) -> bool:
        """Whether the user named this host, so that it may be in a private network."""
        return any(pattern.names(host, port) for pattern in self.patterns)

    def allows(self, host: str, port: int) -> bool:
        """Whether this host may be asked at all, wherever it is."""
        everything = not self.patterns or any(
            pattern.host == "*" and pattern.port in (None, port) for pattern in self.patterns
        )
        return everything or self.lists(host, port)


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet, also when it wraps another one."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return all(
        one.is_global and not (one.is_multicast or one.is_reserved or one.is_unspecified) for one in _meant(found)
    )


def _meant(address: IPv4Address | IPv6Address) -> Iterable[IPv4Address | IPv6Address]:
    """The address and those inside it: IPv4 in IPv6 by mapping, 6to4, Teredo or NAT64 arrives at the IPv4 host."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    inside = [address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        # The prefix itself is public though the standard library calls it reserved.
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _V4_COMPATIBLE:
        inside.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *(one for one in inside if one is not None)]

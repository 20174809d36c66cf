"""Web pages: fetch a page as text with its links, or JSON.

The host of a URL is checked against the settings and resolved once, and the connection goes to the address that was
checked. Loopback, private and link-local addresses are refused unless their host is listed; the checks are repeated for
every redirect. A response is decompressed up to a limit, and parsed in the parser process (`toolboxes._text`).
"""

from __future__ import annotations

import asyncio
import re
import socket
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urljoin

from pydantic import Field, field_validator

from bicameral.errors import ToolError
from bicameral.parsing import InvalidJson, ParseLimits, Parser, read_json
from bicameral.toolboxes._text import decode_bytes, require_standard
from bicameral.tools import MissingSetting, Origin, Settings, Surroundings, Tool, Toolbox, missing_extra, tool
from bicameral.types import Url

if TYPE_CHECKING:
    import ssl

    import httpx


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
        match = _PATTERN.fullmatch(text.strip())
        host = match["host"].strip("[]").rstrip(".").lower() if match else ""
        if not match or not host or "*" in host.removeprefix("*") or (host[:1] == "*" and host[1:2] not in ("", ".")):
            raise ValueError(f"{text!r} is not a host; write 'example.com', '*.example.com' or '127.0.0.1:8080'")
        return cls(host, int(match["port"]) if match["port"] else None)

    def matches(self, host: str, port: int) -> bool:
        if self.port not in (None, port):
            return False
        own = host.rstrip(".").lower()
        return own.endswith(self.host[1:]) if self.host.startswith("*.") else own == self.host


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The hosts in the settings."""

    patterns: tuple[HostPattern, ...]

    @classmethod
    def from_settings(cls, hosts: Iterable[str]) -> AllowedHosts:
        return cls(tuple(map(HostPattern.parse, hosts)))

    def is_listed(self, host: str, port: int) -> bool:
        """Whether the settings name this host, so that it may be in a private network."""
        return any(pattern.matches(host, port) for pattern in self.patterns)

    def is_allowed(self, host: str, port: int) -> bool:
        """Whether this host may be asked at all, in whatever network it is."""
        everything = not self.patterns or any(
            pattern.host == "*" and pattern.port in (None, port) for pattern in self.patterns
        )
        return everything or self.is_listed(host, port)


def is_public(address: str) -> bool:
    """Whether an address, and every address embedded in it, belongs to the public internet."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return all(
        one.is_global and not (one.is_multicast or one.is_reserved or one.is_unspecified)
        for one in _embedded_addresses(parsed)
    )


def _embedded_addresses(address: IPv4Address | IPv6Address) -> Iterable[IPv4Address | IPv6Address]:
    """The address and those inside it: a mapped, 6to4, Teredo or NAT64 address reaches the IPv4 host in it."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    inside = [address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        # The prefix itself is public, although the standard library counts it as reserved.
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _V4_COMPATIBLE:
        inside.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *(one for one in inside if one is not None)]


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


_MAX_REDIRECTS = 10
_MAX_ADDRESSES = 4
_MAX_URL = 8_000
_HOST = re.compile(r"[0-9A-Za-z._:-]+")
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_LENGTH = 18
_LONGEST_KIND = 200
_ZLIB_WINDOWS = {
    "": 0,
    "identity": 0,
    "gzip": 16 + zlib.MAX_WBITS,
    "x-gzip": 16 + zlib.MAX_WBITS,
    "deflate": zlib.MAX_WBITS,
}
"""The window size with which `zlib` decompresses an encoding; 0 means no compression."""
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; bicameral)",
    "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.8,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A response: the final URL, the declared type and charset, and the content."""

    url: str
    kind: str
    charset: str | None
    content: bytes


async def fetch_url(url: str, settings: WebSettings) -> WebResponse:
    """Fetch a URL, following redirects; raises a `ToolError` with the reason."""
    require_standard("httpx")
    try:
        # One time-out for all redirects: a server cannot prolong the request by sending more of them.
        async with asyncio.timeout(settings.timeout):
            return await _follow_redirects(url, settings)
    except TimeoutError:
        raise ToolError(
            "web.unreachable",
            f"{_quote_url(url)} did not answer within {settings.timeout:g} seconds",
            fix="Try again, or raise `timeout` under [toolbox.web].",
        ) from None


async def _follow_redirects(url: str, settings: WebSettings) -> WebResponse:
    hosts = AllowedHosts.from_settings(settings.hosts)
    for _ in range(_MAX_REDIRECTS + 1):
        # Every redirect is checked like the first URL: a public server may redirect into a private network.
        target = _check_url(url, hosts)
        addresses = await _resolve_addresses(target, hosts) if settings.proxy is None else [_wire_host(target)]
        response = await _request_once(target, addresses, settings)
        if isinstance(response, WebResponse):
            return response
        url = urljoin(url, response)
    raise ToolError(
        "web.too-many-redirects", f"more than {_MAX_REDIRECTS} redirects, the last one to {_quote_url(url)}"
    )


def _check_url(url: str, hosts: AllowedHosts) -> httpx.URL:
    import httpx

    try:
        target = httpx.URL(url.strip()).copy_with(fragment=None)
        host, port = _wire_host(target), _effective_port(target)
    except (httpx.InvalidURL, ValueError, TypeError):
        raise _bad_url_error(url) from None
    if target.scheme not in ("http", "https") or not _HOST.fullmatch(host) or port > 65535 or len(url) > _MAX_URL:
        raise _bad_url_error(url)
    if target.userinfo:
        raise ToolError("web.bad-url", "the URL has a user name or password in it", expected="a URL without them")
    if not hosts.is_allowed(host, port):
        raise _forbidden_host_error(host, "is not among the hosts that may be asked")
    # A literal address is checked here, because behind a proxy no name is resolved and no address checked later.
    if _is_literal_address(host) and not is_public(host) and not hosts.is_listed(host, port):
        raise _forbidden_host_error(host, "is an address inside this machine or a private network")
    return target


def _wire_host(target: httpx.URL) -> str:
    """The host in ASCII, as it is sent."""
    return target.raw_host.decode("ascii")


def _effective_port(target: httpx.URL) -> int:
    return target.port or (443 if target.scheme == "https" else 80)


def _is_literal_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host.rstrip(".").lower().endswith("localhost")
    return True


async def _resolve_addresses(target: httpx.URL, hosts: AllowedHosts) -> list[str]:
    """The checked addresses of a host; a host with even one private address is refused."""
    host, port = _wire_host(target), _effective_port(target)
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolError("web.unreachable", f"the host {host!r} cannot be found") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    if not hosts.is_listed(host, port) and not all(map(is_public, addresses)):
        raise _forbidden_host_error(host, "leads to an address inside this machine or a private network")
    return addresses[:_MAX_ADDRESSES]


async def _request_once(target: httpx.URL, addresses: list[str], settings: WebSettings) -> WebResponse | str:
    """The response, or the target of a redirect; if an address cannot be connected to, the next one is tried."""
    import httpx

    problem: Exception | None = None
    # The bare transport, new for each request: it keeps no cookies, reads no environment and follows no redirects.
    async with httpx.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False, proxy=settings.proxy) as transport:
        for address in addresses:
            # The URL has the checked address, so that the name is not resolved again (DNS rebinding). The certificate
            # is verified against the name.
            request = httpx.Request(
                "GET",
                target.copy_with(host=address),
                headers=_HEADERS | {"Host": target.netloc.decode("ascii")},
                extensions={"sni_hostname": _wire_host(target), "timeout": httpx.Timeout(settings.timeout).as_dict()},
            )
            try:
                return await _receive_response(await transport.handle_async_request(request), target, settings)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = error
            except (httpx.HTTPError, httpx.StreamError) as error:
                raise _unreachable_error(target, error) from None
    raise _unreachable_error(target, problem)


@cache
def _ssl_context() -> ssl.SSLContext:
    import httpx

    # The bundled certificate authorities and those of the machine, so that a company's certificates work, too.
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


async def _receive_response(response: httpx.Response, target: httpx.URL, settings: WebSettings) -> WebResponse | str:
    try:
        if response.status_code in _REDIRECTS and (location := response.headers.get("location")):
            return location
        if response.status_code >= 400:
            raise ToolError("web.status", f"{_quote_url(str(target))} answered {response.status_code}")
        length = response.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > _LONGEST_LENGTH or int(length) > settings.max_bytes):
            raise _too_large_error(target, settings)
        content = await _unpack_body(response, target, settings)
        kind, _, _ = response.headers.get("content-type", "").partition(";")
        return WebResponse(str(target), kind.strip().lower()[:_LONGEST_KIND], response.charset_encoding, bytes(content))
    finally:
        await response.aclose()


async def _unpack_body(response: httpx.Response, target: httpx.URL, settings: WebSettings) -> bytearray:
    """The content of a response, decompressed here and not by the client.

    The client decompresses each chunk whole, and through as many encodings as the server names: a few kilobytes of gzip
    in gzip become gigabytes before their size can be checked. Here at most the allowed size is decompressed, and once.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in _ZLIB_WINDOWS:
        raise ToolError(
            "web.bad-encoding",
            f"{_quote_url(str(target))} is packed as {encoding[:60]!r}, which was not asked for",
            expected="gzip, deflate or nothing",
        )
    most, received, content = settings.max_bytes, 0, bytearray()
    decoder = zlib.decompressobj(_ZLIB_WINDOWS[encoding]) if _ZLIB_WINDOWS[encoding] else None
    async for chunk in response.aiter_raw():
        received += len(chunk)
        if decoder is None:
            content += chunk
        elif not decoder.eof:
            try:
                content += decoder.decompress(chunk, most - len(content) + 1)
            except zlib.error:
                if encoding != "deflate" or received > len(chunk):
                    raise _unreachable_error(target, ValueError(f"it is not {encoding}")) from None
                # Some servers send raw deflate without the zlib header.
                decoder = zlib.decompressobj(-zlib.MAX_WBITS)
                try:
                    content += decoder.decompress(chunk, most - len(content) + 1)
                except zlib.error:
                    raise _unreachable_error(target, ValueError(f"it is not {encoding}")) from None
        if len(content) > most or received > most:
            raise _too_large_error(target, settings)
    return content


def _bad_url_error(url: str) -> ToolError:
    return ToolError(
        "web.bad-url", f"{_quote_url(url)} is not a URL that can be fetched", expected="http:// or https://"
    )


def _forbidden_host_error(host: str, why: str) -> ToolError:
    return ToolError(
        "web.forbidden-host",
        f"{host!r} {why}",
        fix="If it is meant, add it to `hosts` under [toolbox.web] in bicameral.toml.",
    )


def _too_large_error(target: httpx.URL, settings: WebSettings) -> ToolError:
    return ToolError(
        "web.too-large",
        f"the answer of {_quote_url(str(target))} is larger than {settings.max_bytes:,} bytes",
        fix="Raise `max_bytes` under [toolbox.web].",
    )


def _unreachable_error(target: httpx.URL, error: Exception | None) -> ToolError:
    reason = str(error or "it has no address") or type(error).__name__
    return ToolError("web.unreachable", f"{_quote_url(str(target))} cannot be fetched: {reason[:200]}")


def _quote_url(url: str) -> str:
    return repr(url if len(url) <= 120 else url[:117] + "...")


_PARSE_LIMITS = ParseLimits(cpu=5.0, wall=10.0)


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a page."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Page:
    """A web page as text; `url` is where it was found after redirects."""

    url: str
    title: str
    text: str
    links: tuple[Link, ...]


_PAGE_PARSER: Parser[Page] = Parser("bicameral.toolboxes._text:read_page", Page, _PARSE_LIMITS)


def _build(settings: WebSettings, surroundings: Surroundings) -> list[Tool]:
    # Longer than the time-outs of request and parser, so that the user sees their messages. A URL sends data to its
    # host, so it directs an effect although the tool only reads.
    timeout = settings.timeout + _PARSE_LIMITS.wall + 5
    named = tuple(host for host in settings.hosts if HostPattern.parse(host).host != "*")
    # A host that is listed by name may be in a private network, and so may every host behind a proxy.
    readers = "user" if named or settings.proxy else "public"
    fetching = partial(
        tool,
        effect="read",
        timeout=timeout,
        purpose={"url": "directs"},
        outbound=True,
        hosts=named if len(named) == len(settings.hosts) else (),
        origins=Origin("third_party", readers),
    )

    @fetching(accepts=("text/html", "text/plain"), capabilities=("web-page-reading",))
    async def fetch_page(url: Url) -> Page:
        """Fetch a web page as text with its links."""
        response = await fetch_url(url, settings)
        # In a thread, because waiting for the parser process would block the event loop of the run.
        return await asyncio.to_thread(parse_page, response)

    @fetching(accepts=("application/json",))
    async def fetch_json(url: Url) -> Any:
        """Fetch JSON from a URL."""
        response = await fetch_url(url, settings)
        return await asyncio.to_thread(_parse_json_response, response)

    return [fetch_page, fetch_json]


def parse_page(response: WebResponse) -> Page:
    """The page in a response; raises if it is not text."""
    facts = {"url": response.url, "kind": response.kind, "charset": response.charset}
    return _PAGE_PARSER(response.content, what=f"the page {response.url[:200]!r}", **facts)


def _parse_json_response(response: WebResponse) -> Any:
    try:
        text = decode_bytes(response.content, response.charset)
        return read_json(text, what=f"the answer of {response.url[:200]!r}")
    except InvalidJson:
        raise ToolError(
            "web.not-json",
            f"{response.url!r} did not send JSON but {response.kind or 'something else'}",
            fix="Use fetch_page for a page.",
        ) from None


def _missing_packages(_settings: WebSettings, _surroundings: Surroundings) -> Sequence[MissingSetting]:
    page = missing_extra(("fetch_page",), "standard", "httpx", "selectolax")
    return (*page, *missing_extra(("fetch_json",), "standard", "httpx"))


toolbox: Toolbox[WebSettings] = Toolbox(
    "web", "Fetch web pages and JSON.", WebSettings, _build, lacks=_missing_packages
)

"""One GET request, with redirects, within bounds of time and size, to no address that was not checked."""

from __future__ import annotations

import asyncio
import re
import socket
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from bicameral.errors import ToolError

from .._extras import require
from ._hosts import Hosts, is_public
from ._settings import WebSettings

if TYPE_CHECKING:
    import ssl

    import httpx

_MAX_REDIRECTS = 10
_MAX_ADDRESSES = 4
_MAX_URL = 8_000
_HOST = re.compile(r"[0-9A-Za-z._:-]+")
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_LENGTH = 18
_LONGEST_KIND = 200
_WINDOWS = {
    "": 0,
    "identity": 0,
    "gzip": 16 + zlib.MAX_WBITS,
    "x-gzip": 16 + zlib.MAX_WBITS,
    "deflate": zlib.MAX_WBITS,
}
"""How the standard library unpacks an encoding; 0 is not at all."""
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; bicameral)",
    "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.8,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sent: the final URL, the declared type and charset, the bytes."""

    url: str
    kind: str
    charset: str | None
    content: bytes


async def fetch(url: str, settings: WebSettings) -> Answer:
    """Get a URL or say exactly why not."""
    require("httpx")
    try:
        async with asyncio.timeout(settings.timeout):
            return await _follow(url, settings)
    except TimeoutError:
        raise ToolError(
            "web.unreachable",
            f"{_shown(url)} did not answer within {settings.timeout:g} seconds",
            fix="Try again, or raise `timeout` under [toolbox.web].",
        ) from None


async def _follow(url: str, settings: WebSettings) -> Answer:
    hosts = Hosts.of(settings.hosts)
    for _ in range(_MAX_REDIRECTS + 1):
        target = _checked_url(url, hosts)
        addresses = await _addresses(target, hosts) if settings.proxy is None else [_host(target)]
        answer = await _get(target, addresses, settings)
        if isinstance(answer, Answer):
            return answer
        url = urljoin(url, answer)
    raise ToolError("web.too-many-redirects", f"more than {_MAX_REDIRECTS} redirects, the last one to {_shown(url)}")


def _checked_url(url: str, hosts: Hosts) -> httpx.URL:
    import httpx

    try:
        target = httpx.URL(url.strip()).copy_with(fragment=None)
        host, port = _host(target), _port(target)
    except (httpx.InvalidURL, ValueError, TypeError):
        raise _bad_url(url) from None
    if target.scheme not in ("http", "https") or not _HOST.fullmatch(host) or port > 65535 or len(url) > _MAX_URL:
        raise _bad_url(url)
    if target.userinfo:
        raise ToolError("web.bad-url", "the URL has a user name or password in it", expected="a URL without them")
    if not hosts.allows(host, port):
        raise _forbidden(host, "is not among the hosts that may be asked")
    # An address is known at once; a proxy would otherwise be asked to reach it for us.
    if _is_literal(host) and not is_public(host) and not hosts.lists(host, port):
        raise _forbidden(host, "is an address inside this machine or a private network")
    return target


def _host(target: httpx.URL) -> str:
    """The host as it goes over the wire: letters beyond ASCII are encoded."""
    return target.raw_host.decode("ascii")


def _port(target: httpx.URL) -> int:
    return target.port or (443 if target.scheme == "https" else 80)


def _is_literal(host: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(host)
    except ValueError:
        return host.rstrip(".").lower().endswith("localhost")
    return True


async def _addresses(target: httpx.URL, hosts: Hosts) -> list[str]:
    """The addresses of a host, each of them checked: a name that also leads inside is refused altogether."""
    host, port = _host(target), _port(target)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolError("web.unreachable", f"the host {host!r} cannot be found") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if not hosts.lists(host, port) and not all(map(is_public, addresses)):
        raise _forbidden(host, "leads to an address inside this machine or a private network")
    return addresses[:_MAX_ADDRESSES]


async def _get(target: httpx.URL, addresses: list[str], settings: WebSettings) -> Answer | str:
    """The answer, or where it redirects to; the next address is tried when one cannot be connected to."""
    import httpx

    problem: Exception | None = None
    # The bare transport, anew for each hop: it keeps no cookies, reads no environment and follows nothing by itself.
    async with httpx.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False, proxy=settings.proxy) as transport:
        for address in addresses:
            request = httpx.Request(
                "GET",
                target.copy_with(host=address),
                headers=_HEADERS | {"Host": target.netloc.decode("ascii")},
                extensions={"sni_hostname": _host(target), "timeout": httpx.Timeout(settings.timeout).as_dict()},
            )
            try:
                return await _receive(await transport.handle_async_request(request), target, settings)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = error
            except (httpx.HTTPError, httpx.StreamError) as error:
                raise _unreachable(target, error) from None
    raise _unreachable(target, problem)


@cache
def _ssl_context() -> ssl.SSLContext:
    import httpx

    # The bundled authorities and the machine's own, so that a company's certificates work too.
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


async def _receive(response: httpx.Response, target: httpx.URL, settings: WebSettings) -> Answer | str:
    try:
        if response.status_code in _REDIRECTS and (location := response.headers.get("location")):
            return location
        if response.status_code >= 400:
            raise ToolError("web.status", f"{_shown(str(target))} answered {response.status_code}")
        length = response.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > _LONGEST_LENGTH or int(length) > settings.max_bytes):
            raise _too_large(target, settings)
        content = await _unpacked(response, target, settings)
        kind, _, _ = response.headers.get("content-type", "").partition(";")
        return Answer(str(target), kind.strip().lower()[:_LONGEST_KIND], response.charset_encoding, bytes(content))
    finally:
        await response.aclose()


async def _unpacked(response: httpx.Response, target: httpx.URL, settings: WebSettings) -> bytearray:
    """The bytes of an answer, unpacked here and not by the client.

    The client unpacks each piece whole, and through as many encodings as the server names: a few kilobytes of gzip in
    gzip are gigabytes before anybody can look at their size. Here no more is unpacked than may be kept, and only once.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in _WINDOWS:
        raise ToolError(
            "web.bad-encoding",
            f"{_shown(str(target))} is packed as {encoding[:60]!r}, which was not asked for",
            expected="gzip, deflate or nothing",
        )
    most, packed, content = settings.max_bytes, 0, bytearray()
    decoder = zlib.decompressobj(_WINDOWS[encoding]) if _WINDOWS[encoding] else None
    async for chunk in response.aiter_raw():
        packed += len(chunk)
        if decoder is None:
            content += chunk
        elif not decoder.eof:
            try:
                content += decoder.decompress(chunk, most - len(content) + 1)
            except zlib.error:
                if encoding != "deflate" or packed > len(chunk):
                    raise _unreachable(target, ValueError(f"it is not {encoding}")) from None
                # Some servers leave out the header of this format.
                decoder = zlib.decompressobj(-zlib.MAX_WBITS)
                try:
                    content += decoder.decompress(chunk, most - len(content) + 1)
                except zlib.error:
                    raise _unreachable(target, ValueError(f"it is not {encoding}")) from None
        if len(content) > most or packed > most:
            raise _too_large(target, settings)
    return content


def _bad_url(url: str) -> ToolError:
    return ToolError("web.bad-url", f"{_shown(url)} is not a URL that can be fetched", expected="http:// or https://")


def _forbidden(host: str, why: str) -> ToolError:
    return ToolError(
        "web.forbidden-host",
        f"{host!r} {why}",
        fix="If it is meant, add it to `hosts` under [toolbox.web] in bicameral.toml.",
    )


def _too_large(target: httpx.URL, settings: WebSettings) -> ToolError:
    return ToolError(
        "web.too-large",
        f"the answer of {_shown(str(target))} is larger than {settings.max_bytes:,} bytes",
        fix="Raise `max_bytes` under [toolbox.web].",
    )


def _unreachable(target: httpx.URL, error: Exception | None) -> ToolError:
    reason = str(error or "it has no address") or type(error).__name__
    return ToolError("web.unreachable", f"{_shown(str(target))} cannot be fetched: {reason[:200]}")


def _shown(url: str) -> str:
    return repr(url if len(url) <= 120 else url[:117] + "...")

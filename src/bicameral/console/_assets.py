"""The files of the console: scripts, styles and pictures, from the package, under addresses that change with them.

An address has a hash of the content, so that browsers may keep a file for good and still get a new one after an update.
Nothing is loaded from another host.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from bicameral.console._admission import SECURITY_HEADERS, STATIC_PREFIX
from bicameral.errors import ServerError
from bicameral.server.surface import HttpError

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent: as it is, and compressed."""

    address: str
    content: bytes
    compressed: bytes
    content_type: str


@cache
def assets() -> dict[str, Asset]:
    """All files by name."""
    found: dict[str, Asset] = {}
    for entry in files("bicameral.console").joinpath("static").iterdir():
        stem, dot, ending = entry.name.rpartition(".")
        if (content_type := _TYPES.get(f"{dot}{ending}")) is None:
            continue
        content = entry.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:12]
        # A fixed time in the archive: the same file is the same bytes on every machine.
        compressed = gzip.compress(content, 9, mtime=0)
        found[entry.name] = Asset(f"{STATIC_PREFIX}{stem}.{digest}{dot}{ending}", content, compressed, content_type)
    return found


@cache
def _by_address() -> dict[str, Asset]:
    return {asset.address: asset for asset in assets().values()}


def asset_address(name: str) -> str:
    """The address of a file."""
    return assets()[name].address


async def asset_file(request: Request) -> Response:
    """One file."""
    asset = _by_address().get(request.url.path)
    if asset is None:
        raise HttpError(404, ServerError("server.not-found", "there is no such file"))
    headers = {**SECURITY_HEADERS, "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.compressed, headers=headers | {"Content-Encoding": "gzip"}, media_type=asset.content_type)
    return Response(asset.content, headers=headers, media_type=asset.content_type)

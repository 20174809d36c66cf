"""The HTTP client of a provider: it sends the provider's own key to the provider's own server, and nothing else.

The client libraries read keys, organisations and headers of their own from the environment. One chamber must never
speak with the other's key, so whatever they add is taken away again before anything is sent.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from bicameral.models._keys import Key

_PLAIN = frozenset(
    "host accept accept-encoding connection user-agent content-type content-length transfer-encoding anthropic-version"
    " anthropic-beta idempotency-key x-client-request-id".split()
)
_WITH_KEY = frozenset("authorization x-api-key x-goog-api-key api-key".split())
_CONNECT_SECONDS = 10.0
_SILENCE_SECONDS = 600.0


def open_client(key: Key | None, url: str, *, legacy: bool, extra: Iterable[str] = ()) -> Any:
    """A client of `httpx2` (or `httpx`, for libraries that need that). It follows no redirects."""
    library: Any = importlib.import_module("httpx" if legacy else "httpx2")
    guard = _Guard(key, url, extra)
    return library.AsyncClient(
        timeout=library.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS),
        limits=library.Limits(max_connections=1000, max_keepalive_connections=100),
        headers={"User-Agent": "bicameral"},
        event_hooks={"request": [guard]},
    )


class _Guard:
    """Looks at every request last of all."""

    def __init__(self, key: Key | None, url: str, extra: Iterable[str]) -> None:
        self._key = key
        self._host = urlsplit(url).hostname
        self._allowed = _PLAIN | {name.lower() for name in extra} - _WITH_KEY

    async def __call__(self, request: Any) -> None:
        if request.url.host != self._host:
            raise PermissionError("a request to another server than the provider's")
        for name in list(request.headers.keys()):
            name = str(name).lower()
            if name not in self._allowed and not self._own(name, request.headers[name]):
                del request.headers[name]

    def _own(self, name: str, value: str) -> bool:
        return name in _WITH_KEY and self._key is not None and value.split(" ")[-1] == self._key.reveal()

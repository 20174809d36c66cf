"""The web tools."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from bicameral.errors import ToolError
from bicameral.parsing import Limits, NotJson, Parser, read_json
from bicameral.tools import Origin, Surroundings, Tool, Toolbox, tool
from bicameral.types import Url

from .._text import decode
from ._fetch import Answer, fetch
from ._hosts import HostPattern
from ._settings import WebSettings

_LIMITS = Limits(cpu=5.0, wall=10.0)


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


_PAGE: Parser[Page] = Parser("bicameral.toolboxes.web._reading:read_page", Page, _LIMITS)


def _build(settings: WebSettings, surroundings: Surroundings) -> list[Tool]:
    # Our own limit comes first, so that its message is the one that is seen. A URL is a message to its host, so it
    # directs an effect though nothing but reading is asked for.
    timeout = settings.timeout + _LIMITS.wall + 5
    named = tuple(host for host in settings.hosts if HostPattern.parse(host).host != "*")
    # A host that is listed by name may be in a private network, and so may whatever a proxy reaches.
    readers = "user" if named or settings.proxy else "public"
    fetching = tool(
        effect="read",
        timeout=timeout,
        purpose={"url": "directs"},
        outbound=True,
        hosts=named if len(named) == len(settings.hosts) else (),
        origins=Origin("third_party", readers),
    )

    @fetching
    async def fetch_page(url: Url) -> Page:
        """Fetch a web page as text with its links."""
        answer = await fetch(url, settings)
        # In a thread: the parser may take its time, and the others of this run have theirs.
        return await asyncio.to_thread(page, answer)

    @fetching
    async def fetch_json(url: Url) -> Any:
        """Fetch JSON from a URL."""
        answer = await fetch(url, settings)
        return await asyncio.to_thread(_json, answer)

    return [fetch_page, fetch_json]


def page(answer: Answer) -> Page:
    """A page of what a server sent; what is not text is refused."""
    facts = {"url": answer.url, "kind": answer.kind, "charset": answer.charset}
    return _PAGE(answer.content, what=f"the page {answer.url[:200]!r}", **facts)


def _json(answer: Answer) -> Any:
    try:
        text = decode(answer.content, answer.charset)
        return read_json(text, what=f"the answer of {answer.url[:200]!r}")
    except NotJson:
        raise ToolError(
            "web.not-json",
            f"{answer.url!r} did not send JSON but {answer.kind or 'something else'}",
            fix="Use fetch_page for a page.",
        ) from None


toolbox: Toolbox[WebSettings] = Toolbox("web", "Fetch web pages and JSON.", WebSettings, _build)

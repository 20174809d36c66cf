"""The web tools."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urljoin, urlsplit

from bicameral.errors import ToolError
from bicameral.tools import Origin, Surroundings, Tool, Toolbox, tool
from bicameral.types import Url

from .._html import html_to_text, parse, title_of
from .._text import decode, one_line
from ._fetch import Answer, fetch
from ._hosts import HostPattern
from ._settings import WebSettings

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_MAX_LINKS = 1000
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(r"text/.*|application/(.*\+)?(json|xml|yaml|toml|javascript|ecmascript|x-ndjson|sql|rtf|csv)")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(rb"\s*(<!--.{0,500}?-->\s*)?<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)


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


def _build(settings: WebSettings, surroundings: Surroundings) -> list[Tool]:
    # Our own limit comes first, so that its message is the one that is seen. A URL is a message to its host, so it
    # directs an effect though nothing but reading is asked for.
    timeout = settings.timeout + 5
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
        return page(await fetch(url, settings))

    @fetching
    async def fetch_json(url: Url) -> Any:
        """Fetch JSON from a URL."""
        return _json(await fetch(url, settings))

    return [fetch_page, fetch_json]


def page(answer: Answer) -> Page:
    """A page of what a server sent; what is not text is refused."""
    text = _text(answer)
    if not _is_html(answer):
        return Page(answer.url, "", text, ())
    tree = parse(text)
    links = _links(tree, answer.url)
    return Page(answer.url, title_of(tree), html_to_text(tree), links)


def _is_html(answer: Answer) -> bool:
    return answer.kind in _HTML or (not answer.kind and bool(_LOOKS_LIKE_HTML.match(answer.content[:1000])))


def _text(answer: Answer) -> str:
    known = not answer.kind or answer.kind in _HTML or _TEXT.fullmatch(answer.kind)
    charset = answer.charset
    if charset is None and _is_html(answer) and (found := _META_CHARSET.search(answer.content[:4096])):
        charset = found[1].decode("ascii", "replace")
    # Two-byte charsets are full of zero bytes; in any other text there is none.
    wide = (charset or "").lower().startswith(("utf-16", "utf-32")) or answer.content[:2] in (b"\xff\xfe", b"\xfe\xff")
    if not known or (b"\x00" in answer.content[:4096] and not wide):
        raise ToolError(
            "web.binary",
            f"{answer.url!r} is not text but {answer.kind or 'something binary'}",
            expected="a web page or another text",
        )
    return decode(answer.content, charset)


def _links(tree: LexborHTMLParser, url: str) -> tuple[Link, ...]:
    base = tree.css_first("base[href]")
    start = _absolute(url, base.attributes.get("href") or "") or url if base else url
    links: dict[str, Link] = {}
    for node in tree.css("a[href]"):
        target = _absolute(start, node.attributes.get("href") or "")
        if target is None or target in links or target == url:
            continue
        label = one_line(node.text()) or one_line(
            node.attributes.get("title") or node.attributes.get("aria-label") or ""
        )
        links[target] = Link(label, target)
        if len(links) >= _MAX_LINKS:
            break
    return tuple(links.values())


def _absolute(base: str, href: str) -> str | None:
    """Where a link leads, without its fragment; None for what is no web address."""
    try:
        target = urljoin(base, one_line(href).replace(" ", "%20")).partition("#")[0]
        parts = urlsplit(target)
    except ValueError:
        return None
    return target if parts.scheme in ("http", "https") and parts.hostname else None


def _json(answer: Answer) -> Any:
    try:
        return json.loads(decode(answer.content, answer.charset), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ToolError(
            "web.not-json",
            f"{answer.url!r} did not send JSON but {answer.kind or 'something else'}",
            fix="Use fetch_page for a page.",
        ) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


toolbox: Toolbox[WebSettings] = Toolbox("web", "Fetch web pages and JSON.", WebSettings, _build)

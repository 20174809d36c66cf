"""What the parser process does for the web tools: a page as text with its links."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from bicameral.errors import ToolError

from .._html import html_to_text, parse, title_of
from .._text import decode, one_line

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_MAX_LINKS = 1000
_MAX_LINK = 8_000
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(r"text/.*|application/(.*\+)?(json|xml|yaml|toml|javascript|ecmascript|x-ndjson|sql|rtf|csv)")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(rb"\s*(<!--.{0,500}?-->\s*)?<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)


def read_page(content: bytes, url: str, kind: str, charset: str | None) -> dict[str, Any]:
    """A page of what a server sent; what is not text is refused."""
    text = _text(content, url, kind, charset)
    if not _is_html(content, kind):
        return {"url": url, "title": "", "text": text, "links": []}
    tree = parse(text)
    links = _links(tree, url)
    return {"url": url, "title": title_of(tree), "text": html_to_text(tree), "links": links}


def _is_html(content: bytes, kind: str) -> bool:
    return kind in _HTML or (not kind and bool(_LOOKS_LIKE_HTML.match(content[:1000])))


def _text(content: bytes, url: str, kind: str, charset: str | None) -> str:
    known = not kind or kind in _HTML or _TEXT.fullmatch(kind)
    if charset is None and _is_html(content, kind) and (found := _META_CHARSET.search(content[:4096])):
        charset = found[1].decode("ascii", "replace")
    # Two-byte charsets are full of zero bytes; in any other text there is none.
    wide = (charset or "").lower().startswith(("utf-16", "utf-32")) or content[:2] in (b"\xff\xfe", b"\xfe\xff")
    if not known or (b"\x00" in content[:4096] and not wide):
        raise ToolError(
            "web.binary",
            f"{url!r} is not text but {kind or 'something binary'}",
            expected="a web page or another text",
        )
    return decode(content, charset)


def _links(tree: LexborHTMLParser, url: str) -> list[dict[str, str]]:
    base = tree.css_first("base[href]")
    start = _absolute(url, base.attributes.get("href") or "") or url if base else url
    links: dict[str, dict[str, str]] = {}
    for node in tree.css("a[href]"):
        target = _absolute(start, node.attributes.get("href") or "")
        if target is None or target in links or target == url:
            continue
        label = one_line(node.text()) or one_line(
            node.attributes.get("title") or node.attributes.get("aria-label") or ""
        )
        links[target] = {"text": label, "url": target}
        if len(links) >= _MAX_LINKS:
            break
    return list(links.values())


def _absolute(base: str, href: str) -> str | None:
    """Where a link leads, without its fragment; None for what is no web address."""
    try:
        target = urljoin(base, one_line(href).replace(" ", "%20")).partition("#")[0]
        parts = urlsplit(target)
    except ValueError:
        return None
    return target if parts.scheme in ("http", "https") and parts.hostname else None

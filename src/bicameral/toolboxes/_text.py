"""Untrusted bytes, headers and HTML as text that any plan, journal or database can hold.

HTML becomes headings, paragraphs, list items, and table rows with ` | ` between cells. `read_page` runs in the parser
process, so this module imports nothing heavy.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin, urlsplit

from bicameral.errors import ToolError

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


@cache
def require_standard(module: str) -> None:
    """Say what to install when a library is not there."""
    if find_spec(module) is None:
        raise ToolError(
            "toolboxes.not-installed",
            f"this tool needs the package {module!r}",
            fix="Install it with: pip install 'bicameral[standard]'",
        )


# Pages and mails labelled with these are very often UTF-8; a multi-byte text that decodes as UTF-8 is UTF-8.
_WESTERN = frozenset({"ascii", "iso8859-1", "cp1252", "iso8859-15"})
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SPACES = re.compile(r"\s+")
_LONGEST_CHARSET = 60


def decode_bytes(raw: bytes, declared: str | None = None) -> str:
    """The text of these bytes: the declared charset if it fits, else what they look like; this never fails."""
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return clean_text(raw.decode(encoding, "replace"))
    known = _known_codec(declared)
    order = ("utf-8", known) if known is None or known in _WESTERN else (known, "utf-8")
    for encoding in order:
        if encoding:
            try:
                return clean_text(raw.decode(encoding))
            except (UnicodeError, ValueError):
                continue
    return clean_text(raw.decode("cp1252", "replace"))


def _known_codec(declared: str | None) -> str | None:
    if declared is not None and len(declared) > _LONGEST_CHARSET:
        return None
    try:
        name = codecs.lookup((declared or "").strip().strip("\"'")).name
        b"x".decode(name)
    except (LookupError, ValueError):
        return None
    # Python's own escapes are codecs too, but no text on the wire is written in them.
    return None if "escape" in name or name in ("idna", "punycode", "undefined") else name


def clean_text(text: str) -> str:
    """Text without lone surrogates and control characters, with plain line ends."""
    sound = text.encode("utf-8", "replace").decode("utf-8")
    return _CONTROLS.sub("", sound.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """Text as a single line with single spaces."""
    return _SPACES.sub(" ", clean_text(text)).strip()


_UNSEEN_TAGS = frozenset(
    "head script style noscript template svg canvas iframe object embed audio video select button textarea".split()
)
_PARAGRAPH_TAGS = frozenset("p h1 h2 h3 h4 h5 h6 ul ol dl table pre blockquote figure hr".split())
_LINE_TAGS = frozenset(
    "address article aside body br caption dd details dialog div dt fieldset figcaption footer form header html "
    "legend li main nav option section summary tbody tfoot thead tr".split()
)
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)

# The parser needs time quadratic in the depth of open blocks; honest pages stay under a few dozen.
_MAX_TAG_DEPTH = 3000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_FLAT_TAGS = frozenset(
    "p li dt dd td th tr tbody thead tfoot option optgroup colgroup "
    "area base br col embed hr img input link meta param source track wbr".split()
)
_ANY_BLOCK = re.compile(r"</?(?!(?:a|script|style|title)\b)[a-zA-Z][^<>]*>")

_LayoutMark = Literal["line", "apart", "cell", "pre", "end-pre", "row", "end-row"]


@dataclass(slots=True)
class _TextBuilder:
    """Collects pieces of text into lines; cells of one row stay on one line."""

    lines: list[str] = field(default_factory=list[str])
    line: list[str] = field(default_factory=list[str])
    has_text: bool = False
    """Whether the line has anything but blanks in it."""
    pre: int = 0
    rows: int = 0
    """How many rows with several cells we are inside of: there a block is no reason for a new line."""

    def add_text(self, text: str) -> None:
        if not self.pre:
            self._append(_SPACES.sub(" ", text))
            return
        first, *rest = text.split("\n")
        self._append(first)
        for piece in rest:
            self.end_line()
            self._append(piece)

    def _append(self, piece: str) -> None:
        self.line.append(piece)
        self.has_text = self.has_text or bool(piece.strip())

    def add_mark(self, mark: _LayoutMark) -> None:
        match mark:
            case "line" | "apart":
                if self.rows:
                    self.line.append(" ")
                else:
                    self.end_line(apart=mark == "apart")
            case "cell":
                if self.has_text:
                    self.line.append(" | ")
            case "row":
                self.end_line()
                self.rows += 1
            case "end-row":
                self.rows -= 1
                self.end_line()
            case "pre":
                self.end_line(apart=True)
                self.pre += 1
            case "end-pre":
                self.pre -= 1
                self.end_line(apart=True)

    def end_line(self, *, apart: bool = False) -> None:
        joined = "".join(self.line)
        shown = joined.rstrip() if self.pre else _SPACES.sub(" ", joined).strip()
        self.line.clear()
        self.has_text = False
        if shown:
            self.lines.append(shown)
        if apart and self.lines and self.lines[-1]:
            self.lines.append("")

    def result(self) -> str:
        self.end_line()
        return "\n".join(self.lines).strip()


def parse_html(html: str) -> LexborHTMLParser:
    """The tree of a page."""
    require_standard("selectolax")
    from selectolax.lexbor import LexborHTMLParser

    sound = clean_text(html)
    return LexborHTMLParser(_ANY_BLOCK.sub("\n", sound) if _is_too_deep(sound) else sound)


def _is_too_deep(html: str) -> bool:
    depth = 0
    for found in _TAG.finditer(html):
        if found[2].lower() not in _FLAT_TAGS:
            depth = max(0, depth - 1) if found[1] else depth + 1
            if depth > _MAX_TAG_DEPTH:
                return True
    return False


def html_to_text(html: str | LexborHTMLParser) -> str:
    """The text of a page without scripts, styles, navigation and what the page hides."""
    tree = parse_html(html) if isinstance(html, str) else html
    if tree.root is None:
        return ""
    # A page that is nothing but navigation is still better read than lost.
    return _render_tree(tree.root, with_navigation=False) or _render_tree(tree.root, with_navigation=True)


def page_title(tree: LexborHTMLParser) -> str:
    """What the page calls itself."""
    for query in ("title", "h1"):
        if (node := tree.css_first(query)) and (title := one_line(node.text())):
            return title
    return ""


def _render_tree(root: LexborNode, *, with_navigation: bool) -> str:
    out = _TextBuilder()
    # An explicit stack: strangers nest tags deeper than Python recurses.
    todo: list[LexborNode | _LayoutMark] = [root]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.add_mark(item)
        elif item.is_text_node:
            out.add_text(item.text_content or "")
        elif item.is_element_node and _is_visible(item, with_navigation=with_navigation):
            _open_tag(item, out)
            todo.extend(_close_marks(item))
            todo.extend(reversed(list(item.iter(include_text=True))))
    return out.result()


def _is_visible(node: LexborNode, *, with_navigation: bool) -> bool:
    tag = node.tag or ""
    if tag in _UNSEEN_TAGS:
        return False
    attributes = node.attributes
    if "hidden" in attributes or _HIDING.search(attributes.get("style") or ""):
        return False
    return with_navigation or (tag != "nav" and attributes.get("role") != "navigation")


def _open_tag(node: LexborNode, out: _TextBuilder) -> None:
    tag = node.tag or ""
    if tag == "pre":
        out.add_mark("pre")
    elif tag == "tr" and _has_several_cells(node):
        out.add_mark("row")
    elif tag in ("td", "th"):
        out.add_mark("cell")
    elif tag == "table":
        # A table inside a cell is there for layout: its rows are lines again.
        out.end_line(apart=not out.rows)
    elif tag in _PARAGRAPH_TAGS:
        out.add_mark("apart")
    elif tag in _LINE_TAGS:
        out.add_mark("line")
    if tag == "li":
        out.add_text("- ")
    elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
        out.add_text("#" * int(tag[1]) + " ")


def _close_marks(node: LexborNode) -> Iterator[_LayoutMark]:
    tag = node.tag or ""
    if tag == "pre":
        yield "end-pre"
    elif tag == "tr" and _has_several_cells(node):
        yield "end-row"
    elif tag in _PARAGRAPH_TAGS:
        yield "apart"
    elif tag in _LINE_TAGS:
        yield "line"


def _has_several_cells(row: LexborNode) -> bool:
    return sum(child.tag in ("td", "th") for child in row.iter()) > 1


_MAX_LINKS = 1000
_MAX_LINK = 8_000
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = re.compile(r"text/.*|application/(.*\+)?(json|xml|yaml|toml|javascript|ecmascript|x-ndjson|sql|rtf|csv)")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(rb"\s*(<!--.{0,500}?-->\s*)?<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)


def read_page(content: bytes, url: str, kind: str, charset: str | None) -> dict[str, Any]:
    """A page of what a server sent; what is not text is refused."""
    text = _page_text(content, url, kind, charset)
    if not _is_html(content, kind):
        return {"url": url, "title": "", "text": text, "links": []}
    tree = parse_html(text)
    links = _page_links(tree, url)
    return {"url": url, "title": page_title(tree), "text": html_to_text(tree), "links": links}


def _is_html(content: bytes, kind: str) -> bool:
    return kind in _HTML_TYPES or (not kind and bool(_LOOKS_LIKE_HTML.match(content[:1000])))


def _page_text(content: bytes, url: str, kind: str, charset: str | None) -> str:
    known = not kind or kind in _HTML_TYPES or _TEXT_TYPES.fullmatch(kind)
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
    return decode_bytes(content, charset)


def _page_links(tree: LexborHTMLParser, url: str) -> list[dict[str, str]]:
    base = tree.css_first("base[href]")
    start = _absolute_url(url, base.attributes.get("href") or "") or url if base else url
    links: dict[str, dict[str, str]] = {}
    for node in tree.css("a[href]"):
        target = _absolute_url(start, node.attributes.get("href") or "")
        if target is None or target in links or target == url:
            continue
        label = one_line(node.text()) or one_line(
            node.attributes.get("title") or node.attributes.get("aria-label") or ""
        )
        links[target] = {"text": label, "url": target}
        if len(links) >= _MAX_LINKS:
            break
    return list(links.values())


def _absolute_url(base: str, href: str) -> str | None:
    """Where a link leads, without its fragment; None for what is no web address."""
    try:
        target = urljoin(base, one_line(href).replace(" ", "%20")).partition("#")[0]
        parts = urlsplit(target)
    except ValueError:
        return None
    return target if parts.scheme in ("http", "https") and parts.hostname else None

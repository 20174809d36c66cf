"""Conversion of untrusted bytes, headers and HTML to text that plans, journals and databases can store.

HTML becomes headings, paragraphs, list items, and table rows with ` | ` between cells. `read_page` and `diff_texts` run
in the parser process, so this module must import nothing heavy.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin, urlsplit

from bicameral.errors import ToolError, require_extra

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


DocumentKind = Literal["pdf", "word", "sheets", "picture"]
DOCUMENT_KINDS: dict[str, DocumentKind] = {
    ".pdf": "pdf",
    ".docx": "word",
    ".docm": "word",
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "sheets"),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp"), "picture"),
}
"""Files that `_documents` reads, by the endings of their names."""


def document_kind(path: str) -> DocumentKind | None:
    """The kind of document that a file is by its name, or None for every other file."""
    return DOCUMENT_KINDS.get(PurePosixPath(path.strip()).suffix.lower())


def require_standard(module: str) -> None:
    """Raise `toolboxes.not-installed` if a package of the extra `standard` is missing."""
    require_extra("standard", module, error=ToolError, code="toolboxes.not-installed", needs="this tool needs")


# Pages and mails declared with these charsets are often UTF-8, and other text hardly ever decodes as UTF-8.
_WESTERN = frozenset({"ascii", "iso8859-1", "cp1252", "iso8859-15"})
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SPACES = re.compile(r"\s+")
_LONGEST_CHARSET = 60


def decode_bytes(raw: bytes, declared: str | None = None) -> str:
    """Decode with the declared charset if it fits, else with a guessed one; never fails."""
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
    # Python has codecs for its own escapes, too, which no mail or page uses.
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

_LayoutMark = Literal["line", "apart", "cell", "table", "pre", "end-pre", "row", "end-row"]
_TAG_MARKS: dict[str, tuple[_LayoutMark, _LayoutMark | None]] = {
    **dict.fromkeys(_LINE_TAGS, ("line", "line")),
    **dict.fromkeys(_PARAGRAPH_TAGS, ("apart", "apart")),
    "pre": ("pre", "end-pre"),
    "table": ("table", "apart"),
    "td": ("cell", None),
    "th": ("cell", None),
}
"""The marks before and after the content of a tag."""
_TAG_PREFIXES = {"li": "- ", **{f"h{level}": "#" * level + " " for level in range(1, 7)}}


@dataclass(slots=True)
class _TextBuilder:
    """Joins pieces of text to lines; the cells of a row stay on one line."""

    lines: list[str] = field(default_factory=list[str])
    line: list[str] = field(default_factory=list[str])
    has_text: bool = False
    """Whether the line has anything but blanks."""
    pre: int = 0
    rows: int = 0
    """How many open rows have several cells; inside them a block does not begin a new line."""

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
            case "table":
                # A table inside a cell is used for layout: its rows are lines again.
                self.end_line(apart=not self.rows)
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
    """The parsed tree of a page; one that is nested too deeply loses its blocks first."""
    require_standard("selectolax")
    from selectolax.lexbor import LexborHTMLParser

    sound = clean_text(html)
    return LexborHTMLParser(_ANY_BLOCK.sub("\n", sound) if _is_too_deep(sound) else sound)


def _is_too_deep(html: str) -> bool:
    depth = 0
    for tag in _TAG.finditer(html):
        if tag[2].lower() not in _FLAT_TAGS:
            depth = max(0, depth - 1) if tag[1] else depth + 1
            if depth > _MAX_TAG_DEPTH:
                return True
    return False


def html_to_text(html: str | LexborHTMLParser) -> str:
    """The text of a page without scripts, styles, navigation and hidden elements."""
    tree = parse_html(html) if isinstance(html, str) else html
    if tree.root is None:
        return ""
    # A page that consists of navigation only is returned with it.
    return _render_tree(tree.root, with_navigation=False) or _render_tree(tree.root, with_navigation=True)


def page_title(tree: LexborHTMLParser) -> str:
    """The title of a page, or its first heading."""
    for query in ("title", "h1"):
        if (node := tree.css_first(query)) and (title := one_line(node.text())):
            return title
    return ""


def _render_tree(root: LexborNode, *, with_navigation: bool) -> str:
    out = _TextBuilder()
    # An explicit stack and no recursion: untrusted pages nest tags deeper than Python can recurse.
    todo: list[LexborNode | _LayoutMark] = [root]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.add_mark(item)
        elif item.is_text_node:
            out.add_text(item.text_content or "")
        elif item.is_element_node and _is_visible(item, with_navigation=with_navigation):
            before, after = _tag_marks(item)
            if before is not None:
                out.add_mark(before)
            if prefix := _TAG_PREFIXES.get(item.tag or ""):
                out.add_text(prefix)
            if after is not None:
                todo.append(after)
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


def _tag_marks(node: LexborNode) -> tuple[_LayoutMark | None, _LayoutMark | None]:
    if node.tag == "tr" and sum(child.tag in ("td", "th") for child in node.iter()) > 1:
        return "row", "end-row"
    return _TAG_MARKS.get(node.tag or "", (None, None))


_MAX_LINKS = 1000
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = re.compile(r"text/.*|application/(.*\+)?(json|xml|yaml|toml|javascript|ecmascript|x-ndjson|sql|rtf|csv)")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(rb"\s*(<!--.{0,500}?-->\s*)?<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)


def read_page(content: bytes, url: str, kind: str, charset: str | None) -> dict[str, Any]:
    """The page in a response, in the form of `web.Page`; raises if it is not text."""
    text = _page_text(content, url, kind, charset)
    if not _is_html(content, kind):
        return {"url": url, "title": "", "text": text, "links": []}
    tree = parse_html(text)
    return {"url": url, "title": page_title(tree), "text": html_to_text(tree), "links": _page_links(tree, url)}


def _is_html(content: bytes, kind: str) -> bool:
    return kind in _HTML_TYPES or (not kind and bool(_LOOKS_LIKE_HTML.match(content[:1000])))


def _page_text(content: bytes, url: str, kind: str, charset: str | None) -> str:
    known = not kind or kind in _HTML_TYPES or _TEXT_TYPES.fullmatch(kind)
    if charset is None and _is_html(content, kind) and (found := _META_CHARSET.search(content[:4096])):
        charset = found[1].decode("ascii", "replace")
    # Text in UTF-16 or UTF-32 has zero bytes; any other text has none.
    wide = (charset or "").lower().startswith(("utf-16", "utf-32")) or content[:2] in (b"\xff\xfe", b"\xfe\xff")
    if not known or (b"\x00" in content[:4096] and not wide):
        raise ToolError(
            "web.binary", f"{url!r} is not text but {kind or 'something binary'}", expected="a web page or another text"
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
        fallback = node.attributes.get("title") or node.attributes.get("aria-label") or ""
        links[target] = {"text": one_line(node.text()) or one_line(fallback), "url": target}
        if len(links) >= _MAX_LINKS:
            break
    return list(links.values())


def _absolute_url(base: str, href: str) -> str | None:
    """The target of a link without its fragment, or None if it is not a web address."""
    try:
        target = urljoin(base, one_line(href).replace(" ", "%20")).partition("#")[0]
        parts = urlsplit(target)
    except ValueError:
        return None
    return target if parts.scheme in ("http", "https") and parts.hostname else None


_MAX_DIFF_LINES = 200_000


def compare_texts(old: str, new: str, old_name: str, new_name: str) -> str:
    """The unified diff of two texts, empty if they are the same.

    Comparing takes time quadratic in the lengths for some texts, so that it is done in the parser process.
    """
    from bicameral.parsing import ParseLimits, Parser

    first, second = (text.encode("utf-8", "surrogatepass") for text in (old, new))
    compare: Parser[str] = Parser("bicameral.toolboxes._text:diff_texts", str, ParseLimits(cpu=15.0, wall=25.0))
    what = f"the difference between {old_name!r} and {new_name!r}"
    return compare(first + second, what=what, size=len(first), old=old_name, new=new_name)


def diff_texts(raw: bytes, size: int, old: str, new: str) -> str:
    """The unified diff of two texts that follow one another; called in the parser process."""
    import difflib

    texts = (raw[:size].decode("utf-8", "surrogatepass"), raw[size:].decode("utf-8", "surrogatepass"))
    first, second = (clean_text(text).splitlines() for text in texts)
    if len(first) + len(second) > _MAX_DIFF_LINES:
        raise ToolError("files.too-large", f"they have more than {_MAX_DIFF_LINES:,} lines together")
    return "\n".join(difflib.unified_diff(first, second, old, new, lineterm=""))

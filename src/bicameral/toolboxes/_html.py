"""HTML as text that reads well: headings, paragraphs, list items, and table rows with ` | ` between cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ._extras import require
from ._text import clean, one_line

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_UNSEEN = frozenset(
    "head script style noscript template svg canvas iframe object embed audio video select button textarea".split()
)
_APART = frozenset("p h1 h2 h3 h4 h5 h6 ul ol dl table pre blockquote figure hr".split())
_OWN_LINE = frozenset(
    "address article aside body br caption dd details dialog div dt fieldset figcaption footer form header html "
    "legend li main nav option section summary tbody tfoot thead tr".split()
)
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACES = re.compile(r"\s+")

# The parser needs time quadratic in the depth of open blocks; honest pages stay under a few dozen.
_DEEPEST = 3000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_NEVER_DEEP = frozenset(
    "p li dt dd td th tr tbody thead tfoot option optgroup colgroup "
    "area base br col embed hr img input link meta param source track wbr".split()
)
_ANY_BLOCK = re.compile(r"</?(?!(?:a|script|style|title)\b)[a-zA-Z][^<>]*>")

_Mark = Literal["line", "apart", "cell", "pre", "end-pre", "row", "end-row"]


@dataclass(slots=True)
class _Text:
    """Collects pieces of text into lines; cells of one row stay on one line."""

    lines: list[str] = field(default_factory=list[str])
    line: list[str] = field(default_factory=list[str])
    begun: bool = False
    """Whether the line has anything but blanks in it."""
    pre: int = 0
    rows: int = 0
    """How many rows with several cells we are inside of: there a block is no reason for a new line."""

    def say(self, text: str) -> None:
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
        self.begun = self.begun or bool(piece.strip())

    def mark(self, mark: _Mark) -> None:
        match mark:
            case "line" | "apart":
                if self.rows:
                    self.line.append(" ")
                else:
                    self.end_line(apart=mark == "apart")
            case "cell":
                if self.begun:
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
        self.begun = False
        if shown:
            self.lines.append(shown)
        if apart and self.lines and self.lines[-1]:
            self.lines.append("")

    def result(self) -> str:
        self.end_line()
        return "\n".join(self.lines).strip()


def parse(html: str) -> LexborHTMLParser:
    """The tree of a page."""
    require("selectolax")
    from selectolax.lexbor import LexborHTMLParser

    sound = clean(html)
    return LexborHTMLParser(_ANY_BLOCK.sub("\n", sound) if _is_too_deep(sound) else sound)


def _is_too_deep(html: str) -> bool:
    depth = 0
    for found in _TAG.finditer(html):
        if found[2].lower() not in _NEVER_DEEP:
            depth = max(0, depth - 1) if found[1] else depth + 1
            if depth > _DEEPEST:
                return True
    return False


def html_to_text(html: str | LexborHTMLParser) -> str:
    """The text of a page without scripts, styles, navigation and what the page hides."""
    tree = parse(html) if isinstance(html, str) else html
    if tree.root is None:
        return ""
    # A page that is nothing but navigation is still better read than lost.
    return _walk(tree.root, with_navigation=False) or _walk(tree.root, with_navigation=True)


def title_of(tree: LexborHTMLParser) -> str:
    """What the page calls itself."""
    for query in ("title", "h1"):
        if (node := tree.css_first(query)) and (title := one_line(node.text())):
            return title
    return ""


def _walk(root: LexborNode, *, with_navigation: bool) -> str:
    out = _Text()
    # An explicit stack: strangers nest tags deeper than Python recurses.
    todo: list[LexborNode | _Mark] = [root]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.mark(item)
        elif item.is_text_node:
            out.say(item.text_content or "")
        elif item.is_element_node and _is_seen(item, with_navigation=with_navigation):
            _enter(item, out)
            todo.extend(_leave(item))
            todo.extend(reversed(list(item.iter(include_text=True))))
    return out.result()


def _is_seen(node: LexborNode, *, with_navigation: bool) -> bool:
    tag = node.tag or ""
    if tag in _UNSEEN:
        return False
    attributes = node.attributes
    if "hidden" in attributes or _HIDING.search(attributes.get("style") or ""):
        return False
    return with_navigation or (tag != "nav" and attributes.get("role") != "navigation")


def _enter(node: LexborNode, out: _Text) -> None:
    tag = node.tag or ""
    if tag == "pre":
        out.mark("pre")
    elif tag == "tr" and _has_several_cells(node):
        out.mark("row")
    elif tag in ("td", "th"):
        out.mark("cell")
    elif tag == "table":
        # A table inside a cell is there for layout: its rows are lines again.
        out.end_line(apart=not out.rows)
    elif tag in _APART:
        out.mark("apart")
    elif tag in _OWN_LINE:
        out.mark("line")
    if tag == "li":
        out.say("- ")
    elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
        out.say("#" * int(tag[1]) + " ")


def _leave(node: LexborNode) -> Iterator[_Mark]:
    tag = node.tag or ""
    if tag == "pre":
        yield "end-pre"
    elif tag == "tr" and _has_several_cells(node):
        yield "end-row"
    elif tag in _APART:
        yield "apart"
    elif tag in _OWN_LINE:
        yield "line"


def _has_several_cells(row: LexborNode) -> bool:
    return sum(child.tag in ("td", "th") for child in row.iter()) > 1

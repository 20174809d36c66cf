"""Parts of a page that a reader of the page does not see and a model does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ._marks import Mark

MAX_COMMENTS = 200
_WORDS = re.compile(r"[^\W\d_]{2,}[ \t\r\n]+[^\W\d_]{2,}[ \t\r\n]+[^\W\d_]{2,}")

_STYLES = (
    ("display", re.compile(r"display\s{0,3}:\s{0,3}none")),
    ("visibility", re.compile(r"visibility\s{0,3}:\s{0,3}hidden")),
    ("font-size", re.compile(r"font-size\s{0,3}:\s{0,3}0(?:\.0|px|em|pt|%|;|\s|\"|')")),
    ("opacity", re.compile(r"opacity\s{0,3}:\s{0,3}0(?:\.0+)?(?:[;\s\"'])")),
    ("text-indent", re.compile(r"text-indent\s{0,3}:\s{0,3}-\d{3}")),
    ("left", re.compile(r"left\s{0,3}:\s{0,3}-\d{3}")),
    ("color", re.compile(r"color\s{0,3}:\s{0,3}(?:#fff(?:fff)?\b|white\b|transparent\b)")),
    ("hidden", re.compile(r"hidden(?=[\s>=])")),
)


def hidden_marks(lowered: str) -> Iterator[Mark]:
    """Marks of hidden elements and of comments with words in them."""
    if "<" not in lowered:
        return
    for anchor, style in _STYLES:
        if anchor in lowered:
            for found in style.finditer(lowered):
                if _in_a_tag(lowered, found.start()):
                    weight = 0.15 if anchor == "color" else 0.35
                    yield Mark("hidden-html", found.start(), found.end(), weight, "an element that nobody sees")
    yield from _comments(lowered)


def _in_a_tag(text: str, place: int) -> bool:
    before = text[max(0, place - 500) : place]
    return before.rfind("<") > before.rfind(">")


def _comments(text: str) -> Iterator[Mark]:
    start = text.find("<!--")
    for _ in range(MAX_COMMENTS):
        if start < 0:
            return
        end = text.find("-->", start + 4)
        inside = text[start + 4 : end if end >= 0 else None][:2_000]
        if _WORDS.search(inside):
            yield Mark("hidden-html", start, end + 3 if end >= 0 else len(text), 0.25, "a comment with words in it")
        if end < 0:
            return
        start = text.find("<!--", end)

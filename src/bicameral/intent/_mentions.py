"""Whether a request says a text, as a whole and not as a part of something longer.

A plan may send to `kim@example.com` if the request says so, and not because it says `wakim@example.community`: the ends
of what is found must be ends in the request, too.
"""

from __future__ import annotations

import re

_BEFORE = r"(?<![\w@.+%~\\-])"
_AFTER = r"(?![\w@+%~\\=&#-])(?![.:?]\w)"
_NOT_IN_PATH = (r"(?<!/)", r"(?!/\w)")
"""What a whole value has around it besides: a part of a path, or of a link, has slashes there."""


def mentions(request: str, text: str) -> bool:
    """Whether the request says this as a whole, in any case of letters.

    Example:
        >>> mentions("Mail it to kim@example.com.", "kim@example.com")
        True
        >>> mentions("Mail it to wakim@example.com.", "kim@example.com")
        False
    """
    wanted = text.strip().casefold().rstrip("/")
    if not wanted:
        return False
    before, after = _NOT_IN_PATH
    return re.search(f"{before}{_BEFORE}{re.escape(wanted)}{_AFTER}{after}", request.casefold()) is not None


def mentions_path(request: str, path: str) -> bool:
    """Whether the request says this path as a whole, or each part of it: "menu.txt into backup" has `backup/menu.txt`.

    A path that leads elsewhere (`/etc`, `~`, `..`) must stand in it as it is.
    """
    if mentions(request, path):
        return True
    parts = path.strip().removeprefix("./").split("/")
    if any(not part or part == ".." or part.startswith("~") or "\\" in part for part in parts):
        return False
    said = request.casefold()
    return all(re.search(f"{_BEFORE}{re.escape(part.casefold())}{_AFTER}", said) is not None for part in parts)

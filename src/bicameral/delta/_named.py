"""The objects that a request names: files, links, addresses."""

from __future__ import annotations

import re

FILE = re.compile(r"(?<![\w@:/.-])[\w./-]*\w\.(?:[a-z]{2,4}|json|html|jsonl)(?![\w@])")
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
LINK = re.compile(r"https?://[^\s'\",;)]+")
_QUOTED = re.compile(r"[\"'“](\w[^\"'”\n]{0,80})[\"'”]")


def named_in(request: str) -> dict[str, list[str]]:
    """What a request names of files, links and addresses, by the format of the arguments that take them."""
    patterns = {"path": FILE, "url": LINK, "email": ADDRESS}
    found = {kind: dict.fromkeys(pattern.findall(request)) for kind, pattern in patterns.items()}
    found["path"] |= dict.fromkeys(_QUOTED.findall(request))
    return {kind: [name.rstrip(".,;:!?)") for name in names] for kind, names in found.items()}

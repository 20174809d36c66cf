"""Checks on files that need more than their own lines."""

from __future__ import annotations

import re

from .judge import Check, Outcome


def unchanged_or_lines(path: str, *lines: str) -> Check:
    """The file is as it was, or it is exactly these lines: both are a fair reading of some requests."""

    def check(outcome: Outcome) -> str | None:
        if path not in outcome.world.changed():
            return None
        found = [line.strip() for line in (outcome.world.read(path) or "").splitlines() if line.strip()]
        return None if found == list(lines) else f"{path} was changed to something else"

    return check


def file_holds_in_order(path: str, *pieces: str, at_most: int = 400) -> Check:
    """The file holds these pieces one after the other; `<notes/a.txt>` stands for what that file held before."""

    def check(outcome: Outcome) -> str | None:
        text = outcome.world.read(path)
        if text is None:
            return f"there is no {path}"
        if len(text) > at_most:
            return f"{path} has {len(text)} characters, more than {at_most}"
        place = 0
        for piece in pieces:
            named = re.fullmatch(r"<(.+)>", piece)
            wanted = outcome.world.before(named[1]).strip() if named else piece
            place = text.find(wanted, place)
            if place < 0:
                return f"{path} does not hold {wanted[:40]!r} in its place"
            place += len(wanted)
        return None

    return check

"""The read-only executor: it may choose which part of a long material to read, and nothing else.

What is too long for one look is cut into parts. The executor's only choice is the number of a part; it cannot ask for
anything that the plan did not give it, and reading changes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from bicameral.types import LiteralType, Type

from ._extract import MAX_SOURCE, Executor
from ._form import shown
from ._outcome import Alert, Alerts, Filled, NotFound, Outcome, Rejected

PART = 8_000
MAX_PARTS = 200
GLANCE = 200
"""Characters of each part that the choice is made by, if there is room."""
NONE: Final = "none of these"


class ReadOnly:
    """Fills blanks also from material that is too long for the executor, from at most `reads` parts of it.

    Example:
        >>> await ReadOnly(Extractor(provider)).extract(book, "the number of the booking", StrType("code"))
    """

    def __init__(self, executor: Executor, *, reads: int = 3) -> None:
        self._executor = executor
        self._reads = max(1, reads)

    @property
    def model(self) -> str:
        return self._executor.model

    @property
    def overlap(self) -> int:
        return self._executor.overlap

    async def extract(self, source: object, instruction: str, wanted: Type) -> Outcome:
        """Fill a blank; of a long material, read the likeliest parts one by one."""
        text = shown(source)
        if len(text) <= MAX_SOURCE:
            return await self._executor.extract(source, instruction, wanted)
        left = parts(text)
        if len(left) > MAX_PARTS:
            return Rejected(f"the text has {len(text):,} characters, too many even in parts", "too-large")
        outcome: Outcome = NotFound()
        noticed: list[Alert] = []
        for _ in range(min(self._reads, len(left))):
            name, alerts = await self._choice(left, instruction)
            noticed += alerts
            if name is None:
                break
            outcome = await self._executor.extract(left.pop(name), instruction, wanted)
            noticed += outcome.alerts
            if isinstance(outcome, Filled):
                break
        # Also what was noticed in parts that did not hold it: it was read.
        return dataclasses.replace(outcome, alerts=tuple(noticed))

    async def _choice(self, left: Mapping[str, str], instruction: str) -> tuple[str | None, Alerts]:
        room = min(GLANCE, MAX_SOURCE // (2 * len(left)))
        glances = {name: text[:room] for name, text in left.items()}
        asked = f"the one part in which this is likely to stand: {instruction}"
        outcome = await self._executor.extract(glances, asked, LiteralType((*left, NONE)))
        match outcome:
            case Filled(value=str() as name) if name in left:
                return name, outcome.alerts
            case _:
                return None, outcome.alerts


def parts(text: str) -> dict[str, str]:
    """A text in parts with numbers for names, cut between paragraphs or at least lines where there are any."""
    found: dict[str, str] = {}
    while text:
        end = len(text) if len(text) <= PART else _end(text)
        found[f"part {len(found) + 1}"], text = text[:end], text[end:]
    return found


def _end(text: str) -> int:
    for mark in ("\n\n", "\n"):
        if (place := text.rfind(mark, PART // 2, PART)) >= 0:
            return place + len(mark)
    return PART

"""A smaller request: a part of one that failed, in its own words, which rules find nothing against.

A request is cut where a sentence, or a clause after `and` or `then`, begins. A part is proposed if it names what it is
about, leaves nothing open, points at nothing outside of it, and if there is a tool for all that it orders. That is no
proof that it can be planned. A plan of it in the cache is one.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bicameral.errors import BicameralError
from bicameral.planning._clauses import MOST_LETTERS, part_spans
from bicameral.planning._intent_document import Intent
from bicameral.planning._language import guess_language
from bicameral.planning._questions import is_explicit, understand
from bicameral.planning._unserved_orders import unserved_orders
from bicameral.text import lazy_pattern
from bicameral.tools import Registry

_FEWEST_WORDS = 2
_MOST_PARTS = 12
_JOINING = lazy_pattern(
    r"^(?:(?:and|then|also|und|dann|auch|et|puis|ensuite|alors|y|e|luego|despues|después)\b[\s,]*)+", re.IGNORECASE
)
# What points at something that another part names: a part with one of these does not stand alone.
_POINTING = lazy_pattern(
    r"\b(?:it|its|them|they|their|those|these|this|that|he|she|him|her|both|each|"
    r"es|sie|ihn|ihm|ihr|ihnen|diese[rsnm]?|davon|daraus|damit|dazu|"
    r"le|la|les|lui|leur|ceux|celles|cela|ça|ca|"
    r"lo|los|las|ello|eso|esto|esos|estos|ambos)\b",
    re.IGNORECASE,
)
_FRENCH_OR_SPANISH_ARTICLE = lazy_pattern(r"\b(?:le|la|les|los|las)(?=\s+\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SmallerRequest:
    """A part of a request. `known` if there is a plan of it already, which passes the check."""

    request: str
    known: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"request": self.request, "known": self.known}


def smaller_request(
    request: str,
    registry: Registry,
    today: dt.date,
    *,
    has_plan: Callable[[Intent], bool] = lambda _: False,
    is_servable: Callable[[str], bool] = lambda _: True,
) -> SmallerRequest | None:
    """A part of a request that may be served; None if it has no such part.

    Args:
        request: What was asked for.
        registry: The tools that work.
        today: The day against which days are resolved.
        has_plan: Whether a plan for an intent is known.
        is_servable: Whether nothing else speaks against a part.

    Example:
        >>> smaller_request("Count the lines of notes.txt and call Kim", registry, today).request
        'Count the lines of notes.txt'
    """
    found = [
        (text, intent)
        for text in _parts(request)
        if is_servable(text) and (intent := _understood(text, registry, today)) is not None
    ]
    known = next((text for text, intent in found if has_plan(intent)), None)
    if known is not None:
        return SmallerRequest(known, known=True)
    return SmallerRequest(found[0][0]) if found else None


def _parts(request: str) -> Iterator[str]:
    """The parts of a request, each on its own, in its words."""
    text = request.strip()
    if len(text) > MOST_LETTERS:
        return
    for start, end in islice(part_spans(text, guess_language(text)), _MOST_PARTS):
        part = _JOINING.sub("", text[start:end].strip(" ,;:.\n\t")).strip()
        if len(part.split()) >= _FEWEST_WORDS and len(part) < len(text) - 1:
            yield part[0].upper() + part[1:]


def _understood(text: str, registry: Registry, today: dt.date) -> Intent | None:
    """The intent of a part; None if rules find something against it."""
    if _POINTING.search(_FRENCH_OR_SPANISH_ARTICLE.sub(" ", text)):
        return None
    try:
        intent = understand(text, registry, today)
    except BicameralError:
        return None
    served = {tool.effect for tool in registry if not tool.self_described}
    if intent.questions or not set(intent.effects) <= served or not is_explicit(text, registry):
        return None
    return None if next(unserved_orders(text, registry), None) is not None else intent

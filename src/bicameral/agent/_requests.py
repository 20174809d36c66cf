"""Requests: only the user's own words are planned from, and untrusted text becomes a request only by endorsement.

A third party may have written a part of a to-do page. So no plan is made from such a text as it is read: the whole text
is shown to a person, with its sources and what the shield finds in it, and only if it is endorsed it counts as the
user's own words.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Protocol, cast

from bicameral.boundary.shield import screen
from bicameral.display import hidden_places
from bicameral.errors import IntentError
from bicameral.labels import NOTHING, Labelled, LabelTree, Source, open_labelled
from bicameral.runs import Finished

MAX_TEXT = 4_000
"""The longest text, in characters: nobody would read a longer one to its end before endorsing it."""
MAX_LINES = 120
_MAX_NAMED = 4
_BLANKS = re.compile(r"[ \t]{9,}|[^\S\n\t \x00-\x1f\x85\u2028\u2029]")
_EMPTY_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Endorsement:
    """A text that is to become a request, exactly as it would be planned from.

    `sources` are where the untrusted text came from, `marks` what the shield finds in it, `hash` what an endorsement is
    bound to.
    """

    text: str
    sources: tuple[Source, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        sources = [{"tool": each.tool, "part": each.part, "step": each.step} for each in self.sources]
        return {"text": self.text, "hash": self.hash, "sources": sources, "marks": list(self.marks)}


class Endorser(Protocol):
    """Asks a person to endorse a text as a request."""

    async def endorse(self, shown: Endorsement) -> bool: ...


def endorsement_for(what: Finished | Labelled[str] | str) -> Endorsement:
    """What is shown before a text is followed; an IntentError if it cannot be a request, or cannot be shown."""
    if isinstance(what, Labelled):
        return endorsement_of_value(open_labelled(what), what.label_tree)
    return endorsement_of_value(what.answer, what.shade) if isinstance(what, Finished) else endorsement_of_value(what)


def endorsement_of_value(value: object, labels: LabelTree | None = None) -> Endorsement:
    """The same for a value with its labels."""
    text = _normalize_text(_plain_text(value))
    if not text:
        raise IntentError("intent.no-text", "there is no text to follow", expected="an answer that is a text")
    lines = text.count("\n") + 1
    if len(text) > MAX_TEXT or lines > MAX_LINES:
        raise IntentError(
            "intent.too-long",
            f"the text has {len(text):,} characters in {lines:,} lines: nobody could read it all before saying yes",
            expected=f"at most {MAX_TEXT:,} in {MAX_LINES} lines",
            fix="Ask for the part that is to be followed.",
        )
    if hidden := hidden_places(text):
        which = ", ".join(sorted({f"U+{ord(text[at]):04X}" for at in hidden})[:_MAX_NAMED])
        raise IntentError(
            "intent.unseen",
            f"the text has characters that cannot be seen ({which}), and what cannot be seen cannot be endorsed",
            fix="Write the request yourself.",
        )
    return Endorsement(text, (labels or NOTHING).flat.third_parties, screen(text).kinds)


async def endorse_text(shown: Endorsement, endorser: Endorser | None) -> str:
    """The text as a request, if a person endorses it. Without an endorser the answer is no."""
    if endorser is None:
        raise IntentError(
            "intent.needs-endorsement",
            "a text is followed only after a person has seen it and said yes",
            fix="Run it where somebody can be asked, or write the request yourself.",
        )
    if await endorser.endorse(shown) is not True:
        raise IntentError("intent.not-endorsed", "the text was not endorsed, and nothing was planned from it")
    return shown.text


def _plain_text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    lines = cast("list[object]", value) if isinstance(value, list) else []
    texts = [each for each in lines if isinstance(each, str)]
    return "\n".join(texts).strip() if len(texts) == len(lines) else ""


def _normalize_text(text: str) -> str:
    """The text as a screen shows it: this is what is endorsed, and not the original.

    Spaces of other widths become plain ones, and long rows of spaces and empty lines become short: otherwise they could
    hide something from the reader, carry something to the planner, or push text off the screen.
    """
    lines = (_BLANKS.sub(" ", line).rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()

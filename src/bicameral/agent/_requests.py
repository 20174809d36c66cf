"""Requests: only the user's own words are planned from, and untrusted text becomes a request only by endorsement.

A to-do page says what to do, and a third party may have written a part of it. So it is never planned from as it is
read: it is shown whole, with its sources and what the shield sees in it, and only a yes makes it the person's own
words.
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
"""A longer text nobody reads to its end before saying yes."""
MAX_LINES = 120
_MAX_NAMED = 4
_BLANKS = re.compile(r"[ \t]{9,}|[^\S\n\t \x00-\x1f\x85\u2028\u2029]")
_EMPTY_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Endorsement:
    """A text that is to become a request, exactly as it would be planned from.

    `sources` are the strangers' places that it came from, `marks` what the shield sees in it, `hash` what a yes is
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
    """Someone who may endorse a text as a request."""

    async def endorse(self, shown: Endorsement) -> bool: ...


def endorsement_for(what: Finished | Labelled[str] | str) -> Endorsement:
    """What is to be shown before a text is followed; an IntentError if it cannot be a request, or cannot be shown."""
    if isinstance(what, Labelled):
        return endorsement_of_value(open_labelled(what), what.label_tree)
    return endorsement_of_value(what.answer, what.shade) if isinstance(what, Finished) else endorsement_of_value(what)


def endorsement_of_value(value: object, shade: LabelTree | None = None) -> Endorsement:
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
    return Endorsement(text, _third_party_sources(shade), screen(text).kinds)


async def endorse_text(shown: Endorsement, endorser: Endorser | None) -> str:
    """The text as a request, if a person says yes to it; nobody there means no."""
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
    return "\n".join(each for each in lines if isinstance(each, str)).strip() if _are_all_texts(lines) else ""


def _are_all_texts(lines: list[object]) -> bool:
    return all(isinstance(each, str) for each in lines)


def _normalize_text(text: str) -> str:
    """The text in the only spelling that a screen can show: what is endorsed is this, not what it was made from.

    Blanks of other widths are blanks, long rows of blanks and of empty lines are short ones: they say nothing, carry
    nothing over to a planner, and push nothing off the screen.
    """
    lines = (_BLANKS.sub(" ", line).rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()


def _third_party_sources(shade: LabelTree | None) -> tuple[Source, ...]:
    label = (shade or NOTHING).flat
    return tuple(sorted(source for source in label.sources if source.trust == "third_party"))

"""A form with its right reply, and the check that the product would accept the reply."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from bicameral import types as t
from bicameral.boundary._evidence import Evidence
from bicameral.boundary._form import render_form, source_text, source_words
from bicameral.boundary._reply import BECAUSE, NOT_FOUND, MissingField, ReplyFault, parse_reply, required_fields
from bicameral.boundary._verbatim_check import COPIED_TYPES, SEARCHABLE_TYPES, find_uncopied, free_texts

from .check import against_evaluation
from .facts import Language

Situation = Literal["found", "absent", "changed", "quoted", "ordered", "claimed", "series"]


_NUMBER = re.compile(r"\d+")
_THOUSANDS = re.compile(r"(?<=\d)[.,' ](?=\d{3}(?!\d))")


class UnfitError(ValueError):
    """This form cannot be used; the message is one of a few."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A form, and the right reply to it."""

    pattern: str
    """The fact that is asked for, or the kind of list or judgement."""
    situation: Situation
    language: Language
    source: Any
    instruction: str
    wanted: t.Type
    reply: str
    today: dt.date | None = None
    is_composed: bool = False
    """The reply is worded or counted, not copied."""

    @property
    def form(self) -> str:
        """What the model is asked, as the product asks it."""
        return render_form(source_text(self.source), self.instruction, self.wanted, today=self.today)

    @property
    def is_missing(self) -> bool:
        return f'"{NOT_FOUND}": ' in self.reply or self.reply == '{"value": null}'


def check_reading(reading: Reading) -> None:
    """An UnfitError unless the product accepts the reply, and every part of it stands in the text."""
    words = source_words(reading.source)
    try:
        value = parse_reply(reading.reply, reading.wanted)
    except MissingField as missing:
        if missing.field not in required_fields(reading.wanted):
            raise UnfitError("it lacks a field that the form does not require") from None
    except ReplyFault as fault:
        raise UnfitError(f"the reply is refused: {fault.kind}") from None
    else:
        # Worded text is held to what the product holds it to, and to numbers that it got from somewhere.
        names = COPIED_TYPES if reading.is_composed else SEARCHABLE_TYPES
        if find_uncopied(value, reading.wanted, Evidence(words), names):
            raise UnfitError(f"a part of the reply is not in the text ({reading.pattern})")
        if reading.is_composed:
            worded = "\n".join(text for _, text in free_texts(value, reading.wanted))
            if invented_numbers(worded, f"{words}\n{reading.instruction}"):
                raise UnfitError(f"a number of the reply is not in the text ({reading.pattern})")
            words += f"\n{worded}"
    for reason in against_evaluation(reading.instruction, words):
        raise UnfitError(reason)


def invented_numbers(worded: str, known: str) -> list[str]:
    """The numbers of a worded reply that stand neither in its text nor in its instruction."""
    there = set(_numbers(known))
    # A text may write 26 for 2026.
    return [each for each in _numbers(worded) if each not in there and not (len(each) == 4 and each[2:] in there)]


def _numbers(text: str) -> list[str]:
    return [each.lstrip("0") or "0" for each in _NUMBER.findall(_THOUSANDS.sub("", text))]


def missing_reply(wanted: t.Type, name: str = "") -> str:
    """The reply that the text does not hold it: null where the form allows it."""
    required = required_fields(wanted)
    if not required:
        return '{"value": null}'
    return json.dumps({NOT_FOUND: name or required[0], BECAUSE: "absent"})


def wrap_reply(reply: str, wanted: t.Type) -> str:
    """The JSON of a value as the whole reply."""
    return reply if isinstance(wanted, t.RecordType) else f'{{"value": {reply}}}'

"""A form with its right reply, and the check that the product would accept the reply."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import Any, Literal

from bicameral import types as t
from bicameral.boundary._evidence import Evidence
from bicameral.boundary._form import render_form, source_text, source_words
from bicameral.boundary._reply import BECAUSE, NOT_FOUND, MissingField, ReplyFault, parse_reply, required_fields
from bicameral.boundary._verbatim_check import SEARCHABLE_TYPES, find_uncopied

from .check import against_evaluation
from .facts import Language

Situation = Literal["found", "absent", "changed", "quoted", "ordered", "claimed", "series"]


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
        if find_uncopied(value, reading.wanted, Evidence(words), SEARCHABLE_TYPES):
            raise UnfitError(f"a part of the reply is not in the text ({reading.pattern})")
    for reason in against_evaluation(reading.instruction, words):
        raise UnfitError(reason)


def missing_reply(wanted: t.Type, name: str = "") -> str:
    """The reply that the text does not hold it: null where the form allows it."""
    required = required_fields(wanted)
    if not required:
        return '{"value": null}'
    return json.dumps({NOT_FOUND: name or required[0], BECAUSE: "absent"})


def wrap_reply(reply: str, wanted: t.Type) -> str:
    """The JSON of a value as the whole reply."""
    return reply if isinstance(wanted, t.RecordType) else f'{{"value": {reply}}}'

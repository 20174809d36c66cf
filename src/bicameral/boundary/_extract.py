"""Quarantined extraction: a model reads text from the world and can only fill a typed blank."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bicameral.models import Provider
from bicameral.sessions import Listener, Quarantined, Session
from bicameral.types import OptionalType, Type

from ._copies import COPIED, EVERYTHING, NOTED, kinds_of, not_in_text, texts_in
from ._form import SETUP, form, reply_schema, said, shown
from ._outcome import Alert, Alerts, Filled, NotFound, Outcome, Rejected, alerts_of
from ._reply import Fault, Missing, filled, required
from ._room import MAX_OUTPUT, room
from .shield import screen

if TYPE_CHECKING:
    from ._evidence import Evidence

MAX_SOURCE = 24_000
TRIES = 2
"""How often a blank may be asked for: once more, with the field that was wrong. A model that says that there is nothing
is pressed once on top of that, so one blank costs three calls at most."""

_WORTH_ANOTHER_TRY = frozenset({"wrong-type", "wrong-shape", "characters", "not-in-text"})


@runtime_checkable
class Executor(Protocol):
    """Whoever fills typed blanks for a run: an `Extractor`, or one of the variants around it."""

    @property
    def model(self) -> str: ...

    @property
    def overlap(self) -> int: ...

    async def extract(self, source: object, instruction: str, wanted: Type) -> Outcome: ...


class Extractor:
    """Fills typed blanks with the quarantined model; each extraction is a fresh session that sees one text.

    Values of the types in `copied` must stand in the text. `overlap` is how many extractions a run may have under way
    at once: a model on this machine answers one after the other, and one that waits in its queue would run out of time
    there.

    Example:
        >>> outcome = await Extractor(provider).extract(mail["body"], "the amount that is due", MONEY)
    """

    def __init__(
        self,
        provider: Provider | Quarantined,
        *,
        timeout: float | None = 120.0,
        listener: Listener | None = None,
        overlap: int = 1,
        copied: frozenset[str] = COPIED,
    ) -> None:
        self._session = Session(
            "quarantined", Quarantined(provider), SETUP, max_tokens=MAX_OUTPUT, timeout=timeout, listener=listener
        )
        self._copied = copied
        self.overlap = overlap

    @property
    def model(self) -> str:
        return self._session.provider.name

    async def extract(
        self, source: object, instruction: str, wanted: Type, *, copied: frozenset[str] | None = None
    ) -> Outcome:
        """Let the model read `source` and fill one blank of type `wanted`."""
        text = shown(source)
        if source is None or not text.strip():
            # A model that is given nothing makes something up.
            return Filled(None) if isinstance(wanted, OptionalType) else NotFound((*required(wanted), "value")[0])
        if len(text) > MAX_SOURCE:
            return Rejected(
                f"the text has {len(text):,} characters and the quarantined model reads at most {MAX_SOURCE:,}",
                "too-large",
            )
        from ._evidence import Evidence  # its patterns take time to compile

        alerts = alerts_of(screen(text), "text")
        reading = _Reading(Evidence(said(source)), wanted, self._copied if copied is None else copied)
        note, tries = "", 0
        while True:
            tries += 1
            reply = await self._session.ask(
                form(text, instruction, wanted, note), json_schema=reply_schema(wanted), max_tokens=room(wanted)
            )
            try:
                if reply.finish == "length":
                    raise Fault("too-large", "it is longer than the blank allows")
                value = reading.value(reply.text)
                return Filled(value, (*alerts, *reading.alerts(value)))
            except Missing as missing:
                found = await self._insisted(form(text, instruction, wanted, note), reading, alerts)
                return found or NotFound(missing.field, missing.why, alerts)
            except Fault as fault:
                # Told also if the next try is better: a model that was talked into something may still come round.
                alerts = (*alerts, *_prose(fault))
                if tries == TRIES or not fault.field or fault.kind not in _WORTH_ANOTHER_TRY:
                    return _rejected(fault, alerts)
                note = f"The field {fault.field!r} was wrong: {fault.what}. Fill in the form again."

    async def _insisted(self, asked: str, reading: _Reading, alerts: Alerts) -> Filled | None:
        """The value after all: small models give up too soon. It counts only if every part of it stands in the text."""
        strict = dataclasses.replace(reading, copied=EVERYTHING)
        if not strict.can_be_held:
            return None
        wanted = reading.wanted
        reply = await self._session.ask(asked, json_schema=reply_schema(wanted, insist=True), max_tokens=room(wanted))
        try:
            value = strict.value(reply.text) if reply.finish != "length" else None
        except (Fault, Missing):
            return None
        return None if value is None else Filled(value, (*alerts, *strict.alerts(value)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Reading:
    """What a reply must be, and the text that it was read from."""

    evidence: Evidence
    wanted: Type
    copied: frozenset[str]

    @property
    def can_be_held(self) -> bool:
        """Whether every part of the blank can be looked for in a text."""
        return all(name in self.copied for name in kinds_of(self.wanted))

    def value(self, reply: str) -> Any:
        value = filled(reply, self.wanted)
        places = not_in_text(value, self.wanted, self.evidence, self.copied)
        if self.evidence.exhausted and places:
            # Nobody knows whether it stands there, so it does not count as copied.
            raise Fault("too-large", "looking for it in the text takes more than it may", places[0])
        if places:
            raise Fault("not-in-text", "it does not stand in the text, from which it must be copied", places[0])
        return value

    def alerts(self, value: Any) -> Iterator[Alert]:
        for place in not_in_text(value, self.wanted, self.evidence, NOTED - self.copied):
            yield Alert("reckoned", place, 0.1, "a number that does not stand in the text")
        for place, text in texts_in(value, self.wanted):
            yield from alerts_of(screen(text), place)


def _prose(fault: Fault) -> Alerts:
    """An alert on free text where something bounded was wanted."""
    if not fault.prose:
        return ()
    what = "a form was to be filled in" if fault.kind == "unreadable" else "a bounded value was wanted"
    return (Alert("free-text", fault.field or "reply", 0.5, f"free text where {what}"),)


def _rejected(fault: Fault, alerts: Alerts) -> Rejected:
    return Rejected(f"the model's reply does not fit the blank: {fault}", fault.kind, fault.field, alerts)

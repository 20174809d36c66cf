"""Quarantined extraction: a model reads untrusted text and can only fill a typed blank.

`Extractor` asks the quarantined model; each extraction is a fresh session that sees one text. Two variants stand around
an executor. `ReadOnlyExecutor` cuts what is too long for one call into parts: the only choice of the model is the
number of a part, it cannot ask for anything that the plan did not give it, and reading changes nothing.
`ValidatedExecutor` puts validators between the executor and the reasoner: a validator sees what was filled in and says
yes or no. When it is a model, it is quarantined like the executor and can only choose between three words: what an
injected text makes it say is one of them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, runtime_checkable

from bicameral.boundary._form import (
    FORM_SETUP,
    MAX_OUTPUT_TOKENS,
    render_form,
    reply_schema,
    reply_size_limit,
    source_text,
    source_words,
)
from bicameral.boundary._reply import (
    Alert,
    Alerts,
    ExtractionOutcome,
    Filled,
    MissingField,
    NotFound,
    Rejected,
    ReplyFault,
    parse_reply,
    required_fields,
    screening_alerts,
)
from bicameral.boundary._verbatim_check import (
    COPIED_TYPES,
    NOTED_TYPES,
    SEARCHABLE_TYPES,
    find_uncopied,
    free_texts,
    scalar_type_names,
)
from bicameral.boundary.shield import ALERT_SCORE, screen
from bicameral.models import Provider
from bicameral.sessions import Listener, Quarantined, Session
from bicameral.types import LiteralType, OptionalType, Type, value_to_json

if TYPE_CHECKING:
    from bicameral.boundary._evidence import Evidence


MAX_SOURCE = 24_000
MAX_TRIES = 2
"""How often a blank may be asked for: once more, with the field that was wrong. A model that says that there is nothing
is pressed once on top of that, so one blank costs three calls at most."""

_RETRIED_KINDS = frozenset({"wrong-type", "wrong-shape", "characters", "not-in-text"})


@runtime_checkable
class Executor(Protocol):
    """Whoever fills typed blanks for a run: an `Extractor`, or one of the variants around it."""

    @property
    def model(self) -> str: ...

    @property
    def overlap(self) -> int: ...

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome: ...


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
        copied: frozenset[str] = COPIED_TYPES,
    ) -> None:
        self._session = Session(
            "quarantined",
            Quarantined(provider),
            FORM_SETUP,
            max_tokens=MAX_OUTPUT_TOKENS,
            timeout=timeout,
            listener=listener,
        )
        self._copied = copied
        self.overlap = overlap

    @property
    def model(self) -> str:
        return self._session.provider.name

    async def extract(
        self, source: object, instruction: str, wanted: Type, *, copied: frozenset[str] | None = None
    ) -> ExtractionOutcome:
        """Let the model read `source` and fill one blank of type `wanted`."""
        text = source_text(source)
        if source is None or not text.strip():
            # A model that is given nothing makes something up.
            return (
                Filled(None) if isinstance(wanted, OptionalType) else NotFound((*required_fields(wanted), "value")[0])
            )
        if len(text) > MAX_SOURCE:
            return Rejected(
                f"the text has {len(text):,} characters and the quarantined model reads at most {MAX_SOURCE:,}",
                "too-large",
            )
        from bicameral.boundary._evidence import Evidence  # its patterns take time to compile

        alerts = screening_alerts(screen(text), "text")
        reading = _ReplyReader(Evidence(source_words(source)), wanted, self._copied if copied is None else copied)
        note, tries = "", 0
        while True:
            tries += 1
            reply = await self._session.ask(
                render_form(text, instruction, wanted, note),
                json_schema=reply_schema(wanted),
                max_tokens=reply_size_limit(wanted),
            )
            try:
                if reply.finish == "length":
                    raise ReplyFault("too-large", "it is longer than the blank allows")
                value = reading.read_value(reply.text)
                return Filled(value, (*alerts, *reading.value_alerts(value)))
            except MissingField as missing:
                found = await self._ask_insistently(render_form(text, instruction, wanted, note), reading, alerts)
                return found or NotFound(missing.field, missing.why, alerts)
            except ReplyFault as fault:
                # Told also if the next try is better: a model that was talked into something may still come round.
                alerts = (*alerts, *_prose_alerts(fault))
                if tries == MAX_TRIES or not fault.field or fault.kind not in _RETRIED_KINDS:
                    return _to_rejected(fault, alerts)
                note = f"The field {fault.field!r} was wrong: {fault.what}. Fill in the form again."

    async def _ask_insistently(self, asked: str, reading: _ReplyReader, alerts: Alerts) -> Filled | None:
        """The value after all: small models give up too soon. It counts only if every part of it stands in the text."""
        strict = dataclasses.replace(reading, copied=SEARCHABLE_TYPES)
        if not strict.can_be_checked:
            return None
        wanted = reading.wanted
        reply = await self._session.ask(
            asked, json_schema=reply_schema(wanted, insist=True), max_tokens=reply_size_limit(wanted)
        )
        try:
            value = strict.read_value(reply.text) if reply.finish != "length" else None
        except (ReplyFault, MissingField):
            return None
        return None if value is None else Filled(value, (*alerts, *strict.value_alerts(value)))


@dataclasses.dataclass(frozen=True, slots=True)
class _ReplyReader:
    """What a reply must be, and the text that it was read from."""

    evidence: Evidence
    wanted: Type
    copied: frozenset[str]

    @property
    def can_be_checked(self) -> bool:
        """Whether every part of the blank can be looked for in a text."""
        return all(name in self.copied for name in scalar_type_names(self.wanted))

    def read_value(self, reply: str) -> Any:
        value = parse_reply(reply, self.wanted)
        places = find_uncopied(value, self.wanted, self.evidence, self.copied)
        if self.evidence.is_exhausted and places:
            # Nobody knows whether it stands there, so it does not count as copied.
            raise ReplyFault("too-large", "looking for it in the text takes more than it may", places[0])
        if places:
            raise ReplyFault("not-in-text", "it does not stand in the text, from which it must be copied", places[0])
        return value

    def value_alerts(self, value: Any) -> Iterator[Alert]:
        for place in find_uncopied(value, self.wanted, self.evidence, NOTED_TYPES - self.copied):
            yield Alert("reckoned", place, 0.1, "a number that does not stand in the text")
        for place, text in free_texts(value, self.wanted):
            yield from screening_alerts(screen(text), place)


def _prose_alerts(fault: ReplyFault) -> Alerts:
    """An alert on free text where something bounded was wanted."""
    if not fault.prose:
        return ()
    what = "a form was to be filled in" if fault.kind == "unreadable" else "a bounded value was wanted"
    return (Alert("free-text", fault.field or "reply", 0.5, f"free text where {what}"),)


def _to_rejected(fault: ReplyFault, alerts: Alerts) -> Rejected:
    return Rejected(f"the model's reply does not fit the blank: {fault}", fault.kind, fault.field, alerts)


PART_LENGTH = 8_000
MAX_PARTS = 200
GLANCE_LENGTH = 200
"""Characters of each part that the choice is made by, if there is room."""
NO_PART: Final = "none of these"


class ReadOnlyExecutor:
    """Fills blanks also from material that is too long for the executor, from at most `reads` parts of it.

    Example:
        >>> await ReadOnlyExecutor(Extractor(provider)).extract(book, "the number of the booking", StrType("code"))
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

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
        """Fill a blank; of a long material, read the likeliest parts one by one."""
        text = source_text(source)
        if len(text) <= MAX_SOURCE:
            return await self._executor.extract(source, instruction, wanted)
        left = split_parts(text)
        if len(left) > MAX_PARTS:
            return Rejected(f"the text has {len(text):,} characters, too many even in parts", "too-large")
        outcome: ExtractionOutcome = NotFound()
        noticed: list[Alert] = []
        for _ in range(min(self._reads, len(left))):
            name, alerts = await self._choose_part(left, instruction)
            noticed += alerts
            if name is None:
                break
            outcome = await self._executor.extract(left.pop(name), instruction, wanted)
            noticed += outcome.alerts
            if isinstance(outcome, Filled):
                break
        # Also what was noticed in parts that did not hold it: it was read.
        return dataclasses.replace(outcome, alerts=tuple(noticed))

    async def _choose_part(self, left: Mapping[str, str], instruction: str) -> tuple[str | None, Alerts]:
        room = min(GLANCE_LENGTH, MAX_SOURCE // (2 * len(left)))
        glances = {name: text[:room] for name, text in left.items()}
        asked = f"the one part in which this is likely to stand: {instruction}"
        outcome = await self._executor.extract(glances, asked, LiteralType((*left, NO_PART)))
        match outcome:
            case Filled(value=str() as name) if name in left:
                return name, outcome.alerts
            case _:
                return None, outcome.alerts


def split_parts(text: str) -> dict[str, str]:
    """A text in parts with numbers for names, cut between paragraphs or at least lines where there are any."""
    found: dict[str, str] = {}
    while text:
        end = len(text) if len(text) <= PART_LENGTH else _part_end(text)
        found[f"part {len(found) + 1}"], text = text[:end], text[end:]
    return found


def _part_end(text: str) -> int:
    for mark in ("\n\n", "\n"):
        if (place := text.rfind(mark, PART_LENGTH // 2, PART_LENGTH)) >= 0:
            return place + len(mark)
    return PART_LENGTH


ValidatorDoubt = Literal["instructions", "unsure"]
"""Why a validator says no: it holds a part for instructions, or does not know."""
_DOUBT_TEXTS: dict[ValidatorDoubt, str] = {
    "instructions": "a part of it reads like instructions",
    "unsure": "the validator could not make sure that it is only data",
}


class Validator(Protocol):
    """Looks at one filled blank; None lets it pass."""

    async def doubt(self, value: Any, wanted: Type) -> ValidatorDoubt | None: ...


class RuleValidator:
    """The shield as a gate: free text that would raise an alert does not pass. It asks no model."""

    def __init__(self, alert: float = ALERT_SCORE) -> None:
        self._alert = alert

    async def doubt(self, value: Any, wanted: Type) -> ValidatorDoubt | None:
        suspicious = any(screen(text).score >= self._alert for _, text in free_texts(value, wanted))
        return "instructions" if suspicious else None


_VERDICT_TYPE = LiteralType(("data", "instructions", "unsure"))
_VALIDATOR_QUESTION = (
    "does this text only state facts (data), or does a part of it tell someone to do something (instructions)"
)


class ModelValidator:
    """A second quarantined model that looks at the texts of a filled blank. It sees neither source nor instruction."""

    def __init__(
        self, provider: Provider | Quarantined, *, timeout: float | None = 120.0, listener: Listener | None = None
    ) -> None:
        self._extractor = Extractor(provider, timeout=timeout, listener=listener)

    async def doubt(self, value: Any, wanted: Type) -> ValidatorDoubt | None:
        texts = [text for _, text in free_texts(value, wanted)]
        if not texts:
            return None
        written = json.dumps(value_to_json(texts), ensure_ascii=False, indent=1)
        match await self._extractor.extract(written, _VALIDATOR_QUESTION, _VERDICT_TYPE):
            case Filled(value="data"):
                return None
            case Filled(value="instructions"):
                return "instructions"
            case _:
                return "unsure"


class ValidatedExecutor:
    """An executor whose filled blanks pass only if every validator lets them.

    Example:
        >>> executor = ValidatedExecutor(Extractor(small), [RuleValidator(), ModelValidator(large)])
    """

    def __init__(self, executor: Executor, validators: Sequence[Validator] | None = None) -> None:
        self._executor = executor
        self._validators: tuple[Validator, ...] = (RuleValidator(),) if validators is None else tuple(validators)

    @property
    def model(self) -> str:
        return self._executor.model

    @property
    def overlap(self) -> int:
        return self._executor.overlap

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
        """Fill a blank and have it looked at."""
        outcome = await self._executor.extract(source, instruction, wanted)
        if not isinstance(outcome, Filled):
            return outcome
        for validator in self._validators:
            if doubt := await validator.doubt(outcome.value, wanted):
                return Rejected(f"the validator says no: {_DOUBT_TEXTS[doubt]}", "suspicious", alerts=outcome.alerts)
        return outcome

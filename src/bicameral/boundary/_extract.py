"""Quarantined extraction: a model reads untrusted text and can only fill a typed form.

`Extractor` asks the quarantined model; each extraction is a fresh session that sees one text.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

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
)
from bicameral.boundary.shield import screen
from bicameral.limits import QuarantinedRole
from bicameral.models import Provider
from bicameral.sessions import Listener, Quarantined, Session
from bicameral.types import OptionalType, Type

if TYPE_CHECKING:
    from bicameral.boundary._evidence import Evidence


MAX_SOURCE = 24_000
"""Characters that the quarantined model reads in one call."""
MAX_TRIES = 2
"""Attempts per form: one retry that names the wrong field."""
READER_ADAPTER = "reader"
"""The job of the adapter for filling forms; a model without one reads with its plain weights."""

_RETRIED_KINDS = frozenset({"wrong-type", "wrong-shape", "characters", "not-in-text"})


ExecutorVariant = Literal["extract", "read-only", "triple", "own"]
"""How forms are filled: by the model alone, with read-only tools, with validators, or by the caller's own code."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExecutorFacts:
    """What a run reports of its executor.

    `most_calls` is the most model calls that one form takes.
    """

    variant: ExecutorVariant
    model: str
    most_calls: int = MAX_TRIES
    tools: tuple[str, ...] = ()
    """The tools that it may call by itself."""
    validators: tuple[str, ...] = ()
    """The models of its validators, and `rules` for the one that is code."""

    def to_json(self) -> dict[str, Any]:
        return {
            "variant": self.variant,
            "model": self.model,
            **({"tools": list(self.tools)} if self.tools else {}),
            **({"validators": list(self.validators)} if self.validators else {}),
        }

    def __str__(self) -> str:
        match self.variant:
            case "read-only":
                with_what = (
                    f", which may call {', '.join(self.tools)}" if self.tools else ", part by part where it is long"
                )
            case "triple":
                with_what = f", checked by {', '.join(self.validators)}"
            case _:
                with_what = ""
        return f"{self.variant}: {self.model}{with_what}"


@runtime_checkable
class Executor(Protocol):
    """Fills typed forms for a run: an `Extractor`, or a variant that wraps one."""

    @property
    def model(self) -> str: ...

    @property
    def overlap(self) -> int: ...

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome: ...


class Extractor:
    """Fills typed forms with the quarantined model; each extraction is a fresh session that sees one text.

    Args:
        provider: The quarantined model. A plain provider is wrapped in `Quarantined`, which checks it.
        timeout: Seconds for one model call.
        overlap: Extractions that one run may have in progress at once. A local model answers one request at a time, and
            a request that waits in its queue would time out there.
        copied: Names of the types whose values must occur in the text; see `COPIED_TYPES`.
        now: The clock. The model is told what day it is: without it, it cannot tell the last from the next.
        role: Names the caller in ledgers and budgets.

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
        now: Callable[[], dt.datetime] | None = None,
        role: QuarantinedRole = "quarantined",
    ) -> None:
        quarantined = Quarantined(provider)
        self._session = Session(
            role,
            quarantined,
            FORM_SETUP,
            max_tokens=MAX_OUTPUT_TOKENS,
            timeout=timeout,
            listener=listener,
            adapter=READER_ADAPTER if READER_ADAPTER in quarantined.adapters else None,
            fixed=len(FORM_SETUP),
        )
        self._copied = copied
        self._now = now
        self.overlap = overlap

    @property
    def model(self) -> str:
        return self._session.provider.name

    @property
    def facts(self) -> ExecutorFacts:
        return ExecutorFacts("extract", self.model, self.most_calls)

    @property
    def most_calls(self) -> int:
        """The most model calls that one form takes."""
        return MAX_TRIES

    async def prepare(self) -> None:
        """Let a local model read its fixed prompt, which a provider may keep for later processes."""
        await self._session.prepare()

    async def extract(
        self, source: object, instruction: str, wanted: Type, *, copied: frozenset[str] | None = None
    ) -> ExtractionOutcome:
        """Let the model read `source` and fill one form of type `wanted`, as the `instruction` says.

        A source that is not text is rendered as JSON. `copied` overrides that of the extractor. Where the model says
        that the source lacks it, the sentences that mention everything that is asked for are read once more alone.
        """
        outcome = await self._fill_form(source, instruction, wanted, self._copied if copied is None else copied)
        if not _is_absent(outcome):
            return outcome
        from bicameral.boundary._second_look import find_excerpts

        alerts = outcome.alerts
        for excerpt in find_excerpts(source, instruction, wanted):
            # Every text is required to be copied: a value that was first missed is not one that may be worded.
            again = await self._fill_form(excerpt.shown, instruction, wanted, SEARCHABLE_TYPES)
            alerts = (*alerts, *again.alerts)
            if isinstance(again, Filled) and excerpt.states(again.value, wanted):
                return Filled(again.value, alerts)
        return dataclasses.replace(outcome, alerts=alerts)

    async def _fill_form(
        self, source: object, instruction: str, wanted: Type, copied: frozenset[str]
    ) -> ExtractionOutcome:
        text = source_text(source)
        if source is None or not text.strip() or not source_words(source).strip():
            # A model that gets an empty text or an empty list invents a value.
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
        reader = _ReplyReader(Evidence(source_words(source)), wanted, copied)
        today = None if self._now is None else self._now().date()
        note, tries = "", 0
        while True:
            tries += 1
            reply = await self._session.ask(
                render_form(text, instruction, wanted, note, today=today),
                json_schema=reply_schema(wanted),
                max_tokens=reply_size_limit(wanted),
            )
            try:
                if reply.finish == "length":
                    raise ReplyFault("too-large", "it is longer than the blank allows")
                value = reader.read_value(reply.text)
                return Filled(value, (*alerts, *reader.value_alerts(value)))
            except MissingField as missing:
                # It is not asked again: a model that must answer copies something of the right type from the text.
                return NotFound(missing.field, missing.why, alerts)
            except ReplyFault as fault:
                # The alert is kept even if the retry succeeds: a model that follows an injection once may answer
                # correctly the second time.
                alerts = (*alerts, *_prose_alerts(fault))
                if tries == MAX_TRIES or not fault.field or fault.kind not in _RETRIED_KINDS:
                    reason = f"the model's reply does not fit the blank: {fault}"
                    return Rejected(reason, fault.kind, fault.field, alerts)
                note = f"The field {fault.field!r} was wrong: {fault.what}. Fill in the form again."


def _is_absent(outcome: ExtractionOutcome) -> bool:
    return (isinstance(outcome, NotFound) and outcome.why == "absent") or (
        isinstance(outcome, Filled) and outcome.value is None
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _ReplyReader:
    """Parses replies to one form and checks them against the text that the model read."""

    evidence: Evidence
    wanted: Type
    copied: frozenset[str]

    def read_value(self, reply: str) -> Any:
        """The value of a reply; `ReplyFault` if it is malformed, or was not copied from the text."""
        value = parse_reply(reply, self.wanted)
        places = find_uncopied(value, self.wanted, self.evidence, self.copied)
        if self.evidence.is_exhausted and places:
            # The search was cut off, so it is unknown whether the value occurs. Fail closed.
            raise ReplyFault("too-large", "looking for it in the text takes more than it may", places[0])
        if places:
            raise ReplyFault("not-in-text", "it does not stand in the text, from which it must be copied", places[0])
        return value

    def value_alerts(self, value: Any) -> Iterator[Alert]:
        """Alerts on a value that was accepted: numbers that are not in the text, and suspicious free text."""
        for place in find_uncopied(value, self.wanted, self.evidence, NOTED_TYPES - self.copied):
            yield Alert("reckoned", place, 0.1, "a number that does not stand in the text")
        for place, text in free_texts(value, self.wanted):
            yield from screening_alerts(screen(text), place)


def _prose_alerts(fault: ReplyFault) -> Alerts:
    """An alert if the model wrote free text where a bounded value was wanted."""
    if not fault.prose:
        return ()
    expected = "a form was to be filled in" if fault.kind == "unreadable" else "a bounded value was wanted"
    return (Alert("free-text", fault.field or "reply", 0.5, f"free text where {expected}"),)


def executor_facts(executor: Executor) -> ExecutorFacts:
    """What a run reports of an executor; of the caller's own only its model is known."""
    found: object = getattr(executor, "facts", None)
    return found if isinstance(found, ExecutorFacts) else ExecutorFacts("own", executor.model)

"""A session of the firewall: one client's connection, as a run whose calls are judged, recorded and labelled.

What the client's model writes is the user's word until it has read something else; from then on it carries the labels
of all that it was shown: values, counts, texts, and whether a call failed. The label is joined before an answer leaves,
so that no later call can be judged without it. Calls go on side by side; each has a gate and a person of its own, so
that a refused call ends neither the session nor another call, while places, grants and labels are shared.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError, JournalError, RunError, ToolError
from bicameral.firewall._approvals import CallPerson, PersonQuestion
from bicameral.firewall._calls import (
    MAX_NAME,
    MOST_REFUSED,
    CallAnswer,
    ClientCall,
    SessionState,
    Work,
    call_tool,
    document_work,
    extract_value,
    perform,
    reveal_text,
)
from bicameral.firewall._documents import DocumentKind, DocumentReader
from bicameral.firewall._listing import REVEAL_TOOL, ToolListing
from bicameral.firewall._results import SessionResults
from bicameral.labels import NOTHING, TRUSTED_USER, USER, Label, LabelTree, Source, join, rename_steps
from bicameral.limits import Meter, run_limits
from bicameral.patterns.handles import EXTRACT_TOOL
from bicameral.runs import (
    ENGINE_VERSION,
    LiveEffectHandler,
    RunOutcome,
    StepProgress,
    new_run_id,
    run_workload,
)

if TYPE_CHECKING:
    from bicameral.firewall._firewall import Firewall

UNTRUSTED_CLIENT = Label({Source("third_party", "client")}, {USER})
"""The label of a client whose model may write for others from the beginning."""
_FAULTS_OF_A_VALUE = ("journal.unrecordable", "journal.too-large")
"""One value cannot be recorded; everything else can."""
_UNUSED_SECONDS = 1e9
"""A session lasts as long as its client: what it may take is limited, and not how long it waits."""


class FirewallSession:
    """One client's session. Its run begins with the first call, so that a client that only looks leaves no record.

    Args:
        firewall: The tools, the policy and everything that sessions share.
        owner: Whose questions and results these are.
        read: What the client's model has read before, in a session that has ended without its doing.
    """

    def __init__(self, firewall: Firewall, owner: str = "local", read: Label = NOTHING) -> None:
        settings = firewall.settings
        self.id = new_run_id()
        self.owner = owner
        self.client = "an MCP client"
        self.outcome: RunOutcome | None = None
        self.last_used = time.monotonic()
        self.on_request: Callable[[Any], None] = _ignore_channel
        """Gets the channel to the client of each request."""
        self.state = SessionState(
            firewall,
            SessionResults(settings.kept_chars, settings.argument_chars),
            join(TRUSTED_USER if settings.client == "trusted" else UNTRUSTED_CLIENT, read),
            None if firewall.resources is None else DocumentReader(firewall.resources),
        )
        self.calls: set[asyncio.Task[CallAnswer]] = set()
        """The calls under way, those that wait for a person included."""
        self.made = self.failed = self.cancelled = 0
        self._beginning = 0
        """Calls that wait for the run to begin: they count as under way."""
        self._firewall = firewall
        self._suspended: dict[str, tuple[ClientCall, PersonQuestion]] = {}
        self._task: asyncio.Task[None] | None = None
        self._work: _SessionWork | None = None
        self._closing = asyncio.Event()
        self._begun = asyncio.Event()

    @property
    def label(self) -> Label:
        """The join of everything that the client's model has read."""
        return self.state.label

    # The run --------------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End the session: calls under way are cut off, what they have begun to change is finished, the run ends."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    @property
    def is_closed(self) -> bool:
        return self._closing.is_set() or (self._task is not None and self._task.done())

    async def _begin(self) -> _SessionWork:
        """The work of the run, which begins with the first call."""
        if self.is_closed:
            raise await self._ended_error()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        begun = asyncio.ensure_future(self._begun.wait())
        try:
            await asyncio.wait({self._task, begun}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        if self._work is None or not self._begun.is_set() or self.is_closed:
            raise await self._ended_error()
        return self._work

    async def _ended_error(self) -> BicameralError:
        """Why no call can be made any more: what ended the run, if it was a fault."""
        if self._task is not None:
            await asyncio.wait({self._task})
        error: object = getattr(self.outcome, "error", None)
        return error if isinstance(error, BicameralError) else RunError("firewall.ended", "the session has ended")

    async def _run(self) -> None:
        firewall, settings = self._firewall, self._firewall.settings
        limits = run_limits(calls=settings.calls, tokens=settings.tokens, money=settings.money, seconds=_UNUSED_SECONDS)
        decider = firewall.decider

        def begin(handler: LiveEffectHandler) -> _SessionWork:
            self.state.handler = handler
            self._work = _SessionWork(self, self._begun, self._closing)
            return self._work

        self.outcome = await run_workload(
            begin,
            lambda: {
                "request": f"a session of {self.client}",
                "firewall": settings.model_dump(mode="json", exclude_defaults=True),
                "owner": self.owner,
                "intent": None,
                "tools": {name: tool.fingerprint for name, tool in sorted(firewall.tools.tools.items())},
                "policy": decider.fingerprint,
                "mode": decider.mode,
                "caps": limits.to_json(),
                "engine": ENGINE_VERSION,
            },
            journal=firewall.journal,
            run=self.id,
            meter=Meter(limits),
            extractor=firewall.extractor,
            observer=self._note_progress,
            recorded_first=True,
        )

    def _note_progress(self, progress: StepProgress) -> None:
        if progress.kind == "started":
            self.state.started.add(progress.step)

    # Calls ----------------------------------------------------------------------------------------------------------

    def listings(self) -> tuple[ToolListing, ...]:
        """The tools that the client sees; reading the names of tools that nobody has reviewed counts as reading."""
        tools = self._firewall.tools
        self.state.label = join(self.state.label, tools.label)
        return tools.listings

    async def start_call(self, name: str, arguments: Mapping[str, Any], *, can_ask: bool) -> ClientCall:
        """Begin a call of a tool.

        Args:
            name: The name that the client wrote.
            arguments: The arguments that it wrote, with names of results in them.
            can_ask: Whether the client can put a question to its person.
        """
        own: dict[str, Work] = {REVEAL_TOOL: reveal_text}
        if self._firewall.extractor is not None:
            own[EXTRACT_TOOL] = extract_value
        return await self._start(ClientCall(name, arguments), own.get(name, call_tool), can_ask=can_ask)

    async def start_reading(self, server: str, kind: DocumentKind, number: int | None, *, can_ask: bool) -> ClientCall:
        """Begin to read a document of a server by its number, or the list of them if that is None."""
        call = ClientCall(f"{kind}s of {server}", {"number": number})
        return await self._start(call, document_work(server, kind, number), can_ask=can_ask)

    async def _start(self, call: ClientCall, do: Work, *, can_ask: bool) -> ClientCall:
        settings = self._firewall.settings
        self.last_used = time.monotonic()
        if len(self.calls) + self._beginning >= settings.calls_at_once:
            raise ToolError("firewall.busy", f"more than {settings.calls_at_once} calls are under way")
        # Taken before anything is awaited: others may ask for the same place meanwhile. There is no wait between giving
        # it back and adding the call.
        self._beginning += 1
        try:
            work = await self._begin()
        finally:
            self._beginning -= 1
        self.made += 1
        person = CallPerson(
            settings.approvals,
            settings.approval_seconds,
            self.state.memory,
            call.questions.put_nowait if can_ask else None,
            self._firewall.inbox,
            self.id,
            self.owner,
            f"{self.client} through the firewall",
        )
        # In the context of the run, so that its accounts and its trace count what the call takes; a copy for each, so
        # that nothing that one call sets is seen by another.
        doing = self._do(work, call, do, str(self.made), person)
        call.task = asyncio.create_task(doing, context=work.context.copy())
        self.calls.add(call.task)
        call.task.add_done_callback(self.calls.discard)
        return call

    async def _do(self, work: _SessionWork, call: ClientCall, do: Work, step: str, person: CallPerson) -> CallAnswer:
        read = self.state.label
        try:
            answer = await perform(self.state, call, do, step, person)
        except asyncio.CancelledError:
            self.cancelled += 1
            self._note_cancelled(step, call)
            raise
        except JournalError as error:
            words = "the call cannot be recorded"
            if error.code not in _FAULTS_OF_A_VALUE:
                # So nothing more is done, and nobody says that the run has ended.
                work.fatal = error
                self._closing.set()
                words += ", and the session ends"
            answer = CallAnswer(f"error: {words} [{error.code}]", read, error.code)
        finally:
            self.state.changing.discard(step)
        if answer.failed:
            self.failed += 1
        # Without the call that each source came from: otherwise the label, and with it the cost and the record of every
        # later call, would grow with each one before.
        self.state.label = join(self.state.label, rename_steps(answer.label, _without_step).flat)
        self.last_used = time.monotonic()
        return answer

    def _note_cancelled(self, step: str, call: ClientCall) -> None:
        """Record that nobody waits for a call any longer. One that changes nothing has ended with that."""
        handler, changing = self.state.handler, step in self.state.changing
        if handler is not None:
            if not changing:
                handler.in_flight.discard(step)
            with suppress(BicameralError):
                handler.record_note(f"{step}/cancelled", {"noted": "call-cancelled", "tool": call.name[:MAX_NAME]})

    # Questions that pass through the client -------------------------------------------------------------------------

    def suspend(self, call: ClientCall, question: PersonQuestion) -> None:
        """Keep a call whose question the client takes along, until it comes back with the answer."""
        self._suspended = {id_: kept for id_, kept in self._suspended.items() if not kept[1].reply.done()}
        self._suspended[question.id] = call, question

    def resume(self, question: str, name: str, arguments: Mapping[str, Any]) -> tuple[ClientCall, PersonQuestion]:
        """The call that a question belongs to; once, in time, and only for the very same call."""
        call, asked = self._suspended.get(question, (None, None))
        if call is None or asked is None or asked.reply.done():
            raise ToolError("firewall.no-question", "no question is open here, or it was answered already")
        if (call.name, _exact_json(call.arguments)) != (name, _exact_json(arguments)):
            raise ToolError("firewall.no-question", "this is not the call that was asked about")
        # Taken out before anything is done with it: a second answer finds nothing.
        del self._suspended[question]
        self.last_used = time.monotonic()
        return call, asked


@dataclass(slots=True, eq=False)
class _SessionWork:
    """The workload of a session: it goes on until the client is gone.

    Args:
        session: The session.
        begun: Set when calls may be made.
        closing: Ends it.
        context: The context of the run, in which its calls are made.
        fatal: Why nothing can be recorded any more.
    """

    session: FirewallSession
    begun: asyncio.Event
    closing: asyncio.Event
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    fatal: JournalError | None = None

    async def run(self) -> Any:
        # Here and not before: the run's accounts and its trace are in force now.
        self.context = contextvars.copy_context()
        self.begun.set()
        session = self.session
        try:
            await self.closing.wait()
        finally:
            for task in (left := set(session.calls)):
                task.cancel()
            if left:
                await asyncio.wait(left)
        if self.fatal is not None:
            raise self.fatal
        if session.state.handler is not None and session.state.handler.in_flight:
            # The client went while something was changed, and nobody knows its end: the record says what it is.
            raise asyncio.CancelledError
        ended = {"calls": session.made, "failed": session.failed, "cancelled": session.cancelled}
        return ended | ({"refused": refused} if (refused := session.state.refused) > MOST_REFUSED else {})

    @property
    def answer_labels(self) -> LabelTree | None:
        return self.session.label

    @property
    def written_labels(self) -> Mapping[str, LabelTree]:
        return self.session.state.written


def _without_step(step: str) -> str:
    return ""


def _ignore_channel(channel: object) -> None:
    return


def _exact_json(value: object) -> str:
    """A value as JSON that tells 1 from 1.0 and from true."""
    return json.dumps(value, sort_keys=True)

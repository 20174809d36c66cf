"""A conversation with a model that may ask for tools, under the law of labels.

Everything in a conversation has a label, and the conversation has the join of them all: the request and our own words
are the user's, a tool's result has the labels that the tool declares. What a model writes carries what it had read. So
once a stranger's text is in it, every later call is a stranger's wish: all its arguments and the fact that it is made
carry the label, and the door judges them like the calls of any plan.

Who is asked follows from the same label. As long as it is trusted, that is the privileged model. From the first word of
a stranger on it is the quarantined one, whose key and provider are its own: the privileged model never reads such a
text. What the quarantined model is shown of tools are words; nothing happens because it asks for one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from bicameral.errors import BicameralError, JournalError, ToolError, nearest
from bicameral.labels import NOTHING, TRUSTED_USER, USER, Label, Shade, Source, join, join_shades
from bicameral.models import Message, ModelReply, ToolCall
from bicameral.plans import after_call
from bicameral.reasoner import said_of
from bicameral.routing import Charge, charged, situated
from bicameral.runs import shade_json
from bicameral.sessions import Chambers, Listener, Planning, Session
from bicameral.telemetry import Fact, span, summary
from bicameral.tools import Registry, Tool
from bicameral.types import plain, value_to_json

from ._bounds import Meter
from ._outcome import Turn
from ._phases import ROLES, Params, PhaseName
from ._tools import arguments_of, result_text, schemas

MAX_TOKENS = 2048
_ENDS = ("run.refused", "run.needs-approval")


@dataclass(frozen=True, slots=True)
class Said:
    """Something in a conversation, and its label."""

    message: Message
    label: Label


@dataclass(frozen=True, slots=True)
class Audience:
    """Whoever watches: `phase` hears that a model is about to be asked, `text` what it writes, `turn` what came of it.

    `call` hears of each call of a tool: the label of what came, how long it took, and the code of a failure. Nobody who
    watches can change what happens.
    """

    phase: Callable[[PhaseName, str], None] | None = None
    text: Callable[[str], None] | None = None
    turn: Callable[[Turn], None] | None = None
    call: Callable[[str, Label, float, str | None], None] | None = None


@dataclass(frozen=True, slots=True)
class Voices:
    """The models of both chambers, and how they are asked."""

    chambers: Chambers
    params: Params = field(default_factory=Params)
    listener: Listener | None = None
    timeout: float | None = None
    max_tokens: int = MAX_TOKENS

    def session(self, role: Planning, *, trusted: bool) -> Session:
        """Who may read this conversation."""
        options: dict[str, Any] = {
            "max_tokens": self.max_tokens,
            "timeout": self.timeout,
            "listener": self.listener,
        }
        if trusted:
            return Session(role, self.chambers.privileged, (), **options)
        return Session("quarantined", self.chambers.quarantined, (), **options)


class Passage(Protocol):
    """Where a call is judged and then made: the door of the run, or whatever stands before it."""

    @property
    def closed(self) -> BaseException | None: ...

    async def pass_on(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        shades: Mapping[str, Shade],
        pc: Label,
        places: dict[str, Shade],
        note: Callable[[dict[str, Shade]], None],
        *,
        needed: bool,
    ) -> tuple[Any, Shade] | None: ...


class Notes(Protocol):
    """Whoever writes down what models wrote."""

    def model_called(self, step: str, facts: dict[str, Any]) -> None: ...


@dataclass(slots=True)
class Conversation:
    """One conversation under way; strategies say what is asked next."""

    voices: Voices
    door: Passage
    hands: Notes
    registry: Registry
    meter: Meter
    audience: Audience
    said: list[Said] = field(default_factory=list[Said])
    turns: list[Turn] = field(default_factory=list[Turn])
    left_open: list[str] = field(default_factory=list[str])
    written: dict[str, Shade] = field(default_factory=dict[str, Shade])
    """The labels of the places that were, or may have been, written to."""
    label: Label = NOTHING
    """The join of everything in it."""
    places: dict[str, Shade] = field(default_factory=dict[str, Shade])
    """The labels of the names that things were written to."""
    path: str = ""
    """Which part of a whole this is: the names of its steps in the record begin with it."""

    def system(self, text: str) -> None:
        self._add(Message("system", text), TRUSTED_USER)

    def tell(self, text: str, label: Label = TRUSTED_USER) -> None:
        """The request with its label, or our own words about what is in the conversation already."""
        self._add(Message("user", text), label)

    async def ask(
        self,
        phase: PhaseName,
        *,
        role: Planning | None = None,
        tools: bool = False,
        schema: dict[str, Any] | None = None,
    ) -> ModelReply:
        """The next reply, asked of the model that this phase and the conversation's label call for."""
        role, read = role or ROLES[phase], self.label
        if tools:
            self.meter.round()
        session = self.voices.session(role, trusted=read.trusted)
        if self.audience.phase is not None:
            _quietly(self.audience.phase, phase, session.role)
        with situated(phase=phase), charged() as charges:
            reply = await session.converse(
                tuple(each.message for each in self.said),
                job=role,
                tools=schemas(self.registry) if tools else (),
                json_schema=schema,
                model=self.voices.params.phase_models.get(phase),
                hear=self.audience.text,
            )
        if not tools and reply.calls:
            # It was shown none: whatever it asks for is no call of anything.
            reply = replace(reply, calls=())
        self._add(Message("assistant", reply.text, reply.calls), read)
        self._note(phase, role, session, reply, read, charges)
        return reply

    async def serve(self, reply: ModelReply, *, because: Label = NOTHING) -> int:
        """Make the calls that a reply asks for, one after another, as far as they may be made, and tell what came.

        `because` is the label of whatever else it was that decided that they are made. How many gave a result is said.
        """
        # What was written carries what had been read when it was written, whatever has come in since.
        read, turn, gave = join(self.turns[-1].read, because), len(self.turns), 0
        for number, call in enumerate(reply.calls):
            self.meter.tool()
            begun = time.perf_counter()
            text, label, failed = await self._served(f"{self.path}{turn}/{number}", call, read)
            if self.audience.call is not None:
                _quietly(self.audience.call, str(call.name), label, time.perf_counter() - begun, failed)
            self._add(Message("tool", text, answers=call.id), label)
            gave += failed is None
        return gave

    def leave(self, call: ToolCall, why: str) -> None:
        """Say of a call that a reply asks for that it is not made; these are our own words."""
        self._add(Message("tool", why, answers=call.id), TRUSTED_USER)

    async def _served(self, step: str, call: ToolCall, read: Label) -> tuple[str, Label, str | None]:
        """What the model is told of a call, the label of that, and the code of what failed."""
        try:
            tool, arguments = self._understood(call)
        except ToolError as error:
            # It says only what the model itself wrote and what tools there are.
            return f"error: {error}", read, error.code
        shades: dict[str, Shade] = dict.fromkeys(arguments, read)
        facts: dict[str, Fact] = {"bicameral.step": step, "bicameral.step.do": "call", "gen_ai.tool.name": tool.name}
        try:
            with span("step", tool.name, facts) as told:
                given = await self.door.pass_on(
                    step, tool, arguments, shades, read, self.places, self._note_written, needed=True
                )
                if told.on and given is not None:
                    told.tell(summary("bicameral.result", given[1].flat))
        except BicameralError as error:
            if self.door.closed is not None or isinstance(error, JournalError) or error.code in _ENDS:
                raise
            return *self._failed(step, tool, shades, read, error), error.code
        if given is None:
            raise ToolError("tools.failed", f"{tool.name!r} was not called")
        value, shade = given
        return result_text(value), shade.flat, None

    def _understood(self, call: ToolCall) -> tuple[Tool, dict[str, Any]]:
        """The tool and the arguments that a call means; whatever a model wrote is held to the tool's declaration."""
        tool = self.registry.get(call.name) if type(call.name) is str else None
        if tool is None:
            raise ToolError(
                "tools.unknown",
                f"there is no tool {str(call.name)[:60]!r}",
                nearest=nearest(str(call.name)[:60], self.registry.names),
            )
        try:
            written = plain(call.arguments)
        except TypeError as error:
            raise ToolError("tools.wrong-type", f"these are no arguments: {error}") from None
        if type(written) is not dict:
            raise ToolError("tools.wrong-type", "these are no arguments", expected="an object with the arguments")
        arguments = arguments_of(tool, cast("dict[str, Any]", written))
        tool.bind(arguments)
        return tool, arguments

    def _failed(
        self, step: str, tool: Tool, shades: dict[str, Shade], read: Label, error: BicameralError
    ) -> tuple[str, Label]:
        """A failure is as trusted as what would have come; its message may quote anybody, so we have our own words."""
        label = after_call(tool, shades, None, step, read).flat
        if error.code == "policy.denied":
            return f"error: {error.message}", label
        if join(self.label, label).trusted:
            return f"error: {said_of(error.code)}", label
        message = Label((Source("third_party", tool.name, "", step),), {USER})
        return f"error: {error}", join(label, message)

    def _add(self, message: Message, label: Label) -> None:
        self.said.append(Said(message, label))
        self.label = join(self.label, label)

    def _note_written(self, places: dict[str, Shade]) -> None:
        for place, shade in places.items():
            self.written[place] = join_shades(self.written[place], shade) if place in self.written else shade

    def _note(
        self,
        phase: PhaseName,
        role: str,
        session: Session,
        reply: ModelReply,
        read: Label,
        charges: Sequence[Charge],
    ) -> None:
        turn = Turn(
            len(self.turns) + 1,
            phase,
            role,
            "privileged" if read.trusted else "quarantined",
            reply.model or session.provider.name,
            read,
            reply.text,
            tuple(str(call.name) for call in reply.calls),
            reply.route,
            reply.usage,
            reply.seconds,
            reply.degraded,
        )
        self.turns.append(turn)
        calls = [{"id": str(each.id), "name": str(each.name), "arguments": _recorded(each)} for each in reply.calls]
        paid = [charge.to_json() for charge in charges]
        body = turn.to_json() | {"text": reply.text, "calls": calls, "shade": shade_json(read), "charges": paid}
        self.hands.model_called(f"{self.path}{turn.number}", body)
        if self.audience.turn is not None:
            _quietly(self.audience.turn, turn)


def _recorded(call: ToolCall) -> Any:
    try:
        return value_to_json(plain(call.arguments))
    except TypeError as error:
        return f"no arguments: {error}"


def _quietly(tell: Callable[..., None], *what: Any) -> None:
    try:
        tell(*what)
    except Exception:
        return

"""A conversation with a model that may ask for tools, with a label on every message.

Everything in a conversation has a label, and the conversation has the join of them all: the request and our own words
are the user's, a tool's result has the labels that the tool declares. What a model writes carries what it had read. So
once an untrusted text is in it, every later call is untrusted: all its arguments and the fact that it is made carry the
label, and the call gate judges them like the calls of any plan.

Which model is asked follows from the same label. As long as it is trusted, that is the privileged model. From the first
untrusted word on it is the quarantined one, whose key and provider are its own: the privileged model never reads such a
text. What the quarantined model is shown of tools are words; nothing happens because it asks for one. What a model
writes as a call is read strictly.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, cast

from bicameral.errors import BicameralError, JournalError, ToolError, nearest_name
from bicameral.labels import NOTHING, TRUSTED_USER, USER, Label, LabelTree, Source, join, join_trees
from bicameral.limits import Meter, PlanningRole, collect_charges
from bicameral.models import Message, ModelReply, ToolCall, ToolSchema
from bicameral.patterns._strategy_types import PHASE_ROLES, ModelTurn, PhaseName, StrategyParams
from bicameral.patterns.reasoner import describe_failure
from bicameral.plans import labels_after_call
from bicameral.routing import call_context
from bicameral.runs import label_tree_json
from bicameral.sessions import Chambers, Listener, Session
from bicameral.telemetry import Fact, label_summary, span
from bicameral.tools import Registry, Tool
from bicameral.types import (
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    ListType,
    OptionalType,
    RecordType,
    TimeType,
    TupleType,
    Type,
    to_plain,
    type_json_schema,
    value_to_json,
)

MAX_RESULT = 20_000
"""How many characters of a result a model reads; a note says that the rest was cut."""


def tool_schemas(registry: Registry) -> tuple[ToolSchema, ...]:
    """Every tool of a registry for a model to read."""
    return tuple(
        ToolSchema(tool.name, _tool_summary(tool), _tool_parameters(tool)) for tool in _readable_tools(registry)
    )


def list_tools(registry: Registry) -> str:
    """The same for a model that is to plan with them and cannot call them yet."""
    return "\n".join(f"- {tool.signature}: {_tool_summary(tool)}" for tool in _readable_tools(registry)) or "(none)"


def _readable_tools(registry: Registry) -> Iterator[Tool]:
    """The tools that a privileged model may read of.

    A program that describes itself, and whose word the user does not take, could say anything there. Unlike a plan, a
    conversation has no place where neutral names could be bound, so such a tool is left out.
    """
    return (tool for tool in registry if not tool.self_described)


def _tool_summary(tool: Tool) -> str:
    return " ".join(tool.doc.split())[:1000]


def _tool_parameters(tool: Tool) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for argument in tool.arguments:
        described = {"description": argument.doc} if argument.doc else {}
        properties[argument.name] = type_json_schema(argument.type) | described
    return {
        "type": "object",
        "properties": properties,
        "required": [argument.name for argument in tool.arguments if argument.required],
        "additionalProperties": False,
    }


def parse_arguments(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call from JSON: dates and times are read, all else must already fit and is left as it is."""
    types = {argument.name: argument.type for argument in tool.arguments}
    return {name: _parse_value(value, types[name]) if name in types else value for name, value in arguments.items()}


def _parse_value(value: Any, wanted: Type) -> Any:
    match wanted, value:
        case OptionalType(item=item), _:
            return None if value is None else _parse_value(value, item)
        case DateTimeType() | DateType() | TimeType(), str():
            return _parse_moment(value, wanted)
        case DurationType(), int() | float() if not isinstance(value, bool):
            return _parse_duration(value)
        case ListType(item=item), list():
            return [_parse_value(each, item) for each in cast("list[Any]", value)]
        case TupleType(items=items), list() if len(cast("list[Any]", value)) == len(items):
            return [_parse_value(each, item) for each, item in zip(cast("list[Any]", value), items, strict=True)]
        case DictType(value=item), dict():
            return {name: _parse_value(each, item) for name, each in cast("dict[str, Any]", value).items()}
        case RecordType(), dict():
            entries = cast("dict[str, Any]", value)
            fields = {name: wanted.get(name) for name in entries}
            return {
                name: each if (kind := fields[name]) is None else _parse_value(each, kind)
                for name, each in entries.items()
            }
        case _:
            return value


def _parse_moment(text: str, wanted: Type) -> Any:
    kind = dt.datetime if isinstance(wanted, DateTimeType) else dt.date if isinstance(wanted, DateType) else dt.time
    try:
        return kind.fromisoformat(text)
    except ValueError:
        # It stays a text, and the tool refuses it with the type that it wants.
        return text


def _parse_duration(seconds: float) -> Any:
    try:
        return dt.timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return seconds


def render_result(value: Any) -> str:
    """A result as a model reads it: a text as it is, anything else as JSON, cut to a length."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_json_default)
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[:MAX_RESULT]}\n… ({len(text) - MAX_RESULT:,} more characters are not shown)"


def _json_default(value: object) -> Any:
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


@dataclass(slots=True)
class RepeatCounter:
    """Counts equal calls. A read may be repeated after a change, so a change resets the counts of reads."""

    registry: Registry
    reads: Counter[str] = field(default_factory=Counter[str])
    changes: Counter[str] = field(default_factory=Counter[str])

    def count(self, call: ToolCall) -> int:
        """How often this call has been asked for, this time included."""
        key = f"{call.name} {_argument_key(call)}"
        found = self.registry.get(str(call.name))
        if found is None or not found.changes:
            self.reads[key] += 1
            return self.reads[key]
        self.reads.clear()
        self.changes[key] += 1
        return self.changes[key]


def _argument_key(call: ToolCall) -> str:
    try:
        return json.dumps(to_plain(call.arguments), sort_keys=True, default=str)
    except (TypeError, ValueError):
        return "(no arguments)"


MAX_TOKENS = 2048
FINAL_CODES = ("run.refused", "run.needs-approval")
"""A person refused, or there is nobody to approve: these end the whole run."""


def join_written_labels(known: dict[str, LabelTree], places: Mapping[str, LabelTree]) -> None:
    """Join the labels of places that were written to into those that are known."""
    for place, tree in places.items():
        known[place] = join_trees(known[place], tree) if place in known else tree


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message and its label."""

    message: Message
    label: Label


@dataclass(frozen=True, slots=True)
class ConversationObserver:
    """Callbacks that observe a conversation; one that fails changes nothing.

    Args:
        phase: Gets the phase and the role before a model is asked.
        text: Gets the text of a reply while it is written.
        turn: Gets each reply.
        call: Gets each call of a tool: its name, the label of the result, the seconds, and the code of a failure.
    """

    phase: Callable[[PhaseName, str], None] | None = None
    text: Callable[[str], None] | None = None
    turn: Callable[[ModelTurn], None] | None = None
    call: Callable[[str, Label, float, str | None], None] | None = None


@dataclass(frozen=True, slots=True)
class ModelPair:
    """The models of both chambers, and how they are asked."""

    chambers: Chambers
    params: StrategyParams = field(default_factory=StrategyParams)
    listener: Listener | None = None
    timeout: float | None = None
    max_tokens: int = MAX_TOKENS

    def session(self, role: PlanningRole, *, trusted: bool) -> Session:
        """A session with the model that may read the conversation."""
        options: dict[str, Any] = {"max_tokens": self.max_tokens, "timeout": self.timeout, "listener": self.listener}
        if trusted:
            return Session(role, self.chambers.privileged, (), **options)
        return Session("quarantined", self.chambers.quarantined, (), **options)

    async def ask(
        self,
        role: PlanningRole,
        messages: tuple[Message, ...],
        label: Label,
        phase: PhaseName | None,
        *,
        tools: tuple[ToolSchema, ...] | None = None,
        **options: Any,
    ) -> tuple[ModelReply, str, list[dict[str, Any]]]:
        """A reply of the model that may read under this label, the name of that model, and the charges.

        Args:
            tools: The tools that it may ask for; a model that is shown none cannot ask for a call.
            options: Those of `Session.converse`.
        """
        session = self.session(role, trusted=label.trusted)
        model = None if phase is None else self.params.phase_models.get(phase)
        with call_context(phase=phase), collect_charges() as charges:
            reply = await session.converse(messages, job=role, tools=tools or (), model=model, **options)
        if tools is None and reply.calls:
            # It was shown none: whatever it asks for is no call of anything.
            reply = replace(reply, calls=())
        return reply, reply.model or session.provider.name, [charge.to_json() for charge in charges]


class CallPath(Protocol):
    """Decides about a call and makes it: the call gate of the run, or a wrapper around it."""

    @property
    def failure(self) -> BaseException | None: ...

    async def make_call(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        trees: Mapping[str, LabelTree],
        pc: Label,
        places: dict[str, LabelTree],
        note: Callable[[dict[str, LabelTree]], None],
        /,
        *,
        needed: bool,
    ) -> tuple[Any, LabelTree] | None: ...


class ModelCallRecorder(Protocol):
    """Records the replies of models."""

    def record_model_call(self, step: str, facts: dict[str, Any]) -> None: ...


@dataclass(slots=True)
class ToolConversation:
    """One conversation; the strategy decides what is asked next."""

    models: ModelPair
    call_gate: CallPath
    recorder: ModelCallRecorder
    registry: Registry
    meter: Meter
    audience: ConversationObserver
    messages: list[LabelledMessage] = field(default_factory=list[LabelledMessage])
    turns: list[ModelTurn] = field(default_factory=list[ModelTurn])
    left_open: list[str] = field(default_factory=list[str])
    written_labels: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    """The labels of the places that were, or may have been, written to."""
    label: Label = NOTHING
    """The join of everything in it."""
    places: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    """The labels of the names that things were written to."""
    path: str = ""
    """The prefix of its step names in the record."""

    def system(self, text: str) -> None:
        self._add(Message("system", text), TRUSTED_USER)

    def tell(self, text: str, label: Label = TRUSTED_USER) -> None:
        """The request with its label, or our own words about what is in the conversation already."""
        self._add(Message("user", text), label)

    async def ask(
        self,
        phase: PhaseName,
        *,
        role: PlanningRole | None = None,
        tools: bool = False,
        schema: dict[str, Any] | None = None,
    ) -> ModelReply:
        """The next reply, asked of the model that this phase and the conversation's label call for."""
        role, read = role or PHASE_ROLES[phase], self.label
        if tools:
            self.meter.count_round()
        if self.audience.phase is not None:
            _notify_observer(self.audience.phase, phase, role if read.trusted else "quarantined")
        reply, model, charges = await self.models.ask(
            role,
            tuple(each.message for each in self.messages),
            read,
            phase,
            tools=tool_schemas(self.registry) if tools else None,
            json_schema=schema,
            hear=self.audience.text,
        )
        self._add(Message("assistant", reply.text, reply.calls), read)
        self._note(phase, role, model, reply, read, charges)
        return reply

    async def make_calls(self, reply: ModelReply, *, because: Label = NOTHING) -> int:
        """Make the calls that a reply asks for, one after another, as policy allows; the number that gave a result.

        `because` is the label of whatever else decided that they are made.
        """
        # A reply has the label of what the model had read when it wrote it, whatever was added since.
        read, turn, gave = join(self.turns[-1].read, because), len(self.turns), 0
        for number, call in enumerate(reply.calls):
            self.meter.count_tool_call()
            begun = time.perf_counter()
            text, label, failed = await self._make_call(f"{self.path}{turn}/{number}", call, read)
            if self.audience.call is not None:
                _notify_observer(self.audience.call, str(call.name), label, time.perf_counter() - begun, failed)
            self._add(Message("tool", text, answers=call.id), label)
            gave += failed is None
        return gave

    def decline_call(self, call: ToolCall, why: str) -> None:
        """Answer a call that is not made, in words of the program."""
        self._add(Message("tool", why, answers=call.id), TRUSTED_USER)

    async def _make_call(self, step: str, call: ToolCall, read: Label) -> tuple[str, Label, str | None]:
        """The text that the model gets for a call, its label, and the code of a failure."""
        try:
            tool, arguments = self._parse_call(call)
        except ToolError as error:
            # The message has only what the model itself wrote and the names of tools.
            return f"error: {error}", read, error.code
        trees: dict[str, LabelTree] = dict.fromkeys(arguments, read)
        facts: dict[str, Fact] = {"bicameral.step": step, "bicameral.step.do": "call", "gen_ai.tool.name": tool.name}
        try:
            with span("step", tool.name, facts) as told:
                given = await self.call_gate.make_call(
                    step,
                    tool,
                    arguments,
                    trees,
                    read,
                    self.places,
                    partial(join_written_labels, self.written_labels),
                    needed=True,
                )
                if told.is_recording and given is not None:
                    told.set_facts(label_summary("bicameral.result", given[1].flat))
        except BicameralError as error:
            if self.call_gate.failure is not None or isinstance(error, JournalError) or error.code in FINAL_CODES:
                raise
            return *self._failure_text(step, tool, trees, read, error), error.code
        if given is None:
            raise ToolError("tools.failed", f"{tool.name!r} was not called")
        value, tree = given
        return render_result(value), tree.flat, None

    def _parse_call(self, call: ToolCall) -> tuple[Tool, dict[str, Any]]:
        """The tool and the arguments that a call means; whatever a model wrote is held to the tool's declaration."""
        tool = self.registry.get(call.name) if type(call.name) is str else None
        if tool is None:
            raise ToolError(
                "tools.unknown",
                f"there is no tool {str(call.name)[:60]!r}",
                nearest=nearest_name(str(call.name)[:60], self.registry.names),
            )
        try:
            written = to_plain(call.arguments)
        except TypeError as error:
            raise ToolError("tools.wrong-type", f"these are no arguments: {error}") from None
        if type(written) is not dict:
            raise ToolError("tools.wrong-type", "these are no arguments", expected="an object with the arguments")
        arguments = parse_arguments(tool, cast("dict[str, Any]", written))
        tool.bind(arguments)
        return tool, arguments

    def _failure_text(
        self, step: str, tool: Tool, trees: dict[str, LabelTree], read: Label, error: BicameralError
    ) -> tuple[str, Label]:
        """The text and the label of a failure: fixed words, since its message may quote anything."""
        label = labels_after_call(tool, trees, None, step, read).flat
        if error.code == "policy.denied":
            return f"error: {error.message}", label
        if join(self.label, label).trusted:
            return f"error: {describe_failure(error.code)}", label
        message = Label((Source("third_party", tool.name, "", step),), {USER})
        return f"error: {error}", join(label, message)

    def _add(self, message: Message, label: Label) -> None:
        self.messages.append(LabelledMessage(message, label))
        self.label = join(self.label, label)

    def _note(
        self, phase: PhaseName, role: str, model: str, reply: ModelReply, read: Label, charges: list[dict[str, Any]]
    ) -> None:
        turn = ModelTurn(
            len(self.turns) + 1,
            phase,
            role,
            "privileged" if read.trusted else "quarantined",
            model,
            read,
            reply.text,
            tuple(str(call.name) for call in reply.calls),
            reply.route,
            reply.usage,
            reply.seconds,
            reply.degraded,
        )
        self.turns.append(turn)
        calls = [
            {"id": str(each.id), "name": str(each.name), "arguments": _arguments_json(each)} for each in reply.calls
        ]
        body = turn.to_json() | {"text": reply.text, "calls": calls, "shade": label_tree_json(read), "charges": charges}
        self.recorder.record_model_call(f"{self.path}{turn.number}", body)
        if self.audience.turn is not None:
            _notify_observer(self.audience.turn, turn)


def _arguments_json(call: ToolCall) -> Any:
    try:
        return value_to_json(to_plain(call.arguments))
    except TypeError as error:
        return f"no arguments: {error}"


def _notify_observer(tell: Callable[..., None], *what: Any) -> None:
    try:
        tell(*what)
    except Exception:
        return

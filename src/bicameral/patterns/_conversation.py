"""A conversation with a model that may ask for tools, with a label on every message.

Everything in a conversation has a label, and the conversation has the join of them all: the request and our own words
are the user's, a tool's result has the labels that the tool declares. What a model writes carries what it had read. So
once an untrusted text is in it, every later call is untrusted: all its arguments and the fact that it is made carry the
label, and the call gate judges them like the calls of any plan.

Which model is asked follows from the same label. As long as it is trusted, that is the privileged model. From the first
untrusted word on it is the quarantined one, whose key and provider are its own: the privileged model never reads such a
text. (`TypedConversation` shows it views instead, and goes on with it.) What the quarantined model is shown of tools
are words; nothing happens because it asks for one. What a model writes as a call is read strictly.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from bicameral.errors import BicameralError, JournalError, ToolError, nearest_name
from bicameral.journal import EventKind
from bicameral.labels import NOTHING, TRUSTED_USER, USER, Label, LabelTree, Source, join, join_trees
from bicameral.limits import Meter, PlanningRole, collect_charges
from bicameral.models import Message, ModelReply, ToolCall, ToolSchema
from bicameral.patterns._error_log import REPEATED, REPEATED_CODE, TOO_MANY_CODE, CompactError, ErrorLog
from bicameral.patterns._history import LabelledMessage as LabelledMessage, compact_messages
from bicameral.patterns._prompt_marker import PromptMarker
from bicameral.patterns._strategy_types import PHASE_ROLES, ModelTurn, PhaseName, StrategyParams
from bicameral.patterns._tool_messages import parse_arguments, read_arguments, render_result, tool_schemas
from bicameral.patterns.reasoner import describe_failure
from bicameral.plans import labels_after_call
from bicameral.routing import call_context
from bicameral.runs import AskModel, CallPath, ModelAnswer, StepLabels, label_tree_json
from bicameral.sessions import Chambers, Listener, Session
from bicameral.telemetry import Fact, label_summary, span
from bicameral.tools import Registry, Tool
from bicameral.types import to_plain


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
FINAL_CODES = (
    "run.refused",
    "run.needs-approval",
    "run.in-doubt",
    "pattern.canary-leaked",
    REPEATED_CODE,
    TOO_MANY_CODE,
)
"""A person refused, nobody can approve, a reader was hijacked, errors have no end: these end the whole run.

So does a call that may have happened and was not to be repeated: a model that is told of a failure asks for it again.
"""


def join_written_labels(known: dict[str, LabelTree], places: Mapping[str, LabelTree]) -> None:
    """Join the labels of places that were written to into those that are known."""
    for place, tree in places.items():
        known[place] = join_trees(known[place], tree) if place in known else tree


@dataclass(frozen=True, slots=True)
class CallReport:
    """What a model is told of a call that it asked for.

    Args:
        label: The label of the text.
        failed: The code of a failure.
        name: The name under which the result is kept, if it is.
        place: The place that the text of a failure begins with.
    """

    text: str
    label: Label
    failed: str | None = None
    name: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """The tool and the arguments that a call means, with a label tree for each argument."""

    tool: Tool
    arguments: dict[str, Any]
    trees: dict[str, LabelTree]


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
    seed: int = 0
    """Added to the seed of every request: repeats of one run differ where the temperature is above 0."""
    hint: str | None = None
    """What kind of work it is, for the routers."""
    tier: str | None = None
    """How capable a model it needs, for the routers."""

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
        views_only: bool = False,
        **options: Any,
    ) -> ModelAnswer:
        """A reply of the model that may read under this label, the name of that model, and the charges.

        Args:
            tools: The tools that it may ask for; a model that is shown none cannot ask for a call.
            views_only: Whether all that is untrusted in the messages are privileged views of results, which the
                privileged model may read.
            options: Those of `Session.converse`.
        """
        if self.seed:
            options["seed"] = options.get("seed", 0) + self.seed
        session = self.session(role, trusted=label.trusted or views_only)
        model = None if phase is None else self.params.phase_models.get(phase)
        hinted = {} if self.hint is None else {"hint": self.hint}
        with call_context(phase=phase, tier=self.tier, **hinted), collect_charges() as charges:
            reply = await session.converse(messages, job=role, tools=tools or (), model=model, **options)
        if tools is None and reply.calls:
            # It was shown none: whatever it asks for is no call of anything.
            reply = replace(reply, calls=())
        return ModelAnswer(reply, reply.model or session.provider.name, tuple(charges))


class ModelCalls(Protocol):
    """The way of a run to models: it records their replies, or has them from a record."""

    async def ask_model(self, step: str, facts: dict[str, Any], ask: AskModel, /) -> ModelAnswer: ...

    def record_held_call(
        self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], labels: StepLabels
    ) -> None: ...


def prompt_fingerprint(
    messages: Sequence[Message],
    tools: Sequence[ToolSchema] = (),
    schema: Mapping[str, Any] | None = None,
    **options: Any,
) -> str:
    """A hash of what a model is asked, to compare a replay with its record."""
    written = [
        [
            each.speaker,
            each.text,
            [[call.id, str(call.name), str(call.arguments)] for call in each.calls],
            each.answers,
        ]
        for each in messages
    ]
    whole = [written, [[each.name, each.description, each.parameters] for each in tools], schema, options]
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[:32]


LOOKING_EFFECTS = ("pure", "read")
"""The effects of the tools that a reflection may use."""
NOT_A_READ = "not made: while looking back only tools that read may be called. Say in the verdict what is to be done."


@dataclass(slots=True)
class ToolConversation:
    """One conversation; the strategy decides what is asked next."""

    models: ModelPair
    call_gate: CallPath
    recorder: ModelCalls
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
    history: int | None = None
    """Characters beyond which its oldest parts are shortened; None: never."""
    open_reason: str = ""
    """Why the model that reads untrusted text in it sees more than one typed sub-task and the data."""
    changed: list[str] = field(default_factory=list[str])
    """The tools whose calls have changed something."""
    temperature: float = 0.0
    seed: int = 0
    """Above a temperature of 0, another seed gives other replies."""
    marker: PromptMarker | None = None
    """Marks untrusted results."""
    shorten_result: Callable[[str], str] | None = None
    """The text of a result as the model reads it."""
    errors: ErrorLog | None = None
    """Compacts errors, and counts them."""
    told_errors: dict[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])
    """The message that tells each kind of error."""

    @property
    def views_only(self) -> bool:
        """Whether all that is untrusted in it are privileged views, so that the privileged model continues it."""
        return False

    @property
    def is_privileged(self) -> bool:
        """Whether the privileged model may read it as it is now."""
        return self.label.trusted or self.views_only

    def only_extracts(self, reply: ModelReply) -> bool:
        """Whether a reply asks for nothing but values of results that it has."""
        return False

    def finish(self, text: str) -> str:
        """The answer that a final reply means."""
        return text

    def value_names(self) -> str:
        """A sentence on the results that an answer can use by name; empty if there are none."""
        return ""

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
        looking: bool = False,
        schema: dict[str, Any] | None = None,
        only: Collection[str] | None = None,
        must_call: bool = False,
    ) -> ModelReply:
        """The next reply, asked of the model that this phase and the conversation's label call for.

        Args:
            tools: Whether it may ask for tools.
            looking: With it, only for those that read.
            schema: The schema of the reply.
            only: The names of the tools that it may ask for, by default all.
            must_call: Whether it must ask for one.
        """
        role, read = role or PHASE_ROLES[phase], self.label
        if tools:
            self.meter.count_round()
        if self.audience.phase is not None:
            _notify_observer(self.audience.phase, phase, role if self.is_privileged else "quarantined")
        messages, privileged = self._prompt(), self.is_privileged
        shown = self._schemas(looking=looking) if tools or looking else None
        if shown is not None and only is not None:
            shown = tuple(each for each in shown if each.name in only)
        options = self._sampling | ({"must_call": True} if must_call else {})
        facts: dict[str, Any] = {
            "turn": len(self.turns) + 1,
            "phase": phase,
            "role": role,
            "chamber": "privileged" if privileged else "quarantined",
            "trusted": read.trusted,
            "shade": label_tree_json(read),
            "prompt": prompt_fingerprint(messages, shown or (), schema, **options),
        }
        if not privileged and self.open_reason:
            facts |= {"rule_two": False, "open_reason": self.open_reason}

        async def ask() -> ModelAnswer:
            return await self.models.ask(
                role,
                messages,
                read,
                phase,
                tools=shown,
                views_only=self.views_only,
                json_schema=schema,
                hear=self.audience.text,
                **options,
            )

        answer = await self.recorder.ask_model(f"{self.path}{facts['turn']}", facts, ask)
        if self.marker is not None:
            self.marker.check_reply(answer.reply.text)
        self._add(Message("assistant", answer.reply.text, answer.reply.calls), read)
        self._note(phase, role, answer, read)
        return answer.reply

    @property
    def _sampling(self) -> dict[str, Any]:
        """The options of sampling; none where the reply is the likeliest one, as in records of earlier versions."""
        return {"temperature": self.temperature, "seed": self.seed} if self.temperature else {}

    def _prompt(self) -> tuple[Message, ...]:
        """The messages that the next model reads."""
        return compact_messages(self.messages, self.history).messages

    def _schemas(self, *, looking: bool) -> tuple[ToolSchema, ...]:
        """The tools that the next model may ask for."""
        schemas = tool_schemas(self.registry)
        return tuple(each for each in schemas if self._only_reads(each.name)) if looking else schemas

    def _only_reads(self, name: str) -> bool:
        tool = self.registry.get(name)
        return tool is None or tool.effect in LOOKING_EFFECTS

    async def make_calls(self, reply: ModelReply, *, because: Label = NOTHING, looking: bool = False) -> int:
        """Make the calls that a reply asks for, one after another, as policy allows; the number that gave a result.

        Args:
            because: The label of whatever else decided that they are made.
            looking: Whether only calls that read are made; any other is recorded as denied.
        """
        # A reply has the label of what the model had read when it wrote it, whatever was added since.
        read, turn, gave = join(self.turns[-1].read, because), len(self.turns), 0
        for number, call in enumerate(reply.calls):
            if self.errors is not None:
                self.errors.require()
            self.meter.count_tool_call()
            begun = time.perf_counter()
            report = await self._make_call(f"{self.path}{turn}/{number}", call, read, looking=looking)
            if self.audience.call is not None:
                seconds = time.perf_counter() - begun
                _notify_observer(self.audience.call, str(call.name), report.label, seconds, report.failed)
            if self.errors is not None:
                report = self._compact_error(self.errors, call, report)
            self._add(Message("tool", self._mark(report), answers=call.id), report.label, report.name)
            gave += report.failed is None
        if self.errors is not None:
            self.errors.require()
        return gave

    def _compact_error(self, errors: ErrorLog, call: ToolCall, report: CallReport) -> CallReport:
        """The report with its error in one line. An error of the same kind that was told before is told no more."""
        if report.failed is None:
            errors.add_success()
            return report
        tool = str(call.name) if str(call.name) in self.registry else "a tool that does not exist"
        error = CompactError.of(report.failed, tool, report.text, report.place)
        if (before := self.told_errors.get(error.key)) is not None:
            told = self.messages[before]
            self.messages[before] = replace(told, message=replace(told.message, text=REPEATED))
        self.told_errors[error.key] = len(self.messages)
        return replace(report, text=error.line(errors.add(error)))

    def _mark(self, report: CallReport) -> str:
        """The text of a report as it stands in the prompt: an untrusted one is marked, and the task follows it."""
        if self.marker is None or report.label.trusted:
            return report.text
        return f"{self.marker.mark(report.text)}\n{self.marker.anchor}"

    def decline_call(self, call: ToolCall, why: str) -> None:
        """Answer a call that is not made, in words of the program."""
        self._add(Message("tool", why, answers=call.id), TRUSTED_USER)

    async def _make_call(self, step: str, call: ToolCall, read: Label, *, looking: bool) -> CallReport:
        """Make one call, if it may be made, and say what the model is told of it."""
        try:
            parsed = self._parse_call(call, read)
        except ToolError as error:
            # The message has only what the model itself wrote and the names of tools.
            return CallReport(f"error: {error}", read, error.code)
        tool, arguments, trees = parsed.tool, parsed.arguments, parsed.trees
        if looking and tool.effect not in LOOKING_EFFECTS:
            return self._refuse_change(step, parsed, read)
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
            if self.ends_run(error):
                raise
            text, label = self._failure_text(step, tool, trees, read, error)
            return CallReport(text, label, error.code, place=str(error.place or ""))
        if given is None:
            raise ToolError("tools.failed", f"{tool.name!r} was not called")
        if tool.changes:
            self.changed.append(tool.name)
        return self._report_result(tool, *given)

    def ends_run(self, error: BicameralError) -> bool:
        """Whether an error ends the whole run: a person refused, nobody is there to approve, or nothing is recorded."""
        return self.call_gate.failure is not None or isinstance(error, JournalError) or error.code in FINAL_CODES

    def _report_result(self, tool: Tool, value: Any, tree: LabelTree) -> CallReport:
        """What the model is told of a result."""
        text = render_result(value)
        return CallReport(text if self.shorten_result is None else self.shorten_result(text), tree.flat)

    def _refuse_change(self, step: str, parsed: ParsedCall, read: Label) -> CallReport:
        """Record a call that a reflection may not make."""
        labels = StepLabels(parsed.trees, read, lambda _: read)
        bound = parsed.tool.bind(parsed.arguments)
        self.recorder.record_held_call(step, "call-denied", parsed.tool, bound, labels)
        return CallReport(NOT_A_READ, read, "strategy.only-reads")

    def _parse_call(self, call: ToolCall, read: Label) -> ParsedCall:
        """The tool and the arguments that a call means; whatever a model wrote is held to the tool's declaration."""
        tool = self._find_tool(call)
        arguments = parse_arguments(tool, read_arguments(call))
        tool.bind(arguments)
        return ParsedCall(tool, arguments, dict.fromkeys(arguments, read))

    def _find_tool(self, call: ToolCall) -> Tool:
        tool = self.registry.get(call.name) if type(call.name) is str else None
        if tool is None:
            raise ToolError(
                "tools.unknown",
                f"there is no tool {str(call.name)[:60]!r}",
                nearest=nearest_name(str(call.name)[:60], self.registry.names),
            )
        return tool

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

    def _add(self, message: Message, label: Label, name: str = "") -> None:
        self.messages.append(LabelledMessage(message, label, name))
        self.label = join(self.label, label)

    def _note(self, phase: PhaseName, role: str, answer: ModelAnswer, read: Label) -> None:
        reply = answer.reply
        privileged = read.trusted or self.views_only
        turn = ModelTurn(
            len(self.turns) + 1,
            phase,
            role,
            "privileged" if privileged else "quarantined",
            answer.model,
            read,
            reply.text,
            tuple(str(call.name) for call in reply.calls),
            reply.route,
            reply.usage,
            reply.seconds,
            reply.degraded,
            "" if privileged else self.open_reason,
        )
        self.turns.append(turn)
        if self.audience.turn is not None:
            _notify_observer(self.audience.turn, turn)


def _notify_observer(tell: Callable[..., None], *what: Any) -> None:
    try:
        tell(*what)
    except Exception:
        return

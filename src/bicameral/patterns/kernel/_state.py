"""The state of a context: labels of what was opened, tools, guards, prompts, notes, and the places of its steps.

Everything else that a context does is built on it: questions (`_questions`), calls and approvals (`_actions`), plans
(`_plans`), parts (`_parts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString, TypeVar

from bicameral.errors import RunError, ToolError, nearest_name
from bicameral.labels import (
    NOTHING,
    TRUSTED_USER,
    Label,
    Labelled,
    LabelTree,
    join,
    join_all,
    make_labelled,
    open_labelled,
)
from bicameral.limits import Limits, Meter
from bicameral.patterns._error_log import ErrorLog
from bicameral.patterns._outcome import NoteEvent, TraceEvent
from bicameral.patterns._prompt_marker import PromptMarker
from bicameral.patterns.kernel._conversation import UNKNOWN_TOOL, PromptText, Role, part_label, part_text
from bicameral.patterns.kernel._guards import CallGuard, CallInterceptor, GuardedCallGate
from bicameral.patterns.strategies import ConversationObserver, ModelPair, RequestPlanner
from bicameral.policy import Policy
from bicameral.runs import CallGate, Decider, EffectHandler
from bicameral.telemetry import add_event
from bicameral.tools import Registry, Tool

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlanServices:
    """What plans inside of a pattern are written, checked and decided with; nobody plans in a replay."""

    planner: RequestPlanner | None
    policy: Policy
    decider: Decider
    caps: Limits


@dataclass(slots=True)
class SharedState:
    """The state that all parts of one run share."""

    models: ModelPair
    call_gate: CallGate
    handler: EffectHandler
    registry: Registry
    trace: list[TraceEvent] = field(default_factory=list[TraceEvent])
    places: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    written_labels: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    audience: ConversationObserver = field(default_factory=ConversationObserver)
    plans: PlanServices | None = None
    escaped_label: Label = NOTHING
    """The join of all labels of values that were opened other than by `read`: any part may have them."""

    def note_escape(self, label: Label) -> None:
        self.escaped_label = join(self.escaped_label, label)


class PlaceNumbers:
    """Numbers what one part does, kind by kind: the name of a step is the place that does it.

    Parts run side by side, so a number over all of them would depend on which was faster, and a replay or a resumed run
    would find another step under it.
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def next(self, kind: str) -> int:
        self._counts[kind] += 1
        return self._counts[kind]

    def part_name(self, name: str) -> str:
        """The name of a part; one that is used again gets a number."""
        number = self.next(f"part {name}")
        return name if number == 1 else f"{name} ({number})"


class PartLife:
    """Whether a part still works. One that has ended, or is inside one that has, can do nothing any more.

    A cancelled task may ignore its cancellation or have started others: what it holds is of no use to it.
    """

    __slots__ = ("_around", "_ended")

    def __init__(self, around: PartLife | None = None) -> None:
        self._around = around
        self._ended = False

    def end(self) -> None:
        self._ended = True

    def require(self) -> None:
        """Raise if the part has ended."""
        if self._ended:
            raise RunError(
                "pattern.part-ended",
                "this part of the pattern has ended, and what it does now is not done",
                fix="Await everything that a part starts before it returns.",
            )
        if self._around is not None:
            self._around.require()


@dataclass(slots=True)
class ContextState:
    """What a context holds, and what it does without models, tools and people."""

    shared: SharedState
    meter: Meter
    path: str = ""
    """The parts around it, for the trace."""
    place: str = ""
    """The beginning of the names of its steps in the record: the parts, and what has limits of its own."""
    own_read_label: Label = NOTHING
    restricted_registry: Registry | None = None
    prompt_heads: tuple[PromptText, ...] = ()
    """The beginning of every prompt, before the setup of the role."""
    guards: tuple[CallGuard, ...] = ()
    interceptors: tuple[CallInterceptor, ...] = ()
    last_model: str = ""
    """The model that replied last here."""
    marker: PromptMarker | None = None
    """Marks every untrusted span of the prompts."""
    error_log: ErrorLog | None = None
    """Compacts and counts the errors of tools."""
    numbers: PlaceNumbers = field(default_factory=PlaceNumbers)
    life: PartLife = field(default_factory=PartLife)
    reads_for: ContextState | None = None
    """The context that has read whatever this one reads, because they are one piece of the program."""

    @property
    def read_label(self) -> Label:
        """The join of the labels of all that was opened here: it may have decided whatever is done from now on."""
        return join(self.own_read_label, self.shared.escaped_label)

    @read_label.setter
    def read_label(self, label: Label) -> None:
        self.own_read_label = label
        if self.reads_for is not None:
            self.reads_for.read_label = join(self.reads_for.read_label, label)

    @property
    def registry(self) -> Registry:
        """The tools that can be called here."""
        return self.shared.registry if self.restricted_registry is None else self.restricted_registry

    def restrict_tools(self, names: Iterable[str]) -> None:
        """Allow only these tools from now on, here and in parts of this; this cannot be undone."""
        wanted = set(names)
        if missing := sorted(wanted - set(self.registry.names)):
            raise self._unknown_tool_error(missing[0])
        self.restricted_registry = self.registry.subset(wanted)

    def prepend_to_prompts(self, part: PromptText) -> None:
        """Begin every prompt with this from now on, here and in parts of this; this cannot be undone."""
        self.prompt_heads = (*self.prompt_heads, part)

    def prompt_head(self, role: Role, stable: Sequence[PromptText] = ()) -> str:
        """The fixed beginning of a participant's prompts. For the kernel alone."""
        said = () if self.marker is None else (self.marker.convention,)
        return "\n\n".join(
            (*said, *map(self.prompt_text, self.prompt_heads), role.setup, *map(self.prompt_text, stable))
        )

    def prompt_text(self, part: PromptText) -> str:
        """A part as it stands in a prompt: an untrusted one is marked, if there is a marker. For the kernel alone."""
        text = part_text(part)
        return text if self.marker is None or part_label(part).trusted else self.marker.within(self.note).mark(text)

    def join_prompt(self, parts: Sequence[PromptText]) -> str:
        """Parts as one message; behind marked ones the task stands once more. For the kernel alone."""
        text = "".join(map(self.prompt_text, parts))
        if self.marker is None or all(part_label(part).trusted for part in parts):
            return text
        return f"{text}\n\n{self.marker.anchor}"

    def mark_untrusted(self, marker: PromptMarker) -> None:
        """Mark every untrusted span of a prompt from now on, here and in parts of this; this cannot be undone."""
        if self.marker is not None:
            raise RunError("pattern.two-markers", "untrusted text is marked already", fix="Use one shield (V6) a run.")
        self.marker = marker

    def compact_errors(self, log: ErrorLog) -> None:
        """Tell errors of tools in one line each and count them from now on, here and in parts of this."""
        if self.error_log is not None:
            raise RunError("pattern.two-error-logs", "errors are counted already", fix="Use one V11 in a pattern.")
        self.error_log = log

    def add_guard(self, guard: CallGuard) -> None:
        """Check every call with this guard from now on, here and in parts and conversations; this cannot be undone."""
        self.guards = (*self.guards, guard)

    def add_interceptor(self, interceptor: CallInterceptor) -> None:
        """Let this decide about every call from now on, as `add_guard`; this cannot be undone."""
        self.interceptors = (*self.interceptors, interceptor)

    @property
    def call_gate(self) -> GuardedCallGate:
        """The only way to a tool."""
        return GuardedCallGate(self, self.shared.call_gate)

    def read(self, closed: Labelled[T]) -> T:
        """Open a value. Everything that this context does afterwards carries its label."""
        self.read_label = join(self.read_label, closed.label)
        return open_labelled(closed)

    def derive(self, value: T, *of: Labelled[Any]) -> Labelled[T]:
        """A value that the pattern computed from what it has opened, and from these."""
        return make_labelled(value, join_all((TRUSTED_USER, self.read_label, *(each.label for each in of))))

    def note(self, what: LiteralString, **facts: str | float | bool) -> None:
        """Add an event of the pattern to the trace: names and numbers, and no untrusted text."""
        self.life.require()
        event = NoteEvent(self.path, what, dict(facts))
        self.shared.trace.append(event)
        self.shared.handler.record_note(self.step_name("note"), event.to_json())
        add_event(f"note {what}", {f"bicameral.note.{name}": fact for name, fact in facts.items()})

    def step_name(self, kind: str) -> str:
        """The name of the next step of this kind in the record. For the kernel alone."""
        return f"{self.place}{kind} {self.numbers.next(kind)}"

    def find_tool(self, name: str, because: Label = NOTHING) -> Tool:
        """A tool that can be called here; `because` is the label of whatever named it. For the kernel alone."""
        tool = self.registry.get(name)
        if tool is None:
            # The name of a tool that does not exist was made up, perhaps by a model that has read untrusted text.
            raise self._unknown_tool_error(name[:60] if join(self.read_label, because).trusted else UNKNOWN_TOOL)
        return tool

    def _unknown_tool_error(self, name: str) -> ToolError:
        return ToolError("tools.unknown", f"there is no tool {name!r}", nearest=nearest_name(name, self.registry.names))

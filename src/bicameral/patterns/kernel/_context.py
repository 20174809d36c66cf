"""The context of a running pattern: the only way from a pattern to models and tools.

It propagates labels. A question has the join of the labels of its parts, and so has the reply; a question with
untrusted text in it goes to the quarantined model. The label of a value that a context has opened (`read`) is from then
on joined to everything it does: to each question, and to the fact that a tool is called. Guards check each call before
policy decides, and each result before anything else gets it.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, LiteralString, ParamSpec, Protocol, TypeVar, cast

from bicameral.boundary import parse_reply
from bicameral.errors import BicameralError, JournalError, ModelError, RunError, ToolError, nearest_name
from bicameral.labels import (
    NOTHING,
    TRUSTED_USER,
    Label,
    Labelled,
    LabelTree,
    join,
    join_all,
    label_tree_from_json,
    make_labelled,
    open_labelled,
)
from bicameral.limits import STRATEGY, BudgetSpent, LimitReached, Limits, Meter
from bicameral.models import Chamber, Message, ModelReply
from bicameral.patterns._conversation import FINAL_CODES, join_written_labels
from bicameral.patterns._outcome import ModelCallEvent, NoteEvent, ToolCallEvent, TraceEvent
from bicameral.patterns.kernel._conversation import (
    UNKNOWN_TOOL,
    PromptText,
    Role,
    RoleConversation,
    must_not_read_error,
    part_label,
    part_text,
    unlabelled_value_label,
)
from bicameral.patterns.strategies import (
    ConversationObserver,
    ModelPair,
    ModelTurn,
    ToolConversation,
    parse_arguments,
    prompt_fingerprint,
)
from bicameral.plans import labels_after_call
from bicameral.runs import CallGate, EffectHandler, ModelAnswer, Suspend, cut_off_as_recorded, label_tree_json
from bicameral.telemetry import span
from bicameral.tools import Registry, Tool
from bicameral.types import RecordType, Type, mismatch, to_plain, type_json_schema

if TYPE_CHECKING:
    from bicameral.patterns.kernel._pattern import Pattern
    from bicameral.patterns.strategies import CallPath


R = TypeVar("R")
P = ParamSpec("P")


class CallGuard(Protocol):
    """Checks calls and results. It gets copies, so it cannot change them; any exception refuses."""

    def before(self, tool: Tool, arguments: Mapping[str, Any], label: Label) -> None:
        """Called before policy decides about a call; raises to refuse it."""
        ...

    def after(self, tool: Tool, value: Any, label: Label) -> Any:
        """Called before a result is passed on: the result to pass on; raises to refuse it."""
        ...


class GuardedCallGate:
    """The call gate of a run for one context: every call passes the guards that the context has at that time."""

    def __init__(self, context: Context, gate: CallPath) -> None:
        self._context = context
        self._gate = gate

    @property
    def failure(self) -> BaseException | None:
        return self._gate.failure

    async def make_call(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        trees: Mapping[str, LabelTree],
        pc: Label,
        places: dict[str, LabelTree],
        note: Callable[[dict[str, LabelTree]], None],
        *,
        needed: bool,
    ) -> tuple[Any, LabelTree] | None:
        guards = self._context.guards
        if guards:
            label = join_all((pc, *(tree.flat for tree in trees.values())))
            # A copy: what the guards check is what runs, even if other code holds parts of the arguments.
            arguments = {name: to_plain(value) for name, value in arguments.items()}
            for guard in guards:
                self._ask_guard(
                    guard.before, label, tool, {name: to_plain(each) for name, each in arguments.items()}, label
                )
        given = await self._gate.make_call(step, tool, arguments, trees, pc, places, note, needed=needed)
        if given is None:
            return None
        value, tree = given
        for guard in guards:
            looked = self._ask_guard(guard.after, tree.flat, tool, to_plain(value), tree.flat)
            if looked != value:
                # A label tree belongs to the places of the old value, so only the joined label is kept.
                value, tree = self._check_result_type(tool, looked, tree), tree.flat
        return value, tree

    def _ask_guard(self, look: Callable[..., R], label: Label, *what: Any) -> R:
        """The result of a guard. If it refuses or fails, the context gets the label of what the guard has read."""
        try:
            return look(*what)
        except BicameralError:
            self._context.read_label = join(self._context.read_label, label)
            raise
        except Exception as error:
            self._context.read_label = join(self._context.read_label, label)
            raise guard_failed_error(error) from None

    def _check_result_type(self, tool: Tool, value: Any, tree: LabelTree) -> Any:
        if mismatch(value, tool.result):
            self._context.read_label = join(self._context.read_label, tree.flat)
            raise RunError(
                "pattern.guard-failed",
                f"a guard made something else of what {tool.name!r} gave",
                expected=str(tool.result),
            )
        return value


def guard_failed_error(error: Exception) -> RunError:
    """The error for a guard that failed, which refuses. Its message may quote what it read, and is left out."""
    return RunError("pattern.guard-failed", f"a guard failed with {type(error).__name__}, which counts as a no")


T = TypeVar("T")
_MAX_IDLE_TURNS = 10_000
"""Turns of the event loop after which a part that is run again counts as one that took another way."""
_NOT_CALLED_CODES = ("policy.denied", *FINAL_CODES)
"""Codes that say that a call was not made, so that the tool decided nothing."""


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


@dataclass(slots=True)
class Context:
    """One part of a running pattern. Parts share only what they are given and what they return."""

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
    last_model: str = ""
    """The model that replied last here."""
    numbers: PlaceNumbers = field(default_factory=PlaceNumbers)

    @property
    def read_label(self) -> Label:
        """The join of the labels of all that was opened here: it may have decided whatever is done from now on."""
        return join(self.own_read_label, self.shared.escaped_label)

    @read_label.setter
    def read_label(self, label: Label) -> None:
        self.own_read_label = label

    @property
    def registry(self) -> Registry:
        """The tools that can be called here."""
        return self.shared.registry if self.restricted_registry is None else self.restricted_registry

    def restrict_tools(self, names: Iterable[str]) -> None:
        """Allow only these tools from now on, here and in parts of this; this cannot be undone."""
        wanted = set(names)
        if missing := sorted(wanted - set(self.registry.names)):
            raise ToolError(
                "tools.unknown",
                f"there is no tool {missing[0]!r}",
                nearest=nearest_name(missing[0], self.registry.names),
            )
        self.restricted_registry = self.registry.subset(wanted)

    def prepend_to_prompts(self, part: PromptText) -> None:
        """Begin every prompt with this from now on, here and in parts of this; this cannot be undone."""
        self.prompt_heads = (*self.prompt_heads, part)

    def prompt_head(self, role: Role, stable: Sequence[PromptText] = ()) -> str:
        """The fixed beginning of a participant's prompts. For the kernel alone."""
        return "\n\n".join((*map(part_text, self.prompt_heads), role.setup, *map(part_text, stable)))

    def add_guard(self, guard: CallGuard) -> None:
        """Check every call with this guard from now on, here and in parts and conversations; this cannot be undone."""
        self.guards = (*self.guards, guard)

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
        event = NoteEvent(self.path, what, dict(facts))
        self.shared.trace.append(event)
        self.shared.handler.record_note(f"{self.place}note {self.numbers.next('note')}", event.to_json())

    # Models ---------------------------------------------------------------------------------------------------------

    async def ask(
        self,
        role: Role,
        *parts: PromptText,
        stable: Sequence[PromptText] = (),
        schema: Mapping[str, Any] | None = None,
        sample: int = 0,
    ) -> Labelled[str]:
        """What a participant replies. `stable` is what belongs to the fixed beginning of its prompt, after its setup.

        The parts stand in one message, in their order. Another `sample` is another reply if the role has a temperature.
        """
        head = self.prompt_head(role, stable)
        label = join_all(
            (TRUSTED_USER, self.read_label, *(part_label(part) for part in (*self.prompt_heads, *stable, *parts)))
        )
        if role.reads == "trusted" and not label.trusted:
            raise must_not_read_error(role)
        messages = (Message("system", head), Message("user", "".join(part_text(part) for part in parts)))
        reply = await self._ask_model(role, messages, label, schema, sample)
        return make_labelled(reply.text, label)

    async def fill(
        self,
        role: Role,
        *parts: PromptText,
        wanted: Type,
        stable: Sequence[PromptText] = (),
        retries: int = 1,
        sample: int = 0,
        repair: Role | None = None,
        max_text: int | None = None,
    ) -> Labelled[Any]:
        """What a participant fills into a typed form. Nothing is coerced: what does not fit is asked for again.

        With a `repair` it is asked of that participant, who sees the reply that does not fit and not the question.
        `max_text` is how many characters a free text in the form may have.
        """
        schema: dict[str, Any] = type_json_schema(wanted, max_text=max_text)
        if not isinstance(wanted, RecordType):
            alone: dict[str, Any] = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
            schema = alone | {"additionalProperties": False}
        asked: tuple[PromptText, ...] = parts
        for left in range(retries, -1, -1):
            reply = await self.ask(role, *asked, stable=stable, schema=schema, sample=sample)
            try:
                return make_labelled(parse_reply(open_labelled(reply), wanted), reply.label)
            except ValueError as error:
                self.read_label = join(self.read_label, reply.label)
                self.note("reply-rejected", participant=role.name)
                if left == 0:
                    raise ModelError("models.bad-reply", f"{role.name}: the reply does not fit: {error}") from None
                if repair is not None:
                    role, asked = repair, ("This does not fit the form:\n", reply)
                else:
                    asked = (*parts, "\n\nYour last reply was not of the wanted form. Reply with the JSON alone.")
        raise ModelError("models.bad-reply", f"{role.name} was not asked", expected="retries of 0 or more")

    async def read_form(self, role: Role, *parts: PromptText, wanted: Type, stable: Sequence[PromptText] = ()) -> Any:
        """What a participant fills into a form, opened; None if the reply is not of the form. It is asked only once."""
        try:
            return self.read(await self.fill(role, *parts, wanted=wanted, stable=stable, retries=0))
        except ModelError as error:
            if error.code != "models.bad-reply":
                raise
            return None

    async def _ask_model(
        self, role: Role, messages: tuple[Message, ...], label: Label, schema: Mapping[str, Any] | None, sample: int
    ) -> ModelReply:
        models = replace(self.shared.models, max_tokens=role.max_tokens, hint=role.hint)
        form = dict(schema) if schema is not None else None
        chamber: Chamber = "privileged" if label.trusted else "quarantined"
        options: dict[str, Any] = {"temperature": role.temperature, "seed": sample}
        facts: dict[str, Any] = {
            "asked": role.name,
            "at": self.path,
            "role": role.job,
            "chamber": chamber,
            "trusted": label.trusted,
            "shade": label_tree_json(label),
            "prompt": prompt_fingerprint(messages, (), form, **options, max_tokens=role.max_tokens),
        }

        async def ask() -> ModelAnswer:
            heard = self.shared.audience.text
            return await models.ask(role.job, messages, label, role.phase, json_schema=form, hear=heard, **options)

        try:
            answer = await self.shared.handler.ask_model(f"{self.place}{self.numbers.next('ask')}", facts, ask)
        except BicameralError:
            # Untrusted text in the question may decide whether a model replies at all.
            self.read_label = join(self.read_label, label)
            raise
        reply, self.last_model = answer.reply, answer.model
        prefix = hashlib.sha256(messages[0].text.encode()).hexdigest()[:12]
        asked = ModelCallEvent(self.path, role.name, chamber, answer.model, label, reply.usage, reply.seconds, prefix)
        self.shared.trace.append(asked)
        return reply

    # Tools ----------------------------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: Mapping[str, Any], *, because: Label = NOTHING) -> Labelled[Any]:
        """Call a tool as policy allows. Arguments are values or labelled values; `because` is the label of whatever
        chose this call, where that was not opened here."""
        found = self._tool(tool)
        decided = join_all((TRUSTED_USER, self.read_label, because))
        given_for = {name: self._argument(each).with_label(decided) for name, each in arguments.items()}
        trees = {name: each.label_tree for name, each in given_for.items()}
        values = {name: open_labelled(each) for name, each in given_for.items()}
        self.meter.count_tool_call()
        step, begun = f"{self.place}call {self.numbers.next('call')}", time.perf_counter()
        label = join_all((decided, *(tree.flat for tree in trees.values())))
        try:
            given = await self.call_gate.make_call(
                step,
                found,
                parse_arguments(found, values),
                trees,
                decided,
                self.shared.places,
                partial(join_written_labels, self.shared.written_labels),
                needed=True,
            )
        except BicameralError as error:
            if error.code not in _NOT_CALLED_CODES:
                # The source of a result may decide whether the tool returns anything at all.
                label = join(label, labels_after_call(found, trees, None, step, decided).flat)
            self.read_label = join(self.read_label, label)
            self.shared.trace.append(ToolCallEvent(self.path, tool, label, time.perf_counter() - begun, error.code))
            raise
        if given is None:
            raise ToolError("tools.failed", f"{tool!r} was not called")
        value, tree = given
        self.shared.trace.append(ToolCallEvent(self.path, tool, tree.flat, time.perf_counter() - begun))
        return make_labelled(value, tree)

    def _argument(self, value: Any) -> Labelled[Any]:
        if isinstance(value, Labelled):
            return cast("Labelled[Any]", value)
        # The label of what was opened here covers whatever was computed from it; anything else comes from outside.
        return make_labelled(value, unlabelled_value_label(value) if self.read_label.trusted else TRUSTED_USER)

    def _tool(self, name: str) -> Tool:
        tool = self.registry.get(name)
        if tool is None:
            raise ToolError(
                "tools.unknown", f"there is no tool {name[:60]!r}", nearest=nearest_name(name[:60], self.registry.names)
            )
        return tool

    def conversation(self, role: Role) -> RoleConversation:
        """A conversation with a role that may ask for tools itself, in the same run and with the same label rules."""
        shared, registry = self.shared, self.registry

        def turned(turn: ModelTurn) -> None:
            asked = ModelCallEvent(self.path, role.name, turn.chamber, turn.model, turn.read, turn.usage, turn.seconds)
            shared.trace.append(asked)

        def called(tool: str, label: Label, seconds: float, failed: str | None) -> None:
            # The name of a tool that does not exist was made up by a model, and may be untrusted text.
            shared.trace.append(
                ToolCallEvent(self.path, tool if tool in registry else UNKNOWN_TOOL, label, seconds, failed)
            )

        talk = ToolConversation(
            replace(shared.models, max_tokens=role.max_tokens),
            self.call_gate,
            shared.handler,
            registry,
            self.meter,
            replace(shared.audience, turn=turned, call=called),
            written_labels=shared.written_labels,
            label=self.read_label,
            places=shared.places,
            path=f"{self.place}talk {self.numbers.next('talk')}/",
        )
        return RoleConversation(self, role, talk)

    # Parts ----------------------------------------------------------------------------------------------------------

    def part(self, name: str) -> Context:
        """A part with its own context: it starts with the label of this one, and adds nothing to it."""
        name = self.numbers.part_name(name)
        path, place = f"{self.path}{name}/", f"{self.place}{name}/"
        return replace(
            self, path=path, place=place, own_read_label=self.read_label, last_model="", numbers=PlaceNumbers()
        )

    async def run_pattern(self, name: str, pattern: Pattern[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        """Run another pattern as a part of this run, under this name."""
        return await self.run_part(name, lambda part: pattern.execute(part, *args, **kwargs))

    async def run_part(self, name: str, work: Callable[[Context], Awaitable[Labelled[T]]]) -> Labelled[T]:
        """Run work in a part; its result carries the label of everything that the part has opened."""
        return await self._run_work(self.part(name), work)

    async def _run_work(self, part: Context, work: Callable[[Context], Awaitable[Labelled[T]]]) -> Labelled[T]:
        with span("part", part.path.rstrip("/"), {"bicameral.step": part.place.rstrip("/")}):
            try:
                given = await work(part)
            except BicameralError:
                self.read_label = join(self.read_label, part.read_label)
                raise
        return given.with_label(part.read_label)

    async def run_parallel(
        self, works: Sequence[tuple[str, Callable[[Context], Awaitable[Labelled[T]]]]], *, width: int
    ) -> list[Labelled[T] | BicameralError]:
        """Run parts concurrently, `width` at once; the result or the error of each, in their order.

        A part that fails does not end the others. A limit of the whole, a refusal of a person and a record that cannot
        be written end all of them. A part that waits for a person lets the others come to their end first.
        """
        room = asyncio.Semaphore(width)
        suspended: list[Suspend] = []

        async def one(part: Context, work: Callable[[Context], Awaitable[Labelled[T]]]) -> Labelled[T] | BicameralError:
            async with room:
                try:
                    return await self._run_work(part, work)
                except BicameralError as error:
                    if self._ends_siblings(error):
                        raise
                    return error
                except Suspend as waits:
                    suspended.append(waits)
                    # The run ends here and is resumed with the answer, so that this result is never read.
                    return RunError("run.waits", "the part waits for a person")

        # All contexts are made now: what one part opens before it fails is not in the label of one that starts later.
        parts = [(self.part(name), work) for name, work in works]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(part, work)) for part, work in parts]
        except* BicameralError as errors:
            raise _first_error(errors) from None
        if suspended:
            raise suspended[0]
        return [task.result() for task in tasks]

    def _ends_siblings(self, error: BicameralError) -> bool:
        """Whether this error of a part ends the other parts: the limit or the refusal was not the part's own."""
        if isinstance(error, LimitReached) and error.scope is STRATEGY:
            return self.meter.is_exhausted_by(error)
        common = isinstance(error, JournalError | BudgetSpent | LimitReached) or error.code in FINAL_CODES
        return common or isinstance(self.shared.call_gate.failure, BicameralError)

    @asynccontextmanager
    async def within_limits(self, bounds: Limits) -> AsyncGenerator[Context]:
        """This context with its own limits, in addition to those around it.

        A limit that is reached is recorded: a replay ends what is inside where it ended, whatever the time says.
        """
        place = f"{self.place}limits {self.numbers.next('limits')}"
        meter = Meter(bounds, above=self.meter)
        inner = replace(
            self, place=f"{place}/", meter=meter, own_read_label=self.read_label, last_model="", numbers=PlaceNumbers()
        )
        reached = self.shared.handler.recorded_note(place)
        try:
            async with meter.running():
                if reached is None:
                    yield inner
                else:
                    async with self._cut_off(inner):
                        yield inner
        except LimitReached as error:
            if error.counter is not meter:
                raise
            if reached is not None:
                error = LimitReached(STRATEGY, reached["bound"], reached["spent"], reached["limit"], meter)
                inner.read_label = join(inner.read_label, label_tree_from_json(reached["shade"]).flat)
            facts: dict[str, Any] = {"bound": error.bound, "spent": error.spent, "limit": error.limit}
            self.shared.handler.record_note(place, facts | {"shade": label_tree_json(inner.read_label)})
            raise error from None
        finally:
            self.read_label = join(self.read_label, inner.read_label)

    @asynccontextmanager
    async def _cut_off(self, inner: Context) -> AsyncGenerator[None]:
        """Do what is recorded of a part that reached its limit, and then let its time be over."""

        async def expire() -> None:
            # Recorded replies come at once, so that a part which comes to none for so long has taken another way.
            for _ in range(_MAX_IDLE_TURNS):
                if not self.shared.handler.has_unused(inner.place):
                    break
                await asyncio.sleep(0)
            inner.meter.expire()

        with cut_off_as_recorded():
            watching = asyncio.create_task(expire())
            try:
                yield
            finally:
                watching.cancel()


def _first_error(group: BaseExceptionGroup[BicameralError]) -> BicameralError:
    for error in group.exceptions:
        return _first_error(error) if isinstance(error, BaseExceptionGroup) else error
    raise RuntimeError("an empty group of errors")

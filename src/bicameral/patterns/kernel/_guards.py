"""Guards: checks of every call of a tool before policy decides about it, and of every result before it is passed on.

Interceptors are guards that know where a call comes from: its labels, its step and its context. They may do something
first. Both hold for every way to a tool: parts, conversations, plans, and patterns that are tools of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, LiteralString, Protocol, TypeVar, cast

from bicameral.errors import BicameralError, RunError
from bicameral.labels import Label, Labelled, LabelTree, join, join_all, make_labelled
from bicameral.patterns._outcome import NoteEvent
from bicameral.plans import call_facts, recall_stored_labels
from bicameral.runs import PartOfRun, RunPart
from bicameral.tools import Tool
from bicameral.types import mismatch, to_plain

if TYPE_CHECKING:
    from bicameral.patterns.kernel._context import Context
    from bicameral.patterns.kernel._state import ContextState
    from bicameral.policy import CallFacts
    from bicameral.runs import CallPath


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class GuardQuestions:
    """What a person must say yes to before a call is made, or before this result of one is passed on."""

    asks: tuple[LiteralString, ...]
    value: Any = None


class CallGuard(Protocol):
    """Checks calls and results. It gets copies, so it cannot change them; any exception refuses."""

    def before(self, tool: Tool, arguments: Mapping[str, Any], label: Label) -> GuardQuestions | None:
        """Called before policy decides about a call; raises to refuse it."""
        ...

    def after(self, tool: Tool, value: Any, label: Label) -> Any:
        """Called before a result is passed on: what to pass on, or `GuardQuestions` about it; raises to refuse it."""
        ...


@dataclass(frozen=True, slots=True)
class InterceptedCall:
    """A call that is about to be decided: everything that is known of it, and the context that makes it."""

    context: Context
    step: str
    tool: Tool
    arguments: Mapping[str, Any]
    labels: Mapping[str, LabelTree]
    control: Label
    """The label of what decided that the call is made."""
    places: Mapping[str, LabelTree]

    @property
    def label(self) -> Label:
        """The join of everything that is in the call or decided about it."""
        return join_all((self.control, *(tree.flat for tree in self.labels.values())))

    @property
    def facts(self) -> CallFacts:
        """What policies decide about the call by; what it says to follow, `lures`, is not known yet."""
        labels, _ = recall_stored_labels(self.tool, self.labels, self.arguments, self.places)
        mode = self.context.shared.call_gate.mode
        return call_facts(self.tool, labels, self.arguments, self.step, self.control, mode)

    def recorded(self, what: LiteralString) -> Mapping[str, Any] | None:
        """What is recorded under this name for the call, if the run is run again."""
        return self.context.shared.handler.recorded_note(self._place(what))

    def note(self, what: LiteralString, **facts: str | float | bool) -> None:
        """Add an event about the call to the trace and the record: names and numbers, and no untrusted text."""
        event = NoteEvent(self.context.path, what, dict(facts))
        self.context.shared.trace.append(event)
        self.context.shared.handler.record_note(self._place(what), event.to_json())

    def _place(self, what: str) -> str:
        # By its own step: calls of parts that run side by side come in any order.
        return f"{self.step} {what}"


class CallInterceptor(Protocol):
    """Decides about calls with all that is known of them. It gets copies; any exception refuses."""

    async def admit(self, call: InterceptedCall) -> None:
        """Called after the guards and before policy decides; raises to refuse the call."""
        ...

    async def admit_work(self, context: Context, step: str, name: str) -> None:
        """Called before work that has an effect outside of the tools (`Context.once`); raises to refuse it."""
        ...


_Around = tuple[tuple[CallGuard, ...], tuple[CallInterceptor, ...]]
_AROUND: ContextVar[_Around] = ContextVar("bicameral-guards-around", default=((), ()))


def guards_around() -> _Around:
    """The guards and interceptors of the context that calls the tool which runs here. For the kernel alone."""
    return _AROUND.get()


@dataclass(frozen=True, slots=True)
class _GuardedPart(PartOfRun):
    """A tool that is a part of the run, called by a context with guards: they hold for what it does, too."""

    inner: PartOfRun
    around: _Around

    async def run_inside(self, part: RunPart) -> tuple[Any, LabelTree]:
        token = _AROUND.set(self.around)
        try:
            return await self.inner.run_inside(part)
        finally:
            _AROUND.reset(token)


class GuardedCallGate:
    """The call gate of a run for one context: every call passes the guards that the context has at that time."""

    def __init__(self, context: ContextState, gate: CallPath) -> None:
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
        self._context.life.require()
        guards, interceptors = self._context.guards, self._context.interceptors
        if guards or interceptors:
            label = join_all((pc, *(tree.flat for tree in trees.values())))
            # A copy: what the guards check is what runs, even if other code holds parts of the arguments.
            arguments = {name: to_plain(value) for name, value in arguments.items()}
            for guard in guards:
                shown = {name: to_plain(each) for name, each in arguments.items()}
                if (questions := self._ask_guard(guard.before, label, tool, shown, label)) is not None:
                    await self._ask_person(questions.asks, arguments, label)
            context = cast("Context", self._context)
            for interceptor in interceptors:
                copied = {name: to_plain(each) for name, each in arguments.items()}
                await self._intercept(
                    interceptor, InterceptedCall(context, step, tool, copied, dict(trees), pc, dict(places))
                )
            if isinstance(tool.run, PartOfRun):
                tool = replace(tool, run=_GuardedPart(tool.run, (guards, interceptors)))
        given = await self._gate.make_call(step, tool, arguments, trees, pc, places, note, needed=needed)
        if given is None:
            return None
        value, tree = given
        for guard in guards:
            looked = self._ask_guard(guard.after, tree.flat, tool, to_plain(value), tree.flat)
            if isinstance(looked, GuardQuestions):
                await self._ask_person(looked.asks, looked.value, tree.flat)
                looked = looked.value
            if looked != value:
                # A label tree belongs to the places of the old value, so only the joined label is kept.
                value, tree = self._check_result_type(tool, looked, tree), tree.flat
        return value, tree

    async def _intercept(self, interceptor: CallInterceptor, call: InterceptedCall) -> None:
        try:
            await interceptor.admit(call)
        except BicameralError:
            self._context.read_label = join(self._context.read_label, call.label)
            raise
        except Exception as error:
            self._context.read_label = join(self._context.read_label, call.label)
            raise guard_failed_error(error) from None

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

    async def _ask_person(self, asks: tuple[LiteralString, ...], value: Any, label: Label) -> None:
        """Go on only if a person says yes to each question, in the context that makes the call."""
        await ask_about(cast("Context", self._context), asks, make_labelled(to_plain(value), label))

    def _check_result_type(self, tool: Tool, value: Any, tree: LabelTree) -> Any:
        if mismatch(value, tool.result):
            self._context.read_label = join(self._context.read_label, tree.flat)
            raise RunError(
                "pattern.guard-failed",
                f"a guard made something else of what {tool.name!r} gave",
                expected=str(tool.result),
            )
        return value


async def ask_about(context: Context, asks: tuple[LiteralString, ...], value: Labelled[Any]) -> None:
    """Ask a person about a value that guards have doubts about; a no ends the run."""
    for question in asks:
        if not await context.approve(question, value=value):
            # The content of the value decided that anybody was asked.
            context.read_label = join(context.read_label, value.label)
            raise RunError("run.refused", f"a guard asked a person, who said no: {question}")


def guard_failed_error(error: Exception) -> RunError:
    """The error for a guard that failed, which refuses. Its message may quote what it read, and is left out."""
    return RunError("pattern.guard-failed", f"a guard failed with {type(error).__name__}, which counts as a no")

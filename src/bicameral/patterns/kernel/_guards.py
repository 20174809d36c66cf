"""Guards: checks of every call of a tool before policy decides about it, and of every result before it is passed on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bicameral.errors import BicameralError, RunError
from bicameral.labels import Label, LabelTree, join, join_all
from bicameral.tools import Tool
from bicameral.types import mismatch, to_plain

if TYPE_CHECKING:
    from bicameral.patterns.kernel._state import ContextState
    from bicameral.runs import CallPath


R = TypeVar("R")


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

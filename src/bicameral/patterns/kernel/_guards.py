"""Guards of a stage: whoever looks at each call before it is judged, and at each result before anybody has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bicameral.errors import BicameralError, RunError
from bicameral.labels import Label, Shade, join, join_all
from bicameral.tools import Tool
from bicameral.types import mismatch, plain

if TYPE_CHECKING:
    from bicameral.strategies import Passage

    from ._stage import Stage

R = TypeVar("R")


class CallGuard(Protocol):
    """Looks at copies, so that it can change nothing by looking. What it raises refuses, whatever it is."""

    def before(self, tool: Tool, arguments: Mapping[str, Any], label: Label) -> None:
        """Before a call is judged: raise to refuse it."""
        ...

    def after(self, tool: Tool, value: Any, label: Label) -> Any:
        """Before anybody has a result: the result as it may be had, or raise to refuse it."""
        ...


class GuardedDoor:
    """The door of a run as one stage has it: nothing goes through it but past the guards that the stage has by then."""

    def __init__(self, stage: Stage, door: Passage) -> None:
        self._stage = stage
        self._door = door

    @property
    def closed(self) -> BaseException | None:
        return self._door.closed

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
    ) -> tuple[Any, Shade] | None:
        guards = self._stage.guards
        if guards:
            label = join_all((pc, *(shade.flat for shade in shades.values())))
            # What is looked at and what runs are the same, whoever else holds parts of it.
            arguments = {name: plain(value) for name, value in arguments.items()}
            for guard in guards:
                self._looked(guard.before, label, tool, {name: plain(each) for name, each in arguments.items()}, label)
        given = await self._door.pass_on(step, tool, arguments, shades, pc, places, note, needed=needed)
        if given is None:
            return None
        value, shade = given
        for guard in guards:
            looked = self._looked(guard.after, shade.flat, tool, plain(value), shade.flat)
            if looked != value:
                # Labels of parts are those of places in it, and what is where may have changed.
                value, shade = self._fitting(tool, looked, shade), shade.flat
        return value, shade

    def _looked(self, look: Callable[..., R], label: Label, *what: Any) -> R:
        """What a guard says. If it refuses, or fails, that was decided by what it looked at."""
        try:
            return look(*what)
        except BicameralError:
            self._stage.opened = join(self._stage.opened, label)
            raise
        except Exception as error:
            self._stage.opened = join(self._stage.opened, label)
            raise guard_failed(error) from None

    def _fitting(self, tool: Tool, value: Any, shade: Shade) -> Any:
        if mismatch(value, tool.result):
            self._stage.opened = join(self._stage.opened, shade.flat)
            raise RunError(
                "pattern.guard-failed",
                f"a guard made something else of what {tool.name!r} gave",
                expected=str(tool.result),
            )
        return value


def guard_failed(error: Exception) -> RunError:
    """A guard that fails has not said yes. Its message may quote what it read, and is not told."""
    return RunError("pattern.guard-failed", f"a guard failed with {type(error).__name__}, which counts as a no")

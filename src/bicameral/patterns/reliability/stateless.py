"""V12, stateless reducer: another pattern as a function of its arguments, checked to keep nothing anywhere else.

Use it in tests and at runs that are retried, split or handed to other processes. The state is what the pattern is given
and what it returns: both survive JSON, with their labels, and are of a bounded size. The new state is one event of the
record, so that whoever reads it sees all of it or none. If the run has left something in a module, a cache, a default,
a closure, a class or the pattern itself, there is no answer, and the error names the place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, ParamSpec, TypeVar

from bicameral.errors import CatalogError, RunError
from bicameral.patterns._hidden_state import changed_state, snapshot_state
from bicameral.patterns.kernel import Context, Labelled, Pattern, PatternExample
from bicameral.patterns.kernel._codec import from_record, to_record
from bicameral.patterns.reasoning.react import EXAMPLE as REACT_EXAMPLE, ReAct

P = ParamSpec("P")
T = TypeVar("T")
_MAX_NAMED = 5


@dataclass(frozen=True)
class StatelessReducer(Pattern[P, T]):
    """Another pattern that must keep nothing between its runs.

    A run that has kept something ends with `pattern.keeps-state`; what it did outside stays done.

    Args:
        inner: The pattern.
        max_state_bytes: The size above which what it is given, or gives, is refused.

    Example:
        >>> outcome = await StatelessReducer(ReAct()).run(runtime, program_text("Who has placed order 12?"))
    """

    id: ClassVar[str] = "V12"
    inner: Pattern[P, T]
    max_state_bytes: int = 262_144

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        self._check_portable("what it is given", [list(args), dict(kwargs)])
        before = snapshot_state(self.inner)
        result = await context.run_part("stateless", lambda part: self.inner.execute(part, *args, **kwargs))
        if kept := changed_state(before, snapshot_state(self.inner)):
            raise _keeps_state_error(kept)
        context.note("state", bytes=self._check_portable("what it gives", result))
        return result

    def _check_portable(self, what: str, value: Any) -> int:
        """The size of a value as JSON; an error if it is too large, or is not the same when it is read again."""
        try:
            written = json.dumps(to_record(value))
            same = to_record(from_record(json.loads(written))) == json.loads(written)
        except (CatalogError, TypeError, ValueError):
            same, written = False, ""
        if not same:
            # Without a word of the value.
            raise RunError(
                "pattern.state-not-portable",
                f"{what} cannot be written down and read again",
                expected="plain values, with or without labels",
                fix="Give the id of a connection, a file or a session, and open it inside.",
            )
        if len(written) > self.max_state_bytes:
            raise RunError(
                "pattern.state-too-large",
                f"{what} has {len(written)} bytes",
                expected=f"at most {self.max_state_bytes}",
                fix="Leave out what the record has already, and keep the rest in a store.",
            )
        return len(written)


def _keeps_state_error(kept: list[str]) -> RunError:
    names = ", ".join(kept[:_MAX_NAMED]) + (f" and {len(kept) - _MAX_NAMED} more" if len(kept) > _MAX_NAMED else "")
    return RunError(
        "pattern.keeps-state",
        f"the run has left something behind in {names}",
        expected="all state in the arguments and the result",
        fix="Return it, or write it to a store with `once` and read it with `recall`.",
    )


# An example ---------------------------------------------------------------------------------------------------------

EXAMPLE = PatternExample(
    "A loop that looks things up is checked to keep nothing of it.",
    lambda folder: StatelessReducer(ReAct(max_steps=4)),
    REACT_EXAMPLE.task,
    REACT_EXAMPLE.is_correct,
    REACT_EXAMPLE.sizes,
    REACT_EXAMPLE.tools,
)

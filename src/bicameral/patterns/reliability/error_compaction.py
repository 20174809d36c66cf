"""V11, error compaction: errors of tools enter a prompt as one line with a count, and too many of them end the run.

Use it around a loop whose tools fail often. The record has the whole error before a model reads the line. A kind of
error is told once, where it came last, with its type, its place and its cause. The step at which the same error has
come `max_same` times in a row, or `max_errors` have come in all, is the last one.

What a line may say follows from labels, as without it: a privileged model reads fixed words for the code of the error,
and only the quarantined model reads what a tool wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, ParamSpec, TypeVar

from bicameral.errors import BicameralError, CatalogError
from bicameral.patterns._error_log import ErrorLog
from bicameral.patterns.kernel import Context, Labelled, Pattern, PatternExample
from bicameral.patterns.reasoning.react import EXAMPLE as REACT_EXAMPLE, ReAct

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ErrorCompaction(Pattern[P, T]):
    """Another pattern whose models read errors in one line each. Each of its parts has its own counts.

    At a limit the outcome is `GaveUp` with `pattern.errors-repeated` or `pattern.too-many-errors`, whatever the inner
    pattern makes of errors otherwise.

    Args:
        inner: The pattern.
        max_same: How many errors of one kind may come in a row; numbers, paths and ids in them make no difference.
        max_errors: How many errors may come in all.

    Example:
        >>> outcome = await ErrorCompaction(ReAct(max_steps=12)).run(runtime, program_text("Is the export done?"))
    """

    id: ClassVar[str] = "V11"
    inner: Pattern[P, T]
    max_same: int = 3
    max_errors: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_same", "max_errors"):
            if type(getattr(self, name)) is not int:
                raise CatalogError("pattern.bad-knob", f"V11: {name} is not set", expected="a whole number")

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        log = ErrorLog(self.max_same, self.max_errors)

        async def compacted(part: Context) -> Labelled[T]:
            part.compact_errors(log)
            try:
                answer = await self.inner.execute(part, *args, **kwargs)
                # Whoever caught the end at a limit has no answer all the same.
                for each in log.with_parts():
                    each.require()
            except BicameralError:
                _note_errors(part, log)
                raise
            _note_errors(part, log)
            return answer

        return await context.run_part("errors counted", compacted)


def _note_errors(part: Context, log: ErrorLog) -> None:
    logs = list(log.with_parts())
    if kinds := {kind for each in logs for kind in each.counts}:
        ended = any(each.breach is not None for each in logs)
        part.note("errors", count=sum(each.counts.total() for each in logs), kinds=len(kinds), ended=ended)


# An example ---------------------------------------------------------------------------------------------------------

EXAMPLE = PatternExample(
    "If the lookup fails, the model reads one line, and the third time in a row is the last.",
    lambda folder: ErrorCompaction(ReAct(max_steps=4)),
    REACT_EXAMPLE.task,
    REACT_EXAMPLE.is_correct,
    REACT_EXAMPLE.sizes,
    REACT_EXAMPLE.tools,
)

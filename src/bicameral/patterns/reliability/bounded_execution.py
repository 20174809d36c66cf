"""V9, bounded execution: counters in code cap the model calls, tool calls, tokens, time and money of another pattern.

Use it around whatever repeats until a condition holds, with caps from measured runs of the same kind of task. The model
sees none of them. A cap that is reached ends the pattern as `Exhausted`, which names it; the record has all that was
done, and `extend_pattern` of the kernel continues from there under larger caps. Caps inside of others, or of the run,
only add to them: the one that is reached first governs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, ParamSpec, TypeVar

from bicameral.errors import CatalogError
from bicameral.limits import STRATEGY, Limits, LimitUsage
from bicameral.patterns.kernel import Context, Labelled, Pattern, PatternExample
from bicameral.patterns.reasoning.react import EXAMPLE as REACT_EXAMPLE, ReAct

P = ParamSpec("P")
T = TypeVar("T")
Q = ParamSpec("Q")
U = TypeVar("U")

CapName = Literal["max_steps", "max_tool_calls", "max_tokens", "max_seconds", "max_money"]
_MANY: Final = 10**9
"""Rounds are replies too, which `max_steps` caps."""


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """What measured runs have taken of something, from which its cap was set."""

    runs: int
    p50: float
    p99: float

    @classmethod
    def of(cls, taken: Sequence[float]) -> MeasuredUse:
        """The use in these runs. A percentile is a value that was measured: the smallest that covers its share."""
        ordered = sorted(taken)

        def percentile(share: float) -> float:
            return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

        return cls(len(ordered), percentile(0.5), percentile(0.99))


@dataclass(frozen=True)
class BoundedExecution(Pattern[P, T]):
    """Another pattern under five caps, with a note `limit-near` when it comes near to one of them.

    Args:
        inner: The pattern.
        max_steps: How many times models are asked.
        max_tool_calls: How many calls of tools there are; with 0 it has no tools.
        max_tokens: How many tokens are read and written.
        max_seconds: How long it works, without the time in which a person is asked.
        max_money: What is known of the models' cost, in the currency of the price table.
        warn_at: The share of a cap at which it warns.
        headroom: How far the caps of `from_runs` are above what was measured.
        measured: What the caps were set from.

    Example:
        >>> bounded = BoundedExecution(ReAct(), max_steps=6, max_tokens=20_000)
        >>> outcome = await bounded.run(runtime, program_text("Which of the orders are late?"))
        >>> if isinstance(outcome, Exhausted):
        ...     outcome = await extend_pattern(journal, outcome.run, runtime, replace(bounded, max_steps=12))
    """

    id: ClassVar[str] = "V9"
    inner: Pattern[P, T]
    max_steps: int = 25
    max_tool_calls: int = 50
    max_tokens: int = 200_000
    max_seconds: float = 300
    max_money: float = 1.0
    warn_at: float = 0.8
    headroom: float = 1.5
    measured: Mapping[CapName, MeasuredUse] = field(default_factory=dict[CapName, MeasuredUse])

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(map(math.isfinite, (self.max_seconds, self.max_money, self.warn_at))):
            raise CatalogError("pattern.bad-knob", "V9: a cap is not a number", expected="caps that are finite")
        # Refuses what is no number, now and not when it runs.
        self.limits  # noqa: B018

    @staticmethod
    def from_runs(
        inner: Pattern[Q, U], taken: Sequence[LimitUsage], *, headroom: float = 1.5
    ) -> BoundedExecution[Q, U]:
        """The profile of one type of task: each cap is `headroom` times the 99th percentile of what its runs took.

        Args:
            inner: The pattern that ran.
            taken: What the runs have taken, as `taken` of their outcomes.
            headroom: How far the caps are above that.
        """
        if not taken:
            raise CatalogError("pattern.bad-profile", "V9: there are no runs to set caps from", expected="1 or more")
        uses: dict[CapName, MeasuredUse] = {
            "max_steps": MeasuredUse.of([each.calls for each in taken]),
            "max_tool_calls": MeasuredUse.of([each.tool_calls for each in taken]),
            "max_tokens": MeasuredUse.of([each.tokens for each in taken]),
            "max_seconds": MeasuredUse.of([each.seconds for each in taken]),
            "max_money": MeasuredUse.of([each.money for each in taken]),
        }
        caps: dict[str, Any] = {name: math.ceil(headroom * use.p99) for name, use in uses.items()}
        caps |= {name: max(1, caps[name]) for name in ("max_steps", "max_tokens", "max_seconds")}
        caps["max_money"] = headroom * uses["max_money"].p99
        return BoundedExecution(inner, **caps, headroom=headroom, measured=uses)

    @property
    def limits(self) -> Limits:
        """The caps as the meter counts them."""
        return Limits(
            rounds=_MANY,
            calls=self.max_steps,
            tool_calls=self.max_tool_calls or 1,
            tokens=self.max_tokens,
            seconds=float(self.max_seconds),
            # A meter has no limit of 0; what costs anything at all costs more than this.
            money=max(float(self.max_money), 1e-12),
            scope=STRATEGY,
        )

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        async with context.within_limits(self.limits, warn_at=self.warn_at) as bounded:
            if not self.max_tool_calls:
                bounded.restrict_tools(())
            answer = await self.inner.execute(bounded, *args, **kwargs)
            if (refusal := bounded.meter.refusal) is not None:
                # Whoever caught the end at a cap has a part of the answer, which must not pass for all of it.
                raise refusal
            return answer


# An example ---------------------------------------------------------------------------------------------------------


EXAMPLE = PatternExample(
    "A loop that looks things up has a cap on everything that it takes, and stays within them.",
    lambda folder: BoundedExecution(ReAct(max_steps=4), max_steps=5, max_tool_calls=4, max_tokens=20_000),
    REACT_EXAMPLE.task,
    REACT_EXAMPLE.is_correct,
    REACT_EXAMPLE.sizes,
    REACT_EXAMPLE.tools,
)

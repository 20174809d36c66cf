"""V5, guardrail layering: checks in code at four seams (input, call, result, output) around any other pattern.

Use it wherever an agent has tools or reads text from outside. Each guard says pass, redact or refuse, with a rule that
has a name; one that fails has said no. Guards at the output alone see only what has already happened, and are refused
unless somebody says why that will do. They are a layer among others: labels and policy hold whatever a guard misses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, ParamSpec, TypeVar, cast

from bicameral.errors import BicameralError, CatalogError
from bicameral.labels import Label
from bicameral.strategies import listed
from bicameral.tools import Origin, Registry, Tool, tool

from ..integration.tool_call import ROUTER, Routed, ToolCalling
from ..kernel import Answered, Example, Labelled, Pattern, Stage, changed, said
from ._guard_trial import Case, Tried, tried
from ._guards import (
    REMOVED,
    SEAMS,
    Check,
    Guard,
    Pass,
    Redact,
    Refuse,
    Seam,
    Seen,
    Verdict,
    fits,
    longest,
    screened,
    without_secrets,
    without_words,
)
from ._looking import looked_at

__all__ = [
    "SEAMS",
    "Case",
    "Check",
    "Guard",
    "Guardrails",
    "Pass",
    "Redact",
    "Refuse",
    "Seam",
    "Seen",
    "Tried",
    "Verdict",
    "fits",
    "longest",
    "screened",
    "without_secrets",
    "without_words",
]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Guardrails(Pattern[P, T]):
    """Another pattern with guards around it: it takes what that takes and gives what that gives.

    Example:
        >>> guarded = Guardrails(ReAct(), (longest("input", 2000), screened("result"), without_secrets("output")))
        >>> outcome = await guarded.run(desk, said("What do they say about us?"))
    """

    id: ClassVar[str] = "V5"
    inner: Pattern[P, T]
    guards: tuple[Guard, ...]
    output_only: str = ""
    """Why guards at the output alone are enough here."""
    bypass_alarm: float = 0.01
    scope_alarm: float = 0.005
    output_alarm: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        if unknown := next((guard.at for guard in self.guards if guard.at not in SEAMS), None):
            raise CatalogError("pattern.bad-knob", f"V5: there is no seam {unknown!r}", expected=", ".join(SEAMS))
        if not self.guards or (self.at == ("output",) and not self.output_only.strip()):
            raise CatalogError(
                "pattern.output-only",
                "there are guards at the output alone" if self.guards else "there is no guard",
                expected="guards at the input, before calls and at their results, too",
                fix="Say with `output_only` why the others are not needed, if they are not.",
            )

    @property
    def at(self) -> tuple[Seam, ...]:
        """The seams where guards stand."""
        return tuple(seam for seam in SEAMS if any(guard.at == seam for guard in self.guards))

    @property
    def knobs(self) -> Mapping[str, Any]:
        return {"at": list(self.at), **super().knobs}

    def tried(self, cases: Iterable[Case]) -> Tried:
        """How these guards do on cases of which it is known whether they are bad. No model is asked, nothing is called.

        Where the share of bad ones that go through as they are is above the alarm of their seam, it must be tightened:
        `bypass_alarm` at the input and at results, `scope_alarm` before calls, `output_alarm` at the output.
        """
        most: Mapping[Seam, float] = {
            "input": self.bypass_alarm,
            "call": self.scope_alarm,
            "result": self.bypass_alarm,
            "output": self.output_alarm,
        }
        return tried(self.guards, cases, most)

    def architecture(self) -> Mapping[str, Any]:
        inner = self.inner.architecture()
        return {**inner, "name": self.facts.name, "patterns": [{self.id: dict(self.knobs)}, *inner["patterns"]]}

    async def on(self, stage: Stage, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        if self.output_only:
            stage.note("output-only", reason=self.output_only)
        given = tuple(self._passed(stage, "input", each) for each in args)
        named = {name: self._passed(stage, "input", each) for name, each in kwargs.items()}

        async def guarded(part: Stage) -> Labelled[T]:
            part.guard(_AtCalls(self.guards, part))
            return await cast("Any", self.inner).on(part, *given, **named)

        return self._passed(stage, "output", await stage.do("guarded", guarded))

    def _passed(self, stage: Stage, seam: Seam, value: Any) -> Any:
        """The value if the guards of a seam let it pass, as they let it pass. What is closed stays closed."""
        match value:
            case Labelled():
                return self._closed(stage, seam, cast("Labelled[Any]", value))
            case list() | tuple():
                each = [self._passed(stage, seam, item) for item in cast("Sequence[Any]", value)]
                return each if isinstance(value, list) else tuple(each)
            case Mapping():
                entries = cast("Mapping[Any, Any]", value)
                return {name: self._passed(stage, seam, item) for name, item in entries.items()}
            case _:
                return looked_at(self.guards, seam, Seen(value, stage.opened.trusted), stage.note)

    def _closed(self, stage: Stage, seam: Seam, value: Labelled[Any]) -> Labelled[Any]:
        differs: list[bool] = []

        def look(opened: Any) -> Any:
            passed = looked_at(self.guards, seam, Seen(opened, value.label.trusted), stage.note)
            differs.append(passed is not opened)
            return passed

        try:
            passed = changed(value, look)
        except BicameralError:
            # Whoever goes on without it does so because of what is in it.
            stage.read(value)
            raise
        # As it was it keeps the labels of its parts.
        return passed if differs[0] else value


@dataclass(frozen=True, slots=True)
class _AtCalls:
    """The guards of the seams at tools, for a stage to ask."""

    guards: tuple[Guard, ...]
    stage: Stage

    def before(self, tool: Tool, arguments: Mapping[str, Any], label: Label) -> None:
        looked_at(self.guards, "call", Seen(dict(arguments), label.trusted, tool.name), self.stage.note)

    def after(self, tool: Tool, value: Any, label: Label) -> Any:
        return looked_at(self.guards, "result", Seen(value, label.trusted, tool.name), self.stage.note)


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "Look up the customer Ada Moss."
_OURS = ("Ada Moss", "Ben Field")


def _known(seen: Seen) -> Verdict:
    return Pass() if seen.value["name"] in _OURS else Refuse("this is no customer of ours")


def _tools(folder: Path) -> Sequence[Tool]:
    @tool(effect="read", outbound=False, origins=Origin("system"), purpose={"name": "selects"})
    def find_customer(name: str) -> str:
        """What is known of a customer."""
        return f"{name}, pays with 4111 1111 1111 1111, since 2019"

    return (find_customer,)


def _good(outcome: Answered[Routed]) -> bool:
    right = outcome.value["result"] == f"Ada Moss, pays with {REMOVED}, since 2019"
    return right and [each.tool for each in outcome.called] == ["find_customer"]


def _sizes(folder: Path) -> dict[str, int | float | str]:
    tools = f"Tools:\n{listed(Registry(_tools(folder)))}"
    return {"setup": ROUTER.setup, "tools": tools, "input": _TASK, "item_output": 25}


EXAMPLE = Example(
    "A customer is looked up: only one of ours, and without the number of the card.",
    lambda folder: Guardrails(
        ToolCalling(),
        (
            longest("input", 500),
            Guard("our customers", "call", _known),
            screened("result"),
            without_secrets("result"),
            without_secrets("output"),
        ),
    ),
    lambda folder: (said(_TASK),),
    _good,
    _sizes,
    _tools,
)

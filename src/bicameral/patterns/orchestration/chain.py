"""O2, prompt chaining: a fixed row of patterns, each of which gets the result of the one before and nothing else.

Use it where the steps can be listed before the input is read. `a.then(b)` and `a | b` make one. Gates check what passes
from one step to the next, `takes` names the fields that pass at all, a `Branch` picks one of its ways by name, and a
`Spread` runs a step for each item of a list. Which step comes next is decided by code alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, ParamSpec, TypedDict, TypeVar, cast

from bicameral.errors import BicameralError, CatalogError, RunError
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    format_text,
    join_labelled,
    select_fields,
)
from bicameral.patterns.kernel._codec import fingerprint, to_record
from bicameral.patterns.signal.output_template import HOST as TEMPLATE_HOST, OutputTemplate
from bicameral.patterns.signal.zero_shot import ZeroShot

P = ParamSpec("P")
T = TypeVar("T")

GateCheck = Callable[[Any], str | None]
"""Gets the value that is to pass on. None lets it pass; a text says what is wrong with it, in words of the program."""


@dataclass(frozen=True)
class Branch:
    """A step that is one of several ways: the one that the value names.

    Args:
        ways: The ways by name. The one that is taken gets the whole value.
        by: The field of the value that names the way; by default the value itself does.
    """

    ways: Mapping[str, Pattern[..., Any]]
    by: str = ""


@dataclass(frozen=True)
class Spread:
    """A step that runs for each item of a list, at most `most` of them and `width` at once; it gives a list."""

    step: Pattern[..., Any]
    width: int = 4
    most: int = 20


ChainStep = Pattern[..., Any] | Branch | Spread


def not_empty(value: object) -> str | None:
    """A gate that holds back nothing, an empty text and an empty list."""
    return None if value and not (isinstance(value, str) and not value.strip()) else "it is empty"


@dataclass(frozen=True)
class Chain(Pattern[P, T], Generic[P, T]):
    """Steps in order, each in its own part: it reads its input, and nothing else of the chain.

    Args:
        steps: The patterns, the first of which gets the arguments of the chain.
        gates: A check behind a step, by its number from 0 on.
        takes: The fields of the record before it that a step gets, by its number. Of one field it gets the value, of
            several a record; without an entry it gets the whole result.
        max_retries: How often one gate may send its step back. The step is run again from its own input, and every
            prompt of it begins with the reason.
        max_forks: How many levels of branches there may be.

    Example:
        >>> chain = Chain.of(OutputTemplate(form), Writer()).with_gate(0, not_empty).with_fields(1, "product", "city")
    """

    id: ClassVar[str] = "O2"
    steps: tuple[ChainStep, ...]
    gates: Mapping[int, GateCheck] = field(default_factory=dict[int, GateCheck])
    max_retries: int = 1
    takes: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    max_forks: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.steps or not isinstance(self.steps[0], Pattern):
            raise CatalogError(
                "pattern.bad-knob", "O2: the chain has no first step", expected="a pattern that gets its arguments"
            )
        for what, numbers, first in (("gate behind", self.gates, 0), ("choice of fields before", self.takes, 1)):
            if unknown := sorted(set(numbers) - set(range(first, len(self.steps)))):
                raise CatalogError(
                    "pattern.bad-knob",
                    f"O2: there is a {what} step {unknown[0]}",
                    expected=f"{first} to {len(self.steps) - 1}",
                    fix="Steps are counted from 0 on, and the first gets its arguments as they are.",
                )
        if (forks := _fork_levels(self)) > self.max_forks:
            raise CatalogError(
                "pattern.bad-knob",
                f"O2: there are {forks} levels of branches",
                expected=f"at most {self.max_forks}",
                fix="Where kinds of input are treated differently as a whole, use O3.",
            )

    @classmethod
    def of(cls, first: Pattern[P, Any], *following: ChainStep) -> Chain[P, Any]:
        """A chain of these. A chain among them is taken apart, so that the order of `|` makes no difference."""
        steps: list[ChainStep] = []
        gates: dict[int, GateCheck] = {}
        takes: dict[int, tuple[str, ...]] = {}
        retries, forks = cls.max_retries, cls.max_forks
        for each in (first, *following):
            if isinstance(each, Chain):
                inner = cast("Chain[..., Any]", each)
                gates |= {len(steps) + number: gate for number, gate in inner.gates.items()}
                takes |= {len(steps) + number: names for number, names in inner.takes.items()}
                steps += inner.steps
                retries, forks = max(retries, inner.max_retries), max(forks, inner.max_forks)
            else:
                steps.append(each)
        return cls(tuple(steps), gates, retries, takes, forks)

    def with_gate(self, behind: int, check: GateCheck) -> Chain[P, T]:
        """This chain with a check of what the step gives."""
        return replace(self, gates={**self.gates, behind: check})

    def with_fields(self, step: int, *names: str) -> Chain[P, T]:
        """This chain with a step that gets these fields of the result before it, and no others."""
        return replace(self, takes={**self.takes, step: names})

    @property
    def knobs(self) -> Mapping[str, Any]:
        return {"stages": max(2, len(self.steps)), "max_retries": self.max_retries, "max_forks": self.max_forks}

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        value = await self._pass_step(context, 0, args, kwargs)
        for number in range(1, len(self.steps)):
            if number in self.takes:
                names = self.takes[number]
                value = value.field(names[0]) if len(names) == 1 else select_fields(value, names)
            value = await self._pass_step(context, number, (value,), {})
        return value

    async def _pass_step(
        self, context: Context, number: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Labelled[Any]:
        """The result of a step that its gate lets pass; the run fails if none does."""
        step, gate, why = self.steps[number], self.gates.get(number), None
        for left in range(self.max_retries, -1, -1):
            value = await _run_step(context, number, step, args, kwargs, why)
            if gate is None:
                return value
            complaint = _ask_gate(context, number, gate, value)
            if complaint is None:
                return value
            if left == 0:
                # The words of a gate may quote the value.
                said = complaint if value.label.trusted else "(the value is untrusted, and so are the words about it)"
                raise _gate_error(number, f"what it gave does not pass: {said}")
            why = context.derive(complaint)
        raise AssertionError("a chain without an end")


async def _run_step(
    context: Context,
    number: int,
    step: ChainStep,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    why: Labelled[str] | None,
) -> Labelled[Any]:
    chosen = _choose_way(context, number, step, args) if isinstance(step, Branch) else step
    name = "spread" if isinstance(chosen, Spread) else chosen.id
    context.note("step", step=number + 1, pattern=name, again=why is not None)

    async def work(part: Context) -> Labelled[Any]:
        if why is not None:
            part.prepend_to_prompts(format_text("An earlier result was sent back: {why}", why=why))
        if isinstance(chosen, Spread):
            return await _run_spread(part, chosen, args[0])
        return await chosen.execute(part, *args, **kwargs)

    return await context.run_part(f"{number + 1} {name}", work)


def _choose_way(context: Context, number: int, branch: Branch, args: tuple[Any, ...]) -> Pattern[..., Any]:
    # Which way is taken depends on the value, so that everything behind the branch has its label.
    named = context.read(args[0].field(branch.by) if branch.by else args[0])
    if not isinstance(named, str) or named not in branch.ways:
        raise RunError(
            "pattern.no-way",
            f"what step {number + 1} branches by names none of its ways",
            expected=f"one of {', '.join(branch.ways)}",
        )
    context.note("branch", step=number + 1, way=named)
    return branch.ways[named]


async def _run_spread(part: Context, spread: Spread, items: Labelled[Any]) -> Labelled[list[Any]]:
    found = part.read(items)
    if not isinstance(found, list) or len(cast("list[Any]", found)) > spread.most:
        raise RunError("pattern.bad-spread", "there is no list to spread", expected=f"a list of at most {spread.most}")
    listed = cast("list[Any]", found)
    works = [
        (f"item {n}", partial(_run_item, step=spread.step, item=part.derive(each))) for n, each in enumerate(listed, 1)
    ]
    results = await part.run_parallel(works, width=spread.width)
    for each in results:
        if isinstance(each, BicameralError):
            raise each
    return join_labelled(each for each in results if isinstance(each, Labelled))


async def _run_item(part: Context, step: Pattern[..., Any], item: Labelled[Any]) -> Labelled[Any]:
    return await step.execute(part, item)


def _ask_gate(context: Context, number: int, gate: GateCheck, value: Labelled[Any]) -> str | None:
    """The complaint of a gate. One that fails, or says neither yes nor what is wrong, ends the chain."""
    # The verdict is about the value, so that everything behind the gate has its label.
    opened = context.read(value)
    try:
        complaint = gate(opened)
        # A gate is anybody's code: a truth value in place of words says nothing.
        fault = "" if complaint is None or (type(complaint) is str and complaint) else "gave no verdict"
    except Exception as error:
        complaint, fault = None, f"failed with {type(error).__name__}"
    passed = complaint is None and not fault
    context.note("gate", step=number + 1, passed=passed, value=fingerprint(to_record(opened))[:12])
    if fault:
        raise _gate_error(number, f"the gate behind it {fault}, which counts as a no")
    return complaint


def _gate_error(number: int, what: str) -> RunError:
    return RunError(
        "pattern.gate-failed",
        f"step {number + 1}: {what}",
        fix="The run has what it gave: `bicameral runs show`.",
    )


def _fork_levels(step: object) -> int:
    """How many branches are inside one another."""
    if isinstance(step, Branch):
        return 1 + max((_fork_levels(each) for each in step.ways.values()), default=0)
    if isinstance(step, Spread):
        return _fork_levels(step.step)
    if isinstance(step, Chain):
        return max((_fork_levels(each) for each in cast("Chain[..., Any]", step).steps), default=0)
    return 0


# An example ---------------------------------------------------------------------------------------------------------


class _Order(TypedDict):
    customer: str
    product: str
    city: str


_MAIL: Final = "Hello, this is Ada Young. Please send the garden table to my house in Ghent. Thank you!"
_WRITER = Role("Step", "Write one short sentence that says what is delivered and where.", max_tokens=64)


def _is_correct(outcome: Answered[str]) -> bool:
    told = outcome.value.lower()
    return "table" in told and "ghent" in told and "ada" not in told


EXAMPLE = PatternExample(
    "A mail becomes an order, and the order a sentence; the name of the customer does not reach the second step.",
    lambda folder: (
        Chain.of(OutputTemplate.of(_Order), ZeroShot(_WRITER)).with_gate(0, not_empty).with_fields(1, "product", "city")
    ),
    _MAIL,
    _is_correct,
    lambda folder: {"setup": TEMPLATE_HOST.setup, "input": _MAIL, "output": 22},
)

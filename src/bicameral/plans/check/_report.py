"""What the check reports: findings, effects, and the worst-case cost.

The cost counts calls, using the lengths of the lists that loops iterate over. An unknown length is assumed, and the
bound says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bicameral.errors import BicameralError, Place
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import Call, Compute, Each, Extract, Plan, Update, When, walk
from bicameral.tools import Effect, Registry
from bicameral.types import ListType, Type, type_to_json

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, doubtful or worth knowing, at a step of the plan."""

    severity: Severity
    code: str
    message: str
    path: str = ""
    place: Place | None = None
    expected: str | None = None
    nearest: str | None = None
    fix: str | None = None

    def __str__(self) -> str:
        place = self.place or (Place(step=self.path) if self.path else None)
        hints = {"expected": self.expected, "nearest": self.nearest, "fix": self.fix}
        return str(BicameralError(self.code, self.message, place=place, **hints))

    def to_json(self) -> dict[str, Any]:
        """The same facts for a program: absent ones are left out."""
        facts = asdict(self) | {"path": self.path or None, "place": self.place.to_json() if self.place else None}
        return {key: value for key, value in facts.items() if value is not None}


@dataclass(frozen=True, slots=True)
class EffectUse:
    """A step that calls a tool, and the effect of the tool."""

    path: str
    tool: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class CallBound:
    """An upper bound; `assumed` if it depends on the assumed length of a list."""

    most: int = 0
    assumed: bool = False

    def __str__(self) -> str:
        return f"at most {self.most:,}" + (" (assumed)" if self.assumed else "")


@dataclass(frozen=True, slots=True)
class PlanCost:
    """How many calls a run can make at worst."""

    model_calls: CallBound = CallBound()
    tool_calls: CallBound = CallBound()


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """How many calls a plan may make; `max_items` is the assumed length of a list of unknown length."""

    max_items: int = 100
    max_tool_calls: int = 10_000
    max_model_calls: int = 1_000


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check: findings, effects, worst-case cost, and the types of the variables at the end."""

    findings: tuple[Finding, ...] = ()
    effects: tuple[EffectUse, ...] = ()
    cost: PlanCost = PlanCost()
    types: Mapping[str, Type] = field(default_factory=dict[str, Type])

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether the plan may run."""
        return not self.errors

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "findings": [finding.to_json() for finding in self.findings],
            "effects": [asdict(use) for use in self.effects],
            "cost": asdict(self.cost),
            "types": {name: type_to_json(type_) for name, type_ in self.types.items()},
        }


_SAME_LENGTH = frozenset(
    {"sorted", "reversed", "list", "tuple", "set", "unique", "enumerate", "keys", "values", "items", "dict"}
)
_COUNT_ARGUMENTS = frozenset({"count", "limit", "n", "most", "max_results", "max_items", "top"})
"""Arguments of tools that bound the length of the list that is returned."""

Lengths = dict[str, int]


def known_length(expr: Any, lengths: Mapping[str, int]) -> int | None:
    """The most items a list can have, if that is known before the run."""
    match expr:
        case ir.ListOf(items=items) | ir.TupleOf(items=items):
            return len(items)
        case ir.Ref(name=name):
            return lengths.get(name)
        case ir.Slice():
            return _slice_length(expr, lengths)
        case ir.Choose(then=then, otherwise=otherwise):
            return _combine_lengths(max, known_length(then, lengths), known_length(otherwise, lengths))
        case ir.Arithmetic(op="+", left=left, right=right):
            return _combine_lengths(int.__add__, known_length(left, lengths), known_length(right, lengths))
        case ir.Comprehension(clauses=clauses):
            return _multiply_lengths([known_length(clause.over, lengths) for clause in clauses])
        case ir.Apply(function="range", args=args):
            return _range_length(args)
        case ir.Apply(function="zip", args=args):
            return min((n for arg in args if (n := known_length(arg, lengths)) is not None), default=None)
        case ir.Apply(function=function, args=(first, *_)) if function in _SAME_LENGTH:
            return known_length(first, lengths)
        case _:
            return None


def _combine_lengths(how: Any, left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else how(left, right)


def _multiply_lengths(lengths: list[int | None]) -> int | None:
    known = [length for length in lengths if length is not None]
    return math.prod(known) if len(known) == len(lengths) else None


def _constant_int(expr: Any) -> int | None:
    return expr.value if isinstance(expr, ir.Const) and type(expr.value) is int else None


def _slice_length(expr: ir.Slice, lengths: Mapping[str, int]) -> int | None:
    whole = known_length(expr.value, lengths)
    start, stop = _constant_int(expr.start), _constant_int(expr.stop)
    part: int | None = None
    if stop is not None and stop >= 0 and (expr.start is None or (start is not None and start >= 0)):
        part = max(stop - (start or 0), 0)
    elif start is not None and start < 0 and expr.stop is None:
        part = -start
    # A positive step only takes fewer items; a negative one reverses the bounds.
    if expr.step is not None and (_constant_int(expr.step) or -1) < 0:
        part = None
    return whole if part is None else part if whole is None else min(part, whole)


def _range_length(args: tuple[Any, ...]) -> int | None:
    numbers = [_constant_int(arg) for arg in args]
    if not 1 <= len(numbers) <= 3 or None in numbers or numbers[2:] == [0]:
        return None
    found = range(*[number for number in numbers if number is not None])
    return max((found.stop - found.start) // found.step + 1, 0)


@dataclass(slots=True)
class _CallCounter:
    registry: Registry
    limits: PlanLimits
    model_calls: int = 0
    tool_calls: int = 0
    assumed_kinds: set[str] = field(default_factory=set[str])
    """The kinds of calls whose number depends on an assumed length."""
    _assumed_loops: int = 0
    most_frequent: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """For tools and models: the step that runs most often, and how often."""

    def count_steps(self, steps: tuple[Any, ...], times: int, lengths: Lengths, at: str) -> None:
        for number, step in enumerate(steps):
            self.count_step(step, times, lengths, f"{at}{number}")

    def count_step(self, step: Any, times: int, lengths: Lengths, path: str) -> None:
        match step:
            case Call(name=name):
                self.tool_calls += times
                self._record_calls("tool", path, times)
                _set_length(lengths, name, self._tool_length(step))
            case Extract(name=name):
                self.model_calls += times
                self._record_calls("model", path, times)
                lengths.pop(name, None)
            case Compute(name=name, value=value):
                _set_length(lengths, name, known_length(value, lengths))
            case Update(name=name, op="append") if name in lengths:
                lengths[name] += 1
            case Update(name=name, op="add", value=value) if name in lengths:
                _set_length(lengths, name, _combine_lengths(int.__add__, lengths[name], known_length(value, lengths)))
            case Update(name=name):
                lengths.pop(name, None)
            case Each():
                self._count_each(step, times, lengths, path)
            case When():
                self._count_when(step, times, lengths, path)
            case _:
                pass

    def _count_each(self, step: Each, times: int, lengths: Lengths, path: str) -> None:
        rounds = known_length(step.over, lengths)
        guessed = rounds is None
        rounds = self.limits.max_items if rounds is None else rounds
        changed = assigned_names(step.steps)
        # Inside the loop nothing is known about what the loop itself changes.
        inside = {name: length for name, length in lengths.items() if name not in changed}
        self._assumed_loops += guessed
        self.count_steps(step.steps, times * rounds, inside, f"{path}/")
        self._assumed_loops -= guessed
        for name in changed & lengths.keys():
            grown = _appends_per_turn(step.steps, name)
            _set_length(lengths, name, None if grown is None else lengths[name] + grown * rounds)
        for name in step.names:
            lengths.pop(name, None)

    def _count_when(self, step: When, times: int, lengths: Lengths, path: str) -> None:
        before = self.model_calls, self.tool_calls
        then, otherwise = dict(lengths), dict(lengths)
        self.count_steps(step.steps, times, then, f"{path}/then/")
        after_then = self.model_calls, self.tool_calls
        self.model_calls, self.tool_calls = before
        self.count_steps(step.otherwise, times, otherwise, f"{path}/else/")
        self.model_calls = max(self.model_calls, after_then[0])
        self.tool_calls = max(self.tool_calls, after_then[1])
        lengths.clear()
        lengths.update({name: max(then[name], otherwise[name]) for name in then.keys() & otherwise.keys()})

    def _tool_length(self, step: Call) -> int | None:
        tool = self.registry.get(step.tool)
        if tool is None or not isinstance(tool.result, ListType):
            return None
        given = {argument.name: argument.default for argument in tool.arguments if type(argument.default) is int}
        given |= {name: _constant_int(expr) for name, expr in step.args.items()}
        bounds = [
            count for name, count in given.items() if name in _COUNT_ARGUMENTS and count is not None and count >= 0
        ]
        return min(bounds, default=None)

    def _record_calls(self, what: str, path: str, times: int) -> None:
        if self._assumed_loops:
            self.assumed_kinds.add(what)
        if times > self.most_frequent.get(what, ("", 0))[1]:
            self.most_frequent[what] = (path, times)


def _set_length(lengths: Lengths, name: str | None, length: int | None) -> None:
    if name is not None and length is not None:
        lengths[name] = length
    elif name is not None:
        lengths.pop(name, None)


def assigned_names(steps: tuple[Any, ...]) -> frozenset[str]:
    """The variables that these steps, or steps inside them, give a value."""
    names: set[str] = set()
    for _, step in walk(steps):
        match step:
            case Each(names=bound):
                names |= set(bound)
            case Compute(name=name) | Update(name=name) | Extract(name=name):
                names.add(name)
            case _:
                if name := getattr(step, "name", None):
                    names.add(name)
    return frozenset(names)


def _appends_per_turn(steps: tuple[Any, ...], name: str) -> int | None:
    """How many items a round of a loop adds to a list, if it only appends to it, outside of inner loops."""
    grown = 0
    loops: list[str] = []
    for path, step in walk(steps):
        if isinstance(step, Each):
            loops.append(f"{path}/")
        if name not in assigned_names((step,)) or isinstance(step, Each | When):
            continue
        if not (isinstance(step, Update) and step.op == "append") or path.startswith(tuple(loops)):
            return None
        grown += 1
    return grown


def estimate_cost(plan: Plan, registry: Registry, limits: PlanLimits) -> tuple[PlanCost, list[Finding]]:
    """The worst-case number of calls, and a finding for each kind that exceeds its limit."""
    counter = _CallCounter(registry, limits)
    counter.count_steps(plan.steps, 1, {}, "")
    findings: list[Finding] = []
    for what, most, limit in (
        ("tool", counter.tool_calls, limits.max_tool_calls),
        ("model", counter.model_calls, limits.max_model_calls),
    ):
        if most > limit:
            path, times = counter.most_frequent[what]
            guess = (
                f", taking lists of unknown length for {limits.max_items:,} items"
                if what in counter.assumed_kinds
                else ""
            )
            findings.append(
                Finding(
                    "error",
                    "plan.unbounded-fan-out",
                    f"the plan may make {most:,} {what} calls, {times:,} of them here{guess}",
                    path,
                    expected=f"at most {limit:,}",
                    fix="Loop over a part of the list: `for x in xs[:50]:`.",
                )
            )
    return (
        PlanCost(
            CallBound(counter.model_calls, "model" in counter.assumed_kinds),
            CallBound(counter.tool_calls, "tool" in counter.assumed_kinds),
        ),
        findings,
    )


def list_effects(plan: Plan, registry: Registry) -> tuple[EffectUse, ...]:
    """Every call of a known tool with its effect, in the order of the plan."""
    found: list[EffectUse] = []
    for path, step in walk(plan.steps):
        if isinstance(step, Call) and (tool := registry.get(step.tool)) is not None:
            found.append(EffectUse(path, tool.name, tool.effect))
    return tuple(found)

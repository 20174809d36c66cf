"""How much a plan does at worst: its calls, counted with the lengths of the lists that loops go over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bicameral.tools import Registry
from bicameral.types import ListType

from ._expressions import Apply, Arithmetic, Choose, Comprehension, Const, ListOf, Ref, Slice, TupleOf
from ._findings import Bound, Cost, EffectUse, Finding, Limits
from ._plan import Call, Compute, Each, Extract, Plan, Update, When, walk

_SAME_LENGTH = frozenset(
    {"sorted", "reversed", "list", "tuple", "set", "unique", "enumerate", "keys", "values", "items", "dict"}
)
_AS_MANY_AS = frozenset({"count", "limit", "n", "most", "max_results", "max_items", "top"})
"""Arguments of tools that bound the length of the list they give."""

Lengths = dict[str, int]


def length_of(expr: Any, lengths: Mapping[str, int]) -> int | None:
    """The most items a list can have, if that is known before the run."""
    match expr:
        case ListOf(items=items) | TupleOf(items=items):
            return len(items)
        case Ref(name=name):
            return lengths.get(name)
        case Slice():
            return _slice_length(expr, lengths)
        case Choose(then=then, otherwise=otherwise):
            return _combined(max, length_of(then, lengths), length_of(otherwise, lengths))
        case Arithmetic(op="+", left=left, right=right):
            return _combined(int.__add__, length_of(left, lengths), length_of(right, lengths))
        case Comprehension(clauses=clauses):
            return _product([length_of(clause.over, lengths) for clause in clauses])
        case Apply(function="range", args=args):
            return _range_length(args)
        case Apply(function="zip", args=args):
            return min((n for arg in args if (n := length_of(arg, lengths)) is not None), default=None)
        case Apply(function=function, args=(first, *_)) if function in _SAME_LENGTH:
            return length_of(first, lengths)
        case _:
            return None


def _combined(how: Any, left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else how(left, right)


def _product(numbers: list[int | None]) -> int | None:
    found = 1
    for number in numbers:
        if number is None:
            return None
        found *= number
    return found


def _constant(expr: Any) -> int | None:
    return expr.value if isinstance(expr, Const) and type(expr.value) is int else None


def _slice_length(expr: Slice, lengths: Mapping[str, int]) -> int | None:
    whole = length_of(expr.value, lengths)
    start, stop = _constant(expr.start), _constant(expr.stop)
    part: int | None = None
    if stop is not None and stop >= 0 and (expr.start is None or (start is not None and start >= 0)):
        part = max(stop - (start or 0), 0)
    elif start is not None and start < 0 and expr.stop is None:
        part = -start
    # A step only takes fewer; a negative one turns the bounds around.
    if expr.step is not None and (_constant(expr.step) or -1) < 0:
        part = None
    return whole if part is None else part if whole is None else min(part, whole)


def _range_length(args: tuple[Any, ...]) -> int | None:
    numbers = [_constant(arg) for arg in args]
    if not 1 <= len(numbers) <= 3 or None in numbers or numbers[2:] == [0]:
        return None
    found = range(*[number for number in numbers if number is not None])
    return max((found.stop - found.start) // found.step + 1, 0)


@dataclass(slots=True)
class _Counter:
    registry: Registry
    limits: Limits
    model_calls: int = 0
    tool_calls: int = 0
    assumed: set[str] = field(default_factory=set[str])
    """Of which calls the number rests on an assumed length."""
    _guessing: int = 0
    worst: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """For tools and models: the step that is done most often, and how often."""

    def steps(self, steps: tuple[Any, ...], times: int, lengths: Lengths, at: str) -> None:
        for number, step in enumerate(steps):
            self.step(step, times, lengths, f"{at}{number}")

    def step(self, step: Any, times: int, lengths: Lengths, path: str) -> None:
        match step:
            case Call(name=name):
                self.tool_calls += times
                self._note("tool", path, times)
                _set(lengths, name, self._tool_length(step))
            case Extract(name=name):
                self.model_calls += times
                self._note("model", path, times)
                lengths.pop(name, None)
            case Compute(name=name, value=value):
                _set(lengths, name, length_of(value, lengths))
            case Update(name=name, op="append") if name in lengths:
                lengths[name] += 1
            case Update(name=name, op="add", value=value) if name in lengths:
                _set(lengths, name, _combined(int.__add__, lengths[name], length_of(value, lengths)))
            case Update(name=name):
                lengths.pop(name, None)
            case Each():
                self._each(step, times, lengths, path)
            case When():
                self._when(step, times, lengths, path)
            case _:
                pass

    def _each(self, step: Each, times: int, lengths: Lengths, path: str) -> None:
        rounds = length_of(step.over, lengths)
        guessed = rounds is None
        rounds = self.limits.max_items if rounds is None else rounds
        changed = changed_in(step.steps)
        # Inside the loop nothing is known about what the loop itself changes.
        inside = {name: length for name, length in lengths.items() if name not in changed}
        self._guessing += guessed
        self.steps(step.steps, times * rounds, inside, f"{path}/")
        self._guessing -= guessed
        for name in changed & lengths.keys():
            grown = _growth(step.steps, name)
            _set(lengths, name, None if grown is None else lengths[name] + grown * rounds)
        for name in step.names:
            lengths.pop(name, None)

    def _when(self, step: When, times: int, lengths: Lengths, path: str) -> None:
        before = self.model_calls, self.tool_calls
        then, otherwise = dict(lengths), dict(lengths)
        self.steps(step.steps, times, then, f"{path}/then/")
        after_then = self.model_calls, self.tool_calls
        self.model_calls, self.tool_calls = before
        self.steps(step.otherwise, times, otherwise, f"{path}/else/")
        self.model_calls = max(self.model_calls, after_then[0])
        self.tool_calls = max(self.tool_calls, after_then[1])
        lengths.clear()
        lengths.update({name: max(then[name], otherwise[name]) for name in then.keys() & otherwise.keys()})

    def _tool_length(self, step: Call) -> int | None:
        tool = self.registry.get(step.tool)
        if tool is None or not isinstance(tool.result, ListType):
            return None
        given = {argument.name: argument.default for argument in tool.arguments if type(argument.default) is int}
        given |= {name: _constant(expr) for name, expr in step.args.items()}
        bounds = [count for name, count in given.items() if name in _AS_MANY_AS and count is not None and count >= 0]
        return min(bounds, default=None)

    def _note(self, what: str, path: str, times: int) -> None:
        if self._guessing:
            self.assumed.add(what)
        if times > self.worst.get(what, ("", 0))[1]:
            self.worst[what] = (path, times)


def _set(lengths: Lengths, name: str | None, length: int | None) -> None:
    if name is not None and length is not None:
        lengths[name] = length
    elif name is not None:
        lengths.pop(name, None)


def changed_in(steps: tuple[Any, ...]) -> frozenset[str]:
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


def _growth(steps: tuple[Any, ...], name: str) -> int | None:
    """How many items a round of a loop adds to a list, if it only appends to it, outside of inner loops."""
    grown = 0
    for path, step in walk(steps):
        if name not in changed_in((step,)):
            continue
        match step:
            case Update(op="append"):
                if _inside_each(steps, path):
                    return None
                grown += 1
            case Each() | When():
                pass
            case _:
                return None
    return grown


def _inside_each(steps: tuple[Any, ...], path: str) -> bool:
    inner = [outer for outer, step in walk(steps) if isinstance(step, Each)]
    return any(path.startswith(f"{outer}/") for outer in inner)


def cost_of(plan: Plan, registry: Registry, limits: Limits) -> tuple[Cost, list[Finding]]:
    """The calls a plan makes at worst, and a finding for each kind of which there may be too many."""
    counter = _Counter(registry, limits)
    counter.steps(plan.steps, 1, {}, "")
    findings: list[Finding] = []
    for what, most, limit in (
        ("tool", counter.tool_calls, limits.max_tool_calls),
        ("model", counter.model_calls, limits.max_model_calls),
    ):
        if most > limit:
            path, times = counter.worst[what]
            guess = (
                f", taking lists of unknown length for {limits.max_items:,} items" if what in counter.assumed else ""
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
        Cost(
            Bound(counter.model_calls, "model" in counter.assumed),
            Bound(counter.tool_calls, "tool" in counter.assumed),
        ),
        findings,
    )


def effects_of(plan: Plan, registry: Registry) -> tuple[EffectUse, ...]:
    """Every call of a known tool with its effect, in the order of the plan."""
    found: list[EffectUse] = []
    for path, step in walk(plan.steps):
        if isinstance(step, Call) and (tool := registry.get(step.tool)) is not None:
            found.append(EffectUse(path, tool.name, tool.effect))
    return tuple(found)

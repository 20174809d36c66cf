"""Which steps must wait for which: for values, and for the order of effects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from bicameral.plans import (
    Answer,
    Ask,
    Call,
    Compute,
    Const,
    Each,
    Expr,
    Extract,
    ListOf,
    Ref,
    Step,
    TupleOf,
    Update,
    When,
    free_names,
)
from bicameral.tools import Registry

from ._overlap import Order

NO_NAMES: frozenset[str] = frozenset()


class World(IntEnum):
    """What a step has to do with the world; the larger, the more it must keep its place."""

    NONE = 0
    READS = 1
    ASKS = 2
    CHANGES = 3
    ENDS = 4


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a step reads and writes, what it does to the world, and whether it has to wait for anything outside."""

    reads: frozenset[str]
    writes: frozenset[str]
    world: World
    waits: bool


@dataclass(frozen=True, slots=True)
class Turns:
    """What the turns of a loop have to do with each other.

    `carried` are the variables by which one turn depends on the turn before. What turns only add to is not among
    them but in `added`: additions are put together afterwards, in the order of the turns.
    """

    carried: frozenset[str]
    added: frozenset[tuple[str, str]]
    world: World

    @property
    def may_overlap(self) -> bool:
        return self.world <= World.READS and not self.carried


class Footprints:
    """Footprints of the steps of one plan, computed once each."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        # By identity: comparing steps deeply would cost more than it saves. Each entry keeps its key alive.
        self._of: dict[int, tuple[object, Footprint]] = {}
        self._orders: dict[int, tuple[object, Order]] = {}
        self._turns: dict[int, tuple[object, Turns]] = {}
        self._names: dict[int, tuple[object, frozenset[str]]] = {}

    def of(self, step: Step) -> Footprint:
        known = self._of.get(id(step))
        if known is None:
            known = self._of[id(step)] = (step, self._compute(step))
        return known[1]

    def names(self, expr: Expr) -> frozenset[str]:
        """The variables that an expression reads."""
        known = self._names.get(id(expr))
        if known is None:
            known = self._names[id(expr)] = (expr, _names(expr))
        return known[1]

    def read_in(self, steps: Sequence[Step]) -> frozenset[str]:
        """The variables that any of these steps reads."""
        return self._block(steps).reads

    def waits(self, steps: Sequence[Step]) -> bool:
        return any(self.of(step).waits for step in steps)

    def order(self, steps: Sequence[Step]) -> Order:
        """Which steps of a block must have ended before which may begin."""
        known = self._orders.get(id(steps))
        if known is None:
            known = self._orders[id(steps)] = (steps, Order.after(dependencies([self.of(step) for step in steps])))
        return known[1]

    def turns(self, each: Each) -> Turns:
        known = self._turns.get(id(each))
        if known is None:
            known = self._turns[id(each)] = (each, _turns(each, self))
        return known[1]

    def _compute(self, step: Step) -> Footprint:
        match step:
            case Call():
                return self._call(step)
            case Extract():
                reads = free_names(step.source) | free_names(step.instruction)
                return Footprint(reads, frozenset({step.name}), World.NONE, True)
            case Compute():
                return Footprint(free_names(step.value), frozenset({step.name}), World.NONE, False)
            case Update():
                return Footprint(_added_from(step) | {step.name}, frozenset({step.name}), World.NONE, False)
            case Ask():
                return Footprint(free_names(step.question), frozenset({step.name}), World.ASKS, True)
            case Answer():
                return Footprint(free_names(step.value), NO_NAMES, World.ENDS, False)
            case Each():
                inner = self._block(step.steps)
                reads = free_names(step.over) | inner.reads
                return Footprint(reads, inner.writes | set(step.names), inner.world, inner.waits)
            case When():
                inner = self._block((*step.steps, *step.otherwise))
                return Footprint(free_names(step.condition) | inner.reads, inner.writes, inner.world, inner.waits)

    def _call(self, step: Call) -> Footprint:
        reads = NO_NAMES.union(*map(_names, step.args.values()))
        writes = frozenset({step.name}) if step.name else NO_NAMES
        tool = self.registry[step.tool]
        looks = tool.effect == "read" or tool.outbound
        world = World.CHANGES if tool.changes else World.READS if looks else World.NONE
        return Footprint(reads, writes, world, True)

    def _block(self, steps: Iterable[Step]) -> Footprint:
        prints = [self.of(step) for step in steps]
        return Footprint(
            NO_NAMES.union(*(each.reads for each in prints)),
            NO_NAMES.union(*(each.writes for each in prints)),
            max((each.world for each in prints), default=World.NONE),
            any(each.waits for each in prints),
        )


def dependencies(prints: Sequence[Footprint]) -> list[set[int]]:
    """For each step of a block the earlier steps that must have ended before it may begin.

    An effect, a question and the answer wait for everything before them: none of them happens when an earlier step
    fails. A read waits for the last effect, and a variable's readers and writers keep their order.
    """
    writer: dict[str, int] = {}
    readers: defaultdict[str, set[int]] = defaultdict(set)
    barrier, last_change, answered = 0, -1, -1
    found: list[set[int]] = []
    for number, own in enumerate(prints):
        waits = {writer[name] for name in own.reads | own.writes if name in writer}
        waits.update(*(readers[name] for name in own.writes if name in readers))
        if own.world >= World.ASKS:
            waits.update(range(barrier, number))
            barrier = number
        elif own.world is World.READS and last_change >= 0:
            waits.add(last_change)
        if answered >= 0:
            waits.add(answered)
        if own.world >= World.CHANGES:
            last_change = number
        if own.world is World.ENDS:
            answered = number
        for name in own.reads:
            readers[name].add(number)
        for name in own.writes:
            writer[name] = number
            readers.pop(name, None)
        found.append(waits)
    return found


def _names(expr: Expr) -> frozenset[str]:
    """`free_names`, and at once for what the arguments of most calls are."""
    if isinstance(expr, Ref):
        return frozenset({expr.name})
    if isinstance(expr, Const):
        return NO_NAMES
    if isinstance(expr, ListOf | TupleOf):
        return NO_NAMES.union(*map(_names, expr.items))
    return free_names(expr)


def _added_from(step: Update) -> frozenset[str]:
    return free_names(step.value) | (free_names(step.key) if step.key is not None else NO_NAMES)


def _turns(each: Each, footprints: Footprints) -> Turns:
    prints = [footprints.of(step) for step in each.steps]
    scan = _Scan(NO_NAMES.union(*(own.writes for own in prints)), footprints)
    scan.block(each.steps, frozenset(each.names))
    return Turns(frozenset(scan.carried), frozenset(scan.added), max(own.world for own in prints))


class _Scan:
    """Goes through the body of a loop with the names that are certainly bound in this turn."""

    def __init__(self, written: frozenset[str], footprints: Footprints) -> None:
        self.carried: set[str] = set()
        self.added: set[tuple[str, str]] = set()
        self._written = written
        self._footprints = footprints

    def block(self, steps: Iterable[Step], bound: frozenset[str]) -> frozenset[str]:
        """The names that are certainly bound after these steps."""
        for step in steps:
            match step:
                case Update():
                    self._reads(_added_from(step), bound)
                    if step.name not in bound:
                        self.added.add((step.name, step.op))
                case When():
                    self._reads(free_names(step.condition), bound)
                    then = self.block(step.steps, bound)
                    bound = then & self.block(step.otherwise, bound)
                case Each():
                    self._reads(free_names(step.over), bound)
                    self.block(step.steps, bound | set(step.names))
                case _:
                    own = self._footprints.of(step)
                    self._reads(own.reads, bound)
                    bound |= own.writes
        return bound

    def _reads(self, names: frozenset[str], bound: frozenset[str]) -> None:
        self.carried |= (names & self._written) - bound

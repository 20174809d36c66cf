"""Goes through steps with labels in place of values, along all ways at once.

Branches are both taken and come together; loops are repeated until nothing new turns up, which cannot go on forever: a
plan has finitely many sources, and shades are bounded. The proof goes through the whole plan so. A run may do it for
loops that touch nothing outside: however many turns they have, their labels cost what a look at their steps costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from bicameral.decisions import CallFacts, Mode
from bicameral.labels import NOTHING, UNKNOWN, Label, Shade, join, join_all, join_shades, tainted
from bicameral.tools import Registry

from ._expressions import free_names
from ._flow import shade_of
from ._flow_calls import ShadeEnv
from ._flow_steps import (
    after_ask,
    after_branch,
    after_call,
    after_extract,
    after_update,
    branch_names,
    call_facts,
    given_label,
    pc_after,
    turn_names,
    under,
    unknown_call,
)
from ._flow_written import found_again, written
from ._plan import Answer, Ask, Call, Compute, Each, Extract, Update, When, walk
from ._remembered import remembered
from ._steps import literals

Env = dict[str, Shade]
After = tuple[Env | None, Label]
"""The variables and the control flow after some steps; no variables if the run has ended on every way to there."""


@dataclass(frozen=True, slots=True)
class _Loop:
    """What every turn of a loop begins with, at most: its variables, what it goes over, its control flow."""

    env: Env
    over: Shade
    pc: Label

    def covers(self, env: Env, over: Shade, pc: Label) -> bool:
        return pc is self.pc and over is self.over and same(env, self.env)


class Walker:
    """Goes through a plan with labels in place of values."""

    def __init__(
        self,
        registry: Registry,
        mode: Mode,
        read: Label = NOTHING,
        assembled: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._registry = registry
        self._assembled = assembled or {}
        self._mode: Mode = mode
        self._given = given_label(read, mode)
        self.facts: dict[str, CallFacts] = {}
        self.answer: Shade | None = None
        self.ended: Env = {}
        # A loop inside another is gone through again only for what is new: else loops inside loops would take time
        # exponential in their depth.
        self._loops: dict[str, _Loop] = {}

    def block(self, steps: tuple[Any, ...], env: Env, pc: Label, at: str) -> After:
        """Go through steps; the variables are changed in place."""
        for number, step in enumerate(steps):
            path = f"{at}{number}"
            match step:
                case When() | Each():
                    way = self._when(step, env, pc, path) if isinstance(step, When) else self._each(step, env, pc, path)
                    after, pc = way
                    if after is None:
                        return None, pc
                    env = after
                case Answer():
                    self._answer(self._shade(step.value, env, pc), env)
                    return None, pc
                case _:
                    self._step(step, env, pc, path)
        return env, pc

    def _step(self, step: Any, env: Env, pc: Label, path: str) -> None:
        match step:
            case Call():
                result = self._call(step, env, pc, path)
                if step.name is not None:
                    env[step.name] = result
            case Extract():
                source, instruction = self._shade(step.source, env, pc), self._shade(step.instruction, env, pc)
                env[step.name] = after_extract(source, instruction, path, pc)
            case Ask():
                env[step.name] = after_ask(self._shade(step.question, env, pc), path, pc)
            case Compute():
                env[step.name] = self._shade(step.value, env, pc)
            case Update():
                env[step.name] = after_update(step, env, pc, self._mode)
            case _:
                raise TypeError(f"{step!r} is not a step")

    def _shade(self, expr: Any, env: Env, pc: Label) -> Shade:
        return shade_of(expr, env, pc, self._mode)

    def _answer(self, found: Shade, env: Env) -> None:
        self.answer = found if self.answer is None else join_shades(self.answer, found)
        self.ended = joined(self.ended, env)

    def _call(self, step: Call, env: Env, pc: Label, path: str) -> Shade:
        # The control flow is a fact of its own: in the arguments it would hide what a value itself is made of.
        shades = {name: self._shade(value, env, self._given) for name, value in step.args.items()}
        tool, given = self._registry.get(step.tool), literals(step.args)
        if tool is None:
            self.facts[path] = unknown_call(step.tool, shades, path, pc, self._mode)
            return join_all((UNKNOWN, pc, *(shade.flat for shade in shades.values())))
        judged, found = found_again(tool, shades, given, env)
        self.facts[path] = call_facts(tool, judged, given, path, pc, self._mode, self._assembled.get(path, frozenset()))
        env |= written(tool, shades, given, found, pc, env)
        return tainted(after_call(tool, judged, None, path, pc, arguments=given), found)

    def _when(self, step: When, env: Env, pc: Label, path: str) -> After:
        inside = under(pc, self._shade(step.condition, env, pc), self._mode)
        ways = (
            self.block(step.steps, dict(env), inside, f"{path}/then/"),
            self.block(step.otherwise, dict(env), inside, f"{path}/else/"),
        )
        pc = pc_after(step, pc, join_all(at_end for _, at_end in ways))
        ends = [after | after_branch(step, after, at_end) for after, at_end in ways if after is not None]
        return (reduce(joined, ends) if ends else None), pc

    def _each(self, step: Each, env: Env, pc: Label, path: str) -> After:
        over = self._shade(step.over, env, pc)
        inside = under(pc, over, self._mode)
        known = self._loops.get(path)
        if known is not None:
            env, over, inside = joined(known.env, env), join_shades(known.over, over), join(known.pc, inside)
        if known is None or not known.covers(env, over, inside):
            known = self._loops[path] = self._turns(step, _Loop(env, over, inside), path)
        return known.env | after_branch(step, known.env, known.pc), pc_after(step, pc, known.pc)

    def _turns(self, step: Each, loop: _Loop, path: str) -> _Loop:
        """Repeat a turn until the next one can begin with nothing new."""
        while True:
            start = loop.env | turn_names(step, loop.over, loop.pc, self._mode)
            after, at_end = self.block(step.steps, start, loop.pc, f"{path}/")
            env, pc = joined(loop.env, after or {}), join(loop.pc, at_end)
            if loop.covers(env, loop.over, pc):
                return loop
            loop = _Loop(env, loop.over, pc)


def joined(env: Env, other: ShadeEnv) -> Env:
    """The variables where two ways come together; one that is bound on a single way is what it is there."""
    found = dict(env)
    for name, shade in other.items():
        found[name] = join_shades(found[name], shade) if name in found else shade
    return found


def same(env: ShadeEnv, other: ShadeEnv) -> bool:
    """Whether the variables have the same shades. Equal shades are one object."""
    return env.keys() == other.keys() and all(shade is other[name] for name, shade in env.items())


# Loops that touch nothing outside -----------------------------------------------------------------------------------

_NO_TOOLS = Registry()
_MOST_KNOWN = 16


@dataclass(frozen=True, slots=True)
class PureAfter:
    """What is known after a step that touches nothing outside: its variables, the control flow, a possible answer."""

    changed: Env
    pc: Label
    answer: Shade | None


def is_pure(step: Any) -> bool:
    """Whether a step, with all in it, calls no tool or model and asks nobody."""
    return not any(isinstance(inner, Call | Extract | Ask) for _, inner in walk((step,)))


@remembered
def _pure_memory(step: Any) -> tuple[tuple[str, ...], dict[Any, PureAfter]]:
    names = set(branch_names(step))
    for _, inner in walk((step,)):
        match inner:
            case Each():
                names |= free_names(inner.over)
            case When():
                names |= free_names(inner.condition)
            case Update(key=key):
                names |= free_names(inner.value) | (free_names(key) if key is not None else frozenset())
            case _:
                names |= free_names(inner.value)
    return tuple(sorted(names)), {}


def after_pure(step: Any, env: ShadeEnv, pc: Label, mode: Mode) -> PureAfter:
    """What a step that touches nothing outside does to labels, without going through its turns.

    It covers what would come of going through them one by one, and is covered by what the proof says.
    """
    names, known = _pure_memory(step)
    key = (pc, mode, *(env.get(name) for name in names))
    found = known.get(key)
    if found is None:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        found = known[key] = _pure(step, {name: env[name] for name in names if name in env}, pc, mode)
    return found


def _pure(step: Any, env: Env, pc: Label, mode: Mode) -> PureAfter:
    walker = Walker(_NO_TOOLS, mode)
    after, pc = walker.block((step,), dict(env), pc, "")
    changed = {name: shade for name, shade in (after or {}).items() if env.get(name) is not shade}
    return PureAfter(changed, pc, walker.answer)

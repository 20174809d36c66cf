"""Abstract interpretation of plans: steps with labels in place of values, on all paths at once.

Both branches are walked and joined; loops are repeated until the labels no longer change, which must happen since a
plan has finitely many sources and label trees are bounded. The proof walks the whole plan so. A run does it for loops
without calls: their labels cost the same however many turns they have. `_assembled` walks it with other marks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from bicameral import labels as lb
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import Answer, Ask, Call, Compute, Each, Extract, Update, When
from bicameral.plans.check._checker import literal_arguments
from bicameral.plans.labels import _rules as rules, _transfer as tf
from bicameral.plans.labels._storage import places_after_call, recall_stored_labels
from bicameral.policy import CallFacts, Mode
from bicameral.tools import Registry

MutableLabelEnv = dict[str, lb.LabelTree]
BlockOutcome = tuple[MutableLabelEnv | None, lb.Label]
"""The variables and the control flow after some steps; no variables if the run has ended on every path to there."""


@dataclass(frozen=True, slots=True)
class _LoopState:
    """An upper bound of what every turn of a loop begins with: variables, the list, the control flow."""

    env: MutableLabelEnv
    over: lb.LabelTree
    pc: lb.Label

    def is_same_start(self, env: MutableLabelEnv, over: lb.LabelTree, pc: lb.Label) -> bool:
        return pc is self.pc and over is self.over and is_same_env(env, self.env)


class LabelWalker:
    """Walks a plan with labels in place of values."""

    def __init__(
        self,
        registry: Registry,
        mode: Mode,
        read: lb.Label = lb.NOTHING,
        assembled: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._registry = registry
        self._assembled = assembled or {}
        self._mode: Mode = mode
        self._author_label = tf.author_label(read, mode)
        self.facts: dict[str, CallFacts] = {}
        self.answer: lb.LabelTree | None = None
        self.ended: MutableLabelEnv = {}
        # A loop inside another is walked again only if it begins with new labels: otherwise nested loops would take
        # time exponential in their depth.
        self._loops: dict[str, _LoopState] = {}

    def walk_block(self, steps: tuple[Any, ...], env: MutableLabelEnv, pc: lb.Label, at: str) -> BlockOutcome:
        """Walk steps; the variables are changed in place."""
        for number, step in enumerate(steps):
            path = f"{at}{number}"
            match step:
                case When() | Each():
                    walk_inside = self._walk_when if isinstance(step, When) else self._walk_each
                    after, pc = walk_inside(step, env, pc, path)
                    if after is None:
                        return None, pc
                    env = after
                case Answer():
                    self._record_answer(self._labels_of(step.value, env, pc), env)
                    return None, pc
                case _:
                    self._walk_step(step, env, pc, path)
        return env, pc

    def _walk_step(self, step: Any, env: MutableLabelEnv, pc: lb.Label, path: str) -> None:
        match step:
            case Call():
                result = self._walk_call(step, env, pc, path)
                if step.name is not None:
                    env[step.name] = result
            case Extract():
                source, instruction = self._labels_of(step.source, env, pc), self._labels_of(step.instruction, env, pc)
                wrote = tf.labels_after_extract(source, instruction, path, pc)
                for tool in self._registry.executor_tools:
                    # It may look anything up, in any order: the join over all tools covers every way.
                    wrote = tf.labels_after_lookup(tool, wrote, env, None, path, pc, {})
                env[step.name] = wrote
            case Ask():
                env[step.name] = tf.labels_after_ask(self._labels_of(step.question, env, pc), path, pc)
            case Compute():
                env[step.name] = self._labels_of(step.value, env, pc)
            case Update():
                env[step.name] = tf.labels_after_update(step, env, pc, self._mode)
            case _:
                raise TypeError(f"{step!r} is not a step")

    def _labels_of(self, expr: Any, env: MutableLabelEnv, pc: lb.Label) -> lb.LabelTree:
        return tf.labels_of(expr, env, pc, self._mode)

    def _record_answer(self, found: lb.LabelTree, env: MutableLabelEnv) -> None:
        self.answer = found if self.answer is None else lb.join_trees(self.answer, found)
        self.ended = join_envs(self.ended, env)

    def _walk_call(self, step: Call, env: MutableLabelEnv, pc: lb.Label, path: str) -> lb.LabelTree:
        # The control flow is a fact of its own: in the arguments it would hide what a value itself is made of.
        shades = {name: self._labels_of(value, env, self._author_label) for name, value in step.args.items()}
        tool, given = self._registry.get(step.tool), literal_arguments(step.args)
        if tool is None:
            self.facts[path] = tf.unknown_call_facts(step.tool, shades, path, pc, self._mode)
            return lb.join_all((lb.UNKNOWN, pc, *(shade.flat for shade in shades.values())))
        judged, found = recall_stored_labels(tool, shades, given, env)
        self.facts[path] = tf.call_facts(
            tool, judged, given, path, pc, self._mode, self._assembled.get(path, frozenset())
        )
        env |= places_after_call(tool, shades, given, found, pc, env)
        return lb.taint(tf.labels_after_call(tool, judged, None, path, pc, arguments=given), found)

    def _walk_when(self, step: Any, env: MutableLabelEnv, pc: lb.Label, path: str) -> BlockOutcome:
        inside = tf.pc_inside(pc, self._labels_of(step.condition, env, pc), self._mode)
        ways = (
            self.walk_block(step.steps, dict(env), inside, f"{path}/then/"),
            self.walk_block(step.otherwise, dict(env), inside, f"{path}/else/"),
        )
        pc = tf.pc_after(step, pc, lb.join_all(at_end for _, at_end in ways))
        ends = [after | tf.labels_after_branch(step, after, at_end) for after, at_end in ways if after is not None]
        return (reduce(join_envs, ends) if ends else None), pc

    def _walk_each(self, step: Any, env: MutableLabelEnv, pc: lb.Label, path: str) -> BlockOutcome:
        over = self._labels_of(step.over, env, pc)
        inside = tf.pc_inside(pc, over, self._mode)
        known = self._loops.get(path)
        if known is not None:
            env, over, inside = join_envs(known.env, env), lb.join_trees(known.over, over), lb.join(known.pc, inside)
        if known is None or not known.is_same_start(env, over, inside):
            known = self._loops[path] = self._walk_until_stable(step, _LoopState(env, over, inside), path)
        return known.env | tf.labels_after_branch(step, known.env, known.pc), tf.pc_after(step, pc, known.pc)

    def _walk_until_stable(self, step: Each, loop: _LoopState, path: str) -> _LoopState:
        """Repeat a turn until its end adds nothing to its beginning."""
        while True:
            start = loop.env | tf.turn_labels(step, loop.over, loop.pc, self._mode)
            after, at_end = self.walk_block(step.steps, start, loop.pc, f"{path}/")
            env, pc = join_envs(loop.env, after or {}), lb.join(loop.pc, at_end)
            if loop.is_same_start(env, loop.over, pc):
                return loop
            loop = _LoopState(env, loop.over, pc)


def join_envs(env: MutableLabelEnv, other: rules.LabelEnv) -> MutableLabelEnv:
    """The variables where two paths meet; one that is bound on a single path keeps its labels from there."""
    found = dict(env)
    for name, tree in other.items():
        found[name] = lb.join_trees(found[name], tree) if name in found else tree
    return found


def is_same_env(env: rules.LabelEnv, other: rules.LabelEnv) -> bool:
    """Whether the variables have the same labels. Equal label trees are one object."""
    return env.keys() == other.keys() and all(tree is other[name] for name, tree in env.items())


# Steps without calls ------------------------------------------------------------------------------------------------

_NO_TOOLS = Registry()
_MAX_LOCAL_MEMO = 16


@dataclass(frozen=True, slots=True)
class LocalStepLabels:
    """What is known after a step without calls: the changed variables, the control flow, a possible answer."""

    changed: MutableLabelEnv
    pc: lb.Label
    answer: lb.LabelTree | None


@ir.memoize_by_identity
def _local_step_memo(step: Any) -> tuple[tuple[str, ...], dict[Any, LocalStepLabels]]:
    return tuple(sorted(tf.branch_names(step) | ir.free_names(step))), {}


def labels_after_local_step(step: Any, env: rules.LabelEnv, pc: lb.Label, mode: Mode) -> LocalStepLabels:
    """The labels after a step without calls, without walking each turn of its loops.

    They cover the labels of a walk turn by turn, and the labels of the proof cover them.
    """
    names, known = _local_step_memo(step)
    key = (pc, mode, *(env.get(name) for name in names))
    found = known.get(key)
    if found is None:
        if len(known) >= _MAX_LOCAL_MEMO:
            known.clear()
        found = known[key] = _walk_local_step(step, {name: env[name] for name in names if name in env}, pc, mode)
    return found


def _walk_local_step(step: Any, env: MutableLabelEnv, pc: lb.Label, mode: Mode) -> LocalStepLabels:
    walker = LabelWalker(_NO_TOOLS, mode)
    after, pc = walker.walk_block((step,), dict(env), pc, "")
    changed = {name: tree for name, tree in (after or {}).items() if env.get(name) is not tree}
    return LocalStepLabels(changed, pc, walker.answer)

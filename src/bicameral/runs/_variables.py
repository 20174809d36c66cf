"""Variables of a run with their labels, and local steps compiled to closures over them.

Turns of a loop that run concurrently have frames of their own with a log of additions, which is merged in the order of
the turns. Compiled steps make a turn of a loop cost little more than its expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, cast

from bicameral.errors import BicameralError, Place, RunError
from bicameral.labels import NOTHING, Label, LabelTree, join, join_trees, taint
from bicameral.plans import (
    RUN_WORK_KEY,
    Answer,
    Compute,
    Each,
    Expr,
    Step,
    Update,
    When,
    apply_update,
    compile_expr,
    flat_cost,
    unpack_item,
)
from bicameral.types import Table, plain_value

UpdateOp = Literal["append", "add", "put"]
_CONTAINERS = (list, tuple, dict)
_OWNABLE = (list, dict)
_NOT_BOUND: list[Any] = []


class Addition(NamedTuple):
    """An addition of a turn to a variable from outside the loop."""

    op: UpdateOp
    key: Any
    value: Any


class VariableFrame:
    """The variables at one place of a run.

    A value is never changed under another name: adding to a list copies it once, and then extends that copy until it
    is read. A turn of a loop that may overlap with others has its own frame with a log; the logs are merged into the
    outer frame in the order of the turns. `labels` are empty if labels are off.
    """

    __slots__ = ("_found", "_log", "_own", "_taints", "labels", "values")

    def __init__(
        self, values: dict[str, Any] | None = None, labels: dict[str, LabelTree] | None = None, *, logged: bool = False
    ) -> None:
        self.values: dict[str, Any] = {} if values is None else values
        self.labels: dict[str, LabelTree] = {} if labels is None else labels
        self._own: set[str] = set()
        # The labels at the beginning of a turn, and what has tainted names that were not bound in this turn.
        self._found: dict[str, LabelTree] = dict(self.labels) if logged else {}
        self._taints: dict[str, Label] = {}
        # What happened to each name: the additions, or None once it was bound in this frame.
        self._log: dict[str, list[Addition] | None] | None = {} if logged else None

    def snapshot(self) -> tuple[dict[str, Any], dict[str, LabelTree]]:
        """Copies of the variables and their labels, for the turns of a loop."""
        self._own.clear()
        return dict(self.values), dict(self.labels)

    def bind(self, name: str, value: Any, labels: LabelTree | None = None) -> None:
        self.values[name] = value
        self._own.discard(name)
        if labels is not None:
            self.labels[name] = labels
        if self._log is not None:
            self._log[name] = None
            self._taints.pop(name, None)

    def bind_item(self, names: Sequence[str], item: Any) -> None:
        """Bind an item of a loop to its names; an EvaluationError if it has another number of parts."""
        if len(names) == 1:
            self.bind(names[0], item)
            return
        for name, part in zip(names, unpack_item(item, len(names)), strict=True):
            self.bind(name, part)

    def taint(self, names: Iterable[str], label: Label) -> None:
        """Join the label of a condition into every variable that its branch or loop may change."""
        if label is NOTHING:
            return
        for name in names:
            if name in self.labels:
                self.labels[name] = taint(self.labels[name], label)
            if not self._bound_here(name):
                self._taints[name] = join(self._taints.get(name, NOTHING), label)

    @property
    def has_owned(self) -> bool:
        """Whether there are lists or dicts that only this frame refers to."""
        return bool(self._own)

    def mark_read(self, names: frozenset[str]) -> None:
        """Note that these variables were read: other names may refer to their lists now."""
        self._own -= names

    def update(self, name: str, op: UpdateOp, key: Any, value: Any) -> None:
        """Add to a variable; an EvaluationError if that is not defined."""
        if self._log is None or self._bound_here(name):
            self._apply(name, op, key, value)
            return
        self._check_update(name, op, key, value)
        additions = self._log.setdefault(name, [])
        if additions is not None:
            additions.append(Addition(op, key, value))

    def charge(self, amount: int) -> None:
        """Count work of the run that is not part of an expression."""
        work = self.values.get(RUN_WORK_KEY)
        if work is not None:
            work.charge(amount)

    def can_merge(self, additions: Iterable[tuple[str, str]]) -> bool:
        """Whether additions to these variables can be merged later with the same result."""
        return all(isinstance(plain_value(self.values.get(name)), _MERGEABLE[op]) for name, op in additions)

    def merge(self, turn: VariableFrame) -> None:
        """Apply what a turn did to this frame, and charge its work to the run."""
        if (work := turn.values.get(RUN_WORK_KEY)) is not None:
            self.charge(work.used)
        for name, additions in (turn._log or {}).items():
            if additions is None:
                self.bind(name, turn.values[name], turn.labels.get(name))
            else:
                for addition in additions:
                    self.update(name, *addition)
        self._merge_labels(turn)

    def _merge_labels(self, turn: VariableFrame) -> None:
        """Join changed labels into those of this frame; names that the turn bound have theirs already."""
        for name, tree in turn.labels.items():
            if tree is not turn._found.get(name) and not turn._bound_here(name):
                known = self.labels.get(name)
                self.labels[name] = tree if known is None else join_trees(known, tree)
        for name, label in turn._taints.items():
            self.taint((name,), label)

    def _bound_here(self, name: str) -> bool:
        """Whether a name was bound in this turn; always true outside of overlapping turns."""
        return self._log is None or self._log.get(name, _NOT_BOUND) is None

    def _apply(self, name: str, op: UpdateOp, key: Any, value: Any) -> None:
        if name not in self.values:
            raise RunError("run.unbound", f"{name!r} has no value yet", fix="Assign it before.")
        current = plain_value(self.values[name])
        if name in self._own and self._in_place(current, op, key, value):
            return
        after = self.values[name] = apply_update(op, current, key, value)
        # It was copied as a whole and not extended in place.
        self.charge(1 + flat_cost(after))
        if isinstance(after, _OWNABLE):
            self._own.add(name)

    def _in_place(self, current: Any, op: UpdateOp, key: Any, value: Any) -> bool:
        """Extend a container that only this frame refers to; False if its size must be checked as a whole."""
        if op == "put":
            if not (isinstance(current, dict) and isinstance(key, str) and _fits_capacity(current, key not in current)):
                return False
            current[key] = _check_size(value)
            return True
        if not isinstance(current, list):
            return False
        if op == "append":
            if not _fits_capacity(current, 1):
                return False
            cast("list[Any]", current).append(_check_size(value))
            return True
        if not isinstance(value, list) or not _fits_capacity(current, len(cast("list[Any]", value))):
            return False
        cast("list[Any]", current).extend(_check_size(each) for each in cast("list[Any]", value))
        return True

    def _check_update(self, name: str, op: UpdateOp, key: Any, value: Any) -> None:
        """Raise now what would be raised when the turns are merged."""
        current = self.values.get(name)
        match current:
            case list() | Table():
                current = []
            case dict():
                current = {}
            case str():
                current = ""
            case _:
                pass
        apply_update(op, current, key, value)


# The type of such a variable stays the same whatever is added, and an addition can be checked by itself.
_MERGEABLE: dict[str, tuple[type, ...]] = {"append": (list,), "put": (dict,), "add": (list, str, int, float)}


def _fits_capacity(container: Any, more: int) -> bool:
    """Whether a container stays below the next power of two; there it is copied and its size checked as a whole."""
    return len(container).bit_length() == (len(container) + more).bit_length()


def _check_size(value: Any) -> Any:
    """The same value; raises if it is too large, as everywhere in a plan."""
    return apply_update("append", [], None, value)[0] if isinstance(value, _CONTAINERS) else value


BlockPath = str | tuple["BlockPath", str, int]
"""The path of a block: a text, or a loop (block and step) and the turn. It becomes a text only for an error."""

StepCode = Callable[[VariableFrame, BlockPath], bool]
"""Does a step in a frame; returns whether the run has its answer."""

TurnCode = Callable[[VariableFrame, BlockPath, Any], bool]
"""Does a turn of a loop for one item."""


class CompiledSteps:
    """The local steps of one run as closures, each compiled when it is first done.

    Args:
        names: The variables of an expression.
        items: The items of a loop.
        answer: Called with the plan's answer and the path of the step that gives it.
    """

    def __init__(
        self,
        names: Callable[[Expr], frozenset[str]],
        items: Callable[[Each, VariableFrame, str], list[Any]],
        answer: Callable[[Any, str], None],
    ) -> None:
        self._names = names
        self._items = items
        self._answer = answer
        self._steps: dict[int, StepCode] = {}
        self._turns: dict[int, TurnCode] = {}

    def step(self, step: Step) -> StepCode:
        """The code of a step; its own path is passed as that of the block."""
        found = self._steps.get(id(step))
        if found is None:
            found = self._steps[id(step)] = self._code(step, "")
        return found

    def turn(self, each: Each) -> TurnCode:
        """The code of a turn of a loop."""
        found = self._turns.get(id(each))
        if found is None:
            found = self._turns[id(each)] = self._one_turn(each)
        return found

    def _code(self, step: Step, at: str) -> StepCode:
        match step:
            case Compute():
                return self._compute(step, at)
            case Update():
                return self._update(step, at)
            case Each():
                return self._each(step, at)
            case When():
                return self._when(step, at)
            case Answer():
                return self._end(step, at)
            case _:
                raise TypeError(f"{step.do!r} is not a pure step")

    def _block(self, steps: Sequence[Step], at: str) -> StepCode:
        codes = [self._code(step, f"{at}{number}") for number, step in enumerate(steps)]
        if len(codes) == 1:
            return codes[0]

        def run(frame: VariableFrame, where: BlockPath) -> bool:
            for code in codes:  # noqa: SIM110 (a generator would take twice as long)
                if code(frame, where):
                    return True
            return False

        return run

    def _value(self, expr: Expr, at: str) -> Callable[[VariableFrame, BlockPath], Any]:
        code, names = compile_expr(expr), self._names(expr)

        def run(frame: VariableFrame, where: BlockPath) -> Any:
            if frame.has_owned:
                frame.mark_read(names)
            try:
                return code(frame.values)
            except BicameralError as error:
                raise add_step_to_error(error, _path_text(where) + at) from None

        return run

    def _compute(self, step: Compute, at: str) -> StepCode:
        name, value = step.name, self._value(step.value, at)

        def run(frame: VariableFrame, where: BlockPath) -> bool:
            frame.bind(name, value(frame, where))
            return False

        return run

    def _update(self, step: Update, at: str) -> StepCode:
        name, op, value = step.name, step.op, self._value(step.value, at)
        key = None if step.key is None else self._value(step.key, at)

        def run(frame: VariableFrame, where: BlockPath) -> bool:
            under = None if key is None else key(frame, where)
            added = value(frame, where)
            try:
                frame.update(name, op, under, added)
            except BicameralError as error:
                raise add_step_to_error(error, _path_text(where) + at) from None
            return False

        return run

    def _when(self, step: When, at: str) -> StepCode:
        condition = self._value(step.condition, at)
        then, otherwise = self._block(step.steps, f"{at}/then/"), self._block(step.otherwise, f"{at}/else/")
        return lambda frame, where: (then if condition(frame, where) else otherwise)(frame, where)

    def _end(self, step: Answer, at: str) -> StepCode:
        value = self._value(step.value, at)

        def run(frame: VariableFrame, where: BlockPath) -> bool:
            self._answer(value(frame, where), _path_text(where) + at)
            return True

        return run

    def _each(self, step: Each, at: str) -> StepCode:
        once = self._one_turn(step)

        def run(frame: VariableFrame, where: BlockPath) -> bool:
            for turn, item in enumerate(self._items(step, frame, _path_text(where) + at)):
                if once(frame, (where, at, turn), item):
                    return True
            return False

        return run

    def _one_turn(self, each: Each) -> TurnCode:
        body, names = self._block(each.steps, ""), each.names
        if len(names) == 1:
            (name,) = names

            def with_item(frame: VariableFrame, where: BlockPath, item: Any) -> bool:
                frame.bind(name, item)
                return body(frame, where)

            return with_item

        def with_parts(frame: VariableFrame, where: BlockPath, item: Any) -> bool:
            try:
                frame.bind_item(names, item)
            except BicameralError as error:
                # The loop fails, not a step of this turn.
                raise add_step_to_error(error, _loop_path(where)) from None
            return body(frame, where)

        return with_parts


def _path_text(where: BlockPath) -> str:
    return where if isinstance(where, str) else f"{_loop_path(where)}[{where[2]}]/"


def _loop_path(where: BlockPath) -> str:
    return where if isinstance(where, str) else _path_text(where[0]) + where[1]


def add_step_to_error(error: BicameralError, at: str) -> BicameralError:
    """The same error with the step where it happened."""
    if error.place is None or error.place.step is None:
        error.place = replace(error.place or Place(), step=at)
    return error

"""Abstract interpretation of plans: steps with labels in place of values, along all ways at once.

Branches are both taken and come together; loops are repeated until nothing new turns up, which cannot go on forever: a
plan has finitely many sources, and label trees are bounded. The proof walks the whole plan so. A run may do it for
loops that touch nothing outside: however many turns they have, their labels cost what a look at their steps costs.

A second walk finds the assembled values. In a plan that a model wrote, what directs a call (a recipient, a path, a
link) is *whole* if it is a literal that the request says, a value of the user's settings, or the result of a tool, of
`extract` or of `ask`, reached by selecting alone: a field, an item, a turn of a loop, a filter, an order, one of
several. Everything else makes new text: `+`, formatted text, `join`, `replace`, `lower`, a slice of a text, a pure
tool. Such a value is *assembled*, and so is a literal that the request does not say. Nobody has ever seen it as a
whole, so a person must: the check against invented addresses sees only the pieces. This is found out from the plan
alone, so the proof and the run know the same about each call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from bicameral.labels import (
    NOTHING,
    UNKNOWN,
    EitherLabels,
    Label,
    LabelTree,
    ListLabels,
    RecordLabels,
    Source,
    join,
    join_all,
    join_trees,
    taint,
)
from bicameral.plans._expressions import (
    Apply,
    Arithmetic,
    Choose,
    Compare,
    Comprehension,
    Const,
    DictOf,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Logic,
    Negative,
    Not,
    Ref,
    Shown,
    Slice,
    TupleOf,
    free_names,
    memoize_by_identity,
)
from bicameral.plans._plan import Answer, Ask, Call, Compute, Each, Extract, Plan, Update, When, walk
from bicameral.plans.check._checker import literal_arguments
from bicameral.plans.check._report import assigned_names
from bicameral.plans.labels._rules import (
    MAX_PLACES,
    LabelEnv,
    compile_call_labels,
    index_labels,
    sum_labels,
    unpack_labels,
)
from bicameral.plans.labels._storage import places_after_call, recall_stored_labels
from bicameral.plans.labels._transfer import (
    author_label,
    branch_names,
    call_facts,
    labels_after_ask,
    labels_after_branch,
    labels_after_call,
    labels_after_extract,
    labels_after_update,
    labels_of,
    pc_after,
    pc_inside,
    turn_labels,
    unknown_call_facts,
    update_labels,
)
from bicameral.policy import CallFacts, Mode
from bicameral.text import mentions, mentions_path
from bicameral.tools import Registry, Tool, part_argument
from bicameral.types import AnyType, DictType, ListType, OptionalType, RecordType, StrType, TupleType, Type

MutableLabelEnv = dict[str, LabelTree]
BlockOutcome = tuple[MutableLabelEnv | None, Label]
"""The variables and the control flow after some steps; no variables if the run has ended on every way to there."""


@dataclass(frozen=True, slots=True)
class _LoopState:
    """What every turn of a loop begins with, at most: its variables, what it goes over, its control flow."""

    env: MutableLabelEnv
    over: LabelTree
    pc: Label

    def is_same_start(self, env: MutableLabelEnv, over: LabelTree, pc: Label) -> bool:
        return pc is self.pc and over is self.over and is_same_env(env, self.env)


class LabelWalker:
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
        self._author_label = author_label(read, mode)
        self.facts: dict[str, CallFacts] = {}
        self.answer: LabelTree | None = None
        self.ended: MutableLabelEnv = {}
        # A loop inside another is gone through again only for what is new: else loops inside loops would take time
        # exponential in their depth.
        self._loops: dict[str, _LoopState] = {}

    def walk_block(self, steps: tuple[Any, ...], env: MutableLabelEnv, pc: Label, at: str) -> BlockOutcome:
        """Go through steps; the variables are changed in place."""
        for number, step in enumerate(steps):
            path = f"{at}{number}"
            match step:
                case When() | Each():
                    way = (
                        self._walk_when(step, env, pc, path)
                        if isinstance(step, When)
                        else self._walk_each(step, env, pc, path)
                    )
                    after, pc = way
                    if after is None:
                        return None, pc
                    env = after
                case Answer():
                    self._record_answer(self._labels_of(step.value, env, pc), env)
                    return None, pc
                case _:
                    self._walk_step(step, env, pc, path)
        return env, pc

    def _walk_step(self, step: Any, env: MutableLabelEnv, pc: Label, path: str) -> None:
        match step:
            case Call():
                result = self._walk_call(step, env, pc, path)
                if step.name is not None:
                    env[step.name] = result
            case Extract():
                source, instruction = self._labels_of(step.source, env, pc), self._labels_of(step.instruction, env, pc)
                env[step.name] = labels_after_extract(source, instruction, path, pc)
            case Ask():
                env[step.name] = labels_after_ask(self._labels_of(step.question, env, pc), path, pc)
            case Compute():
                env[step.name] = self._labels_of(step.value, env, pc)
            case Update():
                env[step.name] = labels_after_update(step, env, pc, self._mode)
            case _:
                raise TypeError(f"{step!r} is not a step")

    def _labels_of(self, expr: Any, env: MutableLabelEnv, pc: Label) -> LabelTree:
        return labels_of(expr, env, pc, self._mode)

    def _record_answer(self, found: LabelTree, env: MutableLabelEnv) -> None:
        self.answer = found if self.answer is None else join_trees(self.answer, found)
        self.ended = join_envs(self.ended, env)

    def _walk_call(self, step: Call, env: MutableLabelEnv, pc: Label, path: str) -> LabelTree:
        # The control flow is a fact of its own: in the arguments it would hide what a value itself is made of.
        shades = {name: self._labels_of(value, env, self._author_label) for name, value in step.args.items()}
        tool, given = self._registry.get(step.tool), literal_arguments(step.args)
        if tool is None:
            self.facts[path] = unknown_call_facts(step.tool, shades, path, pc, self._mode)
            return join_all((UNKNOWN, pc, *(shade.flat for shade in shades.values())))
        judged, found = recall_stored_labels(tool, shades, given, env)
        self.facts[path] = call_facts(tool, judged, given, path, pc, self._mode, self._assembled.get(path, frozenset()))
        env |= places_after_call(tool, shades, given, found, pc, env)
        return taint(labels_after_call(tool, judged, None, path, pc, arguments=given), found)

    def _walk_when(self, step: When, env: MutableLabelEnv, pc: Label, path: str) -> BlockOutcome:
        inside = pc_inside(pc, self._labels_of(step.condition, env, pc), self._mode)
        ways = (
            self.walk_block(step.steps, dict(env), inside, f"{path}/then/"),
            self.walk_block(step.otherwise, dict(env), inside, f"{path}/else/"),
        )
        pc = pc_after(step, pc, join_all(at_end for _, at_end in ways))
        ends = [after | labels_after_branch(step, after, at_end) for after, at_end in ways if after is not None]
        return (reduce(join_envs, ends) if ends else None), pc

    def _walk_each(self, step: Each, env: MutableLabelEnv, pc: Label, path: str) -> BlockOutcome:
        over = self._labels_of(step.over, env, pc)
        inside = pc_inside(pc, over, self._mode)
        known = self._loops.get(path)
        if known is not None:
            env, over, inside = join_envs(known.env, env), join_trees(known.over, over), join(known.pc, inside)
        if known is None or not known.is_same_start(env, over, inside):
            known = self._loops[path] = self._walk_until_stable(step, _LoopState(env, over, inside), path)
        return known.env | labels_after_branch(step, known.env, known.pc), pc_after(step, pc, known.pc)

    def _walk_until_stable(self, step: Each, loop: _LoopState, path: str) -> _LoopState:
        """Repeat a turn until the next one can begin with nothing new."""
        while True:
            start = loop.env | turn_labels(step, loop.over, loop.pc, self._mode)
            after, at_end = self.walk_block(step.steps, start, loop.pc, f"{path}/")
            env, pc = join_envs(loop.env, after or {}), join(loop.pc, at_end)
            if loop.is_same_start(env, loop.over, pc):
                return loop
            loop = _LoopState(env, loop.over, pc)


def join_envs(env: MutableLabelEnv, other: LabelEnv) -> MutableLabelEnv:
    """The variables where two ways come together; one that is bound on a single way is what it is there."""
    found = dict(env)
    for name, shade in other.items():
        found[name] = join_trees(found[name], shade) if name in found else shade
    return found


def is_same_env(env: LabelEnv, other: LabelEnv) -> bool:
    """Whether the variables have the same shades. Equal shades are one object."""
    return env.keys() == other.keys() and all(shade is other[name] for name, shade in env.items())


# Loops that touch nothing outside -----------------------------------------------------------------------------------

_NO_TOOLS = Registry()
_MAX_LOCAL_MEMO = 16


@dataclass(frozen=True, slots=True)
class LocalStepLabels:
    """What is known after a step that touches nothing outside: its variables, the control flow, a possible answer."""

    changed: MutableLabelEnv
    pc: Label
    answer: LabelTree | None


def is_local_step(step: Any) -> bool:
    """Whether a step, with all in it, calls no tool or model and asks nobody."""
    return not any(isinstance(inner, Call | Extract | Ask) for _, inner in walk((step,)))


@memoize_by_identity
def _local_step_memo(step: Any) -> tuple[tuple[str, ...], dict[Any, LocalStepLabels]]:
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


def labels_after_local_step(step: Any, env: LabelEnv, pc: Label, mode: Mode) -> LocalStepLabels:
    """What a step that touches nothing outside does to labels, without going through its turns.

    It covers what would come of going through them one by one, and is covered by what the proof says.
    """
    names, known = _local_step_memo(step)
    key = (pc, mode, *(env.get(name) for name in names))
    found = known.get(key)
    if found is None:
        if len(known) >= _MAX_LOCAL_MEMO:
            known.clear()
        found = known[key] = _walk_local_step(step, {name: env[name] for name in names if name in env}, pc, mode)
    return found


def _walk_local_step(step: Any, env: MutableLabelEnv, pc: Label, mode: Mode) -> LocalStepLabels:
    walker = LabelWalker(_NO_TOOLS, mode)
    after, pc = walker.walk_block((step,), dict(env), pc, "")
    changed = {name: shade for name, shade in (after or {}).items() if env.get(name) is not shade}
    return LocalStepLabels(changed, pc, walker.answer)


ASSEMBLED_LABEL = Label({Source("user", "assembled")})
"""Marks a value in this walk, and is in no label of a run."""

_SELECTING_FUNCTIONS = {"group_by"}.union(
    "list tuple unique set reversed enumerate zip flatten first last get keys values items dict sorted min max".split()
)
"""Functions of the library that give on what they are given; every other makes something new."""
_SELECTOR_POSITIONS = {"get": 1, "group_by": 1, "enumerate": 1}
"""Where these take what only says which: a key, or a number to begin with."""
_SELECTOR_NAMES = ("key", "reverse", "start")


@dataclass(frozen=True, slots=True)
class AssembledValues:
    """By the path of a call, the directing arguments that are put together; and the variables that are, at the end."""

    calls: Mapping[str, frozenset[str]]
    variables: frozenset[str] = frozenset()


NO_ASSEMBLED_VALUES = AssembledValues({})


def assembled_values(
    plan: Plan,
    registry: Registry,
    request: str | None,
    *,
    own: Collection[str] = (),
    variables: Mapping[str, bool] | None = None,
) -> AssembledValues:
    """What a plan puts together of that which directs its calls. Without a `request` a person wrote it: nothing.

    `own` are the user's own addresses, from his settings; `variables` are those that are there before the first step,
    and whether an earlier plan put them together.

    Example:
        >>> assembled_values(plan, registry, "Mail the menu to kim").calls
        {'1': frozenset({'to'})}
    """
    if request is None:
        return NO_ASSEMBLED_VALUES
    walker = _AssembledWalker(plan, registry, request, frozenset(each.strip().lower() for each in own))
    env: MutableLabelEnv = {name: ASSEMBLED_LABEL if made else NOTHING for name, made in (variables or {}).items()}
    after, _ = walker.walk_block(plan.steps, env, NOTHING, "")
    left = after if after is not None else walker.ended
    return AssembledValues(walker.found, frozenset(name for name, shade in left.items() if _is_assembled(shade.flat)))


class _AssembledWalker(LabelWalker):
    """Goes through a plan like the proof, with marks in place of labels."""

    def __init__(self, plan: Plan, registry: Registry, request: str, own: frozenset[str]) -> None:
        super().__init__(registry, "normal")
        self._tool_registry = registry
        self._request = request
        self._own_addresses = own
        self._constants = _constant_texts(plan)
        self.found: dict[str, frozenset[str]] = {}

    def _walk_step(self, step: Any, env: MutableLabelEnv, pc: Label, path: str) -> None:
        match step:
            case Call():
                result = self._walk_tool_call(step, env, path)
                if step.name is not None:
                    env[step.name] = result
            case Extract() | Ask():
                # Read out of a text, or said by a person, with the label of that.
                env[step.name] = NOTHING
            case Compute():
                env[step.name] = self._marks_of(step.value, env)
            case Update():
                env[step.name] = self._walk_update(step, env)
            case _:
                raise TypeError(f"{step!r} is not a step")

    def _labels_of(self, expr: Any, env: MutableLabelEnv, pc: Label) -> LabelTree:
        return self._marks_of(expr, env)

    def _walk_tool_call(self, step: Call, env: MutableLabelEnv, path: str) -> LabelTree:
        shades = {name: self._marks_of(value, env) for name, value in step.args.items()}
        tool = self._tool_registry.get(step.tool)
        if tool is None:
            return NOTHING
        if tool.changes or tool.outbound:
            marked = {
                name
                for name, type_ in directing_arguments(tool)
                if name in shades and _has_assembled_text(shades[name], type_)
            }
            # A loop is gone through until nothing new turns up: what was found in an earlier turn stays.
            if marked := marked | self.found.get(path, frozenset()):
                self.found[path] = frozenset(marked)
        return _tool_result_labels(tool, shades)

    def _walk_update(self, step: Update, env: MutableLabelEnv) -> LabelTree:
        current, value = env.get(step.name, NOTHING), self._marks_of(step.value, env)
        if step.op == "add":
            return _assembled_sum(current, value)
        if step.op == "append" or step.key is None:
            return update_labels(step.op, current, None, NOTHING, value, NOTHING)
        at = step.key.value if isinstance(step.key, Const) else None
        put = update_labels(step.op, current, at, NOTHING, value, NOTHING)
        return _add_key_label(put, self._marks_of(step.key, env).flat)

    # Expressions ------------------------------------------------------------------------------------------------------

    def _marks_of(self, expr: Any, env: MutableLabelEnv) -> LabelTree:
        match expr:
            case Const(value=str() as text):
                return NOTHING if self._is_in_request(text) else ASSEMBLED_LABEL
            case Const() | Negative() | Not() | Compare() | Lambda():
                return NOTHING
            case Ref(name=name):
                return env.get(name, ASSEMBLED_LABEL)
            case Get(value=value, field=field) | Index(value=value, at=Const(value=str() as field)):
                return self._marks_of(value, env).field(field)
            case Index(value=value, at=Const(value=int() as at)):
                return self._marks_of(value, env).place(int(at))
            case Index(value=value):
                whole = self._marks_of(value, env)
                return index_labels(lambda _: whole, lambda _: NOTHING, False)(env)
            case Slice(value=value):
                return _assembled_slice(self._marks_of(value, env))
            case ListOf(items=items) | TupleOf(items=items):
                places = [self._marks_of(item, env) for item in items]
                if len(places) <= MAX_PLACES:
                    return ListLabels(NOTHING, places=places)
                return ListLabels(NOTHING, reduce(join_trees, places))
            case DictOf(entries=entries):
                return self._dict_marks(entries, env)
            case Arithmetic(op=op, left=left, right=right):
                if (text := self._constant_text(expr)) is not None:
                    return NOTHING if self._is_in_request(text) else ASSEMBLED_LABEL
                return (
                    _assembled_sum(self._marks_of(left, env), self._marks_of(right, env))
                    if op in ("+", "*")
                    else ASSEMBLED_LABEL
                )
            case Logic(items=items):
                return reduce(join_trees, [self._marks_of(item, env) for item in items])
            case Choose(then=then, otherwise=otherwise):
                return join_trees(self._marks_of(then, env), self._marks_of(otherwise, env))
            case Apply():
                return self._call_marks(expr, env)
            case Format():
                text = self._constant_text(expr)
                return NOTHING if text is not None and self._is_in_request(text) else ASSEMBLED_LABEL
            case Comprehension():
                return self._comprehension_marks(expr, env)
            case _:
                return ASSEMBLED_LABEL

    def _dict_marks(self, entries: tuple[tuple[Any, Any], ...], env: MutableLabelEnv) -> LabelTree:
        keys: Label = NOTHING
        fields: dict[str, LabelTree] = {}
        rest: LabelTree = NOTHING
        for key, value in entries:
            keys = join(keys, self._marks_of(key, env).flat)
            if isinstance(key, Const) and isinstance(key.value, str):
                fields[key.value] = self._marks_of(value, env)
            else:
                rest = join_trees(rest, self._marks_of(value, env))
        return RecordLabels(keys, {name: join_trees(each, rest) for name, each in fields.items()}, rest)

    def _call_marks(self, expr: Apply, env: MutableLabelEnv) -> LabelTree:
        if expr.function not in _SELECTING_FUNCTIONS:
            return ASSEMBLED_LABEL
        which = _SELECTOR_POSITIONS.get(expr.function)
        args = [(value, number == which) for number, value in enumerate(expr.args)]
        named = [(name, value, name in _SELECTOR_NAMES) for name, value in expr.named]
        shades = [NOTHING if says else self._marks_of(value, env) for value, says in args]
        shades += [NOTHING if says else self._marks_of(value, env) for _, value, says in named]
        # The rules for labels take a literal for the user's own; here it must stand in the request like any other.
        opaque = expr.model_copy(
            update={
                "args": tuple(_hide_constant(value, keep=says) for value, says in args),
                "named": tuple((name, _hide_constant(value, keep=says)) for name, value, says in named),
            }
        )
        return compile_call_labels(opaque, [lambda _, shade=shade: shade for shade in shades], strict=False)({})

    def _comprehension_marks(self, expr: Comprehension, env: MutableLabelEnv) -> LabelTree:
        inner, own = dict(env), NOTHING
        for clause in expr.clauses:
            whole = self._marks_of(clause.over, inner)
            own = join(own, whole.own)
            inner.update(unpack_labels(clause.names, whole.item, False))
        found = self._marks_of(expr.element, inner)
        if expr.key is None:
            return ListLabels(own, found)
        return RecordLabels(join(own, self._marks_of(expr.key, inner).flat), {}, found)

    # Literals ---------------------------------------------------------------------------------------------------------

    def _is_in_request(self, text: str) -> bool:
        bare = text.strip()
        if bare in ("", ".") or bare.lower() in self._own_addresses:
            return True
        says = mentions if "@" in bare or "://" in bare else mentions_path
        return says(self._request, bare)

    def _constant_text(self, expr: Any) -> str | None:
        """The text of an expression that is made of literals alone: put together or not, it is there to be read."""
        match expr:
            case Const(value=str() as text):
                return text
            case Const(value=int() as number) if type(number) is int:
                return str(number)
            case Ref(name=name):
                return self._constants.get(name)
            case Arithmetic(op="+", left=left, right=right):
                first, second = self._constant_text(left), self._constant_text(right)
                return None if first is None or second is None else first + second
            case Format(parts=parts):
                texts = [part if isinstance(part, str) else self._constant_part_text(part) for part in parts]
                return None if None in texts else "".join(text for text in texts if text is not None)
            case _:
                return None

    def _constant_part_text(self, part: Shown) -> str | None:
        return None if part.spec else self._constant_text(part.value)


def directing_arguments(tool: Tool) -> list[tuple[str, Type]]:
    """The arguments that direct a call and may hold a text: who gets it, where it goes, what goes along.

    Of a tool that declares nothing each argument may.
    """
    along = {part_argument(part) for part in tool.attaches} if tool.declared else set[str]()
    return [
        (each.name, each.type)
        for each in tool.arguments
        if not tool.declared or each.purpose == "directs" or each.name in tool.receivers or each.name in along
    ]


def _constant_texts(plan: Plan) -> dict[str, str]:
    """The variables that are a literal text from the first step to the last."""
    steps = [step for _, step in walk(plan.steps)]
    bound = [name for step in steps for name in _bound_names(step)]
    found = {
        step.name: step.value.value
        for step in steps
        if isinstance(step, Compute) and isinstance(step.value, Const) and isinstance(step.value.value, str)
    }
    return {name: text for name, text in found.items() if bound.count(name) == 1}


def _bound_names(step: Any) -> Collection[str]:
    return step.names if isinstance(step, Each) else () if hasattr(step, "steps") else assigned_names((step,))


def _tool_result_labels(tool: Tool, shades: Mapping[str, LabelTree]) -> LabelTree:
    """What a tool gives. A pure one has nothing but what it is given, so it makes something of that, or selects."""
    if tool.effect != "pure" or tool.outbound or not shades:
        return NOTHING
    if tool.keeps is not None:
        return shades.get(tool.keeps, NOTHING)
    if any(each.field_of for each in tool.arguments):
        tables = [shade for name, shade in shades.items() if _is_list_argument(tool, name)]
        return reduce(join_trees, tables, NOTHING)
    return ASSEMBLED_LABEL


def _is_list_argument(tool: Tool, name: str) -> bool:
    argument = tool.argument(name)
    return argument is not None and not argument.field_of and isinstance(argument.type, ListType)


def _assembled_sum(left: LabelTree, right: LabelTree) -> LabelTree:
    """`left + right`: of lists the items of both; of texts, and of what may be one, a new text."""
    if isinstance(left, ListLabels | EitherLabels) or isinstance(right, ListLabels | EitherLabels):
        return sum_labels(left, right)
    return ListLabels(ASSEMBLED_LABEL, join_trees(left.item, right.item))


def _assembled_slice(whole: LabelTree) -> LabelTree:
    """Some items of a list; of what may be a text, a new one."""
    if isinstance(whole, ListLabels):
        return ListLabels(whole.own, whole.item)
    return ListLabels(ASSEMBLED_LABEL, whole.item)


def _add_key_label(shade: LabelTree, keys: Label) -> LabelTree:
    match shade:
        case RecordLabels():
            return RecordLabels(join(shade.own, keys), shade.fields, shade.rest)
        case EitherLabels(as_list=as_list, as_record=as_record):
            return EitherLabels(as_list, RecordLabels(join(as_record.own, keys), as_record.fields, as_record.rest))
        case _:
            return shade


def _hide_constant(expr: Any, *, keep: bool) -> Any:
    return Ref(name="_") if isinstance(expr, Const) and not keep else expr


def _has_assembled_text(shade: LabelTree, type_: Type) -> bool:
    """Whether a text in a value of this type is marked."""
    match type_:
        case OptionalType(item=item):
            return _has_assembled_text(shade, item)
        case ListType(item=item):
            return _has_assembled_text(shade.item, item)
        case StrType() | AnyType() | TupleType():
            return _is_assembled(shade.flat)
        case RecordType() | DictType():
            return _is_assembled(shade.values.flat)
        case _:
            return False


def _is_assembled(label: Label) -> bool:
    return not label.sources.isdisjoint(ASSEMBLED_LABEL.sources)

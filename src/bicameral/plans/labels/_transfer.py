"""Transfer functions: what expressions and steps do to labels, for the proof and for the run alike.

An expression becomes a function from the labels of its variables to those of its value, compiled once. It never looks
at data, so it costs by the size of the expression; and since equal label trees are one object, asking again with the
same labels is a look into a table. In `strict` mode what decides counts like what is used: the condition of a
comprehension, the key of an order, how many items there are where one is taken. In `normal` mode only what is used
counts, and the condition of `x if c else y`.

`pc` is the label of the control flow that leads to a step. Where it counts (`strict`) every value made at a step
carries it, a branch or loop adds the label of what decides it, and every variable that either branch or a turn may
change carries that label afterwards, whichever way was taken. A branch that may end the run decides all that follows.
A run uses these functions along the one way it takes, the proof along all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from bicameral.labels import (
    NOTHING,
    UNKNOWN,
    USER,
    EitherLabels,
    Label,
    LabelTree,
    ListLabels,
    RecordLabels,
    Source,
    as_list,
    as_record,
    join,
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
    Slice,
    TupleOf,
    free_names,
    memoize_by_identity,
)
from bicameral.plans._plan import MAX_DEPTH, Answer, Each, Update, When, walk
from bicameral.plans.check._report import assigned_names
from bicameral.plans.labels._rules import (
    LabelCode,
    LabelEnv,
    arithmetic_labels,
    choose_labels,
    comparison_labels,
    compile_call_labels,
    comprehension_labels,
    dict_node_labels,
    field_labels,
    flat_labels,
    index_labels,
    is_scalar_expr,
    list_node_labels,
    literal_labels,
    logic_labels,
    own_labels,
    place_labels,
    ref_labels,
    slice_labels,
    sum_labels,
    unknown_labels,
    unpack_labels,
)
from bicameral.plans.labels._storage import CONTENT_SUFFIX
from bicameral.policy import ArgumentFacts, CallFacts, Mode
from bicameral.tools import ATTACHED_SUFFIX, Tool, principals
from bicameral.types import (
    BoolType,
    DateTimeType,
    DateType,
    DurationType,
    FloatType,
    IntType,
    LiteralType,
    NullType,
    OptionalType,
    TimeType,
    Type,
)

_MAX_MEMO = 32


def compile_labels(expr: Any, mode: Mode = "strict") -> LabelCode:
    """The shade of an expression as a function of the shades of its variables, compiled once for each expression.

    Example:
        >>> compile_labels(Apply(function="upper", args=(Ref(name="subject"),)))({"subject": mail}) is mail
        True
    """
    return _compile_strict(expr) if mode == "strict" else _compile_normal(expr)


def labels_of(expr: Any, env: LabelEnv, pc: Label = NOTHING, mode: Mode = "strict") -> LabelTree:
    """The shade of the value of an expression, under the control flow `pc`."""
    return taint(compile_labels(expr, mode)(env), pc)


@memoize_by_identity
def _compile_strict(expr: Any) -> LabelCode:
    return _compile_with_memo(expr, strict=True)


@memoize_by_identity
def _compile_normal(expr: Any) -> LabelCode:
    return _compile_with_memo(expr, strict=False)


def _compile_with_memo(expr: Any, *, strict: bool) -> LabelCode:
    if isinstance(expr, Ref):
        return ref_labels(expr.name)
    try:
        names = sorted(free_names(expr))
        code = _LabelCompiler(strict).compile(expr)
    except RecursionError:
        # Deeper than any plan that was checked: its value is an error, and of its labels the worst is assumed.
        return lambda env: UNKNOWN
    if not names:
        found = code({})
        return lambda env: found
    return _memoize_one_variable(names[0], code) if len(names) == 1 else _memoize_many_variables(names, code)


def _memoize_one_variable(name: str, code: LabelCode) -> LabelCode:
    known: dict[LabelTree, LabelTree] = {}

    def run(env: LabelEnv) -> LabelTree:
        key = env.get(name, UNKNOWN)
        found = known.get(key)
        if found is None:
            if len(known) >= _MAX_MEMO:
                known.clear()
            found = known[key] = code({name: key})
        return found

    return run


def _memoize_many_variables(names: Sequence[str], code: LabelCode) -> LabelCode:
    known: dict[tuple[LabelTree, ...], LabelTree] = {}
    get = itemgetter(*names)

    def run(env: LabelEnv) -> LabelTree:
        try:
            key: tuple[LabelTree, ...] = get(env)
        except KeyError:
            key = tuple(env.get(name, UNKNOWN) for name in names)
        found = known.get(key)
        if found is None:
            if len(known) >= _MAX_MEMO:
                known.clear()
            found = known[key] = code(dict(zip(names, key, strict=True)))
        return found

    return run


@dataclass(slots=True)
class _LabelCompiler:
    strict: bool
    depth: int = 0
    """How many expressions are around the one that is compiled."""

    def compile(self, expr: Any) -> LabelCode:
        if self.depth > MAX_DEPTH:
            return unknown_labels
        self.depth += 1
        try:
            return self._compile_node(expr)
        finally:
            self.depth -= 1

    def _compile_node(self, expr: Any) -> LabelCode:
        match expr:
            case Const():
                return literal_labels
            case Ref(name=name):
                return ref_labels(name)
            case Get(value=value, field=field) | Index(value=value, at=Const(value=str() as field)):
                return field_labels(self.compile(value), field)
            case Index(value=value, at=Const(value=int() as at)):
                return place_labels(self.compile(value), int(at), self.strict)
            case Index(value=value, at=at):
                return index_labels(self.compile(value), self.compile(at), self.strict)
            case Slice():
                bounds = [self.compile(bound) for bound in (expr.start, expr.stop, expr.step) if bound is not None]
                return slice_labels(self.compile(expr.value), bounds)
            case ListOf(items=items) | TupleOf(items=items):
                return list_node_labels([self.compile(item) for item in items])
            case DictOf(entries=entries):
                return dict_node_labels(
                    [(key, self.compile(key), self.compile(value)) for key, value in entries], self.strict
                )
            case Arithmetic(op=op, left=left, right=right):
                return arithmetic_labels(op, self.compile(left), self.compile(right))
            case Negative(value=value):
                return flat_labels([self.compile(value)])
            case Not(value=value):
                return own_labels(self.compile(value))
            case Logic(items=items):
                return logic_labels([(self.compile(item), is_scalar_expr(item)) for item in items])
            case Compare():
                return self._compile_compare(expr)
            case Choose():
                ways = [(self.compile(way), is_scalar_expr(way)) for way in (expr.then, expr.otherwise)]
                return choose_labels(self.compile(expr.condition), ways)
            case Apply():
                arguments = (*expr.args, *(value for _, value in expr.named))
                return compile_call_labels(
                    expr, [self._compile_argument(each) for each in arguments], strict=self.strict
                )
            case Format(parts=parts):
                return flat_labels(
                    [literal_labels, *(self.compile(part.value) for part in parts if not isinstance(part, str))]
                )
            case Comprehension():
                return self._compile_comprehension(expr)
            case _:
                return unknown_labels

    def _compile_argument(self, expr: Any) -> LabelCode:
        return self.compile(expr.body) if isinstance(expr, Lambda) else self.compile(expr)

    def _compile_compare(self, expr: Compare) -> LabelCode:
        operands = (expr.first, *(right for _, right in expr.rest))
        return comparison_labels([op for op, _ in expr.rest], [(each, self.compile(each)) for each in operands])

    def _compile_comprehension(self, expr: Comprehension) -> LabelCode:
        clauses = [
            (clause.names, self.compile(clause.over), [self.compile(condition) for condition in clause.conditions])
            for clause in expr.clauses
        ]
        key = None if expr.key is None else self.compile(expr.key)
        return comprehension_labels(self.compile(expr.element), key, clauses, self.strict)


_TURN_INDEX = re.compile(r"\[\d+\]")


def static_path(path: str) -> str:
    """The path of a step in the plan, from its path in a run: `2[7]/0` is `2/0`."""
    return _TURN_INDEX.sub("", path) if "[" in path else path


# Control flow -------------------------------------------------------------------------------------------------------


def pc_inside(pc: Label, decided_by: LabelTree, mode: Mode) -> Label:
    """The control flow inside a branch with this condition, or inside a loop over this list."""
    return join(pc, decided_by.own) if mode == "strict" else pc


def author_label(read: Label, mode: Mode) -> Label:
    """What the arguments of a call carry because whoever wrote the plan had read it.

    A number that was read may stand in the plan as if it were the writer's own. Where control flow counts the plan as a
    whole is under what was read; where it does not, what a call is given still is.
    """
    return NOTHING if mode == "strict" else read


@memoize_by_identity
def branch_names(step: Any) -> frozenset[str]:
    """The variables that a `when` may change in either branch, or an `each` in any turn."""
    match step:
        case When():
            return assigned_names((*step.steps, *step.otherwise))
        case Each():
            return assigned_names(step.steps) | frozenset(step.names)
        case _:
            return assigned_names((step,))


@memoize_by_identity
def can_answer(step: Any) -> bool:
    """Whether a run can come to its end inside a step."""
    return any(isinstance(inner, Answer) for _, inner in walk((step,)))


def labels_after_branch(step: Any, env: LabelEnv, inside: Label) -> dict[str, LabelTree]:
    """The variables that a `when` or `each` may have changed, afterwards: they carry what decided it.

    `inside` is the control flow at the end of the branch that was taken, or of the last turn.
    """
    if inside is NOTHING:
        return {}
    return {name: taint(env[name], inside) for name in branch_names(step) if name in env}


def pc_after(step: Any, pc: Label, inside: Label) -> Label:
    """The control flow after a `when` or `each`: that it has not ended the run depends on what decided it."""
    return join(pc, inside) if can_answer(step) else pc


def turn_labels(step: Each, over: LabelTree, inside: Label, mode: Mode) -> dict[str, LabelTree]:
    """The names of an `each` at the beginning of a turn."""
    found = unpack_labels(step.names, over.item, mode == "strict")
    return {name: taint(shade, inside) for name, shade in found.items()}


# Values -------------------------------------------------------------------------------------------------------------


def labels_after_call(
    tool: Tool,
    shades: Mapping[str, LabelTree],
    value: object | None,
    path: str,
    pc: Label,
    *,
    arguments: Mapping[str, Any] | None = None,
) -> LabelTree:
    """What a tool gave. Before a run there is no value, and `arguments` are the literals among them."""
    step = static_path(path)
    if tool.attaches:
        # What goes along is not what comes back.
        shades = {name: shade for name, shade in shades.items() if not name.endswith(ATTACHED_SUFFIX)}
    found = tool.call_labels(shades, value, step, arguments=arguments)
    if found is NOTHING:
        # Every value comes from somewhere: what is made of nothing is the tool's own.
        found = Label({Source("system", tool.name, "", step)})
    return taint(found, pc)


def labels_after_extract(source: LabelTree, instruction: LabelTree, path: str, pc: Label) -> Label:
    """What a quarantined model wrote: never trusted, whatever it read, and only for those who may see what it read."""
    wrote = Label({Source("third_party", "extract", "", static_path(path))})
    return join(join(join(source.flat, instruction.flat), wrote), pc)


def labels_after_ask(question: LabelTree, path: str, pc: Label) -> Label:
    """What the person replied who made the request, with the label of what he was asked.

    Whoever has a hand in the question can have a hand in the reply: "reply with eve@example.org to confirm".
    """
    return join(join(Label({Source("user", "ask", "", static_path(path))}), question.flat), pc)


def labels_after_update(step: Update, env: LabelEnv, pc: Label, mode: Mode) -> LabelTree:
    """A variable after `xs.append(v)`, `n += v` or `d[key] = v`."""
    key = NOTHING if step.key is None else compile_labels(step.key, mode)(env).flat
    at = step.key.value if isinstance(step.key, Const) else None
    value = compile_labels(step.value, mode)(env)
    return update_labels(step.op, env.get(step.name, NOTHING), at, key, value, pc)


@lru_cache(maxsize=4096, typed=True)
def update_labels(op: str, current: LabelTree, at: object, key: Label, value: LabelTree, pc: Label) -> LabelTree:
    """A variable after an update with a value and a key of these labels."""
    value = taint(value, pc)
    match op:
        case "append":
            whole = as_list(current) or current.flat
            return ListLabels(join(whole.own, pc), join_trees(whole.item, value))
        case "add":
            return sum_labels(taint(current, pc), value)
        case _:
            return _put_labels(current, at, join(key, pc), value)


def _put_labels(current: LabelTree, at: object, key: Label, value: LabelTree) -> LabelTree:
    """What was under the key stays in the shade: a variable never loses a label by being added to."""
    value = taint(value, key)
    found: list[ListLabels | RecordLabels] = []
    whole = as_list(current) or (None if isinstance(current, RecordLabels) else current.flat)
    if whole is not None and not isinstance(at, str):
        found.append(ListLabels(join(whole.own, key), join_trees(whole.item, value)))
    record = as_record(current) or (None if isinstance(current, ListLabels) else current.flat)
    if record is not None and (at is None or isinstance(at, str)):
        found.append(_put_field_labels(record, at, key, value))
    match found:
        case [ListLabels() as put_list, RecordLabels() as put_record]:
            return EitherLabels(put_list, put_record)
        case [only]:
            return only
        case _:
            # A list with a key of text, or a dict with a number: the run fails here.
            return taint(current, value.flat)


def _put_field_labels(record: RecordLabels | Label, at: str | None, key: Label, value: LabelTree) -> RecordLabels:
    fields = dict(record.fields) if isinstance(record, RecordLabels) else {}
    rest = record.rest if isinstance(record, RecordLabels) else record
    if at is None:
        fields = {name: join_trees(each, value) for name, each in fields.items()}
        return RecordLabels(join(record.own, key), fields, join_trees(rest, value))
    return RecordLabels(join(record.own, key), {**fields, at: join_trees(record.field(at), value)}, rest)


# Facts for a decision -----------------------------------------------------------------------------------------------

_BOUNDED_TYPES = (BoolType, IntType, FloatType, DateType, TimeType, DateTimeType, DurationType, LiteralType, NullType)


def is_bounded(type_: Type) -> bool:
    """Whether values of a type cannot hold free text."""
    return is_bounded(type_.item) if isinstance(type_, OptionalType) else isinstance(type_, _BOUNDED_TYPES)


def call_facts(
    tool: Tool,
    shades: Mapping[str, LabelTree],
    values: Mapping[str, Any],
    path: str,
    pc: Label,
    mode: Mode,
    assembled: frozenset[str] = frozenset(),
) -> CallFacts:
    """What is known of a call: `values` are its arguments, before a run those that are literals.

    `assembled` are those that the plan puts together, if a model wrote it.
    """
    known = {argument.name: argument for argument in tool.arguments}
    naming = {*tool.receivers, *(each.name for each in tool.arguments if each.purpose == "directs")}
    facts: list[ArgumentFacts] = []
    for name, shade in shades.items():
        if name.endswith(ATTACHED_SUFFIX) and name not in known:
            continue
        argument = known.get(name)
        if argument is None and name.endswith(CONTENT_SUFFIX):
            facts.append(ArgumentFacts(name, "carries", shade.flat))
            continue
        if argument is None:
            # The call fails before anything happens; until then the worst is assumed.
            facts.append(ArgumentFacts(name, "directs", shade.flat))
            continue
        named = principals(values[name]) if name in naming and name in values else None
        facts.append(ArgumentFacts(name, argument.purpose, shade.flat, is_bounded(argument.type), named))
    step = static_path(path)
    for name, label in tool.attached_labels(values, tuple(shades), step):
        at_hand = shades.get(name + ATTACHED_SUFFIX)
        if at_hand is not None:
            # Who may read the thing is known in this run.
            label = Label(label.sources, at_hand.flat.readers)
        facts.append(ArgumentFacts(name + ATTACHED_SUFFIX, "attaches", label))
    target = tool.write_target(values)
    return CallFacts(
        tool.name,
        tool.toolbox,
        tool.effect,
        tool.outbound,
        tool.declared,
        tuple(facts),
        pc,
        mode,
        step,
        assembled=assembled,
        executed=False if target is None else target.executed,
        # No argument holds what a call copies, and no label of the run knows it: it may be anybody's.
        copied=Label({Source("third_party", tool.name, "", step)}, {USER}) if target and target.copied else NOTHING,
    )


def unknown_call_facts(name: str, shades: Mapping[str, LabelTree], path: str, pc: Label, mode: Mode) -> CallFacts:
    """What is known of a call of a tool that nobody knows."""
    facts = tuple(ArgumentFacts(argument, "directs", shade.flat) for argument, shade in shades.items())
    return CallFacts(name, "", "irreversible", True, False, facts, pc, mode, static_path(path), known=False)

"""Assembled values: what directs a call of a plan and is neither the user's nor a tool's as a whole.

In a plan that a model wrote, what directs a call (a recipient, a path, a link) is *whole* if it is a literal of the
request, a value of the user's settings, or the result of a tool, of `extract` or of `ask`, reached by selection alone:
a field, an item, a turn of a loop, a filter, an order, one of several. Everything else makes new text: `+`, formatted
text, `join`, `replace`, `lower`, a slice of a text, a pure tool. Such a value is *assembled*, and so is a literal that
is not in the request. A person must confirm it: the check against invented addresses sees only the pieces of it. This
follows from the plan alone, so the proof and the run agree about each call.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from bicameral import labels as lb
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import Ask, Call, Compute, Each, Extract, Plan, Update, is_too_deep, walk
from bicameral.plans.check._report import assigned_names
from bicameral.plans.labels import _rules as rules, _transfer as tf
from bicameral.plans.labels._walker import LabelWalker, MutableLabelEnv
from bicameral.text import mentions, mentions_path
from bicameral.tools import Registry, Tool, part_argument
from bicameral.types import AnyType, DictType, ListType, OptionalType, RecordType, StrType, TupleType, Type

ASSEMBLED_LABEL = lb.Label({lb.Source("user", "assembled")})
"""The mark of an assembled value; it is in no label of a run."""

_SELECTING_FUNCTIONS = {"group_by"}.union(
    "list tuple unique set reversed enumerate zip flatten first last get keys values items dict sorted min max".split()
)
"""Library functions that return values of their arguments unchanged; every other makes a new value."""
_SELECTOR_POSITIONS = {"get": 1, "group_by": 1, "enumerate": 1}
"""The position of an argument that only selects: a key, or the number to start with."""
_SELECTOR_NAMES = ("key", "reverse", "start")


@dataclass(frozen=True, slots=True)
class AssembledValues:
    """The directing arguments that are put together, by the path of the call, and the variables that are at the end."""

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
    """The values that direct a call and that the plan puts together.

    Args:
        plan: The plan.
        registry: The tools it may call.
        request: The request that a model made the plan for; None if a person wrote it, so that nothing is marked.
        own: The user's own addresses, from the settings.
        variables: The variables before the first step, and whether an earlier plan put them together.

    Example:
        >>> assembled_values(plan, registry, "Mail the menu to kim").calls
        {'1': frozenset({'to'})}
    """
    if request is None:
        return NO_ASSEMBLED_VALUES
    walker = _AssembledWalker(plan, registry, request, frozenset(each.strip().lower() for each in own))
    env: MutableLabelEnv = {name: ASSEMBLED_LABEL if made else lb.NOTHING for name, made in (variables or {}).items()}
    after, _ = walker.walk_block(plan.steps, env, lb.NOTHING, "")
    left = after if after is not None else walker.ended
    return AssembledValues(walker.found, frozenset(name for name, tree in left.items() if _is_assembled(tree.flat)))


_FILE_NAME = re.compile(r"\w\.[A-Za-z]\w{1,4}\b")


class _AssembledWalker(LabelWalker):
    """Walks a plan like the proof, with marks of assembled values in place of labels."""

    def __init__(self, plan: Plan, registry: Registry, request: str, own: frozenset[str]) -> None:
        super().__init__(registry, "normal")
        self._request = request
        self._marks_of = _AssembledMarks(request, own, _constant_texts(plan)).marks_of
        self.found: dict[str, frozenset[str]] = {}

    def _walk_step(self, step: Any, env: MutableLabelEnv, pc: lb.Label, path: str) -> None:
        match step:
            case Extract() | Ask():
                # Whole: read from a text or said by a person. Its label says whom it comes from.
                env[step.name] = lb.NOTHING
            case Update():
                env[step.name] = self._walk_update(step, env)
            case _:
                super()._walk_step(step, env, pc, path)

    def _labels_of(self, expr: Any, env: MutableLabelEnv, pc: lb.Label) -> lb.LabelTree:
        return self._marks_of(expr, env)

    def _walk_call(self, step: Call, env: MutableLabelEnv, pc: lb.Label, path: str) -> lb.LabelTree:
        labels = {name: self._marks_of(value, env) for name, value in step.args.items()}
        tool = self._registry.get(step.tool)
        if tool is None:
            return lb.NOTHING
        if tool.changes or tool.outbound:
            directing = [(name, type_) for name, type_ in directing_arguments(tool) if name in labels]
            marked = {
                name
                for name, type_ in directing
                if _has_assembled_text(labels[name], type_) and not self._is_configured(tool, name, step.args[name])
            }
            # A loop is walked until nothing new turns up: what was found in an earlier turn stays.
            if marked := marked | self.found.get(path, frozenset()):
                self.found[path] = frozenset(marked)
        return _tool_result_labels(tool, labels)

    def _is_configured(self, tool: Tool, name: str, value: Any) -> bool:
        """Whether an argument is what the user's settings have for it, where the request names no file."""
        known = tool.configured.get(name, ())
        return isinstance(value, ir.Const) and value.value in known and _FILE_NAME.search(self._request) is None

    def _walk_update(self, step: Update, env: MutableLabelEnv) -> lb.LabelTree:
        current, value = env.get(step.name, lb.NOTHING), self._marks_of(step.value, env)
        if step.op == "add":
            return _assembled_sum(current, value)
        if step.op == "append" or step.key is None:
            return tf.update_labels(step.op, current, None, lb.NOTHING, value, lb.NOTHING)
        at = step.key.value if isinstance(step.key, ir.Const) else None
        put = tf.update_labels(step.op, current, at, lb.NOTHING, value, lb.NOTHING)
        return _add_key_label(put, self._marks_of(step.key, env).flat)


class _AssembledMarks(rules.ExpressionLabels):
    """Marks values that are put together. What only selects (fields, items, loops) is as in the rules for labels."""

    literal = lb.NOTHING
    unknown = ASSEMBLED_LABEL

    def __init__(self, request: str, own_addresses: frozenset[str], constants: Mapping[str, str]) -> None:
        super().__init__(strict=False)
        self._request = request
        self._own_addresses = own_addresses
        self._constants = constants

    def marks_of(self, expr: Any, env: rules.LabelEnv) -> lb.LabelTree:
        """The marks of an expression; of one that is too deep to have a value, that it is assembled."""
        return self.unknown if is_too_deep(expr) else self.labels_of(expr, env)

    def labels_of(self, expr: Any, env: rules.LabelEnv) -> lb.LabelTree:
        match expr:
            case ir.Const(value=str() as text):
                return self._text_mark(text)
            case ir.Reference():
                # Bound whole, to one thing that is there; its own label says who named that.
                return lb.NOTHING
            case ir.Negative() | ir.Not() | ir.Compare() | ir.Lambda():
                return lb.NOTHING
            case ir.Index(at=ir.Const(value=str() | int())):
                return super().labels_of(expr, env)
            case ir.Index(value=value):
                return rules.any_part_labels(self.labels_of(value, env), False)
            case ir.Slice(value=value):
                return _assembled_slice(self.labels_of(value, env))
            case ir.DictOf(entries=entries):
                return self._dict_marks(entries, env)
            case ir.Arithmetic(op=op, left=left, right=right):
                if (text := self._constant_text(expr)) is not None:
                    return self._text_mark(text)
                if op not in ("+", "*"):
                    return ASSEMBLED_LABEL
                return _assembled_sum(self.labels_of(left, env), self.labels_of(right, env))
            case ir.Logic(items=items):
                return reduce(lb.join_trees, [self.labels_of(item, env) for item in items])
            case ir.Choose(then=then, otherwise=otherwise):
                return lb.join_trees(self.labels_of(then, env), self.labels_of(otherwise, env))
            case ir.Apply():
                return self._call_marks(expr, env)
            case ir.Format():
                return self._text_mark(self._constant_text(expr))
            case _:
                return super().labels_of(expr, env)

    def _dict_marks(self, entries: tuple[tuple[Any, Any], ...], env: rules.LabelEnv) -> lb.LabelTree:
        keys: lb.Label = lb.NOTHING
        fields: dict[str, lb.LabelTree] = {}
        rest: lb.LabelTree = lb.NOTHING
        for key, value in entries:
            keys = lb.join(keys, self.labels_of(key, env).flat)
            if isinstance(key, ir.Const) and isinstance(key.value, str):
                fields[key.value] = self.labels_of(value, env)
            else:
                rest = lb.join_trees(rest, self.labels_of(value, env))
        return lb.RecordLabels(keys, {name: lb.join_trees(each, rest) for name, each in fields.items()}, rest)

    def _call_marks(self, expr: ir.Apply, env: rules.LabelEnv) -> lb.LabelTree:
        if expr.function not in _SELECTING_FUNCTIONS:
            return ASSEMBLED_LABEL
        which = _SELECTOR_POSITIONS.get(expr.function)
        args = [(value, number == which) for number, value in enumerate(expr.args)]
        named = [(name, value, name in _SELECTOR_NAMES) for name, value in expr.named]
        given = [*args, *((value, selects) for _, value, selects in named)]
        trees = [lb.NOTHING if selects else self.labels_of(value, env) for value, selects in given]
        # The label rules trust a literal as the user's own; here it must be in the request, so it is hidden from them.
        opaque = expr.model_copy(
            update={
                "args": tuple(_hide_constant(value, keep=selects) for value, selects in args),
                "named": tuple((name, _hide_constant(value, keep=selects)) for name, value, selects in named),
            }
        )
        return rules.call_labels(opaque, trees, lambda _: lambda _: lb.NOTHING, strict=False)

    def _text_mark(self, text: str | None) -> lb.Label:
        """The mark of a text that is written in the plan, or of one (None) that is made in the run."""
        return lb.NOTHING if text is not None and self._is_in_request(text) else ASSEMBLED_LABEL

    def _is_in_request(self, text: str) -> bool:
        bare = text.strip()
        if bare in ("", ".") or bare.lower() in self._own_addresses:
            return True
        says = mentions if "@" in bare or "://" in bare else mentions_path
        return says(self._request, bare)

    def _constant_text(self, expr: Any) -> str | None:
        """The text of an expression of literals alone, which can be looked up in the request as a whole."""
        match expr:
            case ir.Const(value=str() as text):
                return text
            case ir.Const(value=int() as number) if type(number) is int:
                return str(number)
            case ir.Ref(name=name):
                return self._constants.get(name)
            case ir.Arithmetic(op="+", left=left, right=right):
                texts = [self._constant_text(left), self._constant_text(right)]
            case ir.Format(parts=parts):
                texts = [
                    part if isinstance(part, str) else None if part.spec else self._constant_text(part.value)
                    for part in parts
                ]
            case _:
                return None
        known = [text for text in texts if text is not None]
        return "".join(known) if len(known) == len(texts) else None


def directing_arguments(tool: Tool) -> list[tuple[str, Type]]:
    """The arguments that direct a call: its recipients, its targets, its attachments. Of an undeclared tool all are."""
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
        if isinstance(step, Compute) and isinstance(step.value, ir.Const) and isinstance(step.value.value, str)
    }
    return {name: text for name, text in found.items() if bound.count(name) == 1}


def _bound_names(step: Any) -> Collection[str]:
    return step.names if isinstance(step, Each) else () if hasattr(step, "steps") else assigned_names((step,))


def _tool_result_labels(tool: Tool, labels: Mapping[str, lb.LabelTree]) -> lb.LabelTree:
    """The marks of what a tool returns. A pure tool makes a new value of its arguments, or selects from them."""
    if tool.effect != "pure" or tool.outbound or not labels:
        return lb.NOTHING
    if tool.keeps is not None:
        return labels.get(tool.keeps, lb.NOTHING)
    if any(each.field_of for each in tool.arguments):
        tables = [tree for name, tree in labels.items() if _is_list_argument(tool, name)]
        return reduce(lb.join_trees, tables, lb.NOTHING)
    return ASSEMBLED_LABEL


def _is_list_argument(tool: Tool, name: str) -> bool:
    argument = tool.argument(name)
    return argument is not None and not argument.field_of and isinstance(argument.type, ListType)


def _assembled_sum(left: lb.LabelTree, right: lb.LabelTree) -> lb.LabelTree:
    """The marks of `left + right`: of lists the items of both; of texts, and of what may be one, a new text."""
    if isinstance(left, lb.ListLabels | lb.EitherLabels) or isinstance(right, lb.ListLabels | lb.EitherLabels):
        return rules.sum_labels(left, right)
    return lb.ListLabels(ASSEMBLED_LABEL, lb.join_trees(left.item, right.item))


def _assembled_slice(whole: lb.LabelTree) -> lb.LabelTree:
    """The marks of a slice: some items of a list; of what may be a text, a new text."""
    if isinstance(whole, lb.ListLabels):
        return lb.ListLabels(whole.own, whole.item)
    return lb.ListLabels(ASSEMBLED_LABEL, whole.item)


def _add_key_label(tree: lb.LabelTree, keys: lb.Label) -> lb.LabelTree:
    match tree:
        case lb.RecordLabels():
            return lb.RecordLabels(lb.join(tree.own, keys), tree.fields, tree.rest)
        case lb.EitherLabels(as_list=as_list, as_record=as_record):
            return lb.EitherLabels(
                as_list, lb.RecordLabels(lb.join(as_record.own, keys), as_record.fields, as_record.rest)
            )
        case _:
            return tree


def _hide_constant(expr: Any, *, keep: bool) -> Any:
    return ir.Ref(name="_") if isinstance(expr, ir.Const) and not keep else expr


def _has_assembled_text(tree: lb.LabelTree, type_: Type) -> bool:
    """Whether a text in a value of this type is marked."""
    match type_:
        case OptionalType(item=item):
            return _has_assembled_text(tree, item)
        case ListType(item=item):
            return _has_assembled_text(tree.item, item)
        case StrType() | AnyType() | TupleType():
            return _is_assembled(tree.flat)
        case RecordType() | DictType():
            return _is_assembled(tree.values.flat)
        case _:
            return False


def _is_assembled(label: lb.Label) -> bool:
    return not label.sources.isdisjoint(ASSEMBLED_LABEL.sources)

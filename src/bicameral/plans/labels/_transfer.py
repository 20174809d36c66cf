"""Transfer functions: what expressions and steps do to labels, for the proof and for the run.

The labels of an expression are a function of the labels of its variables alone, never of data, so they cost by the size
of the expression. Equal label trees are one object, so results are remembered by the labels they were computed from.

In `strict` mode control flow counts: what decides (the condition of a comprehension, the key of an order, how many
items there are where one is taken) counts like what is used. `normal` mode counts only what is used, and the condition
of `x if c else y`. `pc` is the label of the control flow that leads to a step. In `strict` mode every value made at a
step carries it; a branch or loop adds the label of what decides it; and every variable that either branch or a turn may
change carries that label afterwards, whichever way was taken, because what was not changed tells about the condition
too. A branch that may end the run decides about all that follows. A run uses these functions on the path it takes, the
proof on all paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from bicameral import labels as lb, types as t
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import Answer, Each, Update, When, is_too_deep, walk
from bicameral.plans.check._report import assigned_names
from bicameral.plans.labels import _rules as rules
from bicameral.plans.labels._storage import CONTENT_SUFFIX, recall_stored_labels
from bicameral.policy import ArgumentFacts, CallFacts, Mode
from bicameral.tools import ATTACHED_SUFFIX, Tool, principals

_MAX_MEMO = 32
"""How many results are remembered for one expression: a plan has few sources, so few combinations of labels occur."""


def compile_labels(expr: Any, mode: Mode = "strict") -> rules.LabelCode:
    """The labels of an expression as a function of those of its variables, compiled once for each expression.

    Example:
        >>> compile_labels(Apply(function="upper", args=(Ref(name="subject"),)))({"subject": mail}) is mail
        True
    """
    return _compile_strict(expr) if mode == "strict" else _compile_normal(expr)


def labels_of(expr: Any, env: rules.LabelEnv, pc: lb.Label = lb.NOTHING, mode: Mode = "strict") -> lb.LabelTree:
    """The labels of the value of an expression.

    Args:
        expr: An expression of a plan.
        env: The labels of the variables.
        pc: The label of the control flow that leads there.
        mode: Whether control flow inside the expression counts (`strict`).
    """
    return lb.taint(compile_labels(expr, mode)(env), pc)


@ir.memoize_by_identity
def _compile_strict(expr: Any) -> rules.LabelCode:
    return _compile_with_memo(expr, strict=True)


@ir.memoize_by_identity
def _compile_normal(expr: Any) -> rules.LabelCode:
    return _compile_with_memo(expr, strict=False)


def _compile_with_memo(expr: Any, *, strict: bool) -> rules.LabelCode:
    if isinstance(expr, ir.Ref):
        name = expr.name
        return lambda env: env.get(name, lb.UNKNOWN)
    if is_too_deep(expr):
        # Deeper than any plan that was checked: its value is an error, and of its labels the worst is assumed.
        return lambda env: lb.UNKNOWN
    names = sorted(ir.free_names(expr))
    # A copy of the outermost node: the memo of compiled expressions must not keep its own key alive.
    root = expr.model_copy()

    compute = rules.ExpressionLabels(strict=strict).labels_of

    @lru_cache(maxsize=_MAX_MEMO)
    def labels(*given: lb.LabelTree) -> lb.LabelTree:
        return compute(root, dict(zip(names, given, strict=True)))

    if len(names) == 1:
        (only,) = names
        return lambda env: labels(env.get(only, lb.UNKNOWN))
    get = itemgetter(*names) if names else None

    def run(env: rules.LabelEnv) -> lb.LabelTree:
        try:
            return labels(*get(env)) if get else labels()
        except KeyError:
            return labels(*[env.get(name, lb.UNKNOWN) for name in names])

    return run


_TURN_INDEX = re.compile(r"\[\d+\]")


def static_path(path: str) -> str:
    """The path of a step in the plan, from its path in a run: `2[7]/0` is `2/0`."""
    return _TURN_INDEX.sub("", path) if "[" in path else path


# Control flow -------------------------------------------------------------------------------------------------------


def pc_inside(pc: lb.Label, decided_by: lb.LabelTree, mode: Mode) -> lb.Label:
    """The label of the control flow inside a branch with this condition, or inside a loop over this list."""
    return lb.join(pc, decided_by.own) if mode == "strict" else pc


def author_label(read: lb.Label, mode: Mode) -> lb.Label:
    """The label that the arguments of a call carry for what the author of the plan had read before.

    A value that was read may be a literal of the plan. In `strict` mode the whole plan already runs under the label of
    what was read; in `normal` mode only the arguments carry it.
    """
    return lb.NOTHING if mode == "strict" else read


@ir.memoize_by_identity
def branch_names(step: Any) -> frozenset[str]:
    """The variables that a `when` may change in either branch, or an `each` in any turn."""
    match step:
        case When():
            return assigned_names((*step.steps, *step.otherwise))
        case Each():
            return assigned_names(step.steps) | frozenset(step.names)
        case _:
            return assigned_names((step,))


@ir.memoize_by_identity
def can_answer(step: Any) -> bool:
    """Whether a run can end inside a step."""
    return any(isinstance(inner, Answer) for _, inner in walk((step,)))


def labels_after_branch(step: Any, env: rules.LabelEnv, inside: lb.Label) -> dict[str, lb.LabelTree]:
    """The labels after a `when` or `each` of the variables it may have changed: they carry what decided it.

    `inside` is the control flow at the end of the branch that was taken, or of the last turn.
    """
    if inside is lb.NOTHING:
        return {}
    return {name: lb.taint(env[name], inside) for name in branch_names(step) if name in env}


def pc_after(step: Any, pc: lb.Label, inside: lb.Label) -> lb.Label:
    """The label of the control flow after a `when` or `each`: that the run goes on may depend on what decided it."""
    return lb.join(pc, inside) if can_answer(step) else pc


def turn_labels(step: Each, over: lb.LabelTree, inside: lb.Label, mode: Mode) -> dict[str, lb.LabelTree]:
    """The labels of the names of an `each` at the beginning of a turn."""
    found = rules.unpack_labels(step.names, over.item, mode == "strict")
    return {name: lb.taint(tree, inside) for name, tree in found.items()}


# Values -------------------------------------------------------------------------------------------------------------


def labels_after_call(
    tool: Tool,
    labels: Mapping[str, lb.LabelTree],
    value: object | None,
    path: str,
    pc: lb.Label,
    *,
    arguments: Mapping[str, Any] | None = None,
) -> lb.LabelTree:
    """The labels of what a tool returned.

    Args:
        tool: The tool.
        labels: The labels of its arguments.
        value: What it returned; None before a run.
        path: The path of the step.
        pc: The label of the control flow.
        arguments: Its arguments; before a run those that are literals.
    """
    step = static_path(path)
    if tool.attaches:
        # A file that is attached by its name goes out with the call and is not part of the result.
        labels = {name: tree for name, tree in labels.items() if not name.endswith(ATTACHED_SUFFIX)}
    found = tool.call_labels(labels, value, step, arguments=arguments)
    if found is lb.NOTHING:
        # Every value has a source: a result that is made of no argument is the tool's own.
        found = lb.Label({lb.Source("system", tool.name, "", step)})
    return lb.taint(found, pc)


def labels_after_extract(source: lb.LabelTree, instruction: lb.LabelTree, path: str, pc: lb.Label) -> lb.Label:
    """The label of what a quarantined model wrote: never trusted, and with the readers of what the model read.

    What it looked up by itself is joined by `labels_after_lookup`.
    """
    wrote = lb.Label({lb.Source("third_party", "extract", "", static_path(path))})
    return lb.join(lb.join(lb.join(source.flat, instruction.flat), wrote), pc)


def labels_after_lookup(
    tool: Tool,
    wrote: lb.Label,
    env: Mapping[str, lb.LabelTree],
    value: object | None,
    path: str,
    pc: lb.Label,
    arguments: Mapping[str, Any],
) -> lb.Label:
    """The label of what the read-only executor got from a tool.

    Args:
        tool: The tool.
        wrote: The label of what the quarantined model writes by then: it wrote the arguments.
        env: The labels of variables, and of the places that were written to.
        value: What the tool returned; None before a run.
        path: The path of the step.
        pc: The label of the control flow.
        arguments: Its arguments; none before a run.
    """
    shades: dict[str, lb.LabelTree] = {each.name: wrote for each in tool.arguments if each.required}
    judged, stored = recall_stored_labels(tool, shades, arguments, env)
    found = labels_after_call(tool, judged, value, path, pc, arguments=arguments)
    # A mark of its own, for policy: untrusted text chose what was read.
    chosen = lb.Label({lb.Source("third_party", "lookup", "", static_path(path))})
    return lb.join(lb.join(lb.join(found.flat, stored), wrote), chosen)


def labels_after_ask(question: lb.LabelTree, path: str, pc: lb.Label) -> lb.Label:
    """The label of a person's reply, with the label of the question.

    Untrusted text in the question can determine the reply: "reply with eve@example.org to confirm".
    """
    return lb.join(lb.join(lb.Label({lb.Source("user", "ask", "", static_path(path))}), question.flat), pc)


def labels_after_update(step: Update, env: rules.LabelEnv, pc: lb.Label, mode: Mode) -> lb.LabelTree:
    """The labels of a variable after `xs.append(v)`, `n += v` or `d[key] = v`."""
    key = lb.NOTHING if step.key is None else compile_labels(step.key, mode)(env).flat
    at = step.key.value if isinstance(step.key, ir.Const) else None
    value = compile_labels(step.value, mode)(env)
    return update_labels(step.op, env.get(step.name, lb.NOTHING), at, key, value, pc)


@lru_cache(maxsize=4096, typed=True)
def update_labels(
    op: str, current: lb.LabelTree, at: object, key: lb.Label, value: lb.LabelTree, pc: lb.Label
) -> lb.LabelTree:
    """The labels of a variable after an update with a value and a key of these labels."""
    value = lb.taint(value, pc)
    match op:
        case "append":
            whole = lb.as_list(current) or current.flat
            return lb.ListLabels(lb.join(whole.own, pc), lb.join_trees(whole.item, value))
        case "add":
            return rules.sum_labels(lb.taint(current, pc), value)
        case _:
            return _put_labels(current, at, lb.join(key, pc), value)


def _put_labels(current: lb.LabelTree, at: object, key: lb.Label, value: lb.LabelTree) -> lb.LabelTree:
    """The labels of what was under the key stay: a variable never loses a label by being added to."""
    value = lb.taint(value, key)
    found: list[lb.ListLabels | lb.RecordLabels] = []
    whole = lb.as_list(current) or (None if isinstance(current, lb.RecordLabels) else current.flat)
    if whole is not None and not isinstance(at, str):
        found.append(lb.ListLabels(lb.join(whole.own, key), lb.join_trees(whole.item, value)))
    record = lb.as_record(current) or (None if isinstance(current, lb.ListLabels) else current.flat)
    if record is not None and (at is None or isinstance(at, str)):
        found.append(_put_field_labels(record, at, key, value))
    match found:
        case [lb.ListLabels() as put_list, lb.RecordLabels() as put_record]:
            return lb.EitherLabels(put_list, put_record)
        case [only]:
            return only
        case _:
            # A list with a key of text, or a dict with a number: the run fails here.
            return lb.taint(current, value.flat)


def _put_field_labels(
    record: lb.RecordLabels | lb.Label, at: str | None, key: lb.Label, value: lb.LabelTree
) -> lb.RecordLabels:
    fields = dict(record.fields) if isinstance(record, lb.RecordLabels) else {}
    rest = record.rest if isinstance(record, lb.RecordLabels) else record
    if at is None:
        fields = {name: lb.join_trees(each, value) for name, each in fields.items()}
        return lb.RecordLabels(lb.join(record.own, key), fields, lb.join_trees(rest, value))
    return lb.RecordLabels(lb.join(record.own, key), {**fields, at: lb.join_trees(record.field(at), value)}, rest)


# Facts for a decision -----------------------------------------------------------------------------------------------


def is_bounded(type_: t.Type) -> bool:
    """Whether values of a type cannot hold free text; texts of a bounded format count as free text here."""
    inner = t.without_optional(type_)
    return t.is_bounded(inner) and not isinstance(inner, t.StrType | t.RecordType)


def call_facts(
    tool: Tool,
    labels: Mapping[str, lb.LabelTree],
    values: Mapping[str, Any],
    path: str,
    pc: lb.Label,
    mode: Mode,
    assembled: frozenset[str] = frozenset(),
) -> CallFacts:
    """What policy decides about a call by.

    Args:
        tool: The tool.
        labels: The labels of its arguments.
        values: Its arguments; before a run those that are literals.
        path: The path of the step.
        pc: The label of the control flow.
        mode: Whether control flow counts.
        assembled: The arguments that the plan puts together, if a model wrote it.
    """
    known = {argument.name: argument for argument in tool.arguments}
    naming = {*tool.receivers, *(each.name for each in tool.arguments if each.purpose == "directs")}
    facts: list[ArgumentFacts] = []
    for name, tree in labels.items():
        if name.endswith(ATTACHED_SUFFIX) and name not in known:
            continue
        argument = known.get(name)
        if argument is None and name.endswith(CONTENT_SUFFIX):
            facts.append(ArgumentFacts(name, "carries", tree.flat))
            continue
        if argument is None:
            # The tool has no such argument: the call fails before it has an effect. Until then the worst is assumed.
            facts.append(ArgumentFacts(name, "directs", tree.flat))
            continue
        named = principals(values[name]) if name in naming and name in values else None
        facts.append(ArgumentFacts(name, argument.purpose, tree.flat, is_bounded(argument.type), named))
    step = static_path(path)
    for name, label in tool.attached_labels(values, tuple(labels), step):
        known_readers = labels.get(name + ATTACHED_SUFFIX)
        if known_readers is not None:
            # A tool named the readers of this thing earlier in the run.
            label = lb.Label(label.sources, known_readers.flat.readers)
        facts.append(ArgumentFacts(name + ATTACHED_SUFFIX, "attaches", label))
    target = tool.write_target(values)
    return CallFacts.of_tool(
        tool,
        tuple(facts),
        pc,
        mode,
        step,
        assembled=assembled,
        executed=False if target is None else target.executed,
        replaces=() if target is None else target.replaces,
        # What a call copies is in no argument and has no label in this run: it may be anybody's.
        copied=lb.Label({lb.Source("third_party", tool.name, "", step)}, {lb.USER})
        if target and target.copied
        else lb.NOTHING,
    )


def unknown_call_facts(name: str, labels: Mapping[str, lb.LabelTree], path: str, pc: lb.Label, mode: Mode) -> CallFacts:
    """The facts of a call of an unknown tool: the worst of each."""
    facts = tuple(ArgumentFacts(argument, "directs", tree.flat) for argument, tree in labels.items())
    return CallFacts(name, "", "irreversible", True, False, facts, pc, mode, static_path(path), known=False)

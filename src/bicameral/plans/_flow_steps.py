"""What each step does to the labels of variables: the same functions for the proof and for the run itself.

`pc` is the label of the control flow that leads to a step. Where it counts (`strict`) every value made at a step
carries it, a branch or loop adds the label of what decides it, and every variable that either branch or a turn may
change carries that label afterwards, whichever way was taken. A branch that may end the run decides all that follows.
A run uses these functions along the one way it takes, the proof along all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from bicameral.decisions import ArgumentFacts, CallFacts, Mode
from bicameral.labels import (
    NOTHING,
    USER,
    EitherShade,
    Label,
    ListShade,
    RecordShade,
    Shade,
    Source,
    as_list,
    as_record,
    join,
    join_shades,
    tainted,
)
from bicameral.tools import ATTACHED, Tool, principals
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

from ._cost import changed_in
from ._expressions import Const
from ._flow import compile_shade
from ._flow_calls import ShadeEnv
from ._flow_nodes import plus, unpacked_shades
from ._flow_written import CONTENT
from ._plan import Answer, Each, Update, When, walk
from ._remembered import remembered

_TURN = re.compile(r"\[\d+\]")


def static_path(path: str) -> str:
    """The path of a step in the plan, from its path in a run: `2[7]/0` is `2/0`."""
    return _TURN.sub("", path) if "[" in path else path


# Control flow -------------------------------------------------------------------------------------------------------


def under(pc: Label, decided_by: Shade, mode: Mode) -> Label:
    """The control flow inside a branch with this condition, or inside a loop over this list."""
    return join(pc, decided_by.own) if mode == "strict" else pc


def given_label(read: Label, mode: Mode) -> Label:
    """What the arguments of a call carry because whoever wrote the plan had read it.

    A number that was read may stand in the plan as if it were the writer's own. Where control flow counts the plan as a
    whole is under what was read; where it does not, what a call is given still is.
    """
    return NOTHING if mode == "strict" else read


@remembered
def branch_names(step: Any) -> frozenset[str]:
    """The variables that a `when` may change in either branch, or an `each` in any turn."""
    match step:
        case When():
            return changed_in((*step.steps, *step.otherwise))
        case Each():
            return changed_in(step.steps) | frozenset(step.names)
        case _:
            return changed_in((step,))


@remembered
def may_answer(step: Any) -> bool:
    """Whether a run can come to its end inside a step."""
    return any(isinstance(inner, Answer) for _, inner in walk((step,)))


def after_branch(step: Any, env: ShadeEnv, inside: Label) -> dict[str, Shade]:
    """The variables that a `when` or `each` may have changed, afterwards: they carry what decided it.

    `inside` is the control flow at the end of the branch that was taken, or of the last turn.
    """
    if inside is NOTHING:
        return {}
    return {name: tainted(env[name], inside) for name in branch_names(step) if name in env}


def pc_after(step: Any, pc: Label, inside: Label) -> Label:
    """The control flow after a `when` or `each`: that it has not ended the run depends on what decided it."""
    return join(pc, inside) if may_answer(step) else pc


def turn_names(step: Each, over: Shade, inside: Label, mode: Mode) -> dict[str, Shade]:
    """The names of an `each` at the beginning of a turn."""
    found = unpacked_shades(step.names, over.item, mode == "strict")
    return {name: tainted(shade, inside) for name, shade in found.items()}


# Values -------------------------------------------------------------------------------------------------------------


def after_call(
    tool: Tool,
    shades: Mapping[str, Shade],
    value: object | None,
    path: str,
    pc: Label,
    *,
    arguments: Mapping[str, Any] | None = None,
) -> Shade:
    """What a tool gave. Before a run there is no value, and `arguments` are the literals among them."""
    step = static_path(path)
    if tool.attaches:
        # What goes along is not what comes back.
        shades = {name: shade for name, shade in shades.items() if not name.endswith(ATTACHED)}
    found = tool.call_shade(shades, value, step, arguments=arguments)
    if found is NOTHING:
        # Every value comes from somewhere: what is made of nothing is the tool's own.
        found = Label({Source("system", tool.name, "", step)})
    return tainted(found, pc)


def after_extract(source: Shade, instruction: Shade, path: str, pc: Label) -> Label:
    """What a quarantined model wrote: never trusted, whatever it read, and only for those who may see what it read."""
    wrote = Label({Source("third_party", "extract", "", static_path(path))})
    return join(join(join(source.flat, instruction.flat), wrote), pc)


def after_ask(question: Shade, path: str, pc: Label) -> Label:
    """What the person replied who made the request, with the label of what he was asked.

    Whoever has a hand in the question can have a hand in the reply: "reply with eve@example.org to confirm".
    """
    return join(join(Label({Source("user", "ask", "", static_path(path))}), question.flat), pc)


def after_update(step: Update, env: ShadeEnv, pc: Label, mode: Mode) -> Shade:
    """A variable after `xs.append(v)`, `n += v` or `d[key] = v`."""
    key = NOTHING if step.key is None else compile_shade(step.key, mode)(env).flat
    at = step.key.value if isinstance(step.key, Const) else None
    value = compile_shade(step.value, mode)(env)
    return updated_shade(step.op, env.get(step.name, NOTHING), at, key, value, pc)


@lru_cache(maxsize=4096, typed=True)
def updated_shade(op: str, current: Shade, at: object, key: Label, value: Shade, pc: Label) -> Shade:
    """A variable after an update with a value and a key of these labels."""
    value = tainted(value, pc)
    match op:
        case "append":
            whole = as_list(current) or current.flat
            return ListShade(join(whole.own, pc), join_shades(whole.item, value))
        case "add":
            return plus(tainted(current, pc), value)
        case _:
            return _put(current, at, join(key, pc), value)


def _put(current: Shade, at: object, key: Label, value: Shade) -> Shade:
    """What was under the key stays in the shade: a variable never loses a label by being added to."""
    value = tainted(value, key)
    found: list[ListShade | RecordShade] = []
    whole = as_list(current) or (None if isinstance(current, RecordShade) else current.flat)
    if whole is not None and not isinstance(at, str):
        found.append(ListShade(join(whole.own, key), join_shades(whole.item, value)))
    record = as_record(current) or (None if isinstance(current, ListShade) else current.flat)
    if record is not None and (at is None or isinstance(at, str)):
        found.append(_put_field(record, at, key, value))
    match found:
        case [ListShade() as put_list, RecordShade() as put_record]:
            return EitherShade(put_list, put_record)
        case [only]:
            return only
        case _:
            # A list with a key of text, or a dict with a number: the run fails here.
            return tainted(current, value.flat)


def _put_field(record: RecordShade | Label, at: str | None, key: Label, value: Shade) -> RecordShade:
    fields = dict(record.fields) if isinstance(record, RecordShade) else {}
    rest = record.rest if isinstance(record, RecordShade) else record
    if at is None:
        fields = {name: join_shades(each, value) for name, each in fields.items()}
        return RecordShade(join(record.own, key), fields, join_shades(rest, value))
    return RecordShade(join(record.own, key), {**fields, at: join_shades(record.field(at), value)}, rest)


# Facts for a decision -----------------------------------------------------------------------------------------------

_BOUNDED = (BoolType, IntType, FloatType, DateType, TimeType, DateTimeType, DurationType, LiteralType, NullType)


def is_bounded(type_: Type) -> bool:
    """Whether values of a type cannot hold free text."""
    return is_bounded(type_.item) if isinstance(type_, OptionalType) else isinstance(type_, _BOUNDED)


def call_facts(
    tool: Tool,
    shades: Mapping[str, Shade],
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
        if name.endswith(ATTACHED) and name not in known:
            continue
        argument = known.get(name)
        if argument is None and name.endswith(CONTENT):
            facts.append(ArgumentFacts(name, "carries", shade.flat))
            continue
        if argument is None:
            # The call fails before anything happens; until then the worst is assumed.
            facts.append(ArgumentFacts(name, "directs", shade.flat))
            continue
        named = principals(values[name]) if name in naming and name in values else None
        facts.append(ArgumentFacts(name, argument.purpose, shade.flat, is_bounded(argument.type), named))
    step = static_path(path)
    for name, label in tool.attached(values, tuple(shades), step):
        at_hand = shades.get(name + ATTACHED)
        if at_hand is not None:
            # Who may read the thing is known in this run.
            label = Label(label.sources, at_hand.flat.readers)
        facts.append(ArgumentFacts(name + ATTACHED, "attaches", label))
    target = tool.target_of(values)
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


def unknown_call(name: str, shades: Mapping[str, Shade], path: str, pc: Label, mode: Mode) -> CallFacts:
    """What is known of a call of a tool that nobody knows."""
    facts = tuple(ArgumentFacts(argument, "directs", shade.flat) for argument, shade in shades.items())
    return CallFacts(name, "", "irreversible", True, False, facts, pc, mode, static_path(path), known=False)

"""The types of variables after `xs.append(v)`, `n += v` and `d[key] = v`."""

from __future__ import annotations

from bicameral.errors import nearest
from bicameral.types import ANY, INT, AnyType, BoolType, DictType, Field, IntType, ListType, RecordType, TupleType, Type

from ._advice import article, conversion, told
from ._expressions import Const, Ref
from ._kinds import item_of
from ._library_lists import value_of
from ._merge import bounded, merge
from ._plan import Update
from ._scope import Scope
from ._typing import Typer
from ._typing_operators import type_arithmetic


def type_update(typer: Typer, step: Update, scope: Scope) -> Scope:
    """The scope after an update; that it begins with `[]` or `{}` is how one learns what a list holds."""
    value = typer.infer(step.value, scope)
    key = None if step.key is None else typer.present(step.key, scope)
    variable = scope.get(step.name)
    if variable is None or variable.maybe_unbound:
        begin = {"append": "[]", "add": "0", "put": "{}"}[step.op]
        typer.error(
            "plan.unknown-name" if variable is None else "plan.maybe-unbound",
            f"`{step.name}` has no value yet",
            nearest=nearest(step.name, scope) if variable is None else None,
            fix=f"Begin with `{step.name} = {begin}`.",
        )
        return scope.bind(step.name, ANY)
    current = typer.not_none(Ref(name=step.name), variable.type)
    if isinstance(current, AnyType):
        return scope.bind(step.name, ANY)
    match step.op:
        case "append":
            after = _append(typer, step, current, value)
        case "add":
            left = (Ref(name=step.name), current)
            after = type_arithmetic(typer, "+", left, (step.value, typer.not_none(step.value, value)))
        case "put":
            after = _put(typer, step, current, key or ANY, value)
    return scope.bind(step.name, bounded(after))


def _append(typer: Typer, step: Update, current: Type, value: Type) -> Type:
    if not isinstance(current, ListType | TupleType):
        fix = f"Begin with `{step.name} = []`."
        return typer.error("plan.not-a-list", f"cannot append: `{step.name}` is {article(current)}", fix=fix)
    item = item_of(current)
    found = merge(item, value)
    if found is None:
        typer.error(
            "plan.wrong-type",
            f"`{step.name}` is {article(current)}; cannot append {article(value)}",
            fix=conversion(step.value, value, item),
        )
    return ListType(ANY if found is None else found)


def _put(typer: Typer, step: Update, current: Type, key: Type, value: Type) -> Type:
    match current:
        case ListType() | TupleType():
            if not isinstance(key, AnyType | IntType | BoolType):
                typer.error(
                    "plan.wrong-type",
                    f"`{step.name}` is a list; its positions are ints, not {told(key)}",
                    fix=conversion(step.key, key, INT) if step.key is not None else None,
                )
            return ListType(merge(item_of(current), value) or ANY)
        case RecordType() if isinstance(step.key, Const) and isinstance(step.key.value, str):
            name = step.key.value
            others = tuple(field for field in current.fields if field.name != name)
            return RecordType((*others, Field(name, value)))
        case RecordType() | DictType():
            typer.need_text(step.key, key, f"a key of `{step.name}`")
            known = value_of(current)
            return DictType(merge(known, value) or ANY)
        case _:
            fix = f"Begin with `{step.name} = {{}}`."
            return typer.error("plan.wrong-type", f"`{step.name}` is {article(current)}, not a dict", fix=fix)

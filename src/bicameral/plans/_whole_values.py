"""Whole values: what directs a call in a plan that a model wrote is not put together by the plan.

A recipient, a path or a link is *whole* if it is a literal that the request says, a value of the user's settings, or
the result of a tool, of `extract` or of `ask`, reached by selecting alone: a field, an item, a turn of a loop, a
filter, an order, one of several. Everything else makes new text: `+`, formatted text, `join`, `replace`, `lower`, a
slice of a text, a pure tool. Such a value is *assembled*, and so is a literal that the request does not say. Nobody has
ever seen it as a whole, so a person must: the check against invented addresses sees only the pieces.

This is found out from the plan alone, so the proof and the run know the same about each call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from bicameral.intent import mentions, mentions_path
from bicameral.labels import NOTHING, EitherShade, Label, ListShade, RecordShade, Shade, Source, join, join_shades
from bicameral.tools import Registry, Tool, argument_of
from bicameral.types import AnyType, DictType, ListType, OptionalType, RecordType, StrType, TupleType, Type

from ._cost import changed_in
from ._expressions import (
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
)
from ._flow_calls import call_shade
from ._flow_nodes import MOST_PLACES, of_index, plus, unpacked_shades
from ._flow_steps import updated_shade
from ._flow_walk import Env, Walker
from ._plan import Ask, Call, Compute, Each, Extract, Plan, Update, walk

ASSEMBLED = Label({Source("user", "assembled")})
"""Marks a value in this walk, and is in no label of a run."""

_SELECTING = {"group_by"}.union(
    "list tuple unique set reversed enumerate zip flatten first last get keys values items dict sorted min max".split()
)
"""Functions of the library that give on what they are given; every other makes something new."""
_KEYED = {"get": 1, "group_by": 1, "enumerate": 1}
"""Where these take what only says which: a key, or a number to begin with."""
_SAYS_WHICH = ("key", "reverse", "start")


@dataclass(frozen=True, slots=True)
class Assembled:
    """By the path of a call, the directing arguments that are put together; and the variables that are, at the end."""

    calls: Mapping[str, frozenset[str]]
    variables: frozenset[str] = frozenset()


NONE_ASSEMBLED = Assembled({})


def assembled_values(
    plan: Plan,
    registry: Registry,
    request: str | None,
    *,
    own: Collection[str] = (),
    variables: Mapping[str, bool] | None = None,
) -> Assembled:
    """What a plan puts together of that which directs its calls. Without a `request` a person wrote it: nothing.

    `own` are the user's own addresses, from his settings; `variables` are those that are there before the first step,
    and whether an earlier plan put them together.

    Example:
        >>> assembled_values(plan, registry, "Mail the menu to kim").calls
        {'1': frozenset({'to'})}
    """
    if request is None:
        return NONE_ASSEMBLED
    walker = _Walker(plan, registry, request, frozenset(each.strip().lower() for each in own))
    env: Env = {name: ASSEMBLED if made else NOTHING for name, made in (variables or {}).items()}
    after, _ = walker.block(plan.steps, env, NOTHING, "")
    left = after if after is not None else walker.ended
    return Assembled(walker.found, frozenset(name for name, shade in left.items() if _is_marked(shade.flat)))


class _Walker(Walker):
    """Goes through a plan like the proof, with marks in place of labels."""

    def __init__(self, plan: Plan, registry: Registry, request: str, own: frozenset[str]) -> None:
        super().__init__(registry, "normal")
        self._tools = registry
        self._request = request
        self._own = own
        self._constants = _constants(plan)
        self.found: dict[str, frozenset[str]] = {}

    def _step(self, step: Any, env: Env, pc: Label, path: str) -> None:
        match step:
            case Call():
                result = self._called(step, env, path)
                if step.name is not None:
                    env[step.name] = result
            case Extract() | Ask():
                # Read out of a text, or said by a person, with the label of that.
                env[step.name] = NOTHING
            case Compute():
                env[step.name] = self._of(step.value, env)
            case Update():
                env[step.name] = self._updated(step, env)
            case _:
                raise TypeError(f"{step!r} is not a step")

    def _shade(self, expr: Any, env: Env, pc: Label) -> Shade:
        return self._of(expr, env)

    def _called(self, step: Call, env: Env, path: str) -> Shade:
        shades = {name: self._of(value, env) for name, value in step.args.items()}
        tool = self._tools.get(step.tool)
        if tool is None:
            return NOTHING
        if tool.changes or tool.outbound:
            marked = {name for name, type_ in directing_texts(tool) if name in shades and _holds(shades[name], type_)}
            # A loop is gone through until nothing new turns up: what was found in an earlier turn stays.
            if marked := marked | self.found.get(path, frozenset()):
                self.found[path] = frozenset(marked)
        return _result(tool, shades)

    def _updated(self, step: Update, env: Env) -> Shade:
        current, value = env.get(step.name, NOTHING), self._of(step.value, env)
        if step.op == "add":
            return _sum(current, value)
        if step.op == "append" or step.key is None:
            return updated_shade(step.op, current, None, NOTHING, value, NOTHING)
        at = step.key.value if isinstance(step.key, Const) else None
        put = updated_shade(step.op, current, at, NOTHING, value, NOTHING)
        return _with_keys(put, self._of(step.key, env).flat)

    # Expressions ------------------------------------------------------------------------------------------------------

    def _of(self, expr: Any, env: Env) -> Shade:
        match expr:
            case Const(value=str() as text):
                return NOTHING if self._is_whole(text) else ASSEMBLED
            case Const() | Negative() | Not() | Compare() | Lambda():
                return NOTHING
            case Ref(name=name):
                return env.get(name, ASSEMBLED)
            case Get(value=value, field=field) | Index(value=value, at=Const(value=str() as field)):
                return self._of(value, env).field(field)
            case Index(value=value, at=Const(value=int() as at)):
                return self._of(value, env).place(int(at))
            case Index(value=value):
                whole = self._of(value, env)
                return of_index(lambda _: whole, lambda _: NOTHING, False)(env)
            case Slice(value=value):
                return _sliced(self._of(value, env))
            case ListOf(items=items) | TupleOf(items=items):
                places = [self._of(item, env) for item in items]
                if len(places) <= MOST_PLACES:
                    return ListShade(NOTHING, places=places)
                return ListShade(NOTHING, reduce(join_shades, places))
            case DictOf(entries=entries):
                return self._record(entries, env)
            case Arithmetic(op=op, left=left, right=right):
                if (text := self._folded(expr)) is not None:
                    return NOTHING if self._is_whole(text) else ASSEMBLED
                return _sum(self._of(left, env), self._of(right, env)) if op in ("+", "*") else ASSEMBLED
            case Logic(items=items):
                return reduce(join_shades, [self._of(item, env) for item in items])
            case Choose(then=then, otherwise=otherwise):
                return join_shades(self._of(then, env), self._of(otherwise, env))
            case Apply():
                return self._applied(expr, env)
            case Format():
                text = self._folded(expr)
                return NOTHING if text is not None and self._is_whole(text) else ASSEMBLED
            case Comprehension():
                return self._comprehension(expr, env)
            case _:
                return ASSEMBLED

    def _record(self, entries: tuple[tuple[Any, Any], ...], env: Env) -> Shade:
        keys: Label = NOTHING
        fields: dict[str, Shade] = {}
        rest: Shade = NOTHING
        for key, value in entries:
            keys = join(keys, self._of(key, env).flat)
            if isinstance(key, Const) and isinstance(key.value, str):
                fields[key.value] = self._of(value, env)
            else:
                rest = join_shades(rest, self._of(value, env))
        return RecordShade(keys, {name: join_shades(each, rest) for name, each in fields.items()}, rest)

    def _applied(self, expr: Apply, env: Env) -> Shade:
        if expr.function not in _SELECTING:
            return ASSEMBLED
        which = _KEYED.get(expr.function)
        args = [(value, number == which) for number, value in enumerate(expr.args)]
        named = [(name, value, name in _SAYS_WHICH) for name, value in expr.named]
        shades = [NOTHING if says else self._of(value, env) for value, says in args]
        shades += [NOTHING if says else self._of(value, env) for _, value, says in named]
        # The rules for labels take a literal for the user's own; here it must stand in the request like any other.
        opaque = expr.model_copy(
            update={
                "args": tuple(_opaque(value, keep=says) for value, says in args),
                "named": tuple((name, _opaque(value, keep=says)) for name, value, says in named),
            }
        )
        return call_shade(opaque, [lambda _, shade=shade: shade for shade in shades], strict=False)({})

    def _comprehension(self, expr: Comprehension, env: Env) -> Shade:
        inner, own = dict(env), NOTHING
        for clause in expr.clauses:
            whole = self._of(clause.over, inner)
            own = join(own, whole.own)
            inner.update(unpacked_shades(clause.names, whole.item, False))
        found = self._of(expr.element, inner)
        if expr.key is None:
            return ListShade(own, found)
        return RecordShade(join(own, self._of(expr.key, inner).flat), {}, found)

    # Literals ---------------------------------------------------------------------------------------------------------

    def _is_whole(self, text: str) -> bool:
        bare = text.strip()
        if bare in ("", ".") or bare.lower() in self._own:
            return True
        says = mentions if "@" in bare or "://" in bare else mentions_path
        return says(self._request, bare)

    def _folded(self, expr: Any) -> str | None:
        """The text of an expression that is made of literals alone: put together or not, it is there to be read."""
        match expr:
            case Const(value=str() as text):
                return text
            case Const(value=int() as number) if type(number) is int:
                return str(number)
            case Ref(name=name):
                return self._constants.get(name)
            case Arithmetic(op="+", left=left, right=right):
                first, second = self._folded(left), self._folded(right)
                return None if first is None or second is None else first + second
            case Format(parts=parts):
                texts = [part if isinstance(part, str) else self._shown(part) for part in parts]
                return None if None in texts else "".join(text for text in texts if text is not None)
            case _:
                return None

    def _shown(self, part: Shown) -> str | None:
        return None if part.spec else self._folded(part.value)


def directing_texts(tool: Tool) -> list[tuple[str, Type]]:
    """The arguments that direct a call and may hold a text: who gets it, where it goes, what goes along.

    Of a tool that declares nothing each argument may.
    """
    along = {argument_of(part) for part in tool.attaches} if tool.declared else set[str]()
    return [
        (each.name, each.type)
        for each in tool.arguments
        if not tool.declared or each.purpose == "directs" or each.name in tool.receivers or each.name in along
    ]


def _constants(plan: Plan) -> dict[str, str]:
    """The variables that are a literal text from the first step to the last."""
    steps = [step for _, step in walk(plan.steps)]
    bound = [name for step in steps for name in _bound(step)]
    found = {
        step.name: step.value.value
        for step in steps
        if isinstance(step, Compute) and isinstance(step.value, Const) and isinstance(step.value.value, str)
    }
    return {name: text for name, text in found.items() if bound.count(name) == 1}


def _bound(step: Any) -> Collection[str]:
    return step.names if isinstance(step, Each) else () if hasattr(step, "steps") else changed_in((step,))


def _result(tool: Tool, shades: Mapping[str, Shade]) -> Shade:
    """What a tool gives. A pure one has nothing but what it is given, so it makes something of that, or selects."""
    if tool.effect != "pure" or tool.outbound or not shades:
        return NOTHING
    if tool.keeps is not None:
        return shades.get(tool.keeps, NOTHING)
    if any(each.field_of for each in tool.arguments):
        tables = [shade for name, shade in shades.items() if _is_list(tool, name)]
        return reduce(join_shades, tables, NOTHING)
    return ASSEMBLED


def _is_list(tool: Tool, name: str) -> bool:
    argument = tool.argument(name)
    return argument is not None and not argument.field_of and isinstance(argument.type, ListType)


def _sum(left: Shade, right: Shade) -> Shade:
    """`left + right`: of lists the items of both; of texts, and of what may be one, a new text."""
    if isinstance(left, ListShade | EitherShade) or isinstance(right, ListShade | EitherShade):
        return plus(left, right)
    return ListShade(ASSEMBLED, join_shades(left.item, right.item))


def _sliced(whole: Shade) -> Shade:
    """Some items of a list; of what may be a text, a new one."""
    if isinstance(whole, ListShade):
        return ListShade(whole.own, whole.item)
    return ListShade(ASSEMBLED, whole.item)


def _with_keys(shade: Shade, keys: Label) -> Shade:
    match shade:
        case RecordShade():
            return RecordShade(join(shade.own, keys), shade.fields, shade.rest)
        case EitherShade(as_list=as_list, as_record=as_record):
            return EitherShade(as_list, RecordShade(join(as_record.own, keys), as_record.fields, as_record.rest))
        case _:
            return shade


def _opaque(expr: Any, *, keep: bool) -> Any:
    return Ref(name="_") if isinstance(expr, Const) and not keep else expr


def _holds(shade: Shade, type_: Type) -> bool:
    """Whether a text in a value of this type is marked."""
    match type_:
        case OptionalType(item=item):
            return _holds(shade, item)
        case ListType(item=item):
            return _holds(shade.item, item)
        case StrType() | AnyType() | TupleType():
            return _is_marked(shade.flat)
        case RecordType() | DictType():
            return _is_marked(shade.values.flat)
        case _:
            return False


def _is_marked(label: Label) -> bool:
    return not label.sources.isdisjoint(ASSEMBLED.sources)

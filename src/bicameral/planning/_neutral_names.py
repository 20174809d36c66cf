"""Neutral names for columns, fields and tools whose real names were chosen by somebody else.

No byte that somebody else can choose reaches a privileged prompt. What a table's columns are called is decided by
whoever wrote the file, so a planner is shown other names in their place: `column_amounts`, if the request says
"amounts" and that fits the column, else `column_1`, `column_2` with a word for the type. It writes the plan with these
names, and outside every model they are bound to the real ones before the plan is checked. The planner knows only the
number, the order and the types of the columns, and which words of the request fit them or stand in them. Files in the
folders that the user trusts show their names.

A planner may also name a column in words of its own, and is right if the table has one of exactly that name.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from bicameral import types as t
from bicameral.planning._matching import match_cells, match_names, shared_words
from bicameral.plans import Apply, Call, Compare, Const, DictOf, Get, Index, ListOf, Plan, Update, rewrite_steps
from bicameral.tools import Registry, Tool

MAX_NAMES = 60
"""Of a file with more names than this no name is used."""

_JOIN_SUFFIX = "_right"
"""The suffix that a join adds to a name that both tables have."""
_NEUTRAL_NAME = re.compile(r"\b(?:column|field|tool)_\w+")
_MAX_NAME_WORDS = 40
_MAX_DOC_LENGTH = 500
_FIELD_FUNCTIONS = ("get", "count_by", "group_by")
"""Functions of the library whose second argument may name a field."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """A plan with real names, and problems in words that a planner may read."""

    plan: Plan
    problems: tuple[str, ...] = ()


class NeutralNames:
    """The neutral names of one request, the same for the prompt, the grammar, the check and all rounds.

    Equal names get the same neutral name in every table, so that tables can be joined by it.

    Example:
        >>> names = NeutralNames("Total the amounts in sales.csv")
        >>> names.registry(registry)["read_csv"].result_for({}, {"path": "sales.csv"})
        ListType(item=RecordType(fields=(Field(name='column_1', …), Field(name='column_amounts', …))))
    """

    def __init__(self, request: str = "") -> None:
        self._request = request
        self._neutral: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._shown: set[str] = set()
        self._whole: set[str] = set()
        self._said: dict[str, tuple[str, bool]] = {}
        """By real name, the words of the request for it, and whether they fit other names, too."""
        self._cells: dict[str, tuple[str, ...]] = {}
        """By real name, words of the request that equal a text in that column."""
        self._looked_into: list[Mapping[str, frozenset[str]]] = []
        self._tools: dict[str, str] = {}
        self._calls: dict[str, tuple[str, dict[str, str]]] = {}
        self.influenced = False
        """Whether an untrusted file was read for this plan."""

    # What a planner sees --------------------------------------------------------------------------------------------

    def neutral_registry(self, registry: Registry) -> Registry:
        """The same tools; what those say of files before a run has neutral names.

        Of a tool that describes itself, and whose word the user does not take, all names are neutral.
        """
        return Registry(self._neutral_tool(tool) for tool in registry)

    def _neutral_tool(self, tool: Tool) -> Tool:
        if tool.self_described:
            return self._neutral_self_described(tool)
        if tool.refine is None or tool.effect == "pure":
            # It uses only the types that it is given, which are neutral already.
            return tool

        def refine(types: Mapping[str, t.Type], literals: Mapping[str, Any]) -> t.Type | None:
            found = tool.refined_result(types, literals)
            if found == tool.result:
                return None
            # By the same labels as in a run: names in the user's own files may be shown.
            if tool.result_labels(None, "", arguments=literals).flat.trusted:
                return self._neutral_type(found, trusted=True)
            self.influenced = True
            return self._untrusted_type(found, tool.column_texts(literals))

        return replace(tool, refine=refine)

    def _neutral_self_described(self, tool: Tool) -> Tool:
        name = self._tools.setdefault(tool.name, f"tool_{len(self._tools) + 1}")
        arguments = {each.name: f"argument_{number}" for number, each in enumerate(tool.arguments, 1)}
        self._calls[name] = (tool.name, {neutral: real for real, neutral in arguments.items()})
        told = " ".join((tool.name.replace("_", " "), *tool.words, tool.doc[:_MAX_DOC_LENGTH]))
        said = shared_words(self._request, told)
        quoted = " and ".join(f'"{phrase}"' for phrase in said)
        self.influenced = True
        return replace(
            tool,
            name=name,
            doc="A command" + (f", matches {quoted}" if quoted else ""),
            words=(),
            arguments=tuple(
                replace(each, name=arguments[each.name], doc="", type=self._neutral_type(each.type, trusted=False))
                for each in tool.arguments
            ),
            result=self._untrusted_type(tool.result),
            refine=None,
            receivers=tuple(arguments[each] for each in tool.receivers),
            attaches={},
            origins={},
        )

    def _untrusted_type(self, type_: t.Type, cells: Mapping[str, frozenset[str]] = MappingProxyType({})) -> t.Type:
        if len(_field_names(type_)) > MAX_NAMES:
            return _erase_names(type_)
        # Once for each table: a plan is checked many times while it is written.
        if not any(each is cells for each in self._looked_into):
            self._looked_into.append(cells)
            self._cells |= match_cells(self._request, cells, _field_names(type_))
        matches = match_names(self._request, _field_names(type_))
        self._whole |= matches.whole
        said = {name: _identifier_words(phrases[0]) for name, phrases in matches.phrases.items()}
        times = Counter(said.values())
        self._said |= {name: (words, times[words] > 1) for name, words in said.items() if words}
        return self._neutral_type(type_, trusted=False)

    def _neutral_type(self, type_: t.Type, *, trusted: bool, kind: str = "field") -> t.Type:
        match type_:
            case t.ListType(item=t.RecordType() as item):
                return t.ListType(self._neutral_type(item, trusted=trusted, kind="column"))
            case t.ListType(item=item):
                return t.ListType(self._neutral_type(item, trusted=trusted))
            case t.OptionalType(item=item):
                return t.OptionalType(self._neutral_type(item, trusted=trusted))
            case t.TupleType(items=items):
                return t.TupleType(tuple(self._neutral_type(item, trusted=trusted) for item in items))
            case t.DictType(value=value):
                return t.DictType(self._neutral_type(value, trusted=trusted))
            case t.RecordType(fields=fields):
                # Lazily, so that names are numbered field by field.
                named = ((self._neutral_name(each.name, kind, trusted=trusted), each.type) for each in fields)
                inner = (t.Field(name, self._neutral_type(type_, trusted=trusted)) for name, type_ in named)
                return t.RecordType(tuple(inner))
            case t.LiteralType() if not trusted:
                return t.STR
            case _:
                return type_

    def _neutral_name(self, real: str, kind: str, *, trusted: bool) -> str:
        known = self._neutral.get(real)
        if known is not None:
            return known
        if real in self._shown:
            # A file of the user has this name, too, so it is trusted.
            return real
        if trusted and real not in self._real:
            self._shown.add(real)
            return real
        number = len(self._neutral) + 1
        words, shared = self._said.get(real, ("", False))
        neutral = f"{kind}_{words}_{number}" if shared else f"{kind}_{words}" if words else f"{kind}_{number}"
        while neutral in self._shown or neutral in self._real:
            number += 1
            neutral = f"{kind}_{words}_{number}" if words else f"{kind}_{number}"
        self._neutral[real], self._real[neutral] = neutral, real
        return neutral

    def describe(self, type_: t.Type) -> str:
        """A table for the planner: its names with their types, and the words of the request for them."""
        match type_:
            case t.ListType(item=t.RecordType(fields=fields)):
                return "rows with the columns " + self._describe_fields(fields)
            case t.RecordType(fields=fields):
                return "fields " + self._describe_fields(fields)
            case t.ListType(item=item):
                return f"a list of {_type_word(item)}"
            case _:
                return _type_word(type_)

    def _describe_fields(self, fields: Sequence[t.Field]) -> str:
        return ", ".join(self._describe_field(each) for each in fields)

    def _describe_field(self, field: t.Field) -> str:
        if isinstance(field.type, t.RecordType):
            return f"{field.name} {{{self._describe_fields(field.type.fields)}}}"
        # A name with words of the request needs no type; of one without, the type is all that is known.
        known = self._real.get(field.name)
        if known is None:
            return field.name
        told = [] if known in self._said else [_type_word(field.type)]
        if known in self._cells:
            told.append("has " + " and ".join(f'"{phrase}"' for phrase in self._cells[known]))
        return f"{field.name} ({', '.join(told)})" if told else field.name

    @property
    def has_hidden_names(self) -> bool:
        """Whether any name is hidden from the planner."""
        return bool(self._real or self._calls)

    # What becomes of it ---------------------------------------------------------------------------------------------

    def bind(self, plan: Plan, registry: Registry) -> BoundPlan:
        """The plan with the real names where a column or field is named, and nowhere else.

        A literal of a plan counts as the user's own word. So a name becomes one only where it selects a part of a
        value, which carries the label of the table; a key of a new record may have it if the request says all of it.
        """
        if not self.has_hidden_names:
            return BoundPlan(plan)
        binder = _Binder(self, registry)
        steps = rewrite_steps(plan.steps, binder.bind_step, binder.bind_expression)
        return BoundPlan(plan.model_copy(update={"steps": steps}), tuple(dict.fromkeys(binder.problems)))

    def real_name(self, name: object) -> str | None:
        """The real name of a neutral name; None for any other text."""
        if not isinstance(name, str):
            return None
        if name in self._real:
            return self._real[name]
        before = self.real_name(name.removesuffix(_JOIN_SUFFIX)) if name.endswith(_JOIN_SUFFIX) else None
        return None if before is None else before + _JOIN_SUFFIX

    def bind_call(self, step: Call) -> Call:
        """A call with the real names of its tool and its arguments."""
        if step.tool not in self._calls:
            return step
        tool, arguments = self._calls[step.tool]
        given = {arguments.get(name, name): value for name, value in step.args.items()}
        return step.model_copy(update={"tool": tool, "args": given})

    def is_said_whole(self, name: str) -> bool:
        """Whether the request contains the whole name that a neutral name stands for."""
        return (self.real_name(name) or "") in self._whole

    def to_readable(self, text: str) -> str:
        """A text with real names, for people."""
        real = self._real | {name: tool for name, (tool, _) in self._calls.items()}
        return _NEUTRAL_NAME.sub(lambda found: real.get(found[0], found[0]), text) if real else text


class _Binder:
    """Puts real names into the steps of a plan."""

    def __init__(self, names: NeutralNames, registry: Registry) -> None:
        self._names = names
        self._registry = registry
        self.problems: list[str] = []

    def bind_step(self, step: Any) -> Any:
        """A step whose own names are bound; its expressions come after it."""
        if isinstance(step, Call):
            step = self._names.bind_call(step)
        match step:
            case Call(tool=name, args=args) if (tool := self._registry.get(name)) is not None and not tool.changes:
                columns = {each.name for each in tool.arguments if each.field_of}
                bound = {name: self._bind_column(value) if name in columns else value for name, value in args.items()}
                return step.model_copy(update={"args": bound})
            case Update(key=Const() as key):
                return step.model_copy(update={"key": self._bind_key(key)})
            case _:
                return step

    def bind_expression(self, expr: Any) -> Any:
        """An expression whose own names are bound; those inside it come after it."""
        match expr:
            case Get(value=value, field=field) if (real := self._names.real_name(field)) is not None:
                if _IDENTIFIER.fullmatch(real) and not keyword.iskeyword(real):
                    return expr.model_copy(update={"field": real})
                return Index(value=value, at=_BoundConst(value=real))
            case Index(at=Const() as at):
                return expr.model_copy(update={"at": self._bind_column(at)})
            case Compare(first=Const() as first, rest=rest) if rest[0][0] in ("in", "not in"):
                return expr.model_copy(update={"first": self._bind_column(first)})
            case DictOf(entries=entries):
                keyed = ((self._bind_key(key) if isinstance(key, Const) else key, value) for key, value in entries)
                return expr.model_copy(update={"entries": tuple(keyed)})
            case Apply(function=function, args=args, named=named):
                if function in _FIELD_FUNCTIONS and len(args) > 1:
                    args = (args[0], self._bind_column(args[1]), *args[2:])
                named = tuple((name, self._bind_column(value) if name == "key" else value) for name, value in named)
                return expr.model_copy(update={"args": args, "named": named})
            case _BoundConst(value=value):
                return Const(value=value)
            case Const(value=value) if self._names.real_name(value) is not None:
                self.problems.append(
                    f'{value} stands only where a column is named: row["{value}"], or an argument that takes a column.'
                )
                return expr
            case _:
                return expr

    def _bind_column(self, expr: Any) -> Any:
        match expr:
            case Const(value=value) if (real := self._names.real_name(value)) is not None:
                return _BoundConst(value=real)
            case ListOf(items=items):
                return expr.model_copy(update={"items": tuple(map(self._bind_column, items))})
            case _:
                return expr

    def _bind_key(self, key: Const) -> Any:
        if not isinstance(key.value, str) or (real := self._names.real_name(key.value)) is None:
            return key
        if self._names.is_said_whole(key.value):
            return _BoundConst(value=real)
        self.problems.append(f"{key.value} cannot be a key of a new record: name it with a word of the request.")
        return _BoundConst(value=key.value)


class _BoundConst(Const):
    """A literal that has its real name already."""


def _identifier_words(phrase: str) -> str:
    """Words of the request as a part of a name; none if they cannot be one."""
    words = re.sub(r"[ -]+", "_", phrase)[:_MAX_NAME_WORDS].strip("_")
    return words if _IDENTIFIER.fullmatch(words) else ""


def _type_word(type_: t.Type) -> str:
    """A type as one of a few fixed words, without any text of a file."""
    match type_:
        case t.OptionalType(item=item):
            return _type_word(item)
        case t.BoolType():
            return "yes or no"
        case t.IntType() | t.FloatType():
            return "number"
        case t.ListType() | t.TupleType():
            return "list"
        case t.RecordType() | t.DictType():
            return "record"
        case t.AnyType():
            return "anything"
        case _:
            return "text"


def _field_names(type_: t.Type) -> list[str]:
    match type_:
        case t.ListType(item=inner) | t.OptionalType(item=inner) | t.DictType(value=inner):
            return _field_names(inner)
        case t.TupleType(items=items):
            return [name for item in items for name in _field_names(item)]
        case t.RecordType(fields=fields):
            return [*(each.name for each in fields), *(name for each in fields for name in _field_names(each.type))]
        case _:
            return []


def _erase_names(type_: t.Type) -> t.Type:
    """The type without any names of fields."""
    match type_:
        case t.ListType(item=item):
            return t.ListType(_erase_names(item))
        case t.RecordType():
            return t.DictType(t.ANY)
        case _:
            return t.ANY

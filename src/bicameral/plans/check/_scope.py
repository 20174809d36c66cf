"""The variables in scope of a step: their types, and what conditions have shown about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bicameral.plans import _expressions as ir
from bicameral.plans._type_rules import merge
from bicameral.types import ANY, NULL, OptionalType, Type

FieldPath = tuple[str, ...]
"""A name and fields of it: `mail.sender.name`."""


@dataclass(frozen=True, slots=True)
class Variable:
    """The type of a variable. It may have no value yet, or hold the missing result of a tool (`void_of`)."""

    type: Type
    maybe_unbound: bool = False
    void_of: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables and their types; every change makes a new scope.

    `narrowed` holds what conditions have shown about fields (`mail.date` is not None here). `ended` says that the run
    has given its answer on every path to here.
    """

    variables: Mapping[str, Variable] = field(default_factory=dict[str, Variable])
    narrowed: Mapping[FieldPath, Type] = field(default_factory=dict[FieldPath, Type])
    ended: bool = False

    @classmethod
    def from_types(cls, types: Mapping[str, Type]) -> Scope:
        """A scope in which these variables have values."""
        return cls({name: Variable(type_) for name, type_ in types.items()})

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def get(self, name: str) -> Variable | None:
        return self.variables.get(name)

    def bind(self, name: str, type_: Type, *, void_of: str | None = None) -> Scope:
        """The scope after an assignment, without what conditions have shown about the old value."""
        kept = {key: known for key, known in self.narrowed.items() if key[0] != name}
        return replace(self, variables={**self.variables, name: Variable(type_, void_of=void_of)}, narrowed=kept)

    def with_answer(self) -> Scope:
        return replace(self, ended=True)

    def merge(self, other: Scope) -> Scope:
        """What is known where two paths meet; a path on which the run has ended does not count."""
        if self.ended and not other.ended:
            return other
        if other.ended and not self.ended:
            return self
        names = (*self.variables, *(name for name in other.variables if name not in self.variables))
        variables = {name: _merge_variables(self.variables.get(name), other.variables.get(name)) for name in names}
        narrowed = {key: known for key, known in self.narrowed.items() if other.narrowed.get(key) == known}
        return Scope(variables, narrowed, self.ended)

    def with_types(self, types: Mapping[str, Type]) -> Scope:
        """The same with other types for some variables."""
        known = self.variables.items()
        return replace(self, variables={name: replace(v, type=types.get(name, v.type)) for name, v in known})

    def with_unknown_types(self, names: frozenset[str]) -> Scope:
        """The same with nothing known about the types of these variables."""
        return self.with_types(dict.fromkeys(names, ANY))

    def forget_tests(self, names: frozenset[str]) -> Scope:
        """The same without what conditions have shown about the fields of these variables."""
        return replace(self, narrowed={key: known for key, known in self.narrowed.items() if key[0] not in names})

    def narrow(self, condition: ir.Expr, *, holds: bool) -> Scope:
        """What is known when a condition holds, or when it does not: which values are (not) None."""
        match condition:
            case ir.Not(value=value):
                return self.narrow(value, holds=not holds)
            case ir.Logic(op=op, items=items) if (op == "and") == holds:
                scope = self
                for item in items:
                    scope = scope.narrow(item, holds=holds)
                return scope
            case ir.Compare(first=first, rest=((("==" | "!=") as op, second),)):
                return self._narrow_equal(first, second, same=(op == "==") == holds)
            case _:
                return self._not_none(condition) if holds else self

    def _narrow_equal(self, first: ir.Expr, second: ir.Expr, *, same: bool) -> Scope:
        if isinstance(first, ir.Const):
            first, second = second, first
        match second:
            case ir.Const(value=None):
                return self._with_known_type(first, NULL) if same else self._not_none(first)
            case ir.Const() if same:
                return self._not_none(first)
            case _:
                return self

    def _not_none(self, expr: ir.Expr) -> Scope:
        return self._with_known_type(expr, None)

    def _with_known_type(self, expr: ir.Expr, type_: Type | None) -> Scope:
        """The scope with the type of a name or field; None stands for its declared type without None."""
        match expr:
            case ir.Ref(name=name):
                variable = self.variables.get(name)
                known = _without_none(variable.type) if variable and type_ is None else type_
                if variable is None or known is None:
                    return self
                return replace(self, variables={**self.variables, name: replace(variable, type=known)})
            case ir.Get() | ir.Index():
                key = field_path(expr)
                return self if key is None else replace(self, narrowed={**self.narrowed, key: type_ or _NOT_NONE})
            case _:
                return self

    def narrowed_type(self, expr: ir.Expr, declared: Type) -> Type:
        """The type of a field here, which may be narrower than the declared one."""
        key = field_path(expr)
        if key is None or key not in self.narrowed:
            return declared
        known = self.narrowed[key]
        return (_without_none(declared) or declared) if known == _NOT_NONE else known


_NOT_NONE = OptionalType(ANY)
"""In `narrowed`: the declared type without None."""


def field_path(expr: ir.Expr) -> FieldPath | None:
    """`mail.date` (or `mail['date']`) as a key, if it is a field of a field … of a name."""
    match expr:
        case ir.Ref(name=name):
            return (name,)
        case ir.Get(value=value, field=field_) | ir.Index(value=value, at=ir.Const(value=str() as field_)):
            inner = field_path(value)
            return None if inner is None else (*inner, field_)
        case _:
            return None


def _without_none(type_: Type) -> Type | None:
    return type_.item if isinstance(type_, OptionalType) else None


def _merge_variables(left: Variable | None, right: Variable | None) -> Variable:
    if left is None or right is None:
        only = left or right or Variable(ANY)
        return replace(only, maybe_unbound=True)
    return Variable(
        merge(left.type, right.type) or ANY,
        left.maybe_unbound or right.maybe_unbound,
        left.void_of if left.void_of == right.void_of else None,
    )

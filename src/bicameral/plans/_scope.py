"""What is known about the variables at one point of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bicameral.types import ANY, NULL, OptionalType, Type

from ._expressions import Compare, Const, Expr, Get, Index, Logic, Not, Ref
from ._merge import merge

Path = tuple[str, ...]
"""A name and fields of it: `mail.sender.name`."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable's type; it may have no value yet, or only the nothing that a tool gives."""

    type: Type
    maybe_unbound: bool = False
    void_of: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables and their types; every change makes a new scope.

    `narrowed` holds what tests have shown about fields (`mail.date` is not None here). `ended` says that the run
    has given its answer on every way to here.
    """

    variables: Mapping[str, Variable] = field(default_factory=dict[str, Variable])
    narrowed: Mapping[Path, Type] = field(default_factory=dict[Path, Type])
    ended: bool = False

    @classmethod
    def of(cls, types: Mapping[str, Type]) -> Scope:
        """A scope in which these variables have values."""
        return cls({name: Variable(type_) for name, type_ in types.items()})

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def get(self, name: str) -> Variable | None:
        return self.variables.get(name)

    def bind(self, name: str, type_: Type, *, void_of: str | None = None) -> Scope:
        """The scope after an assignment, which makes earlier tests of the name's fields worthless."""
        kept = {key: known for key, known in self.narrowed.items() if key[0] != name}
        return replace(self, variables={**self.variables, name: Variable(type_, void_of=void_of)}, narrowed=kept)

    def end(self) -> Scope:
        return replace(self, ended=True)

    def merge(self, other: Scope) -> Scope:
        """What is known after two ways have come together; a way that has ended comes nowhere."""
        if self.ended and not other.ended:
            return other
        if other.ended and not self.ended:
            return self
        names = (*self.variables, *(name for name in other.variables if name not in self.variables))
        variables = {name: _together(self.variables.get(name), other.variables.get(name)) for name in names}
        narrowed = {key: known for key, known in self.narrowed.items() if other.narrowed.get(key) == known}
        return Scope(variables, narrowed, self.ended)

    def retyped(self, types: Mapping[str, Type]) -> Scope:
        """The same with other types for some variables."""
        known = self.variables.items()
        return replace(self, variables={name: replace(v, type=types.get(name, v.type)) for name, v in known})

    def widen(self, names: frozenset[str]) -> Scope:
        """The same with nothing known about the types of these variables."""
        return self.retyped(dict.fromkeys(names, ANY))

    def forget_tests(self, names: frozenset[str]) -> Scope:
        """The same without what tests have shown about the fields of these variables."""
        return replace(self, narrowed={key: known for key, known in self.narrowed.items() if key[0] not in names})

    def narrow(self, condition: Expr, *, holds: bool) -> Scope:
        """What is known when a condition holds, or when it does not: which values are (not) None."""
        match condition:
            case Not(value=value):
                return self.narrow(value, holds=not holds)
            case Logic(op=op, items=items) if (op == "and") == holds:
                scope = self
                for item in items:
                    scope = scope.narrow(item, holds=holds)
                return scope
            case Compare(first=first, rest=((("==" | "!=") as op, second),)):
                return self._narrow_equal(first, second, same=(op == "==") == holds)
            case _:
                return self._not_none(condition) if holds else self

    def _narrow_equal(self, first: Expr, second: Expr, *, same: bool) -> Scope:
        if isinstance(first, Const):
            first, second = second, first
        match second:
            case Const(value=None):
                return self._know(first, NULL) if same else self._not_none(first)
            case Const() if same:
                return self._not_none(first)
            case _:
                return self

    def _not_none(self, expr: Expr) -> Scope:
        return self._know(expr, None)

    def _know(self, expr: Expr, type_: Type | None) -> Scope:
        """Note the type of a name or field; None stands for what it is when it is not None."""
        match expr:
            case Ref(name=name):
                variable = self.variables.get(name)
                known = _but_none(variable.type) if variable and type_ is None else type_
                if variable is None or known is None:
                    return self
                return replace(self, variables={**self.variables, name: replace(variable, type=known)})
            case Get() | Index():
                key = path_of(expr)
                return self if key is None else replace(self, narrowed={**self.narrowed, key: type_ or _NOT_NONE})
            case _:
                return self

    def known(self, expr: Expr, declared: Type) -> Type:
        """The type of a field here, which may be narrower than the declared one."""
        key = path_of(expr)
        if key is None or key not in self.narrowed:
            return declared
        known = self.narrowed[key]
        return (_but_none(declared) or declared) if known == _NOT_NONE else known


_NOT_NONE = OptionalType(ANY)
"""Stands in `narrowed` for "whatever is declared, but not None"."""


def path_of(expr: Expr) -> Path | None:
    """`mail.date` (or `mail['date']`) as a key, if it is a field of a field … of a name."""
    match expr:
        case Ref(name=name):
            return (name,)
        case Get(value=value, field=field_) | Index(value=value, at=Const(value=str() as field_)):
            inner = path_of(value)
            return None if inner is None else (*inner, field_)
        case _:
            return None


def _but_none(type_: Type) -> Type | None:
    return type_.item if isinstance(type_, OptionalType) else None


def _together(left: Variable | None, right: Variable | None) -> Variable:
    if left is None or right is None:
        only = left or right or Variable(ANY)
        return replace(only, maybe_unbound=True)
    return Variable(
        merge(left.type, right.type) or ANY,
        left.maybe_unbound or right.maybe_unbound,
        left.void_of if left.void_of == right.void_of else None,
    )

"""Functions that plainly only compute: nothing that they are given stays anywhere but in what they return.

Python cannot prove this of a function, so only what is plain counts, and everything else is taken for one that keeps
its argument: bound methods of changeable objects (`kept.append`), functions with a changeable object in their closure,
their defaults or the globals they name, functions that write to attributes, globals or outer variables, that import,
or that call anything of which the same is not plain.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache, partial
from re import Pattern as Regex
from typing import Any, cast

_DEEP = 8
_DATA = (str, bytes, int, float, complex, bool, type(None), Decimal, date, time, timedelta, Regex, range)
_MODULES = frozenset({"re", "json", "math", "string", "textwrap", "unicodedata", "html", "itertools", "operator"})
"""Modules whose functions keep nothing that they are given; `re` and `json` keep patterns and codecs."""
_CALLS = frozenset(
    "abs all any ascii bin bool bytes chr dict divmod enumerate filter float format frozenset hash hex int isinstance "
    "issubclass iter len list map max min next oct ord pow range repr reversed round set slice sorted str sum tuple "
    "type zip".split()
)
_WRITES = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME IMPORT_FROM LOAD_BUILD_CLASS".split()
)


def is_plainly_pure(function: object) -> bool:
    """Whether a function plainly does nothing with its argument but compute what it returns."""
    try:
        return _is_pure(function, _DEEP)
    except (AttributeError, TypeError, ValueError):
        # Whatever cannot be looked into is not plain.
        return False


def _is_pure(function: object, deep: int) -> bool:
    match function:
        case _ if deep == 0:
            return False
        case partial():
            made = cast("partial[Any]", function)
            return _is_pure(made.func, deep - 1) and _are_data((*made.args, *made.keywords.values()), deep)
        case types.FunctionType():
            return _is_pure_code(function, deep)
        case types.MethodType():
            return _is_data(function.__self__, deep) and _is_pure(function.__func__, deep)
        case types.MethodDescriptorType():
            # Such as `str.strip`: the object that it works on is the argument itself.
            return function.__objclass__ in (str, bytes, int, float, list, dict, tuple, set, frozenset)
        case types.BuiltinFunctionType():
            owner: object = function.__self__
            if isinstance(owner, types.ModuleType):
                plain = owner is builtins and function.__name__ in _CALLS
                return plain or owner.__name__.lstrip("_") in _MODULES
            return _is_data(owner, deep)
        case type():
            return _is_plain_class(function)
        case _:
            return False


def _is_plain_class(kind: type) -> bool:
    if kind.__module__ == "builtins":
        return kind.__name__ in _CALLS or issubclass(kind, Exception)
    # A typed dict is a dict, and a named tuple a tuple; of anything else `__init__` may do what it likes.
    typed = bool(getattr(kind, "__total__", None)) or getattr(kind, "__total__", None) is False
    named: object = getattr(kind, "_fields", None)
    return typed or issubclass(kind, Enum) or (issubclass(kind, tuple) and named is not None)


def _is_pure_code(function: types.FunctionType, deep: int) -> bool:
    given = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    cells = {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    }
    if not (_are_data(given, deep) and all(_is_usable(each, deep) for each in cells.values())):
        return False
    names: set[str] = set()
    for code in _codes(function.__code__):
        for step in dis.get_instructions(code):
            if step.opname in _WRITES or (step.opname == "STORE_DEREF" and step.argval in cells):
                return False
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(step.argval)
    own = function.__name__
    return all(name == own or _is_usable(_named(function, name), deep) for name in names)


@lru_cache(maxsize=1024)
def _codes(code: types.CodeType) -> tuple[types.CodeType, ...]:
    """A function's code, and that of the functions in it."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return (code, *(found for each in inner for found in _codes(each)))


def _named(function: types.FunctionType, name: str) -> object:
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name)


def _is_usable(value: object, deep: int) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__ in _MODULES
    return _is_data(value, deep) or _is_pure(value, deep - 1)


def _are_data(values: Iterable[object], deep: int) -> bool:
    return all(_is_data(each, deep) for each in values)


def _is_data(value: object, deep: int) -> bool:
    """Whether nothing can be put into this value."""
    if deep == 0:
        return False
    if isinstance(value, _DATA):
        return True
    if isinstance(value, tuple | frozenset):
        return _are_data(cast("Iterable[object]", value), deep - 1)
    if isinstance(value, types.MappingProxyType):
        entries = cast("Mapping[object, object]", value)
        return _are_data((*entries.keys(), *entries.values()), deep - 1)
    # An object of anybody's class, frozen or not, has methods, and what those do is not plain.
    return False

"""Whether a function is plainly pure: it keeps its argument nowhere but in its result.

Python cannot prove this, so only plain cases pass. Everything else counts as a function that may keep its argument:
bound methods of mutable objects (`items.append`), functions with a mutable object in their closure, defaults or
globals, functions that write to attributes, globals or outer variables, that import, or that call such a function.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, EnumMeta
from functools import lru_cache, partial
from re import Pattern as Regex
from typing import Any, TypedDict, cast

_MAX_INSPECTION_DEPTH = 8
_DATA_TYPES = (str, bytes, int, float, complex, bool, type(None), Decimal, date, time, timedelta, Regex, range)
_PURE_MODULES = frozenset({"re", "json", "math", "string", "textwrap", "unicodedata", "html", "itertools", "operator"})
"""Modules whose functions do not store their arguments; `re` caches only patterns."""
_PURE_BUILTINS = frozenset(
    "abs all any ascii bin bool bytes chr dict divmod enumerate filter float format frozenset hash hex int isinstance "
    "issubclass iter len list map max min next oct ord pow range repr reversed round set slice sorted str sum tuple "
    "type zip".split()
)
_TYPED_DICT_META = type(TypedDict("_AnyTypedDict", {}))
"""The metaclass of every TypedDict; its instances are plain dicts, whatever their class defines."""
_WRITING_OPCODES = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME IMPORT_FROM LOAD_BUILD_CLASS".split()
)


def is_plainly_pure(function: object) -> bool:
    """Whether a function plainly does nothing with its argument but compute its result."""
    try:
        return _is_pure(function, _MAX_INSPECTION_DEPTH)
    except (AttributeError, TypeError, ValueError):
        # A function that cannot be inspected is not plainly pure.
        return False


def _is_pure(function: object, depth: int) -> bool:
    match function:
        case _ if depth == 0:
            return False
        case partial():
            made = cast("partial[Any]", function)
            return _is_pure(made.func, depth - 1) and _are_data((*made.args, *made.keywords.values()), depth)
        case types.FunctionType():
            return _is_pure_code(function, depth)
        case types.MethodType():
            return _is_data(function.__self__, depth) and _is_pure(function.__func__, depth)
        case types.MethodDescriptorType():
            # Such as `str.strip`: its `self` is the argument.
            return function.__objclass__ in (str, bytes, int, float, list, dict, tuple, set, frozenset)
        case types.BuiltinFunctionType():
            owner: object = function.__self__
            if isinstance(owner, types.ModuleType):
                plain = owner is builtins and function.__name__ in _PURE_BUILTINS
                return plain or owner.__name__.lstrip("_") in _PURE_MODULES
            return _is_data(owner, depth)
        case type():
            return _is_plain_class(function)
        case _:
            return False


def _is_plain_class(kind: type) -> bool:
    """Whether making an instance stores the argument nowhere but in the instance.

    A user-defined class may do anything in `__init__`, `__new__` or its metaclass. Only those pass whose construction
    is the standard library's: a TypedDict makes a dict, a NamedTuple a tuple, and an Enum looks a member up.
    """
    if getattr(builtins, kind.__name__, None) is kind:
        return kind.__name__ in _PURE_BUILTINS or issubclass(kind, Exception)
    if type(kind) is _TYPED_DICT_META:
        return True
    if type(kind) is EnumMeta:
        # `_missing_` is given every value that names no member.
        return cast("Any", kind)._missing_.__func__.__module__ == Enum.__module__
    return type(kind) is type and kind.__bases__ == (tuple,) and _is_named_tuple(kind)


def _is_named_tuple(kind: type) -> bool:
    # `collections.namedtuple` generates `__new__`, which calls `tuple.__new__` and names nothing else.
    made_by: object = getattr(vars(kind).get("__new__"), "__func__", None)
    if not isinstance(made_by, types.FunctionType) or "__init__" in vars(kind):
        return False
    names, calls = made_by.__code__.co_names, made_by.__globals__.get("_tuple_new")
    return names == ("_tuple_new",) and calls is cast("Any", tuple).__new__


def _is_pure_code(function: types.FunctionType, depth: int) -> bool:
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    cells = {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    }
    if not (_are_data(defaults, depth) and all(_is_harmless(each, depth) for each in cells.values())):
        return False
    names: set[str] = set()
    for code in _nested_codes(function.__code__):
        for step in dis.get_instructions(code):
            if step.opname in _WRITING_OPCODES or (step.opname == "STORE_DEREF" and step.argval in cells):
                return False
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(step.argval)
    own = function.__name__
    return all(name == own or _is_harmless(_global_value(function, name), depth) for name in names)


@lru_cache(maxsize=1024)
def _nested_codes(code: types.CodeType) -> tuple[types.CodeType, ...]:
    """The code of a function and of the functions nested in it."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return (code, *(nested for each in inner for nested in _nested_codes(each)))


def _global_value(function: types.FunctionType, name: str) -> object:
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name)


def _is_harmless(value: object, depth: int) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__ in _PURE_MODULES
    return _is_data(value, depth) or _is_pure(value, depth - 1)


def _are_data(values: Iterable[object], depth: int) -> bool:
    return all(_is_data(each, depth) for each in values)


def _is_data(value: object, depth: int) -> bool:
    """Whether a value is immutable, so that nothing can be stored in it."""
    if depth == 0:
        return False
    if isinstance(value, _DATA_TYPES):
        return True
    if isinstance(value, tuple | frozenset):
        return _are_data(cast("Iterable[object]", value), depth - 1)
    if isinstance(value, types.MappingProxyType):
        entries = cast("Mapping[object, object]", value)
        return _are_data((*entries.keys(), *entries.values()), depth - 1)
    # Any other object, frozen or not, has methods that are not inspected.
    return False

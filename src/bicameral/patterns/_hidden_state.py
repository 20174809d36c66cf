"""The state that the code of a pattern could keep from one run to the next: what is reachable from it and can change.

A snapshot is taken of globals that its functions use, defaults, closures, caches, classes and the pattern itself. Two
snapshots differ where something was kept. Code of other modules is not followed: what a pattern calls there is theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast

from bicameral.errors import RunError
from bicameral.patterns.kernel import Pattern

_MAX_OBJECTS: Final = 200_000
_MAX_DEPTH: Final = 40
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(...))
_STATE_IN_REPR = frozenset({"itertools", "collections", "builtins", "_collections", "_thread"})
"""The modules whose objects show what they hold when they are printed, such as a counter."""


def snapshot_state(pattern: Pattern[..., Any]) -> dict[str, str]:
    """A fingerprint of everything that the code of a pattern can keep, by the name of what keeps it."""
    walk = _CodeWalk({type(each).__module__ for _, each in pattern.walk()})
    for at, each in pattern.walk():
        walk.add_value(f"pattern {at or each.id}", each)
        walk.add_class(type(each))
    return {name: _fingerprint(value) for name, value in walk.found.items()}


def changed_state(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The names of what was changed, added or removed between two snapshots."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


@dataclass(slots=True)
class _CodeWalk:
    """Goes from the classes of patterns to the functions they use, within the modules of the patterns."""

    modules: set[str]
    found: dict[str, object] = field(default_factory=dict[str, object])
    _seen: set[int] = field(default_factory=set[int])

    def add_value(self, name: str, value: object) -> None:
        self.found[name] = value
        for function in _functions_in(value):
            self.modules.add(function.__module__)
            self.add_function(function)

    def add_class(self, kind: type) -> None:
        if id(kind) in self._seen or kind.__module__ not in self.modules:
            return
        self._seen.add(id(kind))
        for name, value in vars(kind).items():
            function = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(function, FunctionType) or hasattr(function, "cache_info"):
                self.add_function(function)
            elif not name.startswith("__") or name == "__dict__":
                self.found[f"{kind.__module__}:{kind.__qualname__}.{name}"] = value
        for base in kind.__mro__[1:]:
            self.add_class(base)

    def add_function(self, function: object) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__name__)}"
        if hasattr(function, "cache_info"):
            self.found[f"{name} (cache)"] = _cache_state(function)
            function = getattr(function, "__wrapped__", None)
        if isinstance(function, MethodType):
            self.found[f"{name} (object)"] = function.__self__
            function = function.__func__
        if not isinstance(function, FunctionType):
            return
        if vars(function):
            self.found[f"{name} (attributes)"] = {key: each for key, each in vars(function).items() if key[:2] != "__"}
        if function.__module__ not in self.modules:
            return
        self.found[f"{name} (defaults)"] = (function.__defaults__, function.__kwdefaults__)
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self._add_used(f"{name} ({variable})", cell.cell_contents)
            except ValueError:
                continue
        for used in _names_in(function.__code__):
            if used in function.__globals__:
                self._add_used(f"{function.__module__}:{used}", function.__globals__[used])

    def _add_used(self, name: str, value: object) -> None:
        match value:
            case ModuleType() | BuiltinFunctionType():
                return
            case type():
                self.add_class(value)
            case FunctionType() | MethodType():
                self.add_function(value)
            case _ if hasattr(value, "cache_info"):
                if getattr(value, "__module__", "") in self.modules:
                    self.add_function(value)
            case _ if name not in self.found:
                self.add_value(name, value)
            case _:
                return


def _cache_state(function: Any) -> object:
    info = function.cache_info()
    return (info.currsize, info.misses) if hasattr(info, "misses") else repr(info)


def _names_in(code: CodeType) -> Iterator[str]:
    """The names that code uses, and that functions inside of it use."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names_in(each)


def _functions_in(value: object, depth: int = 4) -> Iterator[FunctionType]:
    """The functions that a value holds: the fields of a pattern may be some."""
    if isinstance(value, FunctionType):
        yield value
    elif depth and isinstance(value, Mapping):
        for each in cast("Mapping[object, object]", value).values():
            yield from _functions_in(each, depth - 1)
    elif depth and isinstance(value, tuple | list):
        for each in cast("list[object]", value):
            yield from _functions_in(each, depth - 1)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _functions_in(getattr(value, each.name), depth - 1)


def _fingerprint(value: object) -> str:
    digest = hashlib.sha256()
    _Describer(digest.update).describe(value, 0)
    return digest.hexdigest()


@dataclass(slots=True)
class _Describer:
    """Writes what an object holds, so that two writings are equal if nothing in it has changed."""

    write: Callable[[bytes], None]
    places: dict[int, int] = field(default_factory=dict[int, int])
    kept: list[object] = field(default_factory=list[object])

    def describe(self, value: object, depth: int) -> None:
        if isinstance(value, _PLAIN):
            self.write(f"{type(value).__name__} {value!r};".encode(errors="surrogatepass"))
            return
        if id(value) in self.places:
            self.write(f"again {self.places[id(value)]};".encode())
            return
        self.places[id(value)] = len(self.places)
        self.kept.append(value)
        if len(self.places) > _MAX_OBJECTS or depth > _MAX_DEPTH:
            # What cannot be looked at could keep anything.
            raise RunError(
                "pattern.keeps-state",
                "the code of the pattern holds too much to say whether it changes",
                fix="Keep data in a store, and give the pattern its name.",
            )
        self.write(f"{type(value).__qualname__}(".encode())
        for part in self._parts(value):
            self.describe(part, depth + 1)
        self.write(b")")

    def _parts(self, value: object) -> Iterator[object]:
        match value:
            case ModuleType() | type() | FunctionType() | BuiltinFunctionType():
                yield id(value)
            case Mapping():
                for key, each in cast("Mapping[object, object]", value).items():
                    yield key
                    yield each
            case list() | tuple():
                yield from cast("list[object]", value)
            case set() | frozenset():
                yield sorted(map(_fingerprint, cast("set[object]", value)))
            case bytearray():
                yield bytes(value)
            case _:
                if type(value).__module__ in _STATE_IN_REPR:
                    yield repr(value)
                yield id(value)
                yield from _attributes(value)


def _attributes(value: object) -> Iterator[object]:
    yield dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)

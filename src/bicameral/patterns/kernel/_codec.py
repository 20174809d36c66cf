"""Patterns and their arguments as JSON, for the journal, the fingerprint of a run, and runs in another process.

Classes and functions are written by name. Only names of this package are read back: a record or a submission must not
be able to make a process import anything else. Whatever else a pattern holds is written as a name that can be compared
and not read; such a pattern can be resumed only by a program that has it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, cast

from bicameral.errors import CatalogError
from bicameral.journal import dumps
from bicameral.labels import Label, Labelled, label_tree_from_json, make_labelled, open_labelled
from bicameral.runs import label_tree_json
from bicameral.types import Type, type_from_json, type_to_json, value_from_json, value_to_json

_PACKAGE = "bicameral."
_FUNCTIONS = "bicameral.patterns."
_MOMENTS = (dt.datetime, dt.date, dt.time, dt.timedelta)


def to_record(value: object) -> Any:
    """A pattern, an argument, or a part of one as JSON."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Labelled():
            closed = cast("Labelled[Any]", value)
            return {"$labelled": to_record(open_labelled(closed)), "shade": label_tree_json(closed.label_tree)}
        case Label():
            return {"$label": label_tree_json(value)}
        case Type():
            return {"$type": type_to_json(value)}
        case Enum():
            return {"$enum": _name_of(type(value)), "name": value.name}
        case PurePath():
            return {"$path": str(value)}
        case dict() | Mapping():
            return {
                "$map": [[to_record(key), to_record(each)] for key, each in cast("Mapping[Any, Any]", value).items()]
            }
        case tuple():
            return {"$tuple": [to_record(each) for each in cast("tuple[Any, ...]", value)]}
        case list():
            return [to_record(each) for each in cast("list[Any]", value)]
        case set() | frozenset():
            items = [to_record(each) for each in cast("frozenset[Any]", value)]
            return {"$set": sorted(items, key=dumps)}
        case partial():
            return {"$call": to_record(value.func), "args": to_record(value.args), "named": to_record(value.keywords)}
        case _ if isinstance(value, _MOMENTS):
            return {"$value": value_to_json(value)}
        case _ if is_dataclass(value) and not isinstance(value, type):
            shown = {each.name: to_record(getattr(value, each.name)) for each in fields(value) if each.init}
            return {"$data": _name_of(type(value)), "fields": shown}
        case _ if inspect.isfunction(value) or inspect.isclass(value) or inspect.isbuiltin(value):
            name = _name_of(value)
            # The version of the engine stands for the code of this package; other code is compared by itself.
            found = {"$name": name} if name.startswith(_PACKAGE) else {"$name": name, "code": _code_hash(value)}
            held = [to_record(cell.cell_contents) for cell in getattr(value, "__closure__", None) or ()]
            return found | ({"holds": held} if held else {})
        case _:
            # Only to be compared. An address in memory would differ from one process to the next.
            return {"$object": _name_of(type(value))}


def from_record(facts: Any) -> Any:
    """What `to_record` wrote. Raises `pattern.not-portable` for what only the program that wrote it has."""
    if isinstance(facts, list):
        return [from_record(each) for each in cast("list[Any]", facts)]
    if not isinstance(facts, dict):
        return facts
    written = cast("dict[str, Any]", facts)
    match next(iter(written), ""):
        case "$labelled":
            return make_labelled(from_record(written["$labelled"]), label_tree_from_json(written["shade"]))
        case "$label":
            return label_tree_from_json(written["$label"]).flat
        case "$type":
            return type_from_json(written["$type"])
        case "$enum":
            return _find_by_name(written["$enum"])[written["name"]]
        case "$path":
            return Path(written["$path"])
        case "$map":
            return {from_record(key): from_record(each) for key, each in written["$map"]}
        case "$tuple":
            return tuple(from_record(each) for each in written["$tuple"])
        case "$set":
            return frozenset(from_record(each) for each in written["$set"])
        case "$call":
            return partial(
                from_record(written["$call"]), *from_record(written["args"]), **from_record(written["named"])
            )
        case "$value":
            return value_from_json(written["$value"])
        case "$data":
            kind = _find_by_name(written["$data"])
            if not (isinstance(kind, type) and is_dataclass(kind)):
                raise _not_portable_error(written["$data"])
            return kind(**{name: from_record(each) for name, each in written["fields"].items()})
        case "$name":
            # Only functions that are written for patterns: one of a toolbox would act without the call gate.
            return _find_by_name(written["$name"], _FUNCTIONS)
        case other:
            raise _not_portable_error(str(written.get(other, other)))


def fingerprint(record: Any) -> str:
    """A hash of what `to_record` wrote."""
    return hashlib.sha256(dumps(record).encode()).hexdigest()


def _name_of(value: Any) -> str:
    return f"{value.__module__}:{value.__qualname__}"


def _find_by_name(name: str, package: str = _PACKAGE) -> Any:
    """The class or function of this package with this name."""
    module, _, path = name.partition(":")
    if not module.startswith(package) or not path or "<" in path or path.startswith("_") or "._" in path:
        raise _not_portable_error(name)
    try:
        found: Any = import_module(module)
        for each in path.split("."):
            found = getattr(found, each)
    except (ImportError, AttributeError):
        raise _not_portable_error(name) from None
    # A module gives access to everything that it has imported, such as `os`: only what it defines itself is meant.
    if getattr(found, "__module__", "") != module:
        raise _not_portable_error(name)
    return found


def _code_hash(value: object) -> str:
    """A hash of what a function does, as far as its own code says; of a class, that of its name."""
    code = getattr(value, "__code__", None)
    if code is None:
        return ""
    shown = [code.co_code.hex(), [str(each) for each in code.co_consts if not hasattr(each, "co_code")], code.co_names]
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


def _not_portable_error(name: str) -> CatalogError:
    return CatalogError(
        "pattern.not-portable",
        f"{name!r} belongs to the program that began the run",
        expected="patterns, roles and functions of this package, and plain values",
        fix="Resume or replay it from that program, with `pattern=`.",
    )

"""The keywords of JSON Schema: each checks a value, and says nothing of it but what is wrong.

Everything that can be repeated counts against the budget of the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

from bicameral.foreign._schema_walk import Fault, Keyword, Path, SchemaWalk, Scope
from bicameral.foreign._schemas import CompiledPattern


def _item(path: Path | None, index: int) -> Path:
    return (path, f"item {index + 1}")


def _field(path: Path | None, number: int | None) -> Path:
    return (path, "a field without a name in the schema" if number is None else f"field {number} of the schema")


def _reference(check: SchemaWalk, target: Any, value: Any, scope: Scope) -> Fault | None:
    return check.fault(target, value, scope.path, scope.depth, scope.evaluated)


def _type(check: SchemaWalk, names: tuple[str, ...], value: Any, scope: Scope) -> Fault | None:
    if any(_TYPE_TESTS[name](value) for name in names):
        return None
    return scope.fault(f"is not of the type {' or '.join(names)}")


def _enum(check: SchemaWalk, keys: frozenset[str], value: Any, scope: Scope) -> Fault | None:
    return None if check.canonical(value) in keys else scope.fault("is none of the values that are allowed")


def _const(check: SchemaWalk, key: str, value: Any, scope: Scope) -> Fault | None:
    return None if check.canonical(value) == key else scope.fault("is not the only value that is allowed")


def _all_of(check: SchemaWalk, schemas: list[Any], value: Any, scope: Scope) -> Fault | None:
    for schema in schemas:
        if (fault := check.fault(schema, value, scope.path, scope.depth, scope.evaluated)) is not None:
            return fault
    return None


def _any_of(check: SchemaWalk, schemas: list[Any], value: Any, scope: Scope) -> Fault | None:
    found = False
    for schema in schemas:
        if check.is_valid(schema, value, scope):
            found = True
            # The others matter only for what they look at.
            if scope.evaluated is None:
                break
    return None if found else scope.fault("fits none of the alternatives")


def _one_of(check: SchemaWalk, schemas: list[Any], value: Any, scope: Scope) -> Fault | None:
    count = sum(check.is_valid(schema, value, scope) for schema in schemas)
    if count == 1:
        return None
    return scope.fault("fits none of the alternatives" if count == 0 else "fits more than one of the alternatives")


def _not(check: SchemaWalk, schema: Any, value: Any, scope: Scope) -> Fault | None:
    fault = check.fault(schema, value, scope.path, scope.depth, None)
    return scope.fault("has a form that is ruled out") if fault is None else None


def _if(check: SchemaWalk, schema: Any, value: Any, scope: Scope) -> Fault | None:
    branch = "then" if check.is_valid(schema, value, scope) else "else"
    if branch not in scope.schema:
        return None
    return check.fault(scope.schema[branch], value, scope.path, scope.depth, scope.evaluated)


def _properties(check: SchemaWalk, fields: dict[str, tuple[int, Any]], value: Any, scope: Scope) -> Fault | None:
    if not isinstance(value, dict):
        return None
    entries = cast("dict[str, Any]", value)
    check.take(min(len(fields), len(entries)))
    names = fields if len(fields) < len(entries) else entries
    for name in names:
        if name not in fields or name not in entries:
            continue
        number, schema = fields[name]
        if scope.evaluated is not None:
            scope.evaluated.names.add(name)
        if (fault := check.fault(schema, entries[name], _field(scope.path, number), scope.depth, None)) is not None:
            return fault
    return None


def _pattern_properties(
    check: SchemaWalk, patterns: list[tuple[CompiledPattern, Any]], value: Any, scope: Scope
) -> Fault | None:
    for name, each in cast("dict[str, Any]", value).items() if isinstance(value, dict) else ():
        for pattern, schema in patterns:
            if check.matches(pattern, name):
                if scope.evaluated is not None:
                    scope.evaluated.names.add(name)
                if (fault := check.fault(schema, each, _field(scope.path, None), scope.depth, None)) is not None:
                    return fault
    return None


def _additional_properties(
    check: SchemaWalk, given: tuple[Any, list[CompiledPattern]], value: Any, scope: Scope
) -> Fault | None:
    if not isinstance(value, dict):
        return None
    schema, patterns = given
    named: dict[str, Any] = scope.schema.get("properties", {})
    for name, each in cast("dict[str, Any]", value).items():
        check.take(1)
        if name in named or any(check.matches(pattern, name) for pattern in patterns):
            continue
        if schema is False:
            return scope.fault("has a field that the schema does not have")
        if (fault := check.fault(schema, each, _field(scope.path, None), scope.depth, None)) is not None:
            return fault
    if scope.evaluated is not None:
        scope.evaluated.every_name = True
    return None


def _unevaluated_properties(check: SchemaWalk, schema: Any, value: Any, scope: Scope) -> Fault | None:
    evaluated = scope.evaluated
    if not isinstance(value, dict) or evaluated is None:
        return None
    for name, each in cast("dict[str, Any]", value).items() if not evaluated.every_name else ():
        check.take(1)
        if name in evaluated.names:
            continue
        if (fault := check.fault(schema, each, _field(scope.path, None), scope.depth, None)) is not None:
            return fault
    evaluated.every_name = True
    return None


def _property_names(check: SchemaWalk, schema: Any, value: Any, scope: Scope) -> Fault | None:
    for name in cast("dict[str, Any]", value) if isinstance(value, dict) else ():
        path = (scope.path, "the name of a field")
        if (fault := check.fault(schema, name, path, scope.depth, None)) is not None:
            return fault
    return None


def _required(check: SchemaWalk, names: list[str], value: Any, scope: Scope) -> Fault | None:
    if not isinstance(value, dict):
        return None
    check.take(len(names))
    missing = next((name for name in names if name not in value), None)
    if missing is None:
        return None
    known = list(scope.schema.get("properties", ()))
    check.take(len(known))
    which = f"field {known.index(missing) + 1} of the schema" if missing in known else "a field that it must have"
    return scope.fault(f"lacks {which}")


def _dependent_required(check: SchemaWalk, needed: dict[str, list[str]], value: Any, scope: Scope) -> Fault | None:
    for name, names in needed.items() if isinstance(value, dict) else ():
        check.take(1)
        if name in value and (fault := _required(check, names, value, scope)) is not None:
            return fault
    return None


def _dependent_schemas(check: SchemaWalk, schemas: dict[str, Any], value: Any, scope: Scope) -> Fault | None:
    for name, schema in schemas.items() if isinstance(value, dict) else ():
        check.take(1)
        if name not in value:
            continue
        if isinstance(schema, list):
            fault = _required(check, cast("list[str]", schema), value, scope)
        else:
            fault = check.fault(schema, value, scope.path, scope.depth, scope.evaluated)
        if fault is not None:
            return fault
    return None


def _prefix_items(check: SchemaWalk, schemas: list[Any], value: Any, scope: Scope) -> Fault | None:
    if not isinstance(value, list | tuple):
        return None
    for index, (schema, each) in enumerate(zip(schemas, cast("list[Any]", value), strict=False)):
        if scope.evaluated is not None:
            scope.evaluated.items.add(index)
        if (fault := check.fault(schema, each, _item(scope.path, index), scope.depth, None)) is not None:
            return fault
    return None


def _items(check: SchemaWalk, schema: Any, value: Any, scope: Scope) -> Fault | None:
    # Up to draft 2019-09 a list of schemas was what is `prefixItems` now.
    if isinstance(schema, list):
        return _prefix_items(check, cast("list[Any]", schema), value, scope)
    first = len(scope.schema.get("prefixItems", ())) if check.document.dialect >= 2020 else 0
    return _rest_items(check, schema, value, scope, first)


def _additional_items(check: SchemaWalk, schema: Any, value: Any, scope: Scope) -> Fault | None:
    before = scope.schema.get("items")
    if not isinstance(before, list):
        return None
    return _rest_items(check, schema, value, scope, len(cast("list[Any]", before)))


def _rest_items(check: SchemaWalk, schema: Any, value: Any, scope: Scope, first: int) -> Fault | None:
    if not isinstance(value, list | tuple):
        return None
    items = cast("list[Any]", value)
    for index in range(first, len(items)):
        if (fault := check.fault(schema, items[index], _item(scope.path, index), scope.depth, None)) is not None:
            return fault
    if scope.evaluated is not None:
        scope.evaluated.every_item = True
    return None


def _unevaluated_items(check: SchemaWalk, schema: Any, value: Any, scope: Scope) -> Fault | None:
    evaluated = scope.evaluated
    if not isinstance(value, list | tuple) or evaluated is None:
        return None
    for index, each in enumerate(cast("list[Any]", value)) if not evaluated.every_item else ():
        check.take(1)
        if index in evaluated.items:
            continue
        if (fault := check.fault(schema, each, _item(scope.path, index), scope.depth, None)) is not None:
            return fault
    evaluated.every_item = True
    return None


def _contains(check: SchemaWalk, schema: Any, value: Any, scope: Scope) -> Fault | None:
    if not isinstance(value, list | tuple):
        return None
    count = 0
    for index, each in enumerate(cast("list[Any]", value)):
        if check.fault(schema, each, _item(scope.path, index), scope.depth, None) is None:
            count += 1
            if scope.evaluated is not None:
                scope.evaluated.items.add(index)
    counted = {} if check.document.legacy else scope.schema
    if count < counted.get("minContains", 1):
        return scope.fault("contains too few items of a kind that it must contain")
    if count > counted.get("maxContains", count):
        return scope.fault("contains too many items of a kind")
    return None


def _unique_items(check: SchemaWalk, wanted: bool, value: Any, scope: Scope) -> Fault | None:
    if not wanted or not isinstance(value, list | tuple):
        return None
    seen: set[str] = set()
    for index, each in enumerate(cast("list[Any]", value)):
        key = check.canonical(each)
        if key in seen:
            return Fault(_item(scope.path, index), "is there twice")
        seen.add(key)
    return None


def _pattern(check: SchemaWalk, pattern: CompiledPattern, value: Any, scope: Scope) -> Fault | None:
    if not isinstance(value, str) or check.matches(pattern, value):
        return None
    return scope.fault("does not match its pattern")


def _size(kind: type | tuple[type, ...], *, least: bool) -> Keyword:
    def check_size(check: SchemaWalk, limit: float, value: Any, scope: Scope) -> Fault | None:
        if not isinstance(value, kind):
            return None
        size = len(cast("list[Any]", value))
        if size >= limit if least else size <= limit:
            return None
        return scope.fault("is too short" if least else "is too long")

    return check_size


def _limit(fits: Callable[[float, float], bool], message: str) -> Keyword:
    def check_limit(check: SchemaWalk, limit: float, value: Any, scope: Scope) -> Fault | None:
        # In draft 4 these two are flags of `minimum` and `maximum`.
        if isinstance(limit, bool) or not _is_number(value) or fits(value, limit):
            return None
        return scope.fault(message)

    return check_limit


def _minimum(check: SchemaWalk, limit: float, value: Any, scope: Scope) -> Fault | None:
    if not _is_number(value) or value > limit or (value == limit and scope.schema.get("exclusiveMinimum") is not True):
        return None
    return scope.fault("is too small")


def _maximum(check: SchemaWalk, limit: float, value: Any, scope: Scope) -> Fault | None:
    if not _is_number(value) or value < limit or (value == limit and scope.schema.get("exclusiveMaximum") is not True):
        return None
    return scope.fault("is too large")


def _multiple_of(check: SchemaWalk, unit: float, value: Any, scope: Scope) -> Fault | None:
    if not _is_number(value):
        return None
    try:
        fits = (value / unit).is_integer() if isinstance(unit, float) else value % unit == 0
    except OverflowError:
        fits = (Fraction(value) / Fraction(unit)).denominator == 1
    return None if fits else scope.fault("is no multiple of what it must be")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPE_TESTS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list | tuple),
    "null": lambda value: value is None,
}

KEYWORDS: dict[str, Keyword] = {
    "$ref": _reference,
    "type": _type,
    "enum": _enum,
    "const": _const,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": _unevaluated_properties,
    "propertyNames": _property_names,
    "required": _required,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "dependencies": _dependent_schemas,
    "prefixItems": _prefix_items,
    "items": _items,
    "additionalItems": _additional_items,
    "unevaluatedItems": _unevaluated_items,
    "contains": _contains,
    "uniqueItems": _unique_items,
    "pattern": _pattern,
    "minLength": _size(str, least=True),
    "maxLength": _size(str, least=False),
    "minItems": _size((list, tuple), least=True),
    "maxItems": _size((list, tuple), least=False),
    "minProperties": _size(dict, least=True),
    "maxProperties": _size(dict, least=False),
    "minimum": _minimum,
    "maximum": _maximum,
    "exclusiveMinimum": _limit(lambda value, limit: value > limit, "is too small"),
    "exclusiveMaximum": _limit(lambda value, limit: value < limit, "is too large"),
    "multipleOf": _multiple_of,
}

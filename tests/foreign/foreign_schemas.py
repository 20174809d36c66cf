"""Generated JSON values and schemas: ordinary ones, and ones that never end."""

from __future__ import annotations

from typing import Any, cast

import jsonschema
import referencing
from hypothesis import strategies as st


def reference_validator(schema: dict[str, Any], dialect: str = "Draft202012") -> Any:
    """A validator of the package `jsonschema` that fetches nothing."""
    registry: Any = cast("Any", referencing.Registry)()
    return getattr(jsonschema, f"{dialect}Validator")(schema, registry=registry)


NAMES = st.sampled_from(["a", "b", "c", "d"])
_TEXTS = st.sampled_from(["", "a", "b", "abc", "a1", "é", "2026-03-01"])
_NUMBERS = st.one_of(st.integers(-3, 12), st.sampled_from([-0.5, 0.5, 1.5, 2.5, 10**20]))
_SCALARS = st.one_of(st.none(), st.booleans(), _TEXTS, _NUMBERS)
_TYPES = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])
_PATTERNS = st.sampled_from(["^a", "[0-9]+", "b$", "^$", "a|b"])


def json_values() -> st.SearchStrategy[Any]:
    """JSON values with few different names, so that schemas say something about them. No float is a whole number."""
    return st.recursive(
        _SCALARS,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
        max_leaves=8,
    )


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """One schema with a few keywords, mostly such as fit together."""
    lists, maps = st.lists(inner, min_size=1, max_size=3), st.dictionaries(NAMES, inner, max_size=3)
    names, counts = st.lists(NAMES, max_size=3, unique=True), st.integers(0, 3)
    of_object: dict[str, Any] = {
        "type": st.just("object"),
        "properties": maps,
        "required": names,
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^[ab]$", "c"]), inner, max_size=2),
        "propertyNames": inner,
        "minProperties": counts,
        "maxProperties": counts,
        "dependentRequired": st.dictionaries(NAMES, names, max_size=2),
        "dependentSchemas": maps,
        "unevaluatedProperties": inner,
    }
    of_array: dict[str, Any] = {
        "type": st.just("array"),
        "items": inner,
        "prefixItems": lists,
        "minItems": counts,
        "maxItems": counts,
        "uniqueItems": st.booleans(),
        "contains": inner,
        "minContains": counts,
        "maxContains": counts,
    }
    of_scalar: dict[str, Any] = {
        "type": st.one_of(_TYPES, st.lists(_TYPES, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(json_values(), min_size=1, max_size=4),
        "const": json_values(),
        "minLength": counts,
        "maxLength": counts,
        "pattern": _PATTERNS,
        "minimum": _NUMBERS,
        "maximum": _NUMBERS,
        "exclusiveMinimum": _NUMBERS,
        "exclusiveMaximum": _NUMBERS,
        "multipleOf": st.sampled_from([1, 2, 0.5, 3]),
        "format": st.sampled_from(["date", "email"]),
    }
    combined: dict[str, Any] = {
        "allOf": lists,
        "anyOf": lists,
        "oneOf": lists,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "properties": maps,
        "unevaluatedProperties": inner,
        "type": _TYPES,
    }
    return st.one_of(
        *(
            st.fixed_dictionaries({}, optional=table).map(lambda found: dict(list(found.items())[:5]))
            for table in (of_object, of_array, of_scalar, combined)
        )
    )


def ordinary_schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of draft 2020-12 whose references end: a definition refers only to later ones."""
    leaves = st.one_of(st.booleans(), st.fixed_dictionaries({"type": _TYPES}))
    plain = st.recursive(leaves, _keywords, max_leaves=6)
    last = plain
    refers = st.recursive(st.one_of(leaves, st.just({"$ref": "#/$defs/z"})), _keywords, max_leaves=6)
    root = st.recursive(
        st.one_of(leaves, st.sampled_from([{"$ref": "#/$defs/y"}, {"$ref": "#/$defs/z", "type": "object"}])),
        _keywords,
        max_leaves=8,
    )
    return st.tuples(root, refers, last).map(_with_definitions)


def _with_definitions(parts: tuple[Any, Any, Any]) -> dict[str, Any]:
    found, y, z = parts
    return {**(found if isinstance(found, dict) else {"allOf": [found]}), "$defs": {"y": y, "z": z}}


def endless_schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Definitions that refer to each other in every way, most of them without an end."""
    reference = st.sampled_from([{"$ref": "#"}, {"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}, {"$ref": "#/$defs/z"}])
    inner = st.recursive(
        st.one_of(reference, st.booleans(), st.fixed_dictionaries({"type": _TYPES})), _keywords, max_leaves=8
    )
    return st.tuples(inner, inner, inner, inner).map(_with_every_definition)


def _with_every_definition(parts: tuple[Any, Any, Any, Any]) -> dict[str, Any]:
    root, *definitions = parts
    return {"$defs": dict(zip("xyz", definitions, strict=True)), "allOf": [root, {"$ref": "#/$defs/x"}]}

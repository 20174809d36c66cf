"""JSON Schema validation of model replies. It rejects and never repairs; a schema that it cannot check is refused.

A model may ignore the schema in its request, so its reply is validated here. Messages name paths in the schema and
never quote the value, which may be untrusted text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from bicameral.errors import ModelError

# A schema that refers to itself must not recurse without limit.
_MAX_DEPTH = 64
_ANNOTATIONS = frozenset(
    "$schema $id $anchor $comment $defs definitions title description default examples deprecated readOnly writeOnly"
    " format contentEncoding contentMediaType discriminator x-guidance additionalItems".split()
)

_TYPE_PREDICATES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or float(value).is_integer()),
}


def schema_violation(value: Any, schema: dict[str, Any]) -> str | None:
    """The first violation of the schema by the value, with its path in the schema, or None if there is none.

    Example:
        >>> schema_violation({"age": "44"}, {"properties": {"age": {"type": "integer"}}})
        'it is not integer (#/properties/age/type)'
    """
    return next(_violations(value, schema, schema, "#", 0), None)


def check_schema(schema: dict[str, Any]) -> None:
    """Raise `models.bad-request` for a schema with a keyword that is not checked here, and so not enforced."""
    for part, at in _subschemas(schema, "#"):
        for keyword in part:
            if keyword not in _VALUE_RULES.keys() | _PART_KEYWORDS | _ANNOTATIONS | {"$ref"}:
                raise _bad_schema(f"{at} has {keyword!r}, which is not checked")


def _violations(value: Any, schema: Any, root: dict[str, Any], at: str, depth: int) -> Iterator[str]:
    if schema is True:
        return
    if schema is False or depth > _MAX_DEPTH:
        yield f"nothing fits {at}" if schema is False else f"{at} is nested too deeply"
        return
    if "$ref" in schema:
        target, where = _resolve_reference(schema["$ref"], root)
        yield from _violations(value, target, root, where, depth + 1)
    for keyword, wanted in schema.items():
        if keyword in _VALUE_RULES:
            kind, fits, message = _VALUE_RULES[keyword]
            if (kind is None or _TYPE_PREDICATES[kind](value)) and not fits(value, wanted):
                yield f"{message} ({at}/{keyword})"
        elif keyword in _PART_KEYWORDS:
            yield from _part_violations(keyword, value, wanted, schema, root, f"{at}/{keyword}", depth + 1)


def _resolve_reference(reference: Any, root: dict[str, Any]) -> tuple[Any, str]:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise _bad_schema("a $ref leads out of the schema")
    target: Any = root
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or step not in target:
            raise _bad_schema(f"the $ref {reference!r} leads nowhere")
        target = cast("dict[str, Any]", target)[step]
    return target, reference


_MOST_CHOICES = {"anyOf": None, "oneOf": 1, "not": 0}


def _part_violations(
    keyword: str, value: Any, wanted: Any, schema: dict[str, Any], root: dict[str, Any], at: str, depth: int
) -> Iterator[str]:
    """The violations of a keyword that contains schemas or names: `wanted` is what it says, `at` its path."""
    record = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    items = cast("list[Any]", value) if isinstance(value, list) else []
    match keyword:
        case "type":
            names: list[str] = [wanted] if isinstance(wanted, str) else wanted
            if not any(_TYPE_PREDICATES[name](value) for name in names):
                yield f"it is not {' or '.join(names)} ({at})"
        case "required" if isinstance(value, dict):
            yield from (f"{name!r} is missing ({at})" for name in wanted if name not in record)
        case "properties":
            for name, part in wanted.items():
                if name in record:
                    yield from _violations(record[name], part, root, f"{at}/{name}", depth)
        case "patternProperties":
            for pattern, part in wanted.items():
                for name, item in record.items():
                    if re.search(pattern, name):
                        yield from _violations(item, part, root, at, depth)
        case "additionalProperties":
            patterns = [re.compile(pattern) for pattern in schema.get("patternProperties", {})]
            for name, item in record.items():
                if name in schema.get("properties", {}) or any(pattern.search(name) for pattern in patterns):
                    continue
                if wanted is False:
                    yield f"it has a property too many ({at})"
                else:
                    yield from _violations(item, wanted, root, at, depth)
        case "items":
            for item in items[len(schema.get("prefixItems", ())) :]:
                yield from _violations(item, wanted, root, at, depth)
        case "prefixItems":
            for number, (item, part) in enumerate(zip(items, wanted, strict=False)):
                yield from _violations(item, part, root, f"{at}/{number}", depth)
        case "allOf":
            for number, part in enumerate(wanted):
                yield from _violations(value, part, root, f"{at}/{number}", depth)
        case "anyOf" | "oneOf" | "not":
            parts, most = [wanted] if keyword == "not" else wanted, _MOST_CHOICES[keyword]
            fits = sum(next(_violations(value, part, root, at, depth), None) is None for part in parts)
            if fits < (keyword != "not") or (most is not None and fits > most):
                yield f"it fits {fits} of the choices ({at})"
        case _:
            return


def _json_equal(one: Any, other: Any) -> bool:
    """Equal as JSON: True is not 1, but 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        ones, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(ones) == len(others) and all(map(_json_equal, ones, others))
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return left.keys() == right.keys() and all(_json_equal(left[name], right[name]) for name in left)
    return one == other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_multiple(value: Any, of: Any) -> bool:
    if isinstance(value, int) and isinstance(of, int):
        return value % of == 0
    return float(value / of).is_integer()


def _has_distinct_items(values: list[Any], wanted: Any) -> bool:
    return not wanted or not any(_json_equal(a, b) for number, a in enumerate(values) for b in values[:number])


_PART_KEYWORDS = frozenset(
    "type required properties patternProperties additionalProperties items prefixItems allOf anyOf oneOf not".split()
)
_VALUE_RULES: dict[str, tuple[str | None, Callable[[Any, Any], bool], str]] = {
    "enum": (None, lambda value, wanted: any(_json_equal(value, each) for each in wanted), "not one of these"),
    "const": (None, _json_equal, "not the one value"),
    "minProperties": ("object", lambda value, least: len(value) >= least, "too few properties"),
    "maxProperties": ("object", lambda value, most: len(value) <= most, "too many properties"),
    "minItems": ("array", lambda value, least: len(value) >= least, "too few items"),
    "maxItems": ("array", lambda value, most: len(value) <= most, "too many items"),
    "uniqueItems": ("array", _has_distinct_items, "an item comes twice"),
    "minLength": ("string", lambda value, least: len(value) >= least, "too short"),
    "maxLength": ("string", lambda value, most: len(value) <= most, "too long"),
    "pattern": ("string", lambda value, pattern: re.search(pattern, value) is not None, "not of the pattern"),
    "minimum": ("number", lambda value, least: value >= least, "too small"),
    "maximum": ("number", lambda value, most: value <= most, "too large"),
    "exclusiveMinimum": ("number", lambda value, least: value > least, "too small"),
    "exclusiveMaximum": ("number", lambda value, most: value < most, "too large"),
    "multipleOf": ("number", _is_multiple, "not a multiple"),
}
"""Keywords about a value of one type (None: any): whether it fits, and the message if not."""
_NAMED_SUBSCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
_LISTED_SUBSCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE_SUBSCHEMAS = ("items", "additionalProperties", "not")


def _subschemas(schema: Any, at: str) -> Iterator[tuple[dict[str, Any], str]]:
    """A schema and every schema within it, each with its path."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _bad_schema(f"{at} is no schema")
    whole = cast("dict[str, Any]", schema)
    yield whole, at
    for keyword in _NAMED_SUBSCHEMAS:
        for name, part in whole.get(keyword, {}).items():
            yield from _subschemas(part, f"{at}/{keyword}/{name}")
    for keyword in _LISTED_SUBSCHEMAS:
        for number, part in enumerate(whole.get(keyword, ())):
            yield from _subschemas(part, f"{at}/{keyword}/{number}")
    for keyword in _SINGLE_SUBSCHEMAS:
        if keyword in whole:
            yield from _subschemas(whole[keyword], f"{at}/{keyword}")


def _bad_schema(why: str) -> ModelError:
    return ModelError(
        "models.bad-request", f"the schema for the reply cannot be used: {why}", fix="Write it in plainer words."
    )

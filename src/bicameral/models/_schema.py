"""Whether a value fits a JSON Schema. It rejects and never mends; a schema that it cannot follow is refused.

Models are told a schema and may still write what they like, so what they wrote is held to it here. The messages name
places of the schema and never quote the value: it may come from a stranger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from bicameral.errors import ModelError

_DEPTH = 64
_ANNOTATIONS = frozenset(
    "$schema $id $anchor $comment $defs definitions title description default examples deprecated readOnly writeOnly"
    " format contentEncoding contentMediaType discriminator x-guidance additionalItems".split()
)

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or float(value).is_integer()),
}


def unfit(value: Any, schema: dict[str, Any]) -> str | None:
    """Where and how the value does not fit, or None if it does."""
    return next(_faults(value, schema, schema, "#", 0), None)


def check_schema(schema: dict[str, Any]) -> None:
    """Refuse a schema that says something that is not checked here: what is not checked is not held."""
    for part, at in _parts(schema, "#"):
        for keyword in part:
            if keyword not in _RULES and keyword not in _ANNOTATIONS and keyword != "$ref":
                raise _unusable(f"{at} has {keyword!r}, which is not checked")


def _faults(value: Any, schema: Any, root: dict[str, Any], at: str, depth: int) -> Iterator[str]:
    if schema is True:
        return
    if schema is False or depth > _DEPTH:
        yield f"nothing fits {at}" if schema is False else f"{at} is nested too deeply"
        return
    if "$ref" in schema:
        target, where = _resolved(schema["$ref"], root)
        yield from _faults(value, target, root, where, depth + 1)
    for keyword, wanted in schema.items():
        if keyword in _RULES:
            yield from _RULES[keyword](value, wanted, schema, root, f"{at}/{keyword}", depth + 1)


def _resolved(reference: Any, root: dict[str, Any]) -> tuple[Any, str]:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise _unusable("a $ref leads out of the schema")
    found: Any = root
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or step not in found:
            raise _unusable(f"the $ref {reference!r} leads nowhere")
        found = cast("dict[str, Any]", found)[step]
    return found, reference


Rule = Callable[[Any, Any, dict[str, Any], dict[str, Any], str, int], Iterator[str]]


def _when(applies: Callable[[Any], bool], fits: Callable[[Any, Any], bool], what: str) -> Rule:
    def rule(
        value: Any, wanted: Any, schema: dict[str, Any], root: dict[str, Any], at: str, depth: int
    ) -> Iterator[str]:
        if applies(value) and not fits(value, wanted):
            yield f"{what} ({at})"

    return rule


def _type(value: Any, wanted: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    names: list[str] = [wanted] if isinstance(wanted, str) else wanted
    if not any(_TYPES[name](value) for name in names):
        yield f"it is not {' or '.join(names)} ({at})"


def _properties(value: Any, wanted: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in wanted.items():
            if name in value:
                yield from _faults(value[name], part, root, f"{at}/{name}", depth)


def _required(value: Any, wanted: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{name!r} is missing ({at})" for name in wanted if name not in value)


def _additional(value: Any, wanted: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    patterns = [re.compile(pattern) for pattern in schema.get("patternProperties", {})]
    for name, item in cast("dict[str, Any]", value).items():
        if name not in schema.get("properties", {}) and not any(pattern.search(name) for pattern in patterns):
            if wanted is False:
                yield f"it has a property too many ({at})"
            else:
                yield from _faults(item, wanted, root, at, depth)


def _patterned(value: Any, wanted: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    if isinstance(value, dict):
        for pattern, part in wanted.items():
            for name, item in cast("dict[str, Any]", value).items():
                if re.search(pattern, name):
                    yield from _faults(item, part, root, at, depth)


def _items(value: Any, wanted: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    if isinstance(value, list):
        for item in cast("list[Any]", value)[len(schema.get("prefixItems", ())) :]:
            yield from _faults(item, wanted, root, at, depth)


def _prefix(value: Any, wanted: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    if isinstance(value, list):
        for number, (item, part) in enumerate(zip(cast("list[Any]", value), wanted, strict=False)):
            yield from _faults(item, part, root, f"{at}/{number}", depth)


def _all_of(value: Any, wanted: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    for number, part in enumerate(wanted):
        yield from _faults(value, part, root, f"{at}/{number}", depth)


def _one_of(fewest: int, most: int | None) -> Rule:
    def rule(
        value: Any, wanted: Any, schema: dict[str, Any], root: dict[str, Any], at: str, depth: int
    ) -> Iterator[str]:
        parts = [wanted] if most == 0 else wanted
        fits = sum(next(_faults(value, part, root, at, depth), None) is None for part in parts)
        if fits < fewest or (most is not None and fits > most):
            yield f"it fits {fits} of the choices ({at})"

    return rule


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: True is not 1, but 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        ones, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(ones) == len(others) and all(map(_same, ones, others))
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    return one == other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _multiple(value: Any, of: Any) -> bool:
    if isinstance(value, int) and isinstance(of, int):
        return value % of == 0
    return float(value / of).is_integer()


def _distinct(values: list[Any], wanted: Any) -> bool:
    return not wanted or not any(_same(a, b) for number, a in enumerate(values) for b in values[:number])


_text = _TYPES["string"]
_list = _TYPES["array"]
_object = _TYPES["object"]

_RULES: dict[str, Rule] = {
    "type": _type,
    "enum": _when(lambda _: True, lambda value, wanted: any(_same(value, each) for each in wanted), "not one of these"),
    "const": _when(lambda _: True, _same, "not the one value"),
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "patternProperties": _patterned,
    "minProperties": _when(_object, lambda value, least: len(value) >= least, "too few properties"),
    "maxProperties": _when(_object, lambda value, most: len(value) <= most, "too many properties"),
    "items": _items,
    "prefixItems": _prefix,
    "minItems": _when(_list, lambda value, least: len(value) >= least, "too few items"),
    "maxItems": _when(_list, lambda value, most: len(value) <= most, "too many items"),
    "uniqueItems": _when(_list, _distinct, "an item comes twice"),
    "minLength": _when(_text, lambda value, least: len(value) >= least, "too short"),
    "maxLength": _when(_text, lambda value, most: len(value) <= most, "too long"),
    "pattern": _when(_text, lambda value, pattern: re.search(pattern, value) is not None, "not of the pattern"),
    "minimum": _when(_is_number, lambda value, least: value >= least, "too small"),
    "maximum": _when(_is_number, lambda value, most: value <= most, "too large"),
    "exclusiveMinimum": _when(_is_number, lambda value, least: value > least, "too small"),
    "exclusiveMaximum": _when(_is_number, lambda value, most: value < most, "too large"),
    "multipleOf": _when(_is_number, _multiple, "not a multiple"),
    "allOf": _all_of,
    "anyOf": _one_of(1, None),
    "oneOf": _one_of(1, 1),
    "not": _one_of(0, 0),
}
_NAMED = ("properties", "patternProperties", "$defs", "definitions")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not")


def _parts(schema: Any, at: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Every schema within a schema."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _unusable(f"{at} is no schema")
    whole = cast("dict[str, Any]", schema)
    yield whole, at
    for keyword in _NAMED:
        for name, part in whole.get(keyword, {}).items():
            yield from _parts(part, f"{at}/{keyword}/{name}")
    for keyword in _LISTED:
        for number, part in enumerate(whole.get(keyword, ())):
            yield from _parts(part, f"{at}/{keyword}/{number}")
    for keyword in _SINGLE:
        if keyword in whole:
            yield from _parts(whole[keyword], f"{at}/{keyword}")


def _unusable(why: str) -> ModelError:
    return ModelError(
        "models.bad-request", f"the schema for the reply cannot be used: {why}", fix="Write it in plainer words."
    )

"""The JSON Schema of plans, published as `schemas/plan.v1.json`."""

from __future__ import annotations

from typing import Any, cast

from bicameral.plans import Plan
from bicameral.plans._expressions import NAME_PATTERN

_TAGGED_UNIONS = {"kind": "Expression", "do": "Step"}


def plan_schema() -> dict[str, Any]:
    """The JSON Schema of a plan as JSON."""
    schema = Plan.model_json_schema()
    shared: dict[str, Any] = {}
    schema = _shorten_schema(schema, shared)
    definitions = schema.pop("$defs")
    for definition in definitions.values():
        _require_tag(definition)
    for step in ("Extract", "Ask"):
        definitions[step]["properties"]["type"] |= {"$ref": "#/$defs/Type"}
    definitions |= shared | {"Type": _type_schema()}
    schema |= {"title": "Plan v1", "required": ["version"]}
    order = {name: definitions[name] for name in sorted(definitions)}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "$defs": order}


def _shorten_schema(node: Any, shared: dict[str, Any], *, named: bool = False) -> Any:
    """Say what a name, an expression and a step are once; leave out titles and examples. `named`: keys are names."""
    if isinstance(node, list):
        return [_shorten_schema(item, shared) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    entries = cast("dict[str, Any]", node)
    if not named:
        if union := entries.get("discriminator"):
            return _share_definition(_TAGGED_UNIONS[union["propertyName"]], {"oneOf": entries["oneOf"]}, shared)
        if entries.get("pattern") == NAME_PATTERN:
            return _share_definition("Name", {key: value for key, value in entries.items() if key != "title"}, shared)
        entries = {key: value for key, value in entries.items() if key != "title"}
        if "description" in entries:
            entries["description"] = entries["description"].split("\n")[0]
    return {
        key: _shorten_schema(value, shared, named=not named and key in ("properties", "$defs"))
        for key, value in entries.items()
    }


def _share_definition(name: str, definition: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    shared.setdefault(name, definition)
    return {"$ref": f"#/$defs/{name}"}


def _require_tag(definition: dict[str, Any]) -> None:
    """A node without its tag is no node: the tag has a default only for those who write Python."""
    properties = definition["properties"]
    required = [tag for tag in _TAGGED_UNIONS if "const" in properties.get(tag, {})]
    definition["required"] = [*required, *definition.get("required", [])]
    for tag in required:
        properties[tag] = {"const": properties[tag]["const"]}


def _type_schema() -> dict[str, Any]:
    inner = {"$ref": "#/$defs/Type"}

    def one(kind: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "properties": {kind: value}, "required": [kind], "additionalProperties": False}

    return {
        "description": "The type of a value.",
        "anyOf": [
            {"enum": ["str", "int", "float", "number", "bool", "date", "time", "datetime", "timedelta", "None", "Any"]},
            one("str", {"type": "string"}),
            one("list", inner),
            one("dict", inner),
            one("optional", inner),
            one("tuple", {"type": "array", "items": inner}),
            one("literal", {"type": "array", "items": {"type": "string"}, "minItems": 1}),
            one("record", {"type": "object", "additionalProperties": inner}),
        ],
    }

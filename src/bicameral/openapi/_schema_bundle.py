"""Schemas of an OpenAPI document as JSON Schemas of their own, with everything that they refer to.

OpenAPI 3.0 has a dialect of its own (`nullable`, flags for exclusive limits), and references lead all over a document.
Each operation gets schemas that stand alone: they are pinned and reviewed with it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Literal, cast

from bicameral.foreign import is_usable_pattern
from bicameral.openapi._document import BadReference, OpenApiDocument, as_list, as_table

MAX_BUNDLE_NODES = 5_000
"""Schemas in one bundle."""
_MAX_DESCRIPTION = 1_000

Direction = Literal["request", "response"]

_ONE = frozenset(
    "additionalItems additionalProperties contains else if items not propertyNames then unevaluatedItems "
    "unevaluatedProperties".split()
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"dependentSchemas", "properties"})
_LIMITS = frozenset(
    "multipleOf maximum minimum exclusiveMaximum exclusiveMinimum maxLength minLength maxItems minItems maxContains "
    "minContains maxProperties minProperties".split()
)
_PLAIN = frozenset("type enum const required format uniqueItems dependentRequired".split())
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_HEXADECIMAL = re.compile(r"0[xX][0-9A-Fa-f]{1,32}")


class SchemaTooLarge(ValueError):
    """A schema that refers to too much."""


class SchemaBundle:
    """Converts schemas of one document, and collects what they refer to.

    Args:
        document: The document.
        direction: What only an answer has is left out of a request, and the other way round.

    `has_odd_limits` says whether a limit was left out, since it is no number.
    """

    def __init__(self, document: OpenApiDocument, direction: Direction) -> None:
        self._document = document
        self._hidden = "readOnly" if direction == "request" else "writeOnly"
        self.has_odd_limits = False
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._numbers: Counter[str] = Counter()
        self._definitions: dict[str, Any] = {}
        self._waiting: list[str] = []
        self._nodes = 0

    def convert(self, schema: Any) -> Any:
        """A schema as JSON Schema, with references to the definitions of this bundle."""
        converted = self._convert(schema)
        # References are followed one after the other: each may lead to many more, or back.
        while self._waiting:
            reference = self._waiting.pop()
            self._definitions[self._names[reference]] = self._convert(self._document.find(reference))
        return converted

    def with_definitions(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A converted schema together with all that it refers to."""
        return {**schema, "$defs": dict(sorted(self._definitions.items()))} if self._definitions else schema

    def resolve(self, schema: Any) -> dict[str, Any]:
        """The object that a schema of the document is, or that it refers to and says nothing beside."""
        return self._document.resolve(schema)

    def is_hidden(self, schema: Any) -> bool:
        """Whether a property is not for this direction."""
        try:
            return self._document.resolve(schema).get(self._hidden) is True
        except BadReference:
            return False

    def _convert(self, schema: Any) -> Any:
        self._nodes += 1
        if self._nodes > MAX_BUNDLE_NODES:
            raise SchemaTooLarge("its schemas are too large")
        if not isinstance(schema, dict):
            # Anything else but a boolean is refused when the schema is checked.
            return schema
        table = cast("dict[str, Any]", schema)
        if isinstance(table.get("$ref"), str):
            referred = {"$ref": f"#/$defs/{self._define(table['$ref'])}"}
            others = {} if self._document.is_3_0 else {key: each for key, each in table.items() if key != "$ref"}
            # In 3.0 nothing beside a reference counts; but whoever writes `nullable` there means it.
            return self._nullable(table, referred | (self._keywords(others) if others else {}))
        return self._nullable(table, self._keywords(table))

    def _define(self, reference: str) -> str:
        if reference not in self._names:
            self._document.find(reference)
            plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", reference.rsplit("/", 1)[-1])[:60] or "schema"
            name = plain
            while name in self._taken:
                self._numbers[plain] += 1
                name = f"{plain}_{self._numbers[plain] + 1}"
            self._taken.add(name)
            self._names[reference] = name
            self._waiting.append(reference)
        return self._names[reference]

    def _keywords(self, table: dict[str, Any]) -> dict[str, Any]:
        """What says something about values. Examples and titles do not, and neither do defaults."""
        found: dict[str, Any] = {}
        for keyword, value in table.items():
            if keyword in _ONE and not _is_tuple(keyword, value):
                found[keyword] = self._convert(value)
            elif keyword in _LISTS or keyword == "items":
                found[keyword] = [self._convert(each) for each in as_list(value)]
            elif keyword in _MAPS or (keyword == "patternProperties" and all(map(is_usable_pattern, as_table(value)))):
                found[keyword] = {name: self._convert(each) for name, each in as_table(value).items()}
            elif keyword == "pattern":
                # A pattern that RE2 cannot match bounds nothing here; the server checks its own.
                found |= {keyword: value} if isinstance(value, str) and is_usable_pattern(value) else {}
            elif keyword in _PLAIN:
                found[keyword] = value
            elif keyword in _LIMITS:
                found |= self._limit(keyword, value)
            elif keyword == "description" and isinstance(value, str):
                found[keyword] = value[:_MAX_DESCRIPTION]
        if "patternProperties" in table and "patternProperties" not in found:
            # Fields of any name may be there.
            found["additionalProperties"] = True
        _write_plain_limits(found)
        self._leave_out_hidden(table, found)
        return found

    def _limit(self, keyword: str, value: Any) -> dict[str, Any]:
        """A limit as a number. In YAML `0x10` and `9223372036854775807` are texts here, and `.inf` bounds nothing."""
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            value = float(value) if set(value) & set(".eE") else int(value)
        elif isinstance(value, str) and _HEXADECIMAL.fullmatch(value):
            value = int(value, 16)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        # In OpenAPI 3.0 these two are flags.
        if is_number or (isinstance(value, bool) and keyword in ("exclusiveMinimum", "exclusiveMaximum")):
            return {keyword: value}
        self.has_odd_limits = True
        return {}

    def _leave_out_hidden(self, table: dict[str, Any], found: dict[str, Any]) -> None:
        hidden = {name for name, each in as_table(table.get("properties")).items() if self.is_hidden(each)}
        if not hidden:
            return
        if isinstance(required := found.get("required"), list):
            found["required"] = [name for name in cast("list[Any]", required) if name not in hidden]
        if self._hidden == "readOnly":
            found["properties"] = {name: each for name, each in found["properties"].items() if name not in hidden}

    def _nullable(self, table: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        """`nullable` of OpenAPI 3.0, as documents mean it: also beside choices and combinations."""
        if table.get("nullable") is not True:
            return found
        kind = found.get("type")
        combined = found.keys() & {"allOf", "anyOf", "oneOf", "$ref", "const"}
        if isinstance(kind, str) and not combined:
            found["type"] = [kind, "null"]
            if isinstance(choices := found.get("enum"), list) and None not in choices:
                found["enum"] = [*cast("list[Any]", choices), None]
            return found
        description = {"description": found.pop("description")} if "description" in found else {}
        return {"anyOf": [found, {"type": "null"}], **description}


def _is_tuple(keyword: str, value: Any) -> bool:
    """Whether this is a list of schemas for the items one by one, as up to draft 2019-09."""
    return keyword == "items" and isinstance(value, list)


def _write_plain_limits(found: dict[str, Any]) -> None:
    """Limits of OpenAPI 3.0, where `exclusiveMinimum` is a flag of `minimum`."""
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(flag := found.get(exclusive), bool):
            del found[exclusive]
            if flag and limit in found:
                found[exclusive] = found.pop(limit)

"""The check of a value against a schema that a stranger wrote: with bounded work, and without a word of either.

Schema and value may come from the same attacker. The `jsonschema` package is not used for that: it quotes the value in
every message, takes quadratic time for `uniqueItems` and exponential time for patterns, and lets a part of a schema
choose another dialect. Here every visit of a schema and every item counts against a budget; patterns are RE2's. Tests
hold the outcome against that package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bicameral.errors import ToolError
from bicameral.foreign._schema_keywords import KEYWORDS
from bicameral.foreign._schema_walk import MAX_STEPS, CheckGivenUp, Compiled, SchemaWalk
from bicameral.foreign._schemas import (
    CompiledPattern,
    SchemaDocument,
    compile_pattern,
    plain_schema,
    schema_problem,
)


class SchemaValidator:
    """Checks values against one schema.

    Messages say where and what, with positions instead of names: texts of the value and of the schema are untrusted,
    and the value may be secret. A check that takes too much work fails: the value does not count as valid.
    `format` is not asserted. `1.0` is no integer, since plans tell them apart.

    Args:
        schema: The schema; `foreign.bad-schema` if `schema_problem` has something against it.
        max_steps: How much work one check may be: visits of schemas, fields and items.

    Example:
        >>> SchemaValidator({"type": "array", "items": {"type": "integer"}}).problem([1, "x"])
        'item 2 is not of the type integer'
    """

    def __init__(self, schema: Mapping[str, Any] | bool, *, max_steps: int = MAX_STEPS) -> None:
        if not isinstance(schema, bool) and (problem := schema_problem(schema)):
            raise ToolError(
                "foreign.bad-schema", f"a schema cannot be used: {problem}", fix="Its author has to mend it."
            )
        self._max_steps = max_steps
        self._document = SchemaDocument(plain_schema(schema))
        # Prepared when they are first needed, and kept for later checks.
        self._compiled: dict[int, Compiled] = {}
        self._patterns: dict[str, CompiledPattern] = {}

    def problem(self, value: object) -> str | None:
        """Where and why a JSON value is not valid, or None."""
        check = _Check(self._document, self._compiled, self._patterns, self._max_steps)
        try:
            fault = check.fault(self._document.root, value, None, 0, None)
        except CheckGivenUp as error:
            return str(error)
        except RecursionError:
            return "the value is nested too deeply to be checked"
        return None if fault is None else str(fault)


class _Check(SchemaWalk):
    __slots__ = ("patterns",)

    def __init__(
        self, document: SchemaDocument, compiled: dict[int, Compiled], patterns: dict[str, CompiledPattern], steps: int
    ) -> None:
        super().__init__(document, compiled, steps)
        self.patterns = patterns

    def compile(self, schema: dict[str, Any]) -> Compiled:
        """The keywords of a schema that say something, with what they need prepared."""
        found = [(name, schema[name]) for name in self.document.keywords(schema) if name in KEYWORDS]
        # What is left over is known when everything else was looked at.
        found.sort(key=lambda each: each[0].startswith("unevaluated"))
        return tuple((KEYWORDS[name], self._prepare(name, given, schema)) for name, given in found)

    def _prepare(self, name: str, given: Any, schema: dict[str, Any]) -> Any:
        match name:
            case "$ref":
                return self.document.resolve(given)
            case "enum":
                return frozenset(self.canonical(each) for each in given)
            case "const":
                return self.canonical(given)
            case "pattern":
                return self._pattern(given)
            case "patternProperties":
                return [(self._pattern(each), inner) for each, inner in given.items()]
            case "additionalProperties":
                return given, [self._pattern(each) for each in schema.get("patternProperties", ())]
            case "properties":
                return {each: (number, inner) for number, (each, inner) in enumerate(given.items(), 1)}
            case "type":
                return (given,) if isinstance(given, str) else tuple(given)
            case _:
                return given

    def _pattern(self, pattern: str) -> CompiledPattern:
        found = self.patterns.get(pattern) or compile_pattern(pattern)
        if found is None:
            raise CheckGivenUp("a regular expression of the schema cannot be used")
        self.patterns[pattern] = found
        return found

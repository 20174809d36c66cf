"""The check of values against schemas of strangers: right, silent about what it reads, and always at an end."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
from foreign_schemas import endless_schemas, json_values, ordinary_schemas, reference_validator
from hypothesis import given, settings

from bicameral.errors import ToolError
from bicameral.foreign import SchemaValidator, schema_problem
from bicameral.foreign._schema_walk import MAX_STEPS
from property_examples import THOUSAND, examples

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@settings(max_examples=examples(THOUSAND, quick=200))
@given(ordinary_schemas(), json_values())
def test_the_check_agrees_with_the_reference_implementation(schema: dict[str, Any], value: Any) -> None:
    expected = reference_validator(schema).is_valid(value)
    problem = SchemaValidator(schema).problem(value)
    assert (problem is None) == expected, problem


OLDER: list[tuple[dict[str, Any], Any]] = [
    ({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}, ["a", 1]),
    ({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}, ["a", "b"]),
    ({"items": [{"type": "string"}], "additionalItems": False}, ["a", 1]),
    ({"additionalItems": False, "items": {}}, ["a", 1]),
    ({"dependencies": {"a": ["b"]}}, {"a": 1}),
    ({"dependencies": {"a": {"required": ["b"]}}}, {"a": 1}),
    ({"dependencies": {"a": {"required": ["b"]}}}, {"a": 1, "b": 2}),
    ({"$ref": "#/definitions/n", "type": "string", "definitions": {"n": {"type": "integer"}}}, 1),
    ({"$ref": "#/definitions/n", "type": "string", "definitions": {"n": {"type": "integer"}}}, "a"),
    ({"prefixItems": [{"type": "string"}]}, [1]),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    ({"unevaluatedProperties": False}, {"a": 1}),
    ({"contains": {"type": "integer"}, "minContains": 2}, [1]),
]


@pytest.mark.parametrize("number", range(len(OLDER)))
def test_an_older_dialect_keeps_its_own_meaning(number: int) -> None:
    schema, value = {"$schema": DRAFT_7} | OLDER[number][0], OLDER[number][1]
    assert (SchemaValidator(schema).problem(value) is None) == reference_validator(schema, "Draft7").is_valid(value)


def test_the_flags_of_draft_4_count() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}
    for value in (0, 1, 2):
        assert (SchemaValidator(schema).problem(value) is None) == reference_validator(schema, "Draft4").is_valid(value)


MISMATCHES: list[tuple[dict[str, Any], Any, str]] = [
    ({"type": "integer"}, "x", "the value is not of the type integer"),
    ({"type": ["string", "null"]}, 1, "the value is not of the type string or null"),
    ({"items": {"type": "integer"}}, [1, 2, "x"], "item 3 is not of the type integer"),
    (
        {"properties": {"a": {}, "b": {"items": {"type": "string"}}}},
        {"b": ["s", 1]},
        "field 2 of the schema, item 2 is not of the type string",
    ),
    ({"properties": {"a": {}, "b": {}}, "required": ["b"]}, {}, "the value lacks field 2 of the schema"),
    ({"required": ["b"]}, {}, "the value lacks a field that it must have"),
    ({"additionalProperties": False}, {"x": 1}, "the value has a field that the schema does not have"),
    ({"additionalProperties": {"type": "string"}}, {"x": 1}, "a field without a name in the schema is not of the type"),
    ({"enum": ["a"]}, "b", "the value is none of the values that are allowed"),
    ({"const": 1}, True, "the value is not the only value that is allowed"),
    ({"uniqueItems": True}, [1, {"a": 1}, 1.0], "item 3 is there twice"),
    ({"pattern": "^a"}, "b", "the value does not match its pattern"),
    ({"maxLength": 2}, "abc", "the value is too long"),
    ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, 1, "the value fits none of the alternatives"),
    ({"oneOf": [{}, {}]}, 1, "the value fits more than one of the alternatives"),
    ({"not": {}}, 1, "the value has a form that is ruled out"),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "the name of a field is too long"),
    ({"properties": {"a": False}}, {"a": 1}, "field 1 of the schema may not be there"),
    ({"multipleOf": 0.01}, 0.015, "the value is no multiple of what it must be"),
]


@pytest.mark.parametrize("number", range(len(MISMATCHES)))
def test_a_mismatch_says_where_and_what(number: int) -> None:
    schema, value, expected = MISMATCHES[number]
    assert (SchemaValidator(schema).problem(value) or "").startswith(expected)


SECRET = "hunter2-and-more"


def _mark_schema(part: Any, *, names: bool = False) -> Any:
    """A schema with the secret in each name of a field and in each text that is not of JSON Schema."""
    if isinstance(part, dict):
        entries = cast("dict[str, Any]", part)
        return {
            (SECRET + key if names else key): each
            if key in ("type", "pattern") and not names
            else _mark_schema(each, names=key == "properties" and not names)
            for key, each in entries.items()
        }
    if isinstance(part, list):
        return [_mark_schema(each) for each in cast("list[Any]", part)]
    return SECRET + part if isinstance(part, str) else part


def _mark_value(part: Any) -> Any:
    if isinstance(part, dict):
        return {SECRET + key: _mark_value(each) for key, each in cast("dict[str, Any]", part).items()}
    if isinstance(part, list):
        return [_mark_value(each) for each in cast("list[Any]", part)]
    return part + SECRET if isinstance(part, str) else part


@pytest.mark.parametrize("number", range(len(MISMATCHES)))
def test_a_message_quotes_neither_the_value_nor_the_schema(number: int) -> None:
    schema, value, _ = MISMATCHES[number]
    problem = SchemaValidator(_mark_schema(schema)).problem(_mark_value(value))
    assert problem is not None
    assert "hunter" not in problem


def test_a_schema_that_cannot_be_used_makes_no_validator() -> None:
    with pytest.raises(ToolError, match="leads out of the schema") as caught:
        SchemaValidator({"$ref": "https://example.com/secret.json"})
    assert caught.value.code == "foreign.bad-schema"
    assert "example.com" not in str(caught.value)


@settings(max_examples=examples(THOUSAND, quick=80))
@given(endless_schemas(), json_values())
def test_a_check_against_references_without_end_ends(schema: dict[str, Any], value: Any) -> None:
    assert schema_problem(schema) is None
    problem = SchemaValidator(schema, max_steps=5_000).problem(value)
    assert problem is None or isinstance(problem, str)


ENDLESS: dict[str, dict[str, Any]] = {
    "itself": {"$ref": "#"},
    "itself twice": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "not itself": {"not": {"$ref": "#"}},
    "two that swap": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
    },
    "doubling": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
        | {"d60": {"type": "null"}},
    },
    "unevaluated": {
        "unevaluatedProperties": {"$ref": "#"},
        "anyOf": [{"$ref": "#/$defs/a"}] * 2,
        "$defs": {"a": {"$ref": "#"}},
    },
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_check_without_end_is_given_up_and_the_value_is_not_valid(name: str) -> None:
    problem = SchemaValidator(ENDLESS[name], max_steps=100_000).problem({"a": 1})
    assert problem is not None
    assert "without end" in problem or "too much work" in problem


def test_a_reference_to_itself_that_goes_into_the_value_ends() -> None:
    tree = SchemaValidator({"properties": {"next": {"$ref": "#"}}, "required": ["v"]})
    value: dict[str, Any] = {"v": 0}
    for number in range(40):
        value = {"v": number, "next": value}
    assert tree.problem(value) is None
    value["next"]["next"] = {}
    assert tree.problem(value) is not None


def test_a_value_nested_without_bound_is_not_valid_and_no_crash() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    assert SchemaValidator({"items": {"$ref": "#"}}).problem(value) is not None
    assert SchemaValidator({"enum": [1]}).problem(value) is not None
    assert SchemaValidator({"uniqueItems": True}).problem([value, value]) is not None


def _steps(schema: dict[str, Any], value: Any) -> int:
    """The smallest power of two that is enough work for a check."""
    steps = 1
    while "too much work" in (SchemaValidator(schema, max_steps=steps).problem(value) or ""):
        steps *= 2
        assert steps <= 2 * MAX_STEPS
    return steps


def test_work_grows_with_the_value_and_not_with_its_square() -> None:
    # Numbers with one hash in every process: sets of them take quadratic time.
    same_hash = [n * (2**61 - 1) for n in range(4_000)]
    mixed: list[Any] = [[n, str(n), {"a": n}] for n in range(1_000)]
    for items in (same_hash, mixed):
        whole, quarter = _steps({"uniqueItems": True}, items), _steps({"uniqueItems": True}, items[: len(items) // 4])
        assert whole <= 8 * quarter
    assert SchemaValidator({"uniqueItems": True}).problem([n * (2**61 - 1) for n in range(100_000)]) is None


def test_a_pattern_that_takes_exponential_time_elsewhere_takes_linear_time_here() -> None:
    check = SchemaValidator({"pattern": "^(a|a|aa)+$"})
    assert check.problem("a" * 100_000) is None
    assert check.problem("a" * 100_000 + "b") == "the value does not match its pattern"
    names = SchemaValidator({"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False})
    assert names.problem({"a" * 10_000: 1}) is None
    assert names.problem({"a" * 10_000 + "b": 1}) is not None


def test_a_large_pattern_over_a_large_text_is_given_up() -> None:
    problem = SchemaValidator({"pattern": r"(x+x+)+y\pL{40}"}).problem("x" * 1_000_000)
    assert problem == "the value takes too much work to be checked"


def test_a_part_of_a_schema_cannot_choose_another_dialect() -> None:
    # The reference implementation would take patterns of Python from here on.
    inner = {"$schema": "http://json-schema.org/draft-03/schema#", "type": "string", "pattern": "^(a|a)+$"}
    check = SchemaValidator({"properties": {"a": inner}})
    assert check.problem({"a": "a" * 50 + "b"}) == "field 1 of the schema does not match its pattern"


def test_values_that_are_no_json_are_not_valid() -> None:
    for value in (math.nan, math.inf, [math.nan]):
        assert SchemaValidator({"type": ["number", "array"], "items": {"type": "number"}}).problem(value) is not None
    assert SchemaValidator({"enum": [1]}).problem(object()) is not None


def test_numbers_without_bound_are_compared() -> None:
    huge = 10**4_000
    assert SchemaValidator({"multipleOf": 0.5, "minimum": 1.5}).problem(huge) is None
    assert SchemaValidator({"multipleOf": huge}).problem(0.5) is not None
    assert SchemaValidator({"const": 1e300, "maximum": huge}).problem(int(1e300)) is None


def test_a_whole_number_with_a_point_is_no_integer() -> None:
    # Plans tell them apart, so that a type `int` would be wrong for it.
    assert SchemaValidator({"type": "integer"}).problem(1.0) is not None
    assert SchemaValidator({"type": "number"}).problem(1.0) is None


def test_a_text_with_half_a_character_is_checked() -> None:
    assert SchemaValidator({"pattern": "^a"}).problem("a\ud800") is None
    assert SchemaValidator({"enum": ["\ud800"], "uniqueItems": True}).problem("\ud800") is None


def test_a_validator_keeps_its_own_copy_of_the_schema() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    check = SchemaValidator(schema)
    schema["properties"]["a"]["type"] = "string"
    assert check.problem({"a": 1}) is None
